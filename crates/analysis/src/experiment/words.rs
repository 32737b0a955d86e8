//! The answer in words: which factors matter, how sure that is, and what the design cannot separate.

use benchmaster_design::term::{Term, factors, order, parse_letters};
use benchmaster_record::results::Unit;

use benchmaster_units::format::{Scale, decimals_for, fixed, percent, plain, plural, rounded};

use super::estimate::p_text;

use super::ranged::Ranged;
use super::result::{
    ErrorKind, Experiment, InteractionMeans, LevelMean, MeanCell, ResidualCheck, ScaleUsed, TermEstimate,
};

mod sample;

use sample::groups;
pub(super) use sample::sentences as sample_sentences;

/// The most terms that get a sentence of their own.
const MOST_SENTENCES: usize = 8;
/// The most names in one list.
const MOST_NAMES: usize = 12;

pub(super) fn sentences(experiment: &Experiment) -> Vec<String> {
    let mut all = vec![overview(experiment)];
    all.extend(left_out(experiment));
    all.push(scale(experiment));
    let terms = judged(experiment);
    all.extend(which_matter(experiment, &terms));
    all.extend(checks(experiment, |check| check.name == "order"));
    all.extend(each_effect(experiment, &terms));
    all.extend(noise(experiment, &terms));
    all.push(how_sure(experiment));
    all.extend(blocks(experiment));
    all.extend(cannot_separate(experiment));
    all.extend(experiment.groups.iter().flat_map(groups));
    all.extend(experiment.lack_of_fit.iter().map(|test| test.sentence.clone()));
    all.extend(experiment.curvature.iter().map(|test| test.sentence.clone()));
    all.extend(checks(experiment, |check| check.name != "order"));
    all
}

/// What the residuals and the order of the runs speak against.
fn checks(experiment: &Experiment, which: impl Fn(&ResidualCheck) -> bool) -> Vec<String> {
    let failed = experiment.residuals.checks.iter().filter(|check| !check.fine && which(check));
    failed.map(|check| check.sentence.clone()).collect()
}

/// A term with what was decided about it.
struct Judged<'a> {
    letters: &'a str,
    name: &'a str,
    /// The name, with what of up to two factors its estimate may be due to as well: the likeliest first.
    shown: String,
    order: u32,
    /// `None` without an error to compare with.
    matters: Option<bool>,
    p: Option<f64>,
    percent: Option<f64>,
    coefficients: Vec<&'a TermEstimate>,
}

/// The terms, those that explain most first.
fn judged(experiment: &Experiment) -> Vec<Judged<'_>> {
    let lines = experiment.anova.lines.iter().filter(|line| line.kind == "term" && line.df > 0);
    let mut terms: Vec<(f64, Judged<'_>)> = lines
        .map(|line| {
            let own: Vec<_> = experiment.effects.iter().filter(|e| e.term == line.term).collect();
            let order = own.first().map_or(1, |e| e.order);
            (
                line.sum_of_squares,
                Judged {
                    letters: &line.term,
                    name: &line.name,
                    shown: line.name.clone(),
                    order,
                    matters: line.matters,
                    p: line.p_holm,
                    percent: line.variation_percent,
                    coefficients: own,
                },
            )
        })
        .collect();
    terms.sort_by(|a, b| b.0.total_cmp(&a.0));
    terms
        .into_iter()
        .map(|(_, term)| match term.coefficients.first() {
            Some(first) => Judged { shown: experiment.with_aliases(first), ..term },
            None => term,
        })
        .collect()
}

impl Experiment {
    /// What matters, in the one sentence of [`Self::sentences`] that says so; `None` where nothing could be judged.
    pub fn conclusion(&self) -> Option<String> {
        which_matter(self, &judged(self))
    }

    /// `storage × delay (or version × io_size)`: the terms of up to two factors whose sum is estimated. A main effect comes
    /// first; of interactions the one most of whose factors have an effect of their own (effect heredity).
    pub fn with_aliases(&self, effect: &TermEstimate) -> String {
        let own = parse_letters(&effect.term);
        let others = effect.aliased_with.iter();
        let others = others.filter_map(|text| parse_letters(text.trim_start_matches(['-', '+', '\u{2212}'])));
        let mut members: Vec<Term> =
            own.into_iter().chain(others.filter(|t| (1..=2).contains(&order(*t)))).collect();
        if members.len() < 2 || effect.order > 2 {
            return effect.name.clone();
        }
        let active = self.anova.lines.iter().filter(|line| line.kind == "term" && line.matters == Some(true));
        let active = active.filter_map(|line| parse_letters(&line.term)).filter(|term| order(*term) == 1);
        let active = active.fold(0, |all, term| all | term);
        members.sort_by_key(|t| (order(*t) != 1, std::cmp::Reverse(order(*t & active))));
        let name = |term: &Term| {
            let names = factors(*term).filter_map(|f| self.factors.get(f as usize)).map(|f| f.name.as_str());
            names.collect::<Vec<_>>().join(" × ")
        };
        let names: Vec<_> = members.iter().map(name).collect();
        format!("{} (or {})", names[0], names[1..].join(" or "))
    }
}

fn overview(experiment: &Experiment) -> String {
    let (fewest, most) = experiment.replicates;
    let each = match (fewest == most, fewest) {
        (true, 1) => "one run of each".to_owned(),
        (true, n) => format!("{n} runs of each"),
        (false, _) => format!("{fewest} to {most} runs of each"),
    };
    let design = &experiment.design;
    let centre = match design.centre_points {
        0 => String::new(),
        n => format!(" and {}", plural(n, "centre point")),
    };
    let kind = match (design.kind, design.resolution) {
        ("full", _) => "all combinations of the levels".to_owned(),
        ("regular fraction", Some(resolution)) => format!(
            "a fraction of the {} combinations, of resolution {}",
            design.full_treatments,
            roman(resolution)
        ),
        ("orthogonal array", _) => {
            format!("an orthogonal array of the {} combinations", design.full_treatments)
        }
        _ => format!("a part of the {} combinations", design.full_treatments),
    };
    format!(
        "{} of {}{centre}, {each}: {kind}.",
        plural(experiment.runs, "run"),
        plural(experiment.treatments, "treatment"),
    )
}

fn left_out(experiment: &Experiment) -> Option<String> {
    let total: usize = experiment.left_out.iter().map(|l| l.runs).sum();
    let reasons: Vec<_> = experiment.left_out.iter().map(|l| format!("{}: {}", l.reason, l.runs)).collect();
    (total > 0).then(|| {
        format!(
            "{} {} left out ({}); nothing was put in {} place.",
            plural(total, "run"),
            if total == 1 { "is" } else { "are" },
            reasons.join(", "),
            if total == 1 { "its" } else { "their" }
        )
    })
}

fn scale(experiment: &Experiment) -> String {
    let scale = &experiment.scale;
    let reasons = scale.reasons.join("; ");
    match scale.used {
        ScaleUsed::Log => format!(
            "The response {} is analysed on the log scale, so effects are ratios: {reasons}.",
            experiment.response
        ),
        ScaleUsed::Identity => {
            format!("The response {} is analysed as measured: {reasons}.", experiment.response)
        }
    }
}

fn which_matter(experiment: &Experiment, terms: &[Judged<'_>]) -> Option<String> {
    if !experiment.has_error() {
        let largest: Vec<_> = terms.iter().take(3).map(with_share).collect();
        let largest = (!largest.is_empty()).then(|| largest.join(", "))?;
        return Some(format!("The largest effects are {largest}; their uncertainty is unknown."));
    }
    let matter: Vec<&Judged<'_>> = terms.iter().filter(|t| t.matters == Some(true)).collect();
    let judged = terms.iter().filter(|t| t.matters.is_some()).count();
    if matter.is_empty() && judged > 0 {
        return Some(if experiment.error.sst == 0.0 {
            "Every run gave the same value: nothing has an effect.".into()
        } else {
            "No factor and no interaction can be distinguished from noise.".into()
        });
    }
    if matter.is_empty() {
        return None;
    }
    let share: f64 = matter.iter().filter_map(|t| t.percent).sum();
    let names: Vec<_> = matter.iter().map(|t| with_share(t)).collect();
    let together = match (names.len(), experiment.anova.kind_matters) {
        (1, _) | (_, true) => String::new(),
        _ => format!(" (together {share:.1} % of the variation)"),
    };
    Some(format!("What matters: {}{together}.", list(&names)))
}

fn with_share(term: &Judged<'_>) -> String {
    match term.percent {
        Some(percent) => format!("{} ({percent:.1} % of the variation)", term.shown),
        None => term.shown.clone(),
    }
}

/// A sentence for each term that matters.
fn each_effect(experiment: &Experiment, terms: &[Judged<'_>]) -> Vec<String> {
    let matter: Vec<_> = if experiment.has_error() {
        terms.iter().filter(|t| t.matters == Some(true)).collect()
    } else {
        terms.iter().take(3).collect()
    };
    let mut sentences: Vec<String> =
        matter.iter().take(MOST_SENTENCES).filter_map(|term| effect(experiment, term)).collect();
    if matter.len() > sentences.len() && sentences.len() == MOST_SENTENCES {
        sentences.push(format!("{} more effects matter; the table has them.", matter.len() - MOST_SENTENCES));
    }
    sentences
}

fn effect(experiment: &Experiment, term: &Judged<'_>) -> Option<String> {
    let p = term.p.map_or(String::new(), |p| format!(" (p {})", p_text(p)));
    if term.order == 1 {
        let means = experiment.main_effects.iter().find(|m| m.letter == term.letters)?;
        let base = means.levels.first()?;
        let numeric = means.levels.iter().all(|l| l.value.is_some());
        let size = |level: &&LevelMean| level.effect.zip(base.effect).map_or(0.0, |(a, b)| (a - b).abs());
        let far = if numeric {
            means.levels.last()?
        } else {
            means.levels.iter().skip(1).max_by(|a, b| size(a).total_cmp(&size(b)))?
        };
        let change = change(experiment, base, far)?;
        let own = if let [one] = term.coefficients[..] { halves(experiment, one) } else { String::new() };
        let bent = term.coefficients.iter().find(|c| c.contrast == "Q" && c.significant == Some(true));
        let bent = if bent.is_some() { "; the change is not a straight line" } else { "" };
        return Some(format!(
            "{}: from {} to {} the response {change}{p}{own}{bent}.",
            term.shown, base.level, far.level
        ));
    }
    let means = experiment.interactions.iter().find(|m| m.letters.concat() == term.letters);
    let own = match term.coefficients[..] {
        [one] => halves(experiment, one),
        _ => String::new(),
    };
    // Means of two factors say nothing about an interaction that may be that of others.
    if term.shown != term.name {
        return Some(format!("{}: the design does not tell which of them it is{p}{own}.", term.shown));
    }
    match means.and_then(|means| depends(experiment, means)) {
        Some(text) => Some(format!("{}: {text}{p}{own}.", term.name)),
        None => Some(format!(
            "{}: the effect of each of these factors depends on the levels of the others{p}{own}.",
            term.name
        )),
    }
}

/// The half and the full effect, with its interval.
fn halves(experiment: &Experiment, term: &TermEstimate) -> String {
    let (Some(half), Some(full)) = (term.half_effect, term.effect) else { return String::new() };
    if experiment.is_log() {
        let (half, full) =
            (number(half, term.half_width, None), number(full, term.half_width.map(|h| 2.0 * h), None));
        return format!("; of the natural logarithm the half effect q is {half}, the full effect 2q {full}");
    }
    let unit = experiment.unit;
    let (half, full) =
        (number(half, term.half_width, unit), number(full, term.half_width.map(|h| 2.0 * h), unit));
    format!("; half effect q {half}, full effect 2q {full}")
}

/// `changes by 43.0 (40.1 to 45.9)`, `is multiplied by 12.3 (11.0 to 13.8)`.
fn change(experiment: &Experiment, base: &LevelMean, far: &LevelMean) -> Option<String> {
    let against = far.against_base?;
    Some(if experiment.is_log() {
        format!("is multiplied by {}", ratio(against))
    } else {
        let relative = base.cell.mean.filter(|base| *base > 0.0).map(|base| 100.0 * against.value / base);
        let relative = relative.map_or(String::new(), |r| format!(", {r:+.1} %"));
        format!("changes by {}{relative}", amount(against, experiment.unit))
    })
}

/// How the effect of one factor depends on the other, for two factors of two levels.
fn depends(experiment: &Experiment, means: &InteractionMeans) -> Option<String> {
    if means.first.len() != 2 || means.second.len() != 2 {
        return Some(format!(
            "the effect of {} depends on the level of {}",
            means.factors[1], means.factors[0]
        ));
    }
    let at = |i: usize| -> Option<String> {
        let [low, high] = [0, 1].map(|j| means.cells[i].get(j).and_then(|c: &MeanCell| c.mean));
        let (low, high) = (low?, high?);
        Some(if experiment.is_log() {
            format!("multiplies it by {}", plain(high / low))
        } else {
            format!("changes it by {}", number(high - low, None, experiment.unit))
        })
    };
    Some(format!(
        "from {} to {}, {} {} where {} is {} and {} where it is {}",
        means.second[0],
        means.second[1],
        means.factors[1],
        at(0)?,
        means.factors[0],
        means.first[0],
        at(1)?,
        means.first[1],
    ))
}

fn noise(experiment: &Experiment, terms: &[Judged<'_>]) -> Option<String> {
    let quiet: Vec<_> = terms.iter().filter(|t| t.matters == Some(false)).map(|t| t.shown.clone()).collect();
    let quiet = if terms.iter().any(|t| t.matters == Some(true)) { quiet } else { Vec::new() };
    let what = if is_exact(experiment) { "Without any effect" } else { "Indistinguishable from noise" };
    (!quiet.is_empty()).then(|| format!("{what}: {}.", list(&quiet)))
}

fn how_sure(experiment: &Experiment) -> String {
    let error = &experiment.error;
    let level = percent(experiment.confidence);
    let share = error.percent.map_or(String::new(), |p| format!("{p:.1} % of the variation is unexplained"));
    let spread = error.s_e.map_or(String::new(), |s| {
        let unit = if experiment.is_log() { None } else { experiment.unit };
        let log = if experiment.is_log() { " on the log scale" } else { "" };
        format!(", the standard deviation of a run is {}{log}", number(s, None, unit))
    });
    let family = {
        let judged = experiment.anova.lines.iter().filter(|line| line.p_holm.is_some()).count();
        match judged {
            0 | 1 => String::new(),
            _ => format!(
                " The {judged} terms are judged together, by F tests with Holm's correction: with no effect at all, one or \
                 more of them would seem to matter in at most {} of experiments.",
                percent(1.0 - experiment.confidence)
            ),
        }
    };
    if is_exact(experiment) {
        return "How sure: runs of the same treatment gave exactly the same value, so what differs is a fact of these runs \
                and no estimate."
            .into();
    }
    match error.kind {
        ErrorKind::None => format!("How sure: {}.", error.no_interval.as_deref().unwrap_or("not known")),
        ErrorKind::Lenth => match experiment.lenth {
            Some(lenth) => format!(
                "How sure: each treatment has one run, so effects are compared with the smallest ones by Lenth's method: with no \
                 effect at all, the largest full effect 2q of {} stays below {} in {level} of experiments (half effect q: {}); \
                 what is larger matters. Lenth's own approximations are ME = {} for one effect named beforehand (q: {}) and \
                 SME = {} for all together (q: {}).",
                lenth.effects,
                plain(lenth.simultaneous),
                plain(lenth.simultaneous_half),
                plain(lenth.me),
                plain(lenth.me_half),
                plain(lenth.sme),
                plain(lenth.sme_half)
            ),
            None => "How sure: by Lenth's method.".into(),
        },
        ErrorKind::SplitPlot => format!(
            "How sure: factors that are set once per whole plot are compared with the spread between plots ({}), the others with \
             the spread of runs inside them ({} degrees of freedom){spread}; intervals are at {level}.{family}",
            error
                .whole_plot
                .map_or("no degrees of freedom".into(), |(df, _)| format!("{df} degrees of freedom")),
            error.df,
        ),
        ErrorKind::Replicates => format!(
            "How sure: {share}{spread}, from replicates with {} degrees of freedom; intervals are at {level}.{family}",
            error.df
        ),
        ErrorKind::ReplicatesAndPooled | ErrorKind::Pooled => format!(
            "How sure: {share}{spread}, with {} degrees of freedom from {}{}; intervals are at {level}.{family}",
            error.df,
            if error.kind == ErrorKind::Pooled {
                "terms taken as noise"
            } else {
                "replicates and terms taken as noise"
            },
            match error.pooled.len() {
                0 => String::new(),
                _ => format!(" ({})", list(&error.pooled)),
            }
        ),
    }
}

/// Whether runs of the same treatment gave the same value.
fn is_exact(experiment: &Experiment) -> bool {
    experiment.error.s_e == Some(0.0) && experiment.error.sse == 0.0
}

/// Whether means are for the blocks of the experiment or for others like them.
fn blocks(experiment: &Experiment) -> Option<String> {
    let deviation = experiment.design.block_deviation?;
    let unit = if experiment.is_log() { None } else { experiment.unit };
    let log = if experiment.is_log() { " on the log scale" } else { "" };
    let between = if deviation > 0.0 {
        let deviation = number(deviation, None, unit);
        format!("differ with a standard deviation of {deviation}{log} beyond that of the runs")
    } else {
        "differ by no more than the runs in them".into()
    };
    Some(format!(
        "The {} blocks {between}. Effects are estimated within blocks; intervals of means and predictions are for further \
         blocks like these, a further run being in one of its own.",
        experiment.design.blocks
    ))
}

fn cannot_separate(experiment: &Experiment) -> Vec<String> {
    let mut all = Vec::new();
    let design = &experiment.design;
    if let Some(chains) = &experiment.aliases {
        let aliased: Vec<_> = chains.iter().filter(|c| c.terms.len() > 1).collect();
        let shown: Vec<_> = aliased
            .iter()
            .filter(|c| c.terms.first().is_some_and(|t| t != "I"))
            .take(MOST_SENTENCES)
            .map(|c| short(&c.text))
            .collect();
        let exact = design.kind == "regular fraction";
        if !shown.is_empty() {
            let what = if exact {
                "What the design cannot separate: it estimates only the sums"
            } else {
                "What the design separates only in part: the estimate of the first of each is mixed with the others,"
            };
            all.push(format!(
                "{what} {}{}.",
                shown.join("; "),
                if aliased.len() > shown.len() { "; and so on, as the list of aliases shows" } else { "" }
            ));
        }
        let with_mean =
            chains.iter().find(|c| exact && c.terms.first().is_some_and(|t| t == "I") && c.terms.len() > 1);
        if let Some(chain) = with_mean {
            all.push(format!("{} cannot be separated from the mean.", list(&chain.names[1..])));
        }
    } else if experiment.not_separable.is_empty() && design.kind == "full" && experiment.effects.len() > 1 {
        all.push("The design separates all effects from each other.".into());
    }
    for lost in experiment.not_separable.iter().take(MOST_SENTENCES) {
        let with = if lost.with.is_empty() { "the mean".to_owned() } else { list(&lost.with) };
        all.push(format!("{} cannot be estimated: these runs cannot tell it from {with}.", lost.name));
    }
    all
}

/// The beginning of a long chain.
fn short(text: &str) -> String {
    let parts: Vec<&str> = text.split_inclusive(" + ").collect();
    if text.chars().count() <= 60 {
        return text.to_owned();
    }
    let mut beginning = String::new();
    for part in parts {
        if beginning.chars().count() + part.chars().count() > 56 {
            break;
        }
        beginning += part;
    }
    format!("{}…", beginning)
}

/// A model as a formula in codes −1/+1.
pub(super) fn equation(scale: ScaleUsed, coefficients: &[TermEstimate]) -> String {
    let mut text = if scale == ScaleUsed::Log { "ln y = ".to_owned() } else { "y = ".to_owned() };
    for (i, term) in coefficients.iter().enumerate() {
        text += match (i, term.coefficient < 0.0) {
            (0, false) => "",
            (0, true) => "−",
            (_, false) => " + ",
            (_, true) => " − ",
        };
        text += &plain(term.coefficient.abs());
        if term.order > 0 {
            text += &format!("·{}", term.term);
        }
    }
    text
}

fn amount(value: Ranged, unit: Option<Unit>) -> String {
    let unit = unit.unwrap_or(Unit::Count);
    // Where runs of the same treatment are equal, an effect has no uncertainty.
    let Some([low, high]) = value.interval.filter(|[low, high]| low < high) else {
        return rounded(value.value, None, unit, None).text(true);
    };
    let half = (high - low) / 2.0;
    let scale = Scale::of(unit, value.value.abs().max(half));
    let value = rounded(value.value, Some(half), unit, Some(scale));
    let end = |v: f64| rounded(v, Some(half), unit, Some(scale)).value;
    let name = if value.unit.is_empty() { String::new() } else { format!(" {}", value.unit) };
    format!("{}{name} ({} to {}{name})", value.value, end(low), end(high))
}

fn ratio(value: Ranged) -> String {
    let Some([low, high]) = value.interval.filter(|[low, high]| low < high) else {
        return plain(value.value);
    };
    let decimals = decimals_for((high - low) / 2.0, 2);
    format!("{} ({} to {})", fixed(value.value, decimals), fixed(low, decimals), fixed(high, decimals))
}

fn number(value: f64, half_width: Option<f64>, unit: Option<Unit>) -> String {
    rounded(value, half_width.filter(|h| *h > 0.0), unit.unwrap_or(Unit::Count), None).text(true)
}

fn list(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMES).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMES) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

fn roman(n: u32) -> String {
    let (mut rest, mut text) = (n, String::new());
    for (value, letters) in [(10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")] {
        while rest >= value {
            text += letters;
            rest -= value;
        }
    }
    text
}
