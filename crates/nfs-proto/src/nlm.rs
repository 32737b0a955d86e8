//! Network lock manager versions 1 and 3 (X/Open XNFS, 32-bit offsets: [`v1`]) and 4 (RFC 1813 appendix II, 64-bit
//! offsets: [`v4`]). Version 2 was never in use; version 3 is version 1 with the procedures from SHARE on.

use crate::xdr::Opaque;

/// RPC program of the lock manager.
pub const PROGRAM: u32 = 100_021;

/// Opaque object: handle, owner or cookie.
pub type Netobj<'a> = Opaque<'a, 1024>;
/// Name of a machine.
pub type CallerName<'a> = Opaque<'a, 1024>;

xdr_code! {
    /// Procedure numbers. `_MSG` is a call without a reply; the answer comes as a `_RES` call the other way.
    pub struct Proc("NLMPROC_") {
        /// Do nothing.
        NULL = 0,
        /// Is this lock free?
        TEST = 1,
        /// Lock.
        LOCK = 2,
        /// Stop waiting for a lock.
        CANCEL = 3,
        /// Unlock.
        UNLOCK = 4,
        /// From server to client: a blocked lock is granted.
        GRANTED = 5,
        /// Asynchronous TEST.
        TEST_MSG = 6,
        /// Asynchronous LOCK.
        LOCK_MSG = 7,
        /// Asynchronous CANCEL.
        CANCEL_MSG = 8,
        /// Asynchronous UNLOCK.
        UNLOCK_MSG = 9,
        /// Asynchronous GRANTED.
        GRANTED_MSG = 10,
        /// Answer to TEST_MSG.
        TEST_RES = 11,
        /// Answer to LOCK_MSG.
        LOCK_RES = 12,
        /// Answer to CANCEL_MSG.
        CANCEL_RES = 13,
        /// Answer to UNLOCK_MSG.
        UNLOCK_RES = 14,
        /// Answer to GRANTED_MSG.
        GRANTED_RES = 15,
        /// Private to Linux: its status monitor tells its lock manager of a reboot.
        NSM_NOTIFY = 16,
        /// Open with a DOS share mode.
        SHARE = 20,
        /// Close it.
        UNSHARE = 21,
        /// LOCK without monitoring.
        NM_LOCK = 22,
        /// Forget all locks of a client.
        FREE_ALL = 23,
    }
    /// Status (RFC 1813 §6.1.2); versions 1 and 3 end at [`Self::DENIED_GRACE_PERIOD`] and, by custom, DEADLCK.
    pub struct NlmStats("NLM4_") {
        /// Success.
        GRANTED = 0,
        /// Refused; a later try may succeed.
        DENIED = 1,
        /// Out of resources.
        DENIED_NOLOCKS = 2,
        /// The caller waits; GRANTED will be called.
        BLOCKED = 3,
        /// Locks are being reclaimed after a restart.
        DENIED_GRACE_PERIOD = 4,
        /// Waiting would never end.
        DEADLCK = 5,
        /// Read-only file system.
        ROFS = 6,
        /// The handle is invalid.
        STALE_FH = 7,
        /// Offset or length beyond what the server supports.
        FBIG = 8,
        /// Failed for another reason; do not try again.
        FAILED = 9,
    }
}

xdr_enum! {
    /// What a share denies to others.
    pub enum FshMode {
        /// Nothing.
        DenyNone = 0,
        /// Reading.
        DenyRead = 1,
        /// Writing.
        DenyWrite = 2,
        /// Both.
        DenyBoth = 3,
    }
    /// What a share wants.
    pub enum FshAccess {
        /// Nothing.
        None = 0,
        /// Reading.
        Read = 1,
        /// Writing.
        Write = 2,
        /// Both.
        Both = 3,
    }
}

xdr_struct! {
    /// Arguments of GRANTED_RES and all `_RES` but TEST_RES; result of all procedures but TEST.
    pub struct Res<'a> {
        /// Returned unchanged from the call.
        pub cookie: Netobj<'a>,
        /// Outcome of the call.
        pub stat: NlmStats,
    }
    /// A share.
    pub struct Share<'a> {
        /// The machine that asks.
        pub caller_name: CallerName<'a>,
        /// Filehandle of the file.
        pub fh: Netobj<'a>,
        /// The process that asks.
        pub oh: Netobj<'a>,
        /// What it denies to others.
        pub mode: FshMode,
        /// Access that the client wants.
        pub access: FshAccess,
    }
    /// Arguments of SHARE and UNSHARE.
    pub struct ShareArgs<'a> {
        /// Comes back in the result.
        pub cookie: Netobj<'a>,
        /// File, owner and modes.
        pub share: Share<'a>,
        /// Whether it was held before the server's restart.
        pub reclaim: bool,
    }
    /// Result of SHARE and UNSHARE.
    pub struct ShareRes<'a> {
        /// Returned unchanged from the call.
        pub cookie: Netobj<'a>,
        /// Outcome of the call.
        pub stat: NlmStats,
        /// Unused.
        pub sequence: i32,
    }
    /// Arguments of FREE_ALL.
    pub struct Notify<'a> {
        /// The machine whose locks are void.
        pub name: Opaque<'a, 1025>,
        /// State number of the host: odd while it is up.
        pub state: i32,
    }
}

/// The messages that hold offsets.
macro_rules! with_offsets {
    ($offset:ty) => {
        use super::{CallerName, Netobj, NlmStats};

        xdr_struct! {
            /// Who holds a lock.
            pub struct Holder<'a> {
                /// Whether the lock is exclusive.
                pub exclusive: bool,
                /// Process id of the lock owner on the client.
                pub svid: i32,
                /// Lock owner, opaque to the server.
                pub oh: Netobj<'a>,
                /// Offset of the first locked byte.
                pub l_offset: $offset,
                /// Number of bytes, 0 for all to the end.
                pub l_len: $offset,
            }
            /// A lock.
            pub struct Lock<'a> {
                /// The machine that asks.
                pub caller_name: CallerName<'a>,
                /// Filehandle of the file.
                pub fh: Netobj<'a>,
                /// Lock owner, opaque to the server.
                pub oh: Netobj<'a>,
                /// Process id of the lock owner on the client.
                pub svid: i32,
                /// Offset of the first locked byte.
                pub l_offset: $offset,
                /// Number of bytes, 0 for all to the end.
                pub l_len: $offset,
            }
            /// Arguments of LOCK and NM_LOCK.
            pub struct LockArgs<'a> {
                /// Comes back in the result.
                pub cookie: Netobj<'a>,
                /// The client waits for the lock.
                pub block: bool,
                /// Whether no other lock may overlap.
                pub exclusive: bool,
                /// File, owner and range of the lock.
                pub alock: Lock<'a>,
                /// Whether it was held before the server's restart.
                pub reclaim: bool,
                /// State number of the caller's status monitor.
                pub state: i32,
            }
            /// Arguments of CANCEL: those of the LOCK that waits.
            pub struct CancelArgs<'a> {
                /// Comes back in the result.
                pub cookie: Netobj<'a>,
                /// The client waits for the lock.
                pub block: bool,
                /// Whether no other lock may overlap.
                pub exclusive: bool,
                /// File, owner and range of the lock.
                pub alock: Lock<'a>,
            }
            /// Arguments of TEST and GRANTED.
            pub struct TestArgs<'a> {
                /// Comes back in the result.
                pub cookie: Netobj<'a>,
                /// Whether no other lock may overlap.
                pub exclusive: bool,
                /// File, owner and range of the lock.
                pub alock: Lock<'a>,
            }
            /// Arguments of UNLOCK.
            pub struct UnlockArgs<'a> {
                /// Comes back in the result.
                pub cookie: Netobj<'a>,
                /// File, owner and range of the lock.
                pub alock: Lock<'a>,
            }
            /// Result of TEST, arguments of TEST_RES.
            pub struct TestRes<'a> {
                /// Returned unchanged from the call.
                pub cookie: Netobj<'a>,
                /// Status, and the holder of a conflicting lock.
                pub stat: TestReply<'a>,
            }
        }
        xdr_union! {
            /// Status of TEST.
            pub enum TestReply<'a> {
                /// [`NlmStats::DENIED`]: this lock is in the way.
                1 => Denied(Holder<'a>);
                /// Any other [`NlmStats`].
                Other
            }
        }

        impl TestReply<'_> {
            /// The status.
            pub fn stat(&self) -> NlmStats {
                match self {
                    Self::Denied(_) => NlmStats::DENIED,
                    Self::Other(stat) => NlmStats(*stat),
                }
            }
        }
    };
}

/// Messages of versions 1 and 3.
pub mod v1 {
    /// The first version.
    pub const VERSION: u32 = 1;
    /// The version with shares.
    pub const VERSION_3: u32 = 3;
    with_offsets!(u32);
}

/// Messages of version 4.
pub mod v4 {
    /// Version of the program.
    pub const VERSION: u32 = 4;
    with_offsets!(u64);
}
