//! The null engine: every operation succeeds at once and does nothing. What is measured with it is the executor's own
//! cost, which bounds what it can measure of others.

use std::time::Duration;

use benchmaster_nfs_client::reactor::Reactor;

use crate::engine::{Engine, Files, Names};
use crate::files::PathBuffer;
use crate::model::{LockKind, OperationKind};
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

    async fn open(&self, _: &PathBuffer, _: OpenFlags, _: bool) -> Result<(), OperationError> {
        Ok(())
    }
    async fn close(&self, (): ()) -> Result<(), OperationError> {
        Ok(())
    }
    async fn on_open(&self, _: OperationKind, (): &(), _: LockKind, _: u64) -> Result<(), OperationError> {
        Ok(())
    }
    async fn by_name(&self, _: OperationKind, _: &Names<'_>) -> Result<(), OperationError> {
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
