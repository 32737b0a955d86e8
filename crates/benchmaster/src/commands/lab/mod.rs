//! `lab`: machines in user space.

mod kernel;
mod setup;
mod shell;
mod status;

use std::io::{self, IsTerminal, Read, Write};

use benchmaster_lab::guest::{self, Command};
use benchmaster_lab::lab::{Lab, LabError};
use benchmaster_lab::{KnfsdConfig, LabConfig, ServerKind, supervisor};

use crate::cli::{ExecArgs, GuestArgs, LabArgs, LabCommand, LogsArgs, NameArgs, SupervisorArgs, UpArgs};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn lab(args: &LabArgs) -> Result<Status> {
    match &args.command {
        LabCommand::Up(args) => up(args),
        LabCommand::Setup(args) => setup::setup(args),
        LabCommand::Kernel(command) => kernel::kernel(command),
        LabCommand::Down(args) => down(args),
        LabCommand::Status(args) => status::status(args),
        LabCommand::Shell(args) => shell::shell(args),
        LabCommand::Exec(args) => exec(args),
        LabCommand::Logs(args) => logs(args),
    }
}

/// A hidden command: a process of a lab's supervisor.
pub(crate) fn supervisor(args: &SupervisorArgs) -> Result<Status> {
    supervisor::run(args.stage)?;
    Ok(Status::Fine)
}

/// A hidden command: process 1 of a guest.
pub(crate) fn guest(args: &GuestArgs) -> Result<Status> {
    match args.serve {
        Some(address) => guest::serve(address)?,
        None => match guest::process_1()? {},
    }
    Ok(Status::Fine)
}

fn up(args: &UpArgs) -> Result<Status> {
    let config = config_of(args);
    let program = std::env::current_exe()?;
    let consent = &mut |text: &str| args.yes || ask(text);
    let lab = Lab::up_with(&config, &program, consent, &mut output::note).map_err(failure)?;
    let server = match &config.server {
        ServerKind::Memory => "the server belongs to the study that uses the lab".into(),
        _ => format!("the server is {}:/export", lab.server_address()),
    };
    output::note(&format!("the lab `{}` is up; {server}", config.name));
    Ok(Status::Fine)
}

/// Asks on the terminal; without one the answer is no.
fn ask(text: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let mut error = io::stderr().lock();
    let asked = write!(error, "{text}\nGo on? [y/N] ").and_then(|()| error.flush());
    let mut answer = String::new();
    asked.is_ok() && io::stdin().read_line(&mut answer).is_ok() && matches!(answer.trim(), "y" | "Y" | "yes")
}

fn config_of(args: &UpArgs) -> LabConfig {
    let server = match &args.server {
        ServerKind::Knfsd(_) => ServerKind::Knfsd(KnfsdConfig {
            threads: args.threads,
            file_system: args.file_system,
            disk_size: args.disk_size.bytes(),
            sync: !args.unsafe_writes,
            delegations: !args.no_delegations,
            lease: args.lease.0,
            mkfs_options: args
                .mkfs_options
                .iter()
                .flat_map(|words| words.split_whitespace())
                .map(Into::into)
                .collect(),
            mount_options: args.mount_options.clone(),
        }),
        other => other.clone(),
    };
    LabConfig {
        name: args.lab.name.clone(),
        clients: args.clients,
        server,
        back_end: args.back_end,
        kernel: args.kernel.clone(),
        server_kernel: args.server_kernel.clone(),
        client_memory: args.memory.bytes(),
        server_memory: args.server_memory.bytes(),
        emulated: args.emulated,
        power_cuts: false,
        lasting: true,
    }
}

fn down(args: &NameArgs) -> Result<Status> {
    Lab::down(&args.name, &mut output::note).map_err(failure)?;
    output::note(&format!("the lab `{}` is down", args.name));
    Ok(Status::Fine)
}

fn exec(args: &ExecArgs) -> Result<Status> {
    let lab = attached(&args.lab)?;
    let mut command = Command { limit: args.limit.0, ..Command::new(args.program.clone()) };
    if !io::stdin().is_terminal() {
        io::stdin().read_to_string(&mut command.input)?;
    }
    let done = lab.run(&args.machine, &command).map_err(failure)?;
    if !done.stdout.is_empty() {
        output::print(&done.stdout)?;
    }
    if !done.stderr.is_empty() {
        output::note(done.stderr.trim_end());
    }
    Ok(if done.status == 0 { Status::Fine } else { Status::ChecksFailed })
}

fn logs(args: &LogsArgs) -> Result<Status> {
    let found = Lab::list().into_iter().find(|lab| lab.name == args.lab.name);
    let directory = found.ok_or_else(|| failure(LabError::NotUp(args.lab.name.clone())))?.directory;
    let mut files = Vec::new();
    if args.machine.as_deref() == Some("supervisor") {
        files.push(("supervisor".to_owned(), directory.join("log")));
    } else {
        let machines = std::fs::read_dir(directory.join("machines")).into_iter().flatten().flatten();
        let named = machines.map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), entry.path().join("console.log"))
        });
        files.extend(named.filter(|(name, _)| args.machine.as_ref().is_none_or(|asked| asked == name)));
        files.sort();
    }
    if files.is_empty() {
        let asked = args.machine.as_deref().unwrap_or("any machine");
        return Err(Failure::wrong(format!("the lab `{}` has no console of {asked}", args.lab.name)));
    }
    let several = files.len() > 1;
    for (name, file) in files {
        let text =
            std::fs::read(&file).map_err(|error| Failure::fault(format!("{}: {error}", file.display())))?;
        let heading = if several { format!("==> {name} <==\n") } else { String::new() };
        output::print(&format!("{heading}{}", String::from_utf8_lossy(&text)))?;
    }
    Ok(Status::Fine)
}

/// The lab of a name.
fn attached(args: &NameArgs) -> Result<Lab> {
    let lab = Lab::attach(&args.name).map_err(failure)?;
    lab.ok_or_else(|| failure(LabError::NotUp(args.name.clone())))
}

fn failure(error: LabError) -> Failure {
    match error {
        LabError::Config { .. } | LabError::NotUp(_) | LabError::UpAlready(_) => Failure::wrong_input(error),
        error => Failure::failed(error),
    }
}
