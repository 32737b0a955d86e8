//! Stateids of version 4.

use benchmaster_nfs_proto::v4::{self, Argop, Createhow4, Nfsstat4 as S, Openflag4, Resop, Stateid4};

use super::Kind;
use super::open4::{NO_STATE, changed, made, null, reads, twice, writes};
use crate::nfs::hold;
use crate::nfs::ops::*;
use crate::nfs::state::Share;

checks! {
    /// Stateids.
    LIST, Open;
    "stateid-unknown" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "READ and WRITE with a stateid that names nothing are BAD_STATEID (4.0: also STALE_STATEID)."
        => |t| {
            let open = made(t)?;
            let unknown = changed(&open, open.stateid.seqid, 0x5a);
            t.a()?.on(&open.fh, &[reads(unknown)], NO_STATE)?;
            t.a()?.on(&open.fh, &[writes(unknown)], NO_STATE)
        };
    "stateid-old" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "A stateid with an earlier sequence number is OLD_STATEID."
        => |t| {
            let open = twice(t)?;
            let old = changed(&open, open.stateid.seqid - 1, 0);
            t.a()?.on(&open.fh, &[writes(old)], &[S::OLD_STATEID])
        };
    "stateid-future" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "A stateid with a sequence number that was never given is BAD_STATEID."
        => |t| {
            let open = made(t)?;
            let future = changed(&open, open.stateid.seqid + 10, 0);
            t.a()?.on(&open.fh, &[writes(future)], &[S::BAD_STATEID])
        };
    "stateid-zero-seqid" V41 Must [V41 8881 "8.2.2"]
        "A stateid with the sequence number 0 means the latest."
        => |t| {
            let open = twice(t)?;
            t.a()?.on(&open.fh, &[writes(changed(&open, 0, 0))], &[S::OK])
        };
    "stateid-of-another-file" V4 Must [V40 7530 "9.1.4.4", V41 8881 "8.2.4"]
        "A stateid of another file is BAD_STATEID."
        => |t| {
            let open = made(t)?;
            let dir = t.dir();
            let other = t.a()?.file(&dir, "other", b"")?;
            t.a()?.on(&other, &[writes(open.stateid)], &[S::BAD_STATEID])
        };
    "stateid-of-another-client" V41 Must [V41 8881 "8.2.4"]
        "A stateid of another client is BAD_STATEID."
        => |t| {
            let open = made(t)?;
            let (_, b) = t.both()?;
            b.on(&open.fh, &[writes(open.stateid)], &[S::BAD_STATEID])
        };
    "stateid-invalid" V41 Must [V41 8881 "8.2.3"]
        "The invalid stateid, zeros with the highest number, is BAD_STATEID."
        => |t| {
            let open = made(t)?;
            t.a()?.on(&open.fh, &[writes(Stateid4::INVALID)], &[S::BAD_STATEID])
        };
    "stateid-current" V41 Must [V41 8881 "16.2.3.1.2"]
        "The current stateid of a compound is that of the OPEN before."
        => |t| {
            let dir = t.dir();
            let client = t.a()?;
            let attrs = Attrs::mode(0o644);
            let how = Openflag4::Create(Createhow4::Unchecked(attrs.fattr()));
            let args = client.open_args(b"opener", Share::BOTH, how, null("x"));
            let close = v4::CloseArgs { seqid: 0, open_stateid: Stateid4::CURRENT };
            let ops = [Argop::Open(args), writes(Stateid4::CURRENT), reads(Stateid4::CURRENT), Argop::Close(close)];
            client.on(&dir, &ops, &[S::OK])
        };
    "stateid-current-lost" V41 Must [V41 8881 "16.2.3.1.2"]
        "PUTFH takes the current stateid away: its use then is BAD_STATEID."
        => |t| {
            let (dir, fh) = (t.dir(), t.object(Kind::File)?);
            let client = t.a()?;
            let args = client.open_args(b"opener", Share::BOTH, Openflag4::NoCreate, null("x"));
            client.on(&dir, &[Argop::Open(args), putfh(&fh), writes(Stateid4::CURRENT)], &[S::BAD_STATEID])
        };
    "stateid-current-saved" V41 Must [V41 8881 "16.2.3.1.2"]
        "SAVEFH and RESTOREFH keep the current stateid too."
        => |t| {
            t.object(Kind::File)?;
            let dir = t.dir();
            let client = t.a()?;
            let args = client.open_args(b"opener", Share::BOTH, Openflag4::NoCreate, null("x"));
            let ops = [
                Argop::Open(args), Argop::Savefh, putfh(&dir), Argop::Restorefh, writes(Stateid4::CURRENT),
            ];
            client.on(&dir, &ops, &[S::OK])
        };
    "test-stateid" V41 Must [V41 8881 "18.48.3"]
        "TEST_STATEID says of each stateid how it is."
        => |t| {
            let open = twice(t)?;
            let stateids = [open.stateid, changed(&open, open.stateid.seqid - 1, 0), changed(&open, 1, 0x5a)];
            let args = v4::TestStateidArgs { stateids: benchmaster_nfs_proto::xdr::List::Items(&stateids) };
            let answer = t.a()?.compound(&[Argop::TestStateid(args)])?.ok()?;
            let codes: Vec<S> = match answer.last() {
                Some(Resop::TestStateid(Ok(ok))) => ok.status_codes.iter().collect(),
                _ => return Err(answer.wrong("success is right")),
            };
            hold(codes == [S::OK, S::OLD_STATEID, S::BAD_STATEID], &answer.sent, || {
                format!("{codes:?}; OK, OLD_STATEID, BAD_STATEID are right")
            })
        };
    "free-stateid-of-open" V41 Must [V41 8881 "18.38.3"]
        "FREE_STATEID of an open is LOCKS_HELD."
        => |t| {
            let open = made(t)?;
            let args = v4::FreeStateidArgs { stateid: open.stateid };
            t.a()?.gives(&[Argop::FreeStateid(args)], &[S::LOCKS_HELD])
        };
    "free-stateid-unknown" V41 Must [V41 8881 "18.38.3"]
        "FREE_STATEID of a stateid that names nothing is BAD_STATEID."
        => |t| {
            let open = made(t)?;
            let args = v4::FreeStateidArgs { stateid: changed(&open, 1, 0x5a) };
            t.a()?.gives(&[Argop::FreeStateid(args)], &[S::BAD_STATEID])
        };
}
