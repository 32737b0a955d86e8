//! Sessions of a study that was resumed on hosts that had changed meanwhile.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_record::environment::Environment;
use benchmaster_record::results::SessionRecord;

use crate::prelude::*;

pub(super) const DETECTOR: Comparison = Comparison { id: "changed-environment", compare };

/// What of a host matters and should stay as it is.
fn facts(host: &Environment) -> BTreeMap<String, String> {
    let mut facts = BTreeMap::new();
    let mut put = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            facts.insert(name.to_owned(), value);
        }
    };
    put("kernel", Some(host.kernel.clone()));
    put("benchmaster", Some(host.benchmaster.clone()));
    put("processors", Some(host.processors_allowed.to_string()));
    put("processor", host.cpu_model.clone());
    put("clock source", host.clock_source.clone());
    put("governor", host.governor.clone());
    let read_ahead = host.target.as_ref().and_then(|target| target.read_ahead_kib);
    put("read_ahead_kb", read_ahead.map(|kib| kib.to_string()));
    for (name, value) in &host.sysctls {
        put(name, Some(value.clone()));
    }
    facts
}

/// What differs of a host: its name, before, after.
fn differences(before: &Environment, after: &Environment) -> Vec<String> {
    let (one, other) = (facts(before), facts(after));
    let mut different: Vec<String> = one
        .iter()
        .filter_map(|(name, value)| Some((name, value, other.get(name)?)))
        .filter(|(_, value, now)| value != now)
        .map(|(name, value, now)| format!("{name} `{}` → `{}`", value.trim(), now.trim()))
        .collect();
    if let (Some(before), Some(after)) = (before.memory_total, after.memory_total)
        && before.abs_diff(after) * 20 > before
    {
        different.push(format!("memory {} → {} MiB", before >> 20, after >> 20));
    }
    different
}

fn compare(whole: &Whole<'_>) -> Compared {
    let runs =
        |session: &SessionRecord| whole.results.runs.iter().filter(|run| run.session == session.id).count();
    let sessions: Vec<&SessionRecord> =
        whole.results.sessions.iter().filter(|session| runs(session) > 0).collect();
    if sessions.len() < 2 {
        return Compared::nothing(false);
    }
    let mut told: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut after = 0;
    let mut changed: BTreeSet<u32> = BTreeSet::new();
    for pair in sessions.windows(2) {
        let [before, later] = pair else { continue };
        for (host, environment) in &later.environment {
            let Some(earlier) = before.environment.get(host) else { continue };
            let different = differences(earlier, environment);
            if !different.is_empty() {
                changed.insert(later.id);
                told.entry(host.clone()).or_default().extend(different);
            }
        }
    }
    let Some(first) = changed.first() else { return Compared::default() };
    for session in sessions.iter().filter(|session| session.id >= *first) {
        after += runs(session);
    }
    let all: usize = sessions.iter().map(|session| runs(session)).sum();
    const NAMED: usize = 4;
    let count: usize = told.values().map(Vec::len).sum();
    let named: Vec<String> =
        told.iter().flat_map(|(host, list)| list.iter().map(move |one| format!("{host}: {one}"))).collect();
    let more =
        if named.len() > NAMED { format!("; and {} more", named.len() - NAMED) } else { String::new() };
    let list = named.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let mut finding = Finding::new(
        Confidence::Certain,
        format!("The study was resumed on hosts that had changed: {list}{more}."),
    )
    .with([
        Evidence::number("differences", count as f64),
        Evidence::number("runs after the first change", after as f64),
    ])
    .costs(after.min(all - after) as f64 / all as f64)
    .of_clients(told.keys().cloned());
    finding.place = format!("{after} of {all} runs");
    Compared::found(vec![finding])
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::analyze;
    use benchmaster_record::results::StudyResults;
    use benchmaster_testkit::study_results;

    use super::*;

    fn looked(results: &StudyResults) -> Compared {
        compare(&Whole { results, analysis: &analyze(results) })
    }

    #[test]
    fn a_new_kernel_between_sessions_is_told() {
        let mut results = study_results(1, 2, 3);
        assert!(looked(&results).found.is_empty() && !looked(&results).irrelevant);
        for host in results.sessions[1].environment.values_mut() {
            host.kernel = "Linux 6.99.0".into();
            host.memory_total = host.memory_total.map(|memory| memory / 100 * 97);
        }
        let found = looked(&results).found;
        assert!(
            found[0].what.contains("→ `Linux 6.99.0`") && !found[0].what.contains("memory"),
            "{}",
            found[0].what
        );
        assert!((found[0].cost.as_ref().unwrap().share - 0.5).abs() < 1e-9);
        for host in results.sessions[1].environment.values_mut() {
            host.memory_total = host.memory_total.map(|memory| memory / 2);
        }
        assert!(looked(&results).found[0].what.contains("memory"));
    }

    #[test]
    fn one_session_has_nothing_to_be_compared_with() {
        let mut results = study_results(1, 2, 3);
        results.runs.iter_mut().for_each(|run| run.session = 1);
        assert!(looked(&results).irrelevant);
    }
}
