//! SETCLIENTID and SETCLIENTID_CONFIRM by the cases of RFC 7530 §16.33.5 and §16.34.5.

use super::*;
use crate::handle::FileId;
use crate::state::open::Share;

const STALE: Result<(), Nfsstat4> = Err(Nfsstat4::STALE_CLIENTID);

fn target(port: u16) -> CallbackTarget {
    CallbackTarget {
        program: 0x4000_0000,
        ident: port.into(),
        netid: b"tcp".to_vec(),
        universal: format!("127.0.0.1.0.{port}").into_bytes(),
        address: None,
    }
}

const FILE: FileId = FileId { export: 0, ino: 5, generation: 1 };

impl World {
    fn set(&mut self, owner: &str, verifier: u8, uid: u32) -> Result<(ClientId, Verifier4), ClidInUse> {
        self.set_with(owner, verifier, uid, target(1))
    }

    fn set_with(
        &mut self,
        owner: &str,
        verifier: u8,
        uid: u32,
        callback: CallbackTarget,
    ) -> Result<(ClientId, Verifier4), ClidInUse> {
        let args =
            SetClientId { verifier: [verifier; 8], owner: owner.as_bytes(), host: self.host, callback };
        self.clients.setclientid(&mut self.files, args, user(uid), self.now, &mut self.effects)
    }

    fn confirm40(&mut self, (id, verifier): (ClientId, Verifier4), uid: u32) -> Result<(), Nfsstat4> {
        let (files, effects) = (&mut self.files, &mut self.effects);
        self.clients.setclientid_confirm(files, id, verifier, user(uid), self.now, effects)
    }

    fn client40(&mut self, owner: &str, verifier: u8) -> ClientId {
        let set = self.set(owner, verifier, 7).unwrap();
        self.confirm40(set, 7).unwrap();
        set.0
    }

    /// An open of the client; its place.
    fn open_for(&mut self, id: ClientId) -> u32 {
        let file = FILE;
        let files = self.files.part(file);
        let owner = files.open_owner(id, b"owner", None);
        let (stateid, _) = files.open(false, owner, file, Share { access: 1, deny: 0 }, 7);
        files.find_open(1, Some(id), &stateid, file).unwrap()
    }

    fn renew40(&self, id: ClientId, uid: u32) -> Result<(), Nfsstat4> {
        self.clients.renew_operation(&self.files, id, user(uid), self.now)
    }
}

#[test]
fn a_new_client_is_confirmed_and_probed() {
    let mut w = World::new();
    let (id, verifier) = w.set("a", 1, 7).unwrap();
    assert_eq!(w.clients.check(id), STALE, "not confirmed yet");
    assert_eq!(w.renew40(id, 7), STALE);
    assert_eq!(w.confirm40((id, [0xee; 8]), 7), STALE, "wrong verifier");
    assert_eq!(w.confirm40((ClientId(id.0 + 77), verifier), 7), STALE, "unknown id");
    assert_eq!(w.confirm40((id, verifier), 8), Err(Nfsstat4::CLID_INUSE), "another principal");
    assert_eq!(w.probes(), 0);
    assert_eq!(w.confirm40((id, verifier), 7), Ok(()));
    assert_eq!(w.probes(), 1);
    assert_eq!(w.clients.check(id), Ok(()));
    assert_eq!(w.clients.minor(id), 0);
    assert_eq!(w.confirm40((id, verifier), 7), Ok(()), "the answer was lost");
    assert_eq!(w.confirm40((id, verifier), 8), Err(Nfsstat4::CLID_INUSE));
    assert_eq!(w.renew40(id, 7), Ok(()));
    assert_eq!(w.renew40(id, 8), Err(Nfsstat4::ACCESS), "a principal without open files");
}

#[test]
fn the_same_incarnation_updates_its_callback_and_keeps_its_id() {
    let mut w = World::new();
    let id = w.client40("a", 1);
    w.clients.callback_probed(id, true);
    let (again, first) = w.set_with("a", 1, 7, target(2)).unwrap();
    let (_, second) = w.set_with("a", 1, 7, target(3)).unwrap();
    assert_eq!(again, id);
    assert_ne!(first, second);
    assert_eq!(w.clients.callback_target(id), Some(&target(1)), "not confirmed yet");
    assert_eq!(w.confirm40((id, first), 7), STALE, "replaced by the second update");
    assert_eq!(w.confirm40((id, second), 8), Err(Nfsstat4::CLID_INUSE));
    assert_eq!(w.confirm40((id, second), 7), Ok(()));
    assert_eq!(w.clients.callback_target(id), Some(&target(3)));
    assert!(!w.clients.callback_up(id), "not yet probed");
    assert_eq!(w.confirm40((id, second), 7), Ok(()), "the answer was lost");
}

/// RFC 7530 §16.33.5: of a name there is one record at most that is not confirmed.
#[test]
fn an_update_and_a_restart_replace_each_other() {
    let mut w = World::new();
    let id = w.client40("a", 1);
    let update = w.set_with("a", 1, 7, target(2)).unwrap();
    let restart = w.set("a", 2, 7).unwrap();
    assert_eq!(w.confirm40(update, 7), STALE, "replaced by the restart");
    let update = w.set_with("a", 1, 7, target(3)).unwrap();
    assert_eq!(w.confirm40(restart, 7), STALE, "replaced by the update");
    assert_eq!(w.confirm40(update, 7), Ok(()));
    assert_eq!(w.clients.callback_target(id), Some(&target(3)));
    assert_eq!(w.clients.check(id), Ok(()));
}

#[test]
fn a_restarted_client_gets_a_new_id_and_the_old_one_dies_with_the_confirmation() {
    let mut w = World::new();
    let old = w.client40("a", 1);
    // No unconfirmed record yet, then one that is replaced, with the same verifier or another.
    let first = w.set("a", 2, 7).unwrap();
    let second = w.set("a", 2, 7).unwrap();
    let third = w.set("a", 3, 7).unwrap();
    let ids = [old, first.0, second.0, third.0];
    assert_eq!(ids.iter().collect::<HashSet<_>>().len(), 4);
    assert_eq!([first.1, second.1, third.1].iter().collect::<HashSet<_>>().len(), 3);
    assert_eq!(w.clients.check(old), Ok(()));
    assert_eq!(w.confirm40(first, 7), STALE);
    assert_eq!(w.confirm40(second, 7), STALE);
    assert_eq!(w.confirm40(third, 7), Ok(()));
    assert_eq!(w.clients.check(old), STALE);
    assert_eq!(w.clients.check(third.0), Ok(()));
    assert_eq!(w.clients.len(), 1);
}

#[test]
fn an_unconfirmed_record_is_replaced_whatever_its_verifier() {
    for verifier in [1, 2] {
        let mut w = World::new();
        let first = w.set("a", 1, 7).unwrap();
        // Nobody owns an unconfirmed name, so the principal may differ too.
        let second = w.set("a", verifier, 8).unwrap();
        assert!(first.0 != second.0 && first.1 != second.1);
        assert_eq!(w.confirm40(first, 7), STALE);
        assert_eq!(w.confirm40(second, 8), Ok(()));
    }
}

#[test]
fn the_name_of_a_live_client_is_not_for_others() {
    let mut w = World::new();
    let id = w.client40("a", 1);
    let in_use = ClidInUse::By(b"tcp".to_vec(), b"127.0.0.1.0.1".to_vec());
    let early = w.set("a", 1, 8).unwrap();
    let open = w.open_for(id);
    for verifier in [1, 2] {
        assert_eq!(w.set("a", verifier, 8), Err(in_use.clone()));
    }
    assert_eq!(w.confirm40(early, 8), Err(Nfsstat4::CLID_INUSE), "opened something since");
    assert_eq!(w.clients.check(id), Ok(()));
    // With its last open the name is free again: the old record goes with the confirmation of the new one.
    w.files.part(FILE).close(open, &mut w.effects).unwrap();
    let other = w.set("a", 1, 8).unwrap();
    assert_eq!(w.clients.check(id), Ok(()));
    assert_eq!(w.confirm40(other, 8), Ok(()));
    assert_eq!(w.clients.check(id), STALE);
    let id = other.0;
    w.open_for(id);
    w.pass(LEASE + Duration::from_secs(1));
    let other = w.set("a", 1, 7).unwrap();
    assert_eq!(w.clients.check(id), Err(Nfsstat4::EXPIRED), "its lease ran out");
    assert_eq!(w.confirm40(other, 7), Ok(()));
}

#[test]
fn leases_are_kept_by_courtesy_until_someone_conflicts_or_a_day_passes() {
    let mut w = World::new();
    let (id, other) = (w.client40("a", 1), w.client40("b", 1));
    w.pass(LEASE);
    assert!(!w.clients.is_courtesy(id, w.now));
    w.pass(Duration::from_secs(1));
    assert!(w.clients.is_courtesy(id, w.now));
    assert_eq!(w.clients.check(id), Ok(()));
    assert_eq!(w.renew40(id, 7), Ok(()));
    assert!(!w.clients.is_courtesy(id, w.now), "renewed");
    w.clients.expire(&mut w.files, id, &mut w.effects);
    assert_eq!(w.clients.check(id), Err(Nfsstat4::EXPIRED));
    assert_eq!(w.renew40(id, 7), Err(Nfsstat4::EXPIRED));
    w.pass(COURTESY);
    assert_eq!(w.clients.check(other), Err(Nfsstat4::EXPIRED));
    assert_eq!(w.renew40(ClientId(5), 7), STALE, "of another start of the server");
}

#[test]
fn unconfirmed_records_go_after_a_lease_time_and_are_few() {
    let mut w = World::new();
    let first = w.set("a", 1, 7).unwrap();
    w.pass(LEASE);
    let second = w.set("b", 1, 7).unwrap();
    w.pass(Duration::from_secs(1));
    assert_eq!(w.confirm40(first, 7), STALE);
    assert_eq!(w.confirm40(second, 7), Ok(()));

    let flood: Vec<_> =
        (0..2 * MAX_UNCONFIRMED).map(|n| w.set(&format!("flood {n}"), 1, 7).unwrap()).collect();
    assert!(w.clients.by_id.len() <= MAX_UNCONFIRMED + 1);
    assert_eq!(w.confirm40(flood[0], 7), STALE, "the oldest went");
    assert_eq!(w.confirm40(flood[flood.len() - 1], 7), Ok(()));
    w.pass(LEASE * 2);
    assert_eq!(w.clients.by_id.len(), 2);
    assert_eq!(w.clients.by_owner[0].len(), 2);
}

#[test]
fn a_client_without_lease_makes_room_when_there_are_too_many() {
    let mut w = World::new();
    let oldest = w.client40("oldest", 1);
    w.pass(LEASE + Duration::from_secs(1));
    for n in 1..MAX_CLIENTS {
        w.host = [192, 0, 2, 10 + (n / (MAX_CLIENTS / HOST_SHARE)) as u8].into();
        w.client40(&format!("{n}"), 1);
    }
    w.host = [198, 51, 100, 1].into();
    assert_eq!(w.clients.check(oldest), Ok(()));
    w.client40("one more", 1);
    assert_eq!(w.clients.check(oldest), Err(Nfsstat4::EXPIRED));
    assert_eq!(w.set("too many", 1, 7), Err(ClidInUse::Full), "all leases are live");
}

/// A host that makes clients without end gets a part of the table, and makes room for its own.
#[test]
fn the_clients_of_a_host_leave_room_for_others() {
    let mut w = World::new();
    let oldest = w.client40("oldest", 1);
    w.pass(LEASE + Duration::from_secs(1));
    for n in 1..MAX_CLIENTS / HOST_SHARE {
        w.client40(&format!("{n}"), 1);
    }
    w.host = [198, 51, 100, 1].into();
    w.client40("another host's", 1);
    assert_eq!(w.clients.check(oldest), Ok(()));
    w.host = [192, 0, 2, 1].into();
    w.client40("one more", 1);
    assert_eq!(w.clients.check(oldest), Err(Nfsstat4::EXPIRED));
    assert_eq!(w.set("too many", 1, 7), Err(ClidInUse::Full));
    assert_eq!(w.exchange("too many", 1, 7, 0).map(drop), Err(Nfsstat4::DELAY));
    w.host = [198, 51, 100, 1].into();
    w.client40("and another", 1);
    assert_eq!(w.clients.records.used(), w.clients.by_id.len() as u64);
}

#[test]
fn reclaims_are_for_known_clients_in_the_grace_period() {
    let mut w = World::restarted(&[b"a"]);
    let (known, unknown) = (w.client40("a", 1), w.client40("b", 1));
    assert!(w.clients.in_grace());
    assert_eq!(w.clients.may_reclaim(known), Ok(()));
    assert_eq!(w.clients.may_reclaim(unknown), Err(Nfsstat4::RECLAIM_BAD));
    for id in [known, unknown] {
        assert_eq!(w.clients.may_claim(id), Err(Nfsstat4::GRACE));
    }
    w.pass(LEASE);
    assert!(!w.clients.in_grace());
    for id in [known, unknown] {
        assert_eq!(w.clients.may_reclaim(id), Err(Nfsstat4::NO_GRACE));
        assert_eq!(w.clients.may_claim(id), Ok(()));
    }
}
