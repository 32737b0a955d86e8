//! Files, sizes, connections and clients that are slower than others of their kind.
//!
//! What disturbs a host disturbs all of them alike: their difference is not its doing.

use std::collections::BTreeMap;

use benchmaster_record::recording::{PartOf, PartRow};

use crate::prelude::*;
use crate::results::doubts::noisy_host::is_noisy;
use crate::results::phenomena::{divide, lost_in_stretches};

/// Operations of each that is compared.
const LEAST_CALLS: u64 = 10;
/// Times the others, and nanoseconds beyond them.
const LEAST_TIMES: f64 = 2.0;
const LEAST_NS: f64 = 0.5e6;
/// The quickest of the slow over the slowest of the others.
const LEAST_GAP: f64 = 1.3;
/// Standard errors between the two, since the division is the best of many.
const LEAST_ERRORS: f64 = 5.0;
/// The same where other programs hold up clients, many of their calls at a time, for it to be likely.
const LEAST_ERRORS_NOISY: f64 = 10.0;
/// Share of the operations' time.
const LEAST_SHARE: f64 = 0.1;
/// Bytes per nanosecond of the slowest link that is reckoned with: 100 Mbit/s. One that moved any of the sizes faster is faster;
/// sizes are rounded up to powers of two, so that half of that is certain.
const SLOWEST: f64 = 0.0125;
const CERTAIN: f64 = 0.5;
/// Runs from which on clients are compared over all of them (`slow-client`).
const RUNS: usize = 3;

pub(in crate::results) const DETECTOR: Detector = Detector { id: "slow-part", detect };

/// Operations that are compared: which, how many, and nanoseconds.
type Compared = BTreeMap<u32, (u64, f64)>;

/// Which of a set is slow.
struct Slow {
    what: String,
    kind: &'static str,
    label: String,
    mean: f64,
    others: f64,
    count: u64,
    errors: f64,
    lost: f64,
}

fn detect(measured: &Measured<'_>) -> Verdict {
    if measured.is_virtual() || measured.operations() == 0 {
        return Verdict::Irrelevant;
    }
    let mut sets: BTreeMap<(PartOf, &str), Compared> = BTreeMap::new();
    for row in &measured.recording.parts {
        sets.entry((row.part, &row.label)).or_default().insert(row.key, (row.count, row.sum_ns as f64));
    }
    // Files may be read one after the other, and sizes come at different times.
    let by_time = lost_in_stretches(measured);
    let of_parts = sets.into_iter().filter_map(|((part, label), set)| {
        let found = slow(measured, Some(part), label, set)?;
        (part == PartOf::Connection || found.lost > by_time).then_some(found)
    });
    let runs = measured.results.runs.iter().filter(|run| run.key.treatment == measured.run.key.treatment);
    let of_clients = (runs.count() < RUNS).then(|| clients(measured)).into_iter().flatten();
    let of_clients = of_clients.filter_map(|(label, set)| slow(measured, None, label, set));
    let worst = of_parts.chain(of_clients).max_by(|a, b| a.lost.total_cmp(&b.lost));
    let sure = |slow: &Slow| slow.errors >= LEAST_ERRORS_NOISY || !is_noisy(measured);
    worst.map_or(Verdict::Clear, |slow| {
        let confidence = if sure(&slow) { Confidence::Likely } else { Confidence::Possible };
        Verdict::Found(finding(&slow, confidence))
    })
}

/// Operations of each series by client.
fn clients<'a>(measured: &Measured<'a>) -> Vec<(&'a str, Compared)> {
    let of = |(number, series): (u32, &'a SeriesRecording)| {
        let mut set = Compared::new();
        for worker in &measured.recording.workers {
            for done in worker.series.iter().filter(|done| done.series == number) {
                let (count, sum) = set.entry(worker.client).or_default();
                (*count, *sum) = (*count + done.count, *sum + done.sum_ns as f64);
            }
        }
        (series.key.label.as_str(), set)
    };
    (0..).zip(&measured.recording.series).map(of).collect()
}

fn slow(measured: &Measured<'_>, part: Option<PartOf>, label: &str, mut set: Compared) -> Option<Slow> {
    set.retain(|_, (count, _)| *count >= LEAST_CALLS);
    let bytes = |key: u32| if part == Some(PartOf::Size) { (1_u64 << key.min(32)) as f64 } else { 0.0 };
    let speeds = set.iter().map(|(&key, &(count, sum))| CERTAIN * bytes(key) * count as f64 / sum.max(1.0));
    let speed = speeds.fold(SLOWEST, f64::max);
    // Without its bytes; what is below the least difference is all alike.
    let own = |key: u32, sum: f64, count: u64| {
        let mean = sum / count as f64;
        (mean - bytes(key) / speed).max(mean.min(LEAST_NS)).max(1.0)
    };
    let mut means: Vec<(f64, u32, u64)> =
        set.iter().map(|(&key, &(count, sum))| (own(key, sum, count), key, count)).collect();
    means.sort_by(|a, b| a.0.total_cmp(&b.0));
    let logs: Vec<f64> = means.iter().map(|(mean, ..)| mean.ln()).collect();
    let (quick, slow) = means.split_at(divide(&logs));
    let mean_of = |some: &[(f64, u32, u64)]| {
        let calls: u64 = some.iter().map(|(.., count)| count).sum();
        let ns: f64 = some.iter().map(|(mean, _, count)| mean * *count as f64).sum();
        (ns / calls.max(1) as f64, calls)
    };
    let ((others, quick_calls), (mean, count)) = (mean_of(quick), mean_of(slow));
    let apart = slow.first()?.0 >= LEAST_GAP * quick.last()?.0;
    let deviation = spread(measured, label)?;
    let error = deviation * (1.0 / quick_calls.max(1) as f64 + 1.0 / count.max(1) as f64).sqrt();
    // What is subtracted for bytes must not be all of the difference.
    let raw = |some: &[(f64, u32, u64)]| {
        let of = some.iter().filter_map(|(_, key, _)| set.get(key));
        let (calls, ns) = of.fold((0, 0.0), |(calls, ns), (count, sum)| (calls + count, ns + sum));
        ns / calls.max(1) as f64
    };
    let much =
        mean >= LEAST_TIMES * others && mean - others >= LEAST_NS && raw(slow) >= LEAST_TIMES * raw(quick);
    let errors = (mean - others) / error.max(1.0);
    let whole = if part == Some(PartOf::Connection) {
        measured.calls()?.execute_ns as f64
    } else {
        measured.operation_ns() as f64
    };
    let lost = share((mean - others) * count as f64, whole);
    if !apart || !much || errors < LEAST_ERRORS || lost < LEAST_SHARE {
        return None;
    }
    let keys: Vec<u32> = slow.iter().map(|(_, key, _)| *key).collect();
    let all = means.len();
    let files: u64 = measured.recording.filesets.iter().map(|set| set.files).max().unwrap_or(0);
    let (kind, what) = match part {
        Some(PartOf::File) if files > PartRow::FILES as u64 => {
            ("files", format!("{} of {all} groups of files (numbers modulo {})", keys.len(), PartRow::FILES))
        }
        Some(PartOf::File) => ("files", named("file", &keys, all, |key| key.to_string())),
        Some(PartOf::Connection) => {
            ("connections", named("connection", &keys, all, |key| (key + 1).to_string()))
        }
        Some(PartOf::Size) => ("sizes", named("size", &keys, all, |key| size((1_u64 << key.min(32)) as f64))),
        None => ("clients", named("client", &keys, all, |key| (key + 1).to_string())),
    };
    Some(Slow { what, kind, label: label.into(), mean, others, count, errors, lost })
}

/// `file 3 of 8`, `5 of 8 files`, `sizes 64 KiB, 128 KiB of 9`.
fn named(kind: &str, keys: &[u32], all: usize, name: impl Fn(u32) -> String) -> String {
    let names: Vec<String> = keys.iter().map(|key| name(*key)).collect();
    match names.len() {
        1 => format!("{kind} {} of {all}", names[0]),
        2..=4 => format!("{kind}s {} of {all}", names.join(", ")),
        many => format!("{many} of {}", plural(all, kind)),
    }
}

/// Standard deviation of the latencies of a series; of all operations where calls are compared.
fn spread(measured: &Measured<'_>, label: &str) -> Option<f64> {
    let series = measured.recording.series.iter().filter(|one| label.is_empty() || one.key.label == label);
    let of = series.filter_map(|one| one.total.latency.decode().ok()).filter(|latency| !latency.is_empty());
    of.map(|latency| latency.stdev()).reduce(f64::max)
}

fn finding(slow: &Slow, confidence: Confidence) -> Finding {
    let operation = if slow.label.is_empty() { "calls".into() } else { format!("`{}`", slow.label) };
    let what = format!(
        "Of {operation}, those of {} take {}, where the others take {}: {} of the time is theirs alone.",
        slow.what,
        time(slow.mean),
        time(slow.others),
        percent(slow.lost)
    );
    let name = format!("difference of means: {:.0} standard errors", slow.errors);
    let p = (benchmaster_stats::t_two_sided_p(slow.errors, 1e6) * PartRow::FILES as f64).min(1.0);
    Finding::new(confidence, what)
        .advised(case("slow-part", slow.kind))
        .with([
            Evidence::nanoseconds("mean of the slow ones", slow.mean),
            Evidence::nanoseconds("mean of the others", slow.others),
            Evidence::number("operations of the slow ones", slow.count as f64),
        ])
        .tested(name, p, None)
        .costs(slow.lost)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::{Recording, RpcSource};

    use super::*;
    use crate::results::phenomena::made;

    /// 800 reads, an eighth of them of 30 ms, the others of 1 ms.
    fn reads() -> Recording {
        let mut recording = made::recording("read", 10.0);
        made::series(&mut recording, OperationKind::Read, 16_384, &[(1_000_000, 700), (30_000_000, 100)]);
        made::workers(&mut recording, &[1.0; 4]);
        made::rpcs(&mut recording, RpcSource::Client, "3", &[("READ", 800, 16_384, 0.0, 4_625.0)]);
        recording
    }

    fn with(part: PartOf, label: &str, sums: &[(u32, u64, f64)]) -> Option<String> {
        let mut recording = reads();
        let row = |&(key, count, ms): &(u32, u64, f64)| PartRow {
            part,
            label: label.into(),
            key,
            count,
            sum_ns: (count as f64 * ms * 1e6) as u64,
        };
        recording.parts = sums.iter().map(row).collect();
        told(recording)
    }

    fn told(recording: Recording) -> Option<String> {
        match made::judge(recording, detect) {
            Verdict::Found(found) => Some(found.what),
            _ => None,
        }
    }

    #[test]
    fn a_slow_file_size_or_connection_is_named() {
        let files: Vec<_> = (0..8).map(|key| (key, 100, if key == 3 { 30.0 } else { 1.0 })).collect();
        let file = with(PartOf::File, "read", &files).unwrap();
        assert_eq!(
            file,
            "Of `read`, those of file 3 of 8 take 30 ms, where the others take 1 ms: 78 % of the time is theirs alone."
        );
        let connections = [(0, 200, 1.0), (1, 200, 1.1), (2, 200, 14.3), (3, 200, 1.0)];
        let connection = with(PartOf::Connection, "", &connections).unwrap();
        assert!(connection.starts_with("Of calls, those of connection 3 of 4 take 14.3 ms"), "{connection}");
        let size = with(PartOf::Size, "read", &[(12, 350, 1.0), (13, 350, 1.0), (16, 100, 30.0)]).unwrap();
        assert!(size.starts_with("Of `read`, those of size 64 KiB of 3 take"), "{size}");
    }

    #[test]
    fn what_is_alike_or_by_chance_or_has_more_bytes_is_not() {
        let files =
            |of: fn(u32) -> (u64, f64)| -> Vec<_> { (0..8).map(|key| (key, of(key).0, of(key).1)).collect() };
        assert_eq!(with(PartOf::File, "read", &files(|key| (100, 4.0 + f64::from(key) * 0.2))), None);
        // Few operations, in which the slow ones happened to be.
        assert_eq!(
            with(PartOf::File, "read", &files(|key| if key == 3 { (10, 12.0) } else { (112, 4.3) })),
            None
        );
        assert_eq!(with(PartOf::File, "read", &[(0, 800, 4.6)]), None);
        // 1 MiB takes 84 ms at 100 Mbit/s, and 21 ms where 64 KiB take no more than 1.3 ms; of that half is certain.
        assert_eq!(with(PartOf::Size, "read", &[(12, 700, 1.0), (20, 100, 80.0)]), None);
        // Less is left of the larger one after its bytes, and it is no quicker.
        assert_eq!(with(PartOf::Size, "read", &[(10, 400, 0.98), (13, 400, 0.99)]), None);
        let sizes =
            |large: f64| with(PartOf::Size, "read", &[(12, 350, 1.0), (16, 350, 1.3), (20, 100, large)]);
        assert_eq!(sizes(41.0), None);
        assert!(sizes(80.0).unwrap().contains("those of size 1 MiB of 3"));
    }

    #[test]
    fn clients_are_compared_where_there_are_few_runs() {
        let mut recording = reads();
        for worker in &mut recording.workers {
            worker.series[0].sum_ns =
                worker.series[0].count * if worker.client == 1 { 15_000_000 } else { 1_000_000 };
        }
        assert!(told(recording).unwrap().starts_with("Of `read`, those of client 2 of 4 take 15 ms"));
    }
}
