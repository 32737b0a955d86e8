//! TCP connections under test: what the kernel says over `NETLINK_SOCK_DIAG`.

use super::{Reading, Registered, SampleError, Sampler, SamplingConfig};
use crate::sampling::MetricInfo;

mod message;
mod netlink;

pub use message::{Connection, Wanted, parse};
use netlink::{Identity, Socket};

const CONNECTION: &str = "connection: `LOCAL-REMOTE`, each with its port; on loopback both ends are listed";

/// What it reads.
pub const METRICS: &[MetricInfo] = &[
    MetricInfo::gauge("state", "1", CONNECTION, "state of TCP: 1 is established, 4 to 11 are closing"),
    MetricInfo::gauge("congestion_state", "1", CONNECTION, "0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss"),
    MetricInfo::gauge("retransmits", "1", CONNECTION, "consecutive timeouts without progress"),
    MetricInfo::gauge("backoff", "1", CONNECTION, "number of doublings of the timeout"),
    MetricInfo::gauge("receive_queue", "B", CONNECTION, "received and not read by the program"),
    MetricInfo::gauge("send_queue", "B", CONNECTION, "written by the program and not acknowledged"),
    MetricInfo::gauge("rto", "ns", CONNECTION, "retransmission timeout"),
    MetricInfo::gauge("mss", "B", CONNECTION, "largest segment sent"),
    MetricInfo::gauge("unacked", "1", CONNECTION, "segments in flight"),
    MetricInfo::gauge("lost", "1", CONNECTION, "segments considered lost"),
    MetricInfo::gauge("retransmitted_now", "1", CONNECTION, "segments retransmitted and not acknowledged"),
    MetricInfo::gauge("rtt", "ns", CONNECTION, "smoothed round trip time"),
    MetricInfo::gauge("rttvar", "ns", CONNECTION, "its mean deviation"),
    MetricInfo::gauge("ssthresh", "1", CONNECTION, "slow start threshold, segments"),
    MetricInfo::gauge("cwnd", "1", CONNECTION, "congestion window in segments"),
    MetricInfo::gauge(
        "reordering",
        "1",
        CONNECTION,
        "segments that may be out of order before one counts as lost",
    ),
    MetricInfo::gauge("receive_window", "B", CONNECTION, "receive buffer estimate for one round trip"),
    MetricInfo::counter("total_retransmitted", "1", CONNECTION, "segments retransmitted"),
    MetricInfo::gauge("pacing_rate", "B/s", CONNECTION, "pacing rate of segments"),
    MetricInfo::counter("bytes_acked", "B", CONNECTION, "bytes that the other end has acknowledged"),
    MetricInfo::counter("bytes_received", "B", CONNECTION, "bytes received in order"),
    MetricInfo::counter("segments_out", "1", CONNECTION, "segments sent"),
    MetricInfo::counter("segments_in", "1", CONNECTION, "segments received"),
    MetricInfo::gauge("not_sent", "B", CONNECTION, "written by the program and not sent yet"),
    MetricInfo::gauge("min_rtt", "ns", CONNECTION, "minimum round trip time of the last minutes"),
    MetricInfo::gauge("delivery_rate", "B/s", CONNECTION, "rate at which data arrived, as last measured"),
    MetricInfo::counter("busy_time", "ns", CONNECTION, "time with data to send"),
    MetricInfo::counter("receiver_limited", "ns", CONNECTION, "part of it limited by the receiver's window"),
    MetricInfo::counter("buffer_limited", "ns", CONNECTION, "part of it limited by the send buffer"),
    MetricInfo::counter("bytes_sent", "B", CONNECTION, "bytes sent, including retransmissions"),
    MetricInfo::counter("bytes_retransmitted", "B", CONNECTION, "bytes retransmitted"),
];

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

    fn metrics(&self) -> &'static [MetricInfo] {
        METRICS
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
