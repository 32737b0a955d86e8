//! The null program: processes that do nothing but wait for the same instant and say when they were awake.
//!
//! Their spread is the scheduler's, on this host at this time: no fleet that shares the processors with as many processes begins
//! closer together.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use rustix::thread::clock_nanosleep_absolute;
use rustix::time::{ClockId, Timespec, clock_gettime};

/// From saying the instant to the instant: that of a fleet's start on one host is of this order.
const LEAD: Duration = Duration::from_millis(20);

/// What a process of the null program has as its first argument.
const ARGUMENT: &str = "null";

/// Waits for instants and says when it was awake, if this process is one of the null program; then there is nothing else to do.
pub(crate) fn is_null() -> bool {
    if std::env::args().nth(1).as_deref() != Some(ARGUMENT) {
        return false;
    }
    for line in std::io::stdin().lines() {
        let instant: i64 = line.unwrap().parse().unwrap();
        let until = Timespec { tv_sec: instant / 1_000_000_000, tv_nsec: instant % 1_000_000_000 };
        while clock_nanosleep_absolute(ClockId::Monotonic, &until).is_err() {}
        let awake = now_ns();
        println!("{awake}");
    }
    std::process::exit(0);
}

fn now_ns() -> i64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec * 1_000_000_000 + now.tv_nsec
}

/// Processes of the null program.
pub(crate) struct Null(Vec<(Child, ChildStdin, BufReader<ChildStdout>)>);

/// When processes were awake, relative to the instant that they waited for.
pub(crate) struct Awake {
    /// The first of them, in nanoseconds.
    pub(crate) first_ns: u64,
    /// From the first to the last one, in nanoseconds.
    pub(crate) spread_ns: u64,
}

impl Null {
    pub(crate) fn start(processes: u32) -> Self {
        let own = std::env::current_exe().unwrap();
        let start = |_| {
            let mut child = Command::new(&own)
                .arg(ARGUMENT)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
            (child, input, BufReader::new(output))
        };
        Self((0..processes).map(start).collect())
    }

    /// Has all wait for one instant.
    pub(crate) fn launch(&mut self) -> Awake {
        let instant = now_ns() + LEAD.as_nanos() as i64;
        for (_, input, _) in &mut self.0 {
            writeln!(input, "{instant}").unwrap();
        }
        let mut times = Vec::new();
        for (_, _, output) in &mut self.0 {
            let mut line = String::new();
            output.read_line(&mut line).unwrap();
            times.push(line.trim().parse::<i64>().unwrap());
        }
        let (first, last) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        Awake { first_ns: (first - instant).unsigned_abs(), spread_ns: (last - first).unsigned_abs() }
    }

    /// Ends them.
    pub(crate) fn end(self) {
        for (mut child, input, _) in self.0 {
            drop(input);
            assert!(child.wait().unwrap().success());
        }
    }
}
