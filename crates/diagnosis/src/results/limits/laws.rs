//! Little's law and the utilisation law: numbers that cannot be true together.

use benchmaster_record::model::{Step, Workload};
use benchmaster_stats::latency::little_law_mismatch;

use crate::prelude::*;

/// Shorter phases are measured too coarsely.
const LEAST_NS: u64 = 100_000_000;
/// Fewer operations say little.
const LEAST_OPERATIONS: u64 = 100;
/// By how much more may be under way than there can be.
const TOO_MUCH: f64 = 0.03;
/// Share of the workers' time outside of operations that nothing else explains.
const TOO_LITTLE: f64 = 0.5;
/// Shorter operations are not much longer than what the generator does between them.
const LEAST_MEAN_NS: f64 = 20_000.0;
/// CPU time is counted in ticks of 10 ms for each thread.
const TICK_NS: f64 = 1e7;

pub(super) const DETECTOR: Detector = Detector { id: "littles-law", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let recording = measured.recording;
    if measured.is_virtual() || recording.length_ns < LEAST_NS {
        return Verdict::Irrelevant;
    }
    if let Some(finding) = processors(measured).or_else(|| slots(measured)) {
        return Verdict::Found(finding);
    }
    let failed: u64 = recording.series.iter().map(|series| series.total.errors).sum();
    let operations = measured.operations();
    if recording.is_open_loop() || operations < LEAST_OPERATIONS || failed * 100 > operations {
        return Verdict::Irrelevant;
    }
    let Some(workload) = measured.workload else {
        return Verdict::Unknown("how many operations each worker keeps under way is not known: the stored study file cannot be read".into());
    };
    let time = workers_time(measured, workload);
    let length = recording.length_ns as f64;
    let mean = measured.operation_ns() as f64 / operations as f64;
    let Some(mismatch) = little_law_mismatch(time / length, operations as f64 / length, mean) else {
        return Verdict::Irrelevant;
    };
    let rate = operations as f64 / measured.seconds();
    let evidence = [
        Evidence::number("operations under way (rate · mean latency)", operations as f64 * mean / length),
        Evidence::number("that there may be (workers · queue depth)", time / length),
        Evidence::per_second("operations per second", rate),
        Evidence::nanoseconds("mean latency", mean),
    ];
    if mismatch > TOO_MUCH {
        let what = format!(
            "By rate and latency {:.2} operations were under way, but there were only {:.2} at most: a count or a clock is wrong.",
            operations as f64 * mean / length,
            time / length
        );
        return Verdict::Found(wrong(what).with(evidence));
    }
    let excused = waits(workload) || recording.host.trace_stall_ns > 0 || at_its_end(measured);
    if -mismatch <= TOO_LITTLE || mean < LEAST_MEAN_NS || excused {
        return Verdict::Clear;
    }
    let outside = -mismatch;
    let finding = Finding::new(
        Confidence::Possible,
        format!(
            "Workers spent {} of their time outside of the operations that were timed: the rate says less about the server than the latencies do.",
            percent(outside)
        ),
    );
    Verdict::Found(finding.with(evidence).costs(outside).shown_by(Plot::Clients))
}

/// Nanoseconds that workers had, each with as many operations as it may have under way.
fn workers_time(measured: &Measured<'_>, workload: &Workload) -> f64 {
    let depth = |group: &str| {
        let found = workload.groups.iter().find(|other| other.name == group);
        found.map_or(1.0, |group| f64::from(group.queue_depth.max(1)))
    };
    // Those that only hold files open do nothing.
    let holds =
        |group: &str| workload.groups.iter().any(|other| other.name == group && other.flow.is_empty());
    let workers = measured.recording.workers.iter().filter(|worker| !holds(&worker.group));
    workers.map(|worker| worker.end_ns.saturating_sub(worker.start_ns) as f64 * depth(&worker.group)).sum()
}

/// Operations that were under way in the mean, by rate and latency, and that could have been.
pub(in crate::results) fn under_way(measured: &Measured<'_>, workload: &Workload) -> (f64, f64) {
    let length = measured.recording.length_ns.max(1) as f64;
    (measured.operation_ns() as f64 / length, workers_time(measured, workload) / length)
}

/// Whether workers wait on purpose, or do what is not timed.
fn waits(workload: &Workload) -> bool {
    workload.verify.is_on()
        || workload.trace
        || workload.groups.iter().any(|group| group.rate.is_some())
        || pauses(workload)
        || waits_for_others(workload)
}

/// Whether workers pause on purpose.
pub(in crate::results) fn pauses(workload: &Workload) -> bool {
    workload.groups.iter().any(|group| any(&group.flow, |step| step.pause.is_some()))
}

/// Whether workers wait for others, or for the times of a trace.
pub(super) fn waits_for_others(workload: &Workload) -> bool {
    let waits = |step: &Step| step.meet.is_some() || step.take.is_some() || step.replay.is_some();
    workload.groups.iter().any(|group| any(&group.flow, waits))
}

/// Whether this is so of a step of a flow, however deep in it.
fn any(steps: &[Step], is: fn(&Step) -> bool) -> bool {
    steps
        .iter()
        .any(|step| is(step) || any(&step.flow, is) || step.choose.iter().any(|choice| any(&choice.flow, is)))
}

/// Whether the processors were, so that workers wait for one between operations.
fn at_its_end(measured: &Measured<'_>) -> bool {
    let limited = [CheckKind::CpuLimit, CheckKind::GeneratorLimit, CheckKind::NoisyHost];
    limited.into_iter().any(|kind| stored(measured, kind).is_some())
        || measured.recording.host.host_busy.is_none_or(|busy| busy > 0.8)
}

/// More CPU time than there was.
fn processors(measured: &Measured<'_>) -> Option<Finding> {
    let host = &measured.recording.host;
    let used = host.process_ns() as f64;
    let processors = f64::from(host.processors);
    let there_was = processors * measured.recording.length_ns as f64;
    let ticks = TICK_NS * (measured.recording.workers.len() + 4) as f64;
    // Several processes on several hosts are told together.
    if host.processors == 0 || measured.recording.agents.len() > 1 || used <= 1.05 * there_was + ticks {
        return None;
    }
    let share = used / measured.recording.length_ns.max(1) as f64;
    let what = format!(
        "This program used {share:.2} processors on average, but had only {processors:.0}: a clock is wrong."
    );
    Some(wrong(what).with([
        Evidence::number("processors used (CPU time / time)", share),
        Evidence::number("processors there were", processors),
    ]))
}

/// More calls under way than the session has slots.
fn slots(measured: &Measured<'_>) -> Option<Finding> {
    let (rpc, _) = measured.rpcs()?;
    let slots = f64::from(rpc.connection.slots?);
    // Of several clients the fewest are told.
    if rpc.source != RpcSource::Client || rpc.connection.clients != 1 {
        return None;
    }
    let calls = measured.calls()?;
    let under_way = calls.rtt_ns as f64 / measured.recording.length_ns.max(1) as f64;
    // Those that hold no slot: creating and destroying sessions. And calls that had begun before.
    if calls.ops < LEAST_OPERATIONS || under_way <= slots * (1.0 + TOO_MUCH) + 1.0 {
        return None;
    }
    let what = format!(
        "By rate and round trip {under_way:.1} calls were under way, but the session had {slots:.0} slots: a count or a clock is wrong."
    );
    Some(wrong(what).with([
        Evidence::number("calls under way (sum of rtt / time)", under_way),
        Evidence::number("slots of the session", slots),
    ]))
}

fn wrong(what: String) -> Finding {
    let remedy = case("littles-law", "wrong");
    Finding::new(Confidence::Certain, what).advised(remedy)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    /// Workers that spent this part of their time in operations of 1 ms.
    fn made(part: f64) -> Made {
        Made::new().working(part)
    }

    #[test]
    fn workers_are_in_operations_most_of_their_time() {
        for part in [0.51, 0.99, 1.02] {
            assert_eq!(made(part).verdict(&DETECTOR), Verdict::Clear, "{part}");
        }
        let much = made(1.05).found(&DETECTOR);
        assert_eq!((much.confidence, much.cost), (Confidence::Certain, None));
        let little = made(0.4).found(&DETECTOR);
        assert_eq!(little.confidence, Confidence::Possible);
        assert!(little.what.contains("60 % of their time outside"), "{}", little.what);
    }

    #[test]
    fn full_hosts_open_loops_and_short_phases_excuse() {
        let mut full = made(0.4);
        full.recording().host.host_busy = Some(0.9);
        assert_eq!(full.verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(Made::new().reading().verdict(&DETECTOR), Verdict::Irrelevant, "an open loop");
        let mut short = made(1.05);
        short.recording().length_ns = LEAST_NS - 1;
        assert_eq!(short.verdict(&DETECTOR), Verdict::Irrelevant);
        let mut unreadable = made(0.9);
        unreadable.results.study.text = "[study".into();
        assert!(matches!(unreadable.verdict(&DETECTOR), Verdict::Unknown(_)));
    }

    #[test]
    fn nothing_is_used_for_more_than_all_of_the_time() {
        let mut busy = made(0.9);
        let length = busy.recording().length_ns;
        busy.recording().host.processors = 2;
        busy.recording().host.process_system_ns = length * 22 / 10;
        assert!(busy.found(&DETECTOR).what.contains("had only 2"));
        busy.recording().host.process_user_ns = 0;
        busy.recording().host.process_system_ns = length * 2;
        assert_eq!(busy.verdict(&DETECTOR), Verdict::Clear);

        let slots = |under_way: u64| {
            let mut made = Made::served().working(0.9);
            let length = made.recording().length_ns;
            let rows = made.rows().len() as u64;
            made.rows().iter_mut().for_each(|row| row.rtt_ns = under_way * length / rows);
            let connection = &mut made.recording().rpc.as_mut().unwrap().connection;
            (connection.clients, connection.slots) = (1, Some(10));
            made
        };
        assert!(slots(12).found(&DETECTOR).what.contains("the session had 10 slots"));
        assert_eq!(slots(11).verdict(&DETECTOR), Verdict::Clear);
    }
}
