//! What was promised to clients, and so what they may see.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::scenario::{LEASE, Op, letter};

/// The held file of each directory.
pub(crate) const HELD: &str = "held";

/// What a client saw of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Seen {
    Done,
    Absent,
    Present,
    /// What fills the block; `None`: the file ends before it.
    Value(Option<u64>),
    /// A block that no single write filled.
    Torn(Vec<u64>),
    /// In blocks.
    Size(u64),
    Names(BTreeSet<String>),
    /// Another error.
    Failed(String),
}

/// A directory of one client: what fills the blocks of each file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Directory(BTreeMap<String, Vec<u64>>);

impl Directory {
    /// What an operation does, and what is seen of it.
    fn apply(&mut self, op: Op) -> Seen {
        let files = &mut self.0;
        let file = |name| letter(name).to_string();
        match op {
            Op::Create { name, exclusive } => {
                if exclusive && files.contains_key(&file(name)) {
                    return Seen::Present;
                }
                files.entry(file(name)).or_default();
            }
            Op::Hold => drop(files.entry(HELD.into()).or_default()),
            Op::Write { name, block, value } => match files.get_mut(&file(name)) {
                Some(blocks) => put(blocks, block, value),
                None => return Seen::Absent,
            },
            Op::WriteHeld { block, value } => match files.get_mut(HELD) {
                Some(blocks) => put(blocks, block, value),
                None => return Seen::Absent,
            },
            Op::Read { name, block } => {
                return files
                    .get(&file(name))
                    .map_or(Seen::Absent, |blocks| Seen::Value(blocks.get(block as usize).copied()));
            }
            Op::Stat { name } => {
                return files.get(&file(name)).map_or(Seen::Absent, |blocks| Seen::Size(blocks.len() as u64));
            }
            Op::Truncate { name, blocks } => match files.get_mut(&file(name)) {
                Some(of_file) => of_file.resize(blocks as usize, 0),
                None => return Seen::Absent,
            },
            Op::Remove { name } => {
                if files.remove(&file(name)).is_none() {
                    return Seen::Absent;
                }
            }
            Op::Rename { from, to } => match files.get(&file(from)).cloned() {
                Some(blocks) if from != to => {
                    files.remove(&file(from));
                    files.insert(file(to), blocks);
                }
                Some(_) => {}
                None => return Seen::Absent,
            },
            Op::List => return Seen::Names(files.keys().cloned().collect()),
            Op::SyncHeld | Op::Release | Op::Increment { .. } | Op::Publish | Op::Observe { .. } => {}
        }
        Seen::Done
    }
}

fn put(blocks: &mut Vec<u64>, block: u64, value: u64) {
    if blocks.len() <= block as usize {
        blocks.resize(block as usize + 1, 0);
    }
    blocks[block as usize] = value;
}

/// What is known of one client.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    /// What its directory may be: more than one where an outcome is not known.
    may_be: Vec<Directory>,
    /// Blocks of the held file that were written since it was last stable: what they were before.
    unstable: BTreeMap<u64, BTreeSet<Option<u64>>>,
    /// Blocks of the held file that could not be made stable before it was closed: what they may be.
    doubtful: BTreeMap<u64, BTreeSet<Option<u64>>>,
    /// Generation of its record that is certainly there, and the last one that was begun.
    published: (u64, u64),
    /// The operation under way, and when it began.
    pub(crate) doing: Option<(Duration, Op)>,
    /// Restarts of the server before it.
    restarts: u64,
    /// When it last renewed its lease.
    pub(crate) heard: Duration,
    /// Until when something may have kept its messages from the server.
    disturbed: Duration,
    /// Whether it was silent for so long that the server may have forgotten it.
    lost: bool,
    /// How often the disk failed in what it asked for: in all, before the operation under way, before the held file was opened.
    struck: [u64; 3],
    pub(crate) dead: bool,
}

impl Client {
    /// Whether the server may have forgotten it: it was, or is, silent for longer than it needs to renew its lease, which it does
    /// when two thirds are over; and not by itself.
    fn is_lost(&self, now: Duration) -> bool {
        let silent = now.saturating_sub(self.heard) >= LEASE.mul_f64(0.8);
        self.lost || (silent && self.disturbed >= self.heard)
    }

    /// Whether too little is left of a grace period to reclaim anything.
    fn misses(&self, grace: Duration) -> bool {
        self.disturbed + LEASE.mul_f64(0.2) >= grace
    }

    /// Whether an error may be that of the disk.
    fn is_struck(&self, op: Op) -> bool {
        let [all, before, held] = self.struck;
        let of_held = matches!(op, Op::WriteHeld { .. } | Op::SyncHeld | Op::Release);
        all > before || (of_held && all > held)
    }
}

/// The judge of a history.
#[derive(Debug)]
pub(crate) struct Oracle {
    pub(crate) clients: Vec<Client>,
    /// Restarts of the server so far.
    restarts: u64,
    /// How often the server's verifier changed: by restarts and losses of data.
    verifiers: u64,
    /// Until when the last grace period lasts.
    grace: Duration,
    /// Who has the lock, as far as clients know.
    holders: BTreeSet<usize>,
    /// Increments that are certainly in the counter, and those that may be.
    counter: (u64, u64),
    /// The first thing that was wrong.
    pub(crate) wrong: Option<String>,
}

impl Oracle {
    pub(crate) fn new(clients: usize) -> Self {
        let client = Client {
            may_be: vec![Directory::default()],
            unstable: BTreeMap::new(),
            doubtful: BTreeMap::new(),
            published: (0, 0),
            doing: None,
            restarts: 0,
            heard: Duration::ZERO,
            disturbed: Duration::ZERO,
            lost: false,
            struck: [0; 3],
            dead: false,
        };
        Self {
            clients: vec![client; clients],
            restarts: 0,
            verifiers: 0,
            grace: Duration::ZERO,
            holders: BTreeSet::new(),
            counter: (0, 0),
            wrong: None,
        }
    }

    fn is_wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// The server got a message from a client that renews its lease.
    pub(crate) fn heard(&mut self, client: usize, now: Duration) {
        let client = &mut self.clients[client];
        client.lost = client.is_lost(now);
        client.heard = now;
    }

    /// From now until then something may keep messages of a client, or of all, from the server.
    pub(crate) fn disturbed(&mut self, client: Option<u8>, now: Duration, until: Duration) {
        for (number, of) in self.clients.iter_mut().enumerate() {
            if client.is_none_or(|client| usize::from(client) == number) {
                of.disturbed = of.disturbed.max(until);
                of.lost |= now < self.grace && of.misses(self.grace);
            }
        }
    }

    /// The server is started again, with a grace period until then.
    pub(crate) fn restarted(&mut self, grace: Duration) {
        self.restarts += 1;
        self.verifiers += 1;
        self.grace = grace;
        self.clients.iter_mut().for_each(|client| client.lost |= client.misses(grace));
    }

    /// The server lost data that were not stable, and has another verifier since.
    pub(crate) fn forgot(&mut self) {
        self.verifiers += 1;
    }

    /// The disk failed in what a client asked for.
    pub(crate) fn struck(&mut self, client: usize) {
        self.clients[client].struck[0] += 1;
    }

    /// The server took a delegation from a client without its doing.
    pub(crate) fn revoked(&mut self, number: usize, now: Duration) {
        let Some(client) = self.clients.get(number) else { return };
        // Since nothing kept its messages from it a lease has passed.
        let reached = client.disturbed + LEASE <= now;
        if !client.dead && !client.is_lost(now) && reached {
            self.is_wrong(format!(
                "a delegation was revoked of client {number}, which could be asked to return it"
            ));
        }
    }

    pub(crate) fn begins(&mut self, client: usize, op: Op, now: Duration) {
        let restarts = self.restarts;
        let client = &mut self.clients[client];
        client.struck[1] = client.struck[0];
        if op == Op::Hold {
            client.struck[2] = client.struck[0];
        }
        client.doing = Some((now, op));
        client.restarts = restarts;
    }

    /// An operation on the client's own directory is over, for all that the client knows.
    pub(crate) fn ends(&mut self, number: usize, op: Op, seen: &Seen, now: Duration) {
        let restarted = self.restarts > self.clients[number].restarts;
        let client = &mut self.clients[number];
        client.doing = None;
        let (lost, struck) = (client.is_lost(now), client.is_struck(op));
        let mut may_be: Vec<Directory> = Vec::new();
        let mut expected = Vec::new();
        for before in &client.may_be {
            let mut after = before.clone();
            let right = after.apply(op);
            let add = match seen {
                seen if *seen == right => vec![after],
                // A client cannot always tell whether a restart was before a change or in the middle of it, nor a loss of data
                // from a restart.
                Seen::Failed(_) if lost || struck || (self.verifiers > 0 && changes_names(op)) => {
                    vec![before.clone(), after]
                }
                // It was carried out before the server was started again, and the repetition met what it had done.
                Seen::Absent | Seen::Present
                    if (restarted || lost) && changes_names(op) && right == Seen::Done =>
                {
                    vec![after]
                }
                _ => Vec::new(),
            };
            expected.push(right);
            for state in add {
                if !may_be.contains(&state) {
                    may_be.push(state);
                }
            }
        }
        match op {
            // One that failed may have left what was there before.
            Op::WriteHeld { block, .. } if *seen == Seen::Done => {
                let of_block = client.unstable.entry(block).or_default();
                for state in &client.may_be {
                    of_block.insert(state.0.get(HELD).and_then(|blocks| blocks.get(block as usize).copied()));
                }
            }
            Op::SyncHeld | Op::Release if *seen == Seen::Done => {
                client.doubtful.retain(|block, _| !client.unstable.contains_key(block));
                client.unstable.clear();
            }
            // What is not stable now never will be.
            Op::Release => {
                for (block, old) in std::mem::take(&mut client.unstable) {
                    let now = |state: &Directory| Some(*state.0.get(HELD)?.get(block as usize)?);
                    let may_be = client.doubtful.entry(block).or_default();
                    may_be.extend(old);
                    may_be.extend(client.may_be.iter().map(now));
                }
            }
            _ => {}
        }
        if may_be.is_empty() {
            expected.dedup();
            let what = format!(
                "client {number}: {op}: {}; right would be {}",
                say(seen),
                expected.iter().map(say).collect::<Vec<_>>().join(" or ")
            );
            self.is_wrong(what);
        } else {
            client.may_be = may_be;
        }
    }

    /// A client is no more: what it did last may or may not have happened.
    pub(crate) fn died(&mut self, number: usize) {
        self.holders.remove(&number);
        let client = &mut self.clients[number];
        client.dead = true;
        if let Some((_, op)) = client.doing.take() {
            let mut more = Vec::new();
            for before in &client.may_be {
                let mut after = before.clone();
                after.apply(op);
                if let Op::WriteHeld { block, .. } = op {
                    let was = before.0.get(HELD).and_then(|blocks| blocks.get(block as usize).copied());
                    client.unstable.entry(block).or_default().insert(was);
                }
                if !client.may_be.contains(&after) {
                    more.push(after);
                }
            }
            client.may_be.extend(more);
        }
    }

    /// What is found in a client's directory when all is over.
    pub(crate) fn found(&mut self, number: usize, files: &BTreeMap<String, Vec<u64>>) {
        let client = &self.clients[number];
        let fits = |state: &Directory| {
            state.0.len() == files.len()
                && state.0.iter().zip(files).all(|((name, blocks), (found, there))| {
                    name == found
                        && (blocks == there || (name == HELD && self.may_be_held(number, blocks, there)))
                })
        };
        if client.may_be.iter().any(fits) {
            return;
        }
        let show = |files: &BTreeMap<String, Vec<u64>>| {
            let shown = files.iter().map(|(name, blocks)| format!("{name}: {blocks:x?}"));
            shown.collect::<Vec<_>>().join(", ")
        };
        let right: Vec<String> = client.may_be.iter().map(|state| show(&state.0)).collect();
        let what = format!(
            "in the end the directory of client {number} has {{{}}}; right would be {{{}}}",
            show(files),
            right.join("} or {")
        );
        self.is_wrong(what);
    }

    /// Whether blocks of the held file can be what is there: those that were not stable when its client died, or that could not
    /// be made stable, are new or old.
    fn may_be_held(&self, number: usize, blocks: &[u64], there: &[u64]) -> bool {
        let Client { dead, unstable, doubtful, .. } = &self.clients[number];
        let old = |block: u64| unstable.get(&block).filter(|_| *dead).into_iter().chain(doubtful.get(&block));
        (0..blocks.len().max(there.len()) as u64).all(|block| {
            let at = block as usize;
            let (last, found) = (blocks.get(at).copied(), there.get(at).copied());
            // Zeros may be a hole before a block that is there, or was to be.
            let same = |one: Option<u64>, other: Option<u64>| one.unwrap_or(0) == other.unwrap_or(0);
            last == found
                || old(block).flatten().any(|old| same(*old, found))
                || (found.is_none() && last == Some(0) && (*dead || !doubtful.is_empty()))
        })
    }

    /// A client has the lock, for all that it knows: one that was silent may not know yet that it lost it.
    pub(crate) fn locked(&mut self, number: usize, now: Duration) {
        if self.clients[number].is_lost(now) {
            return;
        }
        let others: Vec<usize> =
            self.holders.iter().copied().filter(|other| !self.clients[*other].is_lost(now)).collect();
        if let Some(other) = others.first() {
            self.is_wrong(format!("client {number} was given the lock that client {other} has"));
        }
        self.holders.insert(number);
    }

    /// A client gives the lock back, or has lost it.
    pub(crate) fn unlocks(&mut self, number: usize) {
        self.holders.remove(&number);
    }

    /// The counter as read under the lock.
    pub(crate) fn counted(&mut self, number: usize, value: u64) {
        let (sure, maybe) = self.counter;
        if !self.clients[number].lost && !(sure..=sure + maybe).contains(&value) {
            let most = sure + maybe;
            self.is_wrong(format!(
                "client {number} reads {value} from the counter; right would be {sure} to {most}"
            ));
        }
    }

    /// A client begins to write the counter: from now on the increment may be there.
    pub(crate) fn increments(&mut self) {
        self.counter.1 += 1;
    }

    /// The increment is stable.
    pub(crate) fn incremented(&mut self) {
        self.counter = (self.counter.0 + 1, self.counter.1 - 1);
    }

    /// The counter when all is over.
    pub(crate) fn counter_found(&mut self, value: u64) {
        let (sure, most) = (self.counter.0, self.counter.0 + self.counter.1);
        // One who lost its lock may have written an old value over newer ones, unless the server refuses it.
        if !(sure..=most).contains(&value) {
            self.is_wrong(format!("in the end the counter is {value}; right would be {sure} to {most}"));
        }
    }

    /// An operation on what all share is over. Errors are right only where the server may have forgotten the client.
    pub(crate) fn shared_ends(&mut self, number: usize, op: Op, error: Option<&str>, now: Duration) {
        let client = &mut self.clients[number];
        client.doing = None;
        let excused = client.is_lost(now) || client.is_struck(op);
        if let Some(error) = error
            && !excused
        {
            self.is_wrong(format!("client {number}: {op}: {error}; right would be success"));
        }
    }

    /// The next generation of a client's record, which it begins to write.
    pub(crate) fn publishes(&mut self, number: usize) -> u64 {
        let published = &mut self.clients[number].published;
        published.1 += 1;
        published.1
    }

    /// A generation was written and the file closed.
    pub(crate) fn published(&mut self, number: usize, generation: u64) {
        self.clients[number].published.0 = generation;
    }

    /// The generation of a client's record that is certainly there.
    pub(crate) fn generation(&self, of: usize) -> u64 {
        self.clients[of].published.0
    }

    /// A record as read by one who opened it when `least` was certainly there.
    pub(crate) fn observed(&mut self, number: usize, of: usize, least: u64, seen: &Seen) {
        let most = self.clients[of].published.1;
        let right = match seen {
            Seen::Value(Some(value)) => (least..=most).contains(value),
            Seen::Value(None) => least == 0,
            _ => false,
        };
        if !right {
            let seen = say(seen);
            self.is_wrong(format!(
                "client {number} opens the record of client {of} and reads {seen}; right would be generation {least} to {most}"
            ));
        }
    }
}

/// Whether a repetition of the operation has another result than the first time.
fn changes_names(op: Op) -> bool {
    matches!(op, Op::Create { .. } | Op::Hold | Op::Remove { .. } | Op::Rename { .. })
}

fn say(seen: &Seen) -> String {
    match seen {
        Seen::Done => "success".into(),
        Seen::Absent => "no such file".into(),
        Seen::Present => "file exists".into(),
        Seen::Value(Some(value)) => format!("{value:#x}"),
        Seen::Value(None) => "end of file".into(),
        Seen::Torn(values) => format!("a mixture of {values:x?}"),
        Seen::Size(blocks) => format!("{blocks} blocks"),
        Seen::Names(names) => format!("names {{{}}}", names.iter().cloned().collect::<Vec<_>>().join(", ")),
        Seen::Failed(error) => format!("error \"{error}\""),
    }
}
