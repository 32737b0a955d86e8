//! Callbacks of 4.0 (RFC 7530 §16), 4.1 (RFC 8881 §20) and 4.2 (RFC 7862 §16).

use super::{Bitmap4, Component4, Fattr4, Fh4, LockOwner4, OpenDelegation4, Sessionid4, Stateid4};
use crate::xdr::{List, Opaque};

/// CB_RECALL_ANY: read delegations.
pub const RCA_TYPE_RDATA_DLG: u32 = 0;
/// CB_RECALL_ANY: write delegations.
pub const RCA_TYPE_WDATA_DLG: u32 = 1;

/// Notifications of changes of a delegated directory (`NOTIFY4_`): bits of `notify_type4`.
pub mod notify {
    /// Attributes of an entry have changed.
    pub const CHANGE_CHILD_ATTRS: u32 = 0;
    /// Attributes of the directory have changed.
    pub const CHANGE_DIR_ATTRS: u32 = 1;
    /// An entry was removed.
    pub const REMOVE_ENTRY: u32 = 2;
    /// An entry was added.
    pub const ADD_ENTRY: u32 = 3;
    /// An entry got another name in the same directory.
    pub const RENAME_ENTRY: u32 = 4;
    /// The verifier of cookies has changed.
    pub const CHANGE_COOKIE_VERIFIER: u32 = 5;
}

xdr_struct! {
    /// An entry of a directory that has changed.
    pub struct NotifyEntry4<'a> {
        /// Its name; empty: the directory itself.
        pub file: Component4<'a>,
        /// Its attributes, as far as they were asked for.
        pub attrs: Fattr4<'a>,
    }
    /// An entry, and its cookie in READDIR: of one that is gone (`notify_remove4`), or comes before a new one (`prev_entry4`).
    pub struct NotifyRemove4<'a> {
        /// The entry.
        pub entry: NotifyEntry4<'a>,
        /// Its cookie.
        pub cookie: u64,
    }
    /// A new entry.
    pub struct NotifyAdd4<'a> {
        /// What it replaced, if anything.
        pub old_entry: List<'a, NotifyRemove4<'a>>,
        /// The entry.
        pub new_entry: NotifyEntry4<'a>,
        /// Its cookie, if it is known.
        pub cookie: List<'a, u64>,
        /// The entry before it, if there is one.
        pub previous: List<'a, NotifyRemove4<'a>>,
        /// Whether it is the last of the directory.
        pub last: bool,
    }
    /// An entry with another name.
    pub struct NotifyRename4<'a> {
        /// As it was.
        pub old_entry: NotifyRemove4<'a>,
        /// As it is.
        pub new_entry: NotifyAdd4<'a>,
    }
    /// Notifications of one kind or several.
    pub struct Notify4<'a> {
        /// Bits of [`notify`].
        pub mask: Bitmap4,
        /// For each bit, in ascending order, a structure: [`NotifyEntry4`], [`NotifyRemove4`], [`NotifyAdd4`], [`NotifyRename4`].
        pub values: Opaque<'a>,
    }
    /// Arguments of CB_NOTIFY (RFC 8881 §20.4).
    pub struct CbNotifyArgs<'a> {
        /// Stateid of the delegation.
        pub stateid: Stateid4,
        /// Filehandle of the directory.
        pub fh: Fh4<'a>,
        /// Changes, in order.
        pub changes: List<'a, Notify4<'a>>,
    }
    /// Arguments of CB_GETATTR.
    pub struct CbGetattrArgs<'a> {
        /// Filehandle of the delegated file.
        pub fh: Fh4<'a>,
        /// Attributes asked for: change and size.
        pub attr_request: Bitmap4,
    }
    /// Result of CB_GETATTR.
    pub struct CbGetattrOk<'a> {
        /// Values of the attributes asked for.
        pub obj_attributes: Fattr4<'a>,
    }
    /// Arguments of CB_RECALL.
    pub struct CbRecallArgs<'a> {
        /// Stateid of the delegation.
        pub stateid: Stateid4,
        /// Whether the file will be truncated: its data need not be written.
        pub truncate: bool,
        /// Filehandle of the file.
        pub fh: Fh4<'a>,
    }
    /// Arguments of CB_PUSH_DELEG.
    pub struct CbPushDelegArgs<'a> {
        /// Filehandle of the file.
        pub fh: Fh4<'a>,
        /// Delegation that is offered.
        pub delegation: OpenDelegation4<'a>,
    }
    /// Arguments of CB_RECALL_ANY and CB_RECALLABLE_OBJ_AVAIL.
    pub struct CbRecallAnyArgs {
        /// How many the client may keep.
        pub objects_to_keep: u32,
        /// Of which kinds, see `RCA_TYPE_`.
        pub type_mask: Bitmap4,
    }
    /// Arguments of CB_RECALL_SLOT.
    pub struct CbRecallSlotArgs {
        /// Highest slot to keep.
        pub target_highest_slotid: u32,
    }
    /// A request that a callback refers to.
    pub struct ReferringCall4 {
        /// Sequence number of the request on its slot.
        pub sequenceid: u32,
        /// Slot of the request.
        pub slotid: u32,
    }
    /// Requests of a session that a callback refers to (RFC 8881 §2.10.6.3).
    pub struct ReferringCallList4<'a> {
        /// Session id, from CREATE_SESSION.
        pub sessionid: Sessionid4,
        /// Requests of the session.
        pub referring_calls: List<'a, ReferringCall4>,
    }
    /// Arguments of CB_SEQUENCE.
    pub struct CbSequenceArgs<'a> {
        /// Session id, from CREATE_SESSION.
        pub sessionid: Sessionid4,
        /// The slot's sequence number.
        pub sequenceid: u32,
        /// Slot of the session.
        pub slotid: u32,
        /// Highest slot with a callback outstanding.
        pub highest_slotid: u32,
        /// Whether the reply must be kept.
        pub cachethis: bool,
        /// Requests whose replies the client must see first.
        pub referring_call_lists: List<'a, ReferringCallList4<'a>>,
    }
    /// Result of CB_SEQUENCE.
    pub struct CbSequenceOk {
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
    }
    /// Arguments of CB_WANTS_CANCELLED.
    pub struct CbWantsCancelledArgs {
        /// Wants that met contention.
        pub contended_wants_cancelled: bool,
        /// Wants that met lack of resources.
        pub resourced_wants_cancelled: bool,
    }
    /// Arguments of CB_NOTIFY_LOCK.
    pub struct CbNotifyLockArgs<'a> {
        /// Filehandle of the file.
        pub fh: Fh4<'a>,
        /// Who may try again.
        pub lock_owner: LockOwner4<'a>,
    }
}
