//! From a connection to a mounted export: client id, session, root. And back again.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_proto::rpc::AuthFlavor;
use benchmaster_nfs_proto::v4::{
    BindConnToSessionArgs, BindConnToSessionOk, Bitmap4, CREATE_SESSION_CONN_BACK_CHAN, CallbackSecParms4,
    CbClient4, ChannelAttrs4, ChannelDirFromClient4, ClientOwner4, CreateSessionArgs, CreateSessionOk,
    DestroyClientidArgs, DestroySessionArgs, EXCHGID_CONFIRMED_R, ExchangeIdArgs, ExchangeIdOk, GetattrArgs,
    GetattrOk, GetfhOk, LookupArgs, Netaddr4, NfsClientId4, NfsImplId4, Nfsstat4, Nfstime4, Opnum,
    ReclaimCompleteArgs, Secinfo4, SecinfoArgs, SecinfoOk, SetclientidArgs, SetclientidConfirmArgs,
    SetclientidRes, StateProtect4A, fattr4,
};
use benchmaster_nfs_proto::xdr::List;
use benchmaster_rpc_gss::flavor::KRB5_OID;
use benchmaster_rpc_gss::{Flavor, Flavors};

use super::compound::Failure;
use super::delegation::{RecallHook, SurrenderHook};
use super::request::Kind;
use super::trunk::Introduced;
use super::{Client, ConnectError, Inner, LARGEST_IO, ROOM, attrs};
use crate::counters::Event;
use crate::delay::Delay;
use crate::error::NfsError;
use crate::ops::v4 as ops;
use crate::protocol::NfsResult;
use crate::rpc::CallbackListener;
use crate::types::{FileType, Handle, Limits};

/// Program number of callbacks.
pub(super) const CALLBACK_PROGRAM: u32 = 0x4000_0000;
/// Slots of the back channel.
pub(super) const BACK_SLOTS: u32 = 16;
/// How often a client id is destroyed that the server says is busy (Linux: `NFS4_MAX_LOOP_ON_RECOVER`).
const BUSY: u32 = 10;
/// Restarts of the server during one mount: with the pauses between, in three seconds.
const RESTARTS: u32 = 5;
/// Longest callback taken.
const BACK_SIZE: u32 = 4096;

impl Inner {
    /// Introduces the client and finds the export.
    pub(super) async fn establish(self: &Rc<Self>) -> Result<(), ConnectError> {
        self.leased_since(self.reactor.now());
        self.introduce().await.map_err(ConnectError::Client)?;
        self.trunk().await?;
        self.renewed.set(self.reactor.now());
        let export = |reason| ConnectError::Export {
            export: String::from_utf8_lossy(&self.options.export).into_owned(),
            reason,
        };
        if let Err(error) = self.find_root().await {
            return Err(export(self.explained(error).await));
        }
        self.file_system_info().await.map_err(export)?;
        self.keep_lease();
        self.keep_back_channel();
        Ok(())
    }

    /// Introduces the client, from the beginning if the server is started again in the middle. A server that does not know what
    /// it has just given out, time and again, is given up.
    async fn introduce(self: &Rc<Self>) -> NfsResult<()> {
        let mut delay = Delay::new(self.options.delay);
        let mut restarts = 0;
        loop {
            let result =
                if self.has_sessions() { self.begin_session().await } else { self.set_client_id().await };
            match result {
                Err(NfsError::V4(
                    Nfsstat4::BADSESSION | Nfsstat4::DEADSESSION | Nfsstat4::STALE_CLIENTID,
                )) if restarts < RESTARTS => {
                    restarts += 1;
                    let at = delay.again(self.reactor.now())?;
                    self.reactor.sleep_until(at).await;
                }
                result => return result,
            }
        }
    }

    async fn begin_session(self: &Rc<Self>) -> NfsResult<()> {
        self.exchange_id().await?;
        self.create_session().await?;
        self.reclaim_complete().await
    }

    /// Makes a request outside of a session, again while the server asks to.
    async fn patiently<R>(self: &Rc<Self>, request: impl AsyncFn() -> NfsResult<R>) -> NfsResult<R> {
        let mut delay = Delay::new(self.options.delay);
        loop {
            match request().await {
                Err(NfsError::V4(Nfsstat4::DELAY | Nfsstat4::BACK_CHAN_BUSY)) => {
                    delay.pause(&self.reactor, &self.counters, Event::Delay).await?;
                }
                result => return result,
            }
        }
    }

    /// EXCHANGE_ID; whether the server still knows this client id, with its state.
    pub(super) async fn exchange_id(self: &Rc<Self>) -> NfsResult<bool> {
        let introduced = self.exchange_id_on(0).await?;
        let known = introduced.flags & EXCHGID_CONFIRMED_R != 0 && introduced.client == self.client.get();
        self.client.set(introduced.client);
        self.back.sequence.set(introduced.sequence);
        *self.server.borrow_mut() = introduced.server;
        Ok(known)
    }

    /// EXCHANGE_ID on a connection; changes nothing here.
    pub(super) async fn exchange_id_on(self: &Rc<Self>, connection: usize) -> NfsResult<Introduced> {
        let options = &self.options;
        let args = ExchangeIdArgs {
            clientowner: ClientOwner4 { verifier: options.verifier, ownerid: options.identity[..].into() },
            flags: 0,
            state_protect: StateProtect4A::None,
            client_impl_id: Some(NfsImplId4 {
                domain: "benchmaster".into(),
                name: concat!("benchmaster ", env!("CARGO_PKG_VERSION")).into(),
                date: Nfstime4::default(),
            }),
        };
        let kind = Kind::reading(ops::EXCHANGE_ID).recovering(true).bare(connection);
        self.patiently(async || {
            self.request(
                kind,
                |ops| {
                    ops.put(Opnum::EXCHANGE_ID, &args);
                },
                |results| Ok(Introduced::of(&results.take::<ExchangeIdOk<'_>>(Opnum::EXCHANGE_ID)?)),
            )
            .await
        })
        .await
    }

    /// CREATE_SESSION, on the first connection, which becomes the back channel.
    pub(super) async fn create_session(self: &Rc<Self>) -> NfsResult<()> {
        let options = &self.options;
        let io = |wanted: u32| if wanted == 0 { LARGEST_IO } else { wanted };
        let args = CreateSessionArgs {
            clientid: self.client.get(),
            sequence: self.back.sequence.get(),
            flags: CREATE_SESSION_CONN_BACK_CHAN,
            fore_chan_attrs: ChannelAttrs4 {
                headerpadsize: 0,
                maxrequestsize: io(options.wsize).saturating_add(ROOM),
                maxresponsesize: io(options.rsize).saturating_add(ROOM),
                maxresponsesize_cached: ROOM,
                maxoperations: 16,
                maxrequests: options.slots.max(1),
                rdma_ird: None,
            },
            back_chan_attrs: ChannelAttrs4 {
                headerpadsize: 0,
                maxrequestsize: BACK_SIZE,
                maxresponsesize: BACK_SIZE,
                maxresponsesize_cached: BACK_SIZE,
                maxoperations: 8,
                maxrequests: BACK_SLOTS,
                rdma_ird: None,
            },
            cb_program: CALLBACK_PROGRAM,
            sec_parms: List::Items(&[CallbackSecParms4::None]),
        };
        let begun = self.reactor.now();
        let kind = Kind::reading(ops::CREATE_SESSION).recovering(true).bare(0);
        let ok: CreateSessionOk =
            self.patiently(async || self.ask(kind, None, Opnum::CREATE_SESSION, &args).await).await?;
        self.back.sequence.set(args.sequence.wrapping_add(1));
        let fore = ok.fore_chan_attrs;
        if fore.maxrequests == 0 || fore.maxoperations < 8 {
            return Err(NfsError::Nonsense("a session without slots or with too few operations"));
        }
        self.back.begin(ok.sessionid, ok.back_chan_attrs.maxrequests.min(BACK_SLOTS));
        self.back.generation.set(self.rpc.generation(0));
        let mut limits = self.limits.get();
        limits.max_read = fore.maxresponsesize.saturating_sub(ROOM / 4).min(io(options.rsize));
        limits.max_write = fore.maxrequestsize.saturating_sub(ROOM / 4).min(io(options.wsize));
        self.back.limits.set((limits.max_read, limits.max_write));
        self.slots.renew(ok.sessionid, fore.maxrequests.min(options.slots.max(1)));
        self.renewed.set(self.reactor.now());
        self.leased_since(begun);
        Ok(())
    }

    /// RECLAIM_COMPLETE: before it a client cannot open anything.
    pub(super) async fn reclaim_complete(self: &Rc<Self>) -> NfsResult<()> {
        let kind = Kind::repeatable(ops::RECLAIM_COMPLETE).recovering(true);
        let args = ReclaimCompleteArgs { one_fs: false };
        match self.ask(kind, None, Opnum::RECLAIM_COMPLETE, &args).await {
            Err(NfsError::V4(Nfsstat4::COMPLETE_ALREADY)) => Ok(()),
            result => result,
        }
    }

    /// BIND_CONN_TO_SESSION of a connection: the first one for both channels, the others for ours.
    pub(super) async fn bind(self: &Rc<Self>, connection: usize) -> NfsResult<()> {
        let dir = match connection {
            0 => ChannelDirFromClient4::ForeOrBoth,
            _ => ChannelDirFromClient4::Fore,
        };
        let args = BindConnToSessionArgs { sessid: self.slots.session(), dir, use_conn_in_rdma_mode: false };
        let kind = Kind::reading(ops::BIND_CONN_TO_SESSION).recovering(true).bare(connection);
        let generation = self.rpc.generation(connection);
        let bind = async || self.ask(kind, None, Opnum::BIND_CONN_TO_SESSION, &args).await;
        let _: BindConnToSessionOk = self.patiently(bind).await?;
        self.counters.event(Event::ConnectionBound);
        if connection == 0 {
            self.back.generation.set(generation);
        }
        Ok(())
    }

    /// Binds the back channel again.
    pub(super) async fn bind_back(self: &Rc<Self>) -> NfsResult<()> {
        match self.bind(0).await {
            // A server that does not call back can be lived with.
            Err(NfsError::V4(status)) if !matches!(status, Nfsstat4::BADSESSION | Nfsstat4::DEADSESSION) => {
                Ok(())
            }
            result => result,
        }
    }

    /// DESTROY_SESSION; no error where there is none.
    pub(super) async fn destroy_session(self: &Rc<Self>) -> NfsResult<()> {
        let args = DestroySessionArgs { sessionid: self.slots.session() };
        let kind = Kind::reading(ops::DESTROY_SESSION).recovering(true).bare(0);
        let destroy = async || self.ask(kind, None, Opnum::DESTROY_SESSION, &args).await;
        match self.patiently(destroy).await {
            Err(NfsError::V4(_)) => Ok(()),
            result => result,
        }
    }

    /// SETCLIENTID and SETCLIENTID_CONFIRM (4.0).
    pub(super) async fn set_client_id(self: &Rc<Self>) -> NfsResult<()> {
        let options = &self.options;
        let (netid, address) = self.callback_address();
        let callback_ident = self.back.ident.get().wrapping_add(1);
        self.back.ident.set(callback_ident);
        let args = SetclientidArgs {
            client: NfsClientId4 { verifier: options.verifier, id: options.identity[..].into() },
            callback: CbClient4 {
                cb_program: CALLBACK_PROGRAM,
                cb_location: Netaddr4 { r_netid: netid.into(), r_addr: address.as_str().into() },
            },
            callback_ident,
        };
        let begun = self.reactor.now();
        let kind = Kind::reading(ops::SETCLIENTID).recovering(true).bare(0);
        let ok = self
            .patiently(async || {
                self.request(
                    kind,
                    |ops| {
                        ops.put(Opnum::SETCLIENTID, &args);
                    },
                    |results| match results.result(Opnum::SETCLIENTID)? {
                        SetclientidRes::Ok(ok) => Ok(ok),
                        SetclientidRes::ClidInuse(_) => Err(Nfsstat4::CLID_INUSE.into()),
                        SetclientidRes::Err(status) => Err(status.into()),
                    },
                )
                .await
            })
            .await?;
        let args =
            SetclientidConfirmArgs { clientid: ok.clientid, setclientid_confirm: ok.setclientid_confirm };
        let kind = Kind::reading(ops::SETCLIENTID_CONFIRM).recovering(true).bare(0);
        let confirm = async || self.ask::<()>(kind, None, Opnum::SETCLIENTID_CONFIRM, &args).await;
        self.patiently(confirm).await?;
        self.client.set(ok.clientid);
        self.renewed.set(self.reactor.now());
        self.leased_since(begun);
        Ok(())
    }

    /// Where the server of version 4.0 calls back: transport and universal address (RFC 5665 §5.2.3).
    fn callback_address(&self) -> (&'static str, String) {
        let listens = self.listener.borrow().as_ref().map(CallbackListener::address);
        let [high, low] = listens.map_or(0, |address| address.port()).to_be_bytes();
        match self.rpc.local_address(0).or(listens) {
            Some(SocketAddr::V6(address)) => ("tcp6", format!("{}.{high}.{low}", address.ip())),
            Some(SocketAddr::V4(address)) => ("tcp", format!("{}.{high}.{low}", address.ip())),
            None => ("tcp", format!("0.0.0.0.{high}.{low}")),
        }
    }

    /// Looks the export up from the root, in one request.
    async fn find_root(self: &Rc<Self>) -> NfsResult<()> {
        let path = &self.options.export;
        let names = || path.split(|byte| *byte == b'/').filter(|name| !name.is_empty());
        // A session limits the operations of a request.
        const AT_ONCE: usize = 8;
        let names: Vec<&[u8]> = names().collect();
        let mut from: Option<Handle> = None;
        let mut parts = names.chunks(AT_ONCE);
        loop {
            let part = parts.next().unwrap_or_default();
            let (handle, found) = self
                .request(
                    Kind::reading(ops::LOOKUP_ROOT),
                    |ops| {
                        match &from {
                            Some(handle) => ops.on(handle),
                            None => ops.put(Opnum::PUTROOTFH, &()),
                        };
                        for name in part {
                            ops.put(Opnum::LOOKUP, &LookupArgs { objname: (*name).into() });
                        }
                        ops.put(Opnum::GETFH, &());
                        ops.attributes();
                    },
                    |results| {
                        results.take::<()>(if from.is_some() { Opnum::PUTFH } else { Opnum::PUTROOTFH })?;
                        for _ in part {
                            results.take::<()>(Opnum::LOOKUP)?;
                        }
                        let handle = handle_of(results.take(Opnum::GETFH)?)?;
                        let got: GetattrOk<'_> = results.take(Opnum::GETATTR)?;
                        Ok((handle, attrs::decode(&got.obj_attributes)?))
                    },
                )
                .await?;
            from = Some(handle);
            if parts.len() > 0 {
                continue;
            }
            if found.attributes.kind != FileType::Directory {
                return Err(NfsError::V4(Nfsstat4::NOTDIR));
            }
            self.root.set(handle);
            return Ok(());
        }
    }

    /// An export for other security flavours: which ones, by SECINFO of the last directory on the way that can be asked.
    async fn explained(self: &Rc<Self>, error: NfsError) -> NfsError {
        if !matches!(error, NfsError::V4(Nfsstat4::WRONGSEC)) {
            return error;
        }
        let wanted = self.options.gss.as_ref().map_or(Flavor::Sys, |gss| Flavor::of(gss.service));
        let path = &self.options.export;
        let names: Vec<&[u8]> = path.split(|byte| *byte == b'/').filter(|name| !name.is_empty()).collect();
        for (place, name) in names.iter().enumerate() {
            match self.flavors_of(&names[..place], name).await {
                Ok(allowed) if !allowed.contains(wanted) => {
                    return NfsError::WrongSecurity { wanted, allowed };
                }
                Ok(_) => {}
                Err(_) => return error,
            }
        }
        error
    }

    /// SECINFO.
    async fn flavors_of(self: &Rc<Self>, way: &[&[u8]], name: &[u8]) -> NfsResult<Flavors> {
        self.request(
            Kind::reading(ops::SECINFO),
            |ops| {
                ops.put(Opnum::PUTROOTFH, &());
                for name in way {
                    ops.put(Opnum::LOOKUP, &LookupArgs { objname: (*name).into() });
                }
                ops.put(Opnum::SECINFO, &SecinfoArgs { name: name.into() });
            },
            |results| {
                results.take::<()>(Opnum::PUTROOTFH)?;
                for _ in way {
                    results.take::<()>(Opnum::LOOKUP)?;
                }
                let ok: SecinfoOk<'_> = results.take(Opnum::SECINFO)?;
                let known = |entry: Secinfo4<'_>| match entry {
                    Secinfo4::RpcsecGss(info) if info.oid.0 == KRB5_OID => Some(Flavor::of(info.service)),
                    Secinfo4::Flavor(flavor) if flavor == AuthFlavor::SYS.0 => Some(Flavor::Sys),
                    _ => None,
                };
                Ok(ok.flavors.iter().filter_map(known).collect())
            },
        )
        .await
    }

    /// Limits of the file system, and what exclusive creates may set.
    async fn file_system_info(self: &Rc<Self>) -> NfsResult<()> {
        let root = self.root.get();
        let mut wanted =
            Bitmap4::of(&[fattr4::LEASE_TIME, fattr4::MAXREAD, fattr4::MAXWRITE, fattr4::TIME_DELTA]);
        if self.has_sessions() {
            wanted.set(fattr4::SUPPATTR_EXCLCREAT);
        }
        let (lease, max_read, max_write, delta, exclusive) = self
            .request(
                Kind::reading(ops::FSINFO),
                |ops| {
                    ops.on(&root);
                    ops.put(Opnum::GETATTR, &GetattrArgs { attr_request: wanted });
                },
                |results| {
                    results.on()?;
                    let ok: GetattrOk<'_> = results.take(Opnum::GETATTR)?;
                    let got = benchmaster_nfs_proto::v4::Attributes::decode(&ok.obj_attributes)
                        .map_err(|_| Failure::Nonsense("limits of the file system do not decode"))?;
                    let delta = got.time_delta;
                    Ok((got.lease_time, got.maxread, got.maxwrite, delta, got.suppattr_exclcreat))
                },
            )
            .await?;
        let (read, write) = if self.has_sessions() {
            self.back.limits.get()
        } else {
            (self.options.rsize, self.options.wsize)
        };
        let limit = |server: Option<u64>, ours: u32| {
            let ours = if ours == 0 { LARGEST_IO } else { ours };
            // RFC 7530 §5.8.2.20: a server that does not tell takes what it likes of a request.
            let server = server.filter(|max| *max > 0).unwrap_or(1 << 20);
            u32::try_from(server).map_or(ours, |server| server.min(ours)).max(1)
        };
        let lease_seconds = lease.unwrap_or(90).max(1);
        self.lease.set(Duration::from_secs(lease_seconds.into()));
        let delta = delta.map_or(1, |delta| {
            let whole = delta.seconds.max(0).cast_unsigned().saturating_mul(1_000_000_000);
            whole.saturating_add(delta.nseconds.into()).max(1)
        });
        self.exclusive.set(exclusive.unwrap_or_default());
        self.limits.set(Limits {
            max_read: limit(max_read, read),
            max_write: limit(max_write, write),
            time_delta_ns: delta,
            lease_seconds,
        });
        Ok(())
    }

    /// Closes what is open, gives everything back and says goodbye.
    pub(super) async fn depart(self: &Rc<Self>) -> NfsResult<()> {
        for handle in self.delegations.handles() {
            self.return_delegation(&handle).await?;
        }
        for state in self.files.all() {
            self.close_state(&state).await?;
        }
        if !self.has_sessions() {
            return Ok(());
        }
        self.destroy_session().await?;
        let args = DestroyClientidArgs { clientid: self.client.get() };
        let kind = Kind::reading(ops::DESTROY_CLIENTID).recovering(true).bare(0);
        let mut delay = Delay::new(self.options.delay);
        for left in (0..BUSY).rev() {
            match self.ask(kind, None, Opnum::DESTROY_CLIENTID, &args).await {
                // A server that lost it already has what we want.
                Err(NfsError::V4(Nfsstat4::STALE_CLIENTID)) => return Ok(()),
                // What was under way when the session ended is not forgotten at once.
                Err(NfsError::V4(Nfsstat4::CLIENTID_BUSY)) if left > 0 => {
                    delay.pause(&self.reactor, &self.counters, Event::Delay).await?;
                }
                result => return result,
            }
        }
        Ok(())
    }
}

/// A filehandle out of a reply.
pub(super) fn handle_of(fh: GetfhOk<'_>) -> Result<Handle, Failure> {
    Handle::new(fh.object.0)
        .filter(|handle| !handle.bytes().is_empty())
        .ok_or(Failure::Nonsense("no filehandle"))
}

impl Client {
    /// Sets what is done between a recall and the return of a delegation: flush what is dirty, open at the server what
    /// was opened only here ([`Client::open_claim_delegate_cur`]).
    pub fn set_recall_hook(&self, hook: RecallHook) {
        self.0.delegations.set_hook(hook);
    }

    pub(crate) fn set_surrender_hook(&self, hook: SurrenderHook) {
        self.0.delegations.set_surrender(hook);
    }
}
