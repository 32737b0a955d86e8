use std::sync::atomic::AtomicU32;
use std::time::Instant;

use super::*;
use crate::sampling::{Kind, Metric, Reading, SampleError, Sink};

/// Waits for something that another thread brings about.
fn until(mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(60), "it did not come about in a minute");
        thread::sleep(Duration::from_millis(1));
    }
}

fn none() -> SamplingConfig {
    SamplingConfig {
        samplers: Some(vec![]),
        interval: Duration::from_millis(10),
        ..SamplingConfig::default()
    }
}

/// Gives the number of its readings, and fails as it is told.
struct Odd {
    reads: Arc<AtomicU32>,
    fails: fn(u32) -> Result<(), SampleError>,
}

impl Sampler for Odd {
    fn name(&self) -> &'static str {
        "odd"
    }
    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed) + 1;
        out.put(Metric::counter("reads", "1"), "", reads.into());
        (self.fails)(reads)
    }
}

fn odd(fails: fn(u32) -> Result<(), SampleError>) -> (Arc<AtomicU32>, Vec<Box<dyn Sampler>>) {
    let reads = Arc::new(AtomicU32::new(0));
    (Arc::clone(&reads), vec![Box::new(Odd { reads, fails })])
}

#[test]
fn this_host_is_sampled() {
    let config = SamplingConfig { interval: Duration::from_millis(10), ..SamplingConfig::default() };
    let before = monotonic_ns();
    let sampling = Sampling::start(&config, vec![]);
    // The first reading is there at once.
    assert!(sampling.shared.state().ticks >= 1);
    until(|| sampling.shared.state().ticks >= 4);
    let samples = sampling.stop();
    let after = monotonic_ns();
    assert!(samples.ticks >= 5, "{}", samples.ticks);
    let idle = samples.find("cpu", "idle", "").unwrap();
    assert_eq!((idle.kind, &*idle.unit), (Kind::Counter, "ns"));
    assert!(samples.find("cpu", "user", "0").is_some());
    let total = samples.find("memory", "MemTotal", "").unwrap();
    // It does not change: the first and the last reading are kept.
    let [first, last] = total.points[..] else { panic!("{:?}", total.points) };
    assert!(before <= first.time_ns && first.time_ns < last.time_ns && last.time_ns <= after);
    assert_eq!(first.value, last.value);
    for series in &samples.series {
        assert!(series.points.is_sorted_by(|a, b| a.time_ns < b.time_ns), "{:?}", series.key);
        assert!(!series.points.is_empty(), "{:?}", series.key);
    }
    let cost = &samples.cost;
    assert!(cost.cpu_ns > 0 && cost.samplers["cpu"].reads > 0 && cost.share().unwrap() > 0.0);
    assert_eq!(cost.samplers.values().map(|sampler| sampler.cpu_ns).sum::<u64>(), cost.cpu_ns);
    let text = serde_json::to_string(&samples).unwrap();
    assert_eq!(serde_json::from_str::<Samples>(&text).unwrap(), samples);
}

#[test]
fn failures_are_reported_once_and_others_go_on() {
    let (reads, extra) = odd(|_| Err(SampleError::Other("no luck".into())));
    let sampling = Sampling::start(&none(), extra);
    until(|| reads.load(Ordering::Relaxed) >= 3);
    let samples = sampling.stop();
    let problem = SamplerProblem { sampler: "odd".into(), problem: "no luck".into() };
    assert_eq!(samples.problems, [problem]);
    let values: Vec<_> = samples.find("odd", "reads", "").unwrap().points.iter().map(|p| p.value).collect();
    let expected: Vec<_> = (1..=samples.cost.samplers["odd"].reads).map(f64::from).collect();
    assert_eq!(values, expected);
}

#[test]
fn a_sampler_that_panics_is_given_up() {
    let (_, mut extra) = odd(|reads| if reads < 2 { Ok(()) } else { panic!("as told") });
    let (well, others) = odd(|_| Ok(()));
    extra.extend(others);
    let sampling = Sampling::start(&none(), extra);
    until(|| well.load(Ordering::Relaxed) >= 4);
    let samples = sampling.stop();
    assert_eq!(samples.problems.len(), 1, "{:?}", samples.problems);
    assert!(samples.problems[0].problem.starts_with("it panicked"));
    let [broken, fine] = &samples.series[..] else { panic!() };
    assert_eq!(broken.points.len(), 2);
    assert_eq!(fine.points.len() as u32, well.load(Ordering::Relaxed));
}

#[test]
fn unknown_names_are_reported() {
    let config = SamplingConfig { samplers: Some(vec!["cpu".into(), "cpus".into()]), ..none() };
    let samples = Sampling::start(&config, vec![]).stop();
    assert_eq!(samples.ticks, 2);
    assert!(samples.series.iter().all(|series| series.key.sampler == "cpu"));
    let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
    assert_eq!(problem.sampler, "cpus");
    assert!(problem.problem.contains("there are cpu, memory"), "{}", problem.problem);
}

/// Uses so much of the processor in each reading.
struct Dear(Duration);

impl Sampler for Dear {
    fn name(&self) -> &'static str {
        "dear"
    }
    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        let start = thread_cpu_ns();
        while u128::from(thread_cpu_ns() - start) < self.0.as_nanos() {}
        out.put(Metric::counter("start", "ns"), "", start as f64);
        Ok(())
    }
}

#[test]
fn what_costs_too_much_is_read_more_seldom_and_that_is_said() {
    let (reads, mut extra) = odd(|_| Ok(()));
    // Ten ticks' worth.
    extra.push(Box::new(Dear(Duration::from_millis(5))));
    let sampling = Sampling::start(&none(), extra);
    until(|| reads.load(Ordering::Relaxed) >= 60);
    let samples = sampling.stop();
    let dear = samples.cost.samplers["dear"];
    // About one in twelve; readings that others interrupt make it more seldom still.
    assert!(dear.reads >= 3 && dear.reads < samples.ticks / 2, "{dear:?} of {}", samples.ticks);
    assert!(samples.cost.samplers["odd"].reads > 2 * dear.reads, "{:?}", samples.cost);
    let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
    let said = format!("it was read in {} of {} ticks only", dear.reads, samples.ticks);
    assert!(problem.sampler == "dear" && problem.problem.starts_with(&said), "{problem:?}");
    // The last reading is there in any case.
    let series = samples.find("dear", "start", "").unwrap();
    let odd = samples.find("odd", "reads", "").unwrap();
    assert!(series.points.last().unwrap().time_ns >= odd.points.last().unwrap().time_ns);
}

#[test]
fn missed_ticks_are_counted() {
    // A reading that takes three intervals.
    let (reads, extra) = odd(|reads| {
        if reads == 2 {
            thread::sleep(Duration::from_millis(35));
        }
        Ok(())
    });
    let sampling = Sampling::start(&none(), extra);
    until(|| reads.load(Ordering::Relaxed) >= 4);
    let samples = sampling.stop();
    assert!(samples.late >= 2, "{}", samples.late);
}

#[test]
fn it_ends_when_it_is_dropped_and_does_not_wait_for_the_next_tick() {
    let (reads, extra) = odd(|_| Ok(()));
    let config = SamplingConfig { interval: Duration::from_secs(3600), ..none() };
    let sampling = Sampling::start(&config, extra);
    drop(sampling);
    // The thread is gone, and the sampler with it.
    assert_eq!(Arc::strong_count(&reads), 1);
    assert_eq!(reads.load(Ordering::Relaxed), 1);
}
