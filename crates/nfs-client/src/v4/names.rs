//! Names and attributes: LOOKUP, GETATTR, ACCESS, READLINK, CREATE, LINK, REMOVE, RENAME, and the space of the file
//! system.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::{
    self, AccessArgs, AccessOk, Bitmap4, CreateArgs, CreateOk, Createtype4, GetattrArgs, GetattrOk, LinkArgs,
    LinkOk, LookupArgs, Opnum, PutfhArgs, ReadlinkOk, RemoveArgs, RemoveOk, RenameArgs, RenameOk, fattr4,
};

use super::Inner;
use super::attrs::{self, Encoded};
use super::compound::{Failure, Ops};
use super::establish::handle_of;
use super::io_ops::after;
use super::request::Kind;
use crate::error::NfsError;
use crate::ops::{Op, v4 as ops};
use crate::protocol::NfsResult;
use crate::types::{AccessBits, Attributes, Handle, Space};

/// Longest name sent.
const MAX_NAME: usize = 1024;

fn at<'o, 'e>(ops: &'o mut Ops<'e>, handle: &Handle) -> &'o mut Ops<'e> {
    ops.put(Opnum::PUTFH, &PutfhArgs { object: handle.bytes().into() })
}

fn check(name: &[u8]) -> NfsResult<()> {
    if name.len() > MAX_NAME { Err(NfsError::NameTooLong) } else { Ok(()) }
}

fn attributes(ops: &mut Ops<'_>) {
    ops.put(Opnum::GETATTR, &GetattrArgs { attr_request: attrs::WANTED });
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
                at(ops, directory)
                    .put(Opnum::LOOKUP, &LookupArgs { objname: name.into() })
                    .put(Opnum::GETFH, &());
                attributes(ops);
            },
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
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
            |ops| attributes(at(ops, file)),
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
                let got: GetattrOk<'_> = results.take(Opnum::GETATTR)?;
                attrs::decode(&got.obj_attributes)?.all()
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
            |ops| attributes(at(ops, file).put(Opnum::ACCESS, &AccessArgs { access: wanted.0 })),
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
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
                at(ops, link).put(Opnum::READLINK, &());
            },
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
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
                    at(ops, directory).put(Opnum::CREATE, &args).put(Opnum::GETFH, &());
                    attributes(ops);
                },
                |results| {
                    results.take::<()>(Opnum::PUTFH)?;
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
                at(ops, file).put(Opnum::SAVEFH, &());
                at(ops, directory).put(Opnum::LINK, &LinkArgs { newname: name.into() });
                ops.put(Opnum::RESTOREFH, &());
                attributes(ops);
            },
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
                results.take::<()>(Opnum::SAVEFH)?;
                results.take::<()>(Opnum::PUTFH)?;
                results.take::<LinkOk>(Opnum::LINK).map(drop)
            },
        )
        .await
    }

    pub(super) async fn remove(self: &Rc<Self>, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        check(name)?;
        self.request(
            Kind::once(ops::REMOVE),
            |ops| {
                at(ops, directory).put(Opnum::REMOVE, &RemoveArgs { target: name.into() });
            },
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
                results.take::<RemoveOk>(Opnum::REMOVE).map(drop)
            },
        )
        .await
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
                at(ops, from.0).put(Opnum::SAVEFH, &());
                let args = RenameArgs { oldname: from.1.into(), newname: to.1.into() };
                at(ops, to.0).put(Opnum::RENAME, &args);
            },
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
                results.take::<()>(Opnum::SAVEFH)?;
                results.take::<()>(Opnum::PUTFH)?;
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
                at(ops, &root).put(Opnum::GETATTR, &GetattrArgs { attr_request: wanted });
            },
            |results| {
                results.take::<()>(Opnum::PUTFH)?;
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
