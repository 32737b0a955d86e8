//! The columns of `iostat -x`.

/// What a device did in some time: differences of its counters.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Disk {
    /// Reads completed.
    pub reads: f64,
    pub read_bytes: f64,
    /// Time of all reads together, in nanoseconds.
    pub read_time_ns: f64,
    /// Writes completed.
    pub writes: f64,
    pub written_bytes: f64,
    /// Time of all writes together, in nanoseconds.
    pub write_time_ns: f64,
    /// Time with at least one request under way, in nanoseconds.
    pub busy_time_ns: f64,
    /// Time of all requests under way together, in nanoseconds.
    pub queue_time_ns: f64,
}

/// What `iostat -x` prints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Iostat {
    /// `r/s`.
    pub reads_per_second: f64,
    /// `rkB/s`, in bytes.
    pub read_bytes_per_second: f64,
    /// `r_await` in nanoseconds; `None` without reads, where iostat prints 0.
    pub read_wait_ns: Option<f64>,
    /// `w/s`.
    pub writes_per_second: f64,
    /// `wkB/s`, in bytes.
    pub written_bytes_per_second: f64,
    /// `w_await` in nanoseconds; `None` without writes.
    pub write_wait_ns: Option<f64>,
    /// `await` of reads and writes together, in nanoseconds; `None` without any.
    pub wait_ns: Option<f64>,
    /// `aqu-sz`: mean number of requests under way.
    pub queue_length: f64,
    /// `%util` as a share: time with at least one request under way. A device that works on several requests at once is
    /// not at its limit when this is 1.
    pub utilization: f64,
}

/// The columns for what a device did in `elapsed_ns`. `None` when no time has passed.
pub fn iostat(disk: &Disk, elapsed_ns: f64) -> Option<Iostat> {
    if elapsed_ns <= 0.0 {
        return None;
    }
    let per_second = |count: f64| count * 1e9 / elapsed_ns;
    let each = |time: f64, count: f64| (count > 0.0).then(|| time / count);
    Some(Iostat {
        reads_per_second: per_second(disk.reads),
        read_bytes_per_second: per_second(disk.read_bytes),
        read_wait_ns: each(disk.read_time_ns, disk.reads),
        writes_per_second: per_second(disk.writes),
        written_bytes_per_second: per_second(disk.written_bytes),
        write_wait_ns: each(disk.write_time_ns, disk.writes),
        wait_ns: each(disk.read_time_ns + disk.write_time_ns, disk.reads + disk.writes),
        queue_length: disk.queue_time_ns / elapsed_ns,
        // The kernel counts in ticks: it may find more than has passed.
        utilization: (disk.busy_time_ns / elapsed_ns).min(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_those_computed_by_hand() {
        // In 2 s: 100 reads of 4 KiB at 3 ms each, 50 writes of 64 KiB at 8 ms each, busy for half of the time.
        let disk = Disk {
            reads: 100.0,
            read_bytes: 409_600.0,
            read_time_ns: 300e6,
            writes: 50.0,
            written_bytes: 3_276_800.0,
            write_time_ns: 400e6,
            busy_time_ns: 1e9,
            queue_time_ns: 700e6,
        };
        let found = iostat(&disk, 2e9).unwrap();
        let expected = Iostat {
            reads_per_second: 50.0,
            read_bytes_per_second: 204_800.0,
            read_wait_ns: Some(3e6),
            writes_per_second: 25.0,
            written_bytes_per_second: 1_638_400.0,
            write_wait_ns: Some(8e6),
            // 700 ms over 150 requests.
            wait_ns: Some(700e6 / 150.0),
            queue_length: 0.35,
            utilization: 0.5,
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn an_idle_device_has_no_waits_and_a_busy_one_no_more_than_all_the_time() {
        let idle = iostat(&Disk::default(), 1e9).unwrap();
        assert_eq!((idle.read_wait_ns, idle.write_wait_ns, idle.wait_ns), (None, None, None));
        assert_eq!((idle.reads_per_second, idle.queue_length, idle.utilization), (0.0, 0.0, 0.0));
        let busy = Disk { busy_time_ns: 1.004e9, ..Disk::default() };
        assert_eq!(iostat(&busy, 1e9).unwrap().utilization, 1.0);
        assert_eq!(iostat(&busy, 0.0), None);
    }
}
