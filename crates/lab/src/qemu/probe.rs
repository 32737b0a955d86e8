//! Whether KVM works. That its device exists says little: inside of other virtual machines it may run some code and not a
//! stock kernel. So one is booted.

use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

use crate::cache;
use crate::kernel::{self, Architecture, KernelChoice};

/// How long a kernel may take until it looks for its root.
const LIMIT: Duration = Duration::from_secs(5);

/// What a kernel without a root says at its end.
const BOOTED: &str = "Unable to mount root";

/// What is remembered when it works.
const WORKS: &str = "works";

/// Whether a stock kernel boots; why not. It is tried once after each start of the host.
pub(super) fn kvm() -> Result<(), String> {
    if let Err(error) = fs::File::options().read(true).write(true).open("/dev/kvm") {
        return Err(format!("/dev/kvm: {error}"));
    }
    let choice = KernelChoice::Packaged;
    let kernel = kernel::find(&choice, Architecture::Pc, &mut |_| false, &mut |_| {});
    let kernel = kernel.map_err(|error| format!("trying the packaged kernel: {error}"))?;
    let command = super::base(true)?;
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").map_err(|error| error.to_string())?;
    let key = format!("{boot} {} {:?}", kernel.hash, command.get_program());
    let place = cache::directory().join("probes");
    let known = place.join(cache::key(key));
    let result = match fs::read_to_string(&known) {
        Ok(text) => text,
        Err(_) => {
            let result = tried(command, &kernel.file).unwrap_or_else(|reason| reason);
            // Without a cache it is tried again each time.
            if fs::create_dir_all(&place).is_ok() {
                let _ = fs::write(&known, &result);
            }
            result
        }
    };
    if result == WORKS { Ok(()) } else { Err(result) }
}

/// Boots a kernel without a root, which ends with a panic.
fn tried(mut command: Command, kernel: &std::path::Path) -> Result<String, String> {
    command.args(["-m", "256M", "-kernel"]).arg(kernel).args(["-append", "console=ttyS0 panic=-1"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let (end, ended) = channel();
    let mut readers = Vec::new();
    let outputs: [Option<Box<dyn Read + Send>>; 2] = [
        child.stdout.take().map(|output| Box::new(output) as _),
        child.stderr.take().map(|output| Box::new(output) as _),
    ];
    for mut output in outputs.into_iter().flatten() {
        let end = end.clone();
        readers.push(thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.read_to_end(&mut text);
            drop(end);
            String::from_utf8_lossy(&text).into_owned()
        }));
    }
    drop(end);
    // Nothing is sent: it ends when both outputs have, or by the limit.
    let in_time: Result<(), _> = ended.recv_timeout(LIMIT);
    let late = in_time == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
    let _ = child.kill();
    let _ = child.wait();
    let text: String = readers.into_iter().filter_map(|reader| reader.join().ok()).collect();
    match (text.contains(BOOTED), late) {
        (true, _) => Ok(WORKS.into()),
        (false, true) => Err(format!("a stock kernel does not boot with KVM within {} s", LIMIT.as_secs())),
        (false, false) => {
            let last = text.lines().map(str::trim).rfind(|line| !line.is_empty()).unwrap_or("without a word");
            Err(format!("a stock kernel does not boot with KVM: {last}"))
        }
    }
}
