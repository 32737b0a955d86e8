//! Labs: brought up, used, and ended in every way there is.

pub(crate) mod crashes;
pub(crate) mod cuts;
mod use_of;

use std::sync::Mutex;

use benchmaster_lab::backend::BackEnd;
use benchmaster_lab::lab::{Lab, LabError};
use benchmaster_lab::{LabConfig, ServerKind};
use libtest_mimic::{Failed, Trial};

/// One lab at a time: this is about what happens, not about how many fit.
static TURN: Mutex<()> = Mutex::new(());

type Test = fn(BackEnd) -> Result<(), Failed>;

pub(crate) fn trials() -> Vec<Trial> {
    let both: [(&str, Test); 5] = [
        ("programs_run_in_it", use_of::programs),
        ("streams_and_terminals_lead_into_it", use_of::streams),
        ("it_ends_with_its_controller", crashes::controller_killed),
        ("it_ends_with_its_supervisor", crashes::supervisor_killed),
        ("there_is_one_of_a_name_and_down_ends_it", crashes::down),
    ];
    let machines: [(&str, Test); 12] = [
        ("files_are_on_the_server", use_of::files),
        ("the_network_is_as_configured", use_of::emulated),
        ("a_machine_that_ends_is_reported_with_the_reason", crashes::machine_ends),
        ("a_machine_that_hangs_is_reported", crashes::machine_hangs),
        ("a_full_disk_is_reported", crashes::full_disk),
        ("sync_on_ext4_loses_nothing_at_a_power_cut", cuts::sync_on_ext4),
        ("sync_on_xfs_loses_nothing_at_a_power_cut", cuts::sync_on_xfs),
        ("async_loses_data_at_a_power_cut", cuts::asynchronous),
        ("a_disk_that_lies_loses_data_at_a_power_cut", cuts::lying),
        ("a_file_system_without_barriers_loses_data_at_a_power_cut", cuts::without_barriers),
        ("clients_go_on_after_a_power_cut", cuts::clients_go_on),
        ("what_is_not_cut_says_why", cuts::refused),
    ];
    let on = |back_end: BackEnd| {
        move |(name, test): (&'static str, Test)| {
            Trial::test(format!("{back_end}::{name}"), move || {
                let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                match usable(back_end) {
                    Ok(()) => test(back_end),
                    Err(reason) if required(back_end) => Err(reason.into()),
                    Err(reason) => {
                        println!("skipped: {reason}");
                        Ok(())
                    }
                }
            })
        }
    };
    let namespaces = both.into_iter().map(on(BackEnd::Namespaces));
    namespaces.chain(both.into_iter().chain(machines).map(on(BackEnd::Uml))).collect()
}

/// Whether a lab comes up here at all.
fn usable(back_end: BackEnd) -> Result<(), String> {
    match benchmaster_netem::namespace::privilege() {
        benchmaster_netem::namespace::Privilege::Nothing(error) => return Err(error.to_string()),
        _ if back_end == BackEnd::Namespaces => return Ok(()),
        _ => {}
    }
    let chosen = benchmaster_lab::choice::choose(
        Some(back_end),
        &benchmaster_lab::KernelChoice::Packaged,
        &mut |_| {},
    );
    chosen.map(drop).map_err(|error| error.to_string())
}

fn required(back_end: BackEnd) -> bool {
    let name = match back_end {
        BackEnd::Namespaces => "BENCHMASTER_REQUIRE_NAMESPACES",
        _ => "BENCHMASTER_REQUIRE_LAB",
    };
    std::env::var(name).is_ok_and(|value| value == "1")
}

/// A lab of a name of its own, with one client; of machines with the kernel's server.
fn config(back_end: BackEnd, name: &str) -> LabConfig {
    let server = if back_end == BackEnd::Namespaces { ServerKind::Memory } else { ServerKind::default() };
    let name = format!("t{}-{name}", std::process::id());
    LabConfig { name, server, back_end: Some(back_end), server_memory: 256 << 20, ..LabConfig::default() }
}

fn up(config: &LabConfig) -> Result<Lab, LabError> {
    Lab::up(config, &mut |_| {})
}

/// Nothing of a lab is left: no directory, and no process that would hold it.
fn gone(name: &str) -> Result<(), Failed> {
    match Lab::list().into_iter().find(|lab| lab.name == name) {
        Some(left) => Err(format!("{left:?} is left").into()),
        None => Ok(()),
    }
}
