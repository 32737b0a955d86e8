//! All integration tests in one executable, which is also the agents and controllers that they start: see [`PROCESSES`].

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "skipped tests say so")]

mod faults;
mod local;
mod scale;
mod secure;
mod slurm;
mod ssh;
mod support;
mod together;

#[path = "../support/slurm.rs"]
mod slurm_cluster;
#[path = "../support/sshd.rs"]
mod sshd;

use libtest_mimic::{Arguments, Trial};

/// A process that this executable can be: the name that is its first argument, and what it does.
type Process = (&'static str, fn(&[String]));

const PROCESSES: [Process; 7] = [
    ("agent", |_| support::agent()),
    ("controller", |arguments| faults::controller(std::path::Path::new(&arguments[0]))),
    ("dialling", local::dialling),
    ("secure-agent", |arguments| secure::agent(&arguments[0])),
    ("slurm-agent", |arguments| slurm::agent(&arguments[0])),
    ("slurm-controller", slurm::controller),
    ("ssh-controller", ssh::controller),
];

/// Tests by the names of their modules and functions; `async` ones in a runtime of their own.
macro_rules! tests {
    (@trial async $module:ident $name:ident) => {
        trial(concat!(stringify!($module), "::", stringify!($name)), || support::block_on($module::$name()))
    };
    (@trial sync $module:ident $name:ident) => {
        trial(concat!(stringify!($module), "::", stringify!($name)), $module::$name)
    };
    ($($kind:ident $module:ident { $($name:ident)+ })+) => {
        vec![$($(tests!(@trial $kind $module $name)),+),+]
    };
}

fn trial(name: &str, test: fn()) -> Trial {
    // The full tier.
    let needs_others = ["scale::", "slurm::", "ssh::"].iter().any(|module| name.starts_with(module));
    let trial = Trial::test(name, move || {
        test();
        Ok(())
    });
    trial.with_ignored_flag(needs_others)
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let process = arguments.get(1).and_then(|first| PROCESSES.iter().find(|(name, _)| name == first));
    if let Some((_, run)) = process {
        return run(&arguments[2..]);
    }
    let tests = tests! {
        sync faults {
            a_full_disk_is_named
            a_killed_agent_behind_an_aggregator_is_named
            a_killed_agent_fails_its_run_alone
            a_killed_aggregator_is_named_and_its_agents_end
            a_lost_agent_holds_no_others_up_at_a_meeting
            a_run_stops_in_every_phase
            a_stopped_process_is_lost
            agents_at_work_for_longer_than_the_patience_hear_of_their_controller
            nothing_is_left_of_a_killed_controller
            what_is_no_agent_is_refused
        }
        sync local {
            a_hook_runs_once_on_a_host
            agents_behind_aggregators_work_in_a_directory_as_one
            agents_behind_aggregators_work_on_a_server_as_one
            agents_that_dial_join_the_aggregator_of_their_group
            clocks_that_differ_are_related
            five_agents_work_in_a_directory_as_one
            five_agents_work_on_a_server_as_one
            workers_of_five_agents_keep_in_step
        }
        sync scale { a_thousand_processes_end_in_one_result }
        async secure {
            a_crowd_is_turned_away_and_agents_get_in_when_it_goes
            a_wrong_token_a_rank_twice_and_an_unknown_rank_are_refused
            agents_are_taken_by_rank_whenever_they_come
            agents_that_come_late_or_not_at_all_are_named
            an_agent_says_nothing_to_another_server
            another_build_is_refused_with_the_reason
            garbage_and_silence_are_turned_away_while_agents_get_in
        }
        sync secure { nothing_secret_is_seen_of_an_agent }
        sync slurm { agents_by_slurm }
        sync ssh {
            a_program_that_is_there_must_be_this_build_and_run
            failures_name_the_host_and_what_to_do
            nothing_is_left_when_the_network_goes_or_the_controller_is_killed
            the_program_is_copied_once_and_agents_end_with_their_streams
        }
        sync together {
            a_client_that_is_to_start_later_does
            counters_and_commands_of_every_host_come_home_on_the_common_clock
            names_of_shared_files_are_divided_in_a_directory
            names_of_shared_files_are_divided_on_a_server
            operations_do_not_depend_on_how_clients_are_divided
            private_files_are_made_by_their_processes_and_counts_are_added
            rpcs_are_added_up
            what_processes_cannot_share_is_refused
            workers_of_different_processes_meet
        }
    };
    let mut arguments = Arguments::from_args();
    // As the standard harness.
    let threads = || std::env::var("RUST_TEST_THREADS").ok()?.parse().ok();
    arguments.test_threads = arguments.test_threads.or_else(threads);
    libtest_mimic::run(&arguments, tests).exit();
}
