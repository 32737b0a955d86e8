//! What `run`, `analyze`, `compare` and `history` print: plain text, made for 80 columns and better in more.

mod grid;
mod summary;

use std::path::PathBuf;

use benchmaster_diagnosis::finding::{CostOf, Finding};

use crate::document::{Block, Depth, Document, Entry, Note};
use crate::format;
use grid::Text;

pub use grid::wrap;
pub use summary::summary;

/// How text is to look.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextOptions {
    /// Columns that fit into a line.
    pub width: usize,
    /// Whether to mark what matters by ANSI colours.
    pub color: bool,
    /// Whether `±`, `µ`, lines and bars may be used; else ASCII only.
    pub unicode: bool,
    /// Whether sentences may be cut so that a summary fits a screen.
    pub cut: bool,
    /// Where the HTML report is, printed at the end.
    pub report: Option<PathBuf>,
    /// The results directory, for the commands that print more.
    pub directory: Option<PathBuf>,
}

impl Default for TextOptions {
    fn default() -> Self {
        Self { width: 80, color: false, unicode: true, cut: true, report: None, directory: None }
    }
}

impl Document {
    /// As text; plots and what only the page has are left out.
    pub fn text(&self, options: &TextOptions) -> String {
        let mut text = Text::new(options);
        text.bold_line(&self.title);
        self.lead.iter().for_each(|lead| text.wrapped("", lead));
        for section in &self.sections {
            let blocks = section.blocks(Depth::Full);
            if blocks.iter().any(|block| !matches!(block, Block::Heading(_))) {
                text.section(&section.title.to_uppercase());
                write(&mut text, &blocks);
            }
        }
        text.finish()
    }
}

fn write(text: &mut Text, blocks: &[&Block]) {
    for (at, block) in blocks.iter().enumerate() {
        match block {
            Block::Heading(_) if matches!(blocks.get(at + 1), None | Some(Block::Heading(_))) => {}
            Block::Heading(heading) => text.section(heading),
            Block::Answer(sentences) | Block::List(sentences) => {
                sentences.iter().for_each(|sentence| text.wrapped("  ", sentence));
            }
            Block::Sentence(sentence) | Block::Hint(sentence) => text.wrapped("  ", sentence),
            Block::Table(table) | Block::Beside(_, table) => {
                text.section(&table.caption);
                text.table(table);
            }
            Block::Note(note) => {
                text.marked_in(note.severity, note.mark, &told(note), usize::MAX);
                if !note.remedy.is_empty() {
                    text.clipped_after("   ", &format!("do: {}", note.remedy), usize::MAX);
                }
            }
            Block::Finding(entry) => finding(text, entry),
            // A file that can be read elsewhere.
            Block::Fold(_, blocks) if matches!(blocks.first(), Some(Block::Code(..))) => {}
            Block::Fold(title, blocks) => {
                if !matches!(blocks.first(), Some(Block::Table(_) | Block::Finding(_) | Block::Note(_))) {
                    text.section(title);
                }
                write(text, &blocks.iter().collect::<Vec<_>>());
            }
            Block::Code(_, code) => code.lines().for_each(|line| text.raw_line(&format!("  {line}"))),
            Block::Plot(_) => {}
        }
    }
}

fn told(note: &Note) -> String {
    match &note.check {
        Some(check) => format!("{check} ({}): {}", note.seen, note.text),
        None => note.text.clone(),
    }
}

fn finding(text: &mut Text, entry: &Entry) {
    if entry.is_whole {
        text.raw_line("");
    }
    let finding = &entry.finding;
    let cost = cost(finding).map_or(String::new(), |cost| format!(", {cost}"));
    let head = format!("{}. {} ({}{cost}): ", entry.number, finding.id, finding.confidence.word());
    text.wrapped("   ", &format!("{head}{}", finding.what));
    if !entry.place.is_empty() {
        text.clipped_after("   ", &format!("where: {}", entry.place), usize::MAX);
    }
    text.clipped_after("   ", &format!("do: {}", remedy(finding)), usize::MAX);
    if entry.is_whole {
        for (term, words) in &entry.background {
            text.clipped_after("   ", &format!("{}: {words}", term.to_lowercase()), usize::MAX);
        }
        for table in &entry.evidence {
            text.raw_line("");
            text.table(table);
        }
    }
}

/// `costs 12 % of all calls`, `12 % of the reported numbers in doubt`.
fn cost(finding: &Finding) -> Option<String> {
    let cost = finding.cost.as_ref()?;
    let verb = if cost.of == CostOf::Result { "" } else { "costs " };
    Some(format!("{verb}{} {}", format::percent(cost.share), cost.of.words()))
}

/// What to do: the command or option first, where there is one.
fn remedy(finding: &Finding) -> String {
    let advice = &finding.remedy.text;
    match &finding.remedy.command {
        Some(command) => format!("{command} ({})", advice.trim_end_matches('.')),
        None => advice.clone(),
    }
}
