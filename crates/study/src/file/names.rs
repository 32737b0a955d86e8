//! The names that a study gives: to itself, to factors, levels and blocks, and to workloads.

use super::tree::{Table, Value};
use crate::diagnostics::Diagnostics;
use crate::path;

/// Whether all names are such as can be; others are reported.
pub(crate) fn check(tree: &Table, diagnostics: &mut Diagnostics) -> bool {
    let before = diagnostics.errors();
    let mut check = |what: &str, name: &str, span: &_| {
        if !path::is_name(name) || name.len() > 64 {
            let message = format!("`{name}` cannot be the name of a {what}");
            diagnostics.error(span, message, "use up to 64 letters, digits, `_` and `-`");
        }
    };
    if let Some((node, name)) = tree.at("study.name").and_then(|node| Some((node, node.text()?))) {
        check("study", name, &node.span);
    }
    for key in tree.table("workload").into_iter().flat_map(Table::keys) {
        check("workload", &key.name, &key.span);
    }
    for (key, factor) in tree.table("factors").into_iter().flat_map(Table::iter) {
        check("factor", &key.name, &key.span);
        let levels = factor.table().and_then(|factor| factor.table("levels"));
        for key in levels.into_iter().flat_map(Table::keys) {
            check("level", &key.name, &key.span);
        }
    }
    if let Some(Value::Array(blocks)) = tree.at("design.blocks").map(|node| &node.value) {
        let names = blocks.iter().filter_map(|block| block.table()?.get("name"));
        for (node, name) in names.filter_map(|node| Some((node, node.text()?))) {
            check("block", name, &node.span);
        }
    }
    diagnostics.errors() == before
}
