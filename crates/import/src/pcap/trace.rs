//! Exchanges as calls of a program: the lines of `strace -f -ttt -T`.
//!
//! Each client is a process whose threads have one call outstanding each. NFSv3 opens nothing: a file is opened before its
//! first READ or WRITE, and closed when it is removed, and at the end.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, Write};
use std::net::IpAddr;
use std::rc::Rc;

use super::operation::{Operation, Place, Seen, Status};
use super::{Captured, Exchange, ROOT};

/// Longer paths no call takes.
const LONGEST_PATH: usize = 4000;
/// Number of the root's node.
const TOP: usize = 0;

#[derive(Debug)]
struct Node {
    parent: usize,
    name: Rc<[u8]>,
    directory: bool,
}

/// An open file of a client.
#[derive(Debug, Clone, Copy)]
struct Opened {
    descriptor: u64,
    writes: bool,
}

/// A client's threads.
#[derive(Debug, Default)]
struct Client {
    /// Until when each has a call outstanding, and its number.
    threads: Vec<(u64, u64)>,
    open: HashMap<usize, Vec<Opened>>,
}

struct Writer<'w, W> {
    output: &'w mut W,
    nodes: Vec<Node>,
    names: HashMap<(usize, Rc<[u8]>), usize>,
    handles: HashMap<(IpAddr, Rc<[u8]>), usize>,
    clients: HashMap<IpAddr, Client>,
    descriptors: u64,
    threads: u64,
}

/// Who calls, and when.
#[derive(Clone, Copy)]
struct At {
    client: IpAddr,
    server: IpAddr,
    thread: u64,
    at_ns: u64,
    took_ns: u64,
}

/// Writes the trace.
///
/// # Errors
/// Those of the output.
pub(super) fn write(
    exchanges: &[Exchange],
    output: &mut impl Write,
    captured: &mut Captured,
) -> io::Result<()> {
    let top = Node { parent: TOP, name: (&[][..]).into(), directory: true };
    let mut writer = Writer {
        output,
        nodes: vec![top],
        names: HashMap::new(),
        handles: HashMap::new(),
        clients: HashMap::new(),
        descriptors: 2,
        threads: 99,
    };
    for exchange in exchanges {
        let Exchange { client, server, at_ns, took_ns, .. } = *exchange;
        let thread = writer.thread(client, at_ns, took_ns)?;
        let at = At { client, server, thread, at_ns, took_ns };
        for operation in &exchange.operations {
            if let Some(left_out) = writer.operation(at, operation)? {
                *captured.left_out.entry(left_out.to_owned()).or_default() += 1;
            }
        }
    }
    writer.end(exchanges.last().map_or(0, |last| last.at_ns + last.took_ns))
}

impl<W: Write> Writer<'_, W> {
    /// A thread of the client that has no call outstanding.
    fn thread(&mut self, client: IpAddr, at_ns: u64, took_ns: u64) -> io::Result<u64> {
        let until = at_ns + took_ns;
        let known = self.clients.entry(client).or_default();
        if let Some((busy, number)) = known.threads.iter_mut().find(|(busy, _)| *busy <= at_ns) {
            *busy = until;
            return Ok(*number);
        }
        self.threads += 1;
        let number = self.threads;
        let first = known.threads.first().map(|(_, number)| *number);
        known.threads.push((until, number));
        if let Some(first) = first {
            let flags = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD";
            self.line(first, at_ns, 0, &format!("clone3({{flags={flags}}}, 88) = {number}"))?;
        }
        Ok(number)
    }

    fn line(&mut self, thread: u64, at_ns: u64, took_ns: u64, call: &str) -> io::Result<()> {
        let parts = |ns: u64| (ns / 1_000_000_000, ns % 1_000_000_000);
        let ((seconds, nanos), (long, fraction)) = (parts(at_ns), parts(took_ns));
        writeln!(self.output, "{thread} {seconds}.{nanos:09} {call} <{long}.{fraction:09}>")
    }

    /// A call with its result: what it returns, or the name of its error.
    fn call(&mut self, at: At, call: &str, result: Result<u64, &str>) -> io::Result<()> {
        let text = match result {
            Ok(value) => format!("{call} = {value}"),
            Err(error) => format!("{call} = -1 {error} (failed)"),
        };
        self.line(at.thread, at.at_ns, at.took_ns, &text)
    }

    /// The node of a place; `None` where its name leads elsewhere.
    fn node(&mut self, server: IpAddr, place: &Place) -> Option<usize> {
        match place {
            Place::Root => Some(TOP),
            Place::Handle(handle) => {
                if let Some(node) = self.handles.get(&(server, handle.clone())) {
                    return Some(*node);
                }
                // Known before the capture began: a file of the root, under a name of its own.
                let name = format!("handle-{}", self.handles.len()).into_bytes();
                let node = self.child(TOP, &name.into())?;
                self.handles.insert((server, handle.clone()), node);
                Some(node)
            }
            Place::Child(directory, name) => {
                let directory = self.node(server, directory)?;
                self.child(directory, name)
            }
            Place::Parent(of) => self.node(server, of).map(|node| self.nodes[node].parent),
        }
    }

    fn child(&mut self, directory: usize, name: &Rc<[u8]>) -> Option<usize> {
        let plain =
            !name.is_empty() && name.len() <= 255 && !name.iter().any(|byte| matches!(byte, b'/' | 0));
        if !plain || matches!(&name[..], b"." | b"..") {
            return None;
        }
        self.nodes[directory].directory = true;
        let next = self.nodes.len();
        let node = *self.names.entry((directory, name.clone())).or_insert(next);
        if node == next {
            self.nodes.push(Node { parent: directory, name: name.clone(), directory: false });
        }
        Some(node)
    }

    /// The path of a node as strace quotes it; `None` where it is too long.
    fn path(&self, node: usize) -> Option<String> {
        let mut names = Vec::new();
        let (mut at, mut length) = (node, 0);
        while at != TOP {
            let Node { parent, name, .. } = &self.nodes[at];
            length += name.len() + 1;
            if length > LONGEST_PATH {
                return None;
            }
            names.push(&name[..]);
            at = *parent;
        }
        let mut path = ROOT.as_bytes().to_vec();
        for name in names.into_iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        Some(quoted(&path))
    }

    /// Whether `node` is `above` or below it.
    fn is_below(&self, mut node: usize, above: usize) -> bool {
        while node != TOP && node != above {
            node = self.nodes[node].parent;
        }
        node == above
    }

    /// Writes an operation; returns what of it was left out.
    fn operation(&mut self, at: At, operation: &Operation) -> io::Result<Option<&'static str>> {
        const NAME: &str = "names that lead elsewhere";
        /// Node and path of a place.
        macro_rules! found {
            ($place:expr) => {{
                let Some(node) = self.node(at.server, $place) else { return Ok(Some(NAME)) };
                let Some(path) = self.path(node) else { return Ok(Some(NAME)) };
                (node, path)
            }};
        }
        /// How it ended, as far as a program sees it.
        macro_rules! ended {
            ($status:expr, $value:expr) => {
                match errno(*$status) {
                    _ if *$status == 0 => Ok($value),
                    Some(error) => Err(error),
                    None => return Ok(Some("calls that the server put off or refused for reasons of NFS")),
                }
            };
        }
        match operation {
            Operation::Other(what) => return Ok(Some(what)),
            Operation::Known(place, handle) => {
                if let Some(node) = self.node(at.server, place) {
                    self.handles.insert((at.server, handle.clone()), node);
                }
            }
            Operation::Stat(place, status, seen) => {
                let ((node, path), result) = (found!(place), ended!(status, 0));
                self.nodes[node].directory |= seen.is_some_and(|seen| seen.directory);
                let shown = match seen {
                    Some(Seen { directory: true, .. }) => "{st_mode=S_IFDIR|0755, ...}".to_owned(),
                    Some(Seen { size, .. }) => format!("{{st_mode=S_IFREG|0644, st_size={size}, ...}}"),
                    None => "0x0".to_owned(),
                };
                self.call(at, &format!("newfstatat(AT_FDCWD, {path}, {shown}, 0)"), result)?;
            }
            Operation::Access(place, status) => {
                let ((_, path), result) = (found!(place), ended!(status, 0));
                self.call(at, &format!("access({path}, R_OK)"), result)?;
            }
            Operation::Open { place, status, writes, creates, exclusive, truncates } => {
                let ((node, path), result) = (found!(place), ended!(status, self.descriptors + 1));
                let mut flags = String::from(if *writes { "O_RDWR" } else { "O_RDONLY" });
                for (on, flag) in [(creates, "|O_CREAT"), (exclusive, "|O_EXCL"), (truncates, "|O_TRUNC")] {
                    flags += if *on { flag } else { "" };
                }
                let mode = if *creates { ", 0644" } else { "" };
                self.call(at, &format!("openat(AT_FDCWD, {path}, {flags}{mode})"), result)?;
                if let Ok(descriptor) = result {
                    self.descriptors = descriptor;
                    let opened = Opened { descriptor, writes: *writes };
                    self.clients.entry(at.client).or_default().open.entry(node).or_default().push(opened);
                }
            }
            Operation::Close(place) => {
                let (node, _) = found!(place);
                let open = self.clients.entry(at.client).or_default().open.get_mut(&node);
                match open.and_then(Vec::pop) {
                    Some(opened) => self.call(at, &format!("close({})", opened.descriptor), Ok(0))?,
                    None => return Ok(Some("closes of files that were opened before")),
                }
            }
            Operation::Read { place, status, offset, length, moved } => {
                let result = ended!(status, u64::from(*moved));
                let (node, path) = found!(place);
                let descriptor = self.descriptor(at, node, &path, false)?;
                self.call(at, &format!("pread64({descriptor}, \"\"..., {length}, {offset})"), result)?;
            }
            Operation::Write { place, status, offset, length, moved } => {
                let result = ended!(status, u64::from(*moved));
                let (node, path) = found!(place);
                let descriptor = self.descriptor(at, node, &path, true)?;
                self.call(at, &format!("pwrite64({descriptor}, \"\"..., {length}, {offset})"), result)?;
            }
            Operation::Commit(place, status) => {
                let result = ended!(status, 0);
                let (node, path) = found!(place);
                let descriptor = self.descriptor(at, node, &path, true)?;
                self.call(at, &format!("fsync({descriptor})"), result)?;
            }
            Operation::Truncate(place, status, size) => {
                let ((_, path), result) = (found!(place), ended!(status, 0));
                self.call(at, &format!("truncate({path}, {size})"), result)?;
            }
            Operation::Chmod(place, status, mode) => {
                let ((_, path), result) = (found!(place), ended!(status, 0));
                self.call(at, &format!("chmod({path}, 0{:o})", mode & 0o7777), result)?;
            }
            Operation::SetTimes(place, status) => {
                let ((_, path), result) = (found!(place), ended!(status, 0));
                self.call(at, &format!("utimensat(AT_FDCWD, {path}, NULL, 0)"), result)?;
            }
            Operation::Readlink(place, status, target) => {
                let ((_, path), result) = (found!(place), ended!(status, target.len() as u64));
                let size = target.len();
                self.call(at, &format!("readlink({path}, {}, {})", quoted(target), size + 1), result)?;
            }
            Operation::Symlink(place, status, target) => {
                let ((_, path), result) = (found!(place), ended!(status, 0));
                self.call(at, &format!("symlink({}, {path})", quoted(target)), result)?;
            }
            Operation::Mkdir(place, status) => {
                let ((node, path), result) = (found!(place), ended!(status, 0));
                self.nodes[node].directory |= result.is_ok();
                self.call(at, &format!("mkdir({path}, 0755)"), result)?;
            }
            Operation::Remove { place, status, directory } => {
                let ((node, path), result) = (found!(place), ended!(status, 0));
                if directory.unwrap_or(self.nodes[node].directory) {
                    self.call(at, &format!("rmdir({path})"), result)?;
                } else {
                    self.close_all(at, node)?;
                    self.call(at, &format!("unlink({path})"), result)?;
                }
                if result.is_ok() {
                    self.forget(node);
                }
            }
            Operation::Rename { from, to, status } => {
                let ((old, from), (new, to_path)) = (found!(from), found!(to));
                let result = ended!(status, 0);
                self.call(at, &format!("rename({from}, {to_path})"), result)?;
                let parent = self.nodes[new].parent;
                if result.is_ok() && old != new && !self.is_below(parent, old) {
                    let name = self.nodes[new].name.clone();
                    self.forget(new);
                    self.forget(old);
                    self.names.insert((parent, name.clone()), old);
                    (self.nodes[old].parent, self.nodes[old].name) = (parent, name);
                }
            }
            Operation::Link { from, to, status } => {
                let ((_, from), (_, to), result) = (found!(from), found!(to), ended!(status, 0));
                self.call(at, &format!("link({from}, {to})"), result)?;
            }
            Operation::Readdir(place, status) => {
                let ((node, path), result) = (found!(place), ended!(status, 1));
                if result.is_err() {
                    return Ok(Some("listings that failed"));
                }
                self.nodes[node].directory = true;
                self.descriptors += 1;
                let descriptor = self.descriptors;
                let open = format!("openat(AT_FDCWD, {path}, O_RDONLY|O_DIRECTORY)");
                self.call(at, &open, Ok(descriptor))?;
                self.call(at, &format!("getdents64({descriptor}, 0x0, 32768)"), result)?;
                self.call(at, &format!("close({descriptor})"), Ok(0))?;
            }
            Operation::Lock { place, offset, length, exclusive } => {
                let (node, path) = found!(place);
                let descriptor = self.descriptor(at, node, &path, false)?;
                self.lock(
                    at,
                    descriptor,
                    if *exclusive { "F_WRLCK" } else { "F_RDLCK" },
                    (*offset, *length),
                )?;
            }
            Operation::Unlock { place, offset, length } => {
                let (node, path) = found!(place);
                let descriptor = self.descriptor(at, node, &path, false)?;
                self.lock(at, descriptor, "F_UNLCK", (*offset, *length))?;
            }
        }
        Ok(None)
    }

    fn lock(&mut self, at: At, descriptor: u64, kind: &str, (offset, length): (u64, u64)) -> io::Result<()> {
        // To the end of the file, whatever that is.
        let length = if length == u64::MAX { 0 } else { length };
        let lock = format!("{{l_type={kind}, l_whence=SEEK_SET, l_start={offset}, l_len={length}}}");
        self.call(at, &format!("fcntl({descriptor}, F_OFD_SETLKW, {lock})"), Ok(0))
    }

    /// A descriptor of the file that the client has open; it is opened where it has none that will do.
    fn descriptor(&mut self, at: At, node: usize, path: &str, writes: bool) -> io::Result<u64> {
        let open = self.clients.entry(at.client).or_default().open.entry(node).or_default();
        if let Some(opened) = open.iter().rev().find(|opened| opened.writes || !writes) {
            return Ok(opened.descriptor);
        }
        self.descriptors += 1;
        let descriptor = self.descriptors;
        open.push(Opened { descriptor, writes });
        let flags = if writes { "O_RDWR" } else { "O_RDONLY" };
        let before = At { took_ns: 0, ..at };
        self.call(before, &format!("openat(AT_FDCWD, {path}, {flags})"), Ok(descriptor))?;
        Ok(descriptor)
    }

    fn close_all(&mut self, at: At, node: usize) -> io::Result<()> {
        let open = self.clients.get_mut(&at.client).and_then(|client| client.open.remove(&node));
        for opened in open.unwrap_or_default() {
            self.call(At { took_ns: 0, ..at }, &format!("close({})", opened.descriptor), Ok(0))?;
        }
        Ok(())
    }

    /// The name of a node may become another's.
    fn forget(&mut self, node: usize) {
        let Node { parent, name, .. } = &self.nodes[node];
        let key = (*parent, name.clone());
        if self.names.get(&key) == Some(&node) {
            self.names.remove(&key);
        }
    }

    /// Closes what is open.
    fn end(mut self, at_ns: u64) -> io::Result<()> {
        let mut left: Vec<(u64, u64)> = Vec::new();
        for client in self.clients.values() {
            let thread = client.threads.first().map_or(0, |(_, number)| *number);
            left.extend(client.open.values().flatten().map(|opened| (opened.descriptor, thread)));
        }
        left.sort_unstable();
        for (descriptor, thread) in left {
            self.line(thread, at_ns, 0, &format!("close({descriptor}) = 0"))?;
        }
        Ok(())
    }
}

/// A string as strace writes it.
fn quoted(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', char::from(byte)]),
            b' '..=b'~' => text.push(char::from(byte)),
            _ => {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\{byte:03o}");
            }
        }
    }
    text.push('"');
    text
}

/// The error that a program sees; `None` for those between client and server.
fn errno(status: Status) -> Option<&'static str> {
    Some(match status {
        1 => "EPERM",
        2 => "ENOENT",
        5 => "EIO",
        6 => "ENXIO",
        13 => "EACCES",
        17 => "EEXIST",
        18 => "EXDEV",
        19 => "ENODEV",
        20 => "ENOTDIR",
        21 => "EISDIR",
        22 => "EINVAL",
        27 => "EFBIG",
        28 => "ENOSPC",
        30 => "EROFS",
        31 => "EMLINK",
        63 => "ENAMETOOLONG",
        66 => "ENOTEMPTY",
        69 => "EDQUOT",
        70 => "ESTALE",
        _ => return None,
    })
}
