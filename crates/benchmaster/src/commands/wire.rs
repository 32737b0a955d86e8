//! `wire`: programs over an emulated network.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use benchmaster_netem::interface::InterfaceReport;
use benchmaster_netem::link::{Link, MTU};
use benchmaster_netem::namespace::{
    Namespace, NamespaceError, Privilege, end_with_caller, enter_user_namespace, privilege,
};
use benchmaster_netem::network::{CongestionError, Means, Network, NetworkConfig, NetworkError};
use benchmaster_netem::wire::{DirectionReport, Report};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use serde_json::{Value, json};
use signal_hook::consts::SIGCHLD;
use signal_hook::iterator::Signals;

use crate::cli::{NetworkMeans, WireArgs};
use crate::failure::{Failure, Result, Status};
use crate::output;
use crate::signals;

/// How long a server gets to end, and to begin listening.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs commands over an emulated network, or waits for SIGINT or SIGTERM.
pub(crate) fn wire(args: &WireArgs) -> Result<Status> {
    // Before the first thread: signals are then handled here alone, and the user namespace is that of the process.
    let mut signals = Signals::new(signals::ending().into_iter().chain([SIGCHLD]))?;
    let in_user_namespace = match privilege() {
        Privilege::Direct => false,
        Privilege::UserNamespace => {
            enter_user_namespace()?;
            true
        }
        Privilege::Nothing(error) => return Err(Failure::failed(error)),
    };
    let network = start(args)?;
    output::note(&format!("The network is emulated by {}", network.note()));
    let mut server = Server::default();
    if let Some(command) = &args.server {
        server.start(command, &network)?;
    }
    let waited = args.port.map_or(Ok(()), |port| server.wait_for_listener(port, network.server()));
    let mut children = Children::default();
    if waited.is_ok() {
        match args.command.split_first() {
            Some(_) => start_commands(args, &network, &mut children)?,
            None => output::note(&how_to_enter(&network, in_user_namespace)),
        }
    }
    let result = waited.and_then(|()| children.wait(&mut signals));
    drop(children);
    let server_ended = server.end();
    let report = network.achieved()?;
    print(args, &network, &report)?;
    let status = result?;
    Ok(if status == Status::Fine && !server_ended { Status::ChecksFailed } else { status })
}

fn start(args: &WireArgs) -> Result<Network> {
    let link = Link {
        delay: args.delay.0,
        jitter: args.jitter.0,
        bandwidth: args.bandwidth,
        loss: args.loss,
        queue: args.queue.map(|size| size.bytes()),
    };
    let means = args.means.map(|means| match means {
        NetworkMeans::Netem => Means::Netem,
        NetworkMeans::Wire => Means::Wire,
    });
    let interface = args.queues.interface(args.seed);
    if interface.is_some() && args.server_bandwidth.is_none() && args.bandwidth.is_none() {
        let text = "nothing waits in transmit queues where no bandwidth is limited: add --server-bandwidth or --bandwidth";
        return Err(Failure::wrong(text));
    }
    let config = NetworkConfig {
        interface,
        server_bandwidth: args.server_bandwidth,
        mtu: args.mtu.unwrap_or(MTU),
        congestion: args.congestion.clone(),
        cwnd_clamp: args.cwnd_clamp,
        means,
        seed: args.seed,
        spin: args.spin.0,
        ..NetworkConfig::new(args.clients, link)
    };
    Network::start(config).map_err(|error| match error {
        NetworkError::Link(_) | NetworkError::Congestion(CongestionError::Unavailable { .. }) => {
            Failure::wrong_input(error)
        }
        _ => Failure::failed(error),
    })
}

fn start_commands(args: &WireArgs, network: &Network, children: &mut Children) -> Result<()> {
    for client in 0..if args.all { network.clients() } else { 1 } {
        let Some((program, arguments)) = args.command.split_first() else { return Ok(()) };
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env("BENCHMASTER_SERVER_ADDRESS", network.server_address().to_string())
            .env("BENCHMASTER_CLIENT_ADDRESS", network.client_address(client).to_string())
            .env("BENCHMASTER_CLIENT", (client + 1).to_string());
        network.client(client).apply(&mut command)?;
        children.start(command)?;
    }
    Ok(())
}

/// How other programs come into the namespaces.
fn how_to_enter(network: &Network, in_user_namespace: bool) -> String {
    let user = if in_user_namespace {
        format!("--preserve-credentials --user=/proc/{}/ns/user ", std::process::id())
    } else {
        String::new()
    };
    let line = |who: &str, address: std::net::IpAddr, namespace: &Namespace| {
        format!("  {who:<10} {address:<12} nsenter {user}--net={} COMMAND\n", namespace.path().display())
    };
    let mut text = "to run a command in a namespace:\n".to_owned();
    text += &line("server", network.server_address(), network.server());
    for client in 0..network.clients() {
        text +=
            &line(&format!("client {}", client + 1), network.client_address(client), network.client(client));
    }
    text + "running until SIGINT or SIGTERM"
}

/// Commands whose end is waited for. They are killed when this is dropped, or this process dies.
#[derive(Default)]
pub(super) struct Children {
    running: Vec<(String, Child)>,
    failed: bool,
    started: bool,
}

impl Children {
    pub(super) fn start(&mut self, mut command: Command) -> Result<()> {
        end_with_caller(&mut command);
        let name = command.get_program().to_string_lossy().into_owned();
        let child = command.spawn().map_err(|error| cannot_run(&name, &error))?;
        self.running.push((name, child));
        self.started = true;
        Ok(())
    }

    /// Waits until all have ended; without any, for SIGINT or SIGTERM. Such a signal is passed on to those that run, and the
    /// second one kills them.
    pub(super) fn wait(&mut self, signals: &mut Signals) -> Result<Status> {
        let mut told = 0;
        loop {
            self.collect()?;
            if self.started && self.running.is_empty() {
                break;
            }
            let mut ended = signals.wait().filter(|signal| *signal != SIGCHLD).count();
            if !self.started && ended > 0 {
                return Ok(Status::Fine);
            }
            while ended > 0 {
                (ended, told) = (ended - 1, told + 1);
                for (_, child) in &self.running {
                    let signal = if told == 1 { Signal::TERM } else { Signal::KILL };
                    // It may have ended just now.
                    let _ = kill_process(Pid::from_child(child), signal);
                }
            }
        }
        Ok(match (told, self.failed) {
            (0, false) => Status::Fine,
            (0, true) => Status::ChecksFailed,
            _ => Status::Interrupted,
        })
    }

    fn collect(&mut self) -> Result<()> {
        let mut still = Vec::new();
        for (name, mut child) in self.running.drain(..) {
            match child.try_wait()? {
                None => still.push((name, child)),
                Some(status) if status.success() => {}
                Some(status) => {
                    output::note(&format!("`{name}` ended with {status}"));
                    self.failed = true;
                }
            }
        }
        self.running = still;
        Ok(())
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        for (_, child) in &mut self.running {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// The command in the server's namespace, the leader of a process group.
#[derive(Default)]
struct Server {
    child: Option<Child>,
}

impl Server {
    fn start(&mut self, line: &std::ffi::OsStr, network: &Network) -> Result<()> {
        let mut command = Command::new("sh");
        command
            .arg("-c")
            .arg(line)
            .stdin(Stdio::null())
            .process_group(0)
            .env("BENCHMASTER_SERVER_ADDRESS", network.server_address().to_string());
        end_with_caller(&mut command);
        network.server().apply(&mut command)?;
        self.child = Some(command.spawn().map_err(|error| cannot_run("sh", &error))?);
        Ok(())
    }

    /// Waits until something listens on a TCP port in the namespace, without connecting to it.
    fn wait_for_listener(&mut self, port: u16, namespace: &Namespace) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while !listens(port, namespace)? {
            if let Some(child) = &mut self.child
                && let Some(status) = child.try_wait()?
            {
                let text = format!("the server ended with {status} before it listened on port {port}");
                return Err(Failure::fault(text));
            }
            if Instant::now() > deadline {
                let text = format!("nothing listens on TCP port {port} of the server after {PATIENCE:?}");
                return Err(Failure::fault(text));
            }
            sleep(Duration::from_millis(5));
        }
        Ok(())
    }

    /// Ends it; whether it was fine until then.
    fn end(mut self) -> bool {
        let Some(child) = &mut self.child else { return true };
        if let Ok(Some(status)) = child.try_wait() {
            if !status.success() {
                output::note(&format!("the server ended early, with {status}"));
            }
            return status.success();
        }
        // It is not waited for yet, so the group is still its own.
        let _ = kill_process_group(Pid::from_child(child), Signal::TERM);
        let deadline = Instant::now() + PATIENCE;
        while let Ok(None) = child.try_wait() {
            if Instant::now() > deadline {
                return true;
            }
            sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let Some(child) = &mut self.child else { return };
        if let Ok(None) = child.try_wait() {
            let _ = kill_process_group(Pid::from_child(child), Signal::KILL);
            let _ = child.wait();
        }
    }
}

fn cannot_run(name: &str, error: &std::io::Error) -> Failure {
    Failure::wrong(format!("cannot run `{name}`: {error}"))
}

/// Whether a TCP socket of the namespace listens on the port.
fn listens(port: u16, namespace: &Namespace) -> std::result::Result<bool, NamespaceError> {
    let read = |family: &str| std::fs::read_to_string(format!("/proc/thread-self/net/{family}"));
    namespace.run(|| ["tcp", "tcp6"].iter().any(|name| read(name).is_ok_and(|text| lists(&text, port))))
}

/// Whether /proc/net/tcp lists a socket that listens on the port.
fn lists(text: &str, port: u16) -> bool {
    const LISTEN: &str = "0A";
    let end = format!(":{port:04X}");
    text.lines().any(|line| {
        let mut columns = line.split_ascii_whitespace().skip(1);
        columns.next().is_some_and(|local| local.ends_with(&end)) && columns.nth(1) == Some(LISTEN)
    })
}

fn print(args: &WireArgs, network: &Network, report: &Report) -> Result<()> {
    if args.json {
        return output::print(&as_json(network, report).to_string());
    }
    let text = as_text(report);
    // Standard output is the command's.
    if args.command.is_empty() {
        output::print(&text)
    } else {
        output::note(&text);
        Ok(())
    }
}

fn microseconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e3
}

fn as_json(network: &Network, report: &Report) -> Value {
    let direction = |direction: &DirectionReport| {
        json!({
            "frames": direction.frames,
            "bytes": direction.bytes,
            "lost": direction.lost,
            "queue_drops": direction.queue_drops,
            "overruns": direction.overruns,
            "lateness_us": direction.lateness.map(|late| json!({
                "median": microseconds(late.median),
                "p99": microseconds(late.p99),
                "max": microseconds(late.max),
            })),
        })
    };
    let clients: Vec<Value> = (report.clients.iter())
        .map(|client| {
            json!({ "to_server": direction(&client.to_server), "to_client": direction(&client.to_client) })
        })
        .collect();
    let interface = |interface: &InterfaceReport| json!({ "host": interface.host.to_string(), "queues": interface.queues, "flows": interface.flows });
    let link = network.link();
    json!({
        "means": network.means(),
        "note": format!("The network is emulated by {}", network.note()),
        "base_round_trip_us": microseconds(network.base_rtt()),
        "link": {
            "delay_us": microseconds(link.delay),
            "jitter_us": microseconds(link.jitter),
            "bandwidth_bit_per_s": link.bandwidth,
            "loss": link.loss,
            "queue_bytes": link.bandwidth.map(|_| link.queue()),
            "mtu_bytes": network.mtu(),
            "congestion": network.congestion(),
            "cwnd_clamp_segments": network.cwnd_clamp(),
        },
        "clients": clients,
        "interfaces": report.interfaces.iter().map(interface).collect::<Vec<_>>(),
    })
}

fn as_text(report: &Report) -> String {
    let mut text = format!(
        "{:<22}{:>12}{:>16}{:>8}{:>12}{:>9}{:>26}\n",
        "carried", "frames", "bytes", "lost", "queue drops", "overruns", "late µs: median, p99, max"
    );
    for (number, client) in (1..).zip(&report.clients) {
        let directions = [("to server", &client.to_server), ("to client", &client.to_client)];
        for (way, direction) in directions {
            let late = direction.lateness.map_or("unknown".to_owned(), |late| {
                let [median, p99, max] = [late.median, late.p99, late.max].map(microseconds);
                format!("{median:.1}, {p99:.1}, {max:.1}")
            });
            let _ = writeln!(
                text,
                "{:<22}{:>12}{:>16}{:>8}{:>12}{:>9}{late:>26}",
                format!("client {number} {way}"),
                direction.frames,
                direction.bytes,
                direction.lost,
                direction.queue_drops,
                direction.overruns
            );
        }
    }
    if !report.interfaces.is_empty() {
        text += &format!(
            "{:<22}{:>12}{:>16}{:>8}{:>12}{:>15}\n",
            "transmit queues", "packets", "bytes on wire", "flows", "drops", "longest, bytes"
        );
    }
    for interface in &report.interfaces {
        for (number, queue) in (0..).zip(&interface.queues) {
            let _ = writeln!(
                text,
                "{:<22}{:>12}{:>16}{:>8}{:>12}{:>15}",
                format!("{} tx{number}", interface.host),
                queue.sent_packets,
                queue.sent_bytes,
                interface.flows.iter().filter(|flow| flow.queue == number).count(),
                queue.drops,
                queue.longest
            );
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listeners_are_found_in_what_the_kernel_lists() {
        let text = "  sl  local_address rem_address   st tx_queue\n   \
                    0: 0100007F:0801 00000000:0000 0A 00000000:00000000\n   \
                    1: 0100007F:1451 0100007F:0801 01 00000000:00000000\n";
        assert!(lists(text, 2049));
        assert!(!lists(text, 5201), "a connection does not listen");
        assert!(!lists(text, 1));
        assert!(!lists("", 2049));
    }
}
