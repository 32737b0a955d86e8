//! Operations as a client sees them.

use benchmaster_nfs_proto::v4::*;
use benchmaster_nfs_proto::xdr::Bulk;

use super::testing::{Attrs, Client, Results, server};
use crate::config::{ExportConfig, ServerConfig};
use crate::cred::Credentials;
use crate::shared::Shared;

mod allocation;
mod attributes;
mod compounds;
mod data;
mod directories;
mod errors;
mod files;
mod random;
mod ranges;
mod rules;
mod state;
mod stateful;
mod xattrs;

/// Two exports, one of them read-only, and below `/export` a file, a directory, and one of each other kind.
fn populated() -> Shared {
    populated_with(ServerConfig::default())
}

fn populated_with(config: ServerConfig) -> Shared {
    let export =
        |path: &str, read_only| ExportConfig { path: path.into(), read_only, ..ExportConfig::default() };
    let exports = vec![export("/export", false), export("/frozen", true), export("/other", false)];
    let server = server(ServerConfig { exports, ..config });
    let mut c = Client::new(&server, 0, 99);
    for (name, objtype) in [
        ("dir", Createtype4::Dir),
        ("link", Createtype4::Lnk("file".into())),
        ("fifo", Createtype4::Fifo),
        ("sock", Createtype4::Sock),
        ("block", Createtype4::Blk(Specdata4 { specdata1: 8, specdata2: 1 })),
        ("char", Createtype4::Chr(Specdata4 { specdata1: 1, specdata2: 3 })),
    ] {
        let made = c.run_at("/export", &[create(name, objtype)]);
        assert_eq!(made.status(), Nfsstat4::OK, "{name}: {made:?}");
    }
    make_file(&c, "/export", "file", b"Hello, world!");
    make_file(&c, "/other", "file", b"other");
    server
}

/// Makes a file behind the protocol's back: OPEN has tests of its own.
fn make_file(c: &Client<'_>, dir: &str, name: &str, content: &[u8]) {
    use crate::fs::{NewFile, SetAttr};
    let root = Credentials::root();
    let (fs, node) = c.server.exports.file(c.id(dir)).unwrap();
    let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
    let file = fs.create(&root, node, name.as_bytes(), NewFile::Regular, &set, None, c.now.wall).unwrap();
    fs.write(&root, file.attr.node, 0, content, c.now.wall).unwrap();
}

fn user(uid: u32) -> Credentials {
    Credentials { uid, gid: uid, ..Credentials::root() }
}

fn create<'a>(name: &'a str, objtype: Createtype4<'a>) -> Argop<'a> {
    let none = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: (&[][..]).into() };
    Argop::Create(CreateArgs { objtype, objname: name.into(), createattrs: none })
}

fn lookup(name: &str) -> Argop<'_> {
    Argop::Lookup(LookupArgs { objname: name.into() })
}

fn putfh(handle: &[u8]) -> Argop<'_> {
    Argop::Putfh(PutfhArgs { object: handle.into() })
}

fn getattr(bits: &[u32]) -> Argop<'static> {
    Argop::Getattr(GetattrArgs { attr_request: Bitmap4::of(bits) })
}

fn read(offset: u64, count: u32) -> Argop<'static> {
    Argop::Read(ReadArgs { stateid: Stateid4::ANONYMOUS, offset, count })
}

fn write(offset: u64, data: &[u8]) -> Argop<'_> {
    Argop::Write(WriteArgs {
        stateid: Stateid4::ANONYMOUS,
        offset,
        stable: StableHow4::FileSync,
        data: Bulk::Bytes(data),
    })
}

fn setattr(attrs: &Attrs) -> Argop<'_> {
    Argop::Setattr(SetattrArgs { stateid: Stateid4::ANONYMOUS, obj_attributes: attrs.get() })
}

/// The attributes in the last result.
fn attributes(results: &Results) -> Attributes<'_> {
    let Resop::Getattr(Ok(got)) = results.last() else { panic!("{results:?}") };
    Attributes::decode(&got.obj_attributes).unwrap()
}

/// Clients of all minor versions.
fn of_every_minor(server: &Shared) -> [Client<'_>; 3] {
    [Client::new(server, 0, 1), Client::with_session(server, 1, 2), Client::with_session(server, 2, 3)]
}
