//! Filesets in nested directories.

use crate::bench::{Bench, count, workload};

#[test]
pub(crate) fn a_tree_has_directories_in_directories_and_files_in_all_of_them() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "filesets.data = { files = 14, size = '1KiB', tree = { depth = 2, branch = 2 } }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat', file = 'once' }]",
    ));
    assert_eq!(count(&recording, "stat"), 14);
    assert_eq!(bench.names("data/c0"), ["d0", "d1", "f00000000", "f00000001"]);
    assert_eq!(bench.names("data/c0/d1"), ["d0", "d1", "f00000004", "f00000005"]);
    assert_eq!(bench.names("data/c0/d1/d1"), ["f00000012", "f00000013"]);
}

#[test]
pub(crate) fn files_of_leaves_are_created_listed_and_removed() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "filesets.data = { files = 9, size = 0, prefill = 0.0, tree = { depth = 2, branch = 3, leaves_only = true } }
         [[groups]]
         name = 'g'
         flow = [{ op = 'create', flags = ['write', 'exclusive'] }, { op = 'close' }, { op = 'readdir', file = 'same' },
                 { op = 'unlink', file = 'same' }, { op = 'create', file = 'same', flags = ['write'] }, { op = 'close' }]",
    ));
    assert_eq!((count(&recording, "readdir"), count(&recording, "unlink")), (9, 9));
    assert_eq!(bench.names("data/c0"), ["d0", "d1", "d2"]);
    assert_eq!(bench.names("data/c0/d2"), ["d0", "d1", "d2"]);
    assert_eq!(bench.names("data/c0/d2/d1"), ["f00000007"]);
}
