//! Every kind of finding, by name.

use benchmaster_record::results::CheckKind;

use crate::explanation::{self, Explanation};
use crate::validity::rule;

/// All kinds, by name.
pub fn all() -> &'static [Explanation] {
    explanation::all()
}

/// The kind of this name, or that of a validity check of this name.
pub fn explain(id: &str) -> Option<&'static Explanation> {
    explanation::find(id).or_else(|| explanation::find(rule(CheckKind::from_name(id)?).id()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_of_one_kind_each_and_nothing_is_left_out() {
        let all = all();
        assert!(all.windows(2).all(|pair| pair[0].id < pair[1].id), "a name twice");
        for one in all {
            assert_eq!(explain(&one.id), Some(one));
            assert!(one.id.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'-'), "{}", one.id);
            for text in [&one.title, &one.mechanism, &one.formula, &one.source] {
                assert!(!text.trim().is_empty(), "{}", one.id);
            }
        }
        assert_eq!(explain("nothing"), None);
    }

    #[test]
    fn every_rule_has_an_explanation_and_every_explanation_a_rule() {
        let rules: BTreeSet<&str> = crate::mountstats::ids().chain(crate::results::ids()).collect();
        assert!(all().iter().map(|one| one.id.as_str()).eq(rules), "rules and texts differ");
    }
}
