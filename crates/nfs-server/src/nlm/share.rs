//! DOS share modes of NLM clients.

use benchmaster_nfs_proto::nlm::{FshAccess, FshMode, Share};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::handle::FileId;
use crate::state::nlm_lock::NlmHost;

/// Shares by file.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    files: Mutex<HashMap<FileId, Vec<ShareEntry>>>,
}

#[derive(Debug)]
struct ShareEntry {
    host: NlmHost,
    oh: Box<[u8]>,
    mode: FshMode,
    access: FshAccess,
}

/// Most shares of one file, and most files with shares.
const MOST_SHARES: usize = 1024;
const MOST_FILES: usize = 16_384;

impl Shares {
    /// Takes a share, or changes that of the same owner; `false` when another is in the way.
    pub(super) fn take(&self, file: FileId, host: NlmHost, share: &Share<'_>) -> bool {
        let mut files = self.files.lock();
        if files.len() >= MOST_FILES && !files.contains_key(&file) {
            return false;
        }
        let held = files.entry(file).or_default();
        let conflict =
            |other: &ShareEntry| denies(other.mode, share.access) || denies(share.mode, other.access);
        if held.iter().any(|other| !other.is(&host, share) && conflict(other)) || held.len() >= MOST_SHARES {
            return false;
        }
        held.retain(|other| !other.is(&host, share));
        held.push(ShareEntry { host, oh: share.oh.0.into(), mode: share.mode, access: share.access });
        true
    }

    /// Gives the share of this owner back.
    pub(super) fn release(&self, file: FileId, host: &NlmHost, share: &Share<'_>) {
        self.retain(|at, held| at != file || !held.is(host, share));
    }

    /// Drops all shares of a machine.
    pub(super) fn free_all(&self, host: &NlmHost) {
        self.retain(|_, held| held.host != *host);
    }

    fn retain(&self, keep: impl Fn(FileId, &ShareEntry) -> bool) {
        self.files.lock().retain(|file, held| {
            held.retain(|held| keep(*file, held));
            !held.is_empty()
        });
    }
}

impl ShareEntry {
    fn is(&self, host: &NlmHost, share: &Share<'_>) -> bool {
        self.host == *host && *self.oh == *share.oh.0
    }
}

fn denies(mode: FshMode, access: FshAccess) -> bool {
    let (read, write) = match mode {
        FshMode::DenyNone => (false, false),
        FshMode::DenyRead => (true, false),
        FshMode::DenyWrite => (false, true),
        FshMode::DenyBoth => (true, true),
    };
    read && reads(access) || write && writes(access)
}

/// Whether a share is for reading.
pub(super) fn reads(access: FshAccess) -> bool {
    matches!(access, FshAccess::Read | FshAccess::Both)
}

/// Whether a share is for writing.
pub(super) fn writes(access: FshAccess) -> bool {
    matches!(access, FshAccess::Write | FshAccess::Both)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: FileId = FileId { export: 0, ino: 5, generation: 1 };

    fn share(mode: FshMode, access: FshAccess) -> Share<'static> {
        Share { caller_name: "machine".into(), fh: "".into(), oh: "owner".into(), mode, access }
    }

    fn host(last: u8) -> NlmHost {
        NlmHost { address: [127, 0, 0, last].into(), name: b"machine"[..].into() }
    }

    #[test]
    fn shares_conflict_in_both_directions_and_with_others_only() {
        let shares = Shares::default();
        let take = |from, mode, access| shares.take(FILE, host(from), &share(mode, access));
        assert!(take(1, FshMode::DenyWrite, FshAccess::Read));
        assert!(take(2, FshMode::DenyNone, FshAccess::Read));
        assert!(!take(3, FshMode::DenyNone, FshAccess::Write));
        assert!(!take(3, FshMode::DenyRead, FshAccess::None));
        // The same owner may change its mind.
        assert!(!take(1, FshMode::DenyBoth, FshAccess::Both));
        shares.free_all(&host(2));
        assert!(take(1, FshMode::DenyBoth, FshAccess::Both));
        // The name of another address is no key to its shares.
        shares.free_all(&host(3));
        shares.release(FILE, &host(3), &share(FshMode::DenyNone, FshAccess::None));
        assert!(!take(3, FshMode::DenyBoth, FshAccess::Write));
        shares.release(FILE, &host(1), &share(FshMode::DenyNone, FshAccess::None));
        assert!(take(3, FshMode::DenyBoth, FshAccess::Write));
        assert!(shares.files.lock().len() == 1);
    }

    #[test]
    fn files_with_shares_are_bounded() {
        let shares = Shares::default();
        let take = |ino| {
            let file = FileId { ino, ..FILE };
            shares.take(file, host(1), &share(FshMode::DenyNone, FshAccess::Read))
        };
        assert!((0..MOST_FILES as u64).all(take));
        assert!(!take(1 << 40) && take(0));
    }
}
