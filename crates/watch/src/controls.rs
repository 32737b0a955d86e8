//! What both views let their reader do: go through a list, sort it by a column, pause, ask for help.

use crate::draw::{HEAD, PLAIN, SORTED};
use crate::keys::{Action, Key};
use crate::screen::Line;

/// From the selected row and the last one to the row that is selected next.
pub(crate) type Step = fn(usize, usize) -> usize;

#[derive(Debug, Clone, Default)]
pub(crate) struct Controls {
    /// The column that rows are sorted by.
    pub(crate) sort: usize,
    pub(crate) reverse: bool,
    pub(crate) paused: bool,
    pub(crate) help: bool,
}

impl Controls {
    /// Does what a key is for, with this number of columns to sort by.
    pub(crate) fn key(&mut self, key: Key, columns: usize) -> (Action, Option<Step>) {
        let mut step: Option<Step> = None;
        match key {
            Key::Escape if self.help => self.help = false,
            Key::Char('q') | Key::Escape => return (Action::Quit, None),
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Char(' ' | 'p') => self.paused = !self.paused,
            Key::Char('r') => self.reverse = !self.reverse,
            Key::Char('+') => return (Action::Faster, None),
            Key::Char('-') => return (Action::Slower, None),
            Key::Left | Key::Char('<') => (self.sort, self.reverse) = (self.sort.saturating_sub(1), false),
            Key::Right | Key::Char('>') => {
                (self.sort, self.reverse) = ((self.sort + 1).min(columns - 1), false);
            }
            Key::Up | Key::Char('k') => step = Some(|at, _| at.saturating_sub(1)),
            Key::Down | Key::Char('j') => step = Some(|at, last| (at + 1).min(last)),
            Key::Home => step = Some(|_, _| 0),
            Key::End => step = Some(|_, last| last),
            Key::Char(_) => {}
        }
        (Action::Draw, step)
    }

    /// The heads of columns, of which the first are aligned left.
    pub(crate) fn heads<'n>(&self, columns: impl Iterator<Item = (&'n str, usize)>, left: usize) -> Line {
        let mut line = Line::default();
        for (at, (name, width)) in columns.enumerate() {
            let style = if at == self.sort { SORTED } else { HEAD };
            // Only the text is underlined.
            let blank = " ".repeat(width.saturating_sub(name.chars().count()));
            let parts = [(name, style), (blank.as_str(), PLAIN)];
            let order = if at < left { [0, 1] } else { [1, 0] };
            order.map(|part| parts[part]).into_iter().for_each(|(text, style)| line.push(text, style));
        }
        line
    }
}
