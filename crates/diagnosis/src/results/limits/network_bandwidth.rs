//! The bandwidth of the network.

use benchmaster_stats::interval::mean_interval;

use crate::prelude::*;
use crate::results::link::{OF_SERVER, Usage, usage};

/// Intervals that make a test worth making.
const INTERVALS: usize = 5;

pub(super) const DETECTOR: Detector = Detector { id: "network-bandwidth", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if !measured.is_nfs() || measured.is_virtual() {
        return Verdict::Irrelevant;
    }
    let Some(usage) = usage(measured) else {
        // On loopback there is no link.
        let loopback =
            measured.is_embedded() && measured.network().is_none_or(|network| !network.is_emulated());
        return match (loopback, measured.calls()) {
            (true, _) => Verdict::Irrelevant,
            (_, None) => Verdict::uncounted(),
            _ => inferred(measured).map_or_else(no_capacity, Verdict::Found),
        };
    };
    if usage.is_beyond() {
        return Verdict::Unknown(format!(
            "more went over the wire than {}: that is not what the network is capable of; measure it again, on quiet hosts",
            usage.from
        ));
    }
    if !usage.is_limit() {
        return Verdict::Clear;
    }
    let part = usage.share();
    let confidence = if usage.emulated { Confidence::Certain } else { Confidence::Likely };
    let remedy = if usage.emulated {
        Remedy::new("Nothing, if the bandwidth is what is studied.")
            .by(Need::EmulatedNetwork, wider(&usage))
            .confirmed_by("a factor `network.bandwidth` with two levels, as in `studies/network.toml`: the rate follows the bandwidth")
    } else {
        case("network-bandwidth", "measured")
    };
    let what = format!(
        "{} went over the wire {}, {} of {} ({}).",
        rate(usage.rate),
        usage.direction,
        percent(part),
        usage.from,
        rate(usage.capacity)
    );
    let mut finding = Finding::new(confidence, what)
        .advised(remedy)
        .with([
            Evidence::bytes_per_second("rate on the wire", usage.rate),
            Evidence::bytes_per_second("capacity of the network", usage.capacity),
        ])
        .costs(part.min(1.0));
    finding.tests.extend(over_intervals(measured, part));
    Verdict::Found(finding)
}

fn no_capacity() -> Verdict {
    let why = "what the network is capable of is not known: measure it with `baseline = true` in `[run]`";
    Verdict::Unknown(why.into())
}

/// A link of which nothing is known but that no more than so many bytes pass, in a line.
fn inferred(measured: &Measured<'_>) -> Option<Finding> {
    // What waits is in the sender's buffer, so that TCP's round trips need not show it.
    let capacity = super::in_turn::line(measured)?.bandwidth()?;
    let bytes: u64 = measured.recording.series.iter().map(|series| series.total.bytes).sum();
    let moved = bytes as f64 / measured.seconds().max(1e-9);
    let what = format!(
        "No more than {} pass, however many calls wait for it: a link of that bandwidth, or a limit of the server's.",
        rate(capacity)
    );
    let evidence = [
        Evidence::bytes_per_second("bytes that pass one after the other", capacity),
        Evidence::bytes_per_second("rate of the workload", moved),
    ];
    let cost = (moved / capacity).min(1.0);
    Some(Finding::new(Confidence::Likely, what).with(evidence).costs_as(
        cost,
        CostOf::Time,
        "rate / bytes that pass one after the other",
    ))
}

/// Ten times the bandwidth of the link that is full.
fn wider(usage: &Usage) -> String {
    let key = if usage.from == OF_SERVER { "server_bandwidth" } else { "bandwidth" };
    let bits = usage.capacity * 80.0 / usage.links;
    let (number, unit) = if bits >= 1e9 { (bits / 1e9, "Gbit/s") } else { (bits / 1e6, "Mbit/s") };
    format!("--set network.{key}={}{unit}", (number * 10.0).round() / 10.0)
}

/// The use of each whole interval after the warm-up cut, scaled so that that of the run is `part`.
fn over_intervals(measured: &Measured<'_>, part: f64) -> Option<Test> {
    let recording = measured.recording;
    let interval = recording.interval_ns.max(1);
    let (first, whole) = ((recording.cut_ns / interval) as usize, (recording.length_ns / interval) as usize);
    let mut bytes = vec![0.0; whole];
    for one in recording.series.iter().flat_map(|series| &series.intervals) {
        if let Some(sum) = bytes.get_mut(one.index as usize) {
            *sum += one.stats.bytes as f64;
        }
    }
    let total: u64 = recording.series.iter().map(|series| series.total.bytes).sum();
    let mean = total as f64 * interval as f64 / recording.length_ns.max(1) as f64;
    let used: Vec<f64> = bytes.get(first..)?.iter().map(|bytes| bytes / mean * part).collect();
    if used.len() < INTERVALS || mean <= 0.0 {
        return None;
    }
    let interval = mean_interval(&used, 0.95).ok()?;
    Some(Test {
        name: "use of the capacity, mean over the intervals of the run".into(),
        p: None,
        interval: Some(TestInterval {
            value: interval.mean,
            lower: interval.lower()?,
            upper: interval.upper()?,
            confidence: 0.95,
        }),
    })
}

#[cfg(test)]
mod tests {
    use benchmaster_record::results::ServedBy;

    use super::*;
    use crate::results::testing::{Made, NoDetails};

    /// Of frames of Ethernet.
    const FRAMES: f64 = 1514.0 / 1448.0;

    /// Reads at `rate` bytes per second over a network of 1 Gbit/s, one client.
    fn made(rate: f64) -> Made {
        let mut made = Made::spread().reading();
        made.run().service.as_mut().unwrap().network.bandwidth = Some(1_000_000_000);
        let bytes = rate * made.recording().length_ns as f64 / 1e9;
        for row in made.rows() {
            (row.bytes_received, row.bytes_sent) = (0, 0);
        }
        made.rows()[0].bytes_received = bytes as u64;
        made.recording().rpc.as_mut().unwrap().connection.clients = 1;
        made
    }

    #[test]
    fn a_full_link_is_found_from_85_percent_on() {
        let found = made(118e6).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Certain);
        assert_eq!(found.remedy.command.as_deref(), Some("--set network.bandwidth=10Gbit/s"));
        let share = found.cost.as_ref().unwrap().share;
        assert!((share - 118e6 * FRAMES / 125e6).abs() < 1e-6);
        let test = found.tests[0].interval.unwrap();
        assert!(test.lower < share && share < test.upper, "{test:?}");
        assert!(matches!(made(102e6).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(101e6).verdict(&DETECTOR), Verdict::Clear);
        // What went in the measured phase may have waited for it.
        assert_eq!(made(150e6).found(&DETECTOR).cost.unwrap().share, 1.0);
    }

    #[test]
    fn real_links_are_as_fast_as_raw_tcp() {
        let mut real = made(800e6);
        let mut network = real.run().service.as_ref().unwrap().network.clone();
        network.bandwidth = None;
        real.run().service.as_mut().unwrap().network = network.clone();
        assert!(matches!(real.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("baseline = true")));
        for baseline in &mut real.results.baselines {
            baseline.network = network.clone();
        }
        // Two hosts: half of it each.
        assert_eq!(real.verdict(&DETECTOR), Verdict::Clear);
        real.recording().agents.truncate(1);
        let found = real.found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!((found.cost.unwrap().share - 800.0 / 868.0).abs() < 1e-6);
        for row in real.rows() {
            (row.bytes_received, row.bytes_sent) = (row.bytes_received / 2 * 3, 0);
        }
        assert!(matches!(real.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("again")));
    }

    #[test]
    fn what_counts_follows_the_settings_of_the_network() {
        let mut made = made(118e6);
        let share = |made: &Made| {
            let run = &made.results.runs[0];
            usage(&Measured::new(&made.results, run, &run.recordings[made.which], &NoDetails))
                .unwrap()
                .share()
        };
        made.run().parameters.mtu = Some(9_000);
        assert!((share(&made) - 118e6 * 9014.0 / 8948.0 / 125e6).abs() < 1e-6);
        // Of bytes, as study files are read.
        made.run().parameters.mtu = None;
        made.run().parameters.server_bandwidth = Some(120e6);
        assert!((share(&made) - 118e6 * FRAMES / 120e6).abs() < 1e-6);
    }

    #[test]
    fn on_loopback_there_is_no_link() {
        let mut loopback = made(800e6);
        let service = loopback.run().service.as_mut().unwrap();
        (service.server, service.network) = (ServedBy::Embedded, Default::default());
        assert_eq!(loopback.verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
        // Nor is one where raw TCP within the host was measured; an agent may be on another host.
        for baseline in &mut loopback.results.baselines {
            baseline.network = Default::default();
        }
        loopback.recording().agents.truncate(1);
        assert!(matches!(loopback.verdict(&DETECTOR), Verdict::Found(_)));
        loopback.recording().agents.clear();
        assert_eq!(loopback.verdict(&DETECTOR), Verdict::Irrelevant);
    }

    #[test]
    fn no_faster_link_is_advised_for_an_emulated_network() {
        let mut made = made(800e6);
        let service = made.run().service.as_mut().unwrap();
        service.network.bandwidth = None;
        let network = service.network.clone();
        assert!(network.is_emulated());
        for baseline in &mut made.results.baselines {
            baseline.network = network.clone();
        }
        made.recording().agents.truncate(1);
        let text = made.found(&DETECTOR).remedy.text;
        assert!(text.ends_with("through the emulated network of this host reaches no more."), "{text}");
        assert!(!text.contains("faster link"), "{text}");
    }
}
