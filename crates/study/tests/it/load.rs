//! Load curves in study files: what they plan, and what cannot be meant.
use benchmaster_analysis::load::{Next, Observation, Point, Question, next};
use benchmaster_record::results::{LatencyMeasure, LoadCurve};
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::plan::design::TextForm;

const TEXT: &str = r#"
[study]
name = "s"
[target]
path = "/mnt/x"
[load]
workload = "w"
curve = "open"
from = "100/s"
to = "1600/s"
factor = 2
goal = { latency = "p99", at_most = "10ms" }
[design]
replicates = 5
[workload.w]
use = "random-read"
file_size = "10MiB"
workers = 8
"#;

fn plan(text: &str) -> Plan {
    let file = StudyFile::parse("s.toml", text).unwrap_or_else(|found| panic!("{found}"));
    Plan::from_study(&file, "1").unwrap_or_else(|found| panic!("{found}"))
}

#[test]
fn a_curve_begins_with_its_lowest_load() {
    let plan = plan(TEXT);
    let load = plan.study.design_details.load.as_ref().unwrap();
    assert_eq!((load.curve, load.factor, &*load.parameter), (LoadCurve::Open, 0, "workload.w.rate"));
    assert_eq!((&*load.group, &load.counted[..], load.per_flow), ("read", &["read".to_owned()][..], 1.0));
    let goal = load.goal.unwrap();
    assert_eq!((goal.latency, goal.at_most_ns), (LatencyMeasure::P99, 10e6));
    let loads = plan.study.factors[0].values.clone().unwrap();
    let risen: Vec<_> = load.rise.iter().map(|&level| loads[level as usize]).collect();
    assert_eq!(risen, [100.0, 200.0, 400.0, 800.0, 1600.0]);
    assert_eq!(plan.study.treatments.len(), 1);
    assert_eq!(plan.treatments[0].workloads[0].1.groups[0].rate.unwrap().0, 100.0);
    let text = plan.describe().render(TextForm { width: 100, all: false });
    assert!(text.contains("workload.w.rate from 100/s to 1600/s in 5 steps"), "{text}");
}

/// The runs of a curve in which all loads up to this one are achieved.
fn runs_made(plan: &Plan, limit: f64) -> u64 {
    let record = plan.study.design_details.load.as_ref().unwrap();
    let question = Question {
        curve: record.curve,
        loads: plan.study.factors[record.factor as usize].values.clone().unwrap(),
        rise: record.rise.clone(),
        achieved: record.achieved,
        goal: None,
        replicates: 5,
        max_replicates: record.max_replicates,
        confidence: 0.95,
    };
    let mut points: Vec<Point> = Vec::new();
    let mut runs = 0;
    while let Next::Run { level, replicates, .. } = next(&question, &points) {
        let load = question.loads[level as usize];
        let share = if load <= limit { 1.0 } else { 0.5 };
        let one = |run: u32| Observation {
            requested: Some(load),
            achieved: load * (share + 0.001 * f64::from(run % 2)),
            response_ns: 1e6 / share,
            service_ns: 1e6 / share,
            busy: 1.0,
            ..Observation::default()
        };
        points.push(Point { level, runs: (0..replicates).map(one).collect(), failed: 0 });
        points.sort_by_key(|point| point.level);
        runs += u64::from(replicates);
    }
    runs
}

#[test]
fn announced_runs_of_a_curve_are_those_that_are_made() {
    let plan = plan(TEXT);
    let found = plan.estimate();
    let likely = found.runs_likely.unwrap();
    for limit in [50.0, 100.0, 150.0, 300.0, 700.0, 1500.0, 1600.0] {
        let made = runs_made(&plan, limit);
        assert!((found.runs_min..=found.runs_max).contains(&made), "{limit}: {made} of {found:?}");
        // A limit in the upper half of the rise, or none.
        if limit >= 300.0 {
            assert!(likely <= 2 * made && made <= 2 * likely, "{limit}: {made} of {found:?}");
        }
    }
}

#[test]
fn every_treatment_of_the_factors_has_a_curve() {
    let factor =
        "[factors.size]\nparameter = \"workload.w.io_size\"\nlevels = [\"4KiB\", \"64KiB\"]\n[design]";
    let plan = plan(&TEXT.replace("[design]", factor));
    assert_eq!(plan.study.design_details.load.as_ref().unwrap().factor, 1);
    let rows: Vec<_> = plan.study.treatments.iter().map(|treatment| treatment.levels.clone()).collect();
    assert_eq!(rows, [[0, 0], [1, 0]]);
    // The loads are no factor of the design.
    assert_eq!(plan.describe().design.factors.len(), 1);
}

#[test]
fn a_flow_counts_once_however_many_operations_it_has() {
    let custom = r#"
[workload.w]
[workload.w.filesets.f]
files = 8
size = "64KiB"
[[workload.w.groups]]
name = "g"
workers = 4
rate = "10/s"
flow = [
  { op = "open", file = "random" },
  { repeat = 3, flow = [{ op = "read", io_size = "4KiB", offset = "random" }] },
  { op = "close" },
]
[workload.w.until]
duration = "1s"
"#;
    let (head, _) = TEXT.split_once("[workload.w]").unwrap();
    let plan = plan(&format!("{head}{custom}"));
    let load = plan.study.design_details.load.as_ref().unwrap();
    assert_eq!((&*load.parameter, load.per_flow), ("workload.w.groups[0].rate", 5.0));
    assert_eq!(load.counted, ["close", "open", "read"]);
}

#[track_caller]
fn refused(from: &str, to: &str, expected: &str) {
    let text = TEXT.replace(from, to);
    assert_ne!(text, TEXT, "the edit did nothing");
    let found = StudyFile::parse("s.toml", &text).unwrap_err().to_string();
    assert!(found.contains(expected), "{found}");
}

#[test]
fn what_cannot_be_meant_is_refused_at_its_place() {
    refused("workload = \"w\"", "workload = \"v\"", "unknown workload `v`");
    refused("from = \"100/s\"", "from = 100", "an open loop is loaded by a rate");
    refused("curve = \"open\"", "curve = \"closed\"", "a closed loop is loaded by workers");
    refused("to = \"1600/s\"", "to = \"50/s\"", "`to` is not above `from`");
    refused("factor = 2", "factor = 1", "by a `factor` of 1 or less");
    refused("factor = 2", "factor = 2\npoints = 5", "`factor` and `points` both say");
    refused("factor = 2", "resolution = 0.001", "the `resolution` is a share");
    refused("to = \"1600/s\"", "to = \"1000000000000/s\"\nresolution = 0.01", "too many");
    refused("at_most = \"10ms\"", "at_most = \"0ms\"", "no latency is at most 0");
    refused("replicates = 5", "replicates = 1", "one run of a load has no interval");
    refused("replicates = 5", "kind = \"one-at-a-time\"", "a curve is measured for every combination");
    refused("replicates = 5", "replicates = { min = 5, max = 10 }", "the distance from a limit");
    refused("replicates = 5", "blocks = \"replicates\"", "are not blocked");
    refused("factor = 2", "parameter = \"workload.w.io_size\"", "is not the rate of the workload");
    refused("random-read\"\nfile_size = \"10MiB\"", "metadata\"", "`workload.w.rate`");
    let factor =
        "[factors.load]\nparameter = \"workload.w.io_size\"\nlevels = [\"4KiB\", \"8KiB\"]\n[design]";
    refused("[design]", factor, "no other factor can be called `load`");
    let same = "[factors.r]\nparameter = \"workload.w.rate\"\nlevels = [\"4/s\", \"8/s\"]\n[design]";
    refused("[design]", same, "both set `workload.w.rate`");
}
