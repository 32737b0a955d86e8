//! The section `[target]`: a directory, a file system to mount, or an NFS export that Benchmaster's own client mounts.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::LazyLock;

use benchmaster_nfs_client::options::{MountOptions, OptionError, Security};
use benchmaster_rpc_tls::{CA_FILE, CLIENT_FILES};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error as _, MapAccess};
use serde::{Deserialize, Deserializer, Serialize, de};

use crate::scalar::Scalar;
use crate::suggest;

/// The target path that stands for a scratch directory.
pub const SCRATCH: &str = "{scratch}";

/// The host of a URL that stands for the embedded server.
pub const SERVER: &str = "{server}";

/// Stands for the directory of certificates that are made for a session with the embedded server.
pub const CERTIFICATES: &str = "{certificates}";

/// The file system under test: one of `path`, `mount` and `url`, and with `url` options of the mount, which override those
/// written in it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct TargetSettings {
    /// A directory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// An NFS export, mounted over the wire by Benchmaster's own client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// A file system that is mounted for the study.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mount: Option<MountSettings>,
    /// Options of the mount, by name; see [`MountOptions::set`].
    #[serde(flatten)]
    pub options: BTreeMap<&'static str, OptionText>,
}

/// A file system that is mounted on the clients' hosts for the study, and unmounted at its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MountSettings {
    /// What is mounted: `"server:/export"`, a device, a directory for a bind mount. The host `{server}` stands for the
    /// server of the lab, else for the `host` of `[server]`, else for the embedded server, which then Benchmaster's own
    /// client mounts.
    pub source: String,
    /// Options of the mount, as of `mount -o`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(extend("examples" = ["vers=4.1,nconnect=4"]))]
    pub options: String,
    /// Type of the file system, as of `mount -t`.
    #[serde(default = "nfs", rename = "type")]
    pub kind: String,
    /// Where it is mounted: a directory, which is made if it is missing. If absent, one of the study's own below
    /// `/run/benchmaster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
}

/// The parameters that stand for the same thing in another way: a level that sets one of them takes the place of the
/// others.
pub(crate) fn alternatives(path: &str) -> &'static [&'static str] {
    match path {
        "target.path" => &["target.url", "target.mount"],
        "target.url" => &["target.path", "target.mount"],
        "target.mount" => &["target.path", "target.url"],
        _ => &[],
    }
}

impl MountSettings {
    /// The host of the source, before its first colon outside of brackets; `None` when it has none.
    pub fn host(&self) -> Option<&str> {
        let after = self.source.rfind(']').unwrap_or(0);
        let colon = self.source.get(after..)?.find(':')? + after;
        self.source.get(..colon).filter(|host| !host.contains('/'))
    }

    /// The same with a host in the place of `{server}`.
    pub fn of(&self, server: &str) -> Self {
        match self.host() {
            Some(SERVER) => Self { source: self.source.replacen(SERVER, server, 1), ..self.clone() },
            _ => self.clone(),
        }
    }
}

fn nfs() -> String {
    "nfs".into()
}

/// What kind of place a target is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TargetKind<'a> {
    /// A directory that exists.
    Directory(PathBuf),
    /// A temporary directory.
    Scratch,
    /// A file system that is mounted for the study.
    Mount(&'a MountSettings),
    /// An export of the embedded server, by its URL with `{server}` as host.
    Embedded(&'a str),
    /// An export of another server, by its URL.
    External(&'a str),
}

/// Why a target's URL and options cannot be used: the key at fault, and what is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetMistake {
    /// `url`, or the name of the option.
    pub key: String,
    /// What is wrong.
    pub problem: String,
    /// What would be right.
    pub fix: Option<String>,
}

impl TargetSettings {
    /// A directory as target.
    pub fn directory(path: &str) -> Self {
        Self { path: Some(path.to_owned()), ..Self::default() }
    }

    /// What kind of place it is. One without path and URL, which no checked study has, is the current directory.
    pub fn kind(&self) -> TargetKind<'_> {
        match (&self.url, &self.mount, self.path.as_deref()) {
            (Some(url), ..) if host_of(url) == SERVER => TargetKind::Embedded(url),
            (Some(url), ..) => TargetKind::External(url),
            (None, Some(mount), _) => TargetKind::Mount(mount),
            (None, None, Some(SCRATCH)) => TargetKind::Scratch,
            (None, None, path) => TargetKind::Directory(PathBuf::from(path.unwrap_or("."))),
        }
    }

    /// The path or URL as written, or what is mounted.
    pub fn place(&self) -> &str {
        let mounted = || self.mount.as_ref().map(|mount| mount.source.as_str());
        self.url.as_deref().or_else(mounted).or(self.path.as_deref()).unwrap_or_default()
    }

    /// The URL and the options as the client is given them; the embedded server is at `server`, an address without port.
    /// `None` when the target is a directory.
    ///
    /// # Errors
    /// The first mistake in them.
    pub fn mount_options(&self, server: &str) -> Result<Option<MountOptions>, TargetMistake> {
        let Some(url) = &self.url else { return Ok(None) };
        if host_of(url) != SERVER {
            return self.with_options(url, |_| {}).map(Some);
        }
        self.with_options(&url.replacen(SERVER, server, 1), certificates_of_session).map(Some).map_err(
            |mistake| TargetMistake { problem: mistake.problem.replacen(server, SERVER, 1), ..mistake },
        )
    }

    /// The addresses besides the first on which an embedded server listens for its clients.
    ///
    /// # Errors
    /// The first of `addresses` that is none of a host.
    pub fn also_listens(&self) -> Result<Vec<SocketAddr>, TargetMistake> {
        let options = self.mount_options("127.0.0.1")?;
        let addresses = options.map(|options| options.addresses).unwrap_or_default();
        let parsed = addresses.iter().map(|text| match text.parse::<IpAddr>() {
            Ok(ip) if !ip.is_unspecified() => Ok(SocketAddr::new(ip, 0)),
            _ => Err(TargetMistake {
                key: "addresses".into(),
                problem: format!("the embedded server cannot listen on `{text}`"),
                fix: Some("write addresses of this host: `addresses = \"127.0.0.2\"`".into()),
            }),
        });
        parsed.collect()
    }

    /// A URL with the options that override its own, and what `complete` adds.
    fn with_options(
        &self,
        url: &str,
        complete: impl FnOnce(&mut MountOptions),
    ) -> Result<MountOptions, TargetMistake> {
        let parsed = match url.parse::<MountOptions>() {
            Ok(parsed) => parsed,
            // Options beside the URL may put right what does not go together in it.
            Err(OptionError::Conflict { .. }) => {
                let (place, query) = url.split_once('?').unwrap_or((url, ""));
                let mut parsed = place.parse::<MountOptions>().map_err(|error| mistake("url", &error))?;
                for option in query.split(['&', ',']).filter(|option| !option.is_empty()) {
                    let (name, value) = option.split_once('=').unwrap_or((option, ""));
                    parsed.set(name, value).map_err(|error| mistake("url", &error))?;
                }
                parsed
            }
            Err(error) => return Err(mistake("url", &error)),
        };
        let mut options = parsed;
        for (name, value) in &self.options {
            options.set(name, &value.0).map_err(|error| mistake(name, &error))?;
        }
        complete(&mut options);
        options.check().map_err(|error| {
            let key = match &error {
                OptionError::Conflict { name, .. } if self.options.contains_key(name) => *name,
                OptionError::Conflict { other, .. } => {
                    let other = other.split('=').next().unwrap_or_default();
                    self.options.keys().find(|known| **known == other).copied().unwrap_or("url")
                }
                _ => "url",
            };
            mistake(key, &error)
        })?;
        Ok(options)
    }
}

/// The embedded server's certificates, where TLS is asked for and no file is given.
fn certificates_of_session(options: &mut MountOptions) {
    let file = |name: &str| Some(format!("{CERTIFICATES}/{name}"));
    if options.security != Security::None {
        options.tls_ca = options.tls_ca.take().or_else(|| file(CA_FILE));
    }
    if options.security == Security::Mtls {
        options.tls_cert = options.tls_cert.take().or_else(|| file(CLIENT_FILES[0]));
        options.tls_key = options.tls_key.take().or_else(|| file(CLIENT_FILES[1]));
    }
}

fn mistake(key: &str, error: &OptionError) -> TargetMistake {
    let text = error.to_string();
    let (problem, fix) = match text.split_once("; ") {
        Some((problem, fix)) => (problem.to_owned(), Some(fix.to_owned())),
        None => (text, None),
    };
    // One name is enough where it is near.
    let near = match error {
        OptionError::Unknown { name } => {
            suggest::nearest(name, ["vers"].into_iter().chain(MountOptions::names()))
        }
        _ => None,
    };
    let fix = near.map(|name| format!("did you mean `{name}`?")).or(fix);
    TargetMistake { key: key.to_owned(), problem, fix }
}

/// The host of a URL such as `nfs://host:2049/export`, without port; empty when there is none.
pub fn host_of(url: &str) -> &str {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    match authority.rsplit_once(':') {
        // The colons of `[::1]` are no port's.
        Some((host, port)) if !port.contains(']') => host,
        _ => authority,
    }
}

/// Keys of the section, in the order in which they are told.
static KEYS: LazyLock<Vec<&'static str>> =
    LazyLock::new(|| ["path", "url", "mount"].into_iter().chain(MountOptions::names()).collect());

/// What the options of a mount mean, for the schema.
const MEANINGS: [(&str, &str); 51] = [
    ("version", "Version of NFS: `\"2\"`, `\"3\"`, `\"4.0\"`, `\"4.1\"`, `\"4.2\"`."),
    ("port", "Port of the NFS service, if not 2049."),
    ("mountport", "Port of the MOUNT service (v2 and v3), if the portmapper is not to be asked."),
    ("nconnect", "Connections of each client, to each address."),
    (
        "addresses",
        "More addresses of the server for one session (v4.1 and later), with `+` between them; the embedded server listens on \
         them, too.",
    ),
    ("slots", "Session slots to ask for (v4.1 and later)."),
    ("rsize", "Largest READ."),
    ("wsize", "Largest WRITE."),
    ("uid", "User that calls are made as."),
    ("gid", "Group that calls are made as."),
    ("sync", "How stable every WRITE is before it is answered: `\"none\"`, `\"data\"`, `\"file\"`."),
    ("cache", "What clients keep: `\"off\"` nothing, `\"linux\"` what the Linux client keeps."),
    ("delegations", "Whether delegations are wanted (v4, with `cache = \"linux\"`)."),
    (
        "append_to_locks",
        "Whether GETATTR is appended to the request of LOCK, and FREE_STATEID to that of LOCKU (v4, with `cache = \"linux\"`).",
    ),
    ("timeo", "Time without a reply after which a call counts as timed out."),
    ("retrans", "How often a request is sent again before the call fails."),
    ("proto", "`\"tcp\"` or `\"udp\"` (v2 and v3)."),
    (
        "nagle",
        "Whether TCP holds small segments back until earlier ones are acknowledged (Nagle's algorithm).",
    ),
    ("actimeo", "Sets the four times of attribute caching at once."),
    ("acregmin", "Shortest time that attributes of files are cached."),
    ("acregmax", "Longest time that attributes of files are cached."),
    ("acdirmin", "Shortest time that attributes of directories are cached."),
    ("acdirmax", "Longest time that attributes of directories are cached."),
    ("delay_initial", "First pause after the server asked to try later; doubled each time."),
    ("delay_longest", "Longest such pause."),
    ("unstable_limit", "Most bytes written and not committed that a client keeps."),
    ("memory", "Bytes of data that the cache of a client keeps."),
    ("readahead", "When clients read ahead: as Linux `\"6.1\"` or `\"2.6.32\"`."),
    ("read_ahead_kb", "Most KiB read ahead of a reader; 0: every READ is a single page."),
    ("dirty_background_ratio", "Percentage of `memory` that may be dirty before write-back starts."),
    ("dirty_ratio", "Percentage of `memory` that may be dirty before writers are held back."),
    ("dirty_background_bytes", "Bytes instead of `dirty_background_ratio`."),
    ("dirty_bytes", "Bytes instead of `dirty_ratio`."),
    ("dirty_expire", "Age from which dirty data are written back, whatever their amount."),
    ("dirty_writeback", "How often the age of dirty data is checked; 0: never."),
    (
        "dirty_throttle",
        "How writers are held back: `\"pace\"`, to the rate of write-back, or `\"flush\"`, until all is flushed.",
    ),
    ("write_behind", "Whether a WRITE is sent as soon as a file has `wsize` of dirty data (Linux 2.4)."),
    (
        "max_request_soft",
        "Pages of a file not yet stable from which on a writer flushes it (Linux 2.4: 192); 0: no limit.",
    ),
    (
        "max_request_hard",
        "Pages of a client not yet stable from which on writers wait (Linux 2.4: 256); 0: no limit.",
    ),
    (
        "request_list",
        "How a write finds an earlier request: `\"hash\"`, or `\"sorted\"` in a list (Linux 2.4).",
    ),
    ("send_lock", "Whether writers and the sending of WRITEs exclude each other (Linux 2.4)."),
    (
        "security",
        "What protects connections or calls: `\"sys\"` nothing, `\"tls\"` TLS (RFC 9289), `\"mtls\"` TLS in which clients show \
         certificates, too; `\"krb5\"`, `\"krb5i\"`, `\"krb5p\"` Kerberos, with integrity, with privacy.",
    ),
    ("sec", "Kerberos as Linux' mount spells it: `\"sys\"`, `\"krb5\"`, `\"krb5i\"`, `\"krb5p\"`."),
    ("krb5_keytab", "File with the clients' Kerberos keys, from which they get their tickets."),
    ("krb5_cache", "Their tickets, as `kinit` keeps them; by default those of the host."),
    (
        "krb5_principal",
        "Principal of the clients; by default the first of the keytab, or that of the tickets.",
    ),
    ("krb5_server", "Principal of the server; by default `nfs/` and the host of the URL."),
    ("xprtsec", "The same as Linux' mount spells it: `\"none\"`, `\"tls\"`, `\"mtls\"`."),
    (
        "tls_ca",
        "File with the certificates of the authorities whose servers are trusted (PEM). The embedded server makes its own.",
    ),
    ("tls_cert", "File with the clients' certificate (PEM), for `\"mtls\"`."),
    ("tls_key", "File with its private key (PEM)."),
];

impl<'de> Deserialize<'de> for TargetSettings {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;
        impl<'de> de::Visitor<'de> for Visitor {
            type Value = TargetSettings;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("struct TargetSettings")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<TargetSettings, A::Error> {
                let mut target = TargetSettings::default();
                while let Some(key) = map.next_key::<String>()? {
                    // As mount writes it.
                    let key = if matches!(&*key, "vers" | "nfsvers") { "version".to_owned() } else { key };
                    let known = KEYS.iter().copied().find(|known| *known == key);
                    match known.ok_or_else(|| A::Error::unknown_field(&key, &KEYS))? {
                        "path" if target.path.is_none() => target.path = Some(map.next_value()?),
                        "url" if target.url.is_none() => target.url = Some(map.next_value()?),
                        "mount" if target.mount.is_none() => target.mount = Some(map.next_value()?),
                        key @ ("path" | "url" | "mount") => return Err(A::Error::duplicate_field(key)),
                        option => {
                            let value = map.next_value()?;
                            if target.options.insert(option, value).is_some() {
                                return Err(A::Error::duplicate_field(option));
                            }
                        }
                    }
                }
                Ok(target)
            }
        }
        deserializer.deserialize_struct("TargetSettings", &KEYS, Visitor)
    }
}

impl JsonSchema for TargetSettings {
    fn schema_name() -> Cow<'static, str> {
        "TargetSettings".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mut schema = json_schema!({
            "description": "The file system under test: one of `path`, `mount` and `url`. The other keys are options of the mount of \
                            a `url`, which override those written in it; docs/study-file.md describes them.",
            "type": "object",
            "properties": {
                "path": {
                    "description": "A directory that exists, absolute or relative to the current directory, usually on a \
                                    mounted network file system. `{scratch}` stands for a new directory below the \
                                    system's directory for temporary files, which is removed after the study.",
                    "type": "string",
                    "examples": ["/mnt/nfs", "{scratch}"],
                },
                "url": {
                    "description": "An NFS export, mounted over the wire by Benchmaster's own client, without root. The \
                                    host `{server}` stands for the embedded server.",
                    "type": "string",
                    "examples": ["nfs://{server}/export", "nfs://filer/vol1?version=4.1&nconnect=2"],
                },
            },
            "additionalProperties": false,
        });
        let mount = generator.subschema_for::<MountSettings>().to_value();
        if let Some(properties) = schema.get_mut("properties").and_then(serde_json::Value::as_object_mut) {
            properties.insert("mount".into(), mount);
            for key in KEYS.iter().filter(|key| !["path", "url", "mount"].contains(*key)) {
                let meaning = MEANINGS.iter().find(|(name, _)| name == key).map(|(_, meaning)| *meaning);
                let value =
                    serde_json::json!({ "type": ["string", "integer", "boolean"], "description": meaning });
                properties.insert((*key).to_owned(), value);
            }
        }
        schema
    }
}

/// Value of a mount option, as text whatever it is in TOML: `"4.1"`, `2`; `true` is `on`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct OptionText(pub String);

impl fmt::Display for OptionText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for OptionText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        const EXPECTED: &str = "a string, a whole number, `true` or `false`";
        match Scalar::read(deserializer, EXPECTED)? {
            Scalar::Truth(truth) => Ok(Self(if truth { "on" } else { "off" }.to_owned())),
            number @ Scalar::Number(_) => Err(number.unexpected(EXPECTED)),
            value => Ok(Self(value.to_string())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_of_urls() {
        for (url, host) in [
            ("nfs://filer/vol", "filer"),
            ("nfs://filer:2050/vol?version=3", "filer"),
            ("nfs://[::1]/vol", "[::1]"),
            ("nfs://[::1]:2049/vol", "[::1]"),
            ("nfs://{server}/export", SERVER),
            ("nfs://filer", "filer"),
            ("nfs:///export", ""),
        ] {
            assert_eq!(host_of(url), host, "{url}");
        }
    }

    fn target(text: &str) -> TargetSettings {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn options_override_those_of_the_url() {
        let text =
            "url = 'nfs://{server}/export?version=4.1&rsize=4KiB'\nversion = '3'\nnconnect = 2\nport = 7\n";
        let target = target(text);
        assert_eq!(target.kind(), TargetKind::Embedded("nfs://{server}/export?version=4.1&rsize=4KiB"));
        let options = target.mount_options("127.0.0.1").unwrap().unwrap();
        assert_eq!(options.to_string(), "nfs://127.0.0.1:7/export?version=3&nconnect=2&rsize=4KiB");
        assert!(toml::from_str::<TargetSettings>("version = 4.1").is_err(), "a digit may be missing");
    }

    #[test]
    fn every_option_has_a_meaning() {
        let described: Vec<_> = MEANINGS.iter().map(|(name, _)| *name).collect();
        assert_eq!(described, KEYS[3..]);
    }

    #[test]
    fn options_can_mend_what_does_not_go_together_in_the_url() {
        let url = "url = 'nfs://s/e?version=3&cache=linux&delegations=on'\n";
        let found = target(url).mount_options("").unwrap_err();
        assert_eq!(found.key, "url", "{found:?}");
        target(&format!("{url}version = '4.1'\n")).mount_options("").unwrap();
    }

    #[test]
    fn the_key_at_fault_is_named() {
        for (text, key) in [
            ("version = '5'", "version"),
            ("port = 0", "port"),
            ("delegations = true", "delegations"),
            ("version = '2'\ncache = 'linux'", "cache"),
        ] {
            let found = target(&format!("url = 'nfs://s/e'\n{text}\n")).mount_options("").unwrap_err();
            assert_eq!(found.key, key, "{found:?}");
        }
        let found = target("url = 'nfs://s/e'\nversion = '5'").mount_options("").unwrap_err();
        assert!(found.fix.is_some() && found.problem.contains("`5`"), "{found:?}");
    }
}
