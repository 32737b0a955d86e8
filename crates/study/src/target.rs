//! What to measure as people write it: a directory, a URL, or what is mounted, in the words of `mount` and of fstab.

use toml::{Table, Value};

use crate::settings::MountSettings;

/// A text that says what to measure, as a key of `[target]` and its value.
#[derive(Debug, Clone, PartialEq)]
pub struct Target {
    /// `url`, `mount` or `path`.
    pub key: &'static str,
    /// In TOML.
    pub value: Value,
    /// Its name for people: the URL, what is mounted, or the directory.
    pub place: String,
}

/// A text that begins as a mount does and is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` {problem}; write it as `SERVER:/EXPORT`, `SERVER:/EXPORT?vers=4.1,nconnect=4`, a line of /etc/fstab, or \
         `mount -t nfs -o vers=4.1 SERVER:/EXPORT /mnt`"
)]
pub struct TargetError {
    text: String,
    problem: String,
}

impl Target {
    /// A directory.
    pub fn directory(path: &str) -> Self {
        Self { key: "path", value: path.into(), place: path.to_owned() }
    }

    /// Reads a directory, `nfs://SERVER/EXPORT`, or what is mounted in one of the forms of [`TargetError`].
    ///
    /// # Errors
    /// When it begins as the last of these and does not go on so.
    pub fn read(text: &str) -> Result<Self, TargetError> {
        let words: Vec<&str> = text.split_whitespace().skip_while(|word| *word == "sudo").collect();
        let mount = match words.as_slice() {
            _ if text.starts_with("nfs://") => {
                return Ok(Self { key: "url", value: text.into(), place: text.to_owned() });
            }
            ["mount", rest @ ..] => command(rest),
            [source, ..] if is_export(source) => fields(&words),
            _ => return Ok(Self::directory(text)),
        };
        let mount = mount.map_err(|problem| TargetError { text: text.to_owned(), problem })?;
        let place = mount.source.clone();
        let mut table = Table::from_iter([("source".to_owned(), Value::from(mount.source))]);
        let kind = Some(mount.kind).filter(|kind| kind != "nfs");
        let options = Some(mount.options).filter(|options| !options.is_empty() && options != "defaults");
        for (key, value) in [("options", options), ("type", kind), ("path", mount.path)] {
            table.extend(value.map(|value| (key.to_owned(), Value::from(value))));
        }
        Ok(Self { key: "mount", value: Value::Table(table), place })
    }
}

/// `SERVER:/EXPORT`.
fn is_export(text: &str) -> bool {
    text.split_once(":/").is_some_and(|(host, _)| !host.is_empty() && !host.contains('/'))
}

/// What is mounted, with options behind a `?` as in a URL.
fn mount(source: &str, options: &str) -> MountSettings {
    let (source, query) = source.split_once('?').unwrap_or((source, ""));
    let options = [query.replace('&', ","), options.to_owned()];
    let options = options.into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(",");
    MountSettings { source: source.to_owned(), options, kind: "nfs".into(), path: None }
}

/// The fields of a line of `/etc/fstab`, of which all but the first may be missing.
fn fields(words: &[&str]) -> Result<MountSettings, String> {
    let [source, rest @ ..] = words else { return Err("is empty".into()) };
    let field = |at: usize| rest.get(at).copied();
    if rest.len() > 5 {
        return Err("has more words than a line of /etc/fstab".into());
    }
    let kind = field(1).unwrap_or("nfs").to_owned();
    Ok(MountSettings { kind, path: field(0).map(str::to_owned), ..mount(source, field(2).unwrap_or("")) })
}

/// The words after `mount`.
fn command(words: &[&str]) -> Result<MountSettings, String> {
    let (mut kind, mut options, mut places) = ("nfs", "", Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            flag @ ("-t" | "-o") => {
                let value = words.next().ok_or_else(|| format!("has nothing after `{flag}`"))?;
                *(if flag == "-t" { &mut kind } else { &mut options }) = value;
            }
            flag if flag.starts_with('-') => {
                return Err(format!("has `{flag}`, which is not supported here"));
            }
            place => places.push(place),
        }
    }
    match places.as_slice() {
        [source, path @ ..] if path.len() < 2 => {
            let path = path.first().map(|path| (*path).to_owned());
            Ok(MountSettings { kind: kind.to_owned(), path, ..mount(source, options) })
        }
        _ => Err("names no source and mount point".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::battery::quick;
    use crate::file::StudyFile;

    #[test]
    fn what_is_mounted_is_written_as_people_write_it() {
        for (text, expected) in [
            ("filer:/vol1", "{ source = \"filer:/vol1\" }"),
            (
                "filer:/vol1?vers=4.2&nconnect=4",
                "{ source = \"filer:/vol1\", options = \"vers=4.2,nconnect=4\" }",
            ),
            (
                "filer:/vol1 /mnt nfs vers=4.1,nconnect=4 0 0",
                "{ source = \"filer:/vol1\", options = \"vers=4.1,nconnect=4\", path = \"/mnt\" }",
            ),
            (
                "filer:/vol1 /mnt nfs4 defaults",
                "{ source = \"filer:/vol1\", type = \"nfs4\", path = \"/mnt\" }",
            ),
            (
                "sudo mount -t nfs -o nfsvers=3,rsize=65536 filer:/vol1 /mnt",
                "{ source = \"filer:/vol1\", options = \"nfsvers=3,rsize=65536\", path = \"/mnt\" }",
            ),
            ("[fe80::1]:/vol1", "{ source = \"[fe80::1]:/vol1\" }"),
        ] {
            let target = Target::read(text).unwrap();
            assert_eq!((target.key, target.value.to_string().as_str()), ("mount", expected), "{text}");
            let file = StudyFile::parse("quick", &quick(&target, None, None))
                .unwrap_or_else(|found| panic!("{found}"));
            assert_eq!(file.base.target.place(), target.place);
        }
        for text in ["mount", "mount -t", "mount -F nfs a:/b /c", "a:/b 1 2 3 4 5 6", "mount a:/b /c /d"] {
            assert!(Target::read(text).is_err(), "{text}");
        }
        assert_eq!(Target::read("/mnt/a:/b c").unwrap().key, "path");
    }
}
