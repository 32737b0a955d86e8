//! The text is read by a parser of the format's own grammar, written here from its specification.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use benchmaster_analysis::analyze;
use benchmaster_diagnosis::diagnosis::Diagnosis;
use benchmaster_store::synthetic::{fail, study_results};

use super::writer::{label_names, number};
use super::*;

#[derive(Debug, Default)]
struct Parsed {
    kinds: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

#[derive(Debug, Clone, PartialEq)]
struct Sample {
    family: String,
    suffix: String,
    labels: BTreeMap<String, String>,
    value: f64,
    time: Option<f64>,
}

fn is_name(name: &str, colon: bool) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || (colon && c == ':');
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// `realnumber` of the grammar.
fn real(text: &str) -> f64 {
    let bare = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !["Inf", "NaN"].contains(&bare) {
        let (mantissa, exponent) = bare.split_once('e').unwrap_or((bare, "0"));
        let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let (whole, part) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        assert!(digits(whole) && (part.is_empty() || digits(part)), "{text}");
        assert!(digits(exponent.strip_prefix(['+', '-']).unwrap_or(exponent)), "{text}");
    }
    text.parse().unwrap()
}

/// Labels up to the closing brace, and what follows it.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut labels = BTreeMap::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").unwrap();
        assert!(is_name(name, false) && !name.starts_with("__"), "{name}");
        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().unwrap() {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().unwrap().1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} is no escape"),
                }),
                (_, c) => value.push(c),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} twice");
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, rest.strip_prefix('}').unwrap()),
        }
    }
}

fn parse(text: &str) -> Parsed {
    assert!(text.ends_with("# EOF\n") && !text.contains('\r'));
    let body = text.strip_suffix("# EOF\n").unwrap();
    assert!(!body.contains("# EOF"));
    let mut parsed = Parsed::default();
    let (mut family, mut unit, mut seen) = (String::new(), String::new(), BTreeSet::new());
    for line in body.lines() {
        assert!(!line.is_empty());
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(is_name(name, true), "{name}");
            assert!(["gauge", "counter", "histogram", "info"].contains(&kind));
            assert!(parsed.kinds.insert(name.into(), kind.into()).is_none(), "{name} twice");
            (family, unit) = (name.to_owned(), String::new());
        } else if let Some(rest) = line.strip_prefix("# UNIT ") {
            let (name, of) = rest.split_once(' ').unwrap();
            assert_eq!(name, family);
            assert!(name.ends_with(&format!("_{of}")), "{line}");
            unit = of.to_owned();
        } else if let Some(rest) = line.strip_prefix("# HELP ") {
            assert_eq!(rest.split_once(' ').unwrap().0, family);
        } else {
            let end = line.find(['{', ' ']).unwrap();
            let suffix = line[..end].strip_prefix(&family).unwrap_or_else(|| panic!("{line} in {family}"));
            let kind = parsed.kinds[&family].as_str();
            let allowed: &[&str] = match kind {
                "gauge" => &[""],
                "counter" => &["_total"],
                "info" => &["_info"],
                _ => &["_bucket", "_count", "_sum"],
            };
            assert!(allowed.contains(&suffix), "{line}");
            let (labels, rest) = match line[end..].strip_prefix('{') {
                Some(rest) => labels(rest),
                None => (BTreeMap::new(), &line[end..]),
            };
            let numbers: Vec<&str> = rest.strip_prefix(' ').unwrap().split(' ').collect();
            assert!(matches!(numbers.len(), 1 | 2), "{line}");
            let (value, time) = (real(numbers[0]), numbers.get(1).map(|time| real(time)));
            assert!(seen.insert((family.clone(), suffix.to_owned(), labels.clone())), "{line} twice");
            if kind == "counter" || kind == "histogram" {
                assert!(value >= 0.0, "{line}");
            }
            if kind == "info" {
                assert!(unit.is_empty() && value == 1.0, "{line}");
            }
            parsed.samples.push(Sample {
                family: family.clone(),
                suffix: suffix.into(),
                labels,
                value,
                time,
            });
        }
    }
    parsed.histograms();
    parsed
}

impl Parsed {
    fn of(&self, name: &str) -> Vec<&Sample> {
        self.samples.iter().filter(|s| format!("{}{}", s.family, s.suffix) == name).collect()
    }

    /// Buckets rise in order to that without a bound, which is the count; a count stands with a sum.
    fn histograms(&self) {
        let mut points: HashMap<_, Vec<&Sample>> = HashMap::new();
        for sample in self.samples.iter().filter(|s| self.kinds[&s.family] == "histogram") {
            let mut labels = sample.labels.clone();
            labels.remove("le");
            points
                .entry((sample.family.clone(), labels.into_iter().collect::<Vec<_>>()))
                .or_default()
                .push(sample);
        }
        for samples in points.values() {
            let buckets: Vec<_> = samples.iter().filter(|s| s.suffix == "_bucket").collect();
            let bounds: Vec<f64> = buckets.iter().map(|s| real(&s.labels["le"])).collect();
            assert!(bounds.is_sorted_by(|a, b| a < b) && bounds.last() == Some(&f64::INFINITY), "{bounds:?}");
            assert!(buckets.is_sorted_by(|a, b| a.value <= b.value));
            let one = |suffix: &str| samples.iter().find(|s| s.suffix == suffix).map(|s| s.value);
            assert_eq!(one("_count").is_some(), one("_sum").is_some());
            assert!(one("_count").is_none_or(|count| count == buckets[buckets.len() - 1].value));
        }
    }
}

fn of(results: &StudyResults, diagnosis: &Diagnosis) -> Parsed {
    let mut text = Vec::new();
    openmetrics(results, &analyze(results), diagnosis, &mut text).unwrap();
    parse(&String::from_utf8(text).unwrap())
}

#[test]
fn every_response_of_every_run_that_counts_is_there_with_its_time() {
    let mut results = study_results(7, 4, 3);
    fail(&mut results.runs[0], "no");
    let parsed = of(&results, &Diagnosis::default());
    let analysis = analyze(&results);
    let counted = results.runs.iter().filter(|run| benchmaster_analysis::counts(run));
    let expected: usize = counted.clone().map(|run| run.responses.len()).sum();
    let names = ["bytes_per_second", "operations_per_second", "seconds", "ratio"];
    let of_runs: usize =
        names.iter().map(|unit| parsed.of(&format!("benchmaster_response_{unit}")).len()).sum();
    assert_eq!(of_runs + parsed.of("benchmaster_response").len(), expected);
    let run = counted.clone().next_back().unwrap();
    let response = run.responses.iter().find(|response| response.name == "write.throughput").unwrap();
    let shown = parsed.of("benchmaster_response_bytes_per_second").into_iter().find(|sample| {
        let treatment = &results.study.treatments[run.key.treatment as usize];
        sample.labels["treatment"] == treatment.label
            && sample.labels["replicate"] == (run.key.replicate + 1).to_string()
            && sample.labels["workload"] == "write"
            && sample.labels["response"] == "throughput"
    });
    let shown = shown.unwrap();
    assert_eq!(shown.value, response.value);
    assert!(shown.labels.contains_key("io_size") && shown.labels.contains_key("sync"));
    let end = run.started.as_millisecond() as f64 / 1e3 + run.elapsed_ns as f64 / 1e9;
    assert!((shown.time.unwrap() - end).abs() < 0.002, "{shown:?} {end}");
    assert!(parsed.samples.iter().all(|sample| sample.time.is_some()));
    // Latencies are in seconds.
    let p99 = parsed.of("benchmaster_response_mean_seconds").into_iter().find(|sample| {
        sample.labels["response"] == "write.latency.p99" && sample.labels["treatment"].contains("4KiB")
    });
    let told = analysis.treatments[0].response("write.write.latency.p99").unwrap().estimate.as_ref().unwrap();
    assert!((p99.unwrap().value - told.mean / 1e9).abs() < 1e-12);
}

#[test]
fn histograms_have_all_operations() {
    let results = study_results(7, 2, 2);
    let analysis = analyze(&results);
    let parsed = of(&results, &Diagnosis::default());
    let latency = &analysis.treatments[0].latencies[0];
    let of_it = |name: &str| {
        let samples = parsed.of(name).into_iter();
        let same = |s: &&Sample| {
            s.labels["treatment"] == analysis.treatments[0].label
                && s.labels["workload"] == latency.workload
                && s.labels["series"] == latency.series.label
        };
        samples.filter(same).cloned().collect::<Vec<_>>()
    };
    let count = &of_it("benchmaster_operation_latency_seconds_count")[0];
    assert_eq!(count.value, latency.count as f64);
    let buckets = of_it("benchmaster_operation_latency_seconds_bucket");
    assert_eq!(buckets.len(), BOUNDS.len() + 1);
    for (bucket, bound) in buckets.iter().zip(BOUNDS) {
        assert_eq!(bucket.value, latency.histogram.count_between(0, bound) as f64, "{bound}");
    }
    // An open loop has service times too, whose sum is not known.
    assert!(!parsed.of("benchmaster_operation_service_seconds_bucket").is_empty());
    assert!(parsed.of("benchmaster_operation_service_seconds_sum").is_empty());
}

#[test]
fn findings_and_checks_are_counted() {
    let results = study_results(7, 2, 2);
    let diagnosis = crate::made_up::diagnosis();
    let parsed = of(&results, &diagnosis);
    let runs = parsed.of("benchmaster_finding_runs");
    assert_eq!(runs.len(), diagnosis.findings.len());
    assert_eq!((runs[0].labels["finding"].as_str(), runs[0].value), ("retransmission", 2.0));
    let costs = parsed.of("benchmaster_finding_cost_ratio");
    assert_eq!((costs.len(), costs[0].value, costs[0].labels["of"].as_str()), (3, 0.12, "of all calls"));
    let checks: f64 = parsed.of("benchmaster_check_runs").iter().map(|sample| sample.value).sum();
    assert!(checks >= 1.0);
    let states: f64 = parsed.of("benchmaster_runs").iter().map(|sample| sample.value).sum();
    assert_eq!(states, results.runs.len() as f64);
    // The same condition of the same workload twice is one series: that of the dearest.
    let mut twice = diagnosis.clone();
    twice.findings.push(twice.findings[0].clone());
    assert_eq!(of(&results, &twice).of("benchmaster_finding_runs").len(), runs.len());
}

#[test]
fn hostile_names_are_escaped() {
    let hostile = "a\"b\\n\\\nc} 1 2 {x=\"";
    let mut results = study_results(7, 4, 2);
    results.study.name = hostile.into();
    results.study.factors[0].name = "0 bad-näme".into();
    results.study.factors[1].name = "treatment".into();
    results.study.treatments.iter_mut().for_each(|t| t.label += hostile);
    let parsed = of(&results, &Diagnosis::default());
    assert!(parsed.samples.iter().all(|sample| sample.labels["study"] == hostile));
    let run = parsed.of("benchmaster_run_elapsed_seconds")[0];
    assert!(run.labels["treatment"].ends_with(hostile), "{run:?}");
    assert!(run.labels.contains_key("factor_0_bad_n_me") && run.labels.contains_key("factor_treatment"));
}

#[test]
fn a_study_without_runs_is_told_too() {
    let mut results = study_results(7, 2, 2);
    results.runs.clear();
    let parsed = of(&results, &Diagnosis::default());
    assert_eq!(parsed.of("benchmaster_study_info").len(), 1);
    assert!(parsed.samples.iter().all(|sample| sample.time.is_none()));
}

#[test]
fn numbers_and_names_are_as_others_write_them() {
    let of = |value| number(value);
    assert_eq!([of(1.0), of(0.0), of(1e-6), of(0.0002)], ["1.0", "0.0", "1e-06", "0.0002"]);
    assert_eq!([of(f64::NAN), of(f64::INFINITY), of(-2.5), of(3e9)], ["NaN", "+Inf", "-2.5", "3000000000.0"]);
    assert_eq!(
        label_names(&["io_size", "target.version", "__x", "1", "", "study", "target_version"], FIXED),
        ["io_size", "target_version", "x", "factor_1", "factor", "factor_study", "factor_target_version"]
    );
}
