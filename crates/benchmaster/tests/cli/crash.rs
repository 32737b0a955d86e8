//! Killed at fifty random points, a study is what it would have been undisturbed.

use std::path::Path;
use std::time::{Duration, Instant};

use benchmaster_record::results::{RunKey, RunRecord, StudyResults};
use benchmaster_store::Store;
use rusqlite::{Connection, OptionalExtension};

use crate::place::{Place, finish, stderr, stdout, transcript};

const KILLS: usize = 50;
const RUNS: usize = 72;

/// Two targets, one of them a scratch directory; every call is traced.
const STUDY: &str = r#"
[study]
name = "crash"
seed = 11

[target]
path = "target"

[factors.where]
levels = { here = { "target.path" = "target" }, there = { "target.path" = "{scratch}" } }

[factors.io_size]
parameter = "workload.write.io_size"
levels = ["1KiB", "4KiB", "16KiB"]

[design]
replicates = 12

[workload.write]
use = "sequential-write"
file_size = "64KiB"
duration = "10ms"
trace = true
"#;

/// SplitMix64.
struct Random(u64);

impl Random {
    /// From 0 to 1.
    fn share(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as f64 / u64::MAX as f64
    }
}

fn order(results: &StudyResults) -> Vec<RunKey> {
    results.runs.iter().map(|run| run.key).collect()
}

/// The run marked as in flight.
fn in_flight(directory: &Path) -> Option<RunKey> {
    let database = Connection::open(directory.join("results.db")).unwrap();
    let key = |row: &rusqlite::Row<'_>| Ok(RunKey { treatment: row.get(0)?, replicate: row.get(1)? });
    database.query_row("SELECT treatment, replicate FROM in_flight", [], key).optional().unwrap()
}

fn bits(run: &RunRecord) -> Vec<(&str, u64)> {
    run.responses.iter().map(|response| (response.name.as_str(), response.value.to_bits())).collect()
}

#[test]
#[ignore = "full tier: minutes"]
fn killed_at_fifty_points_no_finished_run_is_lost_or_doubled() {
    let place = Place::in_memory();
    place.write("crash.toml", STUDY);

    let began = Instant::now();
    let undisturbed = place.run(&["run", "crash.toml", "-o", "undisturbed", "-q"]);
    let whole = began.elapsed().as_secs_f64();
    assert!(matches!(undisturbed.status.code(), Some(0 | 1)), "{}", transcript(&undisturbed));
    let undisturbed = place.results("undisturbed");
    assert_eq!(undisturbed.runs.len(), RUNS);
    let first = undisturbed.runs[0].started.duration_since(undisturbed.sessions[0].started).as_secs_f64();
    // From the start of the process to the start of the session takes about as long as the session to its first run
    // does at least; half of all points lie before the end of the first run, so that the study outlasts the kills.
    let run = whole / RUNS as f64;
    let span = 2.0 * (first.max(0.02) + 1.2 * run);

    let directory = place.path("crashed");
    let mut random = Random(20_260_302);
    let mut stored: Vec<RunRecord> = Vec::new();
    let (mut cut, mut lost) = (Vec::new(), 0);
    for kill in 0..KILLS {
        let mut child = place.command(&["run", "crash.toml", "-o", "crashed", "-q"]).spawn().unwrap();
        std::thread::sleep(Duration::from_secs_f64(span * random.share()));
        child.kill().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), None, "kill {kill}: it ended by itself\n{}", transcript(&output));
        if !Store::exists(&directory) {
            continue;
        }
        let results = place.results("crashed");
        assert!(results.runs.starts_with(&stored), "kill {kill}: a finished run was lost or changed");
        stored = results.runs;
        if results.sessions.len() > cut.len() {
            assert_eq!(results.sessions.len(), cut.len() + 1, "kill {kill}");
            cut.push(in_flight(&directory));
            lost += usize::from(cut.last().is_some_and(Option::is_some));
        }
    }
    eprintln!(
        "{KILLS} kills within {span:.3} s: {} sessions cut, {lost} runs lost, {} stored",
        cut.len(),
        stored.len()
    );
    assert!(!stored.is_empty() && stored.len() < RUNS, "the points did not spread over the study");
    assert!(lost >= KILLS / 10 && cut.len() < KILLS, "the points did not spread over the phases");

    let mut last = place.command(&["run", "crash.toml", "-o", "crashed"]);
    last.env("COLUMNS", "240");
    let last = finish(last);
    assert!(matches!(last.status.code(), Some(0 | 1)), "{}", transcript(&last));
    let told =
        format!("tiny: resuming after {} of {RUNS} runs, interrupted {} times; ", stored.len(), cut.len());
    assert!(stderr(&last).contains(&told.replace("tiny", "crash")), "{told}\n{}", stderr(&last));
    let told = format!("{RUNS} of {RUNS} runs finished; interrupted {} times", cut.len());
    assert!(stdout(&last).contains(&told), "{told}\n{}", stdout(&last));

    let results = place.results("crashed");
    assert!(results.runs.starts_with(&stored), "a finished run was lost or changed");
    for (now, then) in results.runs.iter().zip(&stored) {
        assert_eq!(bits(now), bits(then));
    }
    let positions: Vec<u32> = results.runs.iter().map(|run| run.position).collect();
    assert_eq!(positions, (0..RUNS as u32).collect::<Vec<_>>());
    let mut keys = order(&results);
    keys.sort_unstable();
    let every = (0..6).flat_map(|treatment| (0..12).map(move |replicate| RunKey { treatment, replicate }));
    assert_eq!(keys, every.collect::<Vec<_>>());
    assert_eq!(order(&results), order(&undisturbed), "the order does not depend on interruptions");

    assert_eq!(results.interruptions(), cut.len());
    assert_eq!(results.sessions.len(), cut.len() + 1);
    for (session, lost) in results.sessions.iter().zip(&cut) {
        assert_eq!((session.ended, session.lost_run), (None, *lost), "session {}", session.id);
    }

    place.assert_nothing_left();
    let mut traces: Vec<&str> =
        results.runs.iter().flat_map(|run| run.traces.values()).map(String::as_str).collect();
    traces.sort_unstable();
    let files: Vec<String> =
        place.list("crashed/traces").iter().map(|name| format!("traces/{name}")).collect();
    assert_eq!(traces, files, "one trace per run and nothing else");
    assert_eq!(
        place.list("crashed"),
        [".lock", "live.json", "report.html", "results.db", "study.toml", "traces"]
    );
}
