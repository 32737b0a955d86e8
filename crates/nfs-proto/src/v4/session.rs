//! Clients and sessions of 4.1 (RFC 8881 §18.33 to §18.51).

use super::{Bitmap4, Identity, NfsImplId4, Nfsstat4, RpcGssSvc, Sessionid4, Stateid4, Verifier4};
use crate::rpc::AuthSys;
use crate::xdr::{List, Opaque};

/// EXCHANGE_ID: referrals are supported.
pub const EXCHGID_SUPP_MOVED_REFER: u32 = 0x0000_0001;
/// EXCHANGE_ID: migration is supported.
pub const EXCHGID_SUPP_MOVED_MIGR: u32 = 0x0000_0002;
/// EXCHANGE_ID: fencing of stray requests is supported (4.2).
pub const EXCHGID_SUPP_FENCE_OPS: u32 = 0x0000_0004;
/// EXCHANGE_ID: stateids are bound to the principal.
pub const EXCHGID_BIND_PRINC_STATEID: u32 = 0x0000_0100;
/// EXCHANGE_ID: no pNFS.
pub const EXCHGID_USE_NON_PNFS: u32 = 0x0001_0000;
/// EXCHANGE_ID: mask of the three above.
pub const EXCHGID_MASK_PNFS: u32 = 0x0007_0000;
/// EXCHANGE_ID arguments: update a confirmed record.
pub const EXCHGID_UPD_CONFIRMED_REC_A: u32 = 0x4000_0000;
/// EXCHANGE_ID result: the record is confirmed.
pub const EXCHGID_CONFIRMED_R: u32 = 0x8000_0000;
/// EXCHANGE_ID: flags that a client may send; others are NFS4ERR_INVAL.
pub const EXCHGID_MASK_A: u32 = EXCHGID_SUPP_MOVED_REFER
    | EXCHGID_SUPP_MOVED_MIGR
    | EXCHGID_SUPP_FENCE_OPS
    | EXCHGID_BIND_PRINC_STATEID
    | EXCHGID_MASK_PNFS
    | EXCHGID_UPD_CONFIRMED_REC_A;

/// CREATE_SESSION: replies are kept over a restart.
pub const CREATE_SESSION_PERSIST: u32 = 1;
/// CREATE_SESSION: this connection is the back channel, too.
pub const CREATE_SESSION_CONN_BACK_CHAN: u32 = 2;
/// CREATE_SESSION: step up to RDMA.
pub const CREATE_SESSION_CONN_RDMA: u32 = 4;

/// SEQUENCE: the client has no working callback path.
pub const SEQ_STATUS_CB_PATH_DOWN: u32 = 0x0001;
/// SEQUENCE: all state was revoked with the lease.
pub const SEQ_STATUS_EXPIRED_ALL_STATE_REVOKED: u32 = 0x0008;
/// SEQUENCE: some state was revoked with the lease.
pub const SEQ_STATUS_EXPIRED_SOME_STATE_REVOKED: u32 = 0x0010;
/// SEQUENCE: an administrator revoked state.
pub const SEQ_STATUS_ADMIN_STATE_REVOKED: u32 = 0x0020;
/// SEQUENCE: delegations or layouts were revoked.
pub const SEQ_STATUS_RECALLABLE_STATE_REVOKED: u32 = 0x0040;
/// SEQUENCE: the server restarted and wants reclaims.
pub const SEQ_STATUS_RESTART_RECLAIM_NEEDED: u32 = 0x0100;
/// SEQUENCE: the session has no working callback path.
pub const SEQ_STATUS_CB_PATH_DOWN_SESSION: u32 = 0x0200;
/// SEQUENCE: the back channel has a fault that cannot be repaired.
pub const SEQ_STATUS_BACKCHANNEL_FAULT: u32 = 0x0400;

xdr_enum! {
    /// Channels that a client binds a connection to.
    pub enum ChannelDirFromClient4 {
        /// Fore channel.
        Fore = 1,
        /// Back channel.
        Back = 2,
        /// Fore channel, and back if the server likes.
        ForeOrBoth = 3,
        /// Back channel, and fore if the server likes.
        BackOrBoth = 7,
    }
    /// Channels that the server bound a connection to.
    pub enum ChannelDirFromServer4 {
        /// Fore channel.
        Fore = 1,
        /// Back channel.
        Back = 2,
        /// Both.
        Both = 3,
    }
}

xdr_struct! {
    /// GSS handles of a back channel.
    pub struct GssCbHandles4<'a> {
        /// Integrity, privacy or neither.
        pub service: RpcGssSvc,
        /// Handle of the GSS context on the server.
        pub handle_from_server: Opaque<'a>,
        /// Handle of the GSS context that the client created.
        pub handle_from_client: Opaque<'a>,
    }
    /// Arguments of BACKCHANNEL_CTL.
    pub struct BackchannelCtlArgs<'a> {
        /// New callback program number.
        pub cb_program: u32,
        /// Credentials that callbacks may use.
        pub sec_parms: List<'a, CallbackSecParms4<'a>>,
    }
    /// Arguments of BIND_CONN_TO_SESSION.
    pub struct BindConnToSessionArgs {
        /// Session id, from CREATE_SESSION.
        pub sessid: Sessionid4,
        /// Channels that the connection is to carry.
        pub dir: ChannelDirFromClient4,
        /// Whether to step up to RDMA.
        pub use_conn_in_rdma_mode: bool,
    }
    /// Result of BIND_CONN_TO_SESSION.
    pub struct BindConnToSessionOk {
        /// Session id, from CREATE_SESSION.
        pub sessid: Sessionid4,
        /// Channels that the connection is to carry.
        pub dir: ChannelDirFromServer4,
        /// Whether the connection is RDMA now.
        pub use_conn_in_rdma_mode: bool,
    }
    /// Operations under state protection, as sets of operation numbers.
    pub struct StateProtectOps4 {
        /// Must use the machine credential or SSV.
        pub must_enforce: Bitmap4,
        /// Operations that may use the machine credential.
        pub must_allow: Bitmap4,
    }
    /// What the client offers for SSV.
    pub struct SsvSpParms4<'a> {
        /// Operations that are protected.
        pub ops: StateProtectOps4,
        /// OIDs of hash algorithms that the client supports.
        pub hash_algs: List<'a, Opaque<'a>>,
        /// OIDs of encryption algorithms that the client supports.
        pub encr_algs: List<'a, Opaque<'a>>,
        /// SSV versions to keep.
        pub window: u32,
        /// GSS handles to make.
        pub num_gss_handles: u32,
    }
    /// What the server chose for SSV.
    pub struct SsvProtInfo4<'a> {
        /// Operations that are protected.
        pub ops: StateProtectOps4,
        /// Index of the hash algorithm.
        pub hash_alg: u32,
        /// Index of the encryption algorithm.
        pub encr_alg: u32,
        /// Length of the SSV.
        pub ssv_len: u32,
        /// Number of SSV versions that the server keeps.
        pub window: u32,
        /// Handles of RPCSEC_GSS contexts.
        pub handles: List<'a, Opaque<'a>>,
    }
    /// Identity of a client.
    pub struct ClientOwner4<'a> {
        /// Instance: changes with the client's restart.
        pub verifier: Verifier4,
        /// The same after a restart of the client.
        pub ownerid: Identity<'a>,
    }
    /// Identity of a server, to find other paths to it.
    pub struct ServerOwner4<'a> {
        /// Same for one set of sessions.
        pub minor_id: u64,
        /// Same for one set of clients and their state.
        pub major_id: Identity<'a>,
    }
    /// Arguments of EXCHANGE_ID.
    pub struct ExchangeIdArgs<'a> {
        /// Name and verifier of the client instance.
        pub clientowner: ClientOwner4<'a>,
        /// `EXCHGID_` flags.
        pub flags: u32,
        /// State protection offered.
        pub state_protect: StateProtect4A<'a>,
        /// Name, version and build date of the client.
        pub client_impl_id: Option<NfsImplId4<'a>>,
    }
    /// Result of EXCHANGE_ID.
    pub struct ExchangeIdOk<'a> {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
        /// Sequence number for CREATE_SESSION.
        pub sequenceid: u32,
        /// `EXCHGID_` flags.
        pub flags: u32,
        /// State protection in force.
        pub state_protect: StateProtect4R<'a>,
        /// Identity of the server, for trunking.
        pub server_owner: ServerOwner4<'a>,
        /// Where client ids, stateids and filehandles mean the same.
        pub server_scope: Identity<'a>,
        /// Name, version and build date of the server.
        pub server_impl_id: Option<NfsImplId4<'a>>,
    }
    /// Limits of a channel; sizes count whole RPC messages.
    pub struct ChannelAttrs4 {
        /// Bytes of padding before data, for RDMA.
        pub headerpadsize: u32,
        /// Largest request in bytes, RPC header included.
        pub maxrequestsize: u32,
        /// Largest reply in bytes, RPC header included.
        pub maxresponsesize: u32,
        /// Largest reply that is cached.
        pub maxresponsesize_cached: u32,
        /// Operations in a compound.
        pub maxoperations: u32,
        /// Number of slots: requests outstanding at once.
        pub maxrequests: u32,
        /// RDMA reads outstanding.
        pub rdma_ird: Option<u32>,
    }
    /// Arguments of CREATE_SESSION.
    pub struct CreateSessionArgs<'a> {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
        /// Sequence number for the first CREATE_SESSION.
        pub sequence: u32,
        /// `CREATE_SESSION_` flags.
        pub flags: u32,
        /// Limits of the fore channel, for requests.
        pub fore_chan_attrs: ChannelAttrs4,
        /// Limits of the back channel, for callbacks.
        pub back_chan_attrs: ChannelAttrs4,
        /// RPC program number of callbacks.
        pub cb_program: u32,
        /// Credentials that callbacks may use.
        pub sec_parms: List<'a, CallbackSecParms4<'a>>,
    }
    /// Result of CREATE_SESSION.
    pub struct CreateSessionOk {
        /// Session id, from CREATE_SESSION.
        pub sessionid: Sessionid4,
        /// Sequence number of the request.
        pub sequence: u32,
        /// `CREATE_SESSION_` flags granted.
        pub flags: u32,
        /// Limits of the fore channel, for requests.
        pub fore_chan_attrs: ChannelAttrs4,
        /// Limits of the back channel, for callbacks.
        pub back_chan_attrs: ChannelAttrs4,
    }
    /// Arguments of DESTROY_SESSION.
    pub struct DestroySessionArgs {
        /// Session id, from CREATE_SESSION.
        pub sessionid: Sessionid4,
    }
    /// Arguments of DESTROY_CLIENTID.
    pub struct DestroyClientidArgs {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
    }
    /// Arguments of RECLAIM_COMPLETE.
    pub struct ReclaimCompleteArgs {
        /// Whether only for the current filehandle's file system.
        pub one_fs: bool,
    }
    /// Arguments of SEQUENCE.
    pub struct SequenceArgs {
        /// Session id, from CREATE_SESSION.
        pub sessionid: Sessionid4,
        /// The slot's sequence number.
        pub sequenceid: u32,
        /// Slot of the session.
        pub slotid: u32,
        /// Highest slot with a request outstanding.
        pub highest_slotid: u32,
        /// Whether the reply must be kept.
        pub cachethis: bool,
    }
    /// Result of SEQUENCE.
    pub struct SequenceOk {
        /// Session id, from CREATE_SESSION.
        pub sessionid: Sessionid4,
        /// The slot's sequence number.
        pub sequenceid: u32,
        /// Slot of the session.
        pub slotid: u32,
        /// Highest slot that may be used.
        pub highest_slotid: u32,
        /// Highest slot that should be used.
        pub target_highest_slotid: u32,
        /// `SEQ_STATUS_` flags.
        pub status_flags: u32,
    }
    /// Arguments of SET_SSV.
    pub struct SetSsvArgs<'a> {
        /// Value to combine with the SSV.
        pub ssv: Opaque<'a>,
        /// HMAC that proves knowledge of the SSV.
        pub digest: Opaque<'a>,
    }
    /// Result of SET_SSV.
    pub struct SetSsvOk<'a> {
        /// HMAC that proves knowledge of the SSV.
        pub digest: Opaque<'a>,
    }
    /// Arguments of FREE_STATEID.
    pub struct FreeStateidArgs {
        /// Stateid to free.
        pub stateid: Stateid4,
    }
    /// Arguments of TEST_STATEID.
    pub struct TestStateidArgs<'a> {
        /// Stateids to test.
        pub stateids: List<'a, Stateid4>,
    }
    /// Result of TEST_STATEID.
    pub struct TestStateidOk<'a> {
        /// Status of every stateid, in order.
        pub status_codes: List<'a, Nfsstat4>,
    }
}

xdr_union! {
    /// A credential for callbacks.
    pub enum CallbackSecParms4<'a> {
        /// AUTH_NONE.
        0 => None,
        /// AUTH_SYS.
        1 => Sys(AuthSys<'a>),
        /// RPCSEC_GSS.
        6 => Gss(GssCbHandles4<'a>),
    }
    /// State protection that a client asks for.
    pub enum StateProtect4A<'a> {
        /// None.
        0 => None,
        /// By machine credential.
        1 => MachCred(StateProtectOps4),
        /// By secret state verifier.
        2 => Ssv(SsvSpParms4<'a>),
    }
    /// State protection that is in force.
    pub enum StateProtect4R<'a> {
        /// None.
        0 => None,
        /// By machine credential.
        1 => MachCred(StateProtectOps4),
        /// By secret state verifier.
        2 => Ssv(SsvProtInfo4<'a>),
    }
}
