//! The load generator itself.

use crate::prelude::*;

/// Faster than the generator alone a run can be only if that was disturbed when it was measured.
const BEYOND: f64 = 1.1;

pub(crate) static RULE: Rule =
    Rule { check, finding: Follows::Detector(detect), ..Rule::of(CheckKind::GeneratorLimit) };

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some(check) = stored(measured, RULE.kind) else { return Verdict::Clear };
    let (Some(reached), Some(limit)) = (check.number("reached"), check.number("limit")) else {
        return Verdict::Unknown("the stored check has no numbers: repeat the run with this version".into());
    };
    if reached > BEYOND * limit {
        return Verdict::Unknown(
            "the run was faster than the generator alone just before it: the host was busy then; repeat it on a quiet host".into(),
        );
    }
    let part = share(reached, limit);
    let what = format!(
        "{reached:.0} operations a second were done, and the generator can issue no more than {limit:.0} when the file system \
                 takes no time: its own speed is part of the result."
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::per_second("operations per second", reached),
                Evidence::per_second("operations per second on the null engine", limit),
            ])
            .costs(part),
    )
}

/// While the run is made: against the rate of the null engine, measured at most a minute before.
fn check(s: Subject<'_>) -> Option<Check> {
    let host = &s.recording.host;
    let workers = s.recording.workers.len().min(host.processors.max(1) as usize);
    let (limit, reached) = (host.null_rate? * workers as f64, rate(s.recording));
    // A limit far below what was reached was itself disturbed, on a busy host.
    if reached < 0.5 * limit || reached > 4.0 * limit {
        return None;
    }
    let message = format!(
        "The load generator may be the limit: {reached:.0} operations/s were reached, and it can issue {limit:.0}/s when \
         the file system takes no time."
    );
    let evidence = [Evidence::per_second("reached", reached), Evidence::per_second("limit", limit)];
    failed(s, RULE.kind, Severity::Warning, message, evidence)
}

fn rate(recording: &Recording) -> f64 {
    let operations: u64 = recording.series.iter().map(|series| series.total.count).sum();
    operations as f64 * 1e9 / recording.length_ns.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    #[test]
    fn the_stored_check_tells() {
        let mut made = Made::new();
        assert_eq!(made.verdict(&RULE), Verdict::Clear);
        let workload = made.recording().workload.clone();
        made.checked(CheckKind::GeneratorLimit, &workload, &[("reached", 6e5), ("limit", 8e5)]);
        let found = made.found(&RULE);
        assert!((found.cost.unwrap().share - 0.75).abs() < 1e-9);
        assert!(found.what.contains("600000 operations a second"), "{}", found.what);
    }

    #[test]
    fn a_check_without_numbers_is_not_guessed_about() {
        let mut made = Made::new();
        made.checked(CheckKind::GeneratorLimit, "write", &[]);
        assert!(matches!(made.verdict(&RULE), Verdict::Unknown(_)));
    }

    #[test]
    fn a_disturbed_calibration_tells_nothing() {
        let of = |reached: f64| {
            let mut made = Made::new();
            made.checked(CheckKind::GeneratorLimit, "write", &[("reached", reached), ("limit", 1e5)]);
            made.verdict(&RULE)
        };
        assert!(matches!(of(1.09e5), Verdict::Found(_)));
        assert!(matches!(of(1.11e5), Verdict::Unknown(why) if why.contains("quiet host")));
    }
}
