//! Which of several limits is the limit.

use crate::diagnosis::{Absent, Diagnosis, Explained, Limiting};
use crate::explanation::{self, Group};
use crate::prelude::*;

/// What explains less than this is not the limit, whatever else is not known.
const LEAST_SHARE: f64 = 0.3;

pub(in crate::results) const ID: &str = "limit-not-determined";

fn group_of(id: &str) -> Option<Group> {
    Some(explanation::find(id)?.group)
}

/// Says for each workload and treatment what limits it, and what to collect where that is not known.
pub(in crate::results) fn choose(whole: &Whole<'_>, diagnosis: &mut Diagnosis) {
    let results = whole.results;
    for workload in &results.study.workloads {
        let mut open = Vec::new();
        let mut looked = 0;
        for treatment in &results.study.treatments {
            let runs = of(results, treatment.index, &workload.name);
            if runs.is_empty() {
                continue;
            }
            looked += 1;
            let mut limits =
                costs(diagnosis, &workload.name, treatment.index, |group, _| group == Group::Limit);
            let leads = |one: &Explained| one.share >= LEAST_SHARE && one.runs * 2 >= one.of;
            let closed = !runs.iter().any(|(_, recording)| recording.is_open_loop());
            let others = || costs(diagnosis, &workload.name, treatment.index, takes_time);
            let limit = match limits.iter().position(leads) {
                Some(first) => Some(limits.remove(first)),
                None if closed => others().into_iter().find(leads),
                None => None,
            };
            if limit.is_none() && closed {
                open.push(treatment.label.as_str());
            }
            if limit.is_some() || !limits.is_empty() || closed {
                diagnosis.limits.push(Limiting {
                    workload: workload.name.clone(),
                    treatment: treatment.index,
                    label: treatment.label.clone(),
                    limit,
                    contributing: limits,
                    account: Vec::new(),
                });
            }
        }
        if !open.is_empty() {
            let absent = undetermined(&workload.name, &open, looked, diagnosis);
            diagnosis.absent.push(absent);
        }
    }
}

/// What findings of some kind explain of the time of a workload in a treatment; the largest share first.
fn costs(
    diagnosis: &Diagnosis,
    workload: &str,
    treatment: u32,
    wanted: fn(Group, CostOf) -> bool,
) -> Vec<Explained> {
    let explained = |finding: &Finding| {
        let (group, of) = (group_of(finding.id)?, finding.cost.as_ref()?.of);
        let at = finding.at.as_ref().filter(|at| at.workload.as_deref() == Some(workload))?;
        let there = at.treatments.iter().find(|there| there.treatment == treatment)?;
        let share = there.cost.filter(|_| wanted(group, of))?;
        Some(Explained { id: finding.id, share, runs: there.runs.len(), of: there.of })
    };
    let mut costs: Vec<Explained> = diagnosis.findings.iter().filter_map(explained).collect();
    costs.sort_by(|a, b| b.share.total_cmp(&a.share));
    costs
}

/// Whether a finding tells what the time goes to, which is what limits a closed loop.
fn takes_time(group: Group, of: CostOf) -> bool {
    matches!(group, Group::Phenomenon | Group::Condition)
        && matches!(of, CostOf::CallTime | CostOf::OperationTime | CostOf::Time)
}

/// The workload in the runs of a treatment; of those only whose rates mean something.
fn of<'r>(results: &'r StudyResults, treatment: u32, workload: &str) -> Vec<(&'r RunRecord, &'r Recording)> {
    let usable = |run: &&RunRecord| {
        run.failure.is_none()
            && run.key.treatment == treatment
            && run.lab.as_ref().is_none_or(|lab| !lab.is_virtual())
    };
    let runs = results.runs.iter().filter(usable);
    let recording = |run: &'r RunRecord| {
        let found = run.recordings.iter().find(|recording| recording.workload == workload)?;
        Some((run, found))
    };
    runs.filter_map(recording).collect()
}

/// What was not there for the detectors of limits.
fn undetermined(workload: &str, open: &[&str], looked: usize, diagnosis: &Diagnosis) -> Absent {
    let prefix = format!("{workload}, ");
    let mut missing: Vec<&str> = Vec::new();
    for absent in &diagnosis.absent {
        let of_limits = group_of(absent.id) == Some(Group::Limit);
        if of_limits && absent.place.starts_with(&prefix) && !missing.contains(&absent.why.as_str()) {
            missing.push(&absent.why);
        }
    }
    let place = match (open, looked) {
        (_, 1) => workload.to_owned(),
        ([one], _) => format!("{workload}, {one}"),
        (several, looked) => format!("{workload}, {} of {looked} treatments", several.len()),
    };
    let is_noisy = |finding: &Finding| {
        let at = finding.at.as_ref();
        finding.id == "noisy-host" && at.is_some_and(|at| at.workload.as_deref() == Some(workload))
    };
    if diagnosis.findings.iter().any(is_noisy) {
        let why = "other programs took the processors of a client (`noisy-host`), which hides what limits: repeat it \
                   on a quiet host";
        return Absent { id: ID, place, why: why.into() };
    }
    let more =
        "a load curve over the workers tells whether more load gives more (`studies/load-curve-closed.toml`)";
    let why = match missing.as_slice() {
        [] => format!("nothing that is looked for explains {:.0} % of the time; {more}", LEAST_SHARE * 100.0),
        missing => format!("what was found explains too little, and {}; {more}", missing.join("; ")),
    };
    Absent { id: ID, place, why }
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::analyze;
    use benchmaster_record::results::CheckKind;
    use benchmaster_record::results::ServedBy;

    use super::*;
    use crate::finding::Confidence;
    use crate::results::testing::{Made, NoDetails};

    fn diagnosed(made: &Made) -> Diagnosis {
        crate::results::diagnose(&made.results, &analyze(&made.results), &NoDetails)
    }

    #[test]
    fn on_a_noisy_host_a_quiet_one_is_asked_for() {
        let noisy = |workload: &str| {
            let mut finding = Finding::new(Confidence::Likely, "");
            finding.id = "noisy-host";
            finding.at.get_or_insert_default().workload = Some(workload.into());
            let diagnosis = Diagnosis { findings: vec![finding], ..Diagnosis::default() };
            undetermined("write", &["a", "b"], 3, &diagnosis)
        };
        assert_eq!(noisy("write").place, "write, 2 of 3 treatments");
        assert!(noisy("write").why.contains("quiet host"));
        assert!(noisy("read").why.contains("load curve"));
    }

    /// Calls of `mean_ns`, of which `queue` is waiting for slots, over a delay of 1 ms each way.
    fn made(mean_ns: u64, queue: f64) -> Made {
        let mut made = Made::served();
        for row in made.rows() {
            row.transmissions = row.ops;
            row.execute_ns = row.ops * mean_ns;
            row.queue_ns = (row.execute_ns as f64 * queue) as u64;
            row.rtt_ns = row.execute_ns - row.queue_ns;
        }
        made.checked(CheckKind::SlotsExhausted, "write", &[("waits", 1e3), ("queue_share", queue)]);
        made
    }

    #[test]
    fn the_limit_is_what_explains_most_and_others_contribute() {
        let diagnosis = diagnosed(&made(4_000_000, 0.4));
        let write = diagnosis.limits.iter().find(|limiting| limiting.workload == "write").unwrap();
        let shares = |of: &[Explained]| of.iter().map(|one| one.id).collect::<Vec<_>>();
        assert_eq!(write.limit.as_ref().unwrap().id, "emulated-delay");
        assert_eq!(shares(&write.contributing), ["slots-exhausted"]);
        let diagnosis = diagnosed(&made(7_000_000, 0.6));
        let write = diagnosis.limits.iter().find(|limiting| limiting.workload == "write").unwrap();
        assert_eq!(write.limit.as_ref().unwrap().id, "slots-exhausted");
        assert!(!diagnosis.absent.iter().any(|absent| absent.id == ID && absent.place == "write"));
    }

    /// Of a server of which nothing is known.
    fn unknown() -> Made {
        let mut made = Made::served();
        for run in &mut made.results.runs {
            let service = run.service.as_mut().unwrap();
            (service.server, service.network) = (ServedBy::External, Default::default());
        }
        made
    }

    #[test]
    fn without_a_limit_it_is_what_else_takes_the_time() {
        let limit = |ms: u64| {
            let mut made = unknown();
            let rows = made.rows();
            rows.retain(|row| row.operation == "WRITE");
            let mut commits = rows[0].clone();
            (commits.operation, commits.transmissions) = ("COMMIT".into(), commits.ops);
            commits.execute_ns = commits.ops * ms * 1_000_000;
            (commits.rtt_ns, commits.queue_ns) = (commits.execute_ns, 0);
            rows.push(commits);
            let write = diagnosed(&made).limits.into_iter().find(|limiting| limiting.workload == "write");
            write.unwrap().limit.map(|limit| limit.id)
        };
        assert_eq!(limit(1000), Some("commits"));
        assert_eq!(limit(0), None);
    }

    #[test]
    fn what_is_not_determined_says_what_to_collect() {
        let nothing = unknown();
        let diagnosis = diagnosed(&nothing);
        let absent: Vec<_> = diagnosis.absent.iter().filter(|absent| absent.id == ID).collect();
        // `read` is an open loop.
        assert_eq!(absent.len(), 1, "{absent:?}");
        assert_eq!(absent[0].place, "write");
        assert!(
            absent[0].why.contains("baseline = true") && absent[0].why.contains("load curve"),
            "{}",
            absent[0].why
        );
        assert!(diagnosis.limits.iter().all(|limiting| limiting.limit.is_none()));
    }
}
