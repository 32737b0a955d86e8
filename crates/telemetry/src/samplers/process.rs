//! This process and others that are watched: `/proc/PID/stat`.

use super::{Files, Registered, Sink, Source};
use crate::sampling::text::{Malformed, number, only, words};
use crate::sampling::{MetricInfo, metrics};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<6>(include_str!("metrics/process.tsv"));
/// Their fields, counted from the one after the name; the first is the state.
const FIELDS: [usize; 6] = [7, 9, 11, 12, 17, 21];

pub(crate) const REGISTERED: Registered = Registered {
    name: "process",
    about: "This process (`self`) and those that are watched, from `/proc/PID/stat`.",
    metrics: METRICS,
    make: |config| {
        let units = Units::of_this_host();
        let file = |files: Files, name: String| {
            let file = Source::new(config.places.proc.join(&name).join("stat"), "the process has ended");
            files.and(file, move |text, out| parse(text, &name, units, out))
        };
        let names = std::iter::once("self".to_owned()).chain(config.watch.pids.iter().map(u32::to_string));
        Box::new(names.fold(Files::new(&REGISTERED), file))
    },
};

/// What the kernel counts in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units {
    /// Nanoseconds of a clock tick.
    pub tick_ns: u64,
    /// Bytes of a page.
    pub page: u64,
}

impl Units {
    /// Those of this host.
    pub fn of_this_host() -> Self {
        Self {
            tick_ns: 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1),
            page: rustix::param::page_size() as u64,
        }
    }
}

/// Parses the text of `/proc/PID/stat`.
///
/// # Errors
/// When it is not in the kernel's format.
pub fn parse(text: &str, process: &str, units: Units, out: &mut impl Sink) -> Result<(), Malformed> {
    only(text, fields(text, process, units, out))
}

fn fields(text: &str, process: &str, units: Units, out: &mut impl Sink) -> Option<()> {
    // A name may contain anything, closing parentheses too.
    let (_, rest) = text.rsplit_once(')')?;
    let mut metrics = METRICS.iter().zip(FIELDS).peekable();
    for (at, value) in words(rest).enumerate() {
        let Some((metric, _)) = metrics.next_if(|(_, field)| *field == at) else { continue };
        let scale = match metric.unit {
            "ns" => units.tick_ns,
            "B" => units.page,
            _ => 1,
        };
        out.put(metric.metric(), process, number(value)? * scale as f64);
    }
    metrics.next().is_none().then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::{Values, sampled, values};
    use crate::sampling::{SamplingConfig, Watched};

    const UNITS: Units = Units { tick_ns: 10_000_000, page: 4096 };

    #[test]
    fn names_may_contain_anything() {
        let found = Values::of(|out| parse(include_str!("process/linux-4.18.txt"), "4242", UNITS, out));
        found.are_as_listed(&REGISTERED);
        let all = METRICS.iter().map(|metric| found.get(metric.name, "4242").unwrap()).collect::<Vec<_>>();
        assert_eq!(all, [1234.0, 5.0, 7e9, 3e9, 17.0, 360.0 * 4096.0]);
        let recorded = Values::of(|out| parse(include_str!("process/linux-6.18.txt"), "self", UNITS, out));
        assert_eq!(recorded.get("threads", "self"), Some(1.0));
        assert!(parse("1 (a) S 1 2\n", "1", UNITS, &mut Values::default()).is_err());
    }

    #[test]
    fn this_process_and_those_watched_are_read() {
        let own = std::process::id();
        let watch = Watched { pids: vec![own, u32::MAX], ..Watched::default() };
        let config = SamplingConfig { watch, ..SamplingConfig::default() };
        let samples = sampled(&REGISTERED, &config, &[&|| ()]);
        assert!(values(&samples, "resident", "self")[0] > 1e6);
        assert_eq!(values(&samples, "resident", &own.to_string()).len(), 1);
        let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
        assert!(
            problem.problem.contains("4294967295/stat is not there: the process has ended"),
            "{}",
            problem.problem
        );
    }
}
