//! Values of `[design]` that cannot be meant, and keys that do not go together.

use super::blocks::Blocks;
use super::sections::{DesignKind, DesignSection, Replicates, RunOrder, SequentialReplicates};
use super::{error, warn};
use crate::diagnostics::Diagnostic;
use crate::file::section::Reader;

/// The most replicates of a treatment.
const MAX_REPLICATES: u32 = 10_000;

/// Values of `[design]` that cannot be meant, and those that should not.
/// `exact`: runs do not vary.
pub(crate) fn check(reader: &mut Reader<'_>, design: &DesignSection, exact: bool) {
    if !(design.confidence > 0.5 && design.confidence < 1.0) {
        let message = format!("a confidence level of {} gives no interval", design.confidence);
        error(reader, "confidence", message, "it must be above 0.5 and below 1, usually `0.95`");
    }
    match design.replicates {
        Replicates::Fixed(0) => error(reader, "replicates", "`replicates` is 0", "5 or more are useful"),
        Replicates::Fixed(n) if n > MAX_REPLICATES => too_many(reader, "replicates", n),
        Replicates::Fixed(1) if exact => {}
        Replicates::Fixed(1) => {
            let message = "with 1 replicate no result has an interval";
            warn(reader, "replicates", message, "5 or more replicates give useful intervals");
        }
        Replicates::Fixed(n) if n < 5 => {
            let message = format!("`replicates` is {n}: intervals from so few runs are wide");
            warn(reader, "replicates", message, "5 or more are better");
        }
        Replicates::Fixed(_) => {}
        Replicates::Sequential(s) => check_sequential(reader, s),
    }
    keys(reader, design);
    if design.order == RunOrder::Listed {
        let message = "runs in listed order confound drift over time with the factors";
        warn(reader, "order", message, "`order = \"random\"` spreads drift over all treatments");
    }
}

fn check_sequential(reader: &mut Reader<'_>, s: SequentialReplicates) {
    if s.min < 2 {
        let message = format!("`min` is {}, and fewer than 2 runs have no interval to decide by", s.min);
        error(reader, "replicates.min", message, "it must be at least 2; 5 or more keep intervals reliable");
    } else if s.min < 5 {
        let why = "stopping after so few runs makes intervals narrower than they should be";
        warn(reader, "replicates.min", format!("`min` is {}: {why}", s.min), "5 or more are better");
    }
    if s.max < s.min {
        let message = format!("`max` is {} and below `min`, which is {}", s.max, s.min);
        error(reader, "replicates.max", message, "`max` must be at least `min`");
    } else if s.max > MAX_REPLICATES {
        too_many(reader, "replicates.max", s.max);
    }
    if !(s.relative_half_width > 0.0 && s.relative_half_width < 1.0) {
        let message =
            format!("a `relative_half_width` of {} cannot be reached or says nothing", s.relative_half_width);
        error(reader, "replicates.relative_half_width", message, "write `0.05` for ±5 % of the mean");
    }
}

fn too_many(reader: &mut Reader<'_>, key: &str, n: u32) {
    error(reader, key, format!("{n} replicates are too many"), format!("at most {MAX_REPLICATES}"));
}

const MAX_CENTRE_POINTS: u32 = 1000;

/// Keys that contradict each other or the kind of design.
fn keys(reader: &mut Reader<'_>, design: &DesignSection) {
    belongs(reader, design);
    match design.kind {
        DesignKind::Fractional => one_fraction(reader, design),
        DesignKind::Explicit if design.treatments.as_ref().is_none_or(Vec::is_empty) => {
            let key = if design.treatments.is_some() { "treatments" } else { "kind" };
            let help = "add `treatments = [{ factor = \"level\", … }, …]` with the level of every factor";
            error(reader, key, "an explicit design has no treatments", help);
        }
        _ => {}
    }
    if design.resolution.is_some_and(|resolution| resolution < 3) {
        let message = "below resolution 3, main effects cannot be separated from each other";
        let help = "write 3, 4 or 5; 4 keeps main effects clear of interactions of two factors";
        error(reader, "resolution", message, help);
    }
    if design.centre_points > MAX_CENTRE_POINTS {
        let message = format!("{} centre points are too many", design.centre_points);
        error(reader, "centre_points", message, "3 to 5 show curvature");
    }
    if !design.hard_to_change.is_empty() && design.order == RunOrder::Listed {
        reader.report_at("design.order", listed_plots());
    }
    if let Some(precision) = design.precision
        && !(precision > 0.0 && precision < 1.0)
    {
        let message = format!("a `precision` of {precision} cannot be reached or says nothing");
        error(reader, "precision", message, "write `0.05` for ±5 % of the mean");
    }
    if let Some(blocks) = &design.blocks {
        check_blocks(reader, design, blocks);
    }
}

/// Factors that are hard to change cannot be randomised in a listed order.
pub(super) fn listed_plots() -> Diagnostic {
    Diagnostic::error("factors that are hard to change need `order = \"random\"`")
        .help("whole plots and the runs in them are shuffled, so that each is compared with the right error; remove `order`")
}

/// Keys that the kind of design has no use for.
fn belongs(reader: &mut Reader<'_>, design: &DesignSection) {
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
        error(reader, key, message, help);
    }
}

/// A fraction is chosen in one way.
fn one_fraction(reader: &mut Reader<'_>, design: &DesignSection) {
    let ways = [
        ("generators", design.generators.is_some()),
        ("resolution", design.resolution.is_some()),
        ("runs", design.runs.is_some()),
    ];
    let given: Vec<_> = ways.into_iter().filter(|(_, given)| *given).map(|(key, _)| key).collect();
    match &given[..] {
        [] if design.clear.is_none() => {
            let help = "add one of `resolution = 4`, `runs = 16`, `clear = [\"delay*sync\"]` (effects that nothing may be \
                        aliased with) or `generators = [\"D=AB\"]`";
            error(reader, "kind", "a fractional design does not say which fraction", help);
        }
        [] | [_] => {}
        [first, others @ ..] => {
            for other in others {
                let message = format!("the fraction is given by `{first}` and by `{other}`");
                error(reader, other, message, "keep one of them");
            }
        }
    }
    if design.generators.as_ref().is_some_and(Vec::is_empty) {
        let message = "`generators` is empty, and a design without generators is a full one";
        error(reader, "generators", message, "write `kind = \"full\"`, or a generator such as `\"D=AB\"`");
    }
    if design.clear.as_ref().is_some_and(Vec::is_empty) && given.is_empty() {
        error(reader, "clear", "`clear` names no effect", "name one, such as `\"delay*sync\"`");
    }
}

fn check_blocks(reader: &mut Reader<'_>, design: &DesignSection, blocks: &Blocks) {
    let (least, most) = match design.replicates {
        Replicates::Fixed(n) => (n, n),
        Replicates::Sequential(s) => (s.min, s.max),
    };
    match blocks {
        Blocks::Replicates(_) if most == 1 => {
            let message = "with 1 replicate, replicates as blocks make one block";
            error(reader, "blocks", message, "remove `blocks`, or ask for more `replicates`");
        }
        Blocks::Replicates(_) => {}
        Blocks::Confounded(confounded) => {
            let count = confounded.count;
            if count < 2 || !count.is_power_of_two() {
                let message = format!("{count} blocks cannot be confounded");
                error(reader, "blocks.count", message, "write 2, 4, 8 or another power of two");
            }
            if !matches!(design.kind, DesignKind::Full | DesignKind::Fractional) {
                reader.report_at("design.blocks", only_regular(design.kind));
            }
        }
        Blocks::Named(named) => {
            for (index, block) in named.iter().enumerate() {
                if named[..index].iter().any(|other| other.name == block.name) {
                    let message = format!("two blocks are called `{}`", block.name);
                    error(reader, &format!("blocks[{index}].name"), message, "give each its own name");
                }
            }
            let count = named.len() as u32;
            if count == 0 {
                error(reader, "blocks", "`blocks` is empty", "remove it, or describe a block");
            } else if least < count {
                let message = format!(
                    "{count} blocks have {least} replicates between them, and each replicate is done in one block"
                );
                error(reader, "replicates", message, format!("write {count} or a multiple of it"));
            } else if least == most && !least.is_multiple_of(count) {
                let message = format!("{least} replicates cannot be shared out evenly among {count} blocks");
                warn(reader, "replicates", message, format!("a multiple of {count} makes all blocks equal"));
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
