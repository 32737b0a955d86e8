//! What the emulated networks achieve on this host: round trips of small UDP packets through the wire, and the throughput of one
//! TCP connection through the wire, the relay and plain loopback, with the CPU time that it takes.
//!
//! `cargo run --release -p benchmaster-netem --example wire_figures -- [SECONDS]`; as root, or within
//! `unshare --user --map-root-user`.

#![allow(clippy::print_stdout, reason = "an example prints what it measured")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use benchmaster_netem::link::Link;
use benchmaster_netem::namespace::Namespace;
use benchmaster_netem::network::{Network, NetworkConfig};
use benchmaster_netem::relay::{Relay, RelayConfig};

fn main() -> Result<()> {
    let seconds: f64 = std::env::args().nth(1).map_or(Ok(3.0), |text| text.parse())?;
    let mut network = Network::start(NetworkConfig::new(1, Link::default()))?;
    println!("means: {}, base round trip {:.1?}\n", network.means(), network.base_rtt());
    round_trips(&mut network, seconds)?;
    println!("\n| one-way delay | path | Gbit/s | CPU s/GB in all | of that not sender or receiver |");
    println!("|---|---|---|---|---|");
    for delay in [0, 1, 10, 40].map(Duration::from_millis) {
        network.set(Link::of_delay(delay))?;
        network.clear()?;
        let (server, client) = (network.server(), network.client(0));
        let listener = server.run(|| TcpListener::bind((network.server_address(), 0)))??;
        let address = listener.local_addr()?;
        transfer(client, listener, address, seconds)?.print(delay, "wire");
        let late = network.achieved()?;
        let here = Namespace::current()?;
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let relay = Relay::start(RelayConfig::new(listener.local_addr()?, delay))?;
        transfer(&here, listener, relay.address(), seconds)?.print(delay, "relay");
        drop(relay);
        if delay.is_zero() {
            let listener = TcpListener::bind("127.0.0.1:0")?;
            let address = listener.local_addr()?;
            transfer(&here, listener, address, seconds)?.print(delay, "loopback");
        }
        println!("<!-- wire: {:?}, overruns {} -->", late.lateness(), late.overruns());
    }
    Ok(())
}

fn round_trips(network: &mut Network, seconds: f64) -> Result<()> {
    println!("| one-way delay | count | median − 2 × delay | p99 − 2 × delay | late: median | p99 | max |");
    println!("|---|---|---|---|---|---|---|");
    for delay in [0, 100, 1_000, 10_000, 40_000, 80_000].map(Duration::from_micros) {
        network.set(Link::of_delay(delay))?;
        network.clear()?;
        let server = network.server().run(|| UdpSocket::bind((network.server_address(), 0)))??;
        let address = server.local_addr()?;
        let client = network.client(0).run(|| UdpSocket::bind("0.0.0.0:0"))??;
        thread::spawn(move || {
            let mut buffer = [0; 64];
            while let Ok((length, from)) = server.recv_from(&mut buffer)
                && length > 1
            {
                let _ = server.send_to(&buffer[..length], from);
            }
        });
        let mut took = Vec::new();
        let started = Instant::now();
        while started.elapsed().as_secs_f64() < seconds {
            let sent = Instant::now();
            client.send_to(&[0; 32], address)?;
            client.recv_from(&mut [0; 64])?;
            took.push(sent.elapsed());
        }
        client.send_to(&[0], address)?;
        took.sort_unstable();
        let over = |part: f64| took[((took.len() - 1) as f64 * part) as usize].saturating_sub(2 * delay);
        let late = network.achieved()?.lateness().unwrap_or_default();
        println!(
            "| {delay:?} | {} | {:.1?} | {:.1?} | {:.1?} | {:.1?} | {:.1?} |",
            took.len(),
            over(0.5),
            over(0.99),
            late.median,
            late.p99,
            late.max
        );
    }
    Ok(())
}

struct Transfer {
    bytes: u64,
    time: Duration,
    cpu: Duration,
    ends: Duration,
}

impl Transfer {
    fn print(&self, delay: Duration, path: &str) {
        let gigabytes = self.bytes as f64 / 1e9;
        let rate = gigabytes * 8.0 / self.time.as_secs_f64();
        let all = self.cpu.as_secs_f64() / gigabytes;
        let between = self.cpu.saturating_sub(self.ends).as_secs_f64() / gigabytes;
        println!("| {delay:?} | {path} | {rate:.2} | {all:.2} | {between:.2} |");
    }
}

/// Sends for some time; the bytes and times are those of the receiver after the first fifth.
fn transfer(
    client: &Namespace,
    listener: TcpListener,
    address: SocketAddr,
    seconds: f64,
) -> Result<Transfer> {
    let (time, warm_up) = (Duration::from_secs_f64(seconds), Duration::from_secs_f64(seconds / 5.0));
    thread::scope(|scope| {
        let sender = scope.spawn(move || -> Result<Duration> {
            client.run(|| {
                let mut stream = TcpStream::connect(address)?;
                let block = vec![7; 128 << 10];
                let started = Instant::now();
                let mut at_start = None;
                while started.elapsed() < time + warm_up {
                    if started.elapsed() > warm_up {
                        at_start.get_or_insert_with(|| clock(Which::Thread));
                    }
                    stream.write_all(&block)?;
                }
                Ok(clock(Which::Thread) - at_start.unwrap_or_default())
            })?
        });
        let (mut stream, _) = listener.accept()?;
        let mut buffer = vec![0; 256 << 10];
        let begun = Instant::now();
        let mut bytes = 0;
        let mut start = None;
        while begun.elapsed() < time + warm_up {
            let read = stream.read(&mut buffer)?;
            if read == 0 {
                break;
            }
            match &start {
                Some(_) => bytes += read as u64,
                None if begun.elapsed() > warm_up => {
                    start = Some((Instant::now(), clock(Which::Process), clock(Which::Thread)));
                }
                None => {}
            }
        }
        let (since, process, own) = start.ok_or_else(|| anyhow!("nothing was received"))?;
        let (time, cpu, own) = (since.elapsed(), clock(Which::Process) - process, clock(Which::Thread) - own);
        // What is still under way.
        while stream.read(&mut buffer)? > 0 {}
        let sender = sender.join().map_err(|_| anyhow!("the sender failed"))??;
        Ok(Transfer { bytes, time, cpu, ends: own + sender })
    })
}

enum Which {
    Process,
    Thread,
}

fn clock(which: Which) -> Duration {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(match which {
        Which::Process => ClockId::ProcessCPUTime,
        Which::Thread => ClockId::ThreadCPUTime,
    });
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}
