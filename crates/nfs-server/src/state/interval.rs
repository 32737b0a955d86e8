//! Intervals that may overlap, each with an owner: which of them meet a range is found in logarithmic time. A treap
//! ordered by first byte and owner, each node knowing the last byte reached below it.

/// Bytes from `first` to `last`, both included; to [`u64::MAX`] means to the end of the file, however long it becomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// First byte.
    pub first: u64,
    /// Last byte.
    pub last: u64,
}

impl Range {
    /// From offset and length as NFSv4 has them: all ones means to the end; a length of 0 or an end beyond 64 bits is
    /// no range (RFC 7530 §16.10.4, RFC 8881 §18.10.3).
    pub(crate) fn new(offset: u64, length: u64) -> Option<Self> {
        let last = match length {
            0 => return None,
            u64::MAX => u64::MAX,
            _ => offset.checked_add(length)? - 1,
        };
        Some(Self { first: offset, last })
    }

    /// The length that [`Range::new`] takes.
    pub(crate) fn length(&self) -> u64 {
        if self.last == u64::MAX { u64::MAX } else { self.last - self.first + 1 }
    }

    /// The length as NLM has it: 0 means to the end.
    pub(crate) fn nlm_length(&self) -> u64 {
        if self.last == u64::MAX { 0 } else { self.length() }
    }

    /// Whether a byte is in both.
    pub(crate) fn meets(&self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }
}

const NIL: u32 = u32::MAX;

/// The intervals of all owners; an owner's own do not overlap.
#[derive(Debug)]
pub(super) struct Intervals {
    nodes: Vec<Node>,
    free: Vec<u32>,
    root: u32,
    seed: u64,
}

#[derive(Debug, Clone, Copy)]
struct Node {
    first: u64,
    last: u64,
    owner: u32,
    /// Greatest `last` in this subtree.
    reach: u64,
    weight: u32,
    left: u32,
    right: u32,
}

impl Default for Intervals {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: Vec::new(), root: NIL, seed: 0x9e37_79b9_7f4a_7c15 }
    }
}

impl Intervals {
    pub(super) fn insert(&mut self, owner: u32, range: Range) {
        let node = Node {
            first: range.first,
            last: range.last,
            owner,
            reach: range.last,
            weight: self.weight(),
            left: NIL,
            right: NIL,
        };
        let at = match self.free.pop() {
            Some(at) => at,
            None => {
                self.nodes.push(node);
                (self.nodes.len() - 1) as u32
            }
        };
        self.nodes[at as usize] = node;
        let (below, above) = self.split(self.root, (range.first, owner));
        let left = self.merge(below, at);
        self.root = self.merge(left, above);
    }

    /// Takes out the interval of `owner` that starts at `first`.
    pub(super) fn remove(&mut self, owner: u32, first: u64) {
        let (below, rest) = self.split(self.root, (first, owner));
        let (this, above) = match owner.checked_add(1) {
            Some(next) => self.split(rest, (first, next)),
            None => (rest, NIL),
        };
        if this != NIL {
            self.free.push(this);
        }
        self.root = self.merge(below, above);
    }

    /// The first interval that meets `range` and is not `owner`'s: its owner and extent.
    pub(super) fn meeting(&self, range: Range, owner: u32) -> Option<(u32, Range)> {
        self.find(self.root, range, owner)
    }

    /// Whether there are none.
    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.root == NIL
    }

    fn find(&self, at: u32, range: Range, owner: u32) -> Option<(u32, Range)> {
        let node = self.nodes.get(at as usize)?;
        if node.reach < range.first {
            return None;
        }
        if let found @ Some(_) = self.find(node.left, range, owner) {
            return found;
        }
        if node.first > range.last {
            return None;
        }
        if node.last >= range.first && node.owner != owner {
            return Some((node.owner, Range { first: node.first, last: node.last }));
        }
        self.find(node.right, range, owner)
    }

    /// Splits a subtree into what is before `key` and what is not.
    fn split(&mut self, at: u32, key: (u64, u32)) -> (u32, u32) {
        let Some(node) = self.nodes.get(at as usize).copied() else { return (NIL, NIL) };
        if (node.first, node.owner) < key {
            let (left, right) = self.split(node.right, key);
            self.nodes[at as usize].right = left;
            self.update(at);
            (at, right)
        } else {
            let (left, right) = self.split(node.left, key);
            self.nodes[at as usize].left = right;
            self.update(at);
            (left, at)
        }
    }

    fn merge(&mut self, left: u32, right: u32) -> u32 {
        if left == NIL || right == NIL {
            return if left == NIL { right } else { left };
        }
        let (l, r) = (self.nodes[left as usize], self.nodes[right as usize]);
        if l.weight > r.weight {
            self.nodes[left as usize].right = self.merge(l.right, right);
            self.update(left);
            left
        } else {
            self.nodes[right as usize].left = self.merge(left, r.left);
            self.update(right);
            right
        }
    }

    fn update(&mut self, at: u32) {
        let reach = |at: u32| self.nodes.get(at as usize).map_or(0, |node| node.reach);
        let node = self.nodes[at as usize];
        self.nodes[at as usize].reach = node.last.max(reach(node.left)).max(reach(node.right));
    }

    /// Weights from a fixed sequence keep the tree balanced whatever the order of insertion, and runs repeatable.
    fn weight(&mut self) -> u32 {
        self.seed ^= self.seed << 13;
        self.seed ^= self.seed >> 7;
        self.seed ^= self.seed << 17;
        (self.seed >> 32) as u32
    }
}
