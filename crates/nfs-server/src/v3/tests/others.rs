//! What clients of NFS version 4 hold on a file.

use benchmaster_nfs_proto::v2;
use benchmaster_nfs_proto::xdr::Encoder;

use super::*;
use crate::call::Refusal;
use crate::state::delegated::Seen;
use crate::state::delegation::{Want, Wish};
use crate::state::open::Share;
use crate::state::{ClientId, Effect, Effects};

/// A read or write delegation of a version 4 client on the file of a handle.
fn delegate(client: &testing::Client<'_>, file: &[u8], write: bool) {
    let (_, file) = crate::handle::decode(file).unwrap();
    let wish = Wish {
        client: ClientId(client.clientid),
        v40: false,
        file,
        want: Want::Any,
        uid: 0,
        access: 1,
        may_write: true,
        times: false,
        seen: Seen::from(&client.server.exports.file(file).and_then(|(fs, node)| fs.attr(node)).unwrap()),
        notifications: Default::default(),
    };
    let mut part = client.server.state.write(file);
    let (clients, files) = part.split();
    let mut effects = Effects::new();
    files.redelegate(clients, &wish, write, client.now.instant, &mut effects);
}

#[test]
fn directories_of_others_are_recalled_before_names_change() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let holder = testing::Client::with_session(&server, 1, 9);
    delegate(&holder, &dir, false);
    assert_eq!(caller.create(&dir, "b", CreateHow::Unchecked(Sattr3::NONE)), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.remove(Proc3::REMOVE, &dir, "a").status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.rename((&dir, "a"), (&dir, "c")).status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.link(&file, (&dir, "c")).status(), Nfsstat3::JUKEBOX);
    // What is there is opened, not made.
    assert!(caller.create(&dir, "a", CreateHow::Unchecked(Sattr3::NONE)).is_ok());
    assert!(caller.getattr(&dir).is_ok());
    server.state.all().files().purge_client(ClientId(holder.clientid), &mut Effects::new());
    assert_eq!(caller.rename((&dir, "a"), (&dir, "c")).status(), Nfsstat3::OK);
}

#[test]
fn delegations_of_others_are_recalled_first() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    caller.file(&dir, "b");
    let holder = testing::Client::with_session(&server, 1, 9);
    delegate(&holder, &file, false);

    // Reading is no conflict; any change is.
    assert!(caller.read(&file, 0, 1).is_ok() && caller.getattr(&file).is_ok());
    let chmod = Sattr3 { mode: Some(0o600), ..Sattr3::NONE };
    let cut = Sattr3 { size: Some(0), ..Sattr3::NONE };
    assert_eq!(caller.write(&file, 0, b"x").status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.setattr(&file, chmod, None).status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.create(&dir, "a", CreateHow::Unchecked(cut)), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.remove(Proc3::REMOVE, &dir, "a").status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.rename((&dir, "a"), (&dir, "c")).status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.rename((&dir, "b"), (&dir, "a")).status(), Nfsstat3::JUKEBOX);
    assert_eq!(caller.link(&file, (&dir, "c")).status(), Nfsstat3::JUKEBOX);
    // Version 2 has no such status: the client is left to ask again.
    let mut e = Encoder::new();
    let attributes = v2::Sattr { mode: 0o600, ..v2::Sattr::NONE };
    e.put(&v2::SetattrArgs { file: file[..].try_into().unwrap(), attributes });
    let setattr = (v2::VERSION, v2::Proc2::SETATTR.0);
    assert_eq!(caller.refused((PROGRAM, crate::v2::serve), setattr, e.buffer()), Refusal::NoReply);

    let mut effects = Effects::new();
    server.state.all().files().purge_client(ClientId(holder.clientid), &mut effects);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Release(_))));
    assert_eq!(caller.write(&file, 0, b"x").status(), Nfsstat3::OK);

    // Only its holder knows the size and the data of a file that is delegated for writing.
    delegate(&holder, &file, true);
    assert_eq!(caller.read(&file, 0, 1), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.getattr(&file), Err(Nfsstat3::JUKEBOX));
}

/// Attributes that come along with other results are left out where the holder of a write delegation may know better.
#[test]
fn attributes_of_a_file_that_another_writes_are_not_guessed() {
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let (file, free) = (caller.file(&dir, "a"), caller.file(&dir, "b"));
    let holder = testing::Client::with_session(&server, 1, 9);
    delegate(&holder, &file, true);
    for (name, object, known) in [("a", &file, false), ("b", &free, true)] {
        let fsroot = FsArgs { fsroot: object[..].into() };
        let object = || object[..].into();
        let commit = CommitArgs { file: object(), offset: 0, count: 0 };
        let told = [
            decode::<LookupRes<'_>>(&caller.v3(Proc3::LOOKUP, &LookupArgs { what: at(&dir, name) }))
                .ok()
                .unwrap()
                .obj_attributes,
            decode::<AccessRes>(&caller.v3(Proc3::ACCESS, &AccessArgs { object: object(), access: 1 }))
                .ok()
                .unwrap()
                .obj_attributes,
            decode::<FsstatRes>(&caller.v3(Proc3::FSSTAT, &fsroot)).ok().unwrap().obj_attributes,
            decode::<FsinfoRes>(&caller.v3(Proc3::FSINFO, &fsroot)).ok().unwrap().obj_attributes,
            decode::<PathconfRes>(&caller.v3(Proc3::PATHCONF, &PathconfArgs { object: object() }))
                .ok()
                .unwrap()
                .obj_attributes,
            decode::<CommitRes>(&caller.v3(Proc3::COMMIT, &commit)).ok().unwrap().file_wcc.after,
        ];
        assert_eq!(told.map(|attributes| attributes.is_some()), [known; 6], "{name}");
    }
    let all = ReaddirplusArgs {
        dir: dir[..].into(),
        cookie: 0,
        cookieverf: [0; 8],
        dircount: 4096,
        maxcount: 4096,
    };
    let results = caller.v3(Proc3::READDIRPLUS, &all);
    let page = decode::<ReaddirplusRes<'_>>(&results).ok().unwrap();
    let seen: Vec<_> = page
        .entries
        .iter()
        .filter(|entry| !crate::stateless::is_dot(entry.name.0))
        .map(|entry| (entry.name.0.to_vec(), entry.name_attributes.is_some(), entry.name_handle.is_some()))
        .collect();
    assert!(page.eof && seen.len() == 2);
    assert!(seen.contains(&(b"a".to_vec(), false, true)) && seen.contains(&(b"b".to_vec(), true, true)));
    // Version 2 has no result without them.
    let mut e = Encoder::new();
    e.put(&v2::DirOpArgs { dir: dir[..].try_into().unwrap(), name: "a".into() });
    let lookup = (v2::VERSION, v2::Proc2::LOOKUP.0);
    assert_eq!(caller.refused((PROGRAM, crate::v2::serve), lookup, e.buffer()), Refusal::NoReply);
}

#[test]
fn deny_modes_of_others_are_kept() {
    const READ: u8 = 1;
    const WRITE: u8 = 2;
    let server = server();
    let mut caller = Caller::new(&server, 0);
    let dir = root(&server, "/export");
    let file = caller.file(&dir, "a");
    let holder = testing::Client::with_session(&server, 1, 9);
    let (_, id) = crate::handle::decode(&file).unwrap();
    {
        let mut part = server.state.write(id);
        let files = part.files();
        let owner = files.open_owner(ClientId(holder.clientid), b"owner", None);
        files.open(false, owner, id, Share { access: READ, deny: WRITE }, 0);
    }
    assert!(caller.read(&file, 0, 1).is_ok());
    assert_eq!(caller.write(&file, 0, b"x").status(), Nfsstat3::ACCES);
    let cut = Sattr3 { size: Some(0), ..Sattr3::NONE };
    assert_eq!(caller.setattr(&file, cut, None).status(), Nfsstat3::ACCES);
    let chmod = Sattr3 { mode: Some(0o600), ..Sattr3::NONE };
    assert_eq!(caller.setattr(&file, chmod, None).status(), Nfsstat3::OK);
}
