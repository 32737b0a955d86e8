//! Processor time and memory of the whole host.

use std::{fs, io};

/// Time all processors together spent, in clock ticks since the start of the system (the `cpu` line of `/proc/stat`): in user
/// programs (virtual machines included), in those of low priority, in the kernel, idle, idle while I/O was outstanding,
/// serving interrupts, serving soft interrupts (network and block completion among them), and wanted by this virtual machine
/// but given to others by the hypervisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuTimes([u64; 8]);

const IDLE: [usize; 2] = [3, 4];
const STEAL: usize = 7;

/// Bytes that the kernel has written from its page cache since the start of the system, to disks and to servers
/// (`nr_written` of `/proc/vmstat`).
pub fn written_back_bytes() -> io::Result<u64> {
    read_and_parse("/proc/vmstat", written_pages)
        .map(|pages| pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Pages that were written, by the text of `/proc/vmstat`.
fn written_pages(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("nr_written "))?.trim().parse().ok()
}

impl CpuTimes {
    /// Reads `/proc/stat`.
    pub fn read() -> io::Result<Self> {
        read_and_parse("/proc/stat", Self::parse)
    }

    /// Parses the text of `/proc/stat`. Fields that an old kernel does not have are 0.
    pub fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
        let fields: Vec<u64> =
            line.split_ascii_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
        let mut times = [0; 8];
        times.iter_mut().zip(&fields).for_each(|(time, field)| *time = *field);
        (fields.len() >= 4).then_some(Self(times))
    }

    /// Ticks from `earlier` to `self`. The kernel may take back some time of `idle` and `iowait`; that counts as none.
    fn since(self, earlier: Self) -> Self {
        let mut times = self.0;
        times.iter_mut().zip(earlier.0).for_each(|(time, before)| *time = time.saturating_sub(before));
        Self(times)
    }

    fn busy(self) -> u64 {
        self.total() - IDLE.map(|at| self.0[at]).iter().sum::<u64>()
    }

    fn total(self) -> u64 {
        self.0.iter().sum()
    }
}

/// Share of processor time, from 0 to 1, in which there was work. Stolen time counts, as work was waiting then.
/// `None` when no tick has passed.
pub fn busy_share(earlier: CpuTimes, later: CpuTimes) -> Option<f64> {
    share(earlier, later, CpuTimes::busy)
}

/// Share of processor time, from 0 to 1, that the hypervisor gave to others. `None` when no tick has passed.
pub fn steal_share(earlier: CpuTimes, later: CpuTimes) -> Option<f64> {
    share(earlier, later, |times| times.0[STEAL])
}

fn share(earlier: CpuTimes, later: CpuTimes, part: fn(CpuTimes) -> u64) -> Option<f64> {
    let passed = later.since(earlier);
    (passed.total() > 0).then(|| part(passed) as f64 / passed.total() as f64)
}

/// Memory of the host in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Memory {
    /// Usable by the system.
    pub total: u64,
    /// Can be used without swapping; `None` before Linux 3.14.
    pub available: Option<u64>,
    /// In the page cache.
    pub cached: u64,
    /// In the page cache and waiting to be written.
    pub dirty: u64,
}

/// Reads `/proc/meminfo`.
pub fn memory() -> io::Result<Memory> {
    read_and_parse("/proc/meminfo", parse_memory)
}

/// Parses the text of `/proc/meminfo`.
pub fn parse_memory(text: &str) -> Option<Memory> {
    Some(Memory {
        total: kib_field(text, "MemTotal")?,
        available: kib_field(text, "MemAvailable"),
        cached: kib_field(text, "Cached")?,
        dirty: kib_field(text, "Dirty")?,
    })
}

/// The value in bytes of a `Name:   1234 kB` line.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    let kib: u64 = value.trim().strip_suffix("kB")?.trim_end().parse().ok()?;
    kib.checked_mul(1024)
}

fn read_and_parse<T>(path: &str, parse: impl FnOnce(&str) -> Option<T>) -> io::Result<T> {
    let text = fs::read_to_string(path).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot read {path}: {error}; is /proc mounted?"))
    })?;
    parse(&text).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, format!("{path} is not in the format that Linux writes"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "cpu  108202 7236 11893 424744 1931 7 191 3630 0 0\ncpu0 54000 3600 5900 212000 900 3 91 1800 0 0\nintr 1\n";

    #[test]
    fn pages_that_were_written_are_counted() {
        assert_eq!(written_pages("nr_dirtied 12\nnr_written 345\npgpgin 7\n"), Some(345));
        assert_eq!(written_pages("pgpgin 7\n"), None);
    }

    #[test]
    fn the_summary_line_is_parsed() {
        let times = CpuTimes::parse(STAT).unwrap();
        assert_eq!(times.0, [108_202, 7_236, 11_893, 424_744, 1_931, 7, 191, 3_630]);
        // Linux 2.4 had four fields.
        assert_eq!(CpuTimes::parse("cpu  1 2 3 4\n").unwrap().0, [1, 2, 3, 4, 0, 0, 0, 0]);
        for broken in ["", "cpu0 1 2 3 4\n", "cpu  1 2 3\n", "cpu  1 2 x 4\n"] {
            assert_eq!(CpuTimes::parse(broken), None, "{broken:?}");
        }
    }

    #[test]
    fn shares_are_of_the_time_that_passed() {
        let earlier = CpuTimes([100, 0, 0, 1_000, 50, 0, 0, 0]);
        let later = CpuTimes([130, 0, 10, 1_040, 45, 0, 0, 20]);
        assert_eq!(busy_share(earlier, later), Some(0.6));
        assert_eq!(steal_share(earlier, later), Some(0.2));
        assert_eq!(busy_share(later, later), None);
    }

    #[test]
    fn memory_fields_are_parsed() {
        let text = "MemTotal:       24684096 kB\nMemFree:        24260668 kB\nMemAvailable:   24309532 kB\n\
                    Buffers:            1296 kB\nCached:           214860 kB\nSwapCached:            0 kB\n\
                    Dirty:               148 kB\nHugePages_Total:       0\n";
        let memory = parse_memory(text).unwrap();
        assert_eq!(memory.total, 24_684_096 * 1024);
        assert_eq!(memory.available, Some(24_309_532 * 1024));
        assert_eq!((memory.cached, memory.dirty), (214_860 * 1024, 148 * 1024));
        let old = "MemTotal: 8 kB\nCached: 4 kB\nDirty: 0 kB\n";
        assert_eq!(parse_memory(old).unwrap().available, None);
        assert_eq!(parse_memory("MemTotal: 8\nCached: 4 kB\nDirty: 0 kB\n"), None);
    }

    #[test]
    fn this_host_can_be_read() {
        let times = CpuTimes::read().unwrap();
        assert!(times.total() > 0);
        let memory = memory().unwrap();
        assert!(memory.total > 0 && memory.available.is_none_or(|available| available <= memory.total));
    }

    #[test]
    fn errors_name_the_file() {
        let missing = read_and_parse("/no/such/file", |_| Some(())).unwrap_err().to_string();
        assert!(missing.starts_with("cannot read /no/such/file: "), "{missing}");
        let odd = read_and_parse("/proc/version", |_| None::<()>).unwrap_err().to_string();
        assert_eq!(odd, "/proc/version is not in the format that Linux writes");
    }
}
