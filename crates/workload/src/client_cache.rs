//! The page caches of the clients of this process, sampled.

use benchmaster_nfs_client::cache::CacheCount;
use benchmaster_nfs_client::options::Cache;
use benchmaster_telemetry::sampling::{MetricInfo, Reading as Sample, SampleError, Sampler, Sink};

use crate::area::{Location, WorkArea};

/// Reads what the caches of Benchmaster's own clients do.
#[derive(Debug)]
pub struct ClientCaches;

impl ClientCaches {
    /// For a target whose clients have caches.
    pub fn of(area: &WorkArea) -> Option<Box<dyn Sampler>> {
        match area.place() {
            Location::Nfs(nfs) if nfs.target().options.cache == Cache::Linux => Some(Box::new(Self)),
            Location::Nfs(_) | Location::Directory(_) => None,
        }
    }
}

/// Names as in the counters of the kernel's client, where it has them.
const fn metric(count: CacheCount) -> MetricInfo {
    match count {
        CacheCount::Read => MetricInfo::counter("pages_used", "pages", "", "read by workers"),
        CacheCount::Missed => MetricInfo::counter("pages_missed", "pages", "", "of them, waited for"),
        CacheCount::Ahead => {
            MetricInfo::counter("pages_ahead", "pages", "", "read from the server without being requested")
        }
        CacheCount::AheadUsed => {
            MetricInfo::counter("pages_ahead_used", "pages", "", "of them, read by workers later")
        }
        CacheCount::Evicted => MetricInfo::counter("pages_evicted", "pages", "", "dropped to make room"),
        CacheCount::Written => {
            MetricInfo::counter("pages_written", "pages", "", "written from the cache to the server")
        }
        CacheCount::Throttled => {
            MetricInfo::counter("throttled", "ns", "", "time that writers were held back")
        }
        CacheCount::Cached => MetricInfo::gauge("nr_file_pages", "pages", "", "cached"),
        CacheCount::Dirty => MetricInfo::gauge("nr_dirty", "pages", "", "waiting to be written"),
        CacheCount::Writeback => MetricInfo::gauge("nr_writeback", "pages", "", "being written"),
        CacheCount::Unstable => MetricInfo::gauge(
            "nr_unstable",
            "pages",
            "",
            "written and not committed, when a writer last looked",
        ),
    }
}

impl Sampler for ClientCaches {
    fn name(&self) -> &'static str {
        "client_cache"
    }

    fn read(&mut self, out: &mut Sample<'_>) -> Result<(), SampleError> {
        for count in CacheCount::ALL {
            out.put(metric(count).metric(), "", count.of_process() as f64);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documented() {
        let documented = include_str!("../../../docs/metrics.md");
        for info in CacheCount::ALL.map(metric) {
            let kind =
                if info.kind == benchmaster_telemetry::sampling::Kind::Counter { "counter" } else { "gauge" };
            let row = format!("| `{}` | {} | {kind} | {} |", info.name, info.unit, info.about);
            assert!(documented.contains(&row), "docs/metrics.md lacks {row}");
        }
    }
}
