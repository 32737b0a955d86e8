use std::future::Future;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use super::*;

fn done<T>(future: impl Future<Output = T>) -> T {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(value) => value,
        Poll::Pending => panic!("system calls block"),
    }
}

fn path(text: &str) -> PathBuffer {
    let mut path = PathBuffer::new();
    path.push(text.as_bytes());
    path
}

fn by_name(engine: &PosixEngine<'_>, kind: OperationKind, path: &PathBuffer) -> Result<(), OperationError> {
    two_names(engine, kind, path, path)
}

fn two_names(
    engine: &PosixEngine<'_>,
    kind: OperationKind,
    path: &PathBuffer,
    other: &PathBuffer,
) -> Result<(), OperationError> {
    done(engine.by_name(kind, &Names::new(path, other)))
}

/// With a content and a mode.
fn with(
    engine: &PosixEngine<'_>,
    kind: OperationKind,
    path: &PathBuffer,
    (content, mode): (&[u8], u32),
) -> Result<(), OperationError> {
    done(engine.by_name(kind, &Names { content, mode, ..Names::new(path, path) }))
}

const XDEV: OperationError = OperationError::Os(libc::EXDEV);

/// A tree with links out of it, in all their forms, beside files that must stay as they are.
fn tree() -> (tempfile::TempDir, PathBuf, OwnedFd) {
    let directory = tempfile::tempdir().unwrap();
    let (outside, root) = (directory.path(), directory.path().join("root"));
    std::fs::create_dir(&root).unwrap();
    std::fs::create_dir(outside.join("keep")).unwrap();
    std::fs::write(outside.join("real"), "precious").unwrap();
    std::fs::write(outside.join("keep/f1"), "precious").unwrap();
    std::fs::create_dir_all(root.join("d/e")).unwrap();
    std::fs::write(root.join("d/file"), "mine").unwrap();
    symlink(outside.join("real"), root.join("absolute")).unwrap();
    symlink("../real", root.join("up")).unwrap();
    symlink(outside.join("keep"), root.join("keep")).unwrap();
    symlink("..", root.join("d/e/in")).unwrap();
    symlink("file", root.join("d/link")).unwrap();
    symlink("/proc/self/cwd", root.join("magic")).unwrap();
    let handle = OwnedFd::from(std::fs::File::open(&root).unwrap());
    (directory, root, handle)
}

#[test]
fn no_call_leaves_the_tree_through_a_link() {
    let (outside, _, handle) = tree();
    let engine = PosixEngine::beneath(handle.as_fd());
    let write = OpenFlags { write: true, truncate: true, ..OpenFlags::default() };
    for link in ["absolute", "up", "magic/x"] {
        let link = path(link);
        assert_eq!(done(engine.open(&link, write, false)).map(drop), Err(XDEV));
        assert_eq!(done(engine.open(&link, write, true)).map(drop), Err(XDEV));
        assert_eq!(with(&engine, OperationKind::Chmod, &link, (b"", 0o777)), Err(XDEV));
        assert_eq!(by_name(&engine, OperationKind::Utimes, &link), Err(XDEV));
        assert_eq!(by_name(&engine, OperationKind::Access, &link), Err(XDEV));
        assert_eq!(two_names(&engine, OperationKind::Copy, &path("d/file"), &link), Err(XDEV));
    }
    let inside = path("keep/f1");
    let new = path("keep/new");
    assert_eq!(by_name(&engine, OperationKind::Unlink, &inside), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Stat, &inside), Err(XDEV));
    assert_eq!(two_names(&engine, OperationKind::Rename, &inside, &path("d/f1")), Err(XDEV));
    assert_eq!(two_names(&engine, OperationKind::Rename, &path("d/file"), &new), Err(XDEV));
    assert_eq!(two_names(&engine, OperationKind::Link, &inside, &path("d/f1")), Err(XDEV));
    assert_eq!(two_names(&engine, OperationKind::Link, &path("d/file"), &new), Err(XDEV));
    assert_eq!(with(&engine, OperationKind::Symlink, &new, (b"x", 0)), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Readlink, &new), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Mkdir, &new), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Rmdir, &new), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Readdir, &path("keep")), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::ReaddirStat, &path("keep")), Err(XDEV));
    assert_eq!(with(&engine, OperationKind::Setxattr, &inside, (b"x", 0)), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Getxattr, &inside), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Listxattr, &inside), Err(XDEV));
    assert_eq!(by_name(&engine, OperationKind::Removexattr, &inside), Err(XDEV));
    for dots in ["..", "d/../..", "../real"] {
        assert_eq!(by_name(&engine, OperationKind::Mkdir, &path(dots)), Err(XDEV), "{dots}");
    }
    let read = |path: &Path| std::fs::read_to_string(path).unwrap();
    assert_eq!(read(&outside.path().join("real")), "precious");
    assert_eq!(read(&outside.path().join("keep/f1")), "precious");
    assert_eq!(std::fs::read_dir(outside.path()).unwrap().count(), 3, "real, keep and root");
}

#[test]
fn what_stays_in_the_tree_is_done() {
    let (outside, root, handle) = tree();
    let engine = PosixEngine::beneath(handle.as_fd());
    let write = OpenFlags { write: true, truncate: true, ..OpenFlags::default() };
    assert!(done(engine.open(&path("d/e/in/link"), write, true)).is_ok(), "d/e/in is d, link is d/file");
    assert_eq!(std::fs::read(root.join("d/file")).unwrap(), b"");
    with(&engine, OperationKind::Chmod, &path("d/link"), (b"", 0o604)).unwrap();
    by_name(&engine, OperationKind::Utimes, &path("d/link")).unwrap();
    by_name(&engine, OperationKind::Access, &path("d/link")).unwrap();
    by_name(&engine, OperationKind::Stat, &path("absolute")).unwrap();
    by_name(&engine, OperationKind::Readlink, &path("absolute")).unwrap();
    by_name(&engine, OperationKind::Mkdir, &path("top")).unwrap();
    two_names(&engine, OperationKind::Rename, &path("d/link"), &path("top/link")).unwrap();
    two_names(&engine, OperationKind::Link, &path("d/file"), &path("top/hard")).unwrap();
    with(&engine, OperationKind::Symlink, &path("top/soft"), (b"hard", 0)).unwrap();
    two_names(&engine, OperationKind::Copy, &path("d/file"), &path("top/soft")).unwrap();
    assert_eq!(engine.list(&path("top"), |_, _| Ok(())), Ok(5));
    by_name(&engine, OperationKind::Unlink, &path("absolute")).unwrap();
    by_name(&engine, OperationKind::Rmdir, &path("none")).unwrap_err();
    assert!(outside.path().join("real").exists());
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(std::fs::metadata(root.join("d/file")).unwrap().mode() & 0o777, 0o604);
}
