//! Calls to the lock managers of clients: GRANTED for locks that had to wait, and answers to `_MSG` calls. And to their status
//! monitors: SM_NOTIFY after a restart.
//!
//! Each client with pending callbacks has a thread for as long: it asks the client's portmapper for the lock manager,
//! calls, and calls again until there is an answer. A client that does not want its lock any more, or cannot be
//! reached, loses it.

use std::collections::VecDeque;
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_proto::nlm::{self as proto, NlmStats, Proc, Res, v4};
use benchmaster_nfs_proto::nsm;
use benchmaster_nfs_proto::portmap::{self, IPPROTO_TCP, Mapping, PmapProc};
use benchmaster_nfs_proto::record::{self, Joiner, RecordError};
use benchmaster_nfs_proto::rpc::{
    AuthFlavor, AuthSys, CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encode, Encoder, List};
use hashbrown::HashMap;
use parking_lot::{Condvar, Mutex};
use socket2::{Domain, Protocol, Socket, Type};

use super::messages::put_granted;
use crate::state::nlm_lock::{NlmLock, NlmWaiter, Route};

/// How patient callbacks are, and where portmappers listen.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Patience {
    /// Port of the client's portmapper.
    pub(crate) portmap_port: u16,
    /// Longest wait for a connection or an answer.
    pub(crate) answer: Duration,
    /// Pause before the second try; it doubles with every further one.
    pub(crate) pause: Duration,
    /// Number of tries; 0: no callbacks are made, and no thread is started.
    pub(crate) tries: u32,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            portmap_port: portmap::PORT,
            answer: Duration::from_secs(5),
            pause: Duration::from_millis(500),
            tries: 6,
        }
    }
}

/// Callbacks to be made, and what came of them.
#[derive(Debug)]
pub(crate) struct LockCallbacks {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    patience: Patience,
    work: Mutex<Work>,
    stopped: Condvar,
}

#[derive(Debug, Default)]
struct Work {
    /// Calls by client; a client is here while a thread attends to it.
    hosts: HashMap<Route, VecDeque<Job>>,
    /// Locks that clients did not take.
    refused: Vec<NlmLock>,
    /// Numbers of calls.
    next: u32,
    stop: bool,
}

#[derive(Debug, Clone)]
struct Job {
    program: u32,
    version: u32,
    procedure: u32,
    args: Vec<u8>,
    /// The lock that this grants.
    granted: Option<NlmLock>,
}

/// Most clients attended to at a time, and most calls waiting for one: beyond, a call counts as failed.
const MOST_HOSTS: usize = 64;
const MOST_JOBS: usize = 1024;
/// Longest reply read.
const LONGEST_REPLY: usize = 1 << 16;

impl Default for LockCallbacks {
    fn default() -> Self {
        Self::new(Patience::default())
    }
}

impl LockCallbacks {
    /// No callback is pending.
    pub(crate) fn new(patience: Patience) -> Self {
        Self { inner: Arc::new(Inner { patience, work: Mutex::default(), stopped: Condvar::new() }) }
    }

    /// Tells a client that it has its lock ([`crate::state::Effect::NlmGranted`]).
    pub(crate) fn granted(&self, waiter: &NlmWaiter) {
        let lock = &waiter.lock;
        let cookie = self.inner.number().to_be_bytes();
        let mut e = Encoder::new();
        let alock = v4::Lock {
            caller_name: lock.owner.host.name[..].into(),
            fh: waiter.handle[..].into(),
            oh: lock.owner.oh[..].into(),
            svid: lock.owner.svid,
            l_offset: lock.range.first,
            l_len: lock.range.nlm_length(),
        };
        let args = v4::TestArgs { cookie: cookie[..].into(), exclusive: lock.exclusive, alock };
        put_granted(&mut e, waiter.version, args);
        let granted = Some(lock.clone());
        self.enqueue(
            waiter.route,
            Job { granted, ..lock_manager(waiter.version, Proc::GRANTED, e.buffer()) },
        );
    }

    /// Calls a procedure of a client's lock manager, whatever it says.
    pub(super) fn message(&self, host: Route, version: u32, procedure: Proc, args: &[u8]) {
        self.enqueue(host, lock_manager(version, procedure, args));
    }

    /// Tells a host's status monitor of a restart (SM_NOTIFY); `false` when too many are called at this time.
    pub(super) fn notify(&self, host: Route, args: &[u8]) -> bool {
        let (program, version, procedure) = (nsm::PROGRAM, nsm::VERSION, nsm::Proc::NOTIFY.0);
        self.enqueue(host, Job { program, version, procedure, args: args.to_vec(), granted: None })
    }

    /// The same without what is pending: for after a restart.
    pub(crate) fn afresh(&self) -> Self {
        Self::new(self.inner.patience)
    }

    /// The locks that clients did not take, since the last time.
    pub(super) fn refused(&self) -> Vec<NlmLock> {
        std::mem::take(&mut self.inner.work.lock().refused)
    }

    /// `false` when there are too many already.
    fn enqueue(&self, host: Route, job: Job) -> bool {
        if host.secured {
            // It finds the lock granted when it asks again.
            return true;
        }
        let mut work = self.inner.work.lock();
        if let Some(jobs) = work.hosts.get_mut(&host) {
            let room = jobs.len() < MOST_JOBS;
            if room {
                jobs.push_back(job);
            } else {
                work.refused.extend(job.granted);
            }
            return room;
        }
        if work.stop || self.inner.patience.tries == 0 || work.hosts.len() >= MOST_HOSTS {
            work.refused.extend(job.granted);
            return work.hosts.len() < MOST_HOSTS;
        }
        let granted = job.granted.clone();
        work.hosts.insert(host, VecDeque::from([job]));
        drop(work);
        let inner = Arc::clone(&self.inner);
        let thread = std::thread::Builder::new().name("nlm-callback".into());
        if let Err(error) = thread.spawn(move || inner.attend(host)) {
            log::warn!("no thread for callbacks to {}: {error}", host.client);
            let mut work = self.inner.work.lock();
            work.hosts.remove(&host);
            work.refused.extend(granted);
        }
        true
    }
}

/// A call of a lock manager.
fn lock_manager(version: u32, procedure: Proc, args: &[u8]) -> Job {
    Job { program: proto::PROGRAM, version, procedure: procedure.0, args: args.to_vec(), granted: None }
}

impl Drop for LockCallbacks {
    fn drop(&mut self) {
        self.inner.work.lock().stop = true;
        self.inner.stopped.notify_all();
    }
}

/// What became of a call.
enum Verdict {
    /// Answered.
    Done,
    /// Answered: the client does not want the lock.
    Refused,
    /// No answer, or "later".
    Again,
}

impl Inner {
    /// Makes the calls of one client, one after the other, until there are none.
    fn attend(&self, host: Route) {
        let mut line = None;
        loop {
            let job = {
                let mut work = self.work.lock();
                let next =
                    if work.stop { None } else { work.hosts.get_mut(&host).and_then(VecDeque::pop_front) };
                let Some(job) = next else {
                    work.hosts.remove(&host);
                    return;
                };
                job
            };
            if !self.deliver(host, &job, &mut line) {
                log::debug!(
                    "{} did not take the call of procedure {} of program {}",
                    host.client,
                    job.procedure,
                    job.program
                );
                self.work.lock().refused.extend(job.granted);
            }
        }
    }

    /// Calls until there is an answer; `false` when there is none, or the lock is not wanted.
    fn deliver(&self, host: Route, job: &Job, line: &mut Option<((u32, u32), Line)>) -> bool {
        let mut pause = self.patience.pause;
        for attempt in 0..self.patience.tries {
            if attempt > 0 {
                let mut work = self.work.lock();
                self.stopped.wait_for(&mut work, pause);
                if work.stop {
                    return false;
                }
                drop(work);
                pause = pause.saturating_mul(2);
            }
            match self.call(host, job, line) {
                Ok(Verdict::Done) => return true,
                Ok(Verdict::Refused) => return false,
                Ok(Verdict::Again) => {}
                Err(error) => {
                    log::debug!("call to program {} of {}: {error}", job.program, host.client);
                    *line = None;
                }
            }
        }
        false
    }

    fn call(&self, host: Route, job: &Job, line: &mut Option<((u32, u32), Line)>) -> io::Result<Verdict> {
        let wanted = (job.program, job.version);
        let line = match line {
            Some((of, line)) if *of == wanted => line,
            _ => {
                let port = self.port(host, wanted)?;
                let connected = Line::connect(host, port, self.patience.answer)?;
                &mut line.insert((wanted, connected)).1
            }
        };
        let xid = self.number();
        let results = line.call(xid, (job.program, job.version, job.procedure), &job.args)?;
        if job.granted.is_none() {
            return Ok(Verdict::Done);
        }
        let res: Res<'_> = Decoder::new(&results).get().map_err(io::Error::other)?;
        Ok(match res.stat {
            NlmStats::GRANTED => Verdict::Done,
            NlmStats::DENIED_GRACE_PERIOD => Verdict::Again,
            _ => Verdict::Refused,
        })
    }

    /// Asks the client's portmapper for the port of a program in a version.
    fn port(&self, host: Route, (prog, vers): (u32, u32)) -> io::Result<u16> {
        let mapping = Mapping { prog, vers, prot: IPPROTO_TCP, port: 0 };
        let mut args = Encoder::new();
        args.put(&mapping);
        let mut line = Line::connect(host, self.patience.portmap_port, self.patience.answer)?;
        let getport = (portmap::PROGRAM, portmap::VERSION_2, PmapProc::GETPORT.0);
        let results = line.call(self.number(), getport, args.buffer())?;
        let port: u32 = Decoder::new(&results).get().map_err(io::Error::other)?;
        match u16::try_from(port) {
            Ok(port) if port != 0 => Ok(port),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, format!("program {prog} is not registered"))),
        }
    }

    fn number(&self) -> u32 {
        let mut work = self.work.lock();
        work.next = work.next.wrapping_add(1);
        work.next
    }
}

/// A connection to a program of a client.
struct Line {
    stream: TcpStream,
}

impl Line {
    fn connect(route: Route, port: u16, patience: Duration) -> io::Result<Self> {
        let address = SocketAddr::new(route.client, port);
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        if !route.server.is_unspecified() {
            socket.bind(&SocketAddr::new(route.server, 0).into())?;
        }
        socket.connect_timeout(&address.into(), patience)?;
        let stream = TcpStream::from(socket);
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Self { stream })
    }

    /// Calls a procedure (program, version, procedure) and waits for its results.
    fn call(
        &mut self,
        xid: u32,
        (program, version, procedure): (u32, u32, u32),
        args: &[u8],
    ) -> io::Result<Vec<u8>> {
        let mut body = Encoder::new();
        let machine_name = "benchmaster".into();
        AuthSys { stamp: 0, machine_name, uid: 0, gid: 0, gids: List::default() }.encode(&mut body);
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: body.buffer().into() };
        let rpc_version = RPC_VERSION;
        let mut e = Encoder::new();
        let mark = record::begin(&mut e);
        e.put(&CallHeader { xid, rpc_version, program, version, procedure, cred, verf: OpaqueAuth::NONE });
        e.raw(args);
        record::end(&mut e, mark);
        self.stream.write_all(e.buffer())?;
        loop {
            let record = self.receive()?;
            let mut d = Decoder::new(&record);
            match d.get().map_err(io::Error::other)? {
                Message::Reply { xid: of, reply } if of == xid => {
                    return match reply {
                        RpcReply::Success(_) => Ok(d.rest().to_vec()),
                        reply => Err(io::Error::other(format!("{reply:?}"))),
                    };
                }
                // The late answer to a call given up.
                _ => {}
            }
        }
    }

    /// The next record. Nothing follows it: there is one call at a time.
    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let invalid = |error: RecordError| io::Error::new(io::ErrorKind::InvalidData, error);
        let (mut joiner, mut chunk) = (Joiner::new(), [0; 4096]);
        loop {
            let len = self.stream.read(&mut chunk)?;
            if len == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let fed = joiner.feed(chunk.get(..len).unwrap_or_default(), LONGEST_REPLY).map_err(invalid)?;
            if fed.complete {
                return Ok(joiner.record().to_vec());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, TcpListener};
    use std::sync::mpsc;
    use std::thread;
    use std::time::Instant;

    use benchmaster_nfs_proto::rpc;

    use super::*;
    use crate::handle::FileId;
    use crate::state::interval::Range;
    use crate::state::nlm_lock::NlmHost;
    use crate::state::nlm_lock::NlmOwner;

    const HERE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    /// How a lock manager takes a call.
    #[derive(Debug, Clone, Copy)]
    enum Take {
        Answer(NlmStats),
        HangUp,
    }

    /// Portmapper and lock manager of a client: takes calls as scripted, and tells of each.
    fn client(script: Vec<Take>) -> (u16, mpsc::Receiver<(u32, Proc, Vec<u8>)>) {
        let portmapper = TcpListener::bind((HERE, 0)).unwrap();
        let lock_manager = TcpListener::bind((HERE, 0)).unwrap();
        let portmap_port = portmapper.local_addr().unwrap().port();
        let port = lock_manager.local_addr().unwrap().port();
        thread::spawn(move || {
            for stream in portmapper.incoming() {
                let mut line = Line { stream: stream.unwrap() };
                let asked = line.receive().unwrap();
                let mut d = Decoder::new(&asked);
                let call: CallHeader<'_> = d.get().unwrap();
                let mapping: Mapping = d.get().unwrap();
                assert!([proto::PROGRAM, nsm::PROGRAM].contains(&mapping.prog));
                assert_eq!(mapping.prot, IPPROTO_TCP);
                answer(&mut line.stream, call.xid, &u32::from(port));
            }
        });
        let (tell, told) = mpsc::channel();
        thread::spawn(move || {
            let mut script = script.into_iter();
            for stream in lock_manager.incoming() {
                let mut line = Line { stream: stream.unwrap() };
                while let Ok(record) = line.receive() {
                    let mut d = Decoder::new(&record);
                    let call: CallHeader<'_> = d.get().unwrap();
                    assert!(call.cred.sys().is_ok());
                    let args = d.rest().to_vec();
                    let Some(take) = script.next() else { return };
                    let cookie = Decoder::new(&args).get().unwrap();
                    tell.send((call.version, Proc(call.procedure), args.clone())).unwrap();
                    match take {
                        Take::Answer(stat) => answer(&mut line.stream, call.xid, &Res { cookie, stat }),
                        Take::HangUp => break,
                    }
                }
            }
        });
        (portmap_port, told)
    }

    fn answer(stream: &mut TcpStream, xid: u32, results: &impl Encode) {
        let mut e = Encoder::new();
        let mark = record::begin(&mut e);
        rpc::put_reply(&mut e, xid, RpcReply::Success(OpaqueAuth::NONE));
        e.put(results);
        record::end(&mut e, mark);
        stream.write_all(e.buffer()).unwrap();
    }

    fn callbacks(portmap_port: u16) -> LockCallbacks {
        let answer = Duration::from_secs(5);
        LockCallbacks::new(Patience { portmap_port, answer, pause: Duration::from_millis(5), tries: 4 })
    }

    fn waiter(version: u32) -> NlmWaiter {
        let owner = NlmOwner {
            host: NlmHost { address: [127, 0, 0, 1].into(), name: b"client"[..].into() },
            oh: b"77@client"[..].into(),
            svid: 77,
        };
        let range = Range { first: 10, last: u64::MAX };
        let file = FileId { export: 1, ino: 2, generation: 3 };
        NlmWaiter {
            lock: NlmLock { file, owner, range, exclusive: true },
            version,
            route: Route { client: HERE, server: HERE, secured: false },
            handle: b"handle"[..].into(),
            cookie: b"cookie"[..].into(),
        }
    }

    fn wait_for_refusal(callbacks: &LockCallbacks) -> Vec<NlmLock> {
        let end = Instant::now() + Duration::from_secs(20);
        loop {
            let refused = callbacks.refused();
            if !refused.is_empty() || Instant::now() > end {
                return refused;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn a_grant_is_repeated_until_it_is_taken() {
        let script =
            [Take::HangUp, Take::Answer(NlmStats::DENIED_GRACE_PERIOD), Take::Answer(NlmStats::GRANTED)];
        let (port, told) = client(script.to_vec());
        let callbacks = callbacks(port);
        callbacks.granted(&waiter(4));
        let calls: Vec<_> = (0..3).map(|_| told.recv_timeout(Duration::from_secs(20)).unwrap()).collect();
        assert!(calls.iter().all(|call| *call == calls[0]), "the same call every time");
        let (version, procedure, args) = &calls[0];
        assert_eq!((*version, *procedure), (4, Proc::GRANTED));
        let args: v4::TestArgs<'_> = Decoder::new(args).get().unwrap();
        assert!(args.exclusive);
        assert_eq!((args.alock.fh.0, args.alock.caller_name.0), (&b"handle"[..], &b"client"[..]));
        assert_eq!((args.alock.oh.0, args.alock.svid), (&b"77@client"[..], 77));
        assert_eq!((args.alock.l_offset, args.alock.l_len), (10, 0));
        // Nothing to be taken back, and nobody attended to any more.
        let end = Instant::now() + Duration::from_secs(20);
        while !callbacks.inner.work.lock().hosts.is_empty() && Instant::now() < end {
            thread::sleep(Duration::from_millis(1));
        }
        assert!(callbacks.inner.work.lock().hosts.is_empty());
        assert_eq!(callbacks.refused(), []);
    }

    #[test]
    fn a_grant_that_is_not_wanted_or_not_deliverable_is_taken_back() {
        let (port, told) = client(vec![Take::Answer(NlmStats::DENIED)]);
        let callbacks1 = callbacks(port);
        callbacks1.granted(&waiter(1));
        let (version, _, args) = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(version, 1);
        let args: proto::v1::TestArgs<'_> = Decoder::new(&args).get().unwrap();
        assert_eq!((args.alock.l_offset, args.alock.l_len), (10, 0));
        assert_eq!(wait_for_refusal(&callbacks1), [waiter(1).lock]);

        // A port where nobody listens.
        let nobody = TcpListener::bind((HERE, 0)).unwrap().local_addr().unwrap().port();
        let callbacks2 = callbacks(nobody);
        callbacks2.granted(&waiter(4));
        assert_eq!(wait_for_refusal(&callbacks2), [waiter(4).lock]);
    }

    #[test]
    fn hosts_are_told_of_a_restart_by_name_and_state() {
        let (port, told) = client(vec![Take::Answer(NlmStats::GRANTED)]);
        let (callbacks, host) = (callbacks(port), waiter(4).route);
        let monitor = crate::nlm::monitor::Monitor::after(vec![host]);
        monitor.tell(&callbacks, 4, [10, 0, 0, 1].into());
        let (version, procedure, args) = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!((version, procedure.0), (nsm::VERSION, nsm::Proc::NOTIFY.0));
        let args: nsm::StatChge<'_> = Decoder::new(&args).get().unwrap();
        assert_eq!((args.mon_name.0, args.state & 1), (&b"127.0.0.1"[..], 1));
        // Once.
        monitor.tell(&callbacks, 4, [10, 0, 0, 1].into());
        assert!(told.recv_timeout(Duration::from_millis(20)).is_err());
    }

    #[test]
    fn answers_to_messages_are_calls_too() {
        let (port, told) = client(vec![Take::Answer(NlmStats::GRANTED)]);
        let callbacks = callbacks(port);
        let mut e = Encoder::new();
        e.put(&Res { cookie: "abc".into(), stat: NlmStats::BLOCKED });
        callbacks.message(
            Route { client: HERE, server: HERE, secured: false },
            4,
            Proc::LOCK_RES,
            e.buffer(),
        );
        let call = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(call, (4, Proc::LOCK_RES, e.buffer().to_vec()));
    }
}
