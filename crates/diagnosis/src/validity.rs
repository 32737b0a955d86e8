//! Validity checks of one workload of one run: does the number mean what it seems to mean?
//!
//! Each check is a function of what was recorded; one that does not pass says so in a sentence with the numbers.

mod burst;
mod fleet;
mod lab;
pub mod machines;
mod replay;
mod wire;

use benchmaster_record::phase::Phase;
use std::collections::BTreeMap;

use benchmaster_record::environment::{Environment, TargetEnvironment};
use benchmaster_record::model::{Claim, OpenFlag, OperationKind, Step, Workload};
use benchmaster_record::recording::{Recording, StopReason};
use benchmaster_record::results::{Check, ServerUse, ServiceRecord, Severity};
use benchmaster_stats::steady::snia_last_rounds;
use benchmaster_units::ByteSize;
use benchmaster_units::format::percent;

use crate::validity::machines::LabLook;
use benchmaster_analysis::responses::{counted, progress_series};

/// What the checks look at.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What was to be done.
    pub workload: &'a Workload,
    /// What was recorded.
    pub recording: &'a Recording,
    /// The host that did it.
    pub environment: &'a Environment,
    /// Whether MSER-5 found a steady state; `None` when it was not asked or had too little to judge.
    pub steady: Option<bool>,
    /// Who served it and what lay between, if the target is an export.
    pub service: Option<&'a ServiceRecord>,
    /// What the embedded server, or the kernel's of a lab, did meanwhile.
    pub server: Option<&'a ServerUse>,
    /// What the machines of a lab said of themselves.
    pub lab: Option<&'a LabLook>,
}

/// All checks that do not pass, the worst first.
pub fn check(subject: Subject<'_>) -> Vec<Check> {
    let checks: [fn(Subject<'_>) -> Option<Check>; 15] = [
        corruption,
        errors,
        file_system_full,
        cached_reads,
        unflushed_writes,
        burst::burst_and_flush,
        generator_rate,
        generator_cpu,
        too_few_operations,
        uneven_finish,
        clock_step,
        clock_drift,
        stolen_time,
        trace_stall,
        not_steady,
    ];
    let mut found: Vec<Check> = checks
        .iter()
        .chain(&wire::CHECKS)
        .chain(&fleet::CHECKS)
        .chain(&lab::CHECKS)
        .chain(&replay::CHECKS)
        .filter_map(|check| check(subject))
        .collect();
    found.sort_by_key(|check| std::cmp::Reverse(check.severity));
    found
}

fn found<const N: usize>(
    subject: Subject<'_>,
    id: &str,
    severity: Severity,
    message: String,
    evidence: [(&str, f64); N],
) -> Option<Check> {
    Some(Check {
        id: id.into(),
        severity,
        workload: Some(subject.recording.workload.clone()),
        message,
        evidence: evidence
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect::<BTreeMap<_, _>>(),
    })
}

fn size(bytes: u64) -> String {
    let units = [("GB", 1e9), ("MB", 1e6), ("KB", 1e3)];
    match units.iter().find(|(_, factor)| bytes as f64 >= *factor) {
        Some((unit, factor)) => format!("{:.1} {unit}", bytes as f64 / factor),
        None => ByteSize(bytes).to_string(),
    }
}

fn corruption(s: Subject<'_>) -> Option<Check> {
    let what = s.recording.corruption.as_ref()?;
    found(s, "corruption", Severity::Invalid, format!("wrong data were read: {what}"), [])
}

fn errors(s: Subject<'_>) -> Option<Check> {
    let measured: u64 = s.recording.series.iter().map(|series| series.total.errors).sum();
    let around: u64 = s.recording.phases.iter().filter(|p| p.phase != Phase::Measure).map(|p| p.errors).sum();
    if measured + around == 0 {
        return None;
    }
    let mut names: BTreeMap<&str, u64> = BTreeMap::new();
    for (name, count) in s.recording.series.iter().flat_map(|series| &series.errors) {
        *names.entry(name).or_default() += count;
    }
    let mut kinds: Vec<String> = names.iter().map(|(name, count)| format!("{count} × {name}")).collect();
    if around > 0 {
        kinds.push(format!("{around} outside the measured phase"));
    }
    let example =
        s.recording.error_details.first().map_or_else(String::new, |first| format!("; first: {first}"));
    let message = format!("{} operations failed ({}){example}", measured + around, kinds.join(", "));
    found(
        s,
        "errors",
        Severity::Invalid,
        message,
        [("measured", measured as f64), ("outside", around as f64)],
    )
}

fn file_system_full(s: Subject<'_>) -> Option<Check> {
    let full = |name: &str| name == "ENOSPC" || name == "EDQUOT";
    let refused: u64 = s
        .recording
        .series
        .iter()
        .flat_map(|series| &series.errors)
        .filter(|(n, _)| full(n))
        .map(|(_, c)| c)
        .sum();
    if refused > 0 {
        let message =
            format!("the file system was full: {refused} operations were refused for lack of space");
        return found(s, "file-system-full", Severity::Invalid, message, [("refused", refused as f64)]);
    }
    let total = s.environment.target.as_ref()?.total_bytes;
    let free = s.recording.host.free_after?;
    if total == 0 || free as f64 >= total as f64 * 0.01 {
        return None;
    }
    let message = format!(
        "the file system is nearly full ({} of {} free): allocation may be slow",
        size(free),
        size(total)
    );
    found(s, "file-system-full", Severity::Warning, message, [("free", free as f64), ("total", total as f64)])
}

fn steps(workload: &Workload) -> impl Iterator<Item = &Step> {
    let groups = workload.groups.iter();
    groups.flat_map(|group| group.setup.iter().chain(benchmaster_record::model::leaves(&group.flow)))
}

fn cached_reads(s: Subject<'_>) -> Option<Check> {
    // Where memory is the storage there is no cache to pass for it.
    let memory_is_storage = s.environment.target.as_ref().is_some_and(TargetEnvironment::is_memory);
    let direct = steps(s.workload).any(|step| step.flags.contains(&OpenFlag::Direct));
    // The page cache is the kernel's client's, whose reads over the wire may have been counted.
    let over_the_wire = s.service.is_some_and(|service| service.url.contains("://")) || wire::counts_reads(s);
    if s.workload.claims == Claim::Cache || memory_is_storage || direct || over_the_wire {
        return None;
    }
    let read: u64 = s
        .recording
        .series
        .iter()
        .filter(|series| series.key.operation == OperationKind::Read)
        .map(|series| series.total.bytes)
        .sum();
    let data: u64 = s.recording.filesets.iter().map(|facts| facts.bytes).sum();
    let memory = s.environment.memory_total?;
    if read == 0 || data == 0 || data >= memory {
        return None;
    }
    let cached: Option<u64> = s.recording.filesets.iter().map(|facts| facts.cached_bytes).sum();
    let share = cached.map(|cached| cached as f64 / data as f64);
    let passes = read as f64 / data as f64;
    if share.is_some_and(|share| share < 0.05) && passes <= 1.0 {
        return None;
    }
    let known = match share {
        Some(share) => format!("{} of it were cached at the start", percent(share)),
        None => "how much of it was cached is not known".into(),
    };
    let message = format!(
        "reads may have come from this host's page cache: the data set ({}) is smaller than its memory ({}), {known}, and \
         it was read {passes:.1} times; use a larger `file_size`, `direct = true`, or say `claims = \"cache\"`",
        size(data),
        size(memory)
    );
    let evidence = [
        ("data_set", data as f64),
        ("memory", memory as f64),
        ("cached_share", share.unwrap_or(f64::NAN)),
        ("passes", passes),
    ];
    let mut check = found(s, "cached-reads", Severity::Warning, message, evidence)?;
    check.evidence.retain(|_, value| value.is_finite());
    Some(check)
}

fn unflushed_writes(s: Subject<'_>) -> Option<Check> {
    if s.workload.claims == Claim::Cache {
        return None;
    }
    let flush =
        s.recording.phases.iter().find(|phase| phase.phase == Phase::TearDown && phase.operations > 0)?;
    let (flush, measured) =
        ((flush.end_ns - flush.start_ns) as f64 / 1e9, s.recording.length_ns as f64 / 1e9);
    let written = s.recording.series.iter().any(|series| series.key.operation == OperationKind::Write);
    if !written || flush < 0.1 * measured {
        return None;
    }
    let message = format!(
        "writes were still on their way when the measured phase ended: flushing them took {flush:.2} s after {measured:.2} s; \
         the throughput is that of the client's cache; use `sync`, or measure longer"
    );
    found(s, "unflushed-writes", Severity::Warning, message, [("flush_s", flush), ("measured_s", measured)])
}

fn rate(recording: &Recording) -> f64 {
    let operations: u64 = recording.series.iter().map(|series| series.total.count).sum();
    operations as f64 * 1e9 / recording.length_ns.max(1) as f64
}

fn generator_rate(s: Subject<'_>) -> Option<Check> {
    let host = &s.recording.host;
    let workers = s.recording.workers.len().min(host.processors.max(1) as usize);
    let (limit, reached) = (host.null_rate? * workers as f64, rate(s.recording));
    // What is far below what was reached was itself disturbed, on a busy host.
    if reached < 0.5 * limit || reached > 4.0 * limit {
        return None;
    }
    let message = format!(
        "the load generator may be the limit: {reached:.0} operations/s were reached, and it can issue {limit:.0}/s when \
         the file system takes no time"
    );
    found(s, "generator-limit", Severity::Warning, message, [("reached", reached), ("limit", limit)])
}

fn generator_cpu(s: Subject<'_>) -> Option<Check> {
    const LIMIT: f64 = 0.95;
    let host = &s.recording.host;
    let busy = host.host_busy.unwrap_or(0.0);
    let (mut cpu, mut elapsed) = (0, 0);
    for worker in &s.recording.workers {
        cpu += worker.cpu_ns.map_or(0, |(user, system)| user + system);
        elapsed += worker.end_ns.saturating_sub(worker.start_ns);
    }
    let threads =
        s.recording.rpc.as_ref().and_then(|rpc| rpc.connection.threads.map(|n| (rpc.client_cpu_ns, n)));
    if let Some(((user, system), threads)) = threads {
        (cpu, elapsed) = (user + system, s.recording.length_ns * u64::from(threads.max(1)));
    }
    let workers = cpu as f64 / elapsed.max(1) as f64;
    if busy < LIMIT && workers < LIMIT {
        return None;
    }
    let process = (host.process_user_ns + host.process_system_ns).max(1) as f64;
    let kernel = host.process_system_ns as f64 / process;
    let who = if busy >= LIMIT {
        format!("all processors of this host were {} busy", percent(busy))
    } else if threads.is_some() {
        format!("the clients' threads were on the processor {} of the time", percent(workers))
    } else {
        format!("workers were on the processor {} of the time and hardly waited", percent(workers))
    };
    let message = format!(
        "the CPU of this host is the limit: {who} ({} of this program's CPU time in the kernel, which includes a local \
         file system's own work)",
        percent(kernel)
    );
    let evidence = [("host_busy", busy), ("worker_cpu", workers), ("kernel_share", kernel)];
    found(s, "cpu-limit", Severity::Warning, message, evidence)
}

fn too_few_operations(s: Subject<'_>) -> Option<Check> {
    const ENOUGH: u64 = 100;
    let count: u64 = s.recording.series.iter().map(|series| series.total.count).sum();
    if count >= ENOUGH {
        return None;
    }
    let message = format!("only {count} operations were done: percentiles mean little; measure longer");
    found(s, "too-few-operations", Severity::Warning, message, [("operations", count as f64)])
}

fn uneven_finish(s: Subject<'_>) -> Option<Check> {
    // Those that only hold files open are done at once.
    let holds = |group: &str| s.workload.groups.iter().any(|g| g.name == group && g.flow.is_empty());
    let workers = || s.recording.workers.iter().filter(|worker| !holds(&worker.group));
    let length = workers().map(|worker| worker.end_ns).max()?;
    let gave_up = workers().filter(|worker| worker.stop == StopReason::Errors).count();
    let earliest = workers().map(|worker| worker.end_ns).min()?;
    let early = 1.0 - earliest as f64 / length.max(1) as f64;
    if early <= 0.05 {
        return None;
    }
    let why = if gave_up > 0 { format!("; {gave_up} gave up after errors") } else { String::new() };
    let message = format!(
        "workers did not finish together: the first ended {} before the last, so that the end was measured with fewer{why}",
        percent(early)
    );
    found(s, "uneven-finish", Severity::Warning, message, [("early", early), ("gave_up", gave_up as f64)])
}

fn clock_step(s: Subject<'_>) -> Option<Check> {
    // NTP slews by at most 500 parts in a million; 1 ms covers the reading of two clocks.
    let allowed = 1e6 + s.recording.length_ns as f64 * 500e-6;
    let step = s.recording.host.clock_step_ns as f64;
    if step.abs() <= allowed {
        return None;
    }
    let message = format!("the wall clock was changed by {:.1} ms during the measured phase", step / 1e6);
    found(s, "clock-step", Severity::Warning, message, [("step_ns", step)])
}

fn clock_drift(s: Subject<'_>) -> Option<Check> {
    const ALLOWED: f64 = 1e-3;
    let drift = s.recording.host.clock_drift;
    if drift.abs() <= ALLOWED {
        return None;
    }
    let message = format!(
        "the fast clock differs from the kernel's by {:.2} %: all times of this run are wrong by as much",
        drift * 100.0
    );
    found(s, "clock-drift", Severity::Invalid, message, [("drift", drift)])
}

fn stolen_time(s: Subject<'_>) -> Option<Check> {
    let steal = s.recording.host.host_steal.filter(|steal| *steal > 0.05)?;
    let message = format!("the hypervisor took {} of this host's CPU time for others", percent(steal));
    found(s, "noisy-host", Severity::Warning, message, [("steal", steal)])
}

fn trace_stall(s: Subject<'_>) -> Option<Check> {
    let workers = s.recording.workers.len().max(1) as f64;
    let share = s.recording.host.trace_stall_ns as f64 / (workers * s.recording.length_ns.max(1) as f64);
    if share <= 0.01 {
        return None;
    }
    let message = format!(
        "workers waited {} of the time for the trace to be written: rates are too low; trace to a faster disk",
        percent(share)
    );
    found(s, "trace-stall", Severity::Warning, message, [("share", share)])
}

fn not_steady(s: Subject<'_>) -> Option<Check> {
    if !s.recording.timed {
        return None;
    }
    if s.steady == Some(false) {
        let message = "the rate had not settled: MSER-5 finds no warm-up to cut within the first half; measure longer, or \
                       add `warm_up`";
        return found(s, "not-steady", Severity::Warning, message.into(), []);
    }
    let (first, _) = counted(s.recording).intervals?;
    let series = progress_series(s.recording);
    let rounds = snia_last_rounds(series.get(first as usize..)?, 5)?;
    if rounds.steady {
        return None;
    }
    let message = format!(
        "the rate was not steady by the SNIA rule: over five rounds it ranged over {:.0} % of its average (20 % allowed) and \
         drifted by {:.0} % (10 % allowed)",
        rounds.range_pct, rounds.slope_excursion_pct
    );
    let evidence = [("range_pct", rounds.range_pct), ("drift_pct", rounds.slope_excursion_pct)];
    found(s, "not-steady", Severity::Note, message, evidence)
}
