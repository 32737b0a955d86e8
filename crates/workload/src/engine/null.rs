//! The null engine: every operation succeeds at once and does nothing. What is measured with it is the executor's own
//! cost, which bounds what it can measure of others.

use crate::clock::{Clock, Ticks};
use crate::engine::{Engine, OperationError};
use crate::files::PathBuffer;
use crate::model::LockKind;
use crate::program::OpenFlags;

/// See the [module](self).
#[derive(Debug, Clone, Copy, Default)]
pub struct NullEngine;

impl Engine for NullEngine {
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
    async fn read(&self, (): &(), buffer: &mut [u8], _: u64) -> Result<usize, OperationError> {
        Ok(buffer.len())
    }
    async fn write(&self, (): &(), buffer: &[u8], _: u64) -> Result<usize, OperationError> {
        Ok(buffer.len())
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
    async fn sleep_until(&self, clock: &Clock, time: Ticks) {
        clock.wait_until(time, 50_000);
    }
}
