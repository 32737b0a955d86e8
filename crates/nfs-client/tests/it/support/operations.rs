//! Every operation of the trait against an empty exported directory, whatever version and server.

use std::collections::BTreeMap;

use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::protocol::{NfsResult, Protocol};
use benchmaster_nfs_client::types::{
    AccessBits, Create, FileType, LockKind, OpenHow, Range, SetAttributes, SetTime, Stability, Time,
};

/// What versions and servers do differently.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Can {
    /// Times of a nanosecond; else of a microsecond.
    pub(crate) nanoseconds: bool,
    /// SETATTR to the server's time (nfs-ganesha's back end in memory stores the number that asks for it instead).
    pub(crate) server_time: bool,
    /// Data are kept and have space (nfs-ganesha's back end in memory reads letters for them).
    pub(crate) data: bool,
    /// UNSTABLE writes; else all are stable.
    pub(crate) unstable: bool,
    /// Hard links.
    pub(crate) links: bool,
    /// A lock manager.
    pub(crate) locks: bool,
    /// Whether a listing of more than one page may be made.
    pub(crate) many: u32,
}

impl Can {
    pub(crate) const ALL: Self = Self {
        nanoseconds: true,
        server_time: true,
        data: true,
        unstable: true,
        links: true,
        locks: true,
        many: 1000,
    };
}

pub(crate) fn how(create: Create) -> OpenHow {
    OpenHow { read: true, write: true, create, truncate: false, mode: 0o640 }
}

pub(crate) fn pattern(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| (i.wrapping_mul(0x9e37_79b9).wrapping_add(seed) >> 7) as u8).collect()
}

fn absent<T>(result: NfsResult<T>) {
    assert!(result.as_ref().is_err_and(NfsError::is_absent), "{:?}", result.err());
}

fn present<T>(result: NfsResult<T>) {
    assert!(result.as_ref().is_err_and(NfsError::is_present), "{:?}", result.err());
}

/// All of it, and removes everything again.
pub(crate) async fn every_operation<P: Protocol>(client: &P, can: Can) {
    files(client, can).await;
    data(client, can).await;
    names(client, can).await;
    listing(client, can).await;
    if can.locks {
        locks(client).await;
    }
    let space = client.space().await.unwrap();
    assert!(space.total >= space.available && (space.total > 0 || !can.data), "{space:?}");
    assert_eq!(list(client, false).await, BTreeMap::new());
}

/// OPEN in its ways, GETATTR, SETATTR, ACCESS.
async fn files<P: Protocol>(client: &P, can: Can) {
    let root = client.root();
    let attributes = client.getattr(&root).await.unwrap();
    assert_eq!(attributes.kind, FileType::Directory);
    absent(client.lookup(&root, b"file").await);
    absent(client.open(&root, b"file", &how(Create::No)).await);

    let made = client.open(&root, b"file", &how(Create::IfAbsent)).await.unwrap();
    let handle = P::handle(&made.file);
    let attributes = client.getattr(&handle).await.unwrap();
    assert_eq!((attributes.kind, attributes.mode, attributes.size), (FileType::Regular, 0o640, 0));
    assert_eq!(attributes.links, 1);
    assert_eq!(client.lookup(&root, b"file").await.unwrap().0, handle);
    client.write(&made.file, b"some text", 0, Stability::File).await.unwrap();
    client.close(made.file).await.unwrap();

    // It stays as it is, unless it is to be truncated.
    let again = client.open(&root, b"file", &how(Create::IfAbsent)).await.unwrap();
    assert_eq!(P::handle(&again.file), handle);
    client.close(again.file).await.unwrap();
    present(client.open(&root, b"file", &how(Create::Exclusive)).await);
    let opened = client.open(&root, b"file", &how(Create::No)).await.unwrap();
    assert_eq!(client.getattr(&handle).await.unwrap().size, 9);
    client.close(opened.file).await.unwrap();
    let truncating = OpenHow { truncate: true, ..how(Create::No) };
    let opened = client.open(&root, b"file", &truncating).await.unwrap();
    assert_eq!(client.getattr(&handle).await.unwrap().size, 0);

    let nanos = if can.nanoseconds { 123_456_789 } else { 123_456_000 };
    let time = |seconds| SetTime::To(Time { seconds, nanos });
    let set = SetAttributes {
        mode: Some(0o604),
        size: Some(5),
        accessed: Some(time(1_000_000)),
        modified: Some(time(2_000_000)),
        ..SetAttributes::default()
    };
    client.setattr(&handle, Some(&opened.file), &set).await.unwrap();
    let attributes = client.getattr(&handle).await.unwrap();
    assert_eq!((attributes.mode, attributes.size), (0o604, 5));
    assert_eq!(attributes.accessed, Time { seconds: 1_000_000, nanos });
    assert_eq!(attributes.modified, Time { seconds: 2_000_000, nanos });
    let set = SetAttributes { modified: Some(SetTime::Now), ..SetAttributes::default() };
    client.setattr(&handle, None, &set).await.unwrap();
    let later = client.getattr(&handle).await.unwrap();
    assert!(later.modified.seconds > 1_600_000_000 || !can.server_time, "{later:?}");
    assert!(later.change != attributes.change);
    client.close(opened.file).await.unwrap();

    let wanted = AccessBits(AccessBits::READ | AccessBits::MODIFY);
    assert_eq!(client.access(&handle, wanted).await.unwrap().0, wanted);
    client.remove(&root, b"file").await.unwrap();
    absent(client.lookup(&root, b"file").await);
    absent(client.remove(&root, b"file").await);

    let made = client.open(&root, b"new", &how(Create::Exclusive)).await.unwrap();
    let attributes = client.getattr(&P::handle(&made.file)).await.unwrap();
    assert_eq!((attributes.mode, attributes.size, made.created), (0o640, 0, true));
    assert!(attributes.modified.seconds > 1_600_000_000 || !can.server_time, "{attributes:?}");
    client.close(made.file).await.unwrap();
    client.remove(&root, b"new").await.unwrap();
}

/// READ, WRITE and COMMIT, of small and of the largest sizes.
async fn data<P: Protocol>(client: &P, can: Can) {
    let root = client.root();
    let file = client.open(&root, b"data", &how(Create::IfAbsent)).await.unwrap().file;
    let limits = client.limits();
    assert!(limits.max_read > 0 && limits.max_write > 0, "{limits:?}");
    let mut expected = Vec::new();
    let largest = limits.max_write.min(limits.max_read) as usize;
    let sizes = [1, 2, 3, 4, 4095, 8192, 16_383, 16_384, 65_537, largest - 1, largest];
    for (seed, size) in sizes.into_iter().filter(|size| *size <= largest).enumerate() {
        let (bytes, offset) = (pattern(size, seed as u64), expected.len());
        let stability = [Stability::Unstable, Stability::Data, Stability::File][seed % 3];
        let mut done = 0;
        while done < size {
            let offset = (offset + done) as u64;
            let written = client.write(&file, &bytes[done..], offset, stability).await.unwrap();
            assert!(written.len > 0 && written.stability >= stability, "{written:?}");
            assert!(can.unstable || written.stability == Stability::File);
            done += written.len;
        }
        expected.extend_from_slice(&bytes);
    }
    let verifier = client.commit(&file, Range { offset: 0, length: 0 }).await.unwrap();
    assert_eq!(client.commit(&file, Range { offset: 0, length: 10 }).await.unwrap(), verifier);
    assert_eq!(client.getattr(&P::handle(&file)).await.unwrap().size, expected.len() as u64);

    let mut offset = 0;
    for size in sizes.into_iter().filter(|size| *size <= largest) {
        // The rest of the buffer is left alone.
        let mut buffer = vec![0xa5; size + 8];
        let mut done = 0;
        while done < size {
            let read = client.read(&file, &mut buffer[done..size], (offset + done) as u64).await.unwrap();
            assert!(read.len > 0, "{read:?}");
            done += read.len;
            assert!(!read.eof || offset + done == expected.len(), "{read:?}");
        }
        assert!(!can.data || buffer[..size] == expected[offset..offset + size], "{size} bytes");
        assert_eq!(buffer[size..], [0xa5; 8]);
        offset += size;
    }
    let mut buffer = [1; 16];
    let read = client.read(&file, &mut buffer, expected.len() as u64 - 3).await.unwrap();
    assert_eq!((read.len, read.eof), (3, true));
    assert!(!can.data || buffer[..3] == expected[expected.len() - 3..]);
    let read = client.read(&file, &mut buffer, expected.len() as u64 + 10).await.unwrap();
    assert_eq!((read.len, read.eof), (0, true));
    client.close(file).await.unwrap();
    client.remove(&root, b"data").await.unwrap();
}

/// MKDIR, SYMLINK, READLINK, LINK, RENAME, REMOVE, RMDIR.
async fn names<P: Protocol>(client: &P, can: Can) {
    let root = client.root();
    let made = client.mkdir(&root, b"dir", 0o750).await.unwrap();
    let (dir, _) = client.lookup(&root, b"dir").await.unwrap();
    assert!(made.is_none_or(|made| made == dir));
    let attributes = client.getattr(&dir).await.unwrap();
    assert_eq!((attributes.kind, attributes.mode), (FileType::Directory, 0o750));
    present(client.mkdir(&root, b"dir", 0o750).await);

    client.symlink(&dir, b"symlink", b"some/where else").await.unwrap();
    present(client.symlink(&dir, b"symlink", b"other").await);
    let (symlink, _) = client.lookup(&dir, b"symlink").await.unwrap();
    assert_eq!(client.readlink(&symlink).await.unwrap(), b"some/where else");
    assert_eq!(client.getattr(&symlink).await.unwrap().kind, FileType::Symlink);

    let file = client.open(&dir, b"a", &how(Create::Exclusive)).await.unwrap().file;
    let handle = P::handle(&file);
    if can.links {
        client.link(&handle, &root, b"b").await.unwrap();
        present(client.link(&handle, &root, b"b").await);
        assert_eq!(client.getattr(&handle).await.unwrap().links, 2);
        let (found, _) = client.lookup(&root, b"b").await.unwrap();
        let fileid = client.getattr(&found).await.unwrap().fileid;
        assert_eq!(fileid, client.getattr(&handle).await.unwrap().fileid);
        client.remove(&root, b"b").await.unwrap();
    }
    client.close(file).await.unwrap();
    client.rename((&dir, b"a"), (&root, b"c")).await.unwrap();
    absent(client.lookup(&dir, b"a").await);
    client.lookup(&root, b"c").await.unwrap();
    absent(client.rename((&dir, b"a"), (&root, b"c")).await);
    let refused = client.rmdir(&root, b"dir").await.unwrap_err().errno();
    assert!([libc::ENOTEMPTY, libc::EEXIST].contains(&refused), "{refused}");
    client.remove(&dir, b"symlink").await.unwrap();
    client.rmdir(&root, b"dir").await.unwrap();
    absent(client.rmdir(&root, b"dir").await);
    client.remove(&root, b"c").await.unwrap();
}

/// Names and numbers of the exported directory's entries.
pub(crate) async fn list<P: Protocol>(client: &P, plus: bool) -> BTreeMap<Vec<u8>, u64> {
    let mut found = BTreeMap::new();
    let mut visit = |entry: &benchmaster_nfs_client::types::Entry<'_>| {
        let twice = found.insert(entry.name.to_vec(), entry.fileid);
        assert_eq!(twice, None, "{:?} came twice", String::from_utf8_lossy(entry.name));
        if let Some(attributes) = entry.attributes {
            assert_eq!(attributes.fileid, entry.fileid);
        }
    };
    client.readdir(&client.root(), plus, &mut visit).await.unwrap();
    found
}

/// READDIR and READDIRPLUS over several pages.
async fn listing<P: Protocol>(client: &P, can: Can) {
    let root = client.root();
    assert_eq!(list(client, false).await, BTreeMap::new());
    let name = |number: u32| format!("a name of some length, number {number}").into_bytes();
    for number in 0..can.many {
        let file = client.open(&root, &name(number), &how(Create::IfAbsent)).await.unwrap().file;
        client.close(file).await.unwrap();
    }
    for plus in [false, true] {
        let found = list(client, plus).await;
        assert_eq!(found.len(), can.many as usize);
        assert!((0..can.many).all(|number| found.contains_key(&name(number))));
    }
    for number in 0..can.many {
        client.remove(&root, &name(number)).await.unwrap();
    }
}

/// LOCK and LOCKU of two owners of one client.
async fn locks<P: Protocol>(client: &P) {
    let root = client.root();
    let file = client.open(&root, b"locked", &how(Create::IfAbsent)).await.unwrap().file;
    let range = |offset, length| Range { offset, length };
    client.lock(&file, 1, LockKind::Write, range(0, 100), false).await.unwrap();
    // The same again, and a part of it with another kind.
    client.lock(&file, 1, LockKind::Write, range(0, 100), false).await.unwrap();
    client.lock(&file, 1, LockKind::Read, range(0, 50), false).await.unwrap();
    client.lock(&file, 2, LockKind::Read, range(0, 50), false).await.unwrap();
    let refused = client.lock(&file, 2, LockKind::Write, range(0, 10), false).await.unwrap_err();
    assert_eq!(refused.errno(), libc::EAGAIN, "{refused}");
    let refused = client.lock(&file, 2, LockKind::Read, range(50, 1), false).await.unwrap_err();
    assert_eq!(refused.errno(), libc::EAGAIN, "{refused}");
    client.lock(&file, 2, LockKind::Write, range(100, 0), false).await.unwrap();
    client.unlock(&file, 1, range(0, 0)).await.unwrap();
    client.lock(&file, 2, LockKind::Write, range(0, 0), false).await.unwrap();
    client.unlock(&file, 2, range(0, 0)).await.unwrap();
    client.unlock(&file, 2, range(0, 0)).await.unwrap();
    client.close(file).await.unwrap();
    client.remove(&root, b"locked").await.unwrap();
}
