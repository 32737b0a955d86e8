//! The analysis of an experiment: which factors change a response, how sure that is, and what the design cannot
//! separate.
//!
//! Pure: a [`Table`] of runs, from a study's results or from a CSV file, becomes an [`Experiment`]. The formulas are
//! those of `benchmaster-stats`, what the design can distinguish comes from `benchmaster-design`; this module joins the
//! two and puts the result into words.

mod analyse;
mod estimate;
mod groups;
mod means;
mod prepare;
mod ranged;
mod result;
mod sample;
mod table;
mod terms;
mod words;

pub use analyse::analyze;
pub use benchmaster_stats::model::CENTRE;
pub use groups::{SampleOptions, sample};
pub use ranged::Ranged;
pub use result::{
    AliasChain, AnovaLine, AnovaTable, BoxCoxPoint, Cube, CubeCorner, DesignSummary, ErrorKind, ErrorSummary,
    Experiment, FactorCoding, InteractionMeans, LackOfFit, LeftOut, LenthSummary, LevelMean, LevelMeans,
    MeanCell, NotSeparable, Prediction, ReducedSummary, ResidualCheck, ResidualSummary, RunResidual,
    ScaleChoice, ScaleUsed, TermEstimate, TestSummary,
};
pub use sample::{
    BootstrapSummary, ChangeSummary, ChangesSummary, Group, RankSummary, Sample, SampleCorrelation, Steady,
    TwoGroups, WelchSummary,
};
pub use table::{
    ExperimentError, Options, Polynomial, PredictionRequest, SumsOfSquares, Table, TableFactor, TableRow,
    Transform,
};
