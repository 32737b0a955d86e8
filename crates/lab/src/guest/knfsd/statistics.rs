//! What the kernel's server says of itself.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::NFSD;
use crate::guest::tools::ToolError;

/// What the server says of itself at one time. The texts are the kernel's, in the formats that `benchmaster-telemetry` parses.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ServerStatistics {
    /// Threads that serve; 0: it does not.
    pub threads: u32,
    /// Clients of version 4 that it knows.
    pub clients: Vec<NfsClient>,
    /// Texts by their files: `/proc/net/rpc/nfsd`, `/proc/fs/nfsd/pool_stats`, journals' `info`, `/proc/diskstats`. A
    /// file that is not there is left out.
    pub texts: BTreeMap<String, String>,
}

/// A client of NFS version 4, as its server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NfsClient {
    /// Its address, without the port.
    pub address: String,
    /// What it calls itself, the `co_ownerid`: two clients with one name take each other's lease.
    pub name: String,
    pub minor_version: u32,
    /// Whether it has confirmed its id.
    pub confirmed: bool,
    /// Whether it can be called back: else it gets no delegations.
    pub callback_up: bool,
    /// Opens, locks, delegations and layouts that it holds.
    pub states: u32,
}

/// Reads them.
///
/// # Errors
/// None so far: what cannot be read is left out.
pub fn statistics() -> Result<ServerStatistics, ToolError> {
    let mut paths =
        vec!["/proc/net/rpc/nfsd".to_owned(), format!("{NFSD}/pool_stats"), "/proc/diskstats".into()];
    let journals = fs::read_dir("/proc/fs/jbd2").into_iter().flatten().flatten();
    paths.extend(journals.map(|journal| journal.path().join("info").display().to_string()));
    let text = |path: String| fs::read_to_string(&path).ok().map(|text| (path, text));
    Ok(ServerStatistics {
        threads: super::threads()?,
        clients: clients(Path::new(NFSD)),
        texts: paths.into_iter().filter_map(text).collect(),
    })
}

/// Clients that hold something, in words.
pub(super) fn holders() -> Result<Vec<String>, ToolError> {
    let holding = clients(Path::new(NFSD)).into_iter().filter(|client| client.states > 0);
    Ok(holding
        .map(|client| format!("{} ({}) holds {}", client.name, client.address, client.states))
        .collect())
}

fn clients(nfsd: &Path) -> Vec<NfsClient> {
    let folders = fs::read_dir(nfsd.join("clients")).into_iter().flatten().flatten();
    let mut clients: Vec<_> = folders
        .filter_map(|folder| {
            let info = fs::read_to_string(folder.path().join("info")).ok()?;
            let states = fs::read_to_string(folder.path().join("states")).unwrap_or_default();
            let states = states.lines().filter(|line| line.starts_with("- ")).count();
            Some(NfsClient { states: u32::try_from(states).unwrap_or(u32::MAX), ..client(&info) })
        })
        .collect();
    clients.sort_by(|a, b| (&a.address, &a.name).cmp(&(&b.address, &b.name)));
    clients
}

/// Parses `/proc/fs/nfsd/clients/N/info`: lines `key: value`, texts in quotes.
fn client(info: &str) -> NfsClient {
    let value = |key: &str| {
        let lines = info.lines().filter_map(|line| line.split_once(": "));
        lines
            .into_iter()
            .find(|(name, _)| *name == key)
            .map_or("", |(_, value)| value.trim().trim_matches('"'))
    };
    // With the port: `"10.77.1.1:742"`, `"[fe80::1]:742"`.
    let address = value("address");
    let address = address.rsplit_once(':').map_or(address, |(address, _)| address);
    NfsClient {
        address: address.to_owned(),
        name: value("name").to_owned(),
        minor_version: value("minor version").parse().unwrap_or_default(),
        confirmed: value("status") == "confirmed",
        callback_up: value("callback state") == "UP",
        states: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of Linux 6.1.176.
    const INFO: &str = "clientid: 0x80daed196b02c24d\naddress: \"10.77.1.1:742\"\nstatus: confirmed\nseconds from last renew: 0\n\
                        name: \"Linux NFSv4.1 c1\"\nminor version: 1\nImplementation domain: \"kernel.org\"\n\
                        Implementation name: \"Linux 6.1.176 #1 Sat Jul  4 15:38:16 UTC 2026 x86_64\"\n\
                        Implementation time: [0, 0]\ncallback state: UP\ncallback address: 10.77.1.1:0\n";
    const OPEN: &str = "- 0x000000014dc2026b1fedda8001000000: { type: open, access: r-, deny: --, superblock: \"62:00:12\", \
                        filename: \"/f\", owner: \"open id:\\x00\" }\n";

    #[test]
    fn clients_are_read_with_what_they_hold() {
        let dir = tempfile::tempdir().unwrap();
        for (number, info, states) in [("7", INFO, OPEN), ("3", &INFO.replace("1.1:", "1.2:"), "")] {
            let folder = dir.path().join("clients").join(number);
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("info"), info).unwrap();
            fs::write(folder.join("states"), states).unwrap();
        }
        let [first, second] = &clients(dir.path())[..] else { panic!("not two clients") };
        assert_eq!((first.address.as_str(), first.name.as_str()), ("10.77.1.1", "Linux NFSv4.1 c1"));
        assert!(first.confirmed && first.callback_up);
        assert_eq!((first.minor_version, first.states, second.states), (1, 1, 0));
        assert_eq!(second.address, "10.77.1.2");
        assert_eq!(clients(&dir.path().join("nothing")), []);
    }

    #[test]
    fn an_unconfirmed_client_without_a_callback_is_one() {
        let found = client("address: \"[fe80::1]:7\"\nstatus: unconfirmed\nname: \"x\"\n");
        assert_eq!(found.address, "[fe80::1]");
        assert!(!found.confirmed && !found.callback_up);
    }
}
