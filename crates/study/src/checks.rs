//! Whether the settings of a treatment can be used together. Every check is a pure function of them.

mod clients;
mod lab;
mod managed;
mod mount;
mod network;
mod run;
mod target;

pub(crate) use self::clients::check_workload;
pub(crate) use self::mount::target_of;
use crate::file::Reader;
use crate::settings::Settings;

/// Reports what of the settings cannot be used, apart from their workloads.
pub(crate) fn check(reader: &mut Reader<'_>, settings: &Settings) {
    target::check(reader, settings);
    lab::check(reader, settings);
    managed::check(reader, settings);
    network::check(reader, settings);
    clients::check(reader, settings);
    run::check(reader, settings);
}
