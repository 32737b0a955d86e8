use thiserror::Error;

/// Why a statistic cannot be computed.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum StatsError {
    /// Fewer values than the statistic needs.
    #[error("{what} needs {needed} or more values, but there are {found}; measure more runs")]
    TooFew {
        /// The statistic.
        what: &'static str,
        /// Values needed.
        needed: usize,
        /// Values given.
        found: usize,
    },
    /// A value is infinite or not a number.
    #[error("value {} of {what} is {value}; only finite numbers can be analysed", index + 1)]
    NotFinite {
        /// The statistic.
        what: &'static str,
        /// Position of the value, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// The values are finite, but their squares are not.
    #[error("the values of {what} are too large to be squared; use a larger unit")]
    Overflow {
        /// The statistic.
        what: &'static str,
    },
    /// The values are so small that their squares vanish.
    #[error("the values of {what} are too small to be squared; use a smaller unit")]
    Underflow {
        /// The statistic.
        what: &'static str,
    },
    /// A value that is not positive, where only such have a meaning.
    #[error("value {} of {what} is {value}; only positive numbers have a logarithm", index + 1)]
    NotPositive {
        /// The statistic.
        what: &'static str,
        /// Position of the value, from 0.
        index: usize,
        /// The value.
        value: f64,
    },
    /// A ratio to a mean of 0.
    #[error(
        "the mean that the other is divided by is 0, so there is no ratio; look at the difference instead"
    )]
    ZeroBase,
    /// An argument outside the range in which it has a meaning.
    #[error("{what} is {value}; it must be {range}")]
    Argument {
        /// The argument.
        what: &'static str,
        /// Its value.
        value: f64,
        /// What it must be.
        range: &'static str,
    },
    /// A confidence level outside 0..1.
    #[error("a confidence level of {0} is not between 0 and 1; use a number such as 0.95")]
    Confidence(f64),
    /// Neither of two samples varies, so nothing can be said about the uncertainty of their difference.
    #[error(
        "neither sample varies, so their difference cannot be tested; measure with a finer resolution, or more runs"
    )]
    NoVariation,
    /// A factorial design needs 2^k cells.
    #[error(
        "a two-level factorial design has 2, 4, 8, … cells, but {0} were given; add the missing treatments"
    )]
    NotTwoLevel(usize),
    /// The cells of a factorial design have different numbers of replicates.
    #[error(
        "cell {} has {found} {} where the first has {expected}; use the replicates that all cells have",
        cell + 1,
        if *found == 1 { "replicate" } else { "replicates" }
    )]
    Unbalanced {
        /// The cell, from 0.
        cell: usize,
        /// Replicates of the first cell.
        expected: usize,
        /// Replicates of this cell.
        found: usize,
    },
    /// A term of a model that does not have it.
    #[error("the design has {factors} factors and no term {term:#b}; name a term by the bits of its factors")]
    NoSuchTerm {
        /// The term.
        term: u32,
        /// Factors of the design.
        factors: u32,
    },
    /// A contrast whose coefficients do not add up to 0.
    #[error("the coefficients of a contrast add up to {0}; they must add up to 0")]
    NotAContrast(f64),
    /// A part of the data of a model has another length than the response.
    #[error("there are {found} {what} where there should be {expected}; give one for each run or factor")]
    Lengths {
        /// The part.
        what: &'static str,
        /// Its right length.
        expected: usize,
        /// Its length.
        found: usize,
    },
    /// A factor that cannot be coded.
    #[error("factor {} {problem}; correct its levels, or leave it out", factor + 1)]
    Factor {
        /// The factor, from 0.
        factor: usize,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// A run at a level that its factor does not have.
    #[error(
        "run {} has factor {} at level {level}, but that factor has only the levels 0 to {}; correct the run",
        run + 1, factor + 1, levels - 1
    )]
    NoSuchLevel {
        /// The run, from 0.
        run: usize,
        /// The factor, from 0.
        factor: usize,
        /// The level of the run.
        level: u32,
        /// Levels of the factor.
        levels: usize,
    },
    /// A level, or a factor, that the model does not have.
    #[error("factor {} has {levels} levels in this model, and no level {level}; levels begin at 0", factor + 1)]
    UnknownLevel {
        /// The factor, from 0.
        factor: usize,
        /// The level.
        level: u32,
        /// Levels of the factor; 0 for one that is not in the data.
        levels: usize,
    },
    /// A coefficient that the model does not have.
    #[error(
        "the model has {coefficients} coefficients and no number {coefficient}; they are numbered from 0"
    )]
    NoSuchCoefficient {
        /// The coefficient.
        coefficient: usize,
        /// Coefficients of the model.
        coefficients: usize,
    },
    /// A model that leaves no residuals to check.
    #[error("the model leaves too little error to check; leave terms out of it, or measure more runs")]
    NothingToCheck,
    /// A term that names unknown factors, or that is given twice.
    #[error(
        "the term {term:?} cannot be in a model of {factors} factors; \
         give each term once, by ascending numbers of its factors, which begin at 0"
    )]
    BadTerm {
        /// The term.
        term: Vec<usize>,
        /// Factors of the data.
        factors: usize,
    },
    /// Histograms that cannot be merged.
    #[error("the histograms cannot be merged: {0}; record them with the same range and precision")]
    Merge(String),
}

/// Refuses an empty sample, and values that are no finite numbers.
pub(crate) fn check_values(what: &'static str, values: &[f64], needed: usize) -> Result<(), StatsError> {
    if values.len() < needed {
        return Err(StatsError::TooFew { what, needed, found: values.len() });
    }
    match values.iter().position(|v| !v.is_finite()) {
        Some(index) => Err(StatsError::NotFinite { what, index, value: values[index] }),
        None => Ok(()),
    }
}

/// Refuses a confidence level outside 0..1.
pub(crate) fn check_confidence(confidence: f64) -> Result<(), StatsError> {
    if confidence > 0.0 && confidence < 1.0 { Ok(()) } else { Err(StatsError::Confidence(confidence)) }
}
