//! Options as they are written, rightly and wrongly.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test")]

use super::*;
use proptest::prelude::*;

fn parse(text: &str) -> MountOptions {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn message(text: &str) -> String {
    text.parse::<MountOptions>().unwrap_err().to_string()
}

#[test]
fn places_as_written() {
    let options = parse("nfs://server/export/a%20b/");
    assert_eq!((&*options.host, options.port, &*options.export), ("server", None, &b"/export/a b"[..]));
    let options = parse("nfs://[fe80::1]:3049");
    assert_eq!((&*options.host, options.port, &*options.export), ("fe80::1", Some(3049), &b"/"[..]));
    assert_eq!(options.nfs_port(), 3049);
    assert_eq!(parse("nfs://10.0.0.1/%ff").export, b"/\xff");
}

#[test]
fn options_as_written() {
    let options = parse(
        "nfs://s/e?version=3&mountport=20048&nconnect=4&slots=16&rsize=64KiB&wsize=4096&uid=7&gid=8&sync=data\
         &cache=linux&nagle=on&timeo=50&retrans=0&actimeo=60&acregmin=1ms&delay_initial=1ms&delay_longest=2&unstable_limit=0",
    );
    assert_eq!((options.version, options.mount_port, options.connections), (Version::V3, Some(20048), 4));
    assert_eq!((options.slots, options.read_size, options.write_size), (16, 65536, 4096));
    assert_eq!((options.uid, options.gid, options.sync), (7, 8, Stability::Data));
    assert_eq!((options.cache, options.wants_delegations(), options.nagle), (Cache::Linux, false, true));
    assert_eq!((options.timeout(), options.retransmissions()), (Duration::from_secs(5), 0));
    assert_eq!(options.attribute_times.regular_min, Duration::from_millis(1));
    assert_eq!(options.attribute_times.directory_min, Duration::from_secs(60));
    assert_eq!(options.delay_initial, Duration::from_millis(1));
    assert_eq!((options.delay_longest, options.unstable_limit), (Duration::from_secs(2), 0));
}

#[test]
fn defaults_depend_on_each_other() {
    let options = parse("nfs://s/e");
    // What mount.nfs calls it.
    assert_eq!(parse("nfs://s/e?vers=4.2").version, Version::V42);
    assert_eq!(parse("nfs://s/e?nfsvers=3").version, Version::V3);
    assert_eq!(options.version, Version::V41);
    assert_eq!((options.timeout(), options.retransmissions()), (Duration::from_secs(60), 2));
    assert!(!options.wants_delegations());
    assert!(parse("nfs://s/e?cache=linux").wants_delegations());
    assert!(!parse("nfs://s/e?cache=linux&delegations=off").wants_delegations());
    let options = parse("nfs://s/e?version=2&proto=udp");
    assert_eq!((options.timeout(), options.retransmissions()), (Duration::from_millis(1100), 5));
}

#[test]
fn mistakes_are_named() {
    for (text, wanted) in [
        ("http://s/e", "does not begin with nfs://"),
        ("nfs:///e", "names no server"),
        ("nfs://fe80::1/e", "without brackets"),
        ("nfs://[fe80::1/e", "`[` without `]`"),
        ("nfs://[server]/e", "no IPv6 address"),
        ("nfs://s:0/e", "not a number from 1 to 65535"),
        ("nfs://s/a%2", "without two hexadecimal digits"),
        ("nfs://s/a/../b", "`..`"),
        ("nfs://s/a#b", "%23"),
        ("nfs://s/e?verison=3", "no option `verison`; options are version, "),
        ("nfs://s/e?version=4", "`version` cannot be `4`; write one of 2, 3, 4.0, 4.1, 4.2"),
        ("nfs://s/e?nconnect=0", "`nconnect` cannot be `0`; write a number from 1 to 256"),
        ("nfs://s/e?version=4.0&addresses=t", "`addresses=t` conflicts with `version=4.0`"),
        ("nfs://s/e?addresses=a++b", "write addresses with `+` between them"),
        ("nfs://s/e?rsize=64k", "`64KiB` (65536 bytes)"),
        ("nfs://s/e?rsize=1", "a size from 512B to 64MiB"),
        ("nfs://s/e?timeo=5x", "unknown unit `x`"),
        ("nfs://s/e?timeo=0", "greater than zero"),
        ("nfs://s/e?sync", "`sync` cannot be ``; write one of none, data, file"),
        ("nfs://s/e?proto=udp", "`proto=udp` conflicts with `version=4.1`"),
        ("nfs://s/e?version=3&proto=udp&nagle=on", "an algorithm of TCP"),
        ("nfs://s/e?version=3&delegations=on", "delegations need version 4"),
        ("nfs://s/e?delegations=on", "add cache=linux"),
        ("nfs://s/e?dirty_ratio=5", "`dirty_ratio=5` conflicts with `cache=off`"),
        ("nfs://s/e?cache=linux&readahead=3.12", "write one of 6.1, 2.6.32"),
        ("nfs://s/e?cache=linux&max_request_soft=9&max_request_hard=8", "must not be larger"),
        (
            "nfs://s/e?cache=linux&memory=1MiB&dirty_bytes=2MiB",
            "`dirty_bytes=2MiB` conflicts with `memory=1MiB`",
        ),
        ("nfs://s/e?append_to_locks=on", "add cache=linux"),
        ("nfs://s/e?version=3&cache=linux&append_to_locks=on", "only version 4 has compounds"),
        ("nfs://s/e?acregmin=90", "`acregmin=90s` conflicts with `acregmax=1min`"),
    ] {
        let found = message(text);
        assert!(found.contains(wanted), "{text}: {found}");
    }
}

#[test]
fn limits_of_dirty_data_are_shares_of_the_memory_or_bytes() {
    let limits =
        |options: &str| parse(&format!("nfs://s/e?cache=linux&memory=100MiB{options}")).paging.dirty_limits();
    let mib = 1 << 20;
    assert_eq!(limits(""), (10 * mib, 20 * mib));
    assert_eq!(limits("&dirty_bytes=50MiB"), (10 * mib, 50 * mib));
    assert_eq!(limits("&dirty_background_bytes=30MiB"), (10 * mib, 20 * mib), "at most half of the other");
    assert_eq!(parse("nfs://s/e?cache=linux&dirty_expire=300").paging.dirty_expire, Duration::from_secs(3));
}

proptest! {
    #[test]
    fn text_reads_back(
        host in "[a-z][a-z0-9.-]{0,20}|::1|fe80::7",
        port in proptest::option::of(1u16..),
        path in proptest::collection::vec("[^/\0]{1,9}", 0..4),
        options in proptest::collection::vec(
            proptest::sample::select(vec![
                "version=3", "version=4.2", "port=7", "mountport=9", "nconnect=3", "slots=1", "rsize=1000", "wsize=1MiB",
                "uid=4294967295", "gid=1", "sync=data", "sync=file", "sync=none", "cache=linux", "cache=off",
                "timeo=7", "timeo=1us", "retrans=9", "proto=tcp", "actimeo=0", "acregmin=2", "acdirmax=3h",
                "memory=1MiB", "readahead=2.6.32", "read_ahead_kb=0", "dirty_background_ratio=3", "dirty_ratio=7",
                "dirty_background_bytes=4096", "dirty_bytes=1MiB", "dirty_expire=100", "dirty_writeback=0",
                "dirty_throttle=flush", "write_behind=on", "max_request_soft=192", "max_request_hard=256",
                "request_list=sorted", "send_lock=on", "delay_initial=5ms", "delay_longest=99s", "unstable_limit=1GB", "delegations=off",
                "append_to_locks=on", "addresses=10.0.0.2+::1", "addresses=",
            ]), 0..6),
    ) {
        let mut wanted = MountOptions::new(host, format!("/{}", path.join("/")));
        wanted.port = port;
        for option in options {
            let (name, value) = option.split_once('=').unwrap();
            wanted.set(name, value).unwrap();
        }
        let text = wanted.to_string();
        let dots = path.iter().any(|name| name == "." || name == "..");
        match text.parse::<MountOptions>() {
            Ok(read) => prop_assert_eq!(read, wanted, "{}", text),
            Err(error) => prop_assert!(dots || wanted.check().is_err(), "{}: {}", text, error),
        }
    }
}
