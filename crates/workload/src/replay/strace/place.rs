//! Which part of the traced machine's tree is replayed.

use crate::model::ParameterError;

/// Directories of the system, which are not replayed unless a root is named.
const SYSTEM: [&[u8]; 11] = [
    b"/bin", b"/boot", b"/dev", b"/etc", b"/lib", b"/lib32", b"/lib64", b"/proc", b"/run", b"/sbin", b"/sys",
];
const USR: &[u8] = b"/usr";

/// Longest path that is replayed: what a working directory adds to it must have room.
const LONGEST: usize = 160;

/// Which part of the traced machine's tree is replayed, and where the traced command was started.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Where {
    root: Option<Vec<u8>>,
    start: Vec<u8>,
}

impl Where {
    /// Only what is below `root` is replayed, else everything that is not the system's; `cwd` is the directory that the
    /// command was started in (`root` if absent).
    ///
    /// # Errors
    /// When one of them is no absolute path.
    pub fn new(root: Option<&str>, cwd: Option<&str>) -> Result<Self, ParameterError> {
        let absolute = |key: &str, path: Option<&str>| match path {
            Some(path) if !path.starts_with('/') => Err(ParameterError::new(
                key,
                format!("`{path}` is not an absolute path"),
                "write the absolute path on the traced machine",
            )),
            path => Ok(path.map(|path| normal(path.as_bytes()))),
        };
        let root = absolute("root", root)?;
        let start = absolute("cwd", cwd)?.or_else(|| root.clone()).unwrap_or_else(|| b"/".to_vec());
        Ok(Self { root, start })
    }

    /// What is replayed, if that was said.
    pub fn root(&self) -> Option<String> {
        self.root.as_ref().map(|root| String::from_utf8_lossy(root).into_owned())
    }

    /// The directory that the command was started in.
    pub(super) fn start(&self) -> &[u8] {
        if self.start.is_empty() { b"/" } else { &self.start }
    }

    /// A path of the traced machine (absolute and normal) as one of the replay; `None` when it is not replayed.
    pub(super) fn inside(&self, path: &[u8]) -> Option<Vec<u8>> {
        let inner = match &self.root {
            Some(root) => below(path, root)?,
            None if SYSTEM.iter().chain([&USR]).any(|system| below(path, system).is_some()) => return None,
            None => path.strip_prefix(b"/")?,
        };
        (inner.len() <= LONGEST).then(|| inner.to_vec())
    }

    /// The text of a symbolic link at `link` (absolute and normal) in the replay: what is inside is named from the
    /// link's directory; `None` when the link leads out of what is replayed.
    pub(super) fn link_target(&self, link: &[u8], target: &[u8]) -> Option<Vec<u8>> {
        let end = link.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        let directory = &link[..end];
        let inner = self.inside(&joined(directory, target))?;
        if !target.starts_with(b"/") {
            // The replay's root has other directories above it: not even on its way may the link leave it.
            let mut deep = depth(&self.inside(directory)?);
            for part in target.split(|byte| *byte == b'/') {
                deep = match part {
                    b"" | b"." => deep,
                    b".." => deep.checked_sub(1)?,
                    _ => deep + 1,
                };
            }
            return Some(target.to_vec());
        }
        let mut relative = b"../".repeat(depth(&self.inside(directory)?));
        relative.extend_from_slice(&inner);
        Some(if relative.is_empty() { b".".to_vec() } else { relative })
    }
}

/// Number of directories in a relative path.
fn depth(path: &[u8]) -> usize {
    path.split(|byte| *byte == b'/').filter(|part| !part.is_empty()).count()
}

/// What a path is below another one; empty when it is the same.
fn below<'p>(path: &'p [u8], root: &[u8]) -> Option<&'p [u8]> {
    let rest = path.strip_prefix(root.strip_suffix(b"/").unwrap_or(root))?;
    match rest {
        [] => Some(rest),
        [b'/', inner @ ..] => Some(inner),
        _ => None,
    }
}

/// `path` taken from the directory `base`, without `.`, `..` and double slashes.
pub(super) fn joined(base: &[u8], path: &[u8]) -> Vec<u8> {
    if path.starts_with(b"/") {
        return normal(path);
    }
    normal(&[base, b"/", path].concat())
}

fn normal(path: &[u8]) -> Vec<u8> {
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in path.split(|&byte| byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut out = Vec::with_capacity(path.len());
    for part in parts {
        out.push(b'/');
        out.extend_from_slice(part);
    }
    if out.is_empty() { b"/".to_vec() } else { out }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_normal_and_relative_to_the_root() {
        assert_eq!(joined(b"/a/b", b"../c/./d//e"), b"/a/c/d/e");
        assert_eq!(joined(b"/a", b"/x/.."), b"/");
        let everywhere = Where::new(None, None).unwrap();
        assert_eq!(everywhere.inside(b"/usr/lib/x"), None);
        assert_eq!(everywhere.inside(b"/usrlocal/x").unwrap(), b"usrlocal/x");
        assert_eq!(everywhere.start(), b"/");
        let data = Where::new(Some("/data/p/"), None).unwrap();
        assert_eq!(data.inside(b"/data/p").unwrap(), b"");
        assert_eq!(data.inside(b"/data/p/x").unwrap(), b"x");
        assert_eq!((data.inside(b"/data/px"), data.start()), (None, &b"/data/p"[..]));
        assert_eq!(data.inside(&[b"/data/p/".as_slice(), &[b'x'; 300]].concat()), None);
        assert_eq!(Where::new(None, Some("x")).unwrap_err().path, "cwd");
    }

    #[test]
    fn links_lead_to_what_is_replayed_or_are_left_out() {
        let place = Where::new(Some("/home/p"), None).unwrap();
        for (link, target, expected) in [
            ("/home/p/current", "/home/p/real.txt", Some("real.txt")),
            ("/home/p/a/b/l", "/home/p/keep/d", Some("../../keep/d")),
            ("/home/p/a/l", "/home/p", Some("../")),
            ("/home/p/l", "/home/p", Some(".")),
            ("/home/p/l", "real.txt", Some("real.txt")),
            ("/home/p/a/l", "../x/./y", Some("../x/./y")),
            ("/home/p/l", "x/../y", Some("x/../y")),
            ("/home/p/a/l", "../../q", None),
            ("/home/p/a/l", "../../p/x", None),
            ("/home/p/l", "/etc/passwd", None),
            ("/home/p/l", "/home/pp", None),
        ] {
            let found = place.link_target(link.as_bytes(), target.as_bytes());
            assert_eq!(found.as_deref(), expected.map(str::as_bytes), "{link} -> {target}");
        }
    }
}
