//! Basic types of all minor versions.

use super::{Bitmap4, Nfsstat4};
use crate::xdr::{Decode, Decoder, Encode, Encoder, List, Opaque, XdrError};

/// Program number of NFS.
pub const NFS_PROGRAM: u32 = 100_003;
/// Version number of NFS version 4.
pub const NFS_V4: u32 = 4;
/// Procedure that does nothing.
pub const PROC_NULL: u32 = 0;
/// Procedure that carries all operations; the callback program's too.
pub const PROC_COMPOUND: u32 = 1;
/// Version of the callback program; its number is chosen by the client.
pub const NFS_CB: u32 = 1;

/// Largest filehandle.
pub const FHSIZE: u32 = 128;
/// Largest client, owner or server identity.
pub const OPAQUE_LIMIT: u32 = 1024;
/// Largest offset plus one; as a length: to the end of the file.
pub const MAXFILELEN: u64 = u64::MAX;

/// A filehandle.
pub type Fh4<'a> = Opaque<'a, FHSIZE>;
/// A string that should be UTF-8; names and symbolic links too.
pub type Utf8<'a> = Opaque<'a>;
/// One name in a directory.
pub type Component4<'a> = Opaque<'a>;
/// A path: its names in order.
pub type Pathname4<'a> = List<'a, Component4<'a>>;
/// Identity of a client, owner or server.
pub type Identity<'a> = Opaque<'a, OPAQUE_LIMIT>;
/// Eight bytes that the other side only compares.
pub type Verifier4 = [u8; 8];
/// Session id.
pub type Sessionid4 = [u8; 16];

xdr_struct! {
    /// Stateid: which state, and which version of it (RFC 8881 §8.2).
    #[derive(Hash, Default, PartialOrd, Ord)]
    pub struct Stateid4 {
        /// Version; 0 in 4.1: the latest.
        pub seqid: u32,
        /// The server's name for the state.
        pub other: [u8; 12],
    }
    /// Time since 1970-01-01 00:00 UTC.
    #[derive(Hash, Default, PartialOrd, Ord)]
    pub struct Nfstime4 {
        /// Whole seconds; negative before 1970.
        pub seconds: i64,
        /// Nanoseconds, less than 10⁹, always forward from `seconds`.
        pub nseconds: u32,
    }
    /// Change attribute of a directory around an operation.
    #[derive(Default)]
    pub struct ChangeInfo4 {
        /// Whether both values were taken atomically with the operation.
        pub atomic: bool,
        /// Change attribute before the operation.
        pub before: u64,
        /// Change attribute after the operation.
        pub after: u64,
    }
    /// Device numbers of a special file.
    #[derive(Hash, Default)]
    pub struct Specdata4 {
        /// Major.
        pub specdata1: u32,
        /// Minor.
        pub specdata2: u32,
    }
    /// File system id.
    #[derive(Hash, Default)]
    pub struct Fsid4 {
        /// First part of the identifier.
        pub major: u64,
        /// Second part of the identifier.
        pub minor: u64,
    }
    /// Network address: transport and universal address (RFC 5665).
    pub struct Netaddr4<'a> {
        /// Network id, such as `tcp` or `tcp6`.
        pub r_netid: Opaque<'a>,
        /// Universal address, such as `127.0.0.1.8.1`.
        pub r_addr: Opaque<'a>,
    }
    /// Attributes: which, and their values in order of number.
    pub struct Fattr4<'a> {
        /// Numbers of the attributes that follow.
        pub attrmask: Bitmap4,
        /// Their values, one after the other.
        pub attr_vals: Opaque<'a>,
    }
    /// An open owner or lock owner.
    #[derive(Hash)]
    pub struct StateOwner4<'a> {
        /// Client; ignored from 4.1 on.
        pub clientid: u64,
        /// The client's name for the owner.
        pub owner: Identity<'a>,
    }
    /// Software of a client or server.
    pub struct NfsImplId4<'a> {
        /// Domain of its vendor.
        pub domain: Utf8<'a>,
        /// Name and version of the software.
        pub name: Utf8<'a>,
        /// Build date.
        pub date: Nfstime4,
    }
}

/// An open owner.
pub type OpenOwner4<'a> = StateOwner4<'a>;
/// A lock owner.
pub type LockOwner4<'a> = StateOwner4<'a>;

xdr_enum! {
    /// File type (`nfs_ftype4`).
    pub enum Ftype4 {
        /// Regular file.
        Reg = 1,
        /// Directory.
        Dir = 2,
        /// Block device.
        Blk = 3,
        /// Character device.
        Chr = 4,
        /// Symbolic link.
        Lnk = 5,
        /// Socket.
        Sock = 6,
        /// FIFO.
        Fifo = 7,
        /// Named attribute directory.
        AttrDir = 8,
        /// Named attribute.
        NamedAttr = 9,
    }
    /// How stable written data is.
    #[derive(PartialOrd, Ord)]
    pub enum StableHow4 {
        /// In memory perhaps.
        Unstable = 0,
        /// Data is stable.
        DataSync = 1,
        /// Data and metadata are stable.
        FileSync = 2,
    }
}

xdr_union! {
    /// A time to be set.
    pub enum Settime4 {
        /// The server's clock.
        0 => ServerTime,
        /// This time.
        1 => ClientTime(Nfstime4),
    }
}

impl Stateid4 {
    /// All zero: no state (RFC 8881 §8.2.3).
    pub const ANONYMOUS: Self = Self { seqid: 0, other: [0; 12] };
    /// All one: no state, and READ may go around locks.
    pub const READ_BYPASS: Self = Self { seqid: u32::MAX, other: [0xff; 12] };
    /// The compound's current stateid (4.1).
    pub const CURRENT: Self = Self { seqid: 1, other: [0; 12] };
    /// Stands for no state at all; never valid (4.1).
    pub const INVALID: Self = Self { seqid: u32::MAX, other: [0; 12] };

    /// Whether `other` is one of the reserved values, all zeros or all ones.
    pub fn is_special(&self) -> bool {
        self.other == [0; 12] || self.other == [0xff; 12]
    }
}

/// Result of an operation: its body where it succeeded, else only the status (which is not [`Nfsstat4::OK`]).
impl<'a, T: Decode<'a>> Decode<'a> for Result<T, Nfsstat4> {
    #[inline]
    fn decode(d: &mut Decoder<'a>) -> Result<Self, XdrError> {
        Ok(match d.get()? {
            Nfsstat4::OK => Ok(d.get()?),
            status => Err(status),
        })
    }
}

impl<T: Encode> Encode for Result<T, Nfsstat4> {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        match self {
            Ok(body) => {
                e.put(&Nfsstat4::OK);
                e.put(body);
            }
            Err(status) => e.put(status),
        }
    }
}

/// Status of an operation's result, whatever its shape.
pub trait Status {
    /// The status.
    fn status(&self) -> Nfsstat4;

    /// The same result, but `error` in place of an error that says `OK`.
    #[cfg(test)]
    fn with_error(self, _error: Nfsstat4) -> Self
    where
        Self: Sized,
    {
        self
    }
}

impl<T> Status for Result<T, Nfsstat4> {
    #[cfg(test)]
    fn with_error(self, error: Nfsstat4) -> Self {
        self.map_err(|status| if status == Nfsstat4::OK { error } else { status })
    }

    fn status(&self) -> Nfsstat4 {
        self.as_ref().err().copied().unwrap_or(Nfsstat4::OK)
    }
}

/// Results with a body for one status besides `OK`: `pub enum Name { Ok(Type), DENIED => Denied(Type) }` and `Err`
/// for all others.
macro_rules! result_union {
    ($( $(#[$m:meta])* pub enum $name:ident $(<$lt:lifetime>)? {
        Ok($ok:ty), $(#[$vm:meta])* $status:ident => $v:ident($body:ty) $(,)?
    } )*) => { $(
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub enum $name $(<$lt>)? {
            /// Success.
            Ok($ok),
            $(#[$vm])* $v($body),
            /// Any other status, without a body.
            Err(#[cfg_attr(test, arbitrary(with = $crate::v4::types::arbitrary_error))] $crate::v4::Nfsstat4),
        }
        xdr_impl! { $name $(<$lt>)?,
            |d| Ok(match d.get()? {
                $crate::v4::Nfsstat4::OK => Self::Ok(d.get()?),
                $crate::v4::Nfsstat4::$status => Self::$v(d.get()?),
                status => Self::Err(status),
            }),
            |this, e| {
                e.put(&$crate::v4::Status::status(this));
                match this {
                    Self::Ok(body) => e.put(body),
                    Self::$v(body) => e.put(body),
                    Self::Err(_) => {}
                }
            }
        }
        impl $(<$lt>)? $crate::v4::Status for $name $(<$lt>)? {
            fn status(&self) -> $crate::v4::Nfsstat4 {
                match self {
                    Self::Ok(_) => $crate::v4::Nfsstat4::OK,
                    Self::$v(_) => $crate::v4::Nfsstat4::$status,
                    Self::Err(status) => *status,
                }
            }
        }
    )* };
}

/// A status that has no body anywhere.
#[cfg(test)]
pub(crate) fn arbitrary_error(u: &mut arbitrary::Unstructured<'_>) -> arbitrary::Result<Nfsstat4> {
    u.choose(&[Nfsstat4::PERM, Nfsstat4::BADXDR, Nfsstat4::STALE, Nfsstat4(99_999)]).copied()
}

/// A result of any shape whose status tells the truth about its body.
#[cfg(test)]
pub(crate) fn arbitrary_result<'a, T: arbitrary::Arbitrary<'a> + Status>(
    u: &mut arbitrary::Unstructured<'a>,
) -> arbitrary::Result<T> {
    let result: T = u.arbitrary()?;
    Ok(result.with_error(arbitrary_error(u).unwrap_or(Nfsstat4::PERM)))
}
