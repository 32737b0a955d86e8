//! Process 1 of a guest.

use std::convert::Infallible;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use benchmaster_netem::namespace::{Interfaces, MacAddress, NamespaceError};
use rustix::mount::{MountFlags, mount};

use super::arguments::{Address, Arguments, PATH, mac_address};
use super::facts::{BOOT, BootStep, uptime};
use super::{PORT, ToolError, client, state};
use crate::exit::reap_until;
use crate::network;

/// How long a driver may take until its interface is there.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why a guest did not come up. Its kernel panics then, as process 1 ends, and the console shows this.
#[derive(Debug, thiserror::Error)]
pub enum InitError {
    /// Started by hand.
    #[error("`benchmaster __guest` is process 1 of a machine of the lab; this is process {0}")]
    NotFirst(u32),
    /// A file system could not be mounted.
    #[error("cannot mount {what} at {at}: {source}")]
    Mount { what: &'static str, at: &'static str, source: io::Error },
    /// The kernel's command line names no control address.
    #[error("the kernel's command line has no `benchmaster.control=ADDRESS/BITS,MAC`")]
    NoControl,
    /// An interface is not there.
    #[error("there is no network interface with the Ethernet address {0}")]
    NoInterface(MacAddress),
    /// An interface could not be set up.
    #[error(transparent)]
    Interface(#[from] NamespaceError),
    /// A file could not be read or written, or a process not be started.
    #[error("{what}: {source}")]
    System {
        /// What was to be done.
        what: &'static str,
        source: io::Error,
    },
    /// The disk with what a server remembers.
    #[error("the disk for /var/lib/nfs: {0}")]
    State(#[from] ToolError),
    /// The control server ended, and with it everything that the guest is for.
    #[error("the control server ended: {0}")]
    ServerEnded(String),
}

/// Does what process 1 of a guest does: sets the machine up, starts the control server (`program __guest --serve`), and waits for
/// processes without a parent.
///
/// # Errors
/// [`InitError`]; it never returns otherwise.
pub fn process_1() -> Result<Infallible, InitError> {
    match std::process::id() {
        1 => {}
        other => return Err(InitError::NotFirst(other)),
    }
    let mut steps = Vec::new();
    let mut done = |what: &str| steps.push(BootStep { done: what.into(), at: uptime() });
    done("kernel");
    mounts()?;
    let line = fs::read_to_string("/proc/cmdline").map_err(system("cannot read /proc/cmdline"))?;
    let arguments = Arguments::parse(&line);
    let control = arguments.control.ok_or(InitError::NoControl)?;
    identity(&arguments)?;
    done("file systems");
    interfaces(&arguments, control)?;
    done("network");
    if let Some(device) = &arguments.state {
        state::mount(device)?;
    }
    // A guest of another purpose works without it; who mounts sees the kernel's or the program's own message.
    if let Err(error) = client::start() {
        say(&format!("locks of NFS version 3 will not work: {error}"));
    }
    done("NFS client");
    fs::create_dir_all("/run/benchmaster").map_err(system("cannot make /run/benchmaster"))?;
    let boot = serde_json::to_vec(&steps).map_err(io::Error::from);
    boot.and_then(|boot| fs::write(BOOT, boot)).map_err(system("cannot write the times of the boot"))?;
    let address = SocketAddr::from((control.address, PORT));
    let server = command("/proc/self/exe").args(["__guest", "--serve", &address.to_string()]).spawn();
    let server = server.map_err(system("cannot start the control server"))?;
    Err(InitError::ServerEnded(reap_until(server.id()).unwrap_or_else(|error| error.to_string())))
}

fn system(what: &'static str) -> impl FnOnce(io::Error) -> InitError {
    move |source| InitError::System { what, source }
}

/// A program with the guest's environment.
fn command(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().envs([("PATH", PATH), ("HOME", "/root"), ("TERM", "xterm")]).stdin(Stdio::null());
    command
}

/// Mounts what is not mounted yet: what came before may have needed some.
fn mounts() -> Result<(), InitError> {
    let mounted = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_mounted = |at: &str| mounted.lines().any(|line| line.split(' ').nth(1) == Some(at));
    let all = MountFlags::empty();
    let quiet = MountFlags::NOSUID | MountFlags::NODEV;
    for (what, at, flags, options) in [
        ("proc", "/proc", quiet, c""),
        ("sysfs", "/sys", quiet, c""),
        ("devtmpfs", "/dev", all, c""),
        ("devpts", "/dev/pts", all, c"ptmxmode=0666"),
        ("tmpfs", "/dev/shm", quiet, c"mode=1777"),
        ("tmpfs", "/tmp", quiet, c"mode=1777"),
        ("tmpfs", "/run", quiet, c"mode=755"),
    ] {
        if is_mounted(at) {
            continue;
        }
        fs::create_dir_all(at).map_err(|source| InitError::Mount { what, at, source })?;
        match mount(what, at, what, flags, options) {
            // The kernel has mounted /dev itself.
            Ok(()) | Err(rustix::io::Errno::BUSY) => {}
            Err(error) => return Err(InitError::Mount { what, at, source: error.into() }),
        }
    }
    Ok(())
}

/// Name, and what memory is kept.
fn identity(arguments: &Arguments) -> Result<(), InitError> {
    rustix::system::sethostname(arguments.name.as_bytes())
        .map_err(|error| system("cannot set the host name")(error.into()))?;
    let hosts = format!("127.0.0.1 localhost {}\n{} server\n", arguments.name, network::server_address());
    fs::write("/etc/hosts", hosts).map_err(system("cannot write /etc/hosts"))?;
    // The drivers of networks must not fail to get memory for a packet while files fill the page cache: user-mode Linux's
    // may never recover.
    let kept = (rustix::system::sysinfo().totalram as u64 / 1024 / 12).min(32_768);
    setting("/proc/sys/vm/min_free_kbytes", &kept.to_string());
    setting("/proc/sys/net/ipv6/conf/all/disable_ipv6", "1");
    setting("/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
    Ok(())
}

/// Some kernels lack some settings.
fn setting(path: &str, value: &str) {
    let _ = fs::write(path, value);
}

/// To the console.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(io::stderr(), "benchmaster: {text}");
}

/// Loads what is not built in.
fn load(modules: &[&str]) {
    let release = rustix::system::uname().release().to_string_lossy().into_owned();
    if Path::new("/lib/modules").join(release).exists() {
        // Those that are built in, or not there at all, are no error here: who needs them says so.
        let _ = command("modprobe").arg("-qa").args(modules).stderr(Stdio::null()).status();
    }
}

/// Brings the interfaces up, which are found by their Ethernet addresses.
fn interfaces(arguments: &Arguments, control: Address) -> Result<(), InitError> {
    load(&["virtio_net"]);
    let interfaces = Interfaces::here().map_err(system("cannot open a socket"))?;
    interfaces.up("lo")?;
    let set_up = |address: Address, neighbours: Vec<(Ipv4Addr, MacAddress)>| {
        let name = interface_of(address.mac).ok_or(InitError::NoInterface(address.mac))?;
        interfaces.set_address(&name, address.address, address.prefix)?;
        interfaces.up(&name)?;
        neighbours
            .into_iter()
            .try_for_each(|(address, mac)| interfaces.add_neighbour(&name, address, mac))?;
        Ok::<_, InitError>(())
    };
    set_up(control, vec![(network::control_host(), network::control_host_mac())])?;
    let Some(data) = arguments.data else { return Ok(()) };
    let neighbours = if data.address == network::server_address() {
        (1..=arguments.clients)
            .map(|client| (network::client_address(client), network::client_mac(client)))
            .collect()
    } else {
        vec![(network::server_address(), network::server_mac())]
    };
    set_up(data, neighbours)
}

/// The name of the interface with an Ethernet address. Drivers may still be at work: it is waited for.
fn interface_of(mac: MacAddress) -> Option<String> {
    let start = Instant::now();
    loop {
        let entries = fs::read_dir("/sys/class/net").ok()?;
        for entry in entries.flatten() {
            let address = fs::read_to_string(entry.path().join("address")).unwrap_or_default();
            if mac_address(&address) == Some(mac) {
                return entry.file_name().into_string().ok();
            }
        }
        if start.elapsed() > PATIENCE {
            return None;
        }
        sleep(Duration::from_millis(10));
    }
}
