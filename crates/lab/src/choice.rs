//! The choice of what runs machines.

use crate::backend::{BackEnd, Unavailable};
use crate::kernel::KernelChoice;
use crate::machine::Backend;
use crate::qemu::Qemu;
use crate::uml::Uml;

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
