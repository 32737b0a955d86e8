//! Trying an operation again, after what has to be waited for or recovered.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::Nfsstat4;

use crate::counters::Event;
use crate::delay::Delay;
use crate::error::NfsError;
use crate::protocol::NfsResult;
use crate::v4::Inner;
use crate::v4::need::Need;

/// Recoveries that one operation goes through before it fails.
const RECOVERIES: u32 = 16;

/// How often an operation was tried again.
#[derive(Debug)]
pub(in crate::v4) struct Retry {
    delay: Delay,
    recoveries: u32,
    waited: bool,
}

impl Retry {
    pub(in crate::v4) fn new(inner: &Inner) -> Self {
        Self { delay: Delay::new(inner.options.delay), recoveries: 0, waited: false }
    }

    /// Whether something was waited for.
    pub(in crate::v4) fn waited(&self) -> bool {
        self.waited
    }

    /// One more recovery.
    ///
    /// # Errors
    /// When there were too many.
    pub(in crate::v4) fn recovering(&mut self) -> NfsResult<()> {
        self.recoveries += 1;
        if self.recoveries > RECOVERIES {
            return Err(NfsError::NeverRecovered(RECOVERIES));
        }
        Ok(())
    }

    /// Whether to try again after this status, after what has to be done before.
    pub(in crate::v4) async fn after(
        &mut self,
        inner: &Rc<Inner>,
        status: Nfsstat4,
        epoch: u64,
    ) -> NfsResult<bool> {
        let event = match status {
            Nfsstat4::DELAY | Nfsstat4::RESOURCE => Event::Delay,
            Nfsstat4::GRACE => Event::Grace,
            Nfsstat4::STALE_CLIENTID | Nfsstat4::EXPIRED => {
                self.recovering()?;
                let need = match (status, inner.has_sessions()) {
                    (Nfsstat4::EXPIRED, true) => Need::CHECK,
                    _ => Need::CLIENT,
                };
                inner.demand(need, epoch);
                inner.recovered().await?;
                return Ok(true);
            }
            _ => return Ok(false),
        };
        self.waited = true;
        self.delay.pause(&inner.reactor, &inner.counters, event).await?;
        Ok(true)
    }

    pub(super) async fn pause(&mut self, inner: &Inner) -> NfsResult<()> {
        self.delay.pause(&inner.reactor, &inner.counters, Event::Delay).await
    }
}
