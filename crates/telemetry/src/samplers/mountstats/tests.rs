use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::mountstats::Mountstats as Parsed;
use crate::samplers::testing::{Values, sampled, tree, values, write};
use crate::sampling::Watched;

const SAMPLES: [(&str, &str); 6] = [
    ("2.6.32", include_str!("../../mountstats/samples/linux-2.6.32.txt")),
    ("3.14", include_str!("../../mountstats/samples/linux-3.14.txt")),
    ("4.19", include_str!("../../mountstats/samples/linux-4.19.txt")),
    ("5.10", include_str!("../../mountstats/samples/linux-5.10.txt")),
    ("6.1", include_str!("../../mountstats/samples/linux-6.1.txt")),
    ("6.12", include_str!("../../mountstats/samples/linux-6.12.txt")),
];
const BEFORE: &str = include_str!("../../mountstats/samples/linux-6.1-before.txt");
const AFTER: &str = SAMPLES[4].1;
const MOUNTS: &str = include_str!("../../mountstats/samples/linux-6.1-mountinfo.txt");

/// What the parser of whole texts knows of a mount, as the sampler names it.
fn expected(mount: &crate::mountstats::NfsMount) -> BTreeMap<(String, String), f64> {
    let point = mount.mount_point.display().to_string();
    let mut all = BTreeMap::new();
    let mut put = |metric: &str, instance: &str, value: f64| {
        assert_eq!(all.insert((metric.to_owned(), instance.to_owned()), value), None);
    };
    put("age", &point, mount.age as f64);
    for numbers in [&mount.events, &mount.bytes].into_iter().chain(&mount.cache) {
        numbers.named().for_each(|(name, value)| put(name, &point, value as f64));
    }
    for (at, transport) in mount.transports.iter().enumerate() {
        let instance = format!("{point} xprt {at} {}", transport.kind);
        transport.numbers.named().for_each(|(name, value)| put(name, &instance, value as f64));
    }
    for operation in &mount.operations {
        let instance = format!("{point} {}", operation.name);
        let mut put = |metric: &str, value: u64| put(metric, &instance, value as f64);
        put("ops", operation.ops);
        put("transmissions", operation.transmissions);
        put("timeouts", operation.timeouts);
        put("bytes_sent", operation.bytes_sent);
        put("bytes_received", operation.bytes_received);
        put("queue_time", operation.queue_ms * 1_000_000);
        put("rtt_time", operation.rtt_ms * 1_000_000);
        put("execute_time", operation.execute_ms * 1_000_000);
        operation.errors.into_iter().for_each(|errors| put("errors", errors));
    }
    for field in mount.nfsv4.iter().flat_map(|nfsv4| nfsv4.split(',')) {
        if let Some((name, value)) = field.split_once('=').filter(|(name, _)| name.starts_with("lease_")) {
            put(name, &point, value.parse().unwrap());
        }
    }
    all
}

#[test]
fn every_number_of_every_kernel_is_the_one_that_the_other_parser_finds() {
    let mut mounts = 0;
    for (kernel, text) in SAMPLES {
        for mount in Parsed::parse(text).unwrap().mounts {
            let first_line = block::first_line(&mount.device, &mount.mount_point);
            let block = find(text.as_bytes(), &first_line).unwrap();
            let block = std::str::from_utf8(block).unwrap();
            assert_eq!(block.matches("with fstype").count(), 1, "{kernel}");
            let point = mount.mount_point.display().to_string();
            let values = Values::of(|out| parse(block, &point, &mut String::new(), out));
            values.are_as_listed(&REGISTERED);
            let found: BTreeMap<_, _> =
                values.0.into_iter().map(|value| ((value.0, value.1), value.4)).collect();
            assert_eq!(found, expected(&mount), "{kernel}: {mount}");
            mounts += 1;
        }
    }
    assert!(mounts >= 9, "{mounts}");
}

#[test]
fn lines_and_columns_of_kernels_to_come_are_kept() {
    let text = "device a:/b mounted on /c with fstype nfs4 statvers=1.2\n\tage:\t5\n\tnew:\t1 2\n\twords:\tone two\n\
                \tbytes:\t1 2 3 4 5 6 7 8 9\n\txprt:\tquic 1 2\n\tper-op statistics\n\t  READ: 1 2 3 4 5 6 7 8 9 10\n";
    let values = Values::of(|out| parse(text, "/c", &mut String::new(), out));
    assert_eq!((values.get("new.1", "/c"), values.get("bytes.8", "/c")), (Some(2.0), Some(9.0)));
    assert_eq!(
        (values.get("xprt.1", "/c xprt 0 quic"), values.get("column.9", "/c READ")),
        (Some(2.0), Some(10.0))
    );
    let mut values = Values::default();
    let broken = "device a:/b mounted on /c with fstype nfs\n\tage: x\n\tper-op statistics\n\tREAD: 1 2\n\tNULL: 1 1 1 1 1 1 1 1\n";
    assert_eq!(parse(broken, "/c", &mut String::new(), &mut values).unwrap_err().line, 2);
    assert_eq!(values.get("ops", "/c NULL"), Some(1.0));
}

fn config(root: &Path, directory: &str) -> SamplingConfig {
    let mut config = crate::samplers::testing::config_in(root);
    config.places.mounts = Some(root.join("mounts"));
    config.watch = Watched { mount: Some(directory.into()), ..Watched::default() };
    config
}

#[test]
fn the_watched_mount_is_read_and_no_other() {
    let root = tree(&[("mounts/mountstats", BEFORE), ("mounts/mountinfo", MOUNTS)]);
    let change = || write(root.path(), "mounts/mountstats", AFTER);
    for point in ["/mnt/3", "/mnt/4.1"] {
        write(root.path(), "mounts/mountstats", BEFORE);
        let samples = sampled(&REGISTERED, &config(root.path(), point), &[&|| (), &change]);
        assert_eq!(samples.problems, []);
        assert!(samples.series.iter().all(|series| series.key.instance.split(' ').next() == Some(point)));
        let read = format!("{point} READ");
        let counts = [BEFORE, AFTER].map(|text| {
            let stats = Parsed::parse(text).unwrap();
            let mount = stats.mounts.iter().find(|mount| mount.mount_point == Path::new(point)).unwrap();
            mount.operation("READ").unwrap().bytes_received as f64
        });
        assert_eq!(values(&samples, "bytes_received", &read), counts, "{point}");
    }
}

#[test]
fn a_mount_that_comes_later_is_found_and_one_that_goes_is_reported() {
    let root = tree(&[
        ("mounts/mountstats", "device proc mounted on /proc with fstype proc\n"),
        ("mounts/mountinfo", "22 1 0:21 / / rw - ext4 /dev/vda rw\n"),
    ]);
    let mount = || {
        write(root.path(), "mounts/mountstats", BEFORE);
        write(root.path(), "mounts/mountinfo", MOUNTS);
    };
    let unmount =
        || write(root.path(), "mounts/mountstats", "device proc mounted on /proc with fstype proc\n");
    let samples = sampled(&REGISTERED, &config(root.path(), "/mnt/3"), &[&|| (), &mount, &|| (), &unmount]);
    assert_eq!(values(&samples, "ops", "/mnt/3 READ"), [10.0, 10.0]);
    let problems: Vec<_> = samples.problems.iter().map(|problem| problem.problem.as_str()).collect();
    let [first, second] = problems[..] else { panic!("{problems:?}") };
    assert_eq!(first, "/mnt/3 lies on ext4, which is no NFS mount of the kernel: nothing is read");
    assert!(second.starts_with("/mnt/3 is not mounted any more"), "{second}");
}

#[test]
fn nothing_is_read_when_nothing_is_watched() {
    let samples = sampled(&REGISTERED, &SamplingConfig::default(), &[&|| ()]);
    assert_eq!((samples.series, samples.problems), (vec![], vec![]));
}

#[test]
fn names_are_escaped_as_the_kernel_does() {
    let line = r"40 27 0:52 / /mnt/a\040b\134c rw - nfs4 srv:/x\011y rw,vers=4.2";
    let mount = mountinfo::Mount::parse(line).unwrap();
    let expected = br"device srv:/x\011y mounted on /mnt/a\040b\134c with fstype nfs";
    assert_eq!(block::first_line(&mount.source, &mount.mount_point), expected);
}

proptest! {
    /// In whatever pieces the text comes in, the part found is that of the mount, and it ends where the next one begins.
    #[test]
    fn parts_are_found_in_pieces(pieces in prop::collection::vec(1_usize..3000, 1..40), which in 0_usize..4) {
        let stats = Parsed::parse(AFTER).unwrap();
        let mount = &stats.mounts[which % stats.mounts.len()];
        let first_line = block::first_line(&mount.device, &mount.mount_point);
        let mut search = Block::new(&first_line);
        let mut end = 0;
        for piece in pieces.into_iter().chain([AFTER.len()]) {
            end = (end + piece).min(AFTER.len());
            if search.is_whole(&AFTER.as_bytes()[..end]) {
                break;
            }
        }
        let found = search.finish(&AFTER.as_bytes()[..end]).unwrap();
        prop_assert_eq!(found, find(AFTER.as_bytes(), &first_line).unwrap());
        let text = std::str::from_utf8(found).unwrap();
        prop_assert_eq!(&Parsed::parse(text).unwrap().mounts[..], std::slice::from_ref(mount));
    }
}
