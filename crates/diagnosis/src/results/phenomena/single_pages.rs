//! Reads that go over the wire page by page.

use super::tools::{all_execute_ns, digits, execute_ns, without_rpcs};
use crate::prelude::*;

/// Bytes of a page, and of what a reply has beside the data: at least 128 without attributes.
const PAGE: f64 = 4096.0;
const HEADER: f64 = 128.0;
/// Mean bytes of a READ: a page, and some that are larger.
const MOST: f64 = 1.25 * PAGE;
/// Pages of a read of the workload.
const LEAST_PAGES: f64 = 2.0;
/// READs for each read of the workload.
const LEAST_SPLIT: f64 = 1.5;
const LEAST_CALLS: u64 = 100;

pub(super) const DETECTOR: Detector = Detector { id: "single-page-reads", detect };

fn detect(measured: &Measured<'_>) -> Verdict {
    let count: u64 = measured.of_kind(OperationKind::Read).map(|series| series.total.count).sum();
    let asked = measured.bytes(OperationKind::Read) as f64 / count.max(1) as f64;
    if asked < LEAST_PAGES * PAGE {
        return Verdict::Irrelevant;
    }
    let Some((rpc, _)) = measured.rpcs() else {
        return without_rpcs(measured);
    };
    let Some(read) = measured.rpc("READ").filter(|row| row.ops >= LEAST_CALLS) else { return Verdict::Clear };
    let mean = (read.bytes_received as f64 / read.ops as f64 - HEADER).max(0.0);
    let split = read.ops as f64 / count as f64;
    if mean > MOST || split < LEAST_SPLIT || (rpc.connection.rsize as f64) < LEAST_PAGES * PAGE {
        return Verdict::Clear;
    }
    let part =
        (1.0 - 1.0 / split) * share(execute_ns(measured, &["READ"]) as f64, all_execute_ns(measured) as f64);
    let what = format!(
        "Reads of {} become {} READs of {} each, one after the other, though the server would give {} at once.",
        size(asked),
        digits(split),
        size(mean),
        size(rpc.connection.rsize as f64)
    );
    let finding = Finding::new(Confidence::Likely, what)
        .with([
            Evidence::bytes("bytes of a read of the workload", asked),
            Evidence::bytes("data of a READ", mean),
            Evidence::number("READs for each read of the workload", split),
            Evidence::bytes("rsize", rpc.connection.rsize as f64),
        ])
        .costs(part);
    Verdict::Found(finding)
}

#[cfg(test)]
mod tests {
    use benchmaster_record::recording::RpcSource;

    use super::super::made;
    use super::*;

    fn verdict(io_size: u64, reads: u64, calls: u64, reply: u64) -> Verdict {
        let mut recording = made::recording("read", 10.0);
        made::series(&mut recording, OperationKind::Read, io_size, &[(3_000_000, reads)]);
        made::rpcs(&mut recording, RpcSource::Kernel, "4.1", &[("READ", calls, reply, 0.0, 180.0)]);
        made::judge(recording, detect)
    }

    #[test]
    fn sixteen_round_trips_of_a_page() {
        let Verdict::Found(found) = verdict(65_536, 1_000, 16_000, 4096 + 160) else { panic!() };
        assert!(found.what.starts_with("Reads of 64 KiB become 16 READs of 4.0 KiB each"), "{}", found.what);
        assert!((found.cost.unwrap().share - 15.0 / 16.0).abs() < 1e-9);
        // Whole reads; reads of a page; half of them cached; too few.
        assert_eq!(verdict(65_536, 1_000, 1_000, 65_536 + 160), Verdict::Clear);
        assert_eq!(verdict(4_096, 1_000, 1_000, 4096 + 160), Verdict::Irrelevant);
        assert_eq!(verdict(8_192, 1_000, 1_499, 4096 + 160), Verdict::Clear);
        assert!(matches!(verdict(8_192, 1_000, 1_500, 4096 + 160), Verdict::Found(_)));
        assert_eq!(verdict(65_536, 6, 99, 4096 + 160), Verdict::Clear);
        assert_eq!(verdict(65_536, 1_000, 16_000, 5_120 + 129), Verdict::Clear);
    }
}
