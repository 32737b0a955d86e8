//! Writes that the server had not put on stable storage when they were counted.

use benchmaster_record::model::Claim;

use crate::prelude::*;
use crate::results::conditions::observed::asked;

pub(super) const DETECTOR: Detector = Detector { id: "uncommitted-writes", detect };

const LEAST_BYTES: u64 = 1 << 20;
const LEAST_SHARE: f64 = 0.05;
const LONG_NS: f64 = 1e9;

fn detect(measured: &Measured<'_>) -> Verdict {
    let (Some((rpc, phase)), Some(write)) = (measured.rpcs(), measured.rpc("WRITE")) else {
        return Verdict::Irrelevant;
    };
    let cache = measured.workload.is_some_and(|workload| workload.claims == Claim::Cache);
    let synced = measured.of_kind(OperationKind::Fsync).chain(measured.of_kind(OperationKind::Fdatasync));
    let synced = synced.map(|series| series.total.count).sum::<u64>() > 0;
    let stable = asked(measured).iter().any(|option| matches!(option.as_str(), "sync" | "noac"));
    if cache || synced || stable || write.bytes_sent < LEAST_BYTES {
        return Verdict::Irrelevant;
    }
    let commits =
        |phase: &RpcPhase| phase.row("COMMIT").filter(|row| row.ops > 0).map(|row| (row.ops, row.execute_ns));
    if commits(phase).is_some() {
        return Verdict::Clear;
    }
    let Some((after, took)) = rpc.phase(Phase::TearDown).and_then(commits) else { return Verdict::Clear };
    // Clients commit at the same time.
    let took = took as f64 / f64::from(rpc.connection.clients.max(1));
    let length = measured.recording.length_ns as f64;
    if took < LEAST_SHARE * length && took / (after as f64) < LONG_NS {
        return Verdict::Clear;
    }
    let what = format!(
        "{} were sent by {} WRITEs and none was committed while it was measured; {after} COMMITs after it took {}.",
        size(write.bytes_sent as f64),
        write.ops,
        time(took)
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .with([
                Evidence::bytes("bytes sent by WRITEs", write.bytes_sent as f64),
                Evidence::number("COMMITs after the measured phase", after as f64),
                Evidence::nanoseconds("their time, for each client", took),
            ])
            .costs(took / (length + took)),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    /// WRITEs without COMMITs, which come in tear-down and take so long.
    fn made(took_ns: u64) -> Made {
        let mut made = Made::served();
        made.recording().series.retain(|series| series.key.operation != OperationKind::Fsync);
        made.rows().retain(|row| row.operation != "COMMIT");
        let mut row = made.rows().iter().find(|row| row.operation == "WRITE").unwrap().clone();
        (row.operation, row.ops, row.execute_ns) = ("COMMIT".into(), 4, took_ns);
        let rpc = made.recording().rpc.as_mut().unwrap();
        rpc.connection.clients = 1;
        rpc.phases.retain(|phase| phase.phase != Phase::TearDown);
        rpc.phases.push(RpcPhase { phase: Phase::TearDown, rows: vec![row], ..RpcPhase::default() });
        made
    }

    #[test]
    fn commits_that_come_after_it_was_measured_are_counted() {
        let found = made(5_000_000_000).found(&DETECTOR);
        assert!(found.what.contains("4 COMMITs after it took 5 s"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.2).abs() < 0.01);
        // They cost nothing where the server's memory is its storage.
        assert_eq!(made(20_000_000).verdict(&DETECTOR), Verdict::Clear);
        let mut synced = made(5_000_000_000);
        synced.run().service.as_mut().unwrap().url = "nfs://{server}/export?sync=file".into();
        assert_eq!(synced.verdict(&DETECTOR), Verdict::Irrelevant);
        assert_eq!(Made::new().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
