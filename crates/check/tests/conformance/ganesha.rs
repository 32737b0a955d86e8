//! nfs-ganesha: what it does differently is known; see docs/check.md.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};

use benchmaster_check::nfs::{Target, Trial, User, check};
use benchmaster_check::{Check, Verdict};
use benchmaster_record::nfs::NfsVersion as V;

use crate::nfs_ganesha::{Fsal, Ganesha, inside};
use crate::support::{broken, by_group, target};

/// What is known of version 4.3 on a file system, by version.
const KNOWN: [(&[V], &[&str]); 4] = [
    (&[V::V3, V::V40, V::V41, V::V42], &["rpc-version"]),
    (
        &[V::V3],
        &[
            "v3-create-slash",
            "v3-readdir-too-small",
            "v3-fsinfo",
            "v3-longest-name",
            "nlm-stale-handle",
            "nlm-share",
            "rpc-repeated-call",
        ],
    ),
    (
        &[V::V40, V::V41, V::V42],
        &[
            "create-longest-name",
            "getattr-each",
            "getattr-together",
            "owner-unknown",
            "close-unknown",
            "downgrade",
            "compound-bad-enum",
            "readdir-too-small",
            "setclientid-wrong-verifier",
            "unlock-open-stateid",
        ],
    ),
    (
        &[V::V41, V::V42],
        &[
            "open-exclusive-attributes",
            "stateid-of-another-client",
            "close-twice",
            "request-too-big",
            "read-plus",
            "trunk-client-id",
        ],
    ),
];

fn keeps_all_but_known(version: V) {
    let server = Ganesha::start_with(Fsal::Vfs, "Graceless = true; Lease_Lifetime = 10;");
    let path = if version.has_state() { Ganesha::PSEUDO } else { Ganesha::path(Fsal::Vfs) };
    // It ends when it is to free the locks of a host.
    let wanted = |check: &Check<Trial>| !["nlm-free-all", "nsm-notify"].contains(&check.name);
    let checked = check(
        &Target {
            mount_port: Some(server.mount),
            export: path.as_bytes().to_vec(),
            user: User { uid: 0, gid: 0 },
            ..target(SocketAddr::from((Ipv4Addr::LOCALHOST, server.nfs)))
        },
        version,
        &wanted,
        &|| true,
        &mut |_| {},
    )
    .unwrap();
    let of_version = KNOWN.iter().filter(|(versions, _)| versions.contains(&version));
    let known: BTreeSet<&str> = of_version.flat_map(|(_, names)| names.iter().copied()).collect();
    let failed = checked.findings.iter().filter(|finding| matches!(finding.verdict, Verdict::Fail { .. }));
    let unknown: Vec<&str> =
        failed.map(|finding| finding.name.as_str()).filter(|name| !known.contains(name)).collect();
    println!("{version}: {:?}, {:.1} s, {:?}", checked.counts(), checked.elapsed_s, by_group(&checked));
    println!("{}", broken(&checked).join("\n"));
    assert_eq!(unknown, Vec::<&str>::new(), "unknown findings");
    assert_eq!(checked.left_behind, None);
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_3() {
    inside("ganesha::version_3", || keeps_all_but_known(V::V3));
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_4_0() {
    inside("ganesha::version_4_0", || keeps_all_but_known(V::V40));
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_4_1() {
    inside("ganesha::version_4_1", || keeps_all_but_known(V::V41));
}

#[test]
#[ignore = "full tier: nfs-ganesha"]
fn version_4_2() {
    inside("ganesha::version_4_2", || keeps_all_but_known(V::V42));
}
