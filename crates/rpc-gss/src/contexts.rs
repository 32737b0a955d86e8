//! The contexts of a server: made, found, used, expired (RFC 2203 §5.2, §5.3.3).

use std::fmt::Debug;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::gss::{
    COMPLETE, CONTINUE_NEEDED, GssCredential, GssInitResult, GssProc, MAXSEQ, VERSION,
};
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthStat, OpaqueAuth};
use benchmaster_nfs_proto::v4::RpcGssSvc;
use benchmaster_nfs_proto::xdr::{Encoder, Opaque};
use hashbrown::HashMap;
use parking_lot::{Mutex, RwLock};

use crate::error::GssError;
use crate::mechanism::{Context, Established, Mechanism, Negotiation};
use crate::protect::{self, Opened};
use crate::window::{Seen, WINDOW, Window};

/// How much memory and time contexts take.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most contexts; the one that was not used for longest makes room.
    pub total: usize,
    /// Most contexts of one host.
    pub per_host: usize,
    /// How long the next token of one that is not established is waited for.
    pub patience: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self { total: 16 << 10, per_host: 4 << 10, patience: Duration::from_secs(30) }
    }
}

/// The contexts of a server. `T` is what the server keeps with one: who its user is.
#[derive(Debug)]
pub struct Contexts<T> {
    mechanism: Arc<dyn Mechanism>,
    limits: Limits,
    /// First half of handles: those of another start of the server are not taken for ours.
    boot: u64,
    epoch: Instant,
    table: RwLock<Table<T>>,
}

#[derive(Debug)]
struct Table<T> {
    entries: HashMap<u64, Entry<T>>,
    next: u64,
}

#[derive(Debug)]
struct Entry<T> {
    host: IpAddr,
    /// Milliseconds after the epoch.
    used: AtomicU64,
    state: State<T>,
}

#[derive(Debug)]
enum State<T> {
    /// Another token is awaited. Behind a mutex only to be shared; it is taken out to be used.
    Begun(Mutex<Box<dyn Negotiation>>),
    Ready(Arc<ServerContext<T>>),
}

/// An established context.
#[derive(Debug)]
pub struct ServerContext<T> {
    context: Box<dyn Context>,
    expires: Option<Instant>,
    window: Mutex<Window>,
    /// What the server keeps with it.
    pub data: T,
}

/// The answer to a token.
#[derive(Debug)]
pub struct Answer {
    handle: Vec<u8>,
    status: (u32, u32),
    token: Vec<u8>,
    /// The verifier, once there is a context.
    mic: Option<Vec<u8>>,
    /// Why there is none.
    pub failure: Option<GssError>,
}

impl Answer {
    /// The verifier of the reply.
    pub fn verifier(&self) -> OpaqueAuth<'_> {
        self.mic.as_deref().map_or(OpaqueAuth::NONE, protect::verifier)
    }

    /// Writes the results.
    pub fn put(&self, e: &mut Encoder) {
        let (major, minor) = self.status;
        let (handle, token) = (Opaque(&self.handle[..]), Opaque(&self.token[..]));
        e.put(&GssInitResult { handle, major, minor, window: WINDOW, token });
    }

    /// Whether the context is established.
    pub fn is_complete(&self) -> bool {
        self.mic.is_some()
    }
}

/// What to do with a call whose verifier is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// Execute it.
    Execute,
    /// No answer: its sequence number was seen before, or is behind the window.
    Discard,
}

impl<T: Debug> Contexts<T> {
    /// No contexts. `boot` is different in every start of the server.
    pub fn new(mechanism: Arc<dyn Mechanism>, limits: Limits, boot: u64, now: Instant) -> Self {
        let table = RwLock::new(Table { entries: HashMap::new(), next: 1 });
        Self { mechanism, limits, boot, epoch: now, table }
    }

    /// How many contexts there are, those included that are not established yet.
    pub fn len(&self) -> usize {
        self.table.read().entries.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Takes a token (INIT, CONTINUE_INIT) that came from `host`. `keep` says what to keep with the context of a principal.
    ///
    /// # Errors
    /// GSS_CREDPROBLEM when the context that goes on is not known, BADCRED when the credential is of another version.
    pub fn negotiate(
        &self,
        host: IpAddr,
        credential: &GssCredential<'_>,
        token: &[u8],
        now: Instant,
        keep: impl FnOnce(&str) -> T,
    ) -> Result<Answer, AuthStat> {
        if credential.version != VERSION {
            return Err(AuthStat::BADCRED);
        }
        let mut negotiation = match credential.procedure {
            GssProc::Init => self.mechanism.begin(),
            _ => self.take_begun(credential.handle.0).ok_or(AuthStat::GSS_CREDPROBLEM)?,
        };
        let failed = |failure: GssError| Answer {
            handle: Vec::new(),
            status: failure.status(),
            token: Vec::new(),
            mic: None,
            failure: Some(failure),
        };
        let step = match negotiation.step(token) {
            Ok(step) => step,
            Err(failure) => return Ok(failed(failure)),
        };
        let Some(Established { context, peer, lifetime }) = step.established else {
            let handle = self.insert(host, State::Begun(Mutex::new(negotiation)), now);
            let status = (CONTINUE_NEEDED, 0);
            return Ok(Answer { handle, status, token: step.token, mic: None, failure: None });
        };
        let mic = match protect::number_mic(&*context, WINDOW) {
            Ok(mic) => mic,
            Err(failure) => return Ok(failed(failure)),
        };
        let context = ServerContext {
            context,
            expires: lifetime.and_then(|lifetime| now.checked_add(lifetime)),
            window: Mutex::default(),
            data: keep(&peer),
        };
        let handle = self.insert(host, State::Ready(Arc::new(context)), now);
        Ok(Answer { handle, status: (COMPLETE, 0), token: step.token, mic: Some(mic), failure: None })
    }

    /// The context of a call.
    ///
    /// # Errors
    /// GSS_CREDPROBLEM when there is none, GSS_CTXPROBLEM when it has expired (RFC 2203 §5.3.3.3), BADCRED when the
    /// credential is of another version.
    pub fn find(
        &self,
        credential: &GssCredential<'_>,
        now: Instant,
    ) -> Result<Arc<ServerContext<T>>, AuthStat> {
        if credential.version != VERSION {
            return Err(AuthStat::BADCRED);
        }
        let id = self.id(credential.handle.0).ok_or(AuthStat::GSS_CREDPROBLEM)?;
        let table = self.table.read();
        let Some(Entry { state: State::Ready(context), used, .. }) = table.entries.get(&id) else {
            return Err(AuthStat::GSS_CREDPROBLEM);
        };
        if context.is_expired(now) {
            drop(table);
            self.table.write().entries.remove(&id);
            return Err(AuthStat::GSS_CTXPROBLEM);
        }
        used.store(self.millis(now), Ordering::Relaxed);
        Ok(Arc::clone(context))
    }

    /// Forgets a context (DESTROY).
    pub fn destroy(&self, handle: &[u8]) {
        if let Some(id) = self.id(handle) {
            self.table.write().entries.remove(&id);
        }
    }

    /// Forgets contexts that have expired, and those whose next token does not come.
    pub fn tick(&self, now: Instant) {
        let (now_ms, patience) = (self.millis(now), self.limits.patience.as_millis() as u64);
        self.table.write().entries.retain(|_, entry| match &entry.state {
            State::Begun(_) => entry.used.load(Ordering::Relaxed).saturating_add(patience) > now_ms,
            State::Ready(context) => !context.is_expired(now),
        });
    }

    fn millis(&self, now: Instant) -> u64 {
        now.saturating_duration_since(self.epoch).as_millis() as u64
    }

    fn id(&self, handle: &[u8]) -> Option<u64> {
        let (boot, id) = handle.split_first_chunk::<8>()?;
        let id = <[u8; 8]>::try_from(id).ok()?;
        (u64::from_be_bytes(*boot) == self.boot).then(|| u64::from_be_bytes(id))
    }

    fn take_begun(&self, handle: &[u8]) -> Option<Box<dyn Negotiation>> {
        let id = self.id(handle)?;
        let mut table = self.table.write();
        match table.entries.get(&id)?.state {
            State::Begun(_) => match table.entries.remove(&id)?.state {
                State::Begun(negotiation) => Some(negotiation.into_inner()),
                State::Ready(_) => None,
            },
            State::Ready(_) => None,
        }
    }

    fn insert(&self, host: IpAddr, state: State<T>, now: Instant) -> Vec<u8> {
        let mut table = self.table.write();
        let of_host = table.entries.values().filter(|entry| entry.host == host).count();
        if of_host >= self.limits.per_host {
            table.evict(|entry| entry.host == host);
        } else if table.entries.len() >= self.limits.total {
            table.evict(|_| true);
        }
        let id = table.next;
        table.next += 1;
        let used = AtomicU64::new(self.millis(now));
        table.entries.insert(id, Entry { host, used, state });
        [self.boot.to_be_bytes(), id.to_be_bytes()].concat()
    }
}

impl<T> Table<T> {
    /// Forgets the one that was not used for longest.
    fn evict(&mut self, may: impl Fn(&Entry<T>) -> bool) {
        let may = self.entries.iter().filter(|(_, entry)| may(entry));
        let oldest = may.min_by_key(|(id, entry)| (entry.used.load(Ordering::Relaxed), **id));
        if let Some(id) = oldest.map(|(id, _)| *id) {
            self.entries.remove(&id);
        }
    }
}

impl<T> ServerContext<T> {
    fn is_expired(&self, now: Instant) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }

    /// Checks a call: `header` is all of the message up to the verifier.
    ///
    /// # Errors
    /// GSS_CREDPROBLEM when the verifier is wrong, GSS_CTXPROBLEM when sequence numbers are used up (RFC 2203 §5.3.3.3).
    pub fn admit(
        &self,
        credential: &GssCredential<'_>,
        header: &[u8],
        verf: &OpaqueAuth<'_>,
    ) -> Result<Admission, AuthStat> {
        let signed = verf.flavor == AuthFlavor::RPCSEC_GSS;
        if !signed || self.context.verify(header, verf.body.0).is_err() {
            return Err(AuthStat::GSS_CREDPROBLEM);
        }
        if credential.sequence >= MAXSEQ {
            return Err(AuthStat::GSS_CTXPROBLEM);
        }
        Ok(match self.window.lock().note(credential.sequence) {
            Seen::New => Admission::Execute,
            Seen::Replayed | Seen::Old => Admission::Discard,
        })
    }

    /// The arguments of a call.
    ///
    /// # Errors
    /// When they are not as the client wrote them: GARBAGE_ARGS (RFC 2203 §5.3.3.4).
    pub fn open<'a>(&self, credential: &GssCredential<'_>, args: &'a [u8]) -> Result<Opened<'a>, GssError> {
        protect::open(&*self.context, credential.service, credential.sequence, args)
    }

    /// The checksum that is the verifier of the reply to a call.
    ///
    /// # Errors
    /// When the context is of no use any more.
    pub fn reply_mic(&self, sequence: u32) -> Result<Vec<u8>, GssError> {
        protect::number_mic(&*self.context, sequence)
    }

    /// Writes results; `plain` begins with four bytes of room.
    ///
    /// # Errors
    /// When the context is of no use any more.
    pub fn seal(
        &self,
        service: RpcGssSvc,
        sequence: u32,
        plain: &mut [u8],
        e: &mut Encoder,
    ) -> Result<(), GssError> {
        protect::seal(&*self.context, service, sequence, plain, e)
    }
}
