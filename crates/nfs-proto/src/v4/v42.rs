//! Operations of 4.2 (RFC 7862): space, holes, copies, advice.

use super::{Bitmap4, Netaddr4, StableHow4, Stateid4, Utf8, Verifier4};
use crate::xdr::{Bulk, List};

xdr_code! {
    /// Content of a range of a file. SEEK of a kind that is not known here is UNION_NOTSUPP, not BADXDR (RFC 7862
    /// §11.2).
    pub struct DataContent4("NFS4_CONTENT_") {
        /// Data.
        DATA = 0,
        /// A hole.
        HOLE = 1,
    }
}

xdr_code! {
    /// Hint of IO_ADVISE: a number in its bitmap.
    pub struct IoAdvise4("IO_ADVISE4_") {
        /// Nothing special.
        NORMAL = 0,
        /// Rising offsets.
        SEQUENTIAL = 1,
        /// Falling offsets.
        SEQUENTIAL_BACKWARDS = 2,
        /// Any offsets.
        RANDOM = 3,
        /// Will be accessed.
        WILLNEED = 4,
        /// Will be accessed, perhaps.
        WILLNEED_OPPORTUNISTIC = 5,
        /// Will not be accessed.
        DONTNEED = 6,
        /// Will be accessed once.
        NOREUSE = 7,
        /// Will be read.
        READ = 8,
        /// Will be written.
        WRITE = 9,
        /// Accesses start near this range.
        INIT_PROXIMITY = 10,
    }
}

xdr_union! {
    /// Where another server is.
    pub enum Netloc4<'a> {
        /// Name.
        1 => Name(Utf8<'a>),
        /// URL.
        2 => Url(Utf8<'a>),
        /// Address.
        3 => Netaddr(Netaddr4<'a>),
    }
    /// One range in a READ_PLUS result.
    pub enum ReadPlusContent<'a> {
        /// Data.
        0 => Data(Data4<'a>),
        /// A hole.
        1 => Hole(DataInfo4),
        ;
        /// Content that is not known.
        Other
    }
}

xdr_struct! {
    /// A range of data.
    pub struct Data4<'a> {
        /// Offset of the first byte.
        pub offset: u64,
        /// Data of the file.
        pub data: Bulk<'a>,
    }
    /// A range without data.
    pub struct DataInfo4 {
        /// Offset of the first byte.
        pub offset: u64,
        /// Number of bytes; all ones: to the end of the file.
        pub length: u64,
    }
    /// Result of an operation that writes, now or later.
    pub struct WriteResponse4 {
        /// Stateid of an asynchronous copy, which this side never asks for.
        pub callback_id: Option<Stateid4>,
        /// Bytes written.
        pub count: u64,
        /// Stability reached.
        pub committed: StableHow4,
        /// Changes where the server lost unstable data.
        pub writeverf: Verifier4,
    }
    /// Arguments of ALLOCATE.
    pub struct AllocateArgs {
        /// Open, lock, delegation or special stateid that permits writing.
        pub stateid: Stateid4,
        /// Start of the range.
        pub offset: u64,
        /// Number of bytes; all ones: to the end of the file.
        pub length: u64,
    }
    /// Arguments of DEALLOCATE.
    pub struct DeallocateArgs {
        /// Open, lock, delegation or special stateid that permits writing.
        pub stateid: Stateid4,
        /// Start of the range.
        pub offset: u64,
        /// Number of bytes; all ones: to the end of the file.
        pub length: u64,
    }
    /// Arguments of CLONE: saved filehandle to current filehandle.
    pub struct CloneArgs {
        /// Stateid of the source.
        pub src_stateid: Stateid4,
        /// Stateid of the destination.
        pub dst_stateid: Stateid4,
        /// Start in the source.
        pub src_offset: u64,
        /// Start in the destination.
        pub dst_offset: u64,
        /// Bytes; 0: to the end of the source.
        pub count: u64,
    }
    /// Arguments of COPY: saved filehandle to current filehandle.
    pub struct CopyArgs<'a> {
        /// Stateid of the source.
        pub src_stateid: Stateid4,
        /// Stateid of the destination.
        pub dst_stateid: Stateid4,
        /// Start in the source.
        pub src_offset: u64,
        /// Start in the destination.
        pub dst_offset: u64,
        /// Bytes; 0: to the end of the source.
        pub count: u64,
        /// Whether to copy in order.
        pub consecutive: bool,
        /// Whether to answer when done.
        pub synchronous: bool,
        /// Another server that has the source; empty: this one.
        pub source_server: List<'a, Netloc4<'a>>,
    }
    /// How a copy is done.
    pub struct CopyRequirements4 {
        /// The bytes are copied in order.
        pub consecutive: bool,
        /// Done before the answer.
        pub synchronous: bool,
    }
    /// Result of COPY.
    pub struct CopyOk {
        /// What was or will be written.
        pub response: WriteResponse4,
        /// How the copy was or will be made.
        pub requirements: CopyRequirements4,
    }
    /// Arguments of IO_ADVISE.
    pub struct IoAdviseArgs {
        /// Open, lock, delegation or special stateid that permits reading.
        pub stateid: Stateid4,
        /// Start of the range.
        pub offset: u64,
        /// Its length; 0: to the end.
        pub count: u64,
        /// Hints, see [`IoAdvise4`].
        pub hints: Bitmap4,
    }
    /// Result of IO_ADVISE.
    pub struct IoAdviseOk {
        /// Hints that the server will follow.
        pub hints: Bitmap4,
    }
    /// Arguments of READ_PLUS.
    pub struct ReadPlusArgs {
        /// Open, lock, delegation or special stateid.
        pub stateid: Stateid4,
        /// Offset of the first byte.
        pub offset: u64,
        /// Maximum number of bytes to return.
        pub count: u32,
    }
    /// Result of READ_PLUS.
    pub struct ReadPlusOk<'a> {
        /// Whether the ranges reach the end of the file.
        pub eof: bool,
        /// Data and holes, in order of offset.
        pub contents: List<'a, ReadPlusContent<'a>>,
    }
    /// Arguments of SEEK.
    pub struct SeekArgs {
        /// Open, lock, delegation or special stateid that permits reading.
        pub stateid: Stateid4,
        /// Offset of the first byte.
        pub offset: u64,
        /// Data or a hole.
        pub what: DataContent4,
    }
    /// Result of SEEK.
    pub struct SeekOk {
        /// Whether there is none up to the end of the file.
        pub eof: bool,
        /// Offset of the data or the hole.
        pub offset: u64,
    }
}

result_union! {
    /// Result of COPY.
    pub enum CopyRes {
        Ok(CopyOk),
        /// The requirements cannot be met; these can.
        OFFLOAD_NO_REQS => OffloadNoReqs(CopyRequirements4),
    }
}
