//! A workload file as far as its first `run`: variables with their last values, and what was defined.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::parse::{Attribute, Command, Flowop, Raw, Thread, What};
use super::randvar;
use super::value::{Scope, Value};
use super::{Notes, RUN_SECONDS};
use crate::fates::Fates;
use crate::{Mistake, NoteKind};

#[derive(Debug, Clone, Copy)]
pub(super) struct Composite<'a> {
    pub(super) attributes: &'a [Attribute],
    pub(super) flow: &'a [Flowop],
}

/// When Filebench stops without a time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Mode {
    #[default]
    Timeout,
    /// When the first thread finds no file, or all do.
    Done,
}

/// What a file defines.
#[derive(Debug, Default)]
pub(super) struct Script<'a> {
    pub(super) scope: Scope,
    /// Line, text, whether it is a single file, attributes.
    pub(super) filesets: Vec<(usize, &'a str, bool, &'a [Attribute])>,
    pub(super) composites: BTreeMap<String, Composite<'a>>,
    pub(super) processes: Vec<(&'a Command, &'a [Attribute], &'a [Thread])>,
    /// The event generator's rate.
    pub(super) rate: Option<&'a Attribute>,
    pub(super) mode: Mode,
    /// Seconds of the run; `None` when the file has no `run`, or one without length in a mode that ends by itself.
    pub(super) seconds: Option<u64>,
    pub(super) runs: bool,
    draws: BTreeMap<String, (bool, Vec<Attribute>)>,
}

/// Reads the commands one after the other.
///
/// # Errors
/// All values that cannot be.
pub(super) fn read<'a>(commands: &'a [Command], notes: &mut Notes) -> Result<Script<'a>, Vec<Mistake>> {
    let mut script = Script::default();
    let mut mistakes = Vec::new();
    for command in commands {
        if let Err(mistake) = script.take(command, notes) {
            mistakes.push(mistake);
        }
    }
    if mistakes.is_empty() { Ok(script) } else { Err(mistakes) }
}

impl<'a> Script<'a> {
    fn take(&mut self, command: &'a Command, notes: &mut Notes) -> Result<(), Mistake> {
        let mistake =
            |message: String| Mistake { file: None, line: command.line, text: command.text.clone(), message };
        if self.runs {
            let (kind, why) = match &command.what {
                What::Other { word }
                    if matches!(word.as_str(), "quit" | "exit" | "echo" | "usage" | "stats") =>
                {
                    (NoteKind::Irrelevant, "it comes after `run`, which ends the workload")
                }
                _ => (
                    NoteKind::Unsupported,
                    "it comes after `run`, with which Filebench 1.5 ends: move it to a separate file",
                ),
            };
            notes.line(command.line, &command.text, kind, why);
            return Ok(());
        }
        match &command.what {
            What::Set { variable, terms } => {
                let value = self.scope.terms(terms).map_err(mistake)?;
                self.scope.set(variable, value);
            }
            What::Draw { variable, custom, attributes } => {
                self.draws.insert(variable.clone(), (*custom, attributes.clone()));
                self.draw(variable)?;
            }
            What::SetPart { variable, part, value } => {
                let Some((_, attributes)) = self.draws.get_mut(variable) else {
                    return Err(mistake(format!("`${variable}` is not a random variable")));
                };
                attributes.push(Attribute {
                    name: part.clone(),
                    local: false,
                    value: Some(value.clone()),
                    line: command.line,
                    text: command.text.clone(),
                });
                self.draw(variable)?;
            }
            What::Mode(mode) => match mode.as_str() {
                "quit timeout" => self.mode = Mode::Timeout,
                "quit alldone" => self.mode = Mode::Done,
                "quit firstdone" => {
                    self.mode = Mode::Done;
                    let why = "a worker that finds no file stops, and so do the others when they find none";
                    notes.line(command.line, &command.text, NoteKind::Translated, why);
                }
                "nousestats" => notes.line(command.line, &command.text, NoteKind::Irrelevant, OUTPUT),
                _ => {
                    return Err(mistake(
                        "modes are `quit timeout`, `quit alldone`, `quit firstdone` and `nousestats`".into(),
                    ));
                }
            },
            What::Fileset { single, attributes } => {
                self.filesets.push((command.line, &command.text, *single, attributes));
            }
            What::Composite { attributes, flow } => {
                let name = attributes.iter().find(|attribute| attribute.name == "name" && !attribute.local);
                let Some(Raw::Text(name)) = name.and_then(|name| name.value.as_ref()) else {
                    return Err(mistake("a composite flowop needs a name: `name=work`".into()));
                };
                self.composites.insert(name.clone(), Composite { attributes, flow });
            }
            What::Process { attributes, threads } => self.processes.push((command, attributes, threads)),
            What::Eventgen(attributes) => {
                if let Some(other) = attributes.iter().find(|attribute| attribute.name != "rate") {
                    return Err(other.mistake("`eventgen` has the attribute `rate` only"));
                }
                self.rate = attributes.last().or(self.rate);
            }
            What::Run(length) => {
                self.runs = true;
                let length =
                    length.as_ref().map(|length| self.scope.value(length)).transpose().map_err(mistake)?;
                self.seconds = match length {
                    Some(Value::Number(seconds)) if seconds > 0 => Some(seconds as u64),
                    Some(Value::Number(0)) | None if self.mode == Mode::Timeout => Some(RUN_SECONDS),
                    Some(Value::Number(0)) | None => None,
                    Some(_) => return Err(mistake("`run` is followed by a number of seconds".into())),
                };
            }
            What::Other { word } => {
                if let Some((kind, why)) = fate(word) {
                    notes.line(command.line, &command.text, kind, why);
                }
            }
        }
        Ok(())
    }

    fn draw(&mut self, variable: &str) -> Result<(), Mistake> {
        let Some((custom, attributes)) = self.draws.get(variable) else { return Ok(()) };
        let draw = match (custom, attributes.first()) {
            (true, Some(place)) => randvar::custom(attributes, &self.scope, place)?,
            (_, Some(_)) => randvar::own(attributes, &self.scope)?,
            _ => return Ok(()),
        };
        self.scope.set(variable, Value::Drawn(draw));
        Ok(())
    }
}

const OUTPUT: &str = "it only affects what Filebench prints";

static COMMANDS: LazyLock<Fates> = LazyLock::new(|| Fates::read(include_str!("commands.toml")));

/// What becomes of a command that defines nothing.
pub(super) fn fate(word: &str) -> Option<(NoteKind, &'static str)> {
    COMMANDS.find(word)?.1
}

#[cfg(test)]
mod tests {
    use super::super::flow::KINDS;
    use super::*;

    #[test]
    fn the_tables_are_read() {
        assert_eq!(COMMANDS.names().count(), 31);
        assert_eq!(fate("echo"), Some((NoteKind::Irrelevant, "it only affects what Filebench prints")));
        assert_eq!(KINDS.len(), 33);
    }
}
