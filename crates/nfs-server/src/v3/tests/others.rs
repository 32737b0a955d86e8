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
    };
    let mut tables = client.server.state.write();
    let tables = &mut *tables;
    let mut effects = Effects::new();
    tables.files.redelegate(&tables.clients, &wish, write, client.now.instant, &mut effects);
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
    server.state.write().files.purge_client(ClientId(holder.clientid), &mut effects);
    assert!(effects.iter().any(|effect| matches!(effect, Effect::Release(_))));
    assert_eq!(caller.write(&file, 0, b"x").status(), Nfsstat3::OK);

    // Only its holder knows the size and the data of a file that is delegated for writing.
    delegate(&holder, &file, true);
    assert_eq!(caller.read(&file, 0, 1), Err(Nfsstat3::JUKEBOX));
    assert_eq!(caller.getattr(&file), Err(Nfsstat3::JUKEBOX));
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
        let files = &mut server.state.write().files;
        let owner = files.open_owner(ClientId(holder.clientid), b"owner");
        files.open(false, owner, id, Share { access: READ, deny: WRITE }, 0);
    }
    assert!(caller.read(&file, 0, 1).is_ok());
    assert_eq!(caller.write(&file, 0, b"x").status(), Nfsstat3::ACCES);
    let cut = Sattr3 { size: Some(0), ..Sattr3::NONE };
    assert_eq!(caller.setattr(&file, cut, None).status(), Nfsstat3::ACCES);
    let chmod = Sattr3 { mode: Some(0o600), ..Sattr3::NONE };
    assert_eq!(caller.setattr(&file, chmod, None).status(), Nfsstat3::OK);
}
