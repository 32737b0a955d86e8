//! Encoded calls in, decoded results out.

use benchmaster_nfs_proto::v2::*;
use benchmaster_nfs_proto::xdr::{Bulk, Encode, Encoder};

use crate::call::Refusal;
use crate::call::testing::{Caller, decode};
use crate::config::ServerConfig;
use crate::shared::Shared;
use crate::v4::testing;

fn server() -> Shared {
    testing::server(ServerConfig::default())
}

fn root(server: &Shared) -> Fhandle {
    let (_, id) = server.exports.mountable().next().unwrap();
    crate::handle::encode(server.instance, id)
}

fn at(dir: Fhandle, name: &str) -> DirOpArgs<'_> {
    DirOpArgs { dir, name: name.into() }
}

const MODE: Sattr = Sattr { mode: 0o644, ..Sattr::NONE };

impl Caller<'_> {
    fn v2(&mut self, procedure: Proc2, args: &impl Encode) -> Vec<u8> {
        self.call((PROGRAM, super::serve), (2, procedure.0), args)
    }

    fn dir_op(&mut self, procedure: Proc2, args: &impl Encode) -> Result<DirOpOk, Nfsstat2> {
        decode::<DirOpRes>(&self.v2(procedure, args)).ok()
    }

    fn attr_op(&mut self, procedure: Proc2, args: &impl Encode) -> Result<Fattr, Nfsstat2> {
        decode::<AttrRes>(&self.v2(procedure, args)).ok()
    }

    fn status(&mut self, procedure: Proc2, args: &impl Encode) -> Nfsstat2 {
        decode(&self.v2(procedure, args))
    }

    fn read_all(&mut self, file: Fhandle, offset: u32) -> Result<Vec<u8>, Nfsstat2> {
        let args = ReadArgs { file, offset, count: 8192, totalcount: 0 };
        let results = self.v2(Proc2::READ, &args);
        Ok(decode::<ReadRes<'_>>(&results).ok()?.data.bytes().unwrap().to_vec())
    }
}

#[test]
fn a_file_from_creation_to_removal() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server);
    let create = CreateArgs { where_: at(dir, "a"), attributes: MODE };
    let made = caller.dir_op(Proc2::CREATE, &create).unwrap();
    assert_eq!((made.attributes.ftype, made.attributes.mode), (Ftype::Reg, 0o100_644));
    let write = WriteArgs {
        file: made.file,
        beginoffset: 0,
        offset: 3,
        totalcount: 0,
        data: Bulk::Bytes(b"some data"),
    };
    assert_eq!(caller.attr_op(Proc2::WRITE, &write).map(|attr| attr.size), Ok(12));
    assert_eq!(caller.read_all(made.file, 3), Ok(b"some data".to_vec()));
    assert_eq!(caller.read_all(made.file, 1000), Ok(vec![]));

    // CREATE again: the size alone counts.
    let attributes = Sattr { size: 4, mode: 0o777, ..MODE };
    let again = caller.dir_op(Proc2::CREATE, &CreateArgs { where_: at(dir, "a"), attributes }).unwrap();
    assert_eq!((again.file, again.attributes.size, again.attributes.mode), (made.file, 4, 0o100_644));

    assert_eq!(caller.status(Proc2::LINK, &LinkArgs { from: made.file, to: at(dir, "b") }), Nfsstat2::OK);
    let rename = RenameArgs { from: at(dir, "b"), to: at(dir, "c") };
    assert_eq!(caller.status(Proc2::RENAME, &rename), Nfsstat2::OK);
    assert_eq!(caller.status(Proc2::RENAME, &rename), Nfsstat2::NOENT);
    assert_eq!(caller.dir_op(Proc2::LOOKUP, &at(dir, "c")).map(|ok| ok.attributes.nlink), Ok(2));
    assert_eq!(caller.status(Proc2::REMOVE, &at(dir, "a")), Nfsstat2::OK);
    assert_eq!(caller.status(Proc2::REMOVE, &at(dir, "c")), Nfsstat2::OK);
    assert_eq!(caller.attr_op(Proc2::GETATTR, &made.file), Err(Nfsstat2::STALE));
    assert_eq!(caller.attr_op(Proc2::GETATTR, &[0u8; 32]), Err(Nfsstat2::STALE));
}

#[test]
fn thirty_two_bits() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server);
    let made = caller.dir_op(Proc2::CREATE, &CreateArgs { where_: at(dir, "a"), attributes: MODE }).unwrap();
    let write = |offset, data| WriteArgs {
        file: made.file,
        beginoffset: 0,
        offset,
        totalcount: 0,
        data: Bulk::Bytes(data),
    };
    assert_eq!(caller.attr_op(Proc2::WRITE, &write(u32::MAX - 1, b"x")).map(|attr| attr.size), Ok(u32::MAX));
    assert_eq!(caller.attr_op(Proc2::WRITE, &write(u32::MAX, b"x")), Err(Nfsstat2::FBIG));
    let mut e = Encoder::new();
    e.put(&write(0, &[0; 8193]));
    assert_eq!(
        caller.refused((PROGRAM, super::serve), (2, Proc2::WRITE.0), e.buffer()),
        Refusal::GarbageArgs
    );
    // A file that another version made larger.
    let (_, id) = crate::handle::decode(&made.file).unwrap();
    let (fs, node) = server.exports.file(id).unwrap();
    let set = crate::fs::SetAttr { size: Some(1 << 40), ..Default::default() };
    fs.set_attr(&caller.who, node, &set, None, false, caller.now.wall).unwrap();
    assert_eq!(caller.attr_op(Proc2::GETATTR, &made.file).map(|attr| attr.size), Ok(u32::MAX));
    let stat = decode::<StatfsRes>(&caller.v2(Proc2::STATFS, &dir)).ok().unwrap();
    assert_eq!((stat.tsize, stat.bsize), (8192, 4096));
    assert!(stat.bfree <= stat.blocks && stat.bavail <= stat.bfree);
}

#[test]
fn attributes_and_customs_of_setting_them() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server);
    let made = caller.dir_op(Proc2::CREATE, &CreateArgs { where_: at(dir, "a"), attributes: MODE }).unwrap();
    let mut set =
        |attributes| caller.attr_op(Proc2::SETATTR, &SetattrArgs { file: made.file, attributes }).unwrap();
    let time = Timeval { seconds: 5, useconds: 6 };
    let attr = set(Sattr { uid: 7, gid: 8, size: 9, atime: time, mtime: time, ..Sattr::NONE });
    assert_eq!((attr.uid, attr.gid, attr.size, attr.atime, attr.mtime), (7, 8, 9, time, time));
    assert_eq!(attr.mode, 0o100_644);
    // 16 bits of ones set nothing either; a million microseconds are now.
    let now = Timeval { seconds: 5, useconds: SERVER_TIME };
    let attr = set(Sattr { mode: 0xffff, mtime: now, ..Sattr::NONE });
    assert_eq!((attr.mode, attr.size), (0o100_644, 9));
    assert_eq!((attr.atime.seconds, attr.mtime.seconds), (1_700_000_001, 1_700_000_001));
}

#[test]
fn directories_links_and_devices() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server);
    let mkdir = CreateArgs { where_: at(dir, "d"), attributes: Sattr { mode: 0o755, ..Sattr::NONE } };
    let sub = caller.dir_op(Proc2::MKDIR, &mkdir).unwrap();
    assert_eq!((sub.attributes.ftype, sub.attributes.mode), (Ftype::Dir, 0o040_755));
    let symlink = SymlinkArgs { from: at(sub.file, "l"), to: "some/where".into(), attributes: Sattr::NONE };
    assert_eq!(caller.status(Proc2::SYMLINK, &symlink), Nfsstat2::OK);
    let link = caller.dir_op(Proc2::LOOKUP, &at(sub.file, "l")).unwrap();
    let results = caller.v2(Proc2::READLINK, &link.file);
    assert_eq!(decode::<ReadlinkRes<'_>>(&results).ok().unwrap().0, b"some/where");
    assert_eq!(caller.status(Proc2::RMDIR, &at(dir, "d")), Nfsstat2::NOTEMPTY);
    assert_eq!(caller.status(Proc2::REMOVE, &at(dir, "d")), Nfsstat2::ISDIR);
    assert_eq!(caller.read_all(sub.file, 0), Err(Nfsstat2::ISDIR));

    let special = |mode, size| Sattr { mode, size, ..Sattr::NONE };
    for (name, attributes, ftype, mode, rdev) in [
        ("b", special(0o060_600, 0x0801), Ftype::Blk, 0o060_600, 0x0801),
        ("c", special(0o020_600, 0x0102), Ftype::Chr, 0o020_600, 0x0102),
        ("p", special(0o020_600, UNSET), Ftype::Chr, 0o010_600, UNSET),
        ("s", special(0o140_600, UNSET), Ftype::Non, 0o140_600, 0),
    ] {
        let attr = caller
            .dir_op(Proc2::CREATE, &CreateArgs { where_: at(sub.file, name), attributes })
            .unwrap()
            .attributes;
        assert_eq!((attr.ftype, attr.mode, attr.rdev), (ftype, mode, rdev), "{name}");
    }

    // All of it, in pages of three entries or so.
    let (mut names, mut cookie) = (Vec::new(), 0);
    loop {
        let results = caller.v2(Proc2::READDIR, &ReaddirArgs { dir: sub.file, cookie, count: 64 });
        assert!(results.len() <= 4 + 64 + 8);
        let page = decode::<ReaddirRes<'_>>(&results).ok().unwrap();
        for entry in page.entries.iter() {
            names.push(String::from_utf8(entry.name.0.to_vec()).unwrap());
            cookie = entry.cookie;
        }
        if page.eof {
            break;
        }
    }
    names.sort();
    assert_eq!(names, [".", "..", "b", "c", "l", "p", "s"]);
    let tiny = caller.v2(Proc2::READDIR, &ReaddirArgs { dir: sub.file, cookie: 0, count: 10 });
    assert_eq!(decode::<ReaddirRes<'_>>(&tiny).status(), Nfsstat2::IO);
}

#[test]
fn obsolete_and_unknown_procedures() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    for procedure in [Proc2::NULL, Proc2::ROOT, Proc2::WRITECACHE] {
        assert_eq!(caller.v2(procedure, &()), b"");
    }
    assert_eq!(caller.refused((PROGRAM, super::serve), (2, 18), b""), Refusal::ProcUnavail);
    assert_eq!(caller.refused((PROGRAM, super::serve), (2, Proc2::LOOKUP.0), b"1234"), Refusal::GarbageArgs);
    caller.injected = Some(Nfsstat2::IO.0);
    assert_eq!(caller.attr_op(Proc2::GETATTR, &root(&server)), Err(Nfsstat2::IO));
}
