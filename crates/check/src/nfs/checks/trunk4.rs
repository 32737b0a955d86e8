//! Several addresses of one server: session trunking and client id trunking. They apply where the URL names more addresses.

use benchmaster_nfs_proto::v4::{self, Argop, Nfsstat4 as S};

use super::session4::{call, next};
use crate::nfs::client4::{BACK, Client4, FORE, body};
use crate::nfs::hold;
use crate::nfs::ops::{Attrs, create, putfh};
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

/// What EXCHANGE_ID gives: client id, major and minor id of the owner, scope.
type Identity = (u64, Vec<u8>, u64, Vec<u8>);

fn identity(client: &mut Client4, verifier: v4::Verifier4) -> Result<(String, Identity), Stop> {
    let answer = client.exchange_id(verifier, v4::EXCHGID_USE_NON_PNFS)?.ok()?;
    let ok = body!(answer, ExchangeId);
    let owner = ok.server_owner;
    let found = (ok.clientid, owner.major_id.0.to_vec(), owner.minor_id, ok.server_scope.0.to_vec());
    Ok((answer.sent, found))
}

/// A client with a session at the first address, and the same client at another one; who the server says it is there.
struct Trunk {
    here: Client4,
    there: Client4,
    verifier: v4::Verifier4,
    sent: String,
    identities: (Identity, Identity),
}

fn trunk(t: &mut Trial) -> Result<Trunk, Stop> {
    let Some(other) = t.target.others.first().copied() else {
        return Err(Stop::not_applicable("the URL names no more addresses: `addresses=10.0.0.2`"));
    };
    let verifier = t.verifier();
    let mut here = t.stranger("trunk")?;
    here.introduce(verifier)?;
    let mut there = t.stranger("trunk")?;
    there.connection = t.connect_to(other)?;
    let (_, first) = identity(&mut here, verifier)?;
    let (sent, second) = identity(&mut there, verifier)?;
    Ok(Trunk { here, there, verifier, sent: format!("{sent} at {other}"), identities: (first, second) })
}

/// One whose addresses the server calls its own, in one session where `one_session`.
fn trunked(t: &mut Trial, one_session: bool) -> Result<Trunk, Stop> {
    let mut trunk = trunk(t)?;
    let (first, second) = &trunk.identities;
    let same = first.1 == second.1 && first.3 == second.3 && (first.2 == second.2 || !one_session);
    if !same {
        trunk.here.leave()?;
        let what = if one_session { "sessions" } else { "client ids" };
        return Err(Stop::not_applicable(format!("the addresses share no {what}: the server owners differ")));
    }
    Ok(trunk)
}

impl Trunk {
    /// The other connection becomes one of the session.
    fn bind(&mut self) -> Tried {
        let sessid = next(&self.here)?.sessionid;
        let dir = v4::ChannelDirFromClient4::Fore;
        let args = v4::BindConnToSessionArgs { sessid, dir, use_conn_in_rdma_mode: false };
        self.there.plain(&[Argop::BindConnToSession(args)])?.ok()?;
        self.there.session = self.here.session.clone();
        Ok(())
    }

    /// `result` of a check, after the client is gone.
    fn end(mut self, result: Tried) -> Tried {
        let left = self.here.leave();
        result.and(left)
    }
}

checks! {
    /// Several addresses.
    LIST, Session;
    "trunk-owner" V41 Must [V41 8881 "2.10.5"]
        "EXCHANGE_ID of one client at two addresses of a server gives one owner (so_major_id) and one scope."
        => |t| {
            let trunk = trunk(t)?;
            let ((_, major, _, scope), (_, major2, _, scope2)) = &trunk.identities;
            let same = major == major2 && scope == scope2;
            let came = || {
                let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
                format!("{} ({}) and {} ({})", text(major), text(scope), text(major2), text(scope2))
            };
            let held = hold(same, &trunk.sent, came);
            trunk.end(held)
        };
    "trunk-client-id" V41 Must [V41 8881 "2.10.5"]
        "Where owner and scope are the same at two addresses, so is the client id."
        => |t| {
            let trunk = trunked(t, false)?;
            let (first, second) = (trunk.identities.0.0, trunk.identities.1.0);
            let held = hold(first == second, &trunk.sent, || format!("{second:#x}; {first:#x} is right"));
            trunk.end(held)
        };
    "trunk-session" V41 Must [V41 8881 "2.10.5"]
        "Where the minor ids are the same, too, BIND_CONN_TO_SESSION takes the session of another address, and calls go over both."
        => |t| {
            let mut trunk = trunked(t, true)?;
            let mut both = || {
                trunk.bind()?;
                let sequence = next(&trunk.there)?;
                call(&mut trunk.there, sequence, &[Argop::Putrootfh])?.is(&[S::OK])?;
                // The slot is one for both connections.
                trunk.here.session = trunk.there.session.clone();
                if let Some(session) = &mut trunk.here.session {
                    session.sequence = sequence.sequenceid;
                }
                trunk.here.compound(&[Argop::Putrootfh])?.is(&[S::OK])
            };
            let result = both();
            trunk.end(result)
        };
    "trunk-replay" V41 Must [V41 8881 "2.10.6.2"]
        "A request that comes again over another connection of the session is answered from the slot, and not executed again."
        => |t| {
            let dir = t.dir();
            let mut trunk = trunked(t, true)?;
            let mut both = || {
                trunk.bind()?;
                let sequence = v4::SequenceArgs { cachethis: true, ..next(&trunk.here)? };
                let attrs = Attrs::mode(0o755);
                let ops = [putfh(&dir), create(v4::Createtype4::Dir, b"twice", &attrs)];
                call(&mut trunk.here, sequence, &ops)?.ok()?;
                // Only where its connection is gone a request may come again.
                trunk.here.connection = std::mem::replace(&mut trunk.there.connection, t.connect()?);
                let again = call(&mut trunk.here, sequence, &ops)?;
                let sent = format!("{}, and again over the other address", again.sent);
                hold(again.status() == S::OK, &sent, || format!("{}; OK is right", again.status()))
            };
            let result = both();
            trunk.end(result)
        };
    "trunk-client" V41 Must [V41 8881 "2.10.5"]
        "Where owner and scope are the same, CREATE_SESSION with the client id at another address gives a session of the same client."
        => |t| {
            let mut trunk = trunked(t, false)?;
            let mut second = || {
                // The number for CREATE_SESSION is the client's, whatever the address.
                let answer = trunk.there.exchange_id(trunk.verifier, v4::EXCHGID_USE_NON_PNFS)?.ok()?;
                let known = body!(answer, ExchangeId);
                let (clientid, sequence) = (known.clientid, known.sequenceid);
                let made = trunk.there.create_session(clientid, sequence, FORE, BACK)?.ok()?;
                trunk.there.clientid = clientid;
                trunk.there.adopt(&made)?;
                let answer = trunk.there.compound(&[Argop::Putrootfh])?;
                let sessionid = next(&trunk.there)?.sessionid;
                trunk.there.session = None;
                trunk.there.plain(&[Argop::DestroySession(v4::DestroySessionArgs { sessionid })])?.ok()?;
                answer.is(&[S::OK])
            };
            let result = second();
            trunk.end(result)
        };
}
