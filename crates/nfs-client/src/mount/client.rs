//! The client of whatever version a mount has.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;

use benchmaster_nfs_proto::v2::Nfsstat2;
use benchmaster_nfs_proto::v3::Nfsstat3;
use benchmaster_nfs_proto::v4::Nfsstat4;
use benchmaster_rpc_tls::ClientTls;

use super::{MountError, resolve};
use crate::cache::Lock;
use crate::counters::Counters;
use crate::delay::DelayPolicy;
use crate::error::NfsError;
use crate::options::MountOptions;
use crate::protocol::{NO_COPY, NfsResult, Opened, Protocol};
use crate::reactor::Reactor;
use crate::rpc;
use crate::types::{
    AccessBits, Attributes, Entry, Handle, Limits, LockKind, OpenHow, Range, Read, SetAttributes, Space,
    Stability, Verifier, Version, Written,
};
use crate::v4::{DelegationKind, RecallHook, SurrenderHook};
use crate::{stateless, v2, v3, v4};

/// A file given to the client of another version: cannot happen, because files are of the mount that opened them.
const MIXED: NfsError = NfsError::Nonsense("a file of another mount");

/// A client of one of the versions.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "there is one per mount, and it stays where it is")]
pub enum Client {
    /// NFS version 2, with MOUNT version 1 and NLM.
    V2(v2::Client),
    /// NFS version 3, with MOUNT version 3 and NLM.
    V3(v3::Client),
    /// NFS version 4, any minor version.
    V4(v4::Client),
}

/// What protects connections and calls.
#[derive(Debug, Clone)]
pub(super) struct Protection {
    pub(super) tls: Option<ClientTls>,
    pub(super) gss: Option<rpc::ClientGss>,
}

/// An open file of one of the versions.
#[derive(Debug)]
pub enum ClientFile {
    /// A handle: versions 2 and 3 have no open files.
    Stateless(stateless::File),
    /// A handle with the state of an OPEN.
    V4(v4::File),
}

/// Calls the client, of whichever version it is.
macro_rules! each {
    ($this:expr, $client:ident => $call:expr) => {
        match $this {
            Client::V2($client) => $call,
            Client::V3($client) => $call,
            Client::V4($client) => $call,
        }
    };
}

/// As [`each`], with an open file, which must be of the same version.
macro_rules! each_file {
    ($this:expr, $file:expr, ($client:ident, $open:ident) => $call:expr) => {
        match ($this, $file) {
            (Client::V2($client), ClientFile::Stateless($open)) => $call,
            (Client::V3($client), ClientFile::Stateless($open)) => $call,
            (Client::V4($client), ClientFile::V4($open)) => $call,
            _ => Err(MIXED),
        }
    };
}

impl Protocol for Client {
    type File = ClientFile;

    fn root(&self) -> Handle {
        each!(self, client => client.root())
    }

    fn limits(&self) -> Limits {
        each!(self, client => client.limits())
    }

    fn handle(file: &ClientFile) -> Handle {
        match file {
            ClientFile::Stateless(file) => file.handle,
            ClientFile::V4(file) => file.handle(),
        }
    }

    async fn lookup(&self, directory: &Handle, name: &[u8]) -> NfsResult<(Handle, Option<Attributes>)> {
        each!(self, client => client.lookup(directory, name).await)
    }

    async fn getattr(&self, file: &Handle) -> NfsResult<Attributes> {
        each!(self, client => client.getattr(file).await)
    }

    async fn setattr(&self, file: &Handle, open: Option<&ClientFile>, set: &SetAttributes) -> NfsResult<()> {
        let Some(open) = open else { return each!(self, client => client.setattr(file, None, set).await) };
        each_file!(self, open, (client, open) => client.setattr(file, Some(open), set).await)
    }

    async fn access(&self, file: &Handle, wanted: AccessBits) -> NfsResult<(AccessBits, Option<Attributes>)> {
        each!(self, client => client.access(file, wanted).await)
    }

    async fn open(&self, directory: &Handle, name: &[u8], how: &OpenHow) -> NfsResult<Opened<ClientFile>> {
        Ok(match self {
            Self::V2(client) => client.open(directory, name, how).await?.map(ClientFile::Stateless),
            Self::V3(client) => client.open(directory, name, how).await?.map(ClientFile::Stateless),
            Self::V4(client) => client.open(directory, name, how).await?.map(ClientFile::V4),
        })
    }

    async fn close(&self, file: ClientFile) -> NfsResult<()> {
        each_file!(self, file, (client, file) => client.close(file).await)
    }

    async fn read_noting(
        &self,
        file: &ClientFile,
        buffer: &mut [u8],
        offset: u64,
        after: Option<&mut Option<Attributes>>,
    ) -> NfsResult<Read> {
        each_file!(self, file, (client, file) => client.read_noting(file, buffer, offset, after).await)
    }

    async fn write(
        &self,
        file: &ClientFile,
        data: &[u8],
        offset: u64,
        stability: Stability,
    ) -> NfsResult<Written> {
        each_file!(self, file, (client, file) => client.write(file, data, offset, stability).await)
    }

    async fn commit(&self, file: &ClientFile, range: Range) -> NfsResult<Verifier> {
        each_file!(self, file, (client, file) => client.commit(file, range).await)
    }

    async fn lock(
        &self,
        file: &ClientFile,
        owner: u64,
        kind: LockKind,
        range: Range,
        wait: bool,
    ) -> NfsResult<Option<Attributes>> {
        each_file!(self, file, (client, file) => client.lock(file, owner, kind, range, wait).await)
    }

    async fn unlock(&self, file: &ClientFile, owner: u64, range: Range) -> NfsResult<()> {
        each_file!(self, file, (client, file) => client.unlock(file, owner, range).await)
    }

    async fn mkdir(&self, directory: &Handle, name: &[u8], mode: u32) -> NfsResult<Option<Handle>> {
        each!(self, client => client.mkdir(directory, name, mode).await)
    }

    async fn symlink(&self, directory: &Handle, name: &[u8], target: &[u8]) -> NfsResult<()> {
        each!(self, client => client.symlink(directory, name, target).await)
    }

    async fn readlink(&self, link: &Handle) -> NfsResult<Vec<u8>> {
        each!(self, client => client.readlink(link).await)
    }

    async fn link(&self, file: &Handle, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        each!(self, client => client.link(file, directory, name).await)
    }

    async fn remove(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        each!(self, client => client.remove(directory, name).await)
    }

    async fn rmdir(&self, directory: &Handle, name: &[u8]) -> NfsResult<()> {
        each!(self, client => client.rmdir(directory, name).await)
    }

    async fn rename(&self, from: (&Handle, &[u8]), to: (&Handle, &[u8])) -> NfsResult<()> {
        each!(self, client => client.rename(from, to).await)
    }

    async fn readdir(
        &self,
        directory: &Handle,
        plus: bool,
        visit: &mut dyn FnMut(&Entry<'_>),
    ) -> NfsResult<()> {
        each!(self, client => client.readdir(directory, plus, visit).await)
    }

    async fn space(&self) -> NfsResult<Space> {
        each!(self, client => client.space().await)
    }

    async fn copy(
        &self,
        source: (&ClientFile, u64),
        destination: (&ClientFile, u64),
        length: u64,
    ) -> NfsResult<u64> {
        let ((from, from_offset), (to, to_offset)) = (source, destination);
        match (self, from, to) {
            (Self::V4(client), ClientFile::V4(from), ClientFile::V4(to)) => {
                client.copy((from, from_offset), (to, to_offset), length).await
            }
            (Self::V4(_), ..) => Err(MIXED),
            _ => Err(NO_COPY),
        }
    }

    async fn allocate(&self, file: &ClientFile, range: Range) -> NfsResult<()> {
        each_file!(self, file, (client, file) => client.allocate(file, range).await)
    }

    async fn seek_data(&self, file: &ClientFile, offset: u64) -> NfsResult<Option<u64>> {
        each_file!(self, file, (client, file) => client.seek_data(file, offset).await)
    }

    async fn get_xattr(&self, file: &Handle, name: &[u8]) -> NfsResult<Vec<u8>> {
        each!(self, client => client.get_xattr(file, name).await)
    }

    async fn set_xattr(&self, file: &Handle, name: &[u8], value: &[u8]) -> NfsResult<()> {
        each!(self, client => client.set_xattr(file, name, value).await)
    }

    async fn list_xattrs(&self, file: &Handle, visit: &mut dyn FnMut(&[u8])) -> NfsResult<()> {
        each!(self, client => client.list_xattrs(file, visit).await)
    }

    async fn remove_xattr(&self, file: &Handle, name: &[u8]) -> NfsResult<()> {
        each!(self, client => client.remove_xattr(file, name).await)
    }

    async fn unmount(self) -> NfsResult<()> {
        each!(self, client => client.unmount().await)
    }
}

/// What only the cache needs.
impl Client {
    /// An open file by its handle, where the version needs no request for it.
    pub(super) fn file_of(&self, handle: &Handle) -> Option<ClientFile> {
        match self {
            Self::V2(_) | Self::V3(_) => Some(ClientFile::Stateless(stateless::File { handle: *handle })),
            Self::V4(_) => None,
        }
    }

    /// The delegation of a file, unless it is being given back.
    pub(super) fn delegation(&self, handle: &Handle) -> Option<DelegationKind> {
        match self {
            Self::V2(_) | Self::V3(_) => None,
            Self::V4(client) => client.delegation(handle).map(|delegation| delegation.kind),
        }
    }

    /// Opens at the server what was opened under a delegation.
    pub(super) async fn open_delegated(
        &self,
        handle: &Handle,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
        beside: Option<&ClientFile>,
    ) -> NfsResult<ClientFile> {
        let beside = match beside {
            Some(ClientFile::V4(file)) => Some(file),
            _ => None,
        };
        match self {
            Self::V2(_) | Self::V3(_) => Err(NfsError::Unsupported("delegations need version 4")),
            Self::V4(client) => {
                let opened = client.open_claim_delegate_cur(handle, directory, name, how, beside);
                opened.await.map(ClientFile::V4)
            }
        }
    }

    /// Whether an open file, or its locks, were lost: it answers with errors until it is closed.
    pub(super) fn is_lost(&self, file: &ClientFile) -> bool {
        matches!(file, ClientFile::V4(file) if file.is_lost())
    }

    /// Whether two files are one open to the server.
    pub(super) fn is_same_open(&self, one: &ClientFile, other: &ClientFile) -> bool {
        match (one, other) {
            (ClientFile::V4(one), ClientFile::V4(other)) => one.is_same_open(other),
            _ => true,
        }
    }

    /// Gives a delegation back.
    pub(super) async fn return_delegation(&self, handle: &Handle) -> NfsResult<()> {
        match self {
            Self::V2(_) | Self::V3(_) => Ok(()),
            Self::V4(client) => client.return_delegation(handle).await,
        }
    }

    /// Sets what is done before a delegation that was recalled is given back.
    pub(super) fn set_recall_hook(&self, hook: RecallHook) {
        if let Self::V4(client) = self {
            client.set_recall_hook(hook);
        }
    }

    /// Sets what is done when something can no longer be kept under a delegation alone.
    pub(super) fn set_surrender_hook(&self, hook: SurrenderHook) {
        if let Self::V4(client) = self {
            client.set_surrender_hook(hook);
        }
    }

    /// A file that is open only under a delegation, as an open file that is to be recovered.
    pub(super) fn assume_open(
        &self,
        handle: &Handle,
        directory: &Handle,
        name: &[u8],
        how: &OpenHow,
    ) -> Option<ClientFile> {
        match self {
            Self::V2(_) | Self::V3(_) => None,
            Self::V4(client) => Some(ClientFile::V4(client.assume_open(handle, directory, name, how))),
        }
    }

    /// A lock that was kept under a delegation, as one of an open file: lost, or to be reclaimed.
    pub(super) fn assume_lock(&self, file: &ClientFile, lock: &Lock, lost: bool) {
        if let (Self::V4(client), ClientFile::V4(file)) = (self, file)
            && (lost || !lock.there)
        {
            client.assume_lock(file, lock.owner, lock.kind, lock.range, lost);
        }
    }

    /// Whose locks those of an open file will be.
    pub(super) fn set_locker(&self, file: &ClientFile, owner: u64) {
        if let (Self::V4(client), ClientFile::V4(file)) = (self, file) {
            client.set_locker(file, owner);
        }
    }

    /// Closes an open file, and gives up its locks, which the servers of versions 2 and 3 do not do by themselves.
    pub(super) async fn close_locked(&self, file: ClientFile, owner: u64) -> NfsResult<()> {
        let unlocked = match (self, &file) {
            (Self::V2(client), ClientFile::Stateless(file)) => client.unlock_closed(file, owner).await,
            (Self::V3(client), ClientFile::Stateless(file)) => client.unlock_closed(file, owner).await,
            _ => Ok(()),
        };
        unlocked.and(self.close(file).await)
    }

    /// FREE_STATEID after the last unlock, in versions that have it.
    pub(super) async fn free_stateid(&self, file: &ClientFile, owner: u64) -> NfsResult<()> {
        match (self, file) {
            (Self::V4(client), ClientFile::V4(file)) => client.free_stateid(file, owner).await,
            _ => Ok(()),
        }
    }

    /// The error of this version with the meaning of an error number.
    pub(super) fn error(&self, number: u32) -> NfsError {
        match self {
            Self::V2(_) => NfsError::V2(Nfsstat2(number)),
            Self::V3(_) => NfsError::V3(Nfsstat3(number)),
            Self::V4(_) => NfsError::V4(Nfsstat4(number)),
        }
    }
}

impl Client {
    /// Connects the client of the version that the options name.
    pub(super) async fn connect(
        reactor: &Reactor,
        counters: &Rc<Counters>,
        options: &MountOptions,
        addresses: &[SocketAddr],
        protection: &Protection,
        identity: &str,
    ) -> Result<Self, MountError> {
        match options.version {
            Version::V2 => {
                let Protection { tls, gss } = protection.clone();
                let connect = v3::Connect { tls, gss, ..stateless(options, addresses, identity) };
                let client = v2::Client::connect(reactor, counters, &connect).await;
                client.map(Self::V2).map_err(|error| refused(options, error))
            }
            Version::V3 => {
                let Protection { tls, gss } = protection.clone();
                let connect = v3::Connect { tls, gss, ..stateless(options, addresses, identity) };
                let client = v3::Client::connect(reactor, counters, &connect).await;
                client.map(Self::V3).map_err(|error| refused(options, error))
            }
            Version::V40 | Version::V41 | Version::V42 => {
                let mut failure = MountError::connect(options, io::Error::other("the server has no address"));
                let mut others = Vec::new();
                for host in &options.addresses {
                    others.extend(resolve(options, host)?.first());
                }
                for address in addresses {
                    let connect = stateful(reactor, options, *address, identity);
                    let Protection { tls, gss } = protection.clone();
                    let connect = v4::Connect { tls, gss, others: others.clone(), ..connect };
                    match v4::Client::connect(reactor, counters, &connect).await {
                        Ok(client) => return Ok(Self::V4(client)),
                        Err(v4::ConnectError::Connection { source, address: to }) if to == *address => {
                            failure = MountError::connect(options, source);
                        }
                        Err(v4::ConnectError::Connection { source, address }) => {
                            let options = MountOptions { host: address.ip().to_string(), ..options.clone() };
                            return Err(MountError::connect(&options, source));
                        }
                        Err(v4::ConnectError::Trunk { address, reason, .. }) => {
                            return Err(MountError::trunk(options, address, reason));
                        }
                        Err(v4::ConnectError::Callbacks(error)) => {
                            return Err(MountError::callbacks(options, error));
                        }
                        Err(v4::ConnectError::Minor(_)) => {
                            let error = NfsError::Unsupported("there is no such minor version");
                            return Err(MountError::refused(options, error));
                        }
                        Err(
                            v4::ConnectError::Client(error) | v4::ConnectError::Export { reason: error, .. },
                        ) => return Err(MountError::refused(options, error)),
                    }
                }
                Err(failure)
            }
        }
    }
}

/// How to mount with version 2 or 3.
fn stateless(options: &MountOptions, addresses: &[SocketAddr], identity: &str) -> v3::Connect {
    v3::Connect {
        addresses: addresses.iter().map(SocketAddr::ip).collect(),
        transport: options.transport,
        port: options.port,
        mount_port: options.mount_port,
        lock_port: None,
        export: options.export.clone(),
        tls: None,
        gss: None,
        connections: options.connections,
        nagle: options.nagle,
        read_size: options.read_size,
        write_size: options.write_size,
        timeout: options.timeout(),
        retransmissions: options.retransmissions(),
        uid: options.uid,
        gid: options.gid,
        gids: groups(options),
        machine: machine(),
        identity: identity.to_owned(),
        delay: delay(options),
        lock_delay: DelayPolicy::LOCK,
    }
}

/// How to mount with version 4.
fn stateful(reactor: &Reactor, options: &MountOptions, address: SocketAddr, identity: &str) -> v4::Connect {
    let machine = machine();
    // Two processes with the same identity must not take each other's open files.
    let (process, instance) = (reactor.process(), reactor.random());
    v4::Connect {
        address,
        others: Vec::new(),
        export: options.export.clone(),
        minor: options.version.minor().unwrap_or_default(),
        nconnect: options.connections,
        nagle: options.nagle,
        slots: options.slots,
        rsize: options.read_size,
        wsize: options.write_size,
        timeo: options.timeout(),
        retrans: options.retransmissions(),
        credential: rpc::credential(&machine, options.uid, options.gid, &groups(options)),
        identity: format!("benchmaster {machine}/{process} {identity}").into_bytes(),
        verifier: instance.to_ne_bytes(),
        delegations: options.wants_delegations(),
        append_to_locks: options.append_to_locks,
        delay: delay(options),
        lease_fraction: 2.0 / 3.0,
        tls: None,
        gss: None,
    }
}

/// Other groups of the user: those of this process, if it is its user.
fn groups(options: &MountOptions) -> Vec<u32> {
    if options.uid != rustix::process::geteuid().as_raw() {
        return Vec::new();
    }
    rustix::process::getgroups().unwrap_or_default().into_iter().map(|gid| gid.as_raw()).collect()
}

/// Pauses where the server asks for patience: as long as replies are waited for in all.
fn delay(options: &MountOptions) -> DelayPolicy {
    let give_up = options.timeout() * (options.retransmissions() + 1);
    DelayPolicy { initial: options.delay_initial, longest: options.delay_longest, give_up }
}

/// Name of this host, as credentials have it.
fn machine() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

fn refused(options: &MountOptions, error: v3::ConnectError) -> MountError {
    match error {
        v3::ConnectError::NoAddress => {
            MountError::connect(options, io::Error::other("the server has no address"))
        }
        v3::ConnectError::Unreachable { error, .. } => MountError::connect(options, error),
        v3::ConnectError::Nfs(error) => MountError::refused(options, error),
    }
}
