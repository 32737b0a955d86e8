//! A readahead that is small for the way to the server.

use crate::prelude::*;

pub(super) const DETECTOR: Detector = Detector { id: "small-readahead", detect };

const SMALL: u64 = 128 << 10;
const LEAST_READS: u64 = 100;
const LEAST_ROUND_TRIP_NS: f64 = 1e6;
const LEAST_WAIT: f64 = 0.3;

fn detect(measured: &Measured<'_>) -> Verdict {
    let Some((rpc, _)) = measured.rpcs().filter(|(rpc, _)| rpc.source == RpcSource::Kernel) else {
        return Verdict::Irrelevant;
    };
    let Some(read) = measured.rpc("READ") else { return Verdict::Irrelevant };
    // A hook of the study may have changed it since the session began.
    let Some(ahead) = measured.recording.host.read_ahead_kib.map(|kib| kib << 10) else {
        return Verdict::Unknown(
            "the readahead of the mount is not known (`read_ahead_kb` of its device in /sys/class/bdi)"
                .into(),
        );
    };
    let mean = read.bytes_received as f64 / read.ops as f64;
    let round_trip = read.rtt_ns as f64 / read.ops as f64;
    // Replies have headers of some hundred bytes.
    let sequential = mean > ahead as f64 / 2.0 && mean <= ahead as f64 + 1024.0;
    let reads: u64 = measured.of_kind(OperationKind::Read).map(|series| series.total.sum_ns).sum();
    let workers = measured.recording.workers.len().max(1) as f64 * measured.recording.length_ns.max(1) as f64;
    let small = ahead > 0 && ahead <= SMALL && ahead < rpc.connection.rsize;
    let slow = round_trip >= LEAST_ROUND_TRIP_NS && reads as f64 / workers >= LEAST_WAIT;
    if !(small && sequential && slow) || read.ops < LEAST_READS {
        return Verdict::Clear;
    }
    let part = share(reads as f64, measured.operation_ns() as f64);
    let what = format!(
        "{} READs of {} on average, the readahead of the mount, took {} each: a reader gets little more than that per round trip, and rsize is {}.",
        read.ops,
        size(mean),
        time(round_trip),
        size(rpc.connection.rsize as f64)
    );
    Verdict::Found(
        Finding::new(Confidence::Likely, what).advised(Remedy::new("Make the readahead as large as what is under way: rate · round trip time, or 15 · rsize as before Linux 5.4.")
                .by(
                    Need::KernelClient,
                    format!(
                        "echo {} > /sys/class/bdi/$(mountpoint -d /MOUNT)/read_ahead_kb   # 15 · rsize; for good: nfsrahead in /etc/nfs.conf",
                        15 * rpc.connection.rsize / 1024
                    ),
                )
                .confirmed_by("studies/lab-readahead.toml has the readahead as a factor"))
        .with([
            Evidence::bytes("readahead of the mount (read_ahead_kb)", ahead as f64),
            Evidence::bytes("mean bytes of a READ, with headers", mean),
            Evidence::nanoseconds("mean round trip time of a READ", round_trip),
            Evidence::bytes("`rsize`", rpc.connection.rsize as f64),
        ])
        .costs(part),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::testing::Made;

    /// READs of so many bytes that take so long, with this readahead.
    fn made(bytes: u64, rtt_ns: u64, kib: Option<u64>) -> Made {
        let mut made = Made::served().reading();
        made.recording().host.read_ahead_kib = kib;
        let read = made.rows().iter_mut().find(|row| row.operation == "READ").unwrap();
        (read.ops, read.bytes_received, read.rtt_ns) = (1000, 1000 * (bytes + 128), 1000 * rtt_ns);
        let recording = made.recording();
        let busy = recording.length_ns * recording.workers.len() as u64;
        let series = recording.series.iter_mut().find(|series| series.key.operation == OperationKind::Read);
        series.unwrap().total.sum_ns = busy;
        let rpc = recording.rpc.as_mut().unwrap();
        (rpc.source, rpc.connection.rsize) = (RpcSource::Kernel, 1 << 20);
        made
    }

    #[test]
    fn small_readahead_over_a_long_way_is_told() {
        let found = made(128 << 10, 10_000_000, Some(128)).found(&DETECTOR);
        assert!(
            found.what.contains("took 10 ms each") && found.what.contains("rsize is 1 MiB"),
            "{}",
            found.what
        );
        assert!(found.remedy.command.unwrap().starts_with("echo 15360 > "));
        // Over a short way, with a larger one, or at random.
        assert_eq!(made(128 << 10, 300_000, Some(128)).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(1 << 20, 10_000_000, Some(15_360)).verdict(&DETECTOR), Verdict::Clear);
        assert_eq!(made(16 << 10, 10_000_000, Some(128)).verdict(&DETECTOR), Verdict::Clear);
        assert!(matches!(made(128 << 10, 10_000_000, None).verdict(&DETECTOR), Verdict::Unknown(_)));
        assert_eq!(Made::served().verdict(&DETECTOR), Verdict::Irrelevant);
    }
}
