//! How the network is measured once, before the first run over it.

use std::time::Duration;

/// How long each repetition of a transfer is measured.
pub const TRANSFER: Duration = Duration::from_millis(80);
/// Repetitions of each transfer.
pub const REPETITIONS: u16 = 2;
/// Connections that transfer at once.
pub const FLOWS: [u16; 2] = [1, 8];
/// Round trips and connections that are timed; fewer where they take long.
const ROUND_TRIPS: u32 = 200;

/// Round trips that are timed, of requests and of bytes: about a quarter of a second each where they take long.
pub fn round_trips(round_trip: Duration) -> u32 {
    let fit = u32::try_from(round_trip.as_micros()).map_or(1, |us| 250_000 / us.max(1));
    fit.clamp(10, ROUND_TRIPS)
}

/// Connections that are timed.
pub fn connects(round_trip: Duration) -> u32 {
    round_trips(round_trip).min(20)
}

/// How long a transfer is not measured at its start.
pub fn warm_up(round_trip: Duration) -> Duration {
    (round_trip * 10).clamp(Duration::from_millis(20), Duration::from_millis(150))
}

/// What all of it takes at least: transfers in both directions, and round trips. With a server elsewhere there is no far end
/// for transfers.
pub fn length(round_trip: Duration, far_end: bool) -> Duration {
    let requests = round_trip * round_trips(round_trip);
    let transfers = 2 * FLOWS.len() as u32 * u32::from(REPETITIONS);
    let raw = (TRANSFER + warm_up(round_trip)) * transfers + requests + round_trip * connects(round_trip);
    if far_end { requests + raw } else { requests }
}
