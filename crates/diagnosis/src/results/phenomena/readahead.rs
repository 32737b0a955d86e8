//! More read from the server than by applications.

use super::tools::NO_RPCS;
use crate::prelude::*;

/// Bytes on the wire for each byte that applications read.
const LEAST_RATIO: f64 = 1.2;
/// Bytes that were read for nothing; twice as many for each worker, because each may end in the middle of what was read ahead.
const LEAST: u64 = 8 << 20;
/// Bytes of a reply beside the data.
const HEADER: u64 = 200;

pub(super) const DETECTOR: Detector = Detector { id: "readahead-waste", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let application = measured.bytes(OperationKind::Read);
    if application == 0 {
        return Verdict::Irrelevant;
    }
    let Some((rpc, _)) = measured.rpcs() else {
        return if measured.workload.is_some() && measured.run.service.is_none() {
            // A directory that is no NFS mount has no wire.
            Verdict::Irrelevant
        } else {
            Verdict::Unknown(NO_RPCS.into())
        };
    };
    let replies = measured.rpc("READ").map_or(0, |row| row.bytes_received.saturating_sub(row.ops * HEADER));
    let seconds = measured.seconds().max(1e-9);
    let (art, crt) = (application as f64 / seconds, replies as f64 / seconds);
    let excess = replies.saturating_sub(application);
    let workers = measured.recording.workers.len() as u64;
    if crt < LEAST_RATIO * art || excess < LEAST.max((workers * LEAST) / 4) {
        return Verdict::Clear;
    }
    let part = share(excess as f64, replies as f64);
    let what = format!(
        "The workload read {}, and {} came from the server for it: {} of what was moved was not requested.",
        rate(art),
        rate(crt),
        percent(part)
    );
    let confidence = match rpc.source {
        // Our own client counts nobody else's calls.
        RpcSource::Client => Confidence::Certain,
        RpcSource::Kernel => Confidence::Likely,
    };
    let remedy = Remedy::new("For random reads make the readahead smaller, down to the size of a read but not to 0, or let applications tell (`posix_fadvise(POSIX_FADV_RANDOM)`).")
        .by(Need::KernelClient, "echo 64 > /sys/class/bdi/$(mountpoint -d /MOUNT)/read_ahead_kb")
        .confirmed_by("`studies/lab-readahead.toml`, or `studies/paper000-random-read.toml` on the mount: both throughputs for several readaheads");
    let finding = Finding::new(confidence, what)
        .advised(remedy)
        .with([
            Evidence::bytes_per_second("read by the workload (ART)", art),
            Evidence::bytes_per_second("data in replies to READ (CRT)", crt),
            Evidence::number("READs for each read of the workload", reads(measured)),
        ])
        .costs_as(part, CostOf::WireBytes, "1 − ART / CRT");
    Verdict::Found(finding)
}

fn reads(measured: &Measured<'_>) -> f64 {
    let calls: u64 = measured.of_kind(OperationKind::Read).map(|series| series.total.count).sum();
    measured.rpc("READ").map_or(0.0, |row| row.ops as f64) / calls.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::super::made;
    use super::*;

    /// 4 KiB reads of an application, and data from the server.
    fn verdict(application: u64, wire: u64) -> Verdict {
        let mut recording = made::recording("read", 10.0);
        made::series(&mut recording, OperationKind::Read, 4096, &[(50_000, application / 4096)]);
        made::workers(&mut recording, &[1.0]);
        let ops = (wire / 65_536).max(1);
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &[("READ", ops, 65_536 + 200, 0.0, 300.0)]);
        made::judge(recording, detect)
    }

    #[test]
    fn limits_from_both_sides() {
        let mib = 1 << 20;
        let Verdict::Found(found) = verdict(66 * mib, 220 * mib) else { panic!() };
        assert!(found.what.contains("read 6.92 MB/s, and 23.1 MB/s"), "{}", found.what);
        assert!((found.cost.unwrap().share - 0.7).abs() < 0.001);
        assert_eq!(verdict(100 * mib, 119 * mib), Verdict::Clear);
        assert!(matches!(verdict(100 * mib, 121 * mib), Verdict::Found(_)));
        // A little more at the end of the run.
        assert_eq!(verdict(8 * mib, 15 * mib), Verdict::Clear);
        // From the cache.
        assert_eq!(verdict(100 * mib, mib), Verdict::Clear);
    }

    #[test]
    fn without_reads_and_without_counters() {
        assert_eq!(made::judge(made::recording("write", 1.0), detect), Verdict::Irrelevant);
        let mut recording = made::recording("read", 1.0);
        made::series(&mut recording, OperationKind::Read, 4096, &[(50_000, 100)]);
        assert_eq!(made::judge(recording, detect), Verdict::Irrelevant);
    }
}
