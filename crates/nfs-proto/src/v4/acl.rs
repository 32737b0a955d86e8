//! Access control lists.

use super::Utf8;

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

/// Flag: only for inheritance.
pub const ACE_INHERIT_ONLY: u32 = 0x08;
/// Flag: `who` is a group.
pub const ACE_IDENTIFIER_GROUP: u32 = 0x40;

/// Mask: read data, list a directory.
pub const ACE_READ_DATA: u32 = 0x0000_0001;
/// Mask: write data, add a file.
pub const ACE_WRITE_DATA: u32 = 0x0000_0002;
/// Mask: append data, add a directory.
pub const ACE_APPEND_DATA: u32 = 0x0000_0004;
/// Mask: execute, traverse.
pub const ACE_EXECUTE: u32 = 0x0000_0020;
/// Mask: remove entries.
pub const ACE_DELETE_CHILD: u32 = 0x0000_0040;
/// Mask: read attributes.
pub const ACE_READ_ATTRIBUTES: u32 = 0x0000_0080;
/// Mask: write attributes.
pub const ACE_WRITE_ATTRIBUTES: u32 = 0x0000_0100;
/// Mask: read the ACL.
pub const ACE_READ_ACL: u32 = 0x0002_0000;
/// Mask: write the ACL.
pub const ACE_WRITE_ACL: u32 = 0x0004_0000;
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
