//! Servers to check.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::Duration;

use benchmaster_check::nfs::{Target, User, check};
use benchmaster_check::{Checked, Verdict};
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_record::nfs::NfsVersion;

/// The server's second address.
pub(crate) const OTHER: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// The server of this project, at a free port.
pub(crate) fn server() -> Server {
    Server::start(config()).unwrap()
}

pub(crate) fn config() -> ServerConfig {
    ServerConfig {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        also_listen: vec![SocketAddr::new(OTHER, 0)],
        threads: 2,
        lease: Duration::from_secs(1),
        // So that sessions get fewer slots beside others.
        requests: Some(16),
        ..ServerConfig::default()
    }
}

pub(crate) fn target(nfs: SocketAddr) -> Target {
    Target {
        nfs,
        others: vec![SocketAddr::new(OTHER, nfs.port())],
        mount_port: None,
        export: b"/export".to_vec(),
        user: User { uid: 1000, gid: 1000 },
        patience: Duration::from_secs(5),
        force: false,
        longest_lease: Duration::from_secs(15),
        grace: Duration::from_secs(120),
    }
}

/// All checks of a version.
pub(crate) fn all(target: &Target, version: NfsVersion) -> Checked {
    check(target, version, &|_| true, &|| true, &mut |_| {}).unwrap()
}

/// How many passed, failed and did not apply, in each group: the rows of docs/check.md.
pub(crate) fn by_group(checked: &Checked) -> Vec<(String, [usize; 3])> {
    let mut groups: Vec<(String, [usize; 3])> = Vec::new();
    for finding in &checked.findings {
        let name = finding.group.to_string();
        if !groups.iter().any(|(group, _)| *group == name) {
            groups.push((name.clone(), [0; 3]));
        }
        let which = match finding.verdict {
            Verdict::Pass => 0,
            Verdict::Fail { .. } => 1,
            Verdict::NotApplicable { .. } => 2,
        };
        if let Some((_, counts)) = groups.iter_mut().find(|(group, _)| *group == name) {
            counts[which] += 1;
        }
    }
    groups
}

/// What is broken, a line for each.
pub(crate) fn broken(checked: &Checked) -> Vec<String> {
    let line = |finding: &&benchmaster_check::Finding| match &finding.verdict {
        Verdict::Fail { sent, came } => {
            format!("{} ({}, {}): {sent}: {came}", finding.name, finding.force, finding.place)
        }
        _ => finding.name.clone(),
    };
    checked.broken().iter().map(line).collect()
}
