//! Opens, byte-range locks and delegations of all minor versions.

use super::{
    Bitmap4, ChangeInfo4, Component4, Fattr4, LockOwner4, Nfsace4, Nfstime4, OpenOwner4, Stateid4, Verifier4,
};

/// `share_access`: read.
pub const SHARE_ACCESS_READ: u32 = 1;
/// `share_access`: write.
pub const SHARE_ACCESS_WRITE: u32 = 2;
/// `share_access`: read and write; mask of the access bits.
pub const SHARE_ACCESS_BOTH: u32 = 3;
/// `share_deny`: nothing.
pub const SHARE_DENY_NONE: u32 = 0;
/// `share_deny`: both.
pub const SHARE_DENY_BOTH: u32 = 3;
/// Mask of the wanted delegation in `share_access` (4.1).
pub const WANT_DELEG_MASK: u32 = 0xff00;
/// No preference for or against a delegation.
pub const WANT_NO_PREFERENCE: u32 = 0x0000;
/// Wants a read delegation.
pub const WANT_READ_DELEG: u32 = 0x0100;
/// Wants a write delegation.
pub const WANT_WRITE_DELEG: u32 = 0x0200;
/// Wants any delegation.
pub const WANT_ANY_DELEG: u32 = 0x0300;
/// Wants no delegation.
pub const WANT_NO_DELEG: u32 = 0x0400;
/// Cancels an earlier want.
pub const WANT_CANCEL: u32 = 0x0500;
/// Wants a signal when resources for a delegation are there.
pub const WANT_SIGNAL_DELEG_WHEN_RESRC_AVAIL: u32 = 0x1_0000;
/// Wants the delegation pushed when the file is uncontended.
pub const WANT_PUSH_DELEG_WHEN_UNCONTENDED: u32 = 0x2_0000;
/// Wants a delegation with timestamps (RFC 9754).
pub const WANT_DELEG_TIMESTAMPS: u32 = 0x10_0000;
/// Wants either an open stateid or a delegation (RFC 9754).
pub const WANT_OPEN_XOR_DELEGATION: u32 = 0x20_0000;

/// `rflags`: OPEN_CONFIRM is needed (4.0).
pub const OPEN_RESULT_CONFIRM: u32 = 0x02;
/// `rflags`: byte-range locks are POSIX-like.
pub const OPEN_RESULT_LOCKTYPE_POSIX: u32 = 0x04;
/// `rflags`: the file is preserved when removed while open.
pub const OPEN_RESULT_PRESERVE_UNLINKED: u32 = 0x08;
/// `rflags`: there is no open stateid, only a delegation (RFC 9754).
pub const OPEN_RESULT_NO_OPEN_STATEID: u32 = 0x10;
/// `rflags`: CB_NOTIFY_LOCK may come.
pub const OPEN_RESULT_MAY_NOTIFY_LOCK: u32 = 0x20;

xdr_enum! {
    /// Type of a byte-range lock.
    pub enum LockType4 {
        /// Shared.
        Read = 1,
        /// Exclusive.
        Write = 2,
        /// Shared, and the client will wait.
        ReadW = 3,
        /// Exclusive, and the client will wait.
        WriteW = 4,
    }
    /// Type of a delegation.
    pub enum OpenDelegationType4 {
        /// None.
        None = 0,
        /// Read.
        Read = 1,
        /// Write.
        Write = 2,
        /// None, with the reason (4.1).
        NoneExt = 3,
        /// Read, with attributes (RFC 9754).
        ReadAttrs = 4,
        /// Write, with attributes (RFC 9754).
        WriteAttrs = 5,
    }
}

impl LockType4 {
    /// Whether the lock is exclusive.
    pub fn is_write(self) -> bool {
        matches!(self, Self::Write | Self::WriteW)
    }

    /// Whether the client will wait for the lock.
    pub fn is_blocking(self) -> bool {
        matches!(self, Self::ReadW | Self::WriteW)
    }
}

xdr_struct! {
    /// Arguments of CLOSE.
    pub struct CloseArgs {
        /// Sequence number of the open owner (4.0).
        pub seqid: u32,
        /// Stateid of the open.
        pub open_stateid: Stateid4,
    }
    /// Result of CLOSE.
    pub struct CloseOk {
        /// Not to be used any more.
        pub open_stateid: Stateid4,
    }
    /// Arguments of DELEGRETURN.
    pub struct DelegreturnArgs {
        /// Stateid of the delegation.
        pub deleg_stateid: Stateid4,
    }
    /// Arguments of DELEGPURGE.
    pub struct DelegpurgeArgs {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
    }
    /// First lock of a lock owner on an open.
    pub struct OpenToLockOwner4<'a> {
        /// Sequence number of the open owner (4.0).
        pub open_seqid: u32,
        /// Stateid of the open.
        pub open_stateid: Stateid4,
        /// First sequence number of the lock owner (4.0).
        pub lock_seqid: u32,
        /// Owner of the locks.
        pub lock_owner: LockOwner4<'a>,
    }
    /// Further lock of a lock owner.
    pub struct ExistLockOwner4 {
        /// Stateid of the lock owner's locks on the file.
        pub lock_stateid: Stateid4,
        /// Sequence number of the lock owner (4.0).
        pub lock_seqid: u32,
    }
    /// Arguments of LOCK.
    pub struct LockArgs<'a> {
        /// Read or write lock, and whether the client waits.
        pub locktype: LockType4,
        /// Whether it is reclaimed after a restart.
        pub reclaim: bool,
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes; all ones: to the end.
        pub length: u64,
        /// Lock owner, new or known.
        pub locker: Locker4<'a>,
    }
    /// The lock that is in the way.
    pub struct LockDenied<'a> {
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes.
        pub length: u64,
        /// Read or write lock, and whether the client waits.
        pub locktype: LockType4,
        /// Owner of the conflicting lock.
        pub owner: LockOwner4<'a>,
    }
    /// Result of LOCK.
    pub struct LockOk {
        /// Stateid of the owner's locks on the file.
        pub lock_stateid: Stateid4,
    }
    /// Arguments of LOCKT.
    pub struct LocktArgs<'a> {
        /// Read or write lock, and whether the client waits.
        pub locktype: LockType4,
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes.
        pub length: u64,
        /// Whose lock it would be.
        pub owner: LockOwner4<'a>,
    }
    /// Arguments of LOCKU.
    pub struct LockuArgs {
        /// Type; not looked at.
        pub locktype: LockType4,
        /// Sequence number of the lock owner (4.0).
        pub seqid: u32,
        /// The owner's locks on the file.
        pub lock_stateid: Stateid4,
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes.
        pub length: u64,
    }
    /// Result of LOCKU.
    pub struct LockuOk {
        /// Stateid of the locks, with a new sequence number.
        pub lock_stateid: Stateid4,
    }
    /// Verifier and attributes of an exclusive create (4.1).
    pub struct Creatverfattr<'a> {
        /// Verifier of the credential.
        pub verf: Verifier4,
        /// Attributes of the entry, those asked for.
        pub attrs: Fattr4<'a>,
    }
    /// Space that a write delegation may use, in blocks.
    pub struct ModifiedLimit4 {
        /// Limit of the space, in blocks.
        pub num_blocks: u32,
        /// Block size in bytes.
        pub bytes_per_block: u32,
    }
    /// OPEN by name under a delegation.
    pub struct OpenClaimDelegateCur4<'a> {
        /// Stateid of the delegation.
        pub delegate_stateid: Stateid4,
        /// Name in the current directory.
        pub file: Component4<'a>,
    }
    /// Arguments of OPEN.
    pub struct OpenArgs<'a> {
        /// Sequence number of the open owner (4.0).
        pub seqid: u32,
        /// Access, and what delegation is wanted (4.1).
        pub share_access: u32,
        /// What others are denied.
        pub share_deny: u32,
        /// Open owner.
        pub owner: OpenOwner4<'a>,
        /// Whether and how to create.
        pub openhow: Openflag4<'a>,
        /// Which file, by which right.
        pub claim: OpenClaim4<'a>,
    }
    /// A read delegation.
    pub struct OpenReadDelegation4<'a> {
        /// Stateid of the delegation.
        pub stateid: Stateid4,
        /// Whether it is recalled already.
        pub recall: bool,
        /// Who needs no ACCESS.
        pub permissions: Nfsace4<'a>,
    }
    /// A write delegation.
    pub struct OpenWriteDelegation4<'a> {
        /// Stateid of the delegation.
        pub stateid: Stateid4,
        /// Whether it is recalled already.
        pub recall: bool,
        /// How far the file may grow before the client must write.
        pub space_limit: SpaceLimit4,
        /// Who needs no ACCESS.
        pub permissions: Nfsace4<'a>,
    }
    /// Result of OPEN.
    pub struct OpenOk<'a> {
        /// Stateid of the open.
        pub stateid: Stateid4,
        /// Change of the directory.
        pub cinfo: ChangeInfo4,
        /// `OPEN_RESULT_` flags.
        pub rflags: u32,
        /// Attributes that were set.
        pub attrset: Bitmap4,
        /// Delegation granted, if any.
        pub delegation: OpenDelegation4<'a>,
    }
    /// Arguments of OPEN_CONFIRM (4.0).
    pub struct OpenConfirmArgs {
        /// Stateid of the open.
        pub open_stateid: Stateid4,
        /// Sequence number of the open owner.
        pub seqid: u32,
    }
    /// Result of OPEN_CONFIRM.
    pub struct OpenConfirmOk {
        /// Stateid of the open, now confirmed.
        pub open_stateid: Stateid4,
    }
    /// Arguments of OPEN_DOWNGRADE.
    pub struct OpenDowngradeArgs {
        /// Stateid of the open.
        pub open_stateid: Stateid4,
        /// Sequence number of the open owner (4.0).
        pub seqid: u32,
        /// `SHARE_ACCESS` bits that the open keeps.
        pub share_access: u32,
        /// `SHARE_DENY` bits that the open keeps.
        pub share_deny: u32,
    }
    /// Result of OPEN_DOWNGRADE.
    pub struct OpenDowngradeOk {
        /// Stateid of the open, with a new sequence number.
        pub open_stateid: Stateid4,
    }
    /// Arguments of WANT_DELEGATION (4.1).
    pub struct WantDelegationArgs {
        /// What is wanted, as in `share_access` of OPEN.
        pub want: u32,
        /// What entitles the client to the delegation.
        pub claim: DelegClaim4,
    }
    /// Arguments of GET_DIR_DELEGATION (RFC 8881 §18.39).
    pub struct GetDirDelegationArgs {
        /// Whether the client wants a callback when one becomes available.
        pub signal_deleg_avail: bool,
        /// Notifications that the client wants, as numbers of `notify_type4`.
        pub notification_types: Bitmap4,
        /// Longest delay of notifications of changed attributes of entries.
        pub child_attr_delay: Nfstime4,
        /// Longest delay of notifications of changed attributes of the directory.
        pub dir_attr_delay: Nfstime4,
        /// Attributes of entries whose changes the client wants to know.
        pub child_attributes: Bitmap4,
        /// Attributes of the directory whose changes the client wants to know.
        pub dir_attributes: Bitmap4,
    }
    /// A delegation of a directory.
    pub struct DirDelegation4 {
        /// Verifier of the cookies of READDIR.
        pub cookieverf: Verifier4,
        /// Stateid of the delegation.
        pub stateid: Stateid4,
        /// Notifications that the server will send.
        pub notification: Bitmap4,
        /// Attributes of entries whose changes it will tell.
        pub child_attributes: Bitmap4,
        /// Attributes of the directory whose changes it will tell.
        pub dir_attributes: Bitmap4,
    }
}

xdr_union! {
    /// Result of GET_DIR_DELEGATION (RFC 8881 §18.39).
    pub enum GetDirDelegationOk {
        /// It is granted.
        0 => Granted(DirDelegation4),
        /// It is not; whether the server will tell when one becomes available.
        1 => Unavailable(bool),
    }
    /// Who locks.
    pub enum Locker4<'a> {
        /// An owner that has locks on the file.
        0 => LockOwner(ExistLockOwner4),
        /// An owner that has none yet.
        1 => OpenOwner(OpenToLockOwner4<'a>),
    }
    /// How OPEN creates.
    pub enum Createhow4<'a> {
        /// Existing files are fine.
        0 => Unchecked(Fattr4<'a>),
        /// Existing files are an error.
        1 => Guarded(Fattr4<'a>),
        /// Exactly once, by verifier (4.0).
        2 => Exclusive(Verifier4),
        /// Exactly once, by verifier, with attributes (4.1).
        3 => Exclusive41(Creatverfattr<'a>),
    }
    /// Whether OPEN creates.
    pub enum Openflag4<'a> {
        /// The file must exist.
        0 => NoCreate,
        /// It is created.
        1 => Create(Createhow4<'a>),
    }
    /// Limit of a write delegation.
    pub enum SpaceLimit4 {
        /// File size.
        1 => Size(u64),
        /// Blocks.
        2 => Blocks(ModifiedLimit4),
    }
    /// File of an OPEN, and the right to it.
    pub enum OpenClaim4<'a> {
        /// A name, with no special right.
        0 => Null(Component4<'a>),
        /// The current filehandle, opened before the server's restart with this delegation.
        1 => Previous(OpenDelegationType4),
        /// A name, under a delegation.
        2 => DelegateCur(OpenClaimDelegateCur4<'a>),
        /// A name, under a delegation of before the client's restart.
        3 => DelegatePrev(Component4<'a>),
        /// The current filehandle (4.1).
        4 => Fh,
        /// The current filehandle, under a delegation (4.1).
        5 => DelegCurFh(Stateid4),
        /// The current filehandle, under a delegation of before the client's restart (4.1).
        6 => DelegPrevFh,
    }
    /// Why there is no delegation (4.1).
    pub enum OpenNoneDelegation4 {
        /// Not wanted.
        0 => NotWanted,
        /// Contention; whether the server will push one later.
        1 => Contention(bool),
        /// No resources; whether the server will signal them.
        2 => Resource(bool),
        /// Not for this file type.
        3 => NotSuppFtype,
        /// No write delegation for this file type.
        4 => WriteDelegNotSuppFtype,
        /// No upgrade.
        5 => NotSuppUpgrade,
        /// No downgrade.
        6 => NotSuppDowngrade,
        /// The want was cancelled.
        7 => Cancelled,
        /// It is a directory.
        8 => IsDir,
        ;
        /// Another reason.
        Other
    }
    /// Delegation in a result.
    pub enum OpenDelegation4<'a> {
        /// None.
        0 => None,
        /// A read delegation.
        1 => Read(OpenReadDelegation4<'a>),
        /// A write delegation.
        2 => Write(OpenWriteDelegation4<'a>),
        /// None, with the reason (4.1).
        3 => NoneExt(OpenNoneDelegation4),
        /// A read delegation with attributes (RFC 9754).
        4 => ReadAttrs(OpenReadDelegation4<'a>),
        /// A write delegation with attributes (RFC 9754).
        5 => WriteAttrs(OpenWriteDelegation4<'a>),
    }
    /// Right of a WANT_DELEGATION.
    pub enum DelegClaim4 {
        /// Delegated before the server's restart.
        1 => Previous(OpenDelegationType4),
        /// No special right.
        4 => Fh,
        /// Delegated before the client's restart.
        6 => DelegPrevFh,
    }
}

result_union! {
    /// Result of LOCK.
    pub enum LockRes<'a> {
        Ok(LockOk),
        /// Another owner's lock is in the way.
        DENIED => Denied(LockDenied<'a>),
    }
    /// Result of LOCKT.
    pub enum LocktRes<'a> {
        Ok(()),
        /// Another owner's lock is in the way.
        DENIED => Denied(LockDenied<'a>),
    }
}
