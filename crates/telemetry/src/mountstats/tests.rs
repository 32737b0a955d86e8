//! `linux-6.1*` were recorded from a guest with four mounts; the others are written in the formats of their kernels.

use proptest::prelude::*;
use proptest::sample::{Index, select};

use super::*;

const RECORDED: &str = include_str!("samples/linux-6.1.txt");
const RECORDED_BEFORE: &str = include_str!("samples/linux-6.1-before.txt");
const RECORDED_MOUNTS: &str = include_str!("samples/linux-6.1-mountinfo.txt");
const SAMPLES: [(&str, &str); 6] = [
    ("2.6.32", include_str!("samples/linux-2.6.32.txt")),
    ("3.14", include_str!("samples/linux-3.14.txt")),
    ("4.19", include_str!("samples/linux-4.19.txt")),
    ("5.10", include_str!("samples/linux-5.10.txt")),
    ("6.1", RECORDED),
    ("6.12", include_str!("samples/linux-6.12.txt")),
];

fn sample(kernel: &str) -> Mountstats {
    let (_, text) = SAMPLES.iter().find(|(name, _)| *name == kernel).unwrap();
    Mountstats::parse(text).unwrap()
}

fn at<'a>(stats: &'a Mountstats, point: &str) -> &'a NfsMount {
    stats.mounts.iter().find(|mount| mount.mount_point == Path::new(point)).unwrap()
}

fn problem(text: &str) -> (usize, Problem) {
    let error = Mountstats::parse(text).unwrap_err();
    (error.line, error.problem)
}

#[test]
fn every_line_of_every_kernel_is_understood() {
    for (kernel, text) in SAMPLES {
        let stats = Mountstats::parse(text).unwrap();
        let count = |what: &str| text.lines().filter(|line| line.contains(what)).count();
        assert_eq!(stats.mounts.len(), count("with fstype nfs"), "{kernel}");
        let operations: usize = stats.mounts.iter().map(|mount| mount.operations.len()).sum();
        let operation_line = |line: &&str| {
            line.starts_with('\t')
                && line.split_once(": ").is_some_and(|(_, rest)| rest.split(' ').count() >= 8)
                && !["xprt:", "events:", "bytes:", "opts:", "fsc:"].iter().any(|key| line.contains(key))
        };
        assert_eq!(operations, text.lines().filter(operation_line).count(), "{kernel}");
        let transports: usize = stats.mounts.iter().map(|mount| mount.transports.len()).sum();
        assert_eq!(transports, count("xprt:"), "{kernel}");
        for mount in &stats.mounts {
            assert_eq!(mount.other, [], "{kernel}: {mount}");
            assert!(mount.option("vers").is_some() && !mount.capabilities.is_empty(), "{kernel}: {mount}");
            assert!(mount.security.starts_with("flavor="), "{kernel}: {mount}");
            assert_eq!(mount.file_system == "nfs4", mount.nfsv4.is_some(), "{kernel}: {mount}");
            assert_eq!(mount.rpc.as_ref().unwrap().program, 100_003, "{kernel}: {mount}");
            assert_eq!(mount.bytes.values().len(), Numbers::BYTES.len(), "{kernel}: {mount}");
            let events = if kernel == "2.6.32" { 25 } else { Numbers::EVENTS.len() };
            assert_eq!(mount.events.values().len(), events, "{kernel}: {mount}");
            assert!(mount.operations.iter().all(|op| op.further.is_empty()), "{kernel}: {mount}");
            let counts_errors = mount.operations.iter().all(|op| op.errors.is_some());
            assert_eq!(counts_errors, matches!(kernel, "5.10" | "6.1" | "6.12"), "{kernel}: {mount}");
        }
    }
}

#[test]
fn what_was_recorded_is_what_was_done() {
    let stats = sample("6.1");
    let mount = at(&stats, "/mnt/3");
    assert_eq!((mount.device.as_str(), mount.file_system.as_str()), ("10.78.0.2:/export", "nfs"));
    assert_eq!(
        (mount.version.as_str(), mount.option("vers"), mount.option("nolock")),
        ("1.1", Some("3"), Some(""))
    );
    assert_eq!(
        (mount.option("rw"), mount.option("soft"), mount.option("nconnect")),
        (Some(""), None, Some("2"))
    );
    let rpc = RpcProgram { iostats: "1.1".into(), program: 100_003, version: 3, name: "nfs".into() };
    assert_eq!(mount.rpc, Some(rpc));
    let write = Operation {
        name: "WRITE".into(),
        ops: 4,
        transmissions: 4,
        timeouts: 0,
        bytes_sent: 1_311_248,
        bytes_received: 640,
        queue_ms: 0,
        rtt_ms: 6,
        execute_ms: 6,
        errors: Some(0),
        further: vec![],
    };
    assert_eq!(mount.operation("WRITE"), Some(&write));
    assert_eq!(mount.operation("LOOKUP").unwrap().errors, Some(5));
    assert_eq!(mount.operation("OPEN"), None);
    let events = |name| mount.events.get(name);
    assert_eq!(
        (events("dentry_revalidate"), events("vfs_read_pages"), events("vfs_release")),
        (Some(25), Some(10), Some(5))
    );
    assert_eq!((events("extend_write"), events("pnfs_write"), events("no_such")), (Some(322), Some(0), None));
    assert_eq!(mount.bytes.get("server_written"), Some(1_310_732));
    let [first, second] = &mount.transports[..] else { panic!("{:?}", mount.transports) };
    assert_eq!(
        (first.kind.as_str(), first.numbers.get("port"), first.numbers.get("connects")),
        ("tcp", Some(789), Some(2))
    );
    assert_eq!((second.numbers.get("sends"), second.numbers.get("pending_u")), (Some(21), Some(0)));

    let mount = at(&stats, "/mnt/4.1");
    assert_eq!(
        mount.implementation.as_deref(),
        Some("name='benchmaster 0.1.0',domain='benchmaster',date='0,0'")
    );
    assert!(mount.nfsv4.as_ref().unwrap().contains(",sessions,pnfs=not configured,lease_time=10"));
    assert_eq!(mount.operation("RECLAIM_COMPLETE").unwrap().ops, 1);
}

#[test]
fn kernels_differ_as_they_do() {
    let old = sample("2.6.32");
    assert_eq!(at(&old, "/home").version, "1.0");
    let numbers = &at(&old, "/home").transports[0].numbers;
    assert_eq!(
        (numbers.get("backlog_u"), numbers.get("max_slots"), numbers.values().len()),
        (Some(0), None, 10)
    );
    assert_eq!(at(&old, "/home").operation("READ").unwrap().errors, None);
    assert_eq!(at(&old, "/data").events.get("pnfs_read"), None);
    assert_eq!(at(&old, "/data").events.get("delay"), Some(1));

    let v2 = sample("3.14");
    let mount = at(&v2, "/mnt/old");
    assert_eq!((mount.rpc.as_ref().unwrap().version, mount.operations.len()), (2, 18));
    assert_eq!(
        (mount.transports[0].kind.as_str(), mount.transports[0].numbers.get("sends")),
        ("udp", Some(77))
    );
    assert_eq!(at(&v2, "/mnt/with space").device, "[fd00::5]:/export");

    let cached = sample("4.19");
    assert_eq!(cached.mounts[0].cache.as_ref().unwrap().get("pages_uncached"), Some(12));

    let rdma = sample("5.10");
    let numbers = &at(&rdma, "/fast").transports[1].numbers;
    assert_eq!(numbers.named().count(), 27);
    assert_eq!(
        (numbers.get("total_rdma_rep"), numbers.get("reply_waits_for_send")),
        (Some(1_073_741_824), Some(3))
    );

    let new = sample("6.12");
    assert_eq!(new.mounts[0].operation("77").unwrap().ops, 3, "an operation that the kernel has no name for");
    assert_eq!(new.mounts[0].transports[2].numbers.get("sends"), Some(2));
}

#[test]
fn what_is_not_known_is_kept_or_left_out() {
    let text = "device a:/x mounted on /x with fstype nfs4 statvers=9.9\n\
        \tquota:\ta=1, b = 2\n\
        \tRPC iostats version: 2.0  p/v: 100003/4 (nfs)\n\
        \txprt:\tquic 1 -2 3\n\
        \tevents:\t1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28\n\
        \tper-op statistics\n\
        \t     FROB: 1 2 3 4 5 6 7 8 9 10 11\n\
        device none mounted on /y with fstype fancy statvers=1.0\n\
        \tsomething else without a key\n\
        device nfsd mounted on /proc/fs/nfsd with fstype nfsd\n";
    let stats = Mountstats::parse(text).unwrap();
    let [mount] = &stats.mounts[..] else { panic!("{stats:?}") };
    assert_eq!(mount.other, [("quota".to_owned(), "a=1, b = 2".to_owned())]);
    assert_eq!(mount.transports[0].numbers.values(), [1, -2, 3]);
    assert_eq!(mount.transports[0].numbers.named().count(), 0);
    assert_eq!((mount.events.values().len(), mount.events.named().count()), (28, 27));
    let operation = mount.operation("FROB").unwrap();
    assert_eq!((operation.execute_ms, operation.errors, &operation.further[..]), (8, Some(9), &[10, 11][..]));
    assert_eq!(Mountstats::parse("").unwrap(), Mountstats::default());
    let empty = Mountstats::parse("device  mounted on /z with fstype nfs statvers=1.1").unwrap();
    assert_eq!(empty.mounts[0].device, "");
}

#[test]
fn errors_name_line_and_reason() {
    let device = "device a:/x mounted on /x with fstype nfs statvers=1.1\n";
    let below = |lines: &str| problem(&format!("{device}{lines}"));
    assert_eq!(problem("\tage:\t1\n"), (1, Problem::Outside("age:\t1".into())));
    assert_eq!(problem("device a:/x on /x\n"), (1, Problem::Mount("device a:/x on /x".into())));
    assert_eq!(
        problem("mtab a:/x mounted on /x with fstype nfs"),
        (1, Problem::Mount("mtab a:/x mounted on /x with fstype nfs".into()))
    );
    assert_eq!(below("\n\tage:\t-1\n"), (3, Problem::Number("-1".into())));
    assert_eq!(below("\tevents:\t1 2 x\n"), (2, Problem::Number("x".into())));
    assert_eq!(below("\txprt:\ttcp 1 2 three\n"), (2, Problem::Number("three".into())));
    assert_eq!(below("\tno key\n"), (2, Problem::Key("no key".into())));
    assert_eq!(below("\tRPC iostats version: 1.1\n"), (2, Problem::Program("1.1".into())));
    assert_eq!(
        below("\tper-op statistics\n\tREAD: 1 2 3\n"),
        (3, Problem::Columns { operation: "READ".into(), found: 3 })
    );
    assert_eq!(
        below("\tper-op statistics\n\tREAD: 1 2 3 4 5 6 7 99999999999999999999\n").1,
        Problem::Number("99999999999999999999".into())
    );
    let long = Mountstats::parse(&"ä".repeat(1000)).unwrap_err().to_string();
    assert_eq!(long, format!("line 1: `{}…` is not a mount", "ä".repeat(60)));
}

#[test]
fn two_readings_give_what_happened_between() {
    let (before, after) = (Mountstats::parse(RECORDED_BEFORE).unwrap(), sample("6.1"));
    for point in ["/mnt/3", "/mnt/4.0", "/mnt/4.1", "/mnt/4.2"] {
        // One file was written and another read from the cache.
        let (before, after) = (at(&before, point), at(&after, point));
        let change = after.since(before).unwrap();
        let operation = |name: &str| change.operations.iter().find(|op| op.name == name).unwrap();
        assert_eq!((operation("WRITE").ops, operation("READ").ops), (1, 0), "{point}");
        assert_eq!(operation("WRITE").errors, Some(0), "{point}");
        assert_eq!(change.bytes.get("normal_written"), Some(6), "{point}");
        assert_eq!(change.bytes.get("normal_read"), Some(1_310_720), "{point}");
        assert_eq!(
            change.events.get("vfs_open"),
            after.events.get("vfs_open").map(|n| n - before.events.get("vfs_open").unwrap())
        );
        // The connections did it all.
        let sent: i128 = change.transports.iter().map(|xprt| xprt.numbers.get("sends").unwrap()).sum();
        let transmissions: u64 = change.operations.iter().map(|op| op.transmissions).sum();
        assert_eq!(sent, transmissions.into(), "{point}");
        assert_eq!(change.transports[0].numbers.get("port"), after.transports[0].numbers.get("port"));
        let none = after.since(after).unwrap();
        assert!(
            none.operations.iter().all(|op| op.ops + op.bytes_sent + op.rtt_ms == 0 && op.errors == Some(0))
        );
    }
    let mount = at(&after, "/mnt/3");
    assert!(matches!(mount.since(at(&after, "/mnt/4.0")), Err(ChangeError::Different { .. })));
    let error = at(&before, "/mnt/3").since(mount).unwrap_err();
    assert_eq!(
        error.to_string(),
        "10.78.0.2:/export on /mnt/3: GETATTR ops went back from 3 to 2: it was mounted again, or its counters were reset"
    );
    let older = NfsMount { age: 100, ..mount.clone() };
    assert!(matches!(mount.since(&older), Err(ChangeError::Backwards { from: 100, to: 0, .. })));
    // A second connection since, and an operation that was not listed before.
    let mut fewer = mount.clone();
    fewer.transports.pop();
    fewer.operations.retain(|op| op.name != "WRITE");
    let change = mount.since(&fewer).unwrap();
    assert_eq!(change.transports[1], mount.transports[1]);
    assert_eq!(change.operations.iter().find(|op| op.name == "WRITE"), mount.operation("WRITE"));
}

#[test]
fn a_directory_is_found_on_its_mount() {
    let (stats, mounts) = (sample("6.1"), mountinfo::parse(RECORDED_MOUNTS));
    let found = |path: &str| {
        stats.mount_of(&mounts, Path::new(path)).map(|mount| mount.mount_point.to_str().unwrap())
    };
    assert_eq!(found("/mnt/4.1/dir-4.1/b"), Some("/mnt/4.1"));
    assert_eq!(found("/mnt/3"), Some("/mnt/3"));
    assert_eq!((found("/mnt"), found("/tmp/x"), found("/mnt/4")), (None, None, None));
}

#[test]
fn of_several_mounts_on_one_point_the_one_on_top_counts() {
    let line = |device: &str, point: &str| {
        format!("device {device} mounted on {point} with fstype nfs statvers=1.1\n")
    };
    let text = line("a:/1", "/n")
        + &line("a:/2", "/n")
        + "device t mounted on /n with fstype tmpfs\n"
        + &line("a:/3", "/m");
    let stats = Mountstats::parse(&text).unwrap();
    let lines = [
        "1 0 0:1 / / rw - ext4 /dev/sda rw",
        "2 1 0:2 / /n rw - nfs a:/1 rw",
        "3 2 0:3 / /n rw - nfs a:/2 rw",
        "4 3 0:4 / /n rw - tmpfs t rw",
        "5 1 0:5 / /m rw - nfs a:/3 rw",
    ];
    let device = |count: usize, path: &str| {
        let mounts = mountinfo::parse(&lines[..count].join("\n"));
        stats.mount_of(&mounts, Path::new(path)).map(|mount| mount.device.as_str())
    };
    assert_eq!((device(2, "/n/x"), device(3, "/n/x"), device(4, "/n/x")), (Some("a:/1"), Some("a:/2"), None));
    assert_eq!((device(5, "/m"), device(4, "/m")), (Some("a:/3"), None));
    // Mounted again between the two readings.
    let mounts = mountinfo::parse("1 0 0:1 / / rw - ext4 /dev/sda rw\n5 1 0:5 / /m rw - nfs b:/3 rw\n");
    assert_eq!(stats.mount_of(&mounts, Path::new("/m")), None);
}

#[test]
fn the_mounts_of_this_process_are_understood() {
    let stats = Mountstats::read().unwrap();
    let listed = std::fs::read_to_string("/proc/self/mountinfo").unwrap();
    let nfs = mountinfo::parse(&listed).iter().filter(|mount| is_nfs(&mount.file_system)).count();
    assert_eq!(stats.mounts.len(), nfs);
    assert_eq!(read_mount_of(Path::new("/proc")).unwrap(), None);
}

proptest! {
    /// Lines dropped, doubled, swapped, cut, and with other bytes in them.
    #[test]
    fn no_change_of_the_text_panics(
        (_, text) in select(&SAMPLES[..]),
        changes in prop::collection::vec((0..6u8, any::<Index>(), any::<Index>(), "[ -~\t\n0-9ä]{0,6}"), 1..8)
    ) {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        for (kind, line, other, insert) in changes {
            if lines.is_empty() {
                break;
            }
            let (at, to) = (line.index(lines.len()), other.index(lines.len()));
            match kind {
                0 => drop(lines.remove(at)),
                1 => lines.insert(to, lines[at].clone()),
                2 => lines.swap(at, to),
                3 => {
                    let ends: Vec<usize> = lines[at].char_indices().map(|(end, _)| end).collect();
                    if !ends.is_empty() {
                        lines[at].truncate(ends[other.index(ends.len())]);
                    }
                }
                4 => {
                    let ends: Vec<usize> = lines[at].char_indices().map(|(end, _)| end).collect();
                    if !ends.is_empty() {
                        lines[at].insert_str(ends[other.index(ends.len())], &insert);
                    }
                }
                _ => lines[at] = lines[at].replace(' ', &insert),
            }
        }
        let changed = lines.join("\n");
        match Mountstats::parse(&changed) {
            Ok(stats) => {
                let whole = Mountstats::parse(text).unwrap();
                for (later, earlier) in stats.mounts.iter().zip(&whole.mounts) {
                    let _ = later.since(earlier);
                }
            }
            Err(error) => prop_assert!((1..=changed.lines().count()).contains(&error.line), "{error}"),
        }
    }

    #[test]
    fn operations_read_back_as_written(columns in prop::collection::vec(any::<u64>(), 8..12), name in "[A-Z_]{1,30}") {
        let written: Vec<String> = columns.iter().map(u64::to_string).collect();
        let text = format!(
            "device a:/x mounted on /x with fstype nfs statvers=1.1\n\tper-op statistics\n\t{name:>12}: {}\n",
            written.join(" ")
        );
        let stats = Mountstats::parse(&text).unwrap();
        let op = stats.mounts[0].operation(&name).unwrap();
        let mut read = vec![
            op.ops, op.transmissions, op.timeouts, op.bytes_sent, op.bytes_received, op.queue_ms, op.rtt_ms,
            op.execute_ms,
        ];
        read.extend(op.errors);
        read.extend(&op.further);
        prop_assert_eq!(read, columns);
    }
}
