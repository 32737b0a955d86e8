//! The pages: one HTML file each with everything in it, which opens offline.

use std::fmt::Write;
use std::mem::discriminant;

use benchmaster_diagnosis::explanation::Group;
use benchmaster_record::results::Severity;

use crate::document::{Block, Depth, Document, Entry, Note, Section, Style, Table, word};
use crate::format;
use crate::overview::unbroken;
use crate::plots::figure::Figure;

/// Why a page could not be made.
#[derive(Debug, thiserror::Error)]
#[error("internal error: the data of the plots could not be written: {0}; please report it")]
pub struct HtmlError(#[from] serde_json::Error);

/// What paper does not have.
const PAPER: &str = "Printed in short, with the first plot of each kind. The page has further plots and all numbers; a part \
                     that is open there is printed.";
/// Rows of the tables below one heading, so that the page stays small.
const ROWS: usize = 1_200;
/// Rows up to which a table does not scroll.
const SHORT: usize = 12;

impl Document {
    /// A page with everything in it.
    pub fn page(mut self) -> Result<String, HtmlError> {
        self.sections.iter_mut().for_each(cap);
        let mut html = Html { out: String::new(), figures: Vec::new() };
        html.document(&self);
        // A line of JSON for each figure, so that the script reads those alone that are looked at.
        let lines: Vec<String> = html.figures.iter().map(serde_json::to_string).collect::<Result<_, _>>()?;
        let title = match self.kind {
            "Benchmaster report" => format!("{} – {}", self.title, self.kind),
            _ => self.title.clone(),
        };
        let parts = [
            include_str!("../assets/head.html"),
            "<title>",
            &escape(&title),
            "</title>\n<style>",
            include_str!("../assets/report.css"),
            "</style>\n</head>\n<body>\n",
            &html.out,
            "<script type=\"application/x-ndjson\" id=\"figures\">",
            &json_for_script(&lines.join("\n")),
            "</script>\n<script>",
            include_str!("../assets/plot.js"),
            include_str!("../assets/pointer.js"),
            "</script>\n<script>",
            include_str!("../assets/report.js"),
            "</script>\n</body>\n</html>\n",
        ];
        Ok(parts.concat())
    }
}

/// Cuts the tables below each heading to about [`ROWS`] rows together.
fn cap(section: &mut Section) {
    for part in section.parts.chunk_by_mut(|_, (_, next)| !matches!(next, Block::Heading(_))) {
        let mut tables: Vec<&mut Table> = part.iter_mut().flat_map(|(_, block)| tables(block)).collect();
        if tables.iter().map(|table| table.rows.len()).sum::<usize>() > ROWS {
            let each = ROWS / tables.len();
            tables.iter_mut().for_each(|table| table.cap(each));
        }
    }
}

fn tables(block: &mut Block) -> Vec<&mut Table> {
    match block {
        Block::Table(table) | Block::Beside(_, table) => vec![table],
        Block::Fold(_, blocks) => blocks.iter_mut().flat_map(tables).collect(),
        _ => Vec::new(),
    }
}

struct Html<'d> {
    out: String,
    /// Those that stand on the page, in order.
    figures: Vec<&'d Figure>,
}

/// Appends formatted text; what is not markup must be escaped.
macro_rules! put {
    ($html:expr, $($text:tt)*) => {{
        // Writing to a string does not fail.
        let _ = write!($html.out, $($text)*);
    }};
}

impl<'d> Html<'d> {
    fn document(&mut self, document: &'d Document) {
        let first = document.sections.first().map_or("main", |section| section.id);
        put!(self, "<a class=\"skip\" href=\"#{first}\">Skip to the answer</a>\n<header>\n");
        put!(self, "<p class=\"brand\">{}</p>\n<h1>{}</h1>\n", document.kind, escape(&document.title));
        for (at, lead) in (1..).zip(&document.lead) {
            let class = if at == document.lead.len() { "lead" } else { "about" };
            put!(self, "<p class=\"{class}\">{}</p>\n", escape(lead));
        }
        put!(self, "</header>\n<main id=\"main\">\n");
        let shown: Vec<_> = document.sections.iter().filter(|section| !section.parts.is_empty()).collect();
        let listed: Vec<_> = shown.iter().filter(|section| section.is_listed).collect();
        for section in &shown {
            if listed.first().is_some_and(|first| first.id == section.id) && listed.len() > 1 {
                put!(self, "<nav aria-label=\"Sections\"><ul>");
                for section in &listed {
                    put!(self, "<li><a href=\"#{}\">{}</a></li>", section.id, escape(&section.title));
                }
                put!(self, "</ul></nav>\n");
            }
            self.section(section);
        }
        put!(
            self,
            "</main>\n<footer><p class=\"paper\">{PAPER}</p><p>Made by Benchmaster {}. This page needs no network.</p></footer>\n",
            env!("CARGO_PKG_VERSION")
        );
    }

    fn section(&mut self, section: &'d Section) {
        let blocks = section.blocks(Depth::Page);
        let id = section.id;
        // An answer needs no heading.
        let class = if matches!(blocks.first(), Some(Block::Answer(_))) { " class=\"silent\"" } else { "" };
        put!(self, "<section id=\"{id}\" aria-labelledby=\"{id}-h\">\n");
        put!(self, "<h2 id=\"{id}-h\"{class}>{}</h2>\n", escape(&section.title));
        self.blocks(&blocks);
        put!(self, "</section>\n");
    }

    fn blocks(&mut self, blocks: &[&'d Block]) {
        for alike in blocks.chunk_by(|a, b| discriminant(*a) == discriminant(*b)) {
            let (before, after) = match alike.first() {
                Some(Block::Plot(_)) => ("<div class=\"plots\">\n".to_owned(), "</div>\n"),
                Some(Block::Finding(entry)) => {
                    (format!("<ol class=\"findings\" start=\"{}\">\n", entry.number), "</ol>\n")
                }
                _ => (String::new(), ""),
            };
            put!(self, "{before}");
            alike.iter().for_each(|block| self.block(block));
            put!(self, "{after}");
        }
    }

    fn block(&mut self, block: &'d Block) {
        match block {
            Block::Heading(heading) => put!(self, "<h3>{}</h3>\n", escape(heading)),
            Block::Answer(sentences) => {
                put!(self, "<div class=\"answer\">");
                sentences.iter().for_each(|sentence| put!(self, "<p>{}</p>", escape(sentence)));
                put!(self, "</div>\n");
            }
            Block::Sentence(sentence) => put!(self, "<p>{}</p>\n", escape(sentence)),
            Block::Hint(hint) => put!(self, "<p class=\"hint\">{}</p>\n", coded(hint)),
            Block::List(items) => {
                put!(self, "<ul class=\"facts\">");
                items.iter().for_each(|item| put!(self, "<li>{}</li>", escape(item)));
                put!(self, "</ul>\n");
            }
            Block::Table(table) => self.table(table),
            Block::Note(note) => self.note(note),
            Block::Finding(entry) => self.finding(entry),
            Block::Fold(title, blocks) => {
                put!(self, "<details class=\"fold\"><summary>{}</summary>\n", escape(title));
                self.blocks(&blocks.iter().collect::<Vec<_>>());
                put!(self, "</details>\n");
            }
            Block::Code(_, code) => {
                put!(self, "<pre tabindex=\"0\"><code>{}</code></pre>\n", escape(code));
            }
            Block::Plot(figure) => self.plot(figure),
            Block::Beside(figure, table) => {
                put!(self, "<div class=\"plots beside\">\n");
                self.plot(figure);
                self.table(table);
                put!(self, "</div>\n");
            }
        }
    }

    fn table(&mut self, table: &Table) {
        let caption = escape(&table.caption);
        // What is long has a part of the page to scroll in, and is laid out when it comes into the window.
        let long = if table.rows.len() > SHORT { " long" } else { "" };
        put!(self, "<figure class=\"table\">\n<figcaption>{caption}</figcaption>\n");
        put!(
            self,
            "<div class=\"scroll{long}\" role=\"region\" tabindex=\"0\" aria-label=\"{caption}\"><table>\n"
        );
        put!(self, "<thead><tr>");
        for head in &table.head {
            let class = if head.number { " class=\"number\"" } else { "" };
            put!(self, "<th scope=\"col\"{class}>{}</th>", escape(&head.text));
        }
        put!(self, "</tr></thead>\n<tbody>\n");
        for row in &table.rows {
            put!(self, "<tr>");
            for cell in row {
                let class = match cell.style {
                    Style::Plain if cell.is_name => " class=\"name\"".into(),
                    Style::Plain => String::new(),
                    Style::Missing => " class=\"none\"".into(),
                    Style::Sentence => " class=\"words\"".into(),
                    Style::Marked(severity) => format!(" class=\"{}\"", class(Some(severity))),
                };
                let sort = cell.sort.map_or_else(String::new, |value| format!(" data-sort=\"{value}\""));
                put!(self, "<td{class}{sort}>{}</td>", escape(&cell.text));
            }
            put!(self, "</tr>\n");
        }
        put!(self, "</tbody>\n</table></div>");
        if !table.note.is_empty() {
            put!(self, "<p class=\"hint\">{}</p>", coded(&table.note));
        }
        put!(self, "\n</figure>\n");
    }

    fn note(&mut self, note: &Note) {
        let class = class(note.severity);
        if note.mark.is_empty() {
            put!(self, "<p class=\"verdict {class}\">{}</p>\n", coded(&note.text));
            return;
        }
        let check = note.check.map_or_else(String::new, |check| format!(" {check}"));
        let seen = if note.seen.is_empty() { String::new() } else { format!(" ({})", escape(&note.seen)) };
        put!(self, "<div class=\"alert {class}\"><strong>{}:{check}{seen}</strong>", note.mark);
        put!(self, "<p>{}</p>", coded(&note.text));
        if !note.remedy.is_empty() {
            put!(self, "<p>Do: {}</p>", coded(&note.remedy));
        }
        put!(self, "</div>\n");
    }

    fn finding(&mut self, entry: &Entry) {
        let finding = &entry.finding;
        let group = match entry.group {
            Group::Doubt => "doubt",
            Group::Limit => "limit",
            Group::Phenomenon => "phenomenon",
            Group::Condition => "condition",
        };
        put!(self, "<li id=\"finding-{}\" class=\"finding {group}\">\n<div class=\"price\">", entry.number);
        match &finding.cost {
            Some(cost) => put!(
                self,
                "<strong>{}</strong><span class=\"bar\" aria-hidden=\"true\"><span \
                 style=\"width:{:.0}%\"></span></span>\
                 <span class=\"of\">{}</span>",
                unbroken(&format::percent(cost.share)),
                (cost.share * 100.0).clamp(0.0, 100.0),
                cost.of.words()
            ),
            None => put!(self, "<span class=\"of\">cost unknown</span>"),
        }
        put!(self, "</div>\n<div>\n<p class=\"what\">{}</p>\n", coded(&finding.what));
        put!(self, "<p class=\"where\"><span class=\"tag\">{}</span> ", entry.group.words());
        put!(self, "{}; {}</p>\n", finding.confidence.word(), escape(&entry.place));
        put!(self, "<p class=\"remedy\"><b>Do:</b> {}", coded(&finding.remedy.text));
        if let Some(command) = &finding.remedy.command {
            put!(self, " <code class=\"command\">{}</code>", escape(command));
        }
        put!(self, "</p>\n<div class=\"proof-row\">");
        if let Some(link) = &entry.plot {
            let view = link.view.map_or_else(String::new, |view| format!(" data-view=\"{view}\""));
            let figure = escape(&link.figure);
            put!(self, "<a href=\"#{figure}-h\" data-plot=\"{figure}\"{view}>");
            put!(self, "See the plot: {}</a>\n", escape(&link.title));
        }
        put!(self, "<details class=\"evidence\"><summary>Evidence, cause, source ");
        put!(self, "<code>{}</code></summary>\n", finding.id);
        entry.evidence.iter().for_each(|table| self.table(table));
        put!(self, "<dl>");
        for (term, text) in &entry.background {
            put!(self, "<dt>{}</dt><dd>{}</dd>", escape(term), coded(text));
        }
        put!(self, "</dl></details></div>\n</div>\n</li>\n");
    }

    fn plot(&mut self, figure: &'d Figure) {
        if self.figures.is_empty() {
            put!(self, "<noscript><p class=\"alert warning\">");
            put!(self, "The plots are drawn by a script within this page; scripts are off.</p></noscript>\n");
        }
        self.figures.push(figure);
        let id = escape(&figure.id);
        let title = escape(&figure.title);
        let is_wide = figure.views.iter().any(|view| !view.panels.is_empty() || view.turns);
        let height = figure.views.first().and_then(|view| view.height).unwrap_or(figure.height);
        put!(self, "<figure class=\"plot{}\">\n", if is_wide { " wide" } else { "" });
        put!(self, "<h4 id=\"{id}-h\" tabindex=\"-1\">{title}</h4>\n");
        if figure.views.len() > 1 {
            put!(self, "<label class=\"choice\">{} <select data-for=\"{id}\">", figure.choice);
            for (number, view) in figure.views.iter().enumerate() {
                put!(self, "<option value=\"{number}\">{}</option>", escape(&view.label));
            }
            put!(self, "</select></label>\n");
        }
        put!(self, "<div class=\"canvas\" id=\"{id}\" role=\"img\" aria-labelledby=\"{id}-h {id}-n\" ");
        put!(self, "style=\"height:{height}px\"></div>\n");
        put!(self, "<figcaption id=\"{id}-n\" class=\"hint\">{}</figcaption>\n", escape(&figure.note));
        put!(self, "<p class=\"save\">Save as ");
        for kind in ["SVG", "PNG", "CSV"] {
            let name = kind.to_lowercase();
            put!(self, "<button type=\"button\" data-save=\"{name}\" data-plot=\"{id}\" ");
            put!(self, "aria-label=\"Save {title} as {kind}\">{kind}</button>");
        }
        put!(self, "</p>\n</figure>\n");
    }
}

/// The name of a severity in the page's styles.
fn class(severity: Option<Severity>) -> &'static str {
    severity.map_or("ok", word)
}

/// A text as HTML, also within an attribute.
fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(character),
        }
    }
    html
}

/// A text as HTML, in which what stands between backticks is code.
fn coded(text: &str) -> String {
    let mut parts = text.split('`');
    let mut html = parts.next().map(escape).unwrap_or_default();
    while let Some(code) = parts.next() {
        match parts.next() {
            Some(rest) => html.push_str(&format!("<code>{}</code>{}", escape(code), escape(rest))),
            // The last of an odd number is none of a pair.
            None => html.push_str(&format!("`{}", escape(code))),
        }
    }
    html
}

/// JSON that may stand within a script element: nothing in it can end the element or open a comment.
fn json_for_script(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_cannot_end_their_element() {
        for script in [
            include_str!("../assets/plot.js"),
            include_str!("../assets/pointer.js"),
            include_str!("../assets/report.js"),
        ] {
            assert!(!script.contains("</script") && !script.contains("<!--"));
        }
    }

    #[test]
    fn what_stands_between_backticks_is_code() {
        assert_eq!(coded("use `sync`, or <wait>"), "use <code>sync</code>, or &lt;wait&gt;");
        assert_eq!(coded("`a<b` and `c`"), "<code>a&lt;b</code> and <code>c</code>");
        assert_eq!(coded("one ` alone, two `` none"), "one <code> alone, two </code>` none");
        assert_eq!(coded("alone ` <"), "alone ` &lt;");
        assert_eq!(coded(""), "");
    }

    #[test]
    fn attributes_cannot_be_ended() {
        assert_eq!(escape("\"'><&"), "&quot;&#39;&gt;&lt;&amp;");
    }

    #[test]
    fn data_cannot_leave_its_script() {
        let json = serde_json::to_string("</script><!-- & \u{2028}").unwrap();
        let safe = json_for_script(&json);
        assert!(!safe.contains(['<', '>', '&', '\u{2028}']));
        assert_eq!(serde_json::from_str::<String>(&safe).unwrap(), "</script><!-- & \u{2028}");
    }
}
