//! Names and attributes: LOOKUP, GETATTR, ACCESS, READLINK, CREATE, LINK, REMOVE, RENAME, and the space of the file
//! system.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::{
    self, AccessArgs, AccessOk, Bitmap4, CreateArgs, CreateOk, Createtype4, GetattrArgs, GetattrOk, LinkArgs,
    LinkOk, LookupArgs, Opnum, ReadlinkOk, RemoveArgs, RemoveOk, RenameArgs, RenameOk, fattr4,
};

use super::Inner;
use super::attrs::Encoded;
use super::compound::Failure;
use super::establish::handle_of;
use super::io_ops::after;
use super::request::Kind;
use crate::error::NfsError;
use crate::ops::{Op, v4 as ops};
use crate::protocol::NfsResult;
use crate::types::{AccessBits, Attributes, Handle, Space};

/// Longest name sent.
const MAX_NAME: usize = 1024;

fn check(name: &[u8]) -> NfsResult<()> {
    if name.len() > MAX_NAME { Err(NfsError::NameTooLong) } else { Ok(()) }
}

impl Inner {
    pub(super) async fn lookup(
        self: &Rc<Self>,
        directory: &Handle,
        name: &[u8],
    ) -> NfsResult<(Handle, Option<Attributes>)> {
        check(name)?;
        self.request(
            Kind::reading(ops::LOOKUP),
            |ops| {
                let args = LookupArgs { objname: name.into() };
                ops.on(directory).put(Opnum::LOOKUP, &args).put(Opnum::GETFH, &()).attributes();
            },
            |results| {
                results.on()?;
                results.take::<()>(Opnum::LOOKUP)?;
                let handle = handle_of(results.take(Opnum::GETFH)?)?;
                Ok((handle, after(results)?))
            },
        )
        .await
    }

    pub(super) async fn getattr(self: &Rc<Self>, file: &Handle) -> NfsResult<Attributes> {
        self.request(
            Kind::reading(ops::GETATTR),
            |ops| {
                ops.on(file).attributes();
            },
            |results| {
                results.on()?;
                results.attributes()
            },
        )
        .await
    }

    pub(super) async fn access(
        self: &Rc<Self>,
        file: &Handle,
        wanted: AccessBits,
    ) -> NfsResult<(AccessBits, Option<Attributes>)> {
        self.request(
            Kind::reading(ops::ACCESS),
            |ops| {
                ops.on(file).put(Opnum::ACCESS, &AccessArgs { access: wanted.0 }).attributes();
            },
            |results| {
                results.on()?;
                let ok: AccessOk = results.take(Opnum::ACCESS)?;
                Ok((AccessBits(ok.access & wanted.0), after(results)?))
            },
        )
        .await
    }

    pub(super) async fn readlink(self: &Rc<Self>, link: &Handle) -> NfsResult<Vec<u8>> {
        self.request(
            Kind::reading(ops::READLINK),
            |ops| {
                ops.on(link).put(Opnum::READLINK, &());
            },
            |results| {
                results.on()?;
                Ok(results.take::<ReadlinkOk<'_>>(Opnum::READLINK)?.link.0.to_vec())
            },
        )
        .await
    }

    /// CREATE of a directory or symbolic link.
    pub(super) async fn create(
        self: &Rc<Self>,
        op: Op,
        directory: &Handle,
        name: &[u8],
        objtype: Createtype4<'_>,
        mode: u32,
    ) -> NfsResult<Handle> {
        check(name)?;
        let first = Encoded::mode(mode & 0o7777);
        let args = CreateArgs { objtype, objname: name.into(), createattrs: first.fattr() };
        let made = self
            .request(
                Kind::once(op),
                |ops| {
                    ops.on(directory).put(Opnum::CREATE, &args).put(Opnum::GETFH, &()).attributes();
                },
                |results| {
                    results.on()?;
                    results.take::<CreateOk>(Opnum::CREATE)?;
                    // It is made now; a filehandle that does not come is looked up.
                    match results.take(Opnum::GETFH) {
                        Ok(fh) => handle_of(fh).map(Some),
                        Err(Failure::Status(_)) => Ok(None),
                        Err(failure) => Err(failure),
                    }
                },
            )
            .await?;
        match made {
            Some(handle) => Ok(handle),
            None => Ok(self.lookup(directory, name).await?.0),
        }
    }

    pub(super) async fn link(
        self: &Rc<Self>,
        file: &Handle,
        directory: &Handle,
        name: &[u8],
    ) -> NfsResult<()> {
        check(name)?;
        self.request(
            Kind::once(ops::LINK),
            |ops| {
                ops.on(file).put(Opnum::SAVEFH, &());
                ops.on(directory).put(Opnum::LINK, &LinkArgs { newname: name.into() });
                ops.put(Opnum::RESTOREFH, &()).attributes();
            },
            |results| {
                results.on()?;
                results.take::<()>(Opnum::SAVEFH)?;
                results.on()?;
                results.take::<LinkOk>(Opnum::LINK).map(drop)
            },
        )
        .await
    }

    pub(super) async fn remove(self: &Rc<Self>, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        check(name)?;
        let (kind, args) = (Kind::once(ops::REMOVE), RemoveArgs { target: name.into() });
        self.ask::<RemoveOk>(kind, Some(directory), Opnum::REMOVE, &args).await.map(drop)
    }

    pub(super) async fn rename(
        self: &Rc<Self>,
        from: (&Handle, &[u8]),
        to: (&Handle, &[u8]),
    ) -> NfsResult<()> {
        check(from.1)?;
        check(to.1)?;
        self.request(
            Kind::once(ops::RENAME),
            |ops| {
                ops.on(from.0).put(Opnum::SAVEFH, &());
                let args = RenameArgs { oldname: from.1.into(), newname: to.1.into() };
                ops.on(to.0).put(Opnum::RENAME, &args);
            },
            |results| {
                results.on()?;
                results.take::<()>(Opnum::SAVEFH)?;
                results.on()?;
                results.take::<RenameOk>(Opnum::RENAME).map(drop)
            },
        )
        .await
    }

    pub(super) async fn space(self: &Rc<Self>) -> NfsResult<Space> {
        let root = self.root.get();
        let wanted = Bitmap4::of(&[fattr4::SPACE_TOTAL, fattr4::SPACE_AVAIL, fattr4::FILES_AVAIL]);
        self.request(
            Kind::reading(ops::STATFS),
            |ops| {
                ops.on(&root).put(Opnum::GETATTR, &GetattrArgs { attr_request: wanted });
            },
            |results| {
                results.on()?;
                let got: GetattrOk<'_> = results.take(Opnum::GETATTR)?;
                let got = v4::Attributes::decode(&got.obj_attributes)
                    .map_err(|_| Failure::Nonsense("space attributes do not decode"))?;
                Ok(Space {
                    total: got.space_total.unwrap_or_default(),
                    available: got.space_avail.unwrap_or_default(),
                    files_available: got.files_avail.unwrap_or_default(),
                })
            },
        )
        .await
    }
}
