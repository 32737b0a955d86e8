//! The view of a running study on a terminal.

use super::{ClientRates, PLOTTED, Study, latency, precision};
use crate::controls::Controls;
use crate::draw::{
    BAD, BOLD, DIM, GOOD, HEAD, PLAIN, SPARK, WARN, bar, first_shown, help, keys, plot, sparkline, title, top,
};
use crate::keys::{Action, Key};
use crate::numbers::{clean, duration, front, short, spaced};
use crate::screen::{Area, Line, Screen, wrapped};
use benchmaster_record::live::{Client, ClientState, Live, Rates, Session};
use benchmaster_units::format::{self, plural};

/// From so many columns on, clients have a line of their rates over time.
const WIDE: usize = 110;
const DAY_MS: u64 = 86_400_000;

/// What of a study is shown, and how.
#[derive(Debug, Clone, Default)]
pub struct StudyView {
    selected: usize,
    controls: Controls,
}

/// Name, width, and what clients are sorted by, the highest first.
type Column = (&'static str, usize, fn(&Client, &ClientRates) -> f64);

const COLUMNS: [Column; 6] = [
    // In the order of the study.
    ("CLIENT", 20, |_, _| 0.0),
    ("STATE", 10, |client, _| f64::from(client.state as u8)),
    ("OPS/S", 7, |_, rates| rates.operations_per_s.unwrap_or(-1.0)),
    ("B/S", 7, |_, rates| rates.bytes_per_s.unwrap_or(-1.0)),
    ("ERRORS", 7, |client, _| client.errors as f64),
    ("CLOCK µs", 15, |client, _| client.clock_offset_us.map_or(-1.0, f64::abs)),
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
        self.controls.paused
    }

    /// Does what a key is for.
    pub fn key(&mut self, key: Key, study: &Study) -> Action {
        let last = study.live().map_or(0, |live| live.clients.len().saturating_sub(1));
        let (action, step) = self.controls.key(key, COLUMNS.len());
        if let Some(step) = step {
            self.selected = step(self.selected.min(last), last);
        }
        action
    }

    /// Draws; `now_ms` in milliseconds since 1970.
    pub fn draw(&self, screen: &mut Screen, study: &Study, directory: &str, now_ms: u64) {
        let area = screen.area();
        let width = area.width;
        let live = study.live();
        let style = match live.map(|live| live.session) {
            Some(Session::Finished) => GOOD,
            _ => WARN,
        };
        let remark = study.remark(now_ms).map(|text| wrapped(&text, width)).unwrap_or_default();
        let remark: Vec<Line> = remark.into_iter().map(|text| Line::styled(text, style)).collect();
        let remark_rows = if remark.is_empty() { 0 } else { remark.len() + 1 };
        let messages = live.map_or(0, |live| live.messages.len()).min(area.height / 8);
        // The plot with its heading has room beside the clients on higher terminals.
        let (about, plotted) = match area.height {
            _ if live.is_none() => (0, 0),
            height @ 20.. => (6, (height / 4).min(12)),
            _ => (6, 0),
        };
        let said = messages + usize::from(messages > 0);
        let heights = [Some(1), Some(remark_rows), Some(about), Some(plotted), None, Some(said), Some(1)];
        let [head, remark_area, about, plotted, clients, said, foot] = area.rows(heights);
        self.head(screen, head, study, directory, now_ms);
        screen.lines(remark_area, &remark);
        if let Some(live) = live {
            screen.lines(about, &facts(live, study.goes_on(now_ms), width));
            screen.lines(plotted, &last_minute(study, live, plotted.height, width));
            self.clients(screen, clients, study, live);
            screen.lines(said, &last_messages(live, messages, width));
        }
        let some = [
            ("q", "quit"),
            ("↑↓", "client"),
            ("←→", "sort"),
            ("r", "reverse"),
            ("space", if self.controls.paused { "continue" } else { "pause" }),
            ("+-", "interval"),
            ("?", "help"),
        ];
        screen.line(foot, &keys(&some, width));
        if self.controls.help {
            help(screen, &HELP, &[]);
        }
    }

    fn head(&self, screen: &mut Screen, area: Area, study: &Study, directory: &str, now_ms: u64) {
        let (name, host) = match study.live() {
            Some(live) => (clean(&live.study), format!(" on {}", clean(&live.host))),
            None => (clean(directory), String::new()),
        };
        let left = Line::styled("benchmaster watch", BOLD).then(format!("  {name}{host}"));
        let mut right = Line::styled(if self.controls.paused { "PAUSED  " } else { "" }, WARN);
        if let Some(live) = study.live() {
            let (text, style) = match live.session {
                Session::Running if live.is_stale(now_ms) => ("NOT RUNNING", BAD),
                Session::Running => ("running", GOOD),
                Session::Finished => ("finished", GOOD),
                Session::Interrupted => ("interrupted", WARN),
                Session::Failed => ("failed", BAD),
            };
            right.push(text, style);
            let (end, word) =
                if study.goes_on(now_ms) { (now_ms, "for") } else { (live.written_ms, "after") };
            let since = duration(end.saturating_sub(live.session_started_ms) as f64 / 1e3);
            right.push(format!(" {word} {since}"), DIM);
        }
        title(screen, area, &left, &right);
    }

    fn clients(&self, screen: &mut Screen, area: Area, study: &Study, live: &Live) {
        let width = area.width;
        if live.clients.is_empty() || area.height < 2 {
            return;
        }
        let mut lines = vec![self.column_heads(width)];
        let mut order: Vec<(&Client, &ClientRates)> = live.clients.iter().zip(&study.clients).collect();
        let value = COLUMNS[self.controls.sort].2;
        order.sort_by(|a, b| value(b.0, b.1).total_cmp(&value(a.0, a.1)));
        if self.controls.reverse {
            order.reverse();
        }
        let selected = self.selected.min(order.len() - 1);
        let rows = area.height - 1;
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
                line.push(format!(" {line_of}"), SPARK);
            }
            if index == selected && order.len() > 1 {
                line = line.reversed();
            }
            lines.push(line);
        }
        if order.len() > shown {
            let of = format!("{} to {} of {} clients", first + 1, first + shown, order.len());
            lines.push(Line::styled(of, DIM));
        }
        screen.lines(area, &lines);
    }

    fn column_heads(&self, width: usize) -> Line {
        let line = self.controls.heads(COLUMNS.iter().map(|(name, columns, _)| (*name, *columns)), 2);
        // Over the bars, and on wide terminals over the lines beside them.
        let over_time = if width >= WIDE { "OVER TIME" } else { "" };
        let bars = format!("  {:<1$} {over_time}", "OPS/S", bar_width(width));
        line.then_styled(bars.trim_end(), HEAD)
    }
}

fn used() -> usize {
    COLUMNS.iter().map(|(_, columns, _)| columns).sum::<usize>() + 2
}

fn bar_width(width: usize) -> usize {
    let left = width.saturating_sub(used());
    if width >= WIDE { (left / 3).min(30) } else { left }
}

fn client_row(client: &Client, rates: &ClientRates, fastest: f64, width: usize) -> Line {
    let name = if client.host.is_empty() || client.host == client.name {
        client.name.clone()
    } else {
        format!("{} {}", client.name, client.host)
    };
    let (state, style) = match client.state {
        ClientState::Starting => ("starting", DIM),
        ClientState::Ready => ("ready", PLAIN),
        ClientState::Preparing => ("preparing", PLAIN),
        ClientState::Running => ("running", GOOD),
        ClientState::Done => ("done", PLAIN),
        ClientState::Failed => ("failed", BAD),
        ClientState::Lost => ("lost", BAD),
    };
    let mut line =
        Line::plain(format!("{:<20}", front(&name, 19))).then_styled(format!("{state:<10}"), style);
    if let Some(reason) = end_of(client) {
        line.push(front(reason, width.saturating_sub(30)), BAD);
        return line;
    }
    let rate = |rate: Option<f64>| rate.map_or_else(|| "–".into(), short);
    let clock = match (client.clock_offset_us, client.clock_bound_us) {
        (Some(offset), Some(bound)) => format!("{offset:+.1} ± {bound:.1}"),
        (Some(offset), None) => format!("{offset:+.1}"),
        _ => "–".into(),
    };
    let errors = if client.errors > 0 { BAD } else { DIM };
    line.push(format!("{:>7}", rate(rates.operations_per_s)), PLAIN);
    line.push(format!("{:>7}", rate(rates.bytes_per_s)), PLAIN);
    line.push(format!("{:>7}", client.errors), errors);
    line.push(format!("{clock:>15}  "), PLAIN);
    let share = if fastest > 0.0 { rates.operations_per_s.unwrap_or(0.0) / fastest } else { 0.0 };
    line.push(bar(share, bar_width(width)), SPARK);
    line
}

/// Why a client does nothing any more; what it did before does not matter then.
fn end_of(client: &Client) -> Option<&str> {
    let ended = matches!(client.state, ClientState::Failed | ClientState::Lost);
    client.reason.as_deref().filter(|_| ended)
}

fn facts(live: &Live, goes_on: bool, width: usize) -> Vec<Line> {
    let label = |text: &str| Line::styled(format!("{text:<7}"), DIM);
    let columns = (width / 4).max(10);
    let runs = &live.runs;
    let share = |done: f64, all: f64| if all > 0.0 { done / all } else { 0.0 };
    let more = if runs.open { "+" } else { "" };
    let mut first = label("runs")
        .then_styled(bar(share(runs.stored as f64, runs.total as f64), columns), GOOD)
        .then(format!(" {} of {}{more} stored", runs.stored, runs.total));
    if runs.failed > 0 {
        first.push(format!(", {} failed", runs.failed), BAD);
    }
    if let Some(left) = runs.seconds_left.filter(|_| goes_on) {
        first.push(format!(", about {} left", duration(left)), PLAIN);
    }
    let mut lines = vec![first];
    match &live.run {
        Some(run) => {
            let which = format!("{}, replicate {}", run.treatment, run.replicate);
            let number = format!("{}: ", runs.position);
            let room = width.saturating_sub(7 + number.len());
            lines.push(label("run").then(number).then_styled(front(&which, room), BOLD));
            let name = run.workload.as_ref().map(|name| format!(" {}:", clean(name))).unwrap_or_default();
            let (line, time) = match run.phase_length_s {
                Some(length) => (
                    bar(share(run.phase_elapsed_s, length), columns),
                    format!("{:.1} of {length:.1} s", run.phase_elapsed_s),
                ),
                None => (" ".repeat(columns), format!("{:.1} s", run.phase_elapsed_s)),
            };
            let text = front(&format!("{name} {}, {time}", run.phase), width.saturating_sub(7 + columns));
            lines.push(label("phase").then_styled(line, SPARK).then(text));
        }
        None => lines.extend([label("run").then_styled("between runs", DIM), Line::default()]),
    }
    lines.push(match &live.rates {
        Some(rates) => rates_line(label("rates"), rates),
        None => label("rates").then_styled("none outside of the measured phase", DIM),
    });
    let certain = live.run.as_ref().and_then(|run| precision(&run.precision));
    let errors = plural(live.errors as usize, "error");
    let room = width.saturating_sub(7 + errors.len());
    let certain = certain.map(|text| front(&format!("; {text}"), room));
    let line = label("so far").then_styled(errors, if live.errors > 0 { BAD } else { PLAIN });
    lines.push(line.then(certain.unwrap_or_default()));
    lines
}

/// Rate and latency of the last minute, side by side, in this number of rows.
fn last_minute(study: &Study, live: &Live, rows: usize, width: usize) -> Vec<Line> {
    let columns = (width / 2).saturating_sub(2);
    let values = |of: fn(&Rates) -> Option<f64>| -> Vec<Option<f64>> {
        let plotted_ms = PLOTTED.as_millis() as f64;
        let at = |column: usize| plotted_ms * (columns - column) as f64 / columns as f64;
        let column = |column: usize| {
            // From so long ago until so long ago.
            let (from, until) = (at(column), at(column + 1));
            let within = |(written_ms, rates): &&(u64, Rates)| {
                let ago = live.written_ms.saturating_sub(*written_ms) as f64;
                ago < from && ago + 1e3 * rates.interval_s > until
            };
            study.past.iter().filter(within).filter_map(|(_, rates)| of(rates)).next_back()
        };
        (0..columns).map(column).collect()
    };
    let highest = |values: &[Option<f64>]| values.iter().flatten().copied().fold(0.0, f64::max);
    let operations = values(|rates| Some(rates.operations_per_s));
    let latencies = values(|rates| rates.mean_latency_s);
    let (most, longest) = (highest(&operations), highest(&latencies));
    let heading = |text: String| format!("{:<1$}", front(&text, columns), columns);
    let head = Line::styled(heading(format!("OPS/S, LAST MINUTE, UP TO {}", short(most))), HEAD).then_styled(
        format!("   {}", heading(format!("MEAN LATENCY, UP TO {}", format::time(1e9 * longest)))),
        HEAD,
    );
    let rows = rows.saturating_sub(1);
    let left = plot(&operations, rows, most).into_iter();
    let both = left.zip(plot(&latencies, rows, longest));
    let line = |(rate, latency): (String, String)| {
        Line::styled(rate, SPARK).then_styled(" │ ", DIM).then_styled(latency, SPARK)
    };
    std::iter::once(head).chain(both.map(line)).collect()
}

fn rates_line(label: Line, rates: &Rates) -> Line {
    let per_s = if rates.errors_per_s > 0.0 {
        format!(", {} errors/s", short(rates.errors_per_s))
    } else {
        String::new()
    };
    let latency = latency(rates).map(|latency| format!(", {latency}")).unwrap_or_default();
    label
        .then(format!("{} ops/s", short(rates.operations_per_s)))
        .then_styled(per_s, BAD)
        .then(format!(", {}B/s{latency}", spaced(rates.bytes_per_s)))
}

/// The latest messages, with the time of day in UTC.
fn last_messages(live: &Live, rows: usize, width: usize) -> Vec<Line> {
    if rows == 0 {
        return Vec::new();
    }
    let line = |message: &benchmaster_record::live::Message| {
        let seconds = message.at_ms % DAY_MS / 1000;
        let at = format!("{:02}:{:02}:{:02} ", seconds / 3600, seconds / 60 % 60, seconds % 60);
        let text = front(&message.text, width.saturating_sub(at.len()));
        Line::styled(at, DIM).then(text)
    };
    let skipped = live.messages.len().saturating_sub(rows);
    std::iter::once(Line::styled("MESSAGES (UTC)", HEAD))
        .chain(live.messages.iter().skip(skipped).map(line))
        .collect()
}
