//! What differs between two results besides their numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use benchmaster_record::environment::Environment;
use benchmaster_record::results::{LabRecord, RunRecord, StudyRecord, StudyResults};
use serde::Serialize;
use toml::Value;

use super::common::pairs;
use crate::durability::durability;
use crate::runs::counts;

/// Something that is not the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// What: `kernel`, `server.kind`, `workload.write.io_size`, ….
    pub key: String,
    /// In the first results.
    pub a: String,
    /// In the second.
    pub b: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} | {}", self.key, self.a, self.b)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differences {
    /// Those that make a comparison meaningless: kind and file system of the target, kind of the server, network, machines, kernel,
    /// processors, virtualisation, clients, workloads, and what levels of the same name set.
    pub decisive: Vec<Difference>,
    /// Those that may be what is compared, or explain it: hosts, addresses, mount options, versions, kernel settings.
    pub noted: Vec<Difference>,
}

/// Sections of the study file of which every key must be the same.
const DECISIVE_SECTIONS: [&str; 2] = ["workload", "clients"];

/// Sections whose differences are reported.
const NOTED_SECTIONS: [&str; 6] = ["target", "lab", "server", "network", "run", "sampling"];

pub fn differences(a: &StudyResults, b: &StudyResults) -> Differences {
    let mut found = Differences { decisive: vec![], noted: vec![] };
    for (key, of) in DECISIVE {
        add(&mut found.decisive, key, set(a, of), set(b, of));
    }
    add(&mut found.decisive, "target.kind", target_kinds(a), target_kinds(b));
    add(&mut found.decisive, "server.kind", server_kinds(a), server_kinds(b));
    network(&mut found.decisive, a, b);
    machines(&mut found.decisive, a, b);
    durability_of_cells(&mut found.decisive, a, b);
    levels(&mut found.decisive, &a.study, &b.study);
    add(&mut found.decisive, "study.scale", scale(&a.study), scale(&b.study));
    text(&mut found, &a.study, &b.study);
    for (key, of) in NOTED {
        add(&mut found.noted, key, set(a, of), set(b, of));
    }
    add(&mut found.noted, "server.url", urls(a), urls(b));
    sysctls(&mut found.noted, a, b);
    add(&mut found.noted, "benchmaster", one(&a.study.version), one(&b.study.version));
    found
}

type Property = fn(&Environment) -> Option<String>;

const DECISIVE: [(&str, Property); 5] = [
    ("target.file_system", |e| e.target.as_ref().map(|t| t.file_system.clone())),
    ("kernel", |e| Some(e.kernel.clone())),
    ("cpu_model", |e| e.cpu_model.clone()),
    ("processors_allowed", |e| Some(e.processors_allowed.to_string())),
    ("virtualization", |e| e.virtualization.clone()),
];

const NOTED: [(&str, Property); 6] = [
    ("host", |e| Some(e.host.clone())),
    ("distribution", |e| e.distribution.clone()),
    ("governor", |e| e.governor.clone()),
    ("clock_source", |e| e.clock_source.clone()),
    ("target.source", |e| e.target.as_ref().map(|t| t.source.clone())),
    ("target.options", |e| e.target.as_ref().map(|t| t.options.clone())),
];

/// The distinct values of a property over all hosts and sessions.
fn set(results: &StudyResults, of: Property) -> BTreeSet<String> {
    results.sessions.iter().flat_map(|s| s.environment.values()).filter_map(of).collect()
}

fn scale(study: &StudyRecord) -> BTreeSet<String> {
    one(&study.design_details.scale.unwrap_or(1.0).to_string())
}

fn one(value: &str) -> BTreeSet<String> {
    BTreeSet::from([value.to_owned()])
}

fn add(list: &mut Vec<Difference>, key: &str, a: BTreeSet<String>, b: BTreeSet<String>) {
    if a != b {
        let shown = |values: BTreeSet<String>| {
            if values.is_empty() {
                "(none)".to_owned()
            } else {
                values.into_iter().collect::<Vec<_>>().join(", ")
            }
        };
        list.push(Difference { key: key.into(), a: shown(a), b: shown(b) });
    }
}

fn target_kinds(results: &StudyResults) -> BTreeSet<String> {
    let kind = |run: &RunRecord| match &run.service {
        Some(service) if service.url.contains("://") => "NFS export",
        _ => "directory",
    };
    results.runs.iter().map(|run| kind(run).to_owned()).collect()
}

fn server_kinds(results: &StudyResults) -> BTreeSet<String> {
    results.runs.iter().filter_map(|run| Some(run.service.as_ref()?.server.to_string())).collect()
}

fn urls(results: &StudyResults) -> BTreeSet<String> {
    results.runs.iter().filter_map(|run| Some(run.service.as_ref()?.url.clone())).collect()
}

/// What a difference of durability is called.
pub(super) const DURABILITY: &str = "durability";

/// A server that loses what it acknowledged, or of which that is not known, is no faster than one that does not.
fn durability_of_cells(list: &mut Vec<Difference>, a: &StudyResults, b: &StudyResults) {
    let of = |results: &StudyResults, treatment: u32| one(durability(results, treatment, None).name());
    for (of_a, of_b) in pairs(&a.study, &b.study) {
        let (in_a, in_b) = (of(a, of_a.index), of(b, of_b.index));
        let cell = if of_a.label.is_empty() { String::new() } else { format!(" of {}", of_a.label) };
        add(list, &format!("{DURABILITY}{cell}"), in_a, in_b);
    }
}

/// The network of the cells that are compared: a factor may vary it between cells.
fn network(list: &mut Vec<Difference>, a: &StudyResults, b: &StudyResults) {
    type Part = fn(&benchmaster_record::results::NetworkRecord) -> String;
    let parts: [(&str, Part); 5] = [
        ("network.means", |n| n.emulator.to_string()),
        ("network.delay", |n| format!("{} ns", n.delay_ns)),
        ("network.jitter", |n| format!("{} ns", n.jitter_ns)),
        ("network.bandwidth", |n| n.bandwidth.map_or("not limited".into(), |b| format!("{b} bit/s"))),
        ("network.loss", |n| n.loss.to_string()),
    ];
    let of = |results: &StudyResults, treatment: u32, part: Part| -> BTreeSet<String> {
        let runs = results.runs.iter().filter(|r| r.key.treatment == treatment && counts(r));
        runs.filter_map(|r| r.service.as_ref()).map(|s| part(&s.network)).collect()
    };
    add_different(list, a, b, parts, of);
}

/// Adds those of `parts` in which a pair of cells differs; `of` gives the values of one in the runs of a treatment.
fn add_different<P: Copy>(
    list: &mut Vec<Difference>,
    a: &StudyResults,
    b: &StudyResults,
    parts: impl IntoIterator<Item = (&'static str, P)>,
    of: impl Fn(&StudyResults, u32, P) -> BTreeSet<String>,
) {
    for (key, part) in parts {
        let different = pairs(&a.study, &b.study)
            .into_iter()
            .map(|(of_a, of_b)| (of(a, of_a.index, part), of(b, of_b.index, part)))
            .find(|(a, b)| a != b && !a.is_empty() && !b.is_empty());
        if let Some((a, b)) = different {
            add(list, key, a, b);
        }
    }
}

/// The labs of the cells that are compared: a factor may vary them between cells.
fn machines(list: &mut Vec<Difference>, a: &StudyResults, b: &StudyResults) {
    type Part = fn(&LabRecord) -> String;
    let parts: [(&str, Part); 6] = [
        ("lab.back_end", |lab| lab.back_end.clone()),
        ("lab.time", |lab| lab.time.to_string()),
        ("lab.kernel", |lab| lab.client_kernels().into_iter().collect::<Vec<_>>().join(", ")),
        ("lab.server", |lab| lab.server.clone()),
        ("lab.server_kernel", |lab| lab.server_kernel().unwrap_or("no machine").to_owned()),
        ("lab.emulated", |lab| lab.emulated.to_string()),
    ];
    let of = |results: &StudyResults, treatment: u32, part: Part| -> BTreeSet<String> {
        let runs = results.runs.iter().filter(|run| run.key.treatment == treatment && counts(run));
        runs.map(|run| run.lab.as_ref().map_or_else(|| "no lab".into(), part)).collect()
    };
    add_different(list, a, b, parts, of);
}

/// The machines of all runs in words, each lab once; `real hosts` for runs without one.
pub fn machines_of(results: &StudyResults) -> BTreeSet<String> {
    let words =
        |run: &RunRecord| run.lab.as_ref().map_or_else(|| "real hosts".to_owned(), ToString::to_string);
    results.runs.iter().filter(|run| counts(run)).map(words).collect()
}

/// Levels of the same name that set something else.
fn levels(list: &mut Vec<Difference>, a: &StudyRecord, b: &StudyRecord) {
    for factor in &a.factors {
        let Some(other) = b.factors.iter().find(|f| f.name == factor.name) else { continue };
        for (level, settings) in factor.levels.iter().zip(&factor.settings) {
            let at = other.levels.iter().position(|l| l == level);
            let Some(others) = at.and_then(|at| other.settings.get(at)) else { continue };
            let written = |settings: &BTreeMap<String, String>| {
                settings.iter().map(|(path, value)| format!("{path} = {value}")).collect()
            };
            add(list, &format!("factors.{}.{level}", factor.name), written(settings), written(others));
        }
    }
}

/// The study files, apart from what factors set in both.
fn text(found: &mut Differences, a: &StudyRecord, b: &StudyRecord) {
    let (Ok(of_a), Ok(of_b)) = (a.text.parse::<toml::Table>(), b.text.parse::<toml::Table>()) else {
        add(&mut found.decisive, "study file", one(&a.text), one(&b.text));
        return;
    };
    let paths = |study: &StudyRecord| -> BTreeSet<String> {
        study.factors.iter().flat_map(|f| &f.settings).flat_map(|s| s.keys().cloned()).collect()
    };
    let (varied_a, varied_b) = (paths(a), paths(b));
    let (leaves_a, leaves_b) = (leaves(&of_a), leaves(&of_b));
    let keys: BTreeSet<&String> = leaves_a.keys().chain(leaves_b.keys()).collect();
    for key in keys {
        if varied_a.contains(key) && varied_b.contains(key) {
            continue;
        }
        let section = key.split('.').next().unwrap_or_default();
        let list = if DECISIVE_SECTIONS.contains(&section) {
            &mut found.decisive
        } else if NOTED_SECTIONS.contains(&section) {
            &mut found.noted
        } else {
            continue;
        };
        let value = |leaves: &BTreeMap<String, String>| leaves.get(key).map(|v| one(v)).unwrap_or_default();
        add(list, key, value(&leaves_a), value(&leaves_b));
    }
}

/// Every value of a document by its dotted path.
fn leaves(table: &toml::Table) -> BTreeMap<String, String> {
    fn descend(prefix: &str, value: &Value, leaves: &mut BTreeMap<String, String>) {
        match value {
            Value::Table(table) => {
                for (key, value) in table {
                    descend(&format!("{prefix}.{key}"), value, leaves);
                }
            }
            value => {
                leaves.insert(prefix.to_owned(), value.to_string());
            }
        }
    }
    let mut found = BTreeMap::new();
    for (key, value) in table {
        descend(key, value, &mut found);
    }
    found
}

fn sysctls(list: &mut Vec<Difference>, a: &StudyResults, b: &StudyResults) {
    let settings = |results: &StudyResults| {
        let mut all: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        for environment in results.sessions.iter().flat_map(|s| s.environment.values()) {
            for (name, value) in &environment.sysctls {
                all.entry(name.clone()).or_default().insert(value.clone());
            }
        }
        all
    };
    let (of_a, mut of_b) = (settings(a), settings(b));
    for (name, values) in of_a {
        let other = of_b.remove(&name).unwrap_or_default();
        add(list, &name, values, other);
    }
    for (name, values) in of_b {
        add(list, &name, BTreeSet::new(), values);
    }
}
