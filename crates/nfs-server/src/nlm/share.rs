//! DOS share modes of NLM clients.

use std::net::IpAddr;

use benchmaster_nfs_proto::nlm::{FshAccess, FshMode, NlmStats, Share};
use hashbrown::HashMap;
use parking_lot::Mutex;

use crate::handle::FileId;
use crate::state::account::Accounts;
use crate::state::nlm_lock::NlmHost;

/// Shares by file, and how many each host has.
#[derive(Debug)]
pub(crate) struct Shares(Mutex<Table>);

#[derive(Debug)]
struct Table {
    files: HashMap<FileId, Vec<ShareEntry>>,
    hosts: Accounts<IpAddr>,
}

#[derive(Debug)]
struct ShareEntry {
    host: NlmHost,
    oh: Box<[u8]>,
    mode: FshMode,
    access: FshAccess,
}

/// Most shares, and the part of them that one host may have.
const MOST: u64 = 16_384;
const HOST_SHARE: u64 = 4;

impl Default for Shares {
    fn default() -> Self {
        Self(Mutex::new(Table { files: HashMap::new(), hosts: Accounts::new(MOST, HOST_SHARE) }))
    }
}

impl Shares {
    /// Takes a share, or changes that of the same owner; DENIED when another is in the way.
    pub(super) fn take(&self, file: FileId, host: NlmHost, share: &Share<'_>) -> Result<(), NlmStats> {
        let Table { files, hosts } = &mut *self.0.lock();
        let held = files.get_mut(&file).map_or(&mut [][..], |held| held);
        let conflict =
            |other: &ShareEntry| denies(other.mode, share.access) || denies(share.mode, other.access);
        if held.iter().any(|other| !other.is(&host, share) && conflict(other)) {
            return Err(NlmStats::DENIED);
        }
        if let Some(own) = held.iter_mut().find(|other| other.is(&host, share)) {
            (own.mode, own.access) = (share.mode, share.access);
        } else if hosts.left(&host.address) == 0 {
            return Err(NlmStats::DENIED_NOLOCKS);
        } else {
            hosts.take(host.address, 1);
            let entry = ShareEntry { host, oh: share.oh.0.into(), mode: share.mode, access: share.access };
            files.entry(file).or_default().push(entry);
        }
        Ok(())
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
        let Table { files, hosts } = &mut *self.0.lock();
        files.retain(|file, held| {
            held.retain(|held| {
                let kept = keep(*file, held);
                hosts.give_back(&held.host.address, u64::from(!kept));
                kept
            });
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
        let take = |from, mode, access| shares.take(FILE, host(from), &share(mode, access)).is_ok();
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
        assert!(shares.0.lock().files.len() == 1);
    }

    #[test]
    fn a_host_has_a_part_of_all_shares() {
        let shares = Shares::default();
        let take = |from, ino| {
            let file = FileId { ino, ..FILE };
            shares.take(file, host(from), &share(FshMode::DenyNone, FshAccess::Read))
        };
        assert!((0..MOST / HOST_SHARE).all(|ino| take(1, ino).is_ok()));
        assert_eq!(take(1, 1 << 40), Err(NlmStats::DENIED_NOLOCKS));
        assert_eq!((take(1, 0), take(2, 1 << 40)), (Ok(()), Ok(())));
        shares.free_all(&host(1));
        assert_eq!(take(1, 1 << 40), Ok(()));
        assert_eq!(shares.0.lock().hosts.used(), 2);
    }
}
