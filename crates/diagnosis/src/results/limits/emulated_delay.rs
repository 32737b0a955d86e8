//! The delay of an emulated network itself.

use benchmaster_record::results::NetworkRecord;

use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Need, Plot, Remedy};
use crate::measured::Measured;
use crate::results::account::{Account, Part};
use crate::results::rule::Detector;
use crate::words::{percent, share, time};

/// Share of the calls' time from which on it is worth telling.
const LEAST_SHARE: f64 = 0.25;
/// The same of a way that nobody asked for.
const FAR_SHARE: f64 = 0.3;
/// Fewer calls say little.
const LEAST_CALLS: u64 = 20;

/// Nanoseconds of a round trip that a network has where nobody asked for one.
const LEAST_NS: f64 = 0.5e6;

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };
pub(super) const DISTANCE: Detector = Detector { explanation: &FAR, detect: far };

const FAR: Explanation = Explanation {
    id: "distance",
    group: Group::Limit,
    title: "The way to the server is the limit",
    mechanism: "A call cannot end before its request went to the server and its reply came back. A worker that makes one call after the other does no more than one in each round trip, \
                whatever server and network are capable of.",
    formula: "share = one shortest round trip for each call / sum of the calls' execute times, from 30 % and 0.5 ms on; the round trip is that of the baseline, or TCP's `min_rtt`; where the network is not emulated",
    source: "paper 000 §5 and paper 001 §3 (time over n round trips); RFC 6298",
};

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
    let remedy = Remedy::new("More operations at once (workers, readahead), or fewer calls for each (larger I/O, delegations, caching), hide the distance; a client nearer to the server has less of it.")
        .confirmed_by("`benchmaster probe network HOST`: the round trip without NFS");
    Verdict::Found(
        Finding::new(&FAR, Confidence::Likely, what, remedy)
            .with([
                Evidence::nanoseconds("shortest round trip", round_trip),
                Evidence::nanoseconds("mean time of a call", account.whole() / account.calls as f64),
            ])
            .costs(part, CostOf::CallTime, "calls · shortest round trip / execute time of all calls")
            .shown_by(Plot::Latency),
    )
}

const EXPLANATION: Explanation = Explanation {
    id: "emulated-delay",
    group: Group::Limit,
    title: "The emulated delay is the limit",
    mechanism: "A call cannot end before its request went to the server and its reply came back: two delays. An operation that needs n calls \
                one after the other takes n round trips, whatever server and network are capable of, so that a worker does at most \
                1 / (n · 2 · delay) operations a second. This is what the study asked for; it is reported so that nothing else is mistaken for the limit.",
    formula: "share = requests sent · 2 · delay / sum of the calls' execute times, found from 25 % and 20 calls on; certain from 75 % on. \
              Calls per operation = RPCs of the measured phase / operations",
    source: "paper 000 §5 and paper 001 §3 (time over n round trips); `[network] delay` of the study, `rtt` and `execute` of the calls",
};

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
    let remedy = Remedy::new(
        "Nothing, if the delay is what is studied. Else more operations at once (workers, readahead), or fewer calls for each (larger I/O, \
         delegations, caching) hide it.",
    )
    .by(Need::EmulatedNetwork, "--set network.delay=0ms")
    .confirmed_by("a factor `network.delay` with two levels, as in `studies/quickstart.toml`: latency grows by 2 · delay for each call");
    Verdict::Found(
        Finding::new(
            &EXPLANATION,
            confidence,
            format!(
                "{} of the time of calls is the emulated delay: {} for the way there and back, of {} that a call took.{trips}",
                percent(part),
                time(round_trip),
                time(mean)
            ),
            remedy,
        )
        .with([
            Evidence::nanoseconds("emulated round trip (2 · delay)", round_trip),
            Evidence::nanoseconds("mean time of a call (execute / ops)", mean),
            Evidence::nanoseconds("mean round trip of a call (rtt / ops)", calls.rtt_ns as f64 / calls.ops as f64),
            Evidence::number("calls per operation", each),
        ])
        .costs(part, CostOf::CallTime, "requests · 2 · delay / execute time of all calls")
        .shown_by(Plot::Latency),
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
