//! The kinds of what runs machines.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::kernel::Architecture;

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
#[error("`{0}` is not a back-end: give `qemu-kvm`, `uml`, `qemu-tcg`, `uml-virtual-time` or `namespaces`")]
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
