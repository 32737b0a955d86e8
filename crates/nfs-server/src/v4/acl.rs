//! The ACL of a file is another form of its mode (RFC 8881 §6.3 and §6.4): read, it is the list that grants what the
//! mode grants; set, it becomes the mode that grants what the list grants to owner, group and everyone else.
//!
//! Entries for other principals cannot be kept. What they allow is lost and what they deny is denied to all: a server
//! that cannot follow is to err towards less access (RFC 8881 §6.2.1).

use benchmaster_nfs_proto::v4::{
    ACE_APPEND_DATA, ACE_DELETE_CHILD, ACE_EXECUTE, ACE_IDENTIFIER_GROUP, ACE_INHERIT_ONLY, ACE_READ_ACL,
    ACE_READ_ATTRIBUTES, ACE_READ_DATA, ACE_SYNCHRONIZE, ACE_WRITE_ACL, ACE_WRITE_ATTRIBUTES, ACE_WRITE_DATA,
    Acetype4, Nfsace4, Nfsstat4,
};
use benchmaster_nfs_proto::xdr::{Encoder, List};
use smallvec::SmallVec;

use super::Failure;
use super::names::number;

const OWNER: &[u8] = b"OWNER@";
const GROUP: &[u8] = b"GROUP@";
const EVERYONE: &[u8] = b"EVERYONE@";

/// What everyone may, and what the owner may besides, whatever the mode.
const ANYONE: u32 = ACE_READ_ATTRIBUTES | ACE_READ_ACL | ACE_SYNCHRONIZE;
const ALWAYS_OWNER: u32 = ACE_WRITE_ATTRIBUTES | ACE_WRITE_ACL;

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

/// Appends the ACL that says what `mode` says.
pub(crate) fn put(e: &mut Encoder, mode: u32, directory: bool) {
    let [owner, group, other] = [6, 3, 0].map(|shift| mode >> shift & 7);
    let ace = |ace_type, flag, access_mask, who: &'static [u8]| Nfsace4 {
        ace_type,
        flag,
        access_mask,
        who: who.into(),
    };
    let mut aces: SmallVec<[Nfsace4<'static>; 5]> = SmallVec::new();
    // Later entries would grant the owner what only group or others may, and the group what only others may.
    let not_owner = (group | other) & !owner;
    if not_owner != 0 {
        aces.push(ace(Acetype4::ACCESS_DENIED, 0, mask_of(not_owner, directory), OWNER));
    }
    aces.push(ace(Acetype4::ACCESS_ALLOWED, 0, mask_of(owner, directory) | ANYONE | ALWAYS_OWNER, OWNER));
    let not_group = other & !group;
    if not_group != 0 {
        aces.push(ace(Acetype4::ACCESS_DENIED, ACE_IDENTIFIER_GROUP, mask_of(not_group, directory), GROUP));
    }
    let allowed = Acetype4::ACCESS_ALLOWED;
    aces.push(ace(allowed, ACE_IDENTIFIER_GROUP, mask_of(group, directory) | ANYONE, GROUP));
    aces.push(ace(allowed, 0, mask_of(other, directory) | ANYONE, EVERYONE));
    e.put(&List::<Nfsace4<'_>>::Items(&aces));
}

/// The nine permission bits that an ACL amounts to. ATTRNOTSUPP for entries that audit or alarm, BADOWNER for
/// principals that are neither special nor numbers.
pub(crate) fn mode(acl: &List<'_, Nfsace4<'_>>) -> Result<u32, Failure> {
    let (mut allowed, mut denied) = ([0u32; 3], [0u32; 3]);
    for ace in acl.iter() {
        let deny = match ace.ace_type {
            Acetype4::ACCESS_ALLOWED => false,
            Acetype4::ACCESS_DENIED => true,
            _ => return Err(Nfsstat4::ATTRNOTSUPP.into()),
        };
        let classes = match ace.who.0 {
            OWNER => [true, false, false],
            GROUP => [false, true, false],
            EVERYONE => [true; 3],
            _ => {
                number(ace.who)?;
                [deny; 3]
            }
        };
        if ace.flag & ACE_INHERIT_ONLY != 0 {
            continue;
        }
        for class in 0..3 {
            if classes[class] {
                // The first entry that speaks of a bit decides.
                let open = ace.access_mask & !allowed[class] & !denied[class];
                *(if deny { &mut denied[class] } else { &mut allowed[class] }) |= open;
            }
        }
    }
    Ok(class_of(allowed[0]) << 6 | class_of(allowed[1]) << 3 | class_of(allowed[2]))
}

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::xdr::Decoder;

    use super::*;

    #[test]
    fn every_mode_survives_as_an_acl() {
        for directory in [false, true] {
            for expected in 0..0o1000 {
                let mut e = Encoder::new();
                put(&mut e, expected, directory);
                let acl: List<'_, Nfsace4<'_>> = Decoder::new(e.buffer()).get().unwrap();
                assert_eq!(mode(&acl), Ok(expected), "{expected:o}");
            }
        }
    }

    #[test]
    fn foreign_entries_only_take_away() {
        let ace = |ace_type, access_mask, who: &'static str| Nfsace4 {
            ace_type,
            flag: 0,
            access_mask,
            who: who.into(),
        };
        let (allow, deny) = (Acetype4::ACCESS_ALLOWED, Acetype4::ACCESS_DENIED);
        let all = u32::MAX;
        for (aces, expected) in [
            (&[][..], Ok(0)),
            (&[ace(allow, all, "EVERYONE@")], Ok(0o777)),
            (&[ace(allow, all, "1000"), ace(allow, ACE_READ_DATA, "EVERYONE@")], Ok(0o444)),
            (&[ace(deny, ACE_READ_DATA, "1000"), ace(allow, all, "EVERYONE@")], Ok(0o333)),
            (&[ace(allow, ACE_WRITE_DATA, "OWNER@")], Ok(0)),
            (&[ace(allow, 0x1f, "joe@example.org")], Err(Nfsstat4::BADOWNER)),
            (&[ace(allow, 0x1f, "")], Err(Nfsstat4::INVAL)),
            (&[ace(Acetype4::SYSTEM_AUDIT, 1, "OWNER@")], Err(Nfsstat4::ATTRNOTSUPP)),
        ] {
            let got = mode(&List::Items(aces)).map_err(|failure| failure.status);
            assert_eq!(got, expected, "{aces:?}");
        }
    }
}
