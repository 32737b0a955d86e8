//! DOS share modes of NLM clients.

use benchmaster_nfs_proto::nlm::{FshAccess, FshMode, Share};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::handle::FileId;

/// Shares by file.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    files: Mutex<HashMap<FileId, Vec<ShareEntry>>>,
}

#[derive(Debug)]
struct ShareEntry {
    host: Box<[u8]>,
    oh: Box<[u8]>,
    mode: FshMode,
    access: FshAccess,
}

/// Most shares of one file.
const MOST_SHARES: usize = 1024;

impl Shares {
    /// Takes a share, or changes that of the same owner; `false` when another is in the way.
    pub(super) fn take(&self, file: FileId, share: &Share<'_>) -> bool {
        let mut files = self.files.lock();
        let held = files.entry(file).or_default();
        let conflict =
            |other: &ShareEntry| denies(other.mode, share.access) || denies(share.mode, other.access);
        if held.iter().any(|other| !other.is(share) && conflict(other)) || held.len() >= MOST_SHARES {
            return false;
        }
        held.retain(|other| !other.is(share));
        held.push(ShareEntry {
            host: share.caller_name.0.into(),
            oh: share.oh.0.into(),
            mode: share.mode,
            access: share.access,
        });
        true
    }

    /// Gives the share of this owner back.
    pub(super) fn release(&self, file: FileId, share: &Share<'_>) {
        self.retain(|at, held| at != file || !held.is(share));
    }

    /// Drops all shares of a machine.
    pub(super) fn free_all(&self, host: &[u8]) {
        self.retain(|_, held| *held.host != *host);
    }

    fn retain(&self, keep: impl Fn(FileId, &ShareEntry) -> bool) {
        self.files.lock().retain(|file, held| {
            held.retain(|held| keep(*file, held));
            !held.is_empty()
        });
    }
}

impl ShareEntry {
    fn is(&self, share: &Share<'_>) -> bool {
        *self.host == *share.caller_name.0 && *self.oh == *share.oh.0
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

    fn share(host: &'static str, mode: FshMode, access: FshAccess) -> Share<'static> {
        Share { caller_name: host.into(), fh: "".into(), oh: "owner".into(), mode, access }
    }

    #[test]
    fn shares_conflict_in_both_directions_and_with_others_only() {
        let shares = Shares::default();
        assert!(shares.take(FILE, &share("a", FshMode::DenyWrite, FshAccess::Read)));
        assert!(shares.take(FILE, &share("b", FshMode::DenyNone, FshAccess::Read)));
        assert!(!shares.take(FILE, &share("c", FshMode::DenyNone, FshAccess::Write)));
        assert!(!shares.take(FILE, &share("c", FshMode::DenyRead, FshAccess::None)));
        // The same owner may change its mind.
        assert!(!shares.take(FILE, &share("a", FshMode::DenyBoth, FshAccess::Both)));
        shares.free_all(b"b");
        assert!(shares.take(FILE, &share("a", FshMode::DenyBoth, FshAccess::Both)));
        shares.release(FILE, &share("a", FshMode::DenyNone, FshAccess::None));
        assert!(shares.take(FILE, &share("c", FshMode::DenyBoth, FshAccess::Write)));
        assert!(shares.files.lock().len() == 1);
    }
}
