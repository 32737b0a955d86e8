//! What is built in: workloads, schema, completions, manual page.

use benchmaster_builtin::{BUILT_IN, BuiltInInfo, WorkloadSpec};
use benchmaster_study::schema::schema_text;
use clap_complete::env::Shells;

use crate::cli::{self, Generated, WorkloadsArgs, WorkloadsCommand};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(crate) fn workloads(args: &WorkloadsArgs) -> Result<Status> {
    match &args.command {
        Some(WorkloadsCommand::Show { name, full }) => show(name, *full),
        None => output::answer(args.json, &BUILT_IN, || {
            let width = BUILT_IN.iter().map(|info| info.name.len()).max().unwrap_or(0);
            let line =
                |info: &BuiltInInfo| format!("{:width$}  {} ({})\n", info.name, info.summary, info.source);
            BUILT_IN.iter().map(line).collect()
        }),
    }
}

fn show(name: &str, full: bool) -> Result<Status> {
    if name == "custom" {
        return Err(Failure::wrong(
            "`custom` is a workload in full and has no parameters; start from a built-in one, as in \
             `benchmaster workloads show random-read --full`",
        ));
    }
    let defaults = WorkloadSpec::deserialize(name, toml::Table::new()).ok_or_else(|| {
        let known: Vec<&str> =
            BUILT_IN.iter().map(|info| info.name).filter(|name| *name != "custom").collect();
        Failure::wrong(format!("unknown built-in workload `{name}`; available: {}", known.join(", ")))
    })?;
    let mut spec = defaults?;
    if full {
        let expanded = spec.expand(name).map_err(|errors| {
            let problems: Vec<String> = errors.iter().map(ToString::to_string).collect();
            Failure::fault(problems.join("; "))
        })?;
        spec = WorkloadSpec::Custom(expanded);
    }
    let workload = toml::Value::try_from(&spec)?;
    let named = toml::Table::from_iter([(name.to_owned(), workload)]);
    let study = toml::Table::from_iter([("workload".to_owned(), toml::Value::Table(named))]);
    output::print(&toml::to_string(&study)?)?;
    Ok(Status::Fine)
}

pub(crate) fn generate(what: &Generated) -> Result<Status> {
    let text = match what {
        Generated::Schema => schema_text(),
        Generated::Completions { shell } => {
            let mut text = Vec::new();
            // The script asks the program itself, which knows the names of results, studies and workloads.
            let shells = Shells::builtins();
            let completer = shells.completer(&shell.to_string());
            let completer = completer.ok_or_else(|| Failure::fault(format!("no completions for {shell}")))?;
            completer.write_registration(
                cli::COMPLETE,
                "benchmaster",
                "benchmaster",
                "benchmaster",
                &mut text,
            )?;
            String::from_utf8_lossy(&text).into_owned()
        }
        Generated::Man { command } => man(command.as_deref())?,
    };
    output::print(&text)?;
    Ok(Status::Fine)
}

fn man(command: Option<&str>) -> Result<String> {
    let mut program = cli::command();
    program.build();
    let page = match command {
        None => program,
        Some(name) => program.find_subcommand(name).cloned().ok_or_else(|| {
            let known: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
            Failure::wrong(format!("unknown command `{name}`; available: {}", known.join(", ")))
        })?,
    };
    let mut text = Vec::new();
    let source = format!("benchmaster {}", env!("CARGO_PKG_VERSION"));
    clap_mangen::Man::new(page).source(source).render(&mut text)?;
    Ok(String::from_utf8_lossy(&text).into_owned())
}
