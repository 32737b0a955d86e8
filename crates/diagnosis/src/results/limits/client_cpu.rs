//! The processors of the client.

use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot, Remedy};
use crate::results::measured::Measured;
use crate::results::rule::{Detector, check};
use crate::words::{percent, share};

/// Share of the processors' busy time from which on it is this program's own load.
const OWN: f64 = 0.5;
/// Below this others took the processors, which is no limit of the client but a noisy host.
const LEAST_OWN: f64 = 0.25;

pub(super) const DETECTOR: Detector = Detector { explanation: &EXPLANATION, detect };

const EXPLANATION: Explanation = Explanation {
    id: "cpu-limit",
    group: Group::Limit,
    title: "The client's processors are the limit",
    mechanism: "Every operation takes processor time on the client: system calls, copies, checksums, RPC and TCP. When all processors, or \
                all threads of the user-space client, are busy, more load only waits for them, and what is measured is this host and not \
                the server. The embedded server, relay and wire in the same process take their share of the same processors.",
    formula: "found when the run's check `cpu-limit` did not pass: processors of the host ≥ 95 % busy, or the workers' (user-space client: \
              its threads') CPU time ≥ 95 % of their time. Likely when this program took half of the busy time or more; else others \
              took the processors, and it is possible only. Cost = CPU time of this program / (processors · time), or of the threads / \
              (threads · time): the utilisation law",
    source: "paper 003 §3.2 (a client's single thread as the limit); utilisation law U = X·S (Jain 1991, §33.2)",
};

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some(check) = check(measured, EXPLANATION.id) else { return Verdict::Clear };
    let number = |name: &str| check.evidence.get(name).copied();
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
    let remedy = if others {
        Remedy::new("Repeat it while nothing else runs on this host.")
    } else if host_is_full {
        Remedy::new(
            "Spread the clients over more hosts, and put the server on a host of its own; or ask for less per byte: larger `io_size`.",
        )
        .by("hosts = [\"c[1-4]\"]   # in [clients]; see studies/fleet.toml")
    } else {
        Remedy::new("Use more workers, or more clients, so that more threads share the work.")
            .by("--set clients.count=2")
    };
    let confirm = "more processors or hosts and nothing else changed, as in `studies/fleet.toml`: the rate rises with them";
    let confidence = if others { Confidence::Possible } else { Confidence::Likely };
    let estimate = if host_is_full {
        "CPU time of this program / (processors · time)"
    } else {
        "CPU time of the threads / (threads · time)"
    };
    let mut evidence = vec![
        Evidence::new("busy share of the host's processors", busy, "1"),
        Evidence::new("share of the processors' time that this program took", own, "1"),
        Evidence::new(
            "share of their time that workers, or client threads, were on a processor",
            threads,
            "1",
        ),
    ];
    evidence.extend(
        number("kernel_share")
            .map(|kernel| Evidence::new("share of this program's CPU time in the kernel", kernel, "1")),
    );
    Verdict::Found(
        Finding::new(&EXPLANATION, confidence, what, remedy.confirmed_by(confirm))
            .with(evidence)
            .costs(taken, CostOf::Time, estimate)
            .shown_by(Plot::Counters),
    )
}

/// Whether this program filled the client's host itself; one that others filled is a noisy one.
pub(super) fn is_full(measured: &Measured<'_>) -> bool {
    matches!(detect(measured), Verdict::Found(finding) if finding.confidence > Confidence::Possible)
}

/// Share of the processors' time that this program, the embedded server in it included, took.
pub(super) fn own_share(measured: &Measured<'_>) -> f64 {
    let host = &measured.recording.host;
    let processors = f64::from(host.processors.max(1));
    let own = (host.process_user_ns + host.process_system_ns) as f64;
    // Where clients are processes of their own, the server is in none of them.
    let together = check(measured, "shared-host").map_or(0.0, |check| {
        let used = ["server_processors", "client_processors"].map(|name| check.evidence.get(name).copied());
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
        made.checked("cpu-limit", &workload, &[("host_busy", busy), ("worker_cpu", threads)]);
        made
    }

    #[test]
    fn a_full_host_limits_by_its_own_load_or_by_that_of_others() {
        let found = made(0.97, 0.4, 0.9).found(&DETECTOR);
        assert_eq!((found.confidence, found.cost.unwrap().share.round()), (Confidence::Likely, 1.0));
        assert!(found.what.contains("97 % busy, 90 %"), "{}", found.what);
        let found = made(0.97, 0.4, 0.48).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Possible);
        assert!(found.what.contains("other processes"), "{}", found.what);
        assert_eq!(made(0.97, 0.4, 0.49).found(&DETECTOR).confidence, Confidence::Likely);
        // Clients in processes of their own, beside that of the embedded server.
        let mut apart = made(0.97, 0.4, 0.3);
        let (workload, processors) = {
            let recording = apart.recording();
            (recording.workload.clone(), f64::from(recording.host.processors))
        };
        let used = [("client_processors", 0.3 * processors), ("server_processors", 0.6 * processors)];
        apart.checked("shared-host", &workload, &used);
        let found = apart.found(&DETECTOR);
        assert!(
            found.confidence == Confidence::Likely && found.what.contains("90 % of them"),
            "{}",
            found.what
        );
        assert_eq!(made(0.97, 0.4, 0.25).found(&DETECTOR).confidence, Confidence::Possible);
        assert_eq!(made(0.97, 0.4, 0.24).verdict(&DETECTOR), Verdict::Clear);
    }

    #[test]
    fn threads_that_never_wait_limit() {
        let found = made(0.3, 0.99, 0.2).found(&DETECTOR);
        assert!(found.what.contains("threads were on a processor 99 %"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.99).abs() < 1e-9);
    }

    #[test]
    fn without_the_check_it_is_not_there() {
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Clear);
    }
}
