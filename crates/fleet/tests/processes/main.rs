//! Fleets of real processes: this executable is the agent as well, and a controller that is killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout, reason = "a test")]

mod faults;
mod local;
mod support;

use libtest_mimic::{Arguments, Trial};

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    match arguments.get(1).map(String::as_str) {
        Some("agent") => return support::agent(),
        Some("controller") => return faults::controller(std::path::Path::new(&arguments[2])),
        _ => {}
    }
    let tests: [(&str, fn()); 13] = [
        ("five_agents_work_in_a_directory_as_one", local::five_agents_work_in_a_directory_as_one),
        ("five_agents_work_on_a_server_as_one", local::five_agents_work_on_a_server_as_one),
        ("workers_of_five_agents_keep_in_step", local::workers_of_five_agents_keep_in_step),
        ("a_lost_agent_holds_nobody_up_at_a_meeting", faults::a_lost_agent_holds_nobody_up_at_a_meeting),
        ("a_hook_runs_once_on_a_host", local::a_hook_runs_once_on_a_host),
        ("clocks_that_differ_are_related", local::clocks_that_differ_are_related),
        ("a_killed_agent_fails_its_run_alone", faults::a_killed_agent_fails_its_run_alone),
        ("a_stopped_process_is_lost", faults::a_stopped_process_is_lost),
        (
            "agents_at_work_for_longer_than_the_patience_hear_of_their_controller",
            faults::agents_at_work_for_longer_than_the_patience_hear_of_their_controller,
        ),
        ("what_is_no_agent_is_refused", faults::what_is_no_agent_is_refused),
        ("a_full_disk_is_named", faults::a_full_disk_is_named),
        ("a_run_stops_in_every_phase", faults::a_run_stops_in_every_phase),
        ("nothing_is_left_of_a_killed_controller", faults::nothing_is_left_of_a_killed_controller),
    ];
    let trial = |(name, test): (&str, fn())| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let tests = tests.into_iter().map(trial).collect();
    libtest_mimic::run(&Arguments::from_args(), tests).exit();
}
