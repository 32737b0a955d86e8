//! The control group of this process (version 2): `cpu.stat`, `memory.current`, `io.stat` and pressure; of version 1 the quota
//! of the processors.

use std::path::{Path, PathBuf};

use super::{Files, Registered, Sink, Source, pressure};
use crate::sampling::text::{Malformed, lines, number, only, word, words};
use crate::sampling::{Metric, MetricInfo, metrics};

/// What it reads; every other name of `cpu.stat` and `io.stat` is recorded as well.
pub const METRICS: &[MetricInfo] = &metrics::<15>(include_str!("metrics/cgroup.tsv"));

pub(crate) const REGISTERED: Registered = Registered {
    name: "cgroup",
    about: "The control group that this process is in (version 2; where processors are in a hierarchy of version 1, its periods and throttled time). Files that the group does not have are left out: the root group has \
            no `memory.current`, others have only those of their controllers.",
    metrics: METRICS,
    make: |config| {
        let hierarchies = config.places.sys.join("fs/cgroup");
        // Where both versions are in use, version 2 has a place of its own.
        let unified = hierarchies.join("unified");
        let root = if unified.is_dir() { unified } else { hierarchies };
        let text = std::fs::read_to_string(config.places.proc.join("self/cgroup")).unwrap_or_default();
        let group = root.join(own(&text).unwrap_or_default().trim_start_matches('/'));
        let first_version = first_version(&config.places.sys, &text);
        let missing = "this process is in no control group of version 2";
        let files = Files::new(&REGISTERED)
            .and(Source::new(group.join("cpu.stat"), missing), |text, out| cpu(text, out))
            .and(Source::optional(first_version.join("cpu.stat")), |text, out| cpu(text, out))
            .and(Source::optional(group.join("memory.current")), |text, out| memory(text, out))
            .and(Source::optional(group.join("io.stat")), |text, out| io(text, out));
        let files = ["cpu", "memory", "io"].into_iter().fold(files, |files, resource| {
            let file = Source::optional(group.join(format!("{resource}.pressure")));
            files.and(file, move |text, out| stalls(text, resource, out))
        });
        Box::new(files)
    },
};

/// The path of the version 2 group in the text of `/proc/self/cgroup`.
pub fn own(text: &str) -> Option<&str> {
    text.lines().find_map(|line| line.strip_prefix("0::"))
}

/// The version 1 group of the processors, by the text of `/proc/self/cgroup`; what is not there has no files.
fn first_version(sys: &Path, text: &str) -> PathBuf {
    let of_processors = text.lines().find_map(|line| {
        let (controllers, path) = line.split_once(':')?.1.split_once(':')?;
        controllers.split(',').any(|name| name == "cpu").then_some(path)
    });
    let group = |path: &str| sys.join("fs/cgroup/cpu").join(path.trim_start_matches('/'));
    of_processors.map(group).unwrap_or_default()
}

/// Parses the text of `cpu.stat`: a name and a number in each line.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn cpu(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| {
        let (name, value) = line.split_once(' ')?;
        let value = number(value)?;
        match name {
            // Of version 1, in nanoseconds.
            "throttled_time" => out.put(METRICS[5].metric(), "", value / 1e3),
            name if name.ends_with("_usec") => out.put(Metric::counter(name, "us"), "", value),
            name => out.put(Metric::counter(name, "1"), "", value),
        }
        Some(())
    })
}

/// Parses the text of `memory.current`, a number.
///
/// # Errors
/// When it is none.
pub fn memory(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    only(text, number(text.trim_ascii())).map(|bytes| out.put(METRICS[6].metric(), "", bytes))
}

/// Parses the text of `io.stat`: `254:0 rbytes=1 wbytes=2 …`.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn io(text: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| device(line, out))
}

fn device(line: &str, out: &mut impl Sink) -> Option<()> {
    let (mut device, rest) = word(line)?;
    for field in words(rest) {
        // Linux before 5.14 began a line with the numbers of devices that had nothing to tell.
        let Some((name, value)) = field.split_once('=') else {
            device = field;
            continue;
        };
        let unit = if name.ends_with("bytes") { "B" } else { "1" };
        // Cost models add words, and numbers with a point.
        if let Some(value) = number(value) {
            out.put(Metric::counter(name, unit), device, value);
        }
    }
    Some(())
}

/// Parses the text of one of the pressure files.
///
/// # Errors
/// The first line that is not in the kernel's format.
pub fn stalls(text: &str, resource: &str, out: &mut impl Sink) -> Result<(), Malformed> {
    lines(text, 0, |line| pressure::stall(line, METRICS, resource, out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samplers::testing::{Values, config_in, sampled, tree, values};

    #[test]
    fn the_own_group_is_that_of_version_2() {
        assert_eq!(
            own(include_str!("cgroup/linux-6.1-cgroup.txt")),
            Some("/user.slice/user-0.slice/session-1.scope")
        );
        assert_eq!(
            own(include_str!("cgroup/linux-5.10-hybrid-cgroup.txt")),
            Some("/system.slice/ssh.service")
        );
        assert_eq!(own("4:memory:/a\n"), None);
    }

    #[test]
    fn files_of_several_kernels_are_understood() {
        let old = Values::of(|out| cpu(include_str!("cgroup/linux-4.18-cpu.stat.txt"), out));
        assert_eq!(old.row("", ["usage_usec", "user_usec", "system_usec"]), [5000.0, 3000.0, 2000.0]);
        let recent = Values::of(|out| cpu(include_str!("cgroup/linux-6.1-cpu.stat.txt"), out));
        recent.are_as_listed(&REGISTERED);
        assert_eq!(recent.row("", ["nr_throttled", "throttled_usec", "burst_usec"]), [2.0, 4000.0, 0.0]);
        let devices = Values::of(|out| io(include_str!("cgroup/linux-5.10-io.stat.txt"), out));
        devices.are_as_listed(&REGISTERED);
        assert_eq!(devices.row("8:0", ["rbytes", "wios"]), [1_459_200.0, 353.0]);
        assert_eq!((devices.get("rbytes", "8:16"), devices.get("cost.usage", "253:0")), (None, Some(77.0)));
        let newer = Values::of(|out| io(include_str!("cgroup/linux-6.1-io.stat.txt"), out));
        assert_eq!(newer.get("dios", "8:0"), Some(3021.0));
    }

    #[test]
    fn what_a_group_does_not_have_is_left_out() {
        let root = tree(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 7\n"),
            ("sys/fs/cgroup/a/b/memory.current", "4096\n"),
            ("sys/fs/cgroup/a/b/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=3\n"),
        ]);
        let samples = sampled(&REGISTERED, &config_in(root.path()), &[&|| ()]);
        assert_eq!((samples.problems.len(), samples.series.len()), (0, 3));
        assert_eq!(values(&samples, "memory", ""), [4096.0]);
        assert_eq!(values(&samples, "pressure_some", "io"), [3000.0]);
        let mixed = tree(&[
            ("proc/self/cgroup", "3:cpu,cpuacct:/job\n0::/\n"),
            ("sys/fs/cgroup/unified/cpu.stat", "usage_usec 7\n"),
            ("sys/fs/cgroup/cpu/job/cpu.stat", "nr_periods 9\nnr_throttled 4\nthrottled_time 5000000\n"),
        ]);
        let samples = sampled(&REGISTERED, &config_in(mixed.path()), &[&|| ()]);
        assert_eq!((samples.problems.len(), values(&samples, "nr_throttled", "")), (0, vec![4.0]));
        assert_eq!(values(&samples, "throttled_usec", ""), [5000.0]);
        let nothing = tempfile::tempdir().unwrap();
        let samples = sampled(&REGISTERED, &config_in(nothing.path()), &[&|| (), &|| ()]);
        assert_eq!(samples.problems.len(), 1, "{:?}", samples.problems);
    }
}
