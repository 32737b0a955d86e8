//! What was acknowledged as stable is looked for after a cut: nothing is called lost that is there, and nothing there that is
//! lost.

use std::cell::RefCell;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use benchmaster_nfs_server::{Loss, Server, ServerConfig};
use benchmaster_record::model::Workload;
use benchmaster_record::witness::{CutKind, CutRecord, Durability, Promise, Witness};
use benchmaster_workload::execute::Edge;
use benchmaster_workload::witness::check;

use crate::bench::{Bench, workload};

/// Files are written in place, flushed or not, made, renamed and removed, by several workers.
fn everything(iterations: u64) -> Workload {
    workload(&format!(
        "until = {{ iterations = {iterations} }}
         verify = 'durability'
         filesets.data = {{ files = 2, size = '64KiB' }}
         filesets.synced = {{ files = 1, size = '64KiB' }}
         filesets.names = {{ files = 40, size = '8KiB', prefill = 0.5 }}
         [[groups]]
         name = 'flush'
         workers = 2
         setup = [{{ op = 'open', fileset = 'data', file = 'own', flags = ['write'] }}]
         flow = [{{ repeat = 3, flow = [{{ op = 'write', io_size = '4KiB', offset = 'random' }}] }}, {{ op = 'fsync' }},
                 {{ op = 'write', io_size = '4KiB', offset = 'random' }}]
         [[groups]]
         name = 'sync'
         setup = [{{ op = 'open', fileset = 'synced', file = 'own', flags = ['write', 'dsync'] }}]
         flow = [{{ op = 'write', io_size = '8KiB', offset = 'random' }}]
         [[groups]]
         name = 'names'
         workers = 2
         flow = [{{ op = 'create', fileset = 'names', file = 'new', flags = ['write'] }},
                 {{ op = 'write', io_size = '4KiB', offset = 'sequential' }}, {{ op = 'close' }},
                 {{ op = 'rename', fileset = 'names', file = 'random' }},
                 {{ op = 'unlink', fileset = 'names', file = 'random' }}]",
    ))
}

/// Executes a workload and calls `cut` between the measured phase and the rest.
fn cut(bench: &mut Bench, workload: &Workload, cut: impl Fn()) -> Witness {
    let recording = bench
        .watch(workload, |progress, _| {
            if progress.edge == Some(Edge::Cut) {
                cut();
            }
        })
        .unwrap();
    assert_eq!(recording.error_details, [""; 0]);
    assert_eq!(recording.corruption, None);
    recording.witness.unwrap()
}

/// A server that loses what is not stable, with these rules.
fn server(version: &str, rules: &[&str]) -> (Bench, Server) {
    let config = ServerConfig {
        volatile: true,
        lease: Duration::from_secs(1),
        rules: rules.iter().map(|rule| rule.parse().unwrap()).collect(),
        ..ServerConfig::default()
    };
    let mut bench = Bench::nfs(&format!("version={version}&timeo=200ms&retrans=50"), config);
    let server = bench.server.take().unwrap();
    (bench, server)
}

#[test]
fn a_server_that_keeps_its_promises_loses_nothing() {
    for (seed, version) in (0..).zip(["3", "4.0", "4.1", "4.2"]) {
        for loss in [Loss::Power, Loss::Process] {
            let (mut bench, server) = server(version, &[]);
            bench.seed = seed;
            let found = cut(&mut bench, &everything(30), || _ = server.crash(loss, seed).unwrap());
            assert_eq!((found.missing(), &found.broken), (0, &vec![]), "version {version}, {loss:?}");
            assert!(found.blocks > 50 && found.names > 20, "version {version}: {found:?}");
        }
    }
}

#[test]
fn each_lie_is_found_out() {
    let flushed = workload(
        "until = { iterations = 20 }
         verify = 'durability'
         filesets.data = { files = 1, size = '64KiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own', flags = ['write'] }]
         flow = [{ op = 'write', io_size = '4KiB', offset = 'sequential' }, { op = 'fsync' }]",
    );
    let mut synced = flushed.clone();
    synced.groups[0].setup[0].flags.push(benchmaster_record::model::OpenFlag::Sync);
    synced.groups[0].flow.truncate(1);
    // Nothing is flushed before the cut, and everything by the close that comes after it.
    let mut open = flushed.clone();
    open.groups[0].flow.truncate(1);
    for version in ["3", "4.1"] {
        for (workload, rule, promise) in [
            (&flushed, "COMMIT lie", Promise::Fsync),
            (&synced, "WRITE lie", Promise::Write),
            (&open, "* keep-verifier", Promise::Close),
        ] {
            let (mut bench, liar) = server(version, &[rule]);
            let found = cut(&mut bench, workload, || _ = liar.crash(Loss::Power, 1).unwrap());
            assert!(
                found.missing() > 0 && found.by.contains_key(&promise),
                "version {version}, {rule}: {found:?}"
            );
            let (mut bench, honest) = server(version, &[]);
            let found = cut(&mut bench, workload, || _ = honest.crash(Loss::Power, 1).unwrap());
            assert_eq!(found.missing(), 0, "version {version}: {found:?}");
        }
    }
}

/// The paths of the files of a fileset, and what was done to them.
fn damaged(damage: impl Fn(&dyn Fn(&str) -> PathBuf)) -> Witness {
    let mut bench = Bench::on(&std::env::temp_dir());
    let work = workload(
        "until = { iterations = 16 }
         verify = 'durability'
         filesets.data = { files = 3, size = '64KiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own', flags = ['write'] }]
         flow = [{ op = 'write', io_size = '4KiB', offset = 'sequential' }, { op = 'fsync' }]",
    );
    let root = bench.area.path().to_owned();
    cut(&mut bench, &work, || damage(&|name| root.join("data/c0").join(name)))
}

#[test]
fn what_is_missing_is_counted_exactly() {
    let kept = damaged(|_| ());
    assert_eq!((kept.blocks, kept.names, kept.missing()), (48, 3, 0));
    assert_eq!(kept.durability(), Durability::Untested, "nothing was cut");
    let write = |path: PathBuf, bytes: &[u8], at: u64| {
        std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, at).unwrap();
    };
    let lost = damaged(|file| std::fs::remove_file(file("f00000002")).unwrap());
    assert_eq!((lost.lost, lost.old, lost.torn), (17, 0, 0), "a name and sixteen blocks: {lost:?}");
    assert_eq!(lost.by, [(Promise::Prepared, 17)].into());
    let short = damaged(|file| {
        let file = std::fs::OpenOptions::new().write(true).open(file("f00000000")).unwrap();
        file.set_len(60 << 10).unwrap();
    });
    assert_eq!((short.lost, short.torn, &short.by), (1, 0, &[(Promise::Fsync, 1)].into()));
    let zeros = damaged(|file| write(file("f00000000"), &[0; 8192], 4096));
    assert_eq!((zeros.lost, zeros.torn), (2, 0));
    let torn = damaged(|file| write(file("f00000000"), &[7; 512], 8192 + 1024));
    assert_eq!((torn.lost, torn.torn), (0, 1));
    assert!(torn.broken[0].found.ends_with("unknown bytes 1024 to 1536"), "{:?}", torn.broken);
    assert!(torn.broken[0].at_ns > 0 && torn.broken[0].offset == Some(8192));
    let renamed = damaged(|file| std::fs::rename(file("f00000001"), file("f00000001.renamed")).unwrap());
    assert_eq!((renamed.lost, renamed.old), (0, 1), "the data are there: {renamed:?}");
    let cut = Some(CutRecord { kind: CutKind::Power, how: String::new(), outage_ns: 0 });
    assert_eq!(Witness { cut, ..torn }.durability(), Durability::Loses);
}

#[test]
fn a_ledger_outlives_its_process() {
    let (mut bench, server) = server("4.1", &[]);
    let copy = bench.target.path().join("copy");
    let before = RefCell::new(None);
    let ledgers = bench.ledgers.path().to_owned();
    let never = AtomicBool::new(false);
    let found = cut(&mut bench, &everything(20), || {
        // As far as a process had come that is killed here.
        let ledger = std::fs::read_dir(&ledgers).unwrap().next().unwrap().unwrap().path();
        std::fs::copy(ledger, &copy).unwrap();
        server.crash(Loss::Power, 3).unwrap();
        *before.borrow_mut() = Some(check(&copy, None, &never).unwrap().1);
    });
    let then = before.take().unwrap();
    assert_eq!((then.missing(), found.missing()), (0, 0), "{then:?} {found:?}");
    assert!(then.acknowledged() > 60 && found.acknowledged() >= then.acknowledged(), "{then:?} {found:?}");
    assert_eq!(std::fs::read_dir(&ledgers).unwrap().count(), 0, "it goes when it has been compared");
    // Cut off anywhere it is still a ledger, or says that it is none.
    let bytes = std::fs::read(&copy).unwrap();
    for length in [0, 10, bytes.len() / 2, bytes.len() - 1] {
        std::fs::write(&copy, &bytes[..length]).unwrap();
        match check(&copy, None, &never) {
            Ok((_, found)) => assert!(found.acknowledged() > 0),
            Err(error) => assert!(error.to_string().contains("is no ledger"), "{error}"),
        }
    }
}

#[test]
fn a_ledger_that_cannot_be_written_is_told() {
    let mut bench = Bench::on(&std::env::temp_dir());
    let work = everything(1);
    std::fs::remove_dir(bench.ledgers.path()).unwrap();
    let error = bench.try_run(&work).unwrap_err().to_string();
    assert!(error.starts_with("the ledger `") && error.contains("outside the target"), "{error}");
}
