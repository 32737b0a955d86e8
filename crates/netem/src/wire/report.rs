//! What a wire carried, and how exactly.

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::interface::InterfaceReport;

/// What an emulated network carried.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// By client, in their order.
    pub clients: Vec<ClientReport>,
    /// Of hosts with transmit queues that sent something: clients, then the server.
    pub interfaces: Vec<InterfaceReport>,
}

/// The link of one client.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct ClientReport {
    /// From the client to the server.
    pub to_server: DirectionReport,
    /// From the server to the client.
    pub to_client: DirectionReport,
}

/// One direction of a link.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DirectionReport {
    /// Ethernet frames that arrived. A large frame counts as those into which a network card would have cut it.
    pub frames: u64,
    /// Bytes of them, with Ethernet headers, without preamble, checksum and gap.
    pub bytes: u64,
    /// Frames lost by the link's chance.
    pub lost: u64,
    /// Frames dropped because the queue in front of a bandwidth was full.
    pub queue_drops: u64,
    /// Frames dropped because the emulation itself did not keep up, or had no memory for them: the network was not
    /// the one asked for.
    pub overruns: u64,
    /// How much later than due frames left; `None` where it is not measured (`tc netem`).
    pub lateness: Option<Lateness>,
}

/// How much later than due frames left the emulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lateness {
    /// Half of the frames were no later.
    pub median: Duration,
    /// 99 of 100 were no later.
    pub p99: Duration,
    /// None was later.
    pub max: Duration,
}

impl Report {
    /// All directions of all clients.
    pub fn directions(&self) -> impl Iterator<Item = &DirectionReport> {
        self.clients.iter().flat_map(|client| [&client.to_server, &client.to_client])
    }

    /// The worst of all directions in each figure, if they are known.
    pub fn lateness(&self) -> Option<Lateness> {
        self.directions().filter_map(|direction| direction.lateness).reduce(|a, b| Lateness {
            median: a.median.max(b.median),
            p99: a.p99.max(b.p99),
            max: a.max.max(b.max),
        })
    }

    /// Frames that the emulation dropped although the network asked for would not have.
    pub fn overruns(&self) -> u64 {
        self.directions().map(|direction| direction.overruns).sum()
    }
}

/// Counts of one direction.
#[derive(Debug)]
pub(super) struct Counts {
    pub(super) frames: u64,
    pub(super) bytes: u64,
    pub(super) overruns: u64,
    /// In nanoseconds.
    lateness: Histogram<u32>,
}

impl Counts {
    pub(super) fn new() -> Self {
        /// In nanoseconds: a minute. The thread would have to stand still for so long.
        const MOST_LATE: u64 = 60_000_000_000;
        #[expect(clippy::expect_used, reason = "the bounds are constants")]
        let lateness = Histogram::new_with_bounds(1, MOST_LATE, 2).expect("valid bounds");
        Self { frames: 0, bytes: 0, overruns: 0, lateness }
    }

    /// A frame left this many nanoseconds late.
    pub(super) fn left(&mut self, frames: u64, bytes: u64, late: u64) {
        self.frames += frames;
        self.bytes += bytes;
        self.lateness.saturating_record(late);
    }

    pub(super) fn report(&self, lost: u64, queue_drops: u64) -> DirectionReport {
        let at = |quantile| Duration::from_nanos(self.lateness.value_at_quantile(quantile));
        DirectionReport {
            frames: self.frames,
            bytes: self.bytes,
            lost,
            queue_drops,
            overruns: self.overruns,
            lateness: Some(Lateness {
                median: at(0.5),
                p99: at(0.99),
                max: Duration::from_nanos(self.lateness.max()),
            }),
        }
    }

    pub(super) fn clear(&mut self) {
        (self.frames, self.bytes, self.overruns) = (0, 0, 0);
        self.lateness.reset();
    }
}
