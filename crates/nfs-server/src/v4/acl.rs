//! Access control lists on the wire: the attributes `acl` and `dacl` (RFC 7530 §6.2.1, RFC 8881 §6.2). Users and groups are
//! numbers, as owners are.

use std::sync::Arc;

use benchmaster_nfs_proto::v4::{
    ACE_APPEND_DATA, ACE_DELETE, ACE_DELETE_CHILD, ACE_DIRECTORY_INHERIT, ACE_EXECUTE, ACE_FILE_INHERIT,
    ACE_IDENTIFIER_GROUP, ACE_INHERIT_ONLY, ACE_INHERITED, ACE_NO_PROPAGATE, ACE_READ_ACL,
    ACE_READ_ATTRIBUTES, ACE_READ_DATA, ACE_READ_NAMED_ATTRS, ACE_SYNCHRONIZE, ACE_WRITE_ACL,
    ACE_WRITE_ATTRIBUTES, ACE_WRITE_DATA, ACE_WRITE_NAMED_ATTRS, ACE_WRITE_OWNER, ACE_WRITE_RETENTION,
    ACE_WRITE_RETENTION_HOLD, ACL_AUTO_INHERIT, ACL_DEFAULTED, ACL_PROTECTED, Acetype4, Nfsace4, Nfsacl41,
    Nfsstat4,
};
use benchmaster_nfs_proto::xdr::{Encoder, List};

use super::Failure;
use super::attrs::put_number;
use super::names::number;
use crate::fs::{ACES_MAX, Ace, Acl, Attr, Kind, Who};

const OWNER: &[u8] = b"OWNER@";
const GROUP: &[u8] = b"GROUP@";
const EVERYONE: &[u8] = b"EVERYONE@";

/// All rights there are.
const RIGHTS: u32 = ACE_READ_DATA
    | ACE_WRITE_DATA
    | ACE_APPEND_DATA
    | ACE_READ_NAMED_ATTRS
    | ACE_WRITE_NAMED_ATTRS
    | ACE_EXECUTE
    | ACE_DELETE_CHILD
    | ACE_READ_ATTRIBUTES
    | ACE_WRITE_ATTRIBUTES
    | ACE_WRITE_RETENTION
    | ACE_WRITE_RETENTION_HOLD
    | ACE_DELETE
    | ACE_READ_ACL
    | ACE_WRITE_ACL
    | ACE_WRITE_OWNER
    | ACE_SYNCHRONIZE;
const INHERITS: u32 = ACE_FILE_INHERIT | ACE_DIRECTORY_INHERIT;
/// Flags of entries that allow or deny.
const FLAGS: u32 = INHERITS | ACE_NO_PROPAGATE | ACE_INHERIT_ONLY | ACE_IDENTIFIER_GROUP | ACE_INHERITED;

/// Appends `acl`: the list of a file, or what its mode says.
pub(crate) fn put(e: &mut Encoder, attr: &Attr) {
    // Only `dacl` tells what was inherited (RFC 8881 §6.4.3.2).
    put_aces(e, attr, !ACE_INHERITED);
}

/// Appends `dacl`: the same with the flags of the whole.
pub(crate) fn put_dacl(e: &mut Encoder, attr: &Attr) {
    e.put(&attr.acl.as_ref().map_or(0, |acl| acl.flags));
    put_aces(e, attr, u32::MAX);
}

fn put_aces(e: &mut Encoder, attr: &Attr, flags: u32) {
    let of_mode;
    let aces = match &attr.acl {
        Some(acl) => &acl.aces,
        None => {
            of_mode = Acl::of_mode(attr.mode, attr.kind == Kind::Directory);
            &of_mode.aces
        }
    };
    e.put(&(aces.len() as u32));
    for ace in aces {
        let (group, special, number) = match ace.who {
            Who::Owner => (0, OWNER, 0),
            Who::Group => (0, GROUP, 0),
            Who::Everyone => (0, EVERYONE, 0),
            Who::User(user) => (0, &b""[..], user),
            Who::Members(group) => (ACE_IDENTIFIER_GROUP, &b""[..], group),
        };
        e.put(&if ace.deny { Acetype4::ACCESS_DENIED } else { Acetype4::ACCESS_ALLOWED });
        e.put(&(ace.flags & flags | group));
        e.put(&ace.mask);
        if special.is_empty() { put_number(e, number) } else { e.opaque(special) }
    }
}

/// The list that `acl` sets. Who sets this one may not know of automatic inheritance (RFC 8881 §6.4.3.2).
pub(crate) fn of_acl(aces: &List<'_, Nfsace4<'_>>, directory: bool) -> Result<Arc<Acl>, Failure> {
    list(aces, ACL_PROTECTED, FLAGS & !ACE_INHERITED, directory)
}

/// The list that `dacl` sets.
pub(crate) fn of_dacl(dacl: &Nfsacl41<'_>, directory: bool) -> Result<Arc<Acl>, Failure> {
    if dacl.flag & !(ACL_AUTO_INHERIT | ACL_PROTECTED | ACL_DEFAULTED) != 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    list(&dacl.aces, dacl.flag, FLAGS, directory)
}

/// NOSPC for more entries than there is place for.
fn list(aces: &List<'_, Nfsace4<'_>>, flags: u32, kept: u32, directory: bool) -> Result<Arc<Acl>, Failure> {
    if aces.iter().nth(ACES_MAX).is_some() {
        return Err(Nfsstat4::NOSPC.into());
    }
    let aces: Result<Box<[Ace]>, Failure> = aces.iter().map(|ace| entry(&ace, kept, directory)).collect();
    Ok(Arc::new(Acl { flags, aces: aces? }))
}

/// ATTRNOTSUPP for entries that audit or alarm, and for inheritance that cannot be (RFC 8881 §6.2.1.4.1); INVAL for bits that
/// mean nothing; BADOWNER for principals that are neither special nor numbers.
fn entry(ace: &Nfsace4<'_>, kept: u32, directory: bool) -> Result<Ace, Failure> {
    let deny = match ace.ace_type {
        Acetype4::ACCESS_ALLOWED => false,
        Acetype4::ACCESS_DENIED => true,
        Acetype4::SYSTEM_AUDIT | Acetype4::SYSTEM_ALARM => return Err(Nfsstat4::ATTRNOTSUPP.into()),
        _ => return Err(Nfsstat4::INVAL.into()),
    };
    if ace.flag & !FLAGS != 0 || ace.access_mask & !RIGHTS != 0 {
        return Err(Nfsstat4::INVAL.into());
    }
    let for_none = ace.flag & ACE_INHERIT_ONLY != 0 && ace.flag & INHERITS == 0;
    if for_none || ace.flag & ACE_DIRECTORY_INHERIT != 0 && !directory {
        return Err(Nfsstat4::ATTRNOTSUPP.into());
    }
    let who = match ace.who.0 {
        OWNER => Who::Owner,
        GROUP => Who::Group,
        EVERYONE => Who::Everyone,
        _ if ace.flag & ACE_IDENTIFIER_GROUP != 0 => Who::Members(number(ace.who)?),
        _ => Who::User(number(ace.who)?),
    };
    Ok(Ace { deny, flags: ace.flag & kept & !ACE_IDENTIFIER_GROUP, mask: ace.access_mask, who })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_errors() {
        let ace = |ace_type, flag, access_mask, who: &'static str| Nfsace4 {
            ace_type,
            flag,
            access_mask,
            who: who.into(),
        };
        let (allow, deny) = (Acetype4::ACCESS_ALLOWED, Acetype4::ACCESS_DENIED);
        for (ace, expected) in [
            (ace(allow, ACE_IDENTIFIER_GROUP, RIGHTS, "GROUP@"), Ok(Who::Group)),
            (ace(deny, ACE_IDENTIFIER_GROUP, 1, "100"), Ok(Who::Members(100))),
            (ace(deny, 0, 1, "100"), Ok(Who::User(100))),
            (ace(allow, 0, 1, "joe@example.org"), Err(Nfsstat4::BADOWNER)),
            (ace(allow, 0, 1, ""), Err(Nfsstat4::INVAL)),
            (ace(allow, 0, 1 << 31, "OWNER@"), Err(Nfsstat4::INVAL)),
            (ace(allow, 1 << 8, 1, "OWNER@"), Err(Nfsstat4::INVAL)),
            (ace(Acetype4::SYSTEM_AUDIT, 0, 1, "OWNER@"), Err(Nfsstat4::ATTRNOTSUPP)),
            (ace(allow, ACE_INHERIT_ONLY, 1, "OWNER@"), Err(Nfsstat4::ATTRNOTSUPP)),
            (ace(allow, ACE_DIRECTORY_INHERIT, 1, "OWNER@"), Err(Nfsstat4::ATTRNOTSUPP)),
        ] {
            let got = entry(&ace, FLAGS, false).map(|it| it.who).map_err(|failure| failure.status);
            assert_eq!(got, expected, "{ace:?}");
        }
        let one = ace(allow, 0, 1, "OWNER@");
        let set = |len: usize| of_acl(&List::Items(&vec![one; len]), false).map_err(|failure| failure.status);
        assert!(set(ACES_MAX).is_ok());
        assert_eq!(set(ACES_MAX + 1), Err(Nfsstat4::NOSPC));
    }
}
