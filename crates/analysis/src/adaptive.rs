//! Adaptive experiments: what to run next, from what is known so far.
//!
//! A screening study runs a fraction first. Of what it finds, some effects stay ambiguous: each is a sum of terms that the
//! fraction cannot separate. Only the runs that separate them are added, then replicates until the effects that were
//! asked for are known precisely enough; and if the study has a goal, the best treatment is run again against the
//! default, with fresh runs, because the one that looked best among many also was lucky.
//!
//! Everything here is a pure function of the results: a study that is interrupted anywhere goes on with the same step.

mod addition;
mod best;
mod facts;
mod precision;
mod resolve;

use benchmaster_record::results::StudyResults;
use serde::Serialize;

use self::addition::MOST_ROUNDS;
pub use self::addition::{AdaptiveError, Addition};
pub use self::best::{Best, Gain};
pub use self::precision::KnownEffect;

use self::facts::Facts;
use benchmaster_units::format::plural;

/// What comes next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Add(Addition),
    /// Nothing: this is the answer.
    Finished(Box<Conclusion>),
}

/// What an adaptive study found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Conclusion {
    /// Stages that were added to the design.
    pub stages: usize,
    /// Runs that count.
    pub runs: usize,
    /// Runs that every combination of levels would have taken, each as often as a treatment of the first design.
    pub full_runs: u64,
    /// Whether effects are differences (`identity`) or ratios (`log`) of the response.
    pub scale: &'static str,
    /// The effects that were asked for.
    pub effects: Vec<KnownEffect>,
    /// What could not be separated or made precise, and why.
    pub open: Vec<String>,
    /// The treatment that serves the study's goal best; `None` without a goal.
    pub best: Option<Best>,
    /// The same in words.
    pub sentences: Vec<String>,
}

/// How far an adaptive study is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "state", rename_all = "kebab-case")]
pub enum Answer {
    /// It has its answer.
    Finished(Box<Conclusion>),
    /// Runs are missing.
    Open {
        /// Which, or why that is not known.
        reason: String,
    },
}

/// What an adaptive study found, as far as it is; `None` for other studies.
pub fn answer(results: &StudyResults) -> Option<Answer> {
    if !is_adaptive(results) {
        return None;
    }
    let open = |reason: String| Some(Answer::Open { reason });
    if !crate::schedule::is_complete(results) {
        return open("not all runs that were planned so far are done".into());
    }
    match next_step(results) {
        Ok(Step::Finished(conclusion)) => Some(Answer::Finished(conclusion)),
        Ok(Step::Add(addition)) => open(format!("more runs are needed: {}", addition.reason)),
        Err(error) => open(error.to_string()),
    }
}

/// Whether something of the study depends on its own results: `run` then asks [`next_step`] when all runs are done.
pub fn is_adaptive(results: &StudyResults) -> bool {
    results.study.design_details.screen || results.study.design_details.goal.is_some()
}

/// What comes next in a study all of whose planned runs are done.
///
/// # Errors
/// When there is nothing to decide by.
pub fn next_step(results: &StudyResults) -> Result<Step, AdaptiveError> {
    let facts = Facts::of(results, &results.study.primary_response)?;
    let mut open = Vec::new();
    let question = resolve::Question::of(&facts)?;
    if facts.screen {
        let rounds = facts.separating_rounds;
        match resolve::resolve(&facts, &question) {
            resolve::Ambiguity::None => {}
            resolve::Ambiguity::Resolvable(addition) if rounds < MOST_ROUNDS => {
                return Ok(Step::Add(addition));
            }
            resolve::Ambiguity::Resolvable(addition) => open.push(format!(
                "Runs were added {rounds} times, and something is still not separate: {}",
                addition.reason
            )),
            resolve::Ambiguity::Stays(reasons) => open.extend(reasons),
        }
    }
    let fit = facts.fit(&question.terms)?;
    let effects = precision::effects(&facts, &fit);
    if facts.screen {
        if let Some(addition) = precision::replicates(&facts, &effects) {
            return Ok(Step::Add(addition));
        }
        open.extend(precision::imprecise(&facts, &effects));
        open.extend(precision::misfit(&fit, facts.confidence));
    }
    let best = match &facts.goal {
        None => None,
        Some(goal) => {
            let of_goal = Facts::of(results, &goal.response)?;
            match best::best(&of_goal, &resolve::Question::of(&of_goal)?.terms, results)? {
                best::Confirmation::Needed(addition) => return Ok(Step::Add(addition)),
                best::Confirmation::Done(best) => Some(*best),
            }
        }
    };
    let mut conclusion = Conclusion {
        stages: results.study.stages.len(),
        runs: facts.values.len(),
        full_runs: facts.full_runs(),
        scale: facts.scale.name(),
        effects,
        open,
        best,
        sentences: Vec::new(),
    };
    conclusion.sentences = sentences(&conclusion, &facts);
    Ok(Step::Finished(Box::new(conclusion)))
}

fn sentences(conclusion: &Conclusion, facts: &Facts) -> Vec<String> {
    let mut all = Vec::new();
    if facts.screen {
        all.push(format!(
            "{} were needed, in {}; all combinations would have taken {}. When to stop depended on the data, so \
             the intervals are a little too narrow.",
            plural(conclusion.runs, "run"),
            plural(1 + conclusion.stages, "stage"),
            conclusion.full_runs
        ));
        all.extend(conclusion.effects.iter().map(|effect| effect.sentence.clone()));
        all.extend(conclusion.open.iter().cloned());
    }
    all.extend(conclusion.best.iter().map(|best| best.sentence.clone()));
    all
}

#[cfg(test)]
mod tests;
