//! The choice of what runs machines.

use crate::backend::{BackEnd, Unavailable};
use crate::kernel::KernelChoice;
use crate::machine::{Machine, MachineError, MachineSpec};
use crate::{qemu, uml};

/// The back-end asked for, or the best one that works here and boots such a kernel.
///
/// # Errors
/// Why the one asked for, or none, works here.
pub fn choose(
    asked: Option<BackEnd>,
    kernel: &KernelChoice,
    tell: &mut dyn FnMut(&str),
) -> Result<BackEnd, Unavailable> {
    let candidates = match asked {
        Some(back_end) => vec![back_end],
        None => vec![BackEnd::QemuKvm, BackEnd::Uml, BackEnd::QemuTcg],
    };
    let mut reasons = Vec::new();
    let fits = |back_end: &BackEnd| {
        kernel.architecture().is_none_or(|needed| back_end.architecture() == Some(needed))
    };
    for back_end in candidates.iter().copied().filter(|back_end| asked.is_some() || fits(back_end)) {
        match available(back_end) {
            Ok(()) => {
                tell(&format!("machines run on {back_end}"));
                return Ok(back_end);
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

/// Whether a back-end works on this host.
///
/// # Errors
/// What is missing.
pub fn available(back_end: BackEnd) -> Result<(), Unavailable> {
    let works = match back_end {
        BackEnd::QemuKvm | BackEnd::QemuTcg => qemu::available(back_end == BackEnd::QemuKvm),
        BackEnd::Uml | BackEnd::UmlVirtualTime => uml::available(back_end == BackEnd::UmlVirtualTime),
        BackEnd::Namespaces => Err("it has no machines; its clients are processes of this host".into()),
    };
    works.map_err(|reason| Unavailable { back_end, reason })
}

/// Starts a machine, in the network namespace of the calling thread. The machine ends with this process.
///
/// # Errors
/// [`MachineError`]
pub fn start(back_end: BackEnd, machine: &MachineSpec) -> Result<Machine, MachineError> {
    machine.check_kernel(back_end)?;
    let command = match back_end {
        BackEnd::QemuKvm | BackEnd::QemuTcg => qemu::command(machine, back_end)?,
        BackEnd::Uml | BackEnd::UmlVirtualTime | BackEnd::Namespaces => {
            uml::command(machine, back_end == BackEnd::UmlVirtualTime)?
        }
    };
    machine.spawn(command)
}
