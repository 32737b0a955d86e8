//! What the holders of write delegations know better than the server: size and change attribute of the file, and with
//! RFC 9754 its times. Other clients' GETATTR asks them by CB_GETATTR (RFC 8881 §10.4.3).

use std::net::IpAddr;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::v4::{Nfsstat4, Stateid4};

use super::client::Clients;
use super::delegated::{Answer, Held, HolderAttributes, Seen};
use super::entry::{BY_PARENT, Entry, What};
use super::file::Files;
use super::{Callback, ClientId, Effect, Effects};
use crate::fs::Time;
use crate::handle::FileId;

/// How long an answer is good for: until whoever asked, told to come back, has come back.
const FRESH: Duration = Duration::from_secs(1);
/// Until the holder is asked again that did not answer.
const AGAIN: Duration = Duration::from_secs(5);

/// Who asks for attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asker {
    Client(ClientId),
    /// A client of 4.0, whose GETATTR does not say which: any but those of other versions and of other hosts.
    Unnamed(IpAddr),
}

/// What stands between a client and the attributes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Nothing: the server knows them.
    Nobody,
    /// The holder of a delegation, who has answered.
    Holder(Answer),
    /// The holder of a delegation, who has not.
    Waits,
}

impl Files {
    /// Asks the holder of a write delegation for the attributes of a file, unless it is the one who asks.
    pub(crate) fn ask_holder(
        &mut self,
        clients: &Clients,
        file: FileId,
        asker: Asker,
        now: Instant,
        effects: &mut Effects,
    ) -> Asked {
        let Some((_, record)) = self.record(file) else { return Asked::Nobody };
        let may_be_holder = |entry: &Entry| match asker {
            Asker::Client(client) => entry.client == client,
            Asker::Unnamed(host) => entry.v40 && clients.host(entry.client) == Some(host),
        };
        let foreign = |entry: &Entry| match &entry.what {
            What::Delegation(held) if held.write && !may_be_holder(entry) => {
                Some((entry.client, held.times, held.recall.is_some()))
            }
            _ => None,
        };
        let found = self
            .states
            .list(BY_PARENT, record.delegations)
            .find_map(|(at, entry)| Some((at, foreign(entry)?)));
        let Some((at, (holder, times, recalled))) = found else { return Asked::Nobody };
        if clients.is_courtesy(holder, now) {
            self.revoke_delegation(clients, at, now, effects);
            return Asked::Nobody;
        }
        let stateid = self.stateid(at);
        let Some(held) = self.held.get_mut(&at).filter(|_| !recalled) else { return Asked::Waits };
        if let Some((since, answer)) = &mut held.answer
            && now.saturating_duration_since(*since) < FRESH
        {
            let shown = *answer;
            answer.first = false;
            return Asked::Holder(shown);
        }
        if held.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= AGAIN) {
            held.asked = Some(now);
            effects.push(Effect::Call(holder, Callback::GetAttributes { stateid, file, times }));
        }
        Asked::Waits
    }

    /// Answer to [`Callback::GetAttributes`]; `None`: there was none, and the delegation is recalled.
    pub fn attributes_answered(
        &mut self,
        client: ClientId,
        stateid: Stateid4,
        answer: Option<HolderAttributes>,
        now: Instant,
        effects: &mut Effects,
    ) {
        let Some(at) = self.delegation_of(client, &stateid) else { return };
        let Some(held) = self.held.get_mut(&at) else { return };
        held.asked = None;
        let Some(answer) = answer else { return self.begin_recall(at, false, now, effects) };
        let size = answer.size.unwrap_or(held.granted.size);
        held.modified |=
            size != held.granted.size || answer.change.is_some_and(|change| change != held.granted.change);
        let (atime, mtime) = held.vet((answer.atime, answer.mtime));
        let shown = Answer { size, modified: held.modified, atime, mtime, first: true };
        held.answer = Some((now, shown));
    }

    /// Times that the holder of a delegation sets itself (SETATTR): BAD_STATEID unless it is one with times.
    pub(crate) fn holders_times(
        &self,
        minor: u32,
        client: Option<ClientId>,
        stateid: &Stateid4,
        file: FileId,
        times: (Option<Time>, Option<Time>),
    ) -> Result<(Option<Time>, Option<Time>), Nfsstat4> {
        let at = self.find(minor, client, stateid, Some(file))?;
        match self.states.get(at).map(|entry| &entry.what) {
            Some(What::Delegation(held)) if held.times => {}
            _ => return Err(Nfsstat4::BAD_STATEID),
        }
        Ok(self.held.get(&at).map_or((None, None), |held| held.vet(times)))
    }

    /// Whether a file is delegated for writing.
    pub(crate) fn write_delegated(&self, file: FileId) -> bool {
        let write = |entry: &Entry| matches!(&entry.what, What::Delegation(held) if held.write);
        !self.held.is_empty()
            && self.record(file).is_some_and(|(_, record)| {
                self.states.list(BY_PARENT, record.delegations).any(|(_, entry)| write(entry))
            })
    }

    /// Notes what a delegated file looked like.
    pub(super) fn hold_attributes(&mut self, at: u32, granted: Seen) {
        self.held.insert(at, Held { granted, asked: None, answer: None, modified: false });
    }

    fn delegation_of(&self, client: ClientId, stateid: &Stateid4) -> Option<u32> {
        let find = |minor| self.find(minor, Some(client), stateid, None).ok();
        let at = find(1).or_else(|| find(0))?;
        matches!(self.states.get(at)?.what, What::Delegation(_)).then_some(at)
    }
}
