//! Calls that threads hand to the server's dispatcher, without sockets: what is left is the server's own work, and how far
//! threads are in each other's way.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::xdr::Encoder;
use benchmaster_nfs_server::Server;
use benchmaster_nfs_server::dispatch::{self, Conversation, Disposition};
use benchmaster_nfs_server::moment::Moment;
use benchmaster_nfs_server::peer::Peer;
use benchmaster_nfs_server::reply::Reply;
use benchmaster_nfs_server::state::ConnectionId;
use rustix::time::{ClockId, clock_gettime};

use super::calls::Prepared;

/// What a measurement found.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Direct {
    pub(crate) operations: u64,
    pub(crate) elapsed: Duration,
    /// CPU time of the threads, the making of the calls included.
    pub(crate) cpu: Duration,
    /// How often a thread went to sleep: a lock was held for longer than it is worth spinning.
    pub(crate) sleeps: u64,
    /// Acquisitions of locks on NFSv4 state that found the lock held.
    pub(crate) waits: u64,
}

/// Runs one thread per prepared connection for some time.
pub(crate) fn run(server: &Server, prepared: Vec<Prepared>, time: Duration) -> Result<Direct> {
    let (start, stop) = (Barrier::new(prepared.len() + 1), AtomicBool::new(false));
    let waits = server.report().state.waits;
    let mut sum = std::thread::scope(|scope| {
        let threads: Vec<_> = prepared
            .into_iter()
            .map(|prepared| scope.spawn(|| thread(server, prepared, &start, &stop)))
            .collect();
        start.wait();
        let began = Instant::now();
        std::thread::sleep(time);
        stop.store(true, Ordering::Relaxed);
        let elapsed = began.elapsed();
        let mut sum = Direct { elapsed, ..Direct::default() };
        for thread in threads {
            let one = thread.join().ok().context("a thread panicked")??;
            sum.operations += one.operations;
            sum.cpu += one.cpu;
            sum.sleeps += one.sleeps;
        }
        anyhow::Ok(sum)
    })?;
    sum.waits = server.report().state.waits - waits;
    Ok(sum)
}

fn thread(server: &Server, mut prepared: Prepared, start: &Barrier, stop: &AtomicBool) -> Result<Direct> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 700));
    // As if it had come on the connection that made it ready.
    let connection = ConnectionId(prepared.stream.local_addr()?.port().into());
    let peer = Peer {
        connection,
        address,
        local: server.address(),
        outbox: Some(Arc::default()),
        protection: Default::default(),
    };
    let shared = server.shared();
    let (mut conversation, mut reply, mut calls) = (Conversation::default(), Reply::new(), Encoder::new());
    start.wait();
    let (mut found, cpu, sleeps) = (Direct::default(), cpu_time(), sleeps()?);
    while !stop.load(Ordering::Relaxed) {
        calls.clear();
        (0..prepared.window).for_each(|slot| prepared.calls.next(slot, prepared.window, &mut calls));
        let (mut rest, now) = (calls.buffer(), Moment::now());
        while let Some((mark, after)) = rest.split_first_chunk::<4>() {
            let length = (u32::from_be_bytes(*mark) & !record::LAST_FRAGMENT) as usize;
            let (message, after) = after.split_at(length);
            rest = after;
            let begin = reply.encoder.buffer().len();
            let handled = dispatch::handle(&shared, &peer, &mut conversation, message, &mut reply, now);
            ensure!(handled == Disposition::Send, "{handled:?}");
            // The status is behind the header of an accepted reply.
            let front = reply.encoder.buffer().get(begin..begin + 28);
            ensure!(front.is_some_and(|front| front.ends_with(&[0; 4])), "{front:?}");
            found.operations += 1;
        }
        reply.clear();
    }
    found.cpu = cpu_time().saturating_sub(cpu);
    found.sleeps = self::sleeps()? - sleeps;
    Ok(found)
}

/// Nanoseconds of CPU time of one addition to a word that all threads have, or to words of their own.
pub(crate) fn additions(threads: usize, common: bool) -> f64 {
    #[derive(Default)]
    #[repr(align(128))]
    struct Word(AtomicU64);
    const EACH: u64 = 2_000_000;
    let words: Vec<Word> = (0..threads).map(|_| Word::default()).collect();
    let cpu: Duration = std::thread::scope(|scope| {
        let add = |number: usize| {
            let word = &words[if common { 0 } else { number }].0;
            let began = cpu_time();
            for _ in 0..EACH {
                word.fetch_add(1, Ordering::Relaxed);
            }
            cpu_time().saturating_sub(began)
        };
        let threads: Vec<_> = (0..threads).map(|number| scope.spawn(move || add(number))).collect();
        threads.into_iter().filter_map(|thread| thread.join().ok()).sum()
    });
    cpu.as_nanos() as f64 / (EACH * threads as u64) as f64
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

fn sleeps() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let number = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
    Ok(number.context("voluntary_ctxt_switches")?.trim().parse()?)
}
