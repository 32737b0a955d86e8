//! The processors of the client.

use crate::prelude::*;

/// Share of the processors' busy time from which on it is this program's own load.
const OWN: f64 = 0.5;
/// Below this others took the processors, which is no limit of the client but a noisy host.
const LEAST_OWN: f64 = 0.25;

/// Periods of a quota that were used up, and of all periods.
const LEAST_TIMES: f64 = 5.0;
const LEAST_THROTTLED: f64 = 0.1;

pub(crate) static RULE: Rule = Rule {
    check,
    remedy: Some(|check| {
        let number = |name: &str| check.number(name).unwrap_or(0.0);
        remedy(number("host_busy") >= number("worker_cpu"))
    }),
    finding: Follows::Detector(detect),
    ..Rule::of(CheckKind::CpuLimit)
};

fn detect(measured: &Measured<'_>) -> Verdict {
    if let Some(throttled) = throttled(measured) {
        return Verdict::Found(by_quota(measured, &throttled));
    }
    let Some(check) = stored(measured, RULE.kind) else { return Verdict::Clear };
    let number = |name: &str| check.number(name);
    let (busy, threads) = (number("host_busy").unwrap_or(0.0), number("worker_cpu").unwrap_or(0.0));
    let own = own_share(measured);
    let host_is_full = busy >= threads;
    let others = host_is_full && own < OWN * busy;
    if host_is_full && own < LEAST_OWN * busy {
        return Verdict::Clear;
    }
    let (what, taken) = match (host_is_full, others) {
        (true, true) => (
            format!(
                "The processors of the client's host were {} busy, but this program took only {} of them: other processes left \
                 too little.",
                percent(busy),
                percent(own)
            ),
            own,
        ),
        (true, false) => (
            format!(
                "The processors of the client's host were {} busy, {} of them with this program: they are the limit, not the server.",
                percent(busy),
                percent(own)
            ),
            own,
        ),
        (false, _) => (
            format!(
                "The client's threads were on a processor {} of the time and hardly waited: they are the limit, not the server.",
                percent(threads)
            ),
            threads,
        ),
    };
    let remedy = if others { case("cpu-limit", "others") } else { remedy(host_is_full) };
    let confidence = if others { Confidence::Possible } else { Confidence::Likely };
    let estimate = if host_is_full {
        "CPU time of this program / (processors · time)"
    } else {
        "CPU time of the threads / (threads · time)"
    };
    let mut evidence = vec![
        Evidence::number("busy share of the host's processors", busy),
        Evidence::number("share of the processors' time that this program took", own),
        Evidence::number("share of their time that workers, or client threads, were on a processor", threads),
    ];
    evidence.extend(
        number("kernel_share")
            .map(|kernel| Evidence::number("share of this program's CPU time in the kernel", kernel)),
    );
    Verdict::Found(Finding::new(confidence, what).advised(remedy).with(evidence).costs_as(
        taken,
        CostOf::Time,
        estimate,
    ))
}

/// What a quota of the processors did to a client.
pub(in crate::results) struct Throttled {
    agent: String,
    /// Share of the quota's periods in which it was used up.
    periods: f64,
    /// Time for which the group was not allowed to run, of the measured time; several processors are added up.
    time: f64,
}

/// The client whose control group used up its quota most often.
pub(in crate::results) fn throttled(measured: &Measured<'_>) -> Option<Throttled> {
    let of = measured.clients().filter_map(|host| {
        let grown = |metric: &str| measured.host_growth(host, "cgroup", metric);
        let (periods, times) = (grown("nr_periods")?, grown("nr_throttled")?);
        let stopped = grown("throttled_usec").unwrap_or(0.0) * 1e3;
        (times >= LEAST_TIMES && times >= LEAST_THROTTLED * periods).then(|| Throttled {
            agent: host.agent.clone(),
            periods: share(times, periods),
            time: share(stopped, measured.recording.length_ns as f64),
        })
    });
    of.max_by(|a, b| a.periods.total_cmp(&b.periods))
}

fn by_quota(measured: &Measured<'_>, throttled: &Throttled) -> Finding {
    let what = format!(
        "The control group of this program used up its quota of the processors in {} of the periods and was not allowed to run for {} of the \
         time: the quota is the limit, not the server.",
        percent(throttled.periods),
        percent(throttled.time)
    );
    Finding::new(Confidence::Certain, what)
        .advised(case("cpu-limit", "quota"))
        .with([
            Evidence::number("share of the quota's periods that were used up", throttled.periods),
            Evidence::number("share of the time in which the group was stopped", throttled.time),
            Evidence::number("share of the processors' time that this program took", own_share(measured)),
        ])
        .of_clients([throttled.agent.clone()])
        .costs(throttled.time)
}

fn remedy(host_is_full: bool) -> Remedy {
    if host_is_full { Remedy::default() } else { case("cpu-limit", "threads") }
}

/// While the run is made: the host, or the workers (user-space client: its threads), had hardly any processor time left.
fn check(s: Subject<'_>) -> Option<Check> {
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
    let process = host.process_ns().max(1) as f64;
    let kernel = host.process_system_ns as f64 / process;
    let who = if busy >= LIMIT {
        format!("all processors of this host were {} busy", percent(busy))
    } else if threads.is_some() {
        format!("the clients' threads were on a processor {} of the time", percent(workers))
    } else {
        format!("workers were on a processor {} of the time and hardly waited", percent(workers))
    };
    let message = format!(
        "The CPU of this host is the limit: {who} ({} of this program's CPU time in the kernel, which includes a local \
         file system's own work).",
        percent(kernel)
    );
    let evidence = [
        Evidence::number("host_busy", busy),
        Evidence::number("worker_cpu", workers),
        Evidence::number("kernel_share", kernel),
    ];
    failed(s, RULE.kind, Severity::Warning, message, evidence)
}

/// Whether this program filled the client's host itself; one that others filled is a noisy one.
pub(super) fn is_full(measured: &Measured<'_>) -> bool {
    matches!(detect(measured), Verdict::Found(finding) if finding.confidence > Confidence::Possible)
}

/// Share of the processors' time that this program, the embedded server in it included, took.
pub(super) fn own_share(measured: &Measured<'_>) -> f64 {
    let host = &measured.recording.host;
    let processors = f64::from(host.processors.max(1));
    let own = host.process_ns() as f64;
    // Where clients are processes of their own, the server is in none of them.
    let together = stored(measured, CheckKind::SharedHost).map_or(0.0, |check| {
        let used = ["server_processors", "client_processors"].map(|name| check.number(name));
        used.into_iter().flatten().sum::<f64>()
    });
    share(own, processors * measured.recording.length_ns as f64).max(together / processors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    /// A run whose host was `busy`, of which this program took `own` seconds of each processor's.
    fn made(busy: f64, threads: f64, own: f64) -> Made {
        let mut made = Made::new();
        let workload = made.recording().workload.clone();
        let recording = made.recording();
        recording.host.process_user_ns = 0;
        recording.host.process_system_ns =
            (own * recording.length_ns as f64 * f64::from(recording.host.processors)) as u64;
        made.checked(CheckKind::CpuLimit, &workload, &[("host_busy", busy), ("worker_cpu", threads)]);
        made
    }

    #[test]
    fn a_quota_that_is_used_up_is_the_limit_whatever_the_host_does() {
        let of = |throttled: f64| {
            let mut made = Made::spread();
            let agent = made.recording().samples[0].agent.clone();
            made.sample(&agent, "cgroup", "nr_periods", "", 30.0);
            made.sample(&agent, "cgroup", "nr_throttled", "", throttled);
            made.sample(&agent, "cgroup", "throttled_usec", "", throttled * 50_000.0);
            made.verdict(&RULE)
        };
        let Verdict::Found(found) = of(27.0) else { panic!() };
        assert!(found.what.contains("in 90 % of the periods"), "{}", found.what);
        assert_eq!(found.confidence, Confidence::Certain);
        assert_eq!(of(4.0), Verdict::Clear);
    }

    #[test]
    fn a_full_host_limits_by_its_own_load_or_by_that_of_others() {
        let found = made(0.97, 0.4, 0.9).found(&RULE);
        assert_eq!((found.confidence, found.cost.unwrap().share.round()), (Confidence::Likely, 1.0));
        assert!(found.what.contains("97 % busy, 90 %"), "{}", found.what);
        let found = made(0.97, 0.4, 0.48).found(&RULE);
        assert_eq!(found.confidence, Confidence::Possible);
        assert!(found.what.contains("other processes"), "{}", found.what);
        assert_eq!(made(0.97, 0.4, 0.49).found(&RULE).confidence, Confidence::Likely);
        // Clients in processes of their own, beside that of the embedded server.
        let mut apart = made(0.97, 0.4, 0.3);
        let (workload, processors) = {
            let recording = apart.recording();
            (recording.workload.clone(), f64::from(recording.host.processors))
        };
        let used = [("client_processors", 0.3 * processors), ("server_processors", 0.6 * processors)];
        apart.checked(CheckKind::SharedHost, &workload, &used);
        let found = apart.found(&RULE);
        assert!(
            found.confidence == Confidence::Likely && found.what.contains("90 % of them"),
            "{}",
            found.what
        );
        assert_eq!(made(0.97, 0.4, 0.25).found(&RULE).confidence, Confidence::Possible);
        assert_eq!(made(0.97, 0.4, 0.24).verdict(&RULE), Verdict::Clear);
    }

    #[test]
    fn threads_that_never_wait_limit() {
        let found = made(0.3, 0.99, 0.2).found(&RULE);
        assert!(found.what.contains("threads were on a processor 99 %"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.99).abs() < 1e-9);
    }

    #[test]
    fn without_the_check_it_is_not_there() {
        assert_eq!(Made::new().verdict(&RULE), Verdict::Clear);
    }
}
