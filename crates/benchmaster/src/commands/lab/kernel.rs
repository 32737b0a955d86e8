//! `lab kernel`.

use benchmaster_lab::kernel::{self, KernelError, Source};
use benchmaster_lab::{Kernel, KernelOrigin};

use super::ask;
use crate::cli::{KernelBuildArgs, KernelCommand, KernelListArgs};
use crate::failure::{Failure, Result, Status};
use crate::output;

pub(super) fn kernel(command: &KernelCommand) -> Result<Status> {
    match command {
        KernelCommand::Build(args) => build(args),
        KernelCommand::List(args) => list(args),
    }
}

fn build(args: &KernelBuildArgs) -> Result<Status> {
    let source = match (&args.of, &args.source) {
        (_, Some(tree)) => Source::Tree(tree.clone()),
        (Some(version), None) => Source::Package(version.clone()),
        (None, None) => {
            return Err(Failure::wrong("give a version, or --source TREE"));
        }
    };
    let consent = &mut |text: &str| args.yes || ask(text);
    let kernel = kernel::build(&source, consent, &mut output::note).map_err(|error| match error {
        KernelError::NoSource(_) => Failure::wrong_input(error),
        error => Failure::failed(error),
    })?;
    output::print(&text(&kernel))?;
    Ok(Status::Fine)
}

fn list(args: &KernelListArgs) -> Result<Status> {
    let kernels = kernel::list()?;
    if args.json {
        output::print_json(&kernels)?;
    } else if kernels.is_empty() {
        output::note("no kernel installed; `benchmaster lab setup` installs one");
    } else {
        output::print(&kernels.iter().map(text).collect::<String>())?;
    }
    Ok(Status::Fine)
}

fn text(kernel: &Kernel) -> String {
    let virtual_time = if kernel.virtual_time { ", virtual time" } else { "" };
    let (release, file) = (&kernel.release, kernel.file.display());
    format!("{release:<24} {}{virtual_time}, {}\n{:24} {file}\n", kernel.architecture, origin(kernel), "")
}

/// Where a kernel is from.
pub(super) fn origin(kernel: &Kernel) -> String {
    match &kernel.origin {
        KernelOrigin::Packaged { package, version } => format!("package {package} {version}"),
        KernelOrigin::Built { source } => format!("built from {source}"),
        KernelOrigin::Given => "a given file".into(),
    }
}
