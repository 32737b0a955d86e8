//! Locks that make clients forget what they have cached.

use super::tools::{NO_RPCS, all_execute_ns, digits, execute_ns, ops, shares_files};
use crate::prelude::*;

const LEAST_LOCKS: u64 = 100;
/// GETATTRs, or READs, for each LOCK.
const LEAST_PER_LOCK: f64 = 0.5;

pub(super) const DETECTOR: Detector = Detector { id: "lock-invalidates-cache", detect };

const LOCKS: [&str; 3] = ["LOCK", "LOCKU", "FREE_STATEID"];

fn detect(measured: &Measured<'_>) -> Verdict {
    let locked: u64 = measured.of_kind(OperationKind::Lock).map(|series| series.total.count).sum();
    let read: u64 = measured.of_kind(OperationKind::Read).map(|series| series.total.count).sum();
    if locked == 0 || read == 0 {
        return Verdict::Irrelevant;
    }
    let Some((rpc, _)) = measured.rpcs() else { return Verdict::Unknown(NO_RPCS.into()) };
    let clients = u64::from(rpc.connection.clients.max(1));
    let locks = ops(measured, &["LOCK"]);
    let (reads, attributes) = (ops(measured, &["READ"]), ops(measured, &["GETATTR"]));
    // Shared files are read for the first time by each client.
    let files: u64 = measured.recording.filesets.iter().map(|files| files.files).sum();
    let first = files.max(1) * if shares_files(measured) { clients } else { 1 };
    if locks < LEAST_LOCKS || read < 2 * first {
        return Verdict::Clear;
    }
    let again = reads.saturating_sub(first);
    let per_lock = |calls: u64| calls as f64 / locks as f64;
    let rereads = rpc.source == RpcSource::Kernel && per_lock(again) >= LEAST_PER_LOCK;
    if per_lock(attributes) < LEAST_PER_LOCK && !rereads {
        return Verdict::Clear;
    }
    let read_ns = execute_ns(measured, &["READ"]) as f64 * share(again as f64, reads as f64);
    let took = execute_ns(measured, &LOCKS) as f64 + execute_ns(measured, &["GETATTR"]) as f64 + read_ns;
    let part = share(took, all_execute_ns(measured) as f64);
    let lost = if per_lock(again) >= LEAST_PER_LOCK {
        "the whole cache of the file is lost with each lock"
    } else {
        "what is cached stays, and is confirmed with each lock"
    };
    let what = format!(
        "Each LOCK is followed by {} GETATTR and {} READ of what had been read before: {lost}. Locking and this take {} of the time of all calls.",
        digits(per_lock(attributes)),
        digits(per_lock(again)),
        percent(part)
    );
    // One GETATTR for each LOCK; each FREE_STATEID follows a LOCKU.
    let freed = ops(measured, &["FREE_STATEID"]);
    let spared = attributes.min(locks) + freed;
    let all = measured.calls().map_or(0, |calls| calls.ops);
    let finding = Finding::new(Confidence::Certain, what)
        .with([
            Evidence::number("LOCK", locks as f64),
            Evidence::number("GETATTR for each LOCK", per_lock(attributes)),
            Evidence::number("READ of what had been read before, for each LOCK", per_lock(again)),
            Evidence::number("FREE_STATEID", freed as f64),
            Evidence::number(
                "RPCs that GETATTR within LOCK and FREE_STATEID within LOCKU save",
                spared as f64,
            ),
            Evidence::number("share of all RPCs", share(spared as f64, all as f64)),
        ])
        .costs(part);
    Verdict::Found(finding)
}

#[cfg(test)]
mod tests {
    use super::super::made::{self, Call};
    use super::*;

    fn verdict(source: RpcSource, calls: &[Call<'_>], read: u64) -> Verdict {
        let mut recording = made::recording("locked-read", 8.0);
        made::series(&mut recording, OperationKind::Lock, 0, &[(200_000, 10_000)]);
        made::series(&mut recording, OperationKind::Read, 4096, &[(300_000, read)]);
        made::files(&mut recording, 1_000, 4_096_000);
        made::rpcs(&mut recording, source, "4.1", calls);
        made::judge(recording, detect)
    }

    #[test]
    fn attributes_after_each_lock() {
        let calls = [
            ("LOCK", 10_000, 100, 0.0, 200.0),
            ("GETATTR", 10_001, 200, 0.0, 150.0),
            ("READ", 10_000, 4200, 0.0, 300.0),
        ];
        for source in [RpcSource::Client, RpcSource::Kernel] {
            let Verdict::Found(found) = verdict(source, &calls, 10_000) else { panic!() };
            assert!(found.what.contains("by 1.00 GETATTR and 0.900 READ"), "{}", found.what);
            let evidence = |name: &str| found.evidence.iter().find(|it| it.name.starts_with(name)).cloned();
            let spared = evidence("RPCs that GETATTR within LOCK").expect("what could be spared");
            assert_eq!(spared, Evidence::number(spared.name.clone(), 10_000.0));
            assert!(evidence("share of all RPCs").is_some());
            assert!((found.cost.unwrap().share - 6.2 / 6.5).abs() < 1e-3);
        }
    }

    #[test]
    fn limits_from_both_sides() {
        let calls = |getattr: u64, read: u64, locks: u64| {
            [
                ("LOCK", locks, 100, 0.0, 200.0),
                ("GETATTR", getattr, 200, 0.0, 150.0),
                ("READ", read, 4200, 0.0, 300.0),
            ]
        };
        assert!(matches!(verdict(RpcSource::Client, &calls(5_000, 0, 10_000), 10_000), Verdict::Found(_)));
        assert_eq!(verdict(RpcSource::Client, &calls(4_999, 0, 10_000), 10_000), Verdict::Clear);
        // A client without a cache reads each time, whether it locks or not.
        assert_eq!(verdict(RpcSource::Client, &calls(0, 10_000, 10_000), 10_000), Verdict::Clear);
        assert!(matches!(verdict(RpcSource::Kernel, &calls(0, 6_000, 10_000), 10_000), Verdict::Found(_)));
        assert_eq!(verdict(RpcSource::Kernel, &calls(0, 5_999, 10_000), 10_000), Verdict::Clear);
        // Locks that the client keeps to itself, and files that are read once.
        assert_eq!(verdict(RpcSource::Kernel, &calls(1, 1_000, 99), 10_000), Verdict::Clear);
        assert_eq!(verdict(RpcSource::Kernel, &calls(10_000, 1_000, 10_000), 1_999), Verdict::Clear);
    }

    #[test]
    fn without_locks_and_without_counters() {
        assert_eq!(made::judge(made::recording("read", 1.0), detect), Verdict::Irrelevant);
        let mut recording = made::recording("locked-read", 8.0);
        made::series(&mut recording, OperationKind::Lock, 0, &[(200_000, 10)]);
        made::series(&mut recording, OperationKind::Read, 0, &[(200_000, 10)]);
        assert!(matches!(made::judge(recording, detect), Verdict::Unknown(_)));
    }
}
