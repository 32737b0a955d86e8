//! Lines, paragraphs and tables of plain text.

use benchmaster_record::results::Severity;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::TextOptions;
use crate::document::{self, Style};
use crate::format;

pub(super) struct Text {
    pub(super) options: TextOptions,
    out: String,
}

#[derive(Clone)]
struct Column {
    name: String,
    /// The name, and the unit where all numbers have it.
    header: String,
    cells: Vec<String>,
    severities: Vec<Option<Severity>>,
    /// Columns of a high rank are dropped first where the width does not suffice; 0 = never.
    rank: u8,
    /// Numbers are aligned right.
    right: bool,
}

impl Column {
    fn texts(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.header).chain(&self.cells)
    }

    /// That of its widest line.
    fn width(&self) -> usize {
        self.texts().flat_map(|text| text.split('\n')).map(UnicodeWidthStr::width).max().unwrap_or(0)
    }

    /// Moves a unit that all numbers have into the header, or at least closer to its number (`1.24ms`) in columns without
    /// intervals.
    fn compact(&mut self) {
        let unit = |cell: &String| {
            let (number, unit) = cell.rsplit_once(' ')?;
            let is_unit = unit.starts_with(char::is_alphabetic)
                && number.ends_with(|c: char| c.is_ascii_digit() || c == ')');
            is_unit.then(|| unit.to_owned())
        };
        let mut units: Vec<_> = self.cells.iter().filter(|cell| !is_missing(cell)).map(unit).collect();
        units.dedup();
        let with_interval = self.cells.iter().any(|cell| cell.matches(' ').count() > 1);
        let widest = self.cells.iter().map(|cell| cell.width()).max().unwrap_or(0);
        match units.as_slice() {
            // Unless the header becomes wider than the numbers.
            [Some(unit)] if with_interval && self.header.width() + 1 + unit.width() <= widest => {
                self.header = format!("{} {unit}", self.name);
                let end = format!(" {unit}");
                for cell in &mut self.cells {
                    cell.truncate(cell.trim_end_matches(&end).len());
                }
            }
            _ if with_interval => {}
            _ => {
                for cell in self.cells.iter_mut().filter(|cell| unit(cell).is_some()) {
                    *cell = cell.replacen(' ', "", 1);
                }
            }
        }
    }
}

impl Text {
    pub(super) fn new(options: &TextOptions) -> Self {
        Self { options: options.clone(), out: String::new() }
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    /// A blank line and a heading.
    pub(super) fn section(&mut self, title: &str) {
        self.out.push('\n');
        self.bold_line(title);
    }

    pub(super) fn bold_line(&mut self, line: &str) {
        for line in wrap(&self.plain(line), self.options.width) {
            let line = self.colored("1", &line);
            self.out += &line;
            self.out.push('\n');
        }
    }

    /// A line as it is, however long.
    pub(super) fn raw_line(&mut self, line: &str) {
        self.out += line;
        self.out.push('\n');
    }

    /// A paragraph; its further lines are indented by `indent`.
    pub(super) fn wrapped(&mut self, indent: &str, paragraph: &str) {
        self.clipped(indent, paragraph, usize::MAX);
    }

    /// A paragraph of at most this number of lines; where it is longer, it is cut after a word, and that is seen. What is no
    /// screen has room for all of it.
    pub(super) fn clipped(&mut self, indent: &str, paragraph: &str, lines: usize) {
        let lines = if self.options.cut { lines } else { usize::MAX };
        let text = clip(&self.plain(paragraph), self.options.width, indent, lines, self.ellipsis());
        self.out += &text;
    }

    /// The same with the indent before the first line too.
    pub(super) fn clipped_after(&mut self, indent: &str, paragraph: &str, lines: usize) {
        let lines = if self.options.cut { lines } else { usize::MAX };
        let width = self.options.width.saturating_sub(indent.len());
        let text = clip(&self.plain(paragraph), width, "", lines, self.ellipsis());
        text.lines().for_each(|line| self.out += &format!("{indent}{line}\n"));
    }

    fn ellipsis(&self) -> &'static str {
        if self.options.unicode { "…" } else { "..." }
    }
    pub(super) fn lines(&self) -> usize {
        self.out.lines().count()
    }

    /// A paragraph of at most this number of lines that begins with a word in the colour of its severity.
    pub(super) fn marked_in(
        &mut self,
        severity: Option<Severity>,
        mark: &str,
        paragraph: &str,
        lines: usize,
    ) {
        let start = self.out.len();
        let colon = if mark.is_empty() { "" } else { ": " };
        self.clipped("  ", &format!("{mark}{colon}{paragraph}"), lines);
        if let Some(severity) = severity.filter(|_| !mark.is_empty()) {
            let word = self.colored(color(severity), mark);
            self.out.replace_range(start..start + mark.len(), &word);
        }
    }

    /// A table of the document without its caption; sentences of its rows stand below it.
    pub(super) fn table(&mut self, table: &document::Table) {
        let is_sentence =
            |at: usize| table.rows.iter().any(|row| row.get(at).is_some_and(|c| c.style == Style::Sentence));
        let (told, shown): (Vec<usize>, Vec<usize>) = (0..table.head.len()).partition(|at| is_sentence(*at));
        let text = |row: &Vec<document::Cell>, at: usize| {
            row.get(at).map(|cell| cell.text.replace(NO_BREAK, " ")).unwrap_or_default()
        };
        let columns = shown.iter().map(|&at| Column {
            name: table.head[at].text.clone(),
            header: table.head[at].text.clone(),
            cells: table.rows.iter().map(|row| text(row, at)).collect(),
            severities: table.rows.iter().map(|row| row.get(at).and_then(document::Cell::severity)).collect(),
            rank: table.head[at].rank,
            right: table.head[at].number,
        });
        // Lines of bars have no ASCII.
        let is_bar = |c: char| ('\u{2581}'..='\u{2588}').contains(&c);
        let is_drawn =
            |column: &Column| self.options.unicode || !column.cells.iter().any(|cell| cell.contains(is_bar));
        let columns = columns.filter(is_drawn).collect();
        self.columns(columns);
        for row in &table.rows {
            let is_marked = row.iter().any(|cell| cell.severity().is_some());
            for &at in &told {
                let name = if table.rows.len() > 1 { format!("{}: ", text(row, 0)) } else { String::new() };
                if table.rows.len() <= SENTENCES || is_marked {
                    self.wrapped("  ", &format!("{name}{}", text(row, at)));
                }
            }
        }
        if !table.note.is_empty() {
            self.wrapped("", &table.note);
        }
    }

    /// Columns fitted to the width: labels are wrapped first, then columns dropped, and those are named; then texts are
    /// broken. A number is never broken: where the numbers alone are too wide, each row is a list of its cells.
    fn columns(&mut self, mut columns: Vec<Column>) {
        for column in &mut columns {
            column.header = self.plain(&column.header);
            column.name = column.header.clone();
            column.cells.iter_mut().for_each(|c| *c = self.plain(c));
        }
        let whole = columns.clone();
        let mut dropped = Vec::new();
        let mut fit = Fit { gap: 2, width: None };
        let mut lines = layout(&columns, fit, false);
        if width_of(&lines) > self.options.width {
            columns.iter_mut().filter(|column| column.right).for_each(Column::compact);
            lines = layout(&columns, fit, false);
        }
        let mut labels = columns.first().map(|label| label.cells.clone()).unwrap_or_default();
        if width_of(&lines) > self.options.width {
            lines = self.with_broken(&labels, &mut columns, fit);
        }
        if width_of(&lines) > self.options.width {
            fit.gap = 1;
            lines = self.with_broken(&labels, &mut columns, fit);
        }
        while width_of(&lines) > self.options.width {
            let worst = columns.iter().enumerate().filter(|(_, c)| c.rank > 0).max_by_key(|(_, c)| c.rank);
            let Some((index, _)) = worst else {
                fit.width = Some(self.options.width);
                lines = layout(&columns, fit, false);
                if width_of(&lines) > self.options.width {
                    self.listed(&whole);
                    return;
                }
                break;
            };
            dropped.push(columns.remove(index).name);
            if index == 0 {
                labels = columns.first().map(|label| label.cells.clone()).unwrap_or_default();
            }
            lines = self.with_broken(&labels, &mut columns, fit);
        }
        let header_lines = columns.iter().map(|c| c.header.lines().count()).max().unwrap_or(1);
        let rule = if self.options.unicode { "─" } else { "-" }.repeat(width_of(&lines));
        let styled = if self.options.color { layout(&columns, fit, true) } else { lines };
        for (i, line) in styled.iter().enumerate() {
            if i == header_lines {
                self.out += &rule;
                self.out.push('\n');
            }
            self.out += line.trim_end();
            self.out.push('\n');
        }
        if !dropped.is_empty() {
            self.wrapped("", &format!("(too narrow for: {})", dropped.join(", ")));
        }
    }

    /// The table with these labels in the first column, broken at blanks as far as the width demands.
    fn with_broken(&self, labels: &[String], columns: &mut [Column], fit: Fit) -> Vec<String> {
        let Some(label) = columns.first_mut() else { return Vec::new() };
        label.cells = labels.to_vec();
        let lines = layout(columns, fit, false);
        let excess = width_of(&lines).saturating_sub(self.options.width);
        let Some(label) = columns.first_mut().filter(|_| excess > 0) else { return lines };
        // An operator stays with what follows it.
        let bound = |text: &String| text.replace("× ", "×\u{a0}").replace(" x ", " x\u{a0}");
        let room = label.width().saturating_sub(excess).max(label.header.width());
        let longest = |text: &String| bound(text).split(' ').map(UnicodeWidthStr::width).max().unwrap_or(0);
        let room = label.cells.iter().map(longest).max().unwrap_or(0).max(room);
        label.cells.iter_mut().for_each(|text| *text = wrap(&bound(text), room).join("\n"));
        layout(columns, fit, false)
    }

    /// The rows one below the other: the label, then a line for each cell that is not missing.
    fn listed(&mut self, columns: &[Column]) {
        let Some((label, others)) = columns.split_first() else { return };
        let widest = others.iter().map(|column| column.name.width()).max().unwrap_or(0);
        for (row, name) in label.cells.iter().enumerate() {
            self.bold_line(name);
            for column in others {
                let Some(cell) = column.cells.get(row).filter(|cell| !is_missing(cell)) else { continue };
                let shown = if column.right { unbroken(cell) } else { cell.clone() };
                let name = unbroken(&format!("  {:widest$}  ", column.name));
                let start = self.out.len();
                self.wrapped(&" ".repeat(widest + 4), &format!("{name}{shown}"));
                let severity = column.severities.get(row).copied().flatten();
                if let Some(severity) = severity.filter(|_| self.options.color) {
                    let colored =
                        self.out[start..].replacen(cell.as_str(), &self.colored(color(severity), cell), 1);
                    self.out.replace_range(start.., &colored);
                }
            }
        }
    }

    pub(super) fn colored(&self, code: &str, text: &str) -> String {
        if self.options.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.into() }
    }

    /// Without what only Unicode has, where it is not wanted.
    fn plain(&self, text: &str) -> String {
        if self.options.unicode { text.into() } else { format::ascii(text) }
    }
}

/// With blanks at which no line is broken.
fn unbroken(text: &str) -> String {
    text.replace(' ', &NO_BREAK.to_string())
}

fn is_missing(cell: &str) -> bool {
    matches!(cell, "–" | "-")
}

fn color(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "1;31",
        Severity::Warning => "33",
        Severity::Note => "36",
    }
}

/// Rows up to which each has its sentences; of more those alone that are marked.
const SENTENCES: usize = 9;
const NO_BREAK: char = '\u{a0}';

/// Words of a text column up to this width stay whole.
const LONGEST_WORD: usize = 14;

/// How close a table is set.
#[derive(Clone, Copy)]
struct Fit {
    /// Blanks between columns.
    gap: usize,
    /// Break texts so that the table is no wider than this.
    width: Option<usize>,
}

/// The lines of a table.
fn layout(columns: &[Column], fit: Fit, is_colored: bool) -> Vec<String> {
    let widths = match fit.width {
        Some(width) => fitted(columns, width, fit.gap),
        None => columns.iter().map(Column::width).collect(),
    };
    let rows = columns.iter().map(|column| column.cells.len()).max().unwrap_or(0);
    let mut lines = Vec::new();
    for row in 0..=rows {
        let cell = |(column, &width): (&Column, &usize)| match row.checked_sub(1) {
            None => (broken(&column.header, width), Some("1")),
            Some(row) => {
                let severity = column.severities.get(row).copied().flatten();
                (broken(column.cells.get(row).map_or("", String::as_str), width), severity.map(color))
            }
        };
        let cells: Vec<_> = columns.iter().zip(&widths).map(cell).collect();
        let height = cells.iter().map(|(cell, _)| cell.len()).max().unwrap_or(0);
        for at in 0..height {
            let mut line = String::new();
            for (((cell, code), column), width) in cells.iter().zip(columns).zip(&widths) {
                let text = cell.get(at).map_or("", String::as_str);
                let blanks = " ".repeat(width.saturating_sub(text.width()));
                let code = code.filter(|_| is_colored && !text.is_empty());
                let text = code.map_or_else(|| text.to_owned(), |code| format!("\x1b[{code}m{text}\x1b[0m"));
                line += &if column.right { blanks + &text } else { text + &blanks };
                line += &" ".repeat(fit.gap);
            }
            line.truncate(line.len() - fit.gap);
            lines.push(line);
        }
    }
    lines
}

/// Widths with which the columns fill `total`. Numbers have what they need. Of the rest, texts of which a word is wider than an
/// equal share have the width of that word, short ones their own, long ones that of their lines; what is left is shared.
fn fitted(columns: &[Column], total: usize, gap: usize) -> Vec<usize> {
    let mut widths: Vec<_> = columns.iter().map(|column| column.right.then(|| column.width())).collect();
    let total = total.saturating_sub(gap * columns.len().saturating_sub(1));
    let share = |widths: &[Option<usize>]| {
        let open = widths.iter().filter(|width| width.is_none()).count();
        (total.saturating_sub(widths.iter().flatten().sum()).max(open), open.max(1))
    };
    // From a column, its share and the gap to the width, where this rule decides it.
    type Rule = fn(&Column, usize, usize) -> Option<usize>;
    let rules: [Rule; 3] = [
        |column, share, gap| {
            let words = column.cells.iter().flat_map(|cell| cell.split_whitespace());
            let longest = words.map(UnicodeWidthStr::width).max().unwrap_or(0).clamp(1, LONGEST_WORD);
            (share < longest + gap).then_some(longest)
        },
        |column, share, _| Some(column.width()).filter(|width| *width <= share),
        |column, share, _| {
            let lines = column.texts().flat_map(|text| broken(text, share));
            lines.map(|line| line.width()).max().filter(|width| *width < share)
        },
    ];
    for rule in rules {
        loop {
            let (left, open) = share(&widths);
            let free = (0..columns.len()).filter(|at| widths[*at].is_none());
            let mut decided = free.filter_map(|at| Some((at, rule(&columns[at], left / open, gap)?)));
            let Some((at, width)) = decided.next() else { break };
            widths[at] = Some(width);
        }
    }
    let (left, open) = share(&widths);
    let mut wider = left % open;
    let rest = |width: Option<usize>| {
        width.unwrap_or_else(|| {
            let one = usize::from(wider > 0);
            wider -= one;
            left / open + one
        })
    };
    widths.into_iter().map(rest).collect()
}

/// The lines of a cell in this width: broken at blanks, and within words that are wider.
fn broken(cell: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in cell.split('\n') {
        if line.width() <= width {
            lines.push(line.to_owned());
            continue;
        }
        for line in wrap(line, width) {
            let mut piece = String::new();
            for c in line.chars() {
                if !piece.is_empty() && piece.width() + c.width().unwrap_or(0) > width {
                    lines.push(std::mem::take(&mut piece));
                }
                piece.push(c);
            }
            lines.push(piece);
        }
    }
    lines
}

fn width_of(lines: &[String]) -> usize {
    lines.iter().map(|l| l.trim_end().width()).max().unwrap_or(0)
}

/// A paragraph in at most this number of lines, further ones indented.
fn clip(paragraph: &str, width: usize, indent: &str, lines: usize, ellipsis: &str) -> String {
    let room = width.saturating_sub(indent.len());
    let mut wrapped = wrap(paragraph, room);
    if wrapped.len() > lines {
        wrapped.truncate(lines.max(1));
        if let Some(last) = wrapped.last_mut() {
            while last.width() + ellipsis.width() + 1 > room {
                let Some(blank) = last.rfind(' ') else { break };
                last.truncate(blank);
            }
            *last += " ";
            *last += ellipsis;
        }
    }
    let indented = wrapped.iter().enumerate().map(|(i, line)| match i {
        0 => format!("{line}\n"),
        _ => format!("{indent}{line}\n"),
    });
    indented.collect()
}

/// Breaks a paragraph at blanks into lines of at most this number of columns; a word that is longer stays whole. At a no-break space,
/// which becomes a blank, no line is broken.
pub fn wrap(paragraph: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let is_blank = |c: char| c.is_whitespace() && c != NO_BREAK;
    for word in paragraph.split(is_blank).filter(|word| !word.is_empty()) {
        let last = lines.len() - 1;
        let line = &mut lines[last];
        if line.is_empty() {
            line.push_str(word);
        } else if line.width() + 1 + word.width() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines.into_iter().map(|line| line.replace(NO_BREAK, " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn narrow(width: usize, color: bool) -> TextOptions {
        TextOptions { width, color, ..Default::default() }
    }

    fn table() -> document::Table {
        let mut table = document::Table::new("", &["treatment", "#throughput", "#p99.9|3", "validity"]);
        let rows = [
            ["io_size=64KiB sync=off", "5.1 ± 0.2", "12.1 ms", "ok"],
            ["io_size=1MiB sync=on", "4.0 ± 0.1", "-", "1 invalid"],
        ];
        rows.into_iter().for_each(|row| table.row(row.map(document::Cell::text)));
        let last = &mut table.rows[1][3];
        *last = last.clone().marked(Some(Severity::Invalid));
        table
    }

    #[test]
    fn labels_are_wrapped_before_columns_are_dropped() {
        let mut text = Text::new(&narrow(50, false));
        text.table(&table());
        let wrapped = text.finish();
        assert!(wrapped.contains("p99.9") && wrapped.contains("io_size=64KiB  "), "{wrapped}");
        let mut text = Text::new(&narrow(38, false));
        text.table(&table());
        let dropped = text.finish();
        assert!(dropped.ends_with("(too narrow for: p99.9)\n"), "{dropped}");
        assert!(dropped.lines().all(|l| l.width() <= 38), "{dropped}");
    }

    #[test]
    fn labels_are_broken_no_further_than_needed() {
        let mut table = document::Table::new("", &["term", "#F"]);
        table.row(["A × B × C", "12.345"].map(document::Cell::text).to_vec());
        for (width, shown) in [(17, "A × B × C"), (16, "A × B  12.345\n× C"), (12, "A     12.345\n× B\n× C")]
        {
            let mut text = Text::new(&narrow(width, false));
            text.table(&table);
            let text = text.finish();
            assert!(text.contains(shown), "{width}: {text}");
        }
    }

    /// `1.85 ± 0.11 MB/s` stands whole in a line, however narrow that is.
    #[test]
    fn numbers_stay_with_their_uncertainty_at_every_width() {
        let mut table =
            document::Table::new("", &["cell", "verdict", "#A", "#B", "#n|1", "#B/A", "conclusion"]);
        let row = |cell: &str, a: &str, b: &str| {
            let cells = [cell, "WORSE", a, b, "3 + 3", "0.640 (0.571 to 0.712)"].map(document::Cell::text);
            cells.into_iter().chain([document::Cell::sentence("It changed.")]).collect::<Vec<_>>()
        };
        table.row(row("version=3 io_size=64KiB", "1845.21 ± 110.40 MB/s", "1180.02 ± 153.71 MB/s"));
        table.row(row("version=4.1 io_size=64KiB", "98.2 ± 0.4 kB/s", "1.18 ± 0.15 MB/s"));
        let mut listed = 0;
        for width in 40..=200 {
            let mut text = Text::new(&narrow(width, width % 2 == 0));
            text.table(&table);
            let text = text.finish();
            for number in [
                "1845.21 ± 110.40",
                "1180.02 ± 153.71",
                "98.2 ± 0.4",
                "1.18 ± 0.15",
                "0.640 (0.571 to 0.712)",
            ] {
                assert!(text.contains(number), "{width}: {number} is broken\n{text}");
            }
            listed += usize::from(!text.contains('─'));
        }
        assert!((20..100).contains(&listed), "{listed}");
    }

    #[test]
    fn what_is_no_screen_has_every_word() {
        let mut text = Text::new(&TextOptions { cut: false, ..narrow(20, false) });
        text.clipped("  ", "a mean of five over all the runs of the study", 1);
        text.clipped_after("   ", "do: this and that and more of it", 1);
        assert!(!text.finish().contains('…'));
    }

    #[test]
    fn colour_does_not_shift_columns() {
        let mut plain = Text::new(&narrow(100, false));
        plain.table(&table());
        let mut colored = Text::new(&narrow(100, true));
        colored.table(&table());
        let colored = colored.finish();
        assert!(colored.contains("\x1b["), "{colored:?}");
        let mut bare = String::new();
        let mut rest = colored.as_str();
        while let Some(start) = rest.find('\x1b') {
            bare += &rest[..start];
            rest = &rest[start..];
            rest = &rest[rest.find('m').unwrap() + 1..];
        }
        bare += rest;
        let trimmed: Vec<_> = bare.lines().map(str::trim_end).collect();
        assert_eq!(trimmed, plain.finish().lines().collect::<Vec<_>>());
    }

    #[test]
    fn no_line_is_broken_at_a_no_break_space() {
        assert_eq!(wrap("a mean of 5\u{a0}±\u{a0}1\u{a0}ms", 12), ["a mean of", "5 ± 1 ms"]);
    }

    #[test]
    fn what_is_cut_ends_in_an_ellipsis_within_the_width() {
        let mut text = Text::new(&narrow(20, false));
        text.clipped("  ", "a mean of five over all the runs of the study", 2);
        text.clipped_after("   ", "short enough", 1);
        assert_eq!(text.finish(), "a mean of five\n  over all the …\n   short enough\n");
        let ascii = TextOptions { unicode: false, ..narrow(12, false) };
        let mut text = Text::new(&ascii);
        text.clipped("", "one two three four", 1);
        assert_eq!((text.lines(), text.finish().as_str()), (1, "one two ...\n"));
    }

    #[test]
    fn paragraphs_wrap_and_turn_ascii() {
        let mut text = Text::new(&TextOptions { width: 20, unicode: false, ..Default::default() });
        text.wrapped("  ", "a mean of 5 ± 1 µs over all the runs");
        assert_eq!(text.finish(), "a mean of 5 +/- 1\n  us over all the\n  runs\n");
    }
}
