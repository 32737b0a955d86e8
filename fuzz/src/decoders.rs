//! One target per family of messages, and one for record marking.

use benchmaster_nfs_proto::record::{self, Joiner, Scan};
use benchmaster_nfs_proto::xdr::{Decode, Decoder, Encode, Encoder};
use benchmaster_nfs_proto::{every_message, gss, mount, nlm, nsm, portmap, rpc, v2, v3, v4};

/// A name, which is its folder in `corpus/` and its target of cargo-fuzz, and what takes the bytes.
pub type Target = (&'static str, fn(&[u8]));

/// What is decoded must encode to something that decodes to it again.
fn again<'a, T: Encode, U: Encode + Decode<'a>>(value: &T, scratch: &'a mut Encoder) {
    scratch.put(value);
    let bytes = scratch.buffer();
    let second: U = Decoder::new(bytes).get().expect("what was encoded decodes");
    let mut e = Encoder::new();
    e.put(&second);
    assert_eq!(e.buffer(), bytes, "what was encoded comes back");
}

macro_rules! targets {
    ($($family:ident { $($t:ty),* $(,)? })*) => {
        $(fn $family(bytes: &[u8]) { $(
            if let Ok(value) = Decoder::new(bytes).get::<$t>() {
                again::<_, $t>(&value, &mut Encoder::new());
            }
        )* })*

        /// All targets.
        pub const TARGETS: &[Target] =
            &[$((stringify!($family), $family as fn(&[u8])),)* ("compound", compound), ("call", call), ("record", stream)];
    };
}
every_message!(targets);

/// Runs the target of that name.
pub fn run(name: &str, bytes: &[u8]) {
    run_of(TARGETS, name, bytes);
}

pub(crate) fn run_of(targets: &[Target], name: &str, bytes: &[u8]) {
    let (_, target) = targets.iter().find(|(target, _)| *target == name).expect("a target of this name");
    target(bytes);
}

/// Compounds, operation by operation, with the attributes in them.
fn compound(bytes: &[u8]) {
    if let Ok(args) = Decoder::new(bytes).get::<v4::CompoundArgs<'_>>() {
        let claimed = args.ops.left();
        let seen = args.ops.inspect(|op| {
            let fattr = match op {
                Ok(v4::Argop::Setattr(args)) => args.obj_attributes,
                Ok(v4::Argop::Verify(args) | v4::Argop::Nverify(args)) => args.obj_attributes,
                Ok(v4::Argop::Create(args)) => args.createattrs,
                _ => return,
            };
            if let Ok(attributes) = v4::Attributes::decode(&fattr) {
                again::<_, v4::Fattr4<'_>>(&attributes, &mut Encoder::new());
            }
        });
        assert!(seen.count() <= claimed);
    }
    if let Ok(mut res) = Decoder::new(bytes).get::<v4::CompoundRes<'_>>() {
        while res.results.take::<v4::Resop<'_>>().is_some() {}
    }
    if let Ok(mut args) = Decoder::new(bytes).get::<v4::CbCompoundArgs<'_>>() {
        while args.ops.take::<v4::CbArgop<'_>>().is_some() {}
    }
}

/// Headers of calls and replies.
fn call(bytes: &[u8]) {
    let mut d = Decoder::new(bytes);
    if let Ok(rpc::Message::Call(call)) = d.get() {
        let _ = call.cred.sys();
        for (_, target) in TARGETS.iter().filter(|(name, _)| *name != "call") {
            target(d.rest());
        }
    }
}

/// A stream cut into records: the scanner and the joiner must agree, in whatever pieces it comes.
fn stream(bytes: &[u8]) {
    const LIMIT: usize = 1 << 16;
    let (mut rest, mut joiner) = (bytes, Joiner::new());
    while let Ok(scan) = record::next_record(rest, LIMIT) {
        let step = 1 + rest.len() / 3;
        let mut fed = 0;
        let joined = loop {
            let piece = &rest[fed..(fed + step).min(rest.len())];
            match joiner.feed(piece, LIMIT) {
                Ok(done) if done.complete => break Some(fed + done.consumed),
                Ok(done) => fed += done.consumed,
                Err(_) => break None,
            }
            assert!(joiner.record().len() <= LIMIT);
            if fed == rest.len() {
                break None;
            }
        };
        match scan {
            Scan::Record { payload, consumed } => {
                assert_eq!(joined, Some(consumed));
                assert_eq!(joiner.record(), &rest[payload]);
                rest = &rest[consumed..];
            }
            Scan::Need(len) => {
                assert!(joined.is_none() && len > rest.len());
                return;
            }
            Scan::Fragmented => match joined {
                Some(consumed) => rest = &rest[consumed..],
                None => return,
            },
        }
        joiner.clear(0);
    }
}
