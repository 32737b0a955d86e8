//! The time that a plan announces, and the time that its study takes.

use std::time::Instant;

use serde_json::Value;

use crate::place::{Place, stderr, stdout};

const STUDIES: [(&str, &str); 5] = [
    (
        "wire",
        r#"
[study]
name = "wire"
[target]
url = "nfs://{server}/export"
[factors.io_size]
parameter = "workload.read.io_size"
levels = ["4KiB", "64KiB"]
[design]
replicates = 3
[workload.read]
use = "random-read"
file_size = "4MiB"
duration = "500ms"
"#,
    ),
    (
        "directory",
        r#"
[study]
name = "directory"
[target]
path = "target"
[design]
replicates = 5
[workload.write]
use = "sequential-write"
file_size = "4MiB"
duration = "300ms"
warm_up = "200ms"
"#,
    ),
    (
        "files",
        r#"
[study]
name = "files"
[target]
path = "target"
[run]
filesets = "fresh"
[design]
replicates = 3
[workload.create]
use = "file-creation"
files = 2000
file_size = "16KiB"
[workload.read]
use = "random-read"
file_size = "32MiB"
duration = "500ms"
"#,
    ),
    (
        "load",
        r#"
[study]
name = "load"
[target]
url = "nfs://{server}/export"
[load]
workload = "read"
curve = "open"
from = "100/s"
to = "400/s"
factor = 2
resolution = 0.5
max_replicates = 3
[design]
replicates = 2
[workload.read]
use = "random-read"
file_size = "1MiB"
workers = 4
duration = "300ms"
"#,
    ),
    (
        "adaptive",
        r#"
[study]
name = "adaptive"
[target]
path = "target"
[design]
replicates = { min = 5, max = 10, relative_half_width = 0.05 }
[workload.write]
use = "sequential-write"
file_size = "1MiB"
duration = "300ms"
"#,
    ),
];

#[test]
#[ignore = "full tier: a minute, and a host that has time for it"]
fn studies_take_the_announced_time_within_a_factor_of_two() {
    for (name, study) in STUDIES {
        let place = Place::in_memory();
        place.write("study.toml", study);
        let plan = place.run(&["plan", "study.toml", "--json"]);
        let plan: Value =
            serde_json::from_slice(&plan.stdout).unwrap_or_else(|e| panic!("{e}: {}", stderr(&plan)));
        let time = |end: &str| plan["estimate"]["time"]["all"][end].as_f64().unwrap();
        let began = Instant::now();
        let run = place.run(&["run", "study.toml", "-o", "results"]);
        let taken = began.elapsed().as_secs_f64();
        assert!(matches!(run.status.code(), Some(0 | 1)), "{name}: {}", stderr(&run));
        let (low, high) = (time("low"), time("high"));
        println!("{name}: {low:.1} s to {high:.1} s announced, {taken:.1} s taken");
        assert!(taken > low / 2.0 && taken < high * 2.0, "{name}: {low} s to {high} s, and {taken} s taken");
        // What is announced is worth something.
        assert!(high < 12.0 * low, "{name}: {low} s to {high} s");
        assert!(stderr(&run).contains("; about "), "{name}: {}", stderr(&run));
    }
}

#[test]
fn a_plan_names_targets_that_are_not_there() {
    let place = Place::tiny();
    let warned = |target: &str| {
        let text = crate::place::TINY.replace("path = \"target\"", target);
        place.write("study.toml", &text);
        let plan = place.run(&["plan", "study.toml"]);
        assert_eq!(plan.status.code(), Some(0), "{}", stderr(&plan));
        let words = stdout(&plan).split_whitespace().collect::<Vec<_>>().join(" ");
        words
            .split_once("warning: the target")
            .or_else(|| words.split_once("warning: `"))
            .map(|(_, text)| text.to_owned())
    };
    let missing = warned("path = \"nowhere\"").unwrap();
    assert!(missing.contains("`nowhere` is not a directory; name the directory"), "{missing}");
    let missing = warned("mount = { source = \"/nowhere/device\", type = \"ext4\" }").unwrap();
    assert!(
        missing.contains("/nowhere/device`, the `source` of `target.mount`, does not exist; name the"),
        "{missing}"
    );
    assert_eq!(warned("path = \"target\""), None);
    // Steps may make it.
    assert_eq!(warned("path = \"{scratch}\""), None);
}
