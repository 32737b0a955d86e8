//! Threads of the kernel's NFS server.

use crate::prelude::*;

/// Share of requests that wait for a thread.
const LEAST_WAITS: f64 = 0.1;
/// Requests at the server, in threads.
const LEAST_REQUESTS: f64 = 1.2;
/// The same where it is not known how many waited.
const LEAST_REQUESTS_ALONE: f64 = 2.0;

pub(super) const DETECTOR: Detector = Detector { id: "server-threads", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.is_embedded() || !measured.is_nfs() || measured.is_virtual() {
        return Verdict::Irrelevant;
    }
    let Some(server) = measured.server_host() else {
        return Verdict::Unknown(measured.without_server());
    };
    let gauge = |metric| Some(measured.mean_of(server.samples.find("nfsd", metric, "")?)).flatten();
    let Some(threads) = gauge("threads").filter(|threads| *threads >= 1.0) else {
        return Verdict::Unknown("the server's host has no kernel NFS server that was sampled: add `[sampling]` with the sampler `nfsd`".into());
    };
    let Some(calls) = measured.calls() else {
        return Verdict::uncounted();
    };
    let way = measured.round_trip_ns().unwrap_or(0.0);
    let at_server = (calls.rtt_ns as f64 - way * calls.ops as f64).max(0.0);
    let requests = at_server / measured.recording.length_ns.max(1) as f64;
    let grown = |metric| measured.host_growth(server, "nfsd", metric);
    // What `sockets-enqueued` counts has changed with the kernels; those for which a thread was idle are the same in all.
    let waits = match (grown("threads-woken"), grown("packets-arrived")) {
        (Some(woken), Some(arrived)) if arrived > 0.0 => Some(1.0 - share(woken, arrived)),
        _ => None,
    };
    let confidence = match waits {
        Some(waits) if waits >= LEAST_WAITS && requests >= LEAST_REQUESTS * threads => Confidence::Certain,
        None if requests >= LEAST_REQUESTS_ALONE * threads => Confidence::Possible,
        _ => return Verdict::Clear,
    };
    let waited = (1.0 - threads / requests) * share(calls.rtt_ns as f64, calls.execute_ns as f64);
    let found_none = waits
        .map_or_else(String::new, |waits| format!(", and {} of them found no idle thread", percent(waits)));
    let mut evidence = vec![
        Evidence::number("threads of the server", threads),
        Evidence::number("requests at the server (sum of rtt / time)", requests),
    ];
    evidence.extend(waits.map(|waits| {
        Evidence::number("requests that found no idle thread (1 − threads-woken / packets-arrived)", waits)
    }));
    let more = (requests * 1.5).ceil().max(8.0);
    Verdict::Found(
        Finding::new(
            confidence,
            format!(
                "{requests:.1} requests were at the server on average, which has {}{found_none}.",
                plural(threads as usize, "thread")
            ),
        )
        .advised(
            Remedy::new("Start more threads; they are cheap.")
                .by(
                    Need::LinuxServer,
                    format!("rpc.nfsd {more:.0}   # or threads={more:.0} in [nfsd] of /etc/nfs.conf"),
                )
                .confirmed_by(
                    "`studies/lab-server-threads.toml` with your numbers: the rate grows with the threads",
                ),
        )
        .with(evidence)
        .costs(waited),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;
    use benchmaster_record::results::ServedBy;

    /// `requests` at a kernel's server with 8 threads.
    fn made(requests: f64, waits: Option<f64>) -> Made {
        let mut made = Made::spread();
        if let Some(service) = &mut made.run().service {
            (service.server, service.network.delay_ns) = (ServedBy::Knfsd, 0);
        }
        let length = made.recording().length_ns as f64;
        let rows = made.rows().len() as f64;
        for row in made.rows() {
            row.queue_ns = 0;
            row.rtt_ns = (requests * length / rows) as u64;
            row.execute_ns = row.rtt_ns;
        }
        made.results.baselines.clear();
        made.gauge("server", "nfsd", "threads", "", 8.0);
        if let Some(waits) = waits {
            made.sample("server", "nfsd", "packets-arrived", "0", 100_000.0);
            made.sample("server", "nfsd", "threads-woken", "0", 100_000.0 * (1.0 - waits));
        }
        made
    }

    #[test]
    fn more_requests_than_threads_wait() {
        let found = made(16.0, Some(0.6)).found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Certain);
        assert!((found.cost.unwrap().share - 0.5).abs() < 1e-3);
        assert!(found.remedy.command.unwrap().starts_with("rpc.nfsd 24 "));
        assert_eq!(made(17.0, None).found(&DETECTOR).confidence, Confidence::Possible);
    }

    #[test]
    fn idle_threads_and_short_bursts_are_none() {
        for (requests, waits) in [(16.0, Some(0.09)), (9.5, Some(0.6)), (15.5, None)] {
            assert_eq!(made(requests, waits).verdict(&DETECTOR), Verdict::Clear, "{requests} {waits:?}");
        }
    }

    #[test]
    fn only_a_server_that_was_looked_at_is_known() {
        let mut unseen = made(16.0, Some(0.6));
        unseen.recording().samples.retain(|host| host.agent != "server");
        assert!(matches!(unseen.verdict(&DETECTOR), Verdict::Unknown(_)));
        let mut other = made(16.0, None);
        other.recording().samples[2].samples.series.clear();
        assert!(matches!(other.verdict(&DETECTOR), Verdict::Unknown(why) if why.contains("nfsd")));
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
