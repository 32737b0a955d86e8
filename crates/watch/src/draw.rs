//! Parts that both views are made of.

use std::collections::VecDeque;

use ratatui::Frame;
use ratatui::layout::{Constraint, Flex, Layout, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph};

/// Readings that are kept for sparklines; more than any terminal has columns.
pub(crate) const HISTORY: usize = 400;

/// Adds to a history, and forgets the oldest.
pub(crate) fn remember(history: &mut VecDeque<f64>, value: f64) {
    history.push_back(value);
    if history.len() > HISTORY {
        history.pop_front();
    }
}

pub(crate) const DIM: Style = Style::new().fg(Color::DarkGray);
pub(crate) const BOLD: Style = Style::new().add_modifier(Modifier::BOLD);
/// Heads of columns, and what the sort key is.
pub(crate) const HEAD: Style = Style::new().fg(Color::Cyan);
pub(crate) const SORTED: Style = HEAD.add_modifier(Modifier::BOLD).add_modifier(Modifier::UNDERLINED);
pub(crate) const SELECTED: Style = Style::new().add_modifier(Modifier::REVERSED);
/// What speaks against a result: errors, timeouts, lost clients.
pub(crate) const BAD: Style = Style::new().fg(Color::Red).add_modifier(Modifier::BOLD);
pub(crate) const WARN: Style = Style::new().fg(Color::Yellow);
pub(crate) const GOOD: Style = Style::new().fg(Color::Green);
pub(crate) const SPARK: Style = Style::new().fg(Color::Blue);

/// The latest values as a row of bars, the newest at the right; the highest is as high as `top`.
pub(crate) fn sparkline(history: &VecDeque<f64>, columns: usize, top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = history.len().min(columns);
    let bar = |value: &f64| match (*value > 0.0 && top > 0.0, value / top * 8.0) {
        (false, _) => ' ',
        (true, height) => BARS[(height.ceil() as usize).clamp(1, 8) - 1],
    };
    let bars = history.iter().skip(history.len() - shown).map(bar);
    std::iter::repeat_n(' ', columns - shown).chain(bars).collect()
}

/// The highest of the latest values.
pub(crate) fn top(history: &VecDeque<f64>, columns: usize) -> f64 {
    history.iter().rev().take(columns).copied().fold(0.0, f64::max)
}

/// A bar of eighths of columns; `share` from 0 to 1.
pub(crate) fn bar(share: f64, columns: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * columns as f64 * 8.0).round() as usize;
    let full = std::iter::repeat_n('█', eighths / 8);
    let rest = EIGHTHS[eighths % 8];
    full.chain([rest]).chain(std::iter::repeat(' ')).take(columns).collect()
}

/// A line of keys and what they do, as many as fit.
pub(crate) fn keys<'a>(keys: &[(&'a str, &'a str)], columns: usize) -> Line<'a> {
    let (mut spans, mut used) = (Vec::new(), 0);
    for (key, what) in keys {
        let length = key.chars().count() + what.chars().count() + 3;
        if used + length > columns + 2 {
            break;
        }
        used += length;
        spans.push(Span::styled(*key, BOLD));
        spans.push(Span::styled(format!(" {what}  "), DIM));
    }
    Line::from(spans)
}

/// What `text` has over the columns of the line is left out; `right` stands at its end.
pub(crate) fn title(frame: &mut Frame<'_>, area: Rect, left: Line<'_>, right: Line<'_>) {
    let width = u16::try_from(right.width()).unwrap_or(u16::MAX).min(area.width);
    let [at_left, at_right] =
        Layout::horizontal([Constraint::Min(0), Constraint::Length(width)]).spacing(1).areas(area);
    frame.render_widget(left, at_left);
    frame.render_widget(right, at_right);
}

/// A box over the middle of the view.
pub(crate) fn popup(frame: &mut Frame<'_>, name: &str, lines: Vec<Line<'_>>) {
    let longest = lines.iter().map(Line::width).max().unwrap_or(0);
    let size = |n: usize| Constraint::Max(u16::try_from(n).unwrap_or(u16::MAX));
    let [row] = Layout::vertical([size(lines.len() + 2)]).flex(Flex::Center).areas(frame.area());
    let [area] = Layout::horizontal([size(longest + 4)]).flex(Flex::Center).areas(row);
    frame.render_widget(Clear, area);
    let block =
        Block::bordered().title(format!(" {name} ")).padding(ratatui::widgets::Padding::horizontal(1));
    frame.render_widget(Paragraph::new(lines).block(block), area);
}

/// Rows of a list of which `selected` is to be seen: the first to show.
pub(crate) fn first_shown(selected: usize, rows: usize, all: usize) -> usize {
    selected.saturating_sub(rows / 2).min(all.saturating_sub(rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_are_as_long_as_their_share() {
        assert_eq!(bar(0.0, 4), "    ");
        assert_eq!(bar(0.5, 4), "██  ");
        assert_eq!(bar(0.53, 4), "██▏ ");
        assert_eq!(bar(7.0, 4), "████");
        assert_eq!(bar(f64::NAN, 2), "  ");
    }

    #[test]
    fn the_newest_value_is_at_the_right() {
        let history = VecDeque::from([8.0, 0.0, 1.0, 4.0, 8.0]);
        assert_eq!(sparkline(&history, 7, 8.0), "  █ ▁▄█");
        assert_eq!(sparkline(&history, 3, 8.0), "▁▄█");
        assert_eq!(sparkline(&history, 3, 0.0), "   ");
        assert_eq!((top(&history, 2), top(&VecDeque::new(), 5)), (8.0, 0.0));
    }

    #[test]
    fn what_is_selected_is_seen() {
        for (selected, rows, all) in [(0, 5, 20), (7, 5, 20), (19, 5, 20), (2, 5, 3), (0, 0, 0)] {
            let first = first_shown(selected, rows, all);
            assert!(first <= selected && (selected < first + rows || rows == 0), "{selected} {rows} {all}");
        }
    }
}
