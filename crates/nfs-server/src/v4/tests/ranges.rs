//! Operations of 4.2 on ranges.

use super::*;

const ZERO: Stateid4 = Stateid4::ANONYMOUS;

fn content(c: &mut Client<'_>, path: &str) -> Vec<u8> {
    let results = c.run_at(path, &[read(0, 1 << 20)]);
    let Resop::Read(Ok(got)) = results.last() else { panic!("{results:?}") };
    got.data.bytes().unwrap().to_vec()
}

fn allocate(offset: u64, length: u64) -> Argop<'static> {
    Argop::Allocate(AllocateArgs { stateid: ZERO, offset, length })
}

fn deallocate(offset: u64, length: u64) -> Argop<'static> {
    Argop::Deallocate(DeallocateArgs { stateid: ZERO, offset, length })
}

fn seek(offset: u64, what: DataContent4) -> Argop<'static> {
    Argop::Seek(SeekArgs { stateid: ZERO, offset, what })
}

fn found(c: &mut Client<'_>, path: &str, op: Argop<'_>) -> Result<(bool, u64), Nfsstat4> {
    let results = c.run_at(path, &[op]);
    let Resop::Seek(got) = results.last() else { panic!("{results:?}") };
    got.map(|got| (got.eof, got.offset))
}

/// COPY or CLONE from one path to another.
fn between(c: &mut Client<'_>, from: &str, to: &str, op: Argop<'_>) -> Results {
    let (from, to) = (c.handle(from), c.handle(to));
    c.run(&[putfh(&from), Argop::Savefh, putfh(&to), op])
}

fn copy(src_offset: u64, dst_offset: u64, count: u64) -> Argop<'static> {
    Argop::Copy(CopyArgs {
        src_stateid: ZERO,
        dst_stateid: ZERO,
        src_offset,
        dst_offset,
        count,
        consecutive: true,
        synchronous: true,
        source_server: Default::default(),
    })
}

fn clone(src_offset: u64, dst_offset: u64, count: u64) -> Argop<'static> {
    Argop::Clone(CloneArgs { src_stateid: ZERO, dst_stateid: ZERO, src_offset, dst_offset, count })
}

#[test]
fn space_is_reserved_and_given_back() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    assert_eq!(c.run_at("/export/file", &[allocate(10, 90)]).status(), Nfsstat4::OK);
    let mut expected = b"Hello, world!".to_vec();
    expected.resize(100, 0);
    assert_eq!(content(&mut c, "/export/file"), expected);
    assert_eq!(c.run_at("/export/file", &[deallocate(0, 5)]).status(), Nfsstat4::OK);
    expected[..5].fill(0);
    assert_eq!(content(&mut c, "/export/file"), expected);
    for op in [allocate, deallocate] {
        for (path, range, status) in [
            ("/export/file", (0, 0), Nfsstat4::INVAL),
            ("/export/file", (u64::MAX, 2), Nfsstat4::FBIG),
            ("/export/dir", (0, 1), Nfsstat4::WRONG_TYPE),
            ("/export/link", (0, 1), Nfsstat4::WRONG_TYPE),
        ] {
            assert_eq!(c.run_at(path, &[op(range.0, range.1)]).status(), status, "{path} {range:?}");
        }
        assert_eq!(c.run(&[op(0, 1)]).status(), Nfsstat4::NOFILEHANDLE);
        c.who = user(1000);
        assert_eq!(c.run_at("/export/file", &[op(0, 1)]).status(), Nfsstat4::ACCESS);
        c.who = user(0);
    }
}

#[test]
fn data_and_holes_are_found() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    make_file(&c, "/export", "sparse", b"");
    let path = "/export/sparse";
    assert_eq!(c.run_at(path, &[write(1 << 20, &[1; 1 << 16])]).status(), Nfsstat4::OK);
    let size = Attrs::none().with(fattr4::SIZE, &(2u64 << 20));
    assert_eq!(c.run_at(path, &[setattr(&size)]).status(), Nfsstat4::OK);
    let (data, hole) = (DataContent4::DATA, DataContent4::HOLE);
    assert_eq!(found(&mut c, path, seek(0, data)), Ok((false, 1 << 20)));
    assert_eq!(found(&mut c, path, seek(0, hole)), Ok((false, 0)));
    assert_eq!(found(&mut c, path, seek(1 << 20, hole)), Ok((false, (1 << 20) + (1 << 16))));
    assert_eq!(found(&mut c, path, seek((1 << 20) + (1 << 16), data)), Ok((true, 2 << 20)));
    assert_eq!(found(&mut c, path, seek(2 << 20, data)), Err(Nfsstat4::NXIO));
    assert_eq!(found(&mut c, path, seek(u64::MAX, hole)), Err(Nfsstat4::NXIO));
    assert_eq!(found(&mut c, path, seek(0, DataContent4(2))), Err(Nfsstat4::UNION_NOTSUPP));
    // The hole that every file ends in.
    assert_eq!(found(&mut c, "/export/file", seek(0, hole)), Ok((true, 13)));
    assert_eq!(found(&mut c, "/export/dir", seek(0, data)), Err(Nfsstat4::ISDIR));
    assert_eq!(found(&mut c, "/export/link", seek(0, data)), Err(Nfsstat4::SYMLINK));
    assert_eq!(found(&mut c, "/export/fifo", seek(0, data)), Err(Nfsstat4::WRONG_TYPE));
}

#[test]
fn copies_are_made_at_once() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    make_file(&c, "/export", "to", b"0123456789");
    for (from, op, copied, expected) in [
        ("/export/file", copy(7, 2, 5), 5, &b"01world789"[..]),
        ("/export/file", copy(7, 8, 0), 6, b"01world7world!"),
        ("/other/file", copy(1, 0, 4), 4, b"therrld7world!"),
        ("/export/file", copy(13, 0, 0), 0, b"therrld7world!"),
    ] {
        let results = between(&mut c, from, "/export/to", op);
        let Resop::Copy(CopyRes::Ok(got)) = results.last() else { panic!("{results:?}") };
        assert_eq!((got.response.count, got.response.callback_id), (copied, None));
        assert_eq!(content(&mut c, "/export/to"), expected, "{op:?}");
    }
    for (from, to, op, status) in [
        ("/export/file", "/export/file", copy(0, 20, 1), Nfsstat4::INVAL),
        ("/export/file", "/export/to", copy(14, 0, 0), Nfsstat4::INVAL),
        ("/export/file", "/export/to", copy(10, 0, 4), Nfsstat4::INVAL),
        ("/export/file", "/export/to", copy(0, u64::MAX, 4), Nfsstat4::FBIG),
        ("/export/dir", "/export/to", copy(0, 0, 0), Nfsstat4::WRONG_TYPE),
        ("/export/file", "/export/fifo", copy(0, 0, 0), Nfsstat4::WRONG_TYPE),
        ("/export/file", "/export/to", clone(14, 0, 0), Nfsstat4::INVAL),
        ("/export/file", "/export/to", clone(0, 0, 14), Nfsstat4::INVAL),
        ("/export/file", "/export/file", clone(0, 5, 6), Nfsstat4::INVAL),
        ("/export/file", "/export/dir", clone(0, 0, 0), Nfsstat4::WRONG_TYPE),
        ("/other/file", "/export/to", clone(0, 0, 0), Nfsstat4::XDEV),
    ] {
        assert_eq!(between(&mut c, from, to, op).status(), status, "{from} {to} {op:?}");
    }
    let elsewhere = [Netloc4::Name("elsewhere".into())];
    let Argop::Copy(args) = copy(0, 0, 0) else { unreachable!() };
    let remote =
        Argop::Copy(CopyArgs { source_server: benchmaster_nfs_proto::xdr::List::Items(&elsewhere), ..args });
    assert_eq!(between(&mut c, "/export/file", "/export/to", remote).status(), Nfsstat4::PARTNER_NOTSUPP);
    assert_eq!(c.run_at("/export/to", &[copy(0, 0, 0)]).status(), Nfsstat4::NOFILEHANDLE);
    assert_eq!(between(&mut c, "/export/file", "/export/to", clone(0, 0, 0)).status(), Nfsstat4::OK);
    assert_eq!(content(&mut c, "/export/to"), b"Hello, world!!");
    assert_eq!(between(&mut c, "/export/file", "/export/file", clone(0, 6, 6)).status(), Nfsstat4::OK);
    assert_eq!(content(&mut c, "/export/file"), b"Hello,Hello,!");
}

#[test]
fn read_plus_names_holes_and_agrees_with_read() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    make_file(&c, "/export", "sparse", b"");
    let path = "/export/sparse";
    for at in [0u64, 100_000, 300_000] {
        assert_eq!(c.run_at(path, &[write(at, &[at as u8 | 1; 50_000])]).status(), Nfsstat4::OK);
    }
    let size = Attrs::none().with(fattr4::SIZE, &500_000u64);
    assert_eq!(c.run_at(path, &[setattr(&size)]).status(), Nfsstat4::OK);
    let mut holes = 0;
    for (offset, count) in [
        (0, 500_000),
        (0, 600_000),
        (7, 100_001),
        (120_000, 10),
        (200_000, 50_000),
        (499_999, 1),
        (500_000, 9),
        (3, 0),
    ] {
        let plus = Argop::ReadPlus(ReadPlusArgs { stateid: ZERO, offset, count });
        let results = c.run_at(path, &[plus]);
        let Resop::ReadPlus(Ok(got)) = results.last() else { panic!("{results:?}") };
        let mut bytes = Vec::new();
        for part in got.contents.iter() {
            let at = offset + bytes.len() as u64;
            match part {
                ReadPlusContent::Data(part) => {
                    assert_eq!(part.offset, at);
                    bytes.extend_from_slice(part.data.bytes().unwrap());
                }
                ReadPlusContent::Hole(part) => {
                    assert_eq!(part.offset, at);
                    bytes.resize(bytes.len() + part.length as usize, 0);
                    holes += 1;
                }
                ReadPlusContent::Other(_) => panic!("{results:?}"),
            }
        }
        let plain = c.run_at(path, &[read(offset, count)]);
        let Resop::Read(Ok(expected)) = plain.last() else { panic!("{plain:?}") };
        assert_eq!((got.eof, &bytes[..]), (expected.eof, expected.data.bytes().unwrap()), "{offset} {count}");
    }
    assert!(holes >= 5, "{holes}");
    let plus = Argop::ReadPlus(ReadPlusArgs { stateid: ZERO, offset: 0, count: 1 });
    for (path, status) in [
        ("/export/dir", Nfsstat4::ISDIR),
        ("/export/link", Nfsstat4::SYMLINK),
        ("/export/sock", Nfsstat4::WRONG_TYPE),
    ] {
        assert_eq!(c.run_at(path, &[plus]).status(), status);
    }
}

#[test]
fn advice_is_taken_and_what_is_optional_is_not_offered() {
    let server = populated();
    let mut c = Client::with_session(&server, 2, 1);
    let hints = Bitmap4::of(&[1, 3, 10]);
    let advise = Argop::IoAdvise(IoAdviseArgs { stateid: ZERO, offset: 0, count: 0, hints });
    let results = c.run_at("/export/file", &[advise]);
    let Resop::IoAdvise(Ok(got)) = results.last() else { panic!("{results:?}") };
    assert_eq!(got.hints, Bitmap4::of(&[IoAdvise4::NORMAL.0]));
    assert_eq!(c.run_at("/export/dir", &[advise]).status(), Nfsstat4::ISDIR);
    for op in [
        Argop::Unimplemented(Opnum::OFFLOAD_CANCEL),
        Argop::Unimplemented(Opnum::OFFLOAD_STATUS),
        Argop::Unimplemented(Opnum::COPY_NOTIFY),
        Argop::Unimplemented(Opnum::LAYOUTGET),
        Argop::Openattr(OpenattrArgs { createdir: false }),
    ] {
        assert_eq!(c.run_at("/export/file", &[op]).status(), Nfsstat4::NOTSUPP, "{op:?}");
    }
}
