//! What clients do and what goes wrong, drawn from a seed.

use std::fmt;
use std::time::Duration;

use benchmaster_nfs_server::fs::Trouble;
use benchmaster_record::nfs::NfsVersion;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use serde::{Deserialize, Serialize};

/// Lease of the simulated server, and length of its grace period.
pub const LEASE: Duration = Duration::from_secs(10);
/// Blocks of a file that operations use.
pub(crate) const BLOCKS: u64 = 4;
/// Names in a client's own directory.
const NAMES: u64 = 3;

/// One history to be tried. What is removed from it leaves the rest as it was.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Scenario {
    /// Where the network's delays come from, and everything of client and server that is random.
    pub seed: u64,
    /// NFS version of all clients.
    pub version: NfsVersion,
    /// Whether datagrams carry the calls (version 3).
    pub udp: bool,
    /// Whether clients cache as Linux' does, and take delegations.
    pub cached: bool,
    /// Whether what is dirty in a cache is written back soon.
    #[serde(default)]
    pub hurried: bool,
    /// What each client does, one after the other.
    pub clients: Vec<Vec<Step>>,
    /// What goes wrong.
    pub faults: Vec<Fault>,
}

/// An operation, and the pause before it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Step {
    /// Time since the last one was done.
    pub pause: Duration,
    /// What is done.
    pub op: Op,
}

/// A name in a client's own directory.
pub type Name = u8;

/// An operation of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Op {
    /// A new file; it must not exist where `exclusive`.
    Create {
        /// The file.
        name: Name,
        /// `O_EXCL`.
        exclusive: bool,
    },
    /// Open, write one block with a value, close.
    Write {
        /// The file.
        name: Name,
        /// Which block.
        block: u64,
        /// What fills it.
        value: u64,
    },
    /// Open, read one block, close.
    Read {
        /// The file.
        name: Name,
        /// Which block.
        block: u64,
    },
    /// Size of a file.
    Stat {
        /// The file.
        name: Name,
    },
    /// Sets the size in blocks.
    Truncate {
        /// The file.
        name: Name,
        /// New size.
        blocks: u64,
    },
    /// Removes a file.
    Remove {
        /// The file.
        name: Name,
    },
    /// Renames a file.
    Rename {
        /// The old name.
        from: Name,
        /// The new name.
        to: Name,
    },
    /// All names of the directory.
    List,
    /// Opens the held file, which is created.
    Hold,
    /// Writes a block of the held file, unstable.
    WriteHeld {
        /// Which block.
        block: u64,
        /// What fills it.
        value: u64,
    },
    /// Makes the held file stable.
    SyncHeld,
    /// Closes the held file.
    Release,
    /// Adds one to the counter that all share, under a lock.
    Increment {
        /// How long the lock is held.
        hold: Duration,
    },
    /// Writes a new generation of this client's record that all can see, and closes it.
    Publish,
    /// Opens another client's record and reads it.
    Observe {
        /// Whose.
        of: u8,
    },
}

/// Something that goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct Fault {
    /// Time since the beginning.
    pub at: Duration,
    /// What it is.
    pub kind: FaultKind,
}

/// What can go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultKind {
    /// The connections of a client break.
    Cut {
        /// The client.
        client: u8,
    },
    /// The reply to the next change of a client is lost with its connection: the call was executed.
    LostReply {
        /// The client.
        client: u8,
    },
    /// The next callback to a client is lost with its connection: before the client has it, or its reply.
    LostCallback {
        /// The client.
        client: u8,
        /// Whether the client has it.
        executed: bool,
    },
    /// Nothing passes between a client and the server.
    Partition {
        /// The client.
        client: u8,
        /// How long.
        length: Duration,
    },
    /// The server stands still.
    Pause {
        /// How long.
        length: Duration,
    },
    /// The server is started again. It forgets what it had only in memory.
    Restart {
        /// How long it is away.
        down: Duration,
        /// Whether it loses power: data that it never called stable may be lost, by the page.
        power: bool,
    },
    /// The client is no more.
    Death {
        /// The client.
        client: u8,
    },
    /// The server's time of day is set.
    Clock {
        /// By how much, in seconds.
        seconds: i32,
    },
    /// The disk of the server fails.
    Disk {
        /// In what.
        what: Trouble,
        /// How long; zero: once.
        length: Duration,
    },
    /// The network loses packets.
    Loss {
        /// Of a thousand.
        permille: u16,
        /// How long.
        length: Duration,
    },
}

impl FaultKind {
    /// How long it lasts; nothing for what happens at once.
    pub fn length(&self) -> Duration {
        match *self {
            Self::Partition { length, .. }
            | Self::Pause { length }
            | Self::Disk { length, .. }
            | Self::Loss { length, .. } => length,
            Self::Restart { down, .. } => down,
            Self::Cut { .. }
            | Self::LostReply { .. }
            | Self::LostCallback { .. }
            | Self::Death { .. }
            | Self::Clock { .. } => Duration::ZERO,
        }
    }

    /// The same, to be changed; `None` for what happens at once.
    pub(crate) fn length_mut(&mut self) -> Option<&mut Duration> {
        match self {
            Self::Partition { length, .. }
            | Self::Pause { length }
            | Self::Disk { length, .. }
            | Self::Loss { length, .. }
            | Self::Restart { down: length, .. } => Some(length),
            _ => None,
        }
    }
}

/// What scenarios are drawn from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Space {
    /// NFS versions.
    pub versions: Vec<NfsVersion>,
    /// Most clients.
    pub clients: u8,
    /// Most operations of each.
    pub operations: u8,
    /// Most faults.
    pub faults: u8,
}

impl Default for Space {
    fn default() -> Self {
        let versions = vec![NfsVersion::V3, NfsVersion::V40, NfsVersion::V41, NfsVersion::V42];
        Self { versions, clients: 4, operations: 24, faults: 5 }
    }
}

/// Numbers from a seed.
pub(crate) struct Dice(ChaCha8Rng);

impl fmt::Debug for Dice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Dice")
    }
}

impl Dice {
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut dice = ChaCha8Rng::seed_from_u64(seed);
        dice.set_stream(stream);
        Self(dice)
    }

    pub(crate) fn any(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `end`, which is at least 1.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.any() % end.max(1)
    }

    /// True in one of `n` cases.
    pub(crate) fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    /// From `low` to `high`, small values as likely by magnitude as large ones.
    pub(crate) fn span(&mut self, low: Duration, high: Duration) -> Duration {
        let part = (self.below(1 << 20)) as f64 / f64::from(1 << 20);
        low.mul_f64((high.as_secs_f64() / low.as_secs_f64()).powf(part))
    }
}

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);

impl Scenario {
    /// The scenario of a seed.
    pub fn draw(seed: u64, space: &Space) -> Self {
        let mut dice = Dice::new(seed, 0);
        let version = match &space.versions[..] {
            [] => NfsVersion::V41,
            some => some[dice.below(some.len() as u64) as usize],
        };
        let udp = version == NfsVersion::V3 && dice.one_in(3);
        let cached = dice.one_in(2);
        let hurried = dice.one_in(2);
        let count = 1 + dice.below(u64::from(space.clients.max(1))) as u8;
        let mut clients: Vec<Vec<Step>> =
            (0..count).map(|client| steps(&mut dice, client, count, space)).collect();
        let pauses = |steps: &Vec<Step>| steps.iter().map(|step| step.pause).sum::<Duration>();
        // Most strike while clients work.
        let busy = clients.iter().map(pauses).max().unwrap_or_default().max(200 * MS);
        let count_of_faults = dice.below(u64::from(space.faults) + 1);
        let mut faults: Vec<Fault> = (0..count_of_faults).map(|_| fault(&mut dice, count, busy)).collect();
        if dice.one_in(6) && faults.len() < usize::from(space.faults) && space.operations >= 2 {
            faults.push(sleeper(&mut dice, &mut clients, space.operations));
        }
        faults.sort_by_key(|fault| fault.at);
        Self { seed, version, udp, cached, hurried, clients, faults }
    }

    /// How many operations it has.
    pub fn operations(&self) -> usize {
        self.clients.iter().map(Vec::len).sum()
    }

    pub(crate) fn has(&self, kind: impl Fn(&FaultKind) -> bool) -> bool {
        self.faults.iter().any(|fault| kind(&fault.kind))
    }

    /// Whether locks can be kept through what goes wrong. Those of the lock manager of version 3 survive neither a server's
    /// restart without its status monitor nor their holder's death.
    pub(crate) fn has_locks(&self) -> bool {
        let lost = |kind: &FaultKind| matches!(kind, FaultKind::Restart { .. } | FaultKind::Death { .. });
        self.version != NfsVersion::V3 || !self.has(lost)
    }
}

fn steps(dice: &mut Dice, client: u8, clients: u8, space: &Space) -> Vec<Step> {
    let count = 1 + dice.below(u64::from(space.operations.max(1)));
    let hurry = dice.one_in(2);
    let mut value = u64::from(client) << 32;
    let mut held = false;
    let step = |_| {
        let longest = if hurry { 20 * MS } else { SECOND };
        let pause = dice.span(MS / 10, longest);
        value += 1;
        Step { pause, op: op(dice, &mut held, value, clients) }
    };
    (0..count).map(step).collect()
}

fn op(dice: &mut Dice, held: &mut bool, value: u64, clients: u8) -> Op {
    let name = dice.below(NAMES) as Name;
    let block = dice.below(BLOCKS);
    match dice.below(20) {
        0 | 1 => Op::Create { name, exclusive: dice.one_in(2) },
        2..=4 => Op::Write { name, block, value },
        5 | 6 => Op::Read { name, block },
        7 => Op::Stat { name },
        8 => Op::Truncate { name, blocks: dice.below(BLOCKS + 1) },
        9 => Op::Remove { name },
        10 => Op::Rename { from: name, to: dice.below(NAMES) as Name },
        11 => Op::List,
        // Some hold it for longer than their lease.
        12 | 13 if dice.one_in(12) => Op::Increment { hold: dice.span(LEASE, 2 * LEASE) },
        12 | 13 => Op::Increment { hold: dice.span(MS / 10, 2 * SECOND) },
        14 => Op::Publish,
        15 => Op::Observe { of: dice.below(u64::from(clients)) as u8 },
        16 if *held => {
            *held = false;
            Op::Release
        }
        17 if *held => Op::SyncHeld,
        _ if *held => Op::WriteHeld { block, value },
        _ => {
            *held = true;
            Op::Hold
        }
    }
}

/// Lets a client hold the lock while it cannot be reached for longer than its lease: it must notice that it lost the lock, and
/// the others must get it. Returns the fault.
fn sleeper(dice: &mut Dice, clients: &mut [Vec<Step>], most: u8) -> Fault {
    for steps in clients.iter_mut() {
        steps.truncate(usize::from(most).saturating_sub(2));
    }
    let client = dice.below(clients.len() as u64) as u8;
    let length = dice.span(LEASE, 3 * LEASE);
    let steps = &mut clients[usize::from(client)];
    let place = dice.below(steps.len() as u64 + 1) as usize;
    // Some still hold it, for all they know, when they are back.
    let hold = length.mul_f64(0.5 + dice.below(1000) as f64 / 1000.0);
    let before = steps[..place].iter().map(|step| step.pause).sum::<Duration>();
    steps.insert(place, Step { pause: MS, op: Op::Increment { hold } });
    let at = before + dice.span(MS, SECOND);
    // Another one wants it.
    let other = dice.below(clients.len() as u64) as usize;
    let hold = dice.span(MS, SECOND);
    clients[other].push(Step { pause: dice.span(MS, SECOND), op: Op::Increment { hold } });
    Fault { at, kind: FaultKind::Partition { client, length } }
}

fn fault(dice: &mut Dice, clients: u8, busy: Duration) -> Fault {
    let at = Duration::from_nanos(dice.below(busy.as_nanos() as u64 * 5 / 4));
    let client = dice.below(u64::from(clients)) as u8;
    let kind = match dice.below(20) {
        0 | 1 => FaultKind::Cut { client },
        2 | 3 => FaultKind::LostReply { client },
        4 => FaultKind::LostCallback { client, executed: dice.one_in(3) },
        5 | 6 => FaultKind::Partition { client, length: dice.span(100 * MS, LEASE / 2) },
        7 => FaultKind::Partition { client, length: dice.span(LEASE, 3 * LEASE) },
        8 => FaultKind::Pause { length: dice.span(100 * MS, 8 * SECOND) },
        9..=11 => FaultKind::Restart { down: dice.span(10 * MS, 2 * SECOND), power: dice.one_in(2) },
        12 => FaultKind::Death { client },
        14..=17 => disk(dice),
        13 => FaultKind::Clock { seconds: dice.below(7200) as i32 - 3600 },
        _ => FaultKind::Loss { permille: dice.below(300) as u16, length: dice.span(SECOND, 10 * SECOND) },
    };
    Fault { at, kind }
}

fn disk(dice: &mut Dice) -> FaultKind {
    let what = Trouble::ALL[dice.below(Trouble::ALL.len() as u64) as usize];
    let length = if dice.one_in(2) { Duration::ZERO } else { dice.span(50 * MS, 5 * SECOND) };
    FaultKind::Disk { what, length }
}

/// `name` of a client's directory, as written.
pub(crate) fn letter(name: Name) -> char {
    char::from(b'a' + name % 26)
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Create { name, exclusive: false } => write!(f, "create {}", letter(name)),
            Self::Create { name, exclusive: true } => write!(f, "create {} exclusively", letter(name)),
            Self::Write { name, block, value } => {
                write!(f, "write {value:#x} to block {block} of {}", letter(name))
            }
            Self::Read { name, block } => write!(f, "read block {block} of {}", letter(name)),
            Self::Stat { name } => write!(f, "size of {}", letter(name)),
            Self::Truncate { name, blocks } => write!(f, "truncate {} to {blocks} blocks", letter(name)),
            Self::Remove { name } => write!(f, "remove {}", letter(name)),
            Self::Rename { from, to } => write!(f, "rename {} to {}", letter(from), letter(to)),
            Self::List => f.write_str("list the directory"),
            Self::Hold => f.write_str("open the held file"),
            Self::WriteHeld { block, value } => {
                write!(f, "write {value:#x} to block {block} of the held file")
            }
            Self::SyncHeld => f.write_str("fsync the held file"),
            Self::Release => f.write_str("close the held file"),
            Self::Increment { hold } => write!(f, "increment the counter, lock held for {hold:?}"),
            Self::Publish => f.write_str("publish a generation"),
            Self::Observe { of } => write!(f, "read the record of client {of}"),
        }
    }
}

impl fmt::Display for FaultKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Cut { client } => write!(f, "connections of client {client} break"),
            Self::LostReply { client } => {
                write!(f, "the reply to the next change of client {client} is lost with its connection")
            }
            Self::LostCallback { client, executed: false } => {
                write!(f, "the next callback to client {client} is lost with its connection")
            }
            Self::LostCallback { client, executed: true } => {
                write!(f, "the reply of client {client} to its next callback is lost with its connection")
            }
            Self::Partition { client, length } => write!(f, "network to client {client} down for {length:?}"),
            Self::Pause { length } => write!(f, "server stands still for {length:?}"),
            Self::Restart { down, power: false } => write!(f, "server restarts, down for {down:?}"),
            Self::Restart { down, power: true } => write!(f, "server loses power, down for {down:?}"),
            Self::Death { client } => write!(f, "client {client} dies"),
            Self::Clock { seconds } => write!(f, "server's time of day moves by {seconds} s"),
            Self::Disk { what, length } => {
                let what = match what {
                    Trouble::Read => "disk cannot read",
                    Trouble::Write => "disk cannot write",
                    Trouble::Commit => "disk loses what is to be made stable",
                    Trouble::Change => "disk cannot change names",
                    Trouble::Full => "disk is full",
                    Trouble::Short => "disk takes half of what is written",
                };
                if length.is_zero() { write!(f, "{what} once") } else { write!(f, "{what} for {length:?}") }
            }
            Self::Loss { permille, length } => {
                write!(f, "network loses {permille} of 1000 packets for {length:?}")
            }
        }
    }
}
