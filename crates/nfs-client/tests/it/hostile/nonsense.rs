//! Versions 2 and 3, MOUNT and NLM against a server that answers nonsense: every operation ends, without a panic, and in
//! bounded memory.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_client::counters::Counters;
use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{Create, Handle, OpenHow};
use benchmaster_nfs_client::v3::Connect;
use benchmaster_nfs_client::{v2, v3};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;
use benchmaster_nfs_proto::rpc::{RpcReply, put_reply};
use benchmaster_nfs_proto::xdr::Encoder;

use super::{BOUND, OPERATIONS, operate};
use crate::support::allocations::peak_bytes;
use crate::support::embedded::run;
use crate::support::random::Random;
use crate::support::scripted::{Server, reply};
use crate::support::stub::{Call, Reply, serve};

/// Words and replies at random.
#[derive(Debug, Clone, Copy)]
struct Nonsense(Random);

impl Nonsense {
    fn new(seed: u64) -> Self {
        Self(Random::new(seed))
    }

    fn draw(&mut self, limit: u32) -> u32 {
        self.0.draw(limit)
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

    fn reply(&mut self, call: &Call<'_>) -> Reply {
        match self.draw(16) {
            // Success, and then anything.
            0..=7 => {
                let mut results = 0u32.to_be_bytes().to_vec();
                results.extend(self.words(80));
                Reply::Results(results)
            }
            8..=9 => Reply::Results(self.words(80)),
            // Large data, more or less of it than is said.
            10 | 11 => {
                let len = [20_000, 65_536, 70_000, u32::MAX][self.draw(4) as usize];
                let mut results: Vec<u8> = match call.version {
                    2 => vec![0; 4 + 17 * 4],
                    _ => [0u32, 0, len, 0].iter().flat_map(|word| word.to_be_bytes()).collect(),
                };
                results.extend(len.to_be_bytes());
                results.resize(results.len() + [0, 19_999, 65_536, 300_000][self.draw(4) as usize], 0x55);
                Reply::Results(results)
            }
            12 => {
                // A record of any length, with any content.
                let mark = [LAST_FRAGMENT | self.draw(64), LAST_FRAGMENT | 0x7fff_ffff, self.draw(9), 0];
                let mut bytes = mark[self.draw(4) as usize].to_be_bytes().to_vec();
                bytes.extend(self.words(20));
                Reply::Raw(bytes)
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
                Reply::Raw(bytes)
            }
            // To nobody, twice, in pieces of a call.
            14 => match self.draw(3) {
                0 => Reply::Raw(reply(call.xid.wrapping_add(1 + self.draw(3)), &self.words(20))),
                1 => Reply::Raw([reply(call.xid, &[0; 64]), reply(call.xid, &[0; 64])].concat()),
                _ => Reply::Raw(reply(call.xid, &[0; 64])[..self.draw(40) as usize].to_vec()),
            },
            _ => {
                if self.draw(2) == 0 {
                    Reply::Close
                } else {
                    Reply::Silence
                }
            }
        }
    }
}

fn to(server: &Server) -> Connect {
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

/// A server that lets itself be mounted, and looked into once, and then answers at random.
fn pretending(seed: u64) -> Server {
    let mut random = Nonsense::new(seed);
    let mut looked = false;
    serve(move |call: &Call<'_>| {
        if !looked {
            // LOOKUP has the same number in no two versions, and comes last of what mounting needs.
            if (call.version, call.procedure) == (3, 3) && call.program == 100_003 {
                looked = true;
                let mut results = vec![0; 4];
                results.extend([0, 0, 0, 32]);
                results.extend([9; 32]);
                results.extend([0; 8]);
                return Some(Reply::Results(results));
            }
            if (call.version, call.procedure) == (2, 4) {
                looked = true;
                let mut results = vec![0; 4];
                results.extend([9; 32]);
                results.extend([0, 0, 0, 1]);
                results.extend([0; 16 * 4]);
                return Some(Reply::Results(results));
            }
            return None;
        }
        Some(random.reply(call))
    })
}

/// Every operation once; `false` when the file could not be opened, because a busy machine was late.
async fn all_operations<P: Protocol>(client: &P) -> bool {
    let how = OpenHow { read: true, write: true, create: Create::No, truncate: false, mode: 0 };
    let Ok(opened) = client.open(&client.root(), b"file", &how).await else { return false };
    assert_eq!(P::handle(&opened.file), Handle::new(&[9; 32]).unwrap());
    for number in 0..OPERATIONS {
        operate(client, &opened.file, number, true).await;
    }
    true
}

/// A client of either version against a server of its own.
fn session<P: Protocol>(seed: u64, connect: impl AsyncFn(&Reactor, &Rc<Counters>, &Connect) -> Option<P>) {
    let attempt = || {
        let server = pretending(seed);
        run(async |reactor, counters| {
            let Some(client) = connect(&reactor, &counters, &to(&server)).await else { return false };
            let complete = all_operations(&client).await;
            client.unmount().await.unwrap();
            assert_eq!(counters.outstanding(), 0);
            complete
        })
    };
    while !attempt() {}
}

#[test]
fn replies_that_are_nonsense_cost_an_error() {
    for seed in 0..30 {
        let peak = peak_bytes(|| {
            session(seed, async |reactor, counters, connect| {
                v3::Client::connect(reactor, counters, connect).await.ok()
            });
            session(seed + 1000, async |reactor, counters, connect| {
                v2::Client::connect(reactor, counters, connect).await.ok()
            });
        });
        assert!(peak < BOUND, "{peak} bytes with seed {seed}");
    }
}

#[test]
fn mounting_from_a_server_that_answers_nonsense() {
    for seed in 0..100 {
        let mut random = Nonsense::new(seed + 5000);
        let server =
            serve(move |call: &Call<'_>| if random.draw(2) == 0 { None } else { Some(random.reply(call)) });
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
