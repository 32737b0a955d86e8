//! A design as plain text.

use std::fmt::Write as _;

use benchmaster_units::format::percent;

use super::description::{
    AliasChain, Bounds, Cell, DesignDescription, DetectableEffect, FactorDescription, Proposal,
    ReplicatesNeeded, SmallestDetectable, TermDescription, TimeEstimate,
};
use super::pilot::Spread;
use super::words::{counted, order_of, short_list};

/// How a plan is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextForm {
    /// Columns that fit into a line.
    pub width: usize,
    /// Whether tables of more than 64 rows are written in full.
    pub all: bool,
}

impl Default for TextForm {
    fn default() -> Self {
        Self { width: 100, all: false }
    }
}

/// Longer tables are cut to [`FIRST`] rows.
pub(crate) const LISTED: usize = 64;
/// See [`LISTED`].
pub(crate) const FIRST: usize = 16;
/// So many chains of an order are written.
const CHAINS: usize = 40;
/// Column at which texts begin.
const INDENT: usize = 12;

/// How many rows of a table of so many are written.
pub(crate) fn listed(rows: usize, form: TextForm) -> usize {
    if form.all || rows <= LISTED { rows } else { FIRST }
}

/// The design in a few words.
pub(crate) fn title(design: &DesignDescription) -> String {
    let levels: Vec<usize> = design.factors.iter().map(|factor| factor.levels.len()).collect();
    let product = product_text(&levels);
    let resolution = design.resolution.map_or_else(String::new, |n| format!(" of resolution {}", roman(n)));
    let of = match design.combinations {
        Some(all) => format!("{} of {all} combinations", design.treatments),
        None => counted(design.treatments, "combination"),
    };
    match levels[..] {
        [] => return "no factors: one treatment".to_owned(),
        [n] if design.treatments == n as u64 => return format!("all {n} levels of one factor"),
        _ => {}
    }
    match design.kind.as_str() {
        "one-at-a-time" => format!("one factor at a time: {of}"),
        _ if design.combinations == Some(design.treatments) => format!("full factorial {product}"),
        "plackett-burman" => {
            format!("Plackett-Burman design{resolution}, {}", counted(design.treatments, "treatment"))
        }
        _ if !design.generators.is_empty() => {
            format!("2^({}-{}) fraction{resolution}: {of}", levels.len(), design.generators.len())
        }
        "orthogonal-array" => format!("orthogonal array: {of} of {product}"),
        _ => format!("{of} of {product}"),
    }
}

/// `2^5 × 3`.
fn product_text(levels: &[usize]) -> String {
    let mut kinds: Vec<usize> = levels.to_vec();
    kinds.sort_unstable();
    kinds.dedup();
    let power = |n: &usize| match levels.iter().filter(|&level| level == n).count() {
        1 => n.to_string(),
        times => format!("{n}^{times}"),
    };
    kinds.iter().map(power).collect::<Vec<_>>().join(" × ")
}

/// Resolutions are written as Roman numerals.
pub(crate) fn roman(number: u32) -> String {
    let mut rest = number;
    let mut text = String::new();
    for (value, letters) in [(50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I")] {
        while rest >= value {
            text += letters;
            rest -= value;
        }
    }
    text
}

/// A number with so many decimals at most, and none that are 0.
pub(crate) fn decimals(number: f64, most: usize) -> String {
    let text = format!("{number:.most$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Three significant digits.
fn significant(number: f64) -> String {
    let digits = 2 - number.abs().max(1e-9).log10().floor() as i32;
    decimals(number, digits.clamp(0, 9) as usize)
}

/// A quantity for people.
fn quantity(value: f64, unit: Option<&str>) -> String {
    let scaled = |units: &[(&str, f64)], base: &str| {
        let found = units.iter().find(|(_, factor)| value.abs() >= *factor);
        match found {
            Some((name, factor)) => format!("{} {name}", significant(value / factor)),
            None => format!("{} {base}", significant(value)),
        }
    };
    match unit {
        Some("B/s") => scaled(&[("GB/s", 1e9), ("MB/s", 1e6), ("kB/s", 1e3)], "B/s"),
        Some("ns") => scaled(&[("s", 1e9), ("ms", 1e6), ("µs", 1e3)], "ns"),
        Some("count" | "ratio") | None => significant(value),
        Some(unit) => format!("{} {unit}", significant(value)),
    }
}

pub(crate) fn duration(seconds: f64) -> String {
    let whole = seconds.round() as u64;
    match whole {
        0..60 => format!("{} s", decimals(seconds, 3)),
        60..3600 => format!("{} min {:02} s", whole / 60, whole % 60),
        _ => format!("{} h {:02} min", whole / 3600, whole / 60 % 60),
    }
}

/// `min`, or `min to max` when they differ.
pub(crate) fn range<T: PartialEq>(min: T, max: T, text: impl Fn(T) -> String) -> String {
    if min == max { text(min) } else { format!("{} to {}", text(min), text(max)) }
}

fn bounds(bounds: Bounds) -> String {
    range(bounds.min, bounds.max, |n| n.to_string())
}

/// Lines of at most `width` columns, all but the first indented.
pub(crate) fn wrap(text: &str, width: usize, indent: usize) -> String {
    let mut out = String::new();
    let mut column = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if column > 0 && column + 1 + length > width {
            let _ = write!(out, "\n{:indent$}", "");
            column = indent;
        } else if !out.is_empty() {
            out.push(' ');
            column += 1;
        }
        out += word;
        column += length;
    }
    out
}

/// `title` and a text beside it.
pub(crate) fn line(out: &mut String, title: &str, text: &str, form: TextForm) {
    let whole = format!("{title:<INDENT$}{text}");
    let _ = writeln!(out, "{}", wrap_after(&whole, form.width));
}

/// Wraps a line of [`line`]: the spaces behind its title are kept.
fn wrap_after(whole: &str, width: usize) -> String {
    let start: usize = whole.chars().take(INDENT).map(char::len_utf8).sum();
    let (head, text) = whole.split_at(start);
    let wrapped = wrap(text, width.saturating_sub(INDENT).max(20), 0);
    format!("{head}{}", wrapped.replace('\n', &format!("\n{:INDENT$}", "")))
}

impl DesignDescription {
    /// The description as plain text.
    pub fn render(&self, form: TextForm) -> String {
        let mut out = String::new();
        line(&mut out, "design", &self.title, form);
        line(&mut out, "replicates", &bounds(self.replicates), form);
        line(&mut out, "runs", &self.runs_text(), form);
        self.render_properties(&mut out, form);
        self.render_factors(&mut out);
        self.render_table(&mut out, form);
        self.render_aliases(&mut out, form);
        self.render_advice(&mut out, form, false);
        out
    }

    /// `40 (8 treatments × 5 replicates), 12.5 % of the 320 of the full design`.
    pub(crate) fn runs_text(&self) -> String {
        let mut text = bounds(self.runs);
        let centre = self.centre_points.as_ref().map_or(0, |centre| centre.runs);
        let rows = (self.runs.min - centre).checked_div(self.replicates.min).unwrap_or(0);
        let treatments = counted(self.treatments, "treatment");
        let mut parts = match (rows > self.treatments, self.replicates.max > 1) {
            (true, _) => format!("{rows} rows of {treatments}"),
            (false, true) => format!("{treatments} × {} replicates", bounds(self.replicates)),
            (false, false) => treatments,
        };
        if centre > 0 {
            parts += &format!(" + {}", counted(centre, "centre run"));
        }
        if parts != format!("{text} treatments") {
            let _ = write!(text, " ({parts})");
        }
        if let Some(all) = self.combinations.filter(|&all| all > self.treatments) {
            let full = all.saturating_mul(self.replicates.min);
            let share = 100.0 * self.treatments as f64 / all as f64;
            let _ = write!(text, ", {} % of the {full} of the full design", significant(share));
        }
        text
    }

    /// What follows from the treatments, a line each.
    pub(crate) fn render_properties(&self, out: &mut String, form: TextForm) {
        if !self.generators.is_empty() {
            line(out, "generators", &self.generators.join(", "), form);
            let words = self.defining_relation.iter().take(CHAINS);
            let mut relation = words.fold("I".to_owned(), |all, word| format!("{all} = {word}"));
            let more = self.defining_words.saturating_sub(CHAINS as u64);
            if more > 0 {
                let _ = write!(relation, " = … ({})", counted(more, "more word"));
            }
            line(out, "relation", &relation, form);
        }
        if !self.word_length_pattern.is_empty() && self.kind != "one-at-a-time" {
            let whole = !self.generators.is_empty();
            let pattern = self.word_length_pattern.iter().map(|(length, count)| {
                if whole {
                    format!("{} of length {length}", count.value())
                } else {
                    format!("A{length} = {}", decimals(count.value(), 4))
                }
            });
            let pattern = pattern.collect::<Vec<_>>().join(", ");
            let resolution = match (self.resolution, self.generalised_resolution) {
                (Some(n), _) if whole => format!("; resolution {}", roman(n)),
                (Some(_), Some(generalised)) => {
                    format!("; generalised resolution {}", decimals(generalised, 2))
                }
                _ => String::new(),
            };
            line(out, "words", &format!("{pattern}{resolution}"), form);
        }
        if self.factors.len() > 1 {
            line(out, "clear", &self.clear_text(), form);
        }
        for effect in &self.interest {
            let verdict = match (effect.clear, effect.aliased_with.is_empty()) {
                (true, true) => "clear".to_owned(),
                (true, false) => format!("clear; aliased with {}", short_list(&effect.aliased_with, 8)),
                (false, _) => format!("NOT clear: aliased with {}", short_list(&effect.aliased_with, 8)),
            };
            let name = if effect.name == effect.term { String::new() } else { format!(" ({})", effect.name) };
            line(out, "interest", &format!("{}{name}: {verdict}", effect.term), form);
        }
        line(out, "error", &format!("degrees of freedom: {}", self.error.text), form);
        if let Some(found) = &self.smallest_detectable {
            line(out, "detectable", &detectable_text(found, self.confidence), form);
        }
        if let Some(needed) = &self.replicates_needed {
            line(out, "replicates", &needed_text(needed, self), form);
        }
        if let Some(time) = &self.time {
            line(out, "from pilot", &time_text(time), form);
        }
        let parts = [
            ("blocks", self.blocks.as_ref().map(|blocks| format!("{}: {}", blocks.blocks, blocks.text))),
            ("split plot", self.split_plot.as_ref().map(|plot| plot.text.clone())),
            ("centre", self.centre_points.as_ref().map(|centre| centre.text.clone())),
            ("excluded", self.exclusions.as_ref().map(|excluded| excluded.text.clone())),
        ];
        for (title, text) in parts {
            if let Some(text) = text {
                line(out, title, &text, form);
            }
        }
    }

    fn clear_text(&self) -> String {
        let (main, two) = (&self.clear.main_effects, &self.clear.two_factor_interactions);
        let pairs = self.factors.len() * (self.factors.len() - 1) / 2;
        let part = |found: &[String], all: usize, what: &str| match found.len() {
            0 => format!("no {what}"),
            n if n == all && n > 1 => format!("all {n} {what}s"),
            n => format!("{n} of {} ({})", counted(all as u64, what), short_list(found, 12)),
        };
        format!(
            "{}, {}",
            part(main, self.factors.len(), "main effect"),
            part(two, pairs, "interaction").replace("interaction", "two-factor interaction")
        )
    }

    fn render_factors(&self, out: &mut String) {
        if self.factors.iter().all(|factor| factor.name == factor.letter && level_text(factor).is_empty()) {
            return;
        }
        let _ = writeln!(out, "\nfactors");
        let letters = self.factors.iter().map(|factor| factor.letter.len()).max().unwrap_or(1);
        let names = self.factors.iter().map(|factor| factor.name.chars().count()).max().unwrap_or(1);
        for factor in &self.factors {
            let levels = level_text(factor);
            let line = if factor.name == factor.letter {
                format!("  {:<letters$}  {levels}", factor.letter)
            } else {
                format!("  {:<letters$}  {:<names$}  {levels}", factor.letter, factor.name)
            };
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }

    fn render_table(&self, out: &mut String, form: TextForm) {
        if self.factors.is_empty() {
            return;
        }
        let _ = writeln!(out, "\nsign table");
        let blocks = self.blocks.as_ref().and_then(|blocks| blocks.of_row.as_ref());
        let widths = self.table_widths(form);
        let cells =
            self.sign_table.columns.iter().zip(&widths).map(|(name, &width)| format!("{name:>width$}"));
        let block = if blocks.is_some() { "  block" } else { "" };
        let _ = writeln!(out, "        {}{block}", cells.collect::<Vec<_>>().join(" "));
        let rows = &self.sign_table.rows;
        for (index, row) in rows.iter().take(listed(rows.len(), form)).enumerate() {
            let block = match blocks {
                Some(of) => of.get(index).map_or_else(String::new, |block| format!("  {:>5}", block + 1)),
                None => String::new(),
            };
            let _ = writeln!(out, "  {index:>4}  {}{block}", row_text(row, &widths));
        }
        more(out, rows.len(), form);
    }

    /// Widths of the columns of the sign table.
    pub(crate) fn table_widths(&self, form: TextForm) -> Vec<usize> {
        let rows = &self.sign_table.rows[..listed(self.sign_table.rows.len(), form)];
        let width = |(column, name): (usize, &String)| {
            let cells =
                rows.iter().filter_map(|row| row.get(column)).map(|cell| cell_text(cell).chars().count());
            cells.chain([name.chars().count()]).max().unwrap_or(1)
        };
        self.sign_table.columns.iter().enumerate().map(width).collect()
    }

    pub(crate) fn render_aliases(&self, out: &mut String, form: TextForm) {
        if self.generators.is_empty() {
            self.render_terms(out, form);
            return;
        }
        let _ = writeln!(out, "\naliases (what is joined by = cannot be separated; * of interest)");
        for order in 0..=self.max_order {
            let of_order: Vec<_> = self.chains.iter().filter(|chain| chain.order == order).collect();
            for chain in of_order.iter().take(if form.all { usize::MAX } else { CHAINS }) {
                let _ = writeln!(out, "  {}", wrap(&chain_text(chain), form.width.saturating_sub(2), 6));
            }
            if !form.all && of_order.len() > CHAINS {
                let left = of_order.len() - CHAINS;
                let _ =
                    writeln!(out, "  … and {left} more that begin with {order} factors (`--all` shows them)");
            }
        }
        if self.chains_left_out > 0 {
            let _ = writeln!(
                out,
                "  … and {} that are not listed at all",
                counted(self.chains_left_out, "chain")
            );
        }
        let _ =
            writeln!(out, "  (interactions of up to {} factors; `--max-order` lists more)", self.max_order);
    }

    /// Terms of a design that is not regular, where there is something to say.
    fn render_terms(&self, out: &mut String, form: TextForm) {
        if self.kind == "one-at-a-time" {
            return;
        }
        let most = if form.all { usize::MAX } else { CHAINS };
        let troubled = |term: &&TermDescription| {
            let aliased = term.aliases.iter().any(|alias| (1..=2).contains(&order_of(&alias.term)));
            term.interest || (order_of(&term.term) == 1 && (aliased || !term.estimable))
        };
        let troubled: Vec<_> = self.terms.iter().filter(troubled).collect();
        if !troubled.is_empty() {
            let _ = writeln!(
                out,
                "\npartial aliases (correlation of the columns; ±1: cannot be separated; * of interest)"
            );
        }
        for term in troubled.iter().take(most) {
            let aliases = term.aliases.iter().filter(|alias| (1..=2).contains(&order_of(&alias.term)));
            let aliases: Vec<_> =
                aliases.map(|alias| format!("{} {}", alias.term, decimals(alias.correlation, 2))).collect();
            let star = if term.interest { "*" } else { "" };
            let estimable = if term.estimable { "" } else { " (cannot be estimated)" };
            let text = format!("{}{star}{estimable}: {}", term.term, short_list(&aliases, 12));
            let _ = writeln!(
                out,
                "  {}",
                wrap(text.trim_end_matches([':', ' ']), form.width.saturating_sub(2), 6)
            );
        }
        if troubled.len() > most {
            let _ = writeln!(out, "  … and {} more (`--all` shows them)", troubled.len() - most);
        }
        let lost = self.terms.iter().filter(|term| order_of(&term.term) == 2 && !term.estimable);
        let lost: Vec<_> = lost.map(|term| term.term.clone()).collect();
        if !lost.is_empty() {
            let text = format!(
                "interactions of two factors that cannot be estimated beside main effects and each other: {}",
                short_list(&lost, most)
            );
            let _ = writeln!(out, "\n{}", wrap(&text, form.width, 2));
        }
    }

    /// Warnings, then proposals: with the keys of a study or with options of the command.
    pub(crate) fn render_advice(&self, out: &mut String, form: TextForm, study: bool) {
        for warning in &self.warnings {
            let _ = writeln!(out, "\n{}", wrap(&format!("warning: {warning}"), form.width, 2));
        }
        if self.proposals.is_empty() {
            return;
        }
        let _ = writeln!(out, "\nproposals");
        for Proposal { text, options, study_keys, .. } in &self.proposals {
            let _ = writeln!(out, "  {}", wrap(text, form.width.saturating_sub(2), 6));
            let _ = if study {
                writeln!(out, "      [design] {study_keys}")
            } else {
                writeln!(out, "      {options}")
            };
        }
    }
}

/// Says that a table was cut.
pub(crate) fn more(out: &mut String, rows: usize, form: TextForm) {
    let left = rows - listed(rows, form);
    if left > 0 {
        let _ = writeln!(out, "  … and {left} more (`--all` shows them, `--json` has them)");
    }
}

/// The cells of a row of the sign table.
pub(crate) fn row_text(row: &[Cell], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).map(|(cell, &width)| format!("{:>width$}", cell_text(cell)));
    cells.collect::<Vec<_>>().join(" ")
}

fn cell_text(cell: &Cell) -> &str {
    match cell {
        Cell::Sign(-1) => "−",
        Cell::Sign(0) => "0",
        Cell::Sign(_) => "+",
        Cell::Level(name) => name,
    }
}

/// The levels of a factor; nothing when nobody named them.
fn level_text(factor: &FactorDescription) -> String {
    let text = match &factor.levels[..] {
        [low, high] if ["-", "-1"].contains(&low.as_str()) && ["+", "1", "+1"].contains(&high.as_str()) => {
            String::new()
        }
        [low, high] => format!("− {low}, + {high}"),
        levels => levels.join(", "),
    };
    match (text.is_empty(), factor.hard_to_change) {
        (_, false) => text,
        (true, true) => "(hard to change)".to_owned(),
        (false, true) => format!("{text}  (hard to change)"),
    }
}

fn chain_text(chain: &AliasChain) -> String {
    let marked = chain.members.iter().map(|member| {
        let of_interest = chain.interest.iter().any(|effect| effect == member.trim_start_matches('-'));
        format!("{member}{}", if of_interest { "*" } else { "" })
    });
    marked.collect::<Vec<_>>().join(" = ")
}

fn needed_text(needed: &ReplicatesNeeded, design: &DesignDescription) -> String {
    let unit = design.smallest_detectable.as_ref().and_then(|found| found.unit.as_deref());
    let effect = match needed.effect {
        Spread::Absolute(value) => quantity(value, unit),
        Spread::Relative(share) => format!("{} of the mean", percent(share)),
    };
    let how = match (needed.replicates, needed.runs) {
        (Some(replicates), Some(runs)) => format!("{replicates} replicates ({runs} runs)"),
        _ => "more than 100000 replicates".to_owned(),
    };
    format!("an effect of {effect} (2q) of every factor is found in {how}, under the same assumptions")
}

fn detectable_text(found: &SmallestDetectable, confidence: f64) -> String {
    let unit = found.unit.as_deref();
    let one = |effect: &DetectableEffect| {
        let relative = effect.relative_effect.map(|share| format!("{} of the mean", percent(share)));
        let text = match (effect.effect, relative) {
            (Some(value), Some(relative)) => format!("{} ({relative})", quantity(value, unit)),
            (Some(value), None) => quantity(value, unit),
            (None, relative) => relative.unwrap_or_default(),
        };
        let [few, more] = effect.runs;
        let half = match (effect.half_effect, effect.relative_effect) {
            (Some(half), _) => quantity(half, unit),
            (None, share) => share.map_or_else(String::new, |share| percent(share / 2.0)),
        };
        let other = effect.degrees_of_freedom != found.degrees_of_freedom;
        let freedom =
            if other { format!(", {} degrees of freedom", effect.degrees_of_freedom) } else { String::new() };
        format!("{text} from level to level (2q; q = {half}), {few} against {more} runs{freedom}")
    };
    let response = found.response.as_deref().map_or_else(String::new, |response| format!(" of {response}"));
    let spread = match (found.standard_deviation, found.relative_standard_deviation) {
        (Some(s), Some(share)) => format!("{} ({} of the mean)", quantity(s, unit), percent(share)),
        (Some(s), None) => quantity(s, unit),
        (None, share) => share.map_or_else(String::new, |share| format!("{} of the mean", percent(share))),
    };
    let texts: Vec<String> = found.effects.iter().map(one).collect();
    let effects = match &texts[..] {
        [] => "nothing".to_owned(),
        [first, rest @ ..] if rest.iter().all(|text| text == first) => first.clone(),
        all => {
            let each = found.effects.iter().zip(all).map(|(effect, text)| format!("{}: {text}", effect.name));
            each.collect::<Vec<_>>().join("; ")
        }
    };
    format!(
        "the smallest effect{response} that is found with probability {} at {} % confidence: {effects}. Standard \
         deviation {spread}, {} degrees of freedom. Assumed: {}",
        decimals(found.power, 3),
        decimals(100.0 * confidence, 3),
        found.degrees_of_freedom,
        found.assumptions.join("; ")
    )
}

fn time_text(time: &TimeEstimate) -> String {
    let whole = range(time.seconds_min, time.seconds_max, duration);
    let assumed = match (time.treatments_measured, time.treatments_assumed) {
        (_, 0) => "each treatment as its own runs there".to_owned(),
        (0, _) => format!("every run as the mean there, {}", duration(time.mean_run_seconds)),
        (own, n) => format!(
            "{own} treatments as their own runs there, {n} as the mean of all, {}",
            duration(time.mean_run_seconds)
        ),
    };
    format!("{whole} with preparation, from {}: {assumed}", counted(time.pilot_runs, "run"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!([1, 3, 4, 5, 9, 14].map(roman).join(" "), "I III IV V IX XIV");
        assert_eq!(product_text(&[2, 2, 3, 2]), "2^3 × 3");
        assert_eq!(quantity(123_456_789.0, Some("B/s")), "123 MB/s");
        assert_eq!(quantity(1_234.0, Some("ns")), "1.23 µs");
        assert_eq!(quantity(0.012_34, None), "0.0123");
        assert_eq!(quantity(1_234.0, Some("ops/s")), "1234 ops/s");
        assert_eq!(duration(7260.0), "2 h 01 min");
        assert_eq!(decimals(100.0, 0), "100");
    }

    #[test]
    fn lines_are_wrapped_between_words() {
        assert_eq!(wrap("aa bb cc", 5, 2), "aa bb\n  cc");
        assert_eq!(wrap("aaaaaaaa bb", 5, 1), "aaaaaaaa\n bb");
        let mut out = String::new();
        line(&mut out, "title", "one two three four five six seven", TextForm { width: 32, all: false });
        assert_eq!(out, "title       one two three four\n            five six seven\n");
    }
}
