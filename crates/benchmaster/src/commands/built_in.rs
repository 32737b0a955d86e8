//! What is built in: workloads, schema, completions, manual page.

use benchmaster_study::schema::schema_text;
use benchmaster_workload::builtin::{BUILT_IN, WorkloadSpec};
use clap::CommandFactory;

use crate::cli::{Cli, WorkloadsArgs, WorkloadsCommand};
use crate::commands::{Failure, Result, Status};
use crate::output;

pub(crate) fn workloads(args: &WorkloadsArgs) -> Result<Status> {
    match &args.command {
        Some(WorkloadsCommand::Show { name, full }) => show(name, *full)?,
        None if args.json => output::print_json(&BUILT_IN)?,
        None => {
            let width = BUILT_IN.iter().map(|info| info.name.len()).max().unwrap_or(0);
            let line = |info: &benchmaster_workload::builtin::BuiltInInfo| {
                format!("{:width$}  {} ({})\n", info.name, info.summary, info.source)
            };
            output::print(&BUILT_IN.iter().map(line).collect::<String>())?;
        }
    }
    Ok(Status::Fine)
}

fn show(name: &str, full: bool) -> Result<()> {
    let unknown = || {
        let known: Vec<&str> = BUILT_IN.iter().map(|info| info.name).filter(|name| *name != "custom").collect();
        Failure::wrong_input(anyhow::anyhow!("there is no built-in workload `{name}`; there are {}", known.join(", ")))
    };
    let empty = toml::Table::new();
    let spec = WorkloadSpec::deserialize(name, empty).ok_or_else(unknown)?.map_err(|_| unknown())?;
    let text = match full {
        false => toml::to_string(&spec).map_err(Failure::failed)?,
        true => {
            let workload = spec.expand("main").map_err(|errors| Failure::failed(anyhow::anyhow!("{errors:?}")))?;
            toml::to_string(&workload).map_err(Failure::failed)?
        }
    };
    let table = text.replace("\n[[", "\n[[workload.main.").replace("\n[", "\n[workload.main.");
    let table = table.replace("\n[workload.main.[workload.main.", "\n[[workload.main.");
    output::print(&format!("[workload.main]\n{table}"))
}

pub(crate) fn schema() -> Result<Status> {
    output::print(&schema_text())?;
    Ok(Status::Fine)
}

pub(crate) fn completions(shell: clap_complete::Shell) -> Result<Status> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "benchmaster", &mut text);
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Status::Fine)
}

pub(crate) fn man() -> Result<Status> {
    let mut text = Vec::new();
    clap_mangen::Man::new(Cli::command()).render(&mut text).map_err(Failure::failed)?;
    output::print(&String::from_utf8_lossy(&text))?;
    Ok(Status::Fine)
}
