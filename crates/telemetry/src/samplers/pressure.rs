//! Time lost waiting for processors, memory and I/O: `/proc/pressure`.

use super::{Files, Registered, Sink, Source};
use crate::sampling::text::{Malformed, lines, number, word, words};
use crate::sampling::{MetricInfo, metrics};

/// What it reads.
pub const METRICS: &[MetricInfo] = &metrics::<2>(include_str!("metrics/pressure.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "pressure",
    about: "Pressure stall information of the host, from `/proc/pressure` (Linux 4.20 and later). Only the sums are recorded: \
            the kernel's averages follow from them.",
    metrics: METRICS,
    make: |config| {
        const MISSING: &str =
            "this kernel does not count pressure (CONFIG_PSI, or psi=1 on its command line)";
        let directory = config.places.proc.join("pressure");
        let files = ["cpu", "memory", "io"].into_iter().fold(Files::new(&REGISTERED), |files, resource| {
            let file = Source::new(directory.join(resource), MISSING);
            files.and(file, move |text, out| parse(text, resource, out))
        });
        // Linux 6.1 and later, with CONFIG_IRQ_TIME_ACCOUNTING.
        Box::new(files.and(Source::optional(directory.join("irq")), |text, out| parse(text, "irq", out)))
    },
};

/// Parses the text of one of its files.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn parse(text: &str, resource: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| stall(line, METRICS, resource, out))
}

/// `some avg10=0.00 avg60=0.00 avg300=0.00 total=12345`, the total in microseconds. Lines with other names are left out.
pub(super) fn stall(line: &str, metrics: &[MetricInfo], instance: &str, out: &mut impl Sink) -> Option<()> {
    let (name, rest) = word(line)?;
    let micros = number(words(rest).find_map(|field| field.strip_prefix("total="))?)?;
    if let Some(metric) = metrics.iter().find(|metric| metric.name.rsplit('_').next() == Some(name)) {
        out.put(metric.metric(), instance, micros * 1e3);
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::{Values, config_in, sampled, tree, values};

    const IO: &str = include_str!("pressure/linux-6.18-io.txt");

    #[test]
    fn only_the_sums_are_kept() {
        let cpu = Values::of(|out| parse(include_str!("pressure/linux-4.20-cpu.txt"), "cpu", out));
        cpu.are_as_listed(&REGISTERED);
        assert_eq!((cpu.get("some", "cpu"), cpu.0.len()), (Some(123_456e3), 1));
        let irq = Values::of(|out| parse(include_str!("pressure/linux-6.1-irq.txt"), "irq", out));
        assert_eq!(irq.get("full", "irq"), Some(777e3));
        let io = Values::of(|out| parse(IO, "io", out));
        assert!(io.get("some", "io").unwrap() >= io.get("full", "io").unwrap());
        assert_eq!(parse("some avg10=1\n", "io", &mut Values::default()).unwrap_err().line, 1);
    }

    #[test]
    fn kernels_without_irq_pressure_are_nothing_to_tell() {
        let files = [("proc/pressure/cpu", IO), ("proc/pressure/memory", IO), ("proc/pressure/io", IO)];
        let root = tree(&files);
        let samples = sampled(&REGISTERED, &config_in(root.path()), &[&|| ()]);
        assert_eq!((samples.problems.len(), samples.series.len()), (0, 6));
        assert!(values(&samples, "some", "irq").is_empty());
        let root = tree(&files[..2]);
        let samples = sampled(&REGISTERED, &config_in(root.path()), &[&|| (), &|| ()]);
        let [problem] = &samples.problems[..] else { panic!("{:?}", samples.problems) };
        assert!(problem.problem.contains("pressure/io is not there: this kernel"), "{}", problem.problem);
    }
}
