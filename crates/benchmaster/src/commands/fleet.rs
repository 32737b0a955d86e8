//! `fleet`.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::Context as _;
use benchmaster_fleet::manifest::{Manifest, object_name};
use benchmaster_fleet::secure::ControllerKey;
use benchmaster_study::settings::{SERVER, TargetKind};

use crate::cli::{CredentialsArgs, FleetArgs, FleetCommand, ManifestArgs};
use crate::commands::{load_study, plan_of, print_warnings};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn fleet(args: &FleetArgs) -> Result<Status> {
    match &args.command {
        FleetCommand::Credentials(args) => credentials(args),
        FleetCommand::Manifest(args) => manifest(args),
    }
}

fn credentials(args: &CredentialsArgs) -> Result<Status> {
    let key = ControllerKey::generate()?;
    let directory = &args.directory;
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("cannot make the directory {}", directory.display()))
        .map_err(Failure::wrong_input)?;
    let files = [("controller", key.to_json()), ("agent", key.credentials()?.to_json())];
    for (name, text) in files {
        write_new(&directory.join(name), text.as_bytes())?;
    }
    output::note(&format!(
        "{0}/controller: for `[clients] credentials` of the study\n\
         {0}/agent: for `benchmaster agent --credentials`",
        directory.display()
    ));
    Ok(Status::Fine)
}

/// A file that only its user can read, and that was not there.
fn write_new(path: &Path, text: &[u8]) -> Result<()> {
    let make = || -> std::io::Result<()> {
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        file.write_all(text)?;
        file.sync_all()
    };
    make().with_context(|| format!("cannot write {}", path.display())).map_err(Failure::wrong_input)?;
    Ok(())
}

fn manifest(args: &ManifestArgs) -> Result<Status> {
    let mut change = args.change.clone();
    // What the cluster puts in is not known here.
    for set in &mut change.set {
        *set = set.replace("$(POD_IP)", "192.0.2.1");
    }
    let own = load_study(&args.study, &change)?;
    change.set.extend(Manifest::changes(args.agents));
    let mut arguments = args.change.arguments();
    if own.base.clients.count.is_none() {
        let count = format!("clients.count={}", args.agents);
        arguments.extend(["--set".into(), count.clone()]);
        change.set.push(count);
    }
    if own.base.lab.is_some() {
        return Err(Failure::wrong("a study in a lab has its clients there; run it on one host"));
    }
    if matches!(own.base.target.kind(), TargetKind::Embedded(_)) && own.base.server.listen.is_none() {
        return Err(Failure::wrong(format!(
            "`{SERVER}`, the embedded server, is in the controller's pod; add `--set 'server.listen=$(POD_IP)'`, or name \
             another target by `--target`"
        )));
    }
    let file = load_study(&args.study, &change)?;
    let plan = plan_of(&file)?;
    print_warnings(&plan, true);
    let name = args.name.as_deref().unwrap_or(&file.study.name);
    let manifest = Manifest {
        name: object_name(name).map_err(|error| Failure::wrong(format!("{error}; see `--name`")))?,
        namespace: args.namespace.as_deref(),
        image: &args.image,
        agents: args.agents,
        study: &file.text,
        arguments: &arguments,
        volumes: &args.volume,
        space: &args.space,
    };
    let objects = manifest.objects(&ControllerKey::generate()?)?;
    output::print(&format!("{}\n", serde_json::to_string_pretty(&objects)?))?;
    Ok(Status::Fine)
}
