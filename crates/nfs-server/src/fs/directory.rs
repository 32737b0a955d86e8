//! Entries of a directory: by name through a hash index, in order of their cookies for listings.
//!
//! Cookies only grow and are never used again. They say where an entry is: all but the lowest eight bits name its
//! segment, and in a segment entries are sorted by cookie. So nothing ever moves to another address: listings go on
//! after any cookie, whether its entry is still there or not, and removal touches one segment only.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};

use super::Node;
use super::types::CAPACITY;

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
    /// Long names of all entries, and of removed ones until they are half of it. At most 256 × 255 bytes.
    names: Vec<u8>,
    garbage: u32,
    /// [`Entry::low`] of the first entry: finding one looks at no other.
    first: u8,
}

/// Longest name that is in the entry itself.
const SHORT: usize = 22;

/// An entry: half a cache line, so that finding a file costs one look into memory here.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
struct Entry {
    ino: u32,
    generation: u32,
    /// Lowest bits of the cookie.
    low: u8,
    name_len: u8,
    /// The name, or where it begins among the segment's names.
    name: [u8; SHORT],
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
pub(super) struct EntryRef<'a> {
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

    pub(super) fn find(&self, hasher: &DefaultHashBuilder, name: &[u8]) -> Option<EntryRef<'_>> {
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
            self.segments.push(Segment {
                number,
                entries: Vec::new(),
                names: Vec::new(),
                garbage: 0,
                first: cookie as u8,
            });
        }
        if let Some(segment) = self.segments.last_mut() {
            segment.push(cookie as u8, name, node);
        }
        self.index.insert(Key { hash: hash(hasher, name), cookie: [(cookie >> 32) as u32, cookie as u32] });
    }

    /// Lets an existing name lead to another file.
    pub(super) fn replace(&mut self, cookie: u64, node: Node) {
        if let Some((segment, at)) = self.position(cookie)
            && let Some(entry) = self.segments.get_mut(segment).and_then(|it| it.entries.get_mut(at))
        {
            entry.ino = node.ino as u32;
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
    pub(super) fn after(&self, cookie: u64) -> impl Iterator<Item = EntryRef<'_>> {
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

    /// The last entry before `cookie`.
    pub(super) fn before(&self, cookie: u64) -> Option<EntryRef<'_>> {
        let end = match self.segment(cookie >> SEGMENT_BITS) {
            Ok(at) => at + 1,
            Err(at) => at,
        };
        let segments = self.segments.get(..end)?.iter().rev();
        let mut entries =
            segments.flat_map(|segment| segment.entries.iter().rev().map(move |entry| segment.found(entry)));
        entries.find(|entry| entry.cookie < cookie)
    }

    /// The entry with exactly this cookie.
    pub(super) fn get(&self, cookie: u64) -> Option<EntryRef<'_>> {
        let (segment, at) = self.position(cookie)?;
        let segment = self.segments.get(segment)?;
        segment.entries.get(at).map(|entry| segment.found(entry))
    }

    /// The cookie that the next entry will get.
    pub(super) fn next_cookie(&self) -> u64 {
        self.next_cookie
    }

    /// Adds an entry under the cookie that it had, for loading: cookies ascend. `false` when it cannot be.
    pub(super) fn restore(
        &mut self,
        hasher: &DefaultHashBuilder,
        cookie: u64,
        name: &[u8],
        node: Node,
    ) -> bool {
        let fits = cookie >= self.next_cookie && cookie < u64::MAX && node.ino < CAPACITY;
        if fits {
            self.next_cookie = cookie + 1;
            self.put(hasher, cookie, name, node);
        }
        fits
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
        let segment = self.segments.get(at)?;
        let entries = &segment.entries;
        let low = cookie as u8;
        let guess = usize::from(low.checked_sub(segment.first)?);
        if entries.get(guess).is_some_and(|entry| entry.low == low) {
            return Some((at, guess));
        }
        Some((at, entries.binary_search_by_key(&low, |entry| entry.low).ok()?))
    }
}

impl Segment {
    fn push(&mut self, low: u8, name: &[u8], node: Node) {
        let mut entry = Entry {
            // The table has no higher numbers.
            ino: node.ino as u32,
            generation: node.generation,
            low,
            name_len: name.len() as u8,
            name: [0; SHORT],
        };
        match entry.name.get_mut(..name.len()) {
            Some(short) => short.copy_from_slice(name),
            None => {
                entry.set_place(self.names.len());
                self.names.extend_from_slice(name);
            }
        }
        if self.entries.is_empty() {
            self.first = low;
        }
        self.entries.push(entry);
    }

    fn found<'a>(&'a self, entry: &'a Entry) -> EntryRef<'a> {
        EntryRef {
            cookie: self.number << SEGMENT_BITS | u64::from(entry.low),
            name: entry.name(&self.names),
            node: Node { ino: u64::from(entry.ino), generation: entry.generation },
        }
    }

    fn remove(&mut self, at: usize) {
        let entry = self.entries.remove(at);
        self.garbage += entry.outside();
        let Some(first) = self.entries.first() else {
            self.entries = Vec::new();
            self.names = Vec::new();
            self.garbage = 0;
            return;
        };
        self.first = first.low;
        if self.entries.len() * 4 <= self.entries.capacity() {
            self.entries.shrink_to(self.entries.len() * 2);
        }
        if self.garbage as usize * 2 > self.names.len() {
            let mut names = Vec::with_capacity(self.names.len() - self.garbage as usize);
            for entry in self.entries.iter_mut().filter(|entry| entry.outside() > 0) {
                let place = names.len();
                names.extend_from_slice(entry.name(&self.names));
                entry.set_place(place);
            }
            self.names = names;
            self.garbage = 0;
        }
    }
}

impl Entry {
    fn name<'a>(&'a self, names: &'a [u8]) -> &'a [u8] {
        let len = usize::from(self.name_len);
        let place = usize::from(u16::from_le_bytes([self.name[0], self.name[1]]));
        self.name.get(..len).or_else(|| names.get(place..place + len)).unwrap_or_default()
    }

    /// Bytes that it has among the segment's names.
    fn outside(&self) -> u32 {
        if usize::from(self.name_len) > SHORT { u32::from(self.name_len) } else { 0 }
    }

    fn set_place(&mut self, place: usize) {
        [self.name[0], self.name[1]] = (place as u16).to_le_bytes();
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    fn node(ino: u64) -> Node {
        Node { ino, generation: 1 }
    }

    /// Short names and long ones.
    fn name(number: u16) -> Vec<u8> {
        format!("{number:03}").repeat(if number.is_multiple_of(3) { 80 } else { 1 }).into_bytes()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn entries_are_found_by_name_and_listed_by_cookie(steps in vec((0..900u16, 0..5u8), 1..3000)) {
            let hasher = DefaultHashBuilder::default();
            let mut dir = Directory::new(node(1));
            let mut model: BTreeMap<u64, (u16, Node)> = BTreeMap::new();
            for (at, (number, what)) in (2..).zip(&steps) {
                let cookie = model.iter().find(|(_, (it, _))| it == number).map(|(cookie, _)| *cookie);
                let found = dir.find(&hasher, &name(*number)).map(|found| (found.cookie, found.node));
                prop_assert_eq!(found, cookie.map(|cookie| (cookie, model[&cookie].1)));
                match (cookie, what) {
                    (None, 0) => prop_assert!(!dir.remove(&hasher, &name(*number))),
                    (None, _) => {
                        model.insert(dir.next_cookie(), (*number, node(at)));
                        dir.insert(&hasher, &name(*number), node(at));
                    }
                    (Some(cookie), 1) => {
                        dir.replace(cookie, node(at));
                        model.insert(cookie, (*number, node(at)));
                    }
                    (Some(cookie), _) => {
                        prop_assert!(dir.remove(&hasher, &name(*number)));
                        model.remove(&cookie);
                        prop_assert!(dir.get(cookie).is_none());
                    }
                }
                prop_assert_eq!(dir.len(), model.len());
            }
            for from in [0, 2, 3, 255, 256, 257, 511, 700, 1000, u64::MAX] {
                let listed: Vec<_> =
                    dir.after(from).map(|found| (found.cookie, found.name.to_vec(), found.node)).collect();
                let after = model.iter().filter(|(cookie, _)| **cookie > from);
                let expected: Vec<_> = after.map(|(cookie, (it, node))| (*cookie, name(*it), *node)).collect();
                prop_assert_eq!(listed, expected, "from {}", from);
            }
        }
    }

    #[test]
    fn memory_follows_the_entries_that_are_left() {
        let hasher = DefaultHashBuilder::default();
        let mut dir = Directory::new(node(1));
        for number in 0..100_000u64 {
            dir.insert(&hasher, format!("{number}").as_bytes(), node(number + 2));
        }
        assert!(matches!(dir.index, Index::Split(..)));
        for number in (0..100_000u64).filter(|number| number % 1000 != 5) {
            assert!(dir.remove(&hasher, format!("{number}").as_bytes()));
        }
        assert_eq!(dir.len(), 100);
        assert!(dir.segments.len() <= 202, "{}", dir.segments.len());
        let entries: usize = dir.segments.iter().map(|segment| segment.entries.capacity()).sum();
        assert!(entries <= 100 * 8 + 256, "{entries}");
        // Creating and removing without end takes no more.
        for number in 0..100_000u64 {
            dir.insert(&hasher, b"again", node(number + 2));
            assert!(dir.remove(&hasher, b"again"));
        }
        assert!(dir.segments.len() <= 204, "{}", dir.segments.len());
        assert_eq!(dir.after(0).count(), 100);
    }
}
