//! Which files jobs work on: jobs and clones that name the same file share it.

use std::collections::BTreeMap;

use benchmaster_record::model::{Fileset, Sharing, Size, SizeDistribution};
use benchmaster_units::ByteSize;

use super::reader::Reader;
use super::spec::{Engine, Spec};
use crate::name_of;

/// More files than this are not kept open, but opened one after the other.
pub(super) const OPEN_FILES: usize = 8;

/// The name of a file when a job says nothing else.
const FORMAT: &str = "$jobname.$jobnum.$filenum";

/// The files of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JobFiles {
    /// The filesets; of each a clone has one file.
    pub(super) filesets: Vec<String>,
    /// Files of each clone in the only fileset, when they are too many to be kept open.
    pub(super) many: Option<u64>,
    /// Whether all clones work on the same files.
    pub(super) shared: bool,
}

/// What is known about a fileset.
#[derive(Debug, Clone)]
struct Known {
    name: String,
    /// Whether each clone of a job has one of its own.
    per_clone: bool,
    clones: u32,
    per_job: u64,
    sizes: (u64, u64),
    filled: bool,
}

/// The files of all jobs.
#[derive(Debug, Default)]
pub(super) struct Files {
    known: Vec<(String, Known)>,
    /// The directory that the first job names, directly or by an absolute file name.
    pub(super) directory: Option<String>,
}

impl Files {
    pub(super) fn add(&mut self, reader: &mut Reader<'_>, spec: &Spec) -> JobFiles {
        self.place(reader);
        let (keys, count, per_clone) = keys(reader, spec);
        let many = (count > OPEN_FILES as u64
            || matches!(spec.engine, Engine::Create | Engine::Stat | Engine::Delete))
        .then_some(count);
        let keys = if many.is_some() {
            vec![format!("{}…", keys.first().map_or("", String::as_str))]
        } else {
            keys
        };
        let sizes = sizes(spec, count);
        let filled = match spec.engine {
            Engine::Create => false,
            Engine::Stat | Engine::Delete => true,
            Engine::Sync | Engine::Async => spec.reads > 0.0 || spec.overwrite || spec.verify && spec.random,
        };
        let single = keys.len() == 1;
        let filesets = keys.into_iter().enumerate().map(|(number, key)| {
            let base = shown(reader, spec, &key, number, single);
            self.join(
                key,
                base,
                Known {
                    name: String::new(),
                    per_clone,
                    clones: spec.clones,
                    per_job: many.unwrap_or(1),
                    sizes,
                    filled,
                },
            )
        });
        let filesets: Vec<String> = filesets.collect();
        for name in ["filename", "filename_format"] {
            reader.translated(name, format!("the fileset `{}`", filesets.join("`, `")));
        }
        devices(reader);
        if many.is_some() && !per_clone && spec.clones > 1 {
            reader.approximated("filename_format", "the files are divided among the workers");
        }
        JobFiles { filesets, many, shared: !per_clone && spec.clones > 1 }
    }

    /// The directory of the job's files.
    fn place(&mut self, reader: &mut Reader<'_>) {
        let given = reader.text("directory").map(|text| text.split(':').next().unwrap_or(text).to_owned());
        let absolute = |text: &str| {
            let (directory, _) = unescaped(text)
                .into_iter()
                .next()?
                .rsplit_once('/')
                .map(|(d, f)| (d.to_owned(), f.to_owned()))?;
            (directory.starts_with('/') && !is_device(text)).then_some(directory)
        };
        let url = reader.text("nfs_url").map(ToOwned::to_owned);
        let by_name = reader.text("filename").and_then(absolute);
        let Some(place) = url.or(given).or(by_name) else { return };
        let several = reader.text("directory").is_some_and(|text| text.contains(':'));
        let first = self.directory.get_or_insert_with(|| place.clone());
        let message = match (*first == place, several) {
            (true, false) => {
                reader.translated("directory", "the study's target");
                return;
            }
            (true, true) => format!("all files are in the first directory, `{first}`"),
            (false, _) => format!("a study has one target, `{first}`"),
        };
        if reader.has("directory") {
            reader.approximated("directory", message)
        } else {
            reader.approximated("filename", message)
        }
    }

    /// The name of the fileset with this key, new or known, that also fits this job.
    fn join(&mut self, key: String, base: String, new: Known) -> String {
        if let Some((_, known)) = self.known.iter_mut().find(|(other, _)| *other == key) {
            known.clones = known.clones.max(new.clones);
            known.per_job = known.per_job.max(new.per_job);
            known.sizes = (known.sizes.0.max(new.sizes.0), known.sizes.1.max(new.sizes.1));
            known.filled |= new.filled;
            return known.name.clone();
        }
        let taken = |name: &String| self.known.iter().any(|(_, known)| known.name == *name);
        let free = (2..).map(|number| format!("{base}-{number}")).find(|name| !taken(name));
        let name = if taken(&base) { free.unwrap_or(base) } else { base };
        self.known.push((key, Known { name: name.clone(), ..new }));
        name
    }

    /// Whether the files of a fileset exist before the workloads start.
    pub(super) fn filled(&self, name: &str) -> bool {
        self.known.iter().any(|(_, known)| known.name == name && known.filled)
    }

    /// The filesets with these names.
    pub(super) fn describe(&self, names: &[String]) -> BTreeMap<String, Fileset> {
        let wanted = self.known.iter().map(|(_, known)| known).filter(|known| names.contains(&known.name));
        wanted.map(|known| (known.name.clone(), fileset(known))).collect()
    }
}

fn fileset(known: &Known) -> Fileset {
    let (min, max) = known.sizes;
    Fileset {
        files: known.per_job * if known.per_clone { u64::from(known.clones) } else { 1 },
        size: if min == max {
            Size::Fixed(ByteSize(max))
        } else {
            Size::Distributed(SizeDistribution::Uniform { min: ByteSize(min), max: ByteSize(max) })
        },
        directory_width: 0,
        tree: None,
        sharing: Sharing::Private,
        prefill: if known.filled { 1.0 } else { 0.0 },
    }
}

/// What identifies each of a job's files, at least as long as they are few; how many files there are; and whether each clone has
/// one of its own. Equal keys are the same files.
fn keys(reader: &mut Reader<'_>, spec: &Spec) -> (Vec<String>, u64, bool) {
    let count = reader.count("nrfiles", 0).unwrap_or(1).max(1);
    if let Some(names) = reader.text("filename") {
        reader.irrelevant("nrfiles", "`filename` says which files there are");
        reader.irrelevant("openfiles", "`filename` says which files there are");
        reader.irrelevant("filename_format", "`filename` says which files there are");
        let names = unescaped(names);
        let names = if names.is_empty() { vec![spec.name.clone()] } else { names };
        let count = names.len() as u64;
        return (names, count, false);
    }
    reader.translated("nrfiles", "files of the filesets");
    match reader.count("openfiles", 0) {
        Some(open) if open != 0 && open < count && count as usize <= OPEN_FILES => {
            reader.approximated("openfiles", "all files are kept open");
        }
        Some(_) if count as usize > OPEN_FILES => {
            reader.approximated("openfiles", "files are opened one after the other, one at a time");
        }
        _ => reader.translated("openfiles", "all files are kept open"),
    }
    let format = reader.text("filename_format").unwrap_or(FORMAT);
    let named = format.replace("$jobname", &spec.name).replace("$clientuid", "");
    let distinct = if format.contains("$filenum") { count } else { 1 };
    let keys =
        (0..distinct).take(OPEN_FILES + 1).map(|number| named.replace("$filenum", &number.to_string()));
    (keys.collect(), distinct.into(), format.contains("$jobnum"))
}

/// A name for people.
fn shown(reader: &Reader<'_>, spec: &Spec, key: &str, number: usize, single: bool) -> String {
    let own = name_of(&spec.name, "files");
    if reader.text("filename").is_none() && reader.text("filename_format").is_none() {
        return if single { own } else { format!("{own}-{number}") };
    }
    let base = key.rsplit('/').next().unwrap_or(key).replace("$jobnum", "").replace("$filenum", "");
    name_of(&base, &own)
}

/// Smallest and largest size of each of `count` files.
fn sizes(spec: &Spec, count: u64) -> (u64, u64) {
    if spec.engine == Engine::Create {
        return (0, 0);
    }
    let block = spec.smallest_block().max(1);
    let whole = |size: u64| if size >= block { size - size % block } else { size };
    let (min, max) = spec.file_size.unwrap_or_else(|| {
        let one = spec.size.unwrap_or(0) / count.max(1);
        (one, one)
    });
    let others = spec.increment.saturating_mul(u64::from(spec.clones) - 1);
    (whole(min.saturating_add(others)).max(1), whole(max.saturating_add(others)).max(1))
}

/// Names separated by `:`; one within a name is written `\:`.
fn unescaped(text: &str) -> Vec<String> {
    let mut names = vec![String::new()];
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        match (c, names.last_mut()) {
            ('\\', Some(name)) if rest.peek() == Some(&':') => {
                rest.next();
                name.push(':');
            }
            (':', _) => names.push(String::new()),
            (c, Some(name)) => name.push(c),
            (_, None) => {}
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

fn is_device(path: &str) -> bool {
    path.starts_with("/dev/") && !path.starts_with("/dev/shm/")
}

fn devices(reader: &mut Reader<'_>) {
    match reader.text("filename") {
        Some(text) if unescaped(text).iter().any(|name| is_device(name)) => {
            reader.approximated("filename", "a file of the same size instead of a device");
        }
        Some("-") => reader.unsupported("filename", "a file instead of standard input or output"),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_are_separated_by_colons() {
        assert_eq!(unescaped("a:b"), ["a", "b"]);
        assert_eq!(unescaped(r"/dev/dsk/foo@3,0\:c"), ["/dev/dsk/foo@3,0:c"]);
        assert_eq!(unescaped(":"), [""; 0]);
    }
}
