//! `check` of directories: of this host, and of the kernel's client in a lab. Options of mounts that are known to break rules are
//! the conditions that it has to find.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::lab_study::Standing;
use crate::place::{Place, stderr, stdout};

/// Rules that no NFS client of Linux keeps before it keeps removed files open (NFSv4.1 with a server that says so).
const REMOVED_FILES: [&str; 3] =
    ["unlink-open-file-is-not-listed", "unlink-open-file-links", "unlink-open-file-then-rmdir"];

#[test]
fn a_directory_keeps_all_rules_of_its_groups() {
    let place = Place::in_memory();
    place.write("before", "kept");
    let output = place.run(&["check", ".", "--only", "names,open", "--junit", "junit.xml"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    assert!(text.contains("No rule that binds is broken in"), "{text}");
    assert!(place.list(".").iter().all(|name| !name.starts_with("benchmaster")), "{:?}", place.list("."));
    let junit = std::fs::read_to_string(place.path("junit.xml")).unwrap();
    assert!(junit.contains("rename-replaces-file") && !junit.contains("<failure"), "{junit}");
}

#[test]
fn what_cannot_be_checked_is_said() {
    let place = Place::in_memory();
    place.write("file", "");
    for (arguments, says) in [
        (&["none"][..], "a directory cannot be made in none: No such file or directory"),
        (&["file"], "a directory cannot be made in file: Not a directory"),
        (&[".", "--nfs", "3"], "--nfs is for servers"),
        (&[".", "--only", "mmmap"], "no group and no check `mmmap`"),
        (&[".", "--second", "/proc"], "the second path does not show what is made in ."),
        (&["nfs://localhost/export", "--second", "."], "--second is another path to a directory"),
    ] {
        let output = place.run(&[&["check"], arguments].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(says), "{arguments:?}: {}", stderr(&output));
    }
    assert!(place.list(".").iter().all(|name| !name.starts_with("benchmaster")), "{:?}", place.list("."));
}

/// Names of the broken rules that bind, and of all others that are broken.
fn broken(lab: &Standing, mounts: [&str; 2], only: &str) -> [BTreeSet<String>; 2] {
    let script = format!(
        "umount /a /b 2>/dev/null; mkdir -p /a /b
         mount -t nfs -o {} server:/export /a && mount -t nfs -o {},nosharecache server:/export /b || exit 9
         /lab/benchmaster check /a --second /b --json {only}; test $? -le 1",
        mounts[0], mounts[1]
    );
    let output = lab.output("c1", &script);
    assert!(output.status.success(), "{mounts:?}: {}", stderr(&output));
    let checked: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(checked[0]["left_behind"], Value::Null, "{mounts:?}");
    let findings = checked[0]["findings"].as_array().unwrap();
    let (must, others): (Vec<_>, Vec<_>) = findings
        .iter()
        .filter(|finding| finding["verdict"] == "fail")
        .partition(|finding| finding["force"] == "must");
    [must, others].map(|all| all.iter().map(|finding| finding["name"].as_str().unwrap().to_owned()).collect())
}

fn holds(found: &BTreeSet<String>, expected: &[&str]) -> bool {
    expected.iter().all(|name| found.contains(*name))
}

#[test]
#[ignore = "full tier: machines"]
fn mounts_of_the_kernel_break_the_rules_that_their_options_break() {
    let place = Place::new();
    let Some(lab) = Standing::with(&place, "check", &["--clients", "1", "--file-system", "ext4"]) else {
        return;
    };
    // Linux 6.1 loses an update in a hundred between two mounts of one host and version, in half of all attempts.
    for (mounts, may) in
        [(["vers=4.2", "vers=3"], None), (["vers=3", "vers=3"], Some("shared-lock-shows-data"))]
    {
        let [must, others] = broken(&lab, mounts, "");
        assert!(must.iter().all(|name| Some(&name[..]) == may), "{mounts:?}: {must:?}");
        assert!(holds(&others, &REMOVED_FILES) && others.contains("shared-append"), "{mounts:?}: {others:?}");
    }
    let [must, others] =
        broken(&lab, ["vers=4.2,lookupcache=none", "vers=3,lookupcache=none"], "--only coherence");
    assert!(must.is_empty() && !others.contains("shared-new-name"), "{must:?}, {others:?}");

    let [must, _] = broken(&lab, ["vers=3,nolock"; 2], "--only coherence");
    assert!(holds(&must, &["shared-lock-excludes", "shared-lock-shows-data"]), "{must:?}");
    assert!(must.iter().all(|name| name.starts_with("shared-lock")), "{must:?}");

    let [must, _] = broken(&lab, ["vers=3,nocto,actimeo=60"; 2], "--only coherence");
    assert!(holds(&must, &["shared-close-to-open", "shared-same-size"]), "{must:?}");
    assert!(must.iter().all(|name| !name.starts_with("shared-lock-ex")), "{must:?}");
}
