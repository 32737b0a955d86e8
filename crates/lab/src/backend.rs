//! What runs machines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::kernel::{Architecture, KernelChoice};
use crate::machine::{Machine, MachineError, MachineSpec};
use crate::qemu::Qemu;
use crate::uml::Uml;

/// The ways to have machines, the best for measuring first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BackEnd {
    /// QEMU with the processor's help.
    QemuKvm,
    /// User-mode Linux: the kernel as a process.
    Uml,
    /// QEMU that translates instructions.
    QemuTcg,
    /// User-mode Linux whose clock moves only when everything in it waits.
    UmlVirtualTime,
    /// No machines: network namespaces with processes of this host.
    Namespaces,
}

impl BackEnd {
    pub const ALL: [Self; 5] =
        [Self::QemuKvm, Self::Uml, Self::QemuTcg, Self::UmlVirtualTime, Self::Namespaces];

    /// What its kernels are; `None`: it boots none.
    pub fn architecture(self) -> Option<Architecture> {
        match self {
            Self::QemuKvm | Self::QemuTcg => Some(Architecture::Pc),
            Self::Uml | Self::UmlVirtualTime => Some(Architecture::UserMode),
            Self::Namespaces => None,
        }
    }
}

impl fmt::Display for BackEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::QemuKvm => "qemu-kvm",
            Self::Uml => "uml",
            Self::QemuTcg => "qemu-tcg",
            Self::UmlVirtualTime => "uml-virtual-time",
            Self::Namespaces => "namespaces",
        })
    }
}

/// Why a text names no back-end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no back-end: give `qemu-kvm`, `uml`, `qemu-tcg`, `uml-virtual-time` or `namespaces`")]
pub struct NoBackEnd(String);

impl FromStr for BackEnd {
    type Err = NoBackEnd;

    fn from_str(text: &str) -> Result<Self, NoBackEnd> {
        let named = Self::ALL.into_iter().find(|back_end| back_end.to_string() == text);
        named.ok_or_else(|| NoBackEnd(text.into()))
    }
}

/// Why a back-end does not work here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the back-end {back_end} does not work here: {reason}")]
pub struct Unavailable {
    pub back_end: BackEnd,
    /// What is missing, and what to do.
    pub reason: String,
}

pub trait Backend: fmt::Debug + Send + Sync {
    fn back_end(&self) -> BackEnd;

    /// Whether it works on this host.
    ///
    /// # Errors
    /// What is missing.
    fn available(&self) -> Result<(), Unavailable>;

    /// Starts a machine, in the network namespace of the calling thread. The machine ends with the calling thread.
    ///
    /// # Errors
    /// [`MachineError`]
    fn start(&self, machine: &MachineSpec) -> Result<Machine, MachineError>;
}

/// The back-end asked for, or the best one that works here and boots such a kernel.
///
/// # Errors
/// Why the one asked for, or none, works here.
pub fn choose(
    asked: Option<BackEnd>,
    kernel: &KernelChoice,
    tell: &mut dyn FnMut(&str),
) -> Result<Box<dyn Backend>, Unavailable> {
    let candidates = match asked {
        Some(back_end) => vec![back_end],
        None => vec![BackEnd::QemuKvm, BackEnd::Uml, BackEnd::QemuTcg],
    };
    let mut reasons = Vec::new();
    let fits = |back_end: &BackEnd| {
        kernel.architecture().is_none_or(|needed| back_end.architecture() == Some(needed))
    };
    for back_end in candidates.iter().copied().filter(|back_end| asked.is_some() || fits(back_end)) {
        let candidate = of(back_end)?;
        match candidate.available() {
            Ok(()) => {
                tell(&format!("machines run on {back_end}"));
                return Ok(candidate);
            }
            Err(error) => reasons.push(error),
        }
    }
    let [.., last] = reasons.as_slice() else {
        let reason = format!("no back-end boots the kernel {kernel}");
        return Err(Unavailable { back_end: BackEnd::Uml, reason });
    };
    let all: Vec<String> =
        reasons.iter().map(|error| format!("{}: {}", error.back_end, error.reason)).collect();
    Err(Unavailable { back_end: last.back_end, reason: all.join("; ") })
}

fn of(back_end: BackEnd) -> Result<Box<dyn Backend>, Unavailable> {
    Ok(match back_end {
        BackEnd::QemuKvm => Box::new(Qemu { kvm: true }),
        BackEnd::QemuTcg => Box::new(Qemu { kvm: false }),
        BackEnd::Uml => Box::new(Uml { virtual_time: false }),
        BackEnd::UmlVirtualTime => Box::new(Uml { virtual_time: true }),
        BackEnd::Namespaces => {
            let reason = "it has no machines; its clients are processes of this host".into();
            return Err(Unavailable { back_end, reason });
        }
    })
}
