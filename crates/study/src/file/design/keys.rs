//! Which keys of `[design]` go together.

use super::{Blocks, DesignKind, DesignSection, Replicates, RunOrder};
use crate::diagnostics::Diagnostic;

/// Centre runs nobody needs more of.
const MAX_CENTRE_POINTS: u32 = 1000;

/// Keys that contradict each other or the kind of design.
pub(super) fn check(design: &DesignSection, report: &mut impl FnMut(&str, Diagnostic)) {
    belongs(design, report);
    match design.kind {
        DesignKind::Fractional => one_fraction(design, report),
        DesignKind::Explicit if design.treatments.as_ref().is_none_or(Vec::is_empty) => report(
            if design.treatments.is_some() { "treatments" } else { "kind" },
            Diagnostic::error("an explicit design has no treatments")
                .help("add `treatments = [{ factor = \"level\", … }, …]` with the level of every factor"),
        ),
        _ => {}
    }
    if design.resolution.is_some_and(|resolution| resolution < 3) {
        report(
            "resolution",
            Diagnostic::error("below resolution 3, main effects cannot be told from each other")
                .help("write 3, 4 or 5; 4 keeps main effects clear of interactions of two factors"),
        );
    }
    if design.centre_points > MAX_CENTRE_POINTS {
        let message = format!("{} centre points are too many", design.centre_points);
        report("centre_points", Diagnostic::error(message).help("3 to 5 show curvature"));
    }
    if !design.hard_to_change.is_empty() && design.order == RunOrder::Listed {
        report("order", listed_plots());
    }
    if let Some(precision) = design.precision
        && !(precision > 0.0 && precision < 1.0)
    {
        let message = format!("a `precision` of {precision} cannot be reached or says nothing");
        report("precision", Diagnostic::error(message).help("write `0.05` for ±5 % of the mean"));
    }
    if let Some(blocks) = &design.blocks {
        check_blocks(design, blocks, report);
    }
}

/// Factors that are hard to change cannot be randomised in a listed order.
pub(super) fn listed_plots() -> Diagnostic {
    Diagnostic::error("factors that are hard to change need `order = \"random\"`")
        .help("whole plots and the runs in them are shuffled, so that each is compared with the right error; remove `order`")
}

/// Keys that the kind of design has no use for.
fn belongs(design: &DesignSection, report: &mut impl FnMut(&str, Diagnostic)) {
    use DesignKind::{Explicit, Fractional, Full, OrthogonalArray, PlackettBurman};
    let keys: [(&str, bool, &[DesignKind]); 6] = [
        ("generators", design.generators.is_some(), &[Fractional]),
        ("resolution", design.resolution.is_some(), &[Fractional]),
        ("runs", design.runs.is_some(), &[Fractional, OrthogonalArray]),
        ("treatments", design.treatments.is_some(), &[Explicit]),
        ("exclude", !design.exclude.is_empty(), &[Full, Fractional, PlackettBurman, OrthogonalArray]),
        ("centre_points", design.centre_points > 0, &[Full, Fractional, PlackettBurman, OrthogonalArray]),
    ];
    for (key, given, kinds) in keys {
        if !given || kinds.contains(&design.kind) {
            continue;
        }
        let names: Vec<_> = kinds.iter().map(|kind| format!("`kind = \"{}\"`", kind.name())).collect();
        let mut help = format!("it belongs to {}", names.join(" or "));
        if key == "exclude" && design.kind == Explicit {
            help = "leave the treatments out of `treatments`".into();
        }
        if key == "runs" && design.kind == PlackettBurman {
            help = "a Plackett-Burman design has the smallest multiple of 4 runs above the number of factors"
                .into();
        }
        let message = format!("a design of `kind = \"{}\"` has no `{key}`", design.kind.name());
        report(key, Diagnostic::error(message).help(help));
    }
}

/// A fraction is chosen in one way.
fn one_fraction(design: &DesignSection, report: &mut impl FnMut(&str, Diagnostic)) {
    let ways = [
        ("generators", design.generators.is_some()),
        ("resolution", design.resolution.is_some()),
        ("runs", design.runs.is_some()),
    ];
    let given: Vec<_> = ways.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
    match &given[..] {
        [] if design.clear.is_none() => report(
            "kind",
            Diagnostic::error("a fractional design does not say which fraction").help(
                "add one of `resolution = 4`, `runs = 16`, `clear = [\"delay*sync\"]` (effects that nothing may be mixed up \
                 with) or `generators = [\"D=AB\"]`",
            ),
        ),
        [] | [_] => {}
        [first, others @ ..] => {
            for other in others {
                let message = format!("the fraction is given by `{first}` and by `{other}`");
                report(other, Diagnostic::error(message).help("keep one of them"));
            }
        }
    }
    if design.generators.as_ref().is_some_and(Vec::is_empty) {
        report(
            "generators",
            Diagnostic::error("`generators` is empty, and a design without generators is a full one")
                .help("write `kind = \"full\"`, or a generator such as `\"D=AB\"`"),
        );
    }
    if design.clear.as_ref().is_some_and(Vec::is_empty) && given.is_empty() {
        report(
            "clear",
            Diagnostic::error("`clear` names no effect").help("name one, such as `\"delay*sync\"`"),
        );
    }
}

fn check_blocks(design: &DesignSection, blocks: &Blocks, report: &mut impl FnMut(&str, Diagnostic)) {
    let (least, most) = match design.replicates {
        Replicates::Fixed(n) => (n, n),
        Replicates::Sequential(s) => (s.min, s.max),
    };
    match blocks {
        Blocks::Replicates(_) if most == 1 => report(
            "blocks",
            Diagnostic::error("with 1 replicate, replicates as blocks make one block")
                .help("remove `blocks`, or ask for more `replicates`"),
        ),
        Blocks::Replicates(_) => {}
        Blocks::Confounded(confounded) => {
            let count = confounded.count;
            if count < 2 || !count.is_power_of_two() {
                report(
                    "blocks.count",
                    Diagnostic::error(format!("{count} blocks cannot be confounded"))
                        .help("write 2, 4, 8 or another power of two"),
                );
            }
            if !matches!(design.kind, DesignKind::Full | DesignKind::Fractional) {
                report("blocks", only_regular(design.kind));
            }
        }
        Blocks::Named(named) => {
            for (index, block) in named.iter().enumerate() {
                if named[..index].iter().any(|other| other.name == block.name) {
                    report(
                        &format!("blocks[{index}].name"),
                        Diagnostic::error(format!("two blocks are called `{}`", block.name))
                            .help("give each a name of its own"),
                    );
                }
            }
            let count = named.len() as u32;
            if count == 0 {
                report(
                    "blocks",
                    Diagnostic::error("`blocks` is empty").help("remove it, or describe a block"),
                );
            } else if least < count {
                report(
                    "replicates",
                    Diagnostic::error(format!(
                        "{count} blocks have {least} replicates between them, and each replicate is done in one block"
                    ))
                    .help(format!("write {count} or a multiple of it")),
                );
            } else if least == most && !least.is_multiple_of(count) {
                report(
                    "replicates",
                    Diagnostic::warning(format!(
                        "{least} replicates cannot be shared out evenly among {count} blocks"
                    ))
                    .help(format!("a multiple of {count} makes all blocks equal")),
                );
            }
        }
    }
}

/// Only regular two-level designs have confounded blocks.
pub(crate) fn only_regular(kind: DesignKind) -> Diagnostic {
    Diagnostic::error(format!("a design of `kind = \"{}\"` cannot be spread over blocks", kind.name())).help(
        "`count` needs a full or fractional design of factors with two levels; `blocks = \"replicates\"` fits every design",
    )
}
