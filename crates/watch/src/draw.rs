//! Parts that both views are made of.

use std::collections::VecDeque;

use crate::screen::{Area, Line, Screen, Style};

/// Readings that are kept for sparklines; more than any terminal has columns.
pub(crate) const HISTORY: usize = 400;

/// Adds to a history, and forgets the oldest.
pub(crate) fn remember(history: &mut VecDeque<f64>, value: f64) {
    history.push_back(value);
    if history.len() > HISTORY {
        history.pop_front();
    }
}

pub(crate) const PLAIN: Style = Style::PLAIN;
pub(crate) const DIM: Style = Style::color(90);
pub(crate) const BOLD: Style = PLAIN.bold();
/// Heads of columns, and what the sort key is.
pub(crate) const HEAD: Style = Style::color(36);
pub(crate) const SORTED: Style = HEAD.bold().underlined();
/// Reasons to distrust a result: errors, timeouts, lost clients.
pub(crate) const BAD: Style = Style::color(31).bold();
pub(crate) const WARN: Style = Style::color(33);
pub(crate) const GOOD: Style = Style::color(32);
pub(crate) const SPARK: Style = Style::color(34);

/// The latest values as a row of bars, the newest at the right; the highest is as high as `top`.
pub(crate) fn sparkline(history: &VecDeque<f64>, columns: usize, top: f64) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let shown = history.len().min(columns);
    let bar = |value: &f64| {
        if *value > 0.0 && top > 0.0 {
            BARS[((value / top * 8.0).ceil() as usize).clamp(1, 8) - 1]
        } else {
            ' '
        }
    };
    let bars = history.iter().skip(history.len() - shown).map(bar);
    std::iter::repeat_n(' ', columns - shown).chain(bars).collect()
}

/// Values as columns of bars on this number of rows, the first row at the top; the highest is as high as `top`. Where nothing is
/// known there is nothing.
pub(crate) fn plot(values: &[Option<f64>], rows: usize, top: f64) -> Vec<String> {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let height = |value: f64| match value {
        value if value > 0.0 && top > 0.0 => ((value / top * 8.0 * rows as f64).ceil() as usize).max(1),
        _ => 0,
    };
    let heights: Vec<usize> = values.iter().map(|value| value.map_or(0, height)).collect();
    let row =
        |below: usize| heights.iter().map(|height| BARS[height.saturating_sub(8 * below).min(8)]).collect();
    (0..rows).rev().map(row).collect()
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
pub(crate) fn keys(keys: &[(&str, &str)], columns: usize) -> Line {
    let (mut line, mut used) = (Line::default(), 0);
    for (key, what) in keys {
        used += key.chars().count() + what.chars().count() + 3;
        if used > columns + 2 {
            break;
        }
        line = line.then_styled(*key, BOLD).then_styled(format!(" {what}  "), DIM);
    }
    line
}

/// `right` stands at the end of the line; what `left` has beyond the room before it is cut off.
pub(crate) fn title(screen: &mut Screen, area: Area, left: &Line, right: &Line) {
    let width = right.width().min(area.width);
    screen.line(Area { width: area.width.saturating_sub(width + 1), ..area }, left);
    screen.line(Area { x: area.x + area.width - width, width, ..area }, right);
}

/// Help on keys: a box over the middle of the view.
pub(crate) fn help(screen: &mut Screen, keys: &[(&str, &str)], notes: &[&str]) {
    let keys = keys.iter().map(|(key, what)| Line::styled(format!("{key:<8}"), BOLD).then(*what));
    let lines: Vec<Line> = keys.chain(notes.iter().map(|note| Line::plain(*note))).collect();
    screen.popup("keys", &lines);
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
    fn a_plot_is_as_high_as_its_values() {
        let values = [None, Some(0.0), Some(1.0), Some(8.0), Some(12.0), Some(16.0)];
        assert_eq!(plot(&values, 2, 16.0), ["    ▄█", "  ▁███"]);
        assert_eq!(plot(&values, 1, 0.0), ["      "]);
        assert!(plot(&values, 0, 16.0).is_empty());
    }

    #[test]
    fn what_is_selected_is_seen() {
        for (selected, rows, all) in [(0, 5, 20), (7, 5, 20), (19, 5, 20), (2, 5, 3), (0, 0, 0)] {
            let first = first_shown(selected, rows, all);
            assert!(first <= selected && (selected < first + rows || rows == 0), "{selected} {rows} {all}");
        }
    }
}
