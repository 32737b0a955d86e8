//! TCP connections under test: what the kernel says over `NETLINK_SOCK_DIAG`.

use super::{Reading, Registered, SampleError, Sampler, SamplingConfig};
use crate::sampling::{MetricInfo, metrics};

mod message;
mod netlink;

pub use message::{Connection, Wanted, parse};
use netlink::{Identity, Socket};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<31>(include_str!("metrics/tcp_info.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "tcp_info",
    about: "TCP connections with a watched port at either end, from the kernel's socket diagnostics; nothing is read if no port is \
            watched. New connections are detected within a second while there are changes, within eight seconds otherwise. \
            What an older kernel does not report is omitted.",
    metrics: METRICS,
    make: |config| Box::new(TcpInfo::new(config)),
};

/// Asks the kernel in each tick.
#[derive(Debug)]
struct TcpInfo {
    wanted: Wanted,
    socket: Option<Socket>,
    known: Vec<Identity>,
    /// All connections are looked for again at this time.
    again_ns: i64,
    pause_ns: i64,
    instance: String,
}

/// New connections are found after so many nanoseconds: to find them the kernel looks at all places where one could be.
const LOOK_AGAIN_NS: i64 = 1_000_000_000;
/// When nothing new was found, it takes twice as long until the next look, up to this.
const LONGEST_PAUSE_NS: i64 = 8 * LOOK_AGAIN_NS;
/// Of more connections than these it is cheaper to ask for all than for each.
const MOST_ASKED: usize = 200;

impl TcpInfo {
    fn new(config: &SamplingConfig) -> Self {
        let wanted = Wanted {
            ports: config.watch.server_ports.clone(),
            addresses: config.watch.server_addresses.clone(),
        };
        Self {
            wanted,
            socket: None,
            known: Vec::new(),
            again_ns: i64::MIN,
            pause_ns: LOOK_AGAIN_NS,
            instance: String::new(),
        }
    }
}

impl Sampler for TcpInfo {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        if self.wanted.ports.is_empty() {
            return Ok(());
        }
        let fail = |what: &str, error: std::io::Error| {
            SampleError::Other(format!(
                "cannot {what} the kernel's socket diagnostics: {error}; is inet_diag built in or loaded?"
            ))
        };
        let socket = match &mut self.socket {
            Some(socket) => socket,
            none => none.insert(Socket::open(&self.wanted.ports).map_err(|error| fail("open", error))?),
        };
        let (wanted, instance, known) = (&self.wanted, &mut self.instance, &mut self.known);
        let now = out.time_ns();
        let result = if now >= self.again_ns || known.len() > MOST_ASKED {
            let before = known.len();
            known.clear();
            let result = socket.dump(|message| {
                if let Some(connection) = parse(message).filter(|connection| wanted.contains(connection)) {
                    known.extend(Identity::of(message));
                    connection.record(instance, out);
                }
            });
            let same = known.len() == before && before > 0;
            self.pause_ns = if same { (self.pause_ns * 2).min(LONGEST_PAUSE_NS) } else { LOOK_AGAIN_NS };
            self.again_ns = now.saturating_add(self.pause_ns);
            result
        } else {
            let each = |message: &[u8]| {
                if let Some(connection) = parse(message) {
                    connection.record(instance, out);
                }
            };
            socket.ask(known, each).map(|complete| {
                if !complete {
                    // One went away; perhaps another one came in its place.
                    (self.again_ns, self.pause_ns) = (now, LOOK_AGAIN_NS);
                }
            })
        };
        result.map_err(|error| {
            // Answers to what was asked before must not be taken for answers to the next question.
            self.socket = None;
            self.again_ns = now.saturating_add(LOOK_AGAIN_NS);
            known.clear();
            fail("ask", error)
        })
    }
}

#[cfg(test)]
mod tests;
