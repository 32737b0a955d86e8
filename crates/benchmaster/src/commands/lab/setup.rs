//! `lab setup`.

use std::fmt::Write as _;
use std::fs;

use benchmaster_lab::kernel::{self, Architecture};
use benchmaster_lab::{BackEnd, KernelChoice, choice, qemu, root};

use super::{ask, kernel::origin};
use crate::cli::SetupArgs;
use crate::failure::{Result, Status};
use crate::output;

/// Gets what machines are made of, and says what runs them.
pub(super) fn setup(args: &SetupArgs) -> Result<Status> {
    let consent = &mut |text: &str| {
        if args.yes {
            output::note(text);
        }
        args.yes || ask(text)
    };
    if args.qemu {
        qemu::install(consent, &mut output::note)?;
    }
    let mut text = String::new();
    let kinds = [(Architecture::UserMode, true), (Architecture::Pc, args.qemu)];
    for (architecture, _) in kinds.into_iter().filter(|(_, wanted)| *wanted) {
        let found = kernel::find(&KernelChoice::Packaged, architecture, consent, &mut output::note);
        let kernel = found?;
        let image = root::image(&kernel, &[], consent, &mut output::note)?;
        let size = fs::metadata(&image)?.len() >> 20;
        let _ = writeln!(text, "kernel    {} ({})", kernel.release, origin(&kernel));
        let _ = writeln!(text, "root      {}, {size} MiB", image.display());
    }
    for back_end in [BackEnd::QemuKvm, BackEnd::Uml, BackEnd::QemuTcg] {
        let works = choice::available(back_end).map_or_else(|error| error.reason, |()| "works".to_owned());
        let _ = writeln!(text, "{back_end:<9} {works}");
    }
    let chosen = choice::choose(None, &KernelChoice::Packaged, &mut |_| {})?;
    let _ = writeln!(text, "machines run on {chosen}");
    output::print(&text)?;
    Ok(Status::Fine)
}
