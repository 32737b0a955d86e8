//! Arguments and results of the procedures (RFC 1813 §3.3), in their order.
//!
//! Names are the RFC's without `3` and `res`: `READ3args` is [`ReadArgs`], `READ3resok` [`ReadOk`], `READ3res`
//! [`ReadRes`]. A failure that carries but attributes (`…resfail`) is those attributes: [`PostOpAttr`] or
//! [`WccData`].

use super::Res;
use super::data::*;
use crate::xdr::{Bulk, Chain};

xdr_struct! {
    /// Arguments of GETATTR.
    pub struct GetattrArgs<'a> {
        /// Filehandle of the object.
        pub object: Fh3<'a>,
    }
    /// Result of GETATTR.
    pub struct GetattrOk {
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: Fattr3,
    }
    /// Arguments of SETATTR.
    pub struct SetattrArgs<'a> {
        /// Filehandle of the object.
        pub object: Fh3<'a>,
        /// Attributes to set.
        pub new_attributes: Sattr3,
        /// The object's ctime, if it is to be checked first.
        pub guard: Option<Nfstime3>,
    }
    /// Result of SETATTR.
    pub struct SetattrOk {
        /// Attributes of the object before and after the operation.
        pub obj_wcc: WccData,
    }
    /// Arguments of LOOKUP.
    pub struct LookupArgs<'a> {
        /// Where to look for what.
        pub what: DirOpArgs<'a>,
    }
    /// Result of LOOKUP.
    pub struct LookupOk<'a> {
        /// Filehandle of the object.
        pub object: Fh3<'a>,
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: PostOpAttr,
        /// Attributes of the directory, where the server returns them.
        pub dir_attributes: PostOpAttr,
    }
    /// Arguments of ACCESS.
    pub struct AccessArgs<'a> {
        /// Filehandle of the object.
        pub object: Fh3<'a>,
        /// Bits of [`access`](super::access) to check.
        pub access: u32,
    }
    /// Result of ACCESS.
    pub struct AccessOk {
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: PostOpAttr,
        /// Bits that are allowed.
        pub access: u32,
    }
    /// Arguments of READLINK.
    pub struct ReadlinkArgs<'a> {
        /// Filehandle of the symbolic link.
        pub symlink: Fh3<'a>,
    }
    /// Result of READLINK.
    pub struct ReadlinkOk<'a> {
        /// Attributes of the symbolic link.
        pub symlink_attributes: PostOpAttr,
        /// Path that the link refers to.
        pub data: Nfspath3<'a>,
    }
    /// Arguments of READ.
    pub struct ReadArgs<'a> {
        /// Filehandle of the file.
        pub file: Fh3<'a>,
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes.
        pub count: u32,
    }
    /// Result of READ.
    pub struct ReadOk<'a> {
        /// Attributes of the file, where the server returns them.
        pub file_attributes: PostOpAttr,
        /// Number of bytes read.
        pub count: u32,
        /// Whether the read reached the end of the file.
        pub eof: bool,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// Arguments of WRITE.
    pub struct WriteArgs<'a> {
        /// Filehandle of the file.
        pub file: Fh3<'a>,
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes.
        pub count: u32,
        /// How stable the data must be.
        pub stable: StableHow,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// Result of WRITE.
    pub struct WriteOk {
        /// Attributes of the file before and after the operation.
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
        /// Directory and name of the new object.
        pub where_: DirOpArgs<'a>,
        /// What happens if the file exists.
        pub how: CreateHow,
    }
    /// Result of CREATE, MKDIR, SYMLINK and MKNOD.
    pub struct CreateOk<'a> {
        /// Filehandle of the new object, where the server returns it.
        pub obj: PostOpFh3<'a>,
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: PostOpAttr,
        /// Attributes of the directory before and after the operation.
        pub dir_wcc: WccData,
    }
    /// Arguments of MKDIR.
    pub struct MkdirArgs<'a> {
        /// Directory and name of the new object.
        pub where_: DirOpArgs<'a>,
        /// Attributes of the new object.
        pub attributes: Sattr3,
    }
    /// Content and attributes of a new symbolic link.
    pub struct SymlinkData<'a> {
        /// Attributes of the new symbolic link.
        pub symlink_attributes: Sattr3,
        /// Path that the link refers to.
        pub symlink_data: Nfspath3<'a>,
    }
    /// Arguments of SYMLINK.
    pub struct SymlinkArgs<'a> {
        /// Directory and name of the new object.
        pub where_: DirOpArgs<'a>,
        /// Attributes and target of the link.
        pub symlink: SymlinkData<'a>,
    }
    /// A new device.
    pub struct DeviceData {
        /// Attributes of the new device.
        pub dev_attributes: Sattr3,
        /// Major and minor number.
        pub spec: Specdata3,
    }
    /// Arguments of MKNOD.
    pub struct MknodArgs<'a> {
        /// Directory and name of the new object.
        pub where_: DirOpArgs<'a>,
        /// Type of the new object.
        pub what: MknodData,
    }
    /// Arguments of REMOVE and RMDIR.
    pub struct RemoveArgs<'a> {
        /// Directory and name of the object.
        pub object: DirOpArgs<'a>,
    }
    /// Result of REMOVE and RMDIR.
    pub struct RemoveOk {
        /// Attributes of the directory before and after the operation.
        pub dir_wcc: WccData,
    }
    /// Arguments of RENAME.
    pub struct RenameArgs<'a> {
        /// Directory and name before the operation.
        pub from: DirOpArgs<'a>,
        /// Directory and name after the operation.
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
        /// Filehandle of the object.
        pub file: Fh3<'a>,
        /// Directory and name of the new link.
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
        /// Exported directory, or filehandle of a directory.
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
        /// Name of the entry.
        pub name: Filename3<'a>,
        /// Where to go on after this entry.
        pub cookie: u64,
    }
    /// Result of READDIR.
    pub struct ReaddirOk<'a> {
        /// Attributes of the directory, where the server returns them.
        pub dir_attributes: PostOpAttr,
        /// Verifier of the cookies.
        pub cookieverf: Cookieverf3,
        /// Entries of the directory, in order of their cookies.
        pub entries: Chain<'a, Entry<'a>>,
        /// Whether the last one is the directory's last.
        pub eof: bool,
    }
    /// Arguments of READDIRPLUS.
    pub struct ReaddirplusArgs<'a> {
        /// Exported directory, or filehandle of a directory.
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
        /// Name of the entry.
        pub name: Filename3<'a>,
        /// Where to go on after this entry.
        pub cookie: u64,
        /// Attributes of the entry.
        pub name_attributes: PostOpAttr,
        /// Filehandle of the entry.
        pub name_handle: PostOpFh3<'a>,
    }
    /// Result of READDIRPLUS.
    pub struct ReaddirplusOk<'a> {
        /// Attributes of the directory, where the server returns them.
        pub dir_attributes: PostOpAttr,
        /// Verifier of the cookies.
        pub cookieverf: Cookieverf3,
        /// Entries of the directory, in order of their cookies.
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
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: PostOpAttr,
        /// Total size in bytes.
        pub tbytes: u64,
        /// Free bytes.
        pub fbytes: u64,
        /// Bytes free for the caller.
        pub abytes: u64,
        /// File slots in all.
        pub tfiles: u64,
        /// Number of files that can still be created.
        pub ffiles: u64,
        /// File slots free for the caller.
        pub afiles: u64,
        /// Seconds for which this is not expected to change.
        pub invarsec: u32,
    }
    /// Result of FSINFO.
    pub struct FsinfoOk {
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: PostOpAttr,
        /// Largest READ in bytes.
        pub rtmax: u32,
        /// Preferred size of a READ, in bytes.
        pub rtpref: u32,
        /// Unit of READ sizes.
        pub rtmult: u32,
        /// Largest WRITE in bytes.
        pub wtmax: u32,
        /// Preferred size of a WRITE, in bytes.
        pub wtpref: u32,
        /// Unit of WRITE sizes.
        pub wtmult: u32,
        /// Preferred size of a READDIR, in bytes.
        pub dtpref: u32,
        /// Largest possible size of a file, in bytes.
        pub maxfilesize: u64,
        /// Resolution of file times.
        pub time_delta: Nfstime3,
        /// Bits of [`fsf`](super::fsf).
        pub properties: u32,
    }
    /// Arguments of PATHCONF.
    pub struct PathconfArgs<'a> {
        /// Filehandle of the object.
        pub object: Fh3<'a>,
    }
    /// Result of PATHCONF.
    pub struct PathconfOk {
        /// Attributes of the object, where the server returns them.
        pub obj_attributes: PostOpAttr,
        /// Largest number of hard links of a file.
        pub linkmax: u32,
        /// Longest name, in bytes.
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
        /// Filehandle of the file.
        pub file: Fh3<'a>,
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes, 0 for all to the end.
        pub count: u32,
    }
    /// Result of COMMIT.
    pub struct CommitOk {
        /// Attributes of the file before and after the operation.
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
