//! Duplicate request cache: replies to requests of NFS v2, v3, v4.0 and NLM that must not be executed twice.
//!
//! A client that gets no reply sends the same bytes again, perhaps over another connection (RFC 1813 §4.2, Juszczak 1989).
//! What identifies a request: address of the host, transaction number, procedure, length, and a hash of the first bytes.

use std::hash::{BuildHasher, Hasher};
use std::net::IpAddr;

use hashbrown::hash_map::Entry;
use hashbrown::{DefaultHashBuilder, HashMap};
use parking_lot::Mutex;
use std::collections::VecDeque;

/// So many bytes of a request are hashed: header, credential, handles and names; of data a little.
const HASHED: usize = 320;
const SHARDS: usize = 64;
/// Most replies kept per shard.
const MOST_REPLIES: usize = 512;
/// Most bytes of replies kept per shard.
const MOST_BYTES: usize = 1 << 20;

/// What identifies a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    host: IpAddr,
    xid: u32,
    len: usize,
    hash: u64,
}

/// What is known of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Lookup {
    /// Nothing: execute it, then [`ReplyCache::finish`].
    New,
    /// It is being executed: this repetition gets no reply.
    InProgress,
    /// It was executed: the reply.
    Done(Vec<u8>),
}

/// The cache.
#[derive(Debug)]
pub struct ReplyCache {
    shards: Box<[Mutex<Shard>]>,
    hasher: DefaultHashBuilder,
}

#[derive(Debug, Default)]
struct Shard {
    /// `None`: in progress.
    replies: HashMap<Key, Option<Box<[u8]>>>,
    /// Finished requests, oldest first.
    order: VecDeque<Key>,
    bytes: usize,
}

impl Default for ReplyCache {
    fn default() -> Self {
        Self {
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            hasher: DefaultHashBuilder::default(),
        }
    }
}

impl ReplyCache {
    /// The key of a request: `message` is the RPC call from its transaction number on.
    #[inline]
    pub(crate) fn key(&self, host: IpAddr, xid: u32, message: &[u8]) -> Key {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(&message[..message.len().min(HASHED)]);
        Key { host, xid, len: message.len(), hash: hasher.finish() }
    }

    fn shard(&self, key: &Key) -> &Mutex<Shard> {
        &self.shards[key.hash as usize % SHARDS]
    }

    /// Looks a request up and marks a new one as being in progress.
    #[inline]
    pub(crate) fn begin(&self, key: Key) -> Lookup {
        match self.shard(&key).lock().replies.entry(key) {
            Entry::Vacant(place) => {
                place.insert(None);
                Lookup::New
            }
            Entry::Occupied(known) => match known.get() {
                Some(reply) => Lookup::Done(reply.to_vec()),
                None => Lookup::InProgress,
            },
        }
    }

    /// A new request is done: keeps its reply, or forgets it when it may as well be executed again.
    #[inline]
    pub(crate) fn finish(&self, key: Key, reply: Option<Vec<u8>>) {
        let mut shard = self.shard(&key).lock();
        let Some(reply) = reply else {
            shard.replies.remove(&key);
            return;
        };
        shard.bytes += reply.len();
        shard.replies.insert(key, Some(reply.into()));
        shard.order.push_back(key);
        while shard.order.len() > MOST_REPLIES || shard.bytes > MOST_BYTES {
            let Some(oldest) = shard.order.pop_front() else { break };
            if let Some(Some(reply)) = shard.replies.remove(&oldest) {
                shard.bytes -= reply.len();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn a_repetition_is_told_apart_from_another_request() {
        let cache = ReplyCache::default();
        let key = cache.key(HERE, 7, b"request");
        assert_eq!(cache.begin(key), Lookup::New);
        assert_eq!(cache.begin(key), Lookup::InProgress);
        cache.finish(key, Some(b"reply".to_vec()));
        assert_eq!(cache.begin(key), Lookup::Done(b"reply".to_vec()));
        for other in [
            cache.key(HERE, 8, b"request"),
            cache.key(HERE, 7, b"Request"),
            cache.key(HERE, 7, b"request "),
            cache.key(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 7, b"request"),
        ] {
            assert_eq!(cache.begin(other), Lookup::New);
        }
    }

    #[test]
    fn what_may_be_repeated_is_forgotten() {
        let cache = ReplyCache::default();
        let key = cache.key(HERE, 7, b"request");
        assert_eq!(cache.begin(key), Lookup::New);
        cache.finish(key, None);
        assert_eq!(cache.begin(key), Lookup::New);
    }

    #[test]
    fn count_and_bytes_are_bounded() {
        let cache = ReplyCache::default();
        for xid in 0..200_000u32 {
            let key = cache.key(HERE, xid, &xid.to_be_bytes());
            cache.begin(key);
            cache.finish(key, Some(vec![0; 400]));
        }
        let replies: usize = cache.shards.iter().map(|shard| shard.lock().replies.len()).sum();
        assert!((SHARDS * MOST_REPLIES / 2..=SHARDS * MOST_REPLIES).contains(&replies), "{replies}");
        let last = 199_999u32;
        assert!(matches!(cache.begin(cache.key(HERE, last, &last.to_be_bytes())), Lookup::Done(_)));
        let big = cache.key(HERE, 1, b"big");
        cache.begin(big);
        cache.finish(big, Some(vec![0; 2 << 20]));
        assert!(cache.shards.iter().all(|shard| shard.lock().bytes <= MOST_BYTES));
    }
}
