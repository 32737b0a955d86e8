//! The delay of an emulated network itself.

use benchmaster_record::results::NetworkRecord;

use crate::prelude::*;
use crate::results::account::{Account, Part};

/// Share of the calls' time from which on it is worth telling.
const LEAST_SHARE: f64 = 0.25;
/// The same of a way that nobody asked for.
const FAR_SHARE: f64 = 0.3;
/// Fewer calls say little.
const LEAST_CALLS: u64 = 20;

/// Nanoseconds of a round trip that a network has where nobody asked for one.
const LEAST_NS: f64 = 0.5e6;

pub(super) const DETECTOR: Detector = Detector { id: "emulated-delay", detect };
pub(super) const DISTANCE: Detector = Detector { id: "distance", detect: far };

/// The way on a network that is as it is.
fn far(measured: &Measured<'_>) -> Verdict {
    if !measured.is_nfs()
        || measured.is_virtual()
        || measured.network().is_some_and(NetworkRecord::is_emulated)
    {
        return Verdict::Irrelevant;
    }
    let (Some(account), Some(round_trip)) = (Account::of(measured), measured.round_trip_ns()) else {
        return Verdict::Irrelevant;
    };
    let part = account.share(Part::Path);
    if part < FAR_SHARE || round_trip < LEAST_NS {
        return Verdict::Clear;
    }
    let what = format!(
        "{} of the time of calls is the way to the server and back: {} at least, of {} that a call took.",
        percent(part),
        time(round_trip),
        time(account.whole() / account.calls as f64)
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::nanoseconds("shortest round trip", round_trip),
                Evidence::nanoseconds("mean time of a call", account.whole() / account.calls as f64),
            ])
            .costs(part),
    )
}

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some(delay) = measured.network().filter(|n| n.is_emulated()).map(|n: &NetworkRecord| n.delay_ns)
    else {
        return Verdict::Irrelevant;
    };
    if delay == 0 {
        return Verdict::Irrelevant;
    }
    let Some(calls) = measured.calls() else {
        return Verdict::Unknown(
            "calls were not counted: use a target of `nfs://…`, or a directory on an NFS mount whose mountstats can be read".into(),
        );
    };
    if calls.ops < LEAST_CALLS {
        return Verdict::Irrelevant;
    }
    let round_trip = 2.0 * delay as f64;
    let waited = calls.transmissions as f64 * round_trip;
    let part = share(waited, calls.execute_ns as f64);
    if part < LEAST_SHARE {
        return Verdict::Clear;
    }
    let operations = measured.operations() as f64;
    let each = calls.ops as f64 / operations.max(1.0);
    let mean = calls.execute_ns as f64 / calls.ops as f64;
    let trips = if operations > 0.0 {
        format!(
            " An operation needs {each:.2} calls on average, at least {} of delay.",
            time(each * round_trip)
        )
    } else {
        String::new()
    };
    let confidence = if part >= 0.75 { Confidence::Certain } else { Confidence::Likely };
    let what = format!(
        "{} of the time of calls is the emulated delay: {} for the way there and back, of {} that a call took.{trips}",
        percent(part),
        time(round_trip),
        time(mean)
    );
    Verdict::Found(
        Finding::new(confidence, what)
            .with([
                Evidence::nanoseconds("emulated round trip (2 · delay)", round_trip),
                Evidence::nanoseconds("mean time of a call (execute / ops)", mean),
                Evidence::nanoseconds(
                    "mean round trip of a call (rtt / ops)",
                    calls.rtt_ns as f64 / calls.ops as f64,
                ),
                Evidence::number("calls per operation", each),
            ])
            .costs(part),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    /// Calls of `mean_ns` each over a network with a delay.
    fn made(delay_ns: u64, mean_ns: u64) -> Made {
        let mut made = Made::served();
        if let Some(service) = &mut made.run().service {
            service.network.delay_ns = delay_ns;
        }
        for row in made.rows() {
            row.transmissions = row.ops;
            (row.queue_ns, row.rtt_ns, row.execute_ns) = (0, row.ops * mean_ns, row.ops * mean_ns);
        }
        made
    }

    #[test]
    fn calls_that_wait_for_the_delay_alone_are_limited_by_it() {
        let found = made(1_000_000, 2_100_000).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Certain);
        assert!((found.cost.unwrap().share - 2.0 / 2.1).abs() < 1e-6);
        assert!(found.what.contains("2 ms for the way there and back, of 2.10 ms"), "{}", found.what);
    }

    #[test]
    fn slow_servers_hide_it() {
        assert_eq!(made(1_000_000, 8_000_000).found(&DETECTOR).confidence, Confidence::Likely);
        assert_eq!(made(1_000_000, 8_100_000).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn it_cannot_be_where_nothing_is_emulated_and_is_not_known_without_counts() {
        assert_eq!(made(0, 2_100_000).verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
        let mut uncounted = made(1_000_000, 2_100_000);
        uncounted.recording().rpc = None;
        assert!(matches!(uncounted.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("nfs://")));
    }
}
