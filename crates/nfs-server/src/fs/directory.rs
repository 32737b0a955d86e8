//! Entries of a directory: by name through a hash index, in order of their cookies for listings.
//!
//! Cookies only grow and are never used again. They say where an entry is: all but the lowest eight bits name its
//! segment, and in a segment entries are sorted by cookie. So nothing ever moves to another address: listings go on
//! after any cookie, whether its entry is still there or not, and removal touches one segment only.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Node;

/// First cookie: 1 and 2 are left to "." and "..".
const FIRST_COOKIE: u64 = 3;
/// Bits of a cookie that count within a segment.
const SEGMENT_BITS: u32 = 8;
/// Entries from which on the index is split, so that no single insertion pays for moving all of it.
const SPLIT_AT: usize = 1 << 14;
/// Parts of a split index.
const PARTS: usize = 256;

/// Content of a directory, but "." and "..".
#[derive(Debug)]
pub(super) struct Directory {
    /// Where it is; the root is in itself.
    pub(super) parent: Node,
    next_cookie: u64,
    index: Index,
    /// By ascending number; those in the middle may have become empty.
    segments: Vec<Segment>,
    empty: usize,
}

/// Neighbouring entries.
#[derive(Debug)]
struct Segment {
    number: u64,
    entries: Vec<Entry>,
    /// Names of all entries, and of removed ones until they are half of it. At most 256 × 255 bytes.
    names: Vec<u8>,
    garbage: u32,
}

/// An entry: 16 bytes and its name.
#[derive(Debug, Clone, Copy)]
struct Entry {
    ino: u64,
    generation: u32,
    name_at: u16,
    name_len: u8,
    /// Lowest bits of the cookie.
    low: u8,
}

/// What the index knows of an entry: enough to grow without looking at names.
#[derive(Debug, Clone, Copy)]
struct Key {
    hash: u32,
    cookie: [u32; 2],
}

#[derive(Debug)]
enum Index {
    Whole(HashTable<Key>),
    Split(Box<[HashTable<Key>]>, usize),
}

/// An entry, as found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Found<'a> {
    pub(super) cookie: u64,
    pub(super) name: &'a [u8],
    pub(super) node: Node,
}

impl Directory {
    pub(super) fn new(parent: Node) -> Self {
        Self {
            parent,
            next_cookie: FIRST_COOKIE,
            index: Index::Whole(HashTable::new()),
            segments: Vec::new(),
            empty: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What is shown as size: grows with the entries.
    pub(super) fn size(&self) -> u64 {
        ((self.len() as u64 + 2) * 32).next_multiple_of(4096)
    }

    pub(super) fn find(&self, hasher: &DefaultHashBuilder, name: &[u8]) -> Option<Found<'_>> {
        let hash = hash(hasher, name);
        let key = self.index.part(hash).find(spread(hash), |key| self.is(key, hash, name))?;
        self.get(key.cookie())
    }

    /// Adds a name that is not there.
    pub(super) fn insert(&mut self, hasher: &DefaultHashBuilder, name: &[u8], node: Node) {
        let cookie = self.next_cookie;
        self.next_cookie += 1;
        self.put(hasher, cookie, name, node);
    }

    fn put(&mut self, hasher: &DefaultHashBuilder, cookie: u64, name: &[u8], node: Node) {
        let number = cookie >> SEGMENT_BITS;
        if self.segments.last().is_none_or(|last| last.number != number) {
            if let Some(full) = self.segments.last_mut() {
                full.names.shrink_to_fit();
                self.empty += usize::from(full.entries.is_empty());
            }
            self.segments.push(Segment { number, entries: Vec::new(), names: Vec::new(), garbage: 0 });
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.entries.push(Entry {
                ino: node.ino,
                generation: node.generation,
                name_at: segment.names.len() as u16,
                name_len: name.len() as u8,
                low: cookie as u8,
            });
            segment.names.extend_from_slice(name);
        }
        self.index.insert(Key { hash: hash(hasher, name), cookie: [(cookie >> 32) as u32, cookie as u32] });
    }

    /// Lets an existing name lead to another file.
    pub(super) fn replace(&mut self, cookie: u64, node: Node) {
        if let Some((segment, at)) = self.position(cookie)
            && let Some(entry) = self.segments.get_mut(segment).and_then(|it| it.entries.get_mut(at))
        {
            entry.ino = node.ino;
            entry.generation = node.generation;
        }
    }

    /// Removes a name; `false` when it is not there.
    pub(super) fn remove(&mut self, hasher: &DefaultHashBuilder, name: &[u8]) -> bool {
        let hash = hash(hasher, name);
        let Some(cookie) = self.index.part(hash).find(spread(hash), |key| self.is(key, hash, name)) else {
            return false;
        };
        let cookie = cookie.cookie();
        self.index.remove(hash, cookie);
        if let Some((number, at)) = self.position(cookie) {
            let last = number + 1 == self.segments.len();
            if let Some(segment) = self.segments.get_mut(number) {
                segment.remove(at);
                if segment.entries.is_empty() && !last {
                    self.empty += 1;
                }
            }
        }
        if self.empty * 2 > self.segments.len() {
            let last = self.segments.last().map(|last| last.number);
            self.segments.retain(|segment| !segment.entries.is_empty() || Some(segment.number) == last);
            self.segments.shrink_to(self.segments.len() * 2);
            self.empty = 0;
        }
        true
    }

    /// The entries after `cookie`, in order.
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = Found<'_>> {
        let cookie = cookie.saturating_add(1);
        let number = cookie >> SEGMENT_BITS;
        let first = self.segment(number).unwrap_or_else(|at| at);
        let skipped = self
            .segments
            .get(first)
            .filter(|segment| segment.number == number)
            .map_or(0, |segment| segment.entries.partition_point(|entry| entry.low < cookie as u8));
        let segments = self.segments.get(first..).unwrap_or_default();
        segments
            .iter()
            .flat_map(|segment| segment.entries.iter().map(move |entry| segment.found(entry)))
            .skip(skipped)
    }

    /// The entry with exactly this cookie.
    pub(super) fn get(&self, cookie: u64) -> Option<Found<'_>> {
        let (segment, at) = self.position(cookie)?;
        let segment = self.segments.get(segment)?;
        segment.entries.get(at).map(|entry| segment.found(entry))
    }

    /// The cookie that the next entry will get.
    pub(super) fn next_cookie(&self) -> u64 {
        self.next_cookie
    }

    /// Adds an entry under the cookie that it had, for loading: cookies ascend.
    pub(super) fn restore(
        &mut self,
        hasher: &DefaultHashBuilder,
        cookie: u64,
        name: &[u8],
        node: Node,
    ) -> bool {
        let ascends = cookie >= self.next_cookie && cookie < u64::MAX;
        if ascends {
            self.next_cookie = cookie + 1;
            self.put(hasher, cookie, name, node);
        }
        ascends
    }

    /// Sets the cookie that the next entry gets, for loading.
    pub(super) fn restore_next_cookie(&mut self, cookie: u64) -> bool {
        let grows = cookie >= self.next_cookie;
        self.next_cookie = self.next_cookie.max(cookie);
        grows
    }

    fn is(&self, key: &Key, hash: u32, name: &[u8]) -> bool {
        key.hash == hash && self.get(key.cookie()).is_some_and(|found| found.name == name)
    }

    /// Place of a segment: almost always where it would be if none had gone.
    fn segment(&self, number: u64) -> Result<usize, usize> {
        let guess = self.segments.first().and_then(|first| number.checked_sub(first.number));
        if let Some(guess) = guess.and_then(|guess| usize::try_from(guess).ok())
            && self.segments.get(guess).is_some_and(|segment| segment.number == number)
        {
            return Ok(guess);
        }
        self.segments.binary_search_by_key(&number, |segment| segment.number)
    }

    fn position(&self, cookie: u64) -> Option<(usize, usize)> {
        let at = self.segment(cookie >> SEGMENT_BITS).ok()?;
        let entries = &self.segments.get(at)?.entries;
        let low = cookie as u8;
        let guess = usize::from(low.checked_sub(entries.first()?.low)?);
        if entries.get(guess).is_some_and(|entry| entry.low == low) {
            return Some((at, guess));
        }
        Some((at, entries.binary_search_by_key(&low, |entry| entry.low).ok()?))
    }
}

impl Segment {
    fn found(&self, entry: &Entry) -> Found<'_> {
        Found {
            cookie: self.number << SEGMENT_BITS | u64::from(entry.low),
            name: self.name(entry),
            node: Node { ino: entry.ino, generation: entry.generation },
        }
    }

    fn name(&self, entry: &Entry) -> &[u8] {
        let at = usize::from(entry.name_at);
        self.names.get(at..at + usize::from(entry.name_len)).unwrap_or_default()
    }

    fn remove(&mut self, at: usize) {
        let entry = self.entries.remove(at);
        self.garbage += u32::from(entry.name_len);
        if self.entries.is_empty() {
            self.entries = Vec::new();
            self.names = Vec::new();
            self.garbage = 0;
        } else if self.garbage as usize * 2 > self.names.len() {
            let mut names = Vec::with_capacity(self.names.len() - self.garbage as usize);
            for entry in &mut self.entries {
                let at = usize::from(entry.name_at);
                entry.name_at = names.len() as u16;
                names.extend_from_slice(
                    self.names.get(at..at + usize::from(entry.name_len)).unwrap_or_default(),
                );
            }
            self.names = names;
            self.garbage = 0;
            self.entries.shrink_to(self.entries.len() * 2);
        }
    }
}

impl Key {
    fn cookie(&self) -> u64 {
        u64::from(self.cookie[0]) << 32 | u64::from(self.cookie[1])
    }
}

impl Index {
    fn len(&self) -> usize {
        match self {
            Self::Whole(table) => table.len(),
            Self::Split(_, len) => *len,
        }
    }

    fn part(&self, hash: u32) -> &HashTable<Key> {
        match self {
            Self::Whole(table) => table,
            Self::Split(parts, _) => &parts[part(hash)],
        }
    }

    fn insert(&mut self, key: Key) {
        match self {
            Self::Whole(table) if table.len() < SPLIT_AT => insert(table, key),
            Self::Whole(table) => {
                let mut parts: Box<[HashTable<Key>]> = (0..PARTS).map(|_| HashTable::new()).collect();
                table.drain().chain([key]).for_each(|key| insert(&mut parts[part(key.hash)], key));
                *self = Self::Split(parts, SPLIT_AT + 1);
            }
            Self::Split(parts, len) => {
                insert(&mut parts[part(key.hash)], key);
                *len += 1;
            }
        }
    }

    fn remove(&mut self, hash: u32, cookie: u64) {
        let table = match self {
            Self::Whole(table) => table,
            Self::Split(parts, len) => {
                *len -= 1;
                &mut parts[part(hash)]
            }
        };
        if let Ok(entry) = table.find_entry(spread(hash), |key| key.cookie() == cookie) {
            entry.remove();
        }
        if table.capacity() > 64 && table.len() * 8 < table.capacity() {
            table.shrink_to(table.len() * 2, |key| spread(key.hash));
        }
    }
}

fn insert(table: &mut HashTable<Key>, key: Key) {
    table.insert_unique(spread(key.hash), key, |key| spread(key.hash));
}

/// Which part of a split index: by the highest bits; within the part the lowest decide.
fn part(hash: u32) -> usize {
    (hash >> 24) as usize
}

fn hash(hasher: &DefaultHashBuilder, name: &[u8]) -> u32 {
    hasher.hash_one(name) as u32
}

/// The table takes the place from the lowest bits and its tags from the highest: both must depend on the hash.
fn spread(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
