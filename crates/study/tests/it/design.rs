//! What plans say of designs: paper 004's fraction, designs of every kind, and that docs/analysis-json.md lists every field.
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use benchmaster_stats::model::{Data, Factor, SumOfSquares, all_terms, fit, judge};
use benchmaster_stats::power::detectable_ratio;
use benchmaster_stats::random::Generator;
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::plan::design::request::of_rows;
use benchmaster_study::plan::design::{
    DesignDescription, DesignFactor, DesignInput, DesignRequest, Pilot, Spread, TextForm, describe,
};
use serde_json::Value;

/// The factors of paper 004, low level first, as its section 4 codes them.
const PAPER_004: [&str; 6] = [
    "version=v3:v4",
    "storage=tmpfs:ext4",
    "sync=sync:async",
    "io_size=64KB:1MB",
    "file_size=100MB:5GB",
    "latency=Luxembourg:Rennes",
];

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

fn factors(count: usize) -> DesignRequest {
    DesignRequest { factors: vec![count.to_string()], ..DesignRequest::default() }
}

fn paper_004() -> DesignRequest {
    DesignRequest {
        factors: texts(&PAPER_004),
        generators: texts(&["D=AB", "E=AC", "F=BC"]),
        replicates: 5,
        ..DesignRequest::default()
    }
}

fn of(request: &DesignRequest) -> DesignDescription {
    describe(&request.input().unwrap())
}

fn chains(design: &DesignDescription) -> Vec<String> {
    design.chains.iter().map(|chain| chain.members.join("=")).collect()
}

#[test]
fn the_fraction_of_paper_004_cannot_tell_what_the_full_design_found() {
    let design = of(&paper_004());
    // The paper says 45 experiments; 2^(6-3)·5 is 40.
    assert_eq!((design.treatments, design.runs.min, design.runs.max), (8, 40, 40));
    assert_eq!(design.resolution, Some(3));
    let pattern: BTreeMap<u32, f64> =
        design.word_length_pattern.iter().map(|(length, count)| (*length, count.value())).collect();
    assert_eq!(pattern, BTreeMap::from([(3, 4.0), (4, 3.0)]));
    assert_eq!(design.defining_relation, ["ABD", "ACE", "BCF", "DEF", "ABEF", "ACDF", "BCDE"]);
    // FrF2 has the same chains.
    assert_eq!(
        chains(&design),
        [
            "I=ABD=ACE=BCF=DEF",
            "A=BD=CE=BEF=CDF",
            "B=AD=CF=AEF=CDE",
            "C=AE=BF=ADF=BDE",
            "D=AB=EF=ACF=BCE",
            "E=AC=DF=ABF=BCD",
            "F=BC=DE=ABE=ACD",
            "AF=BE=CD=ABC=ADE=BDF=CEF",
        ]
    );
    // Table 1, row 1: A, B, C low; D, E, F high.
    let first: Vec<_> =
        design.sign_table.rows[0].iter().map(|cell| serde_json::to_value(cell).unwrap()).collect();
    assert_eq!(first, [-1, -1, -1, 1, 1, 1].map(Value::from));
    // In words, with the names of the factors.
    let warning = &design.warnings[0];
    for said in [
        "storage (B) with version × io_size (AD) and sync × latency (CF)",
        "sync (C) with version × file_size (AE) and storage × latency (BF)",
    ] {
        assert!(warning.contains(said), "{warning}");
    }
    let mean = design.warnings.iter().find(|warning| warning.contains("the mean is aliased")).unwrap();
    assert!(mean.contains("storage × sync × latency (BCF)"), "{mean}");
    // The designs that are better, and what they cost.
    let [small, large] = &design.proposals[..] else { panic!("{:?}", design.proposals) };
    assert_eq!((small.treatments, small.runs, small.resolution), (16, 80, Some(4)));
    assert_eq!(small.generators, ["E=ABC", "F=ABD"]);
    assert!(small.still_aliased.contains(&"AD=BF".to_owned()), "{:?}", small.still_aliased);
    assert!(small.text.contains("main effects are clear of interactions of two factors"), "{}", small.text);
    assert_eq!((large.treatments, large.runs, large.resolution), (32, 160, Some(6)));
    assert_eq!(large.generators, ["F=ABCDE"]);
    assert!(large.still_aliased.is_empty());
    assert_eq!(design.error.degrees_of_freedom, 32);
}

#[test]
fn paper_004_in_the_terminal() {
    let mut input = paper_004().input().unwrap();
    input.interest = vec![vec![1, 5], vec![2, 5], vec![1, 2, 5]];
    input.spread = Some(Spread::Relative(0.05));
    insta::assert_snapshot!("paper_004", describe(&input).render(TextForm::default()));
}

#[test]
fn effects_of_interest_are_marked_and_judged() {
    let design = of(&DesignRequest { clear: texts(&["BF", "storage*latency", "version"]), ..paper_004() });
    let clear: Vec<_> = design.interest.iter().map(|effect| (effect.term.as_str(), effect.clear)).collect();
    assert_eq!(clear, [("BF", false), ("BF", false), ("A", false)]);
    let chain = design.chains.iter().find(|chain| chain.members[0] == "C").unwrap();
    assert_eq!(chain.interest, ["BF"]);
    assert!(
        design
            .warnings
            .iter()
            .any(|warning| warning.contains("storage × latency (BF) cannot be separated from sync (C)")),
        "{:?}",
        design.warnings
    );
    let best = of(&DesignRequest { clear: texts(&["AB", "AC"]), ..factors(6) });
    assert!(best.interest.iter().all(|effect| effect.clear), "{:?}", best.interest);
    assert_eq!(best.treatments, 16);
}

#[test]
fn fractions_by_resolution_and_by_runs_are_the_best() {
    let four = of(&DesignRequest { resolution: Some(4), ..factors(6) });
    assert_eq!(four.generators, ["E=ABC", "F=ABD"]);
    assert_eq!(of(&DesignRequest { runs: Some(16), ..factors(6) }).generators, four.generators);
    assert_eq!(four.clear.main_effects, ["A", "B", "C", "D", "E", "F"]);
    assert!(four.clear.two_factor_interactions.is_empty());
    let five = of(&DesignRequest { resolution: Some(5), ..factors(5) });
    assert_eq!((five.treatments, five.clear.two_factor_interactions.len()), (16, 10));
    // A worse choice of generators with as many runs: the best one is proposed.
    let poor = of(&DesignRequest { generators: texts(&["E=AB", "F=ACD"]), ..factors(6) });
    assert_eq!(poor.resolution, Some(3));
    assert_eq!(poor.proposals[0].treatments, 16);
    assert_eq!(poor.proposals[0].generators, ["E=ABC", "F=ABD"]);
}

#[test]
fn mixed_levels_are_judged_by_generalised_word_lengths() {
    let levels = vec![2, 2, 2, 2, 2, 3];
    let whole = of(&DesignRequest { levels: levels.clone(), ..DesignRequest::default() });
    assert_eq!((whole.treatments, whole.resolution, whole.chains.len()), (96, None, 0));
    assert_eq!(whole.clear.two_factor_interactions.len(), 15);
    let half = of(&DesignRequest { levels: levels.clone(), runs: Some(48), ..DesignRequest::default() });
    assert_eq!(half.runs.min, 48);
    assert!(half.generalised_resolution.unwrap() >= 4.0, "{half:?}");
    assert!(!half.word_length_pattern.contains_key(&3));
    assert_eq!(half.clear.main_effects.len(), 6);
    let quarter = of(&DesignRequest { levels, runs: Some(24), ..DesignRequest::default() });
    let third = quarter.word_length_pattern[&3].value();
    assert!(third <= 1.8334, "{third}");
    assert_eq!(quarter.proposals[0].treatments, 48, "{:?}", quarter.proposals);
    // A level of the last factor is named, not signed.
    assert_eq!(serde_json::to_value(&quarter.sign_table.rows[0][5]).unwrap(), Value::from("1"));
}

#[test]
fn plackett_burman_is_for_screening() {
    let design = of(&DesignRequest { plackett_burman: true, ..factors(9) });
    assert_eq!((design.treatments, design.generators.len()), (12, 0));
    let first = design.terms.iter().find(|term| term.term == "A").unwrap();
    assert_eq!(first.aliases.iter().filter(|alias| alias.term.len() == 2).count(), 28);
    let with = first.aliases.iter().find(|alias| alias.term == "BC").unwrap();
    assert!((with.correlation.abs() - 1.0 / 3.0).abs() < 1e-9, "{with:?}");
    assert!(
        design.warnings.iter().any(|warning| warning.contains("screening only")),
        "{:?}",
        design.warnings
    );
    // In 8 runs it is a regular fraction.
    assert_eq!(of(&DesignRequest { plackett_burman: true, ..factors(7) }).generators.len(), 4);
}

#[test]
fn rows_of_a_table_are_recognised() {
    let request = paper_004();
    let input = request.input().unwrap();
    // Shuffled, three times each.
    let mut rows: Vec<Vec<u32>> = (0..3).flat_map(|_| input.rows.iter().rev().cloned()).collect();
    rows.rotate_left(5);
    let design = describe(&of_rows(input.factors.clone(), rows.clone(), &request).unwrap());
    assert_eq!(design.generators, ["D=AB", "E=AC", "F=BC"]);
    assert_eq!(chains(&design), chains(&of(&request)));
    assert_eq!((design.treatments, design.runs.min, design.error.degrees_of_freedom), (8, 24, 16));
    assert!(design.proposals.is_empty(), "what was measured is not planned again");
    // One row lost: no longer regular, and main effects are mixed up in part.
    let short = describe(&of_rows(input.factors.clone(), input.rows[1..].to_vec(), &request).unwrap());
    assert!(short.generators.is_empty());
    let main = short.terms.iter().find(|term| term.term == "B").unwrap();
    assert!(main.aliases.iter().any(|alias| alias.term == "CF"), "{main:?}");
    // A factor that never changes, and two that always change together.
    let factor = |name: &str| DesignFactor {
        name: name.into(),
        levels: texts(&["low", "high"]),
        hard_to_change: false,
    };
    let names = ["same", "first", "second"].map(factor).to_vec();
    let rows = vec![vec![0, 0, 0], vec![0, 1, 1], vec![0, 0, 0], vec![0, 1, 1]];
    let stuck = describe(&of_rows(names, rows, &DesignRequest::default()).unwrap());
    let said = stuck.warnings.join("\n");
    assert!(said.contains("never varied, so its effect is unknown: same (A)"), "{said}");
    assert!(said.contains("factors are not varied independently"), "{said}");
}

#[test]
fn large_designs_are_cut_in_the_terminal_and_complete_in_json() {
    let input = factors(15).input().unwrap();
    let design = describe(&input);
    let text = design.render(TextForm::default());
    assert!(text.lines().count() < 80, "{}", text.lines().count());
    assert!(text.contains("… and 32752 more (`--all` shows them, `--json` has them)"), "{text}");
    assert_eq!(design.sign_table.rows.len(), 1 << 15);
    assert_eq!(design.chains.len(), 1 + 15 + 105 + 455);
    let all = design.render(TextForm { all: true, width: 100 });
    assert!(all.lines().count() > 1 << 15);
    let most = of(&DesignRequest { factors: vec!["16".into()], max_order: 4, ..DesignRequest::default() });
    assert_eq!(most.chains.len(), 2_000);
    assert_eq!(most.chains_left_out, 1 + 16 + 120 + 560 + 1_820 - 2_000);
}

#[test]
fn the_smallest_effect_is_that_of_the_noncentral_t() {
    // 2^3 with 5 replicates: 40 runs, 32 degrees of freedom, 7 terms that are judged together: t at 0.05/7. The standard error
    // is 2/√40.
    let ratio = detectable_ratio(32.0, 1.0 - 0.05 / 7.0, 0.8).unwrap();
    let mut input = DesignRequest { replicates: 5, ..factors(3) }.input().unwrap();
    input.spread = Some(Spread::Absolute(10.0));
    let found = describe(&input).smallest_detectable.unwrap();
    assert_eq!((found.degrees_of_freedom, found.effects.len(), found.effects[0].runs), (32, 3, [20, 20]));
    let effect = found.effects[0].effect.unwrap();
    assert!((effect - ratio * 20.0 / 40f64.sqrt()).abs() < 1e-6 && ratio > 3.6, "{effect}");
    assert_eq!(found.effects[0].half_effect, Some(effect / 2.0));
    assert_eq!(found.effects[0].relative_effect, None);
    // More replicates find less, half the spread half as much.
    input.spread = Some(Spread::Relative(0.05));
    let five = describe(&input).smallest_detectable.unwrap().effects[0].relative_effect.unwrap();
    assert!((five - effect / 10.0 * 0.05).abs() < 1e-12);
    // One replicate of a full design of three factors has nothing to measure the error by but its interaction of three.
    let mut single = factors(3).input().unwrap();
    single.spread = Some(Spread::Absolute(10.0));
    assert_eq!(describe(&single).smallest_detectable.unwrap().degrees_of_freedom, 1);
}

#[test]
fn levels_with_fewer_runs_need_larger_effects() {
    let mut input =
        DesignRequest { levels: vec![2, 3], replicates: 4, ..DesignRequest::default() }.input().unwrap();
    input.spread = Some(Spread::Absolute(1.0));
    let found = describe(&input).smallest_detectable.unwrap();
    assert_eq!([found.effects[0].runs, found.effects[1].runs], [[12, 12], [8, 8]]);
    // Three levels have two degrees of freedom, so that they need more than √1.5 times as much.
    let ratio = found.effects[1].effect.unwrap() / found.effects[0].effect.unwrap();
    assert!(ratio > 1.5f64.sqrt() && ratio < 1.5, "{ratio}");
}

#[test]
fn one_at_a_time_compares_each_level_with_the_base_alone() {
    let request = DesignRequest { one_at_a_time: true, replicates: 5, ..factors(3) };
    let mut input = request.input().unwrap();
    input.spread = Some(Spread::Relative(0.02));
    let found = describe(&input).smallest_detectable.unwrap();
    assert_eq!(found.effects[0].runs, [5, 5]);
    let ratio = detectable_ratio(16.0, 1.0 - 0.05 / 3.0, 0.8).unwrap();
    let effect = found.effects[0].relative_effect.unwrap();
    assert!((effect - ratio * 0.02 * 0.4f64.sqrt()).abs() < 1e-9, "{effect}");
}

#[test]
fn the_replicates_for_an_effect_find_it_and_one_less_does_not() {
    let smallest = |replicates: u32| {
        let mut input = DesignRequest { replicates, ..factors(3) }.input().unwrap();
        input.spread = Some(Spread::Relative(0.05));
        input.effect = Some(Spread::Relative(0.03));
        let found = describe(&input);
        (
            found.smallest_detectable.unwrap().effects[0].relative_effect.unwrap(),
            found.replicates_needed.unwrap(),
        )
    };
    let needed = smallest(2).1;
    let replicates = needed.replicates.unwrap();
    assert_eq!(needed.runs, Some(8 * u64::from(replicates)));
    assert!(smallest(replicates).0 <= 0.03 && smallest(replicates - 1).0 > 0.03, "{replicates}");
}

fn pilot() -> Pilot {
    let levels = |version: &str, sync: &str| {
        BTreeMap::from([("version".to_owned(), version.to_owned()), ("sync".to_owned(), sync.to_owned())])
    };
    Pilot {
        name: "results/pilot".into(),
        response: "write.throughput".into(),
        unit: "B/s".into(),
        mean: 100e6,
        range: Some(3.0),
        standard_deviation: Some(5e6),
        relative_standard_deviation: Some(0.06),
        degrees_of_freedom: 8,
        treatments: vec![(levels("v3", "off"), 10.0, 5), (levels("v4", "off"), 20.0, 5)],
    }
}

#[test]
fn time_is_taken_from_the_pilot_where_it_has_the_treatment() {
    let request = DesignRequest {
        factors: texts(&["version=v3:v4", "sync=off:on"]),
        replicates: 3,
        ..DesignRequest::default()
    };
    let pilot = pilot();
    let input = DesignInput { pilot: Some(&pilot), ..request.input().unwrap() };
    let design = describe(&input);
    let time = design.time.unwrap();
    // 10 + 20 + 15 + 15 seconds, three times.
    assert_eq!((time.seconds_min, time.treatments_measured, time.treatments_assumed), (180.0, 2, 2));
    let found = design.smallest_detectable.unwrap();
    assert_eq!((found.standard_deviation, found.relative_standard_deviation), (Some(5e6), Some(0.05)));
    // Orders of magnitude between treatments: logarithms, so shares only.
    let wide = Pilot { range: Some(50.0), ..pilot.clone() };
    let input = DesignInput { pilot: Some(&wide), ..request.input().unwrap() };
    let found = describe(&input).smallest_detectable.unwrap();
    assert_eq!((found.standard_deviation, found.relative_standard_deviation), (None, Some(0.06)));
    assert!(found.assumptions.iter().any(|text| text.contains("logarithms")), "{:?}", found.assumptions);
    let unreplicated = Pilot { standard_deviation: None, relative_standard_deviation: None, ..pilot };
    let design = describe(&DesignInput { pilot: Some(&unreplicated), ..request.input().unwrap() });
    assert!(design.smallest_detectable.is_none());
    assert!(
        design.warnings.iter().any(|text| text.contains("no treatment with two runs")),
        "{:?}",
        design.warnings
    );
}

#[test]
fn blocks_and_whole_plots_take_degrees_of_freedom() {
    let request = DesignRequest { replicates: 3, replicate_blocks: true, ..factors(3) };
    assert_eq!(of(&request).error.degrees_of_freedom, 24 - 8 - 2);
    let design = of(&DesignRequest { blocks: Some(4), ..factors(4) });
    let blocks = design.blocks.unwrap();
    assert_eq!((blocks.blocks, blocks.of_row.unwrap().len(), blocks.confounded.len()), (4, 16, 3));
    assert!(design.warnings.iter().all(|warning| !warning.contains("main effect")), "{:?}", design.warnings);
    let split = of(&DesignRequest { hard_to_change: texts(&["A"]), replicates: 3, ..factors(3) });
    let plot = split.split_plot.unwrap();
    assert_eq!((plot.whole_plots, plot.runs_per_whole_plot.min), (2, 4));
    assert_eq!((plot.whole_plot_degrees_of_freedom, plot.sub_plot_degrees_of_freedom), (4, 12));
    assert_eq!(plot.whole_plot_effects, ["A"]);
    // In a fraction, what is aliased with products of hard-to-change factors is theirs too.
    let split = of(&DesignRequest {
        hard_to_change: texts(&["A", "B"]),
        generators: texts(&["D=AB"]),
        replicates: 2,
        ..factors(4)
    });
    assert_eq!(split.split_plot.unwrap().whole_plot_effects, ["A", "B", "D", "AB", "AD", "BD", "ABD"]);
}

/// How often an effect of the size that the plan says is found, by the rule of the analysis, in percent. Runs vary by 1, and the
/// effect is of this factor alone.
fn power(
    design: &DesignDescription,
    rows: &[Vec<u32>],
    replicates: usize,
    factor: usize,
    effect: f64,
) -> f64 {
    let rows: Vec<Vec<u32>> = (0..replicates).flat_map(|_| rows.to_vec()).collect();
    let hard: Vec<usize> = (0..design.factors.len()).filter(|&f| design.factors[f].hard_to_change).collect();
    let plot = |(run, row): (usize, &Vec<u32>)| {
        let levels = hard.iter().fold(0, |all, &factor| 2 * all + row[factor]);
        (run * replicates / rows.len()) as u32 * 64 + levels
    };
    let order = if design.kind == "one-at-a-time" { 1 } else { rows[0].len() };
    let terms = all_terms(rows[0].len(), order);
    let mut data = Data {
        factors: vec![Factor::named(2); rows[0].len()],
        y: Vec::new(),
        block: None,
        whole_plot: (!hard.is_empty()).then(|| rows.iter().enumerate().map(plot).collect()),
        rows,
    };
    let mut draw = Generator::new(9, "power");
    let mut found = 0;
    for _ in 0..POWER_TRIALS {
        data.y = data.rows.iter().map(|row| effect * f64::from(row[factor]) + draw.normal()).collect();
        let fit = fit(&data, &terms, 0.95).unwrap();
        let judged = judge(&fit, SumOfSquares::III);
        let term = fit.terms.iter().position(|term| *term == [factor]).unwrap();
        found += u32::from(judged.terms[term].matters == Some(true));
    }
    100.0 * f64::from(found) / f64::from(POWER_TRIALS)
}

const POWER_TRIALS: u32 = 1_000;

#[test]
fn effects_of_the_smallest_detectable_size_are_found_four_times_in_five() {
    let split = |replicates| DesignRequest { hard_to_change: texts(&["A"]), replicates, ..factors(3) };
    let requests = [
        split(3),
        split(4),
        DesignRequest { hard_to_change: texts(&["A", "B"]), replicates: 2, ..factors(4) },
        DesignRequest { one_at_a_time: true, replicates: 5, ..factors(3) },
        DesignRequest { replicates: 2, ..factors(4) },
    ];
    for request in requests {
        let input = DesignInput { spread: Some(Spread::Absolute(1.0)), ..request.input().unwrap() };
        let design = describe(&input);
        let found = design.smallest_detectable.clone().unwrap();
        assert_eq!(found.effects.len(), design.factors.len(), "{request:?}");
        for factor in [0, design.factors.len() - 1] {
            let effect = found.effects[factor].effect.unwrap();
            let power = power(&design, &input.rows, request.replicates as usize, factor, effect);
            // 80 % with a standard error of 1.3 %. Terms that Holm's method judges after others are found a little more often.
            assert!(
                (76.0..=85.0).contains(&power),
                "{} of {request:?}: {power} %",
                found.effects[factor].name
            );
        }
    }
}

#[test]
fn proposed_commands_keep_what_was_asked_for() {
    let request = DesignRequest {
        factors: texts(&["version=v3:v4", "sync=off:on", "delay", "io_size=4KiB:1 MiB", "E", "F"]),
        generators: texts(&["D=AB", "E=AC", "F=BC"]),
        clear: texts(&["version*sync"]),
        blocks: Some(2),
        hard_to_change: texts(&["delay"]),
        centre_points: 2,
        replicates: 3,
        max_order: 2,
        confidence: 0.9,
        power: 0.9,
        ..DesignRequest::default()
    };
    let design = describe(&DesignInput {
        spread: Some(Spread::Relative(0.07)),
        effect: Some(Spread::Absolute(2.5)),
        ..request.input().unwrap()
    });
    let options: Vec<_> = design.proposals.iter().map(|proposal| proposal.options.as_str()).collect();
    let rest = "--clear AB --blocks 2 --hard-to-change delay --centre-points 2 --replicates 3 \
                --confidence 0.9 --sd 7% --effect 2.5 --power 0.9 --max-order 2";
    let factors = "--factors 'version=v3:v4,sync=off:on,delay,io_size=4KiB:1 MiB,E,F'";
    let command = |generators| format!("benchmaster plan {factors} --generators {generators} {rest}");
    assert!(options.contains(&command("E=ABC,F=ABD").as_str()), "{options:#?}");
    let mixed = of(&DesignRequest {
        levels: vec![2, 2, 2, 2, 3],
        runs: Some(12),
        replicate_blocks: true,
        replicates: 2,
        ..DesignRequest::default()
    });
    let options = &mixed.proposals[0].options;
    assert_eq!(options, "benchmaster plan --levels 2,2,2,2,3 --runs 24 --replicates 2 --replicate-blocks");
}

#[test]
fn wrong_requests_are_refused_with_what_would_be_right() {
    let refused = |request: DesignRequest| request.input().unwrap_err().to_string();
    let cases = [
        DesignRequest::default(),
        DesignRequest { factors: texts(&["a", "a"]), ..DesignRequest::default() },
        DesignRequest { factors: texts(&["a=x:x"]), ..DesignRequest::default() },
        DesignRequest { factors: texts(&["a=x"]), ..DesignRequest::default() },
        DesignRequest { levels: vec![2, 2, 2], factors: vec!["4".into()], ..DesignRequest::default() },
        DesignRequest { levels: vec![3], factors: texts(&["a=x:y"]), ..DesignRequest::default() },
        DesignRequest { runs: Some(8), resolution: Some(3), ..factors(6) },
        DesignRequest { orthogonal_array: true, plackett_burman: true, ..factors(6) },
        DesignRequest { levels: vec![2, 2, 3], resolution: Some(4), ..DesignRequest::default() },
        DesignRequest { levels: vec![2, 2, 3], blocks: Some(2), ..DesignRequest::default() },
        DesignRequest { plackett_burman: true, blocks: Some(2), ..factors(9) },
        DesignRequest { generators: texts(&["D=AX"]), ..factors(4) },
        DesignRequest { generators: texts(&["D=AB", "E=AB"]), ..factors(5) },
        DesignRequest { clear: texts(&["sync"]), ..factors(4) },
        DesignRequest { runs: Some(3), ..factors(4) },
        factors(21),
    ];
    let messages: Vec<_> = cases.into_iter().map(refused).collect();
    insta::assert_snapshot!("refused", messages.join("\n"));
}

/// Every path of a document: `factors[].name`.
fn paths(value: &Value, at: &str, found: &mut BTreeSet<String>) {
    let named = |key: &str| match key.parse::<u32>() {
        Ok(_) => "N".to_owned(),
        Err(_) => key.to_owned(),
    };
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let at = if at.is_empty() { named(key) } else { format!("{at}.{}", named(key)) };
                found.insert(at.clone());
                // The paths of a study's parameters are its own.
                if !at.ends_with(".settings") {
                    paths(value, &at, found);
                }
            }
        }
        Value::Array(list) => {
            for value in list {
                found.insert(format!("{at}[]"));
                paths(value, &format!("{at}[]"), found);
            }
        }
        _ => {}
    }
}

/// The first cells of the tables of a section of docs/analysis-json.md.
fn documented(section: &str) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/analysis-json.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, part) = text.split_once(&format!("\n{section}\n")).unwrap();
    let part = part.split("\n## ").next().unwrap().split("\n### ").next().unwrap();
    part.lines().filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned())).collect()
}

fn compare(found: &BTreeSet<String>, documented: &BTreeSet<String>) {
    // Elements of lists of objects are named by their fields alone.
    let needed: BTreeSet<_> = found
        .iter()
        .filter(|path| {
            !path.ends_with("[]") || !found.iter().any(|other| other.starts_with(&format!("{path}.")))
        })
        .cloned()
        .collect();
    let missing: Vec<_> = needed.difference(documented).collect();
    assert!(missing.is_empty(), "docs/analysis-json.md does not have {missing:?}");
    let invented: Vec<_> = documented.difference(found).collect();
    assert!(invented.is_empty(), "docs/analysis-json.md has fields that no design here has: {invented:?}");
}

/// Designs that together have every field.
fn every_kind() -> Vec<DesignDescription> {
    let pilot = pilot();
    let interest = DesignRequest { clear: texts(&["BF"]), blocks: Some(2), centre_points: 2, ..paper_004() };
    let mut named =
        DesignRequest { hard_to_change: texts(&["A"]), replicates: 2, ..factors(5) }.input().unwrap();
    named.blocks.named = texts(&["morning", "evening"]);
    let full = factors(5).input().unwrap();
    let without = full.rows.iter().filter(|row| row[0] == 0 || row[1] == 0).cloned().collect::<Vec<_>>();
    let excluded = DesignInput {
        kind: "full".into(),
        before_exclusion: Some(full.rows.to_vec()),
        rows: without.into(),
        ..factors(5).input().unwrap()
    };
    vec![
        describe(&DesignInput {
            pilot: Some(&pilot),
            effect: Some(Spread::Relative(0.5)),
            ..interest.input().unwrap()
        }),
        describe(&named),
        describe(&excluded),
        of(&DesignRequest { levels: vec![2, 2, 3, 2], runs: Some(12), ..DesignRequest::default() }),
    ]
}

#[test]
fn the_documentation_has_every_field_of_a_design() {
    let mut found = BTreeSet::new();
    for design in every_kind() {
        paths(&serde_json::to_value(&design).unwrap(), "", &mut found);
    }
    compare(&found, &documented("## Designs: benchmaster plan"));
}

#[test]
fn the_documentation_has_every_field_of_a_plan() {
    let mut found = BTreeSet::new();
    let studies = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");
    for entry in std::fs::read_dir(studies).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let plan = Plan::from_study(&StudyFile::parse("s.toml", &text).unwrap(), "1").unwrap();
        let mut value = serde_json::to_value(plan.describe()).unwrap();
        value["design"] = Value::Null;
        paths(&value, "", &mut found);
    }
    // No study of the repository is warned of anything, or replays a trace, whose work only the trace says.
    found.extend(["warnings[]", "estimate.time.unknown[]"].map(str::to_owned));
    compare(&found, &documented("### The plan of a study"));
}
