//! Every option of fio 3.33 by name, and what becomes of it.

use std::sync::LazyLock;

use crate::fates::{Fate, Fates};

static OPTIONS: LazyLock<Fates> = LazyLock::new(|| Fates::read(include_str!("options.toml")));

/// The canonical name of an option and what becomes of it.
pub(super) fn find(name: &str) -> Option<(&'static str, Fate)> {
    OPTIONS.find(name)
}

/// Known names that are written alike.
pub(super) fn similar(name: &str) -> Option<&'static str> {
    let distance = |known: &str| changes(known, name);
    let nearest = OPTIONS.names().min_by_key(|known| distance(known));
    nearest.filter(|known| distance(known) <= 1 + name.len() / 4)
}

/// How many letters must be added, removed or exchanged to make one text of the other.
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (number, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], number + 1);
        for (at, wanted) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != *wanted);
            diagonal = row[at + 1];
            row[at + 1] = exchanged.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NoteKind;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<&str> = OPTIONS.names().collect();
        let all = names.len();
        assert!(all > 300, "{all} names");
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    /// What the installed fio lists is known: options of jobs, and of its engines.
    #[test]
    #[allow(clippy::print_stderr, reason = "says why it is skipped")]
    fn every_option_that_fio_lists_is_known() {
        let fio = |argument: &str| {
            let output = std::process::Command::new("fio").arg(argument).output().ok()?;
            String::from_utf8(output.stdout).ok()
        };
        let Some(version) = fio("--version").filter(|version| version.starts_with("fio-3.33")) else {
            eprintln!("skipped: fio 3.33 is not installed");
            return;
        };
        let listed = |text: String| -> Vec<String> {
            let line = |line: &str| line.split_once(':').map(|(name, _)| name.trim().to_owned());
            text.lines().filter_map(line).filter(|name| !name.is_empty() && !name.contains(' ')).collect()
        };
        let mut names = listed(fio("--cmdhelp=all").unwrap());
        assert!(names.len() > 200, "{version}: {names:?}");
        let engines = fio("--enghelp").unwrap();
        for engine in engines.lines().skip(1).map(str::trim).filter(|engine| !engine.is_empty()) {
            names.extend(listed(fio(&format!("--enghelp={engine}")).unwrap()));
        }
        let unknown: Vec<&String> = names.iter().filter(|name| find(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn aliases_lead_to_the_option() {
        assert_eq!(find("blocksize"), Some(("bs", Some((NoteKind::Translated, "`io_size`")))));
        assert_eq!(find("bs"), Some(("bs", Some((NoteKind::Translated, "`io_size`")))));
        assert_eq!(find("ba"), Some(("ba", None)));
        assert_eq!(find("bsize"), None);
        assert!(matches!(
            find("disable_bw"),
            Some(("disable_bw_measurement", Some((NoteKind::Irrelevant, _))))
        ));
    }

    #[test]
    fn a_slip_of_the_pen_is_seen() {
        assert_eq!(similar("iodpeth"), Some("iodepth"));
        assert_eq!(similar("blocksiz"), Some("blocksize"));
        assert_eq!(similar("completely_different"), None);
    }
}
