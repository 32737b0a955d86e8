//! `lab setup`.

use std::fmt::Write as _;
use std::fs;

use benchmaster_lab::kernel::{self, Architecture};
use benchmaster_lab::qemu::{self, Qemu};
use benchmaster_lab::uml::Uml;
use benchmaster_lab::{BackEnd, Backend, KernelChoice, choice, root};

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
    let back_ends: [&dyn Backend; 3] =
        [&Qemu { kvm: true }, &Uml { virtual_time: false }, &Qemu { kvm: false }];
    for back_end in back_ends {
        let works = match back_end.available() {
            Ok(()) => "works".to_owned(),
            Err(error) => error.reason,
        };
        let _ = writeln!(text, "{:<9} {works}", back_end.back_end());
    }
    let chosen = choice::choose(None, &KernelChoice::Packaged, &mut |_| {})?;
    let _ = writeln!(text, "machines run on {}", BackEnd::to_string(&chosen.back_end()));
    output::print(&text)?;
    Ok(Status::Fine)
}
