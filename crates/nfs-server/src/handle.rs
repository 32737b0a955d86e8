//! File handles: 32 opaque bytes, the same for all versions (NFS v2 allows no other length).

use std::hash::{Hash, Hasher};

use crate::fs::Node;

/// Length of every handle.
pub const HANDLE_LEN: usize = 32;

/// A file of the server: which export, which inode, which incarnation of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId {
    /// Index in [`crate::exports::Exports`]; 0 is the pseudo file system (or the only export, when it is `/`).
    pub export: u32,
    /// Inode number within the export.
    pub ino: u64,
    /// Counts the uses of that inode number.
    pub generation: u32,
}

impl FileId {
    /// A file of an export.
    pub fn new(export: u32, node: Node) -> Self {
        Self { export, ino: node.ino, generation: node.generation }
    }
}

/// Bytes that are no handle of this server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no file handle of this server")]
pub struct BadHandle;

const MAGIC: u32 = 0xb0a7_0001;

/// Encodes a handle: magic, instance, export, inode, generation, and a check sum that tells a damaged handle
/// (BADHANDLE) from one whose file is gone (STALE). `instance` is the server's own number, kept over restarts with
/// state.
pub fn encode(instance: u32, id: FileId) -> [u8; HANDLE_LEN] {
    let mut out = [0; HANDLE_LEN];
    out[0..4].copy_from_slice(&MAGIC.to_be_bytes());
    out[4..8].copy_from_slice(&instance.to_be_bytes());
    out[8..12].copy_from_slice(&id.export.to_be_bytes());
    out[12..20].copy_from_slice(&id.ino.to_be_bytes());
    out[20..24].copy_from_slice(&id.generation.to_be_bytes());
    let sum = check_sum(&out[..24]);
    out[24..32].copy_from_slice(&sum.to_be_bytes());
    out
}

/// What a handle's bytes mean: the instance that made it, and the file.
pub fn decode(bytes: &[u8]) -> Result<(u32, FileId), BadHandle> {
    let bytes: &[u8; HANDLE_LEN] = bytes.try_into().map_err(|_| BadHandle)?;
    let word = |at: usize| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let long = |at: usize| u64::from(word(at)) << 32 | u64::from(word(at + 4));
    if word(0) != MAGIC || long(24) != check_sum(&bytes[..24]) {
        return Err(BadHandle);
    }
    Ok((word(4), FileId { export: word(8), ino: long(12), generation: word(20) }))
}

fn check_sum(bytes: &[u8]) -> u64 {
    // FNV-1a by words: the sum guards against damage, not against forgers.
    let mut sum = Fnv(0xcbf2_9ce4_8422_2325);
    bytes.chunks(8).for_each(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_be_bytes(word).hash(&mut sum);
    });
    sum.finish()
}

struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 29
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_comes_back_and_every_damaged_byte_is_noticed() {
        let id = FileId { export: 3, ino: u64::MAX - 5, generation: 77 };
        let handle = encode(9, id);
        assert_eq!(decode(&handle), Ok((9, id)));
        for at in 0..HANDLE_LEN {
            let mut damaged = handle;
            damaged[at] ^= 0x10;
            assert_eq!(decode(&damaged), Err(BadHandle), "byte {at}");
        }
        assert_eq!(decode(&handle[..31]), Err(BadHandle));
        assert_eq!(decode(&[]), Err(BadHandle));
    }
}
