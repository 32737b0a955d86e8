//! The operations of version 2.

use benchmaster_nfs_proto::v2::{
    AttrRes, CreateArgs, DirOpArgs, DirOpRes, LinkArgs, MAX_DATA, MAX_PATH, Nfsstat2, Proc2, ReadArgs,
    ReadRes, ReadlinkRes, RenameArgs, Sattr, SetattrArgs, SymlinkArgs, UNSET, WriteArgs,
};
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder, XdrError};

use super::{Client, File, call_of, convert, fhandle, handle_of, named};
use crate::error::NfsError;
use crate::protocol::{NfsResult, Opened, Protocol};
use crate::rpc::land;
use crate::types::{
    AccessBits, Attributes, Create, Entry, Handle, Limits, LockKind, OpenHow, Range, Read, SetAttributes,
    Space, Stability, Verifier, Written,
};

/// Type bits of a regular file's mode.
const REGULAR: u32 = 0o100_000;

fn what<'a>(directory: &Handle, name: &'a [u8]) -> NfsResult<DirOpArgs<'a>> {
    Ok(DirOpArgs { dir: fhandle(directory)?, name: named(name)?.into() })
}

/// A file and its attributes.
fn found(d: &mut Decoder<'_>) -> Result<Result<(NfsResult<Handle>, Attributes), Nfsstat2>, XdrError> {
    let answer = d.get::<DirOpRes>()?;
    Ok(answer.ok().map(|ok| (handle_of(&ok.file), convert::attributes(&ok.attributes))))
}

/// But a status.
fn done(d: &mut Decoder<'_>) -> Result<Result<(), Nfsstat2>, XdrError> {
    Ok(match d.get()? {
        Nfsstat2::OK => Ok(()),
        status => Err(status),
    })
}

impl Client {
    async fn set(&self, file: &Handle, set: &SetAttributes) -> NfsResult<Attributes> {
        let args = SetattrArgs { file: fhandle(file)?, attributes: convert::set(set)? };
        let decode = |d: &mut Decoder<'_>| {
            Ok(d.get::<AttrRes>()?.ok().map(|attributes| convert::attributes(&attributes)))
        };
        self.call(Proc2::SETATTR, &args, decode).await
    }

    async fn create(
        &self,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
    ) -> NfsResult<(Handle, Attributes)> {
        // A file that came to be meanwhile is cut off only if it may be.
        let size = if how.truncate { 0 } else { UNSET };
        let attributes = Sattr { mode: REGULAR | how.mode, size, ..Sattr::NONE };
        let args = CreateArgs { where_: what(directory, name)?, attributes };
        let (handle, attributes) = self.call(Proc2::CREATE, &args, found).await?;
        Ok((handle?, attributes))
    }
}

impl Protocol for Client {
    type File = File;

    fn root(&self) -> Handle {
        *self.export.root()
    }

    fn limits(&self) -> Limits {
        self.limits
    }

    fn handle(file: &File) -> Handle {
        file.handle
    }

    async fn lookup(&self, directory: &Handle, name: &[u8]) -> NfsResult<(Handle, Option<Attributes>)> {
        let (handle, attributes) = self.call(Proc2::LOOKUP, &what(directory, name)?, found).await?;
        Ok((handle?, Some(attributes)))
    }

    async fn getattr(&self, file: &Handle) -> NfsResult<Attributes> {
        let decode = |d: &mut Decoder<'_>| {
            Ok(d.get::<AttrRes>()?.ok().map(|attributes| convert::attributes(&attributes)))
        };
        self.call(Proc2::GETATTR, &fhandle(file)?, decode).await
    }

    async fn setattr(&self, file: &Handle, _: Option<&File>, set: &SetAttributes) -> NfsResult<()> {
        self.set(file, set).await.map(|_| ())
    }

    async fn access(&self, file: &Handle, wanted: AccessBits) -> NfsResult<(AccessBits, Option<Attributes>)> {
        let attributes = self.getattr(file).await?;
        let is_in_group = |gid| gid == self.gid || self.gids.contains(&gid);
        let granted = convert::access(&attributes, self.uid, is_in_group);
        Ok((AccessBits(granted.0 & wanted.0), Some(attributes)))
    }

    async fn open(&self, directory: &Handle, name: &[u8], how: &OpenHow) -> NfsResult<Opened<File>> {
        let (handle, attributes) = match self.lookup(directory, name).await {
            Ok(_) if how.create == Create::Exclusive => return Err(NfsError::V2(Nfsstat2::EXIST)),
            Ok((handle, attributes)) => (handle, attributes),
            Err(error) if how.create != Create::No && error.is_absent() => {
                let (handle, attributes) = self.create(directory, name, how).await?;
                return Ok(Opened { file: File { handle }, attributes: Some(attributes), created: true });
            }
            Err(error) => return Err(error),
        };
        let attributes = if how.truncate {
            let set = SetAttributes { size: Some(0), ..SetAttributes::default() };
            Some(self.set(&handle, &set).await?)
        } else {
            attributes
        };
        Ok(Opened { file: File { handle }, attributes, created: false })
    }

    async fn close(&self, _: File) -> NfsResult<()> {
        Ok(())
    }

    async fn read_noting(
        &self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
        mut after: Option<&mut Option<Attributes>>,
    ) -> NfsResult<Read> {
        let most = buffer.len().min(MAX_DATA as usize);
        let buffer = &mut buffer[..most];
        let (from, count) = (convert::size(offset)?, most as u32);
        let args = ReadArgs { file: fhandle(&file.handle)?, offset: from, count, totalcount: 0 };
        let decode = |d: &mut Decoder<'_>, destination: &mut [u8]| match d.get()? {
            ReadRes::Ok(ok) => {
                let (len, rest) = (ok.data.len(), land(ok.data, destination)?);
                let attributes = convert::attributes(&ok.attributes);
                let eof = offset + len as u64 >= attributes.size;
                if let Some(after) = &mut after {
                    **after = Some(attributes);
                }
                Ok((Ok(Read { len, eof }), rest))
            }
            ReadRes::Err(status) => Ok((Err(status), 0)),
        };
        match self.export.rpc().call_into(call_of(Proc2::READ), buffer, |e, _| e.put(&args), decode).await? {
            Ok(Read { len: 0, eof: false }) if count > 0 => {
                Err(NfsError::Nonsense("empty READ before the end of the file"))
            }
            Ok(read) => Ok(read),
            Err(status) => Err(self.refused(Proc2::READ, status)),
        }
    }

    async fn write(&self, file: &File, data: &[u8], offset: u64, _: Stability) -> NfsResult<Written> {
        let data = &data[..data.len().min(MAX_DATA as usize)];
        convert::size(offset.saturating_add(data.len() as u64))?;
        let (file, from) = (fhandle(&file.handle)?, convert::size(offset)?);
        let encode = |e: &mut Encoder, data: Bulk<'_>| {
            e.put(&WriteArgs { file, beginoffset: 0, offset: from, totalcount: 0, data });
        };
        let call = call_of(Proc2::WRITE).payload(data);
        match self.export.rpc().call(call, encode, |d| Ok(d.get::<AttrRes>()?.ok())).await? {
            Ok(attributes) => Ok(Written {
                len: data.len(),
                stability: Stability::File,
                verifier: Verifier::default(),
                attributes: Some(convert::attributes(&attributes)),
            }),
            Err(status) => Err(self.refused(Proc2::WRITE, status)),
        }
    }

    async fn commit(&self, _: &File, _: Range) -> NfsResult<Verifier> {
        Ok(Verifier::default())
    }

    async fn lock(
        &self,
        file: &File,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<Option<Attributes>> {
        self.export.lock(file, owner, kind, range, wait).await.map(|()| None)
    }

    async fn unlock(&self, file: &File, owner: u64, range: Range) -> NfsResult<()> {
        self.export.unlock(file, owner, range).await
    }

    async fn mkdir(&self, directory: &Handle, name: &[u8], mode: u32) -> NfsResult<Option<Handle>> {
        let args = CreateArgs { where_: what(directory, name)?, attributes: Sattr { mode, ..Sattr::NONE } };
        let (handle, _) = self.call(Proc2::MKDIR, &args, found).await?;
        handle.map(Some)
    }

    async fn symlink(&self, directory: &Handle, name: &[u8], target: &[u8]) -> NfsResult<()> {
        if target.len() > MAX_PATH as usize {
            return Err(NfsError::NameTooLong);
        }
        let attributes = Sattr { mode: 0o777, ..Sattr::NONE };
        let args = SymlinkArgs { from: what(directory, name)?, to: target.into(), attributes };
        self.call(Proc2::SYMLINK, &args, done).await
    }

    async fn readlink(&self, link: &Handle) -> NfsResult<Vec<u8>> {
        let decode = |d: &mut Decoder<'_>| Ok(d.get::<ReadlinkRes<'_>>()?.ok().map(|path| path.0.to_vec()));
        self.call(Proc2::READLINK, &fhandle(link)?, decode).await
    }

    async fn link(&self, file: &Handle, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        let args = LinkArgs { from: fhandle(file)?, to: what(directory, name)? };
        self.call(Proc2::LINK, &args, done).await
    }

    async fn remove(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.call(Proc2::REMOVE, &what(directory, name)?, done).await
    }

    async fn rmdir(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.call(Proc2::RMDIR, &what(directory, name)?, done).await
    }

    async fn rename(&self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> NfsResult<()> {
        let args = RenameArgs { from: what(from.0, from.1)?, to: what(to.0, to.1)? };
        self.call(Proc2::RENAME, &args, done).await
    }

    async fn readdir(&self, directory: &Handle, _: bool, visit: &mut dyn FnMut(&Entry<'_>)) -> NfsResult<()> {
        self.list(directory, visit).await
    }

    async fn space(&self) -> NfsResult<Space> {
        let ok = self.statfs().await?;
        let bytes = |blocks: u32| u64::from(blocks) * u64::from(ok.bsize);
        Ok(Space { total: bytes(ok.blocks), available: bytes(ok.bavail), files_available: 0 })
    }

    async fn unmount(self) -> NfsResult<()> {
        self.export.end().await;
        Ok(())
    }
}
