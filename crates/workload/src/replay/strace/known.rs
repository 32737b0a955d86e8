//! Calls by name: those that make threads, and those that have nothing to do with files.

use std::collections::HashSet;
use std::sync::LazyLock;

type Names = LazyLock<HashSet<&'static str>>;

/// Calls that do nothing to files: memory, signals, time, processes, identities, waiting.
static NO_FILE: Names = LazyLock::new(|| include_str!("no_file.txt").split_whitespace().collect());

/// Calls on files that no engine has, or whose effect a trace does not show.
static UNSUPPORTED: Names = LazyLock::new(|| include_str!("unsupported.txt").split_whitespace().collect());

/// Whether a call is known and has nothing to do with files.
pub(super) fn is_no_file(name: &str) -> bool {
    NO_FILE.contains(name)
}

/// Whether a call is known and cannot be replayed.
pub(super) fn is_unsupported(name: &str) -> bool {
    UNSUPPORTED.contains(name)
}

/// Whether a call makes a thread or process.
pub(super) fn creates_thread(name: &str) -> bool {
    matches!(name, "clone" | "clone2" | "clone3" | "fork" | "vfork")
}

/// Whether a call does not return because the thread ends by it.
pub(super) fn ends(name: &str) -> bool {
    matches!(name, "exit" | "exit_group" | "_exit" | "execve" | "execveat")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_are_apart_and_name_nothing_twice() {
        let names = |text: &'static str| text.split_whitespace().count();
        assert_eq!(NO_FILE.len(), names(include_str!("no_file.txt")));
        assert_eq!(UNSUPPORTED.len(), names(include_str!("unsupported.txt")));
        assert!(NO_FILE.is_disjoint(&UNSUPPORTED));
        assert!(is_no_file("futex") && is_unsupported("splice"));
    }
}
