//! The plan of a study: its treatments, each checked, and what it will take to run them.

mod compatible;
mod describe;
pub mod design;
mod estimate;
pub mod extend;
mod screen;
mod setup;
mod study;
mod treatments;

pub use self::compatible::{Difference, OfResultsError, compatible};
pub use self::describe::{PlanDescription, PlannedFactor, PlannedLevel, PlannedRun, PlannedWorkload};
pub use self::estimate::{Estimate, Seconds, TimeEstimate};
pub use self::screen::screening;
pub use self::setup::{LocalEmulation, PlannedNetwork, PlannedStep};
pub use self::study::{Plan, PlannedBlock, PlannedTreatment};
