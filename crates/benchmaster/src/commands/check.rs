//! `check`: whether a server or a directory does what it must.

use std::net::{SocketAddr, ToSocketAddrs as _};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_check::directory::{self, Directory};
use benchmaster_check::nfs::{self, Refusal, Target, Trial, User};
use benchmaster_check::{Check, Checked, Finding, Force, Group};
use benchmaster_nfs_client::options::{MountOptions, Security};
use benchmaster_record::nfs::NfsVersion;
use benchmaster_report::{pages, verdicts};
use benchmaster_rpc_gss::Flavor;
use serde::Serialize;

use crate::bar::Bar;
use crate::cli::CheckArgs;
use crate::commands::results::{write, write_page};
use crate::failure::{Failure, Result, Status};
use crate::{output, signals};

/// How long a server's grace period is waited for: longer than any usual one.
const GRACE: Duration = Duration::from_secs(120);

pub(crate) fn check(args: &CheckArgs) -> Result<Status> {
    for word in &args.only {
        if !listed().iter().any(|check| check.group.name() == word || check.name == word) {
            return Err(Failure::wrong(format!(
                "there is no group and no check `{word}`; `benchmaster check --list` shows them"
            )));
        }
    }
    let Some(text) = args.target.as_deref().filter(|_| !args.list) else { return list(args) };
    let stop = Arc::<AtomicBool>::default();
    for signal in signals::ending() {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let checked =
        if text.contains("://") { server(text, args, &stop)? } else { vec![directory(text, args, &stop)?] };
    if let Some(path) = &args.junit {
        let verdicts = verdicts::of_conformance(&checked);
        write(path, &verdicts::junit(&verdicts)).map_err(Failure::of_a_place_given)?;
    }
    if let Some(path) = &args.html {
        write_page(path, pages::conformance(text, &checked)).map_err(Failure::of_a_place_given)?;
    }
    output::document(args.json, &checked, || pages::conformance(text, &checked))?;
    if stop.load(Ordering::Relaxed) {
        return Ok(Status::Interrupted);
    }
    let fails = verdicts::of_conformance(&checked).iter().any(|verdict| verdict.fails);
    Ok(if fails { Status::ChecksFailed } else { Status::Fine })
}

/// The checks of a server, in each version that is chosen.
fn server(text: &str, args: &CheckArgs, stop: &AtomicBool) -> Result<Vec<Checked>> {
    if args.second.is_some() {
        return Err(Failure::wrong("--second is another path to a directory; a server has no paths"));
    }
    let (target, version) = target(text, args)?;
    let chosen = match (&args.nfs[..], version) {
        ([], Some(version)) => vec![version],
        ([], None) => nfs::versions(&target).map_err(failure)?,
        (chosen, _) => chosen.to_vec(),
    };
    let one = |version| {
        let wanted = |check: &Check<Trial>| args.wants(check.group, check.name);
        let all = nfs::list();
        let count =
            all.into_iter().flatten().filter(|check| check.versions.contains(&version) && wanted(check));
        watched(count.count(), &format!("NFS {version}"), |seen| {
            nfs::check(&target, version, &wanted, &|| !stop.load(Ordering::Relaxed), seen).map_err(failure)
        })
    };
    chosen.into_iter().take_while(|_| !stop.load(Ordering::Relaxed)).map(one).collect()
}

/// The checks of a directory.
fn directory(text: &str, args: &CheckArgs, stop: &AtomicBool) -> Result<Checked> {
    if !args.nfs.is_empty() {
        return Err(Failure::wrong(format!(
            "--nfs is for servers, written as nfs://SERVER/PATH; `{text}` is a path"
        )));
    }
    let wanted = |check: &Check<Directory>| args.wants(check.group, check.name);
    let count = directory::CHECKS.iter().copied().flatten().filter(|check| wanted(check)).count();
    watched(count, "directory", |seen| {
        let go_on = || !stop.load(Ordering::Relaxed);
        directory::check(Path::new(text), args.second.as_deref(), &wanted, &go_on, seen)
            .map_err(Failure::wrong_input)
    })
}

/// Shows on a terminal how far the checks are.
fn watched<T>(count: usize, of: &str, make: impl FnOnce(&mut dyn FnMut(&Finding)) -> T) -> T {
    let mut bar = Bar::on_terminal(count as u64);
    let made = make(&mut |finding: &Finding| {
        if let Some(bar) = &mut bar {
            bar.position += 1;
            bar.beside = format!("{of}: {}", finding.name);
            bar.show();
        }
    });
    if let Some(bar) = &mut bar {
        bar.erase();
    }
    made
}

/// Where the export is, and the version if the URL says one.
fn target(text: &str, args: &CheckArgs) -> Result<(Target, Option<NfsVersion>)> {
    let options: MountOptions = text.parse().map_err(Failure::wrong_input)?;
    if options.security != Security::None || options.sec != Flavor::Sys {
        let fix = "remove `xprtsec`, `sec` and `security` from the URL";
        return Err(Failure::wrong(format!("checks are calls in the clear with AUTH_SYS; {fix}")));
    }
    let address = |host: &str| {
        let found = (host, options.nfs_port()).to_socket_addrs();
        let mut found =
            found.map_err(|error| Failure::wrong(format!("the server `{host}` has no address: {error}")))?;
        found.next().ok_or_else(|| Failure::wrong(format!("the server `{host}` has no address")))
    };
    let nfs: SocketAddr = address(&options.host)?;
    let others = options.addresses.iter().map(|host| address(host)).collect::<Result<_>>()?;
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let says = query.split(['&', ',']).any(|option| option.starts_with("version="));
    let version = says.then_some(options.version);
    let target = Target {
        nfs,
        others,
        mount_port: options.mount_port,
        export: options.export.clone(),
        user: User { uid: options.uid, gid: options.gid },
        patience: args.timeout.0,
        force: args.force,
        longest_lease: args.lease.0,
        grace: GRACE,
    };
    Ok((target, version))
}

fn failure(refusal: Refusal) -> Failure {
    match refusal {
        Refusal::Full(_) => Failure::wrong_input(refusal),
        Refusal::Unusable { .. } => Failure::failed(refusal),
    }
}

/// A check as it is listed.
#[derive(Serialize)]
struct Listed {
    name: &'static str,
    group: Group,
    /// Of NFS; none: for directories.
    versions: &'static [NfsVersion],
    force: Force,
    places: String,
    rule: &'static str,
}

impl<E> From<&Check<E>> for Listed {
    fn from(check: &Check<E>) -> Self {
        let Check { name, group, versions, force, rule, .. } = *check;
        let places: Vec<String> = rule.places.iter().map(|(_, place)| place.to_string()).collect();
        Self { name, group, versions, force, places: places.join(", "), rule: rule.says }
    }
}

/// All checks, of servers and of directories.
fn listed() -> Vec<Listed> {
    let servers = nfs::list().into_iter().flatten().map(Listed::from);
    servers.chain(directory::CHECKS.iter().copied().flatten().map(Listed::from)).collect()
}

/// Prints the checks that are chosen.
fn list(args: &CheckArgs) -> Result<Status> {
    let mut chosen = listed();
    chosen.retain(|check| args.wants(check.group, check.name));
    chosen.retain(|check| args.nfs.is_empty() || check.versions.iter().any(|v| args.nfs.contains(v)));
    output::answer(args.json, &chosen, || {
        let line = |check: &Listed| {
            let Listed { name, group, versions, force, places, rule } = check;
            let versions: Vec<&str> = versions.iter().map(|version| version.name()).collect();
            let of = match &versions[..] {
                [] => "directory".to_owned(),
                versions => format!("NFS {}", versions.join(" ")),
            };
            format!("{name} ({group}, {force}, {of})\n    {places}: {rule}\n")
        };
        let lines: String = chosen.iter().map(line).collect();
        format!("{lines}{} checks", chosen.len())
    })
}
