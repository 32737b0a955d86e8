//! Bringing a lab up: what it may be, what it needs, and its supervisor.

use std::env;
use std::fs::File;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::end::End;
use super::{END, LabError};
use crate::backend::{BackEnd, Unavailable};
use crate::choice;
use crate::config::{LabConfig, MOST_CLIENTS, ServerKind};
use crate::guest;
use crate::guest::protocol::{read, write};
use crate::kernel::{self, KernelChoice};
use crate::last_lines::last_lines;
use crate::root::{self, Consent};
use crate::supervisor::state::{self, Directory};
use crate::supervisor::{Bootable, News, Plan, command, lifeline};
/// The file of this program.
pub(super) fn program() -> Result<PathBuf, LabError> {
    env::current_exe().map_err(|source| LabError::Directory { path: "/proc/self/exe".into(), source })
}

pub(super) fn check(config: &LabConfig) -> Result<(), LabError> {
    let wrong = |key, value: &dyn ToString, needed: &str| {
        Err(LabError::Config { key, value: value.to_string(), needed: needed.to_owned() })
    };
    let of_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if config.name.is_empty() || config.name.len() > 32 || !config.name.chars().all(of_name) {
        return wrong("name", &format!("`{}`", config.name), "1 to 32 letters, digits, `-` and `_`");
    }
    if !(1..=MOST_CLIENTS).contains(&config.clients) {
        return wrong("clients", &config.clients, &format!("1 to {MOST_CLIENTS}"));
    }
    const LEAST: u64 = 64 << 20;
    for (key, memory) in [("client_memory", config.client_memory), ("server_memory", config.server_memory)] {
        if memory < LEAST {
            return wrong(key, &format!("{memory} bytes"), "64 MiB at least");
        }
    }
    if config.power_cuts {
        if !matches!(config.server, ServerKind::Knfsd(_)) {
            return wrong("power_cuts", &true, "the server `knfsd`: others have no disk");
        }
        if config.back_end.is_some_and(|back_end| back_end != BackEnd::Uml) {
            return wrong("power_cuts", &true, "the back-end `uml`: the disks of others have no log");
        }
    }
    match config.back_end {
        Some(BackEnd::UmlVirtualTime) => {
            let needed = "a study with `time = \"virtual\"` runs in one kernel, not in a lab that is up";
            wrong("back_end", &BackEnd::UmlVirtualTime, needed)
        }
        Some(BackEnd::Namespaces) if config.server.is_machine() => {
            let needed =
                "without machines there is no server machine; choose the server `memory`, or an address";
            wrong("server", &config.server, needed)
        }
        _ => Ok(()),
    }
}

/// Finds and makes everything that the lab needs.
pub(super) fn plan(
    config: &LabConfig,
    directory: &Directory,
    consent: Consent<'_>,
    tell: &mut dyn FnMut(&str),
) -> Result<Plan, LabError> {
    let directory = directory.path().to_owned();
    if config.back_end == Some(BackEnd::Namespaces) {
        let back_end = BackEnd::Namespaces;
        return Ok(Plan { config: config.clone(), back_end, client: None, server: None, directory });
    }
    let back_end = config.back_end.or(config.power_cuts.then_some(BackEnd::Uml));
    let back_end = choice::choose(back_end, &config.kernel, tell)?;
    let programs = match config.server {
        ServerKind::Ganesha => guest::ganesha::programs()?,
        _ => Vec::new(),
    };
    let mut bootable = |choice: &KernelChoice, consent: Consent<'_>| {
        let architecture = back_end
            .architecture()
            .ok_or_else(|| Unavailable { back_end, reason: "it boots no kernels".into() })?;
        let kernel = kernel::find(choice, architecture, &mut *consent, tell)?;
        let image = root::image(&kernel, &programs, &mut *consent, tell)?;
        let image_hash = root::hash(&image)?;
        Ok::<_, LabError>(Bootable { kernel, image, image_hash })
    };
    let client = bootable(&config.kernel, &mut *consent)?;
    let server = match (config.server.is_machine(), &config.server_kernel) {
        (false, _) => None,
        (true, Some(choice)) if *choice != config.kernel => Some(bootable(choice, consent)?),
        (true, _) => Some(client.clone()),
    };
    Ok(Plan { config: config.clone(), back_end, client: Some(client), server, directory })
}

/// Starts the supervisor and waits until the lab is up: the socket with which it ends, and its process 1.
pub(super) fn start(
    plan: &Plan,
    directory: &Directory,
    program: &Path,
    lock: File,
    tell: &mut dyn FnMut(&str),
) -> Result<(UnixStream, u32), LabError> {
    let failed = |source| LabError::Directory { path: directory.path().to_owned(), source };
    let log = File::create(directory.log()).map_err(failed)?;
    let (ours, theirs) = lifeline().map_err(failed)?;
    let mut first = command(program);
    first.stdin(theirs).stdout(Stdio::from(lock)).stderr(log);
    let mut child = first.spawn().map_err(|source| LabError::Directory { path: program.into(), source })?;
    // Our copies of its descriptors: the end of the socket is seen only when no process has the other one.
    drop(first);
    write(&mut &ours, plan).map_err(failed)?;
    let mut process = None;
    let result = loop {
        match news(&ours) {
            Ok(News::Process(number)) => process = Some(number),
            Ok(News::Tell(text)) => tell(&text),
            Ok(News::Up) => break Ok(()),
            Ok(News::Failed(failure)) => break Err(failure.into()),
            Err(_) => {
                let said = last_lines(&directory.log(), 10).join("\n");
                let said = if said.is_empty() { said } else { format!("; its log ends with:\n{said}") };
                break Err(LabError::Supervisor(said));
            }
        }
    };
    // It ends after it has started process 1.
    let _ = child.wait();
    match (result, process) {
        (Ok(()), Some(process)) => Ok((ours, process)),
        (Ok(()), None) => Err(LabError::Supervisor("; its process id is unknown".into())),
        (Err(error), process) => {
            drop(ours);
            if let Some(process) = process {
                End::of(process, state::started(process).unwrap_or_default()).wait(END);
            }
            Err(error)
        }
    }
}

fn news(socket: &UnixStream) -> io::Result<News> {
    Ok(benchmaster_frames::decode(&read(&mut &*socket)?)?)
}
