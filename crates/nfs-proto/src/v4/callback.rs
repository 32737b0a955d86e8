//! Callbacks of 4.0 (RFC 7530 §16), 4.1 (RFC 8881 §20) and 4.2 (RFC 7862 §16).

use super::{Bitmap4, Fattr4, Fh4, LockOwner4, OpenDelegation4, Sessionid4, Stateid4};
use crate::xdr::List;

/// CB_RECALL_ANY: read delegations.
pub const RCA_TYPE_RDATA_DLG: u32 = 0;
/// CB_RECALL_ANY: write delegations.
pub const RCA_TYPE_WDATA_DLG: u32 = 1;

xdr_struct! {
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
