//! Calls that were retransmitted, timed out or failed, and connections that broke.

use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{RpcPhase, RpcRow, RpcSource};
use benchmaster_record::results::{CheckKind, Evidence, Severity};

use super::mounts::look;
use super::observed::asked;
use crate::diagnosis::Verdict;
use crate::explanation::{Explanation, Group};
use crate::finding::{Confidence, CostOf, Need, Plot, Remedy};
use crate::measured::Measured;
use crate::mountstats;
use crate::results::phenomena::standstill::stopped;
use crate::validity::rule::{
    Consequence, Failed, Follows, Rule, Subject, any, failed, nothing, stored, with_rpcs,
};

fn measured_phase(s: Subject<'_>) -> Option<&RpcPhase> {
    s.recording.rpc.as_ref()?.phase(Phase::Measure)
}

/// The sum of a column over all kinds of calls, and those of which it is not 0: `READ 12, WRITE 3`.
fn by_operation(phase: &RpcPhase, count: impl Fn(&RpcRow) -> u64) -> (u64, String) {
    let counted = phase.rows.iter().map(|row| (count(row), row)).filter(|(count, _)| *count > 0);
    let text = counted.clone().map(|(count, row)| format!("{} {count}", row.operation)).collect::<Vec<_>>();
    (counted.map(|(count, _)| count).sum(), text.join(", "))
}

pub(crate) static CLIENT_STATE: Rule = Rule {
    kind: CheckKind::ClientState,
    explanation: Explanation {
        id: "client-state",
        group: Group::Doubt,
        title: "Clients did not shut down cleanly",
        mechanism: "Calls that are still outstanding, opens and locks that were lost, or an unmount that failed: part of the work was not done, or not as \
                    intended.",
        formula: "found when a user-space client had calls outstanding, state lost, or could not unmount when the run ended",
        source: "the check `client-state`; RFC 8881, section 8.4 (loss of state)",
    },
    check: |s| {
        let problems = &s.recording.rpc.as_ref()?.problems;
        let first = problems.first()?.trim_end_matches('.');
        let more =
            if problems.len() > 1 { format!(" (and {} more)", problems.len() - 1) } else { String::new() };
        let message = format!("The clients did not shut down cleanly: {first}{more}.");
        let evidence = [Evidence::number("problems", problems.len() as f64)];
        failed(s, CheckKind::ClientState, Severity::Warning, message, evidence)
    },
    remedy: |_| {
        Remedy::new("The server's log at that time gives the reason for lost state: an expired lease, a restart, an administrator.")
            .by(Need::LinuxServer, "journalctl -k --grep nfsd --since TIME   # on a Linux server")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: with_rpcs,
        worth: any,
        numbers: &[("problems", "problems of clients")],
        cost: nothing,
        plot: None,
    }),
};

/// Share of the requests.
const LEAST_SHARE: f64 = 1e-4;

pub(crate) static RETRANSMISSIONS: Rule = Rule {
    kind: CheckKind::RpcRetransmissions,
    explanation: *mountstats::RETRANSMISSION.explanation,
    check: |s| {
        let (again, which) =
            by_operation(measured_phase(s)?, |row| row.transmissions.saturating_sub(row.ops));
        if again == 0 {
            return None;
        }
        let message =
            format!("{again} requests were sent more than once ({which}): replies were lost or too late.");
        let evidence = [Evidence::number("again", again as f64)];
        failed(s, CheckKind::RpcRetransmissions, Severity::Warning, message, evidence)
    },
    remedy: |_| {
        Remedy::new("Look for lost packets on the path (TCP's counters on both sides), and for times at which the server did not answer.")
            .by(Need::KernelClient, "nstat -az TcpRetransSegs; dmesg | grep 'not responding'")
            .confirmed_by("`benchmaster probe network HOST` measures the network's loss and round trips without NFS")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: with_rpcs,
        worth: |failed| share_again(failed) >= LEAST_SHARE,
        numbers: &[("again", "retransmitted requests (transmissions − ops)")],
        cost: |failed| {
            // Those of a lost connection are retransmitted at once.
            if stored(failed.measured, CheckKind::Reconnects).is_some() {
                return None;
            }
            let waited = failed.number("again")? * timeo(failed.measured);
            let took = failed.measured.calls()?.execute_ns;
            Some((
                waited / (took as f64 / 1e9).max(waited),
                CostOf::CallTime,
                "at most `timeo` for each retransmitted request",
            ))
        },
        plot: Some(Plot::Latency),
    }),
};

fn share_again(failed: Failed<'_>) -> f64 {
    let Some((_, phase)) = failed.measured.rpcs() else { return 0.0 };
    let sent: u64 = phase.rows.iter().map(|row| row.transmissions).sum();
    failed.number("again").unwrap_or(0.0) / sent.max(1) as f64
}

/// Seconds until a request is retransmitted.
fn timeo(measured: &Measured<'_>) -> f64 {
    let asked = asked(measured);
    let udp = over_udp(&asked);
    let tenths = asked.iter().find_map(|option| option.strip_prefix("timeo=")?.parse::<f64>().ok());
    tenths.unwrap_or(if udp { 11.0 } else { 600.0 }) / 10.0
}

fn over_udp(options: &[String]) -> bool {
    options.iter().any(|option| option == "proto=udp" || option == "udp")
}

/// How often a request is retransmitted before its call has timed out.
fn retrans(measured: &Measured<'_>) -> f64 {
    let asked = asked(measured);
    let times = asked.iter().find_map(|option| option.strip_prefix("retrans=")?.parse::<f64>().ok());
    times.unwrap_or(if over_udp(&asked) { 5.0 } else { 2.0 })
}

/// Calls that timed out in the end: earlier retransmissions are a finding of their own.
pub(crate) static TIMEOUTS: Rule = Rule {
    kind: CheckKind::RpcTimeouts,
    explanation: *mountstats::MAJOR_TIMEOUT.explanation,
    check: |s| {
        let (timeouts, which) = by_operation(measured_phase(s)?, |row| row.timeouts);
        if timeouts == 0 {
            return None;
        }
        let message = format!(
            "{timeouts} requests had a major timeout ({which}): no reply after all retransmissions; the waiting is in all latencies."
        );
        let evidence = [Evidence::number("timeouts", timeouts as f64)];
        failed(s, CheckKind::RpcTimeouts, Severity::Warning, message, evidence)
    },
    remedy: |_| {
        Remedy::new("The server, or the path to it, was down: its log and that of the network show when.")
            .by(Need::KernelClient, "dmesg -T | grep -E 'nfs: server .* (not responding|OK)'")
    },
    finding: Follows::Finding(Consequence {
        confidence: Confidence::Certain,
        could: with_rpcs,
        worth: any,
        numbers: &[("timeouts", "calls with a major timeout")],
        cost: |failed| {
            let each = timeo(failed.measured) * (retrans(failed.measured) + 1.0);
            let waited = failed.number("timeouts")? * each;
            let took = failed.measured.calls()?.execute_ns;
            Some((
                waited / (took as f64 / 1e9).max(waited),
                CostOf::CallTime,
                "`timeo` × (`retrans` + 1) for each",
            ))
        },
        plot: Some(Plot::Time),
    }),
};

pub(crate) static RECONNECTS: Rule = Rule {
    kind: CheckKind::Reconnects,
    explanation: *mountstats::RECONNECTS.explanation,
    check: |s| {
        let count = *measured_phase(s)?.events.get("reconnect").filter(|count| **count > 0)?;
        let message = format!(
            "Connections to the server broke and were re-established {count} times in the measured phase."
        );
        let evidence = [Evidence::number("reconnects", count as f64)];
        failed(s, CheckKind::Reconnects, Severity::Warning, message, evidence)
    },
    remedy: |_| {
        Remedy::new("The usual causes are firewalls and address translators that drop idle connections, restarted servers, and broken links.")
            .by(Need::KernelClient, "dmesg -T | grep -i nfs; ss -tno dst SERVER")
    },
    finding: Follows::Detector(detect_reconnects),
};

const RECONNECTED: Consequence = Consequence {
    confidence: Confidence::Certain,
    could: with_rpcs,
    worth: any,
    numbers: &[("reconnects", "connections re-established")],
    cost: |failed| Some((stopped(failed.measured)?, CostOf::Time, "time in which no operation ended")),
    plot: Some(Plot::Time),
};

fn detect_reconnects(measured: &Measured<'_>) -> Verdict {
    match stored(measured, CheckKind::Reconnects) {
        Some(_) => RECONNECTS.follows(&RECONNECTED, measured),
        None => look(measured, &mountstats::RECONNECTS),
    }
}

pub(crate) static ERRORS: Rule = Rule {
    kind: CheckKind::RpcErrors,
    explanation: *mountstats::ERRORS.explanation,
    check: |s| {
        let (errors, which) = by_operation(measured_phase(s)?, |row| row.errors);
        if errors == 0 {
            return None;
        }
        let message = format!(
            "{errors} RPCs returned an error ({which}); operations that failed by one are counted as failed operations."
        );
        let evidence = [Evidence::number("errors", errors as f64)];
        failed(s, CheckKind::RpcErrors, Severity::Note, message, evidence)
    },
    remedy: |_| mountstats::trace_errors(),
    finding: Follows::Detector(detect_errors),
};

/// A reply that made the user-space client retry or recover counts as an error too, and is a finding of its own.
fn detect_errors(measured: &Measured<'_>) -> Verdict {
    const RECOVERED: [&str; 5] =
        ["delay", "grace", "session-recovered", "client-recovered", "connection-bound"];
    let Some((rpc, phase)) = measured.rpcs() else { return Verdict::Irrelevant };
    if rpc.source == RpcSource::Client {
        let errors: u64 = phase.rows.iter().map(|row| row.errors).sum();
        let recovered: u64 = RECOVERED.iter().filter_map(|event| phase.events.get(*event)).sum();
        if errors <= recovered {
            return Verdict::Clear;
        }
    }
    look(measured, &mountstats::ERRORS)
}
