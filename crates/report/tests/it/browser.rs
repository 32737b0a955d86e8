//! The report page in headless Chromium: it draws every plot, without an error, without the network, at both widths.

use std::fs;

use benchmaster_analysis::analyze;

use crate::chromium::{chromium, visit};
use crate::made_up;
use benchmaster_diagnosis::results::diagnose;
use benchmaster_record::recording::TraceRecord;
use benchmaster_record::results::{RunRecord, StudyResults};
use benchmaster_report::details::{Details, NoDetails};
use benchmaster_report::pages;
use benchmaster_testkit::{as_loaded, fail, serve, spread, study_results, trace_records};

/// Traces of the workload `write`.
struct MadeUp;

impl Details for MadeUp {
    fn trace(
        &self,
        run: &RunRecord,
        workload: &str,
        take: &mut dyn FnMut(&[TraceRecord]),
    ) -> Option<Result<(), String>> {
        if workload != "write" {
            return None;
        }
        let mut records = trace_records(u64::from(run.key.treatment), 20_000);
        records.iter_mut().for_each(|r| r.start_ns *= 1_000);
        records.chunks(999).for_each(take);
        Some(Ok(()))
    }
}

#[test]
#[ignore = "full tier: Chromium"]
fn a_study_with_factors_and_traces() {
    let Some(chromium) = chromium() else { return };
    let results = study_results(7, 4, 3);
    let directory = written(&results, &MadeUp);
    for (width, dark) in [(390, false), (1400, false), (1400, true)] {
        let seen = visit(&chromium, directory.path(), width, dark);
        // Of two workloads: response, time, stack, histogram, percentiles, workers; and the trace of one. Of the effects:
        // sizes, half-normal, main effects, interaction, four of residuals, Box-Cox.
        assert_eq!(seen.number("expected"), 22, "{seen:?}");
        seen.assert_whole(width);
        // The first header of the first table was pressed twice, and every choice was made.
        assert_eq!(seen.text("sorted"), "descending", "{seen:?}");
        assert_eq!(seen.number("choices"), 12, "{seen:?}");
        seen.assert_usable();
        seen.assert_first_screen();
    }
}

#[test]
#[ignore = "full tier: Chromium"]
fn a_single_run() {
    let Some(chromium) = chromium() else { return };
    let directory = written(&study_results(1, 1, 1), &NoDetails);
    let seen = visit(&chromium, directory.path(), 390, true);
    seen.assert_whole(390);
}

#[test]
#[ignore = "full tier: Chromium"]
fn a_study_with_hostile_names_and_nothing_but_failures() {
    let Some(chromium) = chromium() else { return };
    let mut results = study_results(1, 2, 2);
    let hostile = "</script><script>throw new Error('escaped')</script><b>&amp;\"'\u{2028}";
    results.study.name = hostile.into();
    results.study.description = Some(hostile.into());
    results.study.text = hostile.into();
    for treatment in &mut results.study.treatments {
        treatment.label = format!("{} {hostile}", treatment.label);
    }
    for run in &mut results.runs {
        run.checks.iter_mut().for_each(|c| c.message = hostile.into());
    }
    let directory = written(&results, &MadeUp);
    let seen = visit(&chromium, directory.path(), 390, false);
    seen.assert_whole(390);
    assert_eq!(seen.text("title"), hostile);

    results.runs.iter_mut().for_each(|run| fail(run, hostile));
    let directory = written(&results, &NoDetails);
    visit(&chromium, directory.path(), 1400, false).assert_whole(1400);
}

#[test]
#[ignore = "full tier: Chromium"]
fn many_runs() {
    let Some(chromium) = chromium() else { return };
    let directory = written(&study_results(3, 30, 7), &NoDetails);
    let seen = visit(&chromium, directory.path(), 390, false);
    seen.assert_whole(390);
}

#[test]
#[ignore = "full tier: Chromium"]
fn many_clients_with_their_counters() {
    struct Whole(StudyResults);
    impl Details for Whole {
        fn trace(
            &self,
            _: &RunRecord,
            _: &str,
            _: &mut dyn FnMut(&[TraceRecord]),
        ) -> Option<Result<(), String>> {
            None
        }

        fn whole(&self, run: &RunRecord) -> Result<Option<RunRecord>, String> {
            Ok(self.0.runs.iter().find(|whole| whole.key == run.key).cloned())
        }
    }
    let Some(chromium) = chromium() else { return };
    let mut whole = study_results(5, 2, 2);
    serve(&mut whole);
    spread(&mut whole);
    let directory = written(&as_loaded(&whole), &Whole(whole));
    for (width, dark) in [(390, false), (1400, true)] {
        let seen = visit(&chromium, directory.path(), width, dark);
        // Of two workloads: response, time, histogram, percentiles, workers, clients and stack. Of the effects of one
        // factor: sizes, main effects, four of residuals, Box-Cox.
        assert_eq!(seen.number("expected"), 21, "{seen:?}");
        seen.assert_whole(width);
    }
}

#[test]
#[ignore = "full tier: Chromium"]
fn plots_of_effects() {
    let Some(chromium) = chromium() else { return };
    // Sizes, half-normal, main effects, interactions, cube, four of residuals, Box-Cox; without replicates the model leaves
    // no residuals.
    for (experiment, plots) in [
        (made_up::six(false), 10),
        (made_up::six(true), 10),
        (made_up::fraction(), 10),
        (made_up::unreplicated(), 5),
        (made_up::mixed(), 10),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let page = pages::experiment("made up".into(), &[], &experiment).page().unwrap();
        fs::write(directory.path().join("report.html"), page).unwrap();
        for (width, dark) in [(390, true), (1400, false)] {
            let seen = visit(&chromium, directory.path(), width, dark);
            seen.assert_whole(width);
            assert_eq!(seen.number("plots"), plots, "{seen:?}");
        }
    }
}

#[test]
#[ignore = "full tier: Chromium"]
fn probabilities_of_hash_cast() {
    let Some(chromium) = chromium() else { return };
    let of = |flows: u32| {
        let probability = f64::from(flows) / 100.0;
        let ratio = |ratio: f64, simulated| pages::HashCastRatio {
            ratio,
            probability: probability / ratio,
            simulated,
        };
        pages::HashCastFlows {
            flows,
            ratios: vec![ratio(2.0, Some(probability)), ratio(5.0, None)],
            loads: None,
        }
    };
    let model = pages::HashCast { queues: 8, trials: 100, seed: 7, flows: (2..=60).map(of).collect() };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("report.html"), pages::hash_cast(&model).page().unwrap()).unwrap();
    for (width, dark) in [(390, false), (1400, true)] {
        visit(&chromium, directory.path(), width, dark).assert_whole(width);
    }
}

/// What catches requests catches them: a page that asks for something is found out.
#[test]
#[ignore = "full tier: Chromium"]
fn requests_would_be_noticed() {
    let Some(chromium) = chromium() else { return };
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("report.html"), "<html><img src='http://127.0.0.1:9/x.png'></html>")
        .unwrap();
    let seen = visit(&chromium, directory.path(), 390, false);
    assert_eq!(seen.requests, ["http://127.0.0.1:9/x.png"]);
}

/// A directory with the page of a study.
fn written(results: &StudyResults, details: &dyn Details) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    let analysis = analyze(results);
    let diagnosis = diagnose(results, &analysis, details);
    let page = pages::study(results, &analysis, &diagnosis, Some(details)).page().unwrap();
    fs::write(directory.path().join("report.html"), page).unwrap();
    directory
}
