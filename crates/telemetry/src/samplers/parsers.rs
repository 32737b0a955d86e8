//! Every parser of this crate, for tests and fuzzing: whatever the bytes, none may panic.

use super::{
    cgroup, cpu, diskstats, ethtool, interrupts, jbd2, memory, mountstats, net, nfsd, pressure, process,
    slab, softnet, tcp_info, vmstat,
};
use crate::sampling::{Metric, Sink};

/// Takes values, and checks that they are numbers.
struct Numbers;

impl Sink for Numbers {
    fn put(&mut self, _: Metric<'_>, _: &str, value: f64) {
        assert!(value.is_finite(), "the kernel's counters are finite numbers");
    }
}

/// Something that takes any bytes.
pub type Parser = fn(&[u8]);

/// For parsers of texts.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Names of samplers, whose folders have recorded texts, and their parsers. What is not the kernel's format gives an
/// error, which is of no interest here.
pub const PARSERS: &[(&str, Parser)] = &[
    ("cpu", |bytes| drop(cpu::parse(&text(bytes), 10_000_000, &mut Numbers))),
    ("memory", |bytes| drop(memory::parse(&text(bytes), &mut Numbers))),
    ("vmstat", |bytes| drop(vmstat::parse(&text(bytes), &mut Numbers))),
    ("diskstats", |bytes| drop(diskstats::parse(&text(bytes), &mut Numbers))),
    ("net", |bytes| {
        drop(net::interfaces(&text(bytes), &mut Numbers));
        drop(net::protocols(&text(bytes), &mut Numbers));
    }),
    ("ethtool", |bytes| ethtool::names(bytes).for_each(drop)),
    ("tcp_info", |bytes| {
        if let Some(connection) = tcp_info::parse(bytes) {
            connection.record(&mut String::new(), &mut Numbers);
        }
    }),
    ("softnet", |bytes| drop(softnet::parse(&text(bytes), &mut Numbers))),
    ("interrupts", |bytes| {
        drop(interrupts::interrupts(&text(bytes), &mut String::new(), &mut Numbers));
        drop(interrupts::softirqs(&text(bytes), &mut Numbers));
    }),
    ("mountstats", |bytes| {
        drop(crate::mountstats::Mountstats::parse(&text(bytes)));
        drop(mountstats::parse(&text(bytes), "/mnt", &mut String::new(), &mut Numbers));
        let first_line = b"device srv.example:/export mounted on /mnt/nfs with fstype nfs";
        if let Some(part) = mountstats::find(bytes, first_line) {
            assert!(part.starts_with(first_line), "the part of a mount begins with its line");
        }
    }),
    ("nfsd", |bytes| {
        let text = text(bytes);
        drop(nfsd::rpc(&text, &mut String::new(), &mut Numbers));
        drop(nfsd::threads(&text, &mut Numbers));
        drop(nfsd::pools(&text, &mut Numbers));
        nfsd::client(&text);
    }),
    ("jbd2", |bytes| drop(jbd2::parse(&text(bytes), "vda1-8", &mut Numbers))),
    ("slab", |bytes| drop(slab::parse(&text(bytes), &mut Numbers))),
    ("pressure", |bytes| drop(pressure::parse(&text(bytes), "cpu", &mut Numbers))),
    ("cgroup", |bytes| {
        let text = text(bytes);
        cgroup::own(&text);
        drop(cgroup::cpu(&text, &mut Numbers));
        drop(cgroup::memory(&text, &mut Numbers));
        drop(cgroup::io(&text, &mut Numbers));
        drop(cgroup::stalls(&text, "cpu", &mut Numbers));
    }),
    ("process", |bytes| {
        let units = process::Units { tick_ns: 10_000_000, page: 4096 };
        drop(process::parse(&text(bytes), "self", units, &mut Numbers));
    }),
];

#[cfg(test)]
mod tests {
    use std::path::Path;

    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;
    use crate::samplers::ALL;

    /// Recorded texts of a sampler: the files of its folder that are no code.
    fn recorded(name: &str) -> Vec<Vec<u8>> {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        let folders = [source.join("samplers").join(name), source.join(name).join("samples")];
        let mut texts: Vec<_> = folders
            .iter()
            .filter_map(|folder| std::fs::read_dir(folder).ok())
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "txt" || extension == "bin"))
            .collect();
        texts.sort();
        texts.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
    }

    #[test]
    fn every_sampler_has_a_parser_and_recorded_texts() {
        let parsers: Vec<_> = PARSERS.iter().map(|(name, _)| *name).collect();
        assert_eq!(parsers, ALL.iter().map(|sampler| sampler.name).collect::<Vec<_>>());
        for name in parsers {
            // What two of them read is binary, and has not changed but by growing.
            let least = if ["ethtool", "tcp_info"].contains(&name) { 1 } else { 2 };
            assert!(recorded(name).len() >= least, "{name} needs recorded texts of several kernels");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Noise, cut texts, texts with bytes changed or taken out, and texts of other files.
        #[test]
        fn whatever_the_bytes_nothing_panics(
            noise in prop::collection::vec(any::<u8>(), 0..300),
            cut in any::<Index>(),
            changes in prop::collection::vec((any::<Index>(), any::<u8>(), 0_u8..3), 0..8),
            foreign in any::<Index>(),
        ) {
            for (name, parser) in PARSERS {
                parser(&noise);
                let mut texts = recorded(name);
                let other = recorded(PARSERS[foreign.index(PARSERS.len())].0);
                texts.extend(other.into_iter().take(1));
                for mut text in texts.into_iter().filter(|text| !text.is_empty()) {
                    for (at, byte, how) in &changes {
                        let at = at.index(text.len());
                        match how {
                            0 => text[at] = *byte,
                            // What parsers look at: digits, blanks, ends of lines.
                            1 => text[at] = b"0 \n:-.9"[usize::from(*byte) % 7],
                            _ if text.len() > 1 => drop(text.remove(at)),
                            _ => {}
                        }
                    }
                    text.truncate(cut.index(text.len() + 1));
                    parser(&text);
                }
            }
        }
    }
}
