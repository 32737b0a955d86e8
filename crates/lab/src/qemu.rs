//! QEMU: machines with a PC's kernel, with the processor's help (KVM) or by translation of instructions (TCG).

mod probe;
mod program;

use std::path::Path;
use std::process::Command;

use crate::backend::{BackEnd, Unavailable};
use crate::machine::{MachineError, MachineSpec};
use crate::packages::{self, Consent, PackageError, Trees};

const PACKAGE: &str = "qemu-system-x86";

/// Whether it works on this host, with the processor's help or without; why not.
pub(crate) fn available(kvm: bool) -> Result<(), String> {
    base(kvm)?;
    if kvm { probe::kvm() } else { Ok(()) }
}

/// The command that runs a machine.
pub(crate) fn command(machine: &MachineSpec, back_end: BackEnd) -> Result<Command, MachineError> {
    let mut command =
        base(back_end == BackEnd::QemuKvm).map_err(|reason| Unavailable { back_end, reason })?;
    let program =
        program::disk().map_err(|error| machine.failed(error.path.display().to_string())(error.source))?;
    command.args(arguments(machine, &program)?);
    Ok(command)
}

/// Gets QEMU, if it is not here.
///
/// # Errors
/// [`PackageError`]
pub fn install(consent: Consent<'_>, tell: &mut dyn FnMut(&str)) -> Result<(), PackageError> {
    match Trees::now()?.program(&name()) {
        Some(_) => Ok(()),
        None => packages::fetch(&[PACKAGE], "QEMU", consent, tell).map(drop),
    }
}

fn name() -> String {
    format!("qemu-system-{}", std::env::consts::ARCH)
}

/// QEMU with the words that all machines have; why not.
fn base(kvm: bool) -> Result<Command, String> {
    let trees = Trees::now().map_err(|error| error.to_string())?;
    let name = name();
    let Some(program) = trees.program(&name) else {
        return Err(format!("`{name}` is not installed; run `benchmaster lab setup --qemu`"));
    };
    let mut command = Command::new(&program);
    if trees.unpacked(&program) {
        command.env("LD_LIBRARY_PATH", std::env::join_paths(trees.library_path()).unwrap_or_default());
        let modules = format!("usr/lib/{}-linux-gnu/qemu", std::env::consts::ARCH);
        if let Some(place) = trees.files(&modules).find(|place| trees.unpacked(place)) {
            command.env("QEMU_MODULE_DIR", place);
        }
        for place in ["usr/share/qemu", "usr/share/seabios"].iter().flat_map(|place| trees.files(place)) {
            command.arg("-L").arg(place);
        }
    }
    let accelerated = if kvm { ["kvm", "host"] } else { ["tcg", "max"] };
    command.args(["-accel", accelerated[0], "-cpu", accelerated[1], "-machine", "q35", "-smp", "1"]);
    // Nothing that is not asked for; what would start the machine again ends it.
    command.args(["-nodefaults", "-no-user-config", "-display", "none", "-vga", "none", "-no-reboot"]);
    command.args(["-serial", "stdio"]);
    Ok(command)
}

/// The words for one machine.
fn arguments(machine: &MachineSpec, program: &Path) -> Result<Vec<String>, MachineError> {
    let mut words = vec![
        "-m".to_owned(),
        format!("{}M", machine.memory >> 20),
        "-name".into(),
        machine.name.clone(),
        "-kernel".into(),
        machine.word(&machine.kernel.file)?,
        "-initrd".into(),
        machine.word(&machine.image)?,
    ];
    for (number, interface) in machine.interfaces.iter().enumerate() {
        let (tap, mac) = (&interface.tap, interface.mac);
        words.extend(["-netdev".into(), format!("tap,id=n{number},ifname={tap},script=no,downscript=no")]);
        // Without a ROM: nothing is booted from a network.
        words.extend(["-device".into(), format!("virtio-net-pci,netdev=n{number},mac={mac},romfile=")]);
    }
    let mut disk = |number: usize, options: String| {
        words.extend(["-drive".into(), format!("if=none,format=raw,id=d{number},{options}")]);
        words.extend(["-device".into(), format!("virtio-blk-pci,drive=d{number}")]);
    };
    for (number, file) in machine.disks.iter().enumerate() {
        disk(number, format!("file={}", machine.word(file)?));
    }
    let own = machine.disks.len();
    disk(own, format!("file={},readonly=on", machine.word(program)?));
    let letter = (b'a'..=b'z').nth(own).map_or('z', char::from);
    let mut line = vec![
        "console=ttyS0".to_owned(),
        // Warnings, and worse.
        "loglevel=5".into(),
        "panic=-1".into(),
        format!("lab_program=/dev/vd{letter}"),
    ];
    line.extend(machine.words());
    words.extend(["-append".into(), line.join(" ")]);
    Ok(words)
}
