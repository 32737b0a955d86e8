//! The view of a running study on a terminal.

use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Paragraph, Wrap};

use super::{ClientRates, Study};
use crate::draw::{
    BAD, BOLD, DIM, GOOD, HEAD, SELECTED, SORTED, SPARK, WARN, bar, first_shown, keys, popup, sparkline,
    title, top,
};
use crate::keys::{Action, Key};
use crate::numbers::{clean, duration, front, short, spaced};
use benchmaster_record::live::{Client, ClientState, Live, Session};

/// From so many columns on, clients have a line of their rates over time.
const WIDE: usize = 110;
const DAY_MS: u64 = 86_400_000;

/// What of a study is shown, and how.
#[derive(Debug, Clone, Default)]
pub struct StudyView {
    selected: usize,
    sort: Sort,
    reverse: bool,
    paused: bool,
    help: bool,
}

/// What clients are sorted by, in the order of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Sort {
    #[default]
    Study,
    State,
    Ops,
    Bytes,
    Errors,
    Clock,
}

const COLUMNS: [(Sort, &str, usize); 6] = [
    (Sort::Study, "CLIENT", 20),
    (Sort::State, "STATE", 10),
    (Sort::Ops, "OPS/S", 7),
    (Sort::Bytes, "B/S", 7),
    (Sort::Errors, "ERRORS", 7),
    (Sort::Clock, "CLOCK µs", 15),
];

const HELP: [(&str, &str); 6] = [
    ("↑ ↓", "go through the clients"),
    ("← →", "column that clients are sorted by"),
    ("r", "the other way round"),
    ("space", "pause"),
    ("?", "this"),
    ("q", "quit; the study goes on"),
];

impl StudyView {
    /// Whether no new states are to be shown.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Does what a key is for.
    pub fn key(&mut self, key: Key, study: &Study) -> Action {
        let last = study.live().map_or(0, |live| live.clients.len().saturating_sub(1));
        match key {
            Key::Escape if self.help => self.help = false,
            Key::Char('q') | Key::Escape => return Action::Quit,
            Key::Char('?' | 'h') => self.help = !self.help,
            Key::Char(' ' | 'p') => self.paused = !self.paused,
            Key::Char('r') => self.reverse = !self.reverse,
            Key::Char('+') => return Action::Faster,
            Key::Char('-') => return Action::Slower,
            Key::Left | Key::Char('<') => self.sort_by(-1),
            Key::Right | Key::Char('>') => self.sort_by(1),
            Key::Up | Key::Char('k') => self.selected = self.selected.min(last).saturating_sub(1),
            Key::Down | Key::Char('j') => self.selected = (self.selected + 1).min(last),
            Key::Home => self.selected = 0,
            Key::End => self.selected = last,
            Key::Char(_) => {}
        }
        Action::Draw
    }

    fn sort_by(&mut self, step: isize) {
        let at = COLUMNS.iter().position(|(sort, ..)| *sort == self.sort).unwrap_or(0);
        let next = at.saturating_add_signed(step).min(COLUMNS.len() - 1);
        (self.sort, self.reverse) = (COLUMNS[next].0, false);
    }

    /// Draws; `now_ms` in milliseconds since 1970.
    pub fn draw(&self, frame: &mut Frame<'_>, study: &Study, directory: &str, now_ms: u64) {
        let area = frame.area();
        let width = usize::from(area.width);
        let remark = study.remark(now_ms);
        let remarks = remark.as_ref().map_or(0, |text| text.chars().count().div_ceil(width.max(1)) + 1);
        let live = study.live();
        let messages = live.map_or(0, |live| live.messages.len()).min(usize::from(area.height) / 8);
        let about = if live.is_some() { 6 } else { 0 };
        let rows = |n: usize| Constraint::Length(u16::try_from(n).unwrap_or(u16::MAX));
        let [head, remark_area, about, clients, said, foot] = Layout::vertical([
            rows(1),
            rows(remarks),
            rows(about),
            Constraint::Min(0),
            rows(messages + usize::from(messages > 0)),
            rows(1),
        ])
        .areas(area);
        self.head(frame, head, study, directory, now_ms);
        if let Some(text) = remark {
            let style = match live.map(|live| live.session) {
                Some(Session::Finished) => GOOD,
                _ => WARN,
            };
            frame.render_widget(Paragraph::new(text).style(style).wrap(Wrap { trim: true }), remark_area);
        }
        if let Some(live) = live {
            frame.render_widget(Paragraph::new(facts(study, live, study.goes_on(now_ms), width)), about);
            self.clients(frame, clients, study, live);
            frame.render_widget(Paragraph::new(said_last(live, messages, width)), said);
        }
        let some = [
            ("q", "quit"),
            ("↑↓", "client"),
            ("←→", "sort"),
            ("r", "reverse"),
            ("space", if self.paused { "go on" } else { "pause" }),
            ("+-", "interval"),
            ("?", "help"),
        ];
        frame.render_widget(keys(&some, width), foot);
        if self.help {
            let keys = HELP.iter().map(|(key, what)| {
                Line::from(vec![Span::styled(format!("{key:<8}"), BOLD), Span::from(*what)])
            });
            popup(frame, "keys", keys.collect());
        }
    }

    fn head(&self, frame: &mut Frame<'_>, area: Rect, study: &Study, directory: &str, now_ms: u64) {
        let (name, host) = match study.live() {
            Some(live) => (clean(&live.study), format!(" on {}", clean(&live.host))),
            None => (clean(directory), String::new()),
        };
        let left = vec![Span::styled("benchmaster watch", BOLD), Span::from(format!("  {name}{host}"))];
        let mut right = Vec::new();
        if self.paused {
            right.push(Span::styled("PAUSED  ", WARN));
        }
        if let Some(live) = study.live() {
            let (text, style) = match live.session {
                Session::Running if live.is_stale(now_ms) => ("NOT RUNNING", BAD),
                Session::Running => ("running", GOOD),
                Session::Finished => ("finished", GOOD),
                Session::Interrupted => ("interrupted", WARN),
                Session::Failed => ("failed", BAD),
            };
            right.push(Span::styled(text, style));
            let (end, word) =
                if study.goes_on(now_ms) { (now_ms, "for") } else { (live.written_ms, "after") };
            let since = duration(end.saturating_sub(live.session_started_ms) as f64 / 1e3);
            right.push(Span::styled(format!(" {word} {since}"), DIM));
        }
        title(frame, area, Line::from(left), Line::from(right));
    }

    fn clients(&self, frame: &mut Frame<'_>, area: Rect, study: &Study, live: &Live) {
        let width = usize::from(area.width);
        if live.clients.is_empty() || area.height < 2 {
            return;
        }
        let mut lines = vec![self.column_heads(width)];
        let mut order: Vec<(&Client, &ClientRates)> = live.clients.iter().zip(&study.clients).collect();
        let rate = |rate: Option<f64>| rate.unwrap_or(-1.0);
        match self.sort {
            Sort::Study => {}
            Sort::State => order.sort_by_key(|(client, _)| std::cmp::Reverse(client.state as u8)),
            Sort::Ops => {
                order.sort_by(|a, b| rate(b.1.operations_per_s).total_cmp(&rate(a.1.operations_per_s)))
            }
            Sort::Bytes => order.sort_by(|a, b| rate(b.1.bytes_per_s).total_cmp(&rate(a.1.bytes_per_s))),
            Sort::Errors => order.sort_by_key(|(client, _)| std::cmp::Reverse(client.errors)),
            Sort::Clock => {
                let off = |client: &Client| client.clock_offset_us.map_or(-1.0, f64::abs);
                order.sort_by(|a, b| off(b.0).total_cmp(&off(a.0)));
            }
        }
        if self.reverse {
            order.reverse();
        }
        let selected = self.selected.min(order.len() - 1);
        let rows = usize::from(area.height) - 1;
        // A line tells which of many are shown, if there is room for it beside one of them.
        let shown = if order.len() > rows { rows.saturating_sub(1).max(1) } else { rows };
        let first = first_shown(selected, shown, order.len());
        let fastest = study.clients.iter().filter_map(|rates| rates.operations_per_s).fold(0.0, f64::max);
        for (index, (client, rates)) in order.iter().enumerate().skip(first).take(shown) {
            let history = study.by_client.get(&client.name);
            let mut line = client_row(client, rates, fastest, width);
            if let (Some(history), true, None) = (history, width >= WIDE, end_of(client)) {
                let columns = width.saturating_sub(used() + bar_width(width) + 2);
                let line_of = sparkline(history, columns, fastest.max(top(history, columns)));
                line.push_span(Span::styled(format!(" {line_of}"), SPARK));
            }
            if index == selected && order.len() > 1 {
                line = line.patch_style(SELECTED);
            }
            lines.push(line);
        }
        if order.len() > shown {
            let of = format!("{} to {} of {} clients", first + 1, first + shown, order.len());
            lines.push(Line::styled(of, DIM));
        }
        frame.render_widget(Paragraph::new(lines), area);
    }

    fn column_heads(&self, width: usize) -> Line<'static> {
        let heads = COLUMNS.iter().flat_map(|(sort, name, columns)| {
            let style = if *sort == self.sort { SORTED } else { HEAD };
            let blank = Span::raw(" ".repeat(columns.saturating_sub(name.chars().count())));
            match sort {
                Sort::Study | Sort::State => [Span::styled((*name).to_owned(), style), blank],
                _ => [blank, Span::styled((*name).to_owned(), style)],
            }
        });
        let mut line = Line::from(heads.collect::<Vec<_>>());
        // Over the bars, and on wide terminals over the lines beside them.
        let over_time = if width >= WIDE { "OVER TIME" } else { "" };
        let bars = format!("  {:<1$} {over_time}", "OPS/S", bar_width(width));
        line.push_span(Span::styled(bars.trim_end().to_owned(), HEAD));
        line
    }
}

fn used() -> usize {
    COLUMNS.iter().map(|(_, _, columns)| columns).sum::<usize>() + 2
}

fn bar_width(width: usize) -> usize {
    let left = width.saturating_sub(used());
    if width >= WIDE { (left / 3).min(30) } else { left }
}

fn client_row(client: &Client, rates: &ClientRates, fastest: f64, width: usize) -> Line<'static> {
    let name = if client.host.is_empty() || client.host == client.name {
        client.name.clone()
    } else {
        format!("{} {}", client.name, client.host)
    };
    let (state, style) = match client.state {
        ClientState::Starting => ("starting", DIM),
        ClientState::Ready => ("ready", Style::new()),
        ClientState::Preparing => ("preparing", Style::new()),
        ClientState::Running => ("running", GOOD),
        ClientState::Done => ("done", Style::new()),
        ClientState::Failed => ("failed", BAD),
        ClientState::Lost => ("lost", BAD),
    };
    let mut line = Line::from(vec![
        Span::from(format!("{:<20}", front(&name, 19))),
        Span::styled(format!("{state:<10}"), style),
    ]);
    if let Some(reason) = end_of(client) {
        line.push_span(Span::styled(front(reason, width.saturating_sub(30)), BAD));
        return line;
    }
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".into(), short);
    let clock = match (client.clock_offset_us, client.clock_bound_us) {
        (Some(offset), Some(bound)) => format!("{offset:+.1} ± {bound:.1}"),
        (Some(offset), None) => format!("{offset:+.1}"),
        _ => "–".into(),
    };
    let errors = if client.errors > 0 { BAD } else { DIM };
    line.push_span(Span::from(format!("{:>7}", rate(rates.operations_per_s))));
    line.push_span(Span::from(format!("{:>7}", rate(rates.bytes_per_s))));
    line.push_span(Span::styled(format!("{:>7}", client.errors), errors));
    line.push_span(Span::from(format!("{clock:>15}  ")));
    let share = if fastest > 0.0 { rates.operations_per_s.unwrap_or(0.0) / fastest } else { 0.0 };
    line.push_span(Span::styled(bar(share, bar_width(width)), SPARK));
    line
}

/// Why a client does nothing any more; what it did before does not matter then.
fn end_of(client: &Client) -> Option<&str> {
    let ended = matches!(client.state, ClientState::Failed | ClientState::Lost);
    client.reason.as_deref().filter(|_| ended)
}

fn facts(study: &Study, live: &Live, goes_on: bool, width: usize) -> Vec<Line<'static>> {
    let label = |text: &'static str| Span::styled(format!("{text:<7}"), DIM);
    let columns = (width / 4).max(10);
    let runs = &live.runs;
    let share = |done: f64, all: f64| if all > 0.0 { done / all } else { 0.0 };
    let more = if runs.open { "+" } else { "" };
    let mut first = vec![
        label("runs"),
        Span::styled(bar(share(runs.stored as f64, runs.total as f64), columns), GOOD),
        Span::from(format!(" {} of {}{more} stored", runs.stored, runs.total)),
    ];
    if runs.failed > 0 {
        first.push(Span::styled(format!(", {} failed", runs.failed), BAD));
    }
    if let Some(left) = runs.seconds_left.filter(|_| goes_on) {
        first.push(Span::from(format!(", about {} left", duration(left))));
    }
    let mut lines = vec![Line::from(first)];
    match &live.run {
        Some(run) => {
            let which = format!("{}, replicate {}", run.treatment, run.replicate);
            let number = format!("{}: ", runs.position);
            let room = width.saturating_sub(7 + number.len());
            lines.push(Line::from(vec![
                label("run"),
                Span::from(number),
                Span::styled(front(&which, room), BOLD),
            ]));
            let name = run.workload.as_ref().map(|name| format!(" {}:", clean(name))).unwrap_or_default();
            let (line, time) = match run.phase_length_s {
                Some(length) => (
                    bar(share(run.phase_elapsed_s, length), columns),
                    format!("{:.1} of {length:.1} s", run.phase_elapsed_s),
                ),
                None => (" ".repeat(columns), format!("{:.1} s", run.phase_elapsed_s)),
            };
            let text = front(&format!("{name} {}, {time}", run.phase), width.saturating_sub(7 + columns));
            lines.push(Line::from(vec![label("phase"), Span::styled(line, SPARK), Span::from(text)]));
        }
        None => {
            lines.extend([Line::from(vec![label("run"), Span::styled("between runs", DIM)]), Line::default()])
        }
    }
    let rates = live.rates.clone().unwrap_or_default();
    let known = live.rates.is_some();
    let latency = rates.mean_latency_us.map_or_else(String::new, |us| format!(", latency {}", time(us)));
    let errors = if rates.errors_per_s > 0.0 {
        Span::styled(format!(", {} errors/s", short(rates.errors_per_s)), BAD)
    } else {
        Span::default()
    };
    let line = if known {
        vec![
            label("rates"),
            Span::from(format!("{} ops/s", short(rates.operations_per_s))),
            errors,
            Span::from(format!(
                ", read {}B/s, written {}B/s{latency}",
                spaced(rates.read_bytes_per_s),
                spaced(rates.written_bytes_per_s)
            )),
        ]
    } else {
        vec![label("rates"), Span::styled("none outside of the measured phase", DIM)]
    };
    lines.push(Line::from(line));
    let mut spans = vec![label("")];
    for (name, history) in [("ops/s ", &study.operations), ("  B/s ", &study.bytes)] {
        let columns = (width.saturating_sub(7) / 2).saturating_sub(name.len() + 1);
        spans.push(Span::styled(name, DIM));
        spans.push(Span::styled(sparkline(history, columns, top(history, columns)), SPARK));
    }
    lines.push(Line::from(spans));
    lines
}

fn time(us: f64) -> String {
    match us {
        ..1e3 => format!("{us:.0} µs"),
        ..1e6 => format!("{} ms", short(us / 1e3)),
        _ => format!("{} s", short(us / 1e6)),
    }
}

/// The latest messages, with the time of day in UTC.
fn said_last(live: &Live, rows: usize, width: usize) -> Vec<Line<'static>> {
    if rows == 0 {
        return Vec::new();
    }
    let line = |message: &benchmaster_record::live::Message| {
        let seconds = message.at_ms % DAY_MS / 1000;
        let at = format!("{:02}:{:02}:{:02} ", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let text = front(&message.text, width.saturating_sub(at.len()));
        Line::from(vec![Span::styled(at, DIM), Span::from(text)])
    };
    let skipped = live.messages.len().saturating_sub(rows);
    std::iter::once(Line::styled("MESSAGES (UTC)", HEAD))
        .chain(live.messages.iter().skip(skipped).map(line))
        .collect()
}
