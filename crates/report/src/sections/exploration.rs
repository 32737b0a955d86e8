//! What an exploration of faults found: histories of clients, wire and server.

use benchmaster_stats::share::wilson;
use serde::Serialize;

use crate::document::{Block, Cell, Document, Section, Table};
use crate::format;

/// Confidence level of the interval of the share.
const CONFIDENCE: f64 = 0.95;

/// Scenarios of faults that were tried.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Exploration {
    /// The study whose Linux clients and server were tried; `None`: those of this program.
    pub study: Option<String>,
    pub first_seed: u64,
    /// Scenarios tried.
    pub tried: u64,
    /// Scenarios in which a promise was not kept.
    pub failed: u64,
    /// Operations of clients.
    pub operations: u64,
    /// Faults that were planned.
    pub faults: u64,
    pub elapsed_s: f64,
    /// Some of those that failed, made as small as they could be.
    pub failures: Vec<ExploredFailure>,
}

/// A scenario in which a promise was not kept.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExploredFailure {
    pub seed: u64,
    /// Version, transport and cache of the clients.
    pub clients: String,
    /// What was seen and what would be right.
    pub what: String,
    pub at_s: f64,
    /// What went wrong on purpose.
    pub faults: Vec<String>,
    /// Scenarios that were tried to make it smaller.
    pub shrunk_in: u32,
    /// A number of the history: the same for the same scenario.
    pub fingerprint: String,
    /// Where the scenario was written.
    pub file: Option<String>,
    /// The command that tries the seed again, where the scenario was drawn from it.
    pub again: Option<String>,
    pub history: Vec<ExploredEvent>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ExploredEvent {
    pub at_s: f64,
    pub place: ExploredPlace,
    pub what: String,
}

/// Where something happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExploredPlace {
    Client(u8),
    ToServer(u8),
    ToClient(u8),
    Server,
    Fault,
}

/// One who sees everything before and after the others.
const AUDITOR: u8 = 250;

impl ExploredPlace {
    fn client(n: u8) -> String {
        if n == AUDITOR { "auditor".into() } else { format!("client {n}") }
    }

    fn name(self) -> String {
        match self {
            Self::Client(n) => Self::client(n),
            Self::ToServer(n) => format!("{} > server", Self::client(n)),
            Self::ToClient(n) => format!("{} < server", Self::client(n)),
            Self::Server => "server".into(),
            Self::Fault => "fault".into(),
        }
    }
}

/// What was found.
pub fn document(found: &Exploration) -> Document {
    let (_, most) = wilson(found.failed, found.tried, CONFIDENCE);
    let (subject, promise) = match &found.study {
        None => (
            "The NFS client and server of this program".to_owned(),
            "data that was called stable, one holder of a lock, each change once, what others closed before an open, an answer \
             to everything",
        ),
        Some(study) => (
            format!("Linux' NFS clients and server in the study `{study}`"),
            "data and names that were called stable, data that are read, an answer to everything, no error without a reason, no \
             warning of the kernel",
        ),
    };
    let answer = match found.failed {
        0 => format!(
            "All promises were kept in {} (the share that breaks one is below {}, {} Wilson interval).",
            format::plural(found.tried as usize, "scenario"),
            format::percent(most),
            format::percent(CONFIDENCE)
        ),
        failed => format!(
            "A promise was broken in {} of {}.",
            format::count(failed),
            format::plural(found.tried as usize, "scenario")
        ),
    };
    let scope = format!(
        "{} operations and {} faults in {}, from seed {}.",
        format::count(found.operations),
        format::count(found.faults),
        format::duration(found.elapsed_s),
        found.first_seed
    );
    let mut sections = vec![Section::new("answer", "Answer").brief([Block::Answer(vec![answer, scope])])];
    sections.extend(found.failures.iter().map(failure));
    Document {
        kind: "Benchmaster exploration",
        title: "Clients and server under faults".into(),
        lead: vec![format!("{subject} on virtual time, with faults drawn from seeds. Checked: {promise}.")],
        sections,
    }
}

fn failure(failure: &ExploredFailure) -> Section {
    let mut facts: Vec<Block> = vec![format!("After {:.6} s: {}.", failure.at_s, failure.what).into()];
    if failure.faults.is_empty() {
        facts.push("No fault is needed.".into());
    } else {
        facts.push(format!("Faults: {}.", failure.faults.join("; ")).into());
    }
    if let Some(file) = &failure.file {
        facts.push(Block::Hint(format!("Once more: `benchmaster explore {file}`.")));
    }
    if let Some(again) = &failure.again {
        facts.push(Block::Hint(format!("From its seed, not made smaller: `{again}`.")));
    }
    let mut lines = String::new();
    for event in &failure.history {
        lines += &format!("{:>12.6}  {:<20} {}\n", event.at_s, event.place.name(), event.what);
    }
    lines += &format!("{:>12.6}  {:<20} {}\n", failure.at_s, "WRONG", failure.what);
    let title = format!("Seed {}: {}", failure.seed, failure.clients);
    Section::new("failure", title)
        .brief(facts)
        .full([Block::Fold("History".into(), vec![Block::Code("text", lines)])])
        .page([time_line(failure)])
        .unlisted()
}

/// The history with a column for each client, the wire and the server.
fn time_line(failure: &ExploredFailure) -> Table {
    let mut clients: Vec<u8> = failure
        .history
        .iter()
        .filter_map(|event| match event.place {
            ExploredPlace::Client(n) => Some(n),
            _ => None,
        })
        .collect();
    clients.sort_unstable();
    clients.dedup();
    let names: Vec<String> = clients.iter().map(|n| ExploredPlace::client(*n)).collect();
    let head: Vec<&str> = ["time"]
        .into_iter()
        .chain(names.iter().map(String::as_str))
        .chain(["wire", "server", "fault"])
        .collect();
    let mut table = Table::new("Time line", &head);
    let columns = clients.len();
    let mut row = |at: f64, column: usize, text: String| {
        let cells = (0..columns + 3).map(|n| Cell::text(if n == column { text.as_str() } else { "" }));
        table.row([Cell::number(format!("{at:.6}"), at)].into_iter().chain(cells));
    };
    for event in &failure.history {
        let (column, text) = match event.place {
            ExploredPlace::Client(n) => (clients.binary_search(&n).unwrap_or(0), event.what.clone()),
            ExploredPlace::ToServer(_) | ExploredPlace::ToClient(_) => {
                (columns, format!("{}: {}", event.place.name(), event.what))
            }
            ExploredPlace::Server => (columns + 1, event.what.clone()),
            ExploredPlace::Fault => (columns + 2, event.what.clone()),
        };
        row(event.at_s, column, text);
    }
    row(failure.at_s, columns + 2, format!("WRONG: {}", failure.what));
    table
}
