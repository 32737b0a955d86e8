//! Job files of other tools.

use serde_json::Value;

use crate::place::{Place, snapshot, stderr, stdout, transcript};

const JOBS: &str = "\
[global]
directory=target
size=256k
bs=16k
[write]
rw=write
cpus_allowed=0
[read]
stonewall
rw=randread
bssplit=4k/50:8k/50
";

#[test]
fn a_job_file_of_fio_becomes_a_study_that_runs() {
    let place = Place::new();
    place.write("jobs.fio", JOBS);
    let imported = place.run(&["import", "fio", "jobs.fio", "-o", "jobs.toml"]);
    snapshot("import_fio", &place, &transcript(&imported));
    snapshot("import_fio_study", &place, &std::fs::read_to_string(place.path("jobs.toml")).unwrap());
    // The same on standard output.
    let printed = place.run(&["import", "fio", "jobs.fio"]);
    assert_eq!(stdout(&printed), std::fs::read_to_string(place.path("jobs.toml")).unwrap());
    let run = place.run(&["run", "jobs.toml", "-o", "results", "--set", "design.replicates=1", "--json"]);
    assert!(run.status.success(), "{}", stderr(&run));
    let export = place.run(&["export", "results", "--format", "json", "-o", "-"]);
    let document: Value = serde_json::from_slice(&export.stdout).unwrap();
    let moved = |number: usize, label: &str| {
        let series = document["runs"][0]["recordings"][number]["series"].as_array().unwrap();
        let one = series.iter().find(|series| series["series"] == label).unwrap();
        (one["total"]["count"].as_u64().unwrap(), one["total"]["bytes"].as_u64().unwrap())
    };
    assert_eq!(moved(0, "write"), (16, 256 << 10));
    let (count, bytes) = moved(1, "read");
    assert!((32..=64).contains(&count) && (256 << 10..264 << 10).contains(&bytes), "{count} {bytes}");
}

#[test]
fn what_is_missing_counts_when_strict() {
    let place = Place::new();
    place.write("jobs.fio", JOBS);
    assert_eq!(place.run(&["import", "fio", "jobs.fio", "--strict"]).status.code(), Some(1));
    let json = place.run(&["import", "fio", "jobs.fio", "--json", "--target", "nfs://filer/vol1"]);
    assert_eq!(json.status.code(), Some(0));
    let document: Value = serde_json::from_slice(&json.stdout).unwrap();
    let study = document["study"].as_str().unwrap();
    assert!(study.contains("[target]\nurl = \"nfs://filer/vol1\"\n"), "{study}");
    let unmet: Vec<&Value> =
        document["notes"].as_array().unwrap().iter().filter(|note| note["kind"] == "unsupported").collect();
    assert_eq!(unmet.len(), 1);
    assert_eq!((unmet[0]["line"].as_u64(), unmet[0]["text"].as_str()), (Some(7), Some("cpus_allowed=0")));
    place.write("exact.fio", &JOBS.replace("cpus_allowed=0\n", ""));
    let strict = place.run(&["import", "fio", "exact.fio", "--strict"]);
    assert_eq!((strict.status.code(), stderr(&strict).as_str()), (Some(0), ""));
}

#[test]
fn a_size_stands_for_what_exists() {
    let place = Place::new();
    place.write("device.fio", "[job]\nfilename=/dev/sdx\nrw=randread\n");
    snapshot("import_fio_device", &place, &transcript(&place.run(&["import", "fio", "device.fio"])));
    let sized = place.run(&["import", "fio", "device.fio", "--size", "64MiB"]);
    assert_eq!(sized.status.code(), Some(0));
    assert!(stdout(&sized).contains("size = \"64MiB\""), "{}", stdout(&sized));
}

#[test]
fn mistakes_of_job_files_look_so() {
    let place = Place::new();
    place.write("wrong.fio", "[job]\nsize=1.5g\niodpeth=4\n");
    snapshot("import_fio_wrong", &place, &transcript(&place.run(&["import", "fio", "wrong.fio"])));
    snapshot("import_fio_missing", &place, &transcript(&place.run(&["import", "fio", "missing.fio"])));
}
