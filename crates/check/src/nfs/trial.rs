//! The environment of checks: a server, a directory for each check, up to two clients.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_proto::v4::{self, Argop, Createtype4, Ftype4, Nfsstat4, Verifier4};
use benchmaster_nfs_proto::{mount, nlm, portmap, v3};
use benchmaster_record::nfs::NfsVersion;

use super::Refusal;
use super::callback::Listener;
use super::client4::{Answer, Client4, body};
use super::connection::{Connection, User};
use super::ops::{self, Attrs};
use super::stateless::{self, Client};
use crate::{Environment, Stop, Tried, Trouble};

/// The export that is checked, and how.
#[derive(Debug, Clone)]
pub struct Target {
    /// Address of the NFS service.
    pub nfs: SocketAddr,
    /// More addresses of the same server.
    pub others: Vec<SocketAddr>,
    /// Port of MOUNT; else that of NFS, or what the portmapper says.
    pub mount_port: Option<u16>,
    /// Path of the export.
    pub export: Vec<u8>,
    /// Whom to act as; its rights must allow to make a directory in the export.
    pub user: User,
    /// How long each reply is waited for.
    pub patience: Duration,
    /// Whether to go on where the export is not empty.
    pub force: bool,
    /// Longest time that a check may wait for a lease to end; others are left out.
    pub longest_lease: Duration,
    /// How long a server's grace period is waited for.
    pub grace: Duration,
}

/// The port of portmappers.
const PORTMAP: u16 = portmap::PORT;
/// Pause between looks at a grace period.
const GRACE: Duration = Duration::from_millis(500);
/// Names of directories that checks make in the export begin so.
const NAME: &str = "benchmaster-check-";

/// The environment of the checks of one version.
#[derive(Debug)]
pub struct Trial {
    pub(crate) target: Target,
    pub(crate) version: NfsVersion,
    /// Tells this run from others.
    nonce: u64,
    /// Tells each start of a client from the one before.
    starts: u64,
    first: Option<Client4>,
    second: Option<Client4>,
    stateless: Option<Client>,
    /// Where callbacks of 4.0 come, for all clients.
    listener: Option<Arc<Listener>>,
    /// Handle of the export's root.
    pub(crate) export: Vec<u8>,
    /// Handle and name of the directory for all checks.
    top: Vec<u8>,
    top_name: String,
    /// Handle and name of the directory of the check.
    pub(crate) dir: Vec<u8>,
    pub(crate) name: String,
}

impl Trial {
    /// Connects, and makes the directory in which everything happens.
    ///
    /// # Errors
    /// When the server does not speak the version, the export is not there or not empty, or nothing can be made in it.
    pub(crate) fn new(target: &Target, version: NfsVersion, nonce: u64) -> Result<Self, Refusal> {
        let mut trial = Self {
            target: target.clone(),
            version,
            nonce,
            starts: 0,
            first: None,
            second: None,
            stateless: None,
            listener: None,
            export: Vec::new(),
            top: Vec::new(),
            top_name: format!("{NAME}{nonce:x}"),
            dir: Vec::new(),
            name: String::new(),
        };
        let unusable = |stop| Refusal::unusable(version, stop);
        let names = trial.enter().map_err(unusable)?;
        // The root of an ext4 file system always has this.
        let found = names.iter().find(|name| !matches!(&name[..], b"." | b".." | b"lost+found"));
        if let Some(name) = found.filter(|_| !target.force) {
            return Err(Refusal::Full(String::from_utf8_lossy(name).into_owned()));
        }
        if let Err(stop) = trial.make_place() {
            // The reason is the first error.
            let _ = trial.finish();
            return Err(unusable(stop));
        }
        Ok(trial)
    }

    /// Finds the export: the names in it.
    fn enter(&mut self) -> Result<Vec<Vec<u8>>, Stop> {
        if self.version.minor().is_none() {
            let mut client = self.new_stateless()?;
            self.export = self.mount()?;
            let names = client.names(&self.export);
            self.stateless = Some(client);
            return names;
        }
        let mut client = self.start("first")?;
        let path = String::from_utf8_lossy(&self.target.export).into_owned();
        let mut walk = vec![Argop::Putrootfh];
        walk.extend(path.split('/').filter(|name| !name.is_empty()).map(ops::lookup));
        walk.push(Argop::Getfh);
        self.export = client.compound(&walk)?.ok()?.fh()?;
        let names = client.names(&self.export);
        self.first = Some(client);
        names
    }

    /// Makes the directory for all checks, and waits until files can be opened in it.
    fn make_place(&mut self) -> Tried {
        let (export, name) = (self.export.clone(), self.top_name.clone());
        if self.version.minor().is_none() {
            self.top = self.s()?.mkdir(&export, &name)?;
            return Ok(());
        }
        self.top = self.a()?.mkdir(&export, &name)?;
        let mut client = self.first.take().ok_or_else(gone)?;
        let waited = self.wait_for_grace(&mut client);
        self.first = Some(client);
        waited
    }

    /// What the server says of itself, where it does.
    pub(crate) fn implementation(&self) -> Option<&str> {
        self.first.as_ref()?.implementation.as_deref()
    }

    /// Opens a file until the server's grace period is over.
    fn wait_for_grace(&self, client: &mut Client4) -> Tried {
        let mut waited = Duration::ZERO;
        loop {
            match client.create(b"probe", &self.top, "grace")? {
                Ok(made) => {
                    client.close(&made)?;
                    return client.compound(&[ops::putfh(&self.top), ops::remove("grace")])?.ok().map(|_| ());
                }
                Err(Nfsstat4::GRACE) if waited < self.target.grace => {}
                Err(status) => return Err(Stop::failed("OPEN of a new file", status.to_string())),
            }
            std::thread::sleep(GRACE);
            waited += GRACE;
            // The lease must not end meanwhile.
            client.renew()?;
        }
    }

    /// A new connection to the NFS service.
    pub(crate) fn connect(&self) -> Result<Connection, Stop> {
        self.connect_to(self.target.nfs)
    }

    pub(crate) fn connect_to(&self, address: SocketAddr) -> Result<Connection, Stop> {
        let sent = || format!("a connection to {address}");
        Connection::open(address, self.target.patience)
            .map_err(|trouble| Stop::Trouble { sent: sent(), trouble })
    }

    /// A verifier that no other start of a client has.
    pub(crate) fn verifier(&mut self) -> Verifier4 {
        self.starts += 1;
        (self.nonce ^ self.starts.rotate_left(48)).to_be_bytes()
    }

    /// The name of a client.
    pub(crate) fn owner(&self, role: &str) -> String {
        format!("benchmaster-check {:x} {} {role}", self.nonce, self.version)
    }

    /// A client that is not known to the server yet.
    pub(crate) fn stranger(&mut self, role: &str) -> Result<Client4, Stop> {
        let minor = self.version.minor().unwrap_or_default();
        let mut client = Client4::bare(self.connect()?, minor, self.target.user, &self.owner(role));
        client.listener = self.listener.clone();
        Ok(client)
    }

    /// A client that has just started.
    pub(crate) fn start(&mut self, role: &str) -> Result<Client4, Stop> {
        let mut client = self.stranger(role)?;
        let verifier = self.verifier();
        client.introduce(verifier)?;
        self.listener = client.listener.clone();
        Ok(client)
    }

    /// The client of most checks.
    pub(crate) fn a(&mut self) -> Result<&mut Client4, Stop> {
        self.first.as_mut().ok_or_else(gone)
    }

    /// Both clients.
    pub(crate) fn both(&mut self) -> Result<(&mut Client4, &mut Client4), Stop> {
        if self.second.is_none() {
            self.second = Some(self.start("second")?);
        }
        match (&mut self.first, &mut self.second) {
            (Some(first), Some(second)) => Ok((first, second)),
            _ => Err(gone()),
        }
    }

    /// The client of versions 2 and 3.
    pub(crate) fn s(&mut self) -> Result<&mut Client, Stop> {
        self.stateless.as_mut().ok_or_else(gone)
    }

    /// Directory of the check.
    pub(crate) fn dir(&self) -> Vec<u8> {
        self.dir.clone()
    }

    fn new_stateless(&self) -> Result<Client, Stop> {
        Ok(Client { connection: self.connect()?, user: self.target.user, version: self.version })
    }

    /// Where a program listens: at the port of NFS, or where the portmapper says.
    pub(crate) fn program(&self, program: u32, version: u32, given: Option<u16>) -> Result<SocketAddr, Stop> {
        let ip = self.target.nfs.ip();
        if let Some(port) = given {
            return Ok((ip, port).into());
        }
        let mut connection = self.connect()?;
        let there = stateless::null(&mut connection, program, version);
        if there.is_ok_and(|there| there) {
            return Ok(self.target.nfs);
        }
        let port = self.port_of(ip, program, version)?;
        port.map(|port| (ip, port).into())
            .ok_or_else(|| Stop::not_applicable(format!("the portmapper knows no program {program}")))
    }

    fn port_of(&self, ip: IpAddr, program: u32, version: u32) -> Result<Option<u16>, Stop> {
        let mut connection = self
            .connect_to((ip, PORTMAP).into())
            .map_err(|_| Stop::not_applicable("neither at the port of NFS nor is there a portmapper"))?;
        stateless::port(&mut connection, program, version)
    }

    /// The address of MOUNT.
    pub(crate) fn mount_address(&self) -> Result<SocketAddr, Stop> {
        let version = if self.version == NfsVersion::V2 { mount::VERSION_1 } else { mount::VERSION_3 };
        self.program(mount::PROGRAM, version, self.target.mount_port)
    }

    /// The address of the lock manager.
    pub(crate) fn nlm_address(&self) -> Result<SocketAddr, Stop> {
        self.program(nlm::PROGRAM, nlm::v4::VERSION, None)
    }

    /// The export's handle, from MOUNT.
    fn mount(&self) -> Result<Vec<u8>, Stop> {
        let mut connection = self.connect_to(self.mount_address()?)?;
        stateless::mount(&mut connection, self.version, self.target.user, &self.target.export)
    }

    /// Takes away everything and says goodbye.
    pub(crate) fn finish(&mut self) -> Tried {
        match self.version.minor() {
            None => {
                let (export, name) = (self.export.clone(), self.top_name.clone());
                self.renew_stateless()?;
                self.s()?.remove_tree(&export, name.as_bytes())
            }
            Some(_) => {
                if self.second.is_some() {
                    self.start("second")?.leave()?;
                    self.second = None;
                }
                let mut client = self.start("first")?;
                self.first = None;
                client.remove_tree(&self.export, self.top_name.as_bytes())?;
                client.leave()
            }
        }
    }

    fn renew_stateless(&mut self) -> Tried {
        self.stateless = Some(self.new_stateless()?);
        Ok(())
    }
}

fn gone() -> Stop {
    Stop::Trouble { sent: "anything".into(), trouble: Trouble::Closed }
}

impl Environment for Trial {
    fn version(&self) -> Option<NfsVersion> {
        Some(self.version)
    }

    fn begin(&mut self, name: &str) -> Tried {
        self.name = name.to_owned();
        let top = self.top.clone();
        self.dir = match self.version.minor() {
            None => {
                self.renew_stateless()?;
                self.s()?.mkdir(&top, name)?
            }
            Some(_) => {
                // What an earlier check held is given up with it.
                if self.first.is_none() {
                    self.first = Some(self.start("first")?);
                }
                self.a()?.mkdir(&top, name)?
            }
        };
        Ok(())
    }

    fn end(&mut self) -> Tried {
        let (top, name) = (self.top.clone(), self.name.clone());
        match self.version.minor() {
            None => {
                self.renew_stateless()?;
                self.s()?.remove_tree(&top, name.as_bytes())
            }
            Some(_) => {
                if self.second.is_some() {
                    self.second = None;
                    self.start("second")?.leave()?;
                }
                self.first = None;
                self.first = Some(self.start("first")?);
                self.a()?.remove_tree(&top, name.as_bytes())
            }
        }
    }
}

/// What both ends of a check need besides calls: files.
impl Client4 {
    /// A new directory.
    pub(crate) fn mkdir(&mut self, dir: &[u8], name: &str) -> Result<Vec<u8>, Stop> {
        self.make(dir, name, Createtype4::Dir)
    }

    /// A new object that is no file.
    pub(crate) fn make(&mut self, dir: &[u8], name: &str, kind: Createtype4<'_>) -> Result<Vec<u8>, Stop> {
        let attrs = Attrs::mode(0o755);
        let answer =
            self.compound(&[ops::putfh(dir), ops::create(kind, name.as_bytes(), &attrs), Argop::Getfh])?;
        match (kind, answer.status()) {
            (_, Nfsstat4::OK) => answer.fh(),
            (Createtype4::Dir, _) => Err(answer.wrong("MKDIR is to succeed")),
            (_, Nfsstat4::BADTYPE | Nfsstat4::NOTSUPP | Nfsstat4::PERM) => {
                Err(Stop::not_applicable(format!("the server makes no {kind:?}: {}", answer.status())))
            }
            _ => Err(answer.wrong("CREATE is to succeed")),
        }
    }

    /// All names in a directory.
    pub(crate) fn names(&mut self, dir: &[u8]) -> Result<Vec<Vec<u8>>, Stop> {
        Ok(self.list(dir)?.into_iter().map(|(name, _)| name).collect())
    }

    /// All names in a directory, and whether each is a directory.
    fn list(&mut self, dir: &[u8]) -> Result<Vec<(Vec<u8>, bool)>, Stop> {
        let (mut cookie, mut verifier, mut all) = (0, [0; 8], Vec::new());
        loop {
            let readdir = ops::readdir(cookie, verifier, 16384, &[v4::fattr4::TYPE]);
            let answer = self.compound(&[ops::putfh(dir), readdir])?.ok()?;
            let page = body!(answer, Readdir);
            let before = cookie;
            for entry in page.entries.iter() {
                let attributes = v4::Attributes::decode(&entry.attrs).unwrap_or_default();
                all.push((entry.name.0.to_vec(), attributes.file_type == Some(Ftype4::Dir)));
                cookie = entry.cookie;
            }
            verifier = page.cookieverf;
            if page.eof {
                return Ok(all);
            }
            if cookie == before {
                return Err(answer.wrong("READDIR gives entries or the end"));
            }
        }
    }

    /// Removes a directory with all that is in it.
    pub(crate) fn remove_tree(&mut self, dir: &[u8], name: &[u8]) -> Tried {
        let target = name.into();
        let remove = Argop::Remove(v4::RemoveArgs { target });
        let answer = self.compound(&[ops::putfh(dir), remove])?;
        if answer.status() != Nfsstat4::NOTEMPTY && answer.status() != Nfsstat4::EXIST {
            return removed(&answer);
        }
        let fh = self.compound(&[ops::putfh(dir), ops::lookup_bytes(name), Argop::Getfh])?.ok()?.fh()?;
        // A check may have taken away its own rights.
        let mode = Attrs::mode(0o700);
        self.compound(&[ops::putfh(&fh), ops::setattr(v4::Stateid4::ANONYMOUS, &mode)])?;
        for (child, is_dir) in self.list(&fh)? {
            let target = (&child[..]).into();
            let remove = Argop::Remove(v4::RemoveArgs { target });
            if is_dir {
                self.remove_tree(&fh, &child)?;
            } else {
                removed(&self.compound(&[ops::putfh(&fh), remove])?)?;
            }
        }
        removed(&self.compound(&[ops::putfh(dir), remove])?)
    }

    /// Keeps the lease.
    pub(crate) fn renew(&mut self) -> Tried {
        let answer = match self.minor {
            0 => self.compound(&[Argop::Renew(v4::RenewArgs { clientid: self.clientid })])?,
            _ => self.compound(&[])?,
        };
        answer.ok().map(|_| ())
    }
}

fn removed(answer: &Answer) -> Tried {
    answer.is(&[Nfsstat4::OK, Nfsstat4::NOENT])
}

/// Whether a server speaks a version: NULL of versions 2 and 3, an empty COMPOUND of a minor version.
pub(crate) fn speaks(target: &Target, version: NfsVersion) -> Result<bool, Stop> {
    let stop = |trouble| Stop::Trouble { sent: format!("a call of version {version}"), trouble };
    let mut connection = Connection::open(target.nfs, target.patience).map_err(stop)?;
    let spoken = stateless::null(&mut connection, v3::PROGRAM, version.major()).map_err(stop)?;
    match version.minor() {
        Some(minor) if spoken => {
            let mut client = Client4::bare(connection, minor, target.user, "");
            Ok(client.compound(&[])?.status() != Nfsstat4::MINOR_VERS_MISMATCH)
        }
        _ => Ok(spoken),
    }
}
