//! What is shown on a terminal, as a grid of styled characters; the owner of the terminal writes it out.

use std::fmt::{self, Display, Write as _};

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// How text is shown; the number of a colour is that of ANSI's foreground colours (30 to 37, 90 to 97).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Style {
    color: Option<u8>,
    bold: bool,
    underlined: bool,
    reversed: bool,
}

impl Style {
    pub(crate) const PLAIN: Self = Self { color: None, bold: false, underlined: false, reversed: false };

    pub(crate) const fn color(number: u8) -> Self {
        Self { color: Some(number), ..Self::PLAIN }
    }

    pub(crate) const fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    pub(crate) const fn underlined(self) -> Self {
        Self { underlined: true, ..self }
    }

    pub(crate) const fn reversed(self) -> Self {
        Self { reversed: true, ..self }
    }

    fn ansi(self) -> String {
        let mut text = String::from("\x1b[0");
        let flags = [(self.bold, 1), (self.underlined, 4), (self.reversed, 7)];
        for number in flags.into_iter().filter(|(on, _)| *on).map(|(_, number)| number).chain(self.color) {
            let _ = write!(text, ";{number}");
        }
        text + "m"
    }
}

/// A line of parts, each in a style of its own.
#[derive(Debug, Clone, Default)]
pub(crate) struct Line(Vec<(String, Style)>);

impl Line {
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self::default().then(text)
    }

    pub(crate) fn styled(text: impl Into<String>, style: Style) -> Self {
        Self::default().then_styled(text, style)
    }

    pub(crate) fn then(self, text: impl Into<String>) -> Self {
        self.then_styled(text, Style::PLAIN)
    }

    pub(crate) fn then_styled(mut self, text: impl Into<String>, style: Style) -> Self {
        self.push(text, style);
        self
    }

    pub(crate) fn push(&mut self, text: impl Into<String>, style: Style) {
        self.0.push((text.into(), style));
    }

    pub(crate) fn reversed(mut self) -> Self {
        self.0.iter_mut().for_each(|(_, style)| *style = style.reversed());
        self
    }

    pub(crate) fn width(&self) -> usize {
        self.0.iter().map(|(text, _)| text.width()).sum()
    }
}

/// A part of the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    pub(crate) x: usize,
    pub(crate) y: usize,
    pub(crate) width: usize,
    pub(crate) height: usize,
}

impl Area {
    /// Parts one below the other, as high as asked for; `None` takes what is left. The last part is served first, so that a
    /// line of keys stays on the smallest screen, then the others from the top.
    pub(crate) fn rows<const N: usize>(self, heights: [Option<usize>; N]) -> [Self; N] {
        let mut left = self.height;
        let mut sizes = [0; N];
        for index in (N.saturating_sub(1)..N).chain(0..N.saturating_sub(1)) {
            sizes[index] = heights[index].unwrap_or(0).min(left);
            left -= sizes[index];
        }
        let mut y = self.y;
        std::array::from_fn(|index| {
            let height = sizes[index] + if heights[index].is_none() { std::mem::take(&mut left) } else { 0 };
            y += height;
            Self { y: y - height, height, ..self }
        })
    }
}

/// The grid. A character of two columns is followed by an empty cell.
#[derive(Debug, Clone)]
pub struct Screen {
    width: usize,
    cells: Vec<(Option<char>, Style)>,
}

impl Screen {
    /// An empty screen of so many columns and rows.
    pub fn new(columns: u16, rows: u16) -> Self {
        let (width, height) = (usize::from(columns), usize::from(rows));
        Self { width, cells: vec![(Some(' '), Style::PLAIN); width * height] }
    }

    pub(crate) fn area(&self) -> Area {
        let height = self.cells.len().checked_div(self.width).unwrap_or(0);
        Area { x: 0, y: 0, width: self.width, height }
    }

    /// Lines one below the other; what does not fit into the area is cut off.
    pub(crate) fn lines<'a>(&mut self, area: Area, lines: impl IntoIterator<Item = &'a Line>) {
        for (row, line) in lines.into_iter().take(area.height).enumerate() {
            self.line(Area { y: area.y + row, height: 1, ..area }, line);
        }
    }

    /// A line at the top of an area.
    pub(crate) fn line(&mut self, area: Area, line: &Line) {
        if area.height == 0 {
            return;
        }
        let (mut at, end) = (area.x, (area.x + area.width).min(self.width));
        let parts = line.0.iter().flat_map(|(text, style)| text.chars().map(|c| (c, *style)));
        for (character, style) in parts {
            let columns = character.width().unwrap_or(0);
            if at + columns > end {
                return;
            }
            let start = area.y * self.width + at;
            for (index, cell) in self.cells.iter_mut().skip(start).take(columns).enumerate() {
                *cell = ((index == 0).then_some(character), style);
            }
            at += columns;
        }
    }

    /// A box with a title over the middle of the screen.
    pub(crate) fn popup(&mut self, title: &str, lines: &[Line]) {
        let whole = self.area();
        let wanted = lines.iter().map(Line::width).max().unwrap_or(0) + 4;
        let (width, height) = (wanted.min(whole.width), (lines.len() + 2).min(whole.height));
        let (x, y) = ((whole.width - width) / 2, (whole.height - height) / 2);
        let inside = width.saturating_sub(2);
        let title = format!(" {title} ");
        let top = format!("┌{title}{}┐", "─".repeat(inside.saturating_sub(title.width())));
        let middle = format!("│{}│", " ".repeat(inside));
        for row in 0..height {
            let text = if row == 0 {
                top.clone()
            } else if row + 1 == height {
                format!("└{}┘", "─".repeat(inside))
            } else {
                middle.clone()
            };
            self.line(Area { x, y: y + row, width, height: 1 }, &Line::plain(text));
        }
        let area =
            Area { x: x + 2, y: y + 1, width: width.saturating_sub(4), height: height.saturating_sub(2) };
        self.lines(area, lines);
    }

    fn rows(&self) -> impl Iterator<Item = &[(Option<char>, Style)]> {
        self.cells.chunks_exact(self.width.max(1))
    }

    /// The screen as bytes for a terminal: every row at its place, with ANSI styles.
    pub fn ansi(&self) -> String {
        let mut text = String::new();
        for (row, cells) in self.rows().enumerate() {
            let _ = write!(text, "\x1b[{};1H\x1b[0m", row + 1);
            let mut current = Style::PLAIN;
            for (character, style) in cells {
                if *style != current {
                    text.push_str(&style.ansi());
                    current = *style;
                }
                text.extend(character);
            }
            text.push_str("\x1b[0m");
        }
        text
    }
}

/// The text alone, a row a line.
impl Display for Screen {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rows().try_for_each(|row| {
            let text: String = row.iter().filter_map(|(character, _)| *character).collect();
            writeln!(formatter, "{text}")
        })
    }
}

/// Words in lines of at most so many columns; a longer word has a line of its own.
pub(crate) fn wrapped(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.width() + 1 + word.width() <= columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_cut_at_the_edge_of_their_area() {
        let mut screen = Screen::new(6, 2);
        screen.line(Area { x: 1, y: 0, width: 3, height: 1 }, &Line::plain("abcdef"));
        screen.line(Area { x: 4, y: 1, width: 9, height: 1 }, &Line::plain("xyz"));
        assert_eq!(screen.to_string(), " abc  \n    xy\n");
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let mut screen = Screen::new(5, 1);
        screen.line(screen.area(), &Line::plain("日本語"));
        assert_eq!(screen.to_string(), "日本 \n");
        assert_eq!(Line::plain("日本").width(), 4);
    }

    #[test]
    fn the_last_rows_stay_on_small_screens() {
        let area = Area { x: 0, y: 0, width: 10, height: 10 };
        let heights = |rows: [Area; 4]| rows.map(|area| (area.y, area.height));
        let wanted = [Some(1), Some(6), None, Some(1)];
        assert_eq!(heights(area.rows(wanted)), [(0, 1), (1, 6), (7, 2), (9, 1)]);
        assert_eq!(heights(Area { height: 4, ..area }.rows(wanted)), [(0, 1), (1, 2), (3, 0), (3, 1)]);
        assert_eq!(heights(Area { height: 0, ..area }.rows(wanted)), [(0, 0); 4]);
    }

    #[test]
    fn styles_end_with_their_text() {
        let mut screen = Screen::new(3, 1);
        let style = Style::color(31).bold();
        screen.line(screen.area(), &Line::styled("a", style).then("b").reversed());
        assert_eq!(screen.ansi(), "\x1b[1;1H\x1b[0m\x1b[0;1;7;31ma\x1b[0;7mb\x1b[0m \x1b[0m");
    }

    #[test]
    fn words_are_wrapped() {
        assert_eq!(wrapped("one two  three", 7), ["one two", "three"]);
        assert_eq!(wrapped("incomprehensible to me", 5), ["incomprehensible", "to me"]);
        assert!(wrapped(" ", 5).is_empty());
    }

    #[test]
    fn nothing_is_drawn_on_a_screen_of_no_size() {
        for (columns, rows) in [(0, 0), (0, 5), (5, 0), (1, 1)] {
            let mut screen = Screen::new(columns, rows);
            screen.popup("keys", &[Line::plain("q quit")]);
            screen.line(screen.area(), &Line::plain("text"));
            assert_eq!(screen.to_string().lines().count(), usize::from(if columns > 0 { rows } else { 0 }));
        }
    }
}
