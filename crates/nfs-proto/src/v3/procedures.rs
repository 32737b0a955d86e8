//! Arguments and results of the procedures (RFC 1813 §3.3), in their order.
//!
//! Names are the RFC's without `3` and `res`: `READ3args` is [`ReadArgs`], `READ3resok` [`ReadOk`], `READ3res` [`ReadRes`].
//! A failure that carries but attributes (`…resfail`) is those attributes: [`PostOpAttr`] or [`WccData`].

use super::Res;
use super::data::*;
use crate::xdr::{Bulk, Chain};

xdr_struct! {
    /// Arguments of GETATTR.
    pub struct GetattrArgs<'a> {
        /// The object.
        pub object: Fh3<'a>,
    }
    /// Result of GETATTR.
    pub struct GetattrOk {
        /// Its attributes.
        pub obj_attributes: Fattr3,
    }
    /// Arguments of SETATTR.
    pub struct SetattrArgs<'a> {
        /// The object.
        pub object: Fh3<'a>,
        /// What to set.
        pub new_attributes: Sattr3,
        /// The object's ctime, if it is to be checked first.
        pub guard: Option<Nfstime3>,
    }
    /// Result of SETATTR.
    pub struct SetattrOk {
        /// The object's attributes.
        pub obj_wcc: WccData,
    }
    /// Arguments of LOOKUP.
    pub struct LookupArgs<'a> {
        /// Where to look for what.
        pub what: DirOpArgs<'a>,
    }
    /// Result of LOOKUP.
    pub struct LookupOk<'a> {
        /// The object found.
        pub object: Fh3<'a>,
        /// Its attributes.
        pub obj_attributes: PostOpAttr,
        /// The directory's attributes.
        pub dir_attributes: PostOpAttr,
    }
    /// Arguments of ACCESS.
    pub struct AccessArgs<'a> {
        /// The object.
        pub object: Fh3<'a>,
        /// Bits of [`access`](super::access) to check.
        pub access: u32,
    }
    /// Result of ACCESS.
    pub struct AccessOk {
        /// The object's attributes.
        pub obj_attributes: PostOpAttr,
        /// Bits that are allowed.
        pub access: u32,
    }
    /// Arguments of READLINK.
    pub struct ReadlinkArgs<'a> {
        /// The symbolic link.
        pub symlink: Fh3<'a>,
    }
    /// Result of READLINK.
    pub struct ReadlinkOk<'a> {
        /// Its attributes.
        pub symlink_attributes: PostOpAttr,
        /// Its content.
        pub data: Nfspath3<'a>,
    }
    /// Arguments of READ.
    pub struct ReadArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// First byte.
        pub offset: u64,
        /// Number of bytes.
        pub count: u32,
    }
    /// Result of READ.
    pub struct ReadOk<'a> {
        /// The file's attributes.
        pub file_attributes: PostOpAttr,
        /// Number of bytes read.
        pub count: u32,
        /// Whether the read reached the end of the file.
        pub eof: bool,
        /// The bytes.
        pub data: Bulk<'a>,
    }
    /// Arguments of WRITE.
    pub struct WriteArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// First byte.
        pub offset: u64,
        /// Number of bytes.
        pub count: u32,
        /// How stable the data must be.
        pub stable: StableHow,
        /// The bytes.
        pub data: Bulk<'a>,
    }
    /// Result of WRITE.
    pub struct WriteOk {
        /// The file's attributes.
        pub file_wcc: WccData,
        /// Number of bytes written.
        pub count: u32,
        /// How stable they are.
        pub committed: StableHow,
        /// Instance of the server.
        pub verf: Writeverf3,
    }
    /// Arguments of CREATE.
    pub struct CreateArgs<'a> {
        /// Where.
        pub where_: DirOpArgs<'a>,
        /// How.
        pub how: CreateHow,
    }
    /// Result of CREATE, MKDIR, SYMLINK and MKNOD.
    pub struct CreateOk<'a> {
        /// The new object.
        pub obj: PostOpFh3<'a>,
        /// Its attributes.
        pub obj_attributes: PostOpAttr,
        /// The directory's attributes.
        pub dir_wcc: WccData,
    }
    /// Arguments of MKDIR.
    pub struct MkdirArgs<'a> {
        /// Where.
        pub where_: DirOpArgs<'a>,
        /// Initial attributes.
        pub attributes: Sattr3,
    }
    /// Content and attributes of a new symbolic link.
    pub struct SymlinkData<'a> {
        /// Initial attributes.
        pub symlink_attributes: Sattr3,
        /// Content.
        pub symlink_data: Nfspath3<'a>,
    }
    /// Arguments of SYMLINK.
    pub struct SymlinkArgs<'a> {
        /// Where.
        pub where_: DirOpArgs<'a>,
        /// What.
        pub symlink: SymlinkData<'a>,
    }
    /// A new device.
    pub struct DeviceData {
        /// Initial attributes.
        pub dev_attributes: Sattr3,
        /// Device numbers.
        pub spec: Specdata3,
    }
    /// Arguments of MKNOD.
    pub struct MknodArgs<'a> {
        /// Where.
        pub where_: DirOpArgs<'a>,
        /// What.
        pub what: MknodData,
    }
    /// Arguments of REMOVE and RMDIR.
    pub struct RemoveArgs<'a> {
        /// What.
        pub object: DirOpArgs<'a>,
    }
    /// Result of REMOVE and RMDIR.
    pub struct RemoveOk {
        /// The directory's attributes.
        pub dir_wcc: WccData,
    }
    /// Arguments of RENAME.
    pub struct RenameArgs<'a> {
        /// The old name.
        pub from: DirOpArgs<'a>,
        /// The new name.
        pub to: DirOpArgs<'a>,
    }
    /// Result of RENAME, and what its failure tells.
    pub struct RenameWcc {
        /// Attributes of the old directory.
        pub fromdir_wcc: WccData,
        /// Attributes of the new directory.
        pub todir_wcc: WccData,
    }
    /// Arguments of LINK.
    pub struct LinkArgs<'a> {
        /// The object.
        pub file: Fh3<'a>,
        /// Its new name.
        pub link: DirOpArgs<'a>,
    }
    /// Result of LINK, and what its failure tells.
    pub struct LinkWcc {
        /// Attributes of the object.
        pub file_attributes: PostOpAttr,
        /// Attributes of the directory.
        pub linkdir_wcc: WccData,
    }
    /// Arguments of READDIR.
    pub struct ReaddirArgs<'a> {
        /// The directory.
        pub dir: Fh3<'a>,
        /// Cookie of the last entry seen, 0 at first.
        pub cookie: u64,
        /// Verifier that came with it, 0 at first.
        pub cookieverf: Cookieverf3,
        /// Most bytes of the result.
        pub count: u32,
    }
    /// An entry of a directory.
    pub struct Entry<'a> {
        /// Number of the object.
        pub fileid: u64,
        /// Name.
        pub name: Filename3<'a>,
        /// Where to go on after this entry.
        pub cookie: u64,
    }
    /// Result of READDIR.
    pub struct ReaddirOk<'a> {
        /// The directory's attributes.
        pub dir_attributes: PostOpAttr,
        /// Verifier of the cookies.
        pub cookieverf: Cookieverf3,
        /// The entries.
        pub entries: Chain<'a, Entry<'a>>,
        /// Whether the last one is the directory's last.
        pub eof: bool,
    }
    /// Arguments of READDIRPLUS.
    pub struct ReaddirplusArgs<'a> {
        /// The directory.
        pub dir: Fh3<'a>,
        /// Cookie of the last entry seen, 0 at first.
        pub cookie: u64,
        /// Verifier that came with it, 0 at first.
        pub cookieverf: Cookieverf3,
        /// Most bytes of directory information: names, cookies and numbers.
        pub dircount: u32,
        /// Most bytes of the result.
        pub maxcount: u32,
    }
    /// An entry of a directory with its attributes and handle.
    pub struct EntryPlus<'a> {
        /// Number of the object.
        pub fileid: u64,
        /// Name.
        pub name: Filename3<'a>,
        /// Where to go on after this entry.
        pub cookie: u64,
        /// Attributes.
        pub name_attributes: PostOpAttr,
        /// Handle.
        pub name_handle: PostOpFh3<'a>,
    }
    /// Result of READDIRPLUS.
    pub struct ReaddirplusOk<'a> {
        /// The directory's attributes.
        pub dir_attributes: PostOpAttr,
        /// Verifier of the cookies.
        pub cookieverf: Cookieverf3,
        /// The entries.
        pub entries: Chain<'a, EntryPlus<'a>>,
        /// Whether the last one is the directory's last.
        pub eof: bool,
    }
    /// Arguments of FSSTAT and FSINFO.
    pub struct FsArgs<'a> {
        /// Any object of the file system.
        pub fsroot: Fh3<'a>,
    }
    /// Result of FSSTAT.
    pub struct FsstatOk {
        /// The object's attributes.
        pub obj_attributes: PostOpAttr,
        /// Bytes in all.
        pub tbytes: u64,
        /// Bytes free.
        pub fbytes: u64,
        /// Bytes free for the caller.
        pub abytes: u64,
        /// File slots in all.
        pub tfiles: u64,
        /// File slots free.
        pub ffiles: u64,
        /// File slots free for the caller.
        pub afiles: u64,
        /// Seconds for which this is not expected to change.
        pub invarsec: u32,
    }
    /// Result of FSINFO.
    pub struct FsinfoOk {
        /// The object's attributes.
        pub obj_attributes: PostOpAttr,
        /// Largest READ.
        pub rtmax: u32,
        /// Preferred READ.
        pub rtpref: u32,
        /// Unit of READ sizes.
        pub rtmult: u32,
        /// Largest WRITE.
        pub wtmax: u32,
        /// Preferred WRITE.
        pub wtpref: u32,
        /// Unit of WRITE sizes.
        pub wtmult: u32,
        /// Preferred READDIR.
        pub dtpref: u32,
        /// Largest file.
        pub maxfilesize: u64,
        /// Granularity of times.
        pub time_delta: Nfstime3,
        /// Bits of [`fsf`](super::fsf).
        pub properties: u32,
    }
    /// Arguments of PATHCONF.
    pub struct PathconfArgs<'a> {
        /// The object.
        pub object: Fh3<'a>,
    }
    /// Result of PATHCONF.
    pub struct PathconfOk {
        /// The object's attributes.
        pub obj_attributes: PostOpAttr,
        /// Most hard links.
        pub linkmax: u32,
        /// Longest name.
        pub name_max: u32,
        /// Whether longer names are refused rather than cut.
        pub no_trunc: bool,
        /// Whether only the superuser changes owners.
        pub chown_restricted: bool,
        /// Whether case is ignored in names.
        pub case_insensitive: bool,
        /// Whether case is kept in names.
        pub case_preserving: bool,
    }
    /// Arguments of COMMIT.
    pub struct CommitArgs<'a> {
        /// The file.
        pub file: Fh3<'a>,
        /// First byte.
        pub offset: u64,
        /// Number of bytes, 0 for all to the end.
        pub count: u32,
    }
    /// Result of COMMIT.
    pub struct CommitOk {
        /// The file's attributes.
        pub file_wcc: WccData,
        /// Instance of the server.
        pub verf: Writeverf3,
    }
}

xdr_union! {
    /// How CREATE treats a file that exists.
    pub enum CreateHow {
        /// It is taken, with these attributes set as far as they go (size 0 cuts it off).
        0 => Unchecked(Sattr3),
        /// It is an error.
        1 => Guarded(Sattr3),
        /// It is an error unless it was created with this verifier.
        2 => Exclusive(Createverf3),
    }
    /// What MKNOD makes.
    pub enum MknodData {
        /// Block device.
        3 => Blk(DeviceData),
        /// Character device.
        4 => Chr(DeviceData),
        /// Socket.
        6 => Sock(Sattr3),
        /// Named pipe.
        7 => Fifo(Sattr3);
        /// Something that MKNOD does not make.
        Other
    }
}

/// Result of GETATTR.
pub type GetattrRes = Res<GetattrOk>;
/// Result of SETATTR.
pub type SetattrRes = Res<SetattrOk, WccData>;
/// Result of LOOKUP; a failure tells the directory's attributes.
pub type LookupRes<'a> = Res<LookupOk<'a>, PostOpAttr>;
/// Result of ACCESS.
pub type AccessRes = Res<AccessOk, PostOpAttr>;
/// Result of READLINK.
pub type ReadlinkRes<'a> = Res<ReadlinkOk<'a>, PostOpAttr>;
/// Result of READ.
pub type ReadRes<'a> = Res<ReadOk<'a>, PostOpAttr>;
/// Result of WRITE.
pub type WriteRes = Res<WriteOk, WccData>;
/// Result of CREATE, MKDIR, SYMLINK and MKNOD; a failure tells the directory's attributes.
pub type CreateRes<'a> = Res<CreateOk<'a>, WccData>;
/// Result of REMOVE and RMDIR; a failure tells the directory's attributes.
pub type RemoveRes = Res<RemoveOk, WccData>;
/// Result of RENAME.
pub type RenameRes = Res<RenameWcc, RenameWcc>;
/// Result of LINK.
pub type LinkRes = Res<LinkWcc, LinkWcc>;
/// Result of READDIR.
pub type ReaddirRes<'a> = Res<ReaddirOk<'a>, PostOpAttr>;
/// Result of READDIRPLUS.
pub type ReaddirplusRes<'a> = Res<ReaddirplusOk<'a>, PostOpAttr>;
/// Result of FSSTAT.
pub type FsstatRes = Res<FsstatOk, PostOpAttr>;
/// Result of FSINFO.
pub type FsinfoRes = Res<FsinfoOk, PostOpAttr>;
/// Result of PATHCONF.
pub type PathconfRes = Res<PathconfOk, PostOpAttr>;
/// Result of COMMIT.
pub type CommitRes = Res<CommitOk, WccData>;
