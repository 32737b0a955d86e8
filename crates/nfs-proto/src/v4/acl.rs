//! Access control lists.

use super::Utf8;
use crate::xdr::List;

/// `aclsupport`: ALLOW entries.
pub const ACL_SUPPORT_ALLOW: u32 = 1;
/// `aclsupport`: DENY entries.
pub const ACL_SUPPORT_DENY: u32 = 2;

xdr_code! {
    /// Type of an entry.
    pub struct Acetype4("ACE4_") {
        /// Allows.
        ACCESS_ALLOWED = 0,
        /// Denies.
        ACCESS_DENIED = 1,
        /// Logs.
        SYSTEM_AUDIT = 2,
        /// Raises an alarm.
        SYSTEM_ALARM = 3,
    }
}

/// Flag: files made in the directory get the entry.
pub const ACE_FILE_INHERIT: u32 = 0x01;
/// Flag: directories made in the directory get the entry.
pub const ACE_DIRECTORY_INHERIT: u32 = 0x02;
/// Flag: what inherits the entry does not pass it on.
pub const ACE_NO_PROPAGATE: u32 = 0x04;
/// Flag: only for inheritance.
pub const ACE_INHERIT_ONLY: u32 = 0x08;
/// Flag: `who` is a group.
pub const ACE_IDENTIFIER_GROUP: u32 = 0x40;
/// Flag: the entry was inherited (of `dacl` and `sacl` only).
pub const ACE_INHERITED: u32 = 0x80;

/// Flag of a whole `dacl` or `sacl`: takes part in automatic inheritance.
pub const ACL_AUTO_INHERIT: u32 = 1;
/// Flag of a whole `dacl` or `sacl`: automatic inheritance stops here.
pub const ACL_PROTECTED: u32 = 2;
/// Flag of a whole `dacl` or `sacl`: the server chose it.
pub const ACL_DEFAULTED: u32 = 4;

/// Mask: read data, list a directory.
pub const ACE_READ_DATA: u32 = 0x0000_0001;
/// Mask: write data, add a file.
pub const ACE_WRITE_DATA: u32 = 0x0000_0002;
/// Mask: append data, add a directory.
pub const ACE_APPEND_DATA: u32 = 0x0000_0004;
/// Mask: read named attributes.
pub const ACE_READ_NAMED_ATTRS: u32 = 0x0000_0008;
/// Mask: write named attributes.
pub const ACE_WRITE_NAMED_ATTRS: u32 = 0x0000_0010;
/// Mask: execute, traverse.
pub const ACE_EXECUTE: u32 = 0x0000_0020;
/// Mask: remove entries.
pub const ACE_DELETE_CHILD: u32 = 0x0000_0040;
/// Mask: read attributes.
pub const ACE_READ_ATTRIBUTES: u32 = 0x0000_0080;
/// Mask: write attributes.
pub const ACE_WRITE_ATTRIBUTES: u32 = 0x0000_0100;
/// Mask: set the retention.
pub const ACE_WRITE_RETENTION: u32 = 0x0000_0200;
/// Mask: hold the retention.
pub const ACE_WRITE_RETENTION_HOLD: u32 = 0x0000_0400;
/// Mask: remove the object.
pub const ACE_DELETE: u32 = 0x0001_0000;
/// Mask: read the ACL.
pub const ACE_READ_ACL: u32 = 0x0002_0000;
/// Mask: write the ACL.
pub const ACE_WRITE_ACL: u32 = 0x0004_0000;
/// Mask: set owner and group.
pub const ACE_WRITE_OWNER: u32 = 0x0008_0000;
/// Mask: synchronous local access.
pub const ACE_SYNCHRONIZE: u32 = 0x0010_0000;

xdr_struct! {
    /// Access control entry.
    pub struct Nfsace4<'a> {
        /// Allow, deny, audit or alarm.
        pub ace_type: Acetype4,
        /// `ACE_` flags.
        pub flag: u32,
        /// Rights, `ACE_` bits.
        pub access_mask: u32,
        /// User, group, or `OWNER@`, `GROUP@`, `EVERYONE@` …
        pub who: Utf8<'a>,
    }
}

xdr_struct! {
    /// `dacl` and `sacl`: entries, and flags of the whole (RFC 8881 §6.4.3.2).
    pub struct Nfsacl41<'a> {
        /// `ACL_` flags.
        pub flag: u32,
        /// Entries.
        pub aces: List<'a, Nfsace4<'a>>,
    }
}
