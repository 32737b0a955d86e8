//! The text of `mountstats`.

use std::str::FromStr;

use super::{Mountstats, NfsMount, Numbers, Operation, RpcProgram, Transport, is_nfs};
use crate::mountinfo::unescaped;
use crate::sampling::text::shortened;

/// Where the text is not in the kernel's format, and why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ParseError {
    /// Counted from 1.
    pub line: usize,
    pub problem: Problem,
}

/// What can be wrong with a line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// It begins at the margin and is not `device … mounted on … with fstype …`.
    #[error("`{0}` is not a mount")]
    Mount(String),
    /// It has no key with a colon.
    #[error("`{0}` has no key")]
    Key(String),
    /// It belongs to a mount, and there was none before it.
    #[error("`{0}` comes before any mount")]
    Outside(String),
    /// A number is expected.
    #[error("`{0}` is not a number")]
    Number(String),
    /// An operation has fewer than eight numbers.
    #[error("operation {operation} has {found} numbers and should have at least 8")]
    Columns {
        operation: String,
        /// How many there are.
        found: usize,
    },
    /// `RPC iostats version: VERSION  p/v: PROGRAM/VERSION (NAME)` is expected.
    #[error("`{0}` is no RPC program")]
    Program(String),
}

const OPERATIONS: &str = "per-op statistics";

pub(super) fn parse(text: &str) -> Result<Mountstats, ParseError> {
    let mut mounts: Vec<NfsMount> = Vec::new();
    let mut section = Section::Before;
    for (at, line) in text.lines().enumerate() {
        let fail = |problem| ParseError { line: at + 1, problem };
        let shown = || shortened(line);
        if line.trim().is_empty() {
            continue;
        }
        if !line.starts_with([' ', '\t']) {
            let mount = mount(line).ok_or_else(|| fail(Problem::Mount(shown())))?;
            section = Section::Other;
            if is_nfs(&mount.file_system) {
                mounts.push(mount);
                section = Section::Lines;
            }
            continue;
        }
        match (section, mounts.last_mut()) {
            (Section::Other, _) => {}
            (Section::Lines, Some(_)) if line.trim() == OPERATIONS => section = Section::Operations,
            (Section::Lines, Some(mount)) => {
                let (key, value) = line.trim().split_once(':').ok_or_else(|| fail(Problem::Key(shown())))?;
                field(mount, key, value.trim()).map_err(fail)?;
            }
            (Section::Operations, Some(mount)) => {
                let (name, value) = line.trim().split_once(':').ok_or_else(|| fail(Problem::Key(shown())))?;
                mount.operations.push(operation(name.trim(), value).map_err(fail)?);
            }
            (Section::Before, _) | (_, None) => return Err(fail(Problem::Outside(shown()))),
        }
    }
    Ok(Mountstats { mounts })
}

/// What an indented line belongs to.
#[derive(Clone, Copy)]
enum Section {
    /// Nothing.
    Before,
    /// A mount of a file system that is not NFS.
    Other,
    /// An NFS mount,
    Lines,
    /// and its operations.
    Operations,
}

/// `device DEVICE mounted on POINT with fstype TYPE statvers=VERSION`, or `no device` in place of the device.
fn mount(line: &str) -> Option<NfsMount> {
    let (device, rest) = line.split_once(" mounted on ")?;
    // Nothing that follows contains spaces of its own: the kernel escapes them.
    let (point, rest) = rest.split_once(" with fstype ")?;
    let device = match device {
        "no device" => "",
        device => device.strip_prefix("device")?.strip_prefix(' ')?,
    };
    let (file_system, version) = rest.split_once(" statvers=").unwrap_or((rest, ""));
    let text = |field: &str| unescaped(field).to_string_lossy().into_owned();
    Some(NfsMount {
        device: text(device),
        mount_point: unescaped(point).into(),
        file_system: file_system.trim_end().to_owned(),
        version: version.trim_end().to_owned(),
        options: String::new(),
        age: 0,
        implementation: None,
        capabilities: String::new(),
        nfsv4: None,
        security: String::new(),
        events: Numbers::new(Numbers::EVENTS, Vec::new()),
        bytes: Numbers::new(Numbers::BYTES, Vec::new()),
        cache: None,
        rpc: None,
        transports: Vec::new(),
        operations: Vec::new(),
        other: Vec::new(),
    })
}

fn field(mount: &mut NfsMount, key: &str, value: &str) -> Result<(), Problem> {
    match key {
        "opts" => mount.options = value.to_owned(),
        "age" => mount.age = number(value)?,
        "impl_id" => mount.implementation = Some(value.to_owned()),
        "caps" => mount.capabilities = value.to_owned(),
        "nfsv4" => mount.nfsv4 = Some(value.to_owned()),
        "sec" => mount.security = value.to_owned(),
        "events" => mount.events = Numbers::new(Numbers::EVENTS, numbers(value)?),
        "bytes" => mount.bytes = Numbers::new(Numbers::BYTES, numbers(value)?),
        "fsc" => mount.cache = Some(Numbers::new(Numbers::CACHE, numbers(value)?)),
        "RPC iostats version" => {
            mount.rpc = Some(program(value).ok_or_else(|| Problem::Program(shortened(value)))?);
        }
        "xprt" => {
            let (kind, values) = value.split_once(' ').unwrap_or((value, ""));
            let numbers = Numbers::new(Numbers::transport(kind), numbers(values)?);
            mount.transports.push(Transport { kind: kind.to_owned(), numbers });
        }
        _ => mount.other.push((key.to_owned(), value.to_owned())),
    }
    Ok(())
}

/// `1.1  p/v: 100003/3 (nfs)`.
fn program(value: &str) -> Option<RpcProgram> {
    let (iostats, rest) = value.split_once("p/v:")?;
    let (numbers, name) = rest.trim().split_once(' ')?;
    let (program, version) = numbers.split_once('/')?;
    Some(RpcProgram {
        iostats: iostats.trim().to_owned(),
        program: program.parse().ok()?,
        version: version.parse().ok()?,
        name: name.trim().strip_prefix('(')?.strip_suffix(')')?.to_owned(),
    })
}

fn operation(name: &str, value: &str) -> Result<Operation, Problem> {
    let numbers: Vec<u64> = numbers(value)?;
    let [
        ops,
        transmissions,
        timeouts,
        bytes_sent,
        bytes_received,
        queue_ms,
        rtt_ms,
        execute_ms,
        ref rest @ ..,
    ] = numbers[..]
    else {
        return Err(Problem::Columns { operation: shortened(name), found: numbers.len() });
    };
    Ok(Operation {
        name: name.to_owned(),
        ops,
        transmissions,
        timeouts,
        bytes_sent,
        bytes_received,
        queue_ms,
        rtt_ms,
        execute_ms,
        errors: rest.first().copied(),
        further: rest.iter().skip(1).copied().collect(),
    })
}

fn numbers<N: FromStr>(text: &str) -> Result<Vec<N>, Problem> {
    text.split_whitespace().map(number).collect()
}

fn number<N: FromStr>(text: &str) -> Result<N, Problem> {
    text.parse().map_err(|_| Problem::Number(shortened(text)))
}
