//! Extended attributes (RFC 8276).

use super::{ChangeInfo4, Component4};
use crate::xdr::{List, Opaque};

xdr_enum! {
    /// Whether SETXATTR creates.
    pub enum SetxattrOption4 {
        /// Creates or replaces.
        Either = 0,
        /// Only creates.
        Create = 1,
        /// Only replaces.
        Replace = 2,
    }
}

xdr_struct! {
    /// Arguments of GETXATTR.
    pub struct GetxattrArgs<'a> {
        /// Name of the entry.
        pub name: Component4<'a>,
    }
    /// Result of GETXATTR.
    pub struct GetxattrOk<'a> {
        /// Value of the extended attribute.
        pub value: Opaque<'a>,
    }
    /// Arguments of SETXATTR.
    pub struct SetxattrArgs<'a> {
        /// What happens if the attribute exists.
        pub option: SetxattrOption4,
        /// Name of the extended attribute.
        pub key: Component4<'a>,
        /// Value of the extended attribute.
        pub value: Opaque<'a>,
    }
    /// Result of SETXATTR.
    pub struct SetxattrOk {
        /// Change of the object.
        pub info: ChangeInfo4,
    }
    /// Arguments of LISTXATTRS.
    pub struct ListxattrsArgs {
        /// Where to go on; 0: from the start.
        pub cookie: u64,
        /// Bytes of the result at most.
        pub maxcount: u32,
    }
    /// Result of LISTXATTRS.
    pub struct ListxattrsOk<'a> {
        /// Where to go on.
        pub cookie: u64,
        /// Names of extended attributes.
        pub names: List<'a, Component4<'a>>,
        /// Whether these are the last.
        pub eof: bool,
    }
    /// Arguments of REMOVEXATTR.
    pub struct RemovexattrArgs<'a> {
        /// Name of the entry.
        pub name: Component4<'a>,
    }
    /// Result of REMOVEXATTR.
    pub struct RemovexattrOk {
        /// Change of the object.
        pub info: ChangeInfo4,
    }
}
