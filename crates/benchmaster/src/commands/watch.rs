//! `watch`: NFS mounts or a running study, live.

use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use benchmaster_record::live::{Live, Session};
use benchmaster_store::live::{self, FILE, unix_ms};
use benchmaster_watch::mounts::{Mounts, MountsView, Snapshot, lines};
use benchmaster_watch::study::{Study, StudyView};
use benchmaster_watch::{Action, Key, Screen};
use serde_json::json;

use crate::cli::WatchArgs;
use crate::failure::{Failure, Result, Status};
use crate::output;

mod exporter;
mod keyboard;
mod source;
mod terminal;

use source::Source;
use terminal::View;

/// Watches until it is stopped, or for the number of intervals asked for.
pub(crate) fn watch(args: &WatchArgs) -> Result<Status> {
    let text = args.once || args.count.is_some() || args.json;
    let interactive = !text && io::stdin().is_terminal() && io::stdout().is_terminal();
    let count = if args.once { Some(1) } else { args.count };
    let study = args.target.as_deref().filter(|path| args.mountstats.is_none() && is_results(path));
    if let Some(how) = args.prometheus {
        if let Some(directory) = study {
            return Err(Failure::wrong(format!(
                "`{}` is a study, and `--prometheus` is for mounts: name a mount, or none for all of them",
                directory.display()
            )));
        }
        return exporter::export(&Source::new(args.target.as_deref(), args.mountstats.as_deref())?, how);
    }
    match (study, interactive) {
        (Some(directory), true) => terminal::run(&mut StudyScreen::new(directory), args.interval.0),
        (Some(directory), false) => follow_study(directory, args, count),
        (None, interactive) => {
            let source = Source::new(args.target.as_deref(), args.mountstats.as_deref())?;
            if interactive {
                terminal::run(&mut MountsScreen::new(source), args.interval.0)
            } else {
                follow_mounts(&source, args, count)
            }
        }
    }
}

/// Whether a directory is one of results: it has been, or is being, written by a study.
fn is_results(path: &Path) -> bool {
    [FILE, "results.db", "study.toml"].iter().any(|name| path.join(name).is_file())
}

fn follow_mounts(source: &Source, args: &WatchArgs, count: Option<u64>) -> Result<Status> {
    let (mut mounts, began) = (Mounts::default(), Instant::now());
    mounts.take(source.read()?, began.elapsed());
    let mut ticks = Ticks::new(args.interval.0);
    let mut printed = 0;
    while count.is_none_or(|count| printed < count) {
        ticks.wait();
        mounts.take(source.read()?, began.elapsed());
        if args.json {
            print_line(&Snapshot::of(&mounts, unix_ms()))?;
        } else {
            output::print(&lines(&mounts))?;
        }
        printed += 1;
    }
    Ok(Status::Fine)
}

/// Follows a study until it ends.
fn follow_study(directory: &Path, args: &WatchArgs, count: Option<u64>) -> Result<Status> {
    let mut study = Study::default();
    let mut ticks = Ticks::new(args.interval.0);
    let mut printed = 0;
    loop {
        study.take(read(directory));
        let now = unix_ms();
        if args.json {
            print_line(&json!({
                "time_ms": now,
                "running": study.goes_on(now),
                "state": study.live(),
                "rates": study.clients(),
            }))?;
        } else {
            output::print(&study.line(now))?;
        }
        printed += 1;
        if !study.goes_on(now) {
            let finished = study.live().is_some_and(|live| live.session == Session::Finished);
            return Ok(if finished { Status::Fine } else { Status::ChecksFailed });
        }
        if count.is_some_and(|count| printed >= count) {
            return Ok(Status::Fine);
        }
        ticks.wait();
    }
}

fn print_line(value: &impl serde::Serialize) -> Result<()> {
    output::print(&serde_json::to_string(value)?)
}

fn read(directory: &Path) -> std::result::Result<Live, String> {
    live::read(directory).map_err(|error| format!("{:#}", anyhow::Error::from(error)))
}

/// Instants at a distance, which does not grow by what is done between them.
struct Ticks {
    every: Duration,
    next: Instant,
}

impl Ticks {
    fn new(every: Duration) -> Self {
        Self { every, next: Instant::now() + every }
    }

    fn wait(&mut self) {
        let now = Instant::now();
        std::thread::sleep(self.next.saturating_duration_since(now));
        // Ticks that were missed are not made up for.
        self.next = self.next.max(now) + self.every;
    }
}

/// Mounts on the terminal.
struct MountsScreen {
    source: Source,
    mounts: Mounts,
    view: MountsView,
    host: String,
    began: Instant,
}

impl MountsScreen {
    fn new(source: Source) -> Self {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        Self { source, mounts: Mounts::default(), view: MountsView::default(), host, began: Instant::now() }
    }
}

impl View for MountsScreen {
    fn read(&mut self) -> Result<()> {
        if !self.view.is_paused() {
            self.mounts.take(self.source.read()?, self.began.elapsed());
        }
        Ok(())
    }

    fn key(&mut self, key: Key) -> Action {
        self.view.key(key, &self.mounts)
    }

    fn draw(&self, screen: &mut Screen, every: Duration) {
        self.view.draw(screen, &self.mounts, &self.host, every);
    }
}

/// A study on the terminal.
struct StudyScreen {
    directory: PathBuf,
    study: Study,
    view: StudyView,
}

impl StudyScreen {
    fn new(directory: &Path) -> Self {
        Self { directory: directory.into(), study: Study::default(), view: StudyView::default() }
    }
}

impl View for StudyScreen {
    fn read(&mut self) -> Result<()> {
        if !self.view.is_paused() {
            self.study.take(read(&self.directory));
        }
        Ok(())
    }

    fn key(&mut self, key: Key) -> Action {
        self.view.key(key, &self.study)
    }

    fn draw(&self, screen: &mut Screen, _: Duration) {
        self.view.draw(screen, &self.study, &self.directory.to_string_lossy(), unix_ms());
    }
}
