//! Mistakes in a study file, each with its span, and their rendering with an excerpt of the file.

use std::fmt;
use std::ops::Range;

use annotate_snippets::{AnnotationKind, Group, Level, Origin, Padding, Renderer, Snippet};

/// How bad a diagnostic is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The study cannot be run.
    Error,
    /// The study can be run, but its author should know.
    Warning,
}

/// One mistake, or one warning.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostic {
    /// How bad it is.
    pub severity: Severity,
    pub message: String,
    /// Where: a range of bytes of the file. `None` when it is about the whole file.
    pub span: Option<Range<usize>>,
    /// Short text beside the marked span; may be empty.
    pub label: String,
    /// What would be right.
    pub help: Option<String>,
}

impl Diagnostic {
    /// The message with its help, without the place.
    pub fn sentence(&self) -> String {
        match &self.help {
            Some(help) => format!("{} ({help})", self.message),
            None => self.message.clone(),
        }
    }

    /// An error without span, label or help.
    pub fn error(message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            message: message.into(),
            span: None,
            label: String::new(),
            help: None,
        }
    }

    /// A warning without span, label or help.
    pub fn warning(message: impl Into<String>) -> Self {
        Self { severity: Severity::Warning, ..Self::error(message) }
    }

    /// Says where in the file it is.
    #[must_use]
    pub fn at(mut self, span: Range<usize>) -> Self {
        self.span = Some(span);
        self
    }

    /// Puts a short text beside the span.
    #[must_use]
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Says what would be right.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Everything that was found in one file, in the order of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagnostics {
    file_name: String,
    text: String,
    list: Vec<Diagnostic>,
    /// Errors that were reported, also those that are there already.
    errors: usize,
}

impl Diagnostics {
    /// Nothing found so far in the file with this name and text.
    pub fn new(file_name: &str, text: &str) -> Self {
        Self { file_name: file_name.into(), text: text.into(), list: Vec::new(), errors: 0 }
    }

    /// Adds a diagnostic, unless the same is there already; labels may differ.
    pub fn push(&mut self, mut diagnostic: Diagnostic) {
        diagnostic.span = diagnostic.span.map(|span| self.first_line(span));
        self.errors += usize::from(diagnostic.severity == Severity::Error);
        let same = |d: &Diagnostic| {
            (d.severity, &d.message, &d.span) == (diagnostic.severity, &diagnostic.message, &diagnostic.span)
        };
        if self.list.iter().any(same) {
            return;
        }
        let key = |d: &Diagnostic| d.span.as_ref().map_or(usize::MAX, |span| span.start);
        let position = self.list.partition_point(|d| key(d) <= key(&diagnostic));
        self.list.insert(position, diagnostic);
    }

    /// Adds an error.
    pub(crate) fn error(&mut self, span: &Range<usize>, message: impl Into<String>, help: impl Into<String>) {
        self.push(Diagnostic::error(message).at(span.clone()).help(help));
    }

    /// How many errors were reported so far: what is read in between is right if there are no more.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    pub fn extend(&mut self, diagnostics: impl IntoIterator<Item = Diagnostic>) {
        diagnostics.into_iter().for_each(|diagnostic| self.push(diagnostic));
    }

    /// The diagnostics in the order of the file; those about the whole file last.
    pub fn list(&self) -> &[Diagnostic] {
        &self.list
    }

    /// Whether there is an error among them.
    pub fn has_errors(&self) -> bool {
        self.errors > 0
    }

    /// Whether nothing was found.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The name of the file, as it was given.
    pub fn file_name(&self) -> &str {
        &self.file_name
    }

    /// Line and column, counted from 1 and in characters, of the start of a span.
    pub fn line_column(&self, span: &Range<usize>) -> (usize, usize) {
        let start = self.boundary(span.start);
        let before = &self.text[..start];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1)
    }

    /// All diagnostics as text for a terminal, with or without colours.
    pub fn render(&self, color: bool) -> String {
        let renderer = if color { Renderer::styled() } else { Renderer::plain() };
        let mut output = String::new();
        for diagnostic in &self.list {
            output.push_str(&renderer.render(&[self.group(diagnostic)]));
            output.push_str("\n\n");
        }
        output.push_str(&self.count());
        output.push('\n');
        output
    }

    /// Each in a line, without an excerpt; with its place, unless the text is one that the user does not know.
    pub fn brief(&self, places: bool) -> String {
        let line = |diagnostic: &Diagnostic| {
            let severity = match diagnostic.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            let place = match diagnostic.span.as_ref().filter(|_| places) {
                Some(span) => format!("{}:{}: ", self.file_name, self.line_column(span).0),
                None => String::new(),
            };
            format!("{severity}: {place}{}\n", diagnostic.sentence())
        };
        self.list.iter().map(line).collect()
    }

    fn group<'a>(&'a self, diagnostic: &'a Diagnostic) -> Group<'a> {
        let level = match diagnostic.severity {
            Severity::Error => Level::ERROR,
            Severity::Warning => Level::WARNING,
        };
        let title = level.primary_title(&*diagnostic.message);
        let group = match &diagnostic.span {
            Some(span) => {
                let label = (!diagnostic.label.is_empty()).then_some(&*diagnostic.label);
                let annotation = AnnotationKind::Primary.span(span.clone()).label(label);
                title.element(Snippet::source(&*self.text).path(&*self.file_name).annotation(annotation))
            }
            None => title.element(Origin::path(&*self.file_name)).element(Padding),
        };
        match &diagnostic.help {
            Some(help) => group.element(Level::HELP.message(&**help)),
            None => group,
        }
    }

    fn count(&self) -> String {
        let errors = self.list.iter().filter(|d| d.severity == Severity::Error).count();
        let counted = |n: usize, what: &str| match n {
            0 => None,
            1 => Some(format!("1 {what}")),
            _ => Some(format!("{n} {what}s")),
        };
        let parts: Vec<_> = [counted(errors, "error"), counted(self.list.len() - errors, "warning")]
            .into_iter()
            .flatten()
            .collect();
        if parts.is_empty() {
            format!("{}: nothing to complain about", self.file_name)
        } else {
            format!("{}: {}", self.file_name, parts.join(", "))
        }
    }

    /// The part of a span that lies within the file and on one line.
    fn first_line(&self, span: Range<usize>) -> Range<usize> {
        let start = self.boundary(span.start);
        let end = self.boundary(span.end.max(start));
        let marked = &self.text[start..end];
        let end = start + marked.find(['\n', '\r']).unwrap_or(marked.len());
        start..end
    }

    /// The start of the character at `index`, or the end of the text.
    fn boundary(&self, index: usize) -> usize {
        let mut index = index.min(self.text.len());
        while !self.text.is_char_boundary(index) {
            index -= 1;
        }
        index
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.render(false).trim_end())
    }
}

impl std::error::Error for Diagnostics {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_come_in_the_order_of_the_file_and_once() {
        let mut found = Diagnostics::new("a.toml", "one\ntwo\n");
        found.push(Diagnostic::error("whole"));
        found.push(Diagnostic::error("second").at(4..7));
        found.push(Diagnostic::warning("first").at(0..3));
        found.push(Diagnostic::error("second").at(4..7));
        let messages: Vec<_> = found.list().iter().map(|d| d.message.as_str()).collect();
        assert_eq!(messages, ["first", "second", "whole"]);
        assert_eq!(found.line_column(&(4..7)), (2, 1));
        assert!(found.to_string().ends_with("a.toml: 2 errors, 1 warning"), "{found}");
        assert_eq!(found.brief(true), "warning: a.toml:1: first\nerror: a.toml:2: second\nerror: whole\n");
        assert!(found.brief(false).starts_with("warning: first\n"));
    }

    #[test]
    fn spans_stay_within_the_file_and_one_line() {
        let mut found = Diagnostics::new("a.toml", "é = {\n}");
        found.push(Diagnostic::error("inside a character").at(1..4));
        found.push(Diagnostic::error("over two lines").at(5..8));
        found.push(Diagnostic::error("far out").at(100..200));
        let spans: Vec<_> = found.list().iter().map(|d| d.span.clone().unwrap()).collect();
        assert_eq!(spans, [0..4, 5..6, 8..8]);
        assert!(found.render(false).contains("a.toml:1:5"));
        assert!(found.render(true).contains("\u{1b}["));
        assert!(!Diagnostics::new("empty.toml", "").render(false).is_empty());
    }
}
