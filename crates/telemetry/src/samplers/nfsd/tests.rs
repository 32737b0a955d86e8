//! Texts in the formats of their kernels.

use super::*;
use crate::samplers::testing::{Values, config_in, sampled, tree, values, write};
use crate::sampling::Recorder;

const OLD: &str = include_str!("linux-2.6.32.txt");
const NEW: &str = include_str!("linux-6.12.txt");
const CLIENT: &str = include_str!("linux-6.12-client.txt");

fn parsed(text: &str) -> Values {
    let values = Values::of(|out| rpc(text, &mut String::new(), out));
    values.are_as_listed(&REGISTERED);
    values
}

#[test]
fn calls_have_the_names_of_their_procedures() {
    let old = parsed(OLD);
    let calls = ["v2 NULL", "v3 GETATTR", "v3 READ", "v3 WRITE", "v3 COMMIT", "v4 COMPOUND"];
    let calls = calls.map(|procedure| old.get("calls", procedure).unwrap());
    assert_eq!(calls, [1.0, 20.0, 600.0, 700.0, 15.0, 500.0]);
    let operations = ["ACCESS", "CLOSE", "COMMIT", "GETATTR", "READ", "READDIR"];
    assert_eq!(
        operations.map(|name| old.get("operations", name).unwrap()),
        [10.0, 20.0, 30.0, 400.0, 9.0, 80.0]
    );
    assert_eq!(old.row("", ["read_bytes", "written_bytes", "threads"]), [4_096_000.0, 8_192_000.0, 8.0]);
    assert_eq!(
        old.row("", ["packets", "udp_packets", "tcp_packets", "tcp_connections"]),
        [3000.0, 1.0, 2999.0, 4.0]
    );
    let refused = ["rpc_bad_calls", "rpc_bad_format", "rpc_bad_auth", "rpc_bad_client"];
    assert_eq!(old.row("", refused), [10.0, 4.0, 5.0, 1.0]);
    let new = parsed(NEW);
    let operations = ["ACCESS", "READ", "WRITE", "SEQUENCE", "REMOVEXATTR"];
    assert_eq!(operations.map(|name| new.get("operations", name).unwrap()), [11.0, 222.0, 333.0, 444.0, 5.0]);
    assert_eq!(new.get("reply_cache_hits", ""), Some(5.0));
}

#[test]
fn lines_and_numbers_of_kernels_to_come_are_kept() {
    assert_eq!(parsed(NEW).get("wdeleg_getattr.0", ""), Some(7.0));
    let values = parsed(
        "rc 1 2 3 4\nproc4ops 78 0 0 0 1 2\nnew 5 6.0 7\nproc3 23 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23\n",
    );
    assert_eq!(
        (values.get("rc.3", ""), values.get("new.0", ""), values.get("new.2", "")),
        (Some(4.0), Some(5.0), Some(7.0))
    );
    assert_eq!((values.get("calls", "v3 22"), values.get("operations", "CLOSE")), (Some(23.0), Some(2.0)));
    assert_eq!(rpc("io 1 x\n", &mut String::new(), &mut Values::default()).unwrap_err().line, 1);
}

#[test]
fn pools_have_the_names_of_the_header() {
    let old = Values::of(|out| pools(include_str!("linux-4.18-pool_stats.txt"), out));
    old.are_as_listed(&REGISTERED);
    assert_eq!(
        old.row("0", ["packets-arrived", "sockets-enqueued", "threads-woken", "threads-timedout"]),
        [3000.0, 20.0, 2980.0, 1.0]
    );
    assert_eq!(old.get("overloads-avoided", "1"), Some(0.0));
    let new = Values::of(|out| pools(include_str!("linux-6.12-pool_stats.txt"), out));
    assert_eq!(new.get("threads-timedout", "0"), Some(0.0));
}

#[test]
fn clients_are_counted_by_their_state() {
    assert_eq!(client(CLIENT), Client { confirmed: true, callback_up: true });
    assert_eq!(client(include_str!("linux-5.3-client.txt")), Client::default());
}

#[test]
fn a_server_is_read_from_all_its_files() {
    let root = tree(&[
        ("proc/net/rpc/nfsd", NEW),
        ("proc/fs/nfsd/threads", "48\n"),
        ("proc/fs/nfsd/pool_stats", include_str!("linux-6.12-pool_stats.txt")),
        ("proc/fs/nfsd/clients/1/info", CLIENT),
        ("proc/fs/nfsd/clients/2/info", "status: unconfirmed\n"),
    ]);
    let config = config_in(root.path());
    let more = || write(root.path(), "proc/fs/nfsd/clients/3/info", CLIENT);
    let samples = sampled(&REGISTERED, &config, &[&|| (), &more]);
    assert_eq!(samples.problems, []);
    assert_eq!(values(&samples, "clients", ""), [2.0, 3.0]);
    assert_eq!(values(&samples, "clients_confirmed", ""), [1.0, 2.0]);
    assert_eq!(values(&samples, "clients_callback_up", ""), [1.0, 2.0]);
    // The number that the kernel keeps up to date.
    assert_eq!(values(&samples, "threads", ""), [48.0, 48.0]);
    assert_eq!(values(&samples, "packets-arrived", "0"), [3000.0, 3000.0]);
}

#[test]
fn clients_that_stay_the_same_are_read_less_often_and_new_ones_at_once() {
    const SECOND: i64 = 1_000_000_000;
    let root = tree(&[("proc/fs/nfsd/clients/1/info", "status: unconfirmed\n")]);
    let mut nfsd = Nfsd::new(&config_in(root.path()));
    let mut recorder = Recorder::new("nfsd");
    let mut at = |second: i64| nfsd.read_clients(&mut recorder.reading(second * SECOND));
    // Read at 0, 1 and 3; between them and up to 7 what its file has is not looked at.
    (0..4).for_each(&mut at);
    write(root.path(), "proc/fs/nfsd/clients/1/info", CLIENT);
    (4..8).for_each(&mut at);
    // Another client makes that all are read.
    write(root.path(), "proc/fs/nfsd/clients/2/info", "status: unconfirmed\n");
    (8..11).for_each(&mut at);
    std::fs::remove_dir_all(root.path().join("proc/fs/nfsd/clients/1")).unwrap();
    (11..12).for_each(&mut at);
    let (series, _) = recorder.finish();
    let points = |metric: &str| -> Vec<(i64, f64)> {
        let of = series.iter().find(|series| series.key.metric == metric).unwrap();
        of.points.iter().map(|point| (point.time_ns / SECOND, point.value)).collect()
    };
    assert_eq!(points("clients_confirmed"), [(0, 0.0), (3, 0.0), (7, 1.0), (9, 1.0), (11, 0.0)]);
    assert_eq!(points("clients"), [(0, 1.0), (7, 1.0), (8, 2.0), (9, 2.0), (11, 1.0)]);
}

#[test]
fn a_host_without_a_server_says_so_once() {
    let root = tempfile::tempdir().unwrap();
    let samples = sampled(&REGISTERED, &config_in(root.path()), &[&|| (), &|| ()]);
    let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
    assert!(problem.problem.ends_with("the kernel's NFS server does not run here"), "{}", problem.problem);
}
