//! Designs of study files: their treatments, the order of their runs in blocks, whole plots and stages, and what is added.
use std::collections::{BTreeMap, BTreeSet, HashSet};

use benchmaster_analysis::schedule::{Next, ScheduledRun, first_runs, next};
use benchmaster_record::results::{BlocksRecord, Replication, RunKey, StageKind, StudyRecord};
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::plan::extend::{ExtendError, Extension};
use jiff::Timestamp;
use proptest::prelude::*;

/// A study of `two` factors of two levels and `more` others, with this in `[design]`.
fn text(two: usize, more: &[usize], design: &str) -> String {
    let mut text = "[study]\nname = \"s\"\nseed = 5\n[target]\npath = \"/x\"\n".to_owned();
    let levels = std::iter::repeat_n(2, two).chain(more.iter().copied());
    for (number, count) in levels.enumerate() {
        let values: Vec<_> = (0..count).map(|level| 2 * level + 1).collect();
        text += &format!(
            "[factors.f{number}]\nparameter = \"workload.w{number}.workers\"\nlevels = {values:?}\n"
        );
    }
    text += &format!("[design]\n{design}\n");
    for number in 0..(two + more.len()).max(1) {
        text += &format!("[workload.w{number}]\nuse = \"metadata\"\n");
    }
    text
}

fn plan(two: usize, more: &[usize], design: &str) -> Plan {
    let text = text(two, more, design);
    let made = StudyFile::parse("s.toml", &text).and_then(|file| Plan::from_study(&file, "1"));
    made.unwrap_or_else(|found| panic!("{found}\n{text}"))
}

fn refused(two: usize, more: &[usize], design: &str) -> String {
    let made =
        StudyFile::parse("s.toml", &text(two, more, design)).and_then(|file| Plan::from_study(&file, "1"));
    made.unwrap_err().to_string()
}

fn rows(plan: &Plan) -> Vec<Vec<u32>> {
    plan.study.treatments.iter().map(|treatment| treatment.levels.clone()).collect()
}

#[test]
fn fractions_are_chosen_in_four_ways() {
    let paper = plan(6, &[], "kind = \"fractional\"\ngenerators = [\"D=AB\", \"f4=f0*f2\", \"F=-BC\"]");
    assert_eq!(paper.study.design, "fractional");
    assert_eq!(paper.study.design_details.generators, ["D=AB", "E=AC", "F=-BC"]);
    assert_eq!(paper.treatments.len(), 8);
    for row in rows(&paper) {
        let product = |a: u32, b: u32| u32::from(a == b);
        assert_eq!((row[3], row[4]), (product(row[0], row[1]), product(row[0], row[2])));
        assert_eq!(row[5], 1 - product(row[1], row[2]));
    }
    assert_eq!(plan(6, &[], "kind = \"fractional\"\nresolution = 4").treatments.len(), 16);
    assert_eq!(plan(6, &[], "kind = \"fractional\"\nruns = 32").treatments.len(), 32);
    let clear = plan(5, &[], "kind = \"fractional\"\nclear = [\"f0\", \"f0*f1\"]");
    assert_eq!(clear.study.design_details.interest, [vec![0], vec![0, 1]]);
    assert_eq!(clear.treatments.len(), 16);
    let marked = plan(3, &[], "clear = [\"AB\"]");
    assert_eq!((marked.treatments.len(), &marked.study.design_details.interest[..]), (8, &[vec![0, 1]][..]));
}

#[test]
fn other_kinds_of_designs() {
    assert_eq!(plan(11, &[], "kind = \"plackett-burman\"").treatments.len(), 12);
    assert_eq!(plan(5, &[3], "kind = \"orthogonal-array\"\nruns = 48").treatments.len(), 48);
    assert_eq!(plan(5, &[3], "kind = \"orthogonal-array\"").treatments.len(), 24);
    assert_eq!(plan(2, &[3], "kind = \"one-at-a-time\"").treatments.len(), 5);
    let listed =
        plan(1, &[3], "kind = \"explicit\"\ntreatments = [{ f0 = 3, f1 = \"5\" }, { f0 = 1, f1 = 1 }]");
    assert_eq!(rows(&listed), [vec![1, 2], vec![0, 0]]);
    assert_eq!(listed.study.treatments[0].label, "f0=3 f1=5");
}

#[test]
fn what_is_excluded_is_left_out_and_recorded() {
    let plan = plan(2, &[3], "exclude = [{ f0 = 3, f2 = 5 }, { f1 = 3, f2 = 1 }]");
    let left: BTreeSet<_> = rows(&plan).into_iter().collect();
    assert_eq!(left.len(), 8);
    assert!(left.iter().all(|row| !(row[0] == 1 && row[2] == 2 || row[1] == 1 && row[2] == 0)));
    let excluded: BTreeSet<_> = plan.study.design_details.excluded.iter().cloned().collect();
    assert_eq!(excluded.len(), 4);
    assert!(left.is_disjoint(&excluded));
}

#[test]
fn values_of_factors_are_known_as_numbers() {
    let plan = plan(1, &[3], "");
    assert_eq!(plan.study.factors[1].values, Some(vec![1.0, 3.0, 5.0]));
    let text = text(0, &[], "").replace(
        "[design]",
        "[factors.both]\nlevels = { a = { \"workload.w0.workers\" = 1, \"run.retries\" = 1 }, b = { \"workload.w0.workers\" \
         = 2, \"run.retries\" = 2 } }\n[factors.cache]\nparameter = \"run.cache\"\nlevels = [\"keep\", \"drop\"]\n[design]",
    );
    let file = StudyFile::parse("s.toml", &text).unwrap();
    assert!(file.factors.iter().all(|factor| factor.values.is_none()));
}

#[test]
fn centre_points_lie_in_the_middle_of_all_factors() {
    let plan = plan(2, &[], "centre_points = 3\nreplicates = 5");
    let study = &plan.study;
    assert_eq!(study.factors[0].levels, ["1", "3", "2"]);
    assert_eq!(study.factors[0].values, Some(vec![1.0, 3.0, 2.0]));
    assert_eq!((study.design_levels(), study.design_details.centre_points), (vec![2, 2], 3));
    let centre = study.treatments.last().unwrap();
    assert!(centre.centre && centre.levels == [2, 2] && centre.label == "f0=2 f1=2 (centre)");
    let workers = plan.treatments[4].workloads[1].1.groups[0].workers;
    assert_eq!(workers, 2);
    let order = first_runs(study);
    let at: Vec<_> =
        order.iter().enumerate().filter(|(_, run)| run.key.treatment == 4).map(|(at, _)| at).collect();
    assert_eq!((order.len(), at), (23, vec![0, 11, 22]));

    let blocked = self::plan(2, &[], "centre_points = 2\nreplicates = 3\nblocks = \"replicates\"");
    let order = first_runs(&blocked.study);
    assert_eq!(order.len(), 18);
    for block in order.chunks(6) {
        assert!(block[0].key.treatment == 4 && block[5].key.treatment == 4);
        assert!(block.iter().all(|run| run.block == block[0].block));
    }
}

/// Results directories are resumed by later versions: without blocks and whole plots the order is that of all runs.
#[test]
fn plain_designs_keep_their_orders() {
    let study = plan(2, &[], "replicates = 5").study;
    let plain: Vec<_> = first_runs(&study).iter().map(|run| (run.key.treatment, run.key.replicate)).collect();
    assert_eq!(plain, benchmaster_design::run_order(4, 5, benchmaster_design::Order::Random, 5));
    assert!(first_runs(&study).iter().all(|run| run.block.is_none() && run.whole_plot.is_none()));
}

#[test]
fn blocks_with_names_take_turns_and_change_parameters() {
    let design = "replicates = 4\n[[design.blocks]]\nname = \"few\"\nset = { \"run.retries\" = 1 }\n[[design.blocks]]\n\
                  name = \"many\"\nat = \"09:00\"\nset = { run.retries = 7 }";
    let plan = plan(2, &[], design);
    assert_eq!(
        plan.study.design_details.blocks,
        Some(BlocksRecord::Named { names: vec!["few".into(), "many".into()] })
    );
    assert_eq!(plan.treatment(3, Some(0)).unwrap().settings.run.retries, 1);
    assert_eq!(plan.treatment(3, Some(1)).unwrap().settings.run.retries, 7);
    assert_eq!(plan.treatments[3].settings.run.retries, 1);
    assert_eq!(plan.all_treatments().count(), 8);
    let blocks: Vec<_> = first_runs(&plan.study).iter().map(|run| run.block.unwrap()).collect();
    assert_eq!(blocks, [0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
}

#[test]
fn confounded_blocks_hold_half_of_the_treatments_each() {
    let plan = plan(3, &[], "replicates = 5\nblocks = { count = 2 }");
    let Some(BlocksRecord::Confounded { count: 2, effects }) = &plan.study.design_details.blocks else {
        panic!("{:?}", plan.study.design_details.blocks)
    };
    assert_eq!(effects, &[vec![0, 1, 2]]);
    for treatment in &plan.study.treatments {
        let even = treatment.levels.iter().sum::<u32>().is_multiple_of(2);
        let same = plan.study.treatments.iter().find(|t| t.block == treatment.block).unwrap();
        assert_eq!(same.levels.iter().sum::<u32>().is_multiple_of(2), even, "ABC decides about the block");
    }
}

#[test]
fn what_cannot_be_made_is_said_with_what_can() {
    let says = |two, more: &[usize], design: &str, parts: &[&str]| {
        let found = refused(two, more, design);
        for part in parts {
            assert!(found.contains(part), "`{part}` is not in\n{found}");
        }
    };
    says(6, &[], "kind = \"fractional\"\nruns = 12", &["12 runs", "take a power of two from 8 to 2^6"]);
    says(1, &[3], "kind = \"fractional\"\nruns = 4", &["`f1` has 3", "orthogonal-array"]);
    says(2, &[], "exclude = [{ f0 = 1 }, { f0 = 3 }]", &["`exclude` leaves no treatment"]);
    says(2, &[], "exclude = [{ f0 = 1 }]", &["the level `3` of `f0`, and it does not vary"]);
    says(1, &[3], "centre_points = 1", &["`f1` has none: it has 3 levels"]);
    says(3, &[], "blocks = { count = 8 }", &["8 blocks cannot be made of 8 runs", "from 2 to 4"]);
    says(5, &[3], "kind = \"orthogonal-array\"\nruns = 25", &["no orthogonal array of 25 runs"]);
    says(48, &[], "kind = \"plackett-burman\"", &["1 to 47 factors, not 48"]);
}

fn now() -> Timestamp {
    Timestamp::from_second(1_800_000_000).unwrap()
}

/// The study with a stage.
fn extended(plan: &Plan, extension: &Extension) -> Plan {
    let proposal = plan.extend(extension, now()).unwrap();
    let mut study = plan.study.clone();
    study.treatments.extend(proposal.new);
    study.stages.push(proposal.stage);
    plan.with_stages(&study).unwrap()
}

const PAPER: &str = "kind = \"fractional\"\ngenerators = [\"D=AB\", \"E=AC\", \"F=BC\"]\nreplicates = 5";

#[test]
fn a_foldover_adds_the_other_levels() {
    let plan = plan(6, &[], PAPER);
    let whole = extended(&plan, &Extension::fold("all", &plan).unwrap());
    let stage = &whole.study.stages[0];
    assert_eq!((stage.number, stage.kind, stage.treatments.len()), (1, StageKind::Foldover, 8));
    assert_eq!(whole.study.treatments.len(), 16);
    for (first, folded) in rows(&whole)[..8].iter().zip(&rows(&whole)[8..]) {
        assert!(first.iter().zip(folded).all(|(a, b)| a + b == 1));
    }
    assert!(whole.study.treatments[8..].iter().all(|treatment| treatment.stage == 1));
    assert!(
        matches!(Extension::fold("f0,f9", &plan), Err(ExtendError::NoFactor { name, .. }) if name == "f9")
    );
    let full = self::plan(2, &[], "");
    let same = full.extend(&Extension::Fold(vec![0]), now()).unwrap_err().to_string();
    assert!(same.contains("`f0` gives the treatments that were run before"), "{same}");
}

#[test]
fn half_a_foldover_adds_half_as_many() {
    let plan = plan(6, &[], "kind = \"fractional\"\nruns = 16\nreplicates = 5");
    let proposal = plan.extend(&Extension::semifold("A", &plan).unwrap(), now()).unwrap();
    assert_eq!((proposal.stage.kind, proposal.new.len()), (StageKind::Semifold, 8));
    assert!(proposal.stage.reason.contains("with the levels of `f0` exchanged"), "{}", proposal.stage.reason);
}

#[test]
fn effects_are_resolved_by_few_treatments() {
    let plan = plan(6, &[], PAPER);
    let whole = extended(&plan, &Extension::resolve("f1*f5", &plan).unwrap());
    let stage = &whole.study.stages[0];
    assert!((1..=8).contains(&stage.treatments.len()), "{stage:?}");
    // Together with the stage as a block the effect is estimable.
    let added = whole.study.treatments[8..].iter().map(|treatment| treatment.levels.clone());
    let with_stage: Vec<Vec<u32>> = rows(&plan)
        .into_iter()
        .map(|row| [row, vec![0]].concat())
        .chain(added.map(|row| [row, vec![1]].concat()))
        .collect();
    let known = benchmaster_design::structure::structure(&with_stage, &[2; 7], 2).unwrap();
    let term = known.terms.iter().find(|term| term.factors == [1, 5]).unwrap();
    assert!(!term.aliases.iter().any(|(_, correlation)| correlation.abs() > 0.999), "{term:?}");
    let clear = self::plan(3, &[], "");
    let nothing = clear.extend(&Extension::resolve("f0*f1", &clear).unwrap(), now()).unwrap_err().to_string();
    assert!(nothing.contains("can already be separated"), "{nothing}");
    let error = Extension::resolve("f0*f9", &plan).unwrap_err().to_string();
    assert!(error.contains("`f9`"), "{error}");
}

#[test]
fn a_stored_study_is_planned_again_with_its_stages() {
    let plan = plan(6, &[], PAPER);
    let whole = extended(&plan, &Extension::Fold(Vec::new()));
    assert_eq!(Plan::of_results(&whole.study).unwrap().study, whole.study);
    benchmaster_study::plan::compatible(&whole.study, &plan).unwrap();
}

type Done = Vec<(RunKey, Option<f64>)>;

fn value(key: RunKey) -> Option<f64> {
    let mixed = (key.treatment * 7919 + key.replicate * 104_729).wrapping_mul(2_654_435_761) >> 8;
    (!mixed.is_multiple_of(7))
        .then_some(100.0 + f64::from(mixed % 1000) / 30.0 * f64::from(key.treatment % 3))
}

fn execute(study: &StudyRecord, mut done: Done) -> Vec<ScheduledRun> {
    let mut order = Vec::new();
    while let Next::Run { key, position, run, .. } = next(study, &done) {
        assert_eq!((position as usize, run.key), (done.len(), key));
        assert!(done.len() < 5_000, "it does not end");
        done.push((key, value(key)));
        order.push(run);
    }
    order
}

/// No label comes again after another has come.
fn is_contiguous<T: Ord>(labels: impl IntoIterator<Item = T>) -> bool {
    let mut labels: Vec<_> = labels.into_iter().collect();
    labels.dedup();
    let count = labels.len();
    labels.into_iter().collect::<BTreeSet<_>>().len() == count
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn every_schedule_is_complete_contiguous_and_resumable(
        blocks in prop_oneof![
            Just(""), Just("blocks = \"replicates\""), Just("blocks = { count = 2 }"),
            Just("blocks = [{ name = \"a\" }, { name = \"b\" }]"),
        ],
        hard in prop_oneof![Just(""), Just("hard_to_change = [\"f1\"]"), Just("hard_to_change = [\"f0\", \"f2\"]")],
        centre in prop_oneof![Just(""), Just("centre_points = 3")],
        sequential: bool, stage: bool, seed: u64, cut in any::<prop::sample::Index>(),
    ) {
        let replicates = if sequential {
"replicates = { min = 5, max = 8, relative_half_width = 0.01 }"
} else {
"replicates = 6"
};
        let made = plan(4, &[], &format!("kind = \"fractional\"\nresolution = 4\n{replicates}\n{blocks}\n{hard}\n{centre}"));
        let made = if stage { extended(&made, &Extension::Fold(vec![0])) } else { made };
        let mut study = made.study.clone();
        study.seed = seed;
        let order = execute(&study, Vec::new());
        let keys: HashSet<_> = order.iter().map(|run| run.key).collect();
        prop_assert_eq!(keys.len(), order.len(), "a run was done twice");
        prop_assert!(is_contiguous(order.iter().map(|run| run.stage)));
        prop_assert!(order.is_sorted_by_key(|run| run.stage));
        let mut runs: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for run in &order {
            runs.entry(run.key.treatment).or_default().push(run.key.replicate);
        }
        prop_assert_eq!(runs.len(), study.treatments.len(), "every treatment is run");
        let (least, most) = if sequential { (5, 8) } else { (6, 6) };
        for (treatment, replicates) in &runs {
            prop_assert!(replicates.iter().copied().eq(0..replicates.len() as u32), "{:?}", replicates);
            if !study.treatments[*treatment as usize].centre {
                prop_assert!((least..=most).contains(&replicates.len()));
            }
        }
        for stage in order.chunk_by(|a, b| a.stage == b.stage) {
            prop_assert!(is_contiguous(stage.iter().map(|run| run.visit)), "blocks are complete before the next");
            prop_assert_eq!(stage.iter().all(|run| run.block.is_some()), !blocks.is_empty());
            prop_assert_eq!(stage.iter().all(|run| run.whole_plot.is_some()), !hard.is_empty());
            prop_assert!(is_contiguous(stage.iter().map(|run| run.whole_plot)), "whole plots are not divided");
            for plot in stage.chunk_by(|a, b| a.whole_plot.is_some() && a.whole_plot == b.whole_plot) {
                let levels = |run: &ScheduledRun| study.treatments[run.key.treatment as usize].whole_plot;
                prop_assert!(plot.iter().all(|run| levels(run) == levels(&plot[0]) && run.visit == plot[0].visit));
            }
        }
        // The same after any prefix, in whatever order the store lists it.
        let cut = cut.index(order.len() + 1);
        let mut prefix: Done = order[..cut].iter().map(|run| (run.key, value(run.key))).collect();
        prefix.reverse();
        prop_assert_eq!(&execute(&study, prefix)[..], &order[cut..]);
    }
}

#[test]
fn a_block_begins_with_its_first_run_only() {
    let study = plan(1, &[], "replicates = 2\nblocks = [{ name = \"a\" }, { name = \"b\" }]").study;
    let mut done = Done::new();
    let mut begins = Vec::new();
    while let Next::Run { key, begins_block, .. } = next(&study, &done) {
        begins.push(begins_block);
        done.push((key, None));
    }
    assert_eq!(begins, [true, false, true, false]);
}

#[test]
fn a_stage_may_run_treatments_again() {
    let plan = plan(1, &[], "replicates = 5");
    let proposal = plan.stage(
        StageKind::Confirmation,
        "the best against the base".into(),
        &[vec![1], vec![0]],
        Replication::Fixed(2),
        now(),
    );
    assert!(proposal.new.is_empty());
    let mut study = plan.study.clone();
    study.stages.push(proposal.stage);
    let order = execute(&study, Vec::new());
    let stage: Vec<_> = order[10..].iter().map(|run| (run.stage, run.key.replicate)).collect();
    assert_eq!(stage.iter().filter(|run| **run == (1, 5)).count(), 2);
    assert_eq!(stage.iter().filter(|run| **run == (1, 6)).count(), 2);
}
