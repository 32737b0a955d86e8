//! The calls of one connection: a template per operation kind, patched for every call.

use std::net::{SocketAddr, TcpStream};

use anyhow::{Context, Result, bail, ensure};
use benchmaster_nfs_proto::template::{Field, Shape, Template};
use benchmaster_nfs_proto::v4::{
    Argop, Attributes, Bitmap4, CloseArgs, CompoundHeader, CreateArgs, Createhow4, Createtype4, Fattr4,
    OpenArgs, OpenClaim4, Openflag4, PutfhArgs, ReadArgs, Resop, SequenceArgs, Stateid4, WriteArgs, fattr4,
};
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder};
use benchmaster_nfs_proto::{record, v3, v4};

use super::Version;
use super::client::{Client, Session, credential, handle, header, results_of};

/// Bytes of the file that is read and written.
pub(crate) const FILE_SIZE: u64 = 16 << 20;

/// Name of that file, which all connections share: with files of their own, more connections would also mean more memory.
const FILE: &str = "file";

/// Runs with this name have everything for each connection apart.
pub(crate) const APART: &str = "apart";

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Getattr,
    /// So many bytes.
    Read(u32),
    /// So many bytes, unstable.
    Write(u32),
    /// OPEN of an existing file and CLOSE, in one compound.
    OpenClose,
    /// CREATE, with 4.1 OPEN and CLOSE, of a new file.
    Create,
    /// OPEN of a new file, which stays open.
    Open,
}

impl Kind {
    /// Bytes of the file's data that one operation moves.
    pub(crate) fn bytes(self) -> u64 {
        match self {
            Self::Read(size) | Self::Write(size) => size.into(),
            _ => 0,
        }
    }
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let size = |size: u32| {
            if size < 1 << 20 { format!("{} KiB", size >> 10) } else { format!("{} MiB", size >> 20) }
        };
        f.pad(&match *self {
            Self::Getattr => "GETATTR".into(),
            Self::Read(bytes) => format!("READ {}", size(bytes)),
            Self::Write(bytes) => format!("WRITE {}", size(bytes)),
            Self::OpenClose => "OPEN+CLOSE".into(),
            Self::Create => "CREATE".into(),
            Self::Open => "OPEN".into(),
        })
    }
}

/// Where a server's NFS and MOUNT are, and what it exports.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) nfs: SocketAddr,
    pub(crate) mount: SocketAddr,
    /// Path for MOUNT.
    pub(crate) export: String,
    /// Path below the root filehandle of version 4.
    pub(crate) path: String,
}

/// Values that differ from call to call.
#[derive(Debug, Clone)]
struct Values {
    xid: u32,
    sequenceid: u32,
    slotid: u32,
    offset: u64,
    name: [u8; 16],
    owner: [u8; 16],
}

/// The calls of one connection.
#[derive(Debug)]
pub(crate) struct Calls {
    template: Template,
    xid: Field<u32>,
    sequence: Option<(Field<u32>, Field<u32>)>,
    offset: Option<Field<u64>>,
    name: Option<Field<[u8; 16]>>,
    owner: Option<Field<[u8; 16]>>,
    /// Per slot, the last sequence number.
    sequences: Vec<u32>,
    made: u64,
    kind: Kind,
}

/// A connection ready for load.
#[derive(Debug)]
pub(crate) struct Prepared {
    pub(crate) stream: TcpStream,
    pub(crate) calls: Calls,
    /// Calls that may be outstanding.
    pub(crate) window: u32,
}

/// Connects to a server and makes ready what `kind` needs. `number` tells connections apart, `unique` runs.
pub(crate) fn prepare(
    target: &Target,
    version: Version,
    kind: Kind,
    window: u32,
    number: usize,
    unique: &str,
) -> Result<Prepared> {
    match version {
        Version::V3 => prepare3(target, kind, window, number, unique),
        Version::V41 => prepare41(target, kind, window, number, unique),
    }
}

fn prepare3(target: &Target, kind: Kind, window: u32, number: usize, unique: &str) -> Result<Prepared> {
    let root = Client::connect(target.mount)?.mount(&target.export)?;
    let mut client = Client::connect(target.nfs)?;
    let object = match kind {
        Kind::Create => client.mkdir3(&root, &format!("d-{unique}-{number}"))?,
        _ => {
            let file = client.create3(&root, &file_name(number, unique))?;
            if kind.bytes() > 0 && client.size3(&file)? < FILE_SIZE {
                client.fill3(&file, FILE_SIZE)?;
            }
            file
        }
    };
    let (cred, data) = (credential(), vec![0xa5; kind.bytes() as usize]);
    let procedure = match kind {
        Kind::Getattr => v3::Proc3::GETATTR,
        Kind::Read(_) => v3::Proc3::READ,
        Kind::Write(_) => v3::Proc3::WRITE,
        Kind::Create => v3::Proc3::CREATE,
        Kind::Open | Kind::OpenClose => bail!("version 3 has no OPEN"),
    };
    let encode = |values: &Values, e: &mut Encoder| {
        let mark = record::begin(e);
        e.put(&header(values.xid, v3::PROGRAM, v3::VERSION, procedure.0, &cred));
        let (file, offset) = (object[..].into(), values.offset);
        match kind {
            Kind::Getattr => e.put(&v3::GetattrArgs { object: file }),
            Kind::Read(count) => e.put(&v3::ReadArgs { file, offset, count }),
            Kind::Write(count) => {
                let (stable, data) = (v3::StableHow::Unstable, Bulk::Bytes(&data));
                e.put(&v3::WriteArgs { file, offset, count, stable, data });
            }
            Kind::Create => {
                let where_ = v3::DirOpArgs { dir: file, name: values.name[..].into() };
                let attributes = v3::Sattr3 { mode: Some(0o644), ..v3::Sattr3::NONE };
                e.put(&v3::CreateArgs { where_, how: v3::CreateHow::Guarded(attributes) });
            }
            Kind::Open | Kind::OpenClose => {}
        }
        record::end(e, mark);
    };
    let calls = Calls::new(encode, kind, vec![0; window as usize])?;
    Ok(Prepared { stream: client.into_stream(), calls, window })
}

fn prepare41(target: &Target, kind: Kind, window: u32, number: usize, unique: &str) -> Result<Prepared> {
    let mut session = Session::new(target.nfs, &format!("load-{number}"), window)?;
    let window = window.min(session.slots);
    let mut root = session.lookup(&target.path)?;
    let dir = format!("d-{unique}-{number}");
    if unique == APART && kind == Kind::OpenClose {
        root = make_dir(&mut session, &root, &dir)?;
    }
    let (object, stateid) = match kind {
        Kind::Create | Kind::Open => (make_dir(&mut session, &root, &dir)?, Stateid4::ANONYMOUS),
        _ => {
            let (fh, stateid) = open_file(&mut session, &root, &file_name(number, unique))?;
            if kind.bytes() > 0 && session.size(&fh)? < FILE_SIZE {
                fill41(&mut session, &fh, stateid)?;
            }
            if kind == Kind::OpenClose {
                for slot in 0..window {
                    open_file(&mut session, &root, str::from_utf8(&hexadecimal(slot.into()))?)?;
                }
            }
            (fh, Stateid4 { seqid: 0, ..stateid })
        }
    };
    let (cred, data) = (credential(), vec![0xa5; kind.bytes() as usize]);
    let mode = {
        let mut e = Encoder::new();
        e.put(&Attributes { mode: Some(0o644), ..Attributes::default() });
        e.buffer().to_vec()
    };
    let createattrs: Fattr4<'_> = Decoder::new(&mode).get()?;
    let (sessionid, clientid, highest_slotid) = (session.id, session.clientid, window - 1);
    let encode = |values: &Values, e: &mut Encoder| {
        let (sequenceid, slotid) = (values.sequenceid, values.slotid);
        let sequence = SequenceArgs { sessionid, sequenceid, slotid, highest_slotid, cachethis: false };
        let dir: &[u8] = if kind == Kind::OpenClose { &root } else { &object };
        let mut ops = vec![Argop::Sequence(sequence), Argop::Putfh(PutfhArgs { object: dir.into() })];
        let close = Argop::Close(CloseArgs { seqid: 0, open_stateid: Stateid4::CURRENT });
        let offset = values.offset;
        match kind {
            Kind::Getattr => ops.push(Argop::Getattr(v4::GetattrArgs { attr_request: STAT })),
            Kind::Read(count) => ops.push(Argop::Read(ReadArgs { stateid, offset, count })),
            Kind::Write(_) => {
                let (stable, data) = (v4::StableHow4::Unstable, Bulk::Bytes(&data));
                ops.push(Argop::Write(WriteArgs { stateid, offset, stable, data }));
            }
            Kind::OpenClose => {
                let claim = OpenClaim4::Null(values.name[..].into());
                ops.extend([Argop::Open(open(clientid, &values.owner, Openflag4::NoCreate, claim)), close]);
            }
            Kind::Create | Kind::Open => {
                let how = Openflag4::Create(Createhow4::Guarded(createattrs));
                let claim = OpenClaim4::Null(values.name[..].into());
                ops.push(Argop::Open(open(clientid, b"owner", how, claim)));
                if kind == Kind::Create {
                    ops.push(close);
                }
            }
        }
        let mark = record::begin(e);
        e.put(&header(values.xid, v4::NFS_PROGRAM, v4::NFS_V4, v4::PROC_COMPOUND, &cred));
        e.put(&CompoundHeader { tag: "".into(), minorversion: 1, count: ops.len() as u32 });
        ops.iter().for_each(|op| e.put(op));
        record::end(e, mark);
    };
    let mut sequences = vec![0; window as usize];
    sequences[0] = session.sequence();
    let calls = Calls::new(encode, kind, sequences)?;
    Ok(Prepared { stream: session.client.into_stream(), calls, window })
}

fn file_name(number: usize, unique: &str) -> String {
    if unique == APART { format!("{FILE}-{number}") } else { FILE.into() }
}

fn make_dir(session: &mut Session, parent: &[u8], name: &str) -> Result<Vec<u8>> {
    let mut e = Encoder::new();
    e.put(&Attributes { mode: Some(0o777), ..Attributes::default() });
    let args = CreateArgs {
        objtype: Createtype4::Dir,
        objname: name.as_bytes().into(),
        createattrs: Decoder::new(e.buffer()).get()?,
    };
    let putfh = Argop::Putfh(PutfhArgs { object: parent.into() });
    let results = session.compound(&[putfh, Argop::Create(args), Argop::Getfh])?;
    handle(&results)
}

/// What stat(2) needs, as clients ask for it.
const STAT: Bitmap4 = Bitmap4::of(&[
    fattr4::TYPE,
    fattr4::CHANGE,
    fattr4::SIZE,
    fattr4::FSID,
    fattr4::FILEID,
    fattr4::MODE,
    fattr4::NUMLINKS,
    fattr4::OWNER,
    fattr4::OWNER_GROUP,
    fattr4::RAWDEV,
    fattr4::SPACE_USED,
    fattr4::TIME_ACCESS,
    fattr4::TIME_METADATA,
    fattr4::TIME_MODIFY,
    fattr4::MOUNTED_ON_FILEID,
]);

fn open<'a>(clientid: u64, owner: &'a [u8], openhow: Openflag4<'a>, claim: OpenClaim4<'a>) -> OpenArgs<'a> {
    let owner = v4::StateOwner4 { clientid, owner: owner.into() };
    let (share_access, share_deny) = (v4::SHARE_ACCESS_BOTH | v4::WANT_NO_DELEG, v4::SHARE_DENY_NONE);
    OpenArgs { seqid: 0, share_access, share_deny, owner, openhow, claim }
}

fn open_file(session: &mut Session, dir: &[u8], name: &str) -> Result<(Vec<u8>, Stateid4)> {
    let mut e = Encoder::new();
    e.put(&Attributes { mode: Some(0o666), ..Attributes::default() });
    let how = Openflag4::Create(Createhow4::Unchecked(Decoder::new(e.buffer()).get()?));
    let args = open(session.clientid, b"holder", how, OpenClaim4::Null(name.into()));
    let putfh = Argop::Putfh(PutfhArgs { object: dir.into() });
    let results = session.compound(&[putfh, Argop::Open(args), Argop::Getfh])?;
    let stateid = results_of(&results)?
        .iter()
        .find_map(|result| match result {
            Resop::Open(Ok(ok)) => Some(ok.stateid),
            _ => None,
        })
        .context("OPEN")?;
    Ok((handle(&results)?, stateid))
}

fn fill41(session: &mut Session, file: &[u8], stateid: Stateid4) -> Result<()> {
    let block = vec![0x5a; 1 << 16];
    let mut offset = 0;
    while offset < FILE_SIZE {
        let write =
            WriteArgs { stateid, offset, stable: v4::StableHow4::FileSync, data: Bulk::Bytes(&block) };
        let results =
            session.compound(&[Argop::Putfh(PutfhArgs { object: file.into() }), Argop::Write(write)])?;
        let Some(Resop::Write(Ok(ok))) = results_of(&results)?.pop() else { bail!("WRITE") };
        ensure!(ok.count > 0, "a write of nothing");
        offset += u64::from(ok.count);
    }
    Ok(())
}

impl Calls {
    fn new(encode: impl Fn(&Values, &mut Encoder), kind: Kind, sequences: Vec<u32>) -> Result<Self> {
        let values =
            Values { xid: 0, sequenceid: 0, slotid: 0, offset: 0, name: [b'0'; 16], owner: [b'0'; 16] };
        let shape = Shape::new(values, encode);
        let sequence = match (
            shape.field(|values, sequenceid| values.sequenceid = sequenceid),
            shape.field(|values, slotid| values.slotid = slotid),
        ) {
            (Ok(sequenceid), Ok(slotid)) => Some((sequenceid, slotid)),
            _ => None,
        };
        Ok(Self {
            template: shape.template(),
            xid: shape.field(|values, xid| values.xid = xid)?,
            sequence,
            offset: shape.field(|values, offset| values.offset = offset).ok(),
            name: shape.field(|values, name| values.name = name).ok(),
            owner: shape.field(|values, owner| values.owner = owner).ok(),
            sequences,
            made: 0,
            kind,
        })
    }

    /// Appends the next call, on `slot`; its transaction number modulo `window` is the slot.
    pub(crate) fn next(&mut self, slot: u32, window: u32, e: &mut Encoder) {
        let mut call = self.template.append(e);
        // Away from the numbers of the preparation, and without overflow.
        let xid = ((self.made as u32 & 0x000f_ffff) + 4096) * window + slot;
        call.set(self.xid, xid);
        if let Some((sequenceid, slotid)) = self.sequence {
            let last = &mut self.sequences[slot as usize];
            *last += 1;
            call.set(sequenceid, *last).set(slotid, slot);
        }
        if let Some(offset) = self.offset {
            let steps = FILE_SIZE / self.kind.bytes().max(1);
            // Blocks in an order without a pattern that prefetching would like: 40503 is odd.
            call.set(offset, self.made.wrapping_mul(40_503) % steps * self.kind.bytes());
        }
        // Opens of one owner and file would get in each other's way: one of each per slot.
        let per_slot = self.kind == Kind::OpenClose;
        if let Some(name) = self.name {
            call.set(name, hexadecimal(if per_slot { slot.into() } else { self.made }));
        }
        if let Some(owner) = self.owner {
            call.set(owner, hexadecimal(if per_slot { slot.into() } else { self.made }));
        }
        self.made += 1;
    }
}

fn hexadecimal(number: u64) -> [u8; 16] {
    std::array::from_fn(|i| b"0123456789abcdef"[(number >> (60 - 4 * i)) as usize & 15])
}
