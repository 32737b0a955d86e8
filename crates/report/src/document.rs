//! What is shown, apart from how: one [`Document`] of headings, sentences, tables, plots and notes. The terminal, the page
//! and Markdown each render it.

use benchmaster_diagnosis::explanation::Group;
use benchmaster_diagnosis::finding::Finding;
use benchmaster_record::results::{CheckKind, Severity, Unit};
use jiff::Timestamp;

use crate::format::{self, Scale};
use crate::plots::figure::{Figure, short};

/// A page of one of the [`pages`](crate::pages), whoever reads it.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    /// What the page is: `Benchmaster report`.
    pub(crate) kind: &'static str,
    pub(crate) title: String,
    /// Description and question, below the title.
    pub(crate) lead: Vec<String>,
    pub(crate) sections: Vec<Section>,
}

/// Who sees a block: Markdown, made for issues, has the brief ones; the terminal has those and the full ones; the page has
/// all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Depth {
    Brief,
    Full,
    Page,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Section {
    /// Anchor within the page.
    pub(crate) id: &'static str,
    pub(crate) title: String,
    /// Whether the page's list of sections has it.
    pub(crate) is_listed: bool,
    pub(crate) parts: Vec<(Depth, Block)>,
}

impl Section {
    pub(crate) fn new(id: &'static str, title: impl Into<String>) -> Self {
        Self { id, title: title.into(), is_listed: true, parts: Vec::new() }
    }

    pub(crate) fn unlisted(self) -> Self {
        Self { is_listed: false, ..self }
    }

    pub(crate) fn brief(self, blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        self.add(Depth::Brief, blocks)
    }

    pub(crate) fn full(self, blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        self.add(Depth::Full, blocks)
    }

    pub(crate) fn page(self, blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        self.add(Depth::Page, blocks)
    }

    fn add(mut self, depth: Depth, blocks: impl IntoIterator<Item = impl Into<Block>>) -> Self {
        self.parts.extend(blocks.into_iter().map(|block| (depth, block.into())));
        self
    }

    /// The blocks of a reader.
    pub(crate) fn blocks(&self, depth: Depth) -> Vec<&Block> {
        self.parts.iter().filter(|(of, _)| *of <= depth).map(|(_, block)| block).collect()
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Block {
    Heading(String),
    /// What was asked for, in a few sentences.
    Answer(Vec<String>),
    Sentence(String),
    /// What to mind; between backticks stands code.
    Hint(String),
    List(Vec<String>),
    Table(Table),
    Note(Note),
    Finding(Box<Entry>),
    /// Folded away on the page.
    Fold(String, Vec<Block>),
    Code(&'static str, String),
    /// Only the page draws it.
    Plot(Box<Figure>),
    /// A plot and the table of what it shows, which the page puts beside each other.
    Beside(Box<Figure>, Table),
}

impl Block {
    /// A table that the page folds away.
    pub(crate) fn folded(table: Table) -> Self {
        Self::Fold(table.caption.clone(), vec![Self::Table(table)])
    }
}

impl From<Table> for Block {
    fn from(table: Table) -> Self {
        Self::Table(table)
    }
}

impl From<String> for Block {
    fn from(sentence: String) -> Self {
        Self::Sentence(sentence)
    }
}

impl From<&str> for Block {
    fn from(sentence: &str) -> Self {
        Self::Sentence(sentence.into())
    }
}

impl From<Figure> for Block {
    fn from(figure: Figure) -> Self {
        Self::Plot(Box::new(figure))
    }
}

impl From<Note> for Block {
    fn from(note: Note) -> Self {
        Self::Note(note)
    }
}

/// Something that a reader of the numbers must know.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Note {
    /// `None`: nothing is wrong.
    pub(crate) severity: Option<Severity>,
    /// The same in a word, `FAILED`, `INVALID`, `warning`; or nothing.
    pub(crate) mark: &'static str,
    /// The check, for those that are one.
    pub(crate) check: Option<CheckKind>,
    /// In how many runs of which workloads, for those that are a check.
    pub(crate) seen: String,
    pub(crate) text: String,
    /// What to do, for those that are a check; or nothing.
    pub(crate) remedy: String,
}

/// A finding with what stands behind it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) number: usize,
    pub(crate) finding: Finding,
    pub(crate) group: Group,
    /// Where and when.
    pub(crate) place: String,
    /// Whether the terminal shows its evidence too.
    pub(crate) is_whole: bool,
    pub(crate) plot: Option<Link>,
    pub(crate) evidence: Vec<Table>,
    /// Cause, rule, source.
    pub(crate) background: Vec<(&'static str, String)>,
}

/// A link to a plot of the page, in a view of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Link {
    pub(crate) figure: String,
    pub(crate) title: String,
    pub(crate) view: Option<usize>,
}

/// A table. The page sorts it by each column; the terminal leaves out columns that do not fit.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Table {
    pub(crate) caption: String,
    pub(crate) head: Vec<Head>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// What to mind when reading it.
    pub(crate) note: String,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Head {
    pub(crate) text: String,
    pub(crate) number: bool,
    /// Columns of a high rank are left out first where the width does not suffice; 0 = never.
    pub(crate) rank: u8,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Cell {
    pub(crate) text: String,
    /// What the column is sorted by where that is not the text.
    pub(crate) sort: Option<f64>,
    pub(crate) style: Style,
    /// A name from the study, which Markdown shows as code.
    pub(crate) is_name: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Missing,
    /// A sentence, which needs a wide column.
    Sentence,
    Marked(Severity),
}

/// A table that is made column by column: name and cells of a column stand together.
pub(crate) struct Columns<R> {
    of: Vec<R>,
    table: Table,
}

impl<R> Columns<R> {
    /// A column whose name begins with `#` holds numbers; `|2` at the end of the name is its rank.
    pub(crate) fn column(mut self, name: &str, cell: impl FnMut(&R) -> Cell) -> Self {
        self.table.head.push(Head::of(name));
        let cells = self.of.iter().map(cell);
        self.table.rows.iter_mut().zip(cells).for_each(|(row, cell)| row.push(cell));
        self
    }

    pub(crate) fn column_if(self, is_there: bool, name: &str, cell: impl FnMut(&R) -> Cell) -> Self {
        if is_there { self.column(name, cell) } else { self }
    }

    pub(crate) fn any(&self, is: impl Fn(&R) -> bool) -> bool {
        self.of.iter().any(is)
    }

    /// What to mind when reading it.
    pub(crate) fn note(mut self, note: impl Into<String>) -> Self {
        self.table.note = note.into();
        self
    }

    pub(crate) fn table(self) -> Table {
        self.table
    }

    /// The table, unless it is empty.
    pub(crate) fn filled(self) -> Option<Table> {
        (!self.of.is_empty()).then_some(self.table)
    }
}

impl Head {
    fn of(name: &str) -> Self {
        let ranked = name.rsplit_once('|').and_then(|(name, rank)| Some((name, rank.parse().ok()?)));
        let (name, rank) = ranked.unwrap_or((name, 0));
        let (text, number) = name.strip_prefix('#').map_or((name, false), |name| (name, true));
        Self { text: text.into(), number, rank }
    }
}

impl Table {
    /// A table with a row for each of these.
    pub(crate) fn of<R>(caption: impl Into<String>, rows: impl IntoIterator<Item = R>) -> Columns<R> {
        let of: Vec<R> = rows.into_iter().collect();
        let rows = of.iter().map(|_| Vec::new()).collect();
        Columns { of, table: Self { caption: caption.into(), head: Vec::new(), rows, note: String::new() } }
    }

    /// A table without rows.
    pub(crate) fn new(caption: impl Into<String>, head: &[&str]) -> Self {
        let head = head.iter().map(|name| Head::of(name)).collect();
        Self { caption: caption.into(), head, rows: Vec::new(), note: String::new() }
    }

    pub(crate) fn leave_out(&mut self, column: usize) {
        self.head.remove(column);
        self.rows.iter_mut().for_each(|row| {
            row.remove(column);
        });
    }

    /// Keeps the first rows, and says so.
    pub(crate) fn cap(&mut self, limit: usize) {
        let all = self.rows.len();
        if all > limit {
            self.rows.truncate(limit);
            let space = if self.note.is_empty() { "" } else { " " };
            self.note += &format!("{space}The first {limit} of {all} rows; `benchmaster export` writes all.");
        }
    }

    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
}

impl Cell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), sort: None, style: Style::Plain, is_name: false }
    }

    pub(crate) fn name(text: impl Into<String>) -> Self {
        Self { is_name: true, ..Self::text(text) }
    }

    pub(crate) fn number(text: impl Into<String>, value: f64) -> Self {
        Self { sort: value.is_finite().then(|| short(value)), ..Self::text(text) }
    }

    pub(crate) fn count(n: usize) -> Self {
        Self::number(format::count(n as u64), n as f64)
    }

    pub(crate) fn whole(n: Option<u64>) -> Self {
        n.map_or_else(Self::none, |n| Self::count(n as usize))
    }

    /// A sentence, which the terminal prints below the table.
    pub(crate) fn sentence(text: impl Into<String>) -> Self {
        Self { style: Style::Sentence, ..Self::text(text) }
    }
    pub(crate) fn none() -> Self {
        Self { style: Style::Missing, ..Self::text("–") }
    }

    /// A value in the words of `show`, if there is one.
    pub(crate) fn some(value: Option<f64>, show: impl Fn(f64) -> String) -> Self {
        value.map_or_else(Self::none, |value| Self::number(show(value), value))
    }

    pub(crate) fn fixed(value: Option<f64>, decimals: usize) -> Self {
        Self::some(value, |value| format::fixed(value, decimals))
    }

    pub(crate) fn time(ns: Option<f64>) -> Self {
        Self::some(ns, |ns| format!("{}{}", if ns < 0.0 { "−" } else { "" }, format::time(ns.abs())))
    }

    /// A time of day in UTC.
    pub(crate) fn instant(time: &Timestamp) -> Self {
        Self::text(time.strftime("%Y-%m-%d %H:%M:%S").to_string())
    }

    pub(crate) fn percent(share: Option<f64>) -> Self {
        Self::some(share, format::percent)
    }

    pub(crate) fn p(p: Option<f64>) -> Self {
        Self::some(p, p_text)
    }

    pub(crate) fn change(relative: Option<f64>) -> Self {
        Self::some(relative, change_text)
    }

    pub(crate) fn amount(value: f64, half_width: Option<f64>, unit: Unit, scale: Option<Scale>) -> Self {
        Self::number(format::rounded(value, half_width, unit, scale).text(true), value)
    }

    /// The mean of a quantity that is never negative.
    pub(crate) fn estimate(mean: f64, half_width: Option<f64>, unit: Unit, scale: Option<Scale>) -> Self {
        Self::number(format::estimate(mean, half_width, unit, scale), mean)
    }

    pub(crate) fn marked(self, severity: Option<Severity>) -> Self {
        Self { style: severity.map_or(Style::Plain, Style::Marked), ..self }
    }

    pub(crate) fn severity(&self) -> Option<Severity> {
        match self.style {
            Style::Marked(severity) => Some(severity),
            _ => None,
        }
    }
}

/// A severity in a word, which is also its name in the page's styles.
pub(crate) fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Invalid => "invalid",
        Severity::Warning => "warning",
        Severity::Note => "note",
    }
}

/// A p value in a cell.
pub(crate) fn p_text(p: f64) -> String {
    if p < 0.0001 { "<0.0001".into() } else { format::fixed(p, 4) }
}

/// `+1.2 %`.
pub(crate) fn change_text(relative: f64) -> String {
    format!("{}{} %", if relative > 0.0 { "+" } else { "" }, format::fixed(100.0 * relative, 1))
}
