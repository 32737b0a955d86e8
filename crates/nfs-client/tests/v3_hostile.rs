//! Versions 2 and 3, MOUNT and NLM against a server that answers nonsense: every operation ends, without a panic, and in
//! bounded memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

#[path = "support/embedded.rs"]
mod embedded;
#[path = "support/memory.rs"]
mod memory;
#[path = "support/puppet.rs"]
mod puppet;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::Ordering;
use std::time::Duration;

use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::types::{
    AccessBits, Create, Handle, LockKind, OpenHow, Range, SetAttributes, Stability,
};
use benchmaster_nfs_client::v3::Connect;
use benchmaster_nfs_client::{v2, v3};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::rpc::{RpcReply, put_reply};
use benchmaster_nfs_proto::xdr::Encoder;

use embedded::run;
use memory::{MOST, NOW};
use puppet::{Answer, Call, Puppet, record};

/// More than the messages and buffers of a few connections at their longest.
const BOUND: usize = 64 << 20;

#[derive(Debug, Clone, Copy)]
struct Random(u64);

impl Random {
    fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn draw(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(below)) as u32
    }

    /// A word as replies have them: presence, counts, lengths, and absurd ones.
    fn word(&mut self) -> u32 {
        match self.draw(12) {
            0..=2 => 0,
            3..=5 => 1,
            6 => self.draw(8),
            7 => 32,
            8 => self.draw(1 << 20),
            9 => u32::MAX,
            10 => 1 << 31 | self.draw(100),
            _ => self.draw(u32::MAX),
        }
    }

    fn words(&mut self, most: u32) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..self.draw(most)).flat_map(|_| self.word().to_be_bytes()).collect();
        // Not always whole words.
        bytes.truncate(bytes.len().saturating_sub(self.draw(40).saturating_sub(36) as usize));
        bytes
    }

    fn answer(&mut self, call: &Call<'_>) -> Answer {
        match self.draw(16) {
            // Success, and then anything.
            0..=7 => {
                let mut results = 0u32.to_be_bytes().to_vec();
                results.extend(self.words(80));
                Answer::Results(results)
            }
            8..=9 => Answer::Results(self.words(80)),
            // Large data, more or less of it than is said.
            10 | 11 => {
                let len = [20_000, 65_536, 70_000, u32::MAX][self.draw(4) as usize];
                let mut results: Vec<u8> = match call.version {
                    2 => vec![0; 4 + 17 * 4],
                    _ => [0u32, 0, len, 0].iter().flat_map(|word| word.to_be_bytes()).collect(),
                };
                results.extend(len.to_be_bytes());
                results.resize(results.len() + [0, 19_999, 65_536, 300_000][self.draw(4) as usize], 0x55);
                Answer::Results(results)
            }
            12 => {
                // A record of any length, with any content.
                let mark = [LAST_FRAGMENT | self.draw(64), LAST_FRAGMENT | 0x7fff_ffff, self.draw(9), 0];
                let mut bytes = mark[self.draw(4) as usize].to_be_bytes().to_vec();
                bytes.extend(self.words(20));
                Answer::Raw(bytes)
            }
            13 => {
                let mut e = Encoder::new();
                let refusals = [
                    RpcReply::ProgUnavail,
                    RpcReply::ProgMismatch(7, 9),
                    RpcReply::ProcUnavail,
                    RpcReply::GarbageArgs,
                    RpcReply::SystemErr,
                    RpcReply::RpcMismatch(3, 3),
                ];
                put_reply(&mut e, call.xid, refusals[self.draw(6) as usize]);
                let mut bytes = (LAST_FRAGMENT | e.len() as u32).to_be_bytes().to_vec();
                bytes.extend_from_slice(e.buffer());
                Answer::Raw(bytes)
            }
            // To nobody, twice, in pieces of a call.
            14 => match self.draw(3) {
                0 => Answer::Raw(record(call.xid.wrapping_add(1 + self.draw(3)), &self.words(20))),
                1 => Answer::Raw([record(call.xid, &[0; 64]), record(call.xid, &[0; 64])].concat()),
                _ => Answer::Raw(record(call.xid, &[0; 64])[..self.draw(40) as usize].to_vec()),
            },
            _ => {
                if self.draw(2) == 0 {
                    Answer::Close
                } else {
                    Answer::Silence
                }
            }
        }
    }
}

fn to(server: &Puppet) -> Connect {
    let pause = Duration::from_millis(1);
    let delay = DelayPolicy { initial: pause, longest: pause, give_up: 5 * pause };
    Connect {
        port: Some(server.address.port()),
        timeout: Duration::from_millis(15),
        retransmissions: 0,
        delay,
        lock_delay: delay,
        ..Connect::new(IpAddr::V4(Ipv4Addr::LOCALHOST), "/export")
    }
}

/// Number of operations of [`every_operation`].
const OPERATIONS: u32 = 20;

/// One operation. Whether it fails is the server's luck.
async fn operate<P: Protocol>(client: &P, file: &P::File, number: u32) {
    let root = client.root();
    let (name, range) = (&b"name"[..], Range { offset: 0, length: 1 });
    let how = |create| OpenHow { read: true, write: true, create, truncate: true, mode: 0o600 };
    match number {
        0 => drop(client.lookup(&root, name).await),
        1 => drop(client.getattr(&root).await),
        2 => drop(client.setattr(&root, None, &SetAttributes::default()).await),
        3 => drop(client.access(&root, AccessBits(AccessBits::ALL)).await),
        4 => drop(client.open(&root, name, &how(Create::No)).await),
        5 => drop(client.open(&root, name, &how(Create::IfAbsent)).await),
        6 => drop(client.open(&root, name, &how(Create::Exclusive)).await),
        7 | 8 => {
            let mut buffer = vec![0; if number == 7 { 8192 } else { 65_536 }];
            if let Ok(read) = client.read(file, &mut buffer, 0).await {
                assert!(read.len <= buffer.len());
            }
        }
        9 => {
            if let Ok(written) = client.write(file, &[1; 8192], 0, Stability::Unstable).await {
                assert!(written.len <= 8192);
            }
        }
        10 => drop(client.commit(file, range).await),
        11 => drop(client.lock(file, 1, LockKind::Write, range, true).await),
        12 => drop(client.unlock(file, 1, range).await),
        13 => drop(client.mkdir(&root, name, 0o700).await),
        14 => drop(client.symlink(&root, name, b"target").await),
        15 => drop(client.readlink(&root).await),
        16 => drop(client.link(&root, &root, name).await),
        17 => drop(client.remove(&root, name).await.and(client.rmdir(&root, name).await)),
        18 => drop(client.rename((&root, name), (&root, b"other")).await),
        _ => {
            let mut entries = 0;
            for plus in [false, true] {
                let listed = client.readdir(&root, plus, &mut |_| entries += 1).await;
                assert!(entries < 100_000, "{listed:?}");
            }
            let _ = client.space().await;
        }
    }
}

/// A server that lets itself be mounted, and looked into once, and then answers at random.
fn pretending(seed: u64) -> Puppet {
    let mut random = Random::new(seed);
    let mut looked = false;
    Puppet::start(move |call: &Call<'_>| {
        if !looked {
            // LOOKUP has the same number in no two versions, and comes last of what mounting needs.
            if (call.version, call.procedure) == (3, 3) && call.program == 100_003 {
                looked = true;
                let mut results = vec![0; 4];
                results.extend([0, 0, 0, 32]);
                results.extend([9; 32]);
                results.extend([0; 8]);
                return Some(Answer::Results(results));
            }
            if (call.version, call.procedure) == (2, 4) {
                looked = true;
                let mut results = vec![0; 4];
                results.extend([9; 32]);
                results.extend([0, 0, 0, 1]);
                results.extend([0; 16 * 4]);
                return Some(Answer::Results(results));
            }
            return None;
        }
        Some(random.answer(call))
    })
}

async fn all_operations<P: Protocol>(client: &P) {
    let how = OpenHow { read: true, write: true, create: Create::No, truncate: false, mode: 0 };
    let file = client.open(&client.root(), b"file", &how).await.unwrap().file;
    assert_eq!(P::handle(&file), Handle::new(&[9; 32]).unwrap());
    for number in 0..OPERATIONS {
        operate(client, &file, number).await;
    }
}

#[test]
fn replies_that_are_nonsense_cost_an_error() {
    for seed in 0..30 {
        let before = NOW.load(Ordering::Relaxed);
        MOST.store(before, Ordering::Relaxed);
        let server = pretending(seed);
        run(async |reactor, counters| {
            let client = v3::Client::connect(&reactor, &counters, &to(&server)).await.unwrap();
            all_operations(&client).await;
            client.unmount().await.unwrap();
            assert_eq!(counters.outstanding(), 0);
        });
        let server = pretending(seed + 1000);
        run(async |reactor, counters| {
            let client = v2::Client::connect(&reactor, &counters, &to(&server)).await.unwrap();
            all_operations(&client).await;
            client.unmount().await.unwrap();
            assert_eq!(counters.outstanding(), 0);
        });
        let most = MOST.load(Ordering::Relaxed).saturating_sub(before);
        assert!(most < BOUND, "{most} bytes with seed {seed}");
    }
}

#[test]
fn mounting_from_a_server_that_answers_nonsense() {
    for seed in 0..100 {
        let mut random = Random::new(seed + 5000);
        let server = Puppet::start(
            move |call: &Call<'_>| {
                if random.draw(2) == 0 { None } else { Some(random.answer(call)) }
            },
        );
        run(async |reactor, counters| {
            if let Ok(client) = v3::Client::connect(&reactor, &counters, &to(&server)).await {
                assert!(client.limits().max_read > 0 && client.limits().max_read <= 1 << 20);
                assert!(!client.root().bytes().is_empty());
            }
            if let Ok(client) = v2::Client::connect(&reactor, &counters, &to(&server)).await {
                assert!(client.limits().max_write > 0 && client.limits().max_write <= 8192);
            }
        });
    }
}
