//! File attributes: numbers, types, and all of them as one structure (RFC 7530 §5, RFC 8881 §5, RFC 7862 §12, RFC 8275,
//! RFC 8276, RFC 9754).

use super::{
    Bitmap4, Fattr4, Fh4, Fsid4, Ftype4, Nfsace4, Nfsacl41, Nfsstat4, Nfstime4, Pathname4, Settime4,
    Specdata4, Utf8,
};
use crate::xdr::{Decoder, Encode, Encoder, List, Opaque, XdrError};

xdr_code! {
    /// Layout type of pNFS, in attributes; layouts themselves are not implemented.
    pub struct Layouttype4("LAYOUT4_") {
        /// Files.
        NFSV4_1_FILES = 1,
        /// Objects.
        OSD2_OBJECTS = 2,
        /// Blocks.
        BLOCK_VOLUME = 3,
        /// Flexible files (RFC 8435).
        FLEX_FILES = 4,
        /// SCSI (RFC 8154).
        SCSI = 5,
    }
}

xdr_struct! {
    /// A layout hint, by type.
    pub struct Layouthint4<'a> {
        /// Layout type.
        pub layout_type: Layouttype4,
        /// Encoded content; its form depends on the type.
        pub body: Opaque<'a>,
    }
    /// One place of a file system.
    pub struct FsLocation4<'a> {
        /// Host names or addresses of servers.
        pub server: List<'a, Utf8<'a>>,
        /// Path of the file system on that server.
        pub rootpath: Pathname4<'a>,
    }
    /// Where a file system is.
    pub struct FsLocations4<'a> {
        /// Path of the file system on this server.
        pub fs_root: Pathname4<'a>,
        /// Servers and paths that have the file system.
        pub locations: List<'a, FsLocation4<'a>>,
    }
    /// A server of [`FsLocationsItem4`].
    pub struct FsLocationsServer4<'a> {
        /// Age of its data.
        pub currency: i32,
        /// Flags, classes and ranks, as bytes (RFC 8881 §11.17.1).
        pub info: Opaque<'a>,
        /// Host name or address of the server.
        pub server: Utf8<'a>,
    }
    /// Replicas with the same path.
    pub struct FsLocationsItem4<'a> {
        /// Servers that share a root path.
        pub entries: List<'a, FsLocationsServer4<'a>>,
        /// Path of the file system on that server.
        pub rootpath: Pathname4<'a>,
    }
    /// Where a file system is, in detail (4.1).
    pub struct FsLocationsInfo4<'a> {
        /// Bits, see the constants of the operation.
        pub flags: u32,
        /// Seconds that it holds.
        pub valid_for: i32,
        /// Path of the file system on this server.
        pub fs_root: Pathname4<'a>,
        /// Locations with the same root path.
        pub items: List<'a, FsLocationsItem4<'a>>,
    }
    /// Policy of a file system's home.
    pub struct ChangePolicy4 {
        /// First part of the identifier.
        pub major: u64,
        /// Second part of the identifier.
        pub minor: u64,
    }
    /// Status of a file system.
    pub struct FsStatus4<'a> {
        /// Whether it is not here.
        pub absent: bool,
        /// Whether the file system is fixed, updated, versioned, writable or a referral.
        pub status_type: FsStatusType4,
        /// Where it came from.
        pub source: Utf8<'a>,
        /// Version tag of the current content.
        pub current: Utf8<'a>,
        /// Seconds since its data was current.
        pub age: i32,
        /// Version of the file system's content.
        pub version: Nfstime4,
    }
    /// When I/O should go through the metadata server, for one layout type.
    pub struct ThresholdItem4<'a> {
        /// Layout type.
        pub layout_type: Layouttype4,
        /// Bitmap of thresholds.
        pub hintset: Bitmap4,
        /// Values of the thresholds, encoded.
        pub hintlist: Opaque<'a>,
    }
    /// Retention as it is.
    pub struct RetentionGet4 {
        /// Retention period in seconds; all ones: unlimited.
        pub duration: u64,
        /// Start of the retention period.
        pub begin_time: Option<Nfstime4>,
    }
    /// Retention to be set.
    pub struct RetentionSet4 {
        /// Starts the retention period.
        pub enable: bool,
        /// Retention period in seconds.
        pub duration: Option<u64>,
    }
    /// Some bits of a mode.
    pub struct ModeMasked4 {
        /// Values of the bits to set.
        pub value_to_set: u32,
        /// Bits to set.
        pub mask_bits: u32,
    }
    /// Mode of a new object and the umask to apply to it (RFC 8275).
    pub struct ModeUmask4 {
        /// Permission bits.
        pub mode: u32,
        /// Mask of permission bits to clear.
        pub umask: u32,
    }
    /// Security label.
    pub struct SecLabel4<'a> {
        /// Number of the format of the label.
        pub lfs: u32,
        /// Number of the label's policy.
        pub pi: u32,
        /// The label itself, opaque.
        pub data: Opaque<'a>,
    }
    /// Arguments of OPEN that the server supports (RFC 9754), each as a set of bit numbers.
    pub struct OpenArguments4 {
        /// `share_access` values that OPEN supports.
        pub share_access: Bitmap4,
        /// `share_deny` values that OPEN supports.
        pub share_deny: Bitmap4,
        /// `WANT_` flags of `share_access`.
        pub share_access_want: Bitmap4,
        /// Claim types that OPEN supports.
        pub open_claim: Bitmap4,
        /// Create modes that OPEN supports.
        pub create_mode: Bitmap4,
    }
}

xdr_enum! {
    /// Kind of a file system.
    pub enum FsStatusType4 {
        /// Never changes.
        Fixed = 1,
        /// Changes by updates.
        Updated = 2,
        /// Changes by versions.
        Versioned = 3,
        /// Can be written.
        Writable = 4,
        /// Is elsewhere.
        Referral = 5,
    }
    /// What the change attribute tells.
    pub enum ChangeAttrType4 {
        /// Rises.
        MonotonicIncr = 0,
        /// Counts changes.
        VersionCounter = 1,
        /// Counts changes, not with pNFS.
        VersionCounterNoPnfs = 2,
        /// Is the metadata time.
        TimeMetadata = 3,
        /// Nothing.
        Undefined = 4,
    }
}

/// The attributes: `number CONSTANT field: type, access`; `rw` can be read and set, `r` only read, `w` only set.
macro_rules! attributes {
    ($( $(#[$m:meta])* $n:literal $c:ident $f:ident: $t:ty, $access:ident; )*) => {
        /// Attribute numbers (`FATTR4_`).
        pub mod fattr4 {
            $( $(#[$m])* pub const $c: u32 = $n; )*
        }

        /// Values of attributes, present or not.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub struct Attributes<'a> { $( $(#[$m])* pub $f: Option<$t> ),* }

        /// Every attribute that this library knows.
        pub const KNOWN_ATTRS: Bitmap4 = Bitmap4::of(&[$($n),*]);
        /// Attributes that only SETATTR, CREATE and OPEN take: never readable.
        pub const WRITE_ONLY_ATTRS: Bitmap4 = Bitmap4::EMPTY $(.union(&attributes!(@w $access $n)))*;
        /// Attributes that can only be read: setting one is NFS4ERR_INVAL.
        pub const READ_ONLY_ATTRS: Bitmap4 = Bitmap4::EMPTY $(.union(&attributes!(@r $access $n)))*;
        /// Attributes that can be read and set.
        pub const READ_WRITE_ATTRS: Bitmap4 = Bitmap4::EMPTY $(.union(&attributes!(@rw $access $n)))*;

        impl<'a> Attributes<'a> {
            /// Which are present.
            #[inline]
            pub fn mask(&self) -> Bitmap4 {
                let mut mask = Bitmap4::EMPTY;
                $( if self.$f.is_some() { mask.set($n); } )*
                mask
            }

            /// Decodes all that `attrs` contains.
            pub fn decode(attrs: &Fattr4<'a>) -> Result<Self, AttrError> {
                if !attrs.attrmask.is_subset(&KNOWN_ATTRS) {
                    return Err(AttrError::NotSupported);
                }
                let mut d = Decoder::new(attrs.attr_vals.0);
                let mut out = Self::default();
                $( if attrs.attrmask.contains($n) { out.$f = Some(d.get()?); } )*
                if d.rest().is_empty() { Ok(out) } else { Err(AttrError::LeftOver) }
            }

            /// Encodes mask and values (a [`Fattr4`]) of those that are both present and `requested`; returns which.
            pub fn encode_masked(&self, e: &mut Encoder, requested: Bitmap4) -> Bitmap4 {
                let mask = requested & self.mask();
                e.put(&mask);
                let start = e.mark();
                e.put(&0u32);
                $( if mask.contains($n) && let Some(value) = &self.$f { e.put(value); } )*
                e.patch_u32(start, (e.len_since(start) - 4) as u32);
                mask
            }
        }
    };
    (@w w $n:literal) => { Bitmap4::of(&[$n]) };
    (@w $other:ident $n:literal) => { Bitmap4::EMPTY };
    (@r r $n:literal) => { Bitmap4::of(&[$n]) };
    (@r $other:ident $n:literal) => { Bitmap4::EMPTY };
    (@rw rw $n:literal) => { Bitmap4::of(&[$n]) };
    (@rw $other:ident $n:literal) => { Bitmap4::EMPTY };
}

attributes! {
    /// Attributes that the server supports for the object.
    0 SUPPORTED_ATTRS supported_attrs: Bitmap4, r;
    /// File type.
    1 TYPE file_type: Ftype4, r;
    /// How filehandles expire; 0: never.
    2 FH_EXPIRE_TYPE fh_expire_type: u32, r;
    /// Changes with every change of the object.
    3 CHANGE change: u64, r;
    /// Size in bytes.
    4 SIZE size: u64, rw;
    /// Whether hard links are supported.
    5 LINK_SUPPORT link_support: bool, r;
    /// Whether symbolic links are supported.
    6 SYMLINK_SUPPORT symlink_support: bool, r;
    /// Whether the object has named attributes.
    7 NAMED_ATTR named_attr: bool, r;
    /// File system.
    8 FSID fsid: Fsid4, r;
    /// Whether different filehandles are different objects.
    9 UNIQUE_HANDLES unique_handles: bool, r;
    /// Seconds of a lease.
    10 LEASE_TIME lease_time: u32, r;
    /// Why READDIR could not read the attributes.
    11 RDATTR_ERROR rdattr_error: Nfsstat4, r;
    /// Access control list.
    12 ACL acl: List<'a, Nfsace4<'a>>, rw;
    /// Types of access control entries supported.
    13 ACLSUPPORT aclsupport: u32, r;
    /// Whether the object was archived.
    14 ARCHIVE archive: bool, rw;
    /// Whether times can be set.
    15 CANSETTIME cansettime: bool, r;
    /// Whether names are compared without case.
    16 CASE_INSENSITIVE case_insensitive: bool, r;
    /// Whether names keep their case.
    17 CASE_PRESERVING case_preserving: bool, r;
    /// Whether only the privileged change owners.
    18 CHOWN_RESTRICTED chown_restricted: bool, r;
    /// Filehandle.
    19 FILEHANDLE filehandle: Fh4<'a>, r;
    /// File number within the file system.
    20 FILEID fileid: u64, r;
    /// Files that the caller may still create.
    21 FILES_AVAIL files_avail: u64, r;
    /// Files that may still be created.
    22 FILES_FREE files_free: u64, r;
    /// Files in all.
    23 FILES_TOTAL files_total: u64, r;
    /// Where the file system is.
    24 FS_LOCATIONS fs_locations: FsLocations4<'a>, r;
    /// Whether the object is hidden.
    25 HIDDEN hidden: bool, rw;
    /// Whether all objects have the same attributes and answers.
    26 HOMOGENEOUS homogeneous: bool, r;
    /// Largest file.
    27 MAXFILESIZE maxfilesize: u64, r;
    /// Most links of an object.
    28 MAXLINK maxlink: u32, r;
    /// Longest name.
    29 MAXNAME maxname: u32, r;
    /// Largest READ.
    30 MAXREAD maxread: u64, r;
    /// Largest WRITE.
    31 MAXWRITE maxwrite: u64, r;
    /// MIME type.
    32 MIMETYPE mimetype: Utf8<'a>, rw;
    /// Mode.
    33 MODE mode: u32, rw;
    /// Whether too long names are errors.
    34 NO_TRUNC no_trunc: bool, r;
    /// Links.
    35 NUMLINKS numlinks: u32, r;
    /// Owner.
    36 OWNER owner: Utf8<'a>, rw;
    /// Group.
    37 OWNER_GROUP owner_group: Utf8<'a>, rw;
    /// Bytes to the hard quota.
    38 QUOTA_AVAIL_HARD quota_avail_hard: u64, r;
    /// Bytes to the soft quota.
    39 QUOTA_AVAIL_SOFT quota_avail_soft: u64, r;
    /// Bytes of the quota in use.
    40 QUOTA_USED quota_used: u64, r;
    /// Device numbers.
    41 RAWDEV rawdev: Specdata4, r;
    /// Bytes that the caller may still use.
    42 SPACE_AVAIL space_avail: u64, r;
    /// Bytes free.
    43 SPACE_FREE space_free: u64, r;
    /// Bytes in all.
    44 SPACE_TOTAL space_total: u64, r;
    /// Bytes that the object uses.
    45 SPACE_USED space_used: u64, r;
    /// Whether it is a system file.
    46 SYSTEM system: bool, rw;
    /// Time of last access.
    47 TIME_ACCESS time_access: Nfstime4, r;
    /// Sets the time of last access.
    48 TIME_ACCESS_SET time_access_set: Settime4, w;
    /// Time of last backup.
    49 TIME_BACKUP time_backup: Nfstime4, rw;
    /// Time of creation.
    50 TIME_CREATE time_create: Nfstime4, rw;
    /// Smallest difference of times.
    51 TIME_DELTA time_delta: Nfstime4, r;
    /// Time of last change of metadata.
    52 TIME_METADATA time_metadata: Nfstime4, r;
    /// Time of last change of data.
    53 TIME_MODIFY time_modify: Nfstime4, r;
    /// Sets the time of last change of data.
    54 TIME_MODIFY_SET time_modify_set: Settime4, w;
    /// File number of the directory that is mounted on.
    55 MOUNTED_ON_FILEID mounted_on_fileid: u64, r;
    /// How long notifications about a directory may wait.
    56 DIR_NOTIF_DELAY dir_notif_delay: Nfstime4, r;
    /// How long notifications about entries may wait.
    57 DIRENT_NOTIF_DELAY dirent_notif_delay: Nfstime4, r;
    /// Discretionary access control list.
    58 DACL dacl: Nfsacl41<'a>, rw;
    /// Audit and alarm list.
    59 SACL sacl: Nfsacl41<'a>, rw;
    /// Policy of the file system's home.
    60 CHANGE_POLICY change_policy: ChangePolicy4, r;
    /// Status of the file system.
    61 FS_STATUS fs_status: FsStatus4<'a>, r;
    /// Layout types of the file system.
    62 FS_LAYOUT_TYPES fs_layout_types: List<'a, Layouttype4>, r;
    /// Hint for layouts of a new file.
    63 LAYOUT_HINT layout_hint: Layouthint4<'a>, w;
    /// Layout types of the file.
    64 LAYOUT_TYPES layout_types: List<'a, Layouttype4>, r;
    /// Best block size for layouts.
    65 LAYOUT_BLKSIZE layout_blksize: u32, r;
    /// Best alignment for layouts.
    66 LAYOUT_ALIGNMENT layout_alignment: u32, r;
    /// Where the file system is, in detail.
    67 FS_LOCATIONS_INFO fs_locations_info: FsLocationsInfo4<'a>, r;
    /// When I/O should go through the metadata server.
    68 MDSTHRESHOLD mdsthreshold: List<'a, ThresholdItem4<'a>>, r;
    /// Retention.
    69 RETENTION_GET retention_get: RetentionGet4, r;
    /// Sets retention.
    70 RETENTION_SET retention_set: RetentionSet4, w;
    /// Event-based retention.
    71 RETENTEVT_GET retentevt_get: RetentionGet4, r;
    /// Sets event-based retention.
    72 RETENTEVT_SET retentevt_set: RetentionSet4, w;
    /// Retention holds.
    73 RETENTION_HOLD retention_hold: u64, rw;
    /// Sets some bits of the mode.
    74 MODE_SET_MASKED mode_set_masked: ModeMasked4, w;
    /// Attributes that an exclusive create may set.
    75 SUPPATTR_EXCLCREAT suppattr_exclcreat: Bitmap4, r;
    /// Which names the file system takes.
    76 FS_CHARSET_CAP fs_charset_cap: u32, r;
    /// Alignment of CLONE.
    77 CLONE_BLKSIZE clone_blksize: u32, r;
    /// Bytes that removing the file would free.
    78 SPACE_FREED space_freed: u64, r;
    /// What the change attribute tells.
    79 CHANGE_ATTR_TYPE change_attr_type: ChangeAttrType4, r;
    /// Security label.
    80 SEC_LABEL sec_label: SecLabel4<'a>, rw;
    /// Mode and umask of a new object (RFC 8275).
    81 MODE_UMASK mode_umask: ModeUmask4, w;
    /// Whether extended attributes are supported (RFC 8276).
    82 XATTR_SUPPORT xattr_support: bool, r;
    /// Whether the file is offline (RFC 9754).
    83 OFFLINE offline: bool, r;
    /// Access time from the holder of a delegation (RFC 9754).
    84 TIME_DELEG_ACCESS time_deleg_access: Nfstime4, w;
    /// Modification time from the holder of a delegation (RFC 9754).
    85 TIME_DELEG_MODIFY time_deleg_modify: Nfstime4, w;
    /// Arguments of OPEN that the server supports (RFC 9754).
    86 OPEN_ARGUMENTS open_arguments: OpenArguments4, r;
}

/// `fs_charset_cap`: names may be other than UTF-8.
pub const FS_CHARSET_CAP_CONTAINS_NON_UTF8: u32 = 1;
/// `fs_charset_cap`: names must be UTF-8.
pub const FS_CHARSET_CAP_ALLOWS_ONLY_UTF8: u32 = 2;

/// Attributes that every server has (RFC 7530 §5.6).
pub const REQUIRED_ATTRS: Bitmap4 = Bitmap4::of(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 19]);
/// Attributes that minor version 0 knows.
pub const V40_ATTRS: Bitmap4 = first_attrs(56);
/// Attributes that minor version 1 knows.
pub const V41_ATTRS: Bitmap4 = first_attrs(77);

const fn first_attrs(n: u32) -> Bitmap4 {
    let mut set = Bitmap4::EMPTY;
    let mut bit = 0;
    while bit < n {
        set = set.with(bit);
        bit += 1;
    }
    set
}

/// Why attributes do not decode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AttrError {
    /// There is an attribute that this library does not know.
    #[error("unknown attribute")]
    NotSupported,
    /// A value does not decode.
    #[error("attribute value: {0}")]
    Xdr(#[from] XdrError),
    /// Bytes follow the last value.
    #[error("bytes follow the last attribute")]
    LeftOver,
}

impl AttrError {
    /// Status that the operation is answered with.
    pub fn status(self) -> Nfsstat4 {
        match self {
            Self::NotSupported => Nfsstat4::ATTRNOTSUPP,
            Self::Xdr(_) | Self::LeftOver => Nfsstat4::BADXDR,
        }
    }
}

/// As a [`Fattr4`]: the mask of those present, and their values.
impl Encode for Attributes<'_> {
    fn encode(&self, e: &mut Encoder) {
        self.encode_masked(e, KNOWN_ATTRS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(attrs: &Attributes<'_>) -> Vec<u8> {
        let mut e = Encoder::new();
        e.put(attrs);
        e.buffer().to_vec()
    }

    #[test]
    fn values_are_in_order_of_number() {
        let attrs = Attributes {
            mode: Some(0o644),
            size: Some(5),
            time_modify_set: Some(Settime4::ServerTime),
            ..Default::default()
        };
        let bytes = encoded(&attrs);
        let words: Vec<u32> =
            bytes.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
        assert_eq!(words, [2, 1 << 4, 1 << 1 | 1 << 22, 16, 0, 5, 0o644, 0]);
        assert_eq!(Attributes::decode(&Decoder::new(&bytes).get().unwrap()), Ok(attrs));
    }

    #[test]
    fn only_requested_and_present_attributes_are_written() {
        let attrs = Attributes { change: Some(1), fileid: Some(2), ..Default::default() };
        let mut e = Encoder::new();
        let mask = attrs.encode_masked(&mut e, Bitmap4::of(&[fattr4::FILEID, fattr4::OWNER]));
        assert_eq!(mask, Bitmap4::of(&[fattr4::FILEID]));
        let back = Attributes::decode(&Decoder::new(e.buffer()).get().unwrap()).unwrap();
        assert_eq!(back, Attributes { fileid: Some(2), ..Default::default() });
    }

    #[test]
    fn bad_attributes_have_their_status() {
        let decode = |mask: &[u32], vals: &'static [u8]| {
            Attributes::decode(&Fattr4 { attrmask: Bitmap4::of(mask), attr_vals: vals.into() })
                .map_err(AttrError::status)
        };
        assert_eq!(decode(&[4, 90], &[0; 8]), Err(Nfsstat4::ATTRNOTSUPP));
        assert_eq!(decode(&[4, 4000], &[0; 8]), Err(Nfsstat4::ATTRNOTSUPP));
        assert_eq!(decode(&[4], &[0; 7]), Err(Nfsstat4::BADXDR));
        assert_eq!(decode(&[4], &[0; 12]), Err(Nfsstat4::BADXDR));
        assert_eq!(decode(&[14], &[0, 0, 0, 2]), Err(Nfsstat4::BADXDR));
        assert_eq!(decode(&[4], &[0; 8]).unwrap().size, Some(0));
    }

    #[test]
    fn access_sets_partition_the_known() {
        assert_eq!(READ_ONLY_ATTRS | WRITE_ONLY_ATTRS | READ_WRITE_ATTRS, KNOWN_ATTRS);
        assert_eq!(
            READ_ONLY_ATTRS.len() + WRITE_ONLY_ATTRS.len() + READ_WRITE_ATTRS.len(),
            KNOWN_ATTRS.len()
        );
        assert_eq!(KNOWN_ATTRS.len(), 87);
        assert!(
            WRITE_ONLY_ATTRS.contains(fattr4::TIME_MODIFY_SET) && READ_WRITE_ATTRS.contains(fattr4::SIZE)
        );
    }
}
