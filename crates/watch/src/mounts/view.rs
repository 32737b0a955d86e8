//! The view of NFS mounts on a terminal.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::Duration;

use super::lines::is_used;
use super::{Interval, Mounts, OperationRates, Watched};
use crate::controls::{Controls, Step};
use crate::draw::{
    BAD, BOLD, DIM, HEAD, PLAIN, SPARK, WARN, bar, first_shown, help, keys, sparkline, title, top,
};
use crate::keys::{Action, Key};
use crate::numbers::{clean, duration, front, milliseconds, short, spaced, tail};
use crate::screen::{Area, Line, Screen};

/// From so many columns on there is room for rates over time and shares beside each operation.
const WIDE: usize = 110;

/// What of the mounts is shown, and how.
#[derive(Debug, Clone)]
pub struct MountsView {
    /// The selected mount: what, where, and which of several such.
    selected: Option<(String, PathBuf, usize)>,
    controls: Controls,
    /// Operations that were not used, too.
    all: bool,
}

/// The column of names, which are sorted as texts, and that of operations per second.
const NAME: usize = 0;
const OPS: usize = 1;

/// Name, width, and what rows are sorted by, the highest first.
type Column = (&'static str, usize, fn(&OperationRates) -> f64);

const COLUMNS: [Column; 10] = [
    ("OPERATION", 17, |_| 0.0),
    ("OPS/S", 7, |rates| rates.ops_per_s),
    ("B/OP", 7, |rates| rates.bytes_per_op.unwrap_or(-1.0)),
    ("B/S", 7, |rates| rates.sent_bytes_per_s + rates.received_bytes_per_s),
    ("QUEUE", 7, |rates| rates.queue_ms.unwrap_or(-1.0)),
    ("RTT", 7, |rates| rates.rtt_ms.unwrap_or(-1.0)),
    ("EXEC", 7, |rates| rates.execute_ms.unwrap_or(-1.0)),
    ("ERR", 6, |rates| rates.errors.unwrap_or(0) as f64),
    ("RESENT", 7, |rates| rates.retransmissions as f64),
    ("TMO", 6, |rates| rates.timeouts as f64),
];

const HELP: [(&str, &str); 9] = [
    ("↑ ↓", "select a mount"),
    ("← →", "column that rows are sorted by"),
    ("r", "the other way round"),
    ("a", "operations that are not used, too"),
    ("space", "pause; the next interval covers the pause"),
    ("+ -", "readings more or less often"),
    ("?", "this"),
    ("q", "quit"),
    ("", ""),
];

const COLUMNS_HELP: [&str; 6] = [
    "B/OP    bytes of request and reply, with headers",
    "QUEUE   ms until a request was sent",
    "RTT     ms from then until its reply",
    "EXEC    ms from the beginning of a call to its end",
    "RESENT  requests sent again; TMO: major timeouts",
    "Means over n calls are right within 1/n ms.",
];

impl Default for MountsView {
    fn default() -> Self {
        Self { selected: None, controls: Controls { sort: OPS, ..Controls::default() }, all: false }
    }
}

impl MountsView {
    /// Whether no new readings are to be shown.
    pub fn is_paused(&self) -> bool {
        self.controls.paused
    }

    /// Does what a key is for.
    pub fn key(&mut self, key: Key, mounts: &Mounts) -> Action {
        if key == Key::Char('a') {
            self.all = !self.all;
        }
        let (action, step) = self.controls.key(key, COLUMNS.len());
        if let Some(step) = step {
            self.select(mounts, step);
        }
        action
    }

    /// Sorts rows with a name each as is asked for.
    fn sort<T, N: Ord>(&self, rows: &mut [T], name: impl Fn(&T) -> N, value: impl Fn(&T) -> f64) {
        match self.controls.sort {
            NAME => rows.sort_by_key(name),
            _ => rows.sort_by(|a, b| value(b).total_cmp(&value(a))),
        }
        if self.controls.reverse {
            rows.reverse();
        }
    }

    /// Mounts in the order shown, and the place of the selected one among them.
    fn order<'a>(&self, mounts: &'a Mounts) -> (Vec<&'a Watched>, usize) {
        let mut order: Vec<&Watched> = mounts.mounts().iter().collect();
        let value = COLUMNS[self.controls.sort].2;
        let value =
            |mount: &&Watched| mount.interval.as_ref().map_or(-1.0, |interval| value(&interval.total));
        self.sort(&mut order, |mount| &mount.stats.mount_point, value);
        let is_selected = |watched: &&Watched| {
            self.selected.as_ref().is_some_and(|selected| *selected == identity(watched, mounts))
        };
        let at = order.iter().position(is_selected).unwrap_or(0);
        (order, at)
    }

    fn select(&mut self, mounts: &Mounts, step: Step) {
        let (order, at) = self.order(mounts);
        let next = order.get(step(at, order.len().saturating_sub(1)));
        self.selected = next.map(|watched| identity(watched, mounts));
    }

    /// Draws; `every` is the time between readings that was asked for.
    pub fn draw(&self, screen: &mut Screen, mounts: &Mounts, host: &str, every: Duration) {
        let area = screen.area();
        let listed = match mounts.mounts().len() {
            0 | 1 => 0,
            n => (n + 2).min((area.height / 4).max(3) + 1),
        };
        let heights = [Some(1), Some(listed), Some(6), None, Some(1)];
        let [head, list, about, operations, foot] = area.rows(heights);
        self.head(screen, head, mounts, host, every);
        let (order, at) = self.order(mounts);
        if listed > 0 {
            self.list(screen, list, &order, at);
        }
        match order.get(at) {
            Some(watched) => {
                about_mount(screen, about, watched);
                self.operations(screen, operations, watched);
            }
            None => {
                let lines = [
                    Line::plain("No NFS mounts."),
                    Line::styled("They appear here once something is mounted.", DIM),
                ];
                screen.lines(about, &lines);
            }
        }
        let all = if self.all { "used only" } else { "all" };
        let some = [
            ("q", "quit"),
            ("↑↓", "mount"),
            ("←→", "sort"),
            ("r", "reverse"),
            ("a", all),
            ("space", if self.controls.paused { "go on" } else { "pause" }),
            ("+-", "interval"),
            ("?", "help"),
        ];
        screen.line(foot, &keys(&some, foot.width));
        if self.controls.help {
            help(screen, &HELP, &COLUMNS_HELP);
        }
    }

    fn head(&self, screen: &mut Screen, area: Area, mounts: &Mounts, host: &str, every: Duration) {
        let n = mounts.mounts().len();
        let what = format!("  {n} NFS mount{} of {}", if n == 1 { "" } else { "s" }, clean(host));
        let left = Line::styled("benchmaster watch", BOLD).then(what);
        let measured = match mounts.interval() {
            Some(interval) => format!("last {:.1} s", interval.as_secs_f64()),
            None => "first interval".into(),
        };
        let paused = if self.controls.paused { "PAUSED  " } else { "" };
        let every = format!("{measured}, every {} s", every.as_secs_f64());
        title(screen, area, &left, &Line::styled(paused, WARN).then_styled(every, DIM));
    }

    fn list(&self, screen: &mut Screen, area: Area, order: &[&Watched], at: usize) {
        let width = area.width;
        let mut lines = vec![self.column_heads("MOUNT", width)];
        let rows = area.height.saturating_sub(2);
        let first = first_shown(at, rows, order.len());
        for (index, watched) in order.iter().enumerate().skip(first).take(rows) {
            let name = tail(&watched.stats.mount_point.to_string_lossy(), name_width(width) - 1);
            let mut line = match &watched.interval {
                Some(interval) => row(&name, &interval.total, width, None),
                None => {
                    let note = watched.note.as_deref().unwrap_or("first interval");
                    Line::styled(format!("{name:<0$}  {note}", name_width(width)), DIM)
                }
            };
            if index == at {
                line = line.reversed();
            }
            lines.push(line);
        }
        screen.lines(area, &lines);
    }

    fn column_heads(&self, first: &str, width: usize) -> Line {
        let wide = if width >= WIDE { "   SHARE OF TIME   OPS/S OVER TIME" } else { "" };
        let others = COLUMNS.iter().skip(1).map(|(name, columns, _)| (*name, *columns));
        let line = self.controls.heads(std::iter::once((first, name_width(width))).chain(others), 1);
        line.then_styled(if first == COLUMNS[NAME].0 { wide } else { "" }, HEAD)
    }

    fn operations(&self, screen: &mut Screen, area: Area, watched: &Watched) {
        let width = area.width;
        let mut lines = vec![self.column_heads(COLUMNS[NAME].0, width)];
        let Some(interval) = &watched.interval else { return };
        let mut rows: Vec<&OperationRates> =
            interval.operations.iter().filter(|operation| self.all || is_used(operation)).collect();
        self.sort(&mut rows, |rates| &rates.name, |rates| COLUMNS[self.controls.sort].2(rates));
        if rows.is_empty() {
            lines.push(Line::styled("no calls in this interval", DIM));
        }
        let room = area.height.saturating_sub(1);
        let time = |operation: &OperationRates| operation.execute_ms.unwrap_or(0.0) * operation.ops as f64;
        let all: f64 = interval.operations.iter().map(time).sum();
        let shown = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
        for operation in rows.iter().take(shown) {
            let name = front(&operation.name, name_width(width) - 1);
            let beside = (width >= WIDE).then(|| {
                let share = if all > 0.0 { time(operation) / all } else { 0.0 };
                (share, watched.history.by_operation.get(&operation.name))
            });
            lines.push(row(&name, operation, width, beside));
        }
        if shown < rows.len() {
            let rest = rows.len() - shown;
            lines.push(Line::styled(format!("and {rest} more; sort by another column to see them"), DIM));
        }
        screen.lines(area, &lines);
    }
}

fn identity(watched: &Watched, mounts: &Mounts) -> (String, PathBuf, usize) {
    let same = |other: &&Watched| super::is_same(&other.stats, &watched.stats);
    let nth = mounts.mounts().iter().filter(same).position(|other| std::ptr::eq(other, watched));
    (watched.stats.device.clone(), watched.stats.mount_point.clone(), nth.unwrap_or(0))
}

/// The first column takes what is left on narrow terminals, and somewhat more on wide ones.
fn name_width(width: usize) -> usize {
    let numbers: usize = COLUMNS.iter().skip(1).map(|(_, columns, _)| columns).sum();
    let wide = if width >= WIDE { 22 } else { COLUMNS[NAME].1 };
    width.saturating_sub(numbers).clamp(8, wide.max(8))
}

fn row(
    name: &str,
    rates: &OperationRates,
    width: usize,
    beside: Option<(f64, Option<&VecDeque<f64>>)>,
) -> Line {
    let ms = |mean| milliseconds(mean, rates.ops);
    let (errors, resent) = (rates.errors.map(|errors| errors as f64), rates.retransmissions as f64);
    let bad = |count: f64| if count > 0.0 { BAD } else { DIM };
    let cells = [
        (short(rates.ops_per_s), PLAIN),
        (rates.bytes_per_op.map(short).unwrap_or_default(), PLAIN),
        (short(rates.sent_bytes_per_s + rates.received_bytes_per_s), PLAIN),
        (ms(rates.queue_ms), PLAIN),
        (ms(rates.rtt_ms), PLAIN),
        (ms(rates.execute_ms), PLAIN),
        (errors.map_or_else(|| "?".into(), short_count), bad(errors.unwrap_or(0.0))),
        (short_count(resent), bad(resent)),
        (short_count(rates.timeouts as f64), bad(rates.timeouts as f64)),
    ];
    let mut line = Line::plain(format!("{name:<0$}", name_width(width)));
    for ((text, style), (_, columns, _)) in cells.into_iter().zip(&COLUMNS[1..]) {
        line.push(format!("{text:>columns$}"), style);
    }
    if let Some((share, history)) = beside {
        const SHARE: usize = 10;
        let used: usize = name_width(width) + COLUMNS.iter().skip(1).map(|c| c.1).sum::<usize>();
        line.push(format!("   {:>3.0}% ", share * 100.0), PLAIN);
        line.push(bar(share, SHARE), SPARK);
        if let Some(history) = history {
            let columns = width.saturating_sub(used + 3 + 5 + SHARE + 1);
            line.push(format!(" {}", sparkline(history, columns, top(history, columns))), SPARK);
        }
    }
    line
}

/// A count: no decimals.
fn short_count(count: f64) -> String {
    if count < 1e3 { format!("{count:.0}") } else { short(count) }
}

fn about_mount(screen: &mut Screen, area: Area, watched: &Watched) {
    let width = area.width;
    let stats = &watched.stats;
    let point = tail(&stats.mount_point.to_string_lossy(), width / 3);
    let option = |name: &str| stats.option(name).map(|value| format!(", {name} {value}")).unwrap_or_default();
    let options =
        format!("  {}  NFS {}{}{}", clean(&stats.device), watched.version(), option("rsize"), option("sec"));
    let age = format!("mounted {}", duration(stats.age as f64));
    let room = width.saturating_sub(point.chars().count() + age.chars().count() + 1);
    let first = Line::styled(point, BOLD).then(front(&options, room));
    title(screen, area, &first, &Line::styled(age, DIM));
    let rest = Area { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let lines = match (&watched.interval, &watched.note) {
        (Some(interval), _) => facts(interval, watched, width),
        (None, Some(note)) => vec![Line::styled(clean(note), WARN)],
        (None, None) => vec![Line::styled("the first interval is being measured", DIM)],
    };
    screen.lines(rest, &lines);
}

fn facts(interval: &Interval, watched: &Watched, width: usize) -> Vec<Line> {
    let label = |text: &str| Line::styled(format!("{text:<13}"), DIM);
    let pair =
        |read: f64, written: f64| format!("read {:>6}B/s  written {:>6}B/s", spaced(read), spaced(written));
    let cached = match interval.cached_share {
        Some(share) => format!("   {:.0} % of reads from the cache", share * 100.0),
        None => String::new(),
    };
    let application = pair(interval.application_read_bytes_per_s, interval.application_written_bytes_per_s);
    let mut server = label("server")
        .then(pair(interval.server_read_bytes_per_s, interval.server_written_bytes_per_s))
        .then(format!("   {} opens/s", short(interval.opens_per_s)));
    if interval.delays_per_s > 0.0 {
        server.push(format!("   {} delays/s", short(interval.delays_per_s)), WARN);
    }
    vec![
        label("applications").then(application).then(cached),
        server,
        connections(interval, label("connections")),
        sparks(interval, watched, width),
    ]
}

fn connections(interval: &Interval, label: Line) -> Line {
    let connections = &interval.connections;
    let mut line = label.then(format!("{} {}", connections.count, clean(&connections.kind)));
    if let Some(pending) = connections.pending {
        line.push(format!(", {} requests outstanding", short(pending)), PLAIN);
    }
    if let Some(most) = connections.max_slots {
        line.push(format!(", {most} at most so far"), PLAIN);
    }
    if let Some(backlog) = connections.backlog {
        let style = if backlog >= 0.5 { WARN } else { PLAIN };
        line.push(format!(", {} waiting for a slot", short(backlog)), style);
    }
    for (count, what) in
        [(connections.reconnects, "reconnects"), (connections.bad_xids, "replies to nothing")]
    {
        if count > 0 {
            line.push(format!(", {count} {what}"), BAD);
        }
    }
    line
}

/// Operations, bytes and round trips over time, a third of the line each.
fn sparks(interval: &Interval, watched: &Watched, width: usize) -> Line {
    let total = &interval.total;
    let history = &watched.history;
    let rtt = match total.rtt_ms {
        Some(_) => format!("{} ms", milliseconds(total.rtt_ms, total.ops)),
        None => "–".into(),
    };
    let parts = [
        ("ops/s", short(total.ops_per_s), &history.operations),
        ("B/s", short(total.sent_bytes_per_s + total.received_bytes_per_s), &history.bytes),
        ("RTT", rtt, &history.rtt),
    ];
    let mut line = Line::default();
    for (name, value, history) in parts {
        let label = format!("{name} {value} ");
        let columns = (width / 3).saturating_sub(label.chars().count() + 2);
        line.push(name, DIM);
        line.push(format!(" {value} "), BOLD);
        line.push(sparkline(history, columns, top(history, columns)), SPARK);
        line.push("  ", PLAIN);
    }
    line
}
