//! What connections cost the server: many idle ones, and those whose clients do not read. In a program of their own, so
//! that no other test changes the memory of the process meanwhile.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr, reason = "a test")]

use std::sync::Mutex;
use std::time::{Duration, Instant};

#[allow(dead_code)] // The other tests of the transport use the rest.
#[path = "it/support/transport.rs"]
mod transport;

use transport::{Client, framed, null, stall, start, xid_of};

/// One test at a time.
static TURN: Mutex<()> = Mutex::new(());

fn resident_bytes() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    statm.split_whitespace().nth(1).unwrap().parse::<usize>().unwrap() * 4096
}

#[test]
fn clients_that_do_not_read_cost_bounded_memory_and_nobody_else() {
    let _turn = TURN.lock();
    let server = start(&[]);
    let mut good = Client::new(&server);
    good.ping(0);
    let before = resident_bytes();
    let mut stalled: Vec<(Client, u32)> = Vec::new();
    for _ in 0..8 {
        let mut client = Client::new(&server);
        let calls = stall(&mut client);
        stalled.push((client, calls));
    }
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < stalled.len() * (8 << 20), "{grown} bytes for {} connections", stalled.len());
    for xid in 0..100 {
        assert!(good.ping(xid) < Duration::from_secs(5));
    }
    // Reading what is due lets it go on to the end.
    let (client, calls) = &mut stalled[0];
    for n in 0..*calls {
        assert!(client.reply().is_some(), "reply {n} of {calls}");
    }
    drop(stalled);
    good.ping(1);
}

#[test]
fn ten_thousand_idle_connections() {
    let _turn = TURN.lock();
    const WANTED: u64 = 10_000;
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    // Both ends are here.
    let needed = 2 * WANTED + 500;
    let now = getrlimit(Resource::Nofile);
    let hard = now.maximum.map_or(needed, |hard| hard.max(needed));
    if setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum: Some(hard) }).is_err() {
        setrlimit(Resource::Nofile, Rlimit { current: now.maximum, maximum: now.maximum }).unwrap();
    }
    let allowed = getrlimit(Resource::Nofile).current.unwrap_or(needed);
    let count = WANTED.min(allowed.saturating_sub(500) / 2) as usize;
    if count < WANTED as usize {
        eprintln!(
            "ONLY {count} IDLE CONNECTIONS: the system allows {allowed} descriptors, {needed} are needed"
        );
    }
    let server = start(&[]);
    let mut good = Client::new(&server);
    good.ping(0);
    let before = resident_bytes();
    let mut idle: Vec<Client> = Vec::with_capacity(count);
    for n in 0..count {
        let mut client = Client::new(&server);
        // Each has been used, and every tenth has left a call unfinished.
        client.ping(n as u32);
        if n % 10 == 0 {
            client.send(&framed(&null(n as u32))[..20]);
        }
        idle.push(client);
    }
    let each = resident_bytes().saturating_sub(before) / count.max(1);
    assert!(each < 3000, "{each} bytes per idle connection");
    let mut waits: Vec<Duration> = (0..1000).map(|xid| good.ping(xid)).collect();
    waits.sort();
    assert!(
        waits[500] < Duration::from_millis(20),
        "median {:?} beside {count} idle connections",
        waits[500]
    );
    for n in (0..count).step_by(997) {
        if n % 10 == 0 {
            idle[n].send(&framed(&null(n as u32))[20..]);
            assert_eq!(xid_of(&idle[n].reply().unwrap()), n as u32);
        }
        idle[n].ping(7);
    }
    let began = Instant::now();
    server.stop().unwrap();
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
}
