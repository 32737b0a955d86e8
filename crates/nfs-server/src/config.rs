//! Configuration of a server.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_rpc_gss::{Flavors, Mechanism};
use benchmaster_rpc_tls::ServerFiles;
use benchmaster_units::ByteSize;

use crate::disk::{DiskConfig, ExportMode};
use crate::inject::Rule;
use crate::users::Users;
use crate::wal::Durability;

/// Everything that can be chosen about a server.
#[derive(Debug, Clone)]
pub struct ServerConfig {
    /// Where to listen (TCP for all versions, UDP for v2 and v3); port 0 takes a free one.
    pub listen: SocketAddr,
    /// More addresses to listen on, for clients that use several at once (session trunking, RFC 8881 §2.10.5); port 0 takes
    /// that of `listen`.
    pub also_listen: Vec<SocketAddr>,
    /// Where to answer as portmapper, if at all.
    pub portmap: Option<SocketAddr>,
    /// The exports; at least one.
    pub exports: Vec<ExportConfig>,
    /// Threads that serve connections.
    pub threads: usize,
    /// Lease time of NFSv4 (RFC 7530 §9.5), also the length of the grace period.
    pub lease: Duration,
    /// Slots of a session's fore channel (RFC 8881 §2.10.6).
    pub slots: u32,
    /// Requests that all sessions together should have outstanding: each session's share is what SEQUENCE asks clients to keep
    /// to, and CB_RECALL_SLOT when it falls (RFC 8881 §2.10.6.1). `None`: as many as they have slots.
    pub requests: Option<u32>,
    /// Largest READ and WRITE.
    pub max_io: u32,
    /// Whether read delegations are granted.
    pub delegations: bool,
    /// Whether write delegations are granted to clients that state no preference; one that asks for a write delegation
    /// (`OPEN4_SHARE_ACCESS_WANT_WRITE_DELEG`) gets it when `delegations` is on.
    pub write_delegations: bool,
    /// READ answers from one page of zeros and WRITE drops the data; sizes and times are kept.
    pub null_data: bool,
    /// Steps in which change attribute and times move (as of servers with coarse clocks); `None`: every change counts.
    pub change_granularity: Option<Duration>,
    /// Whether [`Loss::Power`](crate::Loss::Power) and [`Shared::lose_power`](crate::shared::Shared::lose_power) can lose data
    /// that is not stable. Costs a copy of what each WRITE replaces until it is stable; nothing when it is off.
    pub volatile: bool,
    /// The disk that data and changes have to reach; `None`: memory is as stable as can be.
    pub disk: Option<DiskConfig>,
    /// Whether changes are answered when the disk has them, or at once.
    pub export: ExportMode,
    /// Behaviour on demand, in order of precedence.
    pub rules: Vec<Rule>,
    /// Seed of everything drawn at random: injected events, verifiers.
    pub seed: u64,
    /// File in which files and client names survive a restart.
    pub state: Option<PathBuf>,
    /// What survives when the server does not end as it should; more than nothing needs `state`.
    pub durability: Durability,
    /// Whether user 0 acts as nobody (`root_squash`).
    pub root_squash: bool,
    /// Whether TCP holds small segments of replies back until earlier ones are acknowledged (Nagle's algorithm, RFC 896).
    pub nagle: bool,
    /// Whether NFS, MOUNT and NLM are served over UDP. Whoever forges a sender's address can make a reply many times as
    /// long as its request go there.
    pub udp: bool,
    /// Keys and certificates for RPC-with-TLS (RFC 9289); `None`: clients that ask for TLS are refused.
    pub tls: Option<ServerFiles>,
    /// Whether only clients with TLS are served: calls in the clear, but for NULL, are refused with AUTH_TOOWEAK.
    pub require_tls: bool,
    /// Security flavours of exports that name none of their own.
    pub security: Flavors,
    /// Kerberos, without which flavours other than AUTH_SYS cannot be had.
    pub kerberos: Option<ServerKerberos>,
    /// Bytes of memory of the host: what clients can make the server keep is a share of it. An export without a limit
    /// of its own takes half of it.
    pub memory: u64,
}

/// What a server needs to know its users by Kerberos.
#[derive(Debug, Clone)]
pub struct ServerKerberos {
    /// Its keys.
    pub mechanism: Arc<dyn Mechanism>,
    /// Which users principals are.
    pub users: Users,
}

/// An export as configured.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExportConfig {
    /// Absolute path, such as `/export`; `/` alone exports the root itself.
    pub path: String,
    /// Whether changes are refused with ROFS.
    pub read_only: bool,
    /// Bytes of data after which writes get NOSPC; half of the memory where it is absent.
    pub limit: Option<u64>,
    /// Its security flavours, if not [`ServerConfig::security`].
    pub security: Option<Flavors>,
}

/// Why an export could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("export `{export}`: {problem}")]
pub struct ExportError {
    export: String,
    problem: String,
}

impl FromStr for ExportConfig {
    type Err = ExportError;

    /// `/path`, `/path:ro`, `/path:limit=10GiB`, `/path:ro,sec=krb5:krb5p`.
    fn from_str(text: &str) -> Result<Self, ExportError> {
        let fail = |problem: String| ExportError { export: text.to_owned(), problem };
        let (path, options) = text.split_once(':').unwrap_or((text, ""));
        let mut components = path.strip_prefix('/').unwrap_or_default().split('/');
        let bad = |name: &str| matches!(name, "" | "." | "..") || name.len() > 255 || name.contains('\0');
        if !path.starts_with('/') || (path != "/" && components.any(bad)) {
            return Err(fail("is no absolute path; write one such as /export".into()));
        }
        let mut export = Self { path: path.to_owned(), ..Self::default() };
        for option in options.split(',').filter(|option| !option.is_empty()) {
            match option.split_once('=') {
                None if option == "ro" => export.read_only = true,
                None if option == "rw" => export.read_only = false,
                Some(("limit", size)) => {
                    let size: ByteSize = size.parse().map_err(|error| fail(format!("{error}")))?;
                    export.limit = Some(size.bytes());
                }
                Some(("sec", flavors)) => export.security = Some(flavors.parse().map_err(fail)?),
                _ => {
                    let known = "options are ro, rw, limit=SIZE, sec=FLAVOR[:FLAVOR...]";
                    return Err(fail(format!("`{option}` is not known; {known}")));
                }
            }
        }
        Ok(export)
    }
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 2049)),
            also_listen: Vec::new(),
            portmap: None,
            exports: vec![ExportConfig { path: "/export".into(), ..ExportConfig::default() }],
            threads: std::thread::available_parallelism().map_or(1, Into::into),
            lease: Duration::from_secs(90),
            slots: 64,
            requests: None,
            max_io: 1 << 20,
            delegations: true,
            write_delegations: false,
            null_data: false,
            change_granularity: None,
            volatile: false,
            disk: None,
            export: ExportMode::Sync,
            rules: Vec::new(),
            seed: 0,
            state: None,
            durability: Durability::None,
            root_squash: false,
            nagle: false,
            udp: true,
            tls: None,
            require_tls: false,
            security: Flavors::SYS,
            kerberos: None,
            memory: crate::memory::of_host(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exports_as_written() {
        let export: ExportConfig = "/a/b:ro,limit=1KiB".parse().unwrap();
        assert_eq!(
            export,
            ExportConfig { path: "/a/b".into(), read_only: true, limit: Some(1024), security: None }
        );
        let secured: ExportConfig = "/a:sec=sys:krb5p,ro".parse().unwrap();
        assert_eq!(secured.security, Some("krb5p:sys".parse().unwrap()));
        assert_eq!("/".parse::<ExportConfig>().unwrap().path, "/");
        for bad in ["", "export", "/a//b", "/a/", "/a/../b", "/a:wo", "/a:limit=1k", "/a:sec=", "/a:sec=krb4"]
        {
            assert!(bad.parse::<ExportConfig>().is_err(), "{bad}");
        }
    }
}
