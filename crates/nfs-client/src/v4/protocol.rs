//! The operations that all versions have in common.

use benchmaster_nfs_proto::v4::Createtype4;

use super::Client;
use super::state::File;
use crate::ops::v4 as ops;
use crate::protocol::{NfsResult, Opened, Protocol};
use crate::types::{
    AccessBits, Attributes, Entry, Handle, Limits, LockKind, OpenHow, Range, Read, SetAttributes, Space,
    Stability, Verifier, Written,
};

impl Protocol for Client {
    type File = File;

    fn root(&self) -> Handle {
        self.0.root.get()
    }

    fn limits(&self) -> Limits {
        self.0.limits.get()
    }

    fn handle(file: &File) -> Handle {
        file.handle()
    }

    async fn lookup(&self, directory: &Handle, name: &[u8]) -> NfsResult<(Handle, Option<Attributes>)> {
        self.0.lookup(directory, name).await
    }

    async fn getattr(&self, file: &Handle) -> NfsResult<Attributes> {
        self.0.getattr(file).await
    }

    async fn setattr(&self, file: &Handle, open: Option<&File>, set: &SetAttributes) -> NfsResult<()> {
        self.0.setattr(file, open, set).await.map(drop)
    }

    async fn access(&self, file: &Handle, wanted: AccessBits) -> NfsResult<(AccessBits, Option<Attributes>)> {
        self.0.access(file, wanted).await
    }

    async fn open(&self, directory: &Handle, name: &[u8], how: &OpenHow) -> NfsResult<Opened<File>> {
        self.0.open(directory, name, how).await
    }

    async fn close(&self, file: File) -> NfsResult<()> {
        self.0.close(file).await
    }

    async fn read_noting(
        &self,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
        _: Option<&mut Option<Attributes>>,
    ) -> NfsResult<Read> {
        self.0.read(file, buffer, offset).await
    }

    async fn write(&self, file: &File, data: &[u8], offset: u64, stability: Stability) -> NfsResult<Written> {
        self.0.write(file, data, offset, stability).await
    }

    async fn commit(&self, file: &File, range: Range) -> NfsResult<Verifier> {
        self.0.commit(file, range).await
    }

    async fn lock(
        &self,
        file: &File,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<Option<Attributes>> {
        self.0.lock(file, owner, kind, range, wait).await
    }

    async fn unlock(&self, file: &File, owner: u64, range: Range) -> NfsResult<()> {
        self.0.unlock(file, owner, range).await
    }

    async fn mkdir(&self, directory: &Handle, name: &[u8], mode: u32) -> NfsResult<Option<Handle>> {
        self.0.create(ops::CREATE, directory, name, Createtype4::Dir, mode).await.map(Some)
    }

    async fn symlink(&self, directory: &Handle, name: &[u8], target: &[u8]) -> NfsResult<()> {
        let kind = Createtype4::Lnk(target.into());
        self.0.create(ops::SYMLINK, directory, name, kind, 0o777).await.map(drop)
    }

    async fn readlink(&self, link: &Handle) -> NfsResult<Vec<u8>> {
        self.0.readlink(link).await
    }

    async fn link(&self, file: &Handle, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.0.link(file, directory, name).await
    }

    async fn remove(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.0.remove(directory, name).await
    }

    /// REMOVE takes directories too (RFC 7530 §16.25).
    async fn rmdir(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        self.0.remove(directory, name).await
    }

    async fn rename(&self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> NfsResult<()> {
        self.0.rename(from, to).await
    }

    async fn readdir(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()> {
        self.0.readdir(directory, plus, visit).await
    }

    async fn copy(&self, source: (&File, u64), destination: (&File, u64), length: u64) -> NfsResult<u64> {
        self.0.copy(source, destination, length).await
    }

    async fn allocate(&self, file: &File, range: Range) -> NfsResult<()> {
        self.0.allocate(file, range).await
    }

    async fn seek_data(&self, file: &File, offset: u64) -> NfsResult<Option<u64>> {
        self.0.seek_data(file, offset).await
    }

    async fn get_xattr(&self, file: &Handle, name: &[u8]) -> NfsResult<Vec<u8>> {
        self.0.get_xattr(file, name).await
    }

    async fn set_xattr(&self, file: &Handle, name: &[u8], value: &[u8]) -> NfsResult<()> {
        self.0.set_xattr(file, name, value).await
    }

    async fn list_xattrs(&self, file: &Handle, visit: &mut dyn FnMut(&[u8])) -> NfsResult<()> {
        self.0.list_xattrs(file, visit).await
    }

    async fn remove_xattr(&self, file: &Handle, name: &[u8]) -> NfsResult<()> {
        self.0.remove_xattr(file, name).await
    }

    async fn space(&self) -> NfsResult<Space> {
        self.0.space().await
    }

    /// Gives delegations back, closes what is open, and destroys session and client id.
    async fn unmount(self) -> NfsResult<()> {
        let departed = self.0.depart().await;
        self.0.rpc.end_context().await;
        self.0.end();
        departed
    }
}
