//! Whether a lock had one holder: by the trace of the calls of a workload.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use benchmaster_record::model::{LockKind, OperationKind, Sharing, Workload, leaves};
use benchmaster_record::recording::TraceRecord;
use benchmaster_store::trace::TraceFacts;

/// Whom a file belongs to that is locked: all, or one client.
type File = (u16, u32, Option<u32>);

/// A worker that held a lock, as far as it knew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Held {
    worker: u32,
    /// When it had the answer, in nanoseconds.
    from: u64,
    /// When it began to give it back.
    to: u64,
}

/// Groups of a workload whose locks are all exclusive. Ranges that they lock begin with their files, so that any two of them
/// overlap.
pub(super) fn exclusive(workload: &Workload) -> BTreeSet<String> {
    let groups = workload.groups.iter().filter(|group| {
        let steps = leaves(&group.setup).chain(leaves(&group.flow));
        let locks: Vec<_> = steps.filter(|step| step.op == Some(OperationKind::Lock)).collect();
        !locks.is_empty() && locks.iter().all(|step| step.lock == Some(LockKind::Write))
    });
    groups.map(|group| group.name.clone()).collect()
}

/// The first two that held a lock at a time: when, since the start of the measured phase, and who in words. Records are in the order
/// of their starts.
pub(super) fn two_holders(
    facts: &TraceFacts,
    records: &[TraceRecord],
    groups: &BTreeSet<String>,
) -> Option<(Duration, String)> {
    let mut files: BTreeMap<File, Vec<Held>> = BTreeMap::new();
    let mut at_work: BTreeMap<(File, u32), u64> = BTreeMap::new();
    for record in records.iter().filter(|record| record.error == 0) {
        let series = facts.series.get(usize::from(record.series));
        let Some(series) = series.filter(|series| groups.contains(&series.group)) else { continue };
        let client = facts.workers.get(record.worker as usize).map(|worker| worker.client);
        let fileset = facts.filesets.values().nth(record.fileset.into());
        let is_private = fileset.is_some_and(|fileset| fileset.sharing == Sharing::Private);
        let file = (record.fileset, record.file, client.filter(|_| is_private));
        match series.operation {
            OperationKind::Lock => {
                at_work.entry((file, record.worker)).or_insert(record.start_ns + record.latency_ns);
            }
            OperationKind::Unlock | OperationKind::Close => {
                if let Some(from) = at_work.remove(&(file, record.worker)) {
                    let held = Held { worker: record.worker, from, to: record.start_ns };
                    files.entry(file).or_default().push(held);
                }
            }
            _ => {}
        }
    }
    let overlap = |(file, held): (File, Vec<Held>)| Some((file, overlap(held)?));
    let (file, (first, second)) =
        files.into_iter().filter_map(overlap).min_by_key(|(_, (_, second))| second.from)?;
    let name = |held: Held| {
        let worker = facts.workers.get(held.worker as usize);
        worker
            .map_or_else(String::new, |worker| format!("client {}, worker {}", worker.client, worker.worker))
    };
    let what = format!(
        "a lock of file {} had two holders: {} from {:.6} s to {:.6} s, and {} from {:.6} s",
        file.1,
        name(first),
        seconds(first.from),
        seconds(first.to),
        name(second),
        seconds(second.from)
    );
    Some((Duration::from_nanos(second.from), what))
}

/// The first two of different workers that overlap.
fn overlap(mut held: Vec<Held>) -> Option<(Held, Held)> {
    held.sort_by_key(|held| (held.from, held.worker));
    let mut last: Option<Held> = None;
    for next in held {
        match last {
            Some(last) if next.from < last.to && next.worker != last.worker => return Some((last, next)),
            Some(earlier) if earlier.to >= next.to => {}
            _ => last = Some(next),
        }
    }
    None
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use benchmaster_record::recording::{NO_FILE, SeriesKey};
    use benchmaster_store::trace::TraceWorker;

    fn facts(sharing: Sharing) -> TraceFacts {
        let key = |operation: OperationKind| SeriesKey {
            group: "lockers".into(),
            label: operation.name().into(),
            operation,
        };
        let worker = |client| TraceWorker { client, group: "lockers".into(), worker: 0 };
        let fileset =
            serde_json::from_value(serde_json::json!({ "files": 1, "size": 4096, "sharing": sharing }))
                .unwrap();
        TraceFacts {
            series: vec![key(OperationKind::Lock), key(OperationKind::Unlock)],
            workers: vec![worker(0), worker(1)],
            filesets: BTreeMap::from([("data".to_owned(), fileset)]),
            ..TraceFacts::default()
        }
    }

    fn call(worker: u32, series: u16, start_ns: u64, latency_ns: u64) -> TraceRecord {
        let offset = u64::MAX;
        TraceRecord { start_ns, latency_ns, offset, bytes: 0, worker, file: 0, series, error: 0, fileset: 0 }
    }

    fn found(sharing: Sharing, records: &[TraceRecord]) -> Option<(Duration, String)> {
        two_holders(&facts(sharing), records, &BTreeSet::from(["lockers".to_owned()]))
    }

    #[test]
    fn two_holders_at_a_time_are_found() {
        // The second one asks early, and has the answer when the first has begun to unlock.
        let fine = [call(0, 0, 0, 10), call(1, 0, 5, 100), call(0, 1, 100, 10), call(1, 1, 200, 10)];
        assert_eq!(found(Sharing::Shared, &fine), None);
        let early = [call(0, 0, 0, 10), call(1, 0, 5, 50), call(0, 1, 100, 10), call(1, 1, 200, 10)];
        let (at, what) = found(Sharing::Shared, &early).unwrap();
        assert_eq!(at, Duration::from_nanos(55));
        assert!(what.contains("client 0") && what.contains("client 1"), "{what}");
        assert_eq!(found(Sharing::Private, &early), None, "they have a file each");
        let failed = TraceRecord { error: 5, ..early[1] };
        assert_eq!(found(Sharing::Shared, &[early[0], failed, early[2], early[3]]), None);
        let other = TraceRecord { file: NO_FILE, ..early[1] };
        assert_eq!(found(Sharing::Shared, &[early[0], other, early[2], early[3]]), None);
    }

    #[test]
    fn one_who_holds_long_is_compared_with_all() {
        let held = |worker, from, to| Held { worker, from, to };
        assert_eq!(
            overlap(vec![held(0, 0, 100), held(0, 10, 20), held(1, 50, 60)]),
            Some((held(0, 0, 100), held(1, 50, 60)))
        );
        assert_eq!(overlap(vec![held(0, 0, 10), held(1, 10, 20), held(0, 20, 30)]), None);
    }
}
