//! `lab status`.

use std::fmt::Write as _;

use benchmaster_lab::lab::Lab;
use benchmaster_lab::{LabFacts, LabStatus, MachineState};

use crate::cli::StatusArgs;
use crate::failure::{Result, Status};
use crate::output;

pub(super) fn status(args: &StatusArgs) -> Result<Status> {
    let labs = Lab::list();
    if args.json {
        output::print_json(&labs)?;
    } else if labs.is_empty() {
        output::note("no lab is up");
    } else {
        output::print(&labs.iter().map(text).collect::<Vec<_>>().join("\n"))?;
    }
    Ok(Status::Fine)
}

fn text(lab: &LabStatus) -> String {
    let mut text = match (&lab.process, &lab.facts) {
        (None, _) => format!("{}: ended; `benchmaster lab down --name {0}` removes what is left\n", lab.name),
        (Some(process), None) => format!("{}: process {process}, which does not answer\n", lab.name),
        (Some(process), Some(facts)) => format!("{}: process {process}, {}\n", lab.name, described(facts)),
    };
    for machine in lab.facts.iter().flat_map(|facts| &facts.machines) {
        let state = match &machine.state {
            MachineState::Running => "running".to_owned(),
            MachineState::Ended(cause) => cause.to_string(),
        };
        let memory = match machine.memory {
            0 => String::new(),
            bytes => format!(", {} MiB", bytes >> 20),
        };
        let boot = machine.boot_time.as_secs_f64();
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "  {:<8} {state}, Linux {}{memory}, up after {boot:.2} s",
            machine.name, machine.kernel
        );
    }
    let _ = writeln!(text, "  state and consoles: {}", lab.directory.display());
    text
}

fn described(facts: &LabFacts) -> String {
    let config = &facts.config;
    let network = if config.emulated { ", emulated network" } else { "" };
    format!("{}, server {}, {} clients{network}", facts.back_end, config.server, config.clients)
}
