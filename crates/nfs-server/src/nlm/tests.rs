//! Encoded calls in, decoded results out.

use benchmaster_nfs_proto::nlm::{FshAccess, FshMode, Share, v1};
use benchmaster_nfs_proto::nsm as nsm_proto;
use benchmaster_nfs_proto::v3;
use benchmaster_nfs_proto::xdr::{Encode, Opaque};
use proto::v4::{Lock, TestRes};

use super::*;
use crate::call::testing::{Caller, decode};
use crate::config::ServerConfig;
use crate::cred::Credentials;
use crate::fs::{NewFile, SetAttr};
use crate::state::Effect;
use crate::v4::testing;

type Handle = Vec<u8>;

/// A server and a file that everybody may write.
fn server() -> (Shared, Handle) {
    server_with(ServerConfig::default())
}

fn server_with(config: ServerConfig) -> (Shared, Handle) {
    let server = testing::server(config);
    let (_, root) = server.exports.mountable().next().unwrap();
    let (fs, dir) = server.exports.file(root).unwrap();
    let set = SetAttr { mode: Some(0o666), ..SetAttr::default() };
    let now = crate::fs::Time { seconds: 1, nanos: 0 };
    let made = fs.create(&Credentials::root(), dir, b"file", NewFile::Regular, &set, None, now).unwrap();
    let id = FileId::new(root.export, made.attr.node);
    let handle = crate::handle::encode(server.instance, id).to_vec();
    (server, handle)
}

fn alock<'a>(host: &'a str, svid: i32, fh: &'a [u8], range: (u64, u64)) -> Lock<'a> {
    Lock { caller_name: host.into(), fh: fh.into(), oh: host.into(), svid, l_offset: range.0, l_len: range.1 }
}

const COOKIE: &[u8] = b"cook";

impl Caller<'_> {
    fn nlm(&mut self, procedure: Proc, args: &impl Encode) -> NlmStats {
        let results = self.call((proto::PROGRAM, serve), (4, procedure.0), args);
        let res: Res<'_> = decode(&results);
        assert_eq!(res.cookie.0, COOKIE);
        res.stat
    }

    fn lock(&mut self, alock: Lock<'_>, exclusive: bool, block: bool) -> NlmStats {
        let cookie = COOKIE.into();
        self.nlm(Proc::LOCK, &LockArgs { cookie, block, exclusive, alock, reclaim: false, state: 1 })
    }

    fn unlock(&mut self, alock: Lock<'_>) -> NlmStats {
        self.nlm(Proc::UNLOCK, &UnlockArgs { cookie: COOKIE.into(), alock })
    }

    fn cancel(&mut self, alock: Lock<'_>, exclusive: bool) -> NlmStats {
        self.nlm(Proc::CANCEL, &CancelArgs { cookie: COOKIE.into(), block: true, exclusive, alock })
    }

    /// The holder's process and range, if any lock is in the way.
    fn test(&mut self, alock: Lock<'_>, exclusive: bool) -> Option<(i32, u64, u64)> {
        let results = self.call(
            (proto::PROGRAM, serve),
            (4, Proc::TEST.0),
            &TestArgs { cookie: COOKIE.into(), exclusive, alock },
        );
        match decode::<TestRes<'_>>(&results).stat {
            TestReply::Denied(holder) => Some((holder.svid, holder.l_offset, holder.l_len)),
            TestReply::Other(stat) => {
                assert_eq!(NlmStats(stat), NlmStats::GRANTED);
                None
            }
        }
    }

    /// Locks granted since the last time, by process.
    fn granted(&mut self) -> Vec<i32> {
        let waiter = |effect| match effect {
            Effect::NlmGranted(waiter) => Some(waiter),
            _ => None,
        };
        self.effects.drain(..).filter_map(waiter).map(|waiter| waiter.lock.owner.svid).collect()
    }
}

#[test]
fn locks_of_several_machines() {
    let (server, file) = server();
    let mut caller = Caller::new(&server, 0);
    let (a, b) = (alock("a", 1, &file, (0, 10)), alock("b", 1, &file, (5, 10)));
    assert_eq!(caller.lock(a, true, false), NlmStats::GRANTED);
    assert_eq!(caller.lock(a, true, false), NlmStats::GRANTED, "a repeated request");
    assert_eq!(caller.lock(b, true, false), NlmStats::DENIED);
    assert_eq!(caller.lock(b, false, false), NlmStats::DENIED);
    assert_eq!(caller.test(b, false), Some((1, 0, 10)));
    assert_eq!(caller.test(alock("b", 1, &file, (10, 0)), true), None);
    // Downgraded, and shared.
    assert_eq!(caller.lock(a, false, false), NlmStats::GRANTED);
    assert_eq!(caller.lock(b, false, false), NlmStats::GRANTED);
    assert_eq!(caller.lock(b, true, false), NlmStats::DENIED);
    assert_eq!(caller.unlock(a), NlmStats::GRANTED);
    assert_eq!(caller.unlock(a), NlmStats::GRANTED, "nothing to unlock is no error");
    assert_eq!(caller.lock(b, true, false), NlmStats::GRANTED);
    // To the end of the file, as 0 says.
    assert_eq!(caller.lock(alock("a", 2, &file, (100, 0)), true, false), NlmStats::GRANTED);
    assert_eq!(caller.test(alock("b", 1, &file, (u64::MAX - 1, 1)), false), Some((2, 100, 0)));
}

/// Kernels lock with AUTH_SYS what they read and write with Kerberos. Nothing else is open to AUTH_SYS there.
#[test]
fn files_of_kerberos_are_locked_with_auth_sys() {
    let security = "krb5p".parse().unwrap();
    let (server, file) = server_with(ServerConfig { security, ..ServerConfig::default() });
    let mut caller = Caller::new(&server, 1000);
    let lock = |svid| alock("a", svid, &file, (0, 10));
    assert_eq!(caller.lock(lock(1), true, false), NlmStats::GRANTED);
    assert_eq!(caller.lock(lock(2), true, false), NlmStats::DENIED);
    assert_eq!(caller.test(lock(2), true), Some((1, 0, 10)));
    assert_eq!(caller.unlock(lock(1)), NlmStats::GRANTED);
    let mut args = Encoder::new();
    args.put(&Opaque::<64>(&file[..]));
    let (served, _) = caller.raw((v3::PROGRAM, crate::v3::serve), (3, v3::Proc3::GETATTR.0), args.buffer());
    assert_eq!(served, Ok(v3::Nfsstat3::ACCES.0));
}

#[test]
fn waiting_and_being_granted() {
    let (server, file) = server();
    let mut caller = Caller::new(&server, 0);
    let lock = |svid| alock("a", svid, &file, (0, 10));
    assert_eq!(caller.lock(lock(1), true, true), NlmStats::GRANTED);
    assert_eq!(caller.lock(lock(2), true, true), NlmStats::BLOCKED);
    assert_eq!(caller.lock(lock(2), true, true), NlmStats::BLOCKED, "a repeated request");
    assert_eq!(caller.lock(lock(3), true, true), NlmStats::BLOCKED);
    assert!(caller.granted().is_empty());
    assert_eq!(caller.unlock(lock(1)), NlmStats::GRANTED);
    assert_eq!(caller.granted(), [2], "in their order, one at a time");
    // A request taken back is not granted.
    assert_eq!(caller.lock(lock(4), true, true), NlmStats::BLOCKED);
    assert_eq!(caller.cancel(lock(3), true), NlmStats::GRANTED);
    assert_eq!(caller.cancel(lock(3), true), NlmStats::DENIED);
    assert_eq!(caller.unlock(lock(2)), NlmStats::GRANTED);
    assert_eq!(caller.granted(), [4]);
}

#[test]
fn a_machine_that_restarted_loses_its_locks() {
    let (server, file) = server();
    let mut caller = Caller::new(&server, 0);
    let (a, b) = (alock("a", 1, &file, (0, 0)), alock("b", 1, &file, (0, 0)));
    assert_eq!(caller.lock(a, true, false), NlmStats::GRANTED);
    assert_eq!(caller.lock(b, true, true), NlmStats::BLOCKED);
    let notify = nsm_proto::StatChge { mon_name: "a".into(), state: 3 };
    // A stranger that takes the name's locks away, by whatever call, takes its own only.
    let mut stranger = Caller::new(&server, 0);
    stranger.peer.address = ([127, 0, 0, 9], 700).into();
    stranger.call((nsm_proto::PROGRAM, nsm::serve), (1, nsm_proto::Proc::NOTIFY.0), &notify);
    stranger.call((proto::PROGRAM, serve), (4, Proc::FREE_ALL.0), &Notify { name: "a".into(), state: 0 });
    let unlock = UnlockArgs { cookie: COOKIE.into(), alock: a };
    stranger.call((proto::PROGRAM, serve), (4, Proc::UNLOCK.0), &unlock);
    assert_eq!(caller.granted(), [0; 0]);
    assert_eq!(caller.call((nsm_proto::PROGRAM, nsm::serve), (1, nsm_proto::Proc::NOTIFY.0), &notify), b"");
    assert_eq!(caller.granted(), [1]);
    assert_eq!(caller.lock(a, true, false), NlmStats::DENIED);
    caller.call((proto::PROGRAM, serve), (4, Proc::FREE_ALL.0), &Notify { name: "b".into(), state: 0 });
    assert_eq!(caller.lock(a, true, false), NlmStats::GRANTED);
}

#[test]
fn version_1_has_32_bits_and_fewer_statuses() {
    let (server, file) = server();
    let mut caller = Caller::new(&server, 0);
    assert_eq!(caller.lock(alock("b", 7, &file, (1 << 40, 5)), true, false), NlmStats::GRANTED);
    let alock =
        |fh| v1::Lock { caller_name: "a".into(), fh, oh: "a".into(), svid: 1, l_offset: 0, l_len: u32::MAX };
    let args = |fh| v1::TestArgs { cookie: COOKIE.into(), exclusive: true, alock: alock(fh) };
    let results = caller.call((proto::PROGRAM, serve), (1, Proc::TEST.0), &args(file[..].into()));
    let stat = decode::<v1::TestRes<'_>>(&results).stat;
    let holder = v1::Holder { exclusive: true, svid: 7, oh: "b".into(), l_offset: u32::MAX, l_len: 5 };
    assert_eq!(stat, v1::TestReply::Denied(holder));
    let results = caller.call((proto::PROGRAM, serve), (1, Proc::TEST.0), &args("no handle".into()));
    assert_eq!(decode::<v1::TestRes<'_>>(&results).stat.stat(), NlmStats::DENIED_NOLOCKS);
    assert_eq!(caller.refused((proto::PROGRAM, serve), (1, Proc::SHARE.0), b""), Refusal::ProcUnavail);
}

#[test]
fn requests_that_cannot_be() {
    let (server, file) = server();
    let mut caller = Caller::new(&server, 0);
    let (_, root) = server.exports.mountable().next().unwrap();
    let dir = crate::handle::encode(server.instance, root).to_vec();
    assert_eq!(caller.lock(alock("a", 1, b"no handle", (0, 1)), true, false), NlmStats::STALE_FH);
    assert_eq!(caller.lock(alock("a", 1, &dir, (0, 1)), true, false), NlmStats::FAILED);
    assert_eq!(caller.lock(alock("a", 1, &file, (u64::MAX, 2)), true, false), NlmStats::FBIG);
    let (_, id) = crate::handle::decode(&file).unwrap();
    let (fs, node) = server.exports.file(id).unwrap();
    let set = SetAttr { mode: Some(0o644), ..SetAttr::default() };
    fs.set_attr(&Credentials::root(), node, &set, None, false, caller.now.wall).unwrap();
    let mut user = Caller::new(&server, 1000);
    assert_eq!(user.lock(alock("a", 1, &file, (0, 1)), true, false), NlmStats::DENIED);
    let granted = TestArgs { cookie: COOKIE.into(), exclusive: true, alock: alock("a", 1, &file, (0, 1)) };
    assert_eq!(caller.nlm(Proc::GRANTED, &granted), NlmStats::DENIED);
    assert_eq!(caller.refused((proto::PROGRAM, serve), (4, 17), b""), Refusal::ProcUnavail);
    assert_eq!(caller.refused((proto::PROGRAM, serve), (4, Proc::LOCK.0), b"1234"), Refusal::GarbageArgs);
}

#[test]
fn shares_by_call() {
    let (server, file) = server();
    let mut caller = Caller::new(&server, 0);
    let mut share = |procedure: Proc, host: &str, mode, access, reclaim| {
        let share = Share { caller_name: host.into(), fh: file[..].into(), oh: "o".into(), mode, access };
        let args = ShareArgs { cookie: COOKIE.into(), share, reclaim };
        decode::<ShareRes<'_>>(&caller.call((proto::PROGRAM, serve), (3, procedure.0), &args)).stat
    };
    let (none, write) = (FshMode::DenyNone, FshMode::DenyWrite);
    assert_eq!(share(Proc::SHARE, "a", write, FshAccess::Read, false), NlmStats::GRANTED);
    assert_eq!(share(Proc::SHARE, "b", none, FshAccess::Write, false), NlmStats::DENIED);
    assert_eq!(share(Proc::UNSHARE, "a", write, FshAccess::Read, false), NlmStats::GRANTED);
    assert_eq!(share(Proc::SHARE, "b", none, FshAccess::Write, false), NlmStats::GRANTED);
    // There is nothing to be reclaimed outside the grace period.
    assert_eq!(share(Proc::SHARE, "c", none, FshAccess::Read, true), NlmStats::DENIED_GRACE_PERIOD);
}

#[test]
fn this_server_monitors_nobody() {
    let (server, _) = server();
    let mut caller = Caller::new(&server, 0);
    let name = nsm_proto::SmName { mon_name: "a".into() };
    let results = caller.call((nsm_proto::PROGRAM, nsm::serve), (1, nsm_proto::Proc::STAT.0), &name);
    let stat: nsm_proto::SmStatRes = decode(&results);
    assert_eq!((stat.res_stat, stat.state & 1), (nsm_proto::ResStat::Fail, 1));
    assert_eq!(caller.refused((nsm_proto::PROGRAM, nsm::serve), (1, 7), b""), Refusal::ProcUnavail);
}

#[test]
fn locks_are_reclaimed_after_a_restart_of_the_server() {
    let (server, file) = server();
    let (a, b) = (alock("a", 1, &file, (0, 0)), alock("b", 1, &file, (0, 0)));
    assert_eq!(Caller::new(&server, 0).lock(a, true, false), NlmStats::GRANTED);
    let reclaim = |alock| LockArgs {
        cookie: COOKIE.into(),
        block: false,
        exclusive: true,
        alock,
        reclaim: true,
        state: 1,
    };
    let now = std::time::Instant::now();
    let server = server.restarted(8, now).unwrap();
    let mut caller = Caller::new(&server, 0);
    assert_eq!(caller.lock(b, true, false), NlmStats::DENIED_GRACE_PERIOD);
    assert_eq!(caller.nlm(Proc::LOCK, &reclaim(a)), NlmStats::GRANTED);
    server.tick(now + server.config.lease);
    assert_eq!(caller.lock(b, true, false), NlmStats::DENIED);
    assert_eq!(caller.nlm(Proc::LOCK, &reclaim(b)), NlmStats::DENIED_GRACE_PERIOD);
    assert_eq!(server.known().len(), 1);
    // Who does not come back may not reclaim after the next restart.
    let later = now + 2 * server.config.lease;
    let server = server.restarted(9, later).unwrap();
    assert_eq!(server.known().len(), 1, "until the grace period is over");
    server.tick(later + server.config.lease);
    assert_eq!(server.known().len(), 0);
    assert_eq!(Caller::new(&server, 0).lock(b, true, false), NlmStats::GRANTED);
}
