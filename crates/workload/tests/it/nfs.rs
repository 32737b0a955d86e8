//! The behaviour of workloads on directories is that of workloads on NFS servers, of every version; and what is special
//! about these.

use crate::bench::over_the_wire;

macro_rules! on_servers {
    ($($module:ident { $($test:ident)* })*) => {
        on_servers!(@ version_3 "3" $($module { $($test)* })*);
        on_servers!(@ #[ignore = "full tier: every version"] version_4_0 "4.0" $($module { $($test)* })*);
        on_servers!(@ version_4_1 "4.1" $($module { $($test)* })*);
        on_servers!(@ #[ignore = "full tier: every version"] version_4_1_cached "4.1&cache=linux" $($module { $($test)* })*);
    };
    (@ $(#[$tier:meta])? $name:ident $version:literal $($module:ident { $($test:ident)* })*) => {
        mod $name {
            on_servers!(% [$(#[$tier])?] $version $($module { $($test)* })*);
        }
    };
    (% $tier:tt $version:literal $($module:ident { $($test:ident)* })*) => {
        $(mod $module {
            $(on_servers!(! $tier $version $module $test);)*
        })*
    };
    (! [$(#[$tier:meta])?] $version:literal $module:ident $test:ident) => {
        #[test]
        $(#[$tier])?
        fn $test() {
            crate::nfs::over_the_wire($version, crate::$module::$test);
        }
    };
}

on_servers! {
    offsets {
        in_reverse_a_file_is_read_from_its_end_and_again
        strides_leave_out_what_lies_between
        a_place_can_be_given
        workers_of_all_clients_write_blocks_of_their_own_and_read_those_of_others
        a_file_too_small_for_all_workers_leaves_some_without_work
        popular_files_are_picked_more_often
        neighbours_look_at_each_others_files
    }
    sizes {
        reads_have_the_sizes_of_their_distribution
        sequential_writes_of_drawn_sizes_leave_no_gaps_and_are_proved
        the_same_seed_draws_the_same_sizes_and_places
    }
    trees {
        a_tree_has_directories_in_directories_and_files_in_all_of_them
        files_of_leaves_are_created_listed_and_removed
    }
    flows {
        nested_repeats_multiply
        the_last_read_of_a_file_is_as_long_as_what_is_left
        files_without_bytes_end_at_once
        choices_follow_their_weights
        pauses_take_their_time_and_are_no_part_of_operations
        iterations_and_bytes_limit_each_worker
        a_byte_limit_lets_the_repetition_end_that_it_ends_in
        picks_go_through_the_files_as_they_say
        workers_that_share_a_file_start_at_different_places
        random_positions_cover_the_whole_file_and_stay_within_it
        workers_that_create_remove_and_look_do_not_get_into_each_others_way
    }
    meet {
        workers_of_all_groups_and_clients_keep_in_step
        workers_that_have_ended_are_not_waited_for
        a_failed_operation_does_not_put_workers_out_of_step
        meetings_end_with_their_phase
        counters_keep_makers_and_takers_together
        who_takes_is_done_when_nobody_is_left_who_posts
        steps_are_repeated_for_a_time
        every_client_goes_through_all_files
    }
    phases {
        the_warm_up_is_not_recorded
        the_measured_phase_takes_up_the_flow_where_the_warm_up_left_it
        a_lock_held_at_the_end_of_the_warm_up_hangs_nobody
        in_an_open_loop_latency_counts_from_the_intended_start
        an_open_loop_keeps_its_rate
        a_long_run_can_be_stopped_wherever_it_is
        preparation_can_be_stopped
        a_worker_that_cannot_be_set_up_fails_the_run
        a_set_up_without_a_file_to_pick_fails_the_run
        no_worker_starts_before_the_common_instant
        tear_down_is_done_and_its_errors_are_reported
    }
    filesets {
        files_are_reused_by_later_runs_until_something_differs
        workloads_of_one_run_find_what_an_earlier_one_left
        clients_have_files_of_their_own_unless_they_share
        prefilled_files_cannot_be_compressed
        sizes_are_the_same_in_every_run_and_client
    }
    operations {
        links_and_attributes_are_made_and_read
        a_file_is_truncated_and_seen_so_through_its_handle
        create_write_and_close_make_a_file_of_the_size_written
        what_is_written_is_different_everywhere
        exclusive_creation_of_a_file_that_exists_is_an_error
        truncate_empties_a_file
        appending_workers_lose_nothing
        renaming_flips_between_two_names
        stat_of_a_missing_file_is_an_error
        every_file_is_unlinked_once_by_any_number_of_workers
        directories_are_listed_made_and_removed
        flushes_are_counted_apart
        write_locks_exclude_each_other
        read_locks_are_shared_and_write_locks_of_other_ranges_too
        several_handles_are_kept_apart
    }
    verification {
        what_is_written_reads_back
        many_writers_of_one_file_raise_no_false_alarm
        readers_beside_writers_raise_no_false_alarm
        files_that_come_go_and_are_emptied_raise_no_false_alarm
        small_and_odd_sizes_are_proved_whole
        what_another_workload_wrote_without_stamps_is_made_anew_or_refused
    }
    errors {
        the_limit_of_errors_counts_errors_in_a_row
        a_handle_whose_file_could_not_be_opened_is_bad
    }
    tracing {
        a_trace_that_cannot_be_written_ends_the_run
    }
    built_in {
        reads_and_writes_do_as_many_operations_of_the_size_asked_for
        a_duration_ends_them
        sequential_reads_go_from_start_to_end_and_over_again
        flushing_after_every_write_flushes_after_every_write
        files_that_are_not_prefilled_grow_by_being_written
        file_creation_creates_each_file_once
        write_latency_writes_flushes_and_closes_once
        small_files_are_read_whole
        metadata_leaves_nothing_behind_and_a_warm_up_does_not_break_it
    }
    papers {
        files_that_grow_are_read_to_their_end
        locked_reads_lock_read_and_unlock_each_file_so_often
        the_file_server_does_its_eleven_flow_operations
        the_web_server_reads_ten_files_for_each_line_of_its_log
        the_mail_server_reads_what_was_appended
        bonnie_has_its_six_columns
        what_is_created_can_be_proved
        a_duration_ends_filebenchs_workloads
        files_are_recalled_after_all_holders_have_them_and_before_they_let_go
        a_grant_is_probed_by_opening_again
        the_database_writes_after_so_many_reads
    }
}
