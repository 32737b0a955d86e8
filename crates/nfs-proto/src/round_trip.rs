//! Properties of every message type: what is encoded decodes to the same value and encodes to the same bytes; cut off
//! anywhere it is an error; and no bytes make a decoder panic.

use std::fmt::Debug;
use std::fs;
use std::path::Path;

use arbitrary::Unstructured;

use crate::xdr::{Bulk, Decode, Decoder, Encode, Encoder, List, XdrError};
use crate::{every_message, gss, mount, nlm, nsm, portmap, record, rpc, v2, v3, v4};

/// Values made per type, and random inputs per decoder.
const CASES: usize = 64;

/// SplitMix64: the same numbers in every run.
struct TestRng(u64);

impl TestRng {
    fn next_u32(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z >> 32) as u32
    }
}

fn rng() -> TestRng {
    TestRng(7)
}

/// Bytes with many small numbers, so that counts, booleans and discriminants mean something.
fn random_bytes(rng: &mut TestRng, max: usize) -> Vec<u8> {
    let len = rng.next_u32() as usize % max;
    (0..len)
        .map(
            |_| {
                if rng.next_u32().is_multiple_of(3) {
                    rng.next_u32() as u8
                } else {
                    (rng.next_u32() % 4) as u8
                }
            },
        )
        .collect()
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut e = Encoder::new();
    e.put(value);
    assert!(e.cuts().is_empty());
    assert_eq!(e.len() % 4, 0, "XDR comes in units of four bytes");
    e.buffer().to_vec()
}

/// Decodes all of `bytes`.
fn decoded<'a, T: Decode<'a>>(bytes: &'a [u8]) -> Result<T, XdrError> {
    let mut d = Decoder::new(bytes);
    let value = d.get()?;
    assert_eq!(d.rest(), b"", "a decoder takes all of its message");
    Ok(value)
}

fn assert_same<T: PartialEq + Debug>(name: &str, value: &T, again: &T) {
    assert!(value == again, "{name}: {value:?} came back as {again:?}");
}

/// Keeps a sample for the fuzz targets, when asked to: `UPDATE_CORPUS=1 cargo test -p benchmaster-nfs-proto
/// round_trip`.
fn keep(family: &str, name: &str, sample: &[u8]) {
    if std::env::var_os("UPDATE_CORPUS").is_some() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(family);
        fs::create_dir_all(&folder).unwrap();
        let words = name
            .split(|c: char| !c.is_ascii_alphanumeric())
            .filter(|word| !word.is_empty() && *word != family);
        fs::write(folder.join(words.collect::<Vec<_>>().join("-")), sample).unwrap();
    }
}

macro_rules! round_trips {
    ($($family:ident { $($t:ty),* $(,)? })*) => { $(
        #[test]
        fn $family() {
            let mut rng = rng();
            $(
                let name = stringify!($t);
                let mut sample = Vec::new();
                for _ in 0..CASES {
                    let seed = random_bytes(&mut rng, 2048);
                    let value: $t = Unstructured::new(&seed).arbitrary().unwrap();
                    let bytes = encoded(&value);
                    let again: $t = decoded(&bytes).unwrap_or_else(|e| panic!("{name}: {e}: {value:?}"));
                    assert_same(name, &value, &again);
                    assert_eq!(encoded(&again), bytes, "{name}: {value:?}");
                    // All ends of short messages, some of long ones.
                    let step = bytes.len() / 256 + 1;
                    for end in (0..bytes.len()).step_by(step) {
                        let cut: Result<$t, XdrError> = Decoder::new(&bytes[..end]).get();
                        assert!(cut.is_err(), "{name} decodes from {end} of {} bytes", bytes.len());
                    }
                    let noise = random_bytes(&mut rng, 512);
                    if let Ok(value) = Decoder::new(&noise).get::<$t>() {
                        // Padding and unknown bits of bitmaps may differ; nothing else.
                        let bytes = encoded(&value);
                        assert_eq!(encoded(&decoded::<$t>(&bytes).unwrap()), bytes, "{name}: {value:?}");
                    }
                    // The longest that is not too long to be mutated everywhere.
                    if sample.is_empty() || bytes.len() > sample.len() && bytes.len() <= 512 {
                        sample = bytes;
                    }
                }
                assert!(!sample.is_empty(), "{name}: nothing encoded");
                keep(stringify!($family), name, &sample);
            )*
        }
    )* };
}
every_message!(round_trips);

#[test]
fn rpc_headers() {
    use rpc::{CallHeader, Message, OpaqueAuth, RpcReply, put_reply};
    let mut rng = rng();
    for _ in 0..CASES * 4 {
        let seed = random_bytes(&mut rng, 1024);
        let mut u = Unstructured::new(&seed);
        let (xid, program, version, procedure): (u32, u32, u32, u32) = u.arbitrary().unwrap();
        let (cred, verf): (OpaqueAuth<'_>, OpaqueAuth<'_>) = u.arbitrary().unwrap();
        let call = CallHeader { xid, rpc_version: rpc::RPC_VERSION, program, version, procedure, cred, verf };
        let bytes = encoded(&call);
        assert_eq!(decoded::<Message<'_>>(&bytes), Ok(Message::Call(call)));
        for reply in [
            RpcReply::Success(verf),
            RpcReply::ProgUnavail,
            RpcReply::ProgMismatch(version, procedure),
            RpcReply::ProcUnavail,
            RpcReply::GarbageArgs,
            RpcReply::SystemErr,
            RpcReply::RpcMismatch(2, 2),
            RpcReply::AuthError(rpc::AuthStat(program)),
        ] {
            let mut e = Encoder::new();
            put_reply(&mut e, xid, reply);
            assert_eq!(decoded::<Message<'_>>(e.buffer()), Ok(Message::Reply { xid, reply }));
            for end in 0..e.len() {
                assert!(Decoder::new(&e.buffer()[..end]).get::<Message<'_>>().is_err());
            }
        }
        for end in 0..bytes.len() {
            assert!(Decoder::new(&bytes[..end]).get::<Message<'_>>().is_err());
        }
        let _ = Decoder::new(&random_bytes(&mut rng, 256)).get::<Message<'_>>();
    }
}

/// Whole calls and streams of records, for the fuzz targets that take those.
#[test]
fn calls_in_records() {
    let mut stream = Encoder::new();
    let file = b"a handle of an NFS file"[..].into();
    let data = Bulk::Bytes(b"some data to write");
    let stable = v3::StableHow::Unstable;
    let write = encoded(&v3::WriteArgs { file, offset: 7, count: 18, stable, data });
    let read = encoded(&v3::ReadArgs { file, offset: 1 << 33, count: 4096 });
    let sys = encoded(&rpc::AuthSys {
        stamp: 1,
        machine_name: "client".into(),
        uid: 1000,
        gid: 100,
        gids: List::Items(&[4, 24, 27]),
    });
    let cred = rpc::OpaqueAuth { flavor: rpc::AuthFlavor::SYS, body: sys[..].into() };
    for (xid, procedure, args) in [(1, v3::Proc3::WRITE, write), (2, v3::Proc3::READ, read)] {
        let header = rpc::CallHeader {
            xid,
            rpc_version: rpc::RPC_VERSION,
            program: v3::PROGRAM,
            version: v3::VERSION,
            procedure: procedure.0,
            cred,
            verf: rpc::OpaqueAuth::NONE,
        };
        let call = [encoded(&header), args].concat();
        keep("call", &procedure.to_string(), &call);
        let mark = record::begin(&mut stream);
        stream.raw(&call);
        record::end(&mut stream, mark);
    }
    // The same two calls as one record of two fragments.
    let whole = stream.buffer().to_vec();
    let (first, second) = whole.split_at(whole.len() / 2);
    for (fragment, last) in [(first, 0), (second, record::LAST_FRAGMENT)] {
        stream.put(&(fragment.len() as u32 | last));
        stream.raw(fragment);
    }
    keep("record", "calls", stream.buffer());

    let mut rest = stream.buffer();
    for xid in [1, 2] {
        let Ok(record::Scan::Record { payload, consumed }) = record::next_record(rest, 4096) else {
            panic!("a record");
        };
        let message: rpc::Message<'_> = Decoder::new(&rest[payload]).get().unwrap();
        assert!(matches!(message, rpc::Message::Call(call) if call.xid == xid && call.cred.sys().is_ok()));
        rest = &rest[consumed..];
    }
    let mut joiner = record::Joiner::new();
    assert_eq!(joiner.feed(rest, 4096), Ok(record::Fed { consumed: rest.len(), complete: true }));
    assert_eq!(joiner.record(), whole);
}

/// A compound with attributes, as the fuzz target for compounds takes it; and all attributes come back.
#[test]
fn compounds_and_attributes() {
    let mut rng = rng();
    for case in 0..CASES {
        let seed = random_bytes(&mut rng, 4096);
        let mut u = Unstructured::new(&seed);
        let attrs: v4::Attributes<'_> = u.arbitrary().unwrap();
        let vals = encoded(&attrs);
        let fattr: v4::Fattr4<'_> = decoded(&vals).unwrap();
        assert_eq!(fattr.attrmask, attrs.mask());
        assert_eq!(v4::Attributes::decode(&fattr), Ok(attrs));

        let stateid = v4::Stateid4::ANONYMOUS;
        let ops = [
            v4::Argop::Sequence(v4::SequenceArgs {
                sessionid: [7; 16],
                sequenceid: 1,
                slotid: 0,
                highest_slotid: 0,
                cachethis: true,
            }),
            v4::Argop::Putfh(v4::PutfhArgs { object: b"handle"[..].into() }),
            v4::Argop::Setattr(v4::SetattrArgs { stateid, obj_attributes: fattr }),
            u.arbitrary().unwrap(),
        ];
        let mut e = Encoder::new();
        e.put(&v4::CompoundHeader { tag: "tag".into(), minorversion: 2, count: ops.len() as u32 });
        ops.iter().for_each(|op| e.put(op));
        let args: v4::CompoundArgs<'_> = decoded(e.buffer()).unwrap();
        for (sent, got) in ops.iter().zip(args.ops) {
            match (sent, got) {
                (sent, Ok(got)) => assert_eq!(*sent, got),
                (v4::Argop::Illegal(_), Err(bad)) => assert_eq!(bad.opnum, v4::Opnum::ILLEGAL),
                (sent, Err(bad)) => {
                    assert!(bad.opnum == sent.opnum() && bad.opnum.max_minor() < 2, "{bad:?}")
                }
            }
        }
        if e.len() < 700 || case + 1 == CASES {
            keep("compound", "setattr", e.buffer());
        }
    }
}
