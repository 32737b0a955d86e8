//! Notifications of changes in delegated directories (RFC 8881 §10.9 and §20.4): whose holder asked for those of a kind keeps
//! its delegation when such a change comes.
//!
//! A holder is called with one CB_NOTIFY at a time, so that changes arrive in their order; what happens meanwhile waits, and is
//! sent together. Whoever has too much waiting, or does not take it, has to return the delegation.

use std::collections::VecDeque;
use std::time::Instant;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{Bitmap4, Nfsstat4, Stateid4};

use super::client::Clients;
use super::entry::{BY_PARENT, Entry, What};
use super::file::Files;
use super::{Callback, ClientId, Effect, Effects};
use crate::handle::FileId;

/// Most changes that wait.
const WAITING: usize = 64;
/// Bytes of changes in one call: they fit the smallest back channel that gets any.
const AT_ONCE: usize = 2 << 10;

/// What a holder is notified of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Notifications {
    /// Kinds of changes (`notify_type4`).
    pub(crate) kinds: Bitmap4,
    /// Attributes of entries that come with them.
    pub(crate) child: Bitmap4,
    /// Attributes of the directory.
    pub(crate) dir: Bitmap4,
}

impl Notifications {
    /// Whether its holder needs no recall before a change that takes `needs`.
    fn covers(&self, needs: &Self) -> bool {
        needs.kinds.is_subset(&self.kinds) && needs.dir.is_subset(&self.dir)
    }
}

/// What the holder of a directory's delegation is notified of, and what was not sent yet.
#[derive(Debug)]
pub(super) struct Watch {
    granted: Notifications,
    waiting: VecDeque<Vec<u8>>,
    /// Whether a CB_NOTIFY was sent and not answered.
    sent: bool,
}

impl Watch {
    pub(super) fn new(granted: Notifications) -> Option<Box<Self>> {
        let watches = !granted.kinds.is_empty();
        watches.then(|| Box::new(Self { granted, waiting: VecDeque::new(), sent: false }))
    }

    fn covers(&self, needs: &Notifications) -> bool {
        self.granted.covers(needs) && self.waiting.len() < WAITING
    }
}

impl Files {
    /// Before a directory changes: recalls delegations of others than `holder` that are not notified of such changes;
    /// `Err(DELAY)` until they are back.
    pub(crate) fn recall_uncovered(
        &mut self,
        clients: &Clients,
        dir: FileId,
        needs: &Notifications,
        holder: Option<ClientId>,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        let covers = |entry: &Entry| match &entry.what {
            What::Delegation(held) => held.watch.as_ref().is_some_and(|watch| watch.covers(needs)),
            _ => false,
        };
        let uncovered: Vec<u32> =
            self.delegations_of(dir).filter(|(_, entry)| !covers(entry)).map(|(at, _)| at).collect();
        self.recall_these(clients, &uncovered, holder, false, now, effects)
    }

    /// After a directory has changed: notifies those who asked for it. `own`: also the client that did it (RFC 8881 §20.4.3: of
    /// entries, not of attributes). `describe` makes encoded `notify4`s for one holder.
    pub(crate) fn notify(
        &mut self,
        dir: FileId,
        (doer, own): (Option<ClientId>, bool),
        effects: &mut Effects,
        mut describe: impl FnMut(&Notifications) -> Vec<Vec<u8>>,
    ) {
        if is_broken(Mutant::ChangesNotNotified) {
            return;
        }
        let all: Vec<u32> = self
            .delegations_of(dir)
            .filter(|(_, entry)| own || Some(entry.client) != doer)
            .map(|(at, _)| at)
            .collect();
        for at in all {
            let Some(watch) = self.watch(at) else { continue };
            watch.waiting.extend(describe(&watch.granted));
            self.notify_next(at, effects);
        }
    }

    /// Answer to [`Callback::Notify`]: the status of CB_NOTIFY, or CB_PATH_DOWN when the client could not be reached. Who did
    /// not take it has to return the delegation.
    pub fn notified(
        &mut self,
        client: ClientId,
        stateid: Stateid4,
        status: Nfsstat4,
        now: Instant,
        effects: &mut Effects,
    ) {
        let Ok(at) = self.find(1, Some(client), &stateid, None) else { return };
        let Some(watch) = self.watch(at) else { return };
        watch.sent = false;
        match status {
            Nfsstat4::OK => self.notify_next(at, effects),
            _ => self.begin_recall(at, false, now, effects),
        }
    }

    fn watch(&mut self, at: u32) -> Option<&mut Watch> {
        match &mut self.states.get_mut(at)?.what {
            What::Delegation(held) => held.watch.as_deref_mut(),
            _ => None,
        }
    }

    /// Sends what waits, unless something was sent and not answered.
    fn notify_next(&mut self, at: u32, effects: &mut Effects) {
        let Some(watch) = self.watch(at).filter(|watch| !watch.sent && !watch.waiting.is_empty()) else {
            return;
        };
        let (mut changes, mut bytes) = (Vec::new(), 0);
        while let Some(next) = watch.waiting.front()
            && (changes.is_empty() || bytes + next.len() <= AT_ONCE)
        {
            bytes += next.len();
            changes.extend(watch.waiting.pop_front());
        }
        watch.sent = true;
        let Some(entry) = self.states.get(at) else { return };
        let Some(record) = self.files.get(entry.file) else { return };
        let callback = Callback::Notify { stateid: self.stateid(at), dir: record.id, changes };
        effects.push(Effect::Call(entry.client, callback));
    }

    /// Delegations on a file.
    fn delegations_of(&self, file: FileId) -> impl Iterator<Item = (u32, &Entry)> {
        let record = self.record(file).map(|(_, record)| record.delegations);
        record.into_iter().flat_map(|head| self.states.list(BY_PARENT, head))
    }
}
