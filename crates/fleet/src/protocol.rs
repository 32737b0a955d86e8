//! The messages between controller and agents; see `proto/fleet.proto`.

use std::path::PathBuf;

use benchmaster_workload::conduct::{Start, Step};
use benchmaster_workload::target::{NfsTarget, Target};
use prost::bytes::Bytes;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub(crate) mod trace;

/// Version of the protocol. Agents and controller are of one version of the program, and have the same.
pub const PROTOCOL: u32 = 2;

/// Version of the program.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Largest message; what is larger goes in pieces.
pub(crate) const MESSAGE: usize = 4 << 20;

/// Size of a piece.
pub(crate) const PIECE: usize = 64 << 10;

/// The messages and the service as generated.
#[allow(missing_docs, clippy::all, unreachable_pub, unused_qualifications, reason = "generated code")]
pub(crate) mod wire {
    tonic::include_proto!("benchmaster.fleet");
}

/// A message that does not say what it must.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a message of the other side cannot be read: {0}")]
pub(crate) struct Unreadable(pub(crate) String);

/// A value in CBOR.
pub(crate) fn encode(value: &impl Serialize) -> Result<Bytes, Unreadable> {
    let mut bytes = Vec::new();
    ciborium::into_writer(value, &mut bytes).map_err(|error| Unreadable(error.to_string()))?;
    Ok(bytes.into())
}

/// A value out of CBOR.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Unreadable> {
    ciborium::from_reader(bytes).map_err(|error| Unreadable(error.to_string()))
}

/// Number of a step in messages.
pub(crate) fn step_number(step: Step) -> u32 {
    match step {
        Step::Cleared => 1,
        Step::Prepared => 2,
        Step::Released => 3,
        Step::Settled => 4,
        Step::Measured => 5,
        Step::TornDown => 6,
    }
}

/// Number of a phase in messages.
pub(crate) fn phase_number(phase: Start) -> u32 {
    match phase {
        Start::WarmUp => 0,
        Start::Measure => 1,
    }
}

impl From<&Target> for wire::Target {
    fn from(target: &Target) -> Self {
        use std::os::unix::ffi::OsStrExt as _;
        use wire::target::Kind;
        let (kind, threads) = match target {
            Target::Directory(path) => {
                (Kind::Directory(Bytes::copy_from_slice(path.as_os_str().as_bytes())), None)
            }
            Target::Nfs(export) => (Kind::Url(export.options.to_string()), export.threads),
        };
        Self { kind: Some(kind), threads: threads.unwrap_or(0) }
    }
}

/// The target of a message.
pub(crate) fn target(message: Option<wire::Target>) -> Result<Target, Unreadable> {
    use std::os::unix::ffi::OsStringExt as _;
    use wire::target::Kind;
    let message = message.unwrap_or_default();
    match message.kind {
        Some(Kind::Directory(path)) => {
            Ok(Target::Directory(PathBuf::from(std::ffi::OsString::from_vec(path.to_vec()))))
        }
        Some(Kind::Url(url)) => {
            let options = url.parse().map_err(|error| Unreadable(format!("target `{url}`: {error}")))?;
            let threads = Some(message.threads).filter(|threads| *threads != 0);
            Ok(Target::Nfs(NfsTarget { options, threads }))
        }
        None => Err(Unreadable("a target of no kind".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_come_through() {
        let url = "nfs://server:2050/export%3F/x?version=3&nconnect=4";
        let export = NfsTarget { options: url.parse().unwrap(), threads: Some(3) };
        let bytes: &std::ffi::OsStr = std::os::unix::ffi::OsStrExt::from_bytes(b"/a\xff/b");
        for target in [Target::Nfs(export), Target::Directory(bytes.into())] {
            assert_eq!(super::target(Some((&target).into())), Ok(target));
        }
        assert!(target(None).is_err());
        let wrong = wire::target::Kind::Url("gopher://x".into());
        assert!(target(Some(wire::Target { kind: Some(wrong), threads: 0 })).is_err());
    }
}
