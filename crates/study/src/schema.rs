//! The JSON Schema of the study file, for editors and other programs.

use std::collections::BTreeMap;

use benchmaster_builtin::WorkloadSpec;
use benchmaster_record::model::Workload;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::Value;

use crate::file::{DesignSection, LoadSection, StudySection};
use crate::settings::{
    ClientSettings, CollectSettings, LabSettings, NetworkSettings, RunSettings, SamplingSettings,
    ServerSettings, TargetSettings,
};

/// The JSON Schema (draft 2020-12) of a study file.
pub fn schema() -> Value {
    SchemaSettings::draft2020_12().into_generator().into_root_schema_for::<StudyDocument>().to_value()
}

/// The schema as it is kept in `docs/study-schema.json`.
pub fn schema_text() -> String {
    let mut text = format!("{:#}", schema());
    text.push('\n');
    text
}

/// A Benchmaster study.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Study")]
struct StudyDocument {
    /// The experiment.
    study: StudySection,
    /// The file system under test.
    target: TargetSettings,
    /// Who serves it.
    #[schemars(default)]
    server: ServerSettings,
    /// What is emulated between clients and server.
    #[schemars(default)]
    network: NetworkSettings,
    /// Who generates load.
    #[schemars(default)]
    clients: ClientSettings,
    /// Machines in user space with the real Linux NFS client and server, in which the study runs.
    lab: Option<LabSettings>,
    /// How a run is done.
    #[schemars(default)]
    run: RunSettings,
    /// What is read beside every measured phase.
    #[schemars(default)]
    sampling: SamplingSettings,
    /// What is run beside every measured phase.
    #[schemars(default)]
    collect: Vec<CollectSettings>,
    /// What is varied, by name.
    #[schemars(default)]
    factors: BTreeMap<String, FactorDocument>,
    /// Which runs are made, how often and in which order.
    #[schemars(default)]
    design: DesignSection,
    /// The load curve that is measured for every treatment of the factors.
    load: Option<LoadSection>,
    /// What a run does, by name: all workloads one after the other, in the order of the file.
    workload: BTreeMap<String, WorkloadDocument>,
}

/// A factor.
#[derive(Serialize, JsonSchema)]
#[schemars(deny_unknown_fields, rename = "Factor")]
struct FactorDocument {
    /// Path of the parameter that takes the values listed in `levels`.
    #[schemars(extend("examples" = ["workload.write.io_size", "target.version", "network.delay", "workload.mix.groups[0].workers"]))]
    parameter: Option<String>,
    /// The levels; the first is the base level.
    levels: LevelsDocument,
    /// Whether its level is changed as seldom as a fair order allows.
    #[serde(default)]
    hard_to_change: bool,
}

/// Levels: values of the factor's `parameter`, or by name what each level sets.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Levels")]
#[expect(dead_code, reason = "it is made for its schema only")]
enum LevelsDocument {
    /// Values of `parameter`.
    Values(#[schemars(length(min = 2))] Vec<Value>),
    /// By name: the parameters that the level sets, by path. All levels set the same parameters.
    Named(BTreeMap<String, BTreeMap<String, Value>>),
}

/// A workload: a built-in one with parameters, or without `use` one in full.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "WorkloadTable")]
#[expect(dead_code, reason = "it is made for its schema only")]
enum WorkloadDocument {
    /// A built-in workload with its parameters.
    BuiltIn(WorkloadSpec),
    /// A workload written in full.
    Full(Workload),
}
