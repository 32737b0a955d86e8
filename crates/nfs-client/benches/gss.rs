//! What RPCSEC_GSS with Kerberos costs: READ with AUTH_SYS, krb5, krb5i and krb5p, and what the library alone takes for the same
//! messages. The ways take turns, round by round; medians are printed. Needs krb5-kdc, krb5-admin-server and krb5-user, with which it
//! makes a realm of its own.
//!
//! `BENCHMASTER_ROUNDS=9 cargo bench -p benchmaster-nfs-client --bench gss`

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_server::users::Users;
use benchmaster_nfs_server::{Server, ServerConfig, ServerKerberos};
use benchmaster_rpc_gss::{Acceptor, Context, Initiator, InitiatorFiles, Mechanism, ServerName};

use self::realm::{SERVER, Within, within};

#[path = "../../rpc-gss/tests/it/realm.rs"]
mod realm;

/// The size of READs, how many are under way at a time, and the bytes that a round moves.
const SIZES: [(usize, usize, u64); 2] = [(1 << 20, 4, 256 << 20), (4 << 10, 16, 40 << 20)];
const FLAVORS: [&str; 4] = ["sys", "krb5", "krb5i", "krb5p"];
const MIB: f64 = (1 << 20) as f64;
/// Bytes of a call's header up to its verifier, and of a sequence number: what krb5 makes checksums of.
const HEADER: usize = 24 + 8 + 36;

fn main() {
    let rounds = std::env::var("BENCHMASTER_ROUNDS").ok().and_then(|rounds| rounds.parse().ok());
    let rounds: usize = rounds.unwrap_or(9);
    within("main", &["alice"], Duration::from_secs(24 * 3600), |realm| {
        println!("{rounds} rounds, medians; client and server on one host, one thread each");
        for (size, depth, bytes) in SIZES {
            reads(realm, rounds, size, depth, bytes);
        }
    });
}

/// Nanoseconds per call: of wall time, and of all threads' CPU.
type Cost = (f64, f64);

fn reads(realm: &Within, rounds: usize, size: usize, depth: usize, bytes: u64) {
    let mounts = FLAVORS.map(|flavor| Nfs::new(realm, flavor, size));
    let pair = pair(realm);
    let mut costs: [Vec<Cost>; 8] = Default::default();
    for _ in 0..=rounds {
        for (at, mount) in mounts.iter().enumerate() {
            costs[at].push(mount.read(size, depth, bytes));
            costs[4 + at].push(library_alone(&pair, FLAVORS[at], size, bytes / size as u64));
        }
    }
    let medians: Vec<Cost> = costs
        .iter_mut()
        .map(|rounds| {
            // The first one warms up.
            let rounds = &mut rounds[1..];
            let median = |of: fn(&Cost) -> f64| {
                let mut values: Vec<f64> = rounds.iter().map(of).collect();
                values.sort_by(f64::total_cmp);
                values[values.len() / 2]
            };
            (median(|cost| cost.0), median(|cost| cost.1))
        })
        .collect();
    println!(
        "\n{:<10} {:>8} {:>12} {:>12} {:>12} {:>10}",
        format!("{} KiB", size >> 10),
        "MiB/s",
        "CPU ns",
        "beyond sys",
        "library ns",
        "ratio"
    );
    for (at, flavor) in FLAVORS.iter().enumerate() {
        let ((wall, cpu), library) = (medians[at], medians[4 + at].1);
        let beyond = cpu - medians[0].1;
        println!(
            "{flavor:<10} {:>8.0} {cpu:>12.0} {beyond:>12.0} {library:>12.0} {:>10.2}",
            size as f64 / MIB / wall * 1e9,
            beyond / library,
        );
    }
    println!("krb5 takes {:.2} times the CPU time of sys per call", medians[1].1 / medians[0].1);
}

/// Both sides of a context.
fn pair(realm: &Within) -> [Box<dyn Context>; 2] {
    let files = InitiatorFiles { keytab: Some(realm.keytab("alice")), ..InitiatorFiles::default() };
    let client = Initiator::new(ServerName::Host("localhost".into()), &files).unwrap();
    let server = Acceptor::new(Some(&realm.keytab(SERVER))).unwrap();
    let (mut client, mut server) = (client.begin(), server.begin());
    let answer = server.step(&client.step(&[]).unwrap().token).unwrap();
    let last = client.step(&answer.token).unwrap();
    [last.established.unwrap().context, answer.established.unwrap().context]
}

/// What the library does for READs: checksums of headers and numbers at both ends, and of the results, or their encryption.
fn library_alone([client, server]: &[Box<dyn Context>; 2], flavor: &str, size: usize, calls: u64) -> Cost {
    let (header, number, arguments, results) = ([1; HEADER], [2; 4], [3; 100], vec![4; size]);
    measured(calls, || {
        for _ in 0..if flavor == "sys" { 0 } else { calls } {
            let mic = client.mic(&header).unwrap();
            server.verify(&header, &mic).unwrap();
            for (from, to, body) in [(client, server, &arguments[..]), (server, client, &results[..])] {
                match flavor {
                    "krb5i" => to.verify(body, &from.mic(body).unwrap()).unwrap(),
                    "krb5p" => drop(to.unwrap(&from.wrap(body).unwrap()).unwrap()),
                    _ => {}
                }
            }
            let mic = server.mic(&number).unwrap();
            client.verify(&number, &mic).unwrap();
        }
    })
}

/// A server with a file, and a mount of it.
struct Nfs {
    reactor: Reactor,
    mount: Mount,
    _server: Server,
}

const FILE: u64 = 64 << 20;

impl Nfs {
    fn new(realm: &Within, flavor: &str, size: usize) -> Self {
        let acceptor = Acceptor::new(Some(Path::new(&realm.keytab(SERVER)))).unwrap();
        let config = ServerConfig {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            threads: 1,
            security: flavor.parse().unwrap(),
            kerberos: Some(ServerKerberos { mechanism: Arc::new(acceptor), users: Users::default() }),
            ..ServerConfig::default()
        };
        let server = Server::start(config).unwrap();
        let (port, keytab) = (server.address().port(), realm.keytab("alice"));
        let url = format!(
            "nfs://localhost:{port}/export?version=4.1&rsize={size}&sec={flavor}&krb5_keytab={}",
            keytab.display()
        );
        let options: MountOptions = url.parse().unwrap();
        let reactor = Reactor::new().unwrap();
        let mount = reactor.block_on(async {
            let mount = Mount::connect(&reactor, &options, "bench").await.unwrap();
            let file = mount.open(b"f", &OpenFlags::CREATE).await.unwrap();
            let data = vec![7; 1 << 20];
            for at in (0..FILE).step_by(data.len()) {
                mount.write(&file, &data, at).await.unwrap();
            }
            mount.close(file).await.unwrap();
            mount
        });
        Self { reactor, mount: mount.unwrap(), _server: server }
    }

    fn read(&self, size: usize, depth: usize, bytes: u64) -> Cost {
        let calls = bytes / size as u64;
        let each = |n: usize| async move {
            let file = self.mount.open(b"f", &OpenFlags::READ).await.unwrap();
            let mut buffer = vec![0; size];
            for call in (n as u64..calls).step_by(depth) {
                let offset = call * size as u64 % FILE;
                assert_eq!(self.mount.read(&file, &mut buffer, offset).await, Ok(size));
            }
            self.mount.close(file).await.unwrap();
        };
        measured(calls, || {
            let mut tasks: Vec<_> = (0..depth).map(|n| Box::pin(each(n))).collect();
            self.reactor.run_all(&mut tasks).unwrap();
        })
    }
}

fn measured(calls: u64, work: impl FnOnce()) -> Cost {
    let (cpu, began) = (cpu(), Instant::now());
    work();
    let (took, cpu) = (began.elapsed(), self::cpu() - cpu);
    (took.as_nanos() as f64 / calls as f64, cpu.as_nanos() as f64 / calls as f64)
}

/// Time that all threads of this process have computed.
fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}
