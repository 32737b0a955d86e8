//! Processor time, context switches and interrupts: `/proc/stat`.

use super::{Files, Registered, Sink, in_proc};
use crate::sampling::text::{Malformed, lines, number, word, words};
use crate::sampling::{MetricInfo, metrics};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<16>(include_str!("metrics/cpu.tsv"));
/// How many of them are times.
const TIMES: usize = 10;

pub(crate) const REGISTERED: Registered = Registered {
    name: "cpu",
    about: "Processor time, context switches and interrupts, from `/proc/stat`. The kernel counts time in ticks of 10 ms.",
    metrics: METRICS,
    make: |config| {
        // 100 on every system; what the kernel says counts.
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        Box::new(
            Files::new(&REGISTERED).and(in_proc(config, "stat"), move |text, out| parse(text, tick_ns, out)),
        )
    },
};

/// Parses the text of `/proc/stat`. Fields that an old kernel does not have are left out, and lines with other keys too.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, tick_ns: u64, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| {
        let Some((key, rest)) = word(line) else { return Some(()) };
        let single = |name: &str| METRICS.iter().find(|metric| metric.name == name).map(MetricInfo::metric);
        let metric = match key {
            "ctxt" => single("context_switches"),
            "intr" => single("interrupts"),
            "softirq" => single("softirqs"),
            "processes" => single("forks"),
            "procs_running" => single("running"),
            "procs_blocked" => single("blocked"),
            _ => match key.strip_prefix("cpu") {
                Some(processor) => return times(processor, rest, tick_ns, out),
                None => return Some(()),
            },
        };
        // Only the sum, which comes first: the numbers of each interrupt stand in /proc/interrupts too.
        out.put(metric?, "", number(word(rest)?.0)?);
        Some(())
    })
}

fn times(processor: &str, rest: &str, tick_ns: u64, out: &mut impl Sink) -> Option<()> {
    if !processor.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    for (metric, value) in METRICS.iter().take(TIMES).zip(words(rest)) {
        out.put(metric.metric(), processor, number(value)? * tick_ns as f64);
    }
    // Linux 2.4 had four.
    words(rest).nth(3).map(|_| ())
}

#[cfg(test)]
mod tests {
    //! `linux-6.18.txt` was recorded on a guest; the others are written in the formats of their kernels.

    use super::*;
    use crate::samplers::testing::{Values, config_in, sampled, tree, values, write};

    fn parsed(text: &str) -> Values {
        let values = Values::of(|out| parse(text, 10_000_000, out));
        values.are_as_listed(&REGISTERED);
        values
    }

    #[test]
    fn kernels_count_more_and_more() {
        let old = parsed(include_str!("cpu/linux-2.6.32.txt"));
        assert_eq!(old.row("", ["user", "idle", "steal", "guest"]), [10e9, 400e9, 0.08e9, 0.09e9]);
        assert_eq!(old.get("guest_nice", ""), None);
        assert_eq!(old.row("1", ["nice", "system"]), [0.1e9, 2e9]);
        let names = ["context_switches", "interrupts", "softirqs", "forks", "running", "blocked"];
        assert_eq!(old.row("", names), [987_654.0, 123_456.0, 5_555.0, 4_321.0, 2.0, 1.0]);
        let newer = parsed(include_str!("cpu/linux-4.18.txt"));
        // Processor 1 is offline.
        assert_eq!(
            newer.row("2", ["iowait", "irq", "softirq", "guest_nice"]),
            [221.75e9, 43.56e9, 11.51e9, 0.02e9]
        );
        assert_eq!(newer.get("user", "1"), None);
        let recorded = parsed(include_str!("cpu/linux-6.18.txt"));
        let processors = ["0", "1"].map(|cpu| recorded.row(cpu, ["user", "idle"]));
        // The kernel adds up before it rounds to ticks.
        for (at, metric) in ["user", "idle"].into_iter().enumerate() {
            let sum = processors[0][at] + processors[1][at];
            assert!((recorded.get(metric, "").unwrap() - sum).abs() <= 2e7, "{metric}");
        }
    }

    #[test]
    fn faults_are_named_and_the_rest_is_kept() {
        let mut values = Values::default();
        let fault = parse("cpu  1 2 3 4\ncpu0 1 2 x 4\nctxt\nprocesses 7\nnew_key a b\n", 1, &mut values)
            .unwrap_err();
        assert_eq!((fault.line, fault.text.as_str()), (2, "cpu0 1 2 x 4"));
        assert_eq!(values.row("", ["idle", "forks"]), [4.0, 7.0]);
    }

    #[test]
    fn the_file_is_read_again_in_each_tick() {
        let root = tree(&[("proc/stat", "cpu  1 2 3 4\n")]);
        let config = config_in(root.path());
        let change = || write(root.path(), "proc/stat", "cpu  9 2 3 4\n");
        let samples = sampled(&REGISTERED, &config, &[&|| (), &change]);
        assert_eq!((values(&samples, "user", "").len(), samples.problems.len()), (2, 0));
        std::fs::remove_file(root.path().join("proc/stat")).unwrap();
        let samples = sampled(&REGISTERED, &config, &[&|| (), &|| (), &change]);
        let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
        assert!(
            problem.problem.ends_with("proc/stat is not there: is /proc mounted?"),
            "{}",
            problem.problem
        );
        // It came later.
        assert_eq!(values(&samples, "user", "").len(), 1);
    }
}
