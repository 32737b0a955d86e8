//! What is printed, as snapshots: stdout is an interface.

use benchmaster_analysis::analyze;
use benchmaster_diagnosis::diagnosis::{Absent, Diagnosis, Explained, Limiting, Part, Spent};
use benchmaster_diagnosis::finding::{Confidence, Cost, CostOf, Evidence, Finding, Remedy, Test};
use benchmaster_record::results::{Replication, SessionEnd, StudyResults};
use benchmaster_report::pages;
use benchmaster_report::terminal::{TextOptions, summary};
use benchmaster_testkit::{fail, study_results};

fn options(width: usize) -> TextOptions {
    TextOptions { width, ..TextOptions::default() }
}

fn printed(results: &StudyResults, options: &TextOptions) -> String {
    summary(results, &analyze(results), &Diagnosis::default(), options)
}

/// Without what is found in made-up runs, which changes with what is looked for.
fn analysed(results: &StudyResults, options: &TextOptions) -> String {
    pages::study(results, &analyze(results), &Diagnosis::default(), None).text(options)
}

#[test]
fn a_factorial_study_at_80_columns() {
    insta::assert_snapshot!(printed(&study_results(7, 4, 5), &options(80)));
}

#[test]
fn a_factorial_study_at_120_columns() {
    let report = Some("results/report.html".into());
    insta::assert_snapshot!(printed(&study_results(7, 4, 5), &TextOptions { report, ..options(120) }));
}

#[test]
fn a_single_run() {
    insta::assert_snapshot!(printed(&study_results(7, 1, 1), &options(80)));
}

#[test]
fn three_levels_in_ascii_with_a_failed_run() {
    let mut results = study_results(7, 3, 3);
    fail(&mut results.runs[4], "write: input/output error (EIO) on /mnt/data/0003");
    insta::assert_snapshot!(printed(&results, &TextOptions { unicode: false, ..options(80) }));
    // In a file or a pipe nothing is cut.
    let whole = printed(&results, &TextOptions { cut: false, ..options(80) });
    assert!(!whole.contains('…'), "{whole}");
    assert!(printed(&results, &options(80)).contains('…'));
}

#[test]
fn a_study_that_was_stopped_before_its_first_run() {
    let mut results = study_results(7, 2, 2);
    results.runs.clear();
    insta::assert_snapshot!(printed(&results, &options(80)));
}

#[test]
fn sequential_stopping_is_stated_with_its_caution() {
    let mut results = study_results(7, 1, 6);
    results.study.replicates = Replication::Sequential { min: 5, max: 30, relative_half_width: 0.05 };
    insta::assert_snapshot!(analysed(&results, &options(80)));
    // The end of `run` says so too.
    let whole = printed(&results, &TextOptions { cut: false, ..options(120) });
    assert!(whole.contains("tight enough. The number of runs was decided by the data"), "{whole}");
    let strict = Replication::Sequential { min: 5, max: 5, relative_half_width: 0.001 };
    results.study.replicates = strict;
    let whole = printed(&results, &TextOptions { cut: false, ..options(120) });
    assert!(whole.contains("NOT as tight as asked for"), "{whole}");
}

/// Findings with long sentences, more than are told.
fn many_findings() -> Diagnosis {
    let finding = |id, share: Option<f64>| {
        Finding {
        id,
        what: "The kernel's client sent 37 of 2,560 calls again after 200 ms without a reply, and while it waited for them \
               no other call of the same connection was answered, so that the slowest calls took 203 ms instead of 1.1 ms."
            .into(),
        place: "write: 12 of 40 runs, in 2 treatments, most in sync=on".into(),
        at: None,
        evidence: vec![],
        tests: vec![],
        confidence: Confidence::Likely,
        cost: share.map(|share| Cost { share, of: CostOf::OperationTime, estimate: "waiting over all".into() }),
        remedy: Remedy::new("Look for loss on the way to the server; with several connections one of them alone would wait.")
            .fitted_with("mount -o nconnect=4 server:/export /mnt"),
        also: Vec::new(),
    }
    };
    let ids = ["retransmission", "tcp-window", "noisy-host", "queue", "reconnect"];
    let shares = [Some(0.21), Some(0.05), Some(0.01), None, None];
    let findings = ids.into_iter().zip(shares).map(|(id, share)| finding(id, share)).collect();
    let absent = Absent { id: "server-disk", place: String::new(), why: String::new() };
    Diagnosis { findings, absent: vec![absent; 9], clear: vec!["cached-reads"; 17], ..Diagnosis::default() }
}

#[test]
fn a_summary_fits_a_screen() {
    let report = Some("results/a-study-with-a-name/report.html".into());
    let directory = Some("results/a-study-with-a-name".into());
    let options = TextOptions { report, directory, ..options(80) };
    for diagnosis in
        [many_findings(), Diagnosis { findings: vec![], ..many_findings() }, Diagnosis::default()]
    {
        for (treatments, replicates) in
            [(1, 1), (1, 5), (2, 3), (3, 2), (4, 5), (6, 3), (8, 5), (9, 2), (40, 1)]
        {
            let results = study_results(3, treatments, replicates);
            let text = summary(&results, &analyze(&results), &diagnosis, &options);
            assert!(text.lines().count() <= 30, "{treatments} treatments:\n{text}");
            assert!(text.lines().all(|line| line.chars().count() <= 80), "{treatments} treatments:\n{text}");
            let told = diagnosis.findings.iter().filter(|finding| text.contains(finding.id)).count();
            assert_eq!(told, diagnosis.findings.len().min(3), "{text}");
            assert!(text.ends_with("report: results/a-study-with-a-name/report.html\n"), "{text}");
        }
    }
}

#[test]
fn a_diagnosis_is_printed_with_all_its_evidence() {
    let mut diagnosis = many_findings();
    diagnosis.findings.truncate(2);
    let finding = &mut diagnosis.findings[0];
    finding.evidence = vec![
        Evidence { half_width: Some(120_000.0), runs: 5, ..Evidence::nanoseconds("mean wait", 2_134_000.0) },
        Evidence::number("calls sent again", 37.0),
    ];
    finding.tests = vec![Test { name: "Mann-Whitney".into(), p: Some(0.000_01), interval: None }];
    diagnosis.damage = vec!["samples of run 3: not readable".into()];
    diagnosis.absent =
        vec![Absent { id: "server-disk", place: "write, sync=on".into(), why: "run an agent there".into() }];
    diagnosis.limits = vec![Limiting {
        workload: "write".into(),
        treatment: 1,
        label: "sync=on".into(),
        limit: Some(Explained { id: "server-disk", share: 0.87, runs: 20, of: 20 }),
        contributing: vec![Explained { id: "retransmission", share: 0.05, runs: 12, of: 20 }],
        account: vec![Spent { part: Part::Server, share: 0.9 }, Spent { part: Part::Path, share: 0.1 }],
    }];
    for width in [60, 80, 120] {
        let lead = vec!["40 runs of 2 treatments, 2 findings".to_owned()];
        let text = pages::diagnosis("a study".into(), lead, &diagnosis).text(&options(width));
        if width == 80 {
            insta::assert_snapshot!(text);
        }
        assert!(text.lines().all(|line| line.chars().count() <= width), "{text}");
        let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
        for shown in ["2.13 ms ± 120 µs", "<0.0001", "DAMAGED", "87 %", "run an agent there", "server 90 %"]
        {
            assert!(words.contains(shown), "{shown} is missing:\n{text}");
        }
    }
}

#[test]
fn a_finding_is_explained() {
    let one = benchmaster_diagnosis::catalogue::explain("retransmission").into_iter().next().unwrap();
    let text = pages::explanation(one).text(&options(80));
    assert!(text.starts_with("retransmission: "), "{text}");
    assert!(["WHY", "RULE", "SOURCE"].iter().all(|title| text.contains(&format!("\n{title}\n"))), "{text}");
}

#[test]
fn findings_are_shown_with_cost_and_remedy() {
    let results = study_results(7, 8, 5);
    let directory = Some("results/made-up".into());
    let options = TextOptions { directory, ..options(80) };
    insta::assert_snapshot!(summary(&results, &analyze(&results), &many_findings(), &options));
}

#[test]
fn of_many_treatments_the_best_and_the_worst_are_shown() {
    let results = study_results(3, 40, 2);
    let text = printed(&results, &options(80));
    assert!(text.contains("the best 4 and the worst 3; 33 more are between"), "{text}");
    let rows: Vec<_> = text.lines().filter(|line| line.contains("±") && line.ends_with("ok")).collect();
    assert!((6..=7).contains(&rows.len()), "{text}");
}

#[test]
fn every_finding_is_in_the_analysis() {
    let results = study_results(7, 2, 2);
    let text = pages::study(&results, &analyze(&results), &many_findings(), None).text(&options(80));
    let findings = &text[text.find("FINDINGS").unwrap()..text.find("\n\nVALIDITY").unwrap()];
    insta::assert_snapshot!(findings);
}

#[test]
fn effects_of_a_balanced_study() {
    let mut results = study_results(7, 4, 3);
    results.runs.iter_mut().for_each(|r| r.checks.clear());
    insta::assert_snapshot!(analysed(&results, &options(100)));
}

#[test]
fn effects_of_three_levels() {
    let results = study_results(7, 3, 4);
    insta::assert_snapshot!(analysed(&results, &options(100)));
}

#[test]
fn effects_of_an_unreplicated_study() {
    let mut results = study_results(7, 4, 1);
    results.runs.iter_mut().for_each(|r| r.checks.clear());
    let text = analysed(&results, &options(100));
    let effects = text.split("EFFECTS OF THE FACTORS").nth(1).unwrap().split("\nOTHER").next().unwrap();
    insta::assert_snapshot!(effects);
}

#[test]
fn nothing_is_wider_than_the_terminal() {
    for (treatments, replicates) in [(1, 1), (2, 3), (4, 2), (6, 2)] {
        let results = study_results(3, treatments, replicates);
        for width in [60, 80, 100, 132] {
            let text = analysed(&results, &options(width));
            let widest = text.lines().map(|l| l.chars().count()).max().unwrap();
            assert!(widest <= width, "{treatments} treatments: {widest} > {width}\n{text}");
        }
    }
}

#[test]
fn every_mean_has_an_interval_or_the_reason_why_not() {
    for (treatments, replicates) in [(1, 1), (2, 1), (4, 2), (3, 5)] {
        let results = study_results(9, treatments, replicates);
        let text = analysed(&results, &options(200));
        // Rows of the tables of results end with their validity.
        let is_row = |l: &&str| l.ends_with(" ok") || l.ends_with(" invalid") || l.ends_with(" warned");
        let rows: Vec<_> = text.lines().filter(is_row).collect();
        assert_eq!(rows.len(), 2 * treatments as usize, "{text}");
        for line in rows {
            let single = line.split_whitespace().any(|c| c == "1" || c.starts_with("1/"));
            assert!(line.contains('±') || single, "{line}");
        }
        let single = analyze(&results)
            .treatments
            .iter()
            .any(|t| t.responses[0].estimate.as_ref().is_some_and(|e| e.half_width.is_none()));
        assert_eq!(text.contains("n = 1: no interval, because"), single, "{text}");
    }
}

#[test]
fn colour_only_when_asked_and_never_inside_words() {
    let results = study_results(7, 4, 5);
    let plain = printed(&results, &options(100));
    assert!(!plain.contains('\u{1b}'));
    let colored = printed(&results, &TextOptions { color: true, ..options(100) });
    assert!(colored.contains("\u{1b}[1;31mINVALID\u{1b}[0m: errors"));
}

/// A study of an export: the synthetic one as if it had gone over the wire.
fn served() -> StudyResults {
    let mut results = study_results(7, 2, 3);
    results.runs.iter_mut().for_each(|r| r.checks.clear());
    benchmaster_testkit::serve(&mut results);
    results
}

#[test]
fn rpcs_are_compared_by_treatment() {
    let text = analysed(&served(), &options(100));
    let calls = text.split("\n\n").filter(|section| section.contains("RPCs per client"));
    insta::assert_snapshot!(calls.collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn every_phase_has_its_table_of_rpcs() {
    let results = served();
    let text = analysed(&results, &options(120));
    let rpcs = text.split("\n\n").filter(|section| section.contains("RPCs, ")).take(3).collect::<Vec<_>>();
    insta::assert_snapshot!(rpcs.join("\n\n"));
}

/// The same with four clients on two hosts, through an emulated network.
fn of_many() -> StudyResults {
    let mut results = served();
    benchmaster_testkit::spread(&mut results);
    results
}

#[test]
fn an_analysis_describes_clients_and_network() {
    let text = analysed(&of_many(), &options(100));
    let head = text.split("\n\nFINDINGS").next().unwrap();
    insta::assert_snapshot!(head);
}

#[test]
fn agents_starts_and_baselines_have_their_tables() {
    let results = of_many();
    let text = analysed(&results, &options(120));
    let of_clients = |section: &&str| {
        ["Synchronisation of", "Load of", ": agents", "Networks with", "Baselines of", "Failed attempts"]
            .iter()
            .any(|title| section.lines().next().is_some_and(|line| line.contains(title)))
    };
    insta::assert_snapshot!(text.split("\n\n").filter(of_clients).collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn a_study_that_was_stopped_is_not_called_never_interrupted() {
    let told = |end: Option<SessionEnd>| {
        let mut results = study_results(7, 4, 5);
        let last = results.sessions.len() - 1;
        results.sessions.drain(..last);
        let session = &mut results.sessions[0];
        session.ended = end.map(|end| (session.started, end));
        printed(&results, &options(200))
    };
    assert!(told(Some(SessionEnd::Complete)).contains("never interrupted"));
    for (end, words) in [
        (Some(SessionEnd::Stopped), "stopped before its end"),
        (Some(SessionEnd::Failed), "ended by an error"),
        (None, "not ended (killed, or still running)"),
    ] {
        let text = told(end);
        assert!(text.contains(words) && !text.contains("never interrupted"), "{end:?}: {text}");
    }
}

#[test]
fn the_scale_is_in_the_summary_and_in_the_analysis() {
    let mut results = study_results(7, 4, 5);
    results.study.design_details.scale = Some(0.02);
    let text = printed(&results, &options(200));
    assert!(text.contains("scaled by 0.02") || text.contains("Scaled by 0.02"), "{text}");
    let whole = analysed(&results, &options(200));
    assert!(
        whole.contains("Scaled by 0.02: amounts of data, numbers of files and times are 0.02 of"),
        "{whole}"
    );
}
