//! An emulated network by the kernel: veth devices between namespaces and a switch, with `netem` queueing disciplines.
//!
//! A namespace in the middle holds a bridge; each client and the server are connected to it by a pair of veth
//! devices. What a client sends passes the netem of its own end, what it receives that of the bridge's end; the
//! server's port likewise.

use std::collections::BTreeMap;
use std::io::{self, Seek, Write};
use std::process::Command;
use std::time::Duration;

use crate::link::Link;
use crate::namespace::{Discipline, Interfaces, Namespace, NamespaceError};
use crate::wire::{
    ClientReport, DirectionReport, INTERFACE, NETWORK_BITS, Report, client_address, server_address,
    silence_ipv6,
};

/// Packets in a queue of netem: as many as 40 Gbit/s carry in 10 s of delay would be too many to count; this many
/// take 6 GB of memory, which a queue never has.
const LIMIT: u32 = 4_000_000;
/// Netem keeps the order of frames only with a rate. This one delays nothing.
const NO_RATE: u64 = 1_000_000_000_000;

/// Why a command did not do what it was to.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("cannot run `{command}`: {source}; install iproute2")]
    Start { command: String, source: io::Error },
    #[error("`{command}` failed: {said}")]
    Failed {
        command: String,
        /// On its standard error.
        said: String,
    },
    /// The kernel did not say what queueing disciplines counted.
    #[error("cannot read what the emulated network carried: {0}")]
    Counts(#[source] io::Error),
    /// Namespaces or interfaces could not be made.
    #[error(transparent)]
    Namespace(#[from] NamespaceError),
}

/// A network by `tc netem`. It is gone when this is dropped.
#[derive(Debug)]
pub struct Netem {
    server: Namespace,
    clients: Vec<Namespace>,
    switch: Namespace,
    server_bandwidth: Option<u64>,
    /// Of all devices, in bytes.
    mtu: u16,
    /// What every device was last set to: an unchanged link takes no command.
    applied: BTreeMap<(Side, String), Link>,
    /// What was counted before counts were cleared.
    cleared: Option<Report>,
}

impl Netem {
    /// Makes the namespaces and connects them by devices of this MTU, in bytes, without delay.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn start(clients: u32, mtu: u16) -> Result<Self, CommandError> {
        let switch = Namespace::new()?;
        switch.run(silence_ipv6)?;
        run(&switch, "ip", &["link", "add", "name", "switch", "type", "bridge", "forward_delay", "0"])?;
        switch.interfaces()?.up("switch")?;
        let connect = |port: &str, address| {
            let namespace = Namespace::new()?;
            namespace.run(silence_ipv6)?;
            let path = namespace.path();
            let path = path.to_string_lossy();
            let peer = ["type", "veth", "peer", "name", INTERFACE, "netns", &path];
            run(
                &switch,
                "ip",
                &[&["link", "add", "name", port, "master", "switch", "up"], &peer[..]].concat(),
            )?;
            // The bridge takes the least of its ports by itself.
            switch.interfaces()?.set_mtu(port, mtu)?;
            let interfaces = namespace.interfaces()?;
            interfaces.set_mtu(INTERFACE, mtu)?;
            interfaces.set_address(INTERFACE, address, NETWORK_BITS)?;
            interfaces.up(INTERFACE)?;
            Ok::<_, CommandError>(namespace)
        };
        let server = connect("server", server_address())?;
        let clients: Result<Vec<_>, CommandError> =
            (0..clients).map(|client| connect(&port_of(client), client_address(client))).collect();
        Ok(Self {
            server,
            clients: clients?,
            switch,
            server_bandwidth: None,
            mtu,
            applied: BTreeMap::new(),
            cleared: None,
        })
    }

    pub fn server(&self) -> &Namespace {
        &self.server
    }

    /// The namespaces of the clients.
    pub fn clients(&self) -> &[Namespace] {
        &self.clients
    }

    /// Sets the bandwidth of the server's port; its queue is that of this link's delay.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn set_server_bandwidth(&mut self, bandwidth: Option<u64>, link: &Link) -> Result<(), CommandError> {
        self.server_bandwidth = bandwidth;
        let link = Link { bandwidth, queue: None, delay: link.delay, ..Link::default() };
        // The delay is the clients' links'; here it only says how long the queue is.
        let port = Link { delay: Duration::ZERO, queue: Some(link.queue()), ..link };
        self.discipline(&[(Side::Server, INTERFACE.into(), port), (Side::Switch, "server".into(), port)])
    }

    /// Sets the links of all clients.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn set(&mut self, link: &Link) -> Result<(), CommandError> {
        let clients = 0..u32::try_from(self.clients.len()).unwrap_or(u32::MAX);
        let of_client = |client| {
            [(Side::Client(client), INTERFACE.into(), *link), (Side::Switch, port_of(client), *link)]
        };
        self.discipline(&clients.flat_map(of_client).collect::<Vec<_>>())?;
        self.set_server_bandwidth(self.server_bandwidth, link)
    }

    /// Puts trouble on the link of a client, in both directions, or takes it away. `link` is what the link is besides.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn disturb(&mut self, client: u32, link: &Link, trouble: Trouble) -> Result<(), CommandError> {
        let disturbed = Link { loss: trouble.lost, ..*link };
        let devices = [(Side::Client(client), INTERFACE.to_owned()), (Side::Switch, port_of(client))];
        let of_link = devices.clone().map(|(side, device)| (side, device, disturbed));
        self.discipline(&of_link)?;
        if trouble == Trouble::default() {
            return Ok(());
        }
        for (side, device) in devices {
            let mut arguments = qdisc_arguments(&device, &disturbed, self.mtu);
            arguments.extend(trouble.arguments(link));
            run(self.namespace(side), "tc", &arguments.iter().map(String::as_str).collect::<Vec<_>>())?;
            // The next link replaces it, even one that is as this one is.
            self.applied.remove(&(side, device));
        }
        Ok(())
    }

    fn namespace(&self, side: Side) -> &Namespace {
        match side {
            Side::Server => &self.server,
            Side::Switch => &self.switch,
            Side::Client(client) => &self.clients[client as usize],
        }
    }

    /// Puts links on what devices send: one command for all of a namespace.
    fn discipline(&mut self, wanted: &[(Side, String, Link)]) -> Result<(), CommandError> {
        let mut commands: BTreeMap<Side, (String, String)> = BTreeMap::new();
        for (side, device, link) in wanted {
            let before = self.applied.get(&(*side, device.clone()));
            if before == Some(link) {
                continue;
            }
            let (ip, tc) = commands.entry(*side).or_default();
            if before.is_none_or(|before| segments(before) != segments(link)) {
                ip.push_str(&format!("link set dev {device} gso_max_segs {}\n", segments(link)));
            }
            tc.push_str(&format!("{}\n", qdisc_arguments(device, link, self.mtu).join(" ")));
        }
        // Until all is done nothing is known of them.
        for (side, device, _) in wanted {
            self.applied.remove(&(*side, device.clone()));
        }
        for (side, (ip, tc)) in commands {
            let namespace = self.namespace(side);
            if !ip.is_empty() {
                batch(namespace, "ip", &ip)?;
            }
            batch(namespace, "tc", &tc)?;
        }
        let done = wanted.iter().map(|(side, device, link)| ((*side, device.clone()), *link));
        self.applied.extend(done);
        Ok(())
    }

    /// What it carried since counts were cleared.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn achieved(&self) -> Result<Report, CommandError> {
        let mut report = self.counted()?;
        if let Some(before) = &self.cleared {
            for (client, before) in report.clients.iter_mut().zip(&before.clients) {
                subtract(&mut client.to_server, &before.to_server);
                subtract(&mut client.to_client, &before.to_client);
            }
        }
        Ok(report)
    }

    /// Resets the counts.
    ///
    /// # Errors
    /// [`CommandError`]
    pub fn clear(&mut self) -> Result<(), CommandError> {
        self.cleared = Some(self.counted()?);
        Ok(())
    }

    fn counted(&self) -> Result<Report, CommandError> {
        let switch = self.switch.interfaces()?;
        let at_switch = disciplines(&switch)?;
        let mut clients = Vec::with_capacity(self.clients.len());
        for (client, namespace) in (0..).zip(&self.clients) {
            let interfaces = namespace.interfaces()?;
            clients.push(ClientReport {
                to_server: direction(&disciplines(&interfaces)?, interfaces.index(INTERFACE)?),
                to_client: direction(&at_switch, switch.index(&port_of(client))?),
            });
        }
        Ok(Report { clients, interfaces: Vec::new() })
    }
}

/// What a disturbed link does to frames in each direction: parts of them, from 0 to 1, each by itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Trouble {
    /// They do not arrive. With 1 the link is down, and neither end notices.
    pub lost: f64,
    /// They arrive twice.
    pub doubled: f64,
    /// They take no time, and so overtake those before them. A link without a delay keeps the order.
    pub early: f64,
}

impl Trouble {
    /// What of it is not in the arguments of a link.
    fn arguments(&self, link: &Link) -> Vec<String> {
        let part = |name: &str, part: f64| [name.to_owned(), format!("{}%", part * 100.0)];
        let mut arguments = Vec::new();
        if self.doubled > 0.0 {
            arguments.extend(part("duplicate", self.doubled));
        }
        if self.early > 0.0 && !link.delay.is_zero() {
            arguments.extend(part("reorder", self.early));
        }
        arguments
    }
}

fn port_of(client: u32) -> String {
    format!("client{}", client + 1)
}

fn subtract(now: &mut DirectionReport, before: &DirectionReport) {
    // A changed discipline keeps its counts; should one have been replaced, they begin at 0.
    now.frames = now.frames.saturating_sub(before.frames);
    now.bytes = now.bytes.saturating_sub(before.bytes);
    now.lost = now.lost.saturating_sub(before.lost);
}

/// The namespace in which a device is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Side {
    Server,
    Switch,
    Client(u32),
}

/// Segments of a packet that a device is given at once: a link that loses or holds packets back does so one by one.
fn segments(link: &Link) -> &'static str {
    if link.loss > 0.0 || link.bandwidth.is_some() { "1" } else { "65535" }
}

/// The arguments of `tc` that put a link on what a device sends.
///
/// Delays are in microseconds, or in nanoseconds where they are no whole ones. The queue of a bandwidth is given in
/// packets of the MTU, as netem counts it, together with those under way.
fn qdisc_arguments(device: &str, link: &Link, mtu: u16) -> Vec<String> {
    let mut arguments: Vec<String> =
        ["qdisc", "replace", "dev", device, "root", "handle", "1:", "netem", "limit"]
            .map(String::from)
            .into();
    let limit = match link.bandwidth {
        Some(bandwidth) => {
            let under_way = u128::from(bandwidth) * link.delay.as_nanos() / 8_000_000_000;
            u64::try_from(under_way).unwrap_or(u64::MAX).saturating_add(link.queue()).div_ceil(mtu.into())
        }
        None => LIMIT.into(),
    };
    arguments.push(limit.clamp(1, LIMIT.into()).to_string());
    if !link.delay.is_zero() {
        arguments.extend(["delay".into(), time(link.delay)]);
        if !link.jitter.is_zero() {
            arguments.push(time(link.jitter));
        }
    }
    if link.loss > 0.0 {
        arguments.extend(["loss".into(), "random".into(), format!("{}%", link.loss * 100.0)]);
    }
    if let Some(rate) = link.bandwidth.or((!link.jitter.is_zero()).then_some(NO_RATE)) {
        arguments.extend(["rate".into(), format!("{rate}bit")]);
        if link.bandwidth.is_some() {
            // What a wire adds to each packet.
            arguments.push("24".into());
        }
    }
    arguments
}

/// A time as `tc` takes it. Versions before 6.2 know no nanoseconds.
fn time(time: Duration) -> String {
    if time.subsec_nanos().is_multiple_of(1_000) {
        format!("{}us", time.as_micros())
    } else {
        format!("{}ns", time.as_nanos())
    }
}

fn run(namespace: &Namespace, program: &str, arguments: &[&str]) -> Result<(), CommandError> {
    let line = || format!("{program} {}", arguments.join(" "));
    let mut command = Command::new(program);
    command.args(arguments);
    carry_out(namespace, &mut command, &line())
}

/// Has a program carry out commands, one a line.
fn batch(namespace: &Namespace, program: &str, lines: &str) -> Result<(), CommandError> {
    let [line] = lines.lines().collect::<Vec<_>>()[..] else {
        let said = |source| CommandError::Start { command: format!("{program} -batch"), source };
        let mut input = tempfile::tempfile().map_err(said)?;
        input.write_all(lines.as_bytes()).and_then(|()| input.rewind()).map_err(said)?;
        let mut command = Command::new(program);
        command.args(["-batch", "-"]).stdin(input);
        let line = format!("{program} -batch: {}", lines.trim_end().replace('\n', "; "));
        return carry_out(namespace, &mut command, &line);
    };
    run(namespace, program, &line.split(' ').collect::<Vec<_>>())
}

/// Starts a command from a thread in the namespace: a child that would enter it itself had to be a copy of this process,
/// of all its memory.
fn carry_out(namespace: &Namespace, command: &mut Command, line: &str) -> Result<(), CommandError> {
    let output = namespace.run(|| command.output())?;
    let output = output.map_err(|source| CommandError::Start { command: line.to_owned(), source })?;
    if output.status.success() {
        Ok(())
    } else {
        Err(CommandError::Failed {
            command: line.to_owned(),
            said: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }
}

/// The queueing disciplines of a namespace.
fn disciplines(interfaces: &Interfaces) -> Result<Vec<Discipline>, CommandError> {
    interfaces.disciplines().map_err(CommandError::Counts)
}

/// What the netem of a device counted. Losses and full queues are one number to netem.
fn direction(disciplines: &[Discipline], device: i32) -> DirectionReport {
    let of_device = |found: &&Discipline| found.device == device && found.kind == "netem";
    disciplines.iter().find(of_device).map_or_else(DirectionReport::default, |found| DirectionReport {
        frames: found.frames,
        bytes: found.bytes,
        lost: found.lost,
        ..DirectionReport::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::MTU;

    fn arguments(link: Link) -> String {
        qdisc_arguments("bm0", &link, MTU).join(" ")
    }

    #[test]
    fn a_link_becomes_arguments_of_tc() {
        let start = "qdisc replace dev bm0 root handle 1: netem limit";
        let delay = Duration::from_micros(1_500);
        assert_eq!(arguments(Link::default()), format!("{start} 4000000"));
        assert_eq!(arguments(Link::of_delay(delay)), format!("{start} 4000000 delay 1500us"));
        let odd = Duration::from_nanos(27_500);
        assert_eq!(arguments(Link::of_delay(odd)), format!("{start} 4000000 delay 27500ns"));
        assert_eq!(
            arguments(Link { jitter: Duration::from_micros(500), ..Link::of_delay(delay) }),
            format!("{start} 4000000 delay 1500us 500us rate 1000000000000bit")
        );
        assert_eq!(
            arguments(Link { loss: 0.001, ..Link::default() }),
            format!("{start} 4000000 loss random 0.1%")
        );
        // 1.5 ms of 1 Gbit/s under way, 3 ms and 64 KiB in the queue: 187,500 and 440,536 bytes.
        assert_eq!(
            arguments(Link { bandwidth: Some(1_000_000_000), ..Link::of_delay(delay) }),
            format!("{start} 419 delay 1500us rate 1000000000bit 24")
        );
        // In larger packets they are fewer.
        assert_eq!(
            qdisc_arguments("bm0", &Link { bandwidth: Some(1_000_000_000), ..Link::of_delay(delay) }, 9_000)
                .join(" "),
            format!("{start} 70 delay 1500us rate 1000000000bit 24")
        );
    }

    #[test]
    fn trouble_is_behind_what_the_link_is() {
        let trouble = Trouble { lost: 0.25, doubled: 0.125, early: 0.5 };
        let slow = Link::of_delay(Duration::from_millis(1));
        assert_eq!(trouble.arguments(&slow).join(" "), "duplicate 12.5% reorder 50%");
        assert_eq!(trouble.arguments(&Link::default()).join(" "), "duplicate 12.5%");
        assert!(Trouble { lost: 1.0, ..Trouble::default() }.arguments(&slow).is_empty());
    }

    #[test]
    fn counts_are_those_of_a_devices_netem() {
        let other = Discipline { device: 1, kind: "noqueue".into(), frames: 1, bytes: 1, lost: 1 };
        let netem = Discipline { device: 7, kind: "netem".into(), frames: 42, bytes: 4242, lost: 7 };
        let found = [other, netem];
        let direction = direction(&found, 7);
        assert_eq!((direction.frames, direction.bytes, direction.lost), (42, 4242, 7));
        assert_eq!(super::direction(&found, 1), DirectionReport::default());
    }
}
