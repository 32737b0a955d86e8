//! Made-up findings for tests.

use benchmaster_diagnosis::diagnosis::{Absent, Diagnosis};
use benchmaster_diagnosis::finding::{
    At, AtTreatment, Confidence, Cost, CostOf, Evidence, Finding, Plot, Remedy,
};
use benchmaster_record::results::RunKey;

/// Four findings of different kinds, costliest first, and one condition that could not be checked.
pub(crate) fn diagnosis() -> Diagnosis {
    let finding = |id, what: &str, share, confidence, remedy: Remedy| {
        let runs = vec![RunKey { treatment: 0, replicate: 0 }, RunKey { treatment: 0, replicate: 1 }];
        let label = "io_size=4KiB".into();
        Finding {
            id,
            what: what.into(),
            place: "write: 2 of 4 runs, all with io_size=4KiB".into(),
            at: Some(At {
                workload: Some("write".into()),
                treatments: vec![AtTreatment { treatment: 0, label, runs, of: 2, cost: share }],
                plot: Some(Plot::Time),
                ..At::default()
            }),
            evidence: vec![Evidence::number("transmissions − ops of READ", 3.0)],
            tests: vec![],
            confidence,
            cost: share.map(|share| Cost {
                share,
                of: CostOf::Calls,
                estimate: "transmissions over calls".into(),
            }),
            remedy,
            also: Vec::new(),
        }
    };
    Diagnosis {
        findings: vec![
            finding(
                "retransmission",
                "3 of 25 calls were sent again.",
                Some(0.12),
                Confidence::Likely,
                Remedy::new("Look for loss | congestion.").fitted_with("ethtool -S eth0"),
            ),
            finding(
                "queue",
                "Calls waited 1.2 ms for a slot, 40 % of their time.",
                Some(0.05),
                Confidence::Certain,
                Remedy::new("Use more slots.")
                    .fitted_with("nfs.max_session_slots=256")
                    .confirmed_by("studies/lab-versions.toml"),
            ),
            finding(
                "reconnect",
                "The connection was re-established.",
                Some(0.01),
                Confidence::Certain,
                Remedy::new("Look."),
            ),
            finding("noisy-host", "Others ran.", None, Confidence::Possible, Remedy::new("Measure alone.")),
        ],
        absent: vec![Absent {
            id: "server-disk",
            place: "write, 4 runs".into(),
            why: "the server's disks were not sampled; run an agent there".into(),
        }],
        clear: vec!["cached-reads", "tcp-window"],
        ..Diagnosis::default()
    }
}
