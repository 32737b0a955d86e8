//! NFS version 4: COMPOUND, minor versions 0, 1 and 2.
//!
//! `compound` runs the operations of a request one by one; each group of operations has a file. An operation gets its
//! decoded arguments and a [`Compound`], appends the body of its result (what follows the status) to [`Compound::reply`], and returns `Ok`; on `Err` the loop
//! takes the body back and writes the status alone, unless [`Failure::keep_body`] says that this status has a body too (LOCK: DENIED).

use std::sync::Arc;

use benchmaster_nfs_proto::v4::{Nfsstat4, Stateid4};

use crate::cred::Credentials;
use crate::dispatch::{Moment, Peer};
use crate::handle::FileId;
use crate::reply::Reply;
use crate::server::Shared;
use crate::state::session::Session;
use crate::state::{ClientId, Effects};

#[allow(dead_code)] // Until the loop calls it.
mod client_ops;
#[allow(dead_code)] // Until the loop calls it.
mod session_ops;

/// A request on its way through its operations.
#[allow(dead_code)] // Signatures first.
pub(crate) struct Compound<'r> {
    /// The server.
    pub(crate) server: &'r Shared,
    /// Who sent it, over which connection.
    pub(crate) peer: &'r Peer,
    /// In whose name.
    pub(crate) who: &'r Credentials,
    /// When.
    pub(crate) now: Moment,
    /// Minor version.
    pub(crate) minor: u32,
    /// Current file handle.
    pub(crate) current: Option<FileId>,
    /// Saved file handle.
    pub(crate) saved: Option<FileId>,
    /// Current stateid (RFC 8881 §16.2.3.1.2).
    pub(crate) current_stateid: Option<Stateid4>,
    /// Saved stateid.
    pub(crate) saved_stateid: Option<Stateid4>,
    /// Session of the leading SEQUENCE, and its slot.
    pub(crate) session: Option<(Arc<Session>, u32)>,
    /// Client of the session (4.1), or of the last stateid or client id seen (4.0), for statistics and renewal.
    pub(crate) client: Option<ClientId>,
    /// The reply.
    pub(crate) reply: &'r mut Reply,
    /// To be carried out when the request is done.
    pub(crate) effects: &'r mut Effects,
    /// Whether an operation changed something that a repetition would change again (decides on the duplicate request
    /// cache of 4.0).
    pub(crate) non_idempotent: bool,
}

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Failure {
    /// Its status.
    pub(crate) status: Nfsstat4,
    /// Whether the body written so far belongs to that status.
    pub(crate) keep_body: bool,
}

impl From<Nfsstat4> for Failure {
    fn from(status: Nfsstat4) -> Self {
        Self { status, keep_body: false }
    }
}

/// Outcome of an operation.
pub(crate) type OpResult = Result<(), Failure>;

#[allow(dead_code)] // Signatures first.
impl Compound<'_> {
    /// The current file handle, or NOFILEHANDLE.
    pub(crate) fn file(&self) -> Result<FileId, Failure> {
        self.current.ok_or(Nfsstat4::NOFILEHANDLE.into())
    }

    /// The saved file handle, or NOFILEHANDLE.
    pub(crate) fn saved_file(&self) -> Result<FileId, Failure> {
        self.saved.ok_or(Nfsstat4::NOFILEHANDLE.into())
    }
}
