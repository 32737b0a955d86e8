//! READ, WRITE, COMMIT and SETATTR, and with which stateid they are made.

use std::rc::Rc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    CommitArgs, CommitOk, GetattrOk, Nfsstat4, Opnum, ReadArgs, ReadOk, SHARE_ACCESS_READ,
    SHARE_ACCESS_WRITE, SetattrArgs, SetattrRes, StableHow4, Stateid4, WriteArgs, WriteOk,
};

use super::Inner;
use super::attrs::{self, Encoded};
use super::compound::Failure;
use super::lock::LOST;
use super::need::Need;
use super::request::{Kind, Retry};
use super::state::{File, OpenState};
use crate::delay::DelayPolicy;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::rpc::land;
use crate::types::{Attributes, Handle, Range, Read, SetAttributes, Stability, Verifier, Written};

impl Inner {
    /// The stateid to read or write a file with: that of a delegation, else of its locks, else of the open (Linux:
    /// `nfs4_select_rw_stateid`). With that of its locks the server refuses what comes after it gave them to another.
    ///
    /// # Errors
    /// When the open or locks that were held were lost: others may have changed what they protected.
    pub(super) fn select(&self, file: &File, access: u32) -> NfsResult<Stateid4> {
        let state = &file.state;
        if let Some(why) = state.lost.get() {
            return Err(NfsError::StateLost(why));
        }
        let locks = file.locks();
        if locks.as_ref().is_some_and(|locks| locks.lost.get()) && !is_broken(Mutant::LostLocksIgnored) {
            return Err(LOST);
        }
        // Handles are large: not copied where there are no delegations to look up.
        let delegated = if self.delegations.is_empty() {
            None
        } else {
            self.delegations.for_access(&state.handle.get(), access)
        };
        let locked = || locks.filter(|locks| !locks.held.borrow().is_empty())?.stateid.get();
        Ok(self.for_data(delegated.or_else(locked).unwrap_or_else(|| state.stateid.get())))
    }

    /// Whether to try again after an operation with this stateid failed, after what has to be done before.
    pub(super) async fn stateid_refused(
        self: &Rc<Self>,
        state: &Rc<OpenState>,
        used: Stateid4,
        status: Nfsstat4,
        epoch: u64,
        retry: &mut Retry,
    ) -> NfsResult<bool> {
        match status {
            Nfsstat4::OLD_STATEID => {
                retry.recovering()?;
                // The reply with the new one is on its way.
                self.reactor.sleep(DelayPolicy::LOCK.initial).await;
                return Ok(true);
            }
            status if is_gone(status) => {}
            _ => return Ok(false),
        }
        retry.recovering()?;
        let handle = state.handle.get();
        if self.delegations.any_stateid(&handle).is_some_and(|delegation| delegation.other == used.other) {
            self.delegation_refused(&handle, used, status, epoch).await?;
            return Ok(true);
        }
        if state.has(used) {
            let need = match status {
                Nfsstat4::STALE_STATEID | Nfsstat4::EXPIRED if !self.has_sessions() => Need::CLIENT,
                _ => Need::STATES,
            };
            if epoch == self.recovery.epoch() {
                state.suspect.set(true);
            }
            self.demand(need, epoch);
        }
        self.recovered().await?;
        Ok(true)
    }

    /// Does something with the stateid of an open file, and again after its state was recovered.
    pub(super) async fn with_stateid<R>(
        self: &Rc<Self>,
        file: &File,
        access: u32,
        mut perform: impl AsyncFnMut(Stateid4) -> NfsResult<R>,
    ) -> NfsResult<R> {
        let mut retry: Option<Retry> = None;
        loop {
            self.after_recovery().await;
            let epoch = self.recovery.epoch();
            let stateid = self.select(file, access)?;
            let result = perform(stateid).await;
            let Err(NfsError::V4(status)) = &result else { return result };
            if let Some(locks) = file.locks() {
                self.lock_gone(&locks, stateid, *status, epoch).await?;
            }
            let retry = retry.get_or_insert_with(|| Retry::new(self));
            if !self.stateid_refused(&file.state, stateid, *status, epoch, retry).await? {
                return result;
            }
        }
    }

    pub(super) async fn read(
        self: &Rc<Self>,
        file: &File,
        buffer: &mut [u8],
        offset: u64,
    ) -> NfsResult<Read> {
        let most = buffer.len().min(self.limits.get().max_read as usize);
        let buffer = &mut buffer[..most];
        self.with_stateid(file, SHARE_ACCESS_READ, async |stateid| {
            let args = ReadArgs { stateid, offset, count: most as u32 };
            self.perform(
                Kind::reading(ops::READ),
                &mut *buffer,
                |ops, _| {
                    ops.on(&file.handle()).put(Opnum::READ, &args);
                },
                |results, buffer| {
                    results.on()?;
                    let ReadOk { eof, data } = results.take(Opnum::READ)?;
                    let len = data.len();
                    let rest = land(data, buffer)?;
                    Ok((Read { len, eof }, rest))
                },
            )
            .await
        })
        .await
    }

    pub(super) async fn write(
        self: &Rc<Self>,
        file: &File,
        data: &[u8],
        offset: u64,
        stability: Stability,
    ) -> NfsResult<Written> {
        let data = &data[..data.len().min(self.limits.get().max_write as usize)];
        let stable = match stability {
            Stability::Unstable => StableHow4::Unstable,
            Stability::Data => StableHow4::DataSync,
            Stability::File => StableHow4::FileSync,
        };
        self.with_stateid(file, SHARE_ACCESS_WRITE, async |stateid| {
            self.perform(
                Kind::reading(ops::WRITE).payload(data),
                &mut [],
                |ops, data| {
                    ops.on(&file.handle()).put(Opnum::WRITE, &WriteArgs { stateid, offset, stable, data });
                    ops.attributes();
                },
                |results, _| {
                    results.on()?;
                    let ok: WriteOk = results.take(Opnum::WRITE)?;
                    if ok.count as usize > data.len() {
                        return Err(Failure::Nonsense("more was written than sent"));
                    }
                    if ok.committed < stable {
                        return Err(Failure::Nonsense("data written less stably than requested"));
                    }
                    let written = Written {
                        len: ok.count as usize,
                        stability: match ok.committed {
                            StableHow4::Unstable => Stability::Unstable,
                            StableHow4::DataSync => Stability::Data,
                            StableHow4::FileSync => Stability::File,
                        },
                        verifier: ok.writeverf,
                        // The data are written, whether attributes came or not.
                        attributes: after(results)?,
                    };
                    Ok((written, 0))
                },
            )
            .await
        })
        .await
    }

    pub(super) async fn commit(self: &Rc<Self>, file: &File, range: Range) -> NfsResult<Verifier> {
        let handle = file.state.handle.get();
        // A range that does not fit into 32 bits is committed to the end of the file.
        let count = u32::try_from(range.length).unwrap_or(0);
        let args = CommitArgs { offset: range.offset, count };
        let ok: CommitOk = self.ask(Kind::reading(ops::COMMIT), Some(&handle), Opnum::COMMIT, &args).await?;
        Ok(ok.writeverf)
    }

    /// SETATTR; attributes after it, where they came.
    pub(super) async fn setattr(
        self: &Rc<Self>,
        handle: &Handle,
        open: Option<&File>,
        set: &SetAttributes,
    ) -> NfsResult<Option<Attributes>> {
        let encoded = Encoded::new(set);
        let mut retry: Option<Retry> = None;
        loop {
            self.after_recovery().await;
            let epoch = self.recovery.epoch();
            // Only a change of size is I/O (RFC 7530 §16.32.3).
            let stateid = match (set.size, open) {
                (None, _) => Stateid4::ANONYMOUS,
                (Some(_), Some(file)) => self.select(file, SHARE_ACCESS_WRITE)?,
                (Some(_), None) => {
                    let delegated = self.delegations.for_access(handle, SHARE_ACCESS_WRITE);
                    delegated.map_or(Stateid4::ANONYMOUS, |stateid| self.for_data(stateid))
                }
            };
            let args = SetattrArgs { stateid, obj_attributes: encoded.fattr() };
            let result = self
                .request(
                    Kind::repeatable(ops::SETATTR),
                    |ops| {
                        ops.on(handle);
                        ops.put(Opnum::SETATTR, &args);
                        ops.attributes();
                    },
                    |results| {
                        results.on()?;
                        let done: SetattrRes = results.result(Opnum::SETATTR)?;
                        match done.status {
                            Nfsstat4::OK => after(results),
                            status => Err(status.into()),
                        }
                    },
                )
                .await;
            let Err(NfsError::V4(status)) = &result else { return result };
            let Some(file) = open else {
                // The change needs no delegation.
                if stateid == Stateid4::ANONYMOUS || !is_gone(*status) {
                    return result;
                }
                self.delegation_refused(handle, stateid, *status, epoch).await?;
                continue;
            };
            let retry = retry.get_or_insert_with(|| Retry::new(self));
            if !self.stateid_refused(&file.state, stateid, *status, epoch, retry).await? {
                return result;
            }
        }
    }
}

/// Whether the server has nothing of the state that a stateid named.
pub(super) fn is_gone(status: Nfsstat4) -> bool {
    matches!(
        status,
        Nfsstat4::BAD_STATEID
            | Nfsstat4::STALE_STATEID
            | Nfsstat4::EXPIRED
            | Nfsstat4::ADMIN_REVOKED
            | Nfsstat4::DELEG_REVOKED
    )
}

/// Attributes at the end of a request whose purpose is fulfilled: none, if GETATTR failed.
pub(super) fn after(results: &mut super::compound::Results<'_, '_>) -> Result<Option<Attributes>, Failure> {
    match results.take::<GetattrOk<'_>>(Opnum::GETATTR) {
        Ok(got) => Ok(attrs::decode(&got.obj_attributes)?.usable()),
        Err(Failure::Status(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}
