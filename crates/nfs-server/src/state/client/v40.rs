//! Clients of 4.0: SETCLIENTID, SETCLIENTID_CONFIRM, RENEW (RFC 7530 §16.33, §16.34, §16.28).

use benchmaster_nfs_proto::mutant::{Mutant, is_broken};
use std::net::IpAddr;
use std::time::Instant;

use benchmaster_nfs_proto::v4::{Nfsstat4, Verifier4};

use super::record::{CallbackTarget, Client, Kind, Principal, Setclientid};
use super::{ClientId, Clients, NewRecord};
use crate::state::shards::AllFiles;
use crate::state::{Callback, Effect, Effects};

/// Arguments of SETCLIENTID.
#[derive(Debug)]
pub struct SetClientId<'a> {
    /// Changes when the client restarts.
    pub verifier: Verifier4,
    /// Identity of the client, the same after a restart.
    pub owner: &'a [u8],
    /// Where the request came from.
    pub host: IpAddr,
    /// How to call it.
    pub callback: CallbackTarget,
}

/// Why SETCLIENTID failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClidInUse {
    /// The name is another principal's: the address of its client (netid, universal address).
    By(Vec<u8>, Vec<u8>),
    /// The table of clients is full.
    Full,
}

impl Clients {
    /// SETCLIENTID: client id and verifier for SETCLIENTID_CONFIRM.
    pub fn setclientid(
        &mut self,
        files: &mut AllFiles<'_>,
        args: SetClientId<'_>,
        principal: Principal,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(ClientId, Verifier4), ClidInUse> {
        let mut confirmed = self.owner_records(0, args.owner).confirmed;
        if let Some(id) = confirmed
            && self.by_id.get(&id).is_some_and(|client| client.principal != principal)
        {
            // Another principal may have the name of a client whose lease ran out, or that has nothing to lose: that
            // one's record goes when the new one is confirmed.
            if self.is_courtesy(id, now) {
                self.expire(files, id, effects);
                confirmed = None;
            } else if !files.client_has_state(id) {
                confirmed = None;
            }
        }
        let confirm = self.next_verifier();
        let mut update = None;
        if let Some(client) = confirmed.and_then(|id| self.by_id.get_mut(&id)) {
            let id = client.id();
            let Kind::Setclientid(state) = &mut client.kind else { return Err(ClidInUse::Full) };
            if client.principal != principal {
                let using = &state.callback;
                return Err(ClidInUse::By(using.netid.clone(), using.universal.clone()));
            }
            // What was not confirmed yet is replaced: of a name there is one such record at most.
            state.update = None;
            if client.verifier == args.verifier {
                update = Some(id);
            }
        }
        if let Some(id) = update {
            if let Some(old) = self.owner_records(0, args.owner).unconfirmed {
                self.remove(files, old, effects);
            }
            // Same incarnation: an update of the callback, once confirmed.
            if let Some(Client { kind: Kind::Setclientid(state), .. }) = self.by_id.get_mut(&id) {
                state.update = Some((args.callback, confirm));
            }
            return Ok((id, confirm));
        }
        let kind = Kind::Setclientid(Setclientid {
            confirm,
            callback: args.callback,
            callback_up: false,
            update: None,
        });
        let new = NewRecord { owner: args.owner, host: args.host, verifier: args.verifier, principal, kind };
        self.add_unconfirmed(files, new, now, effects).map(|id| (id, confirm)).ok_or(ClidInUse::Full)
    }

    /// SETCLIENTID_CONFIRM: makes a client record valid and drops the one it replaces.
    pub fn setclientid_confirm(
        &mut self,
        files: &mut AllFiles<'_>,
        id: ClientId,
        confirm: Verifier4,
        principal: Principal,
        now: Instant,
        effects: &mut Effects,
    ) -> Result<(), Nfsstat4> {
        let client = self.by_id.get_mut(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let Kind::Setclientid(state) = &mut client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        let updates =
            client.confirmed && state.update.as_ref().is_some_and(|(_, verifier)| *verifier == confirm);
        if !updates && state.confirm != confirm && !is_broken(Mutant::AnyConfirmation) {
            return Err(Nfsstat4::STALE_CLIENTID);
        }
        if client.principal != principal {
            return Err(Nfsstat4::CLID_INUSE);
        }
        if !client.confirmed && self.name_in_use(files, id, principal, now) {
            return Err(Nfsstat4::CLID_INUSE);
        }
        let Some(client) = self.by_id.get_mut(&id) else { return Err(Nfsstat4::STALE_CLIENTID) };
        let Kind::Setclientid(state) = &mut client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        if !client.confirmed {
            self.confirm(files, id, now, effects);
        } else if let Some((callback, _)) = state.update.take_if(|_| updates) {
            (state.callback, state.confirm, state.callback_up) = (callback, confirm, false);
            client.lease.renew(now);
        } else {
            // The answer to an earlier confirmation was lost.
            client.lease.renew(now);
            return Ok(());
        }
        effects.push(Effect::Call(id, Callback::Probe));
        Ok(())
    }

    /// Whether another principal's client of the same name has opened something since SETCLIENTID.
    fn name_in_use(&self, files: &AllFiles<'_>, id: ClientId, principal: Principal, now: Instant) -> bool {
        let owner = self.by_id.get(&id).map(|client| client.owner.as_slice()).unwrap_or_default();
        let Some(other) = self.owner_records(0, owner).confirmed else { return false };
        self.by_id.get(&other).is_some_and(|client| client.principal != principal)
            && files.client_has_state(other)
            && !self.is_courtesy(other, now)
    }

    /// RENEW: CB_PATH_DOWN (after renewing) when the client holds delegations that cannot be recalled.
    pub fn renew_operation(
        &self,
        files: &AllFiles<'_>,
        id: ClientId,
        principal: Principal,
        now: Instant,
    ) -> Result<(), Nfsstat4> {
        self.check(id)?;
        let client = self.by_id.get(&id).ok_or(Nfsstat4::STALE_CLIENTID)?;
        let Kind::Setclientid(state) = &client.kind else { return Err(Nfsstat4::STALE_CLIENTID) };
        // A principal with an open file may renew too (RFC 7530 §16.28.5).
        if client.principal != principal && !files.client_has_state(id) {
            return Err(Nfsstat4::ACCESS);
        }
        client.lease.renew(now);
        if !state.callback_up && files.client_has_delegations(id) {
            return Err(Nfsstat4::CB_PATH_DOWN);
        }
        Ok(())
    }

    fn next_verifier(&mut self) -> Verifier4 {
        self.next = self.next.wrapping_add(1);
        let mut verifier = [0; 8];
        verifier[..4].copy_from_slice(&(self.boot as u32).to_be_bytes());
        verifier[4..].copy_from_slice(&self.next.to_be_bytes());
        verifier
    }
}
