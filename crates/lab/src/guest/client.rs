//! What the Linux NFS client needs in a guest: its modules, and the services beside it.

use std::net::{Ipv4Addr, TcpStream};
use std::path::Path;
use std::time::Duration;

use super::tools::{self, SHORT, ToolError};

/// Loads the client for NFS versions 3 and 4, and starts portmapper and status monitor, which locks of version 3 need.
///
/// # Errors
/// The module or service that is not there.
pub fn start() -> Result<(), ToolError> {
    modules(&["nfs", "nfsv3", "nfsv4"])?;
    services()
}

/// Loads modules, unless they are loaded or built in.
pub(super) fn modules(names: &[&str]) -> Result<(), ToolError> {
    // A kernel without modules has everything built in.
    if !Path::new("/proc/modules").exists() {
        return Ok(());
    }
    tools::run("modprobe", &[&["-a"], names].concat(), SHORT).map(drop)
}

/// Portmapper, status monitor, and the file system by which the kernel talks to services.
pub(super) fn services() -> Result<(), ToolError> {
    for directory in ["/run/rpcbind", "/var/lib/nfs/sm", "/var/lib/nfs/sm.bak"] {
        tools::directory(directory)?;
    }
    tools::mount("rpc_pipefs", c"", "/var/lib/nfs/rpc_pipefs")?;
    tools::service("rpcbind", &["-w"], "port 111", || listens(111))?;
    tools::service("rpc.statd", &["--no-notify"], "its process", || tools::runs("rpc.statd"))
}

/// Whether a server listens on a port of this guest.
pub(super) fn listens(port: u16) -> bool {
    TcpStream::connect_timeout(&(Ipv4Addr::LOCALHOST, port).into(), Duration::from_millis(200)).is_ok()
}
