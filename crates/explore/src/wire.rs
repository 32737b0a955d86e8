//! Messages in a few words.

use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_proto::rpc::{CallHeader, Message};
use benchmaster_nfs_proto::v3::Proc3;
use benchmaster_nfs_proto::v4::{Argop, CompoundArgs, CompoundRes, Openflag4, Ops, PROC_COMPOUND};
use benchmaster_nfs_proto::xdr::Decoder;
use benchmaster_nfs_proto::{mount, nlm, v3};

/// A call without its record mark.
pub(crate) fn call(message: &[u8]) -> String {
    let mut d = Decoder::new(message);
    match d.get::<Message<'_>>() {
        Ok(Message::Call(header)) => {
            let procedure = procedure(&header, d);
            format!("{procedure}, xid {:#x}", header.xid)
        }
        Ok(Message::Reply { xid, .. }) => format!("reply to callback {xid:#x}"),
        Err(_) => format!("{} bytes", message.len()),
    }
}

/// Whether a message without its record mark is a reply.
pub(crate) fn is_reply(message: &[u8]) -> bool {
    matches!(Decoder::new(message).get::<Message<'_>>(), Ok(Message::Reply { .. }))
}

fn procedure(header: &CallHeader<'_>, mut d: Decoder<'_>) -> String {
    match (header.program, header.version, header.procedure) {
        (v3::PROGRAM, v3::VERSION, procedure) => format!("{:?}", Proc3(procedure)),
        (v3::PROGRAM, 4, PROC_COMPOUND) => match d.get::<CompoundArgs<'_>>() {
            Ok(args) => operations(args.ops),
            Err(_) => "COMPOUND?".into(),
        },
        (mount::PROGRAM, _, procedure) => format!("MOUNT {procedure}"),
        (nlm::PROGRAM, _, procedure) => format!("NLM {procedure}"),
        (_, _, 0) => "NULL".into(),
        (_, _, procedure) => format!("callback {procedure}"),
    }
}

/// The operations of a COMPOUND, with what tells most of some.
fn operations(mut ops: Ops<'_>) -> String {
    let mut text = String::new();
    while let Some(number) = ops.peek() {
        let Some(op) = ops.next() else { break };
        if !text.is_empty() {
            text += ", ";
        }
        text += &number.to_string();
        text += &match op {
            Ok(Argop::Open(args)) => {
                let creating = if matches!(args.openhow, Openflag4::Create(_)) { "creating " } else { "" };
                format!(" {creating}{:?}", args.claim)
            }
            Ok(Argop::Write(args)) => format!(" at {} with {:?}", args.offset, args.stateid),
            Ok(Argop::Read(args)) => format!(" at {} with {:?}", args.offset, args.stateid),
            Ok(Argop::Lock(args)) if args.reclaim => " reclaim".into(),
            Ok(Argop::Sequence(args)) => format!(" slot {} number {}", args.slotid, args.sequenceid),
            _ => String::new(),
        };
    }
    text
}

/// Whether a call, in these words, renews the lease of who sends it (RFC 7530 §9.5, RFC 8881 §8.3).
pub(crate) fn renews(call: &str) -> bool {
    const RENEWING: [&str; 9] = [
        "SEQUENCE",
        "RENEW",
        "CLIENTID",
        "OPEN",
        "CLOSE",
        "LOCK",
        "DELEGRETURN",
        "Stateid4",
        "CREATE_SESSION",
    ];
    let of_version_4 = call.starts_with("OP_") || call.starts_with("reply");
    !of_version_4 || RENEWING.iter().any(|word| call.contains(word))
}

/// Whether a call, in these words, changes something for which it matters how often it is executed.
pub(crate) fn changes(call: &str) -> bool {
    ["REMOVE", "RENAME", "PROC3_CREATE", "OPEN creating", "LOCK"].iter().any(|word| call.contains(word))
}

/// What reaches a client.
pub(crate) fn answer(bytes: &[u8], transport: Transport) -> String {
    let message = if transport == Transport::Tcp { bytes.get(4..).unwrap_or_default() } else { bytes };
    let mut d = Decoder::new(message);
    match d.get::<Message<'_>>() {
        Ok(Message::Reply { xid, .. }) => {
            // Results of version 3 begin with a status, too; which version it is the call says.
            let status = d
                .get::<CompoundRes<'_>>()
                .map_or_else(|_| String::new(), |res| format!(" {:?},", res.status));
            format!("reply,{status} xid {xid:#x}, {} bytes", message.len())
        }
        _ => call(message),
    }
}
