//! What is exported: one file system per export, and the pseudo file system that leads to them (RFC 7530 §7.3).
//!
//! Each export is mounted on a directory of the file system that its path leads through: the export with the longest
//! path above it, or else the pseudo file system. So `/a` and `/a/b` nest: `b` is a directory of `/a`, made at the
//! start, that cannot be removed; if it is renamed, the inner export moves along.

use std::sync::Arc;

use hashbrown::HashMap;

use benchmaster_rpc_gss::{Flavor, Flavors};

use crate::config::{ExportConfig, ServerConfig};
use crate::cred::Credentials;
use crate::fs::{
    Attr, FileSystem, FsConfig, FsError, Kind, NewFile, Node, SetAttr, Time, access, check_name, permits,
};
use crate::handle::FileId;
use crate::wal::Wal;

/// An exported file system.
#[derive(Debug)]
pub struct Export {
    /// Path by which clients mount it.
    pub path: String,
    /// Whether changes are refused.
    pub read_only: bool,
    /// Whether this is the pseudo file system: not configured, not listed by MOUNT.
    pub pseudo: bool,
    /// File system behind it.
    pub fs: FileSystem,
    /// Security flavours by which it can be used.
    pub flavors: Flavors,
}

/// All exports. Index 0 is the pseudo file system, a read-only tree whose leaves are the exports' roots; when `/`
/// itself is exported there is no pseudo file system and index 0 is that export.
#[derive(Debug)]
pub struct Exports {
    list: Vec<Export>,
    /// The flavours by which every export can be used.
    allowed_by_all: Flavors,
    /// Which export is mounted on a directory.
    mounts: HashMap<(u32, Node), u32>,
    /// Directory that an export is mounted on, by export number.
    mounted_on: Vec<Option<FileId>>,
}

/// Exports that make no name space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ExportError {
    /// No export is configured.
    #[error("nothing to export")]
    None,
    /// The path is not absolute, or has a component that is no name.
    #[error("export '{0}': not an absolute path of names")]
    Path(String),
    /// The path is there twice.
    #[error("export '{0}' is given twice")]
    Twice(String),
    /// What was loaded has something else where the export's directory should be.
    #[error("export '{0}': {1}")]
    Mount(String, FsError),
}

/// Mode of an export's root and of directories on the way: an export's root is for everybody, as that of a scratch
/// disk.
const ROOT_MODE: u32 = 0o1777;
const WAY_MODE: u32 = 0o755;

impl Exports {
    /// Makes the exports that `config` names, empty.
    pub fn new(config: &ServerConfig, now: Time) -> Result<Self, ExportError> {
        Self::with(config, now, |_, _| None)
    }

    /// What the exports of `config` will be, by number: path, whether it is the pseudo file system, options.
    pub(crate) fn numbered(config: &ServerConfig) -> Vec<(&str, bool, FsConfig)> {
        let exports = || config.exports.iter();
        let root = exports().filter(|export| export.path == "/");
        let others = exports().filter(|export| export.path != "/");
        let pseudo = (!exports().any(|export| export.path == "/")).then(|| ("/", true, FsConfig::default()));
        let options = |export: &ExportConfig| FsConfig {
            limit: Some(export.limit.unwrap_or(config.memory / 2)),
            null_data: config.null_data,
            change_granularity: config.change_granularity,
            volatile: config.volatile,
        };
        let real = root.chain(others).map(|export| (export.path.as_str(), false, options(export)));
        pseudo.into_iter().chain(real).collect()
    }

    /// Makes the exports that `config` names; `loaded` gives the files of those that have some (by path and number).
    pub(crate) fn with(
        config: &ServerConfig,
        now: Time,
        mut loaded: impl FnMut(&str, usize) -> Option<FileSystem>,
    ) -> Result<Self, ExportError> {
        if config.exports.is_empty() {
            return Err(ExportError::None);
        }
        for (at, export) in config.exports.iter().enumerate() {
            let named = |name: &str| !matches!(name, "" | "." | "..") && check_name(name.as_bytes()).is_ok();
            let absolute = export.path.strip_prefix('/');
            if export.path != "/" && !absolute.is_some_and(|path| path.split('/').all(named)) {
                return Err(ExportError::Path(export.path.clone()));
            }
            if config.exports.iter().skip(at + 1).any(|other| other.path == export.path) {
                return Err(ExportError::Twice(export.path.clone()));
            }
        }
        let read_only =
            |path: &str| config.exports.iter().any(|export| export.path == path && export.read_only);
        let of = |export: &ExportConfig| export.security.unwrap_or(config.security);
        // What leads to the exports can be used by who can use one of them.
        let served = config.exports.iter().map(of).fold(Flavors::EMPTY, Flavors::or);
        let flavors =
            |path: &str| config.exports.iter().find(|export| export.path == path).map_or(served, of);
        let list: Vec<Export> = Self::numbered(config)
            .into_iter()
            .enumerate()
            .map(|(number, (path, pseudo, options))| {
                let mode = if pseudo { WAY_MODE } else { ROOT_MODE };
                let fs = loaded(path, number).unwrap_or_else(|| FileSystem::new(options, mode, now));
                let flavors = if pseudo { served } else { flavors(path) };
                Export { path: path.to_owned(), read_only: pseudo || read_only(path), pseudo, fs, flavors }
            })
            .collect();
        let allowed_by_all = Flavor::ALL
            .into_iter()
            .filter(|f| list.iter().all(|export| export.flavors.contains(*f)))
            .collect();
        let mounted_on = list.iter().map(|_| None).collect();
        let mut exports = Self { list, allowed_by_all, mounts: HashMap::new(), mounted_on };
        exports.mount_all(now).map_err(|(path, error)| ExportError::Mount(path, error))?;
        Ok(exports)
    }

    fn mount_all(&mut self, now: Time) -> Result<(), (String, FsError)> {
        for (number, export) in self.list.iter().enumerate().skip(1) {
            let below = |outer: &Export| {
                let rest = export.path.strip_prefix(outer.path.trim_end_matches('/'))?;
                rest.strip_prefix('/').filter(|rest| !rest.is_empty())
            };
            let outer = self.list.iter().enumerate().filter(|(at, _)| *at != number);
            let outer = outer.filter_map(|(at, outer)| Some((outer.path.len(), at, outer, below(outer)?)));
            let Some((_, at, outer, way)) = outer.max_by_key(|(len, ..)| *len) else { continue };
            let mut dir = outer.fs.root();
            for name in way.split('/') {
                dir = enter(&outer.fs, dir, name.as_bytes(), now)
                    .map_err(|error| (export.path.clone(), error))?;
            }
            outer.fs.pin(dir).map_err(|error| (export.path.clone(), error))?;
            self.mounts.insert((at as u32, dir), number as u32);
            self.mounted_on[number] = Some(FileId::new(at as u32, dir));
        }
        Ok(())
    }

    /// From now on changes are logged.
    pub(crate) fn log_to(&mut self, wal: &Arc<Wal>) {
        for (number, export) in (0..).zip(&mut self.list) {
            export.fs.log_to(wal, number);
        }
    }

    /// The file system that a handle's export number means. [`FsError::Stale`] when there is none.
    pub fn get(&self, export: u32) -> Result<&Export, FsError> {
        self.list.get(export as usize).ok_or(FsError::Stale)
    }

    /// Whether a call of this flavour may use every export.
    #[inline]
    pub(crate) fn all_allow(&self, flavor: Flavor) -> bool {
        self.allowed_by_all.contains(flavor)
    }

    /// Whether a call of this flavour may use an export, if there is one of that number.
    pub(crate) fn allows(&self, export: u32, flavor: Flavor) -> bool {
        self.get(export).is_ok_and(|export| export.flavors.contains(flavor))
    }

    /// All of them, by number.
    pub fn list(&self) -> &[Export] {
        &self.list
    }

    /// File system and node of a file, for reading.
    pub fn file(&self, id: FileId) -> Result<(&FileSystem, Node), FsError> {
        let export = self.get(id.export)?;
        Ok((&export.fs, Node { ino: id.ino, generation: id.generation }))
    }

    /// File system and node of a file, for changing: [`FsError::ReadOnly`] where the export is.
    pub fn file_mut(&self, id: FileId) -> Result<(&FileSystem, Node), FsError> {
        let export = self.get(id.export)?;
        if export.read_only {
            return Err(FsError::ReadOnly);
        }
        self.file(id)
    }

    /// Root of the whole name space (PUTROOTFH).
    pub fn root(&self) -> FileId {
        self.root_of(0)
    }

    /// The exports that MOUNT lists: path and root, in the order of their numbers.
    pub fn mountable(&self) -> impl Iterator<Item = (&str, FileId)> {
        let numbered = self.list.iter().zip(0..);
        numbered
            .filter(|(export, _)| !export.pseudo)
            .map(|(export, number)| (export.path.as_str(), FileId::new(number, export.fs.root())))
    }

    /// Walks an absolute path (MOUNT): through the pseudo file system, exports and directories in them. Symbolic
    /// links are not followed ([`FsError::NotDirectory`] when more comes after one).
    pub fn walk(&self, who: &Credentials, path: &[u8]) -> Result<FileId, FsError> {
        let names = path.strip_prefix(b"/").ok_or(FsError::NotFound)?.split(|byte| *byte == b'/');
        names
            .filter(|name| !name.is_empty())
            .try_fold(self.root(), |dir, name| Ok(self.lookup(who, dir, name)?.0))
    }

    /// Looks a name up, crossing into an export where its mount point is, and out of it with "..".
    pub fn lookup(&self, who: &Credentials, dir: FileId, name: &[u8]) -> Result<(FileId, Attr), FsError> {
        let (fs, node) = self.file(dir)?;
        if name == b".." && node == fs.root() {
            let attr = fs.attr(node)?;
            if !permits(&attr, who, access::EXECUTE) {
                return Err(FsError::Access);
            }
            let parent = self.parent(dir)?.unwrap_or(dir);
            let (fs, node) = self.file(parent)?;
            return Ok((parent, fs.attr(node)?));
        }
        let (node, attr) = fs.lookup(who, node, name)?;
        let found = self.cross(dir.export, node);
        if found.export == dir.export {
            return Ok((found, attr));
        }
        let (fs, node) = self.file(found)?;
        Ok((found, fs.attr(node)?))
    }

    /// The parent directory, crossing out of an export's root; `None` at the root of the name space.
    pub fn parent(&self, dir: FileId) -> Result<Option<FileId>, FsError> {
        let (fs, node) = self.file(dir)?;
        if node != fs.root() {
            return Ok(Some(FileId::new(dir.export, fs.parent(node)?)));
        }
        let Some(Some(mounted_on)) = self.mounted_on.get(dir.export as usize) else { return Ok(None) };
        let (fs, node) = self.file(*mounted_on)?;
        // The directory it is mounted on is in one of its own file system, and that is not a mount point itself.
        Ok(Some(FileId::new(mounted_on.export, fs.parent(node)?)))
    }

    /// What a directory entry of `export` leads to: the export's root where the entry is a mount point.
    pub fn cross(&self, export: u32, node: Node) -> FileId {
        // Nearly all file systems have no mount points.
        match self.mounts.get(&(export, node)) {
            Some(number) => self.root_of(*number),
            None => FileId::new(export, node),
        }
    }

    /// Inode number under which a file's directory lists it (`mounted_on_fileid`): differs from its own for the root
    /// of an export that is mounted in another file system.
    pub fn mounted_on(&self, id: FileId) -> u64 {
        match self.mounted_on.get(id.export as usize) {
            Some(Some(dir)) if self.root_of(id.export) == id => dir.ino,
            _ => id.ino,
        }
    }

    fn root_of(&self, export: u32) -> FileId {
        let root = self.list.get(export as usize).map_or(Node { ino: 0, generation: 0 }, |it| it.fs.root());
        FileId::new(export, root)
    }
}

/// The directory of that name, made when it is not there.
fn enter(fs: &FileSystem, dir: Node, name: &[u8], now: Time) -> Result<Node, FsError> {
    let root = Credentials::root();
    match fs.lookup(&root, dir, name) {
        Ok((node, attr)) if attr.kind == Kind::Directory => Ok(node),
        Ok(_) => Err(FsError::NotDirectory),
        Err(FsError::NotFound) => {
            let mode = SetAttr { mode: Some(WAY_MODE), ..SetAttr::default() };
            Ok(fs.create(&root, dir, name, NewFile::Directory, &mode, None, now)?.attr.node)
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Time {
        Time { seconds, nanos: 0 }
    }

    fn exports(paths: &[&str]) -> Result<Exports, ExportError> {
        let export = |path: &&str| ExportConfig {
            path: path.to_string(),
            read_only: path.ends_with("ro"),
            limit: Some(1 << 20),
            security: None,
        };
        let config = ServerConfig { exports: paths.iter().map(export).collect(), ..ServerConfig::default() };
        Exports::new(&config, at(1))
    }

    /// Every export is found by walking, from the root and back; junctions are crossed both ways.
    #[test]
    fn all_sets_of_paths_make_one_name_space() {
        let root = Credentials::root();
        for paths in [
            &["/export"][..],
            &["/a/b/c"],
            &["/a/b", "/a/c", "/a/bb"],
            &["/"],
            &["/", "/x", "/y/z"],
            &["/a", "/a/b", "/a/b/c/d"],
            &["/a/b/c/d", "/a/b", "/a"],
        ] {
            let exports = exports(paths).unwrap();
            assert_eq!(exports.parent(exports.root()), Ok(None));
            assert_eq!(exports.lookup(&root, exports.root(), b"..").unwrap().0, exports.root());
            let mut found: Vec<&str> = exports.mountable().map(|(path, _)| path).collect();
            found.sort_unstable();
            let mut expected = paths.to_vec();
            expected.sort_unstable();
            assert_eq!(found, expected);
            for (path, file) in exports.mountable() {
                assert_eq!(exports.walk(&root, path.as_bytes()), Ok(file), "{path}");
                assert_eq!(exports.file(file).unwrap().0.root().ino, file.ino);
                let (mut up, mut steps) = (file, 0);
                while let Some(parent) = exports.parent(up).unwrap() {
                    assert_eq!(exports.lookup(&root, up, b"..").unwrap().0, parent);
                    (up, steps) = (parent, steps + 1);
                }
                assert_eq!(up, exports.root());
                assert_eq!(steps, path.split('/').filter(|name| !name.is_empty()).count(), "{path}");
            }
        }
    }

    #[test]
    fn a_mount_point_is_listed_under_its_own_number_and_leads_across() {
        let root = Credentials::root();
        let exports = exports(&["/a", "/a/b"]).unwrap();
        let (a, b) = (exports.walk(&root, b"/a").unwrap(), exports.walk(&root, b"//a/b/").unwrap());
        let (fs, node) = exports.file(a).unwrap();
        let mut listed = Vec::new();
        fs.read_dir(&root, node, 0, false, at(2), &mut |entry| {
            listed.push((entry.name.to_vec(), entry.node));
            true
        })
        .unwrap();
        assert_eq!(listed[0].0, b"b");
        assert_eq!(exports.cross(a.export, listed[0].1), b);
        assert_eq!(exports.mounted_on(b), listed[0].1.ino);
        assert_ne!(exports.mounted_on(b), b.ino);
        let removed = fs.remove(&root, node, b"b", crate::fs::RemoveKind::Any, at(2));
        assert_eq!(removed.err(), Some(FsError::NotEmpty));
        // A file inside is listed under the number it has.
        let (inner, top) = exports.file_mut(b).unwrap();
        let made =
            inner.create(&root, top, b"f", NewFile::Regular, &SetAttr::default(), None, at(2)).unwrap();
        let file = FileId::new(b.export, made.attr.node);
        assert_eq!(exports.walk(&root, b"/a/b/f"), Ok(file));
        assert_eq!((exports.mounted_on(file), exports.cross(b.export, made.attr.node)), (file.ino, file));
    }

    #[test]
    fn what_may_not_change_is_refused() {
        let exports = exports(&["/x/ro", "/x/rw"]).unwrap();
        let root = Credentials::root();
        let walk = |path: &[u8]| exports.walk(&root, path).unwrap();
        assert!(exports.file_mut(walk(b"/x/rw")).is_ok());
        assert_eq!(exports.file_mut(walk(b"/x/ro")).err(), Some(FsError::ReadOnly));
        assert_eq!(exports.file_mut(walk(b"/x")).err(), Some(FsError::ReadOnly));
        assert_eq!(exports.walk(&root, b"/x/none"), Err(FsError::NotFound));
        assert_eq!(exports.walk(&root, b"x"), Err(FsError::NotFound));
        assert_eq!(exports.get(9).err(), Some(FsError::Stale));
    }

    #[test]
    fn paths_that_are_none_are_refused() {
        for path in ["", "a", "/a/", "//a", "/a/../b", "/.", "/a//b"] {
            assert_eq!(exports(&[path]).err(), Some(ExportError::Path(path.into())));
        }
        assert_eq!(exports(&["/a", "/b", "/a"]).err(), Some(ExportError::Twice("/a".into())));
        assert_eq!(exports(&[]).err(), Some(ExportError::None));
    }
}
