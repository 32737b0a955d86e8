//! NFS version 4: COMPOUND, minor versions 0, 1 and 2.
//!
//! `compound` runs the operations of a request one by one; each group of operations has a file. An operation gets its
//! decoded arguments and a [`Compound`], appends the body of its result (what follows the status) to
//! [`Compound::reply`], and returns `Ok`; on `Err` the loop takes the body back and writes the status alone, unless
//! [`Failure::keep_body`] says that this status has a body too (LOCK: DENIED).

use benchmaster_clock::Ticks;
use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    ChangeInfo4, CompoundArgs, Nfsstat4, Opnum, PROC_COMPOUND, PROC_NULL, Stateid4, Verifier4,
};
use benchmaster_nfs_proto::xdr::Encode;
use benchmaster_rpc_gss::Flavor;

use crate::call::{Call, Refusal};
use crate::cred::Credentials;
use crate::disk::Access;
use crate::fs::{Attr, Changed, FileSystem, FsError, Node};
use crate::handle::FileId;
use crate::inject::Decision;
use crate::moment::Moment;
use crate::peer::Peer;
use crate::reply::{Reply, ReplyMark};
use crate::shared::Shared;
use crate::state::session::{ERROR_RESULT, Session};
use crate::state::{ClientId, Conflict, Effects, Stop};
use crate::stats::ClientIndex;
use crate::status;

mod acl;
mod attrs;
mod client_ops;
mod compound;
mod deleg_ops;
mod dir_ops;
mod file_ops;
mod io_ops;
mod lock_ops;
mod names;
mod notifications;
mod open_ops;
mod security;
mod session_ops;
mod space_ops;
mod turns;
mod xattr_ops;

#[cfg(test)]
#[allow(clippy::expect_used, clippy::panic)]
pub(crate) mod testing;
#[cfg(test)]
#[allow(clippy::panic)]
mod tests;

/// What the dispatcher needs to know of a call besides its results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Done {
    /// What operations suffer by injection, as far as it concerns the whole reply.
    pub(crate) injected: Decision,
    /// Whether something was changed that a repetition would change again, and no session guards against it: the reply
    /// belongs into the duplicate request cache.
    pub(crate) cache: bool,
    /// Which client it was, as far as the operations named it.
    pub(crate) client: Option<ClientId>,
    /// Whether it waits for the holder of a delegation, and is to be executed again: nothing was changed, and its slot
    /// is as it was.
    pub(crate) again: bool,
}

/// Length of the header of an accepted RPC reply with an empty verifier, which precedes the results: sizes of sessions
/// count it (RFC 8881 §18.36.3, `ca_maxresponsesize`).
pub(crate) const REPLY_HEADER: usize = 24;

pub(crate) fn serve(call: &mut Call<'_>) -> Result<Done, Refusal> {
    match call.procedure {
        PROC_NULL => Ok(Done::default()),
        PROC_COMPOUND => {
            let args = call.args.rest();
            let compound: CompoundArgs<'_> = call.args()?;
            let start = call.reply.mark();
            let mut c = Compound {
                server: call.server,
                peer: call.peer,
                who: call.who,
                flavor: call.flavor,
                overhead: call.overhead,
                host: call.client,
                injected: Decision::default(),
                bulk: 0,
                now: call.now,
                since: call.server.clock.now(),
                minor: compound.minorversion,
                args,
                request_len: call.header_len + args.len(),
                count: compound.ops.left(),
                index: 0,
                next: None,
                limit: Limit::default(),
                start,
                current: None,
                saved: None,
                current_stateid: None,
                saved_stateid: None,
                session: None,
                client: None,
                reply: &mut *call.reply,
                effects: &mut *call.effects,
                non_idempotent: false,
                may_wait: call.may_wait,
                waits: false,
                made_in: None,
            };
            compound::run(&mut c, &compound, &mut *call.session);
            let cache = c.non_idempotent && c.minor == 0;
            Ok(Done { injected: c.injected, cache, client: c.client, again: c.waits })
        }
        _ => Err(Refusal::ProcUnavail),
    }
}

/// A request on its way through its operations.
pub(crate) struct Compound<'r> {
    pub(crate) server: &'r Shared,
    /// Who sent it, over which connection.
    pub(crate) peer: &'r Peer,
    pub(crate) who: &'r Credentials,
    /// What protects it.
    pub(crate) flavor: Flavor,
    /// Bytes by which protection makes the reply longer.
    pub(crate) overhead: usize,
    /// The client's number in rules and statistics.
    pub(crate) host: ClientIndex,
    /// What operations suffer by injection.
    pub(crate) injected: Decision,
    /// Bytes of data that the operation asks for (READ) or brings (WRITE).
    pub(crate) bulk: u64,
    pub(crate) now: Moment,
    /// When the last operation ended.
    pub(crate) since: Ticks,
    pub(crate) minor: u32,
    /// The arguments of COMPOUND as received (to tell a repetition from another request).
    pub(crate) args: &'r [u8],
    /// Length of the whole request with its RPC header (`ca_maxrequestsize`).
    pub(crate) request_len: usize,
    pub(crate) count: usize,
    /// Which of them runs, from 0.
    pub(crate) index: usize,
    /// The operation after it, where one can be made out.
    pub(crate) next: Option<Opnum>,
    /// How long the reply may become.
    pub(crate) limit: Limit,
    /// Where the results of COMPOUND start in the reply.
    pub(crate) start: ReplyMark,
    pub(crate) current: Option<FileId>,
    pub(crate) saved: Option<FileId>,
    /// Current stateid (RFC 8881 §16.2.3.1.2); `None` is the all-zeros one.
    pub(crate) current_stateid: Option<Stateid4>,
    pub(crate) saved_stateid: Option<Stateid4>,
    /// Session of the leading SEQUENCE, and its slot.
    pub(crate) session: Option<(&'r Session, u32)>,
    /// Client of the session (4.1), or of the last stateid or client id seen (4.0), for statistics and renewal.
    pub(crate) client: Option<ClientId>,
    pub(crate) reply: &'r mut Reply,
    /// To be carried out when the request is done.
    pub(crate) effects: &'r mut Effects,
    /// Whether an operation changed something that a repetition would change again (decides on the duplicate request
    /// cache of 4.0).
    pub(crate) non_idempotent: bool,
    /// Whether the request may be put aside for a moment and executed again.
    pub(crate) may_wait: bool,
    /// Whether it has to be.
    pub(crate) waits: bool,
    /// The directory in which OPEN made a file.
    pub(crate) made_in: Option<FileId>,
}

/// The longest reply, RPC header included, and what is said when it does not suffice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limit {
    pub(crate) bytes: usize,
    /// REP_TOO_BIG or REP_TOO_BIG_TO_CACHE (RFC 8881 §2.10.6.4), in 4.0 RESOURCE.
    pub(crate) status: Nfsstat4,
}

impl Default for Limit {
    fn default() -> Self {
        Self { bytes: usize::MAX, status: Nfsstat4::RESOURCE }
    }
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) status: Nfsstat4,
    /// Whether the body written so far belongs to that status.
    pub(crate) keep_body: bool,
}

impl From<Nfsstat4> for Failure {
    fn from(status: Nfsstat4) -> Self {
        Self { status, keep_body: false }
    }
}

/// Statuses as 4.1 has them; the loop turns those that 4.0 does not know into its own.
impl From<FsError> for Failure {
    fn from(error: FsError) -> Self {
        status::of_error(error).2.into()
    }
}

/// A failure without a body.
impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Status(failure.status)
    }
}

/// Outcome of an operation.
pub(crate) type OpResult = Result<(), Failure>;

impl<'r> Compound<'r> {
    /// What the disk does for an operation, if there is one.
    #[inline]
    pub(crate) fn on_disk(&mut self, access: impl FnOnce() -> Access) {
        if let Some(disk) = &self.server.disk {
            self.injected.disk = disk.access(self.now.instant, self.injected.disk, access());
        }
    }

    /// The current file handle, or NOFILEHANDLE.
    pub(crate) fn file(&self) -> Result<FileId, Failure> {
        self.current.ok_or(Nfsstat4::NOFILEHANDLE.into())
    }

    /// The saved file handle, or NOFILEHANDLE.
    pub(crate) fn saved_file(&self) -> Result<FileId, Failure> {
        self.saved.ok_or(Nfsstat4::NOFILEHANDLE.into())
    }

    /// Changes the current file handle, by which the current stateid becomes all zeros.
    pub(crate) fn set_current(&mut self, file: FileId) {
        self.current = Some(file);
        self.current_stateid = None;
    }

    /// Remembers a stateid that the operation returns (RFC 8881 §16.2.3.1.2). 4.0 has no current stateid.
    pub(crate) fn set_stateid(&mut self, stateid: Stateid4) {
        if self.minor > 0 {
            self.current_stateid = Some(stateid);
        }
    }

    /// The stateid that an argument means: from 4.1 on {1, zeros} is the current one, which must be there, in whichever
    /// version the state has by now (RFC 8881 §8.2.3).
    pub(crate) fn stateid(&self, given: Stateid4) -> Result<Stateid4, Failure> {
        Ok(if self.means_current(given) { any_version(self.exact_stateid(given)?) } else { given })
    }

    /// As [`Compound::stateid`], for the source of COPY and CLONE: the saved stateid takes the place of the current
    /// one.
    pub(crate) fn source_stateid(&self, given: Stateid4) -> Result<Stateid4, Failure> {
        if !self.means_current(given) {
            return Ok(given);
        }
        Ok(any_version(self.saved_stateid.ok_or(Nfsstat4::BAD_STATEID)?))
    }

    /// As [`Compound::stateid`], for CLOSE and OPEN_DOWNGRADE: they mean the version that was returned.
    pub(crate) fn exact_stateid(&self, given: Stateid4) -> Result<Stateid4, Failure> {
        if !self.means_current(given) {
            return Ok(given);
        }
        Ok(self.current_stateid.ok_or(Nfsstat4::BAD_STATEID)?)
    }

    fn means_current(&self, given: Stateid4) -> bool {
        self.minor > 0 && given == Stateid4::CURRENT
    }

    /// Appends what follows the status.
    pub(crate) fn answer(&mut self, body: &impl Encode) -> OpResult {
        self.reply.encoder.put(body);
        Ok(())
    }

    /// Bytes that the current operation's body may still grow by.
    pub(crate) fn room(&self) -> usize {
        self.limit.bytes.saturating_sub(self.reply_len())
    }

    /// Whether the reply stays within its limit with `more` bytes.
    pub(crate) fn fits(&self, more: usize) -> bool {
        self.reply_len() + more <= self.limit.bytes
    }

    /// Length of the reply so far in bytes, with the RPC header, and with the error that a following operation may need.
    fn reply_len(&self) -> usize {
        let is_last = self.index + 1 >= self.count;
        let error = if is_last { 0 } else { ERROR_RESULT };
        REPLY_HEADER + self.overhead + self.reply.encoder.len_since(self.start) + error
    }

    /// File system, node and attributes of a file, for reading. Borrows from the server, not from the request.
    pub(crate) fn look(&self, file: FileId) -> Result<(&'r FileSystem, Node, Attr), Failure> {
        let server: &'r Shared = self.server;
        let (fs, node) = server.exports.file(file)?;
        Ok((fs, node, fs.attr(node)?))
    }

    /// File system and node of a file, for changing.
    pub(crate) fn for_change(&self, file: FileId) -> Result<(&'r FileSystem, Node), Failure> {
        let server: &'r Shared = self.server;
        Ok(server.exports.file_mut(file)?)
    }

    /// Recalls what other clients' delegations on `file` are in the way of; DELAY until they are back.
    pub(crate) fn check_conflict(&mut self, file: FileId, conflict: Conflict) -> OpResult {
        if !self.server.config.delegations {
            return Ok(());
        }
        Ok(self.server.state.check_conflict(file, conflict, self.client, self.now.instant, self.effects)?)
    }

    /// Verifier of WRITE and COMMIT: tells the client when unstable data may have been lost.
    pub(crate) fn write_verifier(&self) -> Verifier4 {
        self.server.write_verifier()
    }
}

/// The state that a stateid names, in its current version. A special stateid is what it is by its number.
fn any_version(stateid: Stateid4) -> Stateid4 {
    if stateid.is_special() { stateid } else { Stateid4 { seqid: 0, ..stateid } }
}

/// Change of a directory, seen atomically.
pub(crate) fn change_info(change: &Changed) -> ChangeInfo4 {
    let (before, after) = (change.before.change, change.after.change);
    let (before, after) =
        if is_broken(Mutant::ChangeInfoSwapped) { (after, before) } else { (before, after) };
    ChangeInfo4 { atomic: true, before, after }
}
