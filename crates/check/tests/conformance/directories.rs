//! A directory of this host keeps all rules.

use std::collections::HashSet;
use std::path::Path;

use benchmaster_check::directory::{CHECKS, check};
use benchmaster_check::{Checked, Verdict};

use crate::support::broken;

fn all(path: &Path, second: Option<&Path>) -> Checked {
    check(path, second, &|_| true, &|| true, &mut |_| {}).unwrap()
}

/// A directory in memory where there is one: the checks make thousands of files.
fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap()
}

#[test]
fn a_local_directory_keeps_all_rules_and_nothing_is_left() {
    let directory = directory();
    let checked = all(directory.path(), Some(directory.path()));
    assert_eq!(broken(&checked), Vec::<String>::new());
    assert_eq!(checked.left_behind, None);
    assert_eq!(checked.findings.len(), CHECKS.iter().map(|checks| checks.len()).sum::<usize>());
    let skipped: Vec<_> =
        checked.findings.iter().filter(|f| matches!(f.verdict, Verdict::NotApplicable { .. })).collect();
    println!("{} checks, {:.2} s; not applicable: {skipped:#?}", checked.findings.len(), checked.elapsed_s);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn a_second_path_must_show_the_same_directory() {
    let (first, second) = (directory(), directory());
    let error = check(first.path(), Some(second.path()), &|_| true, &|| true, &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("the second path does not show what is made in"), "{error}");
    assert_eq!(std::fs::read_dir(first.path()).unwrap().count(), 0);
}

#[test]
fn checks_end_when_told_and_leave_nothing() {
    let directory = directory();
    let count = std::cell::Cell::new(0);
    let go_on = || count.replace(count.get() + 1) < 3;
    let checked = check(directory.path(), None, &|_| true, &go_on, &mut |_| {}).unwrap();
    assert_eq!(checked.findings.len(), 3);
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn checks_have_names_of_their_own_and_rules_in_sentences() {
    let mut names = HashSet::new();
    for check in CHECKS.iter().copied().flatten() {
        assert!(names.insert(check.name), "{} twice", check.name);
        assert!(
            check.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'),
            "{}",
            check.name
        );
        assert!(check.rule.says.ends_with('.'), "{}: {}", check.name, check.rule.says);
        assert!(check.rule.place(None).is_some_and(|place| place.section.ends_with(')')), "{}", check.name);
    }
}
