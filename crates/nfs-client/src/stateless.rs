//! What versions 2 and 3 have in common: files without state at the server, MOUNT, and the lock manager.

use std::rc::Rc;

use crate::connect::Connect;
use crate::counters::Counters;
use crate::mountd::{self, Mounted};
use crate::nlm::{Holder, Lock, LockManager};
use crate::portmap::{ConnectError, Site};
use crate::protocol::NfsResult;
use crate::reactor::Reactor;
use crate::rpc::Rpc;
use crate::types::{Handle, LockKind, Range};

/// An open file: there is no state, so this is its filehandle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct File {
    pub(crate) handle: Handle,
}

/// Versions of NFS and of the protocols that belong to it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Versions {
    pub(crate) nfs: u32,
    pub(crate) mount: u32,
    pub(crate) nlm: u32,
}

/// An export that was mounted, and its locks.
#[derive(Debug)]
pub(crate) struct Export {
    site: Site,
    mounted: Mounted,
    locks: LockManager,
}

impl Export {
    /// Connects and asks for the exported directory (MNT).
    pub(crate) async fn mount(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        connect: &Connect,
        versions: Versions,
    ) -> Result<Self, ConnectError> {
        let site = Site::connect(reactor, counters, connect, versions.nfs).await?;
        let mounted = mountd::mount(&site, versions.mount, connect.mount_port, &connect.export).await?;
        Ok(Self { site, mounted, locks: LockManager::new(reactor, versions.nlm, connect) })
    }

    pub(crate) fn root(&self) -> &Handle {
        &self.mounted.root
    }

    /// Calls to the NFS port.
    pub(crate) fn rpc(&self) -> &Rpc {
        &self.site.nfs
    }

    pub(crate) fn counters(&self) -> &Counters {
        self.site.nfs.counters()
    }

    pub(crate) async fn lock(
        &self,
        file: &File,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<()> {
        self.locks.lock(&self.site, Lock::new(&file.handle, owner, kind, range), wait).await
    }

    pub(crate) async fn unlock(&self, file: &File, owner: u64, range: Range) -> NfsResult<()> {
        self.locks.unlock(&self.site, Lock::new(&file.handle, owner, LockKind::Write, range)).await
    }

    /// An open file is closed, by which its owner gives up its locks.
    pub(crate) async fn close(&self, file: &File, owner: u64) -> NfsResult<()> {
        self.locks.close(&self.site, &file.handle, owner).await
    }

    pub(crate) async fn test_lock(
        &self,
        file: &File,
        owner: u64,
        kind: LockKind,
        range: Range,
    ) -> NfsResult<Option<Holder>> {
        self.locks.test(&self.site, Lock::new(&file.handle, owner, kind, range)).await
    }

    /// Ends everything, as far as the server lets it.
    pub(crate) async fn end(&self) {
        self.locks.release().await;
        self.mounted.unmount(&self.site).await;
        self.site.nfs.end_context().await;
        self.site.nfs.close();
    }
}
