//! Encoded calls in, decoded results out.

use benchmaster_nfs_proto::v3::*;
use benchmaster_nfs_proto::xdr::{Bulk, Encode};

use crate::call::testing::{Caller, decode};
use crate::config::{ExportConfig, ServerConfig};
use crate::shared::Shared;
use crate::v4::testing;

mod attributes;
mod data;
mod listing;
mod names;
mod others;

type Handle = Vec<u8>;

/// A server with two exports, one of them read-only.
fn server() -> Shared {
    let export = |path: &str, read_only| ExportConfig {
        path: path.into(),
        read_only,
        limit: Some(1 << 30),
        security: None,
    };
    testing::server(ServerConfig {
        exports: vec![export("/export", false), export("/fixed", true)],
        max_io: 1 << 16,
        ..ServerConfig::default()
    })
}

fn root(server: &Shared, path: &str) -> Handle {
    let id = server.exports.mountable().find(|(export, _)| *export == path).unwrap().1;
    crate::handle::encode(server.instance, id).to_vec()
}

fn at<'a>(dir: &'a [u8], name: &'a str) -> DirOpArgs<'a> {
    DirOpArgs { dir: dir.into(), name: name.into() }
}

impl Caller<'_> {
    fn v3(&mut self, procedure: Proc3, args: &impl Encode) -> Vec<u8> {
        self.call((PROGRAM, super::serve), (3, procedure.0), args)
    }

    fn create(&mut self, dir: &[u8], name: &str, how: CreateHow) -> Result<Handle, Nfsstat3> {
        let results = self.v3(Proc3::CREATE, &CreateArgs { where_: at(dir, name), how });
        let made = decode::<CreateRes<'_>>(&results).ok()?;
        Ok(made.obj.unwrap().0.to_vec())
    }

    /// A file of the caller, with mode 0644.
    fn file(&mut self, dir: &[u8], name: &str) -> Handle {
        self.create(dir, name, CreateHow::Guarded(Sattr3 { mode: Some(0o644), ..Sattr3::NONE })).unwrap()
    }

    fn mkdir(&mut self, dir: &[u8], name: &str, mode: u32) -> Result<Handle, Nfsstat3> {
        let attributes = Sattr3 { mode: Some(mode), ..Sattr3::NONE };
        let results = self.v3(Proc3::MKDIR, &MkdirArgs { where_: at(dir, name), attributes });
        Ok(decode::<CreateRes<'_>>(&results).ok()?.obj.unwrap().0.to_vec())
    }

    fn lookup(&mut self, dir: &[u8], name: &str) -> Result<Handle, Nfsstat3> {
        let results = self.v3(Proc3::LOOKUP, &LookupArgs { what: at(dir, name) });
        Ok(decode::<LookupRes<'_>>(&results).ok()?.object.0.to_vec())
    }

    fn getattr(&mut self, object: &[u8]) -> Result<Fattr3, Nfsstat3> {
        let results = self.v3(Proc3::GETATTR, &GetattrArgs { object: object.into() });
        Ok(decode::<GetattrRes>(&results).ok()?.obj_attributes)
    }

    fn setattr(&mut self, object: &[u8], new: Sattr3, guard: Option<Nfstime3>) -> SetattrRes {
        let args = SetattrArgs { object: object.into(), new_attributes: new, guard };
        decode(&self.v3(Proc3::SETATTR, &args))
    }

    fn write(&mut self, file: &[u8], offset: u64, data: &[u8]) -> WriteRes {
        let (count, stable) = (data.len() as u32, StableHow::Unstable);
        let args = WriteArgs { file: file.into(), offset, count, stable, data: Bulk::Bytes(data) };
        decode(&self.v3(Proc3::WRITE, &args))
    }

    /// Bytes and whether they end the file.
    fn read(&mut self, file: &[u8], offset: u64, count: u32) -> Result<(Vec<u8>, bool), Nfsstat3> {
        let results = self.v3(Proc3::READ, &ReadArgs { file: file.into(), offset, count });
        let read = decode::<ReadRes<'_>>(&results).ok()?;
        let data = read.data.bytes().unwrap();
        assert_eq!(read.count as usize, data.len());
        Ok((data.to_vec(), read.eof))
    }

    fn remove(&mut self, procedure: Proc3, dir: &[u8], name: &str) -> RemoveRes {
        decode(&self.v3(procedure, &RemoveArgs { object: at(dir, name) }))
    }

    fn rename(&mut self, from: (&[u8], &str), to: (&[u8], &str)) -> RenameRes {
        decode(&self.v3(Proc3::RENAME, &RenameArgs { from: at(from.0, from.1), to: at(to.0, to.1) }))
    }

    fn link(&mut self, file: &[u8], to: (&[u8], &str)) -> LinkRes {
        decode(&self.v3(Proc3::LINK, &LinkArgs { file: file.into(), link: at(to.0, to.1) }))
    }
}

#[test]
fn null_and_unknown_procedures_and_garbage() {
    use crate::call::Refusal;
    let server = server();
    let mut caller = Caller::new(&server, 0);
    assert_eq!(caller.v3(Proc3::NULL, &()), b"");
    assert_eq!(caller.refused((PROGRAM, super::serve), (3, 22), b""), Refusal::ProcUnavail);
    for procedure in 1..22 {
        assert_eq!(
            caller.refused((PROGRAM, super::serve), (3, procedure), b"\0\0\0"),
            Refusal::GarbageArgs,
            "{procedure}"
        );
    }
}

#[test]
fn handles_that_are_none_or_whose_file_is_gone() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let mut damaged = file.clone();
    damaged[20] ^= 1;
    for bad in [&damaged[..], b"", &[0; 64]] {
        assert_eq!(caller.getattr(bad), Err(Nfsstat3::BADHANDLE));
        assert_eq!(caller.lookup(bad, "a"), Err(Nfsstat3::BADHANDLE));
        assert_eq!(caller.write(bad, 0, b"x").status(), Nfsstat3::BADHANDLE);
    }
    assert_eq!(caller.remove(Proc3::REMOVE, &dir, "a").status(), Nfsstat3::OK);
    assert_eq!(caller.getattr(&file), Err(Nfsstat3::STALE));
    assert_eq!(caller.read(&file, 0, 1), Err(Nfsstat3::STALE));
    // A handle of another server, and of an export that there is not.
    let (instance, id) = crate::handle::decode(&dir).unwrap();
    assert_eq!(caller.getattr(&crate::handle::encode(instance + 1, id)), Err(Nfsstat3::STALE));
    let nowhere = crate::handle::FileId { export: 9, ..id };
    assert_eq!(caller.getattr(&crate::handle::encode(instance, nowhere)), Err(Nfsstat3::STALE));
}

#[test]
fn an_injected_status_has_the_form_of_its_procedure() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    caller.injected = Some(Nfsstat3::JUKEBOX.0);
    let (object, file) = (&dir[..], &file[..]);
    let wcc = WccData::NONE;
    assert_eq!(caller.getattr(object), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.setattr(object, Sattr3::NONE, None), Res::Err(Nfsstat3::JUKEBOX, wcc));
    assert_eq!(caller.lookup(object, "a"), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.read(file, 0, 1), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.write(file, 0, b"x"), Res::Err(Nfsstat3::JUKEBOX, wcc));
    assert_eq!(caller.create(object, "b", CreateHow::Exclusive([1; 8])), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.remove(Proc3::REMOVE, object, "a"), Res::Err(Nfsstat3::JUKEBOX, wcc));
    let both = RenameWcc { fromdir_wcc: wcc, todir_wcc: wcc };
    assert_eq!(caller.rename((object, "a"), (object, "b")), Res::Err(Nfsstat3::JUKEBOX, both));
    let linked = LinkWcc { file_attributes: None, linkdir_wcc: wcc };
    assert_eq!(caller.link(file, (object, "b")), Res::Err(Nfsstat3::JUKEBOX, linked));
    caller.injected = None;
    // Nothing of it was done.
    assert_eq!(caller.lookup(object, "b"), Err(Nfsstat3::NOENT));
    assert!(caller.lookup(object, "a").is_ok());
}
