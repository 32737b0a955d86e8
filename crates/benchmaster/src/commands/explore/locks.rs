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

/// Who held locks of a workload's groups, by file. Records are in the order of their starts.
pub(super) struct Holders<'a> {
    facts: &'a TraceFacts,
    records: Vec<(File, OperationKind, &'a TraceRecord)>,
    held: BTreeMap<File, Vec<Held>>,
}

impl<'a> Holders<'a> {
    pub(super) fn of(facts: &'a TraceFacts, records: &'a [TraceRecord], groups: &BTreeSet<String>) -> Self {
        let mut holders = Self { facts, records: Vec::new(), held: BTreeMap::new() };
        let mut at_work: BTreeMap<(File, u32), u64> = BTreeMap::new();
        for record in records {
            let series = facts.series.get(usize::from(record.series));
            let Some(series) = series.filter(|series| groups.contains(&series.group)) else { continue };
            let client = facts.workers.get(record.worker as usize).map(|worker| worker.client);
            let fileset = facts.filesets.values().nth(record.fileset.into());
            let is_private = fileset.is_some_and(|fileset| fileset.sharing == Sharing::Private);
            let file = (record.fileset, record.file, client.filter(|_| is_private));
            holders.records.push((file, series.operation, record));
            let place = (file, record.worker);
            match series.operation {
                OperationKind::Unlock | OperationKind::Close => {
                    if let Some(from) = at_work.remove(&place) {
                        let held = Held { worker: record.worker, from, to: record.start_ns };
                        holders.held.entry(file).or_default().push(held);
                    }
                }
                // The error may be what its holder learns of that.
                _ if record.error != 0 => drop(at_work.remove(&place)),
                OperationKind::Lock => drop(at_work.insert(place, record.start_ns + record.latency_ns)),
                _ => {}
            }
        }
        holders.held.values_mut().for_each(|held| held.sort_by_key(|held| (held.from, held.worker)));
        holders
    }

    /// All who held a lock when another was given it.
    fn overlaps(&self) -> impl Iterator<Item = (File, Held, Held)> {
        self.held.iter().flat_map(|(file, held)| {
            let pairs = held.iter().enumerate().flat_map(|(number, first)| {
                let behind = held[number + 1..].iter().take_while(|second| second.from < first.to);
                behind.filter(|second| second.worker != first.worker).map(|second| (*first, *second))
            });
            pairs.map(|(first, second)| (*file, first, second))
        })
    }

    /// The first two that held a lock at a time: when, since the start of the measured phase, and who in words.
    pub(super) fn two_at_a_time(&self) -> Option<(Duration, String)> {
        let (file, first, second) = self.overlaps().min_by_key(|(_, _, second)| second.from)?;
        Some((Duration::from_nanos(second.from), self.describe(file, first, second)))
    }

    /// The first whose write ended and was flushed after another was given its lock: it must get an error. A write that only fills a
    /// cache ends at once; the flush of an earlier one could be the rest of it.
    pub(super) fn written_after_loss(&self) -> Option<(Duration, String)> {
        let written = |(file, first, second): (File, Held, Held)| {
            let own = |(place, _, record): &&(File, OperationKind, &TraceRecord)| {
                *place == file && record.worker == first.worker && record.error == 0
            };
            let end = |record: &TraceRecord| record.start_ns + record.latency_ns;
            let mut own = self.records.iter().filter(own).filter(|(.., record)| end(record) <= first.to);
            let is_write = |kind: OperationKind| kind == OperationKind::Write;
            own.find(|(_, kind, record)| is_write(*kind) && end(record) > second.from)?;
            let (.., flushed) = own.find(|(_, kind, _)| *kind == OperationKind::Fsync)?;
            Some((
                end(flushed),
                format!("{}, after which the first wrote and flushed", self.describe(file, first, second)),
            ))
        };
        let (at, what) = self.overlaps().filter_map(written).min()?;
        Some((Duration::from_nanos(at), what))
    }

    fn describe(&self, file: File, first: Held, second: Held) -> String {
        let name = |held: Held| {
            let worker = self.facts.workers.get(held.worker as usize);
            worker.map_or_else(String::new, |worker| {
                format!("client {}, worker {}", worker.client, worker.worker)
            })
        };
        format!(
            "a lock of file {} had two holders: {} from {:.6} s to {:.6} s, and {} from {:.6} s",
            file.1,
            name(first),
            seconds(first.from),
            seconds(first.to),
            name(second),
            seconds(second.from)
        )
    }
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
            series: [OperationKind::Lock, OperationKind::Unlock, OperationKind::Write, OperationKind::Fsync]
                .map(key)
                .into(),
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
        Holders::of(&facts(sharing), records, &BTreeSet::from(["lockers".to_owned()])).two_at_a_time()
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
        // Worker 0 holds it from 10 to 100; meanwhile it is locked and unlocked by worker 1, later.
        let records = [call(0, 0, 0, 10), call(1, 0, 50, 5), call(1, 1, 60, 1), call(0, 1, 100, 1)];
        assert_eq!(found(Sharing::Shared, &records).unwrap().0, Duration::from_nanos(55));
    }

    #[test]
    fn who_lost_a_lock_must_not_write() {
        let groups = BTreeSet::from(["lockers".to_owned()]);
        let facts = facts(Sharing::Shared);
        let lost = |calls: &[TraceRecord]| {
            let mut records =
                vec![call(0, 0, 0, 10), call(1, 0, 50, 5), call(1, 1, 60, 1), call(0, 1, 200, 1)];
            records.extend_from_slice(calls);
            records.sort_by_key(|record| record.start_ns);
            Holders::of(&facts, &records, &groups).written_after_loss()
        };
        assert_eq!(lost(&[]), None);
        assert_eq!(lost(&[call(0, 2, 20, 1), call(0, 3, 70, 9)]), None, "written before");
        let (at, what) = lost(&[call(0, 2, 70, 1), call(0, 3, 80, 9)]).unwrap();
        assert!(at == Duration::from_nanos(89) && what.ends_with("the first wrote and flushed"), "{what}");
        let told = TraceRecord { error: 5, ..call(0, 3, 80, 9) };
        assert_eq!(lost(&[call(0, 2, 70, 1), told]), None, "it got an error");
    }
}
