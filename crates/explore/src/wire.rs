//! Messages in a few words.

use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_proto::rpc::{CallHeader, Message};
use benchmaster_nfs_proto::v3::Proc3;
use benchmaster_nfs_proto::v4::{Argop, CompoundArgs, CompoundRes, Ops, PROC_COMPOUND};
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
fn operations(ops: Ops<'_>) -> String {
    let name = |op: Result<Argop<'_>, _>| match op {
        Ok(Argop::Open(args)) => format!("OPEN {:?}", args.claim),
        Ok(Argop::Write(args)) => format!("WRITE at {} with {:?}", args.offset, args.stateid),
        Ok(Argop::Read(args)) => format!("READ at {} with {:?}", args.offset, args.stateid),
        Ok(Argop::Close(args)) => format!("CLOSE {:?}", args.open_stateid),
        Ok(Argop::Lock(args)) => format!("LOCK{}", if args.reclaim { " reclaim" } else { "" }),
        Ok(Argop::Sequence(args)) => format!("SEQUENCE slot {} number {}", args.slotid, args.sequenceid),
        Ok(op) => {
            let text = format!("{op:?}");
            text.split(['(', ' ', '{']).next().unwrap_or_default().to_uppercase()
        }
        Err(_) => "?".into(),
    };
    ops.map(name).collect::<Vec<_>>().join(", ")
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
