//! Version 4 against a server whose replies are damaged on the way: every operation ends, without a panic, and in bounded
//! memory.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::protocol::{NfsResult, Protocol};
use benchmaster_nfs_client::types::{Create, OpenHow, Stability};
use benchmaster_nfs_client::v4::{Client, Connect, File};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;

use super::between::Between;
use super::{BOUND, OPERATIONS, operate};
use crate::support::allocations::peak_bytes;
use crate::support::embedded::{run, server};
use crate::support::random::Random;
use crate::support::scripted::record;

/// What becomes of replies.
struct Damage(Random);

impl Damage {
    fn draw(&mut self, limit: u32) -> u32 {
        self.0.draw(limit)
    }

    fn word(&mut self) -> u32 {
        match self.draw(8) {
            0 => 0,
            1 => 1,
            2 => u32::MAX,
            3 => 1 << 31,
            4 => self.draw(100),
            // Statuses of version 4.
            5 | 6 => 10_001 + self.draw(96),
            _ => self.draw(u32::MAX),
        }
    }

    /// What becomes of a reply; nothing is sent and the connection closed for `None`.
    fn apply(&mut self, mut message: Vec<u8>) -> Option<Vec<u8>> {
        let mut mark = None;
        match self.draw(10) {
            // A word, or a few, have other values. The transaction number stays, mostly.
            0..=5 => {
                for _ in 0..=self.draw(3) {
                    let words = (message.len() / 4).max(7) as u32;
                    // Most of what matters comes early.
                    let at = if self.draw(2) == 0 { 6 + self.draw(20) } else { self.draw(words) };
                    let word = self.word().to_be_bytes();
                    if let Some(place) = message.get_mut(at as usize * 4..at as usize * 4 + 4) {
                        place.copy_from_slice(&word);
                    }
                }
            }
            6 => message.truncate(self.draw(message.len() as u32 + 1) as usize),
            7 => message.extend(std::iter::repeat_n(0x5a, self.draw(4000) as usize)),
            8 => mark = Some([LAST_FRAGMENT | 0x7fff_ffff, LAST_FRAGMENT, 5, 0][self.draw(4) as usize]),
            _ => return None,
        }
        let mut record = mark.unwrap_or(LAST_FRAGMENT | message.len() as u32).to_be_bytes().to_vec();
        record.extend(message);
        Some(record)
    }
}

/// A server that damages replies, and the percentage of them that it damages, which can be set at any time.
fn damaging(server: SocketAddr, seed: u64) -> (Between, Arc<AtomicU64>) {
    let damaged = Arc::new(AtomicU64::new(0));
    let share = damaged.clone();
    let between = Between::start(server, move |connection| {
        let (mut damage, share) = (Damage(Random::new(seed << 16 | connection)), share.clone());
        Box::new(move |message| {
            let damages = u64::from(damage.draw(100)) < share.load(Ordering::Relaxed);
            if damages { damage.apply(message) } else { Some(record(&message)) }
        })
    });
    (between, damaged)
}

/// Opens a file and writes it.
async fn prepare(client: &Client) -> NfsResult<File> {
    let how = OpenHow { read: true, write: true, create: Create::IfAbsent, truncate: false, mode: 0o600 };
    let file = client.open(&client.root(), b"file", &how).await?.file;
    client.write(&file, &[7; 100_000], 0, Stability::File).await?;
    Ok(file)
}

#[test]
fn every_operation_ends_when_replies_are_damaged() {
    for (minor, seeds) in [(0, 0..4), (1, 10..14), (2, 20..24)] {
        let server = server(&[]);
        for seed in seeds {
            let (between, damaged) = damaging(server.address(), seed);
            let pause = Duration::from_millis(1);
            let connect = Connect {
                // Long enough for what is needed to begin, also on a busy machine.
                timeo: Duration::from_millis(50),
                retrans: 3,
                rsize: 1 << 20,
                delay: DelayPolicy { initial: pause, longest: pause, give_up: 5 * pause },
                delegations: true,
                nconnect: 2,
                ..Connect::new(between.address, "/export", minor, &format!("client {seed}"), [1; 8])
            };
            let peak = peak_bytes(|| {
                run(async |reactor, counters| {
                    // A busy machine may be late.
                    let (client, file) = loop {
                        if let Ok(client) = Client::connect(&reactor, &counters, &connect).await
                            && let Ok(file) = prepare(&client).await
                        {
                            break (client, file);
                        }
                    };
                    damaged.store(50, Ordering::Relaxed);
                    let mut order = Random::new(seed);
                    for _ in 0..40 {
                        let begun = Instant::now();
                        let number = order.draw(OPERATIONS);
                        operate(&client, &file, number, false).await;
                        assert!(begun.elapsed() < Duration::from_secs(60));
                    }
                    let _ = client.close(file).await;
                });
            });
            assert!(peak < BOUND, "{peak} bytes");
        }
    }
}

#[test]
fn a_mount_ends_when_replies_are_damaged() {
    let server = server(&[]);
    for minor in 0..3 {
        for seed in 0..20 {
            let (between, damaged) = damaging(server.address(), seed);
            damaged.store(60, Ordering::Relaxed);
            let pause = Duration::from_millis(1);
            let connect = Connect {
                timeo: Duration::from_millis(20),
                retrans: 1,
                delay: DelayPolicy { initial: pause, longest: pause, give_up: 5 * pause },
                ..Connect::new(between.address, "/export", minor, &format!("client {seed}"), [1; 8])
            };
            let peak = peak_bytes(|| {
                run(async |reactor, counters| {
                    if let Ok(client) = Client::connect(&reactor, &counters, &connect).await {
                        let _ = client.getattr(&client.root()).await;
                        let _ = client.unmount().await;
                    }
                });
            });
            assert!(peak < BOUND, "{peak} bytes");
        }
    }
}
