//! `check` of the kernel's server in a lab: what it does otherwise is known.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lab_study::Standing;
use crate::place::{Place, stderr};

const V3: &[&str] = &["3"];
const V4: &[&str] = &["4.0", "4.1", "4.2"];
const V41: &[&str] = &["4.1", "4.2"];
const V42: &[&str] = &["4.2"];

/// A rule that the kernel's server (Linux 6.1) breaks: versions, check, and what it does.
type Known = (&'static [&'static str], &'static str, &'static str);

const KNOWN: &[Known] = &[];

#[test]
#[ignore = "full tier: machines"]
fn the_kernels_server_breaks_the_rules_that_it_is_known_to_break() {
    let place = Place::new();
    let Some(lab) = Standing::with(&place, "knfsd", &["--clients", "1", "--lease", "10s"]) else { return };
    for version in ["3", "4.0", "4.1", "4.2"] {
        let script =
            format!("/lab/benchmaster check nfs://server/export --nfs {version} --json; test $? -le 1");
        let output = lab.output("c1", &script);
        assert!(output.status.success(), "{version}: {}", stderr(&output));
        let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
        let findings = checked[0]["findings"].as_array().unwrap();
        let of = |verdict: &str| findings.iter().filter(|it| it["verdict"] == verdict).count();
        println!(
            "{version}: {} pass, {} fail, {} do not apply",
            of("pass"),
            of("fail"),
            of("not-applicable")
        );
        let failed: Vec<&Value> = findings.iter().filter(|finding| finding["verdict"] == "fail").collect();
        failed.iter().for_each(|finding| println!("{finding}"));
        let known: BTreeSet<&str> = KNOWN
            .iter()
            .filter(|(versions, ..)| versions.contains(&version))
            .map(|(_, name, _)| *name)
            .collect();
        let unknown: Vec<&&Value> =
            failed.iter().filter(|it| !known.contains(it["name"].as_str().unwrap())).collect();
        assert!(unknown.is_empty(), "{version}: {unknown:#?}");
        assert_eq!(checked[0]["left_behind"], Value::Null, "{version}");
    }
}
