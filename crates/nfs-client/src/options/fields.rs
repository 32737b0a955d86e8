//! The options of a mount as text.

use std::time::Duration;

use benchmaster_rpc_gss::Flavor;
use benchmaster_units::{ByteSize, TimeSpan};

use super::{
    AttributeTimes, Cache, MAX_IO, MountOptions, OptionError, ReadaheadRule, RequestList, Security, Throttle,
};
use crate::rpc::Transport;
use crate::types::{Stability, Version};

/// An option of the URL: its name, how it is set and how it is written, empty where it is not.
type Field =
    (&'static str, fn(&mut MountOptions, &Given<'_>) -> Result<(), OptionError>, fn(&MountOptions) -> String);

/// Options of the URL, in the order in which they are written.
pub(super) const FIELDS: [Field; 51] = [
    ("version", |o, given| given.version().map(|v| o.version = v), |o| o.version.to_string()),
    // Written behind the host.
    ("port", |o, given| given.port().map(|n| o.port = Some(n)), |_| String::new()),
    ("mountport", |o, given| given.port().map(|n| o.mount_port = Some(n)), |o| optional(o.mount_port)),
    ("nconnect", |o, given| given.number(1, 256).map(|n| o.connections = n), |o| o.connections.to_string()),
    ("addresses", |o, given| given.hosts().map(|hosts| o.addresses = hosts), addresses),
    ("slots", |o, given| given.number(1, 4096).map(|n| o.slots = n), |o| o.slots.to_string()),
    ("rsize", |o, given| given.io_size().map(|n| o.read_size = n), |o| size(o.read_size.into())),
    ("wsize", |o, given| given.io_size().map(|n| o.write_size = n), |o| size(o.write_size.into())),
    ("uid", |o, given| given.number(0, u32::MAX).map(|n| o.uid = n), |o| o.uid.to_string()),
    ("gid", |o, given| given.number(0, u32::MAX).map(|n| o.gid = n), |o| o.gid.to_string()),
    ("sync", |o, given| given.one_of(&STABILITIES).map(|v| o.sync = v), |o| name_of(&STABILITIES, o.sync)),
    ("cache", |o, given| given.one_of(&CACHES).map(|v| o.cache = v), |o| name_of(&CACHES, o.cache)),
    (
        "delegations",
        |o, given| given.one_of(&SWITCH).map(|on| o.delegations = Some(on)),
        |o| optional(o.delegations.map(|on| name_of(&SWITCH, on))),
    ),
    (
        "append_to_locks",
        |o, given| given.one_of(&SWITCH).map(|on| o.append_to_locks = on),
        |o| name_of(&SWITCH, o.append_to_locks),
    ),
    (
        "timeo",
        |o, given| given.positive(SECOND / 10).map(|t| o.timeo = Some(t)),
        |o| optional(o.timeo.map(TimeSpan)),
    ),
    ("retrans", |o, given| given.number(0, 1000).map(|n| o.retrans = Some(n)), |o| optional(o.retrans)),
    (
        "proto",
        |o, given| given.one_of(&TRANSPORTS).map(|v| o.transport = v),
        |o| name_of(&TRANSPORTS, o.transport),
    ),
    ("nagle", |o, given| given.one_of(&SWITCH).map(|on| o.nagle = on), |o| name_of(&SWITCH, o.nagle)),
    // Written as the four that it sets.
    ("actimeo", |o, given| given.time(SECOND).map(|t| o.attribute_times = all(t)), |_| String::new()),
    (
        "acregmin",
        |o, given| given.time(SECOND).map(|t| o.attribute_times.regular_min = t),
        |o| time(o.attribute_times.regular_min),
    ),
    (
        "acregmax",
        |o, given| given.time(SECOND).map(|t| o.attribute_times.regular_max = t),
        |o| time(o.attribute_times.regular_max),
    ),
    (
        "acdirmin",
        |o, given| given.time(SECOND).map(|t| o.attribute_times.directory_min = t),
        |o| time(o.attribute_times.directory_min),
    ),
    (
        "acdirmax",
        |o, given| given.time(SECOND).map(|t| o.attribute_times.directory_max = t),
        |o| time(o.attribute_times.directory_max),
    ),
    (
        "delay_initial",
        |o, given| given.positive(SECOND).map(|t| o.delay_initial = t),
        |o| time(o.delay_initial),
    ),
    (
        "delay_longest",
        |o, given| given.positive(SECOND).map(|t| o.delay_longest = t),
        |o| time(o.delay_longest),
    ),
    (
        "unstable_limit",
        |o, given| given.size(0, 1 << 40).map(|n| o.unstable_limit = n),
        |o| size(o.unstable_limit),
    ),
    ("memory", |o, given| given.size(PAGE, 1 << 40).map(|n| o.paging.memory = n), |o| size(o.paging.memory)),
    (
        "readahead",
        |o, given| given.one_of(&READAHEADS).map(|v| o.paging.readahead = v),
        |o| name_of(&READAHEADS, o.paging.readahead),
    ),
    (
        "read_ahead_kb",
        |o, given| given.number(0, 1 << 20).map(|n| o.paging.read_ahead_kb = n),
        |o| o.paging.read_ahead_kb.to_string(),
    ),
    (
        "dirty_background_ratio",
        |o, given| given.number(0, 100).map(|n| o.paging.dirty_background_ratio = n),
        |o| o.paging.dirty_background_ratio.to_string(),
    ),
    (
        "dirty_ratio",
        |o, given| given.number(0, 100).map(|n| o.paging.dirty_ratio = n),
        |o| o.paging.dirty_ratio.to_string(),
    ),
    (
        "dirty_background_bytes",
        |o, given| given.size(0, 1 << 40).map(|n| o.paging.dirty_background_bytes = n),
        |o| size(o.paging.dirty_background_bytes),
    ),
    (
        "dirty_bytes",
        |o, given| given.size(0, 1 << 40).map(|n| o.paging.dirty_bytes = n),
        |o| size(o.paging.dirty_bytes),
    ),
    (
        "dirty_expire",
        |o, given| given.time(SECOND / 100).map(|t| o.paging.dirty_expire = t),
        |o| time(o.paging.dirty_expire),
    ),
    (
        "dirty_writeback",
        |o, given| given.time(SECOND / 100).map(|t| o.paging.dirty_writeback = t),
        |o| time(o.paging.dirty_writeback),
    ),
    (
        "dirty_throttle",
        |o, given| given.one_of(&THROTTLES).map(|v| o.paging.throttle = v),
        |o| name_of(&THROTTLES, o.paging.throttle),
    ),
    (
        "write_behind",
        |o, given| given.one_of(&SWITCH).map(|on| o.paging.write_behind = on),
        |o| name_of(&SWITCH, o.paging.write_behind),
    ),
    (
        "max_request_soft",
        |o, given| given.number(0, u32::MAX).map(|n| o.paging.max_request_soft = n),
        |o| o.paging.max_request_soft.to_string(),
    ),
    (
        "max_request_hard",
        |o, given| given.number(0, u32::MAX).map(|n| o.paging.max_request_hard = n),
        |o| o.paging.max_request_hard.to_string(),
    ),
    (
        "request_list",
        |o, given| given.one_of(&REQUEST_LISTS).map(|v| o.paging.request_list = v),
        |o| name_of(&REQUEST_LISTS, o.paging.request_list),
    ),
    (
        "send_lock",
        |o, given| given.one_of(&SWITCH).map(|on| o.paging.send_lock = on),
        |o| name_of(&SWITCH, o.paging.send_lock),
    ),
    // As studies call it; written as the one that it sets.
    (
        "security",
        |o, given| given.one_of(&STUDIES_SECURITY).map(|v| (o.security, o.sec) = v),
        |_| String::new(),
    ),
    ("sec", |o, given| given.one_of(&FLAVORS).map(|v| o.sec = v), |o| o.sec.name().to_owned()),
    (
        "krb5_keytab",
        |o, given| given.path().map(|p| o.krb5_keytab = Some(p)),
        |o| optional(o.krb5_keytab.as_deref()),
    ),
    (
        "krb5_cache",
        |o, given| given.path().map(|p| o.krb5_cache = Some(p)),
        |o| optional(o.krb5_cache.as_deref()),
    ),
    (
        "krb5_principal",
        |o, given| given.path().map(|p| o.krb5_principal = Some(p)),
        |o| optional(o.krb5_principal.as_deref()),
    ),
    (
        "krb5_server",
        |o, given| given.path().map(|p| o.krb5_server = Some(p)),
        |o| optional(o.krb5_server.as_deref()),
    ),
    ("xprtsec", |o, given| given.one_of(&SECURITIES).map(|v| o.security = v), security),
    ("tls_ca", |o, given| given.path().map(|p| o.tls_ca = Some(p)), |o| optional(o.tls_ca.as_deref())),
    ("tls_cert", |o, given| given.path().map(|p| o.tls_cert = Some(p)), |o| optional(o.tls_cert.as_deref())),
    ("tls_key", |o, given| given.path().map(|p| o.tls_key = Some(p)), |o| optional(o.tls_key.as_deref())),
];

/// The addresses beside the host.
pub(super) fn addresses(options: &MountOptions) -> String {
    options.addresses.join("+")
}

/// How connections are protected, as Linux spells it.
pub(super) fn security(options: &MountOptions) -> String {
    name_of(&SECURITIES, options.security)
}

/// The options of [`Paging`].
pub(super) const PAGING: [&str; 15] = [
    "memory",
    "readahead",
    "read_ahead_kb",
    "dirty_background_ratio",
    "dirty_ratio",
    "dirty_background_bytes",
    "dirty_bytes",
    "dirty_expire",
    "dirty_writeback",
    "dirty_throttle",
    "write_behind",
    "max_request_soft",
    "max_request_hard",
    "request_list",
    "send_lock",
];

/// The first of some options that differs from its default, and its value.
pub(super) fn changed(options: &MountOptions, names: &[&str]) -> Option<(&'static str, String)> {
    let default = MountOptions::new("", "");
    let of_these = FIELDS.iter().filter(|(name, ..)| names.contains(name));
    of_these
        .map(|(name, _, text)| (*name, text(options), text(&default)))
        .find_map(|(name, value, usual)| (value != usual).then_some((name, value)))
}

const PAGE: u64 = 4096;
const SECOND: Duration = Duration::from_secs(1);

const STABILITIES: [(&str, Stability); 3] =
    [("none", Stability::Unstable), ("data", Stability::Data), ("file", Stability::File)];
const CACHES: [(&str, Cache); 2] = [("off", Cache::Off), ("linux", Cache::Linux)];
const TRANSPORTS: [(&str, Transport); 2] = [("tcp", Transport::Tcp), ("udp", Transport::Udp)];
const SECURITIES: [(&str, Security); 3] =
    [("none", Security::None), ("tls", Security::Tls), ("mtls", Security::Mtls)];
const FLAVORS: [(&str, Flavor); 4] =
    [("sys", Flavor::Sys), ("krb5", Flavor::Krb5), ("krb5i", Flavor::Krb5i), ("krb5p", Flavor::Krb5p)];
/// As studies call them: TLS and Kerberos are levels of one factor.
const STUDIES_SECURITY: [(&str, (Security, Flavor)); 6] = [
    ("sys", (Security::None, Flavor::Sys)),
    ("tls", (Security::Tls, Flavor::Sys)),
    ("mtls", (Security::Mtls, Flavor::Sys)),
    ("krb5", (Security::None, Flavor::Krb5)),
    ("krb5i", (Security::None, Flavor::Krb5i)),
    ("krb5p", (Security::None, Flavor::Krb5p)),
];
const READAHEADS: [(&str, ReadaheadRule); 2] =
    [("6.1", ReadaheadRule::Linux61), ("2.6.32", ReadaheadRule::Linux2632)];
const THROTTLES: [(&str, Throttle); 2] = [("pace", Throttle::Pace), ("flush", Throttle::Flush)];
const REQUEST_LISTS: [(&str, RequestList); 2] =
    [("hash", RequestList::Hash), ("sorted", RequestList::Sorted)];
const SWITCH: [(&str, bool); 2] = [("on", true), ("off", false)];

fn name_of<T: PartialEq>(names: &[(&str, T)], value: T) -> String {
    names.iter().find(|(_, other)| *other == value).map_or_else(String::new, |(name, _)| (*name).to_owned())
}

fn optional<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(String::new, |value| value.to_string())
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string()
}

fn time(time: Duration) -> String {
    TimeSpan(time).to_string()
}

fn all(time: Duration) -> AttributeTimes {
    AttributeTimes { regular_min: time, regular_max: time, directory_min: time, directory_max: time }
}

/// The text given for an option.
pub(super) struct Given<'v> {
    pub(super) name: &'static str,
    pub(super) value: &'v str,
}

impl Given<'_> {
    fn wrong(&self, right: String) -> OptionError {
        OptionError::Value { name: self.name, value: self.value.to_owned(), right }
    }

    fn number(&self, low: u32, high: u32) -> Result<u32, OptionError> {
        let number = self.value.parse().ok().filter(|n| (low..=high).contains(n));
        number.ok_or_else(|| self.wrong(format!("a number from {low} to {high}")))
    }

    fn port(&self) -> Result<u16, OptionError> {
        self.number(1, u16::MAX.into()).map(|port| port as u16)
    }

    fn size(&self, low: u64, high: u64) -> Result<u64, OptionError> {
        match self.value.parse::<ByteSize>() {
            Ok(ByteSize(n)) if (low..=high).contains(&n) => Ok(n),
            Ok(_) => Err(self.wrong(format!("a size from {} to {}", ByteSize(low), ByteSize(high)))),
            Err(error) => Err(self.wrong(format!("a size such as 64KiB: {error}"))),
        }
    }

    fn io_size(&self) -> Result<u32, OptionError> {
        self.size(512, MAX_IO).map(|size| size as u32)
    }

    /// A bare number is a number of `bare`.
    fn time(&self, bare: Duration) -> Result<Duration, OptionError> {
        match (self.value.parse::<u32>(), self.value.parse::<TimeSpan>()) {
            (Ok(n), _) => Ok(bare * n),
            (_, Ok(TimeSpan(time))) => Ok(time),
            (_, Err(error)) => Err(self.wrong(format!("a time such as 5s: {error}"))),
        }
    }

    fn positive(&self, bare: Duration) -> Result<Duration, OptionError> {
        let time = self.time(bare)?;
        if time.is_zero() { Err(self.wrong("a time greater than zero, such as 5s".into())) } else { Ok(time) }
    }

    fn one_of<T: Copy>(&self, values: &[(&str, T)]) -> Result<T, OptionError> {
        let found = values.iter().find(|(name, _)| *name == self.value).map(|(_, value)| *value);
        let names = || values.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
        found.ok_or_else(|| self.wrong(format!("one of {}", names())))
    }

    /// Names or addresses of hosts; nothing is none.
    fn hosts(&self) -> Result<Vec<String>, OptionError> {
        let hosts: Vec<String> = self.value.split('+').map(|host| host.trim().to_owned()).collect();
        let bad = |c: char| c.is_whitespace() || matches!(c, '/' | '@' | '%' | '&' | ',' | '#' | '[' | ']');
        match self.value {
            "" => Ok(Vec::new()),
            _ if hosts.iter().any(|host| host.is_empty() || host.contains(bad)) => {
                Err(self.wrong("addresses with `+` between them, such as 10.0.0.2+10.0.0.3".into()))
            }
            _ => Ok(hosts),
        }
    }

    /// A path that the URL can be written with.
    fn path(&self) -> Result<String, OptionError> {
        if self.value.is_empty() || self.value.contains(['&', ',', '#']) {
            return Err(self.wrong("a path of a file, without `&`, `,` and `#`".into()));
        }
        Ok(self.value.to_owned())
    }

    fn version(&self) -> Result<Version, OptionError> {
        self.one_of(&Version::ALL.iter().map(|version| (version.name(), *version)).collect::<Vec<_>>())
    }
}
