//! Version 4 against a server whose replies are damaged on the way: every operation ends, without a panic, and in bounded
//! memory.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test")]

#[path = "support/embedded.rs"]
mod embedded;
#[path = "support/memory.rs"]
mod memory;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_client::delay::DelayPolicy;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::types::{AccessBits, Create, LockKind, OpenHow, Range, SetAttributes, Stability};
use benchmaster_nfs_client::v4::{Client, Connect, File};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;

use embedded::{run, server};
use memory::MOST;

/// More than the messages and buffers of a few connections at their longest, and of the server.
const BOUND: usize = 128 << 20;

/// Small numbers with a long period, the same in every run.
struct Random(u64);

impl Random {
    fn draw(&mut self, below: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % u64::from(below)) as u32
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
    fn damage(&mut self, mut message: Vec<u8>) -> Option<Vec<u8>> {
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

/// Stands between client and server.
struct Between {
    address: SocketAddr,
    /// Of a hundred replies so many are damaged.
    damaged: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
}

impl Between {
    fn start(server: SocketAddr, seed: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (damaged, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
        let (share, stopped) = (damaged.clone(), stop.clone());
        std::thread::spawn(move || {
            for (number, stream) in (1..).zip(listener.incoming()) {
                let Ok(mut client) = stream else { return };
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let Ok(mut server) = TcpStream::connect(server) else { return };
                let (mut to_server, from_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                std::thread::spawn(move || {
                    let _ = std::io::copy(&mut &from_client, &mut to_server);
                    let _ = to_server.shutdown(std::net::Shutdown::Both);
                });
                let share = share.clone();
                std::thread::spawn(move || {
                    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number);
                    let _ = replies(&mut server, &mut client, &mut random, &share);
                    let _ = client.shutdown(std::net::Shutdown::Both);
                    let _ = server.shutdown(std::net::Shutdown::Both);
                });
            }
        });
        Self { address, damaged, stop }
    }
}

impl Drop for Between {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn replies(
    server: &mut TcpStream,
    client: &mut TcpStream,
    random: &mut Random,
    share: &AtomicU64,
) -> std::io::Result<()> {
    loop {
        let mut mark = [0; 4];
        server.read_exact(&mut mark)?;
        let mut message = vec![0; (u32::from_be_bytes(mark) & !LAST_FRAGMENT) as usize];
        server.read_exact(&mut message)?;
        if u64::from(random.draw(100)) < share.load(Ordering::Relaxed) {
            match random.damage(message) {
                Some(record) => client.write_all(&record)?,
                None => return Ok(()),
            }
        } else {
            client.write_all(&mark)?;
            client.write_all(&message)?;
        }
    }
}

/// Number of operations of [`operate`].
const OPERATIONS: u32 = 20;

/// One operation. Whether it fails is the server's luck.
async fn operate(client: &Client, file: &File, number: u32) {
    let root = client.root();
    let (name, range) = (&b"name"[..], Range { offset: 0, length: 1 });
    let how = |create| OpenHow { read: true, write: true, create, truncate: true, mode: 0o600 };
    match number {
        0 => drop(client.lookup(&root, name).await),
        1 => drop(client.getattr(&root).await),
        2 => drop(
            client.setattr(&root, None, &SetAttributes { mode: Some(0o755), ..Default::default() }).await,
        ),
        3 => drop(client.access(&root, AccessBits(AccessBits::ALL)).await),
        4..=6 => {
            let create = [Create::No, Create::IfAbsent, Create::Exclusive][number as usize - 4];
            if let Ok(opened) = client.open(&root, name, &how(create)).await {
                let _ = client.close(opened.file).await;
            }
        }
        7 | 8 => {
            let mut buffer = vec![0; if number == 7 { 8192 } else { 65_536 }];
            if let Ok(read) = client.read(file, &mut buffer, 0).await {
                assert!(read.len <= buffer.len());
            }
        }
        9 => {
            if let Ok(written) = client.write(file, &[1; 40_000], 0, Stability::Unstable).await {
                assert!(written.len <= 40_000);
            }
        }
        10 => drop(client.commit(file, range).await),
        11 => drop(client.lock(file, 1, LockKind::Write, range, false).await),
        12 => drop(client.unlock(file, 1, range).await),
        13 => drop(client.mkdir(&root, name, 0o700).await),
        14 => drop(client.symlink(&root, name, b"target").await),
        15 => drop(client.readlink(&root).await),
        16 => drop(client.link(&file.handle(), &root, name).await),
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

#[test]
fn every_operation_ends_when_replies_are_damaged() {
    for (minor, seeds) in [(0, 0..4), (1, 10..14), (2, 20..24)] {
        let server = server(&[]);
        for seed in seeds {
            let between = Between::start(server.address(), seed);
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
            run(async |reactor, counters| {
                let how = OpenHow {
                    read: true,
                    write: true,
                    create: Create::IfAbsent,
                    truncate: false,
                    mode: 0o600,
                };
                // A busy machine may be late.
                let client = loop {
                    if let Ok(client) = Client::connect(&reactor, &counters, &connect).await {
                        break client;
                    }
                };
                let file = client.open(&client.root(), b"file", &how).await.unwrap().file;
                client.write(&file, &[7; 100_000], 0, Stability::File).await.unwrap();
                between.damaged.store(50, Ordering::Relaxed);
                let mut order = Random(seed);
                for _ in 0..40 {
                    let begun = Instant::now();
                    let number = order.draw(OPERATIONS);
                    operate(&client, &file, number).await;
                    assert!(begun.elapsed() < Duration::from_secs(60));
                }
                let _ = client.close(file).await;
            });
        }
        let most = MOST.load(Ordering::Relaxed);
        assert!(most < BOUND, "{most} bytes");
    }
}

#[test]
fn a_mount_ends_when_replies_are_damaged() {
    let server = server(&[]);
    for minor in 0..3 {
        for seed in 0..20 {
            let between = Between::start(server.address(), seed);
            between.damaged.store(60, Ordering::Relaxed);
            let pause = Duration::from_millis(1);
            let connect = Connect {
                timeo: Duration::from_millis(20),
                retrans: 1,
                delay: DelayPolicy { initial: pause, longest: pause, give_up: 5 * pause },
                ..Connect::new(between.address, "/export", minor, &format!("client {seed}"), [1; 8])
            };
            run(async |reactor, counters| {
                if let Ok(client) = Client::connect(&reactor, &counters, &connect).await {
                    let _ = client.getattr(&client.root()).await;
                    let _ = client.unmount().await;
                }
            });
        }
    }
    let most = MOST.load(Ordering::Relaxed);
    assert!(most < BOUND, "{most} bytes");
}
