//! Version 3 against a server that answers as the test says: patience, repetitions, listings that start anew, results
//! that make no sense.

use std::cell::RefCell;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use benchmaster_nfs_client::counters::{Counters, Event};
use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::{NfsResult, Protocol};
use benchmaster_nfs_client::types::{Create, OpenHow, Stability};
use benchmaster_nfs_client::v3::{Client, Connect};
use benchmaster_nfs_proto::v3::{
    CommitOk, CommitRes, CreateArgs, CreateHow, CreateOk, CreateRes, Entry, EntryPlus, Ftype3, GetattrOk,
    GetattrRes, LinkRes, LinkWcc, LookupArgs, LookupRes, Nfsstat3, Proc3, ReadOk, ReadRes, ReaddirArgs,
    ReaddirOk, ReaddirRes, ReaddirplusArgs, ReaddirplusOk, ReaddirplusRes, ReadlinkOk, ReadlinkRes,
    RemoveRes, RenameRes, RenameWcc, SetattrArgs, SetattrOk, SetattrRes, StableHow, WccData, WriteOk,
    WriteRes,
};
use benchmaster_nfs_proto::xdr::{Bulk, Chain, Decoder};

use crate::support::stub::{Call, ROOT, Reply, attributes, file_found, handle_of, opened, results, with};

#[test]
fn jukebox_is_waited_for_with_new_calls() {
    let (mut left, mut xids) = (3, Vec::new());
    let script = move |call: &Call<'_>| {
        if call.is(Proc3::LOOKUP) {
            return file_found(Ftype3::Reg, 1, 0);
        }
        if !call.is(Proc3::WRITE) {
            return None;
        }
        assert!(!xids.contains(&call.xid), "the same call again");
        xids.push(call.xid);
        if left > 0 {
            left -= 1;
            return results(&WriteRes::Err(Nfsstat3::JUKEBOX, WccData::NONE));
        }
        let (count, committed, verf) = (4, StableHow::FileSync, [1; 8]);
        results(&WriteRes::Ok(WriteOk { file_wcc: WccData::NONE, count, committed, verf }))
    };
    with(
        |_| {},
        script,
        async |client, counters| {
            let file = opened(client).await;
            let written = client.write(&file, b"data", 0, Stability::File).await.unwrap();
            assert_eq!((written.len, written.verifier), (4, [1; 8]));
            let counted = counters.snapshot();
            assert_eq!(counted.event(Event::Delay), 3);
            let op = counted.op(ops::v3::WRITE);
            assert_eq!((op.ops, op.transmissions, op.errors), (4, 4, 3));
        },
    );
}

#[test]
fn jukebox_has_an_end() {
    let script = |call: &Call<'_>| {
        if call.is(Proc3::GETATTR) { results(&GetattrRes::Err(Nfsstat3::JUKEBOX, ())) } else { None }
    };
    let error = with(
        |connect| connect.delay.give_up = Duration::from_millis(20),
        script,
        async |client, _| client.getattr(&client.root()).await.unwrap_err(),
    );
    assert_eq!(error, NfsError::TriedTooLong);
}

/// A directory of ten files in pages of three whose cookies get stale so many times.
fn stale_listing(mut stale: u32, plus: bool) -> impl FnMut(&Call<'_>) -> Option<Reply> {
    move |call: &Call<'_>| {
        let mut d = Decoder::new(call.args);
        let (cookie, verifier) = match call {
            call if call.is(Proc3::READDIR) => {
                let args: ReaddirArgs<'_> = d.get().unwrap();
                (args.cookie, args.cookieverf)
            }
            call if call.is(Proc3::READDIRPLUS) && !plus => {
                return results(&ReaddirplusRes::Err(Nfsstat3::NOTSUPP, None));
            }
            call if call.is(Proc3::READDIRPLUS) => {
                let args: ReaddirplusArgs<'_> = d.get().unwrap();
                (args.cookie, args.cookieverf)
            }
            _ => return None,
        };
        // The verifier of the last listing must come back.
        assert_eq!(verifier, if cookie == 0 { [0; 8] } else { [9; 8] });
        if cookie == 6 && stale > 0 {
            stale -= 1;
            return if plus {
                results(&ReaddirplusRes::Err(Nfsstat3::BAD_COOKIE, None))
            } else {
                results(&ReaddirRes::Err(Nfsstat3::BAD_COOKIE, None))
            };
        }
        let names: Vec<String> = (0..10).map(|n| format!("file {n}")).collect();
        let (from, to) = (cookie as usize, (cookie as usize + 3).min(10));
        let (eof, cookieverf) = (to == 10, [9; 8]);
        if plus {
            let entry = |n: usize| EntryPlus {
                fileid: n as u64,
                name: names[n].as_bytes().into(),
                cookie: n as u64 + 1,
                name_attributes: Some(attributes(Ftype3::Reg, n as u64, 0)),
                name_handle: Some(names[n].as_bytes().into()),
            };
            let entries: Vec<EntryPlus<'_>> = (from..to).map(entry).collect();
            let entries = Chain::Items(&entries[..]);
            results(&ReaddirplusRes::Ok(ReaddirplusOk { dir_attributes: None, cookieverf, entries, eof }))
        } else {
            let entry =
                |n: usize| Entry { fileid: n as u64, name: names[n].as_bytes().into(), cookie: n as u64 + 1 };
            let entries: Vec<Entry<'_>> = (from..to).map(entry).collect();
            let entries = Chain::Items(&entries[..]);
            results(&ReaddirRes::Ok(ReaddirOk { dir_attributes: None, cookieverf, entries, eof }))
        }
    }
}

async fn listed(client: &Client, plus: bool) -> NfsResult<Vec<(u64, bool)>> {
    let found = RefCell::new(Vec::new());
    let mut visit = |entry: &benchmaster_nfs_client::types::Entry<'_>| {
        assert_eq!(entry.handle.is_some(), entry.attributes.is_some());
        assert!(entry.handle.is_none_or(|handle| handle.bytes() == entry.name));
        found.borrow_mut().push((entry.fileid, entry.handle.is_some()));
    };
    client.readdir(&client.root(), plus, &mut visit).await?;
    Ok(found.into_inner())
}

#[test]
fn a_listing_starts_anew_once_and_hands_nothing_out_twice() {
    for plus in [false, true] {
        let found = with(|_| {}, stale_listing(1, plus), async |client, _| listed(client, plus).await);
        assert_eq!(found, Ok((0..10).map(|n| (n, plus)).collect()));
        let found = with(|_| {}, stale_listing(2, plus), async |client, _| listed(client, plus).await);
        assert_eq!(found, Err(NfsError::V3(Nfsstat3::BAD_COOKIE)));
    }
}

#[test]
fn without_readdirplus_there_is_readdir() {
    with(
        |_| {},
        stale_listing(0, false),
        async |client, counters| {
            for _ in 0..2 {
                assert_eq!(listed(client, true).await, Ok((0..10).map(|n| (n, false)).collect()));
            }
            // It is tried once.
            assert_eq!(counters.snapshot().op(ops::v3::READDIRPLUS).ops, 1);
        },
    );
}

#[test]
fn a_listing_without_progress_is_nonsense() {
    let script = |call: &Call<'_>| {
        let entries = Chain::Items(&[][..]);
        let page = ReaddirOk { dir_attributes: None, cookieverf: [0; 8], entries, eof: false };
        if call.is(Proc3::READDIR) { results(&ReaddirRes::Ok(page)) } else { None }
    };
    let found = with(|_| {}, script, async |client, _| listed(client, false).await);
    assert!(matches!(found, Err(NfsError::Nonsense(_))), "{found:?}");
}

fn new_file() -> Option<Reply> {
    let handle = handle_of(1);
    let obj = Some(handle[..].into());
    results(&CreateRes::Ok(CreateOk { obj, obj_attributes: None, dir_wcc: WccData::NONE }))
}

#[test]
fn exclusive_create_sets_mode_and_times_and_has_one_verifier_each() {
    let seen = Arc::new(Mutex::new((Vec::new(), Vec::new())));
    let notes = seen.clone();
    let mut jukebox = true;
    let script = move |call: &Call<'_>| {
        let mut d = Decoder::new(call.args);
        let mut notes = notes.lock().unwrap();
        if call.is(Proc3::CREATE) {
            let CreateHow::Exclusive(verifier) = d.get::<CreateArgs<'_>>().unwrap().how else { panic!() };
            notes.0.push(verifier);
            if std::mem::take(&mut jukebox) {
                return results(&CreateRes::Err(Nfsstat3::JUKEBOX, WccData::NONE));
            }
            return new_file();
        }
        if call.is(Proc3::SETATTR) {
            let args: SetattrArgs<'_> = d.get().unwrap();
            notes.1.push((args.object.0.to_vec(), args.new_attributes));
            return results(&SetattrRes::Ok(SetattrOk { obj_wcc: WccData::NONE }));
        }
        None
    };
    with(
        |_| {},
        script,
        async |client, _| {
            let create = Create::Exclusive;
            let how = OpenHow { read: true, write: true, create, truncate: false, mode: 0o604 };
            for name in [b"a", b"b"] {
                client.open(&client.root(), name, &how).await.unwrap();
            }
        },
    );
    let seen = seen.lock().unwrap();
    let [first, again, second] = seen.0[..] else { panic!("{seen:?}") };
    assert!(first == again && second != first);
    for (object, set) in &seen.1 {
        use benchmaster_nfs_proto::v3::SetTime::SetToServerTime;
        assert_eq!(object[..], handle_of(1));
        assert_eq!((set.mode, set.size), (Some(0o604), None));
        assert_eq!((set.atime, set.mtime), (SetToServerTime, SetToServerTime));
    }
    assert_eq!(seen.1.len(), 2);
}

#[test]
fn a_server_without_exclusive_create_gets_guarded_ones() {
    let script = move |call: &Call<'_>| {
        if !call.is(Proc3::CREATE) {
            return None;
        }
        match Decoder::new(call.args).get::<CreateArgs<'_>>().unwrap().how {
            CreateHow::Exclusive(_) => results(&CreateRes::Err(Nfsstat3::NOTSUPP, WccData::NONE)),
            CreateHow::Guarded(set) => {
                assert_eq!(set.mode, Some(0o600));
                new_file()
            }
            CreateHow::Unchecked(_) => panic!(),
        }
    };
    with(
        |_| {},
        script,
        async |client, counters| {
            let create = Create::Exclusive;
            let how = OpenHow { read: true, write: true, create, truncate: false, mode: 0o600 };
            for name in [b"a", b"b"] {
                client.open(&client.root(), name, &how).await.unwrap();
            }
            assert_eq!(counters.snapshot().op(ops::v3::CREATE).ops, 3);
        },
    );
}

/// What a repeated request finds.
#[derive(Debug, Clone, Copy)]
struct World {
    /// When the object found changed last; the directory did at 1000.
    changed: u32,
    /// Whether the connection breaks instead of the first reply, or that is only lost.
    breaks: bool,
    /// Whether a file was written before, and whether the server is another instance afterwards.
    written: bool,
    restarts: bool,
    /// Kind and number of what is at the name; number 1 is what the operation is about.
    object: (Ftype3, u8),
}

/// A server that carries each change out, does not answer, and then knows nothing of it.
fn forgetful(world: World) -> impl FnMut(&Call<'_>) -> Option<Reply> {
    let mut seen = None;
    move |call: &Call<'_>| {
        let mut d = Decoder::new(call.args);
        let changed = (ops_of_change().contains(&call.procedure)) && call.program == 100_003;
        if changed && seen != Some(call.xid) {
            seen = Some(call.xid);
            return Some(if world.breaks { Reply::Close } else { Reply::Silence });
        }
        let (ftype, number) = world.object;
        match call {
            call if !changed && call.is(Proc3::LOOKUP) => {
                let args: LookupArgs<'_> = d.get().unwrap();
                match args.what.name.0 {
                    b"file" => file_found(Ftype3::Reg, 5, 0),
                    b"new" => file_found(ftype, number, world.changed),
                    b"old" => results(&LookupRes::Err(Nfsstat3::NOENT, None)),
                    _ => panic!("{args:?}"),
                }
            }
            call if call.is(Proc3::GETATTR) => {
                let object: benchmaster_nfs_proto::v3::Fh3<'_> = d.get().unwrap();
                let obj_attributes = if object.0 == ROOT {
                    attributes(Ftype3::Dir, 99, 1000)
                } else {
                    attributes(Ftype3::Reg, object.0[0].into(), 500)
                };
                results(&GetattrRes::Ok(GetattrOk { obj_attributes }))
            }
            call if call.is(Proc3::WRITE) => {
                let (count, committed, verf) = (1, StableHow::FileSync, [1; 8]);
                results(&WriteRes::Ok(WriteOk { file_wcc: WccData::NONE, count, committed, verf }))
            }
            call if call.is(Proc3::COMMIT) => {
                let verf = if world.restarts { [2; 8] } else { [1; 8] };
                results(&CommitRes::Ok(CommitOk { file_wcc: WccData::NONE, verf }))
            }
            call if call.is(Proc3::READLINK) => {
                let data = b"target"[..].into();
                results(&ReadlinkRes::Ok(ReadlinkOk { symlink_attributes: None, data }))
            }
            call if call.is(Proc3::MKDIR) || call.is(Proc3::SYMLINK) => {
                results(&CreateRes::Err(Nfsstat3::EXIST, WccData::NONE))
            }
            call if call.is(Proc3::LINK) => results(&LinkRes::Err(
                Nfsstat3::EXIST,
                LinkWcc { file_attributes: None, linkdir_wcc: WccData::NONE },
            )),
            call if call.is(Proc3::RENAME) => results(&RenameRes::Err(
                Nfsstat3::NOENT,
                RenameWcc { fromdir_wcc: WccData::NONE, todir_wcc: WccData::NONE },
            )),
            call if call.is(Proc3::REMOVE) || call.is(Proc3::RMDIR) => {
                results(&RemoveRes::Err(Nfsstat3::NOENT, WccData::NONE))
            }
            _ => None,
        }
    }
}

fn ops_of_change() -> [u32; 6] {
    [Proc3::MKDIR, Proc3::SYMLINK, Proc3::LINK, Proc3::RENAME, Proc3::REMOVE, Proc3::RMDIR].map(|p| p.0)
}

/// Operations whose repetition may be recognised, and how often it was.
fn recognised(world: World) -> [(NfsResult<()>, u64); 4] {
    let change = |connect: &mut Connect| {
        if !world.breaks {
            connect.timeout = Duration::from_millis(50);
            connect.retransmissions = 100;
        }
    };
    [0, 1, 2, 3].map(|operation| {
        with(change, forgetful(world), async |client, counters| {
            let root = client.root();
            if world.written {
                let file = opened(client).await;
                client.write(&file, b"1", 0, Stability::File).await.unwrap();
            }
            let file = benchmaster_nfs_client::types::Handle::new(&handle_of(1)).unwrap();
            let result = match operation {
                0 => client.mkdir(&root, b"new", 0o755).await.map(|_| ()),
                1 => client.symlink(&root, b"new", b"target").await,
                2 => client.link(&file, &root, b"new").await,
                _ => client.rename((&root, b"old"), (&root, b"new")).await,
            };
            (result, counters.snapshot().event(Event::ReplayAccepted))
        })
    })
}

#[test]
fn what_a_restarted_server_did_before_is_recognised() {
    let exists = (Err(NfsError::V3(Nfsstat3::EXIST)), 0);
    let absent = (Err(NfsError::V3(Nfsstat3::NOENT)), 0);
    let done = (Ok(()), 1);
    let world = |changed, object| World { changed, breaks: true, written: true, restarts: true, object };
    let (directory, symlink, file) = ((Ftype3::Dir, 1), (Ftype3::Lnk, 1), (Ftype3::Reg, 1));
    // Made just now; a file at a new name may be of any kind.
    assert_eq!(recognised(world(1000, directory)), [done, exists, done, done]);
    assert_eq!(recognised(world(1000, symlink)), [exists, done, done, done]);
    assert_eq!(recognised(world(1000, file)), [exists, exists, done, done]);
    // Another file.
    assert_eq!(recognised(world(1000, (Ftype3::Reg, 2))), [exists, exists, exists, done]);
    // Made long before the directory changed last.
    for object in [directory, symlink, file] {
        assert_eq!(recognised(world(100, object)), [exists, exists, exists, absent]);
    }
    // A reply was lost, but the server did not restart: it remembers what it answered.
    let world = world(1000, directory);
    assert_eq!(recognised(World { breaks: false, ..world }), [exists, exists, exists, absent]);
    // The connection broke, but the server did not restart, or nobody can tell.
    assert_eq!(recognised(World { restarts: false, ..world }), [exists, exists, exists, absent]);
    assert_eq!(recognised(World { written: false, ..world }), [exists, exists, exists, absent]);
}

#[test]
fn after_removing_there_is_nothing_to_recognise() {
    let noent = NfsError::V3(Nfsstat3::NOENT);
    for (written, restarts, unknown) in [(true, true, true), (true, false, false), (false, true, false)] {
        let world = World { changed: 1000, breaks: true, written, restarts, object: (Ftype3::Reg, 1) };
        for directory in [false, true] {
            let test = async |client: &Client, counters: &Counters| {
                if written {
                    let file = opened(client).await;
                    client.write(&file, b"1", 0, Stability::File).await.unwrap();
                }
                let removed = if directory {
                    client.rmdir(&client.root(), b"gone").await
                } else {
                    client.remove(&client.root(), b"gone").await
                };
                assert_eq!(counters.snapshot().event(Event::ReplayAccepted), 0);
                assert_eq!(counters.snapshot().event(Event::Resent), 1);
                removed.unwrap_err()
            };
            let error = with(|_| {}, forgetful(world), test);
            // Whether it was removed by this is unknown if the server restarted.
            assert!(
                if unknown { matches!(error, NfsError::StateLost(_)) } else { error == noent },
                "{error:?}"
            );
        }
    }
}

#[test]
fn reads_and_writes_that_make_no_sense_are_errors() {
    let answers: [(u32, bool, &'static [u8]); 5] = [
        // Count and data differ; more than was asked for; nothing before the end; a short one; the end.
        (3, false, b"data"),
        (5, false, b"12345"),
        (0, false, b""),
        (2, false, b"ab"),
        (0, true, b""),
    ];
    let mut reads = answers.into_iter();
    let mut writes = [(0, StableHow::FileSync), (5, StableHow::FileSync), (4, StableHow::Unstable)]
        .into_iter()
        .chain([(2, StableHow::FileSync)]);
    let script = move |call: &Call<'_>| {
        if call.is(Proc3::LOOKUP) {
            return file_found(Ftype3::Reg, 1, 0);
        }
        if call.is(Proc3::READ) {
            let (count, eof, data) = reads.next()?;
            let data = Bulk::Bytes(data);
            return results(&ReadRes::Ok(ReadOk { file_attributes: None, count, eof, data }));
        }
        if call.is(Proc3::WRITE) {
            let (count, committed) = writes.next()?;
            let file_wcc = WccData::NONE;
            return results(&WriteRes::Ok(WriteOk { file_wcc, count, committed, verf: [0; 8] }));
        }
        None
    };
    with(
        |_| {},
        script,
        async |client, _| {
            let file = opened(client).await;
            let mut buffer = [0; 4];
            for _ in 0..3 {
                client.read(&file, &mut buffer, 0).await.unwrap_err();
            }
            let read = client.read(&file, &mut buffer, 0).await.unwrap();
            assert_eq!((read.len, read.eof, &buffer[..2]), (2, false, &b"ab"[..]));
            let read = client.read(&file, &mut buffer, 0).await.unwrap();
            assert_eq!((read.len, read.eof), (0, true));
            for _ in 0..3 {
                let written = client.write(&file, b"data", 0, Stability::File).await;
                assert!(matches!(written, Err(NfsError::Nonsense(_))), "{written:?}");
            }
            assert_eq!(client.write(&file, b"data", 0, Stability::File).await.unwrap().len, 2);
        },
    );
}
