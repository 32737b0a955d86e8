//! READ, WRITE, COMMIT with special stateids; opens and locks have tests of their own.

use super::*;

fn data(results: &Results) -> (bool, Vec<u8>) {
    let Resop::Read(Ok(got)) = results.last() else { panic!("{results:?}") };
    (got.eof, got.data.bytes().unwrap().to_vec())
}

#[test]
fn what_is_written_is_read() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        let content: Vec<u8> = (0..100_000u32).map(|i| (i * 7 / 3 + c.minor) as u8).collect();
        for (offset, bytes) in [(0, &content[..]), (5000, &content[..3]), (200_001, &content[1..70_000])] {
            let results = c.run_at("/export/file", &[write(offset, bytes)]);
            let Resop::Write(Ok(got)) = results.last() else { panic!("{results:?}") };
            assert_eq!((got.count as usize, got.committed), (bytes.len(), StableHow4::FileSync));
            let read_back = c.run_at("/export/file", &[read(offset, bytes.len() as u32)]);
            assert_eq!(data(&read_back).1, bytes);
        }
        // A hole reads as zeros.
        let hole = c.run_at("/export/file", &[read(150_000, 10_000)]);
        assert_eq!(data(&hole), (false, vec![0; 10_000]));
        let truncate = Attrs::none().with(fattr4::SIZE, &13u64);
        assert_eq!(c.run_at("/export/file", &[setattr(&truncate)]).status(), Nfsstat4::OK);
    }
}

#[test]
fn the_end_of_file_is_told_exactly() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for (offset, count, expected) in [
            (0, 13, (true, &b"Hello, world!"[..])),
            (0, 12, (false, b"Hello, world")),
            (0, 14, (true, b"Hello, world!")),
            (7, 100, (true, b"world!")),
            (13, 1, (true, b"")),
            (13, 0, (true, b"")),
            (5, 0, (false, b"")),
            (1 << 40, 5, (true, b"")),
            (u64::MAX, u32::MAX, (true, b"")),
        ] {
            let (eof, bytes) = data(&c.run_at("/export/file", &[read(offset, count)]));
            assert_eq!((eof, &bytes[..]), expected, "{offset} {count}");
        }
    }
}

#[test]
fn reads_are_no_longer_than_announced() {
    let server = populated_with(ServerConfig { max_io: 8192, ..ServerConfig::default() });
    for mut c in of_every_minor(&server) {
        assert_eq!(c.run_at("/export/file", &[write(0, &[1; 10_000])]).status(), Nfsstat4::OK);
        let (eof, bytes) = data(&c.run_at("/export/file", &[read(0, u32::MAX)]));
        assert_eq!((eof, bytes.len()), (false, 8192));
    }
}

#[test]
fn stability_is_what_was_asked_for_and_the_verifier_stays() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        for stable in [StableHow4::Unstable, StableHow4::DataSync, StableHow4::FileSync] {
            let op = Argop::Write(WriteArgs {
                stateid: Stateid4::ANONYMOUS,
                offset: 0,
                stable,
                data: Bulk::Bytes(b"H"),
            });
            let commit = Argop::Commit(CommitArgs { offset: 0, count: 0 });
            let results = c.run_at("/export/file", &[op, commit]);
            let ops = results.ops();
            let (Resop::Write(Ok(written)), Resop::Commit(Ok(committed))) = (ops[1], ops[2]) else {
                panic!("{results:?}")
            };
            assert_eq!(written.committed, stable);
            assert_eq!(written.writeverf, committed.writeverf);
        }
    }
}

#[test]
fn data_is_in_files_only() {
    let server = populated();
    let commit = Argop::Commit(CommitArgs { offset: 0, count: 0 });
    for mut c in of_every_minor(&server) {
        let (link, other) = match c.minor {
            0 => (Nfsstat4::INVAL, Nfsstat4::INVAL),
            _ => (Nfsstat4::SYMLINK, Nfsstat4::WRONG_TYPE),
        };
        for op in [read(0, 1), write(0, b"x"), commit] {
            for (path, status) in [
                ("/export/dir", Nfsstat4::ISDIR),
                ("/export/link", link),
                ("/export/fifo", other),
                ("/export/block", other),
            ] {
                assert_eq!(c.run_at(path, &[op]).status(), status, "4.{} {path} {op:?}", c.minor);
            }
            assert_eq!(c.run(&[op]).status(), Nfsstat4::NOFILEHANDLE);
        }
        let beyond = Argop::Commit(CommitArgs { offset: u64::MAX, count: 2 });
        assert_eq!(c.run_at("/export/file", &[beyond]).status(), Nfsstat4::OK, "INVAL is not listed for it");
    }
}

#[test]
fn special_stateids_need_permission_and_room() {
    let server = populated();
    for mut c in of_every_minor(&server) {
        assert_eq!(c.run_at("/export/file", &[write(u64::MAX - 3, b"12345")]).status(), Nfsstat4::FBIG);
        assert_eq!(c.run_at("/export/file", &[write(1 << 63, b"1")]).status(), Nfsstat4::FBIG);
        assert_eq!(c.run_at("/export/file", &[write(99, b"")]).status(), Nfsstat4::OK);
        let size = attributes(&c.run_at("/export/file", &[getattr(&[4])])).size;
        assert_eq!(size, Some(13));
        c.who = user(1000);
        assert_eq!(c.run_at("/export/file", &[read(0, 1)]).status(), Nfsstat4::OK);
        assert_eq!(c.run_at("/export/file", &[write(0, b"x")]).status(), Nfsstat4::ACCESS);
        c.who = user(0);
        let closed = Attrs::none().with(fattr4::MODE, &0o600u32);
        assert_eq!(c.run_at("/export/file", &[setattr(&closed)]).status(), Nfsstat4::OK);
        c.who = user(1000);
        assert_eq!(c.run_at("/export/file", &[read(0, 1)]).status(), Nfsstat4::ACCESS);
        c.who = user(0);
        let open = Attrs::none().with(fattr4::MODE, &0o644u32);
        assert_eq!(c.run_at("/export/file", &[setattr(&open)]).status(), Nfsstat4::OK);
        let bypass = Argop::Read(ReadArgs { stateid: Stateid4::READ_BYPASS, offset: 0, count: 5 });
        assert_eq!(data(&c.run_at("/export/file", &[bypass])).1, b"Hello");
    }
}

#[test]
fn a_read_that_does_not_fit_the_session_is_refused() {
    let server = populated();
    let mut c = Client::new(&server, 1, 6);
    let channel = ChannelAttrs4 {
        headerpadsize: 0,
        maxrequestsize: 100_000,
        maxresponsesize: 2000,
        maxresponsesize_cached: 1000,
        maxoperations: 10,
        maxrequests: 1,
        rdma_ird: None,
    };
    c.create_session(6, channel);
    assert_eq!(c.run_at("/export/file", &[write(0, &[5; 8000])]).status(), Nfsstat4::OK);
    assert_eq!(c.run_at("/export/file", &[read(0, 1800)]).status(), Nfsstat4::OK);
    let results = c.run_at("/export/file", &[read(0, 2000)]);
    assert_eq!(results.last(), Resop::Read(Err(Nfsstat4::REP_TOO_BIG)));
    c.cache_this = true;
    assert_eq!(c.run_at("/export/file", &[read(0, 800)]).status(), Nfsstat4::OK);
    let results = c.run_at("/export/file", &[read(0, 1800)]);
    assert_eq!(results.last(), Resop::Read(Err(Nfsstat4::REP_TOO_BIG_TO_CACHE)));
}
