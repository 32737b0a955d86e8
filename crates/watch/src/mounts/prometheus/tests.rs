//! Series of recorded readings, their limit, and what the documentation, rules and dashboard make of them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::*;

const RECORDED: &str = include_str!("../../../../telemetry/src/mountstats/samples/linux-6.1.txt");
const NEW: &str = include_str!("../../../../telemetry/src/mountstats/samples/linux-6.12.txt");
const OLD: &str = include_str!("../../../../telemetry/src/mountstats/samples/linux-2.6.32.txt");

fn of(text: &str) -> String {
    exposition(&Mountstats::parse(text).unwrap())
}

/// Lines of series.
fn series(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| !line.starts_with('#'))
}

fn value(text: &str, series: &str) -> f64 {
    let line =
        text.lines().find(|line| line.starts_with(series)).unwrap_or_else(|| panic!("{series}: {text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

#[test]
fn counters_are_the_kernel_s_in_base_units() {
    let text = of(NEW);
    insta::with_settings!({prepend_module_to_snapshot => false}, { insta::assert_snapshot!("exposition", text) });
    let labels = "device=\"srv.example:/export\",mount_point=\"/mnt/nfs\"";
    let read = format!("{{{labels},operation=\"READ\"}}");
    assert_eq!(value(&text, &format!("benchmaster_nfs_calls_total{read}")), 1020.0);
    assert_eq!(value(&text, &format!("benchmaster_nfs_round_trip_seconds_total{read}")), 2.04);
    // Two connections by TCP, and one within the host, which has no slots that anything waits for.
    assert_eq!(value(&text, &format!("benchmaster_nfs_sends_total{{{labels}}}")), 160.0 + 151.0 + 2.0);
}

#[test]
fn operations_add_up_to_all_of_them() {
    for recorded in [RECORDED, NEW, OLD] {
        let stats = Mountstats::parse(recorded).unwrap();
        for mount in &stats.mounts {
            let one = Counted::of(mount.clone());
            let all = Operation { name: String::new(), ..sum(&one.operations) };
            assert_eq!(all, one.total, "{mount}");
        }
    }
    // A kernel that does not count errors has no series of them.
    assert!(!of(OLD).contains("benchmaster_nfs_errors_total"));
}

#[test]
fn a_mount_has_at_most_sixty_series() {
    let mut text = String::from(NEW.trim_end());
    // Every operation that can have series of its own, and as many others again.
    for name in OPERATIONS {
        text += &format!("\n\t{name}: 1 1 0 1 1 1 1 1 0");
    }
    for number in 100..400 {
        text += &format!("\n\t{number}: 1 1 0 1 1 1 1 1 0");
    }
    for recorded in [&text, RECORDED, NEW, OLD] {
        let text = of(recorded);
        let mut of_mount: BTreeMap<&str, usize> = BTreeMap::new();
        for line in series(&text).filter(|line| line.contains("mount_point=")) {
            let point = line.split("mount_point=\"").nth(1).unwrap().split('"').next().unwrap();
            *of_mount.entry(point).or_default() += 1;
        }
        assert!(!of_mount.is_empty());
        assert!(of_mount.values().all(|count| *count <= MOST_SERIES), "{of_mount:?}");
    }
    // The most there can be: no kernel writes an operation twice, so the limit is above it.
    assert_eq!(series(&of(&text)).filter(|line| line.contains("mount_point=")).count(), 59);
}

#[test]
fn use_changes_no_series() {
    let names = |text: &str| -> Vec<String> {
        series(text).map(|line| line.rsplit_once(' ').unwrap().0.to_owned()).collect()
    };
    let unused = NEW.replace("READDIR: 0 0 0", "READDIR: 7 7 0").replace("LOCK: 0 0 0", "LOCK: 9 9 0");
    assert_ne!(of(NEW), of(&unused));
    assert_eq!(names(&of(NEW)), names(&of(&unused)));
}

#[test]
fn labels_are_escaped_and_series_differ() {
    let mount = |device: &str, point: &str| {
        format!("device {device} mounted on {point} with fstype nfs statvers=1.1\n\tage:\t1\n")
    };
    let text = of(&(mount("a:/x\"y", "/b\\134n") + &mount("a:/same", "/c") + &mount("a:/same", "/c")));
    assert!(text.contains(r#"{device="a:/x\"y",mount_point="/b\\n",version="?"} 1"#), "{text}");
    assert_eq!(escaped("a\nb"), r"a\nb");
    assert_eq!(text.matches("mount_info{device=\"a:/same\"").count(), 1, "{text}");
    assert!(text.contains("\nbenchmaster_nfs_mounts 3\n"), "{text}");
    let mut seen = BTreeSet::new();
    assert!(series(&text).all(|line| seen.insert(line.rsplit_once(' ').unwrap().0)), "{text}");
    assert_eq!(
        of(""),
        "# HELP benchmaster_nfs_mounts NFS mounts.\n# TYPE benchmaster_nfs_mounts gauge\nbenchmaster_nfs_mounts 0\n"
    );
}

/// Names, kinds and meanings of all metrics.
fn metrics() -> Vec<(String, &'static str, &'static str)> {
    fn plain<T>(Metric(name, help, _): &Metric<T>) -> (String, &'static str, &'static str) {
        (format!("{PREFIX}{name}"), kind(name), help)
    }
    let of_mounts = [plain(&MOUNTS), plain(&INFO)].into_iter().chain(OF_MOUNTS.iter().map(plain));
    of_mounts.chain(OF_OPERATIONS.iter().map(plain)).collect()
}

fn documentation(file: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    fs::read_to_string(docs.join(file)).unwrap()
}

#[test]
fn every_metric_is_documented() {
    let page = documentation("watch.md");
    let table = page.lines().filter_map(|line| line.strip_prefix("| `benchmaster_nfs_"));
    let documented: Vec<String> = table
        .map(|row| {
            let [name, kind, help] = row.split(" | ").collect::<Vec<_>>()[..] else { panic!("{row}") };
            format!("benchmaster_nfs_{} {kind} {}", name.trim_end_matches('`'), help.trim_end_matches(" |"))
        })
        .collect();
    let exported = metrics().into_iter().map(|(name, kind, help)| format!("{name} {kind} {help}"));
    assert_eq!(documented, exported.collect::<Vec<_>>());
    assert!(page.contains(&format!("at most {MOST_SERIES} series")));
    let named = OPERATIONS.map(|name| format!("`{name}`")).join(", ");
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&page).contains(&named), "{named}");
}

#[test]
fn rules_and_dashboard_use_metrics_that_exist() {
    let metrics = metrics();
    let exported: BTreeSet<&str> = metrics.iter().map(|(name, ..)| name.as_str()).collect();
    for file in ["benchmaster.rules.yml", "benchmaster.rules.test.yml", "dashboard.json"] {
        let text = documentation(&format!("prometheus/{file}"));
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let used: BTreeSet<&str> = words.filter(|word| word.starts_with("benchmaster_")).collect();
        assert!(!used.is_empty() && used.is_subset(&exported), "{file}: {:?}", used.difference(&exported));
    }
}
