//! Conformance of an NFS server, over the wire: versions 2 to 4.2 and the protocols beside them.
//!
//! All happens in one directory that is made for it and removed at the end.

mod callback;
mod checks;
mod client4;
mod connection;
mod ops;
mod state;
mod stateless;
mod trial;
mod words;

use std::time::{Duration, Instant, UNIX_EPOCH};

use benchmaster_record::conformance::{Checked, Finding};
use benchmaster_record::nfs::NfsVersion;

pub use self::connection::User;
pub use self::trial::{Target, Trial};
use crate::{Check, Stop, Tried};

/// All checks, in the order in which they are made.
pub fn list() -> Vec<&'static [Check<Trial>]> {
    checks::ALL.to_vec()
}

/// Why nothing could be checked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The export has entries.
    #[error(
        "the export is not empty: it has `{0}`; choose an empty one, or add --force to check beside what is there"
    )]
    Full(String),
    /// It does not work at all.
    #[error("NFS {version} cannot be checked: {sent}: {came}")]
    Unusable {
        /// The version.
        version: NfsVersion,
        /// What was asked.
        sent: String,
        /// What was answered.
        came: String,
    },
}

/// Which versions a server speaks.
///
/// # Errors
/// When nothing answers at its address.
pub fn versions(target: &Target) -> Result<Vec<NfsVersion>, Refusal> {
    let mut spoken = Vec::new();
    for version in NfsVersion::ALL.iter().copied() {
        if trial::speaks(target, version).map_err(|stop| Refusal::unusable(version, stop))? {
            spoken.push(version);
        }
    }
    Ok(spoken)
}

/// Makes the checks of a version that `wanted` chooses, until `go_on` says no.
///
/// # Errors
/// When none can be made.
pub fn check(
    target: &Target,
    version: NfsVersion,
    wanted: &dyn Fn(&Check<Trial>) -> bool,
    go_on: &dyn Fn() -> bool,
    seen: &mut dyn FnMut(&Finding),
) -> Result<Checked, Refusal> {
    let begun = Instant::now();
    let nonce = UNIX_EPOCH.elapsed().unwrap_or(Duration::ZERO).as_nanos() as u64;
    let mut trial = Trial::new(target, version, nonce)?;
    let implementation = trial.implementation().map(str::to_owned);
    let findings = crate::run(checks::ALL, &mut trial, wanted, go_on, seen);
    let left_behind = trial.finish().err().map(|stop| {
        let (sent, came) = parts(stop);
        format!("{sent}: {came}")
    });
    Ok(Checked {
        version: Some(version),
        implementation,
        findings,
        elapsed_s: begun.elapsed().as_secs_f64(),
        left_behind,
    })
}

fn parts(stop: Stop) -> (String, String) {
    match stop {
        Stop::Failed { sent, came } => (sent, came),
        Stop::NotApplicable(why) => ("preparation".into(), why),
        Stop::Trouble { sent, trouble } => (sent, trouble.to_string()),
    }
}

impl Refusal {
    fn unusable(version: NfsVersion, stop: Stop) -> Self {
        let (sent, came) = parts(stop);
        Self::Unusable { version, sent, came }
    }
}

/// Fails with `came` where something does not hold.
pub(crate) fn hold(holds: bool, sent: &str, came: impl FnOnce() -> String) -> Tried {
    if holds { Ok(()) } else { Err(Stop::failed(sent, came())) }
}
