//! Calls that pass one after the other: a lock, a single thread, a limited rate, a link.

use super::{client_cpu, emulated_delay};
use crate::prelude::*;
use crate::results::account::{Account, Part};
use crate::results::doubts::noisy_host::is_noisy;
use crate::results::limits::laws::pauses;
use crate::results::link::usage;

/// Workers that a line is told by.
const LEAST_WORKERS: usize = 4;
/// How far the first calls may be from where a line has them, of the mean: most of them, and all on average.
const MOST_OFF: f64 = 0.3;
const MOST_OF_THEM: f64 = 0.75;
const OFF_ON_AVERAGE: f64 = 0.15;
/// Between what all calls but the quickest and slowest tenths are, of the mean.
const ALIKE: (f64, f64) = (0.5, 1.6);
/// Nanoseconds from one call to the next; more where other programs take the processors.
const LEAST_NS: f64 = 0.3e6;
const LEAST_NS_NOISY: f64 = 1e6;
/// Parts of the calls' time that another finding tells of.
const MOST_ELSEWHERE: f64 = 0.3;
/// Bytes of a call from which on a link may be what they wait for.
const LARGE: f64 = 32_768.0;

pub(super) const DETECTOR: Detector = Detector { id: "served-in-turn", detect };

/// Calls of so many workers that pass one after the other.
pub(super) struct Line<'a> {
    series: &'a SeriesRecording,
    workers: f64,
    mean_ns: f64,
}

impl Line<'_> {
    /// From one call to the next.
    fn service_ns(&self) -> f64 {
        self.mean_ns / self.workers
    }

    fn bytes(&self) -> f64 {
        self.series.total.bytes as f64 / self.series.total.count.max(1) as f64
    }

    /// Bytes a second that pass; `None` where calls have hardly any.
    pub(super) fn bandwidth(&self) -> Option<f64> {
        (self.bytes() >= LARGE).then(|| self.bytes() / self.service_ns() * 1e9)
    }
}

/// The line that calls of the dearest kind wait in; `None` also where another finding says what they wait for.
pub(super) fn line<'a>(measured: &Measured<'a>) -> Option<Line<'a>> {
    if measured.recording.is_open_loop() || measured.workload.is_some_and(pauses) {
        return None;
    }
    let line = in_line(measured)?;
    let elsewhere = Account::of(measured).is_some_and(|account| {
        account.share(Part::ClientQueue) >= MOST_ELSEWHERE || account.share(Part::Host) >= MOST_ELSEWHERE
    });
    let delayed = matches!((emulated_delay::DETECTOR.detect)(measured), Verdict::Found(_));
    let full = usage(measured).is_some_and(|usage| usage.is_limit());
    (!elsewhere && !delayed && !full && !client_cpu::is_full(measured)).then_some(line)
}

fn in_line<'a>(measured: &Measured<'a>) -> Option<Line<'a>> {
    let recording = measured.recording;
    let (number, series) =
        recording.series.iter().enumerate().max_by_key(|(_, series)| series.total.sum_ns)?;
    let mut of = recording.workers.iter().flat_map(|worker| &worker.series);
    let of = of.by_ref().filter(|of| of.series as usize == number && of.count > 1);
    let (mut first, mut began): (Vec<f64>, Vec<f64>) =
        of.filter_map(|of| Some((of.first_latency_ns? as f64, of.first_start_ns? as f64))).unzip();
    let latency = series.total.latency.decode().ok().filter(|latency| !latency.is_empty())?;
    let (workers, mean_ns) = (first.len() as f64, series.total.sum_ns as f64 / series.total.count as f64);
    let off = MOST_OFF * mean_ns;
    first.sort_by(f64::total_cmp);
    began.sort_by(f64::total_cmp);
    let ranks = (1..=first.len()).map(|k| k as f64);
    let offs: Vec<f64> = ranks.zip(&first).map(|(k, first)| (first - k / workers * mean_ns).abs()).collect();
    let near = offs.iter().filter(|one| **one <= off).count() as f64;
    let in_turn =
        near >= MOST_OF_THEM * workers && offs.iter().sum::<f64>() <= OFF_ON_AVERAGE * workers * mean_ns;
    let at = |quantile: f64| latency.value_at_quantile(quantile) as f64 / mean_ns;
    let is = first.len() >= LEAST_WORKERS
        && began.last()? - began.first()? <= off
        && in_turn
        && at(0.1) >= ALIKE.0
        && at(0.9) <= ALIKE.1;
    let line = Line { series, workers, mean_ns };
    let least = if is_noisy(measured) { LEAST_NS_NOISY } else { LEAST_NS };
    (is && line.service_ns() >= least).then_some(line)
}

fn detect(measured: &Measured<'_>) -> Verdict {
    if !measured.is_nfs() || measured.is_virtual() || measured.operations() == 0 {
        return Verdict::Irrelevant;
    }
    let Some(line) = line(measured) else { return Verdict::Clear };
    let (service, workers, label) = (line.service_ns(), line.workers, &line.series.key.label);
    let most = match line.bandwidth() {
        Some(bandwidth) => format!("{:.0}/s or {}", 1e9 / service, rate(bandwidth)),
        None => format!("{:.0}/s", 1e9 / service),
    };
    let part = 1.0 - 1.0 / workers;
    let what = format!(
        "Calls pass one after the other: one {label} that is alone takes {}, those of {workers:.0} workers take {}, {} of it in line. No more \
         than {most} pass, however many wait.",
        time(service),
        time(line.mean_ns),
        percent(part)
    );
    let wait = if line.bandwidth().is_some() {
        "Look for what lets one pass at a time: a link, a limit of bytes or requests per second, a lock of the file or directory, a single thread or disk."
    } else {
        "Look for what lets one pass at a time: a limit of requests per second, a lock of the file or directory, a single thread or disk."
    };
    let remedy = Remedy::new(format!("{wait} More workers do not help."))
        .by(Need::Anywhere, "--set workload.NAME.files=8   # and other numbers of files and sizes: whether the line is one of a file, of calls or of bytes")
        .confirmed_by("a factor `workers` with three levels: the rate stays, the latency grows with them");
    Verdict::Found(
        Finding::new(Confidence::Likely, what)
            .advised(remedy)
            .with([
                Evidence::nanoseconds("from one call to the next", service),
                Evidence::nanoseconds("mean latency", line.mean_ns),
                Evidence::number("workers", workers),
                Evidence::bytes("bytes of a call", line.bytes()),
            ])
            .costs(share(part, 1.0)),
    )
}

#[cfg(test)]
mod tests {
    use benchmaster_record::model::OperationKind;
    use benchmaster_record::recording::RpcSource;

    use super::*;
    use crate::results::phenomena::made;

    /// Eight workers' READs of 16 KiB with these first latencies, and 40 ms each afterwards, in milliseconds.
    fn verdict(first: impl Fn(usize) -> f64, latencies: &[(u64, u64)]) -> Verdict {
        let mut recording = made::recording("read", 10.0);
        made::series(&mut recording, OperationKind::Read, 16_384, latencies);
        made::workers(&mut recording, &[1.0; 8]);
        for (at, worker) in recording.workers.iter_mut().enumerate() {
            worker.series[0].first_latency_ns = Some((first(at) * 1e6) as u64);
        }
        made::rpcs(&mut recording, RpcSource::Client, "3", &[("READ", 2_000, 16_384, 0.0, 40_000.0)]);
        made::judge(recording, detect)
    }

    #[test]
    fn first_calls_tell_a_line_from_a_delay() {
        let all = [(40_000_000, 2_000)];
        let Verdict::Found(found) = verdict(|at| 5.0 * (8 - at) as f64, &all) else { panic!() };
        assert!(
            found.what.starts_with("Calls pass one after the other: one read that is alone takes 5 ms, those of 8 workers take 40 ms, 88 % of it in line. No more than 200/s"),
            "{}",
            found.what
        );
        // One of them was disturbed.
        assert!(matches!(
            verdict(|at| if at == 3 { 60.0 } else { 5.0 * (8 - at) as f64 }, &all),
            Verdict::Found(_)
        ));
        // All take as long from the beginning on; service times that vary with nobody in line.
        assert_eq!(verdict(|_| 40.0, &all), Verdict::Clear);
        let vary = [(4_000_000, 400), (20_000_000, 700), (50_000_000, 600), (130_000_000, 300)];
        assert_eq!(verdict(|at| 6.0 * (at + 1) as f64, &vary), Verdict::Clear);
        // A fifth of a millisecond each.
        assert_eq!(verdict(|at| 0.2 * (at + 1) as f64, &[(1_600_000, 9_000)]), Verdict::Clear);
    }
}
