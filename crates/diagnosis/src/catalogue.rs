//! Every kind of finding, by name.

use std::sync::LazyLock;

use crate::explanation::Explanation;
use crate::validity::rule;
use benchmaster_record::results::CheckKind;

/// All kinds, by name.
pub fn all() -> &'static [&'static Explanation] {
    static ALL: LazyLock<Vec<&'static Explanation>> = LazyLock::new(|| {
        let mut all: Vec<_> =
            crate::mountstats::explanations().chain(crate::results::explanations()).collect();
        all.sort_by_key(|explanation| explanation.id);
        all.dedup_by_key(|explanation| explanation.id);
        all
    });
    &ALL
}

/// The kind of this name, or that of a validity check of this name.
pub fn explain(id: &str) -> Option<&'static Explanation> {
    let named = |id: &str| {
        let at = all().binary_search_by_key(&id, |explanation| explanation.id).ok()?;
        Some(all()[at])
    };
    named(id).or_else(|| Some(&rule(CheckKind::from_name(id)?).explanation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_of_one_kind_each_and_nothing_is_left_out() {
        let all = all();
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id), "a name twice");
        for &one in all {
            assert_eq!(explain(one.id), Some(one));
            assert!(one.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", one.id);
            for text in [one.title, one.mechanism, one.formula, one.source] {
                assert!(!text.trim().is_empty(), "{}", one.id);
            }
        }
        assert_eq!(explain("nothing"), None);
    }
}
