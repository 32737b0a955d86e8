//! The server of this project keeps all rules.

use std::collections::HashSet;

use benchmaster_check::nfs::{list, versions};
use benchmaster_check::{Text, Verdict};
use benchmaster_record::nfs::NfsVersion;

use crate::support::{all, broken, server, target};

fn keeps_all(version: NfsVersion) {
    let server = server();
    let checked = all(&target(server.address()), version);
    assert_eq!(broken(&checked), Vec::<String>::new());
    assert_eq!(checked.left_behind, None);
    let made = list().into_iter().flatten().filter(|check| check.versions.contains(&version)).count();
    assert_eq!(checked.findings.len(), made);
    let skipped: Vec<_> =
        checked.findings.iter().filter(|f| matches!(f.verdict, Verdict::NotApplicable { .. })).collect();
    println!("{version}: {made} checks, {:.2} s; not applicable: {skipped:#?}", checked.elapsed_s);
}

#[test]
fn version_2() {
    keeps_all(NfsVersion::V2);
}

#[test]
fn version_3() {
    keeps_all(NfsVersion::V3);
}

#[test]
fn version_4_0() {
    keeps_all(NfsVersion::V40);
}

#[test]
fn version_4_1() {
    keeps_all(NfsVersion::V41);
}

#[test]
fn version_4_2() {
    keeps_all(NfsVersion::V42);
}

#[test]
fn all_versions_are_found() {
    let server = server();
    assert_eq!(versions(&target(server.address())).unwrap(), NfsVersion::ALL);
}

#[test]
fn checks_have_names_of_their_own_and_rules_with_places() {
    let mut names = HashSet::new();
    for check in list().into_iter().flatten() {
        assert!(names.insert(check.name), "{} twice", check.name);
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        assert!(check.name.chars().all(plain), "{}", check.name);
        assert!(check.rule.says.ends_with('.'), "{}: {}", check.name, check.rule.says);
        assert!(!check.versions.is_empty(), "{}", check.name);
        for version in check.versions {
            let place =
                check.rule.place(Some(*version)).unwrap_or_else(|| panic!("{} {version}", check.name));
            assert!(!place.section.is_empty());
            if let Text::Rfc(number) = place.text {
                assert!([1094, 1813, 1833, 4506, 5531, 7530, 7862, 8276, 8881].contains(&number), "{number}");
            }
        }
    }
}
