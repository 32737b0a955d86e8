//! Calls that were retransmitted, timed out or failed, and connections that broke.

use super::mounts::look;
use super::observed::asked;
use crate::mountstats;
use crate::prelude::*;
use crate::results::phenomena::standstill::stopped;
use crate::validity::rule::with_rpcs;

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
    check: |s| {
        let problems = &s.recording.rpc.as_ref()?.problems;
        let first = problems.first()?.trim_end_matches('.');
        let more =
            if problems.len() > 1 { format!(" (and {} more)", problems.len() - 1) } else { String::new() };
        let message = format!("The clients did not shut down cleanly: {first}{more}.");
        let evidence = [Evidence::number("problems", problems.len() as f64)];
        failed(s, CheckKind::ClientState, Severity::Warning, message, evidence)
    },
    finding: Follows::Finding(Consequence {
        could: with_rpcs,
        numbers: &[("problems", "problems of clients")],
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::ClientState)
};

/// Share of the requests.
const LEAST_SHARE: f64 = 1e-4;

pub(crate) static RETRANSMISSIONS: Rule = Rule {
    shown_as: Some("retransmission"),
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
    finding: Follows::Finding(Consequence {
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
            Some(waited / (took as f64 / 1e9).max(waited))
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::RpcRetransmissions)
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
    shown_as: Some("major-timeout"),
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
    finding: Follows::Finding(Consequence {
        could: with_rpcs,
        numbers: &[("timeouts", "calls with a major timeout")],
        cost: |failed| {
            let each = timeo(failed.measured) * (retrans(failed.measured) + 1.0);
            let waited = failed.number("timeouts")? * each;
            let took = failed.measured.calls()?.execute_ns;
            Some(waited / (took as f64 / 1e9).max(waited))
        },
        ..Consequence::CERTAIN
    }),
    ..Rule::of(CheckKind::RpcTimeouts)
};

pub(crate) static RECONNECTS: Rule = Rule {
    check: |s| {
        let count = *measured_phase(s)?.events.get("reconnect").filter(|count| **count > 0)?;
        let message = format!(
            "Connections to the server broke and were re-established {count} times in the measured phase."
        );
        let evidence = [Evidence::number("reconnects", count as f64)];
        failed(s, CheckKind::Reconnects, Severity::Warning, message, evidence)
    },
    finding: Follows::Detector(detect_reconnects),
    ..Rule::of(CheckKind::Reconnects)
};

const RECONNECTED: Consequence = Consequence {
    could: with_rpcs,
    numbers: &[("reconnects", "connections re-established")],
    cost: |failed| stopped(failed.measured),
    ..Consequence::CERTAIN
};

fn detect_reconnects(measured: &Measured<'_>) -> Verdict {
    match stored(measured, CheckKind::Reconnects) {
        Some(_) => RECONNECTS.follows(&RECONNECTED, measured),
        None => look(measured, &mountstats::connections::RECONNECTS),
    }
}

pub(crate) static ERRORS: Rule = Rule {
    shown_as: Some("operation-errors"),
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
    finding: Follows::Detector(detect_errors),
    ..Rule::of(CheckKind::RpcErrors)
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
    look(measured, &mountstats::errors::DETECTOR)
}
