//! What a probe measured: plain values with units in their names, ready for JSON.

use std::net::SocketAddr;

use benchmaster_stats::interval::mean_interval;
use benchmaster_stats::percentile::{PercentileTable, SUPPORT};
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::tcp_info::TcpSample;

/// Confidence level of all intervals.
pub const CONFIDENCE: f64 = 0.95;

/// The network to a far end.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NetworkProbe {
    pub target: SocketAddr,
    /// Whether the far end was one of this process, over loopback: what this host can do without a network.
    pub own_far_end: bool,
    /// Milliseconds since 1970 when it began.
    pub began_ms: u64,
    /// Seconds that it took.
    pub seconds: f64,
    /// Congestion control of this end's connections: `cubic`.
    pub congestion_control: Option<String>,
    /// Largest segment that the client sends, in bytes, after TCP options.
    pub mss_bytes: Option<u64>,
    /// Round trips of small messages, one after the other, from application to application.
    pub round_trip: Latency,
    /// Bytes of such a message, in each direction.
    pub message_bytes: u32,
    /// Opening of connections: SYN to SYN/ACK, as the application sees it.
    pub connect: Latency,
    /// Bulk transfers, in the order of the configuration.
    pub throughput: Vec<Throughput>,
    /// Threads that request null data as fast as they can.
    pub null_data: Option<NullData>,
}

/// A mean over independent repetitions with its Student-t interval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub n: usize,
    pub mean: f64,
    /// Half the width of the interval at [`CONFIDENCE`]; `None` for one repetition, which has none.
    pub half_width: Option<f64>,
    pub values: Vec<f64>,
}

impl Estimate {
    /// `None` of nothing, and of values that are no finite numbers.
    pub(crate) fn of(values: Vec<f64>) -> Option<Self> {
        let interval = mean_interval(&values, CONFIDENCE).ok()?;
        Some(Self { n: interval.n, mean: interval.mean, half_width: interval.half_width, values })
    }
}

/// How long something took, in microseconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    pub n: usize,
    pub min_us: f64,
    pub median_us: f64,
    /// The mean, with an interval over repetitions: measurements that follow one another are not independent.
    pub mean_us: Estimate,
    /// 99 % were at or below; `None` of fewer than 1,000, which do not tell it.
    pub p99_us: Option<f64>,
    pub max_us: f64,
}

impl Latency {
    /// Of microseconds in repetitions; repetitions without any are left out. `None` of nothing.
    pub(crate) fn of(repetitions: &[Vec<f64>]) -> Option<Self> {
        let means = repetitions.iter().filter_map(|values| benchmaster_stats::mean(values)).collect();
        let mut all = repetitions.concat();
        all.sort_unstable_by(f64::total_cmp);
        let rank = (all.len() * 99).div_ceil(100);
        let p99 = || all.get(rank.checked_sub(1)?).copied();
        Some(Self {
            n: all.len(),
            min_us: *all.first()?,
            median_us: benchmaster_stats::median(&all)?,
            mean_us: Estimate::of(means)?,
            p99_us: (all.len() as u64 / 100 >= SUPPORT).then(p99).flatten(),
            max_us: *all.last()?,
        })
    }

    /// Of histograms in nanoseconds, one for each repetition. `None` of nothing, and of histograms with different
    /// bounds.
    pub(crate) fn of_histograms(repetitions: &[&Histogram<u64>]) -> Option<Self> {
        let filled = || repetitions.iter().copied().filter(|histogram| !histogram.is_empty());
        let all = PercentileTable::of_merged(filled()).ok()?;
        let us = |nanoseconds: u64| nanoseconds as f64 / 1e3;
        Some(Self {
            n: usize::try_from(all.count).ok()?,
            min_us: us(all.min?),
            // Of few values the table has no median.
            median_us: us(all.p50.or(all.max)?),
            mean_us: Estimate::of(filled().map(|histogram| histogram.mean() / 1e3).collect())?,
            p99_us: all.p99.map(us),
            max_us: us(all.max?),
        })
    }
}

/// In which direction data flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// From the client to the far end, as writes do.
    ToFarEnd,
    /// From the far end to the client, as reads do.
    ToClient,
}

/// Bulk transfer over a number of connections at once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Throughput {
    pub direction: Direction,
    pub flows: u16,
    /// Bytes of application data per second, all connections together.
    pub bytes_per_s: Estimate,
    /// Jain's index over the connections of a repetition; `None` for one connection.
    pub fairness: Option<Estimate>,
    /// Each on new connections.
    pub repetitions: Vec<Repetition>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Repetition {
    /// Bytes per second, all connections together.
    pub bytes_per_s: f64,
    /// Jain's index over the connections; `None` for one connection.
    pub fairness: Option<f64>,
    pub flows: Vec<Flow>,
}

/// One connection of a transfer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Flow {
    /// The client's port: with the addresses it decides which queues of the network interfaces the flow takes.
    pub port: u16,
    pub bytes_per_s: f64,
    /// Seconds over which it was measured, after the warm-up.
    pub seconds: f64,
    /// Segments sent again, by the sender, over the whole transfer.
    pub retransmits: u64,
    /// TCP_INFO of the sender over time, warm-up included.
    pub samples: Vec<TcpSample>,
}

/// Threads that request null data as fast as they can, over one or more connections.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NullData {
    pub connections: u16,
    /// Threads that share each of them: the number of requests outstanding on it.
    pub threads: u16,
    /// Bytes of a reply.
    pub reply_bytes: u32,
    /// Bytes of null data per second, all connections together.
    pub bytes_per_s: Estimate,
    /// Requests per second, all connections together.
    pub requests_per_s: Estimate,
    /// Jain's index over the connections of a repetition; `None` for one connection.
    pub fairness: Option<Estimate>,
    /// The highest rate of a connection divided by the lowest, the winner-loser ratio; `None` for one connection, or
    /// when one got nothing.
    pub winner_loser_ratio: Option<Estimate>,
    /// From when a thread has a request until it has the whole reply.
    pub latency: Latency,
    /// Rates of the connections in bytes per second, for each repetition.
    pub connection_bytes_per_s: Vec<Vec<f64>>,
}

/// An RPC server that is no far end, such as any NFS server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RpcProbe {
    pub target: SocketAddr,
    /// Version of the NFS program that was called.
    pub version: u32,
    /// Opening of connections: SYN to SYN/ACK, as the application sees it.
    pub connect: Latency,
    /// Round trips of calls of the procedure NULL, one after the other.
    pub null: Latency,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_is_over_repetitions() {
        let latency = Latency::of(&[vec![1.0, 3.0], vec![4.0, 4.0], vec![]]).unwrap();
        assert_eq!((latency.n, latency.min_us, latency.median_us, latency.max_us), (4, 1.0, 3.5, 4.0));
        assert_eq!((latency.mean_us.n, latency.mean_us.mean), (2, 3.0));
        // t(0.975, 1) = 12.706; s = √2, n = 2.
        assert!((latency.mean_us.half_width.unwrap() - 12.706).abs() < 1e-3, "{latency:?}");
        assert_eq!(latency.p99_us, None);
        assert_eq!(Latency::of(&[]), None);
        assert_eq!(Latency::of(&[vec![]]), None);
    }

    #[test]
    fn a_percentile_needs_a_thousand_values() {
        let values = |n: u32| Latency::of(&[(1..=n).map(f64::from).collect()]).unwrap();
        assert_eq!(values(999).p99_us, None);
        assert_eq!(values(1_000).p99_us, Some(990.0));
        assert_eq!(values(1_000).mean_us.half_width, None);
    }
}
