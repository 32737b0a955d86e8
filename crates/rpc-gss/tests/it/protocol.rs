//! Contexts of a server, and what protects calls and replies.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::gss::{
    COMPLETE, CONTINUE_NEEDED, GssCredential, GssInitResult, GssProc, MAXSEQ, VERSION,
};
use benchmaster_nfs_proto::rpc::{AuthFlavor, AuthStat, CallHeader, OpaqueAuth, RPC_VERSION};
use benchmaster_nfs_proto::v4::RpcGssSvc;
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, Opaque};
use benchmaster_rpc_gss::contexts::{Admission, Contexts, Limits, ServerContext};
use benchmaster_rpc_gss::window::WINDOW;
use benchmaster_rpc_gss::{Context, Mechanism, protect};

use super::mock::{MockAcceptor, MockContext, MockInitiator};

const HOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
const SERVICES: [RpcGssSvc; 3] = [RpcGssSvc::None, RpcGssSvc::Integrity, RpcGssSvc::Privacy];

fn contexts(limits: Limits, now: Instant) -> Contexts<String> {
    Contexts::new(Arc::new(MockAcceptor), limits, 7, now)
}

fn initiator(principal: &'static str) -> MockInitiator {
    MockInitiator { principal, legs: 1, lifetime: 0 }
}

/// A client's side of a context.
struct Client {
    context: Box<dyn Context>,
    handle: Vec<u8>,
}

/// A context as a client makes it, or why there is none: major status.
fn establish(
    server: &Contexts<String>,
    of: &MockInitiator,
    host: IpAddr,
    now: Instant,
) -> Result<Client, u32> {
    let mut negotiation = of.begin();
    let (mut handle, mut answer, mut procedure) = (Vec::new(), Vec::new(), GssProc::Init);
    loop {
        let step = negotiation.step(&answer).unwrap();
        let credential = credential(procedure, 0, RpcGssSvc::None, &handle);
        let reply = server.negotiate(host, &credential, &step.token, now, str::to_owned).unwrap();
        let mut e = Encoder::new();
        reply.put(&mut e);
        let result: GssInitResult<'_> = Decoder::new(e.buffer()).get().unwrap();
        assert_eq!(result.major == COMPLETE, reply.is_complete());
        match result.major {
            COMPLETE => {
                let context = negotiation.step(result.token.0).unwrap().established.unwrap().context;
                protect::check_number(&*context, result.window, &reply.verifier()).unwrap();
                return Ok(Client { context, handle: result.handle.0.to_vec() });
            }
            CONTINUE_NEEDED => {
                assert_eq!(reply.verifier(), OpaqueAuth::NONE);
                (handle, answer) = (result.handle.0.to_vec(), result.token.0.to_vec());
                procedure = GssProc::ContinueInit;
            }
            major => return Err(major),
        }
    }
}

fn credential(procedure: GssProc, sequence: u32, service: RpcGssSvc, handle: &[u8]) -> GssCredential<'_> {
    GssCredential { version: VERSION, procedure, sequence, service, handle: Opaque(handle) }
}

impl Client {
    /// A whole call.
    fn call(&self, sequence: u32, service: RpcGssSvc, args: &[u8]) -> Vec<u8> {
        let mut e = Encoder::new();
        [9, 0, RPC_VERSION, 100_003, 4, 1].iter().for_each(|word: &u32| e.put(word));
        protect::put_credential(&mut e, GssProc::Data, sequence, service, &self.handle);
        protect::put_verifier(&*self.context, &mut e).unwrap();
        let mut plain = [&[0; 4][..], args].concat();
        protect::seal(&*self.context, service, sequence, &mut plain, &mut e).unwrap();
        e.buffer().to_vec()
    }
}

/// What a server makes of a message.
#[derive(Debug, PartialEq)]
enum Seen {
    Args(Vec<u8>),
    Discarded,
    Denied(AuthStat),
    Garbage,
    NoCall,
}

fn serve(
    server: &Contexts<String>,
    message: &[u8],
    now: Instant,
) -> (Seen, Option<Arc<ServerContext<String>>>) {
    let mut d = Decoder::new(message);
    let Ok(call) = d.get::<CallHeader<'_>>() else { return (Seen::NoCall, None) };
    if call.rpc_version != RPC_VERSION || call.cred.flavor != AuthFlavor::RPCSEC_GSS {
        return (Seen::NoCall, None);
    }
    let Ok(credential) = Decoder::new(call.cred.body.0).get::<GssCredential<'_>>() else {
        return (Seen::Denied(AuthStat::BADCRED), None);
    };
    let context = match server.find(&credential, now) {
        Ok(context) => context,
        Err(stat) => return (Seen::Denied(stat), None),
    };
    let header = &message[..message.len() - d.rest().len() - 8 - call.verf.body.0.len().next_multiple_of(4)];
    match context.admit(&credential, header, &call.verf) {
        Ok(Admission::Execute) => {}
        Ok(Admission::Discard) => return (Seen::Discarded, None),
        Err(stat) => return (Seen::Denied(stat), None),
    }
    let seen = match context.open(&credential, d.rest()) {
        Ok(opened) => Seen::Args(opened.bytes().to_vec()),
        Err(_) => Seen::Garbage,
    };
    (seen, Some(context))
}

#[test]
fn contexts_are_made_in_one_or_several_rounds_used_and_destroyed() {
    let now = Instant::now();
    let server = contexts(Limits::default(), now);
    for legs in 1..=4 {
        let client = establish(&server, &MockInitiator { legs, ..initiator("alice@R") }, HOST, now).unwrap();
        assert_eq!(server.len(), 1, "what is continued is one context");
        for (service, sequence) in SERVICES.into_iter().zip(1..) {
            let (seen, context) = serve(&server, &client.call(sequence, service, b"arguments..."), now);
            assert_eq!(seen, Seen::Args(b"arguments...".to_vec()), "{service:?}");
            let context = context.unwrap();
            assert_eq!(context.data, "alice@R");
            let (mut e, mut results) = (Encoder::new(), *b"roomresults.");
            context.seal(service, sequence, &mut results, &mut e).unwrap();
            assert_eq!(e.buffer().windows(8).any(|part| part == b"results."), service != RpcGssSvc::Privacy);
            let opened = protect::open(&*client.context, service, sequence, e.buffer()).unwrap();
            assert_eq!(opened.bytes(), b"results.");
            let mic = context.reply_mic(sequence).unwrap();
            protect::check_number(&*client.context, sequence, &protect::verifier(&mic)).unwrap();
            assert!(protect::check_number(&*client.context, sequence + 1, &protect::verifier(&mic)).is_err());
            assert!(protect::check_number(&*client.context, sequence, &OpaqueAuth::NONE).is_err());
            if service != RpcGssSvc::None {
                assert!(protect::open(&*client.context, service, sequence + 1, e.buffer()).is_err());
            }
        }
        server.destroy(&client.handle);
        let late = serve(&server, &client.call(9, RpcGssSvc::None, b"late"), now).0;
        assert_eq!(late, Seen::Denied(AuthStat::GSS_CREDPROBLEM));
    }
    assert!(establish(&server, &initiator("!mallory@R"), HOST, now).is_err());
    assert!(server.is_empty());
}

#[test]
fn repeated_and_late_calls_are_dropped_and_numbers_end() {
    let now = Instant::now();
    let server = contexts(Limits::default(), now);
    let client = establish(&server, &initiator("alice@R"), HOST, now).unwrap();
    let call = |sequence| client.call(sequence, RpcGssSvc::Integrity, b"data");
    let seen = |message: &[u8]| serve(&server, message, now).0;
    let fine = Seen::Args(b"data".to_vec());
    assert_eq!(seen(&call(5)), fine);
    assert_eq!(seen(&call(5)), Seen::Discarded);
    assert_eq!(seen(&call(4)), fine, "out of order within the window");
    assert_eq!(seen(&call(WINDOW + 5)), fine);
    assert_eq!(seen(&call(3)), Seen::Discarded, "behind the window");
    // A number of which the verifier is wrong does not move the window.
    let mut forged = call(MAXSEQ - 1);
    let at = forged.len() - 40;
    forged[at] ^= 1;
    assert_ne!(seen(&forged), fine);
    assert_eq!(seen(&call(6)), fine);
    assert_eq!(seen(&call(MAXSEQ)), Seen::Denied(AuthStat::GSS_CTXPROBLEM));
    assert_eq!(seen(&call(MAXSEQ - 1)), fine);
}

/// Whatever single byte of a call is changed, it is not executed, or not with other arguments; and no bytes at all make the
/// server panic.
#[test]
fn no_changed_call_is_executed() {
    let now = Instant::now();
    let server = contexts(Limits::default(), now);
    let client = establish(&server, &initiator("alice@R"), HOST, now).unwrap();
    let mut state = 11u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut sequence = 0;
    for service in SERVICES {
        let len = client.call(1, service, b"transfer 100 to bob!").len();
        for at in 0..len {
            sequence += 1;
            let mut message = client.call(sequence, service, b"transfer 100 to bob!");
            message[at] ^= 1 << (random() % 8);
            let (seen, _) = serve(&server, &message, now);
            let unprotected = service == RpcGssSvc::None && at >= len - 20;
            assert!(unprotected || !matches!(seen, Seen::Args(_)), "{service:?} byte {at}: {seen:?}");
        }
    }
    for _ in 0..20_000 {
        sequence += 1;
        let mut message = client.call(sequence, SERVICES[random() % 3], b"0123456789abcdef");
        for _ in 0..random() % 8 {
            let at = random() % message.len();
            message[at] = random() as u8;
        }
        message.truncate(random() % (message.len() + 1));
        serve(&server, &message, now);
        let token: Vec<u8> = (0..random() % 24).map(|_| random() as u8).collect();
        let handle: Vec<u8> = (0..random() % 20).map(|_| random() as u8 % 8).collect();
        let procedure = if random() % 2 == 0 { GssProc::Init } else { GssProc::ContinueInit };
        let credential = credential(procedure, 0, RpcGssSvc::None, &handle);
        let _ = server.negotiate(HOST, &credential, &token, now, str::to_owned);
    }
    assert!(server.len() <= Limits::default().per_host);
}

#[test]
fn contexts_expire_and_make_room() {
    let now = Instant::now();
    let after = |ms| now + Duration::from_millis(ms);
    let limits = Limits { total: 6, per_host: 4, patience: Duration::from_secs(30) };
    let server = contexts(limits, now);
    let short = establish(&server, &MockInitiator { lifetime: 500, ..initiator("a@R") }, HOST, now).unwrap();
    let call =
        |client: &Client, sequence, at| serve(&server, &client.call(sequence, RpcGssSvc::None, b""), at).0;
    assert_eq!(call(&short, 1, after(499)), Seen::Args(vec![]));
    assert_eq!(call(&short, 2, after(500)), Seen::Denied(AuthStat::GSS_CTXPROBLEM));
    assert_eq!(call(&short, 3, after(500)), Seen::Denied(AuthStat::GSS_CREDPROBLEM), "it is forgotten");
    // One that is begun and not gone on with.
    let token = MockInitiator { legs: 2, ..initiator("a@R") }.begin().step(&[]).unwrap().token;
    let begun = credential(GssProc::Init, 0, RpcGssSvc::None, b"");
    let newer = GssCredential { version: VERSION + 1, ..credential(GssProc::Init, 0, RpcGssSvc::None, b"") };
    assert_eq!(server.negotiate(HOST, &newer, &token, now, str::to_owned).unwrap_err(), AuthStat::BADCRED);
    server.negotiate(HOST, &begun, &token, now, str::to_owned).unwrap();
    server.tick(after(29_999));
    assert_eq!(server.len(), 1);
    server.tick(after(30_000));
    assert!(server.is_empty());
    // The one of the same host that was used last of all goes first, and other hosts' stay.
    let other = IpAddr::from([10, 0, 0, 1]);
    let foreign = establish(&server, &initiator("f@R"), other, now).unwrap();
    let own: Vec<_> =
        (0..4).map(|n| establish(&server, &initiator("a@R"), HOST, after(n)).unwrap()).collect();
    assert_eq!(call(&own[0], 1, after(10)), Seen::Args(vec![]));
    let newest = establish(&server, &initiator("a@R"), HOST, after(11)).unwrap();
    assert_eq!(call(&own[1], 1, after(12)), Seen::Denied(AuthStat::GSS_CREDPROBLEM));
    for kept in [&foreign, &own[0], &own[2], &own[3], &newest] {
        assert_eq!(call(kept, 2, after(12)), Seen::Args(vec![]));
    }
    // Another start of the server does not take a handle of this one.
    let restarted = Contexts::new(Arc::new(MockAcceptor), limits, 8, now);
    establish(&restarted, &initiator("b@R"), HOST, now).unwrap();
    let seen = serve(&restarted, &foreign.call(3, RpcGssSvc::None, b""), now).0;
    assert_eq!(seen, Seen::Denied(AuthStat::GSS_CREDPROBLEM));
}

#[test]
fn a_body_has_one_form() {
    let context = MockContext { key: 5 };
    for service in [RpcGssSvc::Integrity, RpcGssSvc::Privacy] {
        let mut e = Encoder::new();
        protect::seal(&context, service, 3, &mut b"roomdata".to_vec(), &mut e).unwrap();
        e.put(&0u32);
        assert!(protect::open(&context, service, 3, e.buffer()).is_err(), "something behind it");
        let whole = e.buffer().len() - 4;
        for cut in 0..whole {
            assert!(protect::open(&context, service, 3, &e.buffer()[..cut]).is_err(), "cut at {cut}");
        }
    }
}
