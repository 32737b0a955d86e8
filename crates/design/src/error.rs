//! Why a two-level fraction, its blocks or a Plackett-Burman design cannot be made.

use thiserror::Error;

use crate::letters::{Term, letter, letters};

/// Why a two-level fraction cannot be made or used as asked.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FractionError {
    /// No factors, or more than a term can hold.
    #[error("a two-level fraction needs 1 to {limit} factors, not {factors}")]
    Factors {
        /// Factors asked for.
        factors: u32,
        /// The most that are possible.
        limit: u32,
    },
    /// More runs than a design may have.
    #[error("2^{base} runs are more than a design may have (2^{limit}); add generators or remove factors")]
    Runs {
        /// Factors that no generator defines.
        base: u32,
        /// The largest possible exponent.
        limit: u32,
    },
    /// More generators than their 2^p words can be listed for.
    #[error(
        "{generators} generators have 2^{generators} defining words, more than are handled (2^{limit}); \
         take more runs, or a Plackett-Burman design for screening"
    )]
    Generators {
        /// Generators given.
        generators: usize,
        /// The most that are possible.
        limit: u32,
    },
    /// Text that is not a generator.
    #[error(
        "`{text}` is not a generator; write the added factor, `=` and the factors it is the product of: D=AB or E=-ABC"
    )]
    NotAGenerator {
        /// What was written.
        text: String,
    },
    /// Text that names no term of these factors.
    #[error(
        "`{part}` in `{text}` is neither the name of a factor nor letters of the {factors} factors (A to {last}, without I)"
    )]
    UnknownFactor {
        /// The whole text.
        text: String,
        /// The part that is not known.
        part: String,
        /// Number of factors.
        factors: usize,
        /// Letter of the last factor.
        last: String,
    },
    /// A factor that occurs twice in one product.
    #[error("`{text}` has the factor {factor} twice; a factor times itself is 1: leave both out")]
    FactorTwice {
        /// The whole text.
        text: String,
        /// Name or letter of the factor.
        factor: String,
    },
    /// A generator about a factor that does not exist.
    #[error("generator {generator} names the factor {}, but the design has {factors} factors", letter(*factor as usize))]
    NoSuchFactor {
        /// The generator as written.
        generator: String,
        /// The factor, from 0.
        factor: u32,
        /// Number of factors.
        factors: u32,
    },
    /// Two generators for one factor.
    #[error("factor {} has two generators, {first} and {second}; keep one", letter(*factor as usize))]
    Repeated {
        /// The factor, from 0.
        factor: u32,
        /// Its first generator.
        first: String,
        /// Its second generator.
        second: String,
    },
    /// Generators that define each other.
    #[error("the generators {} define each other in a circle; write one of them with base factors only", .generators.join(", "))]
    Circular {
        /// The generators of the circle.
        generators: Vec<String>,
    },
    /// A factor without variation of its own.
    #[error(
        "by the generators {} the factors {} always change together (I = {}); take a different product for one of them",
        .generators.join(", "), .factors.join(" and "), letters(*word)
    )]
    SameFactors {
        /// The generators that cause it.
        generators: Vec<String>,
        /// The factors.
        factors: Vec<String>,
        /// The defining word of two letters.
        word: Term,
    },
    /// A factor that would never change.
    #[error("by generator {generator} the factor {} never changes; take a product of two or more factors", letter(*factor as usize))]
    Constant {
        /// The generator.
        generator: String,
        /// The factor, from 0.
        factor: u32,
    },
    /// More factors than the largest Plackett-Burman design has.
    #[error("Plackett-Burman designs are for 1 to {limit} factors, not {factors}")]
    PlackettBurman {
        /// Factors asked for.
        factors: u32,
        /// The most that are possible.
        limit: u32,
    },
    /// A number of blocks that is not a power of two, or more than the runs.
    #[error("{blocks} blocks cannot be made of {runs} runs; take a power of two from 2 to {}", runs / 2)]
    Blocks {
        /// Blocks asked for.
        blocks: u32,
        /// Runs of the design.
        runs: u64,
    },
    /// So many blocks that a main effect would be one of the differences between them.
    #[error(
        "{blocks} blocks of {} runs would confound a main effect with blocks, and so would every other choice{}; \
         take fewer blocks or more runs",
        runs / u64::from(*blocks), if *all { "" } else { " that was tried" }
    )]
    BlocksConfound {
        /// Blocks asked for.
        blocks: u32,
        /// Runs of the design.
        runs: u64,
        /// Whether every choice was looked at.
        all: bool,
    },
    /// A number of runs that no fraction of these factors has.
    #[error(
        "a two-level fraction of {factors} factors cannot have {runs} runs; take a power of two from {fewest} to 2^{most}"
    )]
    NoSuchRuns {
        /// Number of factors.
        factors: u32,
        /// Runs asked for.
        runs: u64,
        /// The fewest runs that distinguish all factors.
        fewest: u64,
        /// Exponent of the most runs.
        most: u32,
    },
    /// A resolution at which main effects would be aliased with each other.
    #[error("resolution {resolution} would alias main effects with each other; ask for 3 or more")]
    Resolution {
        /// The resolution asked for.
        resolution: u32,
    },
    /// Terms that must be clear but are not of this design.
    #[error("the effect {} cannot be asked for: the design has {factors} factors", letters(*term))]
    NoSuchEffect {
        /// The term.
        term: Term,
        /// Number of factors.
        factors: u32,
    },
    /// No fraction with at most this many runs has the asked effects clear.
    #[error(
        "no fraction of {factors} factors in up to {max_runs} runs {} with {} clear; allow more runs or ask for fewer effects",
        if *all { "exists" } else { "was found" },
        .effects.join(", ")
    )]
    NotClear {
        /// Number of factors.
        factors: u32,
        /// The most runs allowed.
        max_runs: u64,
        /// The effects asked for.
        effects: Vec<String>,
        /// Whether every fraction was looked at.
        all: bool,
    },
}
