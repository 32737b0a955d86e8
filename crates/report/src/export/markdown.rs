//! A document as Markdown for issues and pull requests (GitHub Flavored Markdown): its brief blocks.

mod escape;

use self::escape::{code, code_cell, fenced, text};
use crate::document::{Block, Cell, Depth, Document, Entry, Head, Note, Table};
use crate::format;

/// Rows of a table up to which all are shown.
const ROWS: usize = 32;

impl Document {
    /// As Markdown. Names and messages are escaped, so that none of them becomes markup.
    pub fn markdown(&self) -> String {
        let mut out = Markdown(format!("## {}\n", text(&self.title)));
        if let [about @ .., question] = self.lead.as_slice() {
            about.iter().for_each(|lead| out.block(&text(lead)));
            out.block(&format!("**{}**", text(question)));
        }
        for section in &self.sections {
            let blocks = section.blocks(Depth::Brief);
            if !blocks.is_empty() {
                out.block(&format!("### {}", text(&section.title)));
                blocks.into_iter().for_each(|block| out.write(block));
            }
        }
        out.0
    }
}

/// Blocks of Markdown, an empty line between them.
struct Markdown(String);

impl Markdown {
    fn block(&mut self, block: &str) {
        self.0.push('\n');
        self.0.push_str(block);
        self.0.push('\n');
    }

    /// An item of a list, close to the item before it.
    fn item(&mut self, item: &str) {
        let last = self.0.lines().next_back().unwrap_or_default();
        let is_item = last.starts_with("- **")
            || last.split_once(". **").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
        if is_item {
            self.0.push_str(item);
            self.0.push('\n');
        } else {
            self.block(item);
        }
    }

    fn write(&mut self, block: &Block) {
        match block {
            Block::Heading(heading) => self.block(&format!("#### {}", text(heading))),
            Block::Answer(sentences) => self.block(&text(&sentences.join(" "))),
            Block::Sentence(sentence) => self.block(&text(sentence)),
            Block::Hint(hint) => self.block(&coded(hint)),
            Block::List(items) => {
                let items: Vec<String> = items.iter().map(|item| format!("- {}", text(item))).collect();
                self.block(&items.join("\n"));
            }
            Block::Table(table) | Block::Beside(_, table) => self.table(table),
            Block::Note(one) if one.mark.is_empty() => self.block(&text(&one.text)),
            Block::Note(one) => self.item(&note(one)),
            Block::Finding(entry) => self.item(&finding(entry)),
            Block::Fold(title, blocks) if matches!(blocks.first(), Some(Block::Code(..))) => {
                self.block(&format!("<details><summary>{}</summary>", text(title)));
                blocks.iter().for_each(|block| self.write(block));
                self.block("</details>");
            }
            Block::Fold(title, blocks) => {
                if !matches!(blocks.first(), Some(Block::Table(_))) {
                    self.block(&format!("**{}**", text(title)));
                }
                blocks.iter().for_each(|block| self.write(block));
            }
            Block::Code(language, code) => self.block(&fenced(language, code.trim_end())),
            Block::Plot(_) => {}
        }
    }

    /// A table below its caption, of many rows the first.
    fn table(&mut self, table: &Table) {
        let line = |cells: Vec<String>| format!("| {} |", cells.join(" | "));
        let shown = |one: &Cell| match one {
            Cell { is_name: true, text, .. } => code_cell(text),
            // Numbers are no markup.
            Cell { sort: Some(_), text, .. } => text.clone(),
            Cell { text: words, .. } => text(words),
        };
        let rule = |head: &Head| if head.number { "--:" } else { ":--" }.to_owned();
        let mut table = table.clone();
        table.cap(ROWS);
        self.block(&format!("**{}**", text(&table.caption)));
        let mut lines = vec![line(table.head.iter().map(|head| text(&head.text)).collect())];
        lines.push(line(table.head.iter().map(rule).collect()));
        lines.extend(table.rows.iter().map(|row| line(row.iter().map(shown).collect())));
        self.block(&lines.join("\n"));
        if !table.note.is_empty() {
            self.block(&coded(&table.note));
        }
    }
}
fn note(note: &Note) -> String {
    match &note.check {
        Some(check) => {
            let (seen, told) = (text(&note.seen), text(&note.text));
            let check = code(check.name());
            format!("- **{}** {check} ({seen}): {told} *Do:* {}", note.mark, coded(&note.remedy))
        }
        None => format!("- **{}** {}", note.mark, text(&note.text)),
    }
}

/// A text in which what stands between backticks is code.
fn coded(note: &str) -> String {
    let part = |(at, part): (usize, &str)| if at % 2 == 1 { code(part) } else { within(part) };
    note.split('`').enumerate().map(part).collect()
}

/// Text within a line, whose blanks at its ends stay.
fn within(part: &str) -> String {
    let blank = |is: bool| if is { " " } else { "" };
    let inner = text(part);
    if inner.is_empty() {
        return blank(!part.is_empty()).into();
    }
    format!("{}{inner}{}", blank(part.starts_with(' ')), blank(part.ends_with(' ')))
}

/// On one line, so that it stays one item of the list.
fn finding(entry: &Entry) -> String {
    let finding = &entry.finding;
    let mut line = format!("{}. **{}** ({}", entry.number, text(finding.id), finding.confidence.word());
    if let Some(cost) = &finding.cost {
        line += &format!(", {} {}", format::percent(cost.share), cost.of.words());
    }
    line += &format!("): {} *Where:* {}.", text(&finding.what), text(&entry.place));
    line += &format!(" *Do:* {}", text(&finding.remedy.text));
    if let Some(command) = &finding.remedy.command {
        line += &format!(" {}", code(command));
    }
    line
}

#[cfg(test)]
mod tests;
