//! The null engine: every operation succeeds at once and does nothing. What is measured with it is the executor's own
//! cost, which bounds what it can measure of others.

use std::time::Duration;

use benchmaster_nfs_client::reactor::Reactor;

use crate::engine::{Engine, Files};
use crate::files::PathBuffer;
use crate::model::LockKind;
use crate::operation_error::OperationError;
use crate::program::flags::OpenFlags;
use crate::rendezvous::Bell;
use benchmaster_clock::{Clock, Ticks};

#[derive(Debug, Clone, Default)]
pub(crate) struct NullEngine {
    /// Workers wait as its tasks; without one each keeps its thread.
    pub(crate) reactor: Option<Reactor>,
}

impl Files for NullEngine {
    type Handle = ();

    async fn open(&self, _: &PathBuffer, _: OpenFlags) -> Result<(), OperationError> {
        Ok(())
    }
    async fn create(&self, _: &PathBuffer, _: OpenFlags) -> Result<(), OperationError> {
        Ok(())
    }
    async fn close(&self, (): ()) -> Result<(), OperationError> {
        Ok(())
    }
    async fn fsync(&self, (): &()) -> Result<(), OperationError> {
        Ok(())
    }
    async fn fdatasync(&self, (): &()) -> Result<(), OperationError> {
        Ok(())
    }
    async fn lock(&self, (): &(), _: LockKind, _: u64) -> Result<(), OperationError> {
        Ok(())
    }
    async fn unlock(&self, (): &(), _: u64) -> Result<(), OperationError> {
        Ok(())
    }
    async fn stat(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn rename(&self, _: &PathBuffer, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn unlink(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn readdir(&self, _: &PathBuffer) -> Result<usize, OperationError> {
        Ok(0)
    }
    async fn mkdir(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn rmdir(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn truncate(&self, (): &(), _: u64) -> Result<(), OperationError> {
        Ok(())
    }
    async fn allocate(&self, (): &(), _: u64) -> Result<(), OperationError> {
        Ok(())
    }
    async fn seek_data(&self, (): &()) -> Result<(), OperationError> {
        Ok(())
    }
    async fn fstat(&self, (): &()) -> Result<(), OperationError> {
        Ok(())
    }
    async fn chmod(&self, _: &PathBuffer, _: u32) -> Result<(), OperationError> {
        Ok(())
    }
    async fn utimes(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn access(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn readlink(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn get_xattr(&self, _: &PathBuffer) -> Result<usize, OperationError> {
        Ok(0)
    }
    async fn list_xattrs(&self, _: &PathBuffer) -> Result<usize, OperationError> {
        Ok(0)
    }
    async fn remove_xattr(&self, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn readdir_stat(&self, _: &PathBuffer) -> Result<usize, OperationError> {
        Ok(0)
    }
    async fn set_xattr(&self, _: &PathBuffer, _: &[u8]) -> Result<(), OperationError> {
        Ok(())
    }
    async fn link(&self, _: &PathBuffer, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn copy(&self, _: &PathBuffer, _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
    async fn symlink(&self, _: &[u8], _: &PathBuffer) -> Result<(), OperationError> {
        Ok(())
    }
}

impl Engine for NullEngine {
    type Handle = ();
    type Files = Self;

    fn files(&self) -> &Self {
        self
    }

    async fn read(&self, (): &(), buffer: &mut [u8], _: u64) -> Result<usize, OperationError> {
        Ok(buffer.len())
    }
    async fn write(&self, (): &(), buffer: &[u8], _: u64) -> Result<usize, OperationError> {
        Ok(buffer.len())
    }
    async fn listen(&self, bell: &Bell, seen: u64, clock: &Clock, time: Ticks) {
        bell.wait(seen, Duration::from_nanos(clock.nanos(clock.now(), time)));
    }
    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        match &self.reactor {
            Some(reactor) => super::sleep_until(reactor, clock, time).await,
            None => clock.wait_until(time, 50_000),
        }
    }
}
