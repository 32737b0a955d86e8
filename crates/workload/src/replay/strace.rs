//! Traces of system calls, as `strace -f -ttt -T -o FILE COMMAND` writes them (with `-y`, descriptors that were open
//! before are known too).
//!
//! Descriptors, positions, working directories and descriptor tables are followed for every thread and process, so that
//! each call becomes one on a path or on an open file at an offset, whatever descriptors the replay gets.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, BufRead};

use super::plan::{Call, Flags, LeftOut, Plan, Why};
use super::world::World;
use crate::model::OperationKind;

mod calls;
mod known;
mod line;
mod place;
mod process;

use line::{Outcome, What};
pub use place::Where;
use process::Processes;

/// Goes through a trace.
///
/// # Errors
/// When it cannot be read, or no line of it is one of strace with times.
pub fn read(trace: impl BufRead, place: &Where) -> Result<Plan, StraceError> {
    let mut tracer = Tracer::new(place);
    let mut lines = 0u64;
    let mut good = 0u64;
    for text in trace.split(b'\n') {
        let text = text.map_err(StraceError::Read)?;
        lines += 1;
        if text.trim_ascii().is_empty() {
            continue;
        }
        match line::line(&text) {
            Some(line) => {
                good += 1;
                tracer.line(line);
            }
            None => tracer.left_out(Why::Incomplete, "line"),
        }
        // What is no trace need not be read to its end.
        if lines == 1000 && good == 0 {
            break;
        }
    }
    if good == 0 {
        return Err(StraceError::NoTrace);
    }
    Ok(tracer.finish())
}

/// Why a trace of system calls could not be read.
#[derive(Debug, thiserror::Error)]
pub enum StraceError {
    /// The file system refused.
    #[error("{0}")]
    Read(io::Error),
    /// No line is one of strace with times.
    #[error("it has no line of `strace -f -ttt -T`; record with `strace -f -ttt -T -o FILE COMMAND`")]
    NoTrace,
}

/// A trace as far as it has been read.
struct Tracer<'a> {
    place: &'a Where,
    world: World,
    processes: Processes,
    left_out: BTreeMap<(Why, Box<str>), u64>,
    /// Where the first thread started, its directory being unknown to the trace.
    begun: HashMap<u32, Begun>,
}

/// A call that has begun.
struct Begun {
    name: Box<str>,
    text: Vec<u8>,
    at_ns: u64,
    /// What a `close` that has begun has taken out of the table: another thread may get the number meanwhile.
    taken: Option<process::Descriptor>,
}

/// A call that has ended, and everything to understand it.
struct Done<'c> {
    pid: u32,
    /// The thread in the plan.
    thread: u32,
    at_ns: u64,
    name: &'c str,
    arguments: &'c [&'c [u8]],
    result: Outcome<'c>,
    taken: Option<process::Descriptor>,
}

impl Done<'_> {
    /// Argument number `at`; empty when there is none.
    fn argument(&self, at: usize) -> &[u8] {
        self.arguments.get(at).copied().unwrap_or_default()
    }

    fn number(&self, at: usize) -> Option<i64> {
        line::number(line::decorated(self.argument(at)).0)
    }

    /// Whether a word is among the flags of argument `at`.
    fn has(&self, at: usize, flag: &str) -> bool {
        self.argument(at).split(|&byte| byte == b'|').any(|word| word.trim_ascii() == flag.as_bytes())
    }

    fn error(&self) -> u16 {
        match self.result {
            Outcome::Error(error) => error,
            Outcome::Value(..) | Outcome::Unknown => 0,
        }
    }

    fn value(&self) -> Option<i64> {
        match self.result {
            Outcome::Value(value, _) => Some(value),
            Outcome::Error(_) | Outcome::Unknown => None,
        }
    }

    /// A call by name or on a handle that ends as this one did.
    fn call(&self, kind: OperationKind, object: u32) -> Call {
        Call { error: self.error(), ..Call::new(self.at_ns, kind, object) }
    }

    fn on_handle(&self, kind: OperationKind, handle: u32) -> Call {
        Call { flags: Flags(Flags::HANDLE), ..self.call(kind, handle) }
    }
}

impl<'a> Tracer<'a> {
    fn new(place: &'a Where) -> Self {
        Self {
            place,
            world: World::default(),
            processes: Processes::new(place.start().to_vec()),
            left_out: BTreeMap::new(),
            begun: HashMap::new(),
        }
    }

    fn left_out(&mut self, why: Why, call: &str) {
        if let Some(count) = self.left_out.get_mut(&(why, Box::from(call))) {
            *count += 1;
        } else {
            self.left_out.insert((why, call.into()), 1);
        }
    }

    fn line(&mut self, line: line::Line<'_>) {
        let pid = line.pid;
        if !self.processes.knows(pid) {
            self.appears(pid);
        }
        match line.what {
            What::Call(name, text) => self.whole(pid, line.at_ns, name, text, None),
            What::Unfinished(name, text) => {
                let taken = match name {
                    "close" => process::descriptor_number(text).and_then(|fd| self.processes.take(pid, fd)),
                    _ => None,
                };
                let begun = Begun { name: name.into(), text: text.to_vec(), at_ns: line.at_ns, taken };
                if let Some(lost) = self.begun.insert(pid, begun) {
                    self.left_out(Why::Incomplete, &lost.name);
                }
            }
            What::Resumed(name, rest) => match self.begun.remove(&pid).filter(|begun| *begun.name == *name) {
                Some(begun) => {
                    let text = [&begun.text[..], rest].concat();
                    self.whole(pid, begun.at_ns, name, &text, begun.taken);
                }
                None => self.left_out(Why::Incomplete, name),
            },
            What::Ended => {
                // A call that ends the thread does not come back.
                if let Some(begun) = self.begun.remove(&pid).filter(|begun| !known::ends(&begun.name)) {
                    self.left_out(Why::Incomplete, &begun.name);
                }
                let thread = self.processes.thread(pid);
                for left in self.processes.end(pid) {
                    self.last_closed(thread, line.at_ns, left);
                }
            }
            What::Other => {}
        }
    }

    /// A thread shows up: by a call that has not returned yet, or from outside of the trace.
    fn appears(&mut self, pid: u32) {
        let creators = self.begun.iter().filter(|(_, begun)| known::creates_thread(&begun.name));
        // The one that has waited longest.
        let creator =
            creators.min_by_key(|(_, begun)| begun.at_ns).map(|(&pid, begun)| (pid, begun.text.clone()));
        let thread = self.world.thread(pid.to_string());
        match creator {
            Some((parent, text)) => self.child(parent, pid, thread, process::shares(&text)),
            None => self.processes.first(pid, thread),
        }
    }

    /// A thread that another one made.
    fn child(&mut self, parent: u32, pid: u32, thread: u32, shares: process::Shares) {
        self.world.follows(thread, self.processes.thread(parent));
        self.processes.child(parent, pid, thread, shares);
    }

    fn whole(&mut self, pid: u32, at_ns: u64, name: &str, text: &[u8], taken: Option<process::Descriptor>) {
        let Some(call) = line::call(text) else {
            self.left_out(Why::Incomplete, name);
            return;
        };
        let thread = self.processes.thread(pid);
        let arguments = &call.arguments[..];
        let done = Done { pid, thread, at_ns, name, arguments, result: call.result, taken };
        self.done(&done);
    }

    /// The last descriptor of an open file is gone, and with it the file's handle.
    fn last_closed(&mut self, thread: u32, at_ns: u64, handle: u32) {
        let flags = Flags(Flags::HANDLE);
        self.world.call(thread, Call { flags, ..Call::new(at_ns, OperationKind::Close, handle) });
    }

    fn finish(mut self) -> Plan {
        for begun in std::mem::take(&mut self.begun).into_values() {
            if !known::ends(&begun.name) && !known::is_no_file(&begun.name) {
                self.left_out(Why::Incomplete, &begun.name);
            }
        }
        let mut plan = self.world.finish();
        let named = self.left_out.into_iter();
        plan.left_out =
            named.map(|((why, call), count)| (LeftOut { why, call: call.into() }, count)).collect();
        plan
    }
}

#[cfg(test)]
mod tests;
