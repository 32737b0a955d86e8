//! The Linux client's cache at work: what is sent because of what is still to be believed.

mod delegation;
mod flusher;
mod lock;
mod names;
mod read;
mod write;

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};

use self::flusher::Flusher;
use super::Mount;
use super::gate::Gate;
use super::node::{Cached, Node};
use crate::cache::{CacheCount, CacheCounts, Clock, PAGE, Pages, Place};
use crate::error::NfsError;
use crate::protocol::{NfsResult, Protocol};
use crate::types::{AccessBits, Attributes, Handle, OpenHow};
use crate::v4::DelegationKind;

/// How often attributes are asked for while the file is written.
const TRIES: u32 = 4;

/// Access is refused.
const ACCESS: u32 = 13;
/// There is no such file.
const NOENT: u32 = 2;

/// What the cache has of the whole mount.
#[derive(Debug)]
pub(super) struct Cache {
    clock: Clock,
    counts: CacheCounts,
    /// Pages in the order in which they were last looked at for eviction.
    oldest: RefCell<VecDeque<(Handle, u64)>>,
    /// Counts changes that we made: attributes asked for before one may be older than what is known since.
    changes: Cell<u64>,
    /// Shared by recalls that are being answered.
    pub(super) recalls: Gate,
    pub(super) flusher: Flusher,
}

impl Cache {
    pub(super) fn new(clock: Clock) -> Self {
        Self {
            clock,
            counts: CacheCounts::default(),
            oldest: RefCell::default(),
            changes: Cell::new(0),
            recalls: Gate::default(),
            flusher: Flusher::default(),
        }
    }
}

/// What a mount without cache would never ask for.
const NO_CACHE: NfsError = NfsError::Unsupported("the mount has no cache");

fn parts(node: &Node) -> NfsResult<&Cached> {
    node.cached.as_deref().ok_or(NO_CACHE)
}

impl Mount {
    fn now(&self) -> std::time::Instant {
        self.0.cache.as_ref().map_or_else(|| self.0.reactor.now(), |cache| cache.clock.now())
    }

    fn is_delegated(&self, node: &Node) -> bool {
        self.0.client.delegation(&node.handle).is_some()
    }

    /// Whether a delegation lets us do here what a file is open for.
    fn is_enough(&self, node: &Node, how: &OpenHow) -> bool {
        match self.0.client.delegation(&node.handle) {
            Some(DelegationKind::Write) => true,
            Some(DelegationKind::Read) => !how.write,
            None => false,
        }
    }

    /// Takes in attributes that the server sent; `ours`: after a change that we made. What others changed makes cached
    /// data and access rights void.
    fn learn(&self, node: &Node, attributes: Attributes, ours: bool) {
        let Some(cached) = &node.cached else { return };
        let mut known = cached.known.borrow_mut();
        let old = known.last();
        let times = &self.0.options.attribute_times;
        let by_others = known.update(attributes, self.now(), times, ours);
        drop(known);
        let who = |attributes: Attributes| (attributes.mode, attributes.uid, attributes.gid);
        if by_others || old.is_some_and(|old| who(old) != who(attributes)) {
            cached.access.borrow_mut().forget();
        }
        if by_others {
            self.drop_data(cached);
        }
    }

    /// Changes made by us so far.
    fn changes(&self) -> u64 {
        self.0.cache.as_ref().map_or(0, |cache| cache.changes.get())
    }

    fn count_change(&self) {
        if let Some(cache) = &self.0.cache {
            cache.changes.set(cache.changes.get() + 1);
        }
    }

    /// Takes in attributes that came with something else, asked for when we had made `changes`. Those that may be older
    /// than what is known are left.
    fn learn_since(&self, node: &Node, attributes: Attributes, changes: u64) {
        let dirty = node.cached.as_ref().is_some_and(|cached| cached.pages.borrow().is_dirty());
        if self.changes() == changes && !dirty {
            self.learn(node, attributes, false);
        }
    }

    /// A WRITE of ours was answered. Answers may overtake each other: those of before what is known are left.
    pub(super) fn wrote(&self, node: &Node, attributes: Option<Attributes>) {
        let Some(cached) = &node.cached else { return };
        self.count_change();
        cached.changes.set(cached.changes.get() + 1);
        let known = cached.known.borrow().last();
        let attributes = match (attributes, known) {
            (Some(new), Some(old)) if (new.changed, new.change) < (old.changed, old.change) => return,
            (new, _) => new,
        };
        match attributes {
            Some(attributes) => self.learn(node, attributes, true),
            None => cached.known.borrow_mut().changed_by_us(),
        }
    }

    /// Attributes were set by us.
    pub(super) fn attributes_set(&self, node: &Node) {
        if let Some(cached) = &node.cached {
            self.count_change();
            cached.known.borrow_mut().changed_by_us();
            cached.access.borrow_mut().forget();
        }
    }

    /// Drops cached data that are not dirty.
    fn drop_data(&self, cached: &Cached) {
        self.change_pages(cached, Pages::drop_clean);
        cached.generation.set(cached.generation.get() + 1);
    }

    /// Changes the pages of a file, and counts them.
    fn change_pages<R>(&self, cached: &Cached, change: impl FnOnce(&mut Pages) -> R) -> R {
        let mut pages = cached.pages.borrow_mut();
        let levels = |pages: &Pages| [pages.len(), pages.dirty(), pages.writing()].map(|n| n as u64);
        let before = levels(&pages);
        let result = change(&mut pages);
        if let Some(Cache { counts, .. }) = &self.0.cache {
            let names = [CacheCount::Cached, CacheCount::Dirty, CacheCount::Writeback];
            for ((name, before), after) in names.into_iter().zip(before).zip(levels(&pages)) {
                counts.set(name, counts.get(name) + after - before);
            }
            let uses = pages.take_uses();
            counts.add(CacheCount::Read, uses.read);
            counts.add(CacheCount::AheadUsed, uses.ahead);
        }
        result
    }

    /// Pages were added to a file: others are dropped if there are too many.
    fn added(&self, node: &Node, cached: &Cached) {
        let added = cached.pages.borrow_mut().take_added();
        if let Some(cache) = &self.0.cache {
            cache.oldest.borrow_mut().extend(added.into_iter().map(|page| (node.handle, page)));
            self.evict(cache);
        }
    }

    /// Drops the pages that were not used for longest while there are too many. Each has a second chance, as in Linux: a
    /// page that was used since it was looked at last is looked at once more.
    fn evict(&self, cache: &Cache) {
        let most = self.0.options.paging.memory / PAGE;
        let mut oldest = cache.oldest.borrow_mut();
        let mut looks = 2 * oldest.len();
        while cache.counts.get(CacheCount::Cached) > most && looks > 0 {
            looks -= 1;
            let Some((handle, page)) = oldest.pop_front() else { break };
            let Some(node) = self.0.nodes.find(&handle) else { continue };
            let Some(cached) = &node.cached else { continue };
            match self.change_pages(cached, |pages| pages.evict(page)) {
                Some(true) => cache.counts.add(CacheCount::Evicted, 1),
                Some(false) => oldest.push_back((handle, page)),
                None => {}
            }
        }
        // Pages that were dropped for other reasons are still there.
        if oldest.len() as u64 > 2 * cache.counts.get(CacheCount::Cached) + 4096 {
            let is_cached = |(handle, page): &(Handle, u64)| {
                let node = self.0.nodes.find(handle);
                let cached = node.as_ref().and_then(|node| node.cached.as_ref());
                cached.is_some_and(|cached| cached.pages.borrow().look(*page) != Place::Missing)
            };
            oldest.retain(is_cached);
        }
    }

    /// Forgets data behind a new end of a file that we gave it.
    pub(super) fn cut(&self, node: &Node, size: u64) {
        self.0.logs.cut(&mut node.log.borrow_mut(), size);
        self.0.logs.cut(&mut node.in_commit.borrow_mut(), size);
        if let Some(cached) = &node.cached {
            self.count_change();
            cached.changes.set(cached.changes.get() + 1);
            self.change_pages(cached, |pages| pages.cut(size));
            cached.requests.borrow_mut().clear();
            cached.generation.set(cached.generation.get() + 1);
            let mut known = cached.known.borrow_mut();
            known.resize(size);
            known.changed_by_us();
        }
    }

    /// Forgets files that are not in use while there are too many.
    fn make_space(&self) {
        self.0.nodes.trim(|cached| self.drop_data(cached));
    }

    /// What the cache did and has; `None` without one.
    pub fn cache_counts(&self) -> Option<&CacheCounts> {
        self.0.cache.as_ref().map(|cache| &cache.counts)
    }

    /// Attributes of a file: those known, while they are to be believed, else GETATTR. `force`: GETATTR unless a
    /// delegation says that nothing has changed.
    pub(super) async fn fresh(&self, node: &Node, force: bool) -> NfsResult<Attributes> {
        let cached = parts(node)?;
        let delegated = self.is_delegated(node);
        let force = force && !is_broken(Mutant::OpenWithoutLook);
        if delegated || !force {
            let known = cached.known.borrow().valid(self.now(), delegated);
            if let Some(attributes) = known {
                return Ok(attributes);
            }
        }
        let mut tries = 0;
        loop {
            let changes = cached.changes.get();
            let attributes = self.0.client.getattr(&node.handle).await?;
            tries += 1;
            // Asked again if a WRITE was answered meanwhile: these may be of before it.
            if cached.changes.get() == changes || tries == TRIES {
                self.learn(node, attributes, false);
                return Ok(attributes);
            }
        }
    }

    /// Whether the user may do this: what is known, while it is to be believed, else ACCESS.
    async fn permit(&self, node: &Node, wanted: u32) -> NfsResult<()> {
        let cached = parts(node)?;
        let timeout = if self.is_delegated(node) { None } else { Some(cached.known.borrow().timeout()) };
        let known = cached.access.borrow().granted(wanted, self.now(), timeout);
        let granted = match known {
            Some(granted) => granted,
            None => {
                let all = AccessBits(AccessBits::ALL);
                let changes = self.changes();
                let (granted, attributes) = self.0.client.access(&node.handle, all).await?;
                if let Some(attributes) = attributes {
                    self.learn_since(node, attributes, changes);
                }
                cached.access.borrow_mut().learn(all, granted, self.now());
                granted.0 & wanted == wanted
            }
        };
        if granted { Ok(()) } else { Err(self.0.client.error(ACCESS)) }
    }
}
