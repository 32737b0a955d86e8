//! Operations on directories and names.

use super::{Bitmap4, ChangeInfo4, Component4, Fattr4, Secinfo4, Specdata4, Utf8, Verifier4};
use crate::xdr::{Chain, List};

xdr_union! {
    /// What CREATE makes.
    pub enum Createtype4<'a> {
        /// A directory.
        2 => Dir,
        /// A block device.
        3 => Blk(Specdata4),
        /// A character device.
        4 => Chr(Specdata4),
        /// A symbolic link and its content.
        5 => Lnk(Utf8<'a>),
        /// A socket.
        6 => Sock,
        /// A FIFO.
        7 => Fifo,
        ;
        /// Another file type: NFS4ERR_BADTYPE.
        Other
    }
}

xdr_struct! {
    /// Arguments of CREATE.
    pub struct CreateArgs<'a> {
        /// Type of the new object.
        pub objtype: Createtype4<'a>,
        /// Name of the new object.
        pub objname: Component4<'a>,
        /// Attributes of the new object.
        pub createattrs: Fattr4<'a>,
    }
    /// Result of CREATE.
    pub struct CreateOk {
        /// Change of the directory.
        pub cinfo: ChangeInfo4,
        /// Attributes that were set.
        pub attrset: Bitmap4,
    }
    /// Arguments of LINK.
    pub struct LinkArgs<'a> {
        /// New name of the saved filehandle in the current directory.
        pub newname: Component4<'a>,
    }
    /// Result of LINK.
    pub struct LinkOk {
        /// Change of the directory.
        pub cinfo: ChangeInfo4,
    }
    /// Arguments of LOOKUP.
    pub struct LookupArgs<'a> {
        /// Name in the current directory.
        pub objname: Component4<'a>,
    }
    /// Arguments of READDIR.
    pub struct ReaddirArgs {
        /// Cookie of the last entry seen; 0: from the start.
        pub cookie: u64,
        /// Verifier that came with the cookie.
        pub cookieverf: Verifier4,
        /// Bytes of names and cookies at most: a hint.
        pub dircount: u32,
        /// Bytes of the result at most.
        pub maxcount: u32,
        /// Attributes of each entry.
        pub attr_request: Bitmap4,
    }
    /// A directory entry.
    pub struct Entry4<'a> {
        /// Position after the entry, for the next READDIR.
        pub cookie: u64,
        /// Name of the entry.
        pub name: Component4<'a>,
        /// Attributes of the entry, those asked for.
        pub attrs: Fattr4<'a>,
    }
    /// Result of READDIR.
    pub struct ReaddirOk<'a> {
        /// Verifier for the cookies.
        pub cookieverf: Verifier4,
        /// Entries of the directory, in order of their cookies.
        pub entries: Chain<'a, Entry4<'a>>,
        /// Whether the last entry is the directory's last.
        pub eof: bool,
    }
    /// Arguments of REMOVE.
    pub struct RemoveArgs<'a> {
        /// Name in the current directory.
        pub target: Component4<'a>,
    }
    /// Result of REMOVE.
    pub struct RemoveOk {
        /// Change of the directory.
        pub cinfo: ChangeInfo4,
    }
    /// Arguments of RENAME.
    pub struct RenameArgs<'a> {
        /// Name in the saved directory.
        pub oldname: Component4<'a>,
        /// New name in the current directory.
        pub newname: Component4<'a>,
    }
    /// Result of RENAME.
    pub struct RenameOk {
        /// Change of the saved directory.
        pub source_cinfo: ChangeInfo4,
        /// Change of the current directory.
        pub target_cinfo: ChangeInfo4,
    }
    /// Arguments of SECINFO.
    pub struct SecinfoArgs<'a> {
        /// Name in the current directory.
        pub name: Component4<'a>,
    }
    /// Result of SECINFO and SECINFO_NO_NAME.
    pub struct SecinfoOk<'a> {
        /// Security flavours that are accepted, in order of preference.
        pub flavors: List<'a, Secinfo4<'a>>,
    }
}
