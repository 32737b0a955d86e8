//! Journals of ext4: `/proc/fs/jbd2/*/info`.

use super::{Reading, Registered, SampleError, Sampler, Sink};
use crate::sampling::folder::Folder;
use crate::sampling::text::{Malformed, lines, number, word};
use crate::sampling::{MetricInfo, metrics};

/// What it reads. The kernel gives means over all transactions since the file system was mounted.
pub const METRICS: &[MetricInfo] = &metrics::<13>(include_str!("metrics/jbd2.tsv"));
/// The words by which a line is known, and its metric's place above.
const LINES: [(&str, usize); 10] = [
    ("waiting for transaction", 3),
    ("request delay", 4),
    ("running transaction", 5),
    ("transaction was being locked", 6),
    ("flushing data (in ordered mode)", 7),
    ("logging transaction", 8),
    ("average transaction commit time", 9),
    ("handles per transaction", 10),
    ("blocks per transaction", 11),
    ("logged blocks per transaction", 12),
];

pub(crate) const REGISTERED: Registered = Registered {
    name: "jbd2",
    about: "Journals of ext4 file systems, from `/proc/fs/jbd2/*/info`.",
    metrics: METRICS,
    make: |config| {
        let missing = "this kernel has no ext4 with a journal";
        Box::new(Jbd2(Folder::new(config.places.proc.join("fs/jbd2"), "info", Some(missing))))
    },
};

/// Reads `/proc/fs/jbd2`.
#[derive(Debug)]
struct Jbd2(Folder);

impl Sampler for Jbd2 {
    fn name(&self) -> &'static str {
        REGISTERED.name
    }

    fn read(&mut self, out: &mut Reading<'_>) -> Result<(), SampleError> {
        for (journal, file) in self.0.entries(out).into_iter().flatten() {
            let Some(text) = file.text(out) else { continue };
            if let Err(fault) = parse(text, journal, out) {
                out.problem(&file.fault(fault));
            }
        }
        Ok(())
    }
}

/// Parses the text of an `info` file.
///
/// # Errors
/// The first line that is not in the kernel's format. Lines with other words are left out.
pub fn parse(text: &str, journal: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| field(line, journal, out))
}

fn field(line: &str, journal: &str, out: &mut impl Sink) -> Option<()> {
    let (first, rest) = word(line)?;
    let mut put = |at: usize, value| {
        if let Some(metric) = METRICS.get(at) {
            out.put(metric.metric(), journal, value);
        }
    };
    let rest = rest.trim_ascii();
    // `147 transactions (141 requested), each up to 8192 blocks`; before Linux 3.6 without those requested.
    if let Some(rest) = rest.strip_prefix("transactions") {
        put(0, number(first)?);
        if let Some((requested, _)) = rest.strip_prefix(" (").and_then(|rest| rest.split_once(" requested)"))
        {
            put(1, number(requested)?);
        }
        let (_, most) = rest.split_once("each up to ")?;
        put(2, number(most.strip_suffix(" blocks")?)?);
        return Some(());
    }
    if let Some((_, at)) = LINES.iter().find(|(words, _)| *words == rest) {
        let (digits, scale) = match (first.strip_suffix("us"), first.strip_suffix("ms")) {
            (Some(micros), _) => (micros, 1e3),
            (_, Some(millis)) => (millis, 1e6),
            _ => (first, 1.0),
        };
        put(*at, number(digits)? * scale);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::{Values, config_in, sampled, tree, values, write};

    const RECENT: &str = include_str!("jbd2/linux-5.10.txt");

    #[test]
    fn means_are_in_nanoseconds() {
        let found = Values::of(|out| parse(RECENT, "sda1-8", out));
        found.are_as_listed(&REGISTERED);
        let all: Vec<_> = METRICS.iter().map(|metric| found.get(metric.name, "sda1-8").unwrap()).collect();
        let times = [1e6, 2e6, 24e6, 3e6, 5e6, 4e6, 8_562e3];
        assert_eq!(all, [&[147.0, 141.0, 8192.0][..], &times, &[75.0, 11.0, 12.0]].concat());
        let old = Values::of(|out| parse(include_str!("jbd2/linux-2.6.32.txt"), "a", out));
        assert_eq!(old.row("a", ["transactions", "mean_running"]), [9.0, 24e6]);
        assert_eq!(old.get("requested", "a"), None);
        let unused = Values::of(|out| parse(include_str!("jbd2/linux-6.1-unused.txt"), "a", out));
        assert_eq!(unused.0.len(), 3);
    }

    #[test]
    fn journals_come_and_go() {
        let root = tree(&[("proc/fs/jbd2/sda1-8/info", RECENT)]);
        let config = config_in(root.path());
        let more = || write(root.path(), "proc/fs/jbd2/dm-0-8/info", RECENT);
        let less = || std::fs::remove_dir_all(root.path().join("proc/fs/jbd2/sda1-8")).unwrap();
        let samples = sampled(&REGISTERED, &config, &[&|| (), &more, &less, &|| ()]);
        assert_eq!(samples.problems, []);
        let times = |journal: &str| {
            let series = samples.find("jbd2", "transactions", journal).unwrap();
            (series.points.first().unwrap().time_ns, series.points.last().unwrap().time_ns)
        };
        assert_eq!(times("sda1-8"), (0, 1_000_000_000));
        assert_eq!(times("dm-0-8"), (1_000_000_000, 3_000_000_000));
        assert_eq!(values(&samples, "mean_commit", "dm-0-8"), [8_562e3; 2]);
        let nothing = tempfile::tempdir().unwrap();
        let samples = sampled(&REGISTERED, &config_in(nothing.path()), &[&|| (), &|| ()]);
        let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
        assert!(problem.problem.contains("no ext4"), "{}", problem.problem);
    }
}
