//! Access control lists of NFSv4 (RFC 7530 §6, RFC 8881 §6): who may what by them, the mode they amount to, what a new mode makes
//! of them, and what new files inherit. A file without one has the list that says what its mode says.

use std::sync::Arc;

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use benchmaster_nfs_proto::v4::{
    ACE_APPEND_DATA, ACE_DELETE, ACE_DELETE_CHILD, ACE_DIRECTORY_INHERIT, ACE_EXECUTE, ACE_FILE_INHERIT,
    ACE_INHERIT_ONLY, ACE_INHERITED, ACE_NO_PROPAGATE, ACE_READ_ACL, ACE_READ_ATTRIBUTES, ACE_READ_DATA,
    ACE_SYNCHRONIZE, ACE_WRITE_ACL, ACE_WRITE_ATTRIBUTES, ACE_WRITE_DATA, ACE_WRITE_OWNER, ACL_AUTO_INHERIT,
    ACL_PROTECTED,
};

use super::access;
use crate::cred::Credentials;

/// Most entries that a list is set with.
pub const ACES_MAX: usize = 256;

/// What everyone may, and what the owner may besides, whatever the mode.
const ANYONE: u32 = ACE_READ_ATTRIBUTES | ACE_READ_ACL | ACE_SYNCHRONIZE;
const ALWAYS_OWNER: u32 = ACE_WRITE_ATTRIBUTES | ACE_WRITE_ACL;
/// What the bits of a mode speak of.
const OF_MODE: u32 = ACE_READ_DATA | ACE_WRITE_DATA | ACE_APPEND_DATA | ACE_EXECUTE;
/// How entries are inherited.
const INHERITANCE: u32 = ACE_FILE_INHERIT | ACE_DIRECTORY_INHERIT | ACE_NO_PROPAGATE | ACE_INHERIT_ONLY;
/// Bytes that a list counts, and each entry.
const COST: u64 = 64;
const ACE_COST: u64 = 20;

/// Whom an entry is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    /// The file's owner.
    Owner,
    /// Members of the file's group.
    Group,
    /// All, the owner too.
    Everyone,
    /// A user.
    User(u32),
    /// Members of a group.
    Members(u32),
}

/// An entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ace {
    /// Whether it denies; else it allows.
    pub deny: bool,
    /// `ACE_` flags of inheritance.
    pub flags: u32,
    /// Rights, `ACE_` bits.
    pub mask: u32,
    /// For whom.
    pub who: Who,
}

/// A list: the first entry that speaks of a right decides; what none speaks of is denied (RFC 8881 §6.2.1).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acl {
    /// `ACL_` flags (RFC 8881 §6.4.3.2).
    pub flags: u32,
    /// Entries, in order.
    pub aces: Box<[Ace]>,
}

impl Ace {
    /// Whether it says something about the file itself.
    fn is_effective(&self) -> bool {
        self.flags & ACE_INHERIT_ONLY == 0
    }

    fn is_special(&self) -> bool {
        matches!(self.who, Who::Owner | Who::Group | Who::Everyone)
    }
}

/// Bits of a mode's class (`rwx`) as an access mask.
fn mask_of(class: u32, directory: bool) -> u32 {
    let write = ACE_WRITE_DATA | ACE_APPEND_DATA | if directory { ACE_DELETE_CHILD } else { 0 };
    [(4, ACE_READ_DATA), (2, write), (1, ACE_EXECUTE)]
        .iter()
        .filter(|(bit, _)| class & bit != 0)
        .fold(0, |mask, (_, bits)| mask | bits)
}

/// An access mask as bits of a mode's class (RFC 8881 §6.3.2).
fn class_of(mask: u32) -> u32 {
    [(4, ACE_READ_DATA), (2, ACE_WRITE_DATA | ACE_APPEND_DATA), (1, ACE_EXECUTE)]
        .iter()
        .filter(|(_, bits)| mask & bits == *bits)
        .fold(0, |class, (bit, _)| class | bit)
}

/// The entries that say what `mode` says: first what is the owner's, then the group's and everyone's.
fn entries_of(mode: u32, directory: bool) -> (Vec<Ace>, Vec<Ace>) {
    let [owner, group, other] = [6, 3, 0].map(|shift| mode >> shift & 7);
    let ace = |deny, mask, who| Ace { deny, flags: 0, mask, who };
    let denied = |class, who| (class != 0).then(|| ace(true, mask_of(class, directory), who));
    // Later entries would grant the owner what only group or others may, and the group what only others may.
    let mut first = Vec::from_iter(denied((group | other) & !owner, Who::Owner));
    first.push(ace(false, mask_of(owner, directory) | ANYONE | ALWAYS_OWNER, Who::Owner));
    let mut last = Vec::from_iter(denied(other & !group, Who::Group));
    last.push(ace(false, mask_of(group, directory) | ANYONE, Who::Group));
    last.push(ace(false, mask_of(other, directory) | ANYONE, Who::Everyone));
    (first, last)
}

impl Acl {
    /// The list that says what `mode` says.
    pub fn of_mode(mode: u32, directory: bool) -> Self {
        let (mut aces, last) = entries_of(mode, directory);
        aces.extend(last);
        Self { flags: 0, aces: aces.into() }
    }

    /// What the entries for these allow.
    fn allowed(&self, concerns: impl Fn(Who) -> bool) -> u32 {
        self.decide(concerns).0
    }

    /// What the entries for these allow and deny.
    fn decide(&self, concerns: impl Fn(Who) -> bool) -> (u32, u32) {
        let (mut allowed, mut denied) = (0, 0);
        for ace in self.aces.iter().filter(|ace| ace.is_effective() && concerns(ace.who)) {
            let open = if is_broken(Mutant::LastEntryDecides) {
                (allowed, denied) = (allowed & !ace.mask, denied & !ace.mask);
                ace.mask
            } else {
                ace.mask & !allowed & !denied
            };
            *(if ace.deny { &mut denied } else { &mut allowed }) |= open;
        }
        (allowed, denied)
    }

    /// The nine permission bits that the list amounts to (RFC 8881 §6.3.2).
    pub fn mode(&self) -> u32 {
        let class = |of| class_of(self.allowed(|who| who == of || who == Who::Everyone));
        class(Who::Owner) << 6 | class(Who::Group) << 3 | class(Who::Everyone)
    }

    /// What `who` is allowed and denied on a file of this owner and group.
    fn of(&self, who: &Credentials, uid: u32, gid: u32) -> (u32, u32) {
        self.decide(|entry| match entry {
            Who::Owner => who.uid == uid,
            Who::Group => who.in_group(gid),
            Who::Everyone => true,
            Who::User(user) => who.uid == user,
            Who::Members(group) => who.in_group(group),
        })
    }

    /// Whether it gives `who` all of `wanted` (bits of [`access`]) on a file of this owner and group.
    pub(super) fn permits(&self, who: &Credentials, uid: u32, gid: u32, wanted: u32) -> bool {
        let (mut allowed, denied) = self.of(who, uid, gid);
        // Where nothing is said about removing entries, whoever adds may remove (RFC 8881 §6.2.1.3.2).
        if (allowed | denied) & ACE_DELETE_CHILD == 0 && allowed & ACE_WRITE_DATA != 0 {
            allowed |= ACE_DELETE_CHILD;
        }
        RIGHTS.iter().all(|(right, mask)| wanted & right == 0 || allowed & mask != 0)
    }

    /// Whether anyone may execute the file: then the superuser may.
    pub(super) fn lets_execute(&self) -> bool {
        self.aces.iter().any(|ace| !ace.deny && ace.is_effective() && ace.mask & ACE_EXECUTE != 0)
    }

    /// The list after the mode was set (RFC 8881 §6.4.1.1): owner, group and others get what the mode says, others that are
    /// named no more than the group, and what is only inherited stays.
    pub(super) fn with_mode(&self, mode: u32, directory: bool) -> Self {
        if is_broken(Mutant::ModeLeavesAcl) {
            return self.clone();
        }
        let gone = OF_MODE | if directory { ACE_DELETE_CHILD } else { 0 };
        let group = mask_of(mode >> 3 & 7, directory);
        let (mut aces, last) = entries_of(mode, directory);
        let mut inherited = Vec::new();
        for ace in &self.aces {
            let inheritable = ace.flags & (ACE_FILE_INHERIT | ACE_DIRECTORY_INHERIT) != 0;
            if inheritable {
                inherited.push(Ace { flags: ace.flags | ACE_INHERIT_ONLY, ..*ace });
            }
            if !ace.is_effective() {
                continue;
            }
            let mask = match (ace.is_special(), ace.deny) {
                (true, _) => ace.mask & !gone & !ANYONE & !ALWAYS_OWNER,
                (false, false) => ace.mask & (!gone | group),
                (false, true) => ace.mask,
            };
            if mask != 0 {
                aces.push(Ace { flags: ace.flags & !INHERITANCE, mask, ..*ace });
            }
        }
        aces.extend(last);
        aces.extend(inherited);
        // Inherited entries did not stay as they were (RFC 8881 §6.4.3.2).
        Self { flags: self.flags | ACL_PROTECTED, aces: aces.into() }
    }

    /// What a new file or directory inherits (RFC 8881 §6.4.3.1); `None` when nothing can be.
    pub(super) fn inherited(&self, directory: bool) -> Option<Self> {
        let aces: Box<[Ace]> = self.aces.iter().filter_map(|ace| inherited(ace, directory)).collect();
        (!aces.is_empty()).then_some(Self { flags: self.flags & ACL_AUTO_INHERIT, aces })
    }

    /// The list as it is kept: not at all, where it says what the mode says.
    pub(super) fn kept(self: &Arc<Self>, directory: bool) -> Option<Arc<Self>> {
        (**self != Self::of_mode(self.mode(), directory)).then(|| Arc::clone(self))
    }

    /// Bytes that it counts against the limit of the file system.
    pub(super) fn cost(&self) -> u64 {
        COST + ACE_COST * self.aces.len() as u64
    }
}

fn inherited(ace: &Ace, directory: bool) -> Option<Ace> {
    let (file, dir) = (ace.flags & ACE_FILE_INHERIT != 0, ace.flags & ACE_DIRECTORY_INHERIT != 0);
    let stops = ace.flags & ACE_NO_PROPAGATE != 0;
    let own = ace.flags & !INHERITANCE | ACE_INHERITED;
    let passed_on = ace.flags & !ACE_INHERIT_ONLY | ACE_INHERITED;
    let flags = match (directory, file, dir, stops) {
        (false, true, _, _) => own,
        (false, false, _, _) | (true, false, false, _) | (true, true, false, true) => return None,
        (true, _, true, true) if !is_broken(Mutant::InheritanceGoesOn) => own,
        (true, _, true, _) => passed_on,
        (true, true, false, false) if is_broken(Mutant::FileEntriesBindDirectories) => passed_on,
        (true, true, false, false) => passed_on | ACE_INHERIT_ONLY,
    };
    Some(Ace { flags, ..*ace })
}

/// What each right of [`access`] is in a list.
const RIGHTS: [(u32, u32); 9] = [
    (access::READ, ACE_READ_DATA),
    (access::WRITE, ACE_WRITE_DATA),
    (access::EXECUTE, ACE_EXECUTE),
    (access::ADD_DIRECTORY, ACE_APPEND_DATA),
    (access::REMOVE_ENTRY, ACE_DELETE_CHILD),
    (access::REMOVE, ACE_DELETE),
    (access::SET_TIMES, ACE_WRITE_ATTRIBUTES),
    (access::SET_ACL, ACE_WRITE_ACL),
    (access::TAKE, ACE_WRITE_OWNER),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn ace(deny: bool, mask: u32, who: Who) -> Ace {
        Ace { deny, flags: 0, mask, who }
    }

    fn acl(aces: &[Ace]) -> Acl {
        Acl { flags: 0, aces: aces.into() }
    }

    fn user(uid: u32, gid: u32) -> Credentials {
        Credentials { uid, gid, ..Credentials::root() }
    }

    #[test]
    fn every_mode_survives_as_a_list() {
        for directory in [false, true] {
            for mode in 0..0o1000 {
                let list = Acl::of_mode(mode, directory);
                assert_eq!(list.mode(), mode, "{mode:o}");
                assert_eq!(Arc::new(list).kept(directory), None, "{mode:o}");
            }
        }
    }

    #[test]
    fn the_mode_is_of_owner_group_and_everyone() {
        let all = u32::MAX;
        for (aces, expected) in [
            (&[][..], 0),
            (&[ace(false, all, Who::Everyone)], 0o777),
            (&[ace(false, all, Who::User(1000)), ace(false, ACE_READ_DATA, Who::Everyone)], 0o444),
            (&[ace(true, ACE_READ_DATA, Who::User(1000)), ace(false, all, Who::Everyone)], 0o777),
            (&[ace(true, ACE_READ_DATA, Who::Group), ace(false, all, Who::Everyone)], 0o737),
            (&[ace(false, ACE_WRITE_DATA, Who::Owner)], 0),
        ] {
            assert_eq!(acl(aces).mode(), expected, "{aces:?}");
        }
    }

    #[test]
    fn the_first_entry_that_speaks_of_a_right_decides() {
        let list = acl(&[
            ace(true, ACE_READ_DATA, Who::User(5)),
            ace(false, ACE_READ_DATA | ACE_WRITE_DATA, Who::Members(7)),
            ace(false, ACE_READ_DATA, Who::Everyone),
        ]);
        let may = |uid, gid, wanted| list.permits(&user(uid, gid), 1, 2, wanted);
        assert!(!may(5, 7, access::READ));
        assert!(may(5, 7, access::WRITE));
        assert!(may(6, 7, access::READ | access::WRITE));
        assert!(may(6, 8, access::READ) && !may(6, 8, access::WRITE));
        // Of removing nothing is said: who adds may remove.
        assert!(may(6, 7, access::REMOVE_ENTRY) && !may(6, 8, access::REMOVE_ENTRY));
    }

    #[test]
    fn any_mode_after_any_list_is_the_mode() {
        let list = acl(&[
            ace(false, u32::MAX, Who::User(5)),
            ace(true, ACE_EXECUTE | ACE_DELETE, Who::Owner),
            Ace { flags: ACE_DIRECTORY_INHERIT, ..ace(false, u32::MAX, Who::Everyone) },
            Ace { flags: ACE_FILE_INHERIT | ACE_INHERIT_ONLY, ..ace(true, u32::MAX, Who::Group) },
        ]);
        for directory in [false, true] {
            for mode in 0..0o1000 {
                let once = list.with_mode(mode, directory);
                assert_eq!(once.mode(), mode, "{mode:o}");
                let group = mode >> 3 & 7;
                for right in [access::READ, access::WRITE, access::EXECUTE] {
                    let may = once.permits(&user(5, 9), 1, 2, right);
                    assert_eq!(may, (group | mode) & right != 0, "{mode:o} {right}");
                }
                // What is inherited stays, and nothing grows.
                let passed_on = |list: &Acl| list.inherited(true).map(|list| list.aces);
                assert_eq!(passed_on(&once), passed_on(&list));
                assert_eq!(once.with_mode(mode, directory).aces.len(), once.aces.len(), "{mode:o}");
            }
        }
    }

    #[test]
    fn entries_are_inherited_as_their_flags_say() {
        const FILE: u32 = ACE_FILE_INHERIT;
        const DIR: u32 = ACE_DIRECTORY_INHERIT;
        const ONLY: u32 = ACE_INHERIT_ONLY;
        const STOP: u32 = ACE_NO_PROPAGATE;
        for (flags, file, directory) in [
            (0, None, None),
            (FILE, Some(0), Some(FILE | ONLY)),
            (DIR, None, Some(DIR)),
            (FILE | DIR | ONLY, Some(0), Some(FILE | DIR)),
            (FILE | STOP, Some(0), None),
            (DIR | STOP | ONLY, None, Some(0)),
        ] {
            let list = acl(&[Ace { flags, ..ace(false, 1, Who::Everyone) }]);
            let got = |directory| list.inherited(directory).map(|it| it.aces[0].flags & !ACE_INHERITED);
            assert_eq!((got(false), got(true)), (file, directory), "{flags:x}");
        }
    }
}
