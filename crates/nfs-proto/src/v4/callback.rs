//! Callbacks of 4.0 (RFC 7530 §16), 4.1 (RFC 8881 §20) and 4.2 (RFC 7862 §16).

use super::{
    Bitmap4, Component4, Deviceid4, Fattr4, Fh4, Fsid4, Layoutiomode4, Layouttype4, LockOwner4, Nfsstat4,
    OpenDelegation4, Sessionid4, Stateid4, Verifier4, WriteResponse4,
};
use crate::xdr::{List, Opaque};

/// CB_RECALL_ANY: read delegations.
pub const RCA_TYPE_RDATA_DLG: u32 = 0;
/// CB_RECALL_ANY: write delegations.
pub const RCA_TYPE_WDATA_DLG: u32 = 1;
/// CB_RECALL_ANY: directory delegations.
pub const RCA_TYPE_DIR_DLG: u32 = 2;
/// CB_RECALL_ANY: file layouts.
pub const RCA_TYPE_FILE_LAYOUT: u32 = 3;
/// CB_RECALL_ANY: block layouts.
pub const RCA_TYPE_BLK_LAYOUT: u32 = 4;

xdr_code! {
    /// Kind of a directory notification: a number in a mask.
    pub struct NotifyType4("NOTIFY4_") {
        /// Attributes of an entry changed.
        CHANGE_CHILD_ATTRS = 0,
        /// Attributes of the directory changed.
        CHANGE_DIR_ATTRS = 1,
        /// An entry was removed.
        REMOVE_ENTRY = 2,
        /// An entry was added.
        ADD_ENTRY = 3,
        /// An entry was renamed.
        RENAME_ENTRY = 4,
        /// The cookie verifier changed.
        CHANGE_COOKIE_VERIFIER = 5,
    }
    /// Kind of a device notification: a number in a mask.
    pub struct NotifyDeviceidType4("NOTIFY_DEVICEID4_") {
        /// The device changed.
        CHANGE = 1,
        /// The device is gone.
        DELETE = 2,
    }
}

xdr_struct! {
    /// Arguments of CB_GETATTR.
    pub struct CbGetattrArgs<'a> {
        /// The delegated file.
        pub fh: Fh4<'a>,
        /// Attributes asked for: change and size.
        pub attr_request: Bitmap4,
    }
    /// Result of CB_GETATTR.
    pub struct CbGetattrOk<'a> {
        /// The attributes.
        pub obj_attributes: Fattr4<'a>,
    }
    /// Arguments of CB_RECALL.
    pub struct CbRecallArgs<'a> {
        /// The delegation.
        pub stateid: Stateid4,
        /// Whether the file will be truncated: its data need not be written.
        pub truncate: bool,
        /// The file.
        pub fh: Fh4<'a>,
    }
    /// Layout of a file that is recalled.
    pub struct LayoutrecallFile4<'a> {
        /// The file.
        pub fh: Fh4<'a>,
        /// Start.
        pub offset: u64,
        /// Length.
        pub length: u64,
        /// The layout.
        pub stateid: Stateid4,
    }
    /// Arguments of CB_LAYOUTRECALL.
    pub struct CbLayoutrecallArgs<'a> {
        /// Layout type.
        pub layout_type: Layouttype4,
        /// What it was for.
        pub iomode: Layoutiomode4,
        /// Whether the layout changed, so that writes must not go on.
        pub changed: bool,
        /// What is recalled.
        pub recall: Layoutrecall4<'a>,
    }
    /// An entry in a notification.
    pub struct NotifyEntry4<'a> {
        /// Name.
        pub file: Component4<'a>,
        /// Attributes.
        pub attrs: Fattr4<'a>,
    }
    /// The entry before one that was added.
    pub struct PrevEntry4<'a> {
        /// Entry.
        pub prev_entry: NotifyEntry4<'a>,
        /// Its cookie.
        pub prev_entry_cookie: u64,
    }
    /// An entry was removed.
    pub struct NotifyRemove4<'a> {
        /// Entry.
        pub old_entry: NotifyEntry4<'a>,
        /// Its cookie.
        pub old_entry_cookie: u64,
    }
    /// An entry was added.
    pub struct NotifyAdd4<'a> {
        /// Entry that a rename replaced.
        pub old_entry: Option<NotifyRemove4<'a>>,
        /// The new entry.
        pub new_entry: NotifyEntry4<'a>,
        /// Its cookie.
        pub new_entry_cookie: Option<u64>,
        /// The entry before it.
        pub prev_entry: Option<PrevEntry4<'a>>,
        /// Whether it is the last.
        pub last_entry: bool,
    }
    /// Attributes changed.
    pub struct NotifyAttr4<'a> {
        /// Entry.
        pub changed_entry: NotifyEntry4<'a>,
    }
    /// An entry was renamed.
    pub struct NotifyRename4<'a> {
        /// The old one.
        pub old_entry: NotifyRemove4<'a>,
        /// The new one.
        pub new_entry: NotifyAdd4<'a>,
    }
    /// The cookie verifier changed.
    pub struct NotifyVerifier4 {
        /// Old.
        pub old_cookieverf: Verifier4,
        /// New.
        pub new_cookieverf: Verifier4,
    }
    /// Notifications of some kinds.
    pub struct Notify4<'a> {
        /// Kinds.
        pub notify_mask: Bitmap4,
        /// Their content, one after the other.
        pub notify_vals: Opaque<'a>,
    }
    /// Arguments of CB_NOTIFY.
    pub struct CbNotifyArgs<'a> {
        /// The directory delegation.
        pub stateid: Stateid4,
        /// The directory.
        pub fh: Fh4<'a>,
        /// Changes.
        pub changes: List<'a, Notify4<'a>>,
    }
    /// Arguments of CB_PUSH_DELEG.
    pub struct CbPushDelegArgs<'a> {
        /// The file.
        pub fh: Fh4<'a>,
        /// The delegation.
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
        /// Its sequence number.
        pub sequenceid: u32,
        /// Its slot.
        pub slotid: u32,
    }
    /// Requests of a session that a callback refers to (RFC 8881 §2.10.6.3).
    pub struct ReferringCallList4<'a> {
        /// The session.
        pub sessionid: Sessionid4,
        /// Requests.
        pub referring_calls: List<'a, ReferringCall4>,
    }
    /// Arguments of CB_SEQUENCE.
    pub struct CbSequenceArgs<'a> {
        /// The session.
        pub sessionid: Sessionid4,
        /// The slot's sequence number.
        pub sequenceid: u32,
        /// The slot.
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
        /// The session.
        pub sessionid: Sessionid4,
        /// The slot's sequence number.
        pub sequenceid: u32,
        /// The slot.
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
        /// The file.
        pub fh: Fh4<'a>,
        /// Who may try again.
        pub lock_owner: LockOwner4<'a>,
    }
    /// A device is gone.
    pub struct NotifyDeviceidDelete4 {
        /// Layout type.
        pub layout_type: Layouttype4,
        /// The device.
        pub deviceid: Deviceid4,
    }
    /// A device changed.
    pub struct NotifyDeviceidChange4 {
        /// Layout type.
        pub layout_type: Layouttype4,
        /// The device.
        pub deviceid: Deviceid4,
        /// Whether at once.
        pub immediate: bool,
    }
    /// Arguments of CB_NOTIFY_DEVICEID.
    pub struct CbNotifyDeviceidArgs<'a> {
        /// Changes.
        pub changes: List<'a, Notify4<'a>>,
    }
    /// Arguments of CB_OFFLOAD.
    pub struct CbOffloadArgs<'a> {
        /// The destination.
        pub fh: Fh4<'a>,
        /// The copy.
        pub stateid: Stateid4,
        /// How it ended.
        pub offload_info: OffloadInfo4,
    }
}

xdr_union! {
    /// What CB_LAYOUTRECALL recalls.
    pub enum Layoutrecall4<'a> {
        /// A file's layout.
        1 => File(LayoutrecallFile4<'a>),
        /// All of a file system.
        2 => Fsid(Fsid4),
        /// All.
        3 => All,
    }
}

/// How an asynchronous copy ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(test, derive(arbitrary::Arbitrary))]
pub enum OffloadInfo4 {
    /// Well.
    Ok(WriteResponse4),
    /// With a status, after so many bytes.
    Failed(#[cfg_attr(test, arbitrary(with = super::types::arbitrary_error))] Nfsstat4, u64),
}

xdr_impl! { OffloadInfo4,
    |d| Ok(match d.get()? {
        Nfsstat4::OK => Self::Ok(d.get()?),
        status => Self::Failed(status, d.get()?),
    }),
    |this, e| match this {
        Self::Ok(response) => {
            e.put(&Nfsstat4::OK);
            e.put(response);
        }
        Self::Failed(status, bytes) => {
            e.put(status);
            e.put(bytes);
        }
    }
}
