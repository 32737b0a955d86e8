//! An RPC call in the hands of its program's module: `v2`, `v3`, `mount`, `nlm`, `portmap` each have one function
//! `serve(&mut Call) -> Served`.

use benchmaster_nfs_proto::xdr::{Decode, Decoder, XdrError};

use crate::cred::Credentials;
use crate::dispatch::{Moment, Peer};
use crate::reply::Reply;
use crate::server::Shared;
use crate::state::Effects;

/// A call whose header is checked: program and version are served here, the credential is accepted.
#[derive(Debug)]
pub(crate) struct Call<'r> {
    /// The server.
    pub(crate) server: &'r Shared,
    /// Where the call comes from.
    pub(crate) peer: &'r Peer,
    /// In whose name.
    pub(crate) who: &'r Credentials,
    /// Name of the caller's machine (AUTH_SYS), or empty.
    pub(crate) machine: &'r [u8],
    /// Version of the program.
    pub(crate) version: u32,
    /// Procedure number.
    pub(crate) procedure: u32,
    /// Arguments.
    pub(crate) args: Decoder<'r>,
    /// When.
    pub(crate) now: Moment,
    /// Where the results go; the header of a successful reply is already there.
    pub(crate) reply: &'r mut Reply,
    /// To be carried out when the call is done.
    pub(crate) effects: &'r mut Effects,
    /// NFS only: do not execute the procedure, this is its status.
    pub(crate) injected: Option<u32>,
}

/// Why there are no results. Whatever was appended to the reply is to be taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// No such procedure in this version.
    ProcUnavail,
    /// The arguments do not decode.
    GarbageArgs,
    /// Nothing is sent: the client will ask again (NFS version 2 has no JUKEBOX).
    NoReply,
}

/// The procedure's status (0: success), for the statistics.
pub(crate) type Served = Result<u32, Refusal>;

impl From<XdrError> for Refusal {
    fn from(_: XdrError) -> Self {
        Self::GarbageArgs
    }
}

impl<'r> Call<'r> {
    /// Decodes the arguments.
    pub(crate) fn args<T: Decode<'r>>(&mut self) -> Result<T, Refusal> {
        Ok(self.args.get()?)
    }
}
