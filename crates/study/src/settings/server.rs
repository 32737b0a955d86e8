//! The section `[server]`: who serves the target.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use benchmaster_nfs_server::disk::{DiskConfig, DiskError, DiskKind, DiskOrder, ExportMode};
use benchmaster_nfs_server::inject::Rule;
use benchmaster_nfs_server::{ExportConfig, ServerConfig};
use benchmaster_record::words;
use benchmaster_units::{Bandwidth, ByteSize, TimeSpan};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::changed_keys;
use super::steps::{ParameterText, ServerStep, StepSide, TeardownStep, UnknownParameter, When, substitute};

/// Keys of a managed server; all others but `kind` are of the embedded one.
const MANAGED: [&str; 5] = ["host", "parameters", "steps", "teardown", "cache"];

/// Who serves a target.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ServerSettings {
    /// Which server. If absent, the embedded one for the host `{server}`, and an external one for any other.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<ServerKind>,
    /// Whether read delegations are granted.
    pub delegations: bool,
    /// Whether write delegations are granted also to clients that do not ask for them.
    pub write_delegations: bool,
    /// Slots of a session.
    #[schemars(range(min = 1, max = 4096))]
    pub slots: u32,
    /// Requests that all sessions together should have outstanding: each is asked to keep to its share, and its slots shrink
    /// and grow with the number of sessions. If absent, as many as they have slots.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub requests: Option<u32>,
    /// Lease time of NFSv4.
    pub lease: TimeSpan,
    /// Largest READ and WRITE: a multiple of 4 KiB up to 16 MiB.
    pub max_io: ByteSize,
    /// Bytes of data after which writes are refused for lack of space.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<ByteSize>,
    /// Read from one page of zeros, drop what is written; sizes and times are kept.
    pub null_data: bool,
    /// Steps in which change attribute and times move, as on servers with coarse clocks. If absent, every change counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change_granularity: Option<TimeSpan>,
    /// Treat user 0 as nobody.
    pub root_squash: bool,
    /// Whether TCP holds small segments of replies back until earlier ones are acknowledged (Nagle's algorithm).
    pub nagle: bool,
    /// Threads that serve. If absent, one per processor.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub threads: Option<u32>,
    /// The disk behind the server's files, a model of times. If absent, there is none: memory is stable storage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskSettings>,
    /// When changes are answered: `"sync"` when the disk has them, where the protocol wants that, `"async"` at once.
    #[schemars(with = "String", extend("enum" = ["sync", "async"]))]
    pub export: ExportMode,
    /// Behaviour on demand: rules as of `benchmaster serve --inject`.
    #[schemars(extend("examples" = [["READ delay=1ms", "WRITE drop-reply p=0.001"]]))]
    pub inject: Vec<String>,
    /// Keytab with the embedded server's Kerberos keys, for targets whose `security` is `"krb5"`, `"krb5i"` or `"krb5p"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keytab: Option<PathBuf>,
    /// Which users Kerberos principals are: a file with lines of PRINCIPAL UID GID[,GID...]. Others are user 65534.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub map: Option<PathBuf>,
    /// Seed of what the server draws at random.
    pub seed: u64,
    /// Address on which the embedded server listens, `"10.0.0.1"` or `"10.0.0.1:2049"`, for clients on other hosts. If
    /// absent, the loopback interface.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>", extend("examples" = ["10.0.0.1"]))]
    pub listen: Option<String>,
    /// Host of a managed server, as `ssh` knows it. If absent, or `localhost`, this host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Parameters of the steps of a managed server, by name. Each can be a factor.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, ParameterText>,
    /// What sets a managed server up, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<ServerStep>,
    /// What is done when a session ends, in order; also after a failure, and before the first step of a session that
    /// follows one that was killed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub teardown: Vec<TeardownStep>,
    /// What a managed server on this host has in memory when a workload is measured.
    pub cache: ServerCache,
}

impl Default for ServerSettings {
    fn default() -> Self {
        let server = ServerConfig::default();
        Self {
            kind: None,
            delegations: server.delegations,
            write_delegations: server.write_delegations,
            slots: server.slots,
            requests: server.requests,
            lease: TimeSpan(server.lease),
            max_io: ByteSize(u64::from(server.max_io)),
            limit: None,
            null_data: server.null_data,
            change_granularity: None,
            root_squash: server.root_squash,
            nagle: server.nagle,
            threads: None,
            disk: None,
            export: server.export,
            inject: Vec::new(),
            keytab: None,
            map: None,
            seed: server.seed,
            listen: None,
            host: None,
            parameters: BTreeMap::new(),
            steps: Vec::new(),
            teardown: Vec::new(),
            cache: ServerCache::default(),
        }
    }
}

/// A disk behind the embedded server, and the memory in front of it. What is absent is as the kind has it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DiskSettings {
    /// `"hdd"`: one head, 8 ms to move it, 7,200 turns a minute, 150 MB/s. `"ssd"`: eight channels, 80 µs, 500 MB/s.
    /// `"none"`: no disk, whatever the other keys are, for the level of a factor.
    #[schemars(with = "String", extend("enum" = ["none", "hdd", "ssd"]))]
    pub kind: DiskKind,
    /// Time to move the head, or to access flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seek: Option<TimeSpan>,
    /// Time of a turn of the platter; `"0s"` for flash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rotation: Option<TimeSpan>,
    /// Rate at which data moves, all channels together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Bandwidth>,
    /// Requests served at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 1024))]
    pub channels: Option<u32>,
    /// Which request is next: `"fifo"` the first, `"elevator"` the nearest in ascending order.
    #[schemars(with = "String", extend("enum" = ["fifo", "elevator"]))]
    pub order: DiskOrder,
    /// The disk's own write cache, which a flush empties; by default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<ByteSize>,
    /// File data that the server keeps in memory, by default 1 GiB. Background writing begins when a tenth of it is dirty,
    /// and writers wait when a fifth is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory: Option<ByteSize>,
    /// What is read ahead of a sequential reader, by default 128 KiB.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub readahead: Option<ByteSize>,
}

impl DiskSettings {
    /// The disk that the server is started with, if any.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn config(&self) -> Result<Option<DiskConfig>, DiskError> {
        let Some(kind) = DiskConfig::of(self.kind) else { return Ok(None) };
        let disk = DiskConfig {
            seek: self.seek.map_or(kind.seek, |seek| seek.0),
            rotation: self.rotation.map_or(kind.rotation, |rotation| rotation.0),
            rate: self.rate.map_or(kind.rate, |rate| rate.0),
            channels: self.channels.unwrap_or(kind.channels),
            order: self.order,
            cache: self.cache.map_or(kind.cache, |cache| cache.0),
            memory: self.memory.map_or(kind.memory, |memory| memory.0),
            readahead: self.readahead.map_or(kind.readahead, |readahead| readahead.0),
        };
        disk.check()?;
        Ok(Some(disk))
    }
}

/// What a managed server has in memory when a workload is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ServerCache {
    /// What earlier phases left there.
    #[default]
    Warm,
    /// Nothing: everything is written back and dropped through `/proc/sys/vm/drop_caches`; needs root.
    Cold,
}

words! {
    /// Which server serves a target.
    #[derive(JsonSchema)]
    ServerKind {
        /// The embedded server, in memory, in this process.
        Memory = "memory",
        /// One that runs already.
        External = "external",
        /// One that steps set up, on this host or another.
        Managed = "managed",
    }
}

/// A mistake in the settings of the server: the key, what is wrong, and what would be right.
pub type ServerMistake = (&'static str, String, String);

/// A command of a managed server, ready to be run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReadyStep {
    /// Its name.
    pub name: String,
    /// Shell command with all parameters in their places.
    pub command: String,
    /// When it is done; `None` when a session ends.
    pub when: Option<When>,
    /// Where it is done.
    pub on: StepSide,
    /// Time after which it is stopped.
    pub timeout: TimeSpan,
}

impl ServerSettings {
    /// The host of a managed server, if it is not this one.
    pub fn other_host(&self) -> Option<&str> {
        let here = |host: &&str| ["localhost", "127.0.0.1", "::1"].contains(host);
        self.host.as_deref().filter(|host| self.is_managed() && !here(host))
    }

    /// Whether steps set the server up.
    pub fn is_managed(&self) -> bool {
        self.kind == Some(ServerKind::Managed)
    }

    /// The steps and what undoes them, in order, with the parameters in their commands.
    ///
    /// # Errors
    /// The path below `server` of the first command that names a parameter which is not there.
    pub fn ready_steps(&self) -> Result<Vec<ReadyStep>, (String, UnknownParameter)> {
        let ready = |path: String, name: &str, command: &str, when, on, timeout| {
            let command = substitute(command, &self.parameters).map_err(|unknown| (path, unknown))?;
            Ok(ReadyStep { name: name.to_owned(), command, when, on, timeout })
        };
        let steps = self.steps.iter().enumerate().map(|(index, s)| {
            let path = format!("steps[{index}].command");
            ready(path, &s.name, &s.command, Some(s.when), s.on, s.timeout)
        });
        let teardown = self.teardown.iter().enumerate().map(|(index, s)| {
            let path = format!("teardown[{index}].command");
            ready(path, &s.name, &s.command, None, s.on, s.timeout)
        });
        steps.chain(teardown).collect()
    }

    /// Where the embedded server listens; port 0 is a free one.
    ///
    /// # Errors
    /// When `listen` is not an address that clients could be given.
    pub fn listens(&self) -> Result<SocketAddr, ServerMistake> {
        let Some(text) = &self.listen else { return Ok((Ipv4Addr::LOCALHOST, 0).into()) };
        let bare = text.trim_start_matches('[').trim_end_matches(']');
        let address = bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, 0)).or_else(|_| text.parse());
        let refused = |problem| {
            let help = "write the address that clients reach this host by: `\"10.0.0.1\"`";
            ("listen", problem, help.to_owned())
        };
        match address {
            Err(_) => Err(refused(format!("`{text}` is not an address"))),
            Ok(address) if address.ip().is_unspecified() => {
                Err(refused(format!("`{text}` stands for all addresses, and clients need one to connect to")))
            }
            Ok(address) => Ok(address),
        }
    }

    /// What the embedded server is started with: it listens where `listen` says, else on a free port of the loopback
    /// interface, and exports `export`.
    ///
    /// # Errors
    /// The first value that cannot be.
    pub fn config(&self, export: &str) -> Result<ServerConfig, ServerMistake> {
        let slots = (1..=4096).contains(&self.slots);
        let max_io = (4096..=16 << 20).contains(&self.max_io.0) && self.max_io.0.is_multiple_of(4096);
        let threads = self.threads.is_none_or(|threads| (1..=1024).contains(&threads));
        if !slots {
            return Err((
                "slots",
                format!("a session cannot have {} slots", self.slots),
                "write a number from 1 to 4096".into(),
            ));
        }
        if !max_io {
            let problem = format!("the largest READ and WRITE cannot be {}", self.max_io);
            return Err(("max_io", problem, "write a multiple of 4KiB from 4KiB to 16MiB".into()));
        }
        if !threads {
            let problem = format!("a server cannot have {} threads", self.threads.unwrap_or_default());
            return Err(("threads", problem, "write a number from 1 to 1024, or leave it out".into()));
        }
        if self.requests == Some(0) {
            let problem = "a server without requests answers none".to_owned();
            return Err(("requests", problem, "write a number from 1 on, or leave it out".into()));
        }
        if self.lease.nanos() == 0 {
            return Err((
                "lease",
                "a lease of no time expires at once".into(),
                "write `\"90s\"`, or leave it out".into(),
            ));
        }
        let listen = self.listens()?;
        let rules: Result<Vec<Rule>, _> = self.inject.iter().map(|rule| rule.parse()).collect();
        let rules = rules.map_err(|error: benchmaster_nfs_server::inject::RuleError| {
            let help = "OPERATION ACTION... [CONDITION...], such as `\"READ delay=1ms\"`; see `benchmaster serve --help`";
            ("inject", error.to_string(), help.to_owned())
        })?;
        let disk = self.disk.as_ref().map(DiskSettings::config).transpose().map_err(|error| {
            let help = "such as `{ kind = \"hdd\", seek = \"4ms\" }`; docs/study-file.md lists the keys";
            ("disk", error.to_string(), help.to_owned())
        })?;
        let defaults = ServerConfig::default();
        Ok(ServerConfig {
            listen,
            exports: vec![ExportConfig {
                path: export.to_owned(),
                limit: self.limit.map(|limit| limit.0),
                ..ExportConfig::default()
            }],
            threads: self.threads.map_or(defaults.threads, |threads| threads as usize),
            lease: self.lease.0,
            slots: self.slots,
            requests: self.requests,
            max_io: u32::try_from(self.max_io.0).unwrap_or(u32::MAX),
            delegations: self.delegations,
            write_delegations: self.write_delegations,
            null_data: self.null_data,
            change_granularity: self.change_granularity.map(|span| span.0),
            disk: disk.flatten(),
            export: self.export,
            rules,
            seed: self.seed,
            root_squash: self.root_squash,
            nagle: self.nagle,
            ..defaults
        })
    }

    /// The keys of an embedded server that differ from what it has by itself.
    pub fn changed(&self) -> Vec<String> {
        changed_keys(self).filter(|key| *key != "kind" && !MANAGED.contains(&key.as_str())).collect()
    }

    /// The keys of a managed server that are given.
    pub fn changed_managed(&self) -> Vec<String> {
        changed_keys(self).filter(|key| MANAGED.contains(&key.as_str())).collect()
    }
}
