//! What clients counted of their mounts, over a time.

use benchmaster_telemetry::mountstats::{
    Change, ChangeError, Mountstats, NfsMount, Numbers, Operation, Transport,
};

/// What one client counted.
#[derive(Debug, Clone)]
pub struct Reading {
    /// The client's name.
    pub client: String,
    /// The text of its `mountstats`, parsed.
    pub mountstats: Mountstats,
}

/// One mount of one client over a time.
#[derive(Debug, Clone)]
pub struct Observed {
    /// The client's name.
    pub client: String,
    /// The mount as it was last.
    pub mount: NfsMount,
    /// What was counted.
    pub counted: Change,
    /// Over how many seconds.
    pub seconds: u64,
    /// Whether since it was mounted, not between two readings.
    pub since_mount: bool,
    /// Attributes and permissions that applications asked for themselves, as far as that is known.
    pub asked_for: u64,
}

/// What there is to look at.
#[derive(Debug, Clone, Default)]
pub struct Observations {
    /// Mounts with calls.
    pub observed: Vec<Observed>,
    /// Mounts that cannot be looked at, and why.
    pub left_out: Vec<String>,
}

/// The mounts of all clients since they were mounted. Several mounts of one file system share their counters; the first is
/// taken.
pub fn since_mounted(readings: Vec<Reading>) -> Observations {
    let mut observations = Observations::default();
    for Reading { client, mountstats } in readings {
        for mount in distinct(mountstats.mounts) {
            observations.add(Observed::since_mounted(client.clone(), mount));
        }
    }
    observations
}

/// The mounts of all clients between two readings of each, in the same order.
///
/// # Errors
/// Where a mount of the later readings went back: it was mounted again meanwhile.
pub fn between(readings: Vec<(Reading, Reading)>) -> Result<Observations, ChangeError> {
    let mut observations = Observations::default();
    for (earlier, Reading { client, mountstats }) in readings {
        for mount in distinct(mountstats.mounts) {
            let same = |other: &&NfsMount| {
                (&other.device, &other.mount_point) == (&mount.device, &mount.mount_point)
            };
            let Some(before) = earlier.mountstats.mounts.iter().find(same) else {
                observations.left_out.push(format!("{client}, {mount}: it is not in the earlier reading"));
                continue;
            };
            let counted = mount.since(before)?;
            let seconds = mount.age.saturating_sub(before.age);
            observations.add(Observed {
                client: client.clone(),
                mount,
                counted,
                seconds,
                since_mount: false,
                asked_for: 0,
            });
        }
    }
    Ok(observations)
}

/// One mount of each file system.
fn distinct(mounts: Vec<NfsMount>) -> Vec<NfsMount> {
    let mut distinct: Vec<NfsMount> = Vec::new();
    for mount in mounts {
        let same = |other: &NfsMount| {
            (&other.device, other.age, &other.operations) == (&mount.device, mount.age, &mount.operations)
        };
        if !distinct.iter().any(same) {
            distinct.push(mount);
        }
    }
    distinct
}

impl Observations {
    fn add(&mut self, observed: Observed) {
        match observed.calls() {
            0 => self.left_out.push(format!("{}: it made no calls", observed.place())),
            _ => self.observed.push(observed),
        }
    }
}

impl Observed {
    /// All that a mount counted.
    pub(crate) fn since_mounted(client: String, mount: NfsMount) -> Self {
        let counted = Change {
            operations: mount.operations.clone(),
            events: mount.events.clone(),
            bytes: mount.bytes.clone(),
            transports: mount.transports.clone(),
        };
        let seconds = mount.age;
        Self { client, mount, counted, seconds, since_mount: true, asked_for: 0 }
    }

    /// Client and mount.
    pub fn place(&self) -> String {
        format!("{}, {}", self.client, self.mount)
    }

    /// Calls of all operations.
    pub fn calls(&self) -> u64 {
        self.sum(|operation| operation.ops)
    }

    /// An operation that was called.
    pub(super) fn operation(&self, name: &str) -> Option<&Operation> {
        self.counted.operations.iter().find(|operation| operation.name == name && operation.ops > 0)
    }

    pub(super) fn ops(&self, name: &str) -> u64 {
        self.operation(name).map_or(0, |operation| operation.ops)
    }

    /// Operations that were called.
    pub(super) fn called(&self) -> impl Iterator<Item = &Operation> {
        self.counted.operations.iter().filter(|operation| operation.ops > 0)
    }

    pub(super) fn sum(&self, of: impl Fn(&Operation) -> u64) -> u64 {
        self.counted.operations.iter().map(of).fold(0, u64::saturating_add)
    }

    /// Seconds that calls took, summed over calls.
    pub(super) fn call_seconds(&self) -> f64 {
        self.sum(|operation| operation.execute_ms) as f64 / 1e3
    }

    pub(super) fn is_v4(&self) -> bool {
        self.mount.rpc.as_ref().is_some_and(|rpc| rpc.version == 4) || self.mount.file_system == "nfs4"
    }

    pub(super) fn event(&self, name: &str) -> Option<u64> {
        number(&self.counted.events, name)
    }

    pub(super) fn bytes(&self, name: &str) -> Option<u64> {
        number(&self.counted.bytes, name)
    }

    /// Bytes that applications read by calls, if the kernel counts them.
    pub(super) fn application_read(&self) -> Option<u64> {
        Some(self.bytes("normal_read")? + self.bytes("direct_read")?)
    }

    /// The same of bytes written.
    pub(super) fn application_written(&self) -> Option<u64> {
        Some(self.bytes("normal_written")? + self.bytes("direct_written")?)
    }

    /// A number of every connection that has it.
    pub(super) fn of_connections<'a>(&'a self, name: &'a str) -> impl Iterator<Item = u64> + 'a {
        self.counted
            .transports
            .iter()
            .filter_map(move |transport: &Transport| number(&transport.numbers, name))
    }

    /// In words, over what time was counted.
    pub(super) fn period(&self) -> String {
        let time = match self.seconds {
            seconds if seconds < 120 => format!("{seconds} s"),
            seconds if seconds < 7200 => format!("{} min", seconds / 60),
            seconds if seconds < 172_800 => format!("{} h", seconds / 3600),
            seconds => format!("{} days", seconds / 86_400),
        };
        if self.since_mount { format!("in the {time} since it was mounted") } else { format!("in {time}") }
    }
}

pub(super) fn number(numbers: &Numbers, name: &str) -> Option<u64> {
    numbers.get(name).and_then(|value| u64::try_from(value).ok())
}
