//! Whether the settings of a treatment can be used together. Every check is a pure function of them.

mod clients;
mod lab;
mod managed;
mod mount;
mod network;
mod problem;
mod run;
mod target;

use benchmaster_record::model::Workload;
use benchmaster_workload::program::Program;

pub(crate) use self::mount::target_of;
pub(crate) use self::problem::Problem;
use self::problem::Problems;
use crate::settings::Settings;

/// What of the settings cannot be used, apart from their workloads.
pub(crate) fn of_settings(settings: &Settings) -> Vec<Problem> {
    let mut problems = Problems::default();
    target::check(&mut problems, settings);
    lab::check(&mut problems, settings);
    managed::check(&mut problems, settings);
    network::check(&mut problems, settings);
    clients::check(&mut problems, settings);
    run::check(&mut problems, settings);
    problems.0
}

/// Whether the clients can do a workload.
pub(crate) fn of_workload(
    settings: &Settings,
    name: &str,
    workload: &Workload,
    program: &Program,
) -> Vec<Problem> {
    let mut problems = Problems::default();
    clients::check_workload(&mut problems, settings, name, workload, program);
    problems.0
}
