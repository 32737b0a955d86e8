//! The file system against a plain model, over random operations.

use std::collections::{BTreeMap, HashMap, HashSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[derive(Debug, Clone)]
enum Op {
    Create(u8, u8, u8),
    Write(u8, u32, u32, u8),
    Resize(u8, u32),
    Punch(u8, u32, u32),
    Allocate(u8, u32, u32),
    Copy(u8, u32, u8, u32, u32),
    Link(u8, u8, u8),
    Remove(u8, u8),
    Rename(u8, u8, u8, u8),
    Hold(u8),
    Release(u8),
}

/// Offsets that like the borders of pages and blocks.
fn offset() -> impl Strategy<Value = u32> {
    let border = prop_oneof![Just(0u32), Just(64), Just(4096), Just(65_536), Just(131_072), Just(200_000)];
    (border, 0..3u32, any::<bool>())
        .prop_map(|(at, by, less)| if less { at.saturating_sub(by) } else { at + by * 7 })
}

fn op() -> impl Strategy<Value = Op> {
    let (dir, name, file) = (0..6u8, 0..5u8, 0..8u8);
    prop_oneof![
        4 => (dir.clone(), name.clone(), 0..4u8).prop_map(|(d, n, k)| Op::Create(d, n, k)),
        4 => (file.clone(), offset(), 0..100_000u32, 1..255u8).prop_map(|(f, o, l, b)| Op::Write(f, o, l, b)),
        2 => (file.clone(), offset(), offset(), 1..255u8).prop_map(|(f, o, l, b)| Op::Write(f, o, l, b)),
        2 => (file.clone(), offset()).prop_map(|(f, s)| Op::Resize(f, s)),
        2 => (file.clone(), offset(), offset()).prop_map(|(f, o, l)| Op::Punch(f, o, l)),
        1 => (file.clone(), offset(), offset()).prop_map(|(f, o, l)| Op::Allocate(f, o, l)),
        2 => (file.clone(), offset(), file.clone(), offset(), offset())
            .prop_map(|(f, o, t, p, l)| Op::Copy(f, o, t, p, l)),
        2 => (file.clone(), dir.clone(), name.clone()).prop_map(|(f, d, n)| Op::Link(f, d, n)),
        3 => (dir.clone(), name.clone()).prop_map(|(d, n)| Op::Remove(d, n)),
        4 => (dir.clone(), name.clone(), dir, name).prop_map(|(d, n, e, m)| Op::Rename(d, n, e, m)),
        1 => file.clone().prop_map(Op::Hold),
        1 => file.prop_map(Op::Release),
    ]
}

/// What a file should be.
#[derive(Debug, Clone)]
enum Content {
    File(Vec<u8>),
    Other,
    Dir { parent: Node, entries: BTreeMap<u8, Node> },
}

struct Model {
    fs: FileSystem,
    files: HashMap<Node, Content>,
    holds: Vec<Node>,
    seconds: i64,
}

impl Model {
    fn new() -> Self {
        let fs = new_fs();
        let root = Content::Dir { parent: fs.root(), entries: BTreeMap::new() };
        let files = HashMap::from([(fs.root(), root)]);
        Self { fs, files, holds: Vec::new(), seconds: 10 }
    }

    /// The nth file of a kind, in a fixed order.
    fn pick(&self, nth: u8, dir: bool) -> Option<Node> {
        let mut nodes: Vec<Node> = self
            .files
            .iter()
            .filter(|(_, content)| matches!(content, Content::Dir { .. }) == dir)
            .map(|(node, _)| *node)
            .collect();
        nodes.sort_unstable();
        (!nodes.is_empty()).then(|| nodes[usize::from(nth) % nodes.len()])
    }

    fn entries(&self, dir: Node) -> &BTreeMap<u8, Node> {
        match &self.files[&dir] {
            Content::Dir { entries, .. } => entries,
            _ => unreachable!(),
        }
    }

    fn entries_mut(&mut self, dir: Node) -> &mut BTreeMap<u8, Node> {
        match self.files.get_mut(&dir) {
            Some(Content::Dir { entries, .. }) => entries,
            _ => unreachable!(),
        }
    }

    fn bytes(&mut self, file: Node) -> Option<&mut Vec<u8>> {
        match self.files.get_mut(&file) {
            Some(Content::File(bytes)) => Some(bytes),
            _ => None,
        }
    }

    fn is_dir(&self, node: Node) -> bool {
        matches!(self.files.get(&node), Some(Content::Dir { .. }))
    }

    fn links(&self, file: Node) -> usize {
        let dirs = self.files.values().filter_map(|content| match content {
            Content::Dir { entries, .. } => Some(entries),
            _ => None,
        });
        dirs.flat_map(|entries| entries.values()).filter(|node| **node == file).count()
    }

    /// Whether `above` is `dir` or over it.
    fn is_above(&self, above: Node, mut dir: Node) -> bool {
        loop {
            if dir == above {
                return true;
            }
            match self.files.get(&dir) {
                Some(Content::Dir { parent, .. }) if *parent != dir => dir = *parent,
                _ => return false,
            }
        }
    }

    fn forget_if_gone(&mut self, file: Node) {
        if self.links(file) == 0 && !self.holds.contains(&file) {
            self.files.remove(&file);
        }
    }

    fn step(&mut self, op: &Op) {
        self.seconds += 1;
        let now = at(self.seconds);
        let root = Credentials::root();
        match *op {
            Op::Create(dir, name, kind) => {
                let Some(dir) = self.pick(dir, true) else { return };
                let (new, content) = match kind {
                    0 => (NewFile::Directory, Content::Dir { parent: dir, entries: BTreeMap::new() }),
                    1 => (NewFile::Symlink(b"to"), Content::Other),
                    _ => (NewFile::Regular, Content::File(Vec::new())),
                };
                let made = self.fs.create(&root, dir, &[b'a' + name], new, &SetAttr::default(), None, now);
                if self.entries(dir).contains_key(&name) {
                    assert_eq!(made.err(), Some(FsError::Exists));
                    return;
                }
                let made = made.unwrap();
                assert!(made.dir.after.change > made.dir.before.change);
                assert_eq!((made.dir.after.mtime, made.dir.after.ctime), (now, now));
                self.entries_mut(dir).insert(name, made.attr.node);
                assert!(self.files.insert(made.attr.node, content).is_none());
            }
            Op::Write(file, offset, len, byte) => {
                let Some(file) = self.pick(file, false) else { return };
                let data = vec![byte; len as usize];
                let done = self.fs.write(&root, file, u64::from(offset), &data, now);
                let Some(bytes) = self.bytes(file) else {
                    return assert_eq!(done.err(), Some(FsError::IsSymlink));
                };
                let end = (offset + len) as usize;
                if len > 0 {
                    bytes.resize(bytes.len().max(end), 0);
                    bytes[offset as usize..end].copy_from_slice(&data);
                    let done = done.as_ref().unwrap();
                    assert!(done.after.change > done.before.change);
                }
                assert_eq!(done.unwrap().after.size, bytes.len() as u64);
            }
            Op::Resize(file, size) => {
                let Some(file) = self.pick(file, false) else { return };
                let set = SetAttr { size: Some(u64::from(size)), ..SetAttr::default() };
                let done = self.fs.set_attr(&root, file, &set, None, false, now);
                let Some(bytes) = self.bytes(file) else {
                    return assert_eq!(done.err(), Some(FsError::IsSymlink));
                };
                bytes.resize(size as usize, 0);
                assert_eq!(done.unwrap().after.mtime, now);
            }
            Op::Punch(file, offset, len) => {
                let Some(file) = self.pick(file, false) else { return };
                let done = self.fs.deallocate(&root, file, offset.into(), len.into(), now);
                let Some(bytes) = self.bytes(file) else {
                    return assert_eq!(done.err(), Some(FsError::IsSymlink));
                };
                if len == 0 {
                    return assert_eq!(done.err(), Some(FsError::Invalid));
                }
                let end = bytes.len().min((offset + len) as usize);
                if let Some(range) = bytes.get_mut(offset as usize..end) {
                    range.fill(0);
                }
                let done = done.unwrap();
                assert!(done.after.used <= done.before.used);
            }
            Op::Allocate(file, offset, len) => {
                let Some(file) = self.pick(file, false) else { return };
                let done = self.fs.allocate(&root, file, offset.into(), len.into(), now);
                let Some(bytes) = self.bytes(file) else {
                    return assert_eq!(done.err(), Some(FsError::IsSymlink));
                };
                if len == 0 {
                    return assert_eq!(done.err(), Some(FsError::Invalid));
                }
                bytes.resize(bytes.len().max((offset + len) as usize), 0);
                let done = done.unwrap();
                assert!(done.after.used >= done.before.used);
            }
            Op::Copy(from, offset, to, to_offset, len) => {
                let (Some(from), Some(to)) = (self.pick(from, false), self.pick(to, false)) else { return };
                let done =
                    self.fs.copy_range(&root, from, offset.into(), to, to_offset.into(), len.into(), now);
                let (Some(source), Some(_)) = (self.bytes(from).cloned(), self.bytes(to)) else {
                    return assert_eq!(done.err(), Some(FsError::IsSymlink));
                };
                let left = source.len().saturating_sub(offset as usize);
                let count = if len == 0 { left } else { left.min(len as usize) };
                let (o, t) = (offset as usize, to_offset as usize);
                if from == to && o < t + count && t < o + count {
                    return assert_eq!(done.err(), Some(FsError::Invalid));
                }
                assert_eq!(done.unwrap().0, count as u64);
                if count > 0 {
                    let bytes = self.bytes(to).unwrap();
                    bytes.resize(bytes.len().max(t + count), 0);
                    bytes[t..t + count].copy_from_slice(&source[o..o + count]);
                }
            }
            Op::Link(file, dir, name) => {
                let (Some(file), Some(dir)) = (self.pick(file, false), self.pick(dir, true)) else { return };
                let done = self.fs.link(&root, file, dir, &[b'a' + name], now);
                if self.entries(dir).contains_key(&name) {
                    return assert_eq!(done.err(), Some(FsError::Exists));
                }
                if self.links(file) == 0 {
                    return assert_eq!(done.err(), Some(FsError::NotFound));
                }
                self.entries_mut(dir).insert(name, file);
                assert_eq!(done.unwrap().attr.nlink as usize, self.links(file));
            }
            Op::Remove(dir, name) => {
                let Some(dir) = self.pick(dir, true) else { return };
                let done = self.fs.remove(&root, dir, &[b'a' + name], RemoveKind::Any, now);
                let Some(node) = self.entries(dir).get(&name).copied() else {
                    return assert_eq!(done.err(), Some(FsError::NotFound));
                };
                if self.is_dir(node) && !self.entries(node).is_empty() {
                    return assert_eq!(done.err(), Some(FsError::NotEmpty));
                }
                self.entries_mut(dir).remove(&name);
                assert_eq!(done.unwrap().attr.nlink as usize, self.links(node));
                self.forget_if_gone(node);
            }
            Op::Rename(from, name, to, new_name) => self.rename((from, name), (to, new_name), now),
            Op::Hold(file) => {
                let Some(file) = self.pick(file, false) else { return };
                self.fs.hold(file).unwrap();
                self.holds.push(file);
            }
            Op::Release(nth) => {
                if self.holds.is_empty() {
                    return;
                }
                let file = self.holds.swap_remove(usize::from(nth) % self.holds.len());
                self.fs.release(file);
                self.forget_if_gone(file);
            }
        }
    }

    fn rename(&mut self, (from, name): (u8, u8), (to, new_name): (u8, u8), now: Time) {
        let (Some(from), Some(to)) = (self.pick(from, true), self.pick(to, true)) else { return };
        let root = Credentials::root();
        let done = self.fs.rename(&root, from, &[b'a' + name], to, &[b'a' + new_name], now);
        let Some(file) = self.entries(from).get(&name).copied() else {
            return assert_eq!(done.err(), Some(FsError::NotFound));
        };
        let old = self.entries(to).get(&new_name).copied();
        if self.is_dir(file) && self.is_above(file, to) {
            return assert_eq!(done.err(), Some(FsError::Invalid));
        }
        if old == Some(file) {
            let done = done.unwrap();
            assert_eq!((done.from.before, done.replaced), (done.from.after, None));
            return;
        }
        if let Some(old) = old {
            let refused = match (self.is_dir(file), self.is_dir(old)) {
                (false, true) => Some(FsError::IsDirectory),
                (true, false) => Some(FsError::NotDirectory),
                (true, true) if !self.entries(old).is_empty() => Some(FsError::NotEmpty),
                _ => None,
            };
            if refused.is_some() {
                return assert_eq!(done.err(), refused);
            }
        }
        let done = done.unwrap();
        assert!(done.from.after.change > done.from.before.change);
        assert!(done.to.after.change > done.to.before.change);
        self.entries_mut(from).remove(&name);
        self.entries_mut(to).insert(new_name, file);
        if let Some(Content::Dir { parent, .. }) = self.files.get_mut(&file) {
            *parent = to;
        }
        assert_eq!(done.replaced.as_ref().map(|attr| attr.node), old);
        if let Some(old) = old {
            assert_eq!(done.replaced.unwrap().nlink as usize, self.links(old));
            self.forget_if_gone(old);
        }
    }

    /// Everything the file system says must be what the model says.
    fn compare(&self) {
        assert_eq!(self.fs.stat().used_files, self.files.len() as u64);
        let mut used = 0;
        for (node, content) in &self.files {
            let attr = self.fs.attr(*node).unwrap();
            match content {
                Content::Other => assert_eq!(attr.nlink as usize, self.links(*node)),
                Content::File(bytes) => {
                    used += attr.used;
                    assert_eq!((attr.nlink as usize, attr.size), (self.links(*node), bytes.len() as u64));
                    assert_eq!(&read_all(&self.fs, *node), bytes);
                    check_seek(&self.fs, *node, bytes);
                }
                Content::Dir { parent, entries } => {
                    let dirs = entries.values().filter(|node| self.is_dir(**node)).count();
                    assert_eq!(attr.nlink as usize, 2 + dirs);
                    assert_eq!(self.fs.parent(*node), Ok(*parent));
                    assert_eq!(
                        listing(&self.fs, *node),
                        entries.iter().map(|(n, f)| (vec![b'a' + n], *f)).collect()
                    );
                }
            }
        }
        let stat = self.fs.stat();
        assert_eq!(stat.total_bytes - stat.free_bytes, used);
    }

    fn remove_all(&mut self) {
        for file in std::mem::take(&mut self.holds) {
            self.fs.release(file);
        }
        remove_below(&self.fs, self.fs.root());
        let (stat, attr) = (self.fs.stat(), self.fs.attr(self.fs.root()).unwrap());
        assert_eq!((stat.used_files, stat.free_bytes, attr.nlink), (1, stat.total_bytes, 2));
    }
}

pub(super) fn read_all(fs: &FileSystem, file: Node) -> Vec<u8> {
    let mut out = Vec::new();
    let info = fs.read(file, 0, u32::MAX, &mut out, at(0)).unwrap();
    let bytes: Vec<u8> = out.iter().flat_map(|slice| slice.as_slice()).copied().collect();
    assert_eq!((info.len as usize, info.eof), (bytes.len(), true));
    bytes
}

/// Data and holes alternate, cover the file, and holes are zeros.
fn check_seek(fs: &FileSystem, file: Node, bytes: &[u8]) {
    let size = bytes.len() as u64;
    assert_eq!(fs.seek(file, size, SeekKind::Hole), Err(FsError::NoSuchRange));
    let mut at = 0;
    while at < size {
        let data = fs.seek(file, at, SeekKind::Data).unwrap().unwrap_or(size);
        assert!(bytes[at as usize..data as usize].iter().all(|byte| *byte == 0), "hole {at}..{data}");
        if data == size {
            break;
        }
        let hole = fs.seek(file, data, SeekKind::Hole).unwrap().unwrap();
        assert!(hole > data && hole <= size);
        at = hole;
    }
}

/// Names and files of a directory, read in pieces of two; checks that cookies grow.
pub(super) fn listing(fs: &FileSystem, dir: Node) -> BTreeMap<Vec<u8>, Node> {
    let mut all = BTreeMap::new();
    let (mut cookie, mut cookies) = (0, HashSet::new());
    loop {
        let mut left = 2;
        let end = fs.read_dir(&Credentials::root(), dir, cookie, true, at(0), &mut |entry| {
            if left == 0 {
                return false;
            }
            left -= 1;
            assert!(entry.cookie > cookie.max(2) && cookies.insert(entry.cookie));
            assert_eq!(entry.attr.as_ref().unwrap().node, entry.node);
            cookie = entry.cookie;
            assert!(all.insert(entry.name.to_vec(), entry.node).is_none());
            true
        });
        if end.unwrap() {
            return all;
        }
    }
}

pub(super) fn remove_below(fs: &FileSystem, dir: Node) {
    let root = Credentials::root();
    for (name, node) in listing(fs, dir) {
        if fs.attr(node).unwrap().kind == Kind::Directory {
            remove_below(fs, node);
        }
        fs.remove(&root, dir, &name, RemoveKind::Any, at(0)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn the_file_system_does_what_the_model_does(ops in vec(op(), 1..80)) {
        let mut model = Model::new();
        for op in &ops {
            model.step(op);
        }
        model.compare();
        model.remove_all();
    }
}
