//! Coefficients, the analysis of variance and the error of a fitted model.

use benchmaster_design::term;
use benchmaster_stats::lenth::{Lenth, lenth};
use benchmaster_stats::model::{
    Anova, Coefficient, Contrast, Decision, ErrorStratum, Fit, Judgement, Source, Stratum, SumOfSquares,
    Term, judge,
};
use benchmaster_stats::multiple::holm;

use super::prepare::Prepared;
use super::ranged::Ranged;
use super::result::{
    AnovaLine, AnovaTable, ErrorKind, ErrorSummary, LackOfFit, LenthSummary, NotSeparable, ScaleUsed,
    TermEstimate,
};
use super::table::SumsOfSquares;
use super::terms::Shape;

/// A fitted model with what describes its numbers.
pub(super) struct Fitted<'a> {
    pub(super) prepared: &'a Prepared<'a>,
    pub(super) shape: &'a Shape,
    pub(super) fit: &'a Fit,
    pub(super) scale: ScaleUsed,
    /// Which terms matter.
    pub(super) judgement: Judgement,
    pub(super) sums_of_squares: SumOfSquares,
}

/// Contrasts of a polynomial up to this degree are listed; what higher ones explain is in the analysis of variance.
const HIGHEST_DEGREE: u32 = 4;

/// The interval around a value.
pub(super) fn around(value: f64, half_width: Option<f64>) -> Option<[f64; 2]> {
    half_width.filter(|h| h.is_finite()).map(|h| [value - h, value + h])
}

/// Margins over all coefficients, when no error is left to compare them with.
pub(super) fn lenth_of(fit: &Fit) -> Option<Lenth> {
    if fit.df_error > 0 {
        return None;
    }
    let own = fit.coefficients.iter().filter(|c| !fit.terms[c.term].is_empty());
    let sizes: Vec<f64> = own.map(|c| (c.sum_of_squares / fit.corners as f64).sqrt()).collect();
    // Margins of fewer say nothing: the median is of one or two effects.
    lenth(&sizes, fit.confidence).ok().filter(|_| sizes.len() >= 3)
}

pub(super) fn lenth_summary(found: &Lenth) -> LenthSummary {
    LenthSummary {
        effects: found.effects,
        df: found.df,
        pse: 2.0 * found.pse,
        me: 2.0 * found.me,
        sme: 2.0 * found.sme,
        simultaneous: 2.0 * found.simultaneous,
        pse_half: found.pse,
        me_half: found.me,
        sme_half: found.sme,
        simultaneous_half: found.simultaneous,
    }
}

impl<'a> Fitted<'a> {
    pub(super) fn new(
        prepared: &'a Prepared<'a>,
        shape: &'a Shape,
        fit: &'a Fit,
        scale: ScaleUsed,
        asked: Option<SumsOfSquares>,
    ) -> Self {
        let sums_of_squares = match asked {
            Some(SumsOfSquares::I) => SumOfSquares::I,
            Some(SumsOfSquares::II) => SumOfSquares::II,
            Some(SumsOfSquares::III) | None => SumOfSquares::III,
        };
        Self { prepared, shape, fit, scale, judgement: judge(fit, sums_of_squares), sums_of_squares }
    }

    /// The mean, and all other coefficients, those that explain most first.
    pub(super) fn coefficients(&self, lenth: Option<&Lenth>) -> (Option<TermEstimate>, Vec<TermEstimate>) {
        let fit = self.fit;
        // Shares add up where every coefficient explains what no other does.
        let shares = fit.anova(SumOfSquares::III).orthogonal;
        let (mut mean, mut effects) = (None, Vec::with_capacity(fit.coefficients.len()));
        for coefficient in &fit.coefficients {
            let estimate = self.estimate(coefficient, lenth, shares);
            if fit.terms[coefficient.term].is_empty() {
                mean = Some(estimate)
            } else {
                effects.push(estimate)
            }
        }
        self.decide(&mut effects);
        effects.retain(|effect| !effect.beyond);
        effects.sort_by(|a, b| b.sum_of_squares.total_cmp(&a.sum_of_squares));
        (mean, effects)
    }

    /// What was decided about each coefficient: as about its term, and of several in a term those that stand out by
    /// themselves too (Holm within the term).
    fn decide(&self, effects: &mut [TermEstimate]) {
        let own = self.fit.coefficients.iter().filter(|c| !self.fit.terms[c.term].is_empty());
        let terms: Vec<usize> = own.map(|c| c.term).collect();
        let mut start = 0;
        for group in terms.chunk_by(|a, b| a == b) {
            let effects = &mut effects[start..start + group.len()];
            start += group.len();
            let decision = self.judgement.terms[group[0]];
            let within = holm(&effects.iter().map(|e| e.p.unwrap_or(f64::NAN)).collect::<Vec<_>>());
            let several = effects.len() > 1;
            for (effect, within) in effects.iter_mut().zip(within) {
                effect.p_holm =
                    decision.p_family.map(|family| if several { family.max(within) } else { family });
                effect.term_matters = decision.matters;
                let stands_out = match effect.p {
                    Some(_) => within <= 1.0 - self.fit.confidence,
                    None => effect.sum_of_squares > 0.0,
                };
                effect.significant = decision.matters.map(|matters| matters && (!several || stands_out));
            }
        }
    }

    fn estimate(&self, own: &Coefficient, lenth: Option<&Lenth>, shares: bool) -> TermEstimate {
        let (fit, prepared) = (self.fit, self.prepared);
        let model_term = &fit.terms[own.term];
        let is_mean = model_term.is_empty();
        let two_level = !is_mean && prepared.is_two_level(model_term);
        let lenth = lenth.filter(|_| !is_mean);
        // Lenth's margins are for contrasts of the size of half effects; others are scaled to them.
        let size = (own.sum_of_squares / fit.corners as f64).sqrt();
        let per_unit = if size > 0.0 { own.value.abs() / size } else { 1.0 };
        let (standard_error, half_width, t, p) = match lenth {
            Some(margin) => {
                let t = (margin.pse > 0.0).then(|| size.copysign(own.value) / margin.pse);
                // Of few effects Lenth's approximation is wider than what the largest of all needs.
                let single = margin.me.min(margin.simultaneous);
                (Some(margin.pse * per_unit), Some(single * per_unit), t, margin.p(size))
            }
            None => (own.standard_error, own.half_width, own.t, own.p),
        };
        let single = !two_level && shares && self.is_alone(own);
        let percent = |part: f64| (fit.sst > 0.0).then(|| 100.0 * part / fit.sst);
        let doubled = |value: f64| 2.0 * value;
        let log = self.scale == ScaleUsed::Log;
        let interval = around(own.value, half_width);
        let ratio = |value: f64, interval: Option<[f64; 2]>| Ranged {
            value: value.exp(),
            interval: interval.map(|i| i.map(f64::exp)),
        };
        TermEstimate {
            term: prepared.letters(model_term),
            name: prepared.name(model_term),
            order: model_term.len() as u32,
            contrast: prepared.contrast(model_term, &own.parts),
            df: own.df_error as u32,
            half_effect: two_level.then_some(own.value),
            effect: two_level.then(|| doubled(own.value)),
            coefficient: own.value,
            standard_error,
            half_width,
            interval,
            effect_interval: interval.filter(|_| two_level).map(|i| i.map(doubled)),
            ratio: match (log, is_mean, two_level) {
                (true, true, _) => Some(ratio(own.value, interval)),
                (true, _, true) => Some(ratio(2.0 * own.value, interval.map(|i| i.map(doubled)))),
                _ => None,
            },
            t,
            p,
            p_holm: None,
            sum_of_squares: own.sum_of_squares,
            variation_percent: percent(own.sum_of_squares)
                .filter(|_| !is_mean && shares && (two_level || single)),
            significant: None,
            term_matters: None,
            beyond: own
                .parts
                .iter()
                .any(|part| matches!(part, Contrast::Polynomial(degree) if *degree > HIGHEST_DEGREE)),
            aliased_with: self.shape.aliased_with(prepared, model_term),
        }
    }

    /// Whether a coefficient shares its term with none that it is correlated with: polynomials do, levels do not.
    fn is_alone(&self, own: &Coefficient) -> bool {
        own.parts.iter().all(|part| !matches!(part, Contrast::Level(_)))
            || own.parts.iter().zip(&self.fit.terms[own.term]).all(|(part, &factor)| {
                !matches!(part, Contrast::Level(_)) || self.prepared.data.factors[factor].levels == 2
            })
    }

    /// The analysis of variance, terms in the order of the model.
    pub(super) fn anova(&self) -> AnovaTable {
        let kind = self.sums_of_squares;
        let table = self.fit.anova(kind);
        let mut lines: Vec<AnovaLine> = Vec::new();
        for row in &table.rows {
            let model_term = match row.source {
                Source::Blocks | Source::Curvature => None,
                Source::Term(term) => Some(&self.fit.terms[term]),
            };
            let kind = match row.source {
                Source::Blocks => "block",
                Source::Term(_) => "term",
                Source::Curvature => "curvature",
            };
            let error = table.errors.iter().find(|e| e.stratum == row.stratum);
            let decision = match row.source {
                Source::Term(term) if row.df > 0 => self.judgement.terms[term],
                _ => Decision::default(),
            };
            lines.push(AnovaLine {
                kind,
                term: model_term.map_or(String::new(), |t| self.prepared.letters(t)),
                name: model_term.map_or(kind.into(), |t| self.prepared.name(t)),
                df: row.df as u32,
                sum_of_squares: row.sum_of_squares,
                mean_square: row.mean_square,
                f: row.f,
                error_df: error.filter(|_| row.f.is_some()).map(|e| e.df as u32),
                p: row.p,
                p_holm: decision.p_family,
                matters: decision.matters,
                variation_percent: row.eta_squared.map(|share| 100.0 * share),
                omega_squared: row.omega_squared,
            });
        }
        let terms_total = lines.len();
        self.error_lines(&table, &mut lines);
        AnovaTable {
            sums_of_squares: match kind {
                SumOfSquares::I => "I",
                SumOfSquares::II => "II",
                SumOfSquares::III => "III",
            },
            kind_matters: !table.orthogonal,
            lines,
            terms_total,
        }
    }

    fn error_lines(&self, table: &Anova, lines: &mut Vec<AnovaLine>) {
        let sst = table.sst;
        let line = |kind: &'static str, df: usize, sum_of_squares: f64| AnovaLine {
            kind,
            term: String::new(),
            name: kind.into(),
            df: df as u32,
            sum_of_squares,
            mean_square: (df > 0 && kind != "total").then(|| sum_of_squares / df as f64),
            f: None,
            error_df: None,
            p: None,
            p_holm: None,
            matters: None,
            variation_percent: (sst > 0.0).then(|| 100.0 * sum_of_squares / sst),
            omega_squared: None,
        };
        for error in &table.errors {
            let kind = if error.stratum == Stratum::WholePlot { "whole-plot error" } else { "error" };
            lines.push(line(kind, error.df, error.sum_of_squares));
            let (pure, pure_df) = error.pure_error;
            if let Some(lack) = error.lack_of_fit.filter(|_| pure_df > 0) {
                let mut fit = line("lack of fit", lack.df, lack.sum_of_squares);
                (fit.f, fit.p) = (lack.f, lack.p);
                fit.error_df = lack.f.map(|_| pure_df as u32);
                lines.push(fit);
                lines.push(line("pure error", pure_df, pure));
            }
        }
        lines.push(line("total", table.total_df, sst));
    }

    /// What the effects are compared with.
    pub(super) fn error(&self, pooled: Vec<String>, lenth: Option<&Lenth>) -> ErrorSummary {
        let fit = self.fit;
        let runs = fit.errors.iter().find(|e| e.stratum != Stratum::WholePlot);
        let plots = fit.errors.iter().find(|e| e.stratum == Stratum::WholePlot);
        let pure = fit.errors.iter().map(|e| e.pure_error.1).sum::<usize>();
        let kind = match (plots.is_some(), fit.df_error) {
            (_, 0) if lenth.is_some() => ErrorKind::Lenth,
            (_, 0) => ErrorKind::None,
            (true, _) => ErrorKind::SplitPlot,
            (_, df) if df == pure => ErrorKind::Replicates,
            _ if pure > 0 => ErrorKind::ReplicatesAndPooled,
            _ => ErrorKind::Pooled,
        };
        let two_level = self.prepared.data.factors.iter().all(|f| f.levels == 2);
        let (fewest, most) = self.prepared.replicates();
        let (s_e, n) = (fit.s_e, fit.corners as f64);
        ErrorSummary {
            kind,
            df: runs.map_or(0, |e| e.df as u32),
            s_e,
            s_q: s_e.filter(|_| two_level && fewest == most && plots.is_none()).map(|s| s / n.sqrt()),
            sse: fit.sse,
            sst: fit.sst,
            ssy: self.ssy(),
            percent: (fit.sst > 0.0).then(|| 100.0 * fit.sse / fit.sst),
            r_squared: fit.r_squared,
            r_squared_adjusted: fit.adjusted_r_squared,
            whole_plot: plots.and_then(|e| Some((e.df as u32, e.mean_square?.sqrt()))),
            pooled,
            no_interval: (kind == ErrorKind::None).then(|| {
                "one run per treatment and as many terms as runs leave nothing to compare with; add replicates, or take \
                 terms of high order as noise (`--order`, `--pool`)"
                    .into()
            }),
        }
    }

    fn ssy(&self) -> f64 {
        let response = self.fit.fitted.iter().zip(&self.fit.residuals).map(|(f, r)| f + r);
        response.map(|y| y * y).sum()
    }

    /// Whether the model fits, tested against replicates.
    pub(super) fn lack_of_fit(&self) -> Option<LackOfFit> {
        let error: &ErrorStratum =
            self.fit.errors.iter().find(|e| e.lack_of_fit.is_some_and(|l| l.f.is_some()))?;
        let lack = error.lack_of_fit?;
        let (f, p) = (lack.f?, lack.p?);
        let (pure_error_sum_of_squares, pure_error_df) = error.pure_error;
        // The log scale is advice for those who are not on it.
        let look = if self.scale == ScaleUsed::Log { "" } else { " or look at the log scale" };
        let sentence = if p < 1.0 - self.fit.confidence {
            format!(
                "The model misses something: what it leaves between treatments is {f:.2} times what replicates differ by \
                 (F with {} and {pure_error_df} degrees of freedom, p {}); add terms{look}.",
                lack.df,
                p_text(p)
            )
        } else {
            format!(
                "No lack of fit is seen: what the model leaves between treatments is {f:.2} times what replicates differ \
                 by (F with {} and {pure_error_df} degrees of freedom, p {}).",
                lack.df,
                p_text(p)
            )
        };
        Some(LackOfFit {
            sum_of_squares: lack.sum_of_squares,
            df: lack.df as u32,
            pure_error_sum_of_squares,
            pure_error_df: pure_error_df as u32,
            f,
            p,
            sentence,
        })
    }

    /// Terms of the model that the runs cannot estimate together with the others.
    pub(super) fn not_separable(&self) -> Vec<NotSeparable> {
        let one = |aliased: &benchmaster_stats::model::Aliased| {
            let own: &Term = &self.fit.terms[aliased.term];
            let mut with: Vec<String> = Vec::new();
            if aliased.with_blocks {
                with.push("blocks".into());
            }
            for other in &aliased.with {
                let letters = self.prepared.letters(&self.fit.terms[other.term]);
                if !with.contains(&letters) {
                    with.push(letters);
                }
            }
            NotSeparable {
                term: term::letters(self.prepared.mask(own)),
                name: self.prepared.name(own),
                contrast: self.prepared.contrast(own, &aliased.parts),
                with,
            }
        };
        self.fit.aliased.iter().map(one).collect()
    }
}

/// A p value for people, after the letter: `= 0.012`, `< 0.0001`.
pub(super) fn p_text(p: f64) -> String {
    match p {
        p if p < 0.0001 => "< 0.0001".into(),
        p if p < 0.01 => format!("= {p:.4}"),
        p => format!("= {p:.3}"),
    }
}
