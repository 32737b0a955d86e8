//! The sections and options of a job file, with what `[global]` sections, `include` and `${VARIABLES}` add.

use std::io;

use super::expression;
use crate::{ImportError, Mistake};

/// What a job file may refer to outside itself.
pub trait Surroundings {
    /// The environment variable of this name.
    fn variable(&self, name: &str) -> Option<String>;
    /// The text of an included file.
    ///
    /// # Errors
    /// The file cannot be read.
    fn include(&self, path: &str) -> io::Result<String>;
    /// The size of files and devices of which a job does not say it, because they would exist for fio; without it such jobs are not
    /// imported.
    fn existing_size(&self) -> Option<u64> {
        None
    }
    /// What `$pagesize`, `$mb_memory` and `$ncpus` are here: bytes of a page, MiB of memory, processors.
    fn keyword(&self, keyword: Keyword) -> u64;
}

/// A word that stands for a property of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Keyword {
    /// `$pagesize`: bytes of a page of memory.
    PageSize,
    /// `$mb_memory`: memory of the host in MiB.
    MemoryMib,
    /// `$ncpus`: processors that are online.
    Processors,
}

const KEYWORDS: [(&str, Keyword); 3] =
    [("$pagesize", Keyword::PageSize), ("$mb_memory", Keyword::MemoryMib), ("$ncpus", Keyword::Processors)];

/// A section of the file that is a job, with the options that apply to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub name: String,
    /// The line of its name.
    pub line: usize,
    /// Its options in the order of the file, those of the `[global]` sections above first; a later one of the same
    /// name wins.
    pub settings: Vec<Setting>,
}

/// An option as it is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// The included file it is in.
    pub file: Option<String>,
    pub line: usize,
    pub text: String,
    pub name: String,
    /// What follows the `=`, with variables replaced; absent without a `=`.
    pub value: Option<String>,
    /// Whether it stands in a `[global]` section.
    pub global: bool,
}

/// How deep files may include others.
const DEPTH: usize = 16;

/// Reads a job file.
///
/// # Errors
/// Every line that is none of a section, an option, an `include` and a comment, and files that cannot be included.
pub fn parse(text: &str, surroundings: &dyn Surroundings) -> Result<Vec<Job>, ImportError> {
    let mut parser = Parser {
        surroundings,
        global: Vec::new(),
        jobs: Vec::new(),
        section: Section::None,
        mistakes: Vec::new(),
    };
    parser.lines(text, None, 0);
    if parser.mistakes.is_empty() { Ok(parser.jobs) } else { Err(ImportError { mistakes: parser.mistakes }) }
}

enum Section {
    None,
    Global,
    Job,
}

struct Parser<'a> {
    surroundings: &'a dyn Surroundings,
    global: Vec<Setting>,
    jobs: Vec<Job>,
    section: Section,
    mistakes: Vec<Mistake>,
}

impl Parser<'_> {
    fn lines(&mut self, text: &str, file: Option<&str>, depth: usize) {
        for (number, line) in text.lines().enumerate() {
            let line = content(line);
            if line.is_empty() {
                continue;
            }
            if let Err(message) = self.line(line, number + 1, file, depth) {
                let file = file.map(ToOwned::to_owned);
                self.mistakes.push(Mistake { file, line: number + 1, text: line.into(), message });
            }
        }
    }

    fn line(&mut self, line: &str, number: usize, file: Option<&str>, depth: usize) -> Result<(), String> {
        if let Some(rest) = line.strip_prefix('[') {
            let Some((name, _)) = rest.rsplit_once(']') else {
                return Err("the name of a section ends with `]`".into());
            };
            if file.is_some() {
                return Err("an included file may not have sections".into());
            }
            self.section(name, number);
            return Ok(());
        }
        if let Some(path) = line.strip_prefix("include ").or_else(|| line.strip_prefix("include\t")) {
            return self.include(path.trim(), depth);
        }
        let (name, value) = match line.split_once('=') {
            Some((name, value)) => (name.trim(), Some(self.substituted(value.trim())?)),
            None => (line, None),
        };
        let setting = Setting {
            file: file.map(ToOwned::to_owned),
            line: number,
            text: line.to_owned(),
            name: name.to_owned(),
            value,
            global: matches!(self.section, Section::Global),
        };
        match (&self.section, self.jobs.last_mut()) {
            (Section::Global, _) => self.global.push(setting),
            (Section::Job, Some(job)) => job.settings.push(setting),
            _ => return Err("an option before the first section; write `[global]` above it".into()),
        }
        Ok(())
    }

    /// Sections whose names begin with `global` hold defaults for the jobs below them.
    fn section(&mut self, name: &str, line: usize) {
        let global = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("global"));
        self.section = if global { Section::Global } else { Section::Job };
        if !global {
            self.jobs.push(Job { name: name.to_owned(), line, settings: self.global.clone() });
        }
    }

    fn include(&mut self, path: &str, depth: usize) -> Result<(), String> {
        if depth == DEPTH {
            return Err(format!("files include each other more than {DEPTH} deep"));
        }
        match self.surroundings.include(path) {
            Ok(text) => {
                self.lines(&text, Some(path), depth + 1);
                Ok(())
            }
            Err(error) => Err(format!("cannot include `{path}`: {error}")),
        }
    }

    /// Replaces every `${NAME}` by the environment variable of this name, or by nothing when there is none, and words
    /// that stand for properties of the host by their numbers, with which may be calculated: `8*$pagesize`.
    fn substituted(&self, value: &str) -> Result<String, String> {
        let mut text = String::new();
        let mut rest = value;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                return Err("the name of a variable ends with `}`".into());
            };
            text.push_str(before);
            text.push_str(&self.surroundings.variable(name).unwrap_or_default());
            rest = after;
        }
        text.push_str(rest);
        let mut found = false;
        for (word, keyword) in KEYWORDS.into_iter().filter(|(word, _)| value.contains(word)) {
            found = true;
            text = text.replace(word, &self.surroundings.keyword(keyword).to_string());
        }
        let calculated = found && !text.starts_with('(') && text.contains(['+', '-', '*', '/', '^', '(']);
        if calculated { expression::whole(&text).map(|number| number.to_string()) } else { Ok(text) }
    }
}

/// A line without comment and surrounding blanks. Comments begin with `;` or `#`, anywhere.
fn content(line: &str) -> &str {
    line.split([';', '#']).next().unwrap_or_default().trim()
}
