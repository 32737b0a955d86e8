//! `check` of the kernel's server in a lab: what it does otherwise is known.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::lab_study::Standing;
use crate::place::{Place, stderr};

const V3: &[&str] = &["3"];
const V4: &[&str] = &["4.0", "4.1", "4.2"];
const V41: &[&str] = &["4.1", "4.2"];
const V42: &[&str] = &["4.2"];

/// A rule that the kernel's server (Linux 6.1) breaks: versions, check, and what it does.
type Known = (&'static [&'static str], &'static str, &'static str);

const KNOWN: &[Known] = &[
    (V3, "v3-lookup-long-name", "names longer than 255 bytes do not decode; RFC 1813 §2.5 sets no limit"),
    (V3, "v3-create-long-name", "names longer than 255 bytes do not decode; RFC 1813 §2.5 sets no limit"),
    (
        V3,
        "v3-create-over-directory",
        "RFC 1813 §3.3.8: UNCHECKED creation of a regular file; a directory is given",
    ),
    (V3, "v3-readdir-too-small", "RFC 1813 §3.3.16: TOOSMALL; more is given than was asked for"),
    (V3, "v3-readdir-while-removing", "cookies of tmpfs are positions, which removal moves"),
    (V3, "nlm-test-process", "RFC 1813 §6.1.4: svid is the holder's process; it is one of the server"),
    (V4, "readdir-while-removing", "cookies of tmpfs are positions, which removal moves"),
    (
        V4,
        "link-names-file",
        "RFC 8881 §5.8.1.4: change differs after each change; it is a time of coarse ticks",
    ),
    (V4, "getattr-each", "RFC 8881 §5.5: what is in supported_attrs is given; time_create of tmpfs is not"),
    (
        V4,
        "getattr-together",
        "RFC 8881 §5.5: what is in supported_attrs is given; time_create of tmpfs is not",
    ),
    // Lists are mapped to POSIX ones, as RFC 8881 §6.2.1 permits.
    (
        V4,
        "acl-kept-as-set",
        "RFC 8881 §6.4.1.2: set as given; the POSIX list has another order and other rights",
    ),
    (V4, "mode-changes-named-acl", "RFC 8881 §6.4.1.1: bits of the group set the mask of a POSIX list"),
    (V4, "acl-lets-set-mode", "RFC 8881 §6.2.1.3.1: WRITE_ACL; only owners set modes"),
    (V4, "acl-add-file-only", "RFC 8881 §6.2.1.3.1: ADD_FILE; POSIX has one right to write"),
    (V4, "acl-delete-by-file", "RFC 8881 §6.2.1.3.2: DELETE; the directory alone decides"),
    (V4, "acl-delete-by-directory", "RFC 8881 §6.2.1.3.2: DELETE_CHILD; the right to write decides"),
    (V4, "acl-inherit-only-alone", "RFC 8881 §6.2.1.4.1: INHERIT_ONLY alone is refused; it is taken"),
    (V4, "acl-inherited-by-file", "RFC 8881 §6.4.3: without a mode all is inherited; the mode 0 is applied"),
    (
        V4,
        "acl-inherited-by-directory",
        "RFC 8881 §6.4.3: without a mode all is inherited; the mode 0 is applied",
    ),
    (V4, "acl-not-for-files", "RFC 8881 §6.4.3.1: FILE_INHERIT; a default list is for all new objects"),
    (V4, "acl-files-only-below", "RFC 8881 §6.4.3.1: INHERIT_ONLY; a default list is for all new objects"),
    (
        V4,
        "acl-inherited-under-mode",
        "RFC 8881 §6.4.3: the mode is applied; it and the default list are intersected",
    ),
    (V41, "lock-current-stateid", "RFC 8881 §16.2.3.1.2: LOCK takes the current stateid; BAD_STATEID"),
    (V41, "compound-old-operation-renew", "RFC 8881 §17: RENEW is not to be implemented in 4.1; it is OK"),
    (V42, "copy-beyond-the-source", "RFC 7862 §15.2.3: INVAL; nothing is copied, and it is OK"),
];

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
        let mut groups: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
        for it in findings {
            let verdict = it["verdict"].as_str().unwrap();
            for group in [it["group"].as_str().unwrap(), "all"] {
                *groups.entry(group).or_default().entry(verdict).or_default() += 1;
            }
        }
        // For the table of docs/check.md.
        println!("{version}: {groups:?}");
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
