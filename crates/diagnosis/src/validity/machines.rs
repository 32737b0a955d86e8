//! What the machines of a lab say of themselves beside a run: the client names that the server knows, its grace period and
//! counters, and the neighbours of each client. Pure parsers of the kernel's texts.

use benchmaster_record::results::{ServerOperation, ServerUse};
use benchmaster_telemetry::samplers::nfsd;
use benchmaster_telemetry::sampling::{Metric, Sink};

// One program that reads several files, instead of one for each: looks are part of every run.

/// Shell command whose output is read by [`ServerLook::parse`]: lines of files, each behind the file's path and a colon.
pub const SERVER_SCRIPT: &str = "exec grep -sH '' /proc/fs/nfsd/clients/*/info /proc/fs/nfsd/v4_end_grace \
    /proc/fs/lockd/nlm_end_grace /proc/net/rpc/nfsd";

/// Shell command whose output is read by [`ClientLook::parse`], as [`SERVER_SCRIPT`].
pub const CLIENT_SCRIPT: &str = "exec grep -sH '' /proc/sys/kernel/hostname /sys/module/nfs/parameters/nfs4_unique_id \
    /sys/fs/nfs/net/nfs_client/identifier /proc/net/arp";

/// The kernel's server at one time.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerLook {
    /// Clients of version 4 that it knows.
    pub clients: Vec<KnownClient>,
    /// Whether the grace period of version 4 is over; `None` where the kernel does not tell.
    pub grace_ended: Option<bool>,
    /// Whether that of the lock manager is over, for which locks of every version wait; `None` where the kernel does not tell.
    pub lock_grace_ended: Option<bool>,
    /// The text of `/proc/net/rpc/nfsd`.
    rpc: String,
}

/// A client of version 4 as the kernel's server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KnownClient {
    /// The id that the server gave it.
    pub id: String,
    /// The address from which it came.
    pub address: String,
    /// The name that it gave itself, by which the server tells clients apart.
    pub name: String,
    /// Whether it is confirmed.
    pub confirmed: bool,
}

impl KnownClient {
    /// When the server that gave the id was started, in seconds since 1970: the first half of an id (`cl_boot` of Linux'
    /// `clientid_t`), which is the lower one of the number on the little-endian machines that labs have.
    fn server_started(&self) -> Option<u32> {
        let id = u64::from_str_radix(self.id.strip_prefix("0x")?, 16).ok()?;
        Some((id & u64::from(u32::MAX)) as u32)
    }
}

/// A client machine at one time.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientLook {
    /// The machine.
    pub machine: String,
    /// Its host name, of which the Linux client makes its NFSv4 client name.
    pub host: String,
    /// What distinguishes it beside its host name; empty: nothing.
    pub unique: String,
    /// Its neighbours.
    pub neighbours: Vec<Neighbour>,
}

/// A line of `/proc/net/arp`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Neighbour {
    /// IPv4 address.
    pub address: String,
    /// Hardware address.
    pub hardware: String,
    /// Whether it was entered for good: nobody is asked for it.
    pub permanent: bool,
    /// The interface.
    pub device: String,
}

/// All machines before the measured phase of a workload and after it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LabLook {
    /// The server, where it is the kernel's: before and after.
    pub server: Option<(ServerLook, ServerLook)>,
    /// The address of the server in the network that is measured.
    pub server_address: String,
    /// The clients, before.
    pub clients: Vec<ClientLook>,
}

/// Paths of files and what is in them, from the output of `grep -H`.
fn files(text: &str) -> Vec<(&str, String)> {
    let mut files: Vec<(&str, String)> = Vec::new();
    for (path, line) in text.lines().filter_map(|line| line.split_once(':')) {
        match files.last_mut() {
            Some((last, content)) if *last == path => {
                content.push_str(line);
                content.push('\n');
            }
            _ => files.push((path, format!("{line}\n"))),
        }
    }
    files
}

/// What the kernel says of a grace period: whether it is over.
fn ended(text: &str) -> Option<bool> {
    match text.trim() {
        "Y" => Some(true),
        "N" => Some(false),
        _ => None,
    }
}

impl ServerLook {
    /// Reads what [`SERVER_SCRIPT`] printed. What is missing is empty.
    pub fn parse(text: &str) -> Self {
        let mut look = Self::default();
        for (path, text) in files(text) {
            match path {
                "/proc/fs/nfsd/v4_end_grace" => look.grace_ended = ended(&text),
                "/proc/fs/lockd/nlm_end_grace" => look.lock_grace_ended = ended(&text),
                "/proc/net/rpc/nfsd" => look.rpc = text,
                _ if path.ends_with("/info") => look.clients.push(known_client(&text)),
                _ => {}
            }
        }
        look
    }

    /// Whether the server was started again until `later`. `None` where nobody of version 4 was known at both times, as it is told by
    /// the ids that it gave its clients.
    pub fn restarted(&self, later: &Self) -> Option<bool> {
        let begun = |look: &Self| look.clients.iter().find_map(KnownClient::server_started);
        Some(begun(self)? != begun(later)?)
    }

    /// What was counted until `later`; `None` where one of the two says nothing.
    pub fn until(&self, later: &Self, workload: &str) -> Option<ServerUse> {
        let (then, now) = (Counted::of(&self.rpc)?, Counted::of(&later.rpc)?);
        let since = |key: (&str, &str)| now.get(key).saturating_sub(then.get(key));
        let operations = now.0.iter().filter_map(|((metric, instance), _)| {
            let (protocol, operation) = match metric.as_str() {
                "operations" => ("v4", instance.as_str()),
                "calls" => instance.split_once(' ').filter(|(protocol, _)| *protocol != "v4")?,
                _ => return None,
            };
            let ops = since((metric, instance));
            (ops > 0).then(|| ServerOperation {
                protocol: protocol.to_owned(),
                operation: operation.to_owned(),
                ops,
                errors: 0,
                bytes_received: 0,
                bytes_sent: 0,
                service_ns: 0,
            })
        });
        Some(ServerUse {
            workload: workload.to_owned(),
            calls: since(("rpc_calls", "")),
            connections: since(("tcp_connections", "")),
            replayed: since(("reply_cache_hits", "")),
            cpu_ns: None,
            held_ns: None,
            operations: operations.collect(),
        })
    }
}

/// Counters by metric and instance, in the order of the kernel's text.
#[derive(Debug, Default)]
struct Counted(Vec<((String, String), u64)>);

impl Counted {
    fn of(text: &str) -> Option<Self> {
        let mut counted = Self::default();
        nfsd::rpc(text, &mut String::new(), &mut counted).ok()?;
        (!counted.0.is_empty()).then_some(counted)
    }

    fn get(&self, (metric, instance): (&str, &str)) -> u64 {
        let same = |((m, i), _): &&((String, String), u64)| m == metric && i == instance;
        self.0.iter().find(same).map_or(0, |(_, value)| *value)
    }
}

impl Sink for Counted {
    fn put(&mut self, metric: Metric<'_>, instance: &str, value: f64) {
        self.0.push(((metric.name.to_owned(), instance.to_owned()), value as u64));
    }
}

/// Lines `key: value` of `/proc/fs/nfsd/clients/N/info`; texts of clients are in quotes.
fn known_client(text: &str) -> KnownClient {
    let value = |key: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(": "));
        lines.find_map(|(name, value)| (name == key).then(|| value.trim().trim_matches('"').to_owned()))
    };
    KnownClient {
        id: value("clientid").unwrap_or_default(),
        address: value("address").unwrap_or_default(),
        name: value("name").unwrap_or_default(),
        confirmed: value("status").as_deref() == Some("confirmed"),
    }
}

impl ClientLook {
    /// Reads what [`CLIENT_SCRIPT`] printed.
    pub fn parse(machine: &str, text: &str) -> Self {
        let mut look = Self { machine: machine.to_owned(), ..Self::default() };
        let mut unique = Vec::new();
        for (path, text) in files(text) {
            match path {
                "/proc/sys/kernel/hostname" => text.trim().clone_into(&mut look.host),
                "/proc/net/arp" => look.neighbours = text.lines().skip(1).filter_map(neighbour).collect(),
                // The parameter of the module, and that of the network namespace.
                _ => unique.push(text.trim().to_owned()),
            }
        }
        unique.retain(|said| !["", "(null)"].contains(&said.as_str()));
        look.unique = unique.join(" ");
        look
    }
}

/// `10.77.0.1  0x1  0x6  02:62:6d:00:00:01  *  eth0`; the flags are `ATF_COM` 2 and `ATF_PERM` 4.
fn neighbour(line: &str) -> Option<Neighbour> {
    let mut words = line.split_whitespace();
    let (address, _kind, flags) = (words.next()?, words.next()?, words.next()?);
    let (hardware, _mask, device) = (words.next()?, words.next()?, words.next()?);
    let flags = u32::from_str_radix(flags.strip_prefix("0x")?, 16).ok()?;
    Some(Neighbour {
        address: address.to_owned(),
        hardware: hardware.to_owned(),
        permanent: flags & 4 != 0,
        device: device.to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `grep -H` prints of files.
    fn printed(files: &[(&str, &str)]) -> String {
        let lines =
            files.iter().flat_map(|(path, text)| text.lines().map(move |line| format!("{path}:{line}\n")));
        lines.collect()
    }

    fn server() -> String {
        printed(&[
            (
                "/proc/fs/nfsd/clients/3/info",
                "clientid: 0x8866ae036b036538\naddress: \"10.77.1.1:812\"\nstatus: confirmed\n\
                 seconds from last renew: 3\nname: \"Linux NFSv4.1 c1\"\nminor version: 1\ncallback state: UP\n",
            ),
            (
                "/proc/fs/nfsd/clients/4/info",
                "clientid: 0x8866ae056b036538\naddress: \"10.77.1.2:840\"\nname: \"Linux NFSv4.1 c2\"\n",
            ),
            ("/proc/fs/nfsd/v4_end_grace", "N\n"),
            ("/proc/fs/lockd/nlm_end_grace", " Y\n \n"),
            (
                "/proc/net/rpc/nfsd",
                "rc 0 7 40\nio 1000 2000\nth 8 0\nnet 50 0 50 2\nrpc 47 0 0 0 0\n\
                 proc3 22 0 3 1 0 0 0 4 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\nproc4 2 1 39\nproc4ops 5 0 0 0 2 9\n",
            ),
        ])
    }

    #[test]
    fn the_server_is_read() {
        let text = server();
        let look = ServerLook::parse(&text);
        let names: Vec<_> = look.clients.iter().map(|c| (c.name.as_str(), c.confirmed)).collect();
        assert_eq!(names, [("Linux NFSv4.1 c1", true), ("Linux NFSv4.1 c2", false)]);
        assert_eq!((&look.clients[0].address[..], look.grace_ended), ("10.77.1.1:812", Some(false)));
        assert_eq!(look.lock_grace_ended, Some(true));
        let later = text
            .replace("rpc 47", "rpc 57")
            .replace("0 0 4 0", "0 0 6 0")
            .replace("5 0 0 0 2 9", "5 0 0 0 3 19");
        let used = look.until(&ServerLook::parse(&later), "w").unwrap();
        let operations: Vec<_> =
            used.operations.iter().map(|o| (&o.protocol[..], &o.operation[..], o.ops)).collect();
        assert_eq!(operations, [("v3", "READ", 2), ("v4", "ACCESS", 1), ("v4", "CLOSE", 10)]);
        assert_eq!((used.calls, used.connections, used.cpu_ns), (10, 0, None));
        assert_eq!(ServerLook::default().until(&look, "w"), None, "nothing is known of before");
    }

    #[test]
    fn a_server_that_was_started_again_gives_other_ids() {
        let text = server();
        let look = ServerLook::parse(&text);
        // Others came, and nobody has to be known at both times.
        let same = ServerLook::parse(&text.replace("8866ae", "8866af"));
        assert_eq!(look.restarted(&same), Some(false));
        let again = ServerLook::parse(&text.replace("6b036538", "6b036771"));
        assert_eq!(look.restarted(&again), Some(true));
        assert_eq!(look.restarted(&ServerLook::default()), None);
        assert_eq!(ServerLook::parse(&text.replace("0x8866", "text")).restarted(&look), None);
    }

    #[test]
    fn a_client_is_read() {
        let arp = "IP address       HW type     Flags       HW address            Mask     Device\n\
            10.77.0.1        0x1         0x6         02:62:6d:00:00:01     *        eth0\n\
            10.78.0.1        0x1         0x2         02:62:6d:01:00:01     *        eth1\n";
        let client = |module: &str, namespace: &str| {
            printed(&[
                ("/proc/sys/kernel/hostname", "c1\n"),
                ("/sys/module/nfs/parameters/nfs4_unique_id", module),
                ("/sys/fs/nfs/net/nfs_client/identifier", namespace),
                ("/proc/net/arp", arp),
            ])
        };
        let look = ClientLook::parse("c1", &client("\n", "(null)\n"));
        assert_eq!((&look.host[..], &look.unique[..]), ("c1", ""));
        let found: Vec<_> =
            look.neighbours.iter().map(|n| (&n.address[..], n.permanent, &n.device[..])).collect();
        assert_eq!(found, [("10.77.0.1", true, "eth0"), ("10.78.0.1", false, "eth1")]);
        assert_eq!(ClientLook::parse("c1", &client("rack-7\n", "node-3\n")).unique, "rack-7 node-3");
    }
}
