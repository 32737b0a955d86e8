//! What was found of what was planted, and what was found beside it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use benchmaster_stats::share::wilson;

use super::scenario::Case;
use super::trial::Outcome;

/// Outcomes of all cases.
#[derive(Debug, Default)]
pub(crate) struct Matrix<'a> {
    pub(crate) outcomes: Vec<(Case<'a>, Outcome)>,
    /// Cases that could not be run, and why.
    pub(crate) failed: Vec<(String, String)>,
    /// Scenarios that were left out, and why.
    pub(crate) skipped: Vec<(String, String)>,
}

/// A share with its 95 % Wilson interval.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Rate {
    hits: usize,
    of: usize,
}

impl Rate {
    pub(crate) fn share(self) -> f64 {
        self.hits as f64 / self.of.max(1) as f64
    }

    /// Lower and upper end.
    pub(crate) fn interval(self) -> (f64, f64) {
        wilson(self.hits as u64, self.of as u64, 0.95)
    }
}

impl std::fmt::Display for Rate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (lower, upper) = self.interval();
        let percent = |share: f64| format!("{:.0}", share * 100.0);
        write!(
            f,
            "{} of {} = {:.1} % [{}, {}]",
            self.hits,
            self.of,
            self.share() * 100.0,
            percent(lower),
            percent(upper)
        )
    }
}

/// A row: a planted condition.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) planted: String,
    pub(crate) found: Rate,
    /// Other findings: in how many cases.
    pub(crate) beside: BTreeMap<String, usize>,
    /// Most findings of the wrong kind in one case.
    pub(crate) most_wrong: usize,
}

impl Matrix<'_> {
    fn planted(&self) -> impl Iterator<Item = &(Case<'_>, Outcome)> {
        self.outcomes.iter().filter(|(case, _)| !case.scenario.is_clean())
    }

    fn clean(&self) -> impl Iterator<Item = &(Case<'_>, Outcome)> {
        self.outcomes.iter().filter(|(case, _)| case.scenario.is_clean())
    }

    /// Cases in which what was planted was found.
    pub(crate) fn sensitivity(&self) -> Rate {
        rate(self.planted().map(|(case, outcome)| outcome.hit(case)))
    }

    /// Clean runs in which something was found that is not there.
    pub(crate) fn false_alarms(&self) -> Rate {
        Rate {
            hits: self.clean().map(|(_, outcome)| outcome.alarmed).sum(),
            of: self.clean().map(|(_, outcome)| outcome.runs).sum(),
        }
    }

    /// Cases with something planted in which at most two findings of the wrong kind stood beside it.
    pub(crate) fn not_crowded(&self) -> Rate {
        rate(self.planted().map(|(case, outcome)| outcome.wrong(case).count() <= 2))
    }

    /// One row for each planted condition.
    pub(crate) fn rows(&self) -> Vec<Row> {
        let mut by_condition: BTreeMap<&str, Vec<&(Case<'_>, Outcome)>> = BTreeMap::new();
        for one in self.planted() {
            by_condition.entry(&one.0.scenario.finds[0]).or_default().push(one);
        }
        let row = |(planted, cases): (&str, Vec<&(Case<'_>, Outcome)>)| {
            let mut beside: BTreeMap<String, usize> = BTreeMap::new();
            for (case, outcome) in &cases {
                let others = outcome.found.keys().filter(|id| !case.scenario.finds.contains(id));
                others.for_each(|id| *beside.entry(id.clone()).or_default() += 1);
            }
            Row {
                planted: planted.to_owned(),
                found: rate(cases.iter().map(|(case, outcome)| outcome.hit(case))),
                beside,
                most_wrong: cases
                    .iter()
                    .map(|(case, outcome)| outcome.wrong(case).count())
                    .max()
                    .unwrap_or(0),
            }
        };
        by_condition.into_iter().map(row).collect()
    }

    /// The whole matrix, as CSV: cases in which each finding was made, by what was planted.
    pub(crate) fn csv(&self) -> String {
        let columns: BTreeSet<&str> =
            self.outcomes.iter().flat_map(|(_, outcome)| outcome.found.keys()).map(|id| &**id).collect();
        let mut counts: BTreeMap<&str, (usize, BTreeMap<&str, usize>)> = BTreeMap::new();
        for (case, outcome) in &self.outcomes {
            let planted = case.scenario.finds.first().map_or("(clean)", |id| id);
            let row = counts.entry(planted).or_default();
            row.0 += 1;
            outcome.found.keys().for_each(|id| *row.1.entry(id).or_default() += 1);
        }
        let mut text = String::from("planted,cases");
        columns.iter().for_each(|column| text += &format!(",{column}"));
        for (planted, (cases, found)) in counts {
            let _ = write!(text, "\n{planted},{cases}");
            for column in &columns {
                let _ = write!(text, ",{}", found.get(column).copied().unwrap_or(0));
            }
        }
        text + "\n"
    }

    /// As Markdown: the three rates, the rows, the clean controls.
    pub(crate) fn markdown(&self) -> String {
        let mut text = format!(
            "| | reached | aim |\n|---|---|---|\n\
             | planted conditions that were found, by case | {} | ≥ 95 % |\n\
             | clean runs with a false alarm | {} | ≤ 2 % |\n\
             | cases with at most two findings of the wrong kind | {} | 100 % |\n\n",
            self.sensitivity(),
            self.false_alarms(),
            self.not_crowded()
        );
        text += "| planted | found, with 95 % Wilson interval | found beside it, in how many cases | wrong at most |\n\
                 |---|---|---|---|\n";
        for row in self.rows() {
            let beside: Vec<String> = row.beside.iter().map(|(id, cases)| format!("{id} {cases}")).collect();
            let _ = writeln!(
                text,
                "| `{}` | {} | {} | {} |",
                row.planted,
                row.found,
                beside.join(", "),
                row.most_wrong
            );
        }
        text += "\n| clean control | runs | found, in how many runs | of them wrong |\n|---|---|---|---|\n";
        let mut controls: BTreeMap<&str, (usize, BTreeMap<&str, usize>, usize)> = BTreeMap::new();
        for (case, outcome) in self.clean() {
            let (runs, found, alarmed) = controls.entry(&case.scenario.name).or_default();
            *runs += outcome.runs;
            *alarmed += outcome.alarmed;
            outcome.found.iter().for_each(|(id, runs)| *found.entry(id).or_default() += runs);
        }
        for (name, (runs, found, alarmed)) in controls {
            let found: Vec<String> = found.iter().map(|(id, runs)| format!("{id} {runs}")).collect();
            let _ = writeln!(text, "| {name} | {runs} | {} | {alarmed} |", found.join(", "));
        }
        text
    }

    /// As text: what went wrong, then as [`Self::markdown`].
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (case, outcome) in &self.outcomes {
            let wrong: Vec<&str> = outcome.wrong(case).collect();
            if !case.scenario.is_clean() && !outcome.hit(case) {
                let sought = &case.scenario.finds;
                let unknown = sought.iter().any(|id| outcome.absent.contains(id));
                let why = if unknown { " (said to be unknown)" } else { "" };
                let _ = writeln!(text, "missed  {}: {}{why}", case.name(), sought.join(" or "));
            }
            if !wrong.is_empty() {
                let runs =
                    wrong.iter().map(|id| format!("{id} in {} of {} runs", outcome.found[*id], outcome.runs));
                let _ = writeln!(text, "wrong   {}: {}", case.name(), runs.collect::<Vec<_>>().join(", "));
            }
        }
        for (case, why) in &self.failed {
            let _ = writeln!(text, "failed  {case}: {why}");
        }
        for (scenario, why) in &self.skipped {
            let _ = writeln!(text, "skipped {scenario}: {why}");
        }
        format!("{text}\n{}", self.markdown())
    }
}

fn rate(of: impl Iterator<Item = bool>) -> Rate {
    of.fold(Rate { hits: 0, of: 0 }, |rate, hit| Rate { hits: rate.hits + usize::from(hit), of: rate.of + 1 })
}
