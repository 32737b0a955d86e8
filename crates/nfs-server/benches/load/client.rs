//! Preparation: one call at a time, with whole results.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use benchmaster_nfs_proto::rpc::{
    AuthFlavor, AuthSys, CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply,
};
use benchmaster_nfs_proto::v4::{
    Argop, CallbackSecParms4, ChannelAttrs4, ClientOwner4, CompoundHeader, CompoundRes, CreateSessionArgs,
    ExchangeIdArgs, Nfsstat4, ReclaimCompleteArgs, Resop, SequenceArgs, Sessionid4, StateProtect4A,
};
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encode, Encoder, List};
use benchmaster_nfs_proto::{mount, record, v3, v4};

/// AUTH_SYS of the superuser, encoded.
pub(crate) fn credential() -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(&AuthSys { stamp: 0, machine_name: "load".into(), uid: 0, gid: 0, gids: List::Items(&[]) });
    e.buffer().to_vec()
}

/// Header of a call with the [`credential`] given.
pub(crate) fn header(xid: u32, program: u32, version: u32, procedure: u32, cred: &[u8]) -> CallHeader<'_> {
    let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: cred.into() };
    CallHeader { xid, rpc_version: RPC_VERSION, program, version, procedure, cred, verf: OpaqueAuth::NONE }
}

/// A connection on which one call is outstanding.
#[derive(Debug)]
pub(crate) struct Client {
    stream: TcpStream,
    xid: u32,
}

impl Client {
    pub(crate) fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        Ok(Self { stream, xid: 0 })
    }

    /// The connection, for the load.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Calls a procedure and returns its results.
    pub(crate) fn call(
        &mut self,
        program: u32,
        version: u32,
        procedure: u32,
        args: impl Fn(&mut Encoder),
    ) -> Result<Vec<u8>> {
        self.xid += 1;
        let (mut e, cred) = (Encoder::new(), credential());
        let mark = record::begin(&mut e);
        e.put(&header(self.xid, program, version, procedure, &cred));
        args(&mut e);
        record::end(&mut e, mark);
        self.stream.write_all(e.buffer())?;

        let mut reply = Vec::new();
        loop {
            let mut word = [0; 4];
            self.stream.read_exact(&mut word).context("waiting for a reply")?;
            let word = u32::from_be_bytes(word);
            let start = reply.len();
            reply.resize(start + (word & !record::LAST_FRAGMENT) as usize, 0);
            self.stream.read_exact(&mut reply[start..])?;
            if word & record::LAST_FRAGMENT != 0 {
                break;
            }
        }
        let mut d = Decoder::new(&reply);
        match d.get()? {
            Message::Reply { xid, reply: RpcReply::Success(_) } if xid == self.xid => Ok(d.rest().to_vec()),
            other => bail!("program {program} version {version} procedure {procedure}: {other:?}"),
        }
    }

    /// Filehandle of an export, from MOUNT.
    pub(crate) fn mount(&mut self, path: &str) -> Result<Vec<u8>> {
        let results = self.call(mount::PROGRAM, mount::VERSION_3, mount::Proc::MNT.0, |e| {
            e.put(&mount::DirPath::from(path));
        })?;
        match Decoder::new(&results).get()? {
            mount::MountRes3::Ok(ok) => Ok(ok.fhandle.0.to_vec()),
            other => bail!("mounting {path}: {other:?}"),
        }
    }

    /// Calls a procedure of NFS version 3.
    pub(crate) fn v3(&mut self, procedure: v3::Proc3, args: &impl Encode) -> Result<Vec<u8>> {
        self.call(v3::PROGRAM, v3::VERSION, procedure.0, |e| e.put(args))
    }

    /// Creates a file, if it is not there.
    pub(crate) fn create3(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>> {
        let attributes = v3::Sattr3 { mode: Some(0o666), ..v3::Sattr3::NONE };
        let how = v3::CreateHow::Unchecked(attributes);
        let where_ = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        let results = self.v3(v3::Proc3::CREATE, &v3::CreateArgs { where_, how })?;
        let result: v3::CreateRes<'_> = Decoder::new(&results).get()?;
        self.handle3(result, dir, name)
    }

    /// Makes a directory.
    pub(crate) fn mkdir3(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>> {
        let attributes = v3::Sattr3 { mode: Some(0o777), ..v3::Sattr3::NONE };
        let where_ = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        let results = self.v3(v3::Proc3::MKDIR, &v3::MkdirArgs { where_, attributes })?;
        let result: v3::CreateRes<'_> = Decoder::new(&results).get()?;
        self.handle3(result, dir, name)
    }

    fn handle3(&mut self, result: v3::CreateRes<'_>, dir: &[u8], name: &str) -> Result<Vec<u8>> {
        let ok = result.ok().map_err(|status| anyhow::anyhow!("creating {name}: {status}"))?;
        if let Some(handle) = ok.obj {
            return Ok(handle.0.to_vec());
        }
        let what = v3::DirOpArgs { dir: dir.into(), name: name.into() };
        let results = self.v3(v3::Proc3::LOOKUP, &v3::LookupArgs { what })?;
        let result: v3::LookupRes<'_> = Decoder::new(&results).get()?;
        let ok = result.ok().map_err(|status| anyhow::anyhow!("looking up {name}: {status}"))?;
        Ok(ok.object.0.to_vec())
    }

    /// Size of a file.
    pub(crate) fn size3(&mut self, file: &[u8]) -> Result<u64> {
        let results = self.v3(v3::Proc3::GETATTR, &v3::GetattrArgs { object: file.into() })?;
        let result: v3::GetattrRes = Decoder::new(&results).get()?;
        let ok = result.ok().map_err(|status| anyhow::anyhow!("attributes: {status}"))?;
        Ok(ok.obj_attributes.size)
    }

    /// Writes `size` bytes from the start of a file.
    pub(crate) fn fill3(&mut self, file: &[u8], size: u64) -> Result<()> {
        let block = vec![0x5a; 1 << 16];
        let mut offset = 0;
        while offset < size {
            let count = (size - offset).min(block.len() as u64) as u32;
            let data = Bulk::Bytes(&block[..count as usize]);
            let stable = v3::StableHow::FileSync;
            let args = v3::WriteArgs { file: file.into(), offset, count, stable, data };
            let results = self.v3(v3::Proc3::WRITE, &args)?;
            let result: v3::WriteRes = Decoder::new(&results).get()?;
            let ok = result.ok().map_err(|status| anyhow::anyhow!("writing: {status}"))?;
            ensure!(ok.count > 0, "a write of nothing");
            offset += u64::from(ok.count);
        }
        Ok(())
    }
}

/// A client of 4.1 with one session on one connection.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) id: Sessionid4,
    /// Client id.
    pub(crate) clientid: u64,
    /// Slots granted.
    pub(crate) slots: u32,
    /// Sequence number of slot 0.
    sequence: u32,
}

impl Session {
    /// Introduces client `owner` and makes a session of up to `slots` slots, without a back channel.
    pub(crate) fn new(address: SocketAddr, owner: &str, slots: u32) -> Result<Self> {
        let mut client = Client::connect(address)?;
        let verifier = std::time::UNIX_EPOCH.elapsed()?.as_nanos().to_be_bytes();
        let mut instance = [0; 8];
        instance.copy_from_slice(&verifier[8..]);
        let exchange = Argop::ExchangeId(ExchangeIdArgs {
            clientowner: ClientOwner4 { verifier: instance, ownerid: owner.as_bytes().into() },
            flags: v4::EXCHGID_USE_NON_PNFS,
            state_protect: StateProtect4A::None,
            client_impl_id: None,
        });
        let results = compound(&mut client, &[exchange])?;
        let Some(Resop::ExchangeId(Ok(known))) = results_of(&results)?.pop() else { bail!("EXCHANGE_ID") };
        let clientid = known.clientid;
        let fore_chan_attrs = ChannelAttrs4 {
            headerpadsize: 0,
            maxrequestsize: (1 << 20) + 4096,
            maxresponsesize: (1 << 20) + 4096,
            maxresponsesize_cached: 4096,
            maxoperations: 16,
            maxrequests: slots,
            rdma_ird: None,
        };
        let back_chan_attrs =
            ChannelAttrs4 { maxrequestsize: 4096, maxresponsesize: 4096, maxrequests: 1, ..fore_chan_attrs };
        let create = Argop::CreateSession(CreateSessionArgs {
            clientid,
            sequence: known.sequenceid,
            flags: 0,
            fore_chan_attrs,
            back_chan_attrs,
            cb_program: 0x4000_0000,
            sec_parms: List::Items(&[CallbackSecParms4::None]),
        });
        let results = compound(&mut client, &[create])?;
        let Some(Resop::CreateSession(Ok(made))) = results_of(&results)?.pop() else {
            bail!("CREATE_SESSION")
        };
        let slots = made.fore_chan_attrs.maxrequests.min(slots);
        let mut session = Self { client, id: made.sessionid, clientid, slots, sequence: 0 };
        session.compound(&[Argop::ReclaimComplete(ReclaimCompleteArgs { one_fs: false })])?;
        Ok(session)
    }

    /// Sends SEQUENCE and `ops`; returns the results, all of which are good.
    pub(crate) fn compound(&mut self, ops: &[Argop<'_>]) -> Result<Vec<u8>> {
        self.sequence += 1;
        let sequence = SequenceArgs {
            sessionid: self.id,
            sequenceid: self.sequence,
            slotid: 0,
            highest_slotid: self.slots - 1,
            cachethis: false,
        };
        let mut all = vec![Argop::Sequence(sequence)];
        all.extend_from_slice(ops);
        compound(&mut self.client, &all)
    }

    /// Last sequence number used on slot 0; that of the others is 0.
    pub(crate) fn sequence(&self) -> u32 {
        self.sequence
    }

    /// Size of a file.
    pub(crate) fn size(&mut self, file: &[u8]) -> Result<u64> {
        let putfh = Argop::Putfh(v4::PutfhArgs { object: file.into() });
        let attr_request = v4::Bitmap4::of(&[v4::fattr4::SIZE]);
        let results = self.compound(&[putfh, Argop::Getattr(v4::GetattrArgs { attr_request })])?;
        let Some(Resop::Getattr(Ok(ok))) = results_of(&results)?.pop() else { bail!("GETATTR") };
        v4::Attributes::decode(&ok.obj_attributes)?.size.context("a file without a size")
    }

    /// Filehandle of a path of names.
    pub(crate) fn lookup(&mut self, path: &str) -> Result<Vec<u8>> {
        let mut ops = vec![Argop::Putrootfh];
        let names = path.split('/').filter(|name| !name.is_empty());
        ops.extend(names.map(|name| Argop::Lookup(v4::LookupArgs { objname: name.into() })));
        ops.push(Argop::Getfh);
        let results = self.compound(&ops)?;
        handle(&results)
    }
}

/// The filehandle that GETFH returned.
pub(crate) fn handle(results: &[u8]) -> Result<Vec<u8>> {
    results_of(results)?
        .iter()
        .find_map(|result| match result {
            Resop::Getfh(Ok(ok)) => Some(ok.object.0.to_vec()),
            _ => None,
        })
        .context("no filehandle")
}

/// The results of a compound, decoded.
pub(crate) fn results_of(bytes: &[u8]) -> Result<Vec<Resop<'_>>> {
    let mut res: CompoundRes<'_> = Decoder::new(bytes).get()?;
    let mut out = Vec::new();
    while let Some(result) = res.results.take() {
        out.push(result?);
    }
    Ok(out)
}

fn compound(client: &mut Client, ops: &[Argop<'_>]) -> Result<Vec<u8>> {
    let results = client.call(v4::NFS_PROGRAM, v4::NFS_V4, v4::PROC_COMPOUND, |e| {
        e.put(&CompoundHeader { tag: "".into(), minorversion: 1, count: ops.len() as u32 });
        ops.iter().for_each(|op| e.put(op));
    })?;
    let res: CompoundRes<'_> = Decoder::new(&results).get()?;
    ensure!(res.status == Nfsstat4::OK, "{} at operation {} of {ops:?}", res.status, res.results.left());
    Ok(results)
}
