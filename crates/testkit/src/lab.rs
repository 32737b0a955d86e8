//! A made-up study done in a lab.

use benchmaster_record::results::LabTime;
use benchmaster_record::results::{LabMachine, LabRecord, StudyResults};

/// Makes the runs those of a lab with two clients and the kernel's server, on this back-end with this kernel. Of runs that
/// failed the consoles are kept.
pub fn in_lab(results: &mut StudyResults, back_end: &str, kernel: &str) {
    for run in &mut results.runs {
        let failed = run.failure.is_some();
        let machine = |name: &str| LabMachine {
            name: name.to_owned(),
            kernel: kernel.to_owned(),
            kernel_hash: format!("{:064x}", kernel.len()),
            kernel_origin: "packaged (user-mode-linux)".into(),
            memory: if name == "server" { 1 << 30 } else { 256 << 20 },
            boot_ns: 1_700_000_000,
            console: failed
                .then(|| format!("consoles/run-{}-{}/{name}.log", run.key.treatment, run.key.replicate)),
        };
        run.lab = Some(LabRecord {
            back_end: back_end.to_owned(),
            time: LabTime::Real,
            server: "knfsd".into(),
            emulated: false,
            image: format!("{:064x}", 7),
            wake_ups: 200.0,
            machines: ["server", "c1", "c2"].map(machine).into(),
        });
    }
}
