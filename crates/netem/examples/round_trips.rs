//! What the relay achieves on this host: round trips of 200 bytes, one at a time, through it and without it.
//!
//! `cargo run --release -p benchmaster-netem --example round_trips -- [COUNT]`

#![allow(clippy::print_stdout, reason = "an example prints what it measured")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Result;
use benchmaster_netem::relay::{Relay, RelayConfig};

fn main() -> Result<()> {
    let count: usize = std::env::args().nth(1).map_or(Ok(200), |text| text.parse())?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?;
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || echo(stream));
        }
    });
    let [bare, ..] = round_trips(target, count)?;
    println!("without a relay: median {bare:.1?}\n");
    println!("| delay | round trip asked | median | 99 % | longest | late: median | 99 % | most |");
    println!("|---|---|---|---|---|---|---|---|");
    for delay in [0, 100, 1_000, 10_000, 40_000].map(Duration::from_micros) {
        let relay = Relay::start(RelayConfig::new(target, delay))?;
        let [median, most, longest] = round_trips(relay.address(), count)?;
        let achieved = relay.stop();
        println!(
            "| {delay:?} | {:?} | {median:.1?} | {most:.1?} | {longest:.1?} | {:.1?} | {:.1?} | {:.1?} |",
            2 * delay,
            achieved.lateness_median,
            achieved.lateness_99,
            achieved.lateness_max
        );
    }
    Ok(())
}

fn echo(mut stream: TcpStream) {
    let mut buffer = [0; 4096];
    let _ = stream.set_nodelay(true);
    while let Ok(len @ 1..) = stream.read(&mut buffer) {
        if stream.write_all(&buffer[..len]).is_err() {
            return;
        }
    }
}

/// Median, 99th percentile and maximum.
fn round_trips(address: SocketAddr, count: usize) -> Result<[Duration; 3]> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    let mut message = [7; 200];
    let mut took = Vec::with_capacity(count);
    // The first one pays for the handshake.
    for round in 0..=count {
        let started = Instant::now();
        stream.write_all(&message)?;
        stream.read_exact(&mut message)?;
        if round > 0 {
            took.push(started.elapsed());
        }
    }
    took.sort_unstable();
    let at = |part: f64| took[((took.len() - 1) as f64 * part) as usize];
    Ok([at(0.5), at(0.99), at(1.0)])
}
