//! Opens, locks and delegations as clients see them.

use std::time::Duration;

use super::*;
use crate::state::{Callback, ClientId, Effect};

mod delegations;
mod grace;
mod holders;
mod locks;
mod nlm;
mod opens;
mod owners;
mod shares;
mod stateids;

/// Access and deny modes.
const R: u32 = SHARE_ACCESS_READ;
const W: u32 = SHARE_ACCESS_WRITE;
const RW: u32 = SHARE_ACCESS_BOTH;

fn no_attrs() -> Fattr4<'static> {
    Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: (&[][..]).into() }
}

fn unchecked() -> Openflag4<'static> {
    Openflag4::Create(Createhow4::Unchecked(no_attrs()))
}

/// A client with what its opens and locks need.
struct Holder<'s> {
    c: Client<'s>,
    /// Name of its open owner.
    owner: String,
    /// Last sequence number of that owner (4.0).
    seqid: u32,
}

impl<'s> Holder<'s> {
    fn new(server: &'s Shared, minor: u32, number: u16) -> Self {
        let owner = format!("owner {number}");
        let mut c = if minor == 0 {
            client_of_40(server, number)
        } else {
            Client::with_session(server, minor, number)
        };
        // All clients of a test begin at the same moment.
        c.now.instant = server.started + Duration::from_secs(1);
        c.effects.clear();
        Self { c, owner, seqid: 0 }
    }

    fn id(&self) -> ClientId {
        ClientId(self.c.clientid)
    }

    /// Whether callbacks reach it (4.0; sessions of tests have a back channel).
    fn callback(&self, up: bool) {
        self.c.server.state.all().clients().callback_probed(self.id(), up);
    }

    fn open_args<'a>(
        &'a self,
        access: u32,
        deny: u32,
        openhow: Openflag4<'a>,
        claim: OpenClaim4<'a>,
    ) -> OpenArgs<'a> {
        let owner = StateOwner4 { clientid: self.c.clientid, owner: self.owner.as_bytes().into() };
        OpenArgs {
            seqid: self.seqid.wrapping_add(1),
            share_access: access,
            share_deny: deny,
            owner,
            openhow,
            claim,
        }
    }

    /// OPEN in the directory at `dir`.
    fn open_in(
        &mut self,
        dir: &str,
        claim: OpenClaim4<'_>,
        how: Openflag4<'_>,
        access: u32,
        deny: u32,
    ) -> Results {
        let owner = self.owner.clone();
        let args = OpenArgs {
            seqid: self.seqid.wrapping_add(1),
            share_access: access,
            share_deny: deny,
            owner: StateOwner4 { clientid: self.c.clientid, owner: owner.as_bytes().into() },
            openhow: how,
            claim,
        };
        let results = self.c.run_at(dir, &[Argop::Open(args)]);
        if !results.status().keeps_seqid() {
            self.seqid = self.seqid.wrapping_add(1);
        }
        results
    }

    /// OPEN of `name` below `/export`, as a result; 4.0 owners confirm.
    fn try_open(&mut self, name: &str, access: u32, deny: u32) -> Result<Opened, Nfsstat4> {
        let results =
            self.open_in("/export", OpenClaim4::Null(name.into()), Openflag4::NoCreate, access, deny);
        self.opened(name, &results)
    }

    fn opened(&mut self, name: &str, results: &Results) -> Result<Opened, Nfsstat4> {
        match results.last() {
            Resop::Open(Ok(ok)) => {
                let delegation = match ok.delegation {
                    OpenDelegation4::Read(read) => Some((read.stateid, false)),
                    OpenDelegation4::Write(write) => Some((write.stateid, true)),
                    _ => None,
                };
                let why = match ok.delegation {
                    OpenDelegation4::NoneExt(why) => Some(why),
                    _ => None,
                };
                let mut stateid = ok.stateid;
                if ok.rflags & OPEN_RESULT_CONFIRM != 0 {
                    stateid = self.confirm(name, stateid).unwrap();
                }
                Ok(Opened {
                    stateid,
                    delegation,
                    why,
                    rflags: ok.rflags,
                    attrset: ok.attrset,
                    cinfo: ok.cinfo,
                })
            }
            Resop::Open(Err(status)) => Err(status),
            other => panic!("{other:?}"),
        }
    }

    fn open(&mut self, name: &str, access: u32, deny: u32) -> Opened {
        self.try_open(name, access, deny).unwrap_or_else(|status| panic!("{name}: {status}"))
    }

    /// The next sequence number of the open owner.
    fn next(&mut self) -> u32 {
        self.seqid = self.seqid.wrapping_add(1);
        self.seqid
    }

    fn confirm(&mut self, name: &str, open_stateid: Stateid4) -> Result<Stateid4, Nfsstat4> {
        let seqid = self.next();
        let results = self.at(name, Argop::OpenConfirm(OpenConfirmArgs { open_stateid, seqid }));
        match results.last() {
            Resop::OpenConfirm(result) => result.map(|ok| ok.open_stateid),
            other => panic!("{other:?}"),
        }
    }

    fn close(&mut self, name: &str, open_stateid: Stateid4) -> Result<Stateid4, Nfsstat4> {
        let seqid = self.next();
        let results = self.at(name, Argop::Close(CloseArgs { seqid, open_stateid }));
        match results.last() {
            Resop::Close(result) => result.map(|ok| ok.open_stateid),
            other => panic!("{other:?}"),
        }
    }

    fn downgrade(
        &mut self,
        name: &str,
        open_stateid: Stateid4,
        access: u32,
        deny: u32,
    ) -> Result<Stateid4, Nfsstat4> {
        let seqid = self.next();
        let args = OpenDowngradeArgs { open_stateid, seqid, share_access: access, share_deny: deny };
        match self.at(name, Argop::OpenDowngrade(args)).last() {
            Resop::OpenDowngrade(result) => result.map(|ok| ok.open_stateid),
            other => panic!("{other:?}"),
        }
    }

    fn read(&mut self, name: &str, stateid: Stateid4) -> Nfsstat4 {
        self.at(name, Argop::Read(ReadArgs { stateid, offset: 0, count: 1 })).status()
    }

    fn write(&mut self, name: &str, stateid: Stateid4) -> Nfsstat4 {
        let args = WriteArgs { stateid, offset: 0, stable: StableHow4::FileSync, data: Bulk::Bytes(b"x") };
        self.at(name, Argop::Write(args)).status()
    }

    /// Executes an operation on the file `name` below `/export`.
    fn at(&mut self, name: &str, op: Argop<'_>) -> Results {
        self.c.run_at(&format!("/export/{name}"), &[op])
    }

    /// Carries out what was asked for but callbacks, which it returns.
    fn callbacks(&mut self) -> Vec<Effect> {
        let (mut releases, callbacks) =
            self.c.effects.drain(..).partition(|effect| matches!(effect, Effect::Release(_)));
        self.c.server.apply(&mut releases);
        callbacks
    }
}

/// What OPEN said.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Opened {
    stateid: Stateid4,
    delegation: Option<(Stateid4, bool)>,
    why: Option<OpenNoneDelegation4>,
    rflags: u32,
    attrset: Bitmap4,
    cinfo: ChangeInfo4,
}

/// Lets time pass for the server and these clients.
fn pass(time: Duration, clients: &mut [&mut Holder<'_>]) -> Vec<Effect> {
    let mut effects = Vec::new();
    for holder in clients.iter_mut() {
        holder.c.wait(time);
    }
    if let Some(holder) = clients.first() {
        effects = holder.c.server.state.tick(holder.c.now.instant);
    }
    effects
}

/// A client made by SETCLIENTID.
pub(super) fn client_of_40(server: &Shared, number: u16) -> Client<'_> {
    let mut c = Client::new(server, 0, number);
    let id = format!("client {number}");
    let location = Netaddr4 { r_netid: "tcp".into(), r_addr: "127.0.0.1.3.1".into() };
    let made = c.run(&[Argop::Setclientid(SetclientidArgs {
        client: NfsClientId4 { verifier: [7; 8], id: id.as_bytes().into() },
        callback: CbClient4 { cb_program: 0x4000_0000, cb_location: location },
        callback_ident: u32::from(number),
    })]);
    let Resop::Setclientid(SetclientidRes::Ok(ok)) = made.last() else { panic!("{made:?}") };
    let confirm =
        SetclientidConfirmArgs { clientid: ok.clientid, setclientid_confirm: ok.setclientid_confirm };
    assert_eq!(c.run(&[Argop::SetclientidConfirm(confirm)]).status(), Nfsstat4::OK);
    c.clientid = ok.clientid;
    c.effects.clear();
    c
}

/// Short leases, and no delegations that nobody asked for.
fn server_without_delegations() -> Shared {
    populated_with(ServerConfig { delegations: false, lease: LEASE, ..ServerConfig::default() })
}

const LEASE: Duration = Duration::from_secs(10);
