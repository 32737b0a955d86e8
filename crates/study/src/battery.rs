//! The quick battery: the basic workloads on one target, in about a minute, as a study file like any other.

use benchmaster_units::TimeSpan;

use crate::target::Target;

/// How long each workload that runs for a time is measured, unless told otherwise.
pub const QUICK_DURATION: TimeSpan = TimeSpan::seconds(1);
/// The factor of two targets.
pub const TARGETS: &str = "target";

/// The quick battery on a target (`{scratch}` for a temporary directory, `nfs://{server}/export` for the embedded
/// server's export), as the text of a study file; on two targets in turns with `against`. `duration` is how long each
/// workload that runs for a time is measured; if absent, [`QUICK_DURATION`].
pub fn quick(target: &Target, against: Option<&Target>, duration: Option<TimeSpan>) -> String {
    let targets = || std::iter::once(target).chain(against);
    let run = if targets().all(|target| target.key == "url") {
        ""
    } else {
        "[run]\ncache = \"fadvise\"               # reads should come from the file system, not from this host's page cache\n\n"
    };
    let levels = match against {
        None => String::new(),
        Some(_) => {
            let level = |(name, target): (&str, &Target)| {
                format!("{name} = {{ \"target.{}\" = {} }}\n", target.key, target.value)
            };
            let levels: String = ["A", "B"].into_iter().zip(targets()).map(level).collect();
            format!("[factors.{TARGETS}.levels]\n{levels}\n")
        }
    };
    let duration = duration.unwrap_or(QUICK_DURATION).to_string();
    let study = include_str!("battery.toml").replace("{duration}", &duration);
    let target = format!("{} = {}", target.key, target.value);
    study.replace("{run}", run).replace("{levels}", &levels).replace("{target}", &target)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use benchmaster_builtin::BUILT_IN;

    use super::*;
    use crate::file::StudyFile;
    use crate::plan::Plan;

    fn quick(text: &str, duration: Option<TimeSpan>) -> String {
        super::quick(&Target::read(text).unwrap(), None, duration)
    }

    #[test]
    fn the_battery_has_the_basic_workloads_and_takes_about_a_minute() {
        let text = quick("/mnt/x", None);
        let file = StudyFile::parse("quick", &text).unwrap_or_else(|found| panic!("{found}"));
        assert!(file.warnings.is_empty(), "{}", file.warnings);
        let plan = Plan::from_study(&file, "1").unwrap();
        let used: BTreeSet<_> = plan.study.workloads.iter().map(|w| w.use_name.as_str()).collect();
        // The first of the table are those that every file system is measured by.
        let basic: BTreeSet<_> = BUILT_IN.iter().map(|built_in| built_in.name).take(used.len()).collect();
        assert_eq!(used, basic);
        let estimate = plan.estimate();
        assert_eq!((estimate.runs_min, estimate.seconds_min), (5, 30.0));
        assert!(estimate.bytes_needed < 512 << 20, "{}", estimate.bytes_needed);
    }

    #[test]
    fn any_path_and_duration_can_be_written() {
        for path in ["/mnt/with \"quotes\" and \\", "/mnt/ünï\tcode", "{scratch}"] {
            let file = StudyFile::parse("quick", &quick(path, Some(TimeSpan::millis(500)))).unwrap();
            assert_eq!(file.base.target.path.as_deref(), Some(path));
        }
        for url in ["nfs://{server}/export", "nfs://filer:2050/vol%201?version=3&nconnect=2"] {
            let file = StudyFile::parse("quick", &quick(url, None)).unwrap();
            assert_eq!(
                (file.base.target.url.as_deref(), file.base.target.path.as_deref()),
                (Some(url), None)
            );
        }
    }

    #[test]
    fn two_targets_are_measured_in_turns() {
        let all = ["nfs://filer/vol1?version=3", "filer:/vol1", "/mnt/\"x\""];
        for (a, b) in all.iter().flat_map(|a| all.iter().map(move |b| (*a, *b))).filter(|(a, b)| a != b) {
            let text = super::quick(&Target::read(a).unwrap(), Some(&Target::read(b).unwrap()), None);
            let file = StudyFile::parse("quick", &text).unwrap_or_else(|found| panic!("{found}\n{text}"));
            let plan = Plan::from_study(&file, "1").unwrap();
            assert_eq!(plan.study.factors[0].levels, ["A", "B"]);
            assert_eq!(plan.estimate().runs_min, 10);
            assert!(plan.estimate().seconds_min <= 90.0, "{}", plan.estimate().seconds_min);
        }
    }
}
