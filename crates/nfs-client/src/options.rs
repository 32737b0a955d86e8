//! Where an export is and how it is used: the URL `nfs://host[:port]/export/path?version=4.1&nconnect=2`.
//!
//! Names and units of options follow Linux' `mount` (nfs(5)) where it has them.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_rpc_gss::{Flavor, GssError, Initiator, InitiatorFiles, ServerName};
use benchmaster_rpc_tls::{ClientFiles, ClientTls, TlsError};
use benchmaster_units::TimeSpan;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, percent_encode};

use self::fields::{FIELDS, Given};
pub use self::paging::{Paging, ReadaheadRule, RequestList, Throttle};
use crate::rpc::{ClientGss, Transport};
use crate::types::{Stability, Version};

mod fields;
mod paging;

/// The port of NFS.
pub const NFS_PORT: u16 = 2049;
/// Largest READ and WRITE by default.
const DEFAULT_IO: u32 = 1 << 20;
/// Largest READ and WRITE that can be asked for.
const MAX_IO: u64 = 64 << 20;
/// What stays as it is in the path of a URL.
const PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/').remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// Why a URL or an option of it cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// It is no URL of an export.
    #[error("`{url}` {problem}; write nfs://server/export?version=4.1")]
    Url {
        /// Text as given.
        url: String,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// There is no such option.
    #[error("NFS has no option `{name}`; options are {}", FIELDS.map(|(name, ..)| name).join(", "))]
    Unknown {
        /// Text as given.
        name: String,
    },
    /// An option's value cannot be read or is out of range.
    #[error("NFS option `{name}` cannot be `{value}`; write {right}")]
    Value {
        /// Name of the option.
        name: &'static str,
        /// Text as given.
        value: String,
        /// What would be right.
        right: String,
    },
    /// Two options exclude each other.
    #[error("NFS option `{name}={value}` conflicts with `{other}`; {fix}")]
    Conflict {
        /// Name of the option.
        name: &'static str,
        /// Value in effect.
        value: String,
        /// The other option and its value.
        other: String,
        /// What would be right.
        fix: &'static str,
    },
}

/// What the client keeps of files between calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cache {
    /// Nothing: every operation goes to the wire.
    #[default]
    Off,
    /// Attributes, names, access rights and data, as the Linux client keeps them.
    Linux,
}

/// What protects the connections (Linux' `xprtsec`, nfs(5)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Security {
    /// Nothing.
    #[default]
    None,
    /// TLS (RFC 9289); the server has to show a certificate.
    Tls,
    /// TLS; the client shows one, too.
    Mtls,
}

/// How long cached attributes are believed (nfs(5)): between a shortest and a longest time, longer the longer the file
/// has not changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeTimes {
    /// Minimum time that attributes of files are cached (`acregmin`).
    pub regular_min: Duration,
    /// Maximum time that attributes of files are cached (`acregmax`).
    pub regular_max: Duration,
    /// Minimum time that attributes of directories are cached (`acdirmin`).
    pub directory_min: Duration,
    /// Maximum time that attributes of directories are cached (`acdirmax`).
    pub directory_max: Duration,
}

impl Default for AttributeTimes {
    fn default() -> Self {
        Self {
            regular_min: Duration::from_secs(3),
            regular_max: Duration::from_secs(60),
            directory_min: Duration::from_secs(30),
            directory_max: Duration::from_secs(60),
        }
    }
}

/// An export and how it is used. Text form: the URL, with the options that differ from the defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MountOptions {
    /// Name or address of the server, without brackets.
    pub host: String,
    /// Its NFS port; else 2049.
    pub port: Option<u16>,
    /// Port of MOUNT (versions 2 and 3). Else that of [`Self::port`] where it is given, else the portmapper is asked.
    pub mount_port: Option<u16>,
    /// Absolute path of the exported directory.
    pub export: Vec<u8>,
    /// NFS version to mount with.
    pub version: Version,
    /// More addresses of the server, by name or number, used beside [`Self::host`] in one session (4.1 and later).
    pub addresses: Vec<String>,
    /// Number of TCP connections to each address.
    pub connections: u32,
    /// Session slots to ask for (4.1 and later); the server may grant fewer.
    pub slots: u32,
    /// Largest READ; the server may allow less.
    pub read_size: u32,
    /// Largest WRITE; the server may allow less.
    pub write_size: u32,
    /// User that calls are made as.
    pub uid: u32,
    /// Group id sent with every call.
    pub gid: u32,
    /// How stable every WRITE must be before the server answers.
    pub sync: Stability,
    /// What is kept of files between calls.
    pub cache: Cache,
    /// Whether delegations are wanted; else they are with [`Cache::Linux`]. See [`Self::wants_delegations`].
    pub delegations: Option<bool>,
    /// Whether GETATTR is appended to the COMPOUND of LOCK, and FREE_STATEID to that of LOCKU, instead of sent alone.
    pub append_to_locks: bool,
    /// How long a reply is waited for, if not 60 s (TCP) or 1.1 s (UDP). See [`Self::timeout`].
    pub timeo: Option<Duration>,
    /// How often a request is sent again before the call fails, if not 2 (TCP) or 5 times (UDP).
    pub retrans: Option<u32>,
    /// TCP or UDP (versions 2 and 3).
    pub transport: Transport,
    /// Whether TCP holds small segments back while earlier ones are not acknowledged (Nagle's algorithm, RFC 896), which
    /// clients of NFS turn off.
    pub nagle: bool,
    /// How long cached attributes are believed.
    pub attribute_times: AttributeTimes,
    /// First pause after the server said `DELAY` or `JUKEBOX`; doubled each time.
    pub delay_initial: Duration,
    /// Upper limit of the pause after a status that asks to retry.
    pub delay_longest: Duration,
    /// Bytes written and not yet committed that are kept to be written again if the server restarts; beyond, the mount
    /// commits on its own.
    pub unstable_limit: u64,
    /// How data are cached.
    pub paging: Paging,
    /// What protects the connections.
    pub security: Security,
    /// What calls show who makes them by, and what protects them.
    pub sec: Flavor,
    /// File with the client's keys of Kerberos, from which it gets its tickets.
    pub krb5_keytab: Option<String>,
    /// Its tickets, as `kinit` keeps them; else the default cache of the host, or with a keytab one of its own.
    pub krb5_cache: Option<String>,
    /// Principal of the client; else the first of the keytab, or that of the cache.
    pub krb5_principal: Option<String>,
    /// Principal of the server; else `nfs/HOST`.
    pub krb5_server: Option<String>,
    /// File with the certificates of the authorities whose servers are trusted (PEM).
    pub tls_ca: Option<String>,
    /// File with the client's certificate (PEM).
    pub tls_cert: Option<String>,
    /// File with its private key (PEM).
    pub tls_key: Option<String>,
}

impl MountOptions {
    /// An export with the defaults: version 4.1, one connection, 64 slots, READ and WRITE of up to 1 MiB, user and
    /// group of this process, no cache. `export` is an absolute path.
    pub fn new(host: impl Into<String>, export: impl Into<Vec<u8>>) -> Self {
        Self {
            host: host.into(),
            port: None,
            mount_port: None,
            export: export.into(),
            version: Version::V41,
            addresses: Vec::new(),
            connections: 1,
            slots: 64,
            read_size: DEFAULT_IO,
            write_size: DEFAULT_IO,
            uid: rustix::process::geteuid().as_raw(),
            gid: rustix::process::getegid().as_raw(),
            sync: Stability::Unstable,
            cache: Cache::Off,
            delegations: None,
            append_to_locks: false,
            timeo: None,
            retrans: None,
            transport: Transport::Tcp,
            nagle: false,
            attribute_times: AttributeTimes::default(),
            delay_initial: Duration::from_millis(100),
            delay_longest: Duration::from_secs(15),
            unstable_limit: 64 << 20,
            paging: Paging::default(),
            security: Security::None,
            sec: Flavor::Sys,
            krb5_keytab: None,
            krb5_cache: None,
            krb5_principal: None,
            krb5_server: None,
            tls_ca: None,
            tls_cert: None,
            tls_key: None,
        }
    }

    /// Names of all options that [`Self::set`] takes.
    pub fn names() -> impl Iterator<Item = &'static str> {
        FIELDS.iter().map(|(name, ..)| *name)
    }

    /// Connections to all addresses together.
    pub fn all_connections(&self) -> u32 {
        let addresses = 1 + self.addresses.len();
        self.connections.saturating_mul(u32::try_from(addresses).unwrap_or(u32::MAX))
    }

    /// How long a reply is waited for before the request is sent again.
    pub fn timeout(&self) -> Duration {
        self.timeo.unwrap_or(match self.transport {
            Transport::Tcp => Duration::from_secs(60),
            Transport::Udp => Duration::from_millis(1100),
        })
    }

    /// How often a request is sent again before the call fails.
    pub fn retransmissions(&self) -> u32 {
        self.retrans.unwrap_or(match self.transport {
            Transport::Tcp => 2,
            Transport::Udp => 5,
        })
    }

    /// Whether delegations are wanted. Version 4.0 has none over TLS: the server would recall them over a connection of its
    /// own, in the clear; nor with Kerberos, for which it would need a ticket.
    pub fn wants_delegations(&self) -> bool {
        let open = self.security == Security::None && self.sec == Flavor::Sys;
        let recalled = open || self.version != Version::V40;
        self.delegations.unwrap_or(self.cache == Cache::Linux) && self.version.has_state() && recalled
    }

    /// The configuration of TLS, where it is asked for.
    ///
    /// # Errors
    /// When a file cannot be used, or the host is no name that a certificate can have.
    pub fn tls(&self) -> Result<Option<ClientTls>, TlsError> {
        let path = |file: &Option<String>| file.as_deref().unwrap_or_default().into();
        let identity = match self.security {
            Security::None => return Ok(None),
            Security::Tls => None,
            Security::Mtls => Some((path(&self.tls_cert), path(&self.tls_key))),
        };
        ClientTls::new(&self.host, &ClientFiles { ca: path(&self.tls_ca), identity }).map(Some)
    }

    /// The client's half of Kerberos, where it is asked for.
    ///
    /// # Errors
    /// When the host has no Kerberos library.
    pub fn gss(&self) -> Result<Option<ClientGss>, GssError> {
        let Some(service) = self.sec.service() else { return Ok(None) };
        let files = InitiatorFiles {
            keytab: self.krb5_keytab.as_deref().map(Into::into),
            cache: self.krb5_cache.clone(),
            principal: self.krb5_principal.clone(),
        };
        let server = match &self.krb5_server {
            Some(principal) => ServerName::Principal(principal.clone()),
            None => ServerName::Host(self.host.clone()),
        };
        let mechanism = Arc::new(Initiator::new(server, &files)?);
        Ok(Some(ClientGss { mechanism, service }))
    }

    /// TCP port of the NFS service: the one given, or 2049.
    pub fn nfs_port(&self) -> u16 {
        self.port.unwrap_or(NFS_PORT)
    }

    /// Sets an option from its text, as in the URL.
    ///
    /// # Errors
    /// When there is no such option, or the value is not right for it. What options mean together is looked at by
    /// [`Self::check`].
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), OptionError> {
        // What mount.nfs calls it.
        let name = if matches!(name, "vers" | "nfsvers") { "version" } else { name };
        let Some((name, set, _)) = FIELDS.iter().find(|(known, ..)| *known == name) else {
            return Err(OptionError::Unknown { name: name.to_owned() });
        };
        set(self, &Given { name, value })
    }

    /// Looks whether the options make sense together.
    ///
    /// # Errors
    /// The first two that do not.
    pub fn check(&self) -> Result<(), OptionError> {
        let conflict = |name, value: &dyn fmt::Display, other: String, fix| {
            Err(OptionError::Conflict { name, value: value.to_string(), other, fix })
        };
        let times = &self.attribute_times;
        if self.version.has_state() && self.transport == Transport::Udp {
            let other = format!("version={}", self.version);
            return conflict("proto", &"udp", other, "UDP works with versions 2 and 3 only");
        }
        if self.nagle && self.transport == Transport::Udp {
            return conflict("nagle", &"on", "proto=udp".into(), "it is an algorithm of TCP");
        }
        if !self.addresses.is_empty() && !self.version.has_sessions() {
            let other = format!("version={}", self.version);
            return conflict(
                "addresses",
                &fields::addresses(self),
                other,
                "only sessions of version 4.1 and later have several addresses",
            );
        }
        self.check_security()?;
        if self.delegations == Some(true) && !self.version.has_state() {
            let other = format!("version={}", self.version);
            return conflict("delegations", &"on", other, "delegations need version 4");
        }
        if self.delegations == Some(true) && self.cache == Cache::Off {
            let fix = "delegations need the cache: add cache=linux";
            return conflict("delegations", &"on", "cache=off".into(), fix);
        }
        if self.append_to_locks && !self.version.has_state() {
            let other = format!("version={}", self.version);
            return conflict("append_to_locks", &"on", other, "only version 4 has compounds to append to");
        }
        if self.append_to_locks && self.cache == Cache::Off {
            let fix = "without a cache no GETATTR follows a lock: add cache=linux";
            return conflict("append_to_locks", &"on", "cache=off".into(), fix);
        }
        if self.cache == Cache::Linux && self.version == Version::V2 {
            return conflict("cache", &"linux", "version=2".into(), "the cache needs version 3 or later");
        }
        if self.cache == Cache::Off
            && let Some((name, value)) = fields::changed(self, &fields::PAGING)
        {
            return conflict(
                name,
                &value,
                "cache=off".into(),
                "it is an option of the cache: add cache=linux",
            );
        }
        if let Some((name, value, other, fix)) = self.paging.conflict() {
            return conflict(name, &value, other, fix);
        }
        for (name, low, other, high) in [
            ("acregmin", times.regular_min, "acregmax", times.regular_max),
            ("acdirmin", times.directory_min, "acdirmax", times.directory_max),
            ("delay_initial", self.delay_initial, "delay_longest", self.delay_longest),
        ] {
            if low > high {
                let other = format!("{other}={}", TimeSpan(high));
                return conflict(name, &TimeSpan(low), other, "the first must not be longer");
            }
        }
        Ok(())
    }
}

impl MountOptions {
    fn check_security(&self) -> Result<(), OptionError> {
        let xprtsec = fields::security(self);
        let conflict = |name, value: String, other: &str, fix| {
            Err(OptionError::Conflict { name, value, other: other.to_owned(), fix })
        };
        let files = [("tls_ca", &self.tls_ca), ("tls_cert", &self.tls_cert), ("tls_key", &self.tls_key)];
        let wanted = match self.security {
            Security::None => [false; 3],
            Security::Tls => [true, false, false],
            Security::Mtls => [true; 3],
        };
        for ((name, file), wanted) in files.into_iter().zip(wanted) {
            match (file, wanted) {
                (None, true) => {
                    let fix = "give the files in PEM form: tls_ca, and for mtls tls_cert and tls_key";
                    return conflict("xprtsec", xprtsec, &format!("no {name}"), fix);
                }
                (Some(file), false) => {
                    let fix = "tls_ca needs xprtsec=tls or mtls; tls_cert and tls_key need xprtsec=mtls";
                    return conflict(name, file.clone(), &format!("xprtsec={xprtsec}"), fix);
                }
                _ => {}
            }
        }
        self.check_kerberos()?;
        match self.security {
            Security::None => Ok(()),
            _ if self.transport == Transport::Udp => {
                conflict("xprtsec", xprtsec, "proto=udp", "TLS needs TCP; DTLS is not supported")
            }
            _ if self.delegations == Some(true) && self.version == Version::V40 => {
                let fix = "version 4.0 recalls delegations in the clear; use version=4.1 or later";
                conflict("delegations", "on".into(), &format!("xprtsec={xprtsec}"), fix)
            }
            _ => Ok(()),
        }
    }

    fn check_kerberos(&self) -> Result<(), OptionError> {
        let sec = self.sec.name().to_owned();
        let conflict =
            |name, value: String, other: String, fix| Err(OptionError::Conflict { name, value, other, fix });
        // What else Kerberos needs may be given with AUTH_SYS too: the flavour is a factor of studies.
        if self.sec == Flavor::Sys {
            return Ok(());
        }
        if self.transport == Transport::Udp {
            return conflict("sec", sec, "proto=udp".into(), "Kerberos needs TCP here");
        }
        if self.delegations == Some(true) && self.version == Version::V40 {
            let fix = "with Kerberos version 4.0 has no callbacks; use version=4.1 or later";
            return conflict("delegations", "on".into(), format!("sec={sec}"), fix);
        }
        Ok(())
    }
}

impl FromStr for MountOptions {
    type Err = OptionError;

    fn from_str(text: &str) -> Result<Self, OptionError> {
        let wrong = |problem| OptionError::Url { url: text.to_owned(), problem };
        let rest = text.strip_prefix("nfs://").ok_or_else(|| wrong("does not begin with nfs://"))?;
        if rest.contains('#') {
            return Err(wrong("contains `#`; in a path write %23"));
        }
        let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
        let (host, port) = authority_of(authority).map_err(wrong)?;
        let export = export_of(path).map_err(wrong)?;
        let mut options = Self { port, ..Self::new(host, export) };
        // `&` as URLs have it, or `,` as mount has it.
        for option in query.split(['&', ',']).filter(|option| !option.is_empty()) {
            let (name, value) = option.split_once('=').unwrap_or((option, ""));
            options.set(name, value)?;
        }
        options.check()?;
        Ok(options)
    }
}

/// Host and port: `server`, `server:2049`, `[::1]:2049`.
fn authority_of(authority: &str) -> Result<(&str, Option<u16>), &'static str> {
    let (host, port) = match authority.strip_prefix('[') {
        Some(rest) => {
            let (host, port) = rest.split_once(']').ok_or("has a `[` without `]`")?;
            if host.parse::<std::net::Ipv6Addr>().is_err() {
                return Err("has no IPv6 address between `[` and `]`");
            }
            (host, port)
        }
        None => authority.split_at(authority.find(':').unwrap_or(authority.len())),
    };
    if host.is_empty() {
        return Err("names no server");
    }
    if host.contains(|c: char| c.is_whitespace() || matches!(c, '@' | '%' | '\\')) {
        return Err("has an invalid character in the server name");
    }
    match port.strip_prefix(':') {
        None if port.is_empty() => Ok((host, None)),
        None => Err("has text between `]` and the port"),
        Some(port) if port.contains(':') => Err("has an IPv6 address without brackets"),
        Some(port) => match port.parse() {
            Ok(port @ 1..) => Ok((host, Some(port))),
            _ => Err("has a port that is not a number from 1 to 65535"),
        },
    }
}

/// The path of an export, decoded; `/` where there is none, and without `/` at the end.
fn export_of(path: &str) -> Result<Vec<u8>, &'static str> {
    let bytes = path.as_bytes();
    let hex = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_hexdigit);
    if (0..bytes.len()).any(|at| bytes[at] == b'%' && !(hex(at + 1) && hex(at + 2))) {
        return Err("has a `%` without two hexadecimal digits in its path");
    }
    let mut export: Vec<u8> = percent_decode_str(path).collect();
    while export.last() == Some(&b'/') {
        export.pop();
    }
    if export.contains(&0) {
        return Err("has a zero byte in its path");
    }
    if export.split(|byte| *byte == b'/').any(|name| matches!(name, b"." | b"..")) {
        return Err("has `.` or `..` in its path");
    }
    if export.is_empty() {
        export.push(b'/');
    }
    Ok(export)
}

impl fmt::Display for MountOptions {
    /// The URL. It reads back as the same options in a process of the same user and group.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "nfs://[{}]", self.host)?
        } else {
            write!(f, "nfs://{}", self.host)?
        }
        if let Some(port) = self.port {
            write!(f, ":{port}")?;
        }
        write!(f, "{}", percent_encode(&self.export, PATH))?;
        let default = Self::new("", "");
        let mut separator = '?';
        for (name, _, text) in FIELDS {
            let value = text(self);
            if name == "version" || value != text(&default) {
                write!(f, "{separator}{name}={value}")?;
                separator = '&';
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
