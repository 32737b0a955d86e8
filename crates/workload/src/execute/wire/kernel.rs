//! The kernel's NFS client, by its counters of the mount on which a directory lies.

use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use benchmaster_telemetry::mountstats::{Change, NfsMount, Numbers, Operation, read_mount_of};

use crate::recording::{ConnectionFacts, RpcCounters, RpcPhase, RpcRecording, RpcRow, RpcSource};

/// Counters of a mount at the boundaries of phases.
#[derive(Debug)]
pub(in crate::execute) struct Kernel {
    /// On the mount, without symbolic links.
    path: PathBuf,
    /// From the beginning of set-up on; or why they could not be read.
    marks: Vec<Result<NfsMount, String>>,
    /// Whether a command ran before the measured phase that may have mounted it anew: set-up is not known then.
    hooked: bool,
}

impl Kernel {
    /// Reads the counters of the mount of `path`, if it is one of NFS.
    pub(super) fn begin(path: &Path) -> Option<Self> {
        const NFS: rustix::fs::FsWord = 0x6969;
        let path = path.canonicalize().ok()?;
        let first = match read_mount_of(&path) {
            Ok(found) => Ok(found?),
            // What cannot be read is said where there should be something.
            Err(_) if rustix::fs::statfs(&path).is_ok_and(|found| found.f_type != NFS) => return None,
            Err(error) => Err(error.to_string()),
        };
        Some(Self { path, marks: vec![first], hooked: false })
    }

    /// A command of the study was run, which may have mounted it anew.
    pub(super) fn hooked(&mut self) {
        self.hooked = true;
    }

    /// A phase ends here.
    pub(super) fn mark(&mut self) {
        let found = match read_mount_of(&self.path) {
            Ok(Some(mount)) => Ok(mount),
            Ok(None) => Err(format!("{} is on no NFS mount any more", self.path.display())),
            Err(error) => Err(error.to_string()),
        };
        self.marks.push(found);
    }

    /// The phases between the marks. `cpu_ns` is the process's in the measured one.
    pub(super) fn finish(self, names: &[Phase], cpu_ns: (u64, u64), clients: u32) -> RpcRecording {
        recording(&self.marks, self.hooked, names, cpu_ns, clients)
    }
}

fn recording(
    marks: &[Result<NfsMount, String>],
    hooked: bool,
    names: &[Phase],
    cpu_ns: (u64, u64),
    clients: u32,
) -> RpcRecording {
    let mut problems = Vec::new();
    let between = |pair: &[Result<NfsMount, String>]| match pair {
        [Ok(earlier), Ok(later)] => later.since(earlier).map_err(|error| error.to_string()),
        [_, Err(error)] | [Err(error), _] => Err(error.clone()),
        _ => Err("the kernel's counters were not read".into()),
    };
    let mut phases = Vec::with_capacity(names.len());
    for (name, pair) in names.iter().zip(marks.windows(2)) {
        match between(pair) {
            Ok(change) => phases.push(phase(*name, program(pair), &change)),
            Err(error) => {
                if !hooked || *name != Phase::SetUp {
                    problems.push(format!("the kernel's RPC counters of {name} are not known: {error}"));
                }
                phases.push(RpcPhase { phase: *name, ..RpcPhase::default() });
            }
        }
    }
    let last = marks.iter().rev().find_map(|mark| mark.as_ref().ok());
    RpcRecording {
        source: RpcSource::Kernel,
        phases,
        client_cpu_ns: cpu_ns,
        connection: last.map(|mount| facts(mount, clients)).unwrap_or_default(),
        problems,
    }
}

/// The NFS program of a mount, named as those of the user-space client.
fn program(pair: &[Result<NfsMount, String>]) -> String {
    let rpc = pair.iter().find_map(|mark| mark.as_ref().ok()?.rpc.as_ref());
    rpc.map_or_else(|| "NFS".to_owned(), |rpc| format!("NFSv{}", rpc.version))
}

fn phase(phase: Phase, program: String, change: &Change) -> RpcPhase {
    const MILLISECOND: u64 = 1_000_000;
    let used = |operation: &&Operation| operation.ops > 0 || operation.transmissions > 0;
    let row = |operation: &Operation| RpcRow {
        program: program.clone(),
        operation: operation.name.clone(),
        counters: RpcCounters {
            ops: operation.ops,
            transmissions: operation.transmissions,
            timeouts: operation.timeouts,
            bytes_sent: operation.bytes_sent,
            bytes_received: operation.bytes_received,
            queue_ns: operation.queue_ms * MILLISECOND,
            rtt_ns: operation.rtt_ms * MILLISECOND,
            execute_ns: operation.execute_ms * MILLISECOND,
            errors: operation.errors.unwrap_or(0),
        },
    };
    let sum = |name: &str| -> u64 {
        let of = |numbers: &Numbers| numbers.get(name).and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        change.transports.iter().map(|transport| of(&transport.numbers)).sum()
    };
    let events = [("connect", sum("connects")), ("stray-reply", sum("bad_xids"))];
    let events: BTreeMap<String, u64> = events
        .into_iter()
        .filter(|(_, count)| *count > 0)
        .map(|(name, count)| (name.to_owned(), count))
        .collect();
    RpcPhase { phase, rows: change.operations.iter().filter(used).map(row).collect(), events }
}

/// The version of a mount; kernels before minor versions write `4`.
fn version(option: &str) -> Option<NfsVersion> {
    if option == "4" { Some(NfsVersion::V40) } else { NfsVersion::from_name(option) }
}

fn facts(mount: &NfsMount, clients: u32) -> ConnectionFacts {
    let number = |name: &str| mount.option(name).and_then(|value| value.parse().ok());
    ConnectionFacts {
        server: mount.device.clone(),
        version: mount.option("vers").and_then(version),
        rsize: number("rsize").unwrap_or(0),
        wsize: number("wsize").unwrap_or(0),
        nconnect: u32::try_from(mount.transports.len()).unwrap_or(u32::MAX),
        slots: None,
        tls: None,
        clients,
        threads: None,
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_telemetry::mountstats::Mountstats;

    use super::*;

    /// A mount with so many READs, of 3 ms each.
    fn mount(age: u64, reads: u64, connects: u64) -> NfsMount {
        let text = format!(
            "device server:/export mounted on /mnt/nfs with fstype nfs4 statvers=1.1\n\
             \topts:\trw,vers=4.1,rsize=1048576,wsize=524288,namlen=255,proto=tcp\n\
             \tage:\t{age}\n\
             \tcaps:\tcaps=0x7,wtmult=512,dtsize=1048576,bsize=0,namlen=255\n\
             \tsec:\tflavor=1,pseudoflavor=1\n\
             \tevents:\t0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n\
             \tbytes:\t0 0 0 0 0 0 0 0\n\
             \tRPC iostats version: 1.1  p/v: 100003/4 (nfs)\n\
             \txprt:\ttcp 0 1 {connects} 0 0 9 9 0 9 0 2 0 0\n\
             \tper-op statistics\n\
             \t        NULL: 1 1 0 44 24 0 0 0 0\n\
             \t        READ: {reads} {reads} 1 {} {} 0 {} {} 2\n",
            reads * 200,
            reads * 4200,
            reads * 3,
            reads * 4
        );
        Mountstats::parse(&text).unwrap().mounts.remove(0)
    }

    #[test]
    fn phases_are_the_differences_between_marks() {
        let marks = [mount(1, 10, 1), mount(2, 15, 1), mount(5, 1015, 2), mount(6, 1015, 2)].map(Ok);
        let recorded = recording(&marks, false, &[Phase::SetUp, Phase::Measure, Phase::TearDown], (7, 8), 2);
        assert_eq!((recorded.source, recorded.client_cpu_ns), (RpcSource::Kernel, (7, 8)));
        assert_eq!(recorded.problems, [""; 0]);
        assert_eq!(recorded.phase(Phase::SetUp).unwrap().row("READ").unwrap().ops, 5);
        let measured = recorded.phase(Phase::Measure).unwrap();
        let expected = RpcRow {
            program: "NFSv4".into(),
            operation: "READ".into(),
            counters: RpcCounters {
                ops: 1000,
                transmissions: 1000,
                timeouts: 0,
                bytes_sent: 200_000,
                bytes_received: 4_200_000,
                queue_ns: 0,
                rtt_ns: 3_000_000_000,
                execute_ns: 4_000_000_000,
                errors: 0,
            },
        };
        assert_eq!(measured.rows, [expected], "and nothing that was not used");
        assert_eq!(measured.events, BTreeMap::from([("connect".to_owned(), 1)]));
        assert_eq!(recorded.phase(Phase::TearDown).unwrap().rows, []);
        let facts = recorded.connection;
        assert_eq!((facts.server.as_str(), facts.version), ("server:/export", Some(NfsVersion::V41)));
        assert_eq!((facts.rsize, facts.wsize, facts.nconnect, facts.clients), (1 << 20, 1 << 19, 1, 2));
    }

    #[test]
    fn what_is_not_known_is_said_and_not_invented() {
        // Mounted anew between set-up and the measured phase, and gone in the end.
        let marks = [Ok(mount(9, 10, 1)), Ok(mount(1, 0, 1)), Ok(mount(2, 5, 1)), Err("gone".to_owned())];
        let recorded = recording(&marks, false, &[Phase::SetUp, Phase::Measure, Phase::TearDown], (0, 0), 1);
        assert_eq!(recorded.phase(Phase::Measure).unwrap().row("READ").unwrap().ops, 5);
        assert_eq!(recorded.phases.len(), 3);
        assert_eq!(recorded.problems.len(), 2);
        assert!(recorded.problems[0].starts_with("the kernel's RPC counters of set-up are not known: "));
        assert_eq!(recorded.problems[1], "the kernel's RPC counters of tear-down are not known: gone");
        // That a hook of the study mounts it anew is no problem; that it is gone is one.
        let hooked = recording(&marks, true, &[Phase::SetUp, Phase::Measure, Phase::TearDown], (0, 0), 1);
        assert_eq!(hooked.problems, recorded.problems[1..]);
        assert_eq!(hooked.phases, recorded.phases);
    }

    #[test]
    fn a_directory_on_no_nfs_mount_has_no_counters() {
        assert!(Kernel::begin(Path::new("/proc")).is_none());
    }
}
