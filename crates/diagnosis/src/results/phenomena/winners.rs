//! Winners and losers among clients.

use std::collections::BTreeSet;

use benchmaster_analysis::counts;
use benchmaster_record::results::{ServedBy, ServiceRecord};
use benchmaster_stats::fairness::{TwoClusters, two_clusters};
use benchmaster_stats::hash_cast;
use benchmaster_stats::interval::welch;
use benchmaster_stats::random::Generator;

use super::clients::{PARTS, course, rates, together};
use super::tools::{digits, p_text};
use super::transmit_queues::Hashed;
use crate::prelude::*;

/// Two clients are one and the other, not groups.
const LEAST_CLIENTS: usize = 3;
/// Beyond them winners and losers are no question of hashing.
const MOST_CLIENTS: usize = 64;
/// Operations of each client, below which luck has a part in it.
const LEAST_CALLS: u64 = 20;
const MOST_P: f64 = 0.05;
/// Part of the ratio that measurement may take from it.
const TOLERANCE: f64 = 0.9;
/// Drawn samples.
const DRAWS: usize = 2_000;

pub(super) const DETECTOR: Detector = Detector { id: "winners-and-losers", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some(rates) = together(measured.recording, |parts| course(measured, parts)) else {
        return Verdict::Irrelevant;
    };
    if !(LEAST_CLIENTS..=MOST_CLIENTS).contains(&rates.of.len()) || rates.fewest < LEAST_CALLS {
        return Verdict::Irrelevant;
    }
    // Where queues were sampled and divide the line, they decide, in a single run, too.
    let seen = Hashed::of(measured.recording);
    if let Some(found) = seen.as_ref().and_then(|seen| seen.divide(&rates.of)) {
        return Verdict::Found(finding(measured, &rates.of, &found, seen.as_ref(), None, false));
    }
    let Some((found, p)) = divided(&rates.of) else { return Verdict::Clear };
    let same = always_the_same(measured);
    // One client that is slow in every run is a slow client.
    if p > MOST_P || (same && found.losers.len() == 1) {
        return Verdict::Clear;
    }
    Verdict::Found(finding(measured, &rates.of, &found, seen.as_ref(), Some(p), same))
}

/// Winners and losers among clients with these rates, if chance does not divide as many so.
pub(super) fn winners(rates: &[(u32, f64)]) -> Option<TwoClusters> {
    divided(rates).filter(|(_, p)| *p <= MOST_P).map(|(found, _)| found)
}

/// Winners and losers, and how likely chance divides as many clients so.
fn divided(rates: &[(u32, f64)]) -> Option<(TwoClusters, f64)> {
    if let Some(found) = pattern(rates) {
        return Some((found, chance(rates)));
    }
    let values: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    let (found, off) = sharing(&values)?;
    let (mean, deviation) =
        (benchmaster_stats::mean(&values)?, benchmaster_stats::standard_deviation(&values)?);
    let alike = spread(&found, &values);
    let mut random = Generator::new(rates.len() as u64, "shared queues");
    let as_close = (0..DRAWS).filter(|_| {
        let drawn: Vec<f64> = values.iter().map(|_| (mean + deviation * random.normal()).max(0.0)).collect();
        sharing(&drawn).is_some_and(|(other, also)| also <= off && spread(&other, &drawn) <= alike)
    });
    Some((found, (as_close.count() + 1) as f64 / (DRAWS + 1) as f64))
}

/// Losers that differ from each other, and together get what so many winners get: they share as many queues. With how far
/// that is off.
fn sharing(values: &[f64]) -> Option<(TwoClusters, f64)> {
    let found = two_clusters(values).filter(|found| found.ratio() >= 1.5 && found.ratio().is_finite())?;
    let sum: f64 = found.losers.iter().map(|i| values[*i]).sum();
    let queues = (sum / found.winners_mean).round();
    let off = (sum / found.winners_mean / queues - 1.0).abs();
    let fewer = queues >= 1.0 && (queues as usize) < found.losers.len();
    (fewer && found.winners.len() >= 2 && off <= 0.1 && spread(&found, values) <= 0.1).then_some((found, off))
}

/// By how much winners vary.
fn spread(found: &TwoClusters, values: &[f64]) -> f64 {
    let winners: Vec<f64> = found.winners.iter().map(|i| values[*i]).collect();
    benchmaster_stats::standard_deviation(&winners).unwrap_or(0.0) / found.winners_mean
}

fn pattern(rates: &[(u32, f64)]) -> Option<TwoClusters> {
    let values: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    two_clusters(&values).filter(|found| found.is_pattern() && found.ratio().is_finite())
}

/// The share of the sum of squares that is left within two clusters.
fn left(values: &[f64]) -> f64 {
    let squares = |values: &[f64]| {
        let mean = benchmaster_stats::mean(values).unwrap_or(0.0);
        values.iter().map(|value| (value - mean).powi(2)).sum::<f64>()
    };
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    let within = (1..values.len()).map(|cut| squares(&values[..cut]) + squares(&values[cut..]));
    within.fold(f64::INFINITY, f64::min) / squares(&values).max(f64::MIN_POSITIVE)
}

/// How often as many normal values fall into two clusters as clearly: whatever their mean and spread.
fn chance(rates: &[(u32, f64)]) -> f64 {
    let values: Vec<f64> = rates.iter().map(|(_, rate)| *rate).collect();
    let observed = left(&values);
    let mut random = Generator::new(rates.len() as u64, "two clusters");
    let as_clear = (0..DRAWS).filter(|_| {
        let drawn: Vec<f64> = values.iter().map(|_| random.normal()).collect();
        left(&drawn) <= observed
    });
    (as_clear.count() + 1) as f64 / (DRAWS + 1) as f64
}

/// Transmit queues of the server to which connections may be hashed: those of the emulated network, none within one host, else
/// those of common network cards and the papers'.
pub(super) fn transmit_queues(run: &RunRecord) -> Option<u32> {
    let no_card =
        |service: &ServiceRecord| service.server == ServedBy::Embedded || service.network.is_emulated();
    let card = (!run.service.as_ref().is_some_and(no_card)).then_some(8);
    run.parameters.transmit_queues.or(card)
}

/// Whether the same clients lose in all of three or more runs of the treatment.
fn always_the_same(measured: &Measured<'_>) -> bool {
    let of_treatment = |run: &&RunRecord| run.key.treatment == measured.run.key.treatment && counts(run);
    let losers = measured.results.runs.iter().filter(of_treatment).filter_map(|run| {
        let rates = rates(&measured.in_run(run)?)?.of;
        let found = pattern(&rates)?;
        Some(found.losers.iter().map(|i| rates[*i].0).collect::<Vec<u32>>())
    });
    let losers: Vec<_> = losers.collect();
    losers.len() >= 3 && losers.iter().collect::<BTreeSet<_>>().len() == 1
}

fn finding(
    measured: &Measured<'_>,
    rates: &[(u32, f64)],
    found: &TwoClusters,
    seen: Option<&Hashed>,
    p: Option<f64>,
    same: bool,
) -> Finding {
    let ratio = found.ratio();
    let sum: f64 = rates.iter().map(|(_, rate)| rate).sum();
    let mean = sum / rates.len() as f64;
    let flows = rates.len() as u32;
    let queues = transmit_queues(measured.run);
    let hashed = queues.map(|queues| {
        let probability = hash_cast::probability_of_ratio(flows, queues, (ratio * TOLERANCE).max(1.0));
        (queues, probability.unwrap_or(0.0))
    });
    let names = |indices: &[usize]| -> Vec<u32> { indices.iter().map(|i| rates[*i].0).collect() };
    let list = |indices: &[usize]| {
        names(indices).iter().map(|client| (client + 1).to_string()).collect::<Vec<_>>().join(", ")
    };
    let hashing = if seen.is_some() {
        "the server's transmit queues, which were sampled, do not divide them so: look for another reason"
            .to_owned()
    } else if same {
        "the same clients lose in every run, which hashing would not do: look at what they have in common"
            .to_owned()
    } else {
        match hashed {
            None => "no transmit queues are between these clients and their server: look for another reason"
                .to_owned(),
            Some((queues, hashed)) if hashed >= 0.05 => format!(
                "hashing of {flows} connections to {queues} transmit queues gives such a ratio with a probability of {}, and is enough to explain it",
                percent(hashed)
            ),
            Some((queues, hashed)) => format!(
                "hashing of {flows} connections to {queues} transmit queues hardly gives that ({}): look for another reason",
                percent(hashed)
            ),
        }
    };
    let why = match (p, seen) {
        (None, Some(seen)) => format!(
            "The server's interface had hashed their connections to {} transmit queues, and losers share theirs: {}",
            queues.unwrap_or_default(),
            seen.sharing().join("; ")
        ),
        _ => format!("A division so clear is no chance ({}); {hashing}", p_text(p.unwrap_or(1.0))),
    };
    let what = format!(
        "{} of {} clients get {} each, the others ({}) {}: {} to 1, together {}. {why}.",
        found.winners.len(),
        rates.len(),
        rate(found.winners_mean),
        list(&found.losers),
        rate(found.losers_mean),
        digits(ratio),
        rate(sum)
    );
    let mut evidence = vec![
        Evidence::number("clients that win", found.winners.len() as f64),
        Evidence::number("clients that lose", found.losers.len() as f64),
        Evidence::bytes_per_second("rate of a winner", found.winners_mean),
        Evidence::bytes_per_second("rate of a loser", found.losers_mean),
        Evidence::bytes_per_second("rate of all clients", sum),
        Evidence::number("variation within the groups", found.variation),
    ];
    evidence.extend(hashed.map(|(_, p)| Evidence::number("probability of such a ratio by hashing", p)));
    let emulated = measured.run.parameters.transmit_queues;
    evidence.extend(emulated.map(|queues| Evidence::number("transmit queues", f64::from(queues))));
    evidence.extend(windows(measured, rates, found));
    evidence.extend(carried(measured));
    let confidence = match (p, seen) {
        (None, _) => Confidence::Certain,
        (_, None) if queues.is_some() => Confidence::Likely,
        _ => Confidence::Possible,
    };
    let mut finding = Finding::new(confidence, what)
        .with(evidence)
        .tested("a division as clear among normal values", p, None)
        .costs(1.0 - found.losers_mean / mean)
        .of_clients(names(&found.losers).iter().map(|client| client.to_string()));
    if queues.is_none() {
        finding = finding.advised(case("winners-and-losers", "without-queues"));
    }
    finding.tests.extend(constant(measured, rates, found).filter(|_| p.is_some()));
    finding
}

/// Whether winners win over the whole run: parts of the run of the one against those of the others.
fn constant(measured: &Measured<'_>, rates: &[(u32, f64)], found: &TwoClusters) -> Option<Test> {
    let course = course(measured, PARTS)?;
    let means = |indices: &[usize]| -> Option<Vec<f64>> {
        let of: Vec<&Vec<f64>> = indices
            .iter()
            .map(|i| course.iter().find(|(client, _)| *client == rates[*i].0).map(|of| &of.1))
            .collect::<Option<_>>()?;
        Some((0..PARTS).map(|part| of.iter().map(|of| of[part]).sum::<f64>() / of.len() as f64).collect())
    };
    let test = welch(&means(&found.winners)?, &means(&found.losers)?, 0.95).ok()?;
    Some(Test {
        name: "Welch, 20 parts of the run, winners against losers".into(),
        p: Some(test.p),
        interval: None,
    })
}

/// Congestion windows of the clients' hosts, where each client has one of its own.
fn windows(measured: &Measured<'_>, rates: &[(u32, f64)], found: &TwoClusters) -> Vec<Evidence> {
    let recording = measured.recording;
    let of = |indices: &[usize]| {
        let means = indices.iter().filter_map(|i| {
            let agent = recording
                .agents
                .iter()
                .find(|agent| agent.clients == 1 && agent.first_client == rates[*i].0)?;
            let host = recording.samples.iter().find(|host| host.agent == agent.name)?;
            let means = host.samples.of("tcp_info", "cwnd").filter_map(|series| {
                benchmaster_telemetry::derived::mean(
                    &series.points,
                    0,
                    i64::try_from(recording.length_ns).ok()?,
                )
            });
            benchmaster_stats::mean(&means.collect::<Vec<_>>())
        });
        benchmaster_stats::mean(&means.collect::<Vec<_>>())
    };
    let named = [
        ("congestion window of winners", of(&found.winners)),
        ("congestion window of losers", of(&found.losers)),
    ];
    named.into_iter().filter_map(|(name, value)| Some(Evidence::number(name, value?))).collect()
}

/// Transmit queues of the server that carried data, where its host was sampled.
fn carried(measured: &Measured<'_>) -> Vec<Evidence> {
    let Some(host) = measured.server_host() else { return Vec::new() };
    let is_queue = |name: &str| {
        let name = name.to_ascii_lowercase();
        name.contains("tx") && name.ends_with("bytes") && name.bytes().any(|byte| byte.is_ascii_digit())
    };
    let of_ethtool = host.samples.series.iter().filter(|series| series.key.sampler == "ethtool");
    let grown: Vec<f64> = of_ethtool
        .filter(|series| is_queue(&series.key.metric))
        .filter_map(|series| measured.growth(series))
        .collect();
    let most = grown.iter().copied().fold(0.0, f64::max);
    if most <= 0.0 {
        return Vec::new();
    }
    let used = grown.iter().filter(|bytes| **bytes >= 0.1 * most).count();
    vec![
        Evidence::number("transmit queues of the server", grown.len() as f64),
        Evidence::number("transmit queues of the server that carried data", used as f64),
    ]
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::Recording;

    use super::super::made;
    use super::super::transmit_queues::tests::sample;
    use super::*;
    use crate::results::testing::Made;

    fn recording(rates: &[f64]) -> Recording {
        let mut recording = made::recording("read", 60.0);
        let sum: f64 = rates.iter().sum();
        made::series(&mut recording, OperationKind::Read, 1 << 20, &[(9_000_000, (sum * 60.0) as u64)]);
        made::workers(&mut recording, rates);
        recording
    }

    fn verdict(rates: &[f64]) -> Verdict {
        made::judge(recording(rates), detect)
    }

    #[test]
    fn two_groups_are_told_with_the_chance_of_hashing() {
        let Verdict::Found(found) = verdict(&[14.0, 28.0, 14.1, 28.2, 27.9]) else { panic!() };
        assert!(
            found
                .what
                .starts_with("3 of 5 clients get 29.4 MB/s each, the others (1, 3) 14.7 MB/s: 2.00 to 1"),
            "{}",
            found.what
        );
        assert!(found.what.contains("78 %, and is enough to explain it"), "{}", found.what);
        assert_eq!(found.at.as_ref().unwrap().clients, ["0", "2"]);
        assert!(found.tests[0].p.unwrap() < 0.01);
    }

    #[test]
    fn without_transmit_queues_nothing_is_said_of_hashing() {
        let mut made = Made::served();
        made.run().service.as_mut().unwrap().server = ServedBy::Embedded;
        *made.recording() = recording(&[14.0, 28.0, 14.1, 28.2, 27.9]);
        let found = made.found(&DETECTOR);
        assert_eq!(found.confidence, Confidence::Possible);
        assert!(found.what.contains("no transmit queues are between"), "{}", found.what);
        assert!(!found.remedy.text.contains("queue") && found.remedy.command.is_none(), "{:?}", found.remedy);
        // In an emulated network only with the queues that the study asks for.
        made.run().parameters.transmit_queues = Some(8);
        assert!(made.found(&DETECTOR).what.contains("enough to explain it"));
    }

    #[test]
    fn sampled_queues_decide_in_a_single_run() {
        let judged = |queues: [u32; 5]| {
            let mut recording = recording(&[14.0, 28.0, 14.1, 28.2, 27.9]);
            sample(&mut recording, &queues.map(|queue| (queue, queue)), 2e9);
            let Verdict::Found(found) = made::judge(recording, detect) else { panic!() };
            found
        };
        let shared = judged([4, 2, 4, 1, 6]);
        assert_eq!(shared.confidence, Confidence::Certain);
        assert!(shared.what.ends_with("losers share theirs: 1 and 3 in queue 4."), "{}", shared.what);
        assert!(shared.tests.iter().all(|test| test.p.is_none()), "{:?}", shared.tests);
        // All have a queue of their own, or all share one: something else divides them.
        for queues in [[4, 2, 3, 1, 6], [0; 5]] {
            let other = judged(queues);
            assert_eq!(other.confidence, Confidence::Possible);
            assert!(other.what.contains("look for another reason"), "{}", other.what);
        }
    }

    #[test]
    fn clients_that_are_alike_or_spread_are_none() {
        assert_eq!(verdict(&[22.0, 22.5, 22.1, 22.0, 21.9]), Verdict::Clear);
        // Below the ratio, and above.
        assert_eq!(verdict(&[10.0, 10.05, 14.9, 14.95, 15.0]), Verdict::Clear);
        assert!(matches!(verdict(&[10.0, 10.05, 15.2, 15.3, 15.25]), Verdict::Found(_)));
        // Losers that differ, and share a queue: together they get what a winner gets.
        let Verdict::Found(shared) = verdict(&[28.0, 18.0, 10.0, 28.1, 27.9]) else { panic!() };
        assert!(shared.tests[0].p.unwrap() < 0.05, "{:?}", shared.tests);
        assert_eq!(verdict(&[28.0, 22.0, 12.0, 28.1, 27.9]), Verdict::Clear);
        // A spread without groups.
        assert_eq!(verdict(&[10.0, 14.0, 18.0, 22.0, 26.0]), Verdict::Clear);
        assert_eq!(verdict(&[10.0, 20.0]), Verdict::Irrelevant);
        assert_eq!(made::judge(made::recording("read", 1.0), detect), Verdict::Irrelevant);
    }

    #[test]
    fn clients_that_always_lose_are_another_matter() {
        let mut results = made::study(
            "[study]\nname = \"made\"\n[target]\npath = \"/mnt/x\"\n[workload.read]\nuse = \"random-read\"\nduration = \"1s\"\n",
        );
        for rates in [[14.0, 28.0, 14.1, 28.2, 27.9]; 3] {
            made::add(&mut results, 0, vec![recording(&rates)], &[]);
        }
        let judged = made::judge_run(&results, 0, &made::Traces::default(), detect);
        let Verdict::Found(found) = judged else { panic!() };
        assert!(found.what.contains("the same clients lose in every run"), "{}", found.what);
        // Others lose in another run.
        made::add(&mut results, 0, vec![recording(&[28.0, 14.0, 14.1, 28.2, 27.9])], &[]);
        assert!(matches!(made::judge_run(&results, 0, &made::Traces::default(), detect), Verdict::Found(_)));
    }
}
