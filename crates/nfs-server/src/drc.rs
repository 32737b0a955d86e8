//! Duplicate request cache: replies to requests of NFS v2, v3, v4.0 and NLM that must not be executed twice.
//!
//! A client that gets no reply sends the same bytes again, perhaps over another connection (RFC 1813 §4.2, Juszczak
//! 1989). What identifies a request: address of the host, transaction number, procedure, length, and a hash of the
//! first bytes.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use hashbrown::{DefaultHashBuilder, HashTable};
use parking_lot::Mutex;

/// Bytes of a request that are hashed: header, credential, handles and names; of data a little.
const HASHED: usize = 320;
const SHARDS: usize = 64;
/// Part of the memory that replies may take, and the least that it is.
const SHARE: u64 = 128;
const LEAST: u64 = 16 << 20;
/// Replies kept per shard.
const SLOTS: usize = 512;
/// A slot's buffer that grew beyond this is given back when another reply takes it.
const KEEP_CAPACITY: usize = 1024;
/// Larger replies are not kept: those of requests that must not be repeated are small.
const LARGEST: usize = 64 << 10;

/// What identifies a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    host: IpAddr,
    xid: u32,
    len: usize,
    hash: u64,
}

/// What is known of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Nothing: execute it, then [`ReplyCache::finish`] the slot.
    New(Slot),
    /// It is being executed: this repetition gets no reply.
    InProgress,
    /// It was executed, and this is the reply.
    Done(Vec<u8>),
}

/// Where the reply to a request in execution will be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Slot {
    shard: usize,
    index: usize,
}

/// Replies by request, in shards.
#[derive(Debug)]
pub struct ReplyCache {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
    /// Most bytes of replies in a shard; older ones make room.
    most: usize,
}

/// In cache lines of its own: neighbours are used by other threads.
///
/// A ring of replies: a new request takes the place of the oldest, buffer and all, so that nothing is allocated per
/// request.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Shard {
    entries: Vec<Kept>,
    next: usize,
    /// Bytes of the replies.
    bytes: usize,
    index: HashTable<u16>,
}

#[derive(Debug)]
struct Kept {
    /// `None`: forgotten.
    key: Option<Key>,
    running: bool,
    reply: Vec<u8>,
}

impl ReplyCache {
    /// No replies, on a host with so much memory.
    pub(crate) fn new(memory: u64) -> Self {
        let most = (memory / SHARE).max(LEAST) / SHARDS as u64;
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
            most: usize::try_from(most).unwrap_or(usize::MAX),
        }
    }

    /// The key of a request: `message` is the RPC call from its transaction number on.
    #[inline]
    pub(crate) fn key(&self, host: IpAddr, xid: u32, message: &[u8]) -> Key {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(&message[..message.len().min(HASHED)]);
        if is_broken(Mutant::ReplyOfAnother) {
            return Key { host, xid: 0, len: 0, hash: 0 };
        }
        Key { host, xid, len: message.len(), hash: hasher.finish() }
    }

    /// Looks a request up; a new one gets a slot.
    #[inline]
    pub(crate) fn begin(&self, key: Key) -> Lookup {
        let number = key.hash as usize % SHARDS;
        let mut shard = self.shards[number].lock();
        match shard.find(&key) {
            Some(kept) if kept.running => Lookup::InProgress,
            Some(kept) => Lookup::Done(kept.reply.clone()),
            None => match shard.take_slot(key) {
                Some(index) => Lookup::New(Slot { shard: number, index }),
                None => Lookup::InProgress,
            },
        }
    }

    /// A new request is done: `keep` writes its reply, or it is forgotten, when it may as well be executed again.
    #[inline]
    pub(crate) fn finish(&self, slot: Slot, keep: Option<impl FnOnce(&mut Vec<u8>)>) {
        let mut shard = self.shards[slot.shard].lock();
        let Some(kept) = shard.entries.get_mut(slot.index) else { return };
        kept.running = false;
        if let Some(keep) = keep {
            keep(&mut kept.reply);
            if kept.reply.len() <= LARGEST {
                shard.bytes += kept.reply.len();
                return shard.shrink(self.most);
            }
            kept.reply = Vec::new();
        }
        shard.forget(slot.index);
    }
}

impl Shard {
    fn find(&self, key: &Key) -> Option<&Kept> {
        let same = |index: &u16| self.entries[usize::from(*index)].key.as_ref() == Some(key);
        self.index.find(key.hash, same).map(|index| &self.entries[usize::from(*index)])
    }

    /// The oldest place whose request is not being executed; `None` when all are (more threads than slots).
    fn take_slot(&mut self, key: Key) -> Option<usize> {
        let index = if self.entries.len() < SLOTS {
            self.entries.push(Kept { key: None, running: false, reply: Vec::new() });
            self.entries.len() - 1
        } else {
            let mut from_oldest = (self.next..self.next + SLOTS).map(|at| at % SLOTS);
            let index = from_oldest.find(|at| !self.entries[*at].running)?;
            self.next = (index + 1) % SLOTS;
            index
        };
        self.forget(index);
        let kept = &mut self.entries[index];
        kept.key = Some(key);
        kept.running = true;
        let entries = &self.entries;
        let hash = |index: &u16| entries[usize::from(*index)].key.map_or(0, |key| key.hash);
        self.index.insert_unique(key.hash, index as u16, hash);
        Some(index)
    }

    /// Forgets the oldest replies until those that are left take no more than `most` bytes.
    fn shrink(&mut self, most: usize) {
        for oldest in self.next..self.next + self.entries.len() {
            if self.bytes <= most {
                return;
            }
            let oldest = oldest % self.entries.len();
            if !self.entries[oldest].running {
                self.forget(oldest);
            }
        }
    }

    fn forget(&mut self, index: usize) {
        let kept = &mut self.entries[index];
        self.bytes -= if kept.running { 0 } else { kept.reply.len() };
        kept.reply.clear();
        kept.reply.shrink_to(KEEP_CAPACITY);
        let Some(key) = kept.key.take() else { return };
        if let Ok(entry) = self.index.find_entry(key.hash, |known| usize::from(*known) == index) {
            entry.remove();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    /// Executes a request that must be new.
    fn execute(cache: &ReplyCache, key: Key, reply: Option<&[u8]>) {
        let Lookup::New(place) = cache.begin(key) else { panic!("not new") };
        cache.finish(place, reply.map(|reply| |out: &mut Vec<u8>| out.extend_from_slice(reply)));
    }

    #[test]
    fn a_repetition_is_told_apart_from_another_request() {
        let cache = ReplyCache::new(0);
        let key = cache.key(HERE, 7, b"request");
        let Lookup::New(place) = cache.begin(key) else { panic!("not new") };
        assert_eq!(cache.begin(key), Lookup::InProgress);
        cache.finish(place, Some(|out: &mut Vec<u8>| out.extend_from_slice(b"reply")));
        assert_eq!(cache.begin(key), Lookup::Done(b"reply".to_vec()));
        for other in [
            cache.key(HERE, 8, b"request"),
            cache.key(HERE, 7, b"Request"),
            cache.key(HERE, 7, b"request "),
            cache.key(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7, b"request"),
        ] {
            execute(&cache, other, Some(b"other"));
        }
    }

    #[test]
    fn what_may_be_repeated_is_forgotten() {
        let cache = ReplyCache::new(0);
        let key = cache.key(HERE, 7, b"request");
        execute(&cache, key, None);
        execute(&cache, key, Some(&[0; LARGEST + 1]));
        execute(&cache, key, Some(b"kept"));
        assert_eq!(cache.begin(key), Lookup::Done(b"kept".to_vec()));
    }

    #[test]
    fn the_oldest_make_room_and_nothing_grows_without_end() {
        let cache = ReplyCache::new(0);
        let key = |xid: u32| cache.key(HERE, xid, &xid.to_be_bytes());
        let reply = |xid: u32| vec![xid as u8; if xid.is_multiple_of(100) { 5000 } else { 200 }];
        for xid in 0..200_000 {
            execute(&cache, key(xid), Some(&reply(xid)));
        }
        for xid in 199_000..200_000 {
            assert_eq!(cache.begin(key(xid)), Lookup::Done(reply(xid)));
        }
        for shard in &cache.shards {
            let shard = shard.lock();
            assert_eq!((shard.entries.len(), shard.index.len()), (SLOTS, SLOTS));
        }
    }

    /// A stranger cannot pin more than a share of the memory with the longest replies that are kept.
    #[test]
    fn long_replies_take_a_share_of_the_memory() {
        let cache = ReplyCache::new(0);
        let key = |xid: u32| cache.key(HERE, xid, &xid.to_be_bytes());
        for xid in 0..2000 {
            execute(&cache, key(xid), Some(&[7; LARGEST]));
            assert_eq!(cache.begin(key(xid)), Lookup::Done(vec![7; LARGEST]), "the newest is there");
        }
        let kept = |shard: &Mutex<Shard>| {
            let shard = shard.lock();
            let taken: usize = shard.entries.iter().map(|kept| kept.reply.capacity()).sum();
            assert_eq!(shard.bytes, shard.entries.iter().map(|kept| kept.reply.len()).sum::<usize>());
            taken as u64
        };
        let buffers = (SHARDS * SLOTS * KEEP_CAPACITY) as u64;
        assert!(cache.shards.iter().map(kept).sum::<u64>() <= LEAST + buffers);
    }

    #[test]
    fn requests_in_execution_keep_their_slots() {
        let cache = ReplyCache::new(0);
        let slow = cache.key(HERE, 0, b"slow");
        let Lookup::New(place) = cache.begin(slow) else { panic!("not new") };
        for xid in 1..100_000u32 {
            execute(&cache, cache.key(HERE, xid, &xid.to_be_bytes()), Some(b"quick"));
        }
        assert_eq!(cache.begin(slow), Lookup::InProgress);
        cache.finish(place, Some(|out: &mut Vec<u8>| out.extend_from_slice(b"at last")));
        assert_eq!(cache.begin(slow), Lookup::Done(b"at last".to_vec()));
    }
}
