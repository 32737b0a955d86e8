//! Named numbers of a window of time, computed from [`Samples`].
//!
//! Counters are taken between the edges of the window, where a straight line is drawn between the readings around an edge.
//! A counter that went back was started anew: what it counted before is kept, and it goes on from zero. Gauges are
//! averaged over time, and their maximum is that of the readings in the window and the values at its edges.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::samplers::diskstats::{Disk, iostat};
use crate::sampling::{Point, Samples, Series, table};

mod window;

pub use window::{growth, maximum, mean, value_at};

/// A number computed from samples.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Derived {
    pub value: f64,
    /// `B`, `B/s`, `ns`, `1/s`, `1` for shares and plain numbers.
    pub unit: Cow<'static, str>,
}

/// What is derived: a name, where `{}` stands for a device, an interface or a mount, its unit, and what it means.
pub const DERIVED: &[[&str; 3]] = &table::rows::<3, 40>(include_str!("derived/numbers.tsv"));

/// Computes all that the samples allow; what was not sampled is not there. Times are those of the points.
pub fn derive(samples: &Samples, from_ns: i64, to_ns: i64) -> BTreeMap<String, Derived> {
    let mut out = BTreeMap::new();
    if to_ns <= from_ns {
        return out;
    }
    let window = Window { samples, from: from_ns, to: to_ns };
    window.cpu(&mut out);
    window.memory(&mut out);
    window.net(&mut out);
    window.disks(&mut out);
    window.nfsd(&mut out);
    window.rest(&mut out);
    out
}

type Numbers = BTreeMap<String, Derived>;

/// Puts a number under a name of the list; `{}` in it stands for the instance.
fn put(out: &mut Numbers, name: &'static str, instance: &str, value: Option<f64>) {
    let unit = DERIVED.iter().find(|[known, ..]| *known == name).map_or("1", |[_, unit, _]| *unit);
    if let Some(value) = value.filter(|value| value.is_finite()) {
        out.insert(name.replace("{}", instance), Derived { value, unit: Cow::Borrowed(unit) });
    }
}

struct Window<'a> {
    samples: &'a Samples,
    from: i64,
    to: i64,
}

impl Window<'_> {
    fn seconds(&self) -> f64 {
        (self.to - self.from) as f64 / 1e9
    }

    fn points(&self, sampler: &str, metric: &str, instance: &str) -> Option<&[Point]> {
        self.samples.find(sampler, metric, instance).map(|series| &series.points[..])
    }

    fn growth(&self, sampler: &str, metric: &str, instance: &str) -> Option<f64> {
        growth(self.points(sampler, metric, instance)?, self.from, self.to)
    }

    /// Of all instances that `wanted` says yes to; `None` if there is none.
    fn sum(&self, sampler: &str, metric: &str, wanted: impl Fn(&Series) -> bool) -> Option<f64> {
        let series = self.samples.of(sampler, metric).filter(|series| wanted(series));
        series.filter_map(|series| growth(&series.points, self.from, self.to)).reduce(|a, b| a + b)
    }

    fn instances(&self, sampler: &str, metric: &str) -> impl Iterator<Item = &str> {
        let is = move |series: &&Series| {
            (series.key.sampler.as_str(), series.key.metric.as_str()) == (sampler, metric)
        };
        self.samples.series.iter().filter(is).map(|series| series.key.instance.as_str())
    }

    /// Time of a kind that a processor, or all, spent. The kernel may take back some of `idle` and `iowait`: that is no start
    /// from zero, and counts as none.
    fn spent(&self, metric: &str, processor: &str) -> Option<f64> {
        let points = self.points("cpu", metric, processor)?;
        let (first, last) = (points.first()?.time_ns, points.last()?.time_ns);
        let at = |time: i64| value_at(points, time.clamp(first, last));
        Some((at(self.to)? - at(self.from)?).max(0.0))
    }

    /// Times of a processor, or of all: with work, and altogether.
    fn busy(&self, processor: &str) -> Option<(f64, f64)> {
        let part = |metric: &&str| self.spent(metric, processor);
        let work = ["nice", "system", "irq", "softirq", "steal"].iter().filter_map(part).sum::<f64>();
        let busy = self.spent("user", processor)? + work;
        let idle = self.spent("idle", processor)? + self.spent("iowait", processor).unwrap_or(0.0);
        Some((busy, busy + idle))
    }

    fn cpu(&self, out: &mut Numbers) {
        if let Some((busy, total)) = self.busy("").filter(|(_, total)| *total > 0.0) {
            let part = |metric: &&str| self.spent(metric, "");
            let share = |parts: &[&str]| Some(parts.iter().filter_map(part).sum::<f64>() / total);
            put(out, "cpu.busy", "", Some(busy / total));
            put(out, "cpu.user", "", share(&["user", "nice"]));
            put(out, "cpu.system", "", share(&["system", "irq", "softirq"]));
            put(out, "cpu.softirq", "", share(&["softirq"]));
            put(out, "cpu.iowait", "", share(&["iowait"]));
            put(out, "cpu.steal", "", share(&["steal"]));
        }
        let processors = self.instances("cpu", "user").filter(|processor| !processor.is_empty());
        let shares =
            processors.filter_map(|processor| self.busy(processor)).filter(|(_, total)| *total > 0.0);
        put(out, "cpu.busiest", "", shares.map(|(busy, total)| busy / total).max_by(f64::total_cmp));
        let rate = |metric| self.growth("cpu", metric, "").map(|growth| growth / self.seconds());
        put(out, "cpu.context_switches", "", rate("context_switches"));
        put(out, "cpu.interrupts", "", rate("interrupts"));
    }

    fn memory(&self, out: &mut Numbers) {
        let points = |metric| self.points("memory", metric, "");
        let most = |metric| maximum(points(metric)?, self.from, self.to);
        put(out, "memory.dirty_max", "", most("Dirty"));
        put(
            out,
            "memory.dirty_mean",
            "",
            points("Dirty").and_then(|points| mean(points, self.from, self.to)),
        );
        put(out, "memory.writeback_max", "", most("Writeback"));
        let grown = points("Cached")
            .and_then(|points| Some(value_at(points, self.to)? - value_at(points, self.from)?));
        put(out, "memory.cached_growth", "", grown);
    }

    fn net(&self, out: &mut Numbers) {
        for interface in self.instances("net", "rx_bytes") {
            put(out, "net.{}.received", interface, self.growth("net", "rx_bytes", interface));
            put(out, "net.{}.sent", interface, self.growth("net", "tx_bytes", interface));
        }
        let outside = |series: &Series| series.key.instance != "lo";
        put(out, "net.received", "", self.sum("net", "rx_bytes", outside));
        put(out, "net.sent", "", self.sum("net", "tx_bytes", outside));
        let dropped = ["rx_dropped", "tx_dropped"].map(|metric| self.sum("net", metric, outside));
        put(out, "net.dropped", "", dropped.into_iter().flatten().reduce(|a, b| a + b));
        let again = self.growth("net", "RetransSegs", "Tcp");
        put(out, "tcp.retransmitted", "", again);
        // Those sent again are not among those sent.
        let sent = self.growth("net", "OutSegs", "Tcp");
        let share = again.zip(sent).map(|(again, sent)| again / (again + sent));
        put(out, "tcp.retransmitted_share", "", share);
    }

    fn disks(&self, out: &mut Numbers) {
        for device in self.instances("diskstats", "reads") {
            let part = |metric| self.growth("diskstats", metric, device).unwrap_or(0.0);
            let disk = Disk {
                reads: part("reads"),
                read_bytes: part("read_bytes"),
                read_time_ns: part("read_time"),
                writes: part("writes"),
                written_bytes: part("written_bytes"),
                write_time_ns: part("write_time"),
                busy_time_ns: part("busy_time"),
                queue_time_ns: part("queue_time"),
            };
            let Some(columns) = iostat(&disk, self.seconds() * 1e9).filter(|_| disk != Disk::default())
            else {
                continue;
            };
            put(out, "disk.{}.reads", device, Some(columns.reads_per_second));
            put(out, "disk.{}.read", device, Some(columns.read_bytes_per_second));
            put(out, "disk.{}.read_wait", device, columns.read_wait_ns);
            put(out, "disk.{}.writes", device, Some(columns.writes_per_second));
            put(out, "disk.{}.written", device, Some(columns.written_bytes_per_second));
            put(out, "disk.{}.write_wait", device, columns.write_wait_ns);
            put(out, "disk.{}.wait", device, columns.wait_ns);
            put(out, "disk.{}.queue", device, Some(columns.queue_length));
            put(out, "disk.{}.utilization", device, Some(columns.utilization));
        }
    }

    fn nfsd(&self, out: &mut Numbers) {
        put(out, "nfsd.calls", "", self.growth("nfsd", "rpc_calls", ""));
        put(out, "nfsd.read", "", self.growth("nfsd", "read_bytes", ""));
        put(out, "nfsd.written", "", self.growth("nfsd", "written_bytes", ""));
        put(out, "nfsd.waits", "", self.sum("nfsd", "sockets-enqueued", |_| true));
    }

    fn rest(&self, out: &mut Numbers) {
        for resource in self.instances("pressure", "some") {
            let share = |metric| {
                self.growth("pressure", metric, resource).map(|stalled| stalled / 1e9 / self.seconds())
            };
            put(out, "pressure.{}.some", resource, share("some"));
            put(out, "pressure.{}.full", resource, share("full"));
        }
        put(out, "softnet.dropped", "", self.sum("softnet", "dropped", |_| true));
        put(out, "softnet.squeezed", "", self.sum("softnet", "time_squeeze", |_| true));
        let own = ["user", "system"].map(|metric| self.growth("process", metric, "self"));
        put(out, "process.cpu", "", own.into_iter().flatten().reduce(|a, b| a + b));
        let resident = self.points("process", "resident", "self");
        put(out, "process.resident_max", "", resident.and_then(|points| maximum(points, self.from, self.to)));
        put(out, "sampling.share", "", self.samples.cost.share());
    }
}

#[cfg(test)]
mod tests;
