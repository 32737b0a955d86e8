//! The time that the server takes for each call, whatever it does meanwhile.

use super::{client_cpu, packet_loss, server_cpu, server_disk, server_journal, server_threads, tcp_window};
use crate::prelude::*;
use crate::results::account::{Account, NO_BOUND, Part, own_time, trips};
use crate::results::doubts::noisy_host::is_noisy;
use crate::results::link::{frames, usage};

/// Share of the calls' time from which on it is worth telling.
const LEAST_SHARE: f64 = 0.3;
/// Nanoseconds in the mean of all calls: less is a network's and a scheduler's.
const LEAST_NS: f64 = 0.5e6;
/// The same where calls also wait for processors that other programs took.
const LEAST_NS_NOISY: f64 = 3e6;
/// Times the quickest kind of call: host and network hold up all kinds alike.
const KIND_TIMES: f64 = 5.0;
/// Slow calls that are all of one length: times the median from which on a call is one, how far from each other they may be, and
/// how many of them.
const STEP_TIMES: u64 = 10;
const STEP_WIDTH: f64 = 0.1;
const STEP_SHARE: f64 = 0.7;
/// Fewer calls say little of one kind.
const LEAST_CALLS: u64 = 20;
/// What an operation has of the server's time to be told of alone.
const MOST_OF_IT: f64 = 0.6;
/// By how much the mean of operations is over their median when few of them are slow.
const FEW: f64 = 3.0;
pub(super) const DETECTOR: Detector = Detector { id: "server-service-time", detect };

/// Whether some kinds of calls take longer than the quickest kind by what is worth telling: what disturbs a host disturbs all of
/// them.
fn is_of_a_kind(phase: &RpcPhase) -> bool {
    let kinds = || phase.rows.iter().filter(|row| row.ops >= LEAST_CALLS && row.program.starts_with("NFS"));
    let mean = |row: &RpcRow| row.rtt_ns as f64 / row.ops as f64;
    let Some(least) = kinds().map(mean).reduce(f64::min) else { return false };
    let (beyond, calls) = kinds().fold((0.0, 0.0), |(beyond, calls), row| {
        (beyond + (mean(row) - least) * row.ops as f64, calls + row.ops as f64)
    });
    beyond / calls >= LEAST_NS && kinds().any(|row| mean(row) >= KIND_TIMES * least)
}

/// Whether those calls that take much longer than half of them all take as long: what a host is disturbed by does not.
fn is_a_step(measured: &Measured<'_>) -> bool {
    let Some(latency) = measured.longest().and_then(|series| series.total.latency.decode().ok()) else {
        return false;
    };
    let from = (latency.value_at_quantile(0.5) * STEP_TIMES).max(LEAST_NS as u64);
    let slow: Vec<(u64, u64)> = latency
        .iter_recorded()
        .map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value()))
        .filter(|(at, _)| *at >= from)
        .collect();
    let all: u64 = slow.iter().map(|(_, count)| count).sum();
    let mut before = 0;
    let middle = slow.iter().find(|(_, count)| {
        before += count;
        2 * before >= all
    });
    let Some((middle, _)) = middle.copied() else { return false };
    let near = |at: u64| at.abs_diff(middle) as f64 <= STEP_WIDTH * middle as f64;
    let within: u64 = slow.iter().filter(|(at, _)| near(*at)).map(|(_, count)| count).sum();
    // Workers that begin together are slow together once.
    let workers = measured.recording.workers.len() as u64;
    all >= LEAST_CALLS.max(3 * workers) && within as f64 >= STEP_SHARE * all as f64
}

/// What a kind of call took on the server, in nanoseconds, all of them together.
struct Served<'a> {
    row: &'a RpcRow,
    ns: f64,
}

impl Served<'_> {
    fn mean(&self) -> f64 {
        self.ns / self.row.ops.max(1) as f64
    }
}

fn detect(measured: &Measured<'_>) -> Verdict {
    if !measured.is_nfs() || measured.is_virtual() {
        return Verdict::Irrelevant;
    }
    let Some((_, phase)) = measured.rpcs() else {
        return Verdict::uncounted();
    };
    let Some(account) = Account::of(measured) else { return Verdict::Irrelevant };
    let calls = phase.total();
    // What the server counts itself waits for no processor that others took.
    let noisy =
        is_noisy(measured) && own_time(measured).is_none() && !is_of_a_kind(phase) && !is_a_step(measured);
    let enough = |ns: f64| {
        let least = if noisy { LEAST_NS_NOISY } else { LEAST_NS };
        share(ns, account.whole()) >= LEAST_SHARE && ns / account.calls as f64 >= least
    };
    let (known, unknown) = (account.ns(Part::Server), account.ns(Part::Unknown));
    let emulated = measured.network().is_some_and(|network| network.is_emulated());
    let all = match (enough(known), enough(known + unknown)) {
        (true, _) => known,
        (false, true) if explained(measured) => return Verdict::Clear,
        // A link that nothing is known of; those of an emulation are never taken for the server.
        (false, true) if !emulated && measured.round_trip_ns().is_some() => known + unknown,
        (false, true) => return Verdict::Unknown(account.missing.unwrap_or(NO_BOUND).into()),
        (false, false) => return Verdict::Clear,
    };
    let sure = enough(known);
    let (part, mean) = (share(all, account.whole()), all / account.calls as f64);
    let served = served(measured, phase, all);
    let Some(most) = served.first().filter(|_| !explained(measured)) else { return Verdict::Clear };
    let of_it = share(most.ns, all);
    let others = calls.ops - most.row.ops;
    let mean_of_others = (all - most.ns) / others.max(1) as f64;
    let operation = most.row.operation.as_str();
    let who = if sure {
        "The server takes"
    } else {
        "The server, or a link before it that was not measured, takes"
    };
    let mut what = if of_it >= MOST_OF_IT {
        format!(
            "{who} {} of the time of calls, {} of that for {operation}: {} each",
            percent(part),
            percent(of_it),
            time(most.mean())
        )
    } else {
        let next: Vec<String> = served
            .iter()
            .take(3)
            .map(|served| format!("{} {}", served.row.operation, time(served.mean())))
            .collect();
        format!(
            "{who} {} of the time of calls, {} each on average: {}",
            percent(part),
            time(mean),
            next.join(", ")
        )
    };
    what += &if of_it >= MOST_OF_IT && others >= LEAST_CALLS {
        format!(", where other calls take {}.", time(mean_of_others))
    } else {
        ".".into()
    };
    what += &few_of_them(measured);
    let mut evidence = vec![
        Evidence::nanoseconds("mean time of a call on the server", mean),
        Evidence::nanoseconds(
            "mean round trip of a call (rtt / ops)",
            calls.rtt_ns as f64 / calls.ops as f64,
        ),
        Evidence::nanoseconds("way there and back, of a call", account.ns(Part::Path) / account.calls as f64),
    ];
    evidence.extend(served.iter().take(3).filter(|served| served.ns >= 0.05 * all).map(|served| {
        Evidence::nanoseconds(format!("mean time of {} on the server", served.row.operation), served.mean())
    }));
    let confidence = if noisy || !sure { Confidence::Possible } else { Confidence::Likely };
    Verdict::Found(
        Finding::new(confidence, what).advised(remedy(measured, operation)).with(evidence).costs(part),
    )
}

/// What each kind of call took of the server's time, the costliest first: as their round trips beyond the way have it.
fn served<'a>(measured: &Measured<'_>, phase: &'a RpcPhase, all: f64) -> Vec<Served<'a>> {
    let round_trip = measured.round_trip_ns().unwrap_or(0.0);
    let bandwidth = measured.network().and_then(|network| network.bandwidth).map(|bits| bits as f64 / 8.0);
    let rows = phase.rows.iter().filter(|row| row.program.starts_with("NFS") && row.ops > 0);
    let mut served: Vec<Served<'_>> = rows
        .map(|row| {
            let bytes = (row.bytes_sent + row.bytes_received) as f64;
            let on_the_way = bandwidth.map_or(0.0, |bandwidth| bytes * frames(measured) / bandwidth * 1e9);
            let ns = row.rtt_ns as f64 - row.ops as f64 * trips(row) * round_trip - on_the_way;
            Served { row, ns: ns.max(0.0) }
        })
        .collect();
    let beyond: f64 = served.iter().map(|served| served.ns).sum();
    served.iter_mut().for_each(|served| served.ns *= share(all, beyond));
    served.sort_by(|a, b| b.ns.total_cmp(&a.ns));
    served
}

/// Whether something else makes round trips long, or tells better what the server waits for.
fn explained(measured: &Measured<'_>) -> bool {
    let lossy = measured.network().is_some_and(|network| network.loss > 0.0);
    let others = [
        server_cpu::DETECTOR,
        server_disk::DETECTOR,
        server_journal::DETECTOR,
        server_threads::DETECTOR,
        tcp_window::DETECTOR,
        packet_loss::DETECTOR,
    ];
    client_cpu::is_full(measured)
        || lossy
        || usage(measured).is_some_and(|usage| usage.is_limit())
        || others.iter().any(|other| matches!((other.detect)(measured), Verdict::Found(_)))
}

/// Says so where it is a part of the operations that is slow: of the kind that took most of the time.
fn few_of_them(measured: &Measured<'_>) -> String {
    let told = measured.longest().and_then(|series| {
        let latency = series.total.latency.decode().ok().filter(|latency| latency.len() >= LEAST_CALLS)?;
        let (half, slow) = (latency.value_at_quantile(0.5) as f64, latency.value_at_quantile(0.99) as f64);
        let mean = series.total.sum_ns as f64 / series.total.count.max(1) as f64;
        let few = mean >= FEW * half && slow >= FEW * mean;
        few.then(|| {
            format!(
                " Not all of them: half of `{}` end within {}, and one in a hundred takes {} or more.",
                series.key.label,
                time(half),
                time(slow)
            )
        })
    });
    told.unwrap_or_default()
}

fn remedy(measured: &Measured<'_>, operation: &str) -> Remedy {
    if measured.is_embedded() {
        return case("server-service-time", "embedded");
    }
    case(
        "server-service-time",
        match operation {
            "COMMIT" | "WRITE" => "writes",
            "READ" | "READ_PLUS" => "reads",
            _ => "names",
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::recording::{EncodedHistogram, latency_histogram};
    use benchmaster_record::results::CheckKind;
    use benchmaster_record::results::ServedBy;

    /// 1,000 calls each of READ and COMMIT behind a delay of 1 ms each way, that take so long on the server.
    fn made(read_ns: u64, commit_ns: u64) -> Made {
        let mut made = Made::served();
        let rows = made.rows();
        rows.truncate(2);
        for (row, (name, ns)) in rows.iter_mut().zip([("READ", read_ns), ("COMMIT", commit_ns)]) {
            row.operation = name.into();
            (row.ops, row.transmissions, row.queue_ns) = (1000, 1000, 0);
            row.rtt_ns = 1000 * (2_000_000 + ns);
            row.execute_ns = row.rtt_ns;
            (row.bytes_sent, row.bytes_received) = (0, 0);
        }
        made.recording().rpc.as_mut().unwrap().client_cpu_ns = (0, 0);
        made.run().service.as_mut().unwrap().server = ServedBy::Knfsd;
        let network = &mut made.run().service.as_mut().unwrap().network;
        (network.base_rtt_ns, network.bandwidth, network.loss) = (None, None, 0.0);
        made
    }

    #[test]
    fn the_operation_that_takes_it_is_named() {
        let found = made(0, 16_000_000).found(&DETECTOR);
        assert!((found.cost.as_ref().unwrap().share - 0.8).abs() < 1e-9, "{:?}", found.cost);
        assert!(
            found.what.starts_with("The server takes 80 % of the time of calls, 100 % of that for COMMIT: 16 ms each, where other"),
            "{}",
            found.what
        );
        assert!(found.remedy.text.contains("journal"));
        let both = made(3_000_000, 4_000_000).found(&DETECTOR);
        assert!(both.what.contains("3.50 ms each on average: COMMIT 4 ms, READ 3 ms."), "{}", both.what);
    }

    #[test]
    fn a_network_that_takes_more_is_not_the_servers() {
        // 1.72 of 4 + 1.72 ms is 30.07 %, 1.71 is 29.95 %.
        assert!(matches!(made(0, 1_720_000).verdict(&DETECTOR), Verdict::Found(_)));
        assert_eq!(made(0, 1_710_000).verdict(&DETECTOR), Verdict::Clear);
        // Half a millisecond in the mean.
        let near = |ns| {
            let mut made = made(0, ns);
            made.run().service.as_mut().unwrap().network.delay_ns = 10_000;
            for row in made.rows() {
                row.rtt_ns -= 1000 * 1_980_000;
                row.execute_ns = row.rtt_ns;
            }
            made.verdict(&DETECTOR)
        };
        assert!(matches!(near(1_000_000), Verdict::Found(_)));
        assert_eq!(near(990_000), Verdict::Clear);
    }

    #[test]
    fn transfers_that_windows_do_not_hold_take_more_round_trips() {
        let large = |bytes: u64| {
            let mut made = made(6_000_000, 0);
            made.rows()[0].bytes_received = 1000 * bytes;
            made.verdict(&DETECTOR)
        };
        assert!(matches!(large(1000), Verdict::Found(_)));
        // 128 KiB: log2(1 + 9.05) = 3.3 round trips of 2 ms, if the window was small each time.
        assert!(matches!(large(131_072), Verdict::Unknown(_)));
    }

    #[test]
    fn what_else_makes_round_trips_long_is_told_elsewhere() {
        let mut full = made(0, 16_000_000);
        full.checked(CheckKind::CpuLimit, "write", &[("host_busy", 0.99)]);
        let length = full.recording().length_ns;
        let host = &mut full.recording().host;
        let all = u64::from(host.processors.max(1)) * length;
        (host.process_user_ns, host.process_system_ns) = (all / 10 * 9, 0);
        assert_eq!(full.verdict(&DETECTOR), Verdict::Clear);
        // Others filled it.
        full.recording().host.process_user_ns = all / 10;
        assert!(matches!(full.verdict(&DETECTOR), Verdict::Found(_)));
        let mut lossy = made(0, 16_000_000);
        lossy.run().service.as_mut().unwrap().network.loss = 0.01;
        assert_eq!(lossy.verdict(&DETECTOR), Verdict::Clear);
        let noisy = |commit_ns: u64, kinds: usize| {
            let mut noisy = made(0, commit_ns);
            noisy.rows().sort_by_key(|row| row.operation != "COMMIT");
            noisy.rows().truncate(kinds);
            noisy.checked(CheckKind::NoisyHost, "write", &[]);
            slow_calls(&mut noisy, &[]);
            noisy
        };
        // 3 ms, and a bit less.
        assert_eq!(noisy(3_000_000, 1).found(&DETECTOR).confidence, Confidence::Possible);
        assert_eq!(noisy(2_990_000, 1).verdict(&DETECTOR), Verdict::Clear);
        // A host holds up all kinds of calls: round trips of 9.9 ms and 2 ms may be its doing, 10 ms and 2 ms are not.
        assert_eq!(noisy(7_900_000, 2).found(&DETECTOR).confidence, Confidence::Possible);
        assert_eq!(noisy(8_000_000, 2).found(&DETECTOR).confidence, Confidence::Likely);
        // A host holds up some calls for long and others for longer; what lasts always as long is no disturbance.
        let held_up = |slow: &[(u64, u64)]| {
            let mut made = noisy(2_990_000, 1);
            slow_calls(&mut made, slow);
            made.verdict(&DETECTOR)
        };
        assert!(matches!(held_up(&[(40_000_000, 20), (42_000_000, 20)]), Verdict::Found(_)));
        assert_eq!(held_up(&[(40_000_000, 8), (42_000_000, 7)]), Verdict::Clear, "too few");
        let different = [(15_000_000, 10), (25_000_000, 10), (40_000_000, 10), (80_000_000, 10)];
        assert_eq!(held_up(&different), Verdict::Clear);
    }

    /// Operations that took 1 ms, but for these.
    fn slow_calls(made: &mut Made, slow: &[(u64, u64)]) {
        let mut latency = latency_histogram();
        for (ns, count) in [(1_000_000, 1000)].iter().chain(slow) {
            latency.saturating_record_n(*ns, *count);
        }
        for series in &mut made.recording().series {
            series.total.latency = EncodedHistogram::encode(&latency);
        }
    }

    #[test]
    fn what_the_server_counts_itself_is_known_on_a_noisy_host() {
        let mut noisy = made(0, 2_000_000);
        noisy.rows().retain(|row| row.operation == "COMMIT");
        noisy.checked(CheckKind::NoisyHost, "write", &[]);
        slow_calls(&mut noisy, &[]);
        assert_eq!(noisy.verdict(&DETECTOR), Verdict::Clear);
        noisy.run().service.as_mut().unwrap().server = ServedBy::Embedded;
        for used in &mut noisy.run().server_use {
            used.operations.clear();
            used.held_ns = Some(2_000_000_000);
        }
        let found = noisy.found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Likely);
        assert!(found.remedy.command.is_none() && found.remedy.text.contains("inject"), "{:?}", found.remedy);
    }

    #[test]
    fn it_takes_calls_and_a_round_trip() {
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
        let mut uncounted = made(0, 16_000_000);
        uncounted.recording().rpc = None;
        assert!(matches!(uncounted.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("mountstats")));
        let mut far = made(0, 16_000_000);
        let service = far.run().service.as_mut().unwrap();
        (service.server, service.network) = (ServedBy::External, Default::default());
        assert!(matches!(far.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("baseline = true")));
    }
}
