//! `check`: whether a server does what it must.

use std::cell::RefCell;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use benchmaster_check::nfs::{self, Refusal, Target, Trial, User};
use benchmaster_check::{Check, Checked, Finding};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_report::{pages, verdicts};
use serde_json::json;

use crate::bar::Bar;
use crate::cli::CheckArgs;
use crate::commands::results::{write, write_page};
use crate::failure::{Failure, Result, Status};
use crate::{output, signals};

/// How long a server's grace period is waited for: longer than any usual one.
const GRACE: Duration = Duration::from_secs(120);

pub(crate) fn check(args: &CheckArgs) -> Result<Status> {
    for word in &args.only {
        let known = |check: &Check<Trial>| check.group.name() == word || check.name == word;
        if !nfs::list().into_iter().flatten().any(known) {
            return Err(Failure::wrong(format!(
                "there is no group and no check `{word}`; `benchmaster check --list` shows them"
            )));
        }
    }
    let Some(text) = args.target.as_deref().filter(|_| !args.list) else { return list(args) };
    let (target, version) = target(text, args)?;
    let chosen = match (&args.nfs[..], version) {
        ([], Some(version)) => vec![version],
        ([], None) => nfs::versions(&target).map_err(failure)?,
        (chosen, _) => chosen.to_vec(),
    };
    let stop = Arc::<AtomicBool>::default();
    for signal in signals::ending() {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let mut checked = Vec::new();
    for version in chosen {
        checked.push(one(&target, version, args, &stop)?);
    }
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

/// The checks of one version.
fn one(target: &Target, version: NfsVersion, args: &CheckArgs, stop: &AtomicBool) -> Result<Checked> {
    let wanted = |check: &Check<Trial>| args.wants(check.group, check.name);
    let all = nfs::list();
    let count = all.into_iter().flatten().filter(|check| check.versions.contains(&version) && wanted(check));
    let bar = RefCell::new(Bar::on_terminal(count.count() as u64));
    let mut seen = |finding: &Finding| {
        if let Some(bar) = &mut *bar.borrow_mut() {
            bar.position += 1;
            bar.beside = format!("NFS {version}: {}", finding.name);
            bar.show();
        }
    };
    let checked = nfs::check(target, version, &wanted, &|| !stop.load(Ordering::Relaxed), &mut seen);
    if let Some(bar) = &mut *bar.borrow_mut() {
        bar.erase();
    }
    checked.map_err(failure)
}

/// Where the export is, and the version if the URL says one.
fn target(text: &str, args: &CheckArgs) -> Result<(Target, Option<NfsVersion>)> {
    let options: MountOptions = text.parse().map_err(Failure::wrong_input)?;
    let place = (options.host.as_str(), options.nfs_port());
    let address: Option<SocketAddr> = place
        .to_socket_addrs()
        .map_err(|error| Failure::wrong(format!("the server `{}` has no address: {error}", options.host)))?
        .next();
    let nfs =
        address.ok_or_else(|| Failure::wrong(format!("the server `{}` has no address", options.host)))?;
    let query = text.split_once('?').map_or("", |(_, query)| query);
    let says = query.split(['&', ',']).any(|option| option.starts_with("version="));
    let version = says.then_some(options.version);
    let target = Target {
        nfs,
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

/// Prints the checks that are chosen.
fn list(args: &CheckArgs) -> Result<Status> {
    let all = nfs::list();
    let chosen: Vec<&Check<Trial>> = all
        .into_iter()
        .flatten()
        .filter(|check| args.wants(check.group, check.name))
        .filter(|check| args.nfs.is_empty() || check.versions.iter().any(|v| args.nfs.contains(v)))
        .collect();
    let places = |check: &Check<Trial>| {
        let places: Vec<String> = check.rule.places.iter().map(|(_, place)| place.to_string()).collect();
        places.join(", ")
    };
    let rows: Vec<serde_json::Value> = chosen
        .iter()
        .map(|check| {
            json!({
                "name": check.name, "group": check.group, "versions": check.versions, "force": check.force,
                "places": places(check), "rule": check.rule.says,
            })
        })
        .collect();
    output::answer(args.json, &rows, || {
        let line = |check: &&Check<Trial>| {
            let versions: Vec<&str> = check.versions.iter().map(|version| version.name()).collect();
            let (name, group, force, says) = (check.name, check.group, check.force, check.rule.says);
            format!("{name} ({group}, {force}, NFS {})\n    {}: {says}\n", versions.join(" "), places(check))
        };
        let lines: String = chosen.iter().map(line).collect();
        format!("{lines}{} checks", chosen.len())
    })
}
