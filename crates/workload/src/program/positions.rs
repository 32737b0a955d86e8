//! What sizes, positions, picks and trees must not say although they are well-formed.

use super::compile::{Compiler, Handle};
use crate::model::{FilePick, Fileset, OffsetPick, Sharing, SizeDistribution, Step, Tree};

/// The most directories of a tree, and the most bytes of a name below its root.
const MAX_DIRECTORIES: u64 = 10_000_000;
const MAX_NAME: u64 = 100;

impl Compiler<'_> {
    /// Whether a distribution of sizes can be drawn from.
    pub(super) fn check_size_distribution(&mut self, path: &str, distribution: &SizeDistribution) -> bool {
        let above = |value: f64| value > 0.0 && value.is_finite();
        let (message, fix) = match distribution {
            SizeDistribution::Uniform { min, max } if min > max => {
                (format!("`min` ({min}) is more than `max` ({max})"), "exchange them")
            }
            SizeDistribution::Gamma { mean, shape } if !above(*shape) || mean.0 == 0 => {
                ("a gamma distribution needs a mean and a shape above 0".into(), "raise them")
            }
            SizeDistribution::LogNormal { median, sigma } if !above(*sigma) || median.0 == 0 => {
                ("a log-normal distribution needs a median and sigma above 0".into(), "raise them")
            }
            SizeDistribution::Weighted { sizes } if sizes.is_empty() => {
                ("there are no sizes".into(), "for example `sizes = [{ size = \"4KiB\", weight = 1.0 }]`")
            }
            SizeDistribution::Weighted { sizes } if !sizes.iter().all(|each| above(each.weight)) => {
                ("a weight is not above 0".into(), "give every size a weight above 0")
            }
            _ => return true,
        };
        self.error(path, message, fix);
        false
    }

    pub(super) fn check_tree(&mut self, path: &str, fileset: &Fileset, tree: &Tree) {
        if fileset.directory_width > 0 {
            let message = "the files of a tree are spread over all its directories";
            self.error(path, message, "remove `directory_width` or `tree`");
        }
        if tree.depth == 0 || tree.branch == 0 {
            self.error(path, "`depth` and `branch` must be at least 1", "or remove `tree`");
            return;
        }
        let digits = u64::from(tree.branch.ilog10()) + 1;
        let directories = tree.directories().filter(|count| *count <= MAX_DIRECTORIES);
        if directories.is_none() || u64::from(tree.depth) * (digits + 2) > MAX_NAME {
            let message = format!(
                "a tree has at most {MAX_DIRECTORIES} directories, and names of at most {MAX_NAME} bytes below its root"
            );
            self.error(path, message, "lower `depth` or `branch`");
        }
    }

    pub(super) fn check_pick(&mut self, path: &str, pick: FilePick, fileset: u16) {
        let path = format!("{path}.file");
        match pick {
            FilePick::Zipf { exponent } => self.check_exponent(&path, exponent),
            FilePick::Neighbour => {
                let fileset = self.workload.filesets.values().nth(usize::from(fileset));
                if fileset.is_some_and(|fileset| fileset.sharing == Sharing::Private) {
                    let message =
                        "`neighbour` means files of another client, and each client has its own files";
                    self.error(&path, message, "add `sharing = \"shared\"` to the fileset");
                }
            }
            _ => {}
        }
    }

    fn check_exponent(&mut self, path: &str, exponent: f64) {
        if !(exponent > 0.0 && exponent <= 100.0) {
            self.error(path, format!("an exponent of {exponent}"), "it must be above 0 (and at most 100)");
        }
    }

    /// Positions that the files of a handle do not have.
    pub(super) fn check_positions(
        &mut self,
        path: &str,
        step: &Step,
        offset: OffsetPick,
        handle: &Handle<'_>,
    ) {
        let path = format!("{path}.offset");
        match offset {
            OffsetPick::Sequential | OffsetPick::Random | OffsetPick::Append | OffsetPick::Reverse => {}
            OffsetPick::Zipf { exponent } => self.check_exponent(&path, exponent),
            OffsetPick::Hotspot { share, accesses } => {
                for (name, value) in [("share", share), ("accesses", accesses)] {
                    if !(value > 0.0 && value < 1.0) {
                        let message = format!("`{name}` is a share between 0 and 1, and {value} is not");
                        self.error(&path, message, "for example `{ share = 0.2, accesses = 0.8 }`");
                    }
                }
            }
            OffsetPick::Strided { stride } => {
                if stride.0 == 0 {
                    self.error(&path, "a `stride` of 0", "write `{ at = 0 }` for the start of the file");
                }
            }
            OffsetPick::Segments { block, .. } => {
                let fixed = step.io_size.as_ref().and_then(|size| size.fixed());
                let fits =
                    fixed.is_some_and(|size| block.0 > 0 && size.0 > 0 && block.0.is_multiple_of(size.0));
                if !fits {
                    let message =
                        "a block of a segment is moved by a whole number of reads or writes of one size";
                    self.error(&path, message, "make `block` a multiple of `io_size`");
                }
            }
            OffsetPick::At(at) => {
                for (fileset, _) in &handle.opened {
                    let Some(fileset) = self.workload.filesets.values().nth(usize::from(*fileset)) else {
                        continue;
                    };
                    if fileset.size.fixed().is_none_or(|size| at >= size) {
                        let message = format!("a file may have no byte {}", at.0);
                        self.error(&path, message, "give the fileset one larger `size`, or lower `at`");
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Program;

    /// The path and the beginning of the message of everything that is refused in a workload with a fileset and a group of
    /// one open file.
    fn refused(fileset: &str, flow: &str) -> Vec<String> {
        let text = format!(
            "until = {{ iterations = 1 }}
             filesets.data = {{ {fileset} }}
             [[groups]]
             name = 'g'
             setup = [{{ op = 'open', file = 'own', flags = ['write'] }}]
             flow = [{flow}]"
        );
        let refused = Program::compile(&toml::from_str(&text).unwrap()).err().unwrap_or_default();
        refused.into_iter().map(|error| format!("{}: {}", error.path, error.message)).collect()
    }

    #[test]
    fn what_cannot_be_meant_is_refused_where_it_stands() {
        let data = "files = 4, size = '1MiB'";
        let read = |offset: &str| format!("{{ op = 'read', io_size = '4KiB', offset = {offset} }}");
        for (fileset, flow, expected) in [
            (data, read("{ zipf = { exponent = 0 } }"), "groups[0].flow[0].offset: an exponent of 0"),
            (
                data,
                read("{ hotspot = { share = 0.5, accesses = 1.5 } }"),
                "groups[0].flow[0].offset: `accesses` is",
            ),
            (data, read("{ strided = { stride = 0 } }"), "groups[0].flow[0].offset: a `stride` of 0"),
            (
                data,
                read("{ segments = { block = '5KiB' } }"),
                "groups[0].flow[0].offset: a block of a segment",
            ),
            (data, read("{ at = '1MiB' }"), "groups[0].flow[0].offset: a file may have no byte 1048576"),
            (
                data,
                format!("{}, {}", read("'sequential'"), read("{ segments = { block = '8KiB' } }")),
                "groups[0].flow[1].offset: all steps of a handle must use the same segments",
            ),
            (data, "{ op = 'stat', file = 'neighbour' }".into(), "groups[0].flow[0].file: `neighbour` means"),
            (
                data,
                "{ op = 'stat', of = 'copy', file = { zipf = { exponent = -1.0 } } }".into(),
                "groups[0].flow[0].file: an exponent",
            ),
            (
                data,
                "{ op = 'open', file = 'own', of = 'symlink' }".into(),
                "groups[0].flow[0].of: `open` of a symbolic",
            ),
            (
                data,
                "{ op = 'chmod', of = 'link' }".into(),
                "groups[0].flow[0].of: `of` means nothing for `chmod`",
            ),
            (data, "{ op = 'allocate' }".into(), "groups[0].flow[0]: `allocate` needs an `io_size`"),
            (
                data,
                "{ op = 'setxattr', io_size = '65KiB' }".into(),
                "groups[0].flow[0].io_size: an extended attribute",
            ),
            (
                data,
                "{ op = 'read', io_size = { distribution = 'weighted', sizes = [] } }".into(),
                "groups[0].flow[0].io_size: there are no sizes",
            ),
            (
                data,
                "{ op = 'read', io_size = { distribution = 'uniform', min = '1KiB', max = '2GiB' } }".into(),
                "groups[0].flow[0].io_size: an I/O of more than 1 GiB",
            ),
            (
                data,
                "{ op = 'truncate', io_size = { distribution = 'uniform', min = 1, max = 2 } }".into(),
                "groups[0].flow[0].io_size: `truncate` needs one size",
            ),
            (
                "files = 1, size = 1, tree = { depth = 0 }",
                "{ op = 'fstat' }".into(),
                "filesets.data.tree: `depth` and `branch` must be at least 1",
            ),
            (
                "files = 1, size = 1, tree = { depth = 9, branch = 9 }",
                "{ op = 'fstat' }".into(),
                "filesets.data.tree: a tree has at most",
            ),
            (
                "files = 1, size = 1, directory_width = 1, tree = { depth = 1 }",
                "{ op = 'fstat' }".into(),
                "filesets.data.tree: the files of a tree",
            ),
        ] {
            let found = refused(fileset, &flow);
            assert!(found.len() == 1 && found[0].starts_with(expected), "{flow}: {found:?}");
        }
        let stride = read("{ strided = { stride = 10000 } }");
        assert_eq!(refused(data, &stride), [""; 0]);
        assert_eq!(refused(data, &read("{ segments = { block = '8KiB', shift = 3 } }")), [""; 0]);
    }
}
