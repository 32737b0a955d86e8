//! Starting agents, each at the other end of a byte stream.
//!
//! Who starts them (this host, ssh, Slurm, something else) is a matter of the modules below; what comes out is the same: a
//! stream that an agent serves, and whatever is known of the process behind it.

use std::any::Any;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, BufReader};
use tokio::net::lookup_host;
use tokio::process::Child;
use tokio::sync::watch;

pub(crate) use self::muster::Muster;
use crate::secure::{Aggregators, Joined};

pub mod external;
pub mod guests;
pub mod local;
mod muster;
mod ranked;
pub mod slurm;
pub mod ssh;

/// Both directions between the controller and one agent.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for T {}

impl fmt::Debug for dyn ByteStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ByteStream")
    }
}

/// An agent that was started.
#[derive(Debug)]
pub struct Started {
    /// Its name in the study: the host's, with a number where a host has several.
    pub name: String,
    /// To the agent, which serves on it.
    pub stream: Box<dyn ByteStream>,
    /// The process that the controller has for it: the agent itself, or ssh. It must be spawned with `kill_on_drop`.
    pub process: Option<Child>,
    /// What that process prints on standard error.
    pub errors: LastLines,
    /// What must live as long as the agent and is shared with others, such as the process that started several.
    pub keep: Option<Arc<dyn Any + Send + Sync>>,
    /// The agents that it is to lead; `None`: it does its own part of a run.
    pub(crate) leads: Option<Leads>,
}

/// What an aggregator is to do.
#[derive(Debug)]
pub(crate) struct Leads {
    pub(crate) muster: Muster,
    /// The address that its agents get, if they dial it.
    pub(crate) post: Option<Post>,
}

/// The place of an aggregator among those whose agents dial.
#[derive(Debug)]
pub(crate) struct Post {
    pub(crate) aggregators: Arc<Aggregators>,
    pub(crate) group: usize,
    /// Its host, as the controller sees it.
    pub(crate) address: IpAddr,
}

/// Why an agent could not be started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("agent `{agent}` could not be started: {reason}")]
pub struct LaunchError {
    /// Which agent, by its name in the study.
    pub agent: String,
    /// Why, and what helps.
    pub reason: String,
}

impl LaunchError {
    /// An error of an agent.
    pub fn new(agent: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { agent: agent.into(), reason: reason.into() }
    }
}

/// Agents with their names: those of their hosts, with a number from the second one of a host on.
fn by_host(joined: Vec<Joined>) -> impl Iterator<Item = (String, Joined)> {
    let mut seen = HashMap::new();
    joined.into_iter().map(move |agent| {
        let count = seen.entry(agent.host.clone()).and_modify(|count| *count += 1).or_insert(1);
        let name = if *count == 1 { agent.host.clone() } else { format!("{}-{count}", agent.host) };
        (name, agent)
    })
}

/// `HOST`, `HOST:PORT`, `ADDRESS`, `[ADDRESS]:PORT`; 0 without a port.
fn split_port(address: &str) -> Result<(&str, u16), String> {
    let wrong = || format!("`{address}` is not an address for agents to dial; write `HOST` or `HOST:PORT`");
    if address.parse::<IpAddr>().is_ok() {
        return Ok((address, 0));
    }
    let (host, port) = match address.rsplit_once(':') {
        Some((host, port)) => (host, port.parse().map_err(|_| wrong())?),
        None => (address, 0),
    };
    let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    if host.is_empty() || host.contains(['[', ']', '/', ' ']) { Err(wrong()) } else { Ok((host, port)) }
}

/// The address to listen on, and the host as it was written; `port` is taken where none is written.
async fn resolve(address: &str, port: u16) -> Result<(SocketAddr, &str), String> {
    let (host, written) = split_port(address)?;
    let found = lookup_host((host, if written == 0 { port } else { written })).await.ok();
    match found.and_then(|mut all| all.next()) {
        Some(address) => Ok((address, host)),
        None => Err(format!("`{host}`, the address for agents to dial, is not known here")),
    }
}

/// Lines kept by [`LastLines`].
const LINES: usize = 20;

/// Most bytes of one line.
const LINE: u64 = 1024;

/// Reads lines until the other end is closed.
async fn each_line(reader: impl AsyncRead + Unpin, mut take: impl FnMut(&str)) {
    let mut reader = BufReader::with_capacity(LINE as usize, reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut reader).take(LINE).read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => take(&String::from_utf8_lossy(&line)),
        }
    }
}

/// The last lines that a process printed on standard error, to say why it ended. Copies share them.
#[derive(Debug, Clone, Default)]
pub struct LastLines(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept {
    lines: Mutex<VecDeque<String>>,
    /// Whether a task still reads.
    reading: watch::Sender<bool>,
}

impl LastLines {
    /// Reads lines in a task of the runtime until the other end is closed, so that the process is never held up.
    pub fn follow(reader: impl AsyncRead + Send + Unpin + 'static) -> Self {
        let lines = Self::default();
        lines.0.reading.send_replace(true);
        let kept = lines.clone();
        tokio::spawn(async move {
            each_line(reader, |line| kept.push(line)).await;
            kept.0.reading.send_replace(false);
        });
        lines
    }

    /// Waits until everything that is [followed](Self::follow) has been read: a process can have ended while its last
    /// words are still on the way. Who asks bounds the wait, as children of the process may hold the other end open.
    pub async fn read_to_end(&self) {
        // An error means that no sender is left, but this is one.
        let _ = self.0.reading.subscribe().wait_for(|reading| !reading).await;
    }

    pub fn push(&self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        let mut lines = self.0.lines.lock();
        if lines.len() == LINES {
            lines.pop_front();
        }
        lines.push_back(line.to_owned());
    }

    /// The lines so far, the last of them at the end.
    pub fn text(&self) -> String {
        self.0.lines.lock().iter().map(String::as_str).collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_ports_or_not() {
        assert_eq!(split_port("head"), Ok(("head", 0)));
        assert_eq!(split_port("head.example:7000"), Ok(("head.example", 7000)));
        assert_eq!(split_port("10.0.0.1"), Ok(("10.0.0.1", 0)));
        assert_eq!(split_port("fe80::1"), Ok(("fe80::1", 0)));
        assert_eq!(split_port("[fe80::1]:7000"), Ok(("fe80::1", 7000)));
        for wrong in ["", ":1", "head:x", "head:99999", "tcp://head", "a b"] {
            assert!(split_port(wrong).unwrap_err().contains(wrong), "{wrong}");
        }
    }

    #[tokio::test]
    async fn the_last_lines_are_kept_and_long_ones_are_cut() {
        let (mut writer, reader) = tokio::io::duplex(64);
        let lines = LastLines::follow(reader);
        let text: String = (0..50).map(|number| format!("line {number}\n")).collect();
        tokio::io::AsyncWriteExt::write_all(&mut writer, text.as_bytes()).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut writer, &[b'x'; 2000]).await.unwrap();
        drop(writer);
        lines.read_to_end().await;
        let text = lines.text();
        assert!(text.ends_with(&format!("\n{}", "x".repeat(2000 - 1024))), "{text}");
        assert_eq!(text.lines().count(), LINES);
        assert!(text.starts_with("line 32\n"), "{text}");
    }
}
