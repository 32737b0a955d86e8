//! Operations on objects: data, attributes, filehandles.

use super::{Bitmap4, Fattr4, Fh4, Nfsstat4, StableHow4, Stateid4, Status, Utf8, Verifier4};
use crate::xdr::{Bulk, Opaque};

/// ACCESS: read a file or directory.
pub const ACCESS_READ: u32 = 0x0001;
/// ACCESS: look up a name.
pub const ACCESS_LOOKUP: u32 = 0x0002;
/// ACCESS: change data or entries.
pub const ACCESS_MODIFY: u32 = 0x0004;
/// ACCESS: append data or add entries.
pub const ACCESS_EXTEND: u32 = 0x0008;
/// ACCESS: remove an entry.
pub const ACCESS_DELETE: u32 = 0x0010;
/// ACCESS: execute a file.
pub const ACCESS_EXECUTE: u32 = 0x0020;
/// ACCESS: read extended attributes (RFC 8276).
pub const ACCESS_XAREAD: u32 = 0x0040;
/// ACCESS: change extended attributes.
pub const ACCESS_XAWRITE: u32 = 0x0080;
/// ACCESS: list extended attributes.
pub const ACCESS_XALIST: u32 = 0x0100;

xdr_struct! {
    /// Arguments of ACCESS.
    pub struct AccessArgs {
        /// `ACCESS` bits to check.
        pub access: u32,
    }
    /// Result of ACCESS.
    pub struct AccessOk {
        /// Rights that the server can tell about.
        pub supported: u32,
        /// Rights of these that the caller has.
        pub access: u32,
    }
    /// Arguments of COMMIT.
    pub struct CommitArgs {
        /// Start of the range.
        pub offset: u64,
        /// Its length; 0: to the end.
        pub count: u32,
    }
    /// Result of COMMIT.
    pub struct CommitOk {
        /// Changes where the server lost unstable data.
        pub writeverf: Verifier4,
    }
    /// Arguments of GETATTR.
    pub struct GetattrArgs {
        /// Attributes asked for.
        pub attr_request: Bitmap4,
    }
    /// Result of GETATTR.
    pub struct GetattrOk<'a> {
        /// Values of the attributes asked for.
        pub obj_attributes: Fattr4<'a>,
    }
    /// Result of GETFH.
    pub struct GetfhOk<'a> {
        /// Becomes the current filehandle.
        pub object: Fh4<'a>,
    }
    /// Arguments of VERIFY and NVERIFY.
    pub struct VerifyArgs<'a> {
        /// Attributes to compare with.
        pub obj_attributes: Fattr4<'a>,
    }
    /// Arguments of OPENATTR.
    pub struct OpenattrArgs {
        /// Whether to create the named attribute directory.
        pub createdir: bool,
    }
    /// Arguments of PUTFH.
    pub struct PutfhArgs<'a> {
        /// The new current filehandle.
        pub object: Fh4<'a>,
    }
    /// Arguments of READ.
    pub struct ReadArgs {
        /// Open, lock, delegation or special stateid.
        pub stateid: Stateid4,
        /// Offset of the first byte.
        pub offset: u64,
        /// Maximum number of bytes to return.
        pub count: u32,
    }
    /// Result of READ.
    pub struct ReadOk<'a> {
        /// Whether the data reaches the end of the file.
        pub eof: bool,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// Result of READLINK.
    pub struct ReadlinkOk<'a> {
        /// Content of the symbolic link.
        pub link: Utf8<'a>,
    }
    /// Arguments of SETATTR.
    pub struct SetattrArgs<'a> {
        /// Open, lock, delegation or special stateid, for the size.
        pub stateid: Stateid4,
        /// Attributes to set.
        pub obj_attributes: Fattr4<'a>,
    }
    /// Result of SETATTR, with a body whatever the status.
    pub struct SetattrRes {
        /// Status of the last operation executed.
        pub status: Nfsstat4,
        /// Attributes that were set.
        pub attrsset: Bitmap4,
    }
    /// Arguments of WRITE.
    pub struct WriteArgs<'a> {
        /// Open, lock, delegation or special stateid.
        pub stateid: Stateid4,
        /// Offset of the first byte.
        pub offset: u64,
        /// Stability asked for.
        pub stable: StableHow4,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// Result of WRITE.
    pub struct WriteOk {
        /// Bytes written.
        pub count: u32,
        /// Stability reached.
        pub committed: StableHow4,
        /// Changes where the server lost unstable data.
        pub writeverf: Verifier4,
    }
    /// RPCSEC_GSS in a SECINFO result (RFC 2203).
    pub struct RpcsecGssInfo<'a> {
        /// OID of the GSS mechanism.
        pub oid: Opaque<'a>,
        /// Quality of protection of RPCSEC_GSS.
        pub qop: u32,
        /// Integrity, privacy or neither.
        pub service: RpcGssSvc,
    }
}

xdr_enum! {
    /// Service of RPCSEC_GSS.
    pub enum RpcGssSvc {
        /// Authentication only.
        None = 1,
        /// Integrity.
        Integrity = 2,
        /// Privacy.
        Privacy = 3,
    }
    /// What SECINFO_NO_NAME asks about; its only argument.
    pub enum SecinfoStyle4 {
        /// The current filehandle.
        CurrentFh = 0,
        /// Its parent.
        Parent = 1,
    }
}

xdr_union! {
    /// One security flavour of SECINFO.
    pub enum Secinfo4<'a> {
        /// RPCSEC_GSS with its mechanism.
        6 => RpcsecGss(RpcsecGssInfo<'a>),
        ;
        /// Any other flavour.
        Flavor
    }
}

impl Status for SetattrRes {
    fn status(&self) -> Nfsstat4 {
        self.status
    }
}
