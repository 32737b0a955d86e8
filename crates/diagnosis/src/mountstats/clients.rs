//! Clients that differ from the others.

use super::observed::Observed;
use super::rule::Comparison;
use crate::prelude::*;

/// Calls of one operation that a mean is made of.
const LEAST_CALLS: u64 = 500;
/// Clients that an outlier can be told from.
const LEAST_CLIENTS: usize = 3;
/// Times the others' median round trip.
const SLOW_BY: f64 = 2.0;
/// Milliseconds.
const SLOW_LEAST: f64 = 0.5;
/// Options that are a client's own.
pub(crate) const OWN: [&str; 4] = ["clientaddr", "addr", "mountaddr", "port"];

pub(super) const UNEQUAL: Comparison = Comparison { id: "unequal-mounts", compare: compare_options };

fn compare_options(observed: &[Observed]) -> Vec<Finding> {
    let mut devices: Vec<&str> = observed.iter().map(|one| one.mount.device.as_str()).collect();
    devices.sort_unstable();
    devices.dedup();
    devices.into_iter().filter_map(|device| unequal(device, observed)).collect()
}

fn unequal(device: &str, observed: &[Observed]) -> Option<Finding> {
    let mounts: Vec<&Observed> = observed.iter().filter(|one| one.mount.device == device).collect();
    let mut clients: Vec<&str> = mounts.iter().map(|one| one.client.as_str()).collect();
    clients.dedup();
    if clients.len() < 2 {
        return None;
    }
    let options = |one: &Observed| -> Vec<String> {
        let own = |option: &&str| OWN.contains(&option.split('=').next().unwrap_or_default());
        one.mount.options.split(',').filter(|option| !own(option)).map(str::to_owned).collect()
    };
    let sets: Vec<Vec<String>> = mounts.iter().map(|one| options(one)).collect();
    let everywhere = |option: &String| sets.iter().all(|set| set.contains(option));
    let mut different: Vec<String> = Vec::new();
    for (one, set) in mounts.iter().zip(&sets) {
        let own: Vec<&str> = set.iter().filter(|option| !everywhere(option)).map(String::as_str).collect();
        if !own.is_empty() {
            different.push(format!("{} has {}", one.client, own.join(",")));
        }
    }
    (!different.is_empty()).then(|| Finding {
        place: clients.join(", "),
        ..Finding::new(
            Confidence::Certain,
            format!("Clients mount {device} with different options: {}.", different.join("; ")),
        )
        .with([Evidence::number("clients whose options are not all the same", different.len() as f64)])
    })
}

pub(super) const SLOW: Comparison = Comparison { id: "slow-client", compare: compare_round_trips };

fn compare_round_trips(observed: &[Observed]) -> Vec<Finding> {
    let mut names: Vec<&str> =
        observed.iter().flat_map(Observed::called).map(|operation| operation.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let mut slow: Vec<(&Observed, Vec<String>, Vec<Evidence>)> = Vec::new();
    for name in names {
        let means: Vec<(&Observed, f64)> = observed
            .iter()
            .filter_map(|one| Some((one, one.operation(name).filter(|o| o.ops >= LEAST_CALLS)?)))
            .map(|(one, operation)| (one, operation.rtt_ms as f64 / operation.ops as f64))
            .collect();
        if means.len() < LEAST_CLIENTS {
            continue;
        }
        for (at, (one, mean)) in means.iter().enumerate() {
            let mut others: Vec<f64> = means
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, (_, mean))| *mean)
                .collect();
            others.sort_by(f64::total_cmp);
            let median = others[others.len() / 2];
            if *mean < SLOW_BY * median || mean - median < SLOW_LEAST {
                continue;
            }
            let words = format!("{name} {mean:.1} ms, others {median:.1} ms");
            let evidence = [
                Evidence::milliseconds(format!("mean round trip of {name}"), *mean),
                Evidence::milliseconds(format!("median of the others' mean round trips of {name}"), median),
            ];
            match slow.iter_mut().find(|(other, ..)| std::ptr::eq(*other, *one)) {
                Some((_, list, all)) => {
                    list.push(words);
                    all.extend(evidence);
                }
                None => slow.push((one, vec![words], evidence.into())),
            }
        }
    }
    let finding = |(one, words, evidence): (&Observed, Vec<String>, Vec<Evidence>)| {
        let what =
            format!("{} waits longer for replies than the other clients: {}.", one.client, words.join("; "));
        Finding { place: one.place(), ..Finding::new(Confidence::Likely, what).with(evidence) }
    };
    slow.into_iter().map(finding).collect()
}
