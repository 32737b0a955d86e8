//! The model on states, and the view as pictures.

use super::*;
use crate::keys::{Action, Key};
use crate::screen::Screen;
use benchmaster_record::live::{ClientState, Message, Run, Runs};
use benchmaster_record::phase::Phase;

const START: u64 = 1_800_000_000_000;

/// The state after `second` seconds of a phase, with so many clients.
fn state(second: u64, clients: u64) -> Live {
    let client = |n: u64| {
        let rate = 1_000 + 137 * n;
        Client {
            name: format!("c{n}"),
            host: format!("node{n}"),
            state: match n {
                4 => ClientState::Lost,
                _ => ClientState::Running,
            },
            reason: (n == 4).then(|| "ssh: connection to node4 reset by peer".into()),
            operations: second * rate + second * second * n,
            bytes: second * rate * 65_536,
            errors: u64::from(n == 2) * second,
            latency_ns: 0,
            clock_offset_us: Some(3.25 * n as f64 - 4.0),
            clock_bound_us: Some(12.0),
        }
    };
    Live {
        study: "wan-nfs".into(),
        host: "head1".into(),
        session_started_ms: START - 754_000,
        written_ms: START + second * 1_000,
        runs: Runs { position: 8, total: 60, open: true, stored: 7, failed: 1, seconds_left: Some(612.0) },
        run: Some(Run {
            treatment: "version=v41 delay=6.87ms io_size=64KiB".into(),
            replicate: 2,
            workload: Some("write".into()),
            phase: Phase::Measure,
            phase_elapsed_s: second as f64,
            phase_length_s: Some(60.0),
            precision: Precision {
                response: "write.throughput".into(),
                runs: 3,
                runs_min: 5,
                runs_max: 20,
                relative_half_width: Some(0.0213),
                confidence: 0.95,
                goal: Some(0.05),
            },
        }),
        clients: (1..=clients).map(client).collect(),
        rates: Some(Rates {
            interval_s: 1.0,
            operations_per_s: (4_000 + second * second % 97 * 40) as f64,
            bytes_per_s: 262.1e6,
            errors_per_s: 1.0,
            mean_latency_s: Some(1e-3 + 2e-5 * (second * 7 % 31) as f64),
        }),
        errors: second,
        messages: vec![
            Message { at_ms: START - 90_000, text: "run 7 stored: write.throughput 251 MB/s".into() },
            Message { at_ms: START + 3_000, text: "c4 is lost: connection to node4 reset by peer".into() },
        ],
        ..Live::default()
    }
}

fn watched(clients: u64) -> Study {
    let mut study = Study::default();
    (0..=40).for_each(|second| study.take(Ok(state(second, clients))));
    study
}

fn picture(view: &StudyView, study: &Study, now_ms: u64, width: u16, height: u16) -> String {
    let mut screen = Screen::new(width, height);
    view.draw(&mut screen, study, "results/wan-nfs", now_ms);
    // As snapshots have it: spaces at the ends of rows are seen.
    screen
        .to_string()
        .lines()
        .map(|row| {
            format!(
                "\"{row}\"
"
            )
        })
        .collect()
}

const NOW: u64 = START + 40_500;

#[test]
fn pictures_at_both_sizes() {
    let view = StudyView::default();
    for (width, height) in [(80, 24), (140, 40)] {
        insta::assert_snapshot!(format!("five_{width}"), picture(&view, &watched(5), NOW, width, height));
        insta::assert_snapshot!(format!("many_{width}"), picture(&view, &watched(200), NOW, width, height));
    }
}

#[test]
fn pictures_of_a_study_that_does_not_run() {
    let view = StudyView::default();
    let mut absent = Study::default();
    absent.take(Err("`results/wan-nfs` has no live.json: no study runs there".into()));
    insta::assert_snapshot!("absent", picture(&view, &absent, NOW, 80, 8));
    insta::assert_snapshot!("stale", picture(&view, &watched(2), START + 400_000, 80, 16));
    let mut finished = watched(2);
    let end = Live { session: Session::Finished, run: None, rates: None, clients: vec![], ..state(41, 0) };
    finished.take(Ok(end));
    insta::assert_snapshot!("finished", picture(&view, &finished, NOW + 5_000_000, 80, 16));
    let mut failed = watched(2);
    failed.take(Ok(Live {
        session: Session::Failed,
        reason: Some("no space\x1b left".into()),
        ..state(41, 2)
    }));
    insta::assert_snapshot!("failed", picture(&view, &failed, NOW, 80, 16));
}

#[test]
fn rates_are_differences_within_a_phase() {
    let mut study = Study::default();
    study.take(Ok(state(0, 1)));
    assert_eq!(study.clients, [ClientRates::default()]);
    study.take(Ok(state(2, 1)));
    let rate = (2.0 * 1_137.0 + 4.0) / 2.0;
    assert_eq!(study.clients[0].operations_per_s, Some(rate));
    // The same state read twice changes nothing.
    study.take(Ok(state(2, 1)));
    assert_eq!(study.clients[0].operations_per_s, Some(rate));
    assert_eq!(study.by_client["c1"].len(), 1);
    // Counters begin again with the next phase, and with an agent that was started again.
    let mut next = state(3, 1);
    next.runs.position += 1;
    study.take(Ok(next.clone()));
    assert_eq!(study.clients, [ClientRates::default()]);
    assert!(study.by_client.is_empty());
    next.written_ms += 1_000;
    next.clients[0].operations = 0;
    study.take(Ok(next));
    assert_eq!(study.clients, [ClientRates::default()]);
}

#[test]
fn trouble_in_between_keeps_the_last_state() {
    let mut study = watched(1);
    study.take(Err("`r/live.json` is not the state of a study: EOF".into()));
    assert!(study.goes_on(NOW) && !study.goes_on(START + 400_000));
    assert!(
        study.line(NOW).contains("run 8 of 60+")
            && study.line(NOW).ends_with("not the state of a study: EOF")
    );
    study.take(Ok(state(42, 1)));
    let line = "wan-nfs: run 8 of 60+; version=v41 delay=6.87ms io_size=64KiB, replicate 2; write: measure 42.0 of 60.0 s; \
                4.72k ops/s, 262 MB/s; mean latency 1.30 ms; write.throughput ±2.1 % (95 %) after 3 of 5 to 20 \
                runs, goal 5 %; 1 client, 0 errors";
    assert_eq!(study.line(NOW), line);
}

#[test]
fn keys_go_through_clients() {
    let study = watched(200);
    let mut view = StudyView::default();
    let shows = |view: &StudyView, text: &str| picture(view, &study, NOW, 100, 24).contains(text);
    assert!(shows(&view, "c1 node1 ") && !shows(&view, "c200 node200"));
    assert_eq!(view.key(Key::End, &study), Action::Draw);
    assert!(shows(&view, "c200 node200") && shows(&view, "to 200 of 200 clients"));
    view.key(Key::Down, &study);
    view.key(Key::Home, &study);
    assert!(shows(&view, "c1 node1 "));
    // By operations per second: the fastest first, then the slowest.
    view.key(Key::Right, &study);
    assert!(shows(&view, "c4 node4"), "by state: what is lost first");
    view.key(Key::Right, &study);
    assert!(shows(&view, "c200 node200"));
    view.key(Key::Char('r'), &study);
    assert!(shows(&view, "c1 node1 "));
    view.key(Key::Char(' '), &study);
    assert!(view.is_paused() && shows(&view, "PAUSED"));
    view.key(Key::Char('?'), &study);
    assert!(shows(&view, "the study goes on"));
    assert_eq!(view.key(Key::Escape, &study), Action::Draw);
    assert_eq!(view.key(Key::Char('q'), &study), Action::Quit);
}

#[test]
fn no_size_is_too_small() {
    let view = StudyView::default();
    for (width, height) in [(1, 1), (2, 5), (10, 3), (30, 10), (300, 100), (79, 23)] {
        picture(&view, &watched(30), NOW, width, height);
        picture(&view, &watched(30), START + 400_000, width, height);
        picture(&view, &Study::default(), NOW, width, height);
    }
}
