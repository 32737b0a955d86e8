//! Calls with RPCSEC_GSS (RFC 2203): a context per server, made again when it expires or the server has lost it; a sequence number
//! for every transmission, never more of them outstanding than the server's window has room for.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, TryRecvError};
use std::thread;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::gss::{COMPLETE, CONTINUE_NEEDED, GssInitResult, GssProc, MAXSEQ};
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthStat, CALL, Message, OpaqueAuth, RPC_VERSION, RpcReply};
use benchmaster_nfs_proto::v4::RpcGssSvc;
use benchmaster_nfs_proto::xdr::{Bulk, Decoder, Encoder, Opaque, XdrError};
use benchmaster_rpc_gss::protect::{self, Opened};
use benchmaster_rpc_gss::{Context, Established, GssError, Mechanism, Negotiation, Step};

use super::outgoing::Message as Request;
use super::{Auth, Call, Rpc, RpcError};
use crate::counters::{Counters, Event};
use crate::ops::Op;
use crate::reactor::{Line, Reactor, Waiters};

/// How the calls of a mount are protected.
#[derive(Debug, Clone)]
pub struct ClientGss {
    /// The client's half of the mechanism.
    pub mechanism: Arc<dyn Mechanism>,
    /// Authentication alone, with integrity, or with privacy.
    pub service: RpcGssSvc,
}

impl ClientGss {
    /// For the calls of a program.
    pub(crate) fn of(self, program: u32, version: u32, null: Op) -> RpcGss {
        RpcGss { mechanism: self.mechanism, service: self.service, program, version, null }
    }
}

/// How calls are protected.
#[derive(Debug, Clone)]
pub struct RpcGss {
    /// The client's half of the mechanism.
    pub mechanism: Arc<dyn Mechanism>,
    /// Authentication alone, with integrity, or with privacy.
    pub service: RpcGssSvc,
    /// RPC program whose NULL calls carry tokens: one that the server has on this port.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// What these calls are counted under.
    pub null: Op,
}

/// How often a call is sent again because the server does not know its context.
const REFRESHES: u32 = 3;
/// Rounds of tokens until there is a context.
const ROUNDS: u32 = 16;
/// A context is renewed so long before it expires, or with a quarter of its lifetime left.
const BEFORE_THE_END: Duration = Duration::from_secs(30);

/// The context with a server, if there is one.
#[derive(Debug)]
pub(super) struct Gss {
    options: RpcGss,
    context: RefCell<Option<Rc<ClientContext>>>,
    /// There was one before.
    known: Cell<bool>,
    /// A task is making one.
    making: Cell<bool>,
    /// Attempts that failed, and why the last one did.
    failures: Cell<u64>,
    failure: RefCell<Option<GssError>>,
    /// Woken when an attempt ends.
    changed: Waiters,
    /// Calls for which the window has no room.
    line: Line,
}

#[derive(Debug)]
struct ClientContext {
    context: Box<dyn Context>,
    handle: Vec<u8>,
    window: u32,
    /// Sequence number of the next transmission.
    next: Cell<u32>,
    /// From the oldest one that is under way up to it: whether they are over. The server may see them in another order, and
    /// discards those that are behind its window then.
    over: RefCell<VecDeque<bool>>,
    expires: Option<Instant>,
    renew: Cell<Option<Instant>>,
}

impl ClientContext {
    fn is_usable(&self, now: Instant) -> bool {
        self.next.get() < MAXSEQ - 1 && self.expires.is_none_or(|expires| now < expires)
    }

    /// It could not be renewed: half of what is left of it is waited for until it is tried again.
    fn postpone(&self, now: Instant) {
        let left = self.expires.map(|expires| expires.saturating_duration_since(now));
        self.renew.set(left.map(|left| now + left / 2 + Duration::from_millis(1)));
    }

    /// How many more there may be.
    fn room(&self) -> usize {
        (self.window as usize).saturating_sub(self.over.borrow().len())
    }

    /// A number for a transmission, if the window has room for it.
    fn take(&self) -> Option<u32> {
        if self.room() == 0 {
            return None;
        }
        self.over.borrow_mut().push_back(false);
        let number = self.next.get();
        self.next.set(number + 1);
        Some(number)
    }

    /// A transmission is over: its reply is here, or is not waited for any more.
    fn end(&self, number: u32) {
        let mut over = self.over.borrow_mut();
        let oldest = self.next.get() as usize - over.len();
        if let Some(over) = (number as usize).checked_sub(oldest).and_then(|at| over.get_mut(at)) {
            *over = true;
        }
        while over.front() == Some(&true) {
            over.pop_front();
        }
    }
}

/// A call under way: the contexts and sequence numbers of its transmissions.
#[derive(Debug)]
pub(super) struct Protected<'g> {
    gss: &'g Gss,
    procedure: GssProc,
    sent: Vec<(Rc<ClientContext>, u32)>,
    /// The last transmission: its header, and its arguments, too, where they are protected.
    pub(super) front: Vec<u8>,
    refreshes: u32,
}

impl Drop for Protected<'_> {
    fn drop(&mut self) {
        self.over();
    }
}

impl Gss {
    pub(super) fn new(options: RpcGss) -> Self {
        Self {
            options,
            context: RefCell::default(),
            known: Cell::default(),
            making: Cell::default(),
            failures: Cell::default(),
            failure: RefCell::default(),
            changed: Waiters::default(),
            line: Line::default(),
        }
    }

    /// A call that is to be protected, if it is.
    pub(super) fn call(&self, call: &Call<'_>) -> Option<Box<Protected<'_>>> {
        let procedure = match call.auth {
            Auth::Usual => GssProc::Data,
            Auth::Goodbye => GssProc::Destroy,
            Auth::Sys | Auth::Written(_) => return None,
        };
        Some(Box::new(Protected { gss: self, procedure, sent: Vec::new(), front: Vec::new(), refreshes: 0 }))
    }

    /// The context, which is made first where there is none. One that will expire soon is renewed in the background.
    async fn context(&self, rpc: &Rpc, deadline: Instant) -> Result<Rc<ClientContext>, RpcError> {
        let failures = self.failures.get();
        loop {
            let now = rpc.reactor().now();
            let usable = self.context.borrow().as_ref().filter(|context| context.is_usable(now)).cloned();
            if let Some(context) = usable {
                if context.renew.get().is_some_and(|renew| renew <= now) && !self.making.get() {
                    self.making.set(true);
                    renew(rpc.clone());
                }
                return Ok(context);
            }
            if self.failures.get() != failures {
                return Err(RpcError::NoContext);
            }
            if self.making.get() {
                let ended = self.changed.until(|| !self.making.get());
                rpc.reactor().until(deadline, ended).await.ok_or(RpcError::TimedOut)?;
            } else {
                let _making = Making::begin(self);
                self.make(rpc).await?;
            }
        }
    }

    /// Makes a context. Why there is none is kept.
    async fn make(&self, rpc: &Rpc) -> Result<(), RpcError> {
        match self.negotiate(rpc).await {
            Ok(context) => {
                *self.context.borrow_mut() = Some(Rc::new(context));
                self.line.wake_first(usize::MAX);
                let event = if self.known.replace(true) { Event::GssRenewed } else { Event::GssContext };
                rpc.counters().event(event);
                Ok(())
            }
            Err(Failure::Rpc(error)) => Err(error),
            Err(Failure::Gss(error)) => {
                rpc.counters().event(Event::GssRefused);
                *self.failure.borrow_mut() = Some(error);
                self.failures.set(self.failures.get() + 1);
                Err(RpcError::NoContext)
            }
        }
    }

    async fn negotiate(&self, rpc: &Rpc) -> Result<ClientContext, Failure> {
        let RpcGss { mechanism, service, program, version, null } = &self.options;
        let mut negotiation = mechanism.begin();
        let (mut handle, mut answer, mut procedure) = (Vec::new(), Vec::new(), GssProc::Init);
        // The verifier of the last answer, and the window that it is about.
        let mut completed: Option<(Vec<u8>, u32)> = None;
        for _ in 0..ROUNDS {
            let (same, step) = elsewhere(rpc.reactor(), negotiation, answer).await.map_err(Failure::Gss)?;
            negotiation = same;
            let Step { token, established } = step.map_err(Failure::Gss)?;
            if let Some(Established { context, lifetime, .. }) = established {
                let Some((mic, window)) = &completed else {
                    return Err(Failure::Gss(GssError::Unprotected("a server that answers no token")));
                };
                protect::check_number(&*context, *window, &protect::verifier(mic)).map_err(Failure::Gss)?;
                let now = rpc.reactor().now();
                let expires = lifetime.and_then(|lifetime| now.checked_add(lifetime));
                let before = lifetime.map_or(BEFORE_THE_END, |lifetime| (lifetime / 4).min(BEFORE_THE_END));
                let renew = Cell::new(expires.map(|expires| expires - before));
                let (window, over) = ((*window).max(1), RefCell::default());
                let next = Cell::new(1);
                return Ok(ClientContext { context, handle, window, next, over, expires, renew });
            }
            if completed.is_some() {
                return Err(Failure::Gss(GssError::Unprotected(
                    "a server that is done before the client is",
                )));
            }
            let mut auth = Encoder::new();
            protect::put_credential(&mut auth, procedure, 0, *service, &handle);
            auth.put(&OpaqueAuth::NONE);
            let verifier = RefCell::new(Vec::new());
            let call = Call {
                auth: Auth::Written(auth.buffer()),
                verifier: Some(&verifier),
                ..Call::new(*null, *program, *version, 0)
            };
            let decode = |d: &mut Decoder<'_>| {
                let result: GssInitResult<'_> = d.get()?;
                let (handle, token) = (result.handle.0.to_vec(), result.token.0.to_vec());
                Ok((result.major, result.minor, result.window, handle, token))
            };
            // Within a call is another one: the type of its future would contain itself.
            let calling: Pin<Box<dyn Future<Output = _>>> =
                Box::pin(rpc.call(call, |e, _| e.put(&Opaque::<'_, { u32::MAX }>(&token)), decode));
            let (major, minor, window, of_server, token) = calling.await.map_err(Failure::Rpc)?;
            match major {
                COMPLETE => completed = Some((verifier.take(), window)),
                CONTINUE_NEEDED => procedure = GssProc::ContinueInit,
                _ => return Err(Failure::Gss(refused_by_server(major, minor))),
            }
            (handle, answer) = (of_server, token);
        }
        Err(Failure::Gss(GssError::Unprotected("a server that asks for one token after the other")))
    }

    /// Makes the first context of a connection that is up.
    pub(super) async fn begin(&self, rpc: &Rpc, deadline: Instant) -> io::Result<()> {
        match self.context(rpc, deadline).await {
            Ok(_) => Ok(()),
            Err(RpcError::NoContext) => {
                let failure = self.failure.take();
                Err(failure.map_or_else(|| io::ErrorKind::PermissionDenied.into(), io::Error::other))
            }
            Err(error) => Err(io::Error::other(error)),
        }
    }

    fn is_current(&self, context: &Rc<ClientContext>) -> bool {
        self.context.borrow().as_ref().is_some_and(|current| Rc::ptr_eq(current, context))
    }

    pub(super) fn options(&self) -> &RpcGss {
        &self.options
    }

    pub(super) fn has_context(&self) -> bool {
        self.context.borrow().is_some()
    }
}

/// What the server said.
fn refused_by_server(major: u32, minor: u32) -> GssError {
    let message = format!("major status {major:#x}, minor status {minor}; its log says why");
    GssError::Refused { doing: "the server does not accept the ticket", message, major, minor }
}

enum Failure {
    Rpc(RpcError),
    Gss(GssError),
}

/// Renews the context of a server in the background, for which the note that one is made is already there.
fn renew(rpc: Rpc) {
    let reactor = rpc.reactor().clone();
    reactor.spawn(async move {
        let Some(gss) = &rpc.0.gss else { return };
        let known = gss.context.borrow().clone();
        let _making = Making::begin(gss);
        if gss.make(&rpc).await.is_err()
            && let Some(known) = known
        {
            known.postpone(rpc.reactor().now());
        }
    });
}

/// A context is being made; others wait until this is dropped.
struct Making<'g>(&'g Gss);

impl<'g> Making<'g> {
    fn begin(gss: &'g Gss) -> Self {
        gss.making.set(true);
        Self(gss)
    }
}

impl Drop for Making<'_> {
    fn drop(&mut self) {
        self.0.making.set(false);
        self.0.changed.wake();
    }
}

type Stepped = (Box<dyn Negotiation>, Result<Step, GssError>);

/// Takes a step in a thread of its own: it may wait for the KDC.
async fn elsewhere(
    reactor: &Reactor,
    mut negotiation: Box<dyn Negotiation>,
    token: Vec<u8>,
) -> Result<Stepped, GssError> {
    let ((result, place), remote) = (mpsc::channel(), reactor.remote());
    let step = move || {
        let step = negotiation.step(&token);
        // Without a receiver the mount was given up.
        let _ = result.send((negotiation, step));
        remote.wake();
    };
    if thread::Builder::new().name("kerberos".into()).spawn(step).is_err() {
        return Err(GssError::Unprotected("no thread to ask the KDC in"));
    }
    loop {
        match place.try_recv() {
            Ok(stepped) => return Ok(stepped),
            Err(TryRecvError::Empty) => reactor.notified().await,
            Err(TryRecvError::Disconnected) => {
                return Err(GssError::Unprotected("the thread that asked the KDC has ended"));
            }
        }
    }
}

impl Protected<'_> {
    /// Whether arguments and results are within a body of their own.
    pub(super) fn is_sealed(&self) -> bool {
        self.gss.options.service != RpcGssSvc::None
    }

    /// Prepares a transmission.
    pub(super) async fn seal(
        &mut self,
        rpc: &Rpc,
        call: &Call<'_>,
        xid: u32,
        arguments: Request<'_>,
        deadline: Instant,
    ) -> Result<(), RpcError> {
        loop {
            let context = self.gss.context(rpc, deadline).await?;
            self.over();
            // Another context may have taken its place meanwhile.
            let take = || if self.gss.is_current(&context) { context.take().map(Some) } else { Some(None) };
            let waiting = self.gss.line.wait(!self.sent.is_empty(), take);
            let taken = rpc.reactor().until(deadline, waiting).await.ok_or(RpcError::TimedOut)?;
            let Some(sequence) = taken else { continue };
            self.sent.push((Rc::clone(&context), sequence));
            match timed(rpc.counters(), || self.write(&context, sequence, call, xid, arguments)) {
                Ok(()) => return Ok(()),
                Err(_) if self.refresh(&context) => {}
                Err(_) => return Err(RpcError::NoContext),
            }
        }
    }

    fn write(
        &mut self,
        context: &ClientContext,
        sequence: u32,
        call: &Call<'_>,
        xid: u32,
        arguments: Request<'_>,
    ) -> Result<(), GssError> {
        let service = self.gss.options.service;
        let mut e = Encoder::new();
        let words = [xid, CALL, RPC_VERSION, call.program, call.version, call.procedure];
        words.iter().for_each(|word| e.put(word));
        protect::put_credential(&mut e, self.procedure, sequence, service, &context.handle);
        protect::put_verifier(&*context.context, &mut e)?;
        if service != RpcGssSvc::None {
            let mut plain = Encoder::new();
            plain.put(&sequence);
            arguments(&mut plain, Bulk::Bytes(call.payload));
            protect::seal(&*context.context, service, sequence, &mut plain.into_buffer(), &mut e)?;
        }
        self.front = e.into_buffer();
        Ok(())
    }

    /// What was sent so far is not waited for any more.
    fn over(&self) {
        if let Some((context, number)) = self.sent.last() {
            context.end(*number);
            if !self.gss.line.is_empty() {
                self.gss.line.wake_first(context.room());
            }
        }
    }

    /// Gives a context up that is of no use; whether it is worth another try.
    fn refresh(&mut self, context: &Rc<ClientContext>) -> bool {
        let mut current = self.gss.context.borrow_mut();
        // Another task may have made another one already.
        drop(current.take_if(|current| Rc::ptr_eq(current, context)));
        self.refreshes += 1;
        self.procedure == GssProc::Data && self.refreshes <= REFRESHES
    }

    /// Whether the server refuses the call only because it does not know the context any more: then it is to be sent again.
    pub(super) fn refused(&mut self, error: RpcError) -> bool {
        let RpcError::Denied(
            AuthStat::GSS_CREDPROBLEM
            | AuthStat::GSS_CTXPROBLEM
            | AuthStat::REJECTEDCRED
            | AuthStat::REJECTEDVERF,
        ) = error
        else {
            return false;
        };
        let last = self.sent.last().map(|(context, _)| Rc::clone(context));
        last.is_some_and(|context| self.refresh(&context))
    }

    /// Reads the header of a reply, and gives what follows to `results`.
    pub(super) fn reply<R>(
        &self,
        counters: &Counters,
        d: &mut Decoder<'_>,
        results: impl FnOnce(&mut Decoder<'_>) -> Result<R, XdrError>,
    ) -> Result<R, Denied> {
        let reply = match d.get()? {
            Message::Reply { reply, .. } => reply,
            Message::Call(_) => return Err(XdrError::BadValue { what: "msg_type", value: 0 }.into()),
        };
        let RpcReply::Success(verf) = reply else { return Err(Denied::Other(())) };
        if verf.flavor != AuthFlavor::RPCSEC_GSS {
            return Err(Denied::Forged);
        }
        let service = self.gss.options.service;
        let opened = timed(counters, || self.open(&verf, service, d.rest()))?;
        if service == RpcGssSvc::None || self.procedure == GssProc::Destroy {
            return Ok(results(d)?);
        }
        Ok(results(&mut Decoder::new(opened.bytes()))?)
    }

    /// Checks the verifier against the numbers of all transmissions, the last one first, and opens the body.
    fn open<'b>(
        &self,
        verf: &OpaqueAuth<'_>,
        service: RpcGssSvc,
        body: &'b [u8],
    ) -> Result<Opened<'b>, Denied> {
        let (context, sequence) = self
            .sent
            .iter()
            .rev()
            .find(|(context, sequence)| protect::check_number(&*context.context, *sequence, verf).is_ok())
            .ok_or(Denied::Forged)?;
        let service = if self.procedure == GssProc::Destroy { RpcGssSvc::None } else { service };
        protect::open(&*context.context, service, *sequence, body).map_err(|_| Denied::Forged)
    }
}

/// Why a reply has no results.
pub(super) enum Denied {
    /// The server did not write it so.
    Forged,
    /// It does not decode.
    Bad(XdrError),
    /// It is none of success: read it as one without protection.
    Other(()),
}

impl From<XdrError> for Denied {
    fn from(error: XdrError) -> Self {
        Self::Bad(error)
    }
}

/// Counts the time that protection takes.
fn timed<T>(counters: &Counters, work: impl FnOnce() -> T) -> T {
    let began = Instant::now();
    let result = work();
    counters.add(Event::GssCipher, began.elapsed().as_nanos() as u64);
    result
}
