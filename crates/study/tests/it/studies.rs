//! The studies of the repository and the examples of the documentation can be run, and plans say what they will do.
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use benchmaster_builtin::{BUILT_IN, WorkloadSpec};
use benchmaster_study::file::StudyFile;
use benchmaster_study::plan::Plan;
use benchmaster_study::plan::design::TextForm;
use benchmaster_study::settings::{CacheControl, SCRATCH, TargetKind};
use benchmaster_units::ByteSize;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn plan(name: &str, text: &str) -> Plan {
    let file = StudyFile::parse(name, text).unwrap_or_else(|found| panic!("{found}"));
    Plan::from_study(&file, "1").unwrap_or_else(|found| panic!("{found}"))
}

fn load(name: &str) -> Plan {
    plan(name, &std::fs::read_to_string(root().join("studies").join(name)).unwrap())
}

#[test]
fn every_study_of_the_repository_can_be_run() {
    let mut used = BTreeSet::new();
    for entry in std::fs::read_dir(root().join("studies")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let plan = load(&name);
        assert!(plan.warnings.is_empty(), "{name}: {}", plan.warnings);
        assert_eq!(format!("{}.toml", plan.study.name), name);
        used.extend(plan.study.workloads.into_iter().map(|workload| workload.use_name));
    }
    // A replay needs a trace, which a user has.
    for built_in in BUILT_IN.iter().filter(|built_in| !["custom", "replay"].contains(&built_in.name)) {
        assert!(used.contains(built_in.name), "no study uses `{}`", built_in.name);
    }
}

#[test]
fn the_quickstart_is_quick() {
    let plan = load("quickstart.toml");
    let estimate = plan.estimate();
    assert_eq!((plan.treatments.len(), estimate.runs_min, estimate.runs_max), (8, 40, 40));
    assert!(estimate.seconds_max <= 50.0 && estimate.open_ended.is_empty(), "{estimate:?}");
    assert!(estimate.bytes_needed <= 128 << 20, "{estimate:?}");
    let target = &plan.treatments[0].settings.target;
    assert_eq!(target.kind(), TargetKind::Embedded("nfs://{server}/export"));
    let directory = load("directory.toml");
    assert!(directory.estimate().seconds_max <= 45.0);
    assert_eq!(directory.treatments[0].settings.target.path.as_deref(), Some(SCRATCH));
}

#[test]
fn levels_are_put_into_their_places() {
    let plan = plan(
        "levels.toml",
        r#"
        [study]
        name = "levels"
        [target]
        path = "/a"
        [factors.use]
        parameter = "workload.w.use"
        levels = ["sequential-write", "random-write"]
        [factors.place]
        levels = { near = { target.path = "/a", "run.cache" = "keep" }, far = { target.path = "/b", "run.cache" = "drop" } }
        [factors.clients]
        parameter = "clients.count"
        levels = [1, 3, 9]
        [workload.w]
        file_size = "1MiB"
        "#,
    );
    let labels: Vec<_> = plan.treatments.iter().map(|t| t.record.label.as_str()).collect();
    assert_eq!(labels.len(), 12);
    assert_eq!(labels[0], "use=sequential-write place=near clients=1");
    assert_eq!(labels[11], "use=random-write place=far clients=9");
    let last = &plan.treatments[11].settings;
    assert_eq!((last.clients(), last.target.place(), last.run.cache), (9, "/b", CacheControl::Drop));
    let WorkloadSpec::RandomWrite(parameters) = &last.workloads[0].1 else { panic!("{last:?}") };
    assert_eq!(parameters.file_size, ByteSize::mib(1));
    assert_eq!(plan.study.factors[1].settings[1]["target.path"], "\"/b\"");
    assert_eq!(plan.study.primary_response, "w.throughput");
}

#[test]
fn one_at_a_time_has_one_treatment_per_level() {
    let text = std::fs::read_to_string(root().join("studies/directory.toml")).unwrap();
    let plan = plan("q.toml", &text.replace("[design]", "[design]\nkind = \"one-at-a-time\""));
    let labels: Vec<_> = plan.study.treatments.iter().map(|t| t.label.as_str()).collect();
    assert_eq!(labels, ["io_size=64KiB sync=off", "io_size=1MiB sync=off", "io_size=64KiB sync=on"]);
    assert_eq!(plan.study.design, "one-at-a-time");
}

#[test]
fn a_study_without_factors_has_one_treatment_with_its_name() {
    let plan = plan(
        "a.toml",
        "[study]\nname = \"one\"\n[target]\npath = \"/x\"\n[workload.w]\nuse = \"file-creation\"\n",
    );
    assert_eq!(plan.study.treatments.len(), 1);
    assert_eq!(plan.study.treatments[0].label, "one");
    assert_eq!((plan.study.seed, plan.study.confidence), (1, 0.95));
    assert_eq!(plan.study.primary_response, "w.create.operations");
}

#[test]
fn too_many_treatments_are_refused() {
    let levels: Vec<_> = (1..2000).collect();
    let factor =
        |name: &str| format!("[factors.{name}]\nparameter = \"workload.w.{name}\"\nlevels = {levels:?}\n");
    let text = format!(
        "[study]\nname = \"big\"\n[target]\npath = \"/x\"\n{}{}[workload.w]\nuse = \"metadata\"\n",
        factor("workers"),
        factor("directory_entries")
    );
    let file = StudyFile::parse("big.toml", &text).unwrap();
    let found = Plan::from_study(&file, "1").unwrap_err().to_string();
    assert!(found.contains("treatments") && found.contains("one-at-a-time"), "{found}");
}

#[test]
fn a_plan_is_described() {
    insta::assert_snapshot!("quickstart", load("quickstart.toml").describe().render(TextForm::default()));
    insta::assert_snapshot!("directory", load("directory.toml").describe().render(TextForm::default()));
    let sequential = load("paper000-file-creation.toml").describe();
    insta::assert_snapshot!("file_creation", sequential.render(TextForm::default()));
    let text = std::fs::read_to_string(root().join("studies/paper000-random-read.toml")).unwrap();
    insta::assert_snapshot!(
        "random_read",
        plan("r.toml", &text.replace("min = 5", "min = 3")).describe().render(TextForm::default())
    );
    let mut description = load("quickstart.toml").describe();
    assert_eq!(description.runs.len(), 40);
    description.runs.truncate(2);
    description.responses.truncate(2);
    insta::assert_json_snapshot!("quickstart_json", description);
}

/// All blocks of TOML in the documentation are studies, complete and right.
#[test]
fn the_examples_of_the_documentation_can_be_run() {
    for (document, least) in [("docs/study-file.md", 4), ("CONTRIBUTING.md", 1), ("README.md", 1)] {
        let text = std::fs::read_to_string(root().join(document)).unwrap();
        let blocks: Vec<_> =
            text.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap()).collect();
        assert!(blocks.len() >= least, "{document}: {} examples", blocks.len());
        for (number, block) in blocks.iter().enumerate() {
            let plan = plan(&format!("{document}, example {}", number + 1), block);
            assert!(plan.estimate().runs_min > 0);
        }
    }
}
