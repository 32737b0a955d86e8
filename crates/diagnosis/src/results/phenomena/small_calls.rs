//! Small calls that are held back though nothing else is sent.

use super::tools::{all_execute_ns, digits, latencies};
use crate::prelude::*;
use crate::results::account::{Account, Part, under_way};

/// Bytes of a call that is small: less than a segment.
const SMALL: f64 = 1000.0;
const LEAST_CALLS: u64 = 500;
/// Share of the calls' time that is held back where that was asked for.
const LEAST_HELD: f64 = 0.1;
/// Nanoseconds before a call is sent, and their share of its time.
const LEAST_QUEUE_NS: f64 = 100_000.0;
const LEAST_QUEUE_SHARE: f64 = 0.3;
/// Calls under way on a connection: with more they wait for each other.
const MOST_UNDER_WAY: f64 = 2.0;
/// Shares of the processors' time above which calls may wait for a processor.
const MOST_BUSY: f64 = 0.8;
/// Delayed acknowledgements of Linux: 40 ms, and a few for a timer of 100 or 250 Hz.
const CLUSTER_NS: (u64, u64) = (38_500_000, 48_500_000);
const LEAST_IN_CLUSTER: f64 = 0.02;
/// Calls in the cluster, and for each of them at most so many in the gap before it.
const LEAST_CLUSTERED: u64 = 20;
const MOST_BEFORE: f64 = 0.2;

pub(super) const DETECTOR: Detector = Detector { id: "small-calls-held-back", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.operations() == 0 {
        return Verdict::Irrelevant;
    }
    let clustered = measured.recording.series.iter().filter_map(|series| clustered(measured, series));
    let worst = clustered.max_by(|a, b| a.share().total_cmp(&b.share()));
    match by_account(measured).or(worst).or_else(|| held_back(measured)) {
        Some(found) => Verdict::Found(found),
        None if measured.rpcs().is_none() && measured.run.service.is_none() => Verdict::Irrelevant,
        None => Verdict::Clear,
    }
}

/// Where it was asked for, by what is left of the time of calls.
fn by_account(measured: &Measured<'_>) -> Option<Finding> {
    let account = Account::of(measured)?;
    let (part, ends) = (account.share(Part::HeldBack), measured.run.parameters.nagle);
    if part < LEAST_HELD {
        return None;
    }
    let each = account.ns(Part::HeldBack) / account.calls as f64;
    let at = match (ends.clients, ends.server) {
        (true, true) => "clients and server",
        (true, false) => "the clients",
        (false, _) => "the server",
    };
    let what = format!(
        "{} of the time of calls is waiting for acknowledgements, {} for each: Nagle's algorithm, which this study asks {at} \
         for, holds small segments back until what was sent before has arrived.",
        percent(part),
        time(each)
    );
    let remedy = Remedy::new("Turn Nagle's algorithm off; all usual clients and servers of NFS do.")
        .by(
            Need::Anywhere,
            if ends.clients { "--set target.nagle=false" } else { "--set server.nagle=false" },
        )
        .confirmed_by("a factor `target.nagle` or `server.nagle`, as in `studies/paper000-nagle.toml`");
    Some(
        Finding::new(Confidence::Likely, what)
            .advised(remedy)
            .with([
                Evidence::nanoseconds("held back, of a call", each),
                Evidence::nanoseconds("mean time of a call", account.whole() / account.calls as f64),
                Evidence::nanoseconds(
                    "way there and back, of a call",
                    account.ns(Part::Path) / account.calls as f64,
                ),
            ])
            .costs(part)
            .shown_by(Plot::Latency),
    )
}

fn clustered(measured: &Measured<'_>, series: &SeriesRecording) -> Option<Finding> {
    let histogram = latencies(series)?;
    let delay = measured.network().map_or(0, |network| 2 * network.delay_ns);
    if histogram.value_at_quantile(0.5) >= 10_000_000 || delay >= 10_000_000 {
        return None;
    }
    let (from, to) = CLUSTER_NS;
    let (within, before) = (histogram.count_between(from, to), histogram.count_between(20_000_000, from - 1));
    let part = within as f64 / histogram.len() as f64;
    if within < LEAST_CLUSTERED || part < LEAST_IN_CLUSTER || before as f64 > MOST_BEFORE * within as f64 {
        return None;
    }
    let label = &series.key.label;
    let what = format!(
        "{} of the calls of {label} take about 40 ms, and hardly any 20 to 38, as those do that wait for a delayed acknowledgement; a server that takes as long looks the same.",
        percent(part)
    );
    let lost = within as f64 * 40e6;
    Some(
        Finding::new(Confidence::Possible, what)
            .with([
                Evidence::number("calls of 38.5 to 48.5 ms", within as f64),
                Evidence::number("calls of 20 to 38.5 ms", before as f64),
                Evidence::number("share of the calls of their kind", part),
                Evidence::nanoseconds("median latency", histogram.value_at_quantile(0.5) as f64),
            ])
            .costs_as(
                share(lost, measured.operation_ns() as f64),
                CostOf::OperationTime,
                "40 ms for each of them / time of all operations",
            )
            .shown_by(Plot::Latency),
    )
}

fn held_back(measured: &Measured<'_>) -> Option<Finding> {
    let (_, phase) = measured.rpcs().filter(|(rpc, _)| rpc.source == RpcSource::Kernel)?;
    let under_way = under_way(measured);
    let busy = measured
        .clients()
        .filter_map(|host| Some(measured.derived(host).get("cpu.busy")?.value))
        .fold(0.0, f64::max);
    if under_way > MOST_UNDER_WAY || busy.max(measured.recording.host.host_busy.unwrap_or(0.0)) > MOST_BUSY {
        return None;
    }
    let waits = |row: &RpcRow| row.queue_ns as f64 / row.ops.max(1) as f64;
    let small = phase.rows.iter().filter(|row| {
        row.ops >= LEAST_CALLS
            && row.bytes_sent as f64 / (row.ops as f64) < SMALL
            && waits(row) >= LEAST_QUEUE_NS
            && share(row.queue_ns as f64, row.execute_ns as f64) >= LEAST_QUEUE_SHARE
    });
    let worst = small.max_by_key(|row| row.queue_ns)?;
    let what = format!(
        "Each {} waits {} before it is sent ({} of its time), though only {} calls are under way on a connection.",
        worst.operation,
        time(waits(worst)),
        percent(share(worst.queue_ns as f64, worst.execute_ns as f64)),
        digits(under_way)
    );
    let lost = share(worst.queue_ns as f64, all_execute_ns(measured) as f64);
    Some(
        Finding::new(Confidence::Possible, what)
            .with([
                Evidence::nanoseconds("wait before a small call is sent, mean", waits(worst)),
                Evidence::nanoseconds("its round trip, mean", worst.rtt_ns as f64 / worst.ops as f64),
                Evidence::bytes("bytes of such a call", worst.bytes_sent as f64 / worst.ops as f64),
                Evidence::number("calls under way on a connection", under_way),
            ])
            .costs_as(lost, CostOf::CallTime, "its time in the queue / execute time of all calls")
            .shown_by(Plot::Counters),
    )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::results::ServedBy;

    use super::super::made;
    use super::*;
    use crate::results::testing::Made;

    fn creation(latencies: &[(u64, u64)], queue_us: f64, rtt_us: f64) -> Verdict {
        let mut recording = made::recording("create", 10.0);
        made::series(&mut recording, OperationKind::Create, 0, latencies);
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &[("OPEN", 10_000, 300, queue_us, rtt_us)]);
        made::judge(recording, detect)
    }

    #[test]
    fn acknowledgements_that_are_delayed() {
        let Verdict::Found(found) = creation(&[(300_000, 9_500), (40_500_000, 500)], 0.0, 300.0) else {
            panic!()
        };
        assert!(found.what.starts_with("5 % of the calls of create take about 40 ms"), "{}", found.what);
        assert!(found.cost.unwrap().share > 0.8);
        assert_eq!(creation(&[(300_000, 9_850), (40_500_000, 150)], 0.0, 300.0), Verdict::Clear);
        // A tail that only goes through there.
        assert_eq!(
            creation(&[(300_000, 9_000), (25_000_000, 500), (40_500_000, 500)], 0.0, 300.0),
            Verdict::Clear
        );
        // All of them are slow.
        assert_eq!(creation(&[(40_500_000, 10_000)], 0.0, 300.0), Verdict::Clear);
    }

    #[test]
    fn opens_that_wait_before_they_are_sent() {
        let plain = [(800_000, 10_000)];
        let Verdict::Found(found) = creation(&plain, 400.0, 300.0) else { panic!() };
        assert!(
            found.what.starts_with("Each OPEN waits 400 µs before it is sent (57 % of its time)"),
            "{}",
            found.what
        );
        assert_eq!(creation(&plain, 99.0, 100.0), Verdict::Clear);
        assert_eq!(creation(&plain, 120.0, 300.0), Verdict::Clear);
        // Many at once wait for each other.
        assert_eq!(creation(&plain, 1_100.0, 1_000.0), Verdict::Clear);
        assert_eq!(made::judge(made::recording("create", 1.0), detect), Verdict::Irrelevant);
    }

    #[test]
    fn what_the_study_asks_for_is_named_with_its_key() {
        let mut made = Made::served();
        let service = made.run().service.as_mut().unwrap();
        (service.server, service.network.delay_ns) = (ServedBy::Embedded, 5_000_000);
        (service.network.base_rtt_ns, service.network.bandwidth, service.network.loss) = (None, None, 0.0);
        made.recording().length_ns = 1_000_000_000;
        (made.recording().host.process_user_ns, made.recording().host.process_system_ns) = (0, 0);
        let row = &mut made.rows()[0];
        (row.ops, row.transmissions, row.queue_ns) = (1000, 1000, 0);
        (row.rtt_ns, row.execute_ns) = (20_000_000_000, 20_000_000_000);
        (row.bytes_sent, row.bytes_received) = (200_000, 200_000);
        made.rows().truncate(1);
        made.run().server_use.iter_mut().for_each(|used| {
            used.operations.clear();
            used.held_ns = Some(0);
        });
        assert_eq!(made.verdict(&DETECTOR), Verdict::Clear);
        made.run().parameters.nagle.server = true;
        let found = made.found(&DETECTOR);
        assert!(
            found.what.starts_with("50 % of the time of calls is waiting for acknowledgements, 10 ms"),
            "{}",
            found.what
        );
        assert_eq!(found.remedy.command.as_deref(), Some("--set server.nagle=false"));
    }
}
