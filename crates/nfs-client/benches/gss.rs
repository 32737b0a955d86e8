//! What RPCSEC_GSS with Kerberos costs: READ with AUTH_SYS, krb5, krb5i and krb5p, and what the library alone takes for the same
//! messages. The ways take turns, round by round; medians are printed. Needs krb5-kdc, krb5-admin-server and krb5-user, with which it
//! makes a realm of its own.
//!
//! `BENCHMASTER_ROUNDS=9 cargo bench -p benchmaster-nfs-client --bench gss`

#![allow(clippy::unwrap_used, clippy::panic, clippy::print_stdout)]

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use benchmaster_nfs_server::users::Users;
use benchmaster_nfs_server::{ServerConfig, ServerKerberos};
use benchmaster_rpc_gss::{Acceptor, Context, Initiator, InitiatorFiles, Mechanism, ServerName};

use self::reads::{Cost, Nfs, measured, medians};
use self::realm::{SERVER, Within, within};

mod reads;
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

fn reads(realm: &Within, rounds: usize, size: usize, depth: usize, bytes: u64) {
    let mounts = FLAVORS.map(|flavor| mounted(realm, flavor, size));
    let calls = bytes / size as u64;
    let pair = pair(realm);
    let mut costs: [Vec<Cost>; 8] = Default::default();
    for _ in 0..=rounds {
        for (at, mount) in mounts.iter().enumerate() {
            costs[at].push(mount.read(size, depth, calls, calls as f64));
            costs[4 + at].push(library_alone(&pair, FLAVORS[at], size, calls));
        }
    }
    let medians = medians(costs);
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

/// A server of this flavour alone, and a mount.
fn mounted(realm: &Within, flavor: &str, size: usize) -> Nfs {
    let acceptor = Acceptor::new(Some(Path::new(&realm.keytab(SERVER)))).unwrap();
    let kerberos = ServerKerberos { mechanism: Arc::new(acceptor), users: Users::default() };
    let security = flavor.parse().unwrap();
    let config = ServerConfig { security, kerberos: Some(kerberos), ..ServerConfig::default() };
    let keytab = realm.keytab("alice");
    let keytab = keytab.display();
    Nfs::new(config, |port| {
        format!("nfs://localhost:{port}/export?version=4.1&rsize={size}&sec={flavor}&krb5_keytab={keytab}")
    })
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
    measured(calls as f64, || {
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
