//! `mutate [MUTATIONS [SEED]]`: a bounded run of random mutations of `corpus/` through all targets.
//!
//! The same arguments do the same. A panic ends the run with status 1, and the input is kept in `artifacts/`.

use std::fs;
use std::io;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use benchmaster_fuzz::decoders::{TARGETS, Target};
use benchmaster_fuzz::{dispatch, files, mutation, telemetry};

/// An input that takes longer costs the sender too little.
const SLOW: Duration = Duration::from_millis(200);

fn main() -> io::Result<ExitCode> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>().map_err(io::Error::other));
    let total = arguments.next().transpose()?.unwrap_or(1_000_000);
    let seed = arguments.next().transpose()?.unwrap_or(1);
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dispatch: &[Target] = &[("dispatch", dispatch::session)];
    let targets = TARGETS.iter().chain(dispatch).chain(telemetry::PARSERS).chain(files::FILES);
    let each = total.div_ceil(targets.clone().count() as u64);
    let mut failed = false;
    // The reader of traces catches those of the library.
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if panic.location().is_none_or(|place| !place.file().contains("/parquet-")) {
            report(panic);
        }
    }));
    for (name, target) in targets {
        let is_one_of = |targets: &[Target]| targets.iter().any(|(target, _)| target == name);
        let folders = if is_one_of(telemetry::PARSERS) {
            telemetry::recorded(name)
        } else if is_one_of(files::FILES) {
            files::folders(name)
        } else {
            vec![root.join("corpus").join(name)]
        };
        let mut corpus = Vec::new();
        for folder in &folders {
            corpus.extend(samples(folder)?);
        }
        let outcome = mutation::run(&corpus, each, seed, target);
        println!(
            "{name}: {} samples, {} mutations, slowest {:?}",
            corpus.len(),
            outcome.tried,
            outcome.slowest
        );
        if let Some((input, message)) = outcome.crash {
            let artifacts = root.join("artifacts").join(name);
            fs::create_dir_all(&artifacts)?;
            let path = artifacts.join(format!("crash-{seed}"));
            fs::write(&path, &input)?;
            println!(
                "{name}: panicked: {message}\n{name}: input of {} bytes in {}",
                input.len(),
                path.display()
            );
            failed = true;
        } else if outcome.tried < each || outcome.slowest > SLOW {
            println!("{name}: too few inputs tried, or one took longer than {SLOW:?}");
            failed = true;
        }
    }
    files::clean();
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The files of a folder but code and folders, in order of their names.
fn samples(folder: &Path) -> io::Result<Vec<Vec<u8>>> {
    let context = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", folder.display()));
    let mut paths = fs::read_dir(folder)
        .map_err(context)?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.retain(|path| path.is_file() && path.extension().is_none_or(|extension| extension != "rs"));
    paths.sort();
    paths.iter().map(fs::read).collect()
}
