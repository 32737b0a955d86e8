//! Every option of fio 3.33 by name, and what becomes of it.

use crate::NoteKind;

/// What becomes of an option, whatever its value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It depends on the value and on other options; the translation says it.
    Depends,
    /// It has no bearing on what is done to files, because of this.
    Irrelevant(&'static str),
    /// The workload does something near to it: this.
    Approximated(&'static str),
    /// The workload does without it, because of this.
    Unsupported(&'static str),
}

impl Fate {
    /// The note about it; nothing when it depends.
    pub(super) fn note(self) -> Option<(NoteKind, &'static str)> {
        match self {
            Self::Depends => None,
            Self::Irrelevant(why) => Some((NoteKind::Irrelevant, why)),
            Self::Approximated(how) => Some((NoteKind::Approximated, how)),
            Self::Unsupported(why) => Some((NoteKind::Unsupported, why)),
        }
    }
}

/// The canonical name of an option and its fate.
pub(super) fn find(name: &str) -> Option<(&'static str, Fate)> {
    TABLE
        .iter()
        .flat_map(|(fate, options)| options.split_whitespace().map(move |option| (option, fate)))
        .find_map(|(option, fate)| {
            let mut names = option.split('|');
            let canonical = names.next()?;
            (canonical == name || names.any(|alias| alias == name)).then_some((canonical, *fate))
        })
}

/// Known names that are written alike.
pub(super) fn similar(name: &str) -> Option<&'static str> {
    let all = TABLE.iter().flat_map(|(_, options)| options.split_whitespace()).flat_map(|o| o.split('|'));
    let distance = |known: &str| changes(known, name);
    all.min_by_key(|known| distance(known)).filter(|known| distance(known) <= 1 + name.len() / 4)
}

/// How many letters must be added, removed or exchanged to make one text of the other.
fn changes(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (number, letter) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], number + 1);
        for (at, wanted) in other.iter().enumerate() {
            let exchanged = diagonal + usize::from(letter != *wanted);
            diagonal = row[at + 1];
            row[at + 1] = exchanged.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[other.len()]
}

const ENGINE: &str = "an option of an engine that does not access files";
const REPORT: &str = "results are reported and stored in this program's formats";
const DEVICE: &str = "a matter of block devices, not of files";
const PROCESS: &str =
    "set it for this program as a whole, with `taskset`, `nice`, `ionice`, `numactl` or a cgroup";
const CONTENT: &str = "written data are incompressible and differ in every block";
const VERIFY: &str =
    "`verify = true` checks every block in its own way: file, offset and generation, and all bytes";
const BATCH: &str = "the depth is kept; how many requests are submitted or reaped at once is not set";

/// Options by fate; names of the same option are separated by `|`, its canonical one first.
const TABLE: &[(Fate, &str)] = &[
    (
        Fate::Depends,
        "description filename directory filename_format opendir lockfile rw|readwrite bs|blocksize ba|blockalign \
         bsrange|blocksize_range bssplit bs_unaligned|blocksize_unaligned bs_is_seq_rand randseed norandommap \
         rw_sequencer ioengine iodepth size io_size|io_limit fill_device|fill_fs filesize file_append \
         offset|fileoffset offset_increment offset_align number_ios random_distribution percentage_random \
         nrfiles|nr_files file_service_type openfiles fallocate fsync fdatasync direct atomic buffered overwrite loops \
         numjobs startdelay|start_delay runtime|timeout time_based verify_only ramp_time verify do_verify rwmixread \
         rwmixwrite thinktime thinktime_spin thinktime_blocks thinktime_blocks_type thinktime_iotime rate rate_iops \
         rate_process rate_ignore_thinktime invalidate sync create_only pre_read end_fsync fsync_on_close \
         stonewall|wait_for_previous wait_for write_lat_log write_iolog read_iolog stat_type nfs_url kb_base zonemode \
         zonesize zoneskip zonerange fadvise_hint exitall zero_buffers write_barrier sync_file_range name",
    ),
    (
        Fate::Irrelevant(REPORT),
        "per_job_logs write_bw_log bwavgtime write_iops_log iopsavgtime log_entries log_avg_msec \
         log_hist_msec log_hist_coarseness write_hist_log log_max_value log_offset log_prio log_compression \
         log_compression_cpus log_store_compressed log_unix_epoch log_alternate_epoch log_alternate_epoch_clock_id \
         block_error_percentiles group_reporting new_group stats clat_percentiles lat_percentiles slat_percentiles \
         percentile_list significant_figures disk_util unified_rw_reporting unit_base error_dump verify_dump",
    ),
    (
        Fate::Irrelevant("this program uses its own clock and reports its cost"),
        "clocksource gtod_reduce disable_lat disable_clat disable_slat disable_bw_measurement|disable_bw gtod_cpu",
    ),
    (Fate::Irrelevant("workers are threads, on every engine"), "thread"),
    (
        Fate::Irrelevant("the study's seed decides what is drawn at random, the same in every run"),
        "randrepeat allrandrepeat random_generator softrandommap",
    ),
    (
        Fate::Irrelevant("memory for data is this program's own"),
        "mem|iomem iomem_align|mem_align hugepage-size lockmem userspace_reap fixedbufs registerfiles nonvectored",
    ),
    (
        Fate::Irrelevant("a study makes its files before the run, flushes them, and removes them afterwards"),
        "create_serialize create_fsync create_on_open allow_file_create unlink unique_filename allow_mounted_write",
    ),
    (Fate::Irrelevant("data differ in every write"), "refill_buffers scramble_buffers"),
    (
        Fate::Irrelevant("it only affects trims, and the workload has none"),
        "trim_percentage trim_verify_zero trim_backlog trim_backlog_batch",
    ),
    (
        Fate::Approximated(BATCH),
        "iodepth_batch|iodepth_batch_submit iodepth_batch_complete_min|iodepth_batch_complete \
         iodepth_batch_complete_max iodepth_low io_submit_mode",
    ),
    (
        Fate::Approximated(
            "every error is counted and named, a worker goes on, and the run fails; \
                         `[run] max_errors` says when it gives up",
        ),
        "ignore_error continue_on_error exitall_on_error",
    ),
    (
        Fate::Approximated(VERIFY),
        "verify_interval verify_offset verify_pattern verify_fatal verify_async verify_async_cpus verify_backlog \
         verify_backlog_batch experimental_verify verify_state_load verify_state_save",
    ),
    (
        Fate::Unsupported(CONTENT),
        "buffer_pattern buffer_compress_percentage buffer_compress_chunk dedupe_percentage dedupe_mode \
         dedupe_working_set_percentage dedupe_global",
    ),
    (
        Fate::Unsupported(PROCESS),
        "nice prio prioclass cpumask cpus_allowed cpus_allowed_policy numa_cpu_nodes numa_mem_policy cgroup \
         cgroup_nodelete cgroup_weight uid gid",
    ),
    (
        Fate::Unsupported("requests have no priorities"),
        "cmdprio_percentage cmdprio_class cmdprio cmdprio_bssplit",
    ),
    (
        Fate::Unsupported("requests are submitted to the kernel in the ordinary way"),
        "hipri hipri_percentage uncached nowait force_async sqthread_poll sqthread_poll_cpu serialize_overlap thp \
         write_hint",
    ),
    (
        Fate::Unsupported(
            "a command beside the workload: `[run] cache_hook` and `[[collect]]` of the study can do it",
        ),
        "exec_prerun exec_postrun",
    ),
    (
        Fate::Unsupported("a job that is too slow is not ended: the results show how slow it was"),
        "rate_min|ratemin rate_iops_min rate_cycle|ratecycle max_latency",
    ),
    (
        Fate::Unsupported("`[load]` finds the highest rate that keeps a latency goal; see docs/load.md"),
        "latency_target latency_window latency_percentile latency_run",
    ),
    (
        Fate::Unsupported("the warm-up is removed by a rule, and replicates give the uncertainty"),
        "steadystate|ss steadystate_duration|ss_dur steadystate_ramp_time|ss_ramp",
    ),
    (Fate::Unsupported("rates of jobs are independent"), "flow_id flow flow_sleep"),
    (Fate::Unsupported("files stay to the end of the study"), "unlink_each_loop"),
    (Fate::Unsupported("jobs that end do not end others"), "exit_what exitall_what"),
    (
        Fate::Unsupported("the pattern comes from a file that is not imported"),
        "read_iolog_chunked replay_no_stall replay_redirect replay_scale replay_align replay_time_scale replay_skip \
         merge_blktrace_file merge_blktrace_scalars merge_blktrace_iters",
    ),
    (
        Fate::Irrelevant("an option of a profile, which does nothing in a job"),
        "device-names load test-duration threads-per-queue read-req-num-512-blocks large-block-op-kbytes prep block \
         numruns dir threads",
    ),
    (Fate::Unsupported("a profile defines its own jobs"), "profile"),
    (
        Fate::Unsupported(DEVICE),
        "ioscheduler zonecapacity read_beyond_wp max_open_zones job_max_open_zones ignore_zone_limits \
         zone_reset_threshold zone_reset_frequency skip_bad readfua writefua sg_write_mode stream_id cmd_type md_per_io_size",
    ),
    (
        Fate::Unsupported(ENGINE),
        "cpuload cpuchunks cpumode exit_on_io_done hostname port protocol|proto nodelay listen pingpong interface ttl \
         window_size mss donorname inplace bindname verb serverip direct_write_to_pmem busy_wait_polling namenode \
         hdfsdirectory clustername rbdname pool clientname conf busy_poll touch_objects volume brick single-instance \
         single_instance chunk_size object_class cont uri gpu_dev_ids gpu_dev_id cuda_io http_host http_user http_pass https \
         http_mode http_s3_region http_s3_key http_s3_keyid http_s3_sse_customer_key http_s3_sse_customer_algorithm \
         http_s3_storage_class http_swift_auth_token http_verbose program arguments grace_time std_redirect \
         xnvme_async xnvme_sync xnvme_admin xnvme_dev_nsid xnvme_iovec svc_id",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_stands_twice() {
        let mut names: Vec<&str> = TABLE
            .iter()
            .flat_map(|(_, options)| options.split_whitespace())
            .flat_map(|option| option.split('|'))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }

    /// What the installed fio lists is known: options of jobs, and of its engines.
    #[test]
    #[allow(clippy::print_stderr, reason = "says why it is skipped")]
    fn every_option_that_fio_lists_is_known() {
        let fio = |argument: &str| {
            let output = std::process::Command::new("fio").arg(argument).output().ok()?;
            String::from_utf8(output.stdout).ok()
        };
        let Some(version) = fio("--version").filter(|version| version.starts_with("fio-3.33")) else {
            eprintln!("skipped: fio 3.33 is not installed");
            return;
        };
        let listed = |text: String| -> Vec<String> {
            let line = |line: &str| line.split_once(':').map(|(name, _)| name.trim().to_owned());
            text.lines().filter_map(line).filter(|name| !name.is_empty() && !name.contains(' ')).collect()
        };
        let mut names = listed(fio("--cmdhelp=all").unwrap());
        assert!(names.len() > 200, "{version}: {names:?}");
        let engines = fio("--enghelp").unwrap();
        for engine in engines.lines().skip(1).map(str::trim).filter(|engine| !engine.is_empty()) {
            names.extend(listed(fio(&format!("--enghelp={engine}")).unwrap()));
        }
        let unknown: Vec<&String> = names.iter().filter(|name| find(name).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:?}");
    }

    #[test]
    fn aliases_lead_to_the_option() {
        assert_eq!(find("blocksize"), Some(("bs", Fate::Depends)));
        assert_eq!(find("bs"), Some(("bs", Fate::Depends)));
        assert_eq!(find("bsize"), None);
        assert!(matches!(find("disable_bw"), Some(("disable_bw_measurement", Fate::Irrelevant(_)))));
    }

    #[test]
    fn a_slip_of_the_pen_is_seen() {
        assert_eq!(similar("iodpeth"), Some("iodepth"));
        assert_eq!(similar("blocksiz"), Some("blocksize"));
        assert_eq!(similar("completely_different"), None);
    }
}
