//! What a client is told, and what it says in the end.

use std::fmt;
use std::str::FromStr;

use anyhow::{Context, Error, Result, bail, ensure};

/// Size of the file that clients read: `data`.
pub(crate) const DATA_SIZE: u64 = 256 << 20;

/// A kind of call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// READ of a file, each task at places of its own.
    Read,
    /// WRITE, unstable where the version has that.
    Write,
    /// GETATTR of one file.
    Getattr,
    /// Creating empty files in one directory; closing them where there is an OPEN.
    Create,
}

impl Operation {
    fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Getattr => "getattr",
            Self::Create => "create",
        }
    }
}

impl FromStr for Operation {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let all = [Self::Read, Self::Write, Self::Getattr, Self::Create];
        all.into_iter().find(|operation| operation.name() == text).context("no such operation")
    }
}

/// One measurement of one client.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    pub(crate) host: String,
    pub(crate) port: u16,
    /// `3`, `4.0`, `4.1`.
    pub(crate) version: String,
    pub(crate) operation: Operation,
    /// Of a READ or WRITE; else 0.
    pub(crate) size: u64,
    pub(crate) outstanding: u32,
    pub(crate) connections: u32,
    /// How long to count, after a warm-up of a tenth of that and as many calls as are outstanding; longer where
    /// [`Self::least`] takes longer.
    pub(crate) seconds: f64,
}

impl Job {
    /// As command line arguments.
    pub(crate) fn arguments(&self) -> [String; 8] {
        [
            self.host.clone(),
            self.port.to_string(),
            self.version.clone(),
            self.operation.name().into(),
            self.size.to_string(),
            self.outstanding.to_string(),
            self.connections.to_string(),
            self.seconds.to_string(),
        ]
    }

    /// From command line arguments.
    pub(crate) fn parse(arguments: &[String]) -> Result<Self> {
        let [host, port, version, operation, size, outstanding, connections, seconds] = arguments else {
            bail!("HOST PORT VERSION OPERATION SIZE OUTSTANDING CONNECTIONS SECONDS");
        };
        Ok(Self {
            host: host.clone(),
            port: port.parse()?,
            version: version.clone(),
            operation: operation.parse()?,
            size: size.parse()?,
            outstanding: outstanding.parse()?,
            connections: connections.parse()?,
            seconds: seconds.parse()?,
        })
    }

    /// Fewest calls that are counted: tasks that began together come in waves, and a part of one must not matter.
    pub(crate) fn least(&self) -> u64 {
        u64::from(self.outstanding) * 10
    }

    /// Of our client. Sessions get as many slots as calls are wanted outstanding.
    pub(crate) fn url(&self) -> String {
        let Self { host, port, version, connections, .. } = self;
        let slots = match version.as_str() {
            "4.1" | "4.2" => format!("&slots={}", self.outstanding.clamp(1, 1024)),
            _ => String::new(),
        };
        format!("nfs://{host}:{port}/export?version={version}&nconnect={connections}{slots}")
    }

    /// Where in the file a task reads or writes first, and how far on it goes each time: side by side with the others.
    pub(crate) fn places(&self, task: u32) -> impl Iterator<Item = u64> + use<> {
        let (size, step) = (self.size, self.size * u64::from(self.outstanding));
        let places = DATA_SIZE / size.max(1);
        let first = u64::from(task) * size;
        (0..).map(move |n: u64| (first + n * step).checked_div(size).map_or(0, |place| place % places * size))
    }
}

impl fmt::Display for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.operation.name().to_uppercase())?;
        match self.size {
            0 => {}
            size if size >= 1 << 20 => write!(f, " {} MiB", size >> 20)?,
            size => write!(f, " {} KiB", size >> 10)?,
        }
        write!(f, " × {}", self.outstanding)?;
        if self.connections > 1 { write!(f, " on {} connections", self.connections) } else { Ok(()) }
    }
}

/// What a client did while it counted. Text form: calls, seconds and CPU seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) calls: u64,
    pub(crate) seconds: f64,
    /// User and system.
    pub(crate) cpu: f64,
}

impl Outcome {
    pub(crate) fn rate(&self) -> f64 {
        self.calls as f64 / self.seconds
    }

    /// Microseconds of CPU time per call.
    pub(crate) fn cost(&self) -> f64 {
        self.cpu * 1e6 / self.calls as f64
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:.9} {:.9}", self.calls, self.seconds, self.cpu)
    }
}

impl FromStr for Outcome {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [calls, seconds, cpu] = fields[..] else { bail!("`{text}` is not an outcome") };
        let outcome = Self { calls: calls.parse()?, seconds: seconds.parse()?, cpu: cpu.parse()? };
        ensure!(outcome.calls > 0 && outcome.seconds > 0.0, "nothing was done: `{text}`");
        Ok(outcome)
    }
}
