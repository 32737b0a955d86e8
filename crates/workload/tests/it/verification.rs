//! Wrong data are found, and right data are never called wrong.

use std::time::Duration;

use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::model::{FilePick, OperationKind, Workload};
use benchmaster_record::phase::Phase;
use benchmaster_workload::area::AreaError;
use benchmaster_workload::execute::ExecuteError;

use crate::bench::{Bench, count, has_uring, workload};

fn data(op: &str, offset: &str, iterations: u64, verify: bool) -> Workload {
    workload(&format!(
        "until = {{ iterations = {iterations} }}
         verify = {verify}
         filesets.data = {{ files = 2, size = '64KiB' }}
         [[groups]]
         name = 'g'
         workers = 2
         setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
         flow = [{{ op = '{op}', io_size = '16KiB', offset = '{offset}' }}]"
    ))
}

#[test]
pub(crate) fn what_is_written_reads_back() {
    let mut bench = Bench::new();
    let recording = bench.run(&data("write", "random", 50, true));
    assert_eq!(recording.verified_bytes, Some(128 << 10), "the whole fileset");
    assert_eq!(recording.phases.last().unwrap().phase, Phase::Verify);
    bench.area.begin_run(false).unwrap();
    let recording = bench.run(&data("read", "sequential", 8, true));
    assert!(recording.filesets[0].reused, "generations are remembered from run to run");
    assert_eq!(recording.verified_bytes, Some(256 << 10));
    assert_eq!(bench.run(&data("read", "sequential", 8, false)).verified_bytes, None);
}

#[test]
pub(crate) fn a_changed_byte_is_found_where_it_is() {
    for at in [0u64, 4, 20, 40_000, 65_535] {
        let mut bench = Bench::new();
        let file = bench.path("data/c0/f00000001");
        // The complement of the byte, whatever it is.
        bench.hook(format!(
            "set -e; f={}; b=$(od -An -tu1 -j{at} -N1 $f); \
             printf \"\\\\$(printf %03o $((255 - b)))\" | dd of=$f bs=1 seek={at} conv=notrunc",
            file.display()
        ));
        let corruption = bench.try_run(&data("read", "sequential", 4, true)).unwrap().corruption.unwrap();
        assert!(
            corruption.starts_with(&format!("data/c0/f00000001, offset {at}: wrong byte 0x")),
            "{corruption}"
        );
    }
}

#[test]
pub(crate) fn a_changed_byte_is_found_by_reading_back_too() {
    let mut bench = Bench::new();
    let file = bench.path("data/c0/f00000000");
    // The worker opens file 0, and then file 1 in its place; nobody reads file 0 but the check in the end.
    bench.hook(format!("printf xxxx | dd of={} bs=1 seek=12345 conv=notrunc", file.display()));
    let mut writes = data("write", "sequential", 4, true);
    writes.groups[0].workers = 1;
    writes.groups[0].setup[0].file = Some(FilePick::Next);
    let open = writes.groups[0].setup[0].clone();
    writes.groups[0].setup.push(open);
    let corruption = bench.try_run(&writes).unwrap().corruption.unwrap();
    assert!(corruption.starts_with("data/c0/f00000000, offset 12345: wrong byte 0x78"), "{corruption}");
}

#[test]
pub(crate) fn a_lost_write_is_found_by_its_generation() {
    let mut bench = Bench::new();
    let (file, old) = (bench.path("data/c0/f00000000"), bench.target.path().join("old"));
    bench.hook(format!("cp {} {}", file.display(), old.display()));
    bench.run(&data("write", "sequential", 8, true));
    bench.hook(format!("cp {} {}", old.display(), file.display()));
    let corruption = bench.try_run(&data("read", "sequential", 4, true)).unwrap().corruption.unwrap();
    let expected = "data/c0/f00000000, offset 0: the block holds generation 0 where 2 was written last";
    assert_eq!(corruption, expected);
}

#[test]
pub(crate) fn a_file_of_another_place_is_found() {
    let mut bench = Bench::new();
    let (one, other) = (bench.path("data/c0/f00000000"), bench.path("data/c0/f00000001"));
    bench.hook(format!("cp {} {}", one.display(), other.display()));
    let corruption = bench.try_run(&data("read", "sequential", 4, true)).unwrap().corruption.unwrap();
    assert!(corruption.starts_with("data/c0/f00000001, offset "), "{corruption}");
    assert!(corruption.contains("the block belongs to another file, offset 0"), "{corruption}");
}

#[test]
pub(crate) fn a_file_that_ends_early_is_found_by_reading_back() {
    let mut bench = Bench::new();
    bench.hook(format!("truncate -s 50000 {}", bench.path("data/c0/f00000001").display()));
    let mut writes = data("write", "sequential", 1, true);
    writes.groups[0].workers = 1;
    let corruption = bench.try_run(&writes).unwrap().corruption.unwrap();
    assert_eq!(
        corruption,
        "data/c0/f00000001, offset 50000: the file ends before, although this was written"
    );
}

#[test]
pub(crate) fn a_file_that_is_gone_cannot_be_read_back() {
    let mut bench = Bench::new();
    bench.hook(format!("rm {}", bench.path("data/c0/f00000001").display()));
    let mut writes = data("write", "sequential", 1, true);
    writes.groups[0].workers = 1;
    let error = bench.try_run(&writes).unwrap_err();
    assert!(matches!(error, ExecuteError::ReadBack(_)), "{error}");
    assert_eq!(
        error.to_string(),
        "cannot read back `data/c0/f00000001`: No such file or directory (os error 2)"
    );
}

#[test]
pub(crate) fn wrong_data_in_the_warm_up_are_not_forgotten() {
    let mut bench = Bench::new();
    let file = bench.path("data/c0/f00000000");
    bench.hook(format!("printf xxxx | dd of={} bs=1 seek=999 conv=notrunc", file.display()));
    let mut reads = data("read", "sequential", 1, true);
    reads.warm_up = "30ms".parse().unwrap();
    // The measured phase reads nothing.
    reads.until.iterations = Some(0);
    let recording = bench.try_run(&reads).unwrap();
    assert_eq!(count(&recording, "read"), 0);
    assert!(recording.corruption.unwrap().starts_with("data/c0/f00000000, offset 999: wrong byte"));
}

#[test]
pub(crate) fn many_writers_of_one_file_raise_no_false_alarm() {
    let (io, depth) = if has_uring() { ("io_uring", 16) } else { ("sync", 1) };
    let mut bench = Bench::new();
    let writes = workload(&format!(
        "until = {{ iterations = 500 }}
         verify = true
         filesets.data = {{ files = 1, size = '128KiB' }}
         [[groups]]
         name = 'g'
         workers = 4
         queue_depth = {depth}
         io = '{io}'
         setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
         flow = [{{ op = 'write', io_size = '8KiB', offset = 'random' }}]"
    ));
    for _ in 0..15 {
        assert_eq!(bench.run(&writes).verified_bytes, Some(128 << 10));
    }
}

#[test]
pub(crate) fn readers_beside_writers_raise_no_false_alarm() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 3000 }
         verify = true
         filesets.data = { files = 1, size = 40960 }
         [[groups]]
         name = 'write'
         workers = 2
         setup = [{ op = 'open', file = 'own', flags = ['write'] }]
         flow = [{ op = 'write', io_size = '4KiB', offset = 'random' }]
         [[groups]]
         name = 'read'
         workers = 2
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = '8KiB', offset = 'random' }]",
    ));
    assert!(recording.verified_bytes.unwrap() > 40_960, "something was proved while it was written");
}

#[test]
pub(crate) fn files_that_come_go_and_are_emptied_raise_no_false_alarm() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 200 }
         verify = true
         filesets.data = { files = 30, size = 10240, prefill = 0.5 }
         [[groups]]
         name = 'create'
         workers = 2
         flow = [
             { op = 'create', flags = ['write'] },
             { repeat = 'end-of-file', flow = [{ op = 'write', io_size = '4KiB' }] },
             { op = 'close' },
             { op = 'unlink', file = 'random' },
         ]
         [[groups]]
         name = 'empty'
         flow = [
             { op = 'open', file = 'random', flags = ['write', 'truncate'] },
             { repeat = 'end-of-file', flow = [{ op = 'write', io_size = '4KiB' }] },
             { op = 'close' },
             { op = 'rename', file = 'random' },
         ]",
    ));
    assert!(recording.verified_bytes.unwrap() > 0);
}

#[test]
pub(crate) fn small_and_odd_sizes_are_proved_whole() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 12 }
         verify = true
         filesets.data = { files = 4, size = 5033 }
         [[groups]]
         name = 'g'
         flow = [
             { op = 'open', file = 'next', flags = ['write'] },
             { repeat = 'end-of-file', flow = [{ op = 'write', io_size = 192 }] },
             { repeat = 'end-of-file', flow = [{ op = 'read', io_size = 64 }] },
             { op = 'close' },
         ]",
    ));
    // Twelve files were read whole, and four read back.
    assert_eq!(recording.verified_bytes, Some(16 * 5033));
}

#[test]
pub(crate) fn what_another_workload_wrote_without_stamps_is_made_anew_or_refused() {
    let mut bench = Bench::new();
    bench.run(&data("write", "random", 10, false));
    assert!(!bench.run(&data("read", "sequential", 4, true)).filesets[0].reused);

    let mut creates = data("write", "sequential", 4, false);
    creates.groups[0].setup[0].op = Some(OperationKind::Create);
    creates.groups[0].setup[0].file = Some(FilePick::Own);
    bench.run(&creates);
    let error = bench.try_run(&data("read", "sequential", 4, true)).unwrap_err();
    assert!(matches!(error, ExecuteError::Area(AreaError::NotProvable { .. })), "{error}");
}

/// The server stops while it is written to, and comes back with another verifier: the client writes again what was not
/// committed, which would destroy what is right if it kept anything else than was written.
#[test]
fn what_a_restarted_server_is_sent_again_is_what_was_written() {
    for version in ["3", "4.1"] {
        let directory = tempfile::tempdir().unwrap();
        let config = ServerConfig {
            threads: 1,
            state: Some(directory.path().join("state")),
            lease: Duration::from_secs(1),
            ..ServerConfig::default()
        };
        let mut bench = Bench::nfs(&format!("version={version}"), config.clone());
        let mut server = bench.server.take();
        let listen = server.as_ref().unwrap().address();
        let workload = workload(
            "until = { duration = '1500ms' }
             verify = true
             filesets.data = { files = 4, size = '1MiB' }
             [[groups]]
             name = 'g'
             workers = 4
             setup = [{ op = 'open', file = 'own', flags = ['write'] }]
             flow = [
                { op = 'write', io_size = '64KiB', offset = 'random' },
                { op = 'write', io_size = '4KiB', offset = 'random' },
                { op = 'read', io_size = '64KiB', offset = 'random' },
             ]",
        );
        let mut restarted = false;
        let recording = bench.watch(&workload, |progress, _| {
            if progress.phase == Phase::Measure && progress.done.operations > 20 && !restarted {
                restarted = true;
                drop(server.take());
                server = Some(Server::start(ServerConfig { listen, ..config.clone() }).unwrap());
            }
        });
        let recording = recording.unwrap();
        assert!(restarted, "{version}");
        assert_eq!(recording.error_details, [""; 0], "{version}");
        assert_eq!(recording.corruption, None, "{version}");
        let rpc = recording.rpc.unwrap();
        let rewritten: u64 = rpc.phases.iter().filter_map(|phase| phase.events.get("rewritten")).sum();
        assert!(rewritten > 0, "{version}");
    }
}
