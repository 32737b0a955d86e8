//! What minor version 2 added: COPY, ALLOCATE, SEEK (RFC 7862) and extended attributes (RFC 8276).

use std::rc::Rc;

use benchmaster_nfs_proto::v4::{
    AllocateArgs, CopyArgs, CopyRes, DataContent4, GetxattrArgs, GetxattrOk, ListxattrsArgs, ListxattrsOk,
    Nfsstat4, Opnum, RemovexattrArgs, RemovexattrOk, SHARE_ACCESS_READ, SHARE_ACCESS_WRITE, SeekArgs, SeekOk,
    SetxattrArgs, SetxattrOk, SetxattrOption4, StableHow4,
};
use benchmaster_nfs_proto::xdr::List;

use super::Inner;
use super::compound::Failure;
use super::request::Kind;
use super::state::File;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::{NO_ALLOCATE, NO_COPY, NO_SEEK, NO_XATTRS, NfsResult};
use crate::types::{Handle, Range};

/// Bytes of names asked for at a time.
const PAGE: u32 = 64 << 10;

impl Inner {
    /// Nothing if the minor version has these operations.
    fn extended(&self, otherwise: NfsError) -> NfsResult<()> {
        if self.minor >= 2 { Ok(()) } else { Err(otherwise) }
    }

    /// COPY within the server, synchronous. Data that are not stable after it are made so by COMMIT.
    pub(super) async fn copy(
        self: &Rc<Self>,
        source: (&File, u64),
        destination: (&File, u64),
        length: u64,
    ) -> NfsResult<u64> {
        self.extended(NO_COPY)?;
        let (from, to) = (source.0.handle(), destination.0.handle());
        let copied = self.with_stateid(source.0, SHARE_ACCESS_READ, async |src_stateid| {
            self.with_stateid(destination.0, SHARE_ACCESS_WRITE, async |dst_stateid| {
                let args = CopyArgs {
                    src_stateid,
                    dst_stateid,
                    src_offset: source.1,
                    dst_offset: destination.1,
                    count: length,
                    consecutive: true,
                    synchronous: true,
                    source_server: List::Items(&[]),
                };
                self.copy_once(&from, &to, &args).await
            })
            .await
        });
        let (count, unstable) = copied.await?;
        if count > length {
            return Err(NfsError::Nonsense("COPY of more than was requested"));
        }
        if unstable {
            self.commit(destination.0, Range::WHOLE).await?;
        }
        Ok(count)
    }

    /// Bytes copied, and whether they may still be lost.
    async fn copy_once(
        self: &Rc<Self>,
        from: &Handle,
        to: &Handle,
        args: &CopyArgs<'_>,
    ) -> NfsResult<(u64, bool)> {
        self.request(
            Kind::repeatable(ops::COPY),
            |ops| {
                ops.on(from);
                ops.put(Opnum::SAVEFH, &());
                ops.on(to);
                ops.put(Opnum::COPY, args);
            },
            |results| {
                results.on()?;
                results.take::<()>(Opnum::SAVEFH)?;
                results.on()?;
                match results.result::<CopyRes>(Opnum::COPY)? {
                    CopyRes::Ok(ok) if ok.response.callback_id.is_none() => {
                        Ok((ok.response.count, ok.response.committed == StableHow4::Unstable))
                    }
                    // It would be done later, or in another way than was asked for.
                    CopyRes::Ok(_) | CopyRes::OffloadNoReqs(_) => {
                        Err(Failure::Status(Nfsstat4::OFFLOAD_NO_REQS))
                    }
                    CopyRes::Err(status) => Err(Failure::Status(status)),
                }
            },
        )
        .await
    }

    pub(super) async fn allocate(self: &Rc<Self>, file: &File, range: Range) -> NfsResult<()> {
        self.extended(NO_ALLOCATE)?;
        let handle = file.handle();
        self.with_stateid(file, SHARE_ACCESS_WRITE, async |stateid| {
            let args = AllocateArgs { stateid, offset: range.offset, length: range.length };
            self.ask(Kind::repeatable(ops::ALLOCATE), Some(&handle), Opnum::ALLOCATE, &args).await
        })
        .await
    }

    /// `None`: there are no data from this offset on.
    pub(super) async fn seek_data(self: &Rc<Self>, file: &File, offset: u64) -> NfsResult<Option<u64>> {
        self.extended(NO_SEEK)?;
        let handle = file.handle();
        let found = self.with_stateid(file, SHARE_ACCESS_READ, async |stateid| {
            let args = SeekArgs { stateid, offset, what: DataContent4::DATA };
            let ok: SeekOk = self.ask(Kind::reading(ops::SEEK), Some(&handle), Opnum::SEEK, &args).await?;
            Ok((!ok.eof).then_some(ok.offset))
        });
        match found.await {
            // From the end of the file on there is nothing.
            Err(NfsError::V4(Nfsstat4::NXIO)) => Ok(None),
            result => result,
        }
    }

    pub(super) async fn get_xattr(self: &Rc<Self>, file: &Handle, name: &[u8]) -> NfsResult<Vec<u8>> {
        self.extended(NO_XATTRS)?;
        self.request(
            Kind::reading(ops::GETXATTR),
            |ops| {
                ops.on(file);
                ops.put(Opnum::GETXATTR, &GetxattrArgs { name: name.into() });
            },
            |results| {
                results.on()?;
                Ok(results.take::<GetxattrOk<'_>>(Opnum::GETXATTR)?.value.0.to_vec())
            },
        )
        .await
    }

    pub(super) async fn set_xattr(
        self: &Rc<Self>,
        file: &Handle,
        name: &[u8],
        value: &[u8],
    ) -> NfsResult<()> {
        self.extended(NO_XATTRS)?;
        let args = SetxattrArgs { option: SetxattrOption4::Either, key: name.into(), value: value.into() };
        let kind = Kind::repeatable(ops::SETXATTR);
        self.ask::<SetxattrOk>(kind, Some(file), Opnum::SETXATTR, &args).await.map(drop)
    }

    pub(super) async fn list_xattrs(
        self: &Rc<Self>,
        file: &Handle,
        visit: &mut dyn FnMut(&[u8]),
    ) -> NfsResult<()> {
        self.extended(NO_XATTRS)?;
        let mut cookie = 0;
        loop {
            let args = ListxattrsArgs { cookie, maxcount: PAGE };
            let (next, names, eof) = self
                .request(
                    Kind::reading(ops::LISTXATTRS),
                    |ops| {
                        ops.on(file);
                        ops.put(Opnum::LISTXATTRS, &args);
                    },
                    |results| {
                        results.on()?;
                        let ok: ListxattrsOk<'_> = results.take(Opnum::LISTXATTRS)?;
                        let names: Vec<Vec<u8>> = ok.names.iter().map(|name| name.0.to_vec()).collect();
                        Ok((ok.cookie, names, ok.eof))
                    },
                )
                .await?;
            names.iter().for_each(|name| visit(name));
            if eof {
                return Ok(());
            }
            if next == cookie {
                return Err(NfsError::Nonsense("a list of extended attributes that makes no progress"));
            }
            cookie = next;
        }
    }

    pub(super) async fn remove_xattr(self: &Rc<Self>, file: &Handle, name: &[u8]) -> NfsResult<()> {
        self.extended(NO_XATTRS)?;
        let (kind, args) = (Kind::once(ops::REMOVEXATTR), RemovexattrArgs { name: name.into() });
        self.ask::<RemovexattrOk>(kind, Some(file), Opnum::REMOVEXATTR, &args).await.map(drop)
    }
}
