//! When the first request of each connection came: how well clients began together, as the server saw it.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use rustix::time::{ClockId, clock_gettime};

use crate::state::ConnectionId;

/// Most that are noted of a round.
const MOST: usize = 65_536;

/// The first request of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// Connection of the first request.
    pub connection: ConnectionId,
    /// Address of the client.
    pub client: SocketAddr,
    /// When it was received, on this host's monotonic clock (`CLOCK_MONOTONIC`), in nanoseconds.
    pub monotonic_ns: i64,
}

/// Notes first requests when it is asked to.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Grows each time the watch starts over; 0 before the first.
    round: AtomicU64,
    noted: Mutex<Vec<Arrival>>,
}

impl Arrivals {
    /// From now on notes the first request of each TCP connection, whether it is open already or not.
    pub fn watch(&self) {
        let mut noted = self.noted.lock();
        noted.clear();
        self.round.fetch_add(1, Ordering::Relaxed);
    }

    /// What was noted since the watch began, in the order of time.
    pub fn noted(&self) -> Vec<Arrival> {
        let mut noted = self.noted.lock().clone();
        noted.sort_by_key(|arrival| arrival.monotonic_ns);
        noted
    }

    /// A request came on a connection for which `round` was the last round that had one.
    #[inline]
    pub(crate) fn note(&self, round: &mut u64, connection: ConnectionId, client: SocketAddr) {
        if *round != self.round.load(Ordering::Relaxed) {
            self.first(round, connection, client);
        }
    }

    #[cold]
    fn first(&self, round: &mut u64, connection: ConnectionId, client: SocketAddr) {
        let now = clock_gettime(ClockId::Monotonic);
        let monotonic_ns = now.tv_sec.saturating_mul(1_000_000_000).saturating_add(now.tv_nsec);
        let mut noted = self.noted.lock();
        // Under the lock: a watch that begins now forgets this one.
        *round = self.round.load(Ordering::Relaxed);
        if noted.len() < MOST {
            noted.push(Arrival { connection, client, monotonic_ns });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_request_of_each_connection_is_noted_once_a_round() {
        let arrivals = Arrivals::default();
        let address = SocketAddr::from(([127, 0, 0, 1], 700));
        let mut rounds = [0, 0];
        let mut request =
            |index: usize| arrivals.note(&mut rounds[index], ConnectionId(index as u64), address);
        request(0);
        assert_eq!(arrivals.noted(), [], "nobody asked");
        let order = |requests: &[usize], request: &mut dyn FnMut(usize)| {
            arrivals.watch();
            requests.iter().for_each(|index| request(*index));
            arrivals.noted().iter().map(|arrival| arrival.connection.0).collect::<Vec<_>>()
        };
        assert_eq!(order(&[1, 1, 0, 1], &mut request), [1, 0]);
        assert_eq!(order(&[0, 0], &mut request), [0]);
        assert!(arrivals.noted()[0].monotonic_ns > 0);
    }
}
