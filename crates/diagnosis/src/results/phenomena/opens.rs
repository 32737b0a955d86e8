//! More opening, closing and locking than reading and writing.

use super::tools::{all_execute_ns, execute_ns, ops, without_rpcs};
use crate::mountstats::opens::{AROUND, LEAST_CALLS, LEAST_SHARE};
use crate::prelude::*;

pub(super) const DETECTOR: Detector = Detector { id: "open-close-share", detect };

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
    if calls < LEAST_CALLS || part < LEAST_SHARE {
        return Verdict::Clear;
    }
    let what =
        format!("{} of the {calls} calls open, close or lock files instead of moving data.", percent(part));
    let opens = ops(measured, &["OPEN", "OPEN_NOATTR", "OPEN_CONFIRM"]);
    let locks = ops(measured, &["LOCK", "LOCKU", "LOCKT"]);
    let created: u64 = measured.of_kind(OperationKind::Create).map(|series| series.total.count).sum();
    let granted: u64 =
        rpc.phases.iter().filter_map(|phase| phase.events.get("delegation-granted")).sum::<u64>()
            + ops(measured, &["DELEGRETURN"]);
    let remedy = remedy(around, opens, locks, created, granted)
        .confirmed_by("`studies/paper001-delegations.toml` compares versions with and without delegations");
    let finding = Finding::new(Confidence::Certain, what)
        .advised(remedy)
        .with([
            Evidence::number("calls", calls as f64),
            Evidence::number("OPEN and the like", opens as f64),
            Evidence::number("CLOSE", ops(measured, &["CLOSE", "OPEN_DOWNGRADE"]) as f64),
            Evidence::number("LOCK, LOCKU, LOCKT", locks as f64),
        ])
        .costs_as(
            share(execute_ns(measured, &AROUND) as f64, all_execute_ns(measured) as f64),
            CostOf::CallTime,
            "execute time of these calls / of all calls",
        );
    Verdict::Found(finding)
}

/// Only what is there can be done less often, and only what is not yet granted can be asked for.
fn remedy(around: u64, opens: u64, locks: u64, created: u64, granted: u64) -> Remedy {
    if created * 2 >= opens.max(1) {
        return Remedy::new(
            "A new file takes an OPEN and a CLOSE in version 4, with delegations as well; version 3 makes one call for it.",
        )
        .by(Need::OwnClient, "--set target.version=3")
        .by(Need::KernelClient, "mount -o vers=3");
    }
    let text = if locks * 2 >= around {
        "Lock less often: one lock for several accesses, or for longer."
    } else {
        "Keep files open for several accesses. For trees of small files that are only read version 3 makes fewer calls."
    };
    let remedy = Remedy::new(text);
    if granted > 0 {
        return remedy;
    }
    remedy
        .also(
            Need::LinuxServer,
            "Or let the server delegate them: Linux servers do where no client writes the file and the callback channel works.",
        )
        .also(Need::NothingCached, "The clients keep nothing, so that no server delegates anything to them.")
        .also([Need::EmbeddedServer, Need::DelegationsNotOn], "The server grants no delegations.")
        .by(Need::NothingCached, "--set target.cache=linux")
        .by([Need::EmbeddedServer, Need::DelegationsNotOn], "[server] delegations = true")
        .by(Need::LinuxServer, "sysctl fs.leases-enable=1   # on a Linux server")
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::RpcSource;
    use benchmaster_record::results::ServedBy;

    use super::super::made;
    use super::*;
    use crate::finding::Setup;
    use crate::results::testing::{Made, NoDetails};

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

    #[test]
    fn what_is_on_already_and_what_would_not_help_is_not_advised() {
        let mut made = Made::served();
        let service = made.run().service.as_mut().unwrap();
        (service.server, service.url) = (ServedBy::Embedded, "nfs://{server}/export?version=4.1".into());
        made.run().parameters.delegations = Some(true);
        let setup = |made: &Made| {
            let run = &made.results.runs[0];
            Setup::of(&Measured::new(&made.results, run, &run.recordings[0], &NoDetails))
        };
        let command = |made: &Made, created, granted| {
            remedy(2_000, 1_000, 0, created, granted).fit(&setup(made)).command
        };
        assert_eq!(command(&made, 0, 0).as_deref(), Some("--set target.cache=linux"));
        assert_eq!(command(&made, 1_000, 0).as_deref(), Some("--set target.version=3"));
        made.run().service.as_mut().unwrap().url += "&cache=linux";
        assert_eq!(command(&made, 0, 0), None, "all that could be on is on");
        made.run().parameters.delegations = Some(false);
        assert_eq!(command(&made, 0, 0).as_deref(), Some("[server] delegations = true"));
        assert_eq!(command(&made, 0, 10), None, "granted");
        let locks = remedy(2_000, 0, 2_000, 0, 0);
        assert!(locks.text.starts_with("Lock less often"), "no advice on OPEN where there is none");
    }
}
