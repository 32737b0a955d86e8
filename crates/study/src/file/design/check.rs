//! Values of `[design]` that cannot be meant, and keys that do not go together.

use super::blocks::Blocks;
use super::sections::{DesignKind, DesignSection, Replicates, RunOrder, SequentialReplicates};
use crate::diagnostics::Diagnostic;
use crate::file::section::Reader;

/// The most replicates of a treatment.
const MAX_REPLICATES: u32 = 10_000;

/// Values of `[design]` that cannot be meant, and those that should not.
/// `exact`: runs do not vary.
pub(crate) fn check(reader: &mut Reader<'_>, design: &DesignSection, exact: bool) {
    let mut report = |path: &str, diagnostic: Diagnostic| {
        reader.report_at(&format!("design.{path}"), diagnostic);
    };
    if !(design.confidence > 0.5 && design.confidence < 1.0) {
        report(
            "confidence",
            Diagnostic::error(format!("a confidence level of {} gives no interval", design.confidence))
                .help("it must be above 0.5 and below 1, usually `0.95`"),
        );
    }
    match design.replicates {
        Replicates::Fixed(0) => {
            report("replicates", Diagnostic::error("`replicates` is 0").help("5 or more are useful"))
        }
        Replicates::Fixed(n) if n > MAX_REPLICATES => report("replicates", too_many(n)),
        Replicates::Fixed(1) if exact => {}
        Replicates::Fixed(1) => report(
            "replicates",
            Diagnostic::warning("with 1 replicate no result has an interval")
                .help("5 or more replicates give useful intervals"),
        ),
        Replicates::Fixed(n) if n < 5 => report("replicates", few("replicates", n)),
        Replicates::Fixed(_) => {}
        Replicates::Sequential(s) => check_sequential(s, &mut report),
    }
    keys(design, &mut report);
    if design.order == RunOrder::Listed {
        report(
            "order",
            Diagnostic::warning("runs in listed order confound drift over time with the factors")
                .help("`order = \"random\"` spreads drift over all treatments"),
        );
    }
}

fn check_sequential(s: SequentialReplicates, report: &mut impl FnMut(&str, Diagnostic)) {
    if s.min < 2 {
        let message = format!("`min` is {}, and fewer than 2 runs have no interval to decide by", s.min);
        report(
            "replicates.min",
            Diagnostic::error(message).help("it must be at least 2; 5 or more keep intervals reliable"),
        );
    } else if s.min < 5 {
        report("replicates.min", few("min", s.min));
    }
    if s.max < s.min {
        let message = format!("`max` is {} and below `min`, which is {}", s.max, s.min);
        report("replicates.max", Diagnostic::error(message).help("`max` must be at least `min`"));
    } else if s.max > MAX_REPLICATES {
        report("replicates.max", too_many(s.max));
    }
    if !(s.relative_half_width > 0.0 && s.relative_half_width < 1.0) {
        let message =
            format!("a `relative_half_width` of {} cannot be reached or says nothing", s.relative_half_width);
        report(
            "replicates.relative_half_width",
            Diagnostic::error(message).help("write `0.05` for ±5 % of the mean"),
        );
    }
}

fn too_many(n: u32) -> Diagnostic {
    Diagnostic::error(format!("{n} replicates are too many")).help(format!("at most {MAX_REPLICATES}"))
}

fn few(key: &str, n: u32) -> Diagnostic {
    let what = match key {
        "min" => "stopping after so few runs makes intervals narrower than they should be",
        _ => "intervals from so few runs are wide",
    };
    Diagnostic::warning(format!("`{key}` is {n}: {what}")).help("5 or more are better")
}

const MAX_CENTRE_POINTS: u32 = 1000;

/// Keys that contradict each other or the kind of design.
fn keys(design: &DesignSection, report: &mut impl FnMut(&str, Diagnostic)) {
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
            Diagnostic::error("below resolution 3, main effects cannot be separated from each other")
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
                            .help("give each its own name"),
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
