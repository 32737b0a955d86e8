//! The operations of version 3.

use benchmaster_nfs_proto::v3::{
    AccessArgs, AccessRes, CommitArgs, CommitRes, CreateArgs, CreateHow, CreateRes, DirOpArgs, Fattr3,
    FsArgs, FsstatRes, GetattrArgs, GetattrRes, LinkArgs, LinkRes, LookupArgs, LookupRes, MkdirArgs,
    Nfsstat3, PostOpAttr, Proc3, ReadArgs, ReadlinkArgs, ReadlinkRes, RemoveArgs, RemoveRes, RenameArgs,
    RenameRes, Res, Sattr3, SetattrArgs, SetattrRes, SymlinkArgs, SymlinkData, WriteArgs, WriteRes,
};
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder, XdrError};

use super::replay::Doubt;
use super::{Client, File, call_of, convert, fh, handle_of};
use crate::delay::Delay;
use crate::error::NfsError;
use crate::protocol::{NfsResult, Opened, Protocol};
use crate::rpc::land;
use crate::types::{
    AccessBits, Attributes, Create, Entry, FileType, Handle, Limits, LockKind, OpenHow, Range, Read,
    SetAttributes, SetTime, Space, Stability, Verifier, Written,
};

/// What CREATE and the like found out about the new object.
type Made = (Option<Handle>, Option<Attributes>);

impl Client {
    async fn create(&self, args: &CreateArgs<'_>) -> NfsResult<Made> {
        self.call(Proc3::CREATE, args, |d| self.made(d)).await
    }

    /// CREATE that fails where the file exists.
    async fn create_new(&self, directory: &Handle, name: &[u8], mode: u32) -> NfsResult<Made> {
        let place = what(directory, name);
        if self.exclusive.get() {
            // Every repetition has the same verifier.
            let how = CreateHow::Exclusive(self.next_verifier());
            match self.create(&CreateArgs { where_: place, how }).await {
                Err(NfsError::V3(Nfsstat3::NOTSUPP)) => self.exclusive.set(false),
                Err(error) => return Err(error),
                Ok((handle, _)) => {
                    let handle = match handle {
                        Some(handle) => handle,
                        None => self.lookup(directory, name).await?.0,
                    };
                    // The server may have put the verifier where times and mode belong (RFC 1813 §3.3.8).
                    let now = Some(SetTime::Now);
                    let set = SetAttributes {
                        mode: Some(mode),
                        accessed: now,
                        modified: now,
                        ..Default::default()
                    };
                    let attributes = self.set(&handle, &set).await?;
                    return Ok((Some(handle), attributes));
                }
            }
        }
        let how = CreateHow::Guarded(Sattr3 { mode: Some(mode), ..Sattr3::NONE });
        self.create(&CreateArgs { where_: place, how }).await
    }

    /// SETATTR; the attributes after it, where they came.
    async fn set(&self, file: &Handle, set: &SetAttributes) -> NfsResult<Option<Attributes>> {
        let args = SetattrArgs { object: fh(file), new_attributes: convert::set(set), guard: None };
        let decode = |d: &mut Decoder<'_>| {
            let answer = d.get::<SetattrRes>()?;
            Ok(answer.ok().map(|ok| ok.obj_wcc.after.as_ref().map(|f| self.noted(f))))
        };
        self.call(Proc3::SETATTR, &args, decode).await
    }

    fn made(&self, d: &mut Decoder<'_>) -> Result<Result<Made, Nfsstat3>, XdrError> {
        let answer = d.get::<CreateRes<'_>>()?;
        self.shown([match &answer {
            Res::Ok(ok) => &ok.dir_wcc.after,
            Res::Err(_, directory) => &directory.after,
        }]);
        Ok(answer.ok().map(|ok| {
            // An empty handle is as good as none.
            let handle = ok.obj.and_then(|fh| handle_of(fh).ok());
            (handle, ok.obj_attributes.as_ref().map(|f| self.noted(f)))
        }))
    }

    /// Attributes from an answer. The server's time that they show is remembered.
    fn noted(&self, f: &Fattr3) -> Attributes {
        let attributes = convert::attributes(f);
        self.latest.set(self.latest.get().max(attributes.changed));
        attributes
    }

    /// Attributes of directories, of which only the server's time is of use.
    fn shown<const N: usize>(&self, after: [&PostOpAttr; N]) {
        after.into_iter().flatten().for_each(|f| _ = self.noted(f));
    }

    async fn unlink(&self, procedure: Proc3, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        let args = RemoveArgs { object: what(directory, name) };
        let doubt = Doubt::new(self);
        let decode = |d: &mut Decoder<'_>| {
            let answer = d.get::<RemoveRes>()?;
            self.shown([match &answer {
                Res::Ok(ok) => &ok.dir_wcc.after,
                Res::Err(_, directory) => &directory.after,
            }]);
            Ok(answer.ok().map(|_| ()))
        };
        let result = self.call_noting(&doubt.history, procedure, &args, decode).await;
        doubt.of_removing(self, result).await
    }
}

fn what<'a>(directory: &'a Handle, name: &'a [u8]) -> DirOpArgs<'a> {
    DirOpArgs { dir: fh(directory), name: name.into() }
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
        let args = LookupArgs { what: what(directory, name) };
        let found = self.call(Proc3::LOOKUP, &args, |d| {
            let answer = d.get::<LookupRes<'_>>()?;
            self.shown([match &answer {
                Res::Ok(ok) => &ok.dir_attributes,
                Res::Err(_, directory) => directory,
            }]);
            Ok(answer
                .ok()
                .map(|ok| (handle_of(ok.object), ok.obj_attributes.as_ref().map(|f| self.noted(f)))))
        });
        let (handle, attributes) = found.await?;
        Ok((handle?, attributes))
    }

    async fn getattr(&self, file: &Handle) -> NfsResult<Attributes> {
        let args = GetattrArgs { object: fh(file) };
        let decode =
            |d: &mut Decoder<'_>| Ok(d.get::<GetattrRes>()?.ok().map(|ok| self.noted(&ok.obj_attributes)));
        self.call(Proc3::GETATTR, &args, decode).await
    }

    async fn setattr(&self, file: &Handle, _: Option<&File>, set: &SetAttributes) -> NfsResult<()> {
        self.set(file, set).await.map(|_| ())
    }

    async fn access(&self, file: &Handle, wanted: AccessBits) -> NfsResult<(AccessBits, Option<Attributes>)> {
        let args = AccessArgs { object: fh(file), access: wanted.0 };
        let decode = |d: &mut Decoder<'_>| {
            let answer = d.get::<AccessRes>()?;
            Ok(answer.ok().map(|ok| {
                (AccessBits(ok.access & wanted.0), ok.obj_attributes.as_ref().map(|f| self.noted(f)))
            }))
        };
        self.call(Proc3::ACCESS, &args, decode).await
    }

    async fn open(&self, directory: &Handle, name: &[u8], how: &OpenHow) -> NfsResult<Opened<File>> {
        let truncation = how.truncate.then_some(0);
        let (handle, attributes) = match how.create {
            Create::No => {
                let (handle, attributes) = self.lookup(directory, name).await?;
                let attributes = if how.truncate {
                    self.set(&handle, &SetAttributes { size: Some(0), ..Default::default() }).await?
                } else {
                    attributes
                };
                (Some(handle), attributes)
            }
            Create::IfAbsent => {
                // Servers apply only the size where the file exists.
                let set = Sattr3 { mode: Some(how.mode), size: truncation, ..Sattr3::NONE };
                let how = CreateHow::Unchecked(set);
                self.create(&CreateArgs { where_: what(directory, name), how }).await?
            }
            Create::Exclusive => self.create_new(directory, name, how.mode).await?,
        };
        let (handle, attributes) = match handle {
            Some(handle) => (handle, attributes),
            None => self.lookup(directory, name).await?,
        };
        Ok(Opened { file: File { handle }, attributes, created: how.create != Create::No })
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
        let count = u32::try_from(buffer.len()).unwrap_or(u32::MAX);
        let args = ReadArgs { file: fh(&file.handle), offset, count };
        let mut delay = Delay::new(self.delay);
        loop {
            let call = call_of(Proc3::READ);
            // Item by item: the attributes, most of a result, are built only where they are wanted.
            let decode = |d: &mut Decoder<'_>, destination: &mut [u8]| {
                let status: Nfsstat3 = d.get()?;
                if status != Nfsstat3::OK {
                    d.get::<PostOpAttr>()?;
                    return Ok((Err(status), 0));
                }
                if d.get()? {
                    match &mut after {
                        Some(after) => **after = Some(convert::attributes(&d.get()?)),
                        None => _ = d.bytes(Fattr3::LENGTH, "fattr3")?,
                    }
                }
                let (count, eof, data): (u32, bool, Bulk<'_>) = (d.get()?, d.get()?, d.get()?);
                let (len, rest) = (data.len(), land(data, destination)?);
                if count as usize != len {
                    return Err(XdrError::BadValue { what: "count of READ", value: count });
                }
                Ok((Ok(Read { len, eof }), rest))
            };
            match self.export.rpc().call_into(call, &mut *buffer, |e, _| e.put(&args), decode).await? {
                Ok(Read { len: 0, eof: false }) if count > 0 => {
                    return Err(NfsError::Nonsense("empty READ before the end of the file"));
                }
                Ok(read) => return Ok(read),
                Err(status) => self.refused(Proc3::READ, status, &mut delay).await?,
            }
        }
    }

    async fn write(&self, file: &File, data: &[u8], offset: u64, stability: Stability) -> NfsResult<Written> {
        let handle = &file.handle;
        let file = fh(handle);
        let (count, stable) = (u32::try_from(data.len()).unwrap_or(u32::MAX), convert::stable(stability));
        let mut delay = Delay::new(self.delay);
        loop {
            let call = call_of(Proc3::WRITE).payload(data);
            let encode = |e: &mut Encoder, data: Bulk<'_>| {
                e.put(&WriteArgs { file, offset, count, stable, data });
            };
            let written = self.export.rpc().call(call, encode, |d| Ok(d.get::<WriteRes>()?.ok())).await?;
            let ok = match written {
                Ok(ok) => ok,
                Err(status) => {
                    self.refused(Proc3::WRITE, status, &mut delay).await?;
                    continue;
                }
            };
            if ok.count > count || (ok.count == 0 && count > 0) {
                return Err(NfsError::Nonsense("WRITE of 0 bytes, or of more than was sent"));
            }
            let written = convert::stability(ok.committed);
            if written < stability {
                return Err(NfsError::Nonsense("data written less stably than requested"));
            }
            self.saw(handle, ok.verf);
            return Ok(Written {
                len: ok.count as usize,
                stability: written,
                verifier: ok.verf,
                attributes: ok.file_wcc.after.as_ref().map(|f| self.noted(f)),
            });
        }
    }

    async fn commit(&self, file: &File, range: Range) -> NfsResult<Verifier> {
        // Longer than the protocol can say is everything.
        let (offset, count) = match u32::try_from(range.length) {
            Ok(count) => (range.offset, count),
            Err(_) => (0, 0),
        };
        let args = CommitArgs { file: fh(&file.handle), offset, count };
        let decode = |d: &mut Decoder<'_>| Ok(d.get::<CommitRes>()?.ok().map(|ok| ok.verf));
        // A server that lost data changes its verifier, too (RFC 1813 §3.3.7): it says no more whether it restarted.
        let lost = |_: &NfsError| drop(self.seen.take());
        let verifier = self.call(Proc3::COMMIT, &args, decode).await.inspect_err(lost)?;
        self.saw(&file.handle, verifier);
        Ok(verifier)
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
        let attributes = Sattr3 { mode: Some(mode), ..Sattr3::NONE };
        let args = MkdirArgs { where_: what(directory, name), attributes };
        let doubt = Doubt::new(self);
        let result =
            self.call_noting(&doubt.history, Proc3::MKDIR, &args, |d| self.made(d)).await.map(|made| made.0);
        let is = async |_: &Handle, found: &Attributes| {
            let same = found.kind == FileType::Directory && found.uid == self.uid;
            Ok(same && found.mode & 0o777 == mode & 0o777)
        };
        doubt.of_making(self, result, (directory, name), is, Some).await
    }

    async fn symlink(&self, directory: &Handle, name: &[u8], target: &[u8]) -> NfsResult<()> {
        let symlink = SymlinkData {
            symlink_attributes: Sattr3 { mode: Some(0o777), ..Sattr3::NONE },
            symlink_data: target.into(),
        };
        let args = SymlinkArgs { where_: what(directory, name), symlink };
        let doubt = Doubt::new(self);
        let result =
            self.call_noting(&doubt.history, Proc3::SYMLINK, &args, |d| self.made(d)).await.map(|_| ());
        let is = async |link: &Handle, found: &Attributes| {
            Ok(found.kind == FileType::Symlink && self.readlink(link).await? == target)
        };
        doubt.of_making(self, result, (directory, name), is, |_| ()).await
    }

    async fn readlink(&self, link: &Handle) -> NfsResult<Vec<u8>> {
        let args = ReadlinkArgs { symlink: fh(link) };
        let decode = |d: &mut Decoder<'_>| Ok(d.get::<ReadlinkRes<'_>>()?.ok().map(|ok| ok.data.0.to_vec()));
        self.call(Proc3::READLINK, &args, decode).await
    }

    async fn link(&self, file: &Handle, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        let args = LinkArgs { file: fh(file), link: what(directory, name) };
        let doubt = Doubt::new(self);
        let decode = |d: &mut Decoder<'_>| {
            let answer = d.get::<LinkRes>()?;
            let (Res::Ok(seen) | Res::Err(_, seen)) = &answer;
            self.shown([&seen.file_attributes, &seen.linkdir_wcc.after]);
            Ok(answer.ok().map(|_| ()))
        };
        let result = self.call_noting(&doubt.history, Proc3::LINK, &args, decode).await;
        let is = async |_: &Handle, found: &Attributes| {
            let file = self.getattr(file).await?;
            Ok((file.fsid, file.fileid) == (found.fsid, found.fileid))
        };
        doubt.of_making(self, result, (directory, name), is, |_| ()).await
    }

    async fn remove(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.unlink(Proc3::REMOVE, directory, name).await
    }

    async fn rmdir(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.unlink(Proc3::RMDIR, directory, name).await
    }

    async fn rename(&self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> NfsResult<()> {
        let args = RenameArgs { from: what(from.0, from.1), to: what(to.0, to.1) };
        let doubt = Doubt::new(self);
        let decode = |d: &mut Decoder<'_>| {
            let answer = d.get::<RenameRes>()?;
            let (Res::Ok(seen) | Res::Err(_, seen)) = &answer;
            self.shown([&seen.fromdir_wcc.after, &seen.todir_wcc.after]);
            Ok(answer.ok().map(|_| ()))
        };
        let result = self.call_noting(&doubt.history, Proc3::RENAME, &args, decode).await;
        doubt.of_renaming(self, result, from, to).await
    }

    async fn readdir(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()> {
        self.list(directory, plus, visit).await
    }

    async fn space(&self) -> NfsResult<Space> {
        let args = FsArgs { fsroot: fh(self.export.root()) };
        let decode = |d: &mut Decoder<'_>| {
            let answer = d.get::<FsstatRes>()?;
            Ok(answer.ok().map(|ok| Space {
                total: ok.tbytes,
                available: ok.abytes,
                files_available: ok.afiles,
            }))
        };
        self.call(Proc3::FSSTAT, &args, decode).await
    }

    async fn unmount(self) -> NfsResult<()> {
        self.export.end().await;
        Ok(())
    }
}
