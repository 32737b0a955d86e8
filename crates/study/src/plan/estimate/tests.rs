use super::*;
use crate::file::StudyFile;

#[test]
fn time_and_space_are_added_up() {
    let text = r#"
            [study]
            name = "e"
            [target]
            path = "/mnt/x"
            [clients]
            count = 3
            [factors.size]
            parameter = "workload.r.file_size"
            levels = ["1MiB", "2MiB"]
            [design]
            replicates = { min = 5, max = 10, relative_half_width = 0.1 }
            [workload.r]
            use = "random-read"
            fileset = "data"
            io_size = "4KiB"
            duration = "2s"
            warm_up = "500ms"
            [workload.c]
            use = "file-creation"
            files = 10
            file_size = "1KiB"
        "#;
    let plan = Plan::from_study(&StudyFile::parse("e.toml", text).unwrap(), "1").unwrap();
    let expected = Estimate {
        time: plan.estimate().time,
        runs_min: 10,
        runs_max: 20,
        runs_likely: None,
        seconds_min: 25.0,
        seconds_max: 50.0,
        seconds_likely: None,
        open_ended: vec!["c".into()],
        bytes_prepared: 3 * (2 << 20),
        bytes_needed: 3 * (2 << 20) + 3 * 10 * 1024,
    };
    assert_eq!(plan.estimate(), expected);
}

/// A limit of time beside one of bytes is the latest end, and not the time that it will take.
#[test]
fn work_that_may_end_earlier_is_not_estimated_by_its_latest_end() {
    let text = r#"
            [study]
            name = "e"
            [target]
            path = "/mnt/x"
            [design]
            replicates = 2
            [workload.w]
            use = "sequential-write"
            file_size = "1MiB"
            duration = "1h"
            bytes = "1MiB"
            [workload.r]
            use = "random-read"
            file_size = "1MiB"
            duration = "2s"
            warm_up = "0s"
        "#;
    let plan = Plan::from_study(&StudyFile::parse("e.toml", text).unwrap(), "1").unwrap();
    let found = plan.estimate();
    assert_eq!((found.seconds_min, found.seconds_max), (4.0, 7204.0));
    assert_eq!(found.open_ended, ["w"]);
    let shown = plan.describe().render(crate::plan::design::TextForm { width: 100, all: false });
    let time = found.time;
    // Of `w` a mebibyte at the rates assumed of a directory, and never its latest end.
    assert_eq!(time.measuring.low, 4.0 + 2.0 * (1048576.0 / 3e9 + 16.0 * 3e-6));
    assert_eq!(time.measuring.high, 4.0 + 2.0 * (1048576.0 / 100e6 + 16.0 * 0.3e-3));
    // Files of both: created, written, closed, removed.
    assert_eq!(time.files.high, 2.0 * (4.0 * 0.3e-3 + 1048576.0 / 100e6));
    let line = format!("time        {}: 4 s of measuring, 0 s to 0.02 s for files", time.all);
    assert!(shown.contains(&line), "{shown}");
}

fn time(changes: &str) -> TimeEstimate {
    let text = format!(
        r#"
            [study]
            name = "e"
            [workload.r]
            use = "random-read"
            file_size = "1MiB"
            duration = "2s"
            warm_up = "1s"
            {changes}
        "#
    );
    let file = StudyFile::parse("e.toml", &text).unwrap_or_else(|found| panic!("{found}"));
    Plan::from_study(&file, "1").unwrap_or_else(|found| panic!("{found}")).estimate().time
}

#[test]
fn a_study_takes_the_sum_of_its_parts() {
    let found = time("[target]\npath = \"/mnt/x\"\n[design]\nreplicates = 5");
    assert_eq!(found.measuring, Seconds::exactly(15.0));
    // Made once, and read by all runs: created, written, closed, removed.
    assert_eq!(found.files.high, 4.0 * 0.3e-3 + 1048576.0 / 100e6);
    assert_eq!(found.all.low, found.measuring.low + found.files.low + found.around.low);
    assert_eq!(found.all.high, found.measuring.high + found.files.high + found.around.high);
    assert!(found.around.high > found.around.low && found.around.low > 0.0, "{found:?}");
    assert!(found.unknown.is_empty() && found.steps == 0, "{found:?}");
}

#[test]
fn files_that_each_run_wants_fresh_are_made_for_each() {
    let of = |fresh: &str| time(&format!("[target]\npath = \"/mnt/x\"\n[design]\nreplicates = 5\n{fresh}"));
    let (reused, fresh) = (of(""), of("[run]\nfilesets = \"fresh\""));
    assert!((fresh.files.high - 5.0 * reused.files.high).abs() < 1e-9, "{fresh:?}, {reused:?}");
}

#[test]
fn the_network_is_measured_once_in_a_session() {
    let target = "[target]\nurl = \"nfs://{server}/export\"\n[design]\nreplicates = 5\n";
    let (with, without) = (time(target), time(&format!("{target}[run]\nbaseline = false")));
    let trip = std::time::Duration::from_micros(50);
    let least = crate::baseline::length(trip, true).as_secs_f64();
    assert!((with.around.low - without.around.low - least).abs() < 1e-9, "{with:?}, {without:?}");
    // Transfers of both directions, numbers of flows and repetitions alone take eight times 100 ms.
    assert!(least > 0.8 && least < 0.9, "{least}");
}

#[test]
fn replicates_until_an_interval_is_narrow_are_a_range() {
    let found = time(
        "[target]\npath = \"/mnt/x\"\n[design]\nreplicates = { min = 5, max = 20, relative_half_width = 0.1 }",
    );
    assert_eq!(found.runs, Seconds::new(5.0, 20.0));
    assert_eq!(found.measuring, Seconds::new(15.0, 60.0));
}

/// Each load is a stage of its own: the network is measured again, and files are made again.
#[test]
fn a_load_curve_takes_the_loads_of_its_rise_and_of_its_search() {
    let load = "[load]\nworkload = \"r\"\ncurve = \"open\"\nfrom = \"100/s\"\nto = \"800/s\"\nfactor = 2\n\
                    resolution = 0.5\nmax_replicates = 3\n";
    let target = "[target]\nurl = \"nfs://{server}/export\"\n[design]\nreplicates = 2\n";
    let found = time(&format!("{target}{load}"));
    // 100, 200, 400 and 800 per second rise, one halves two of them, and one may be run three times.
    assert_eq!(found.runs, Seconds::new(4.0, 2.0 * 5.0 + 1.0));
    assert_eq!(found.measuring, Seconds::new(12.0, 33.0));
    let once = time(&format!("{target}{load}[run]\nbaseline = false"));
    let each = (found.around.low - once.around.low) / 2.0;
    assert!(
        (each - crate::baseline::length(std::time::Duration::from_micros(50), true).as_secs_f64()).abs()
            < 1e-9
    );
}

#[test]
fn what_is_written_bounds_what_ends_with_its_work() {
    let file = |target: &str| {
        let text = format!(
            "[study]\nname = \"e\"\n[target]\n{target}\n[design]\nreplicates = 5\n[workload.c]\nuse = \"file-creation\"\n\
                 files = 1000\nfile_size = \"16KiB\""
        );
        let file = StudyFile::parse("e.toml", &text).unwrap_or_else(|found| panic!("{found}"));
        Plan::from_study(&file, "1").unwrap_or_else(|found| panic!("{found}")).estimate().time
    };
    let found = file("path = \"/mnt/x\"");
    // Create, write and close each of 1000 files in each of 5 runs.
    let [calls, bytes] = [15_000.0, 5_000.0 * 16384.0];
    assert!((found.measuring.low - (calls * 3e-6 + bytes / 3e9)).abs() < 1e-9, "{found:?}");
    assert!((found.measuring.high - (calls * 0.3e-3 + bytes / 100e6)).abs() < 1e-9, "{found:?}");
    // A delay is in every call.
    let far = file("url = \"nfs://{server}/export\"\n[network]\ndelay = \"5ms\"");
    assert!(far.measuring.low > calls * 0.5 * 10e-3 && far.measuring.high < calls * 3.1 * 10e-3, "{far:?}");
}

#[test]
fn hosts_of_clients_are_counted_in_hours() {
    let time = |clients: &str| {
        let text = format!(
            "[study]\nname = \"e\"\n[target]\npath = \"/mnt/x\"\n{clients}\n[design]\nreplicates = 5\n[workload.r]\n\
             use = \"random-read\"\nfile_size = \"1MiB\"\nduration = \"1h\""
        );
        let file = StudyFile::parse("e.toml", &text).unwrap_or_else(|found| panic!("{found}"));
        Plan::from_study(&file, "1").unwrap_or_else(|found| panic!("{found}")).estimate().time
    };
    for (clients, nodes) in [
        ("[clients]\nhosts = [\"c[1-4]\"]\ncount = 8", 4),
        ("[clients]\nlauncher = \"slurm\"\ncount = 8\nnodes = 2", 2),
        ("[factors.n]\nparameter = \"clients.count\"\nlevels = [3, 9]\n[clients]\nlauncher = \"slurm\"", 9),
    ] {
        let found = time(clients);
        // Five runs of an hour for each level.
        let hours = f64::from(nodes) * if nodes == 9 { 10.0 } else { 5.0 };
        assert_eq!(found.nodes, nodes);
        let [low, high] = found.node_hours;
        assert!(low >= hours && low < 1.01 * hours && high >= low, "{clients}: {found:?}");
        assert!(found.to_string().contains(&format!(" node-hours on {nodes} hosts")), "{found}");
    }
    let here = time("[clients]\ncount = 3");
    assert!(here.nodes == 0 && !here.to_string().contains("node-hours"), "{here}");
}
