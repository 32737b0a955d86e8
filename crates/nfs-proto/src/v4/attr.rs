//! File attributes: numbers, types, and all of them as one structure (RFC 7530 §5, RFC 8881 §5, RFC 7862 §12, RFC 8275,
//! RFC 8276, RFC 9754).

use super::{
    Bitmap4, Fattr4, Fh4, Fsid4, Ftype4, Nfsace4, Nfsacl41, Nfsstat4, Nfstime4, Pathname4, Settime4,
    Specdata4, Utf8,
};
use crate::xdr::{Decoder, Encode, Encoder, List, XdrError};

xdr_struct! {
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

/// The attributes, `number CONSTANT field: type`: all that a server without pNFS, migration or retention may have.
macro_rules! attributes {
    ($( $(#[$m:meta])* $n:literal $c:ident $f:ident: $t:ty; )*) => {
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
}

attributes! {
    /// Attributes that the server supports for the object.
    0 SUPPORTED_ATTRS supported_attrs: Bitmap4;
    /// File type.
    1 TYPE file_type: Ftype4;
    /// How filehandles expire; 0: never.
    2 FH_EXPIRE_TYPE fh_expire_type: u32;
    /// Changes with every change of the object.
    3 CHANGE change: u64;
    /// Size in bytes.
    4 SIZE size: u64;
    /// Whether hard links are supported.
    5 LINK_SUPPORT link_support: bool;
    /// Whether symbolic links are supported.
    6 SYMLINK_SUPPORT symlink_support: bool;
    /// Whether the object has named attributes.
    7 NAMED_ATTR named_attr: bool;
    /// File system.
    8 FSID fsid: Fsid4;
    /// Whether different filehandles are different objects.
    9 UNIQUE_HANDLES unique_handles: bool;
    /// Seconds of a lease.
    10 LEASE_TIME lease_time: u32;
    /// Why READDIR could not read the attributes.
    11 RDATTR_ERROR rdattr_error: Nfsstat4;
    /// Access control list.
    12 ACL acl: List<'a, Nfsace4<'a>>;
    /// Types of access control entries supported.
    13 ACLSUPPORT aclsupport: u32;
    /// Whether the object was archived.
    14 ARCHIVE archive: bool;
    /// Whether times can be set.
    15 CANSETTIME cansettime: bool;
    /// Whether names are compared without case.
    16 CASE_INSENSITIVE case_insensitive: bool;
    /// Whether names keep their case.
    17 CASE_PRESERVING case_preserving: bool;
    /// Whether only the privileged change owners.
    18 CHOWN_RESTRICTED chown_restricted: bool;
    /// Filehandle.
    19 FILEHANDLE filehandle: Fh4<'a>;
    /// File number within the file system.
    20 FILEID fileid: u64;
    /// Files that the caller may still create.
    21 FILES_AVAIL files_avail: u64;
    /// Files that may still be created.
    22 FILES_FREE files_free: u64;
    /// Files in all.
    23 FILES_TOTAL files_total: u64;
    /// Where the file system is.
    24 FS_LOCATIONS fs_locations: FsLocations4<'a>;
    /// Whether the object is hidden.
    25 HIDDEN hidden: bool;
    /// Whether all objects have the same attributes and answers.
    26 HOMOGENEOUS homogeneous: bool;
    /// Largest file.
    27 MAXFILESIZE maxfilesize: u64;
    /// Most links of an object.
    28 MAXLINK maxlink: u32;
    /// Longest name.
    29 MAXNAME maxname: u32;
    /// Largest READ.
    30 MAXREAD maxread: u64;
    /// Largest WRITE.
    31 MAXWRITE maxwrite: u64;
    /// MIME type.
    32 MIMETYPE mimetype: Utf8<'a>;
    /// Mode.
    33 MODE mode: u32;
    /// Whether too long names are errors.
    34 NO_TRUNC no_trunc: bool;
    /// Links.
    35 NUMLINKS numlinks: u32;
    /// Owner.
    36 OWNER owner: Utf8<'a>;
    /// Group.
    37 OWNER_GROUP owner_group: Utf8<'a>;
    /// Bytes to the hard quota.
    38 QUOTA_AVAIL_HARD quota_avail_hard: u64;
    /// Bytes to the soft quota.
    39 QUOTA_AVAIL_SOFT quota_avail_soft: u64;
    /// Bytes of the quota in use.
    40 QUOTA_USED quota_used: u64;
    /// Device numbers.
    41 RAWDEV rawdev: Specdata4;
    /// Bytes that the caller may still use.
    42 SPACE_AVAIL space_avail: u64;
    /// Bytes free.
    43 SPACE_FREE space_free: u64;
    /// Bytes in all.
    44 SPACE_TOTAL space_total: u64;
    /// Bytes that the object uses.
    45 SPACE_USED space_used: u64;
    /// Whether it is a system file.
    46 SYSTEM system: bool;
    /// Time of last access.
    47 TIME_ACCESS time_access: Nfstime4;
    /// Sets the time of last access.
    48 TIME_ACCESS_SET time_access_set: Settime4;
    /// Time of last backup.
    49 TIME_BACKUP time_backup: Nfstime4;
    /// Time of creation.
    50 TIME_CREATE time_create: Nfstime4;
    /// Smallest difference of times.
    51 TIME_DELTA time_delta: Nfstime4;
    /// Time of last change of metadata.
    52 TIME_METADATA time_metadata: Nfstime4;
    /// Time of last change of data.
    53 TIME_MODIFY time_modify: Nfstime4;
    /// Sets the time of last change of data.
    54 TIME_MODIFY_SET time_modify_set: Settime4;
    /// File number of the directory that is mounted on.
    55 MOUNTED_ON_FILEID mounted_on_fileid: u64;
    /// Allowing and denying entries, with flags of the whole.
    58 DACL dacl: Nfsacl41<'a>;
    /// Sets some bits of the mode.
    74 MODE_SET_MASKED mode_set_masked: ModeMasked4;
    /// Attributes that an exclusive create may set.
    75 SUPPATTR_EXCLCREAT suppattr_exclcreat: Bitmap4;
    /// Which names the file system takes.
    76 FS_CHARSET_CAP fs_charset_cap: u32;
    /// Alignment of CLONE.
    77 CLONE_BLKSIZE clone_blksize: u32;
    /// Bytes that removing the file would free.
    78 SPACE_FREED space_freed: u64;
    /// What the change attribute tells.
    79 CHANGE_ATTR_TYPE change_attr_type: ChangeAttrType4;
    /// Mode and umask of a new object (RFC 8275).
    81 MODE_UMASK mode_umask: ModeUmask4;
    /// Whether extended attributes are supported (RFC 8276).
    82 XATTR_SUPPORT xattr_support: bool;
    /// Whether the file is offline (RFC 9754).
    83 OFFLINE offline: bool;
    /// Access time from the holder of a delegation (RFC 9754).
    84 TIME_DELEG_ACCESS time_deleg_access: Nfstime4;
    /// Modification time from the holder of a delegation (RFC 9754).
    85 TIME_DELEG_MODIFY time_deleg_modify: Nfstime4;
    /// Arguments of OPEN that the server supports (RFC 9754).
    86 OPEN_ARGUMENTS open_arguments: OpenArguments4;
}

/// `fs_charset_cap`: names must be UTF-8.
pub const FS_CHARSET_CAP_ALLOWS_ONLY_UTF8: u32 = 2;

/// Attributes that only SETATTR, CREATE and OPEN take: never readable.
pub const WRITE_ONLY_ATTRS: Bitmap4 = Bitmap4::of(&[
    fattr4::TIME_ACCESS_SET,
    fattr4::TIME_MODIFY_SET,
    fattr4::MODE_SET_MASKED,
    fattr4::MODE_UMASK,
    fattr4::TIME_DELEG_ACCESS,
    fattr4::TIME_DELEG_MODIFY,
]);
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
    fn write_only_attributes_are_known() {
        assert!(WRITE_ONLY_ATTRS.is_subset(&KNOWN_ATTRS));
        assert_eq!(KNOWN_ATTRS.len(), 69);
        assert!(
            WRITE_ONLY_ATTRS.contains(fattr4::TIME_MODIFY_SET) && !WRITE_ONLY_ATTRS.contains(fattr4::SIZE)
        );
    }
}
