//! The rules of COMPOUND, and filehandles, of version 4.

use benchmaster_nfs_proto::rpc::RpcReply;
use benchmaster_nfs_proto::v4::{
    self, Argop, CompoundHeader, CompoundResHeader, Nfsstat4 as S, Opnum, fattr4,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder};

use super::Kind;
use crate::nfs::client4::{COMPOUND, Client4};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::trial::Trial;
use crate::{Stop, Tried};

const NO_HANDLE: &[S] = &[S::NOFILEHANDLE];
const ANY: v4::Stateid4 = v4::Stateid4::ANONYMOUS;

/// An operation without a current filehandle.
fn without_handle(t: &mut Trial, op: Argop<'_>) -> Tried {
    t.a()?.gives(&[op], NO_HANDLE)
}

/// What was sent; the status of the compound, or what RPC says; the tag.
type Raw = (String, Result<S, String>, Vec<u8>);

/// Sends a compound whose operations are bytes; gives the status of the compound, or what RPC says.
fn raw(client: &mut Client4, minor: u32, count: u32, tag: &[u8], ops: &[u8]) -> Result<Raw, Stop> {
    let sent = format!("COMPOUND of minor version {minor}, {count} operations in {} bytes", ops.len());
    let stop = |trouble| Stop::Trouble { sent: sent.clone(), trouble };
    let user = client.user;
    let xid = client
        .connection
        .send(COMPOUND, Some(user), |e| {
            e.put(&CompoundHeader { tag: tag.into(), minorversion: minor, count });
            e.raw(ops);
        })
        .map_err(stop)?;
    let reply = client.connection.receive(xid).map_err(stop)?;
    let (rpc, results) = reply.rpc().map_err(stop)?;
    if !matches!(rpc, RpcReply::Success(_)) {
        return Ok((sent, Err(format!("{rpc:?}")), Vec::new()));
    }
    let head: CompoundResHeader<'_> = Decoder::new(results)
        .get()
        .map_err(|error| Stop::failed(sent.clone(), format!("the results cannot be decoded: {error}")))?;
    Ok((sent, Ok(head.status), head.tag.0.to_vec()))
}

/// Operations of a compound that are damaged somewhere, behind a good SEQUENCE where one is needed.
fn damaged(t: &mut Trial, count: u32, make: impl FnOnce(&mut Encoder), allowed: &[S]) -> Tried {
    let client = t.a()?;
    let mut e = Encoder::new();
    let sequence = client.sequence(false);
    if let Some(sequence) = sequence {
        e.put(&Argop::Sequence(sequence));
    }
    make(&mut e);
    let minor = client.minor;
    let all = count + u32::from(sequence.is_some());
    let (sent, status, _) = raw(client, minor, all, b"damaged", e.buffer())?;
    match status {
        Ok(status) => {
            hold(allowed.contains(&status), &sent, || format!("{status}; {} is right", names(allowed)))
        }
        // The whole call may be refused where it is decoded before it is carried out.
        Err(rpc) => {
            hold(rpc.contains("GarbageArgs"), &sent, || format!("{rpc}; {} is right", names(allowed)))
        }
    }
}

/// An operation that a minor version does not have.
fn not_of_this_minor(t: &mut Trial, number: u32, allowed: &[S]) -> Tried {
    damaged(t, 1, |e| e.put(&number), allowed)
}

checks! {
    /// Compounds.
    LIST, Compound;
    "compound-empty" V40 Must [V40 7530 "16.2.4"]
        "A compound without operations is OK." => |t| t.a()?.plain(&[])?.is(&[S::OK]);
    "compound-empty-4.1" V41 Must [V41 8881 "16.2.3"]
        "A compound without operations is OK, without a session too." => |t| t.a()?.plain(&[])?.is(&[S::OK]);
    "compound-minor-version" V4 Must [V40 7530 "16.2.4", V41 8881 "16.2.3"]
        "A minor version that does not exist is MINOR_VERS_MISMATCH."
        => |t| {
            let (sent, status, _) = raw(t.a()?, 99, 0, b"", &[])?;
            hold(status == Ok(S::MINOR_VERS_MISMATCH), &sent, || format!("{status:?}; MINOR_VERS_MISMATCH is right"))
        };
    "compound-tag" V4 Must [V40 7530 "16.2.4", V41 8881 "16.2.3"]
        "The tag comes back as it was, of any length."
        => |t| {
            let client = t.a()?;
            let (minor, tag) = (client.minor, "ein längeres Schild 日本 ".repeat(4));
            let (sent, _, back) = raw(client, minor, 0, tag.as_bytes(), &[])?;
            hold(back == tag.as_bytes(), &sent, || format!("tag {:?}", String::from_utf8_lossy(&back)))
        };
    "compound-illegal-operation" V4 Must [V40 7530 "16.38", V41 8881 "18.52"]
        "An operation number that does not exist is OP_ILLEGAL."
        => |t| not_of_this_minor(t, 9999, &[S::OP_ILLEGAL]);
    "compound-operation-zero" V4 Must [V40 7530 "16.38", V41 8881 "18.52"]
        "Operation 0 is OP_ILLEGAL." => |t| not_of_this_minor(t, 0, &[S::OP_ILLEGAL]);
    "compound-operation-two" V4 Must [V40 7530 "16.38", V41 8881 "18.52"]
        "Operation 2 is OP_ILLEGAL." => |t| not_of_this_minor(t, 2, &[S::OP_ILLEGAL]);
    "compound-later-operation" V40 Must [V40 7530 "16.38"]
        "An operation of 4.1 is OP_ILLEGAL in 4.0."
        => |t| not_of_this_minor(t, Opnum::SEQUENCE.0, &[S::OP_ILLEGAL]);
    "compound-old-operation-renew" V41 Must [V41 8881 "17"]
        "RENEW, which 4.1 does not have any more, is NOTSUPP."
        => |t| { let clientid = t.a()?.clientid; t.a()?.gives(&[Argop::Renew(v4::RenewArgs { clientid })], &[S::NOTSUPP]) };
    "compound-old-operation-open-confirm" V41 Must [V41 8881 "17"]
        "OPEN_CONFIRM, which 4.1 does not have any more, is NOTSUPP."
        => |t| {
            let confirm = v4::OpenConfirmArgs { open_stateid: ANY, seqid: 1 };
            t.at_dir(&[Argop::OpenConfirm(confirm)], &[S::NOTSUPP])
        };
    "compound-old-operation-setclientid-confirm" V41 Must [V41 8881 "17"]
        "SETCLIENTID_CONFIRM, which 4.1 does not have any more, is NOTSUPP."
        => |t| {
            let confirm = v4::SetclientidConfirmArgs { clientid: 1, setclientid_confirm: [0; 8] };
            t.a()?.gives(&[Argop::SetclientidConfirm(confirm)], &[S::NOTSUPP])
        };
    "compound-old-operation-release-lockowner" V41 Must [V41 8881 "17"]
        "RELEASE_LOCKOWNER, which 4.1 does not have any more, is NOTSUPP."
        => |t| {
            let lock_owner = v4::StateOwner4 { clientid: 1, owner: (&b"owner"[..]).into() };
            t.a()?.gives(&[Argop::ReleaseLockowner(v4::ReleaseLockownerArgs { lock_owner })], &[S::NOTSUPP])
        };
    "compound-cut-off" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "An operation whose arguments are missing does not decode: BADXDR."
        => |t| damaged(t, 1, |e| e.put(&Opnum::LOOKUP.0), &[S::BADXDR]);
    "compound-handle-too-long" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "A filehandle of more than 128 bytes does not decode: BADXDR (or it is BADHANDLE)."
        => |t| {
            let long = |e: &mut Encoder| {
                e.put(&Opnum::PUTFH.0);
                e.opaque(&[7; 200]);
            };
            damaged(t, 1, long, &[S::BADXDR, S::BADHANDLE])
        };
    "compound-length-beyond-the-end" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "A name whose length goes beyond the message does not decode: BADXDR."
        => |t| {
            let wrong = |e: &mut Encoder| {
                e.put(&Argop::Putrootfh);
                e.put(&Opnum::LOOKUP.0);
                e.put(&0x7fff_fff0u32);
                e.raw(b"name");
            };
            damaged(t, 2, wrong, &[S::BADXDR, S::NAMETOOLONG])
        };
    "compound-fewer-than-said" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "A compound that has fewer operations than it says does not decode: BADXDR."
        => |t| damaged(t, 3, |e| e.put(&Argop::Putrootfh), &[S::BADXDR, S::OP_ILLEGAL]);
    "compound-bad-enum" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "A value that an enumeration does not have does not decode: BADXDR (or it is INVAL)."
        => |t| {
            let fh = t.object(Kind::File)?;
            let wrong = |e: &mut Encoder| {
                e.put(&putfh(&fh));
                e.put(&Opnum::WRITE.0);
                e.put(&ANY);
                e.put(&0u64);
                e.put(&7u32);
                e.opaque(b"data");
            };
            damaged(t, 2, wrong, &[S::BADXDR, S::INVAL])
        };
    "compound-huge-count" V4 Must [V40 7530 "13.1.1.1", V41 8881 "15.1.1.1"]
        "A compound of four thousand million operations that are not there is refused."
        => |t| damaged(t, 0xffff_fff0, |e| e.put(&Argop::Putrootfh), &[S::BADXDR, S::RESOURCE, S::TOO_MANY_OPS, S::OP_ILLEGAL]);
    "no-handle-getattr" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "GETATTR without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, getattr(&[fattr4::TYPE]));
    "no-handle-setattr" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "SETATTR without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, setattr(ANY, &Attrs::mode(0o600)));
    "no-handle-lookup" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "LOOKUP without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, lookup("x"));
    "no-handle-lookupp" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "LOOKUPP without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, Argop::Lookupp);
    "no-handle-getfh" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "GETFH without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, Argop::Getfh);
    "no-handle-savefh" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "SAVEFH without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, Argop::Savefh);
    "no-handle-access" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "ACCESS without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, access(1));
    "no-handle-read" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "READ without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, read(ANY, 0, 1));
    "no-handle-write" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "WRITE without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, write(ANY, 0, b"x"));
    "no-handle-commit" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "COMMIT without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, commit(0, 0));
    "no-handle-readdir" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "READDIR without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, readdir(0, [0; 8], 4096, &[]));
    "no-handle-readlink" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "READLINK without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, Argop::Readlink);
    "no-handle-create" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "CREATE without a current filehandle is NOFILEHANDLE."
        => |t| without_handle(t, create(v4::Createtype4::Dir, b"x", &Attrs::none()));
    "no-handle-remove" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "REMOVE without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, remove("x"));
    "no-handle-verify" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "VERIFY without a current filehandle is NOFILEHANDLE." => |t| without_handle(t, verify(&Attrs::size(0)));
    "no-saved-handle-rename" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "RENAME without a saved filehandle is NOFILEHANDLE." => |t| t.at_dir(&[rename("x", "y")], NO_HANDLE);
    "no-saved-handle-link" V4 Must [V40 7530 "13.1.2.5", V41 8881 "15.1.2.5"]
        "LINK without a saved filehandle is NOFILEHANDLE." => |t| t.at_dir(&[link("y")], NO_HANDLE);
    "no-saved-handle-restorefh" V40 Must [V40 7530 "16.29.4"]
        "RESTOREFH without a saved filehandle is RESTOREFH." => |t| t.at_dir(&[Argop::Restorefh], &[S::RESTOREFH]);
    "no-saved-handle-restorefh-4.1" V41 Must [V41 8881 "18.27.3"]
        "RESTOREFH without a saved filehandle is NOFILEHANDLE (RESTOREFH was right in 4.0)."
        => |t| t.at_dir(&[Argop::Restorefh], &[S::NOFILEHANDLE, S::RESTOREFH]);
    "handle-garbage" V4 Must [V40 7530 "13.1.2.1", V41 8881 "15.1.2.1"]
        "PUTFH of bytes that are no filehandle is BADHANDLE (or STALE)."
        => |t| t.a()?.gives(&[putfh(b"these bytes are no filehandle!!!"), getattr(&[1])], &[S::BADHANDLE, S::STALE]);
    "handle-empty" V4 Must [V40 7530 "13.1.2.1", V41 8881 "15.1.2.1"]
        "PUTFH of an empty filehandle is BADHANDLE (or STALE)."
        => |t| t.a()?.gives(&[putfh(b""), getattr(&[1])], &[S::BADHANDLE, S::STALE, S::NOFILEHANDLE]);
    "handle-cut" V4 Must [V40 7530 "13.1.2.1", V41 8881 "15.1.2.1"]
        "PUTFH of part of a filehandle is BADHANDLE (or STALE)."
        => |t| {
            let fh = t.object(Kind::File)?;
            t.a()?.gives(&[putfh(&fh[..fh.len() / 2]), getattr(&[1])], &[S::BADHANDLE, S::STALE])
        };
    "handle-stays" V4 Must [V40 7530 "4.2.1", V41 8881 "4.2.1"]
        "The filehandle of an object is the same each time, where the same name is looked up."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let again = t.a()?.done(&dir, &[lookup("x"), Argop::Getfh])?;
            hold(again.fh()? == fh, &again.sent, || "another filehandle than that of its creation".into())
        };
    "handle-saved" V4 Must [V40 7530 "16.29.4", V41 8881 "18.27.3"]
        "RESTOREFH makes the saved filehandle the current one."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let answer = t.a()?.compound(&[putfh(&fh), Argop::Savefh, putfh(&dir), Argop::Restorefh, Argop::Getfh])?.ok()?;
            hold(answer.fh()? == fh, &answer.sent, || "another filehandle than the saved one".into())
        };
    "handle-of-root" V4 Must [V40 7530 "16.22", V41 8881 "18.21"]
        "PUTROOTFH gives a directory."
        => |t| {
            let client = t.a()?;
            let answer = client.compound(&[Argop::Putrootfh, getattr(&[fattr4::TYPE])])?.ok()?;
            let kind = client.decoded(&answer)?.file_type;
            hold(kind == Some(v4::Ftype4::Dir), &answer.sent, || format!("{kind:?}"))
        };
    "handle-public" V4 Must [V40 7530 "16.21", V41 8881 "18.20"]
        "PUTPUBFH gives a filehandle, that of the root where there is no other."
        => |t| t.a()?.gives(&[Argop::Putpubfh, getattr(&[fattr4::TYPE])], &[S::OK]);
    "secinfo" V4 Must [V40 7530 "16.31.4", V41 8881 "18.29.3"]
        "SECINFO gives the flavours of a name, of which this connection's is one."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let answer = t.a()?.done(&dir, &[Argop::Secinfo(v4::SecinfoArgs { name: "x".into() })])?;
            let sys = match answer.last() {
                Some(v4::Resop::Secinfo(Ok(ok))) => ok.flavors.iter().any(|flavor| flavor == v4::Secinfo4::Flavor(1)),
                _ => false,
            };
            hold(sys, &answer.sent, || "AUTH_SYS, by which it was asked, is not among them".into())
        };
    "secinfo-missing" V4 Must [V40 7530 "16.31.4", V41 8881 "18.29.3"]
        "SECINFO of a name that is not there is NOENT."
        => |t| t.at_dir(&[Argop::Secinfo(v4::SecinfoArgs { name: "missing".into() })], &[S::NOENT]);
    "secinfo-in-file" V4 Must [V40 7530 "13.1.2.6", V41 8881 "15.1.2.6"]
        "SECINFO in a file is NOTDIR."
        => |t| t.at(Kind::File, &[Argop::Secinfo(v4::SecinfoArgs { name: "y".into() })], &[S::NOTDIR]);
    "secinfo-empty-name" V4 Must [V40 7530 "13.1.1.4", V41 8881 "15.1.1.4"]
        "SECINFO of a name without characters is INVAL."
        => |t| t.at_dir(&[Argop::Secinfo(v4::SecinfoArgs { name: "".into() })], &[S::INVAL]);
    "secinfo-takes-handle" V41 Must [V41 8881 "2.6.3.1.1.8"]
        "SECINFO takes the current filehandle away."
        => |t| {
            t.object(Kind::File)?;
            t.at_dir(&[Argop::Secinfo(v4::SecinfoArgs { name: "x".into() }), Argop::Getfh], NO_HANDLE)
        };
    "openattr" V4 Should [V40 7530 "16.17.4", V41 8881 "18.17.3"]
        "OPENATTR gives the directory of named attributes, or NOTSUPP, or NOENT where it is not to be made."
        => |t| t.at(Kind::File, &[Argop::Openattr(v4::OpenattrArgs { createdir: false })], &[S::OK, S::NOTSUPP, S::NOENT]);
}
