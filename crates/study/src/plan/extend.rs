//! What is added to a study that has already run: a foldover, half of one, or the treatments that tell some effects apart.

mod description;
mod extension;

pub use self::description::{AddedTreatment, ExtensionDescription};
pub use self::extension::{ExtendError, Extension, Proposal};
