//! How states and owners end: they leave all lists, and what depends on them ends with them.

use super::arena::NONE;
use super::entry::{BY_CLIENT, BY_OWNER, BY_PARENT, End, Entry, What};
use super::file::{Files, Keeper, STATE, some};
use super::owner::OwnerKind;
use super::{Effect, Effects};

impl Files {
    /// Takes a state out of the lists of file, owner and client, and what depends on it with it: an open's locks, a
    /// lock state's ranges.
    pub(super) fn drop_state(&mut self, at: u32, end: End, effects: &mut Effects) {
        if let Some(Entry { what: What::Open(_), .. }) = self.states.get(at) {
            while let Some(lock) = some(self.lock_list(at)) {
                self.drop_state(lock, if end == End::Closed { End::Freed } else { end }, effects);
            }
        }
        let Some(entry) = self.states.get(at) else { return };
        let (client, file, owner, key) = (entry.client, entry.file, entry.owner(), entry.lock_key());
        let mut holdings = self.holdings.remove(&client).unwrap_or_default();
        let mut counted = true;
        let mut freed_owner = None;
        match &entry.what {
            What::Open(open) => {
                let (access, deny) = (open.access, open.deny);
                if let Some(record) = self.files.get_mut(file) {
                    record.count(access, deny, -1);
                    self.states.unlink(BY_PARENT, &mut record.opens, at);
                    effects.push(Effect::Release(record.id));
                }
            }
            What::Lock(lock) => {
                let open = lock.open;
                freed_owner = Some(lock.owner);
                let mut head = self.lock_list(open);
                self.states.unlink(BY_PARENT, &mut head, at);
                self.set_lock_list(open, head);
            }
            What::Delegation(delegation) if delegation.revoked => {
                counted = false;
                holdings.revoked = holdings.revoked.saturating_sub(1);
            }
            What::Delegation(_) => {
                holdings.delegated = holdings.delegated.saturating_sub(1);
                self.leave_file(at, effects);
            }
            What::Closed { .. } => counted = false,
        }
        holdings.live = holdings.live.saturating_sub(u32::from(counted));
        if end != End::Closed {
            self.accounts.give_back(&Keeper::Client(client), STATE);
            self.states.unlink(BY_CLIENT, &mut holdings.states, at);
        }
        let mut turn = NONE;
        if let Some(owner) = owner.and_then(|owner| self.owners.get_mut(owner)) {
            self.states.unlink(BY_OWNER, &mut owner.states, at);
            turn = owner.turn;
            if turn != NONE {
                self.turned.push((turn, false));
            }
        }
        if let Some(key) = key {
            self.by_locker.remove(key, at);
        }
        self.holdings.insert(client, holdings);
        match end {
            End::Freed => drop(self.states.remove(at)),
            End::Revoked(why) => drop(self.states.revoke(at, why)),
            End::Closed => {
                if let Some(entry) = self.states.get_mut(at) {
                    entry.file = NONE;
                    entry.what = What::Closed { turn };
                }
            }
        }
        if let Some(locker) = freed_owner {
            self.unlock_all(file, locker, effects);
        }
        if let Some(owner) = owner {
            self.drop_owner_if_idle(owner);
        }
        self.guard(file);
        self.forget_file(file);
    }

    /// Head of the list of an open's lock states.
    pub(super) fn lock_list(&self, open: u32) -> u32 {
        match self.states.get(open) {
            Some(Entry { what: What::Open(open), .. }) => open.locks,
            _ => NONE,
        }
    }

    pub(super) fn set_lock_list(&mut self, open: u32, head: u32) {
        if let Some(Entry { what: What::Open(open), .. }) = self.states.get_mut(open) {
            open.locks = head;
        }
    }

    /// Drops an owner and all its state.
    pub(super) fn drop_owner(&mut self, at: u32, end: End, effects: &mut Effects) {
        let id = self.owners.id(at);
        while let Some(state) = self.owners.get(at).and_then(|owner| some(owner.states)) {
            self.drop_state(state, end, effects);
        }
        if self.owners.is_current(id) {
            self.forget_owner(at);
        }
    }

    /// Owners without state are forgotten; those of NLM when they have no locks.
    fn drop_owner_if_idle(&mut self, at: u32) {
        if self.owners.get(at).is_some_and(|owner| owner.states == NONE && owner.kind != OwnerKind::Nlm) {
            self.forget_owner(at);
        }
    }

    pub(super) fn forget_owner(&mut self, at: u32) {
        let Some(owner) = self.owners.get(at) else { return };
        let keeper = owner.keeper();
        if owner.turn == NONE {
            self.accounts.give_back(&keeper, STATE);
        } else {
            self.following -= 1;
        }
        let Self { owners, holdings, nlm_owners, .. } = self;
        let list = match keeper {
            Keeper::Client(client) => &mut holdings.entry(client).or_default().owners,
            Keeper::Host(_) => nlm_owners,
        };
        owners.remove(at, list);
    }

    /// Frees the place of a closed state.
    pub(super) fn forget_closed(&mut self, at: u32) {
        let Some(Entry { what: What::Closed { .. }, client, .. }) = self.states.get(at) else { return };
        let client = *client;
        self.accounts.give_back(&Keeper::Client(client), STATE);
        if let Some(holdings) = self.holdings.get_mut(&client) {
            self.states.unlink(BY_CLIENT, &mut holdings.states, at);
        }
        self.states.remove(at);
    }
}
