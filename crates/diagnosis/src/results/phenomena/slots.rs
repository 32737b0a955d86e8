//! More threads than a session has slots.

use benchmaster_analysis::counts;

use super::levels::{Axis, Point, axes, is_at, name, placed, points, rates, ratio, runs_at, typical};
use super::tools::digits;
use crate::prelude::*;

/// The most that the rate may rise beyond the slots.
const MOST_RISE: f64 = 1.15;
/// Share of the calls' time in the queue beyond the slots.
const LEAST_QUEUE: f64 = 0.2;
/// Times as much is asked for.
const LEAST_MORE: f64 = 1.5;

pub(super) const COMPARISON: Comparison = Comparison { id: "threads-beyond-slots", compare };

fn compare(whole: &Whole<'_>) -> Compared {
    let axes = axes(whole, |path| {
        let last = path.rsplit('.').next().unwrap_or(path);
        path.starts_with("workload.") && matches!(last, "workers" | "queue_depth" | "outstanding")
    });
    let mut compared = Compared::nothing(false);
    for axis in &axes {
        for workload in &whole.results.study.workloads {
            let Some(slots) = slots(whole, &workload.name) else { continue };
            let asked: Vec<Option<u64>> = (0..axis.factor.levels.len())
                .map(|level| asked(whole, axis, level, &workload.name))
                .collect();
            let within = (0..asked.len())
                .filter(|level| asked[*level].is_some_and(|asked| asked <= slots))
                .max_by_key(|level| asked[*level]);
            let beyond = (0..asked.len())
                .filter(|level| asked[*level].is_some_and(|asked| asked > slots))
                .max_by_key(|level| asked[*level]);
            let (Some(within), Some(beyond)) = (within, beyond) else { continue };
            compared.irrelevant = false;
            let Some(response) = rates(whole, &workload.name) else { continue };
            let points: Vec<Point> = points(whole, axis, &response, &[])
                .into_iter()
                .filter(|point| has_slots(whole, axis, point, &workload.name))
                .collect();
            let Some((_, found)) = ratio(&points, within, beyond, 0.95) else {
                compared.unknown =
                    Some("two runs or more at each number of threads tell it: more `replicates`".into());
                continue;
            };
            let more = asked[beyond].unwrap_or(0) as f64 / asked[within].unwrap_or(1).max(1) as f64;
            let queue = queue(whole, axis, beyond, &workload.name);
            if found.upper > MOST_RISE || more < LEAST_MORE || queue < LEAST_QUEUE {
                continue;
            }
            let (rates, asked) = (
                [within, beyond].map(|level| typical(&points, level).unwrap_or(0.0)),
                asked[beyond].unwrap_or(0),
            );
            let speed = |value: f64| {
                if response.ends_with("throughput") { rate(value) } else { format!("{}/s", digits(value)) }
            };
            let what = format!(
                "A session has {slots} slots. With {} the rate is {}; with {} and {asked} operations at once it is {} ({} times, 95 % interval {} to {}): calls spend {} of their time waiting for a slot.",
                name(axis, within),
                speed(rates[0]),
                name(axis, beyond),
                speed(rates[1]),
                digits(found.value),
                digits(found.lower),
                digits(found.upper),
                percent(queue)
            );
            let remedy = Remedy::new("Give the session more slots, as far as the server grants them; mount again under another address or with version 3 where threads need more; several clients have a session each.")
                .by(Need::OwnClient, format!("--set target.slots={asked} --set server.slots={asked}"))
                .by(Need::KernelClient, format!("echo 'options nfs max_session_slots={asked}' > /etc/modprobe.d/nfs.conf"))
                .confirmed_by("`studies/paper001-file-creation.toml` with `target.slots` and `server.slots` as a factor");
            let finding = Finding::new(Confidence::Likely, what)
                .advised(remedy)
                .with([
                    Evidence::number("slots of a session", slots as f64),
                    Evidence::number("rate beyond the slots / within", found.value),
                    Evidence::number("share of the calls' time in the queue, beyond", queue),
                ])
                .tested("ratio of the rates, t on logarithms, within the other factors", None, found)
                .costs(queue);
            let finding = placed(whole, finding, Some(&workload.name), axis, beyond);
            compared.found.push(with_sessions(whole, finding, &workload.name));
        }
    }
    compared
}

/// The slots that sessions had.
fn slots(whole: &Whole<'_>, workload: &str) -> Option<u64> {
    let recordings = whole.results.runs.iter().filter(|run| counts(run)).flat_map(|run| &run.recordings);
    let slots = recordings
        .filter(|recording| recording.workload == workload)
        .filter_map(|recording| recording.rpc.as_ref()?.connection.slots);
    slots.map(u64::from).min()
}

/// Operations that a client has under way at a level.
fn asked(whole: &Whole<'_>, axis: &Axis<'_>, level: usize, workload: &str) -> Option<u64> {
    let at_level = |run: &&RunRecord| {
        let treatment = whole.results.study.treatments.get(run.key.treatment as usize);
        treatment.is_some_and(|treatment| is_at(treatment, axis.number, level))
    };
    let workload = whole.results.runs.iter().find(at_level)?.parameters.workload(workload)?;
    Some(workload.groups.iter().map(|group| u64::from(group.workers) * u64::from(group.queue_depth)).sum())
}

/// Whether runs of a point's stratum have sessions: version 3 has none.
fn has_slots(whole: &Whole<'_>, axis: &Axis<'_>, point: &Point, workload: &str) -> bool {
    let study = &whole.results.study;
    whole.results.runs.iter().filter(|run| counts(run)).any(|run| {
        let Some(treatment) = study.treatments.get(run.key.treatment as usize) else { return false };
        let mut others = treatment.levels.clone();
        if axis.number < others.len() {
            others.remove(axis.number);
        }
        let recording = run.recordings.iter().find(|recording| recording.workload == workload);
        others == point.stratum.0
            && recording.is_some_and(|recording| {
                recording.rpc.as_ref().is_some_and(|rpc| rpc.connection.slots.is_some())
            })
    })
}

/// Of the treatments at the level those whose clients have sessions, each with the queue of its own calls.
fn with_sessions(whole: &Whole<'_>, mut finding: Finding, workload: &str) -> Finding {
    let Some(at) = &mut finding.at else { return finding };
    at.treatments.retain_mut(|treatment| {
        let runs = whole.results.runs.iter().filter(|run| treatment.runs.contains(&run.key));
        let Some(queue) = queue_of(runs, workload) else { return false };
        treatment.cost = Some(queue);
        true
    });
    at.treatments.sort_by(|a, b| b.cost.unwrap_or(0.0).total_cmp(&a.cost.unwrap_or(0.0)));
    at.shown = at.treatments.first().and_then(|treatment| treatment.runs.first()).copied();
    finding
}

/// The share of the calls' time that they wait to be sent, at a level.
fn queue(whole: &Whole<'_>, axis: &Axis<'_>, level: usize, workload: &str) -> f64 {
    queue_of(runs_at(whole, axis, level).filter(|run| counts(run)), workload).unwrap_or(0.0)
}

/// The same of runs; `None` where none of them has sessions.
fn queue_of<'a>(runs: impl Iterator<Item = &'a RunRecord>, workload: &str) -> Option<f64> {
    let rpcs = runs
        .flat_map(|run| &run.recordings)
        .filter(|recording| recording.workload == workload)
        .filter_map(|recording| recording.rpc.as_ref());
    let phases =
        rpcs.filter(|rpc| rpc.connection.slots.is_some()).filter_map(|rpc| rpc.phase(Phase::Measure));
    let (mut queue, mut execute) = (0.0, 0.0);
    let mut any = false;
    for row in phases.flat_map(|phase| &phase.rows) {
        any = true;
        queue += row.queue_ns as f64;
        execute += row.execute_ns as f64;
    }
    any.then(|| share(queue, execute))
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::RpcSource;
    use benchmaster_record::results::Unit;

    use super::super::made;
    use super::*;

    /// Rates with 16, 64 and 256 threads, and the queue with the most of them in µs beside a round trip of 300.
    fn verdict(rates: [f64; 3], queue_us: f64, slots: u32) -> Compared {
        let mut results = made::study(
            "[study]\nname = \"made\"\n[target]\nurl = \"nfs://{server}/export?version=4.1\"\n[factors.threads]\nparameter = \"workload.create.workers\"\nlevels = [16, 64, 256]\n\
             [workload.create]\nuse = \"file-creation\"\nfiles = 1000\n",
        );
        for (level, value) in rates.into_iter().enumerate() {
            for wobble in [0.99, 1.0, 1.01] {
                let mut recording = made::recording("create", 10.0);
                let queue = if level == 2 { queue_us } else { 0.0 };
                made::rpcs(&mut recording, RpcSource::Client, "4.1", &[("OPEN", 10_000, 300, queue, 300.0)]);
                if let Some(rpc) = &mut recording.rpc {
                    rpc.connection.slots = Some(slots);
                }
                made::add(
                    &mut results,
                    level as u32,
                    vec![recording],
                    &[("create.operations", value * wobble, Unit::OperationsPerSecond)],
                );
            }
        }
        made::compare(&results, compare)
    }

    #[test]
    fn flat_beyond_the_slots() {
        let found = verdict([4_000.0, 9_000.0, 8_500.0], 900.0, 64);
        let [finding] = &found.found[..] else { panic!("{found:?}") };
        assert!(
            finding.what.starts_with("A session has 64 slots. With 64 the rate is 9000/s; with 256"),
            "{}",
            finding.what
        );
        assert!((finding.cost.as_ref().unwrap().share - 0.75).abs() < 1e-9);
        // It goes on rising; nobody waits; there are enough slots.
        assert!(verdict([4_000.0, 9_000.0, 14_000.0], 900.0, 64).found.is_empty());
        assert!(verdict([4_000.0, 9_000.0, 8_500.0], 70.0, 64).found.is_empty());
        assert!(verdict([4_000.0, 9_000.0, 8_500.0], 900.0, 256).irrelevant);
    }
}
