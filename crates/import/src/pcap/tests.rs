//! Captures of real sessions, and captures that no program makes.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{LockKind, Range};
use benchmaster_nfs_server::{Server, ServerConfig};
use benchmaster_workload::replay::{Plan, Where, strace};
use proptest::prelude::*;

use super::*;

/// Bytes that went in one direction at a time.
type Sent = (bool, u64, Vec<u8>);

/// A relay between one client and a server that keeps what passes.
struct Tap {
    port: u16,
    sent: Arc<Mutex<Vec<Sent>>>,
}

impl Tap {
    fn new(server: &Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (to, sent) = (server.address(), Arc::new(Mutex::new(Vec::new())));
        let kept = sent.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().flatten() {
                let server = TcpStream::connect(to).unwrap();
                for (upward, from, to) in [(true, &client, &server), (false, &server, &client)] {
                    let (from, to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    let kept = kept.clone();
                    std::thread::spawn(move || relay(upward, from, to, &kept));
                }
            }
        });
        Self { port, sent }
    }

    /// What passed, as packets with this many bytes of data at most.
    fn packets(&self, most: usize) -> Vec<(u64, Vec<u8>)> {
        let mut next = [1000u32, u32::MAX - 500];
        let mut packets = Vec::new();
        for upward in [true, false] {
            packets.push((0, packet(upward, next[usize::from(upward)], 2, &[])));
            next[usize::from(upward)] = next[usize::from(upward)].wrapping_add(1);
        }
        for (upward, at_ns, bytes) in &*self.sent.lock().unwrap() {
            for data in bytes.chunks(most) {
                let numbers = (next[usize::from(*upward)], next[usize::from(!*upward)]);
                packets.push((*at_ns, acknowledging(*upward, numbers, 16, data)));
                next[usize::from(*upward)] = numbers.0.wrapping_add(data.len() as u32);
            }
        }
        packets
    }
}

fn relay(upward: bool, mut from: TcpStream, mut to: TcpStream, kept: &Mutex<Vec<Sent>>) {
    let mut buffer = vec![0; 1 << 16];
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        let at_ns = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        kept.lock().unwrap().push((upward, at_ns, buffer[..length].to_vec()));
        if to.write_all(&buffer[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}

/// An Ethernet frame with a segment of TCP.
fn packet(upward: bool, sequence: u32, flags: u8, data: &[u8]) -> Vec<u8> {
    acknowledging(upward, (sequence, 0), flags, data)
}

fn acknowledging(upward: bool, (sequence, acknowledged): (u32, u32), flags: u8, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0; 12];
    frame.extend([8, 0, 0x45, 0]);
    frame.extend(((40 + data.len()) as u16).to_be_bytes());
    frame.extend([0, 0, 0x40, 0, 64, 6, 0, 0]);
    let (client, server): ([u8; 4], [u8; 4]) = ([10, 0, 0, 1], [10, 0, 0, 2]);
    let (ports, addresses) =
        if upward { ([700u16, 2049], [client, server]) } else { ([2049, 700], [server, client]) };
    frame.extend(addresses.concat());
    frame.extend(ports.iter().flat_map(|port| port.to_be_bytes()));
    frame.extend(sequence.to_be_bytes());
    frame.extend(acknowledged.to_be_bytes());
    frame.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    frame.extend(data);
    frame
}

fn pcap(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0x4d, 0x3c, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 1, 0, 0, 0];
    for (at_ns, data) in packets {
        for word in [at_ns / 1_000_000_000, at_ns % 1_000_000_000, data.len() as u64, data.len() as u64] {
            file.extend((word as u32).to_le_bytes());
        }
        file.extend(data);
    }
    file
}

/// The same as pcapng, with times in nanoseconds.
fn pcapng(packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let body = [body, &vec![0; body.len().next_multiple_of(4) - body.len()]].concat();
        let length = (body.len() as u32 + 12).to_be_bytes();
        [&kind.to_be_bytes()[..], &length, &body, &length].concat()
    };
    let mut file =
        block(0x0a0d_0d0a, &[0x1a, 0x2b, 0x3c, 0x4d, 0, 1, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255]);
    file.extend(block(1, &[0, 1, 0, 0, 0, 4, 0, 0, 0, 9, 0, 1, 9, 0, 0, 0, 0, 0, 0, 0]));
    file.extend(block(5, &[0; 12]));
    for (at_ns, data) in packets {
        let length = (data.len() as u32).to_be_bytes();
        let head = [
            &[0; 4][..],
            &((at_ns >> 32) as u32).to_be_bytes(),
            &(*at_ns as u32).to_be_bytes(),
            &length,
            &length,
        ];
        file.extend(block(6, &[&head.concat()[..], data].concat()));
    }
    file
}

/// What a program of the user does over the wire.
async fn session(mount: &Mount, version: &str) {
    mount.mkdir(b"made", 0o755).await.unwrap();
    for name in [&b"made/a"[..], b"made/b"] {
        let file = mount.open(name, &OpenFlags::CREATE).await.unwrap();
        mount.write(&file, &[7; 10_000], 0).await.unwrap();
        mount.fsync(&file).await.unwrap();
        mount.close(file).await.unwrap();
    }
    assert_eq!(mount.stat(b"made/a").await.unwrap().size, 10_000);
    mount.stat(b"made/none").await.unwrap_err();
    let file = mount.open(b"made/a", &OpenFlags::READ).await.unwrap();
    if version != "3" {
        mount.lock(&file, LockKind::Read, Range { offset: 0, length: 0 }, true).await.unwrap();
        mount.unlock(&file, Range { offset: 0, length: 0 }).await.unwrap();
    }
    let mut data = [0; 4096];
    for offset in [0, 4096, 8192] {
        mount.read(&file, &mut data, offset).await.unwrap();
    }
    mount.close(file).await.unwrap();
    mount.rename(b"made/b", b"made/c \"\\\x01").await.unwrap();
    mount.symlink(b"a", b"made/link").await.unwrap();
    mount.readlink(b"made/link").await.unwrap();
    mount.readdir(b"made", &mut |_| ()).await.unwrap();
    mount.remove(b"made/c \"\\\x01").await.unwrap();
    mount.mkdir(b"made/below", 0o755).await.unwrap();
    mount.rmdir(b"made/below").await.unwrap();
}

/// A session over the wire, and what was captured of it.
fn recorded(version: &str) -> Tap {
    let server =
        Server::start(ServerConfig { listen: "127.0.0.1:0".parse().unwrap(), ..ServerConfig::default() })
            .unwrap();
    let tap = Tap::new(&server);
    let reactor = Reactor::new().unwrap();
    let url = format!("nfs://127.0.0.1:{}/export?version={version}", tap.port);
    let options: MountOptions = url.parse().unwrap();
    reactor
        .block_on(async {
            let mount = Mount::connect(&reactor, &options, "captured").await.unwrap();
            session(&mount, version).await;
            mount.unmount().await.unwrap();
        })
        .unwrap();
    reactor.end_background();
    tap
}

fn converted(capture: &[u8]) -> Result<(String, Captured), CaptureError> {
    let mut trace = Vec::new();
    let captured = convert(capture, &mut trace)?;
    Ok((String::from_utf8(trace).unwrap(), captured))
}

fn plan(trace: &str) -> Plan {
    strace::read(trace.as_bytes(), &Where::new(Some(ROOT), None).unwrap()).unwrap()
}

/// Lines of a call.
fn lines(trace: &str, call: &str) -> usize {
    trace
        .lines()
        .filter(|line| line.split(' ').nth(2).is_some_and(|text| text.starts_with(&format!("{call}("))))
        .count()
}

#[test]
fn a_session_over_the_wire_becomes_a_trace_of_its_calls() {
    for version in ["3", "4.0", "4.1", "4.2"] {
        let tap = recorded(version);
        let packets = tap.packets(1448);
        let (trace, captured) = converted(&pcap(&packets)).unwrap();
        assert_eq!(captured.unusable, BTreeMap::new(), "{version}");
        if std::env::var_os("UPDATE_CAPTURES").is_some() && matches!(version, "3" | "4.1") {
            let captures = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/captures");
            std::fs::create_dir_all(captures).unwrap();
            std::fs::write(format!("{captures}/session-{version}.pcap"), pcap(&packets)).unwrap();
        }
        for (call, count) in [
            ("mkdir", 2),
            ("rmdir", 1),
            ("pwrite64", 2),
            ("pread64", 3),
            ("fsync", 2),
            ("rename", 1),
            ("symlink", 1),
            ("readlink", 1),
            ("getdents64", 1),
            ("unlink", 1),
            ("fcntl", if version == "3" { 0 } else { 2 }),
        ] {
            assert_eq!(lines(&trace, call), count, "{version} {call}\n{trace}");
        }
        let creates = trace.lines().filter(|line| line.contains("O_CREAT")).count();
        assert_eq!((creates, lines(&trace, "close")), (2, lines(&trace, "openat")), "{version}\n{trace}");
        assert!(trace.contains("newfstatat(AT_FDCWD, \"/nfs/export/made/none\""), "{version}\n{trace}");
        let plan = plan(&trace);
        assert_eq!(
            plan.left_out.iter().filter(|(what, _)| what.why.matters()).count(),
            0,
            "{version}\n{trace}"
        );
        // The other forms, and packets of every size, in another order, and twice, say the same.
        assert_eq!(converted(&pcapng(&packets)).unwrap(), (trace.clone(), captured), "{version}");
        let mut shuffled = tap.packets(700);
        let last = shuffled.len() - 1;
        let mut swapped = 0;
        for at in (3..last).step_by(2) {
            // Within a direction: of two packets of the two directions the later one answers the earlier.
            if shuffled[at].1[26..34] == shuffled[at + 1].1[26..34] {
                let (first, second) = (shuffled[at].0, shuffled[at + 1].0);
                shuffled.swap(at, at + 1);
                (shuffled[at].0, shuffled[at + 1].0) = (first, second);
                swapped += 1;
            }
        }
        let again = shuffled[last / 2].clone();
        shuffled.insert(last / 2 + 3, again);
        let (other, captured) = converted(&pcap(&shuffled)).unwrap();
        assert_eq!(captured.unusable, BTreeMap::new(), "{version}");
        assert!(swapped > 5, "{swapped}");
        assert_eq!(other.lines().count(), trace.lines().count(), "{version}");
    }
}

#[test]
fn what_is_missing_is_counted_and_the_rest_goes_on() {
    let tap = recorded("4.1");
    let mut packets = tap.packets(1448);
    let whole = converted(&pcap(&packets)).unwrap();
    // A packet in the middle of a WRITE is lost.
    let large = packets.iter().position(|(_, data)| data.len() > 1400).unwrap();
    packets.remove(large);
    let (trace, captured) = converted(&pcap(&packets)).unwrap();
    assert_eq!(captured.unusable["gaps in streams"], 1, "{captured:?}");
    assert_eq!(captured.unusable["bytes missing in gaps"], 1448);
    assert!(captured.calls > 10 && captured.calls < whole.1.calls, "{captured:?}");
    assert!(lines(&trace, "rename") == 1 && lines(&trace, "pwrite64") == 1, "{trace}");
    // The beginning is missing: what has a handle alone gets a name of its own.
    let (trace, captured) = converted(&pcap(&packets[packets.len() / 2..])).unwrap();
    assert!(trace.contains("/nfs/handle-") && captured.calls > 5, "{captured:?}\n{trace}");
    // Cut off within the last packet.
    let file = pcap(&packets);
    let (_, captured) = converted(&file[..file.len() - 10]).unwrap();
    assert_eq!(captured.unusable["end of the capture, which is cut off or damaged"], 1);
}

#[test]
fn what_is_no_capture_or_has_no_nfs_is_refused() {
    for text in [&b""[..], b"abc", b"#!/bin/sh\n", &[0xa1, 0xb2, 0xc3], &[0x0a, 0x0d, 0x0d, 0x0a, 0, 0, 0, 1]]
    {
        assert!(matches!(converted(text), Err(CaptureError::NoCapture | CaptureError::Io(_))), "{text:?}");
    }
    let empty = converted(&pcap(&[(0, packet(true, 5, 16, b"GET / HTTP/1.0\r\n\r\n"))]));
    assert!(matches!(empty, Err(CaptureError::NoNfs { packets: 1 })), "{empty:?}");
}

/// A call of version 3 that looks up a name, and its reply.
fn lookup(xid: u32, name: &[u8]) -> [Vec<u8>; 2] {
    use benchmaster_nfs_proto::rpc::{CallHeader, OpaqueAuth};
    use benchmaster_nfs_proto::xdr::{Encoder, Opaque};
    use benchmaster_nfs_proto::{record, v3};
    let mut call = Encoder::new();
    let mark = record::begin(&mut call);
    let (program, version, procedure) = (v3::PROGRAM, 3, v3::Proc3::LOOKUP.0);
    let (cred, verf) = (OpaqueAuth::NONE, OpaqueAuth::NONE);
    call.put(&CallHeader { xid, rpc_version: 2, program, version, procedure, cred, verf });
    call.put(&v3::LookupArgs { what: v3::DirOpArgs { dir: Opaque(b"root"), name: Opaque(name) } });
    record::end(&mut call, mark);
    let mut reply = Encoder::new();
    let mark = record::begin(&mut reply);
    [xid, 1, 0, 0, 0, 0].iter().for_each(|word| reply.put(word));
    let ok = v3::LookupOk { object: Opaque(b"handle"), obj_attributes: None, dir_attributes: None };
    reply.put(&v3::LookupRes::Ok(ok));
    record::end(&mut reply, mark);
    [call.buffer().to_vec(), reply.buffer().to_vec()]
}

#[test]
fn names_of_the_network_lead_nowhere() {
    for name in [&b".."[..], b".", b"", b"a/../../etc/passwd", b"/etc/passwd", b"a\0b", &[b'x'; 300]] {
        let [call, reply] = lookup(7, name);
        let packets = [(1, packet(true, 1, 16, &call)), (2, packet(false, 1, 16, &reply))];
        let (trace, captured) = converted(&pcap(&packets)).unwrap();
        assert_eq!(captured.left_out["names that lead elsewhere"], 1, "{name:?}");
        assert!(!trace.contains("etc") && !trace.contains(".."), "{trace}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn damaged_captures_end(damage in proptest::collection::vec((any::<u16>(), any::<u8>()), 1..20), cut in any::<u16>()) {
        let [call, reply] = lookup(7, b"name");
        let mut packets = Vec::new();
        for turn in 0..4u32 {
            let (at, back) = (1 + turn * call.len() as u32, 1 + turn * reply.len() as u32);
            packets.push((u64::from(turn), packet(true, at, 16, &call)));
            packets.push((u64::from(turn), packet(false, back, 16, &reply)));
        }
        for mut file in [pcap(&packets), pcapng(&packets)] {
            for (at, byte) in &damage {
                let at = usize::from(*at) % file.len();
                file[at] = *byte;
            }
            file.truncate(usize::from(cut) % file.len() + 1);
            let _ = converted(&file);
        }
    }
}
