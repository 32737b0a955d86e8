//! More opening, closing and locking than reading and writing.

use super::tools::{all_execute_ns, execute_ns, ops, percent, share, without_rpcs};
use crate::diagnosis::Verdict;
use crate::finding::{Confidence, CostOf, Evidence, Finding, Plot, Remedy};
use crate::mountstats::{AROUND, LEAST_OF_OPENS, LEAST_OPENING, OPENS};
use benchmaster_record::nfs::NfsVersion;

use crate::measured::Measured;
use crate::results::rule::Detector;

pub(super) const DETECTOR: Detector = Detector { explanation: &OPENS, detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.operations() == 0 {
        return Verdict::Irrelevant;
    }
    let Some((rpc, phase)) = measured.rpcs() else {
        return without_rpcs(measured);
    };
    if !rpc.connection.version.is_some_and(NfsVersion::has_state) {
        return Verdict::Irrelevant;
    }
    let calls = phase.total().ops;
    let around = ops(measured, &AROUND);
    let part = share(around as f64, calls as f64);
    if calls < LEAST_OPENING || part < LEAST_OF_OPENS {
        return Verdict::Clear;
    }
    let what =
        format!("{} of the {calls} calls open, close or lock files instead of moving data.", percent(part));
    let remedy = Remedy::new(
        "Keep files open, or let the server delegate them (Linux servers do where no other client writes the file and the callback channel works). For trees of small files that are only read \
         version 3 makes fewer calls.",
    )
    .by("[server] delegations = true   # of the embedded server; sysctl fs.leases-enable=1 on a Linux server")
    .confirmed_by("`studies/paper001-delegations.toml` compares versions with and without delegations");
    let finding = Finding::new(&OPENS, Confidence::Certain, what, remedy)
        .with([
            Evidence::number("calls", calls as f64),
            Evidence::number(
                "OPEN and the like",
                ops(measured, &["OPEN", "OPEN_NOATTR", "OPEN_CONFIRM"]) as f64,
            ),
            Evidence::number("CLOSE", ops(measured, &["CLOSE", "OPEN_DOWNGRADE"]) as f64),
            Evidence::number("LOCK, LOCKU, LOCKT", ops(measured, &["LOCK", "LOCKU", "LOCKT"]) as f64),
        ])
        .costs(
            share(execute_ns(measured, &AROUND) as f64, all_execute_ns(measured) as f64),
            CostOf::CallTime,
            "execute time of these calls / of all calls",
        )
        .shown_by(Plot::Counters);
    Verdict::Found(finding)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::RpcSource;

    use super::super::made;
    use super::*;

    fn verdict(version: &str, opens: u64, others: u64) -> Verdict {
        let mut recording = made::recording("files", 10.0);
        made::series(&mut recording, OperationKind::Open, 0, &[(200_000, 1_000)]);
        made::rpcs(
            &mut recording,
            RpcSource::Client,
            version,
            &[
                ("OPEN", opens, 300, 0.0, 200.0),
                ("CLOSE", opens, 200, 0.0, 100.0),
                ("READ", others, 4_300, 0.0, 300.0),
            ],
        );
        made::judge(recording, detect)
    }

    #[test]
    fn limits_from_both_sides() {
        let Verdict::Found(found) = verdict("4.1", 1_000, 3_000) else { panic!() };
        assert!(found.what.starts_with("40 % of the 5000 calls"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.25).abs() < 1e-9);
        assert!(matches!(verdict("4.0", 500, 2_000), Verdict::Found(_)));
        assert_eq!(verdict("4.0", 500, 2_001), Verdict::Clear);
        assert!(matches!(verdict("4.1", 250, 0), Verdict::Found(_)));
        assert_eq!(verdict("4.1", 249, 1), Verdict::Clear);
        assert_eq!(verdict("3", 1_000, 1_000), Verdict::Irrelevant);
        assert_eq!(made::judge(made::recording("files", 1.0), detect), Verdict::Irrelevant);
    }
}
