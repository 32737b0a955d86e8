//! Calls with RPCSEC_GSS (RFC 2203): contexts are made and destroyed, calls checked, replies protected.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Instant;

use benchmaster_nfs_proto::gss::{GssCredential, GssProc};
use benchmaster_nfs_proto::rpc::{AuthStat, OpaqueAuth, RpcReply, put_reply, put_reply_with};
use benchmaster_nfs_proto::v4::RpcGssSvc;
use benchmaster_nfs_proto::xdr::{Decoder, Opaque};
use benchmaster_rpc_gss::Flavor;
use benchmaster_rpc_gss::contexts::{Admission, Contexts, Limits, ServerContext};
use benchmaster_rpc_gss::protect::{self, OVERHEAD};
use hashbrown::DefaultHashBuilder;

use super::{Disposition, NULL, Program, Request, User, count, padded};
use crate::config::ServerConfig;
use crate::reply::{Reply, ReplyMark};
use crate::state::session::Session;
use crate::users::Users;

/// Bytes of a call's header before its credential, and those of the credential's flavour and length.
const BEFORE_CREDENTIAL: usize = 24;
const FLAVOR_AND_LENGTH: usize = 8;
/// Bytes of arguments that tell a repetition from another call with the same transaction number.
const TELLING: usize = 256;

/// Users by Kerberos, and the contexts that clients have made.
#[derive(Debug)]
pub(crate) struct Kerberos {
    contexts: Contexts<User>,
    users: Users,
    root_squash: bool,
    /// Numbers principals.
    hasher: DefaultHashBuilder,
}

impl Kerberos {
    /// `None` where the configuration has no keys.
    pub(crate) fn new(config: &ServerConfig, boot: u64, now: Instant) -> Option<Self> {
        let kerberos = config.kerberos.as_ref()?;
        Some(Self {
            contexts: Contexts::new(Arc::clone(&kerberos.mechanism), Limits::default(), boot, now),
            users: kerberos.users.clone(),
            root_squash: config.root_squash,
            hasher: DefaultHashBuilder::default(),
        })
    }

    /// Forgets contexts that have expired.
    pub(crate) fn tick(&self, now: Instant) {
        if !self.contexts.is_empty() {
            self.contexts.tick(now);
        }
    }
}

/// What protects a call and its reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Protected<'r> {
    /// The flavour by which exports know it.
    pub(super) flavor: Flavor,
    /// Of the reply.
    pub(super) verifier: OpaqueAuth<'r>,
    /// For the duplicate request cache: what is the same in repetitions, which have other sequence numbers.
    same: Option<&'r [u8]>,
}

impl<'r> Protected<'r> {
    /// A call that nothing protects.
    pub(super) const NONE: Self = Self { flavor: Flavor::Sys, verifier: OpaqueAuth::NONE, same: None };

    /// Bytes of the message that are the same when it is repeated.
    pub(super) fn same_in_repetitions(&self, message: &'r [u8]) -> &'r [u8] {
        self.same.unwrap_or(message)
    }

    /// From where on a reply is kept: without its header where that has another verifier when it is repeated.
    pub(super) fn kept_from(&self, start: ReplyMark, results: ReplyMark) -> ReplyMark {
        self.same.map_or(start, |_| results)
    }

    /// Writes the header that is not kept.
    pub(super) fn put_header(&self, reply: &mut Reply, xid: u32) {
        if self.same.is_some() {
            put_reply(&mut reply.encoder, xid, RpcReply::Success(self.verifier));
        }
    }

    pub(super) fn overhead(&self) -> usize {
        self.same.map_or(0, |_| OVERHEAD)
    }
}

impl Request<'_> {
    /// A call with RPCSEC_GSS.
    #[inline(never)]
    pub(super) fn carry_out_protected(
        &self,
        program: Program,
        kerberos: &Kerberos,
        session: &mut Option<Arc<Session>>,
        reply: &mut Reply,
    ) -> Disposition {
        let (call, now) = (&self.call, self.now.instant);
        let denied = |reply: &mut Reply, stat| {
            count(&self.server.statistics.transport.bad_auth);
            self.refuse(reply, RpcReply::AuthError(stat))
        };
        let mut d = Decoder::new(call.cred.body.0);
        let credential: GssCredential<'_> = match d.get() {
            Ok(credential) if d.rest().is_empty() => credential,
            _ => return denied(reply, AuthStat::BADCRED),
        };
        if matches!(credential.procedure, GssProc::Init | GssProc::ContinueInit) {
            return match self.negotiate(kerberos, &credential, reply) {
                Ok(()) => Disposition::Send,
                Err(stat) => denied(reply, stat),
            };
        }
        let header = BEFORE_CREDENTIAL + FLAVOR_AND_LENGTH + padded(call.cred.body.0.len());
        let header = self.message.get(..header).unwrap_or_default();
        let found = kerberos.contexts.find(&credential, now);
        let admitted =
            found.and_then(|context| Ok((context.admit(&credential, header, &call.verf)?, context)));
        let context = match admitted {
            Ok((Admission::Execute, context)) => context,
            Ok((Admission::Discard, _)) => {
                count(&self.server.statistics.transport.gss_discarded);
                return Disposition::Send;
            }
            Err(stat) => return denied(reply, stat),
        };
        let Ok(mic) = context.reply_mic(credential.sequence) else {
            return denied(reply, AuthStat::GSS_CTXPROBLEM);
        };
        let verifier = protect::verifier(&mic);
        if credential.procedure == GssProc::Destroy {
            if call.procedure == NULL {
                kerberos.contexts.destroy(credential.handle.0);
            }
            put_reply(&mut reply.encoder, call.xid, RpcReply::Success(verifier));
            return Disposition::Send;
        }
        let Ok(opened) = context.open(&credential, self.args.rest()) else {
            count(&self.server.statistics.transport.bad_calls);
            put_reply_with(&mut reply.encoder, call.xid, verifier, RpcReply::GarbageArgs);
            return Disposition::Send;
        };
        let same = self.telling(&context.data, opened.bytes());
        let request = Request {
            args: Decoder::new(opened.bytes()),
            protection: Protected { flavor: Flavor::of(credential.service), verifier, same: Some(&same) },
            // Handled again it would be a replay.
            may_wait: false,
            ..*self
        };
        let start = reply.mark();
        let disposition = request.carry_out(program, &context.data, session, reply);
        match seal(&context, &credential, verifier, start, reply) {
            Some(()) => disposition,
            None => Disposition::Drop,
        }
    }

    /// A token of a context that is to be.
    fn negotiate(
        &self,
        kerberos: &Kerberos,
        credential: &GssCredential<'_>,
        reply: &mut Reply,
    ) -> Result<(), AuthStat> {
        let token: Opaque<'_> = self.args.clone().get().map_err(|_| AuthStat::BADCRED)?;
        let transport = &self.server.statistics.transport;
        let keep = |principal: &str| {
            let number = kerberos.hasher.hash_one(principal) | 1;
            let who = kerberos.users.find(principal, number, kerberos.root_squash);
            User::new(self.server, self.peer, principal.as_bytes(), who)
        };
        let (host, now) = (self.peer.address.ip(), self.now.instant);
        let answer = kerberos.contexts.negotiate(host, credential, token.0, now, keep)?;
        if let Some(failure) = &answer.failure {
            count(&transport.gss_failed);
            log::warn!("no Kerberos with {}: {failure}", self.peer.address);
        }
        transport.gss_contexts.add(answer.is_complete().into());
        put_reply(&mut reply.encoder, self.call.xid, RpcReply::Success(answer.verifier()));
        answer.put(&mut reply.encoder);
        Ok(())
    }

    /// What tells a repetition from another call: program, procedure, who calls, and the beginning of the arguments.
    fn telling(&self, user: &User, args: &[u8]) -> Vec<u8> {
        let words = [self.call.program, self.call.version, self.call.procedure, args.len() as u32];
        let mut telling: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
        telling.extend(user.who.principal.to_be_bytes());
        telling.extend(&args[..args.len().min(TELLING)]);
        telling
    }
}

/// Protects the results of a reply that begins at `start`, if it has any; `None`: it cannot be protected, and must not be sent.
fn seal(
    context: &ServerContext<User>,
    credential: &GssCredential<'_>,
    verifier: OpaqueAuth<'_>,
    start: ReplyMark,
    reply: &mut Reply,
) -> Option<()> {
    const ACCEPTED: [u8; 4] = [0; 4];
    const SUCCESS: [u8; 4] = [0; 4];
    if credential.service == RpcGssSvc::None || reply.encoder.len_since(start) == 0 {
        return Some(());
    }
    // Transaction number, REPLY, MSG_ACCEPTED, verifier, SUCCESS.
    let status = 12 + FLAVOR_AND_LENGTH + padded(verifier.body.0.len());
    let header = reply.encoder.buffer().get(start.buffer..)?;
    if header.get(8..12)? != ACCEPTED || header.get(status..status + 4)? != SUCCESS {
        return Some(());
    }
    let header = header.get(..status + 4)?.to_vec();
    let mut plain = Vec::with_capacity(reply.encoder.len_since(start));
    // With the last word of the header, which gives way to the sequence number.
    let mut from = start;
    from.buffer += status;
    reply.copy_since_into(from, &mut plain);
    reply.rollback(start);
    reply.encoder.raw(&header);
    context.seal(credential.service, credential.sequence, &mut plain, &mut reply.encoder).ok()
}
