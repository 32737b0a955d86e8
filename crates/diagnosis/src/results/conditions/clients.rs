//! Clients that differ from each other: in how long they wait, in how they mount, in what they are.

use std::collections::{BTreeMap, BTreeSet};

use benchmaster_analysis::counts;
use benchmaster_record::environment::Environment;
use benchmaster_record::results::SessionRecord;
use benchmaster_stats::{mean, median, standard_deviation, t_quantile};

use crate::mountstats::clients::OWN as OWN_OPTIONS;
use crate::prelude::*;
use crate::results::rule::label;

pub(super) const SLOW: Comparison = Comparison { id: "slow-client", compare: slow };

/// Clients that one can be told from.
const LEAST_CLIENTS: usize = 3;
/// Times the median of the others.
const SLOW_BY: f64 = 1.5;
/// Nanoseconds.
const SLOW_LEAST: f64 = 0.3e6;
/// The lower end of the ratio's interval, at least.
const SURE: f64 = 1.2;
/// One in so many is found by chance.
const LEVEL: f64 = 0.01;
/// Operations of each client that a mean is made of.
const LEAST_OPERATIONS: u64 = 30;
const LEAST_RUNS: usize = 3;

/// Mean latencies of clients.
type Latencies = Vec<(u32, f64)>;

/// Mean latency of each client, in its order; `None` when there are too few of them, or one did too little.
fn latencies(recording: &Recording) -> Option<Latencies> {
    let mut clients: BTreeMap<u32, (u64, u64)> = BTreeMap::new();
    for worker in &recording.workers {
        let (count, sum) = clients.entry(worker.client).or_default();
        for series in &worker.series {
            *count += series.count;
            *sum += series.sum_ns;
        }
    }
    let enough =
        clients.len() >= LEAST_CLIENTS && clients.values().all(|(count, _)| *count >= LEAST_OPERATIONS);
    enough.then(|| {
        clients.into_iter().map(|(client, (count, sum))| (client, sum as f64 / count as f64)).collect()
    })
}

/// What a client waits, by the median of the others.
fn ratios(latencies: &[(u32, f64)]) -> Vec<(u32, f64, f64)> {
    let of = |&(client, own): &(u32, f64)| {
        let others: Vec<f64> =
            latencies.iter().filter(|(other, _)| *other != client).map(|(_, mean)| *mean).collect();
        median(&others).filter(|median| *median > 0.0).map(|others| (client, own / others, own - others))
    };
    latencies.iter().filter_map(of).collect()
}

/// Clients do different things in groups of their own only when a workload says so; then they are not compared.
fn alike(recording: &Recording) -> bool {
    let mut groups: BTreeMap<u32, BTreeSet<&str>> = BTreeMap::new();
    for worker in &recording.workers {
        groups.entry(worker.client).or_default().insert(&worker.group);
    }
    let mut sets = groups.values();
    sets.next().is_none_or(|first| sets.all(|set| set == first))
}

fn slow(whole: &Whole<'_>) -> Compared {
    let mut found = Vec::new();
    let (mut looked, mut several) = (false, false);
    for workload in &whole.results.study.workloads {
        let mut by_treatment: BTreeMap<u32, Vec<(&RunRecord, Latencies)>> = BTreeMap::new();
        for run in whole.results.runs.iter().filter(|run| counts(run)) {
            let recording = run.recordings.iter().find(|one| one.workload == workload.name);
            let Some(recording) = recording.filter(|recording| alike(recording)) else { continue };
            if let Some(latencies) = latencies(recording) {
                several = true;
                by_treatment.entry(run.key.treatment).or_default().push((run, latencies));
            }
        }
        for (treatment, runs) in by_treatment.into_iter().filter(|(_, runs)| runs.len() >= LEAST_RUNS) {
            looked = true;
            found.extend(slow_of(whole, &workload.name, treatment, &runs));
        }
    }
    if looked {
        return Compared::found(found);
    }
    let why =
        several.then(|| "clients are compared over 3 runs of a treatment or more (`replicates`)".to_owned());
    Compared { irrelevant: why.is_none(), unknown: why, ..Compared::default() }
}

fn slow_of(
    whole: &Whole<'_>,
    workload: &str,
    treatment: u32,
    runs: &[(&RunRecord, Latencies)],
) -> Option<Finding> {
    let mut logs: BTreeMap<u32, (Vec<f64>, Vec<f64>)> = BTreeMap::new();
    for (_, latencies) in runs {
        for (client, ratio, longer) in ratios(latencies) {
            let (ratios, excess) = logs.entry(client).or_default();
            ratios.push(ratio.max(1e-9).ln());
            excess.push(longer);
        }
    }
    let n = runs.len();
    let clients = logs.len();
    let quantile = t_quantile(1.0 - LEVEL / (2.0 * clients as f64), n as f64 - 1.0);
    let mut slow: Vec<(u32, TestInterval, f64)> = Vec::new();
    for (client, (ratios, excess)) in logs.iter().filter(|(_, (ratios, _))| ratios.len() == n) {
        let (centre, spread) = (mean(ratios)?, standard_deviation(ratios)?);
        let half = quantile * spread / (n as f64).sqrt();
        let (value, lower, upper) = (centre.exp(), (centre - half).exp(), (centre + half).exp());
        // In every run, and not in the mean alone.
        let always = ratios.iter().all(|ratio| ratio.exp() >= SURE);
        let longer = mean(excess)?;
        if value >= SLOW_BY && lower >= SURE && always && longer >= SLOW_LEAST {
            let confidence = 1.0 - LEVEL / clients as f64;
            slow.push((*client, TestInterval { value, lower, upper, confidence }, longer));
        }
    }
    // Where half of the clients are slow there is no other kind that they differ from.
    if slow.is_empty() || slow.len() * 2 > clients - 1 {
        return None;
    }
    slow.sort_by(|(_, a, _), (_, b, _)| b.value.total_cmp(&a.value));
    let (first, interval, longer) = slow.first().copied()?;
    let name = |client: u32| name(runs, workload, client);
    let more = match slow.len() {
        1 => String::new(),
        _ => format!(
            " (so do {})",
            slow[1..].iter().map(|(client, ..)| name(*client)).collect::<Vec<_>>().join(", ")
        ),
    };
    let label = label(whole.results, treatment);
    let what = format!(
        "{} waits {:.1} times as long for an operation as the other clients, {} longer{more}.",
        name(first),
        interval.value,
        time(longer)
    );
    let place = format!("{workload}: {} of {label}", plural(n, "run"));
    let keys = runs.iter().map(|(run, _)| run.key).collect();
    let finding = Finding::new(Confidence::Certain, what)
        .advised(case("slow-client", "study"))
        .with([
            Evidence::number("mean latency, by the median of the others", interval.value),
            Evidence::nanoseconds("how much longer", longer),
        ])
        .tested("t interval of the ratio's logarithm over runs, Bonferroni over clients", None, interval)
        .costs(slow.iter().map(|(_, interval, _)| 1.0 - 1.0 / interval.value).sum::<f64>() / clients as f64)
        .in_treatment(workload, (treatment, label), keys, n)
        .of_clients(slow.iter().map(|(client, ..)| name(*client)));
    Some(Finding { place, ..finding })
}

/// A client by its agent, or its number from 1.
fn name(runs: &[(&RunRecord, Latencies)], workload: &str, client: u32) -> String {
    let recordings = runs.iter().flat_map(|(run, _)| &run.recordings).filter(|one| one.workload == workload);
    let mut agents = recordings.flat_map(|recording| &recording.agents);
    let agent = agents.find(|agent| agent.clients == 1 && agent.first_client == client);
    match agent {
        Some(agent) => format!("Client {} ({})", client + 1, agent.name),
        None => format!("Client {}", client + 1),
    }
}

pub(super) const MOUNTS: Comparison = Comparison { id: "unequal-mounts", compare: mounts };

/// The hosts of clients of a session, as it began: those that have the target mounted, more than one.
fn client_hosts<'a>(whole: &Whole<'a>, session: &'a SessionRecord) -> Vec<(&'a str, &'a Environment)> {
    let runs = whole.results.runs.iter().filter(|run| run.session == session.id);
    let agents = runs.flat_map(|run| &run.recordings).flat_map(|recording| &recording.agents);
    let clients: BTreeSet<&str> =
        agents.filter(|agent| agent.clients > 0).map(|agent| agent.host.as_str()).collect();
    let hosts = session.environment.iter().filter(|(host, _)| clients.contains(host.as_str()));
    hosts.map(|(host, environment)| (host.as_str(), environment)).collect()
}

/// What differs among hosts: a name, and each host's value.
fn different(values: &[(&str, BTreeMap<String, String>)]) -> Vec<String> {
    let names: BTreeSet<&String> = values.iter().flat_map(|(_, values)| values.keys()).collect();
    let mut told = Vec::new();
    for name in names {
        let mut by_value: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (host, values) in values {
            by_value.entry(values.get(name).map_or("not set", String::as_str)).or_default().push(host);
        }
        let values: Vec<&str> = by_value.keys().copied().collect();
        if values.len() > 1 && !nearly_the_same(&values) {
            let words =
                by_value.iter().map(|(value, hosts)| format!("`{}` on {}", value.trim(), hosts.join(", ")));
            told.push(format!("{name} {}", words.collect::<Vec<_>>().join(" and ")));
        }
    }
    told
}

/// Numbers that the kernel works out from its memory differ a little on hosts that are alike otherwise.
fn nearly_the_same(values: &[&str]) -> bool {
    const ALLOWED: f64 = 1.25;
    let numbers =
        |text: &&str| -> Option<Vec<f64>> { text.split_whitespace().map(|word| word.parse().ok()).collect() };
    let Some(rows) = values.iter().map(numbers).collect::<Option<Vec<_>>>() else { return false };
    let columns = rows.first().map_or(0, Vec::len);
    let near = |at: usize| {
        let column = || rows.iter().map(|row| row.get(at).copied().unwrap_or(f64::NAN));
        let (least, most) = (column().fold(f64::MAX, f64::min), column().fold(f64::MIN, f64::max));
        // What is small is counted, and means what it says.
        most == least || (least > 1000.0 && most <= least * ALLOWED)
    };
    rows.iter().all(|row| row.len() == columns) && (0..columns).all(near)
}

fn compare_hosts(
    whole: &Whole<'_>,
    facts: fn(&Environment) -> Option<BTreeMap<String, String>>,
) -> (bool, Vec<String>) {
    let mut told: Vec<String> = Vec::new();
    let mut compared = false;
    for session in &whole.results.sessions {
        let hosts = client_hosts(whole, session).into_iter();
        let values: Vec<_> =
            hosts.filter_map(|(host, environment)| Some((host, facts(environment)?))).collect();
        compared |= values.len() > 1;
        if values.len() > 1 {
            told.extend(different(&values));
        }
    }
    told.sort();
    told.dedup();
    (compared, told)
}

fn mounts(whole: &Whole<'_>) -> Compared {
    let (compared, told) = compare_hosts(whole, |host| {
        let target = host.target.as_ref().filter(|target| target.file_system.starts_with("nfs"))?;
        let options = target.options.split(',').filter_map(|option| {
            let (name, value) = option.split_once('=').unwrap_or((option, "set"));
            (!OWN_OPTIONS.contains(&name)).then(|| (name.to_owned(), value.to_owned()))
        });
        let mut options: BTreeMap<String, String> = options.collect();
        options.extend(target.read_ahead_kib.map(|kib| ("read_ahead_kb".to_owned(), kib.to_string())));
        Some(options)
    });
    if told.is_empty() {
        return Compared::nothing(compared);
    }
    let what = format!("Clients mount the same export in different ways: {}.", told.join("; "));
    let mut finding = Finding::new(Confidence::Certain, what)
        .advised(case("unequal-mounts", "study"))
        .with([Evidence::number("options that differ", told.len() as f64)]);
    finding.place = "clients of the study".into();
    Compared::found(vec![finding])
}

pub(super) const HOSTS: Comparison = Comparison { id: "unequal-clients", compare: hosts };

fn hosts(whole: &Whole<'_>) -> Compared {
    let (compared, mut told) = compare_hosts(whole, |host| {
        let mut facts: BTreeMap<String, String> = host
            .sysctls
            .iter()
            .filter(|(name, _)| ["sunrpc.", "net."].iter().any(|part| name.starts_with(part)))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        facts.insert("kernel".into(), host.kernel.clone());
        facts.insert("processors".into(), host.processors.to_string());
        Some(facts)
    });
    for session in &whole.results.sessions {
        let memories: Vec<u64> = client_hosts(whole, session)
            .iter()
            .filter_map(|(_, environment)| environment.memory_total)
            .collect();
        if let (Some(least), Some(most)) = (memories.iter().min(), memories.iter().max())
            && *most as f64 > *least as f64 * 1.1
        {
            told.push(format!("memory from {} to {} MiB", least >> 20, most >> 20));
        }
    }
    told.dedup();
    if told.is_empty() {
        return Compared::nothing(compared);
    }
    const NAMED: usize = 4;
    let more = if told.len() > NAMED { format!("; and {} more", told.len() - NAMED) } else { String::new() };
    let list = told.iter().take(NAMED).cloned().collect::<Vec<_>>().join("; ");
    let mut finding = Finding::new(Confidence::Certain, format!("Clients are not alike: {list}{more}."))
        .with([Evidence::number("differences", told.len() as f64)]);
    finding.place = "clients of the study".into();
    Compared::found(vec![finding])
}

#[cfg(test)]
mod tests {
    use benchmaster_analysis::analyze;
    use benchmaster_record::results::StudyResults;
    use benchmaster_testkit::{serve, spread, study_results};

    use super::*;

    /// Four clients on two hosts.
    fn made(replicates: u32) -> StudyResults {
        let mut results = study_results(1, 1, replicates);
        serve(&mut results);
        spread(&mut results);
        results.runs.iter_mut().for_each(|run| run.checks.clear());
        for worker in workers(&mut results) {
            for series in &mut worker.series {
                (series.count, series.sum_ns) = (1000, 2_000_000_000);
            }
        }
        let host = results.sessions[0].environment.values().next().unwrap().clone();
        for session in &mut results.sessions {
            session.environment = ["node-1", "node-2"].map(|name| (name.to_owned(), host.clone())).into();
        }
        results
    }

    fn workers(
        results: &mut StudyResults,
    ) -> impl Iterator<Item = &mut benchmaster_record::recording::WorkerRecording> {
        results
            .runs
            .iter_mut()
            .flat_map(|run| &mut run.recordings)
            .flat_map(|recording| &mut recording.workers)
    }

    fn looked(results: &StudyResults, compare: fn(&Whole<'_>) -> Compared) -> Compared {
        let none = StudyResults { runs: Vec::new(), ..results.clone() };
        compare(&Whole { results, analysis: &analyze(&none) })
    }

    #[test]
    fn a_client_that_waits_longer_in_every_run_is_told() {
        let mut results = made(4);
        assert!(looked(&results, slow).found.is_empty());
        for (at, worker) in workers(&mut results).enumerate().filter(|(_, worker)| worker.client == 2) {
            worker
                .series
                .iter_mut()
                .for_each(|series| series.sum_ns = 6_000_000_000 + at as u64 * 10_000_000);
        }
        let found = looked(&results, slow).found;
        assert_eq!(found.len(), 2, "of both workloads");
        assert!(found[0].what.starts_with("Client 3 waits 3."), "{}", found[0].what);
        assert!(found[0].tests[0].interval.unwrap().lower > 2.5);
        // In one run only it is no property of the client.
        let mut once = made(4);
        for worker in workers(&mut once).take(4).filter(|worker| worker.client == 2) {
            worker.series.iter_mut().for_each(|series| series.sum_ns = 20_000_000_000);
        }
        assert!(looked(&once, slow).found.is_empty());
        assert!(looked(&made(2), slow).unknown.is_some());
        assert!(looked(&study_results(1, 1, 4), slow).irrelevant);
    }

    #[test]
    fn hosts_and_mounts_of_clients_are_compared() {
        let mut results = made(1);
        assert!(looked(&results, hosts).found.is_empty() && !looked(&results, hosts).irrelevant);
        let session = results.sessions.last_mut().unwrap();
        let host = session.environment.get_mut("node-2").unwrap();
        host.kernel = "Linux 6.99.0".into();
        host.sysctls.insert("net.ipv4.tcp_mem".into(), "2241\t2988\t4482".into());
        host.sysctls.insert("net.core.rmem_max".into(), "212992".into());
        let target = host.target.as_mut().unwrap();
        target.file_system = "nfs4".into();
        target.options = "rw,vers=4.1,clientaddr=10.0.0.2,rsize=1048576".into();
        let other = session.environment.get_mut("node-1").unwrap();
        other.sysctls.insert("net.ipv4.tcp_mem".into(), "2409\t3213\t4818".into());
        other.sysctls.insert("net.core.rmem_max".into(), "16777216".into());
        let other = other.target.as_mut().unwrap();
        other.file_system = "nfs4".into();
        other.options = "rw,vers=4.1,clientaddr=10.0.0.1,rsize=262144".into();
        let found = looked(&results, hosts).found;
        assert!(found[0].what.contains("`Linux 6.99.0` on node-2"), "{}", found[0].what);
        assert!(
            found[0].what.contains("rmem_max") && !found[0].what.contains("tcp_mem"),
            "{}",
            found[0].what
        );
        let found = looked(&results, mounts).found;
        assert!(
            found[0].what.contains("rsize `1048576` on node-2 and `262144` on node-1"),
            "{}",
            found[0].what
        );
        assert!(!found[0].what.contains("clientaddr"));
        assert!(looked(&study_results(1, 1, 2), mounts).irrelevant);
    }
}
