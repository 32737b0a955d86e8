//! RPCSEC_GSS between the client and the embedded server: with a mechanism without Kerberos, and with a realm.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use benchmaster_nfs_client::counters::{Event, Snapshot};
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::mount::{Mount, MountError, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::rpc::RpcError;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::users::Users;
use benchmaster_nfs_server::{ExportConfig, Loss, Server, ServerConfig, ServerKerberos};
use benchmaster_rpc_gss::{Acceptor, GssError, Mechanism, Negotiation, Step};

use self::mock::{MockAcceptor, MockInitiator};
use self::realm::{REALM, SERVER, Within, within};
use crate::support::embedded::{run, server_with};
use crate::support::ganesha::{Fsal, Ganesha, inside};
use crate::tls::{Middle, work};

#[path = "../../../rpc-gss/tests/it/mock.rs"]
mod mock;
#[path = "../../../rpc-gss/tests/it/realm.rs"]
mod realm;

const CREATE: OpenFlags = OpenFlags { read: true, ..OpenFlags::CREATE };
const VERSIONS: [&str; 5] = ["2", "3", "4.0", "4.1", "4.2"];
const FLAVORS: [&str; 3] = ["krb5", "krb5i", "krb5p"];

/// A map of users in a file of its own.
fn users(lines: &str) -> Users {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), lines).unwrap();
    Users::read(file.path()).unwrap()
}

fn serve(
    mechanism: Arc<dyn Mechanism>,
    map: &str,
    rules: &[&str],
    change: impl FnOnce(&mut ServerConfig),
) -> Server {
    server_with(rules, |config| {
        config.security = "krb5:krb5i:krb5p".parse().unwrap();
        config.kerberos = Some(ServerKerberos { mechanism, users: users(map) });
        change(config);
    })
}

fn served() -> Server {
    serve(Arc::new(MockAcceptor), "alice@R 1000 100\n", &[], |_| {})
}

fn options(host: &str, address: SocketAddr, version: &str, more: &str) -> MountOptions {
    format!("nfs://{host}:{}/export?version={version}{more}", address.port()).parse().unwrap()
}

/// Mounts with the mechanism without Kerberos.
async fn mount(
    reactor: &Reactor,
    of: &MockInitiator,
    address: SocketAddr,
    version: &str,
    more: &str,
) -> Mount {
    let options = options("127.0.0.1", address, version, more);
    let mounted = Mount::connect_with(Arc::new(of.clone()), reactor, &options, "test").await;
    mounted.unwrap_or_else(|error| panic!("{options}: {error}"))
}

fn alice() -> MockInitiator {
    MockInitiator { principal: "alice@R", legs: 1, lifetime: 0 }
}

fn events(snapshot: &Snapshot, event: Event) -> u64 {
    snapshot.event(event)
}

#[test]
fn every_version_works_with_every_service_and_files_belong_to_the_principal() {
    let server = served();
    run(async |reactor, _| {
        for version in VERSIONS {
            for (flavor, legs) in FLAVORS.into_iter().zip(1..) {
                let of = MockInitiator { legs, ..alice() };
                // User numbers of the mount do not matter.
                let more = format!("&sec={flavor}&uid=7&gid=7&nconnect=2");
                let mount = mount(&reactor, &of, server.address(), version, &more).await;
                let counted = work(&mount).await;
                assert_eq!(events(&counted, Event::GssContext), 1, "{version} {flavor}");
                let file = mount.open(b"own", &CREATE).await.unwrap();
                mount.write(&file, b"x", 0).await.unwrap();
                mount.lock(&file, LockKind::Write, Range { offset: 0, length: 1 }, false).await.unwrap();
                mount.unlock(&file, Range { offset: 0, length: 1 }).await.unwrap();
                mount.close(file).await.unwrap();
                let found = mount.stat(b"own").await.unwrap();
                assert_eq!((found.uid, found.gid), (1000, 100), "{version} {flavor}");
                mount.remove(b"own").await.unwrap();
                mount.unmount().await.unwrap();
            }
            let of = MockInitiator { principal: "mallory@R", ..alice() };
            let mount = mount(&reactor, &of, server.address(), version, "&sec=krb5").await;
            let file = mount.open(b"strange", &CREATE).await.unwrap();
            mount.close(file).await.unwrap();
            assert_eq!(mount.stat(b"strange").await.unwrap().uid, 65534, "not in the map");
            mount.remove(b"strange").await.unwrap();
            mount.unmount().await.unwrap();
        }
    });
}

#[test]
fn an_export_of_other_flavours_says_which() {
    let export = |path: &str, security: &str| ExportConfig {
        path: path.into(),
        security: Some(security.parse().unwrap()),
        ..ExportConfig::default()
    };
    let server = serve(Arc::new(MockAcceptor), "", &[], |config| {
        config.exports = vec![export("/export", "krb5i:krb5p"), export("/open", "sys")];
    });
    for version in ["3", "4.0", "4.1"] {
        for (more, wanted) in [("", "sec=sys"), ("&sec=krb5", "sec=krb5")] {
            let options = options("127.0.0.1", server.address(), version, more);
            let mounted = run(async |reactor, _| {
                // The server keeps a name for the principal that came with it first.
                Mount::connect_with(Arc::new(alice()), &reactor, &options, wanted).await.map(drop)
            });
            let text = mounted.unwrap_err().to_string();
            let said =
                format!("does not allow {wanted}; it allows sec=krb5i:krb5p; mount it with one of those");
            assert!(text.contains(&said), "{version} {more}: {text}");
        }
    }
    // Version 2 has no words for it.
    let options = options("127.0.0.1", server.address(), "2", "");
    let mounted = run(async |reactor, _| Mount::connect(&reactor, &options, "test").await.map(drop));
    assert!(mounted.unwrap_err().to_string().contains("TOOWEAK"));
}

#[test]
fn who_is_refused_learns_why() {
    let server = served();
    let options = options("127.0.0.1", server.address(), "4.1", "&sec=krb5p");
    let of = MockInitiator { principal: "!mallory@R", ..alice() };
    let mounted =
        run(async |reactor, _| Mount::connect_with(Arc::new(of), &reactor, &options, "test").await.map(drop));
    match mounted {
        Err(MountError::Kerberos { error: GssError::Refused { doing, .. }, .. }) => {
            assert_eq!(doing, "the server does not accept the ticket");
        }
        other => panic!("{other:?}"),
    }
    // A server without Kerberos.
    let plain = server_with(&[], |_| {});
    let options = self::options("127.0.0.1", plain.address(), "4.1", "&sec=krb5");
    let mounted = run(async |reactor, _| {
        Mount::connect_with(Arc::new(alice()), &reactor, &options, "test").await.map(drop)
    });
    let text = mounted.unwrap_err().to_string();
    assert!(text.contains("refuses the credential"), "{text}");
}

/// More calls at once than the window of the context has room for.
#[test]
fn calls_beyond_the_window_wait() {
    let server = served();
    let reactor = Reactor::new().unwrap();
    let mount =
        reactor.block_on(mount(&reactor, &alice(), server.address(), "3", "&sec=krb5&nconnect=4")).unwrap();
    let mut calls: Vec<_> = (0..3000).map(|_| Box::pin(mount.stat(b""))).collect();
    for answer in reactor.run_all(&mut calls).unwrap() {
        answer.unwrap();
    }
    drop(calls);
    assert_eq!(server.report().transport.gss_discarded, 0);
    reactor.block_on(mount.unmount()).unwrap().unwrap();
}

#[test]
fn contexts_that_expire_under_way_lose_no_operation() {
    let server = served();
    for version in ["3", "4.0", "4.1"] {
        let reactor = Reactor::new().unwrap();
        let of = MockInitiator { lifetime: 40, ..alice() };
        let mount = reactor.block_on(mount(&reactor, &of, server.address(), version, "&sec=krb5i")).unwrap();
        let renewed = || events(&mount.counters().snapshot(), Event::GssRenewed);
        for _ in 0..1000 {
            if renewed() >= 5 {
                break;
            }
            reactor.block_on(rounds(&mount, 20)).unwrap();
        }
        assert!(renewed() >= 5, "{version}");
        reactor.block_on(mount.unmount()).unwrap().unwrap();
    }
}

/// Writes, reads and removes a file, again and again.
async fn rounds(mount: &Mount, rounds: usize) {
    for round in 0..rounds {
        let file = mount.open(b"busy", &CREATE).await.unwrap();
        let data = [round as u8; 700];
        assert_eq!(mount.write(&file, &data, 0).await.unwrap(), 700);
        let mut read = [0; 700];
        assert_eq!(mount.read(&file, &mut read, 0).await.unwrap(), 700);
        assert_eq!(read, data);
        mount.close(file).await.unwrap();
        mount.remove(b"busy").await.unwrap();
    }
}

/// A client's half that makes one context and then none for a while, as without a KDC.
#[derive(Debug)]
struct Once {
    of: MockInitiator,
    begun: AtomicUsize,
    refused: usize,
}

impl Mechanism for Once {
    fn begin(&self) -> Box<dyn Negotiation> {
        match self.begun.fetch_add(1, Ordering::SeqCst) {
            n if n > 0 && n <= self.refused => Box::new(NoTicket),
            _ => self.of.begin(),
        }
    }
}

#[derive(Debug)]
struct NoTicket;

impl Negotiation for NoTicket {
    fn step(&mut self, _: &[u8]) -> Result<Step, GssError> {
        Err(GssError::Unprotected("no KDC"))
    }
}

#[test]
fn a_context_that_cannot_be_renewed_is_used_to_its_end() {
    let server = served();
    let run_for = |lifetime, refused| {
        run(async |reactor, _| {
            let of = MockInitiator { lifetime, ..alice() };
            let once = Arc::new(Once { of, begun: AtomicUsize::new(0), refused });
            let options = options("127.0.0.1", server.address(), "3", "&sec=krb5");
            let mount = Mount::connect_with(once, &reactor, &options, "test").await.unwrap();
            let mut failed = None;
            while failed.is_none() && mount.counters().snapshot().event(Event::GssRenewed) == 0 {
                failed = mount.stat(b"").await.err();
                reactor.sleep(Duration::from_millis(1)).await;
            }
            (failed, mount.counters().snapshot())
        })
    };
    // Renewal fails twice, and succeeds before the end.
    let (failed, counted) = run_for(2000, 2);
    assert_eq!(failed, None);
    assert_eq!(counted.event(Event::GssRefused), 2);
    // It never succeeds.
    let (failed, counted) = run_for(300, usize::MAX);
    assert_eq!(failed, Some(NfsError::Rpc(RpcError::NoContext)));
    assert!(counted.event(Event::GssRefused) >= 1);
}

#[test]
fn a_server_that_forgets_contexts_is_shown_the_ticket_again() {
    let server = served();
    run(async |reactor, _| {
        for version in ["3", "4.1"] {
            let mount = mount(&reactor, &alice(), server.address(), version, "&sec=krb5p").await;
            rounds(&mount, 3).await;
            let file = mount.open(b"kept", &CREATE).await.unwrap();
            mount.write(&file, b"before", 0).await.unwrap();
            mount.fsync(&file).await.unwrap();
            server.crash(Loss::Process, 1).unwrap();
            let mut read = [0; 6];
            assert_eq!(mount.read(&file, &mut read, 0).await.unwrap(), 6);
            assert_eq!(&read, b"before");
            mount.close(file).await.unwrap();
            mount.remove(b"kept").await.unwrap();
            let counted = mount.counters().snapshot();
            assert_eq!(events(&counted, Event::GssRenewed), 1, "{version}");
            mount.unmount().await.unwrap();
        }
    });
}

/// Under integrity and privacy no changed reply is taken for the server's, wherever the byte is.
#[test]
fn a_changed_reply_is_no_reply() {
    let server = served();
    for flavor in ["krb5i", "krb5p"] {
        let armed = Arc::new(AtomicUsize::new(0));
        let change = Arc::clone(&armed);
        let middle = Middle::new(server.address(), move |_, _, bytes| {
            let at = change.swap(0, Ordering::SeqCst);
            if at > 0 && bytes.len() > at {
                bytes[at] ^= 0x40;
            }
        });
        run(async |reactor, _| {
            // From the verifier's checksum to the end of a reply to GETATTR.
            for at in (28..200).step_by(7) {
                let more = format!("&sec={flavor}&timeo=1&retrans=0&mountport={}", middle.address.port());
                let mount = mount(&reactor, &alice(), middle.address, "3", &more).await;
                let before = mount.stat(b"").await.unwrap();
                armed.store(at, Ordering::SeqCst);
                match mount.stat(b"").await {
                    // The change came to nothing: the reply was shorter.
                    Ok(after) => assert_eq!(
                        (after.mode, after.uid, after.size),
                        (before.mode, before.uid, before.size)
                    ),
                    Err(error) => {
                        let text = error.to_string();
                        // The header is not protected, but for the verifier: what it says is not taken for results.
                        let known = ["not protected", "no reply in time", "decode", "unknown RPC status"];
                        assert!(known.iter().any(|words| text.contains(words)), "{flavor} {at}: {text}");
                    }
                }
            }
        });
    }
}

fn in_realm(realm: &Within, user: &str) -> String {
    format!("&krb5_keytab={}&krb5_principal={user}@{REALM}", realm.keytab(user).display())
}

fn serve_realm(keytab: &Path) -> Server {
    let map = format!("alice@{REALM} 1000 100\nbob@{REALM} 2000 200,300\n");
    serve(Arc::new(Acceptor::new(Some(keytab)).unwrap()), &map, &[], |_| {})
}

#[test]
#[ignore = "full tier: needs a KDC"]
fn kerberos_works_in_every_version_with_every_service() {
    let test = "gss::kerberos_works_in_every_version_with_every_service";
    within(test, &["alice", "bob"], Duration::from_secs(3600), |realm| {
        let server = serve_realm(&realm.keytab(SERVER));
        run(async |reactor, _| {
            for version in VERSIONS {
                for flavor in FLAVORS {
                    let connect = async |user: &str| {
                        let more = format!("&sec={flavor}{}", in_realm(realm, user));
                        let options = options("localhost", server.address(), version, &more);
                        Mount::connect(&reactor, &options, user)
                            .await
                            .unwrap_or_else(|error| panic!("{options}: {error}"))
                    };
                    let (alice, bob) = (connect("alice").await, connect("bob").await);
                    work(&alice).await;
                    for (mount, name, uid, gid) in [(&alice, b"a", 1000, 100), (&bob, b"b", 2000, 200)] {
                        let file = mount.open(name, &CREATE).await.unwrap();
                        mount.write(&file, b"mine", 0).await.unwrap();
                        mount.close(file).await.unwrap();
                        let found = mount.stat(name).await.unwrap();
                        assert_eq!((found.uid, found.gid), (uid, gid), "{version} {flavor}");
                    }
                    // What one has made, the other may not remove from a directory with the sticky bit.
                    let refused = bob.remove(b"a").await.unwrap_err().errno();
                    assert!(matches!(refused, 1 | 13), "EPERM or EACCES: {refused}");
                    alice.remove(b"a").await.unwrap();
                    bob.remove(b"b").await.unwrap();
                    alice.unmount().await.unwrap();
                    bob.unmount().await.unwrap();
                }
            }
        });
        let counted = server.report().transport;
        assert!(counted.gss_contexts >= (VERSIONS.len() * FLAVORS.len() * 2) as u64);
        assert_eq!((counted.gss_failed, counted.gss_discarded), (0, 0));
    });
}

/// Tickets of a few seconds: contexts expire in the middle of a run, and no operation notices.
#[test]
#[ignore = "full tier: needs a KDC, and waits for tickets to expire"]
fn a_ticket_that_expires_during_a_run_is_renewed() {
    let test = "gss::a_ticket_that_expires_during_a_run_is_renewed";
    within(test, &["alice"], Duration::from_secs(4), |realm| {
        let server = serve_realm(&realm.keytab(SERVER));
        run(async |reactor, _| {
            for version in ["3", "4.1"] {
                let more = format!("&sec=krb5p{}", in_realm(realm, "alice"));
                let options = options("localhost", server.address(), version, &more);
                let mount = Mount::connect(&reactor, &options, "alice").await.unwrap();
                let began = Instant::now();
                while began.elapsed() < Duration::from_secs(13) {
                    rounds(&mount, 10).await;
                    reactor.sleep(Duration::from_millis(50)).await;
                }
                let counted = mount.counters().snapshot();
                assert!(events(&counted, Event::GssRenewed) >= 2, "{version}");
                assert_eq!(events(&counted, Event::GssRefused), 0, "{version}");
                mount.unmount().await.unwrap();
            }
        });
    });
}

#[test]
#[ignore = "full tier: needs a KDC"]
fn what_is_wrong_with_kerberos_is_said() {
    within("gss::what_is_wrong_with_kerberos_is_said", &["alice"], Duration::from_secs(600), |realm| {
        let server = serve_realm(&realm.keytab(SERVER));
        let text = |host: &str, more: &str| {
            let options = options(host, server.address(), "4.1", &format!("&sec=krb5{more}"));
            let mounted = run(async |reactor, _| Mount::connect(&reactor, &options, "test").await.map(drop));
            mounted.unwrap_err().to_string()
        };
        let keytab = in_realm(realm, "alice");
        for (host, more, said) in [
            ("localhost", "".to_owned(), "No Kerberos credentials available"),
            ("localhost", "&krb5_keytab=/none/such".to_owned(), "/none/such"),
            (
                "127.0.0.1",
                keytab.clone(),
                "Server nfs/127.0.0.1@BENCHMASTER.TEST not found in Kerberos database",
            ),
            ("127.0.0.1", format!("{keytab}&krb5_server=nfs/other"), "nfs/other@BENCHMASTER.TEST not found"),
        ] {
            let found = text(host, &more);
            assert!(found.contains(said) && found.contains("check the keytab"), "{found}");
        }
        let options =
            options("127.0.0.1", server.address(), "4.1", &format!("&sec=krb5{keytab}&krb5_server={SERVER}"));
        run(async |reactor, _| Mount::connect(&reactor, &options, "test").await.map(drop)).unwrap();
    });
}

/// nfs-ganesha takes the principals of hosts for user 0.
#[test]
#[ignore = "full tier: nfs-ganesha and a KDC"]
fn ganesha_understands_every_service() {
    const TEST: &str = "gss::ganesha_understands_every_service";
    const CLIENT: &str = "host/localhost";
    inside(TEST, || {
        within(TEST, &[CLIENT], Duration::from_secs(3600), |realm| {
            let kerberos = format!(
                "NFS_KRB5 {{ PrincipalName = nfs; KeytabPath = {}; CCacheDir = {}; Active_krb5 = true; }}",
                realm.keytab(SERVER).display(),
                realm.file("ganesha").display(),
            );
            let graceless = "Graceless = true; Only_Numeric_Owners = true;";
            let flavors = "sys, krb5, krb5i, krb5p";
            let server = Ganesha::start_secured(Fsal::Vfs, graceless, flavors, &kerberos);
            run(async |reactor, _| {
                for version in ["3", "4.0", "4.1", "4.2"] {
                    for flavor in FLAVORS {
                        let path = if version == "3" { Ganesha::path(Fsal::Vfs) } else { Ganesha::PSEUDO };
                        let options: MountOptions = format!(
                            "nfs://localhost:{}{path}?version={version}&sec={flavor}&mountport={}{}",
                            server.nfs,
                            server.mount,
                            in_realm(realm, CLIENT)
                        )
                        .parse()
                        .unwrap();
                        let mount = Mount::connect(&reactor, &options, "test").await;
                        let mount = mount.unwrap_or_else(|error| panic!("{error}\n{}", server.log()));
                        let counted = work(&mount).await;
                        assert_eq!(events(&counted, Event::GssContext), 1, "{version} {flavor}");
                        let file = mount.open(b"own", &CREATE).await.unwrap();
                        mount.close(file).await.unwrap();
                        assert_eq!(mount.stat(b"own").await.unwrap().uid, 0, "{version} {flavor}");
                        mount.remove(b"own").await.unwrap();
                        mount.unmount().await.unwrap();
                    }
                }
            });
        });
    });
}
