//! nfs-ganesha in a guest: a server in user space, which exports a file system in memory by its VFS module.

use std::path::Path;

use super::knfsd::{EXPORT, MOUNT_PORT};
use super::tools::{self, SHORT, ToolError};
use super::{client, knfsd};
use crate::root::{Program, RootError};

/// Where its packages (nfs-ganesha, nfs-ganesha-vfs) have what it needs, and where guests have it.
const PROGRAMS: [&str; 2] = ["/usr/bin/ganesha.nfsd", "/usr/lib/x86_64-linux-gnu/ganesha/libfsalvfs.so"];

/// The programs that the root of a guest has for it: those of this host.
///
/// # Errors
/// When its packages are not installed.
pub fn programs() -> Result<Vec<Program>, RootError> {
    let missing: Vec<_> = PROGRAMS.into_iter().filter(|path| !Path::new(path).is_file()).collect();
    if missing.is_empty() {
        Ok(PROGRAMS.into_iter().map(|path| Program { file: path.into(), path: path.into() }).collect())
    } else {
        Err(RootError::Missing {
            programs: missing.into_iter().map(str::to_owned).collect(),
            packages: vec!["nfs-ganesha".into(), "nfs-ganesha-vfs (install them on this host)".into()],
        })
    }
}

const CONFIGURATION: &str = "/run/ganesha/ganesha.conf";
const LOG: &str = "/var/log/ganesha.log";

/// Starts it, unless it serves already. Clients of versions 3 and 4 mount [`EXPORT`].
///
/// # Errors
/// When a program is missing or fails, or nothing listens on port 2049 in time; the log is in the message then.
pub fn start() -> Result<(), ToolError> {
    client::services()?;
    knfsd::empty_export()?;
    for directory in ["/run/ganesha", "/var/lib/nfs/ganesha", "/var/log"] {
        tools::directory(directory)?;
    }
    tools::write(CONFIGURATION, &configuration())?;
    if client::listens(2049) {
        return Ok(());
    }
    tools::run("ganesha.nfsd", &["-f", CONFIGURATION, "-L", LOG, "-p", "/run/ganesha/ganesha.pid"], SHORT)?;
    // What goes wrong once it is in the background is in its log alone.
    tools::within(SHORT, || client::listens(2049) || !tools::runs("ganesha.nfsd"));
    if client::listens(2049) {
        return Ok(());
    }
    let output = tools::read(LOG).unwrap_or_default();
    Err(ToolError::Silent { service: "ganesha.nfsd".into(), sign: "port 2049", limit: SHORT, output })
}

/// Its configuration: as the kernel's server is set up where both have a setting, and without a grace period.
fn configuration() -> String {
    format!(
        "NFS_CORE_PARAM {{ MNT_Port = {MOUNT_PORT}; NFS_Protocols = 3, 4; Enable_NLM = true; Enable_RQUOTA = false; \
         Enable_UDP = false; Mount_Path_Pseudo = true; Plugins_Dir = /usr/lib/x86_64-linux-gnu/ganesha; }}\n\
         NFSv4 {{ Lease_Lifetime = 10; Grace_Period = 10; Graceless = true; Delegations = true; RecoveryBackend = fs; \
         RecoveryRoot = /var/lib/nfs/ganesha; Only_Numeric_Owners = true; \
         UseGetpwnam = true; }}\n\
         EXPORT {{ Export_Id = 1; Path = {}; Pseudo = {EXPORT}; Access_Type = RW; Squash = No_Root_Squash; SecType = sys; \
         Protocols = 3, 4; Transports = TCP; Delegations = RW; MaxRead = 1048576; MaxWrite = 1048576; FSAL {{ Name = VFS; }} }}\n\
         LOG {{ Default_Log_Level = EVENT; }}\n",
        knfsd::EXPORTED
    )
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_configuration_is_balanced_and_names_the_export() {
        let text = super::configuration();
        let count = |c| text.matches(c).count();
        assert_eq!(count('{'), count('}'));
        assert!(text.contains("Pseudo = /export;") && text.contains("Path = /srv/nfs/export;"), "{text}");
    }
}
