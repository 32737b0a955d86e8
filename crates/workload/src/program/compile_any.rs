//! From a workload, be it a replay or not, to its program.

use super::{Access, Program, compile};
use crate::model::{ParameterError, Workload};
use crate::replay;

impl Program {
    /// Compiles a workload for a target that is a directory.
    ///
    /// # Errors
    /// Everything in it that cannot be executed, each with its path.
    pub fn compile(workload: &Workload) -> Result<Self, Vec<ParameterError>> {
        Self::compile_for(workload, Access::System)
    }

    /// Compiles a workload for a target that is reached in this way.
    ///
    /// # Errors
    /// See [`Self::compile`].
    pub fn compile_for(workload: &Workload, access: Access) -> Result<Self, Vec<ParameterError>> {
        match replay::of(workload) {
            Some(trace) => replay::compile(workload, trace, access),
            None => compile::compile(workload, access),
        }
    }
}
