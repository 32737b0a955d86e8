//! Access control lists as checks set and read them.

use benchmaster_nfs_proto::v4::{
    ACE_APPEND_DATA as APPEND, ACE_EXECUTE as EXECUTE, ACE_INHERIT_ONLY as ONLY, ACE_READ_ACL,
    ACE_READ_ATTRIBUTES, ACE_READ_DATA as READ, ACE_SYNCHRONIZE, ACE_WRITE_ACL, ACE_WRITE_DATA as WRITE,
    ACL_SUPPORT_ALLOW, Acetype4, Argop, Attributes, Createhow4, Createtype4, Nfsace4, Nfsstat4 as S,
    OpenClaim4, Openflag4, Stateid4, fattr4,
};
use benchmaster_nfs_proto::xdr::List;

use super::attributes4::stranger;
use crate::nfs::client4::{Answer, Client4, body};
use crate::nfs::ops::*;
use crate::nfs::state::Share;
use crate::{Stop, Tried};

const ANY: Stateid4 = Stateid4::ANONYMOUS;
pub(super) const ALLOW: Acetype4 = Acetype4::ACCESS_ALLOWED;
pub(super) const DENY: Acetype4 = Acetype4::ACCESS_DENIED;
/// What is not about data, and servers give to all.
pub(super) const SEE: u32 = ACE_READ_ACL | ACE_READ_ATTRIBUTES | ACE_SYNCHRONIZE;
/// What bits of a mode speak of.
pub(super) const RWX: u32 = READ | WRITE | APPEND | EXECUTE;
const OWNER: &str = "OWNER@";
const GROUP: &str = "GROUP@";
pub(super) const EVERYONE: &str = "EVERYONE@";

/// An entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) kind: Acetype4,
    pub(super) flag: u32,
    pub(super) mask: u32,
    pub(super) who: String,
}

pub(super) fn entry(kind: Acetype4, flag: u32, mask: u32, who: &str) -> Entry {
    Entry { kind, flag, mask, who: who.to_owned() }
}

pub(super) fn aces(entries: &[Entry]) -> Vec<Nfsace4<'_>> {
    let ace = |entry: &'_ Entry| -> (Acetype4, u32, u32) { (entry.kind, entry.flag, entry.mask) };
    let whole = |entry| {
        let (ace_type, flag, access_mask) = ace(entry);
        Nfsace4 { ace_type, flag, access_mask, who: (&entry.who[..]).into() }
    };
    entries.iter().map(whole).collect()
}

pub(super) fn acl(entries: &[Entry]) -> Attrs {
    with(entries, &Attributes::default())
}

/// A list beside other attributes.
pub(super) fn with(entries: &[Entry], others: &Attributes<'_>) -> Attrs {
    let aces = aces(entries);
    Attrs::of(&Attributes { acl: Some(List::Items(&aces)), ..*others })
}

/// A list for owner, group and everyone: rights beside those to see.
pub(super) fn plain(owner: u32, group: u32, everyone: u32) -> Vec<Entry> {
    let allow = |mask, who| entry(ALLOW, 0, mask | SEE, who);
    vec![allow(owner | ACE_WRITE_ACL, OWNER), allow(group, GROUP), allow(everyone, EVERYONE)]
}

pub(super) fn read_back(list: &List<'_, Nfsace4<'_>>) -> Vec<Entry> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    list.iter()
        .map(|ace| Entry { kind: ace.ace_type, flag: ace.flag, mask: ace.access_mask, who: text(ace.who.0) })
        .collect()
}

/// The mode that a list amounts to (RFC 8881 §6.3.2).
pub(super) fn mode_of(list: &[Entry]) -> u32 {
    let class = |of: &str| {
        let (mut allowed, mut denied) = (0, 0);
        let concerned = |entry: &&Entry| entry.flag & ONLY == 0 && (entry.who == of || entry.who == EVERYONE);
        for entry in list.iter().filter(concerned) {
            let open = entry.mask & !allowed & !denied;
            *(if entry.kind == DENY { &mut denied } else { &mut allowed }) |= open;
        }
        let bit = |mask: u32, bit: u32| if allowed & mask == mask { bit } else { 0 };
        bit(READ, 4) | bit(WRITE | APPEND, 2) | bit(EXECUTE, 1)
    };
    class(OWNER) << 6 | class(GROUP) << 3 | class(EVERYONE)
}

impl Client4 {
    /// Makes sure that the server keeps lists.
    pub(super) fn keeps_lists(&mut self, fh: &[u8]) -> Tried {
        self.needs(fh, fattr4::ACL, "acl")?;
        let answer = self.done(fh, &[getattr(&[fattr4::ACL, fattr4::ACLSUPPORT])])?;
        let given = self.decoded(&answer)?;
        if given.acl.is_none() || given.aclsupport.is_some_and(|bits| bits & ACL_SUPPORT_ALLOW == 0) {
            return Err(Stop::not_applicable("the server keeps no access control lists of this file system"));
        }
        Ok(())
    }

    /// The list of an object, and its mode.
    pub(super) fn list_and_mode(&mut self, fh: &[u8]) -> Result<(Answer, Vec<Entry>, u32), Stop> {
        let answer = self.done(fh, &[getattr(&[fattr4::ACL, fattr4::MODE])])?;
        let given = self.decoded(&answer)?;
        let list = given.acl.as_ref().map(read_back);
        let (list, mode) =
            list.zip(given.mode).ok_or_else(|| answer.wrong("GETATTR is to give acl and mode"))?;
        Ok((answer, list, mode))
    }

    /// Sets a list; a server may be unable to keep it (RFC 8881 §6.2.1.2).
    pub(super) fn set_list(&mut self, fh: &[u8], entries: &[Entry]) -> Result<Answer, Stop> {
        self.set_attrs(fh, &acl(entries))
    }

    pub(super) fn set_attrs(&mut self, fh: &[u8], attrs: &Attrs) -> Result<Answer, Stop> {
        let answer = self.compound(&[putfh(fh), setattr(ANY, attrs)])?;
        may_refuse(&answer)?;
        answer.ok()
    }

    /// What another user may.
    pub(super) fn stranger_has(&mut self, fh: &[u8], asked: u32) -> Result<(String, u32), Stop> {
        let answer = self.as_stranger(|client| client.compound(&[putfh(fh), access(asked)]))?.ok()?;
        let granted = body!(answer, Access).access;
        Ok((answer.sent, granted))
    }

    pub(super) fn as_stranger<T>(&mut self, call: impl FnOnce(&mut Self) -> T) -> T {
        let owner = self.user;
        self.user = stranger(owner);
        let done = call(self);
        self.user = owner;
        done
    }

    /// A new file with these attributes.
    pub(super) fn new_file(&mut self, dir: &[u8], name: &str, attrs: &Attrs) -> Result<Vec<u8>, Stop> {
        let how = Openflag4::Create(Createhow4::Unchecked(attrs.fattr()));
        let (answer, open) = self.open_how(b"maker", dir, Share::READ, how, OpenClaim4::Null(name.into()))?;
        may_refuse(&answer)?;
        let open = open.map_err(|_| answer.wrong("OPEN is to make a file"))?;
        self.close(&open)?;
        Ok(open.fh)
    }

    /// A new directory with these attributes.
    pub(super) fn new_dir(&mut self, dir: &[u8], name: &str, attrs: &Attrs) -> Result<Vec<u8>, Stop> {
        let made = create(Createtype4::Dir, name.as_bytes(), attrs);
        self.compound(&[putfh(dir), made, Argop::Getfh])?.ok()?.fh()
    }
}

fn may_refuse(answer: &Answer) -> Tried {
    match answer.status() {
        S::ATTRNOTSUPP => {
            Err(Stop::not_applicable(format!("the server keeps no such list: {}", answer.sent)))
        }
        _ => Ok(()),
    }
}
