use std::collections::BTreeMap;

use benchmaster_record::results::{
    DesignRecord, Direction, FactorRecord, GoalRecord, Replication, RunKey, StageKind, StageRecord,
    StudyResults, TreatmentRecord,
};
use benchmaster_testkit::study_results;

use super::*;

/// A study of two-level factors A, B, … whose response is a known function of the levels, −1 and +1, with noise.
struct World {
    factors: usize,
    truth: fn(&[f64]) -> f64,
    noise: f64,
}

impl World {
    /// The results of running these rows so often.
    fn study(&self, rows: &[Vec<u32>], replicates: u32, details: DesignRecord) -> StudyResults {
        let mut results = study_results(1, 1, 1);
        let study = &mut results.study;
        let factor = |i: usize| FactorRecord {
            name: ["a", "b", "c", "d", "e", "f"][i].into(),
            levels: vec!["low".into(), "high".into()],
            settings: vec![BTreeMap::new(); 2],
            values: None,
        };
        study.factors = (0..self.factors).map(factor).collect();
        study.design_details = details;
        study.replicates = Replication::Fixed(replicates);
        study.treatments.clear();
        let template = results.runs[0].clone();
        results.runs.clear();
        results.runs.push(template);
        let addition =
            Addition { kind: StageKind::Design, reason: String::new(), rows: rows.to_vec(), replicates };
        self.run(&mut results, &addition, 0);
        results.runs.remove(0);
        results
    }

    /// Does what a step asks for.
    fn add(&self, results: &mut StudyResults, addition: &Addition) {
        let number = results.study.stages.len() as u32 + 1;
        let treatments = self.run(results, addition, number);
        results.study.stages.push(StageRecord {
            number,
            kind: addition.kind,
            reason: addition.reason.clone(),
            treatments,
            replicates: Replication::Fixed(addition.replicates),
            made: "2026-01-01T00:00:00Z".parse().unwrap(),
        });
    }

    fn run(&self, results: &mut StudyResults, addition: &Addition, stage: u32) -> Vec<u32> {
        let mut used = Vec::new();
        for row in &addition.rows {
            let known = results.study.treatments.iter().find(|t| t.levels == *row).map(|t| t.index);
            let index = known.unwrap_or_else(|| {
                let index = results.study.treatments.len() as u32;
                results.study.treatments.push(TreatmentRecord {
                    index,
                    levels: row.clone(),
                    label: format!("{row:?}"),
                    block: None,
                    whole_plot: None,
                    stage,
                    centre: false,
                });
                index
            });
            used.push(index);
            let done = results.runs.iter().filter(|r| r.stage <= stage && r.key.treatment == index).count();
            for replicate in 0..addition.replicates {
                let mut run = results.runs[0].clone();
                run.key = RunKey { treatment: index, replicate: done as u32 + replicate };
                run.stage = stage;
                run.checks.clear();
                run.failure = None;
                let signs: Vec<_> = row.iter().map(|&level| 2.0 * f64::from(level) - 1.0).collect();
                let position = results.runs.len() as u64;
                let value = (self.truth)(&signs) + self.noise * normal(position);
                for response in run.responses.iter_mut().filter(|r| r.name == results.study.primary_response)
                {
                    response.value = value;
                }
                results.runs.push(run);
            }
        }
        used
    }

    /// Steps until there is an answer.
    fn answer(&self, results: &mut StudyResults) -> (Vec<Addition>, Conclusion) {
        let mut additions = Vec::new();
        for _ in 0..12 {
            assert_eq!(next_step(results), next_step(results), "the same results, the same step");
            match next_step(results).unwrap() {
                Step::Add(addition) => {
                    self.add(results, &addition);
                    additions.push(addition);
                }
                Step::Finished(conclusion) => return (additions, *conclusion),
            }
        }
        panic!("no answer after 12 stages: {additions:?}")
    }
}

/// Roughly normal, of a number: the sum of twelve uniform draws.
fn normal(seed: u64) -> f64 {
    let draw = |i: u64| {
        let mut x = (seed * 12 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        x = (x ^ x >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93);
        (x ^ x >> 32) as f64 / u64::MAX as f64
    };
    (0..12).map(draw).sum::<f64>() - 6.0
}

/// Paper 004's fraction: D = AB, E = AC, F = BC.
fn fraction() -> Vec<Vec<u32>> {
    let product = |a: u32, b: u32| u32::from(a == b);
    (0..8u32)
        .map(|i| {
            let (a, b, c) = (i & 1, i >> 1 & 1, i >> 2 & 1);
            vec![a, b, c, product(a, b), product(a, c), product(b, c)]
        })
        .collect()
}

fn screened() -> DesignRecord {
    DesignRecord { screen: true, ..DesignRecord::default() }
}

/// What the paper found: four main effects, and the interactions BF and CF.
const PAPER: World = World {
    factors: 6,
    truth: |x| {
        100.0 + 6.0 * x[1] + 4.0 * x[2] + 12.0 * x[4] + 5.0 * x[5] + 3.0 * x[1] * x[5] - 2.0 * x[2] * x[5]
    },
    noise: 0.2,
};

#[test]
fn what_the_papers_fraction_mixes_up_is_separated_by_added_runs() {
    let mut results = PAPER.study(&fraction(), 3, screened());
    let (additions, conclusion) = PAPER.answer(&mut results);
    assert!(!additions.is_empty() && additions[0].reason.contains("apart"), "{additions:?}");
    assert!(additions.iter().all(|a| a.kind == StageKind::Augment || a.kind == StageKind::Foldover));
    assert!(conclusion.open.is_empty(), "{:?}", conclusion.open);
    assert!(results.study.treatments.len() <= 32, "{} treatments", results.study.treatments.len());
    assert_eq!(conclusion.full_runs, 64 * 3);
    for (name, effect) in [("b", 12.0), ("c", 8.0), ("e", 24.0), ("f", 10.0), ("a", 0.0), ("d", 0.0)] {
        let found = conclusion.effects.iter().find(|e| e.name == name).unwrap();
        assert!((found.effect - effect).abs() < 1.0, "{name}: {found:?}");
        assert_eq!(found.significant, Some(effect != 0.0), "{found:?}");
    }
}

#[test]
fn a_design_that_separates_everything_needs_no_more() {
    let world = World { factors: 3, truth: |x| 10.0 + x[0] + 0.5 * x[1] * x[2], noise: 0.05 };
    let rows = benchmaster_design::full(&[2; 3]).unwrap();
    let (additions, conclusion) = world.answer(&mut world.study(&rows, 3, screened()));
    assert_eq!((additions, conclusion.open), (vec![], vec![]));
    assert!(conclusion.sentences[0].starts_with("24 runs were needed"), "{:?}", conclusion.sentences);
}

#[test]
fn effects_that_were_asked_for_are_separated_even_when_they_seem_to_be_nothing() {
    let world = World { factors: 6, truth: |x| 50.0 + 5.0 * x[0], noise: 0.1 };
    let asked = DesignRecord { interest: vec![vec![0], vec![1], vec![2, 5]], ..screened() };
    let (additions, conclusion) = world.answer(&mut world.study(&fraction(), 3, asked));
    assert_eq!(additions.len(), 1, "{additions:?}");
    assert!(additions[0].reason.contains("b and c × f"), "{}", additions[0].reason);
    let names: Vec<_> = conclusion.effects.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["a", "b", "c × f"]);
}

#[test]
fn replicates_are_added_until_effects_are_as_precise_as_asked() {
    let world = World { factors: 3, truth: |x| 10.0 + x[0], noise: 1.0 };
    let rows = benchmaster_design::full(&[2; 3]).unwrap();
    let asked = DesignRecord { precision: Some(0.06), ..screened() };
    let (additions, conclusion) = world.answer(&mut world.study(&rows, 2, asked.clone()));
    assert!((1..=3).contains(&additions.len()), "{additions:?}");
    assert!(additions.iter().all(|a| a.rows.len() == 8 && a.kind == StageKind::Augment));
    assert!(conclusion.effects.iter().all(|e| e.relative_half_width.unwrap() < 0.075), "{conclusion:?}");
    // A single run of each treatment of a saturated model has no error to go by.
    let (additions, _) = world.answer(
        &mut world.study(
            &benchmaster_design::full(&[2; 2])
                .unwrap()
                .into_iter()
                .map(|mut row| {
                    row.push(0);
                    row
                })
                .collect::<Vec<_>>(),
            1,
            asked,
        ),
    );
    assert!(additions[0].reason.contains("how large the error is"), "{additions:?}");
}

#[test]
fn what_cannot_be_made_precise_is_reported() {
    let world = World { factors: 2, truth: |x| 10.0 + x[0], noise: 8.0 };
    let rows = benchmaster_design::full(&[2; 2]).unwrap();
    let asked = DesignRecord { precision: Some(0.001), ..screened() };
    let (additions, conclusion) = world.answer(&mut world.study(&rows, 2, asked));
    assert_eq!(additions.len(), MOST_ROUNDS);
    assert!(conclusion.open.iter().any(|o| o.contains("that was asked for")), "{:?}", conclusion.open);
}

fn goal(results: &StudyResults, direction: Direction) -> DesignRecord {
    let response = results.study.primary_response.clone();
    DesignRecord { goal: Some(GoalRecord { direction, response }), ..DesignRecord::default() }
}

#[test]
fn the_best_treatment_is_confirmed_by_runs_of_its_own() {
    let mut results = PAPER.study(&benchmaster_design::full(&[2; 6]).unwrap(), 2, DesignRecord::default());
    results.study.design_details = goal(&results, Direction::Maximise);
    let (additions, conclusion) = PAPER.answer(&mut results);
    assert_eq!(additions.len(), 1);
    assert_eq!((additions[0].kind, additions[0].replicates), (StageKind::Confirmation, 5));
    // Without an effect of a and d both stay at their first level.
    assert_eq!(additions[0].rows, [vec![0, 0, 0, 0, 0, 0], vec![0, 1, 1, 0, 1, 1]]);
    let best = conclusion.best.unwrap();
    let truth = |x: [f64; 6]| (PAPER.truth)(&x);
    let ratio = truth([-1.0, 1.0, 1.0, -1.0, 1.0, 1.0]) / truth([-1.0; 6]);
    let gain = best.gain.unwrap();
    assert!((gain.ratio - ratio).abs() < 0.02, "{} and {ratio}", gain.ratio);
    assert!(gain.confirmed && gain.runs == [5, 5], "{gain:?}");
    assert!(best.sentence.contains("confirmed by runs that had no part"), "{}", best.sentence);
}

#[test]
fn less_can_be_better_and_the_default_can_be_the_best() {
    let rows = benchmaster_design::full(&[2; 6]).unwrap();
    let mut results = PAPER.study(&rows, 2, DesignRecord::default());
    results.study.design_details = goal(&results, Direction::Minimise);
    let (additions, conclusion) = PAPER.answer(&mut results);
    // All main effects are positive, but CF is not: at high F, C matters less.
    assert_eq!(additions, []);
    let best = conclusion.best.unwrap();
    assert!(best.gain.is_none() && best.sentence.contains("than the default"), "{}", best.sentence);
    let falling = World { factors: 2, truth: |x| 10.0 - 3.0 * x[1], noise: 0.1 };
    let mut results = falling.study(&benchmaster_design::full(&[2; 2]).unwrap(), 3, DesignRecord::default());
    results.study.design_details = goal(&results, Direction::Minimise);
    let (_, conclusion) = falling.answer(&mut results);
    let gain = conclusion.best.unwrap().gain.unwrap();
    assert!(gain.confirmed && gain.ratio < 0.6, "{gain:?}");
}

/// A gain that is large beside a noise which multiplies: an interval of the difference of such means reaches below 0.
#[test]
fn a_gain_on_the_logarithmic_scale_has_an_interval_of_logarithms() {
    let world =
        World { factors: 2, truth: |x| if x[0] > 0.0 { 3000.0 - 0.001 * x[1] } else { 100.0 }, noise: 1.0 };
    let mut results = world.study(&benchmaster_design::full(&[2; 2]).unwrap(), 3, DesignRecord::default());
    results.study.design_details = goal(&results, Direction::Maximise);
    world.answer(&mut results);
    let factors = [0.03, 4.0, 0.4, 1.0, 0.2];
    let mut next = factors.iter().cycle();
    let primary = results.study.primary_response.clone();
    for run in results.runs.iter_mut().filter(|run| run.stage > 0) {
        for response in run.responses.iter_mut().filter(|response| response.name == primary) {
            response.value *= next.next().unwrap();
        }
    }
    let (_, conclusion) = world.answer(&mut results);
    let gain = conclusion.best.unwrap().gain.unwrap();
    let [low, high] = gain.interval.unwrap();
    assert!(low > 0.0 && (gain.ratio / low - high / gain.ratio).abs() < 1e-6 * high, "{gain:?}");
    assert!((gain.means[1] / gain.means[0] / gain.ratio - 1.0).abs() < 1e-9, "{gain:?}");
}

#[test]
fn without_factors_or_runs_nothing_is_decided() {
    let mut results = PAPER.study(&fraction(), 1, screened());
    results.runs.clear();
    let error = next_step(&results).unwrap_err();
    assert!(error.to_string().contains("look at the failures"), "{error}");
    results.study.factors.clear();
    assert_eq!(next_step(&results), Err(AdaptiveError::NoFactors));
}

/// Without replicates, effects are judged together, as in every analysis: margins for one effect would find something in a
/// quarter of all screenings of noise, and ask for runs to resolve it.
#[test]
fn nothing_is_found_in_screenings_of_noise() {
    let world = World { factors: 6, truth: |_| 100.0, noise: 1.0 };
    let mut results = world.study(&fraction(), 1, screened());
    let primary = results.study.primary_response.clone();
    let mut alarms = 0;
    for trial in 0..200 {
        for (run, place) in results.runs.iter_mut().zip(0..) {
            let own = run.responses.iter_mut().filter(|r| r.name == primary);
            own.for_each(|response| response.value = 100.0 + normal(1_000 * trial + place));
        }
        alarms += u32::from(match next_step(&results).unwrap() {
            Step::Add(_) => true,
            Step::Finished(found) => found.effects.iter().any(|effect| effect.significant == Some(true)),
        });
    }
    // 10 are expected at 5 %, with a standard deviation of 3.1.
    assert!(alarms <= 20, "{alarms} of 200");
}
