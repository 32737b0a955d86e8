//! Layouts and devices of pNFS (RFC 8881 §18.40 to §18.44, RFC 7862 §15.6, §15.7): carried, not interpreted.

use super::{Bitmap4, Deviceid4, Nfsstat4, Nfstime4, Opnum, Stateid4, Verifier4};
use crate::xdr::{List, Opaque};

xdr_code! {
    /// Layout type.
    pub struct Layouttype4("LAYOUT4_") {
        /// Files.
        NFSV4_1_FILES = 1,
        /// Objects.
        OSD2_OBJECTS = 2,
        /// Blocks.
        BLOCK_VOLUME = 3,
        /// Flexible files (RFC 8435).
        FLEX_FILES = 4,
        /// SCSI (RFC 8154).
        SCSI = 5,
    }
}

xdr_enum! {
    /// What a layout is for.
    pub enum Layoutiomode4 {
        /// Reading.
        Read = 1,
        /// Reading and writing.
        Rw = 2,
        /// Either, where layouts are returned or recalled.
        Any = 3,
    }
}

xdr_struct! {
    /// A layout's content, by type.
    pub struct LayoutContent4<'a> {
        /// Type.
        pub layout_type: Layouttype4,
        /// Content.
        pub body: Opaque<'a>,
    }
    /// A segment of a layout.
    pub struct Layout4<'a> {
        /// Start.
        pub offset: u64,
        /// Length.
        pub length: u64,
        /// What it is for.
        pub iomode: Layoutiomode4,
        /// Content.
        pub content: LayoutContent4<'a>,
    }
    /// A layout hint, by type.
    pub struct Layouthint4<'a> {
        /// Type.
        pub layout_type: Layouttype4,
        /// Content.
        pub body: Opaque<'a>,
    }
    /// Address of a device, by type.
    pub struct DeviceAddr4<'a> {
        /// Type.
        pub layout_type: Layouttype4,
        /// Content.
        pub addr_body: Opaque<'a>,
    }
    /// What a client tells about its writes, by type.
    pub struct Layoutupdate4<'a> {
        /// Type.
        pub layout_type: Layouttype4,
        /// Content.
        pub body: Opaque<'a>,
    }
    /// Arguments of GETDEVICEINFO.
    pub struct GetdeviceinfoArgs {
        /// The device.
        pub device_id: Deviceid4,
        /// Layout type.
        pub layout_type: Layouttype4,
        /// Bytes of the result at most.
        pub maxcount: u32,
        /// Notifications wanted.
        pub notify_types: Bitmap4,
    }
    /// Result of GETDEVICEINFO.
    pub struct GetdeviceinfoOk<'a> {
        /// Address.
        pub device_addr: DeviceAddr4<'a>,
        /// Notifications that will come.
        pub notification: Bitmap4,
    }
    /// Arguments of GETDEVICELIST (4.1 only).
    pub struct GetdevicelistArgs {
        /// Layout type.
        pub layout_type: Layouttype4,
        /// Devices at most.
        pub maxdevices: u32,
        /// Where to go on.
        pub cookie: u64,
        /// Verifier that came with the cookie.
        pub cookieverf: Verifier4,
    }
    /// Result of GETDEVICELIST.
    pub struct GetdevicelistOk<'a> {
        /// Where to go on.
        pub cookie: u64,
        /// Verifier for the cookie.
        pub cookieverf: Verifier4,
        /// Devices.
        pub deviceid_list: List<'a, Deviceid4>,
        /// Whether these are the last.
        pub eof: bool,
    }
    /// Arguments of LAYOUTCOMMIT.
    pub struct LayoutcommitArgs<'a> {
        /// Start.
        pub offset: u64,
        /// Length.
        pub length: u64,
        /// Whether after a restart of the server.
        pub reclaim: bool,
        /// The layout.
        pub stateid: Stateid4,
        /// Last byte written.
        pub last_write_offset: Option<u64>,
        /// Time of modification to set.
        pub time_modify: Option<Nfstime4>,
        /// By type.
        pub layoutupdate: Layoutupdate4<'a>,
    }
    /// Result of LAYOUTCOMMIT.
    pub struct LayoutcommitOk {
        /// New size, where it changed.
        pub newsize: Option<u64>,
    }
    /// Arguments of LAYOUTGET.
    pub struct LayoutgetArgs {
        /// Whether to signal that a layout becomes available.
        pub signal_layout_avail: bool,
        /// Layout type.
        pub layout_type: Layouttype4,
        /// What for.
        pub iomode: Layoutiomode4,
        /// Start.
        pub offset: u64,
        /// Length wanted.
        pub length: u64,
        /// Length at least.
        pub minlength: u64,
        /// Open, lock, delegation or layout.
        pub stateid: Stateid4,
        /// Bytes of the result at most.
        pub maxcount: u32,
    }
    /// Result of LAYOUTGET.
    pub struct LayoutgetOk<'a> {
        /// Whether to return it with the last CLOSE.
        pub return_on_close: bool,
        /// The layout.
        pub stateid: Stateid4,
        /// Its segments.
        pub layout: List<'a, Layout4<'a>>,
    }
    /// A layout of one file that is returned.
    pub struct LayoutreturnFile4<'a> {
        /// Start.
        pub offset: u64,
        /// Length.
        pub length: u64,
        /// The layout.
        pub stateid: Stateid4,
        /// By type.
        pub body: Opaque<'a>,
    }
    /// Arguments of LAYOUTRETURN.
    pub struct LayoutreturnArgs<'a> {
        /// Whether after a restart of the server.
        pub reclaim: bool,
        /// Layout type.
        pub layout_type: Layouttype4,
        /// What it was for.
        pub iomode: Layoutiomode4,
        /// What is returned.
        pub layoutreturn: Layoutreturn4<'a>,
    }
    /// Result of LAYOUTRETURN.
    pub struct LayoutreturnOk {
        /// The layout, where something of it is left.
        pub stateid: Option<Stateid4>,
    }
    /// An error of a device.
    pub struct DeviceError4 {
        /// The device.
        pub deviceid: Deviceid4,
        /// Status.
        pub status: Nfsstat4,
        /// Operation.
        pub opnum: Opnum,
    }
    /// Arguments of LAYOUTERROR.
    pub struct LayouterrorArgs<'a> {
        /// Start.
        pub offset: u64,
        /// Length.
        pub length: u64,
        /// The layout.
        pub stateid: Stateid4,
        /// Errors.
        pub errors: List<'a, DeviceError4>,
    }
    /// Operations and bytes.
    pub struct IoInfo4 {
        /// Operations.
        pub count: u64,
        /// Bytes.
        pub bytes: u64,
    }
    /// Arguments of LAYOUTSTATS.
    pub struct LayoutstatsArgs<'a> {
        /// Start.
        pub offset: u64,
        /// Length.
        pub length: u64,
        /// The layout.
        pub stateid: Stateid4,
        /// Reads.
        pub read: IoInfo4,
        /// Writes.
        pub write: IoInfo4,
        /// The device.
        pub deviceid: Deviceid4,
        /// By type.
        pub layoutupdate: Layoutupdate4<'a>,
    }
}

xdr_union! {
    /// What LAYOUTRETURN returns.
    pub enum Layoutreturn4<'a> {
        /// A file's layout.
        1 => File(LayoutreturnFile4<'a>),
        /// All of a file system.
        2 => Fsid,
        /// All.
        3 => All,
    }
}

result_union! {
    /// Result of GETDEVICEINFO.
    pub enum GetdeviceinfoRes<'a> {
        Ok(GetdeviceinfoOk<'a>),
        /// The result needs so many bytes.
        TOOSMALL => TooSmall(u32),
    }
    /// Result of LAYOUTGET.
    pub enum LayoutgetRes<'a> {
        Ok(LayoutgetOk<'a>),
        /// Later; whether the server will signal when.
        LAYOUTTRYLATER => TryLater(bool),
    }
}
