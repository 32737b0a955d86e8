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
        assert_eq!(done(engine.open(&link, write)).map(drop), Err(XDEV));
        assert_eq!(done(engine.create(&link, write)).map(drop), Err(XDEV));
        assert_eq!(done(engine.chmod(&link, 0o777)), Err(XDEV));
        assert_eq!(done(engine.utimes(&link)), Err(XDEV));
        assert_eq!(done(engine.access(&link)), Err(XDEV));
        assert_eq!(done(engine.copy(&path("d/file"), &link)), Err(XDEV));
    }
    let inside = path("keep/f1");
    let new = path("keep/new");
    assert_eq!(done(engine.unlink(&inside)), Err(XDEV));
    assert_eq!(done(engine.stat(&inside)), Err(XDEV));
    assert_eq!(done(engine.rename(&inside, &path("d/f1"))), Err(XDEV));
    assert_eq!(done(engine.rename(&path("d/file"), &new)), Err(XDEV));
    assert_eq!(done(engine.link(&inside, &path("d/f1"))), Err(XDEV));
    assert_eq!(done(engine.link(&path("d/file"), &new)), Err(XDEV));
    assert_eq!(done(engine.symlink(b"x", &new)), Err(XDEV));
    assert_eq!(done(engine.readlink(&new)), Err(XDEV));
    assert_eq!(done(engine.mkdir(&new)), Err(XDEV));
    assert_eq!(done(engine.rmdir(&new)), Err(XDEV));
    assert_eq!(done(engine.readdir(&path("keep"))), Err(XDEV));
    assert_eq!(done(engine.readdir_stat(&path("keep"))), Err(XDEV));
    assert_eq!(done(engine.set_xattr(&inside, b"x")), Err(XDEV));
    assert_eq!(done(engine.get_xattr(&inside)), Err(XDEV));
    assert_eq!(done(engine.list_xattrs(&inside)), Err(XDEV));
    assert_eq!(done(engine.remove_xattr(&inside)), Err(XDEV));
    for dots in ["..", "d/../..", "../real"] {
        assert_eq!(done(engine.mkdir(&path(dots))), Err(XDEV), "{dots}");
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
    assert!(done(engine.create(&path("d/e/in/link"), write)).is_ok(), "d/e/in is d, link is d/file");
    assert_eq!(std::fs::read(root.join("d/file")).unwrap(), b"");
    done(engine.chmod(&path("d/link"), 0o604)).unwrap();
    done(engine.utimes(&path("d/link"))).unwrap();
    done(engine.access(&path("d/link"))).unwrap();
    done(engine.stat(&path("absolute"))).unwrap();
    done(engine.readlink(&path("absolute"))).unwrap();
    done(engine.mkdir(&path("top"))).unwrap();
    done(engine.rename(&path("d/link"), &path("top/link"))).unwrap();
    done(engine.link(&path("d/file"), &path("top/hard"))).unwrap();
    done(engine.symlink(b"hard", &path("top/soft"))).unwrap();
    done(engine.copy(&path("d/file"), &path("top/soft"))).unwrap();
    assert_eq!(done(engine.readdir(&path("top"))), Ok(5));
    done(engine.unlink(&path("absolute"))).unwrap();
    done(engine.rmdir(&path("none"))).unwrap_err();
    assert!(outside.path().join("real").exists());
    use std::os::unix::fs::MetadataExt as _;
    assert_eq!(std::fs::metadata(root.join("d/file")).unwrap().mode() & 0o777, 0o604);
}
