use crate::{BUILT_IN, WorkloadSpec};
use benchmaster_workload::program::{Access, Program};
/// The paths at which parameters of the built-in `name` are refused.
fn refused(name: &str, parameters: &str) -> Vec<String> {
    let table: toml::Table = parameters.parse().unwrap();
    let spec = WorkloadSpec::deserialize(name, table).unwrap().unwrap();
    assert_eq!(spec.use_name(), name);
    match spec.expand("w") {
        // What expands must compile: a user knows parameters, not the flow behind them.
        Ok(workload) => Program::compile(&workload).map(|_| Vec::new()).unwrap(),
        Err(errors) => errors.into_iter().map(|error| error.path).collect(),
    }
}

#[test]
fn defaults_make_sense() {
    for built_in in BUILT_IN.iter().filter(|built_in| built_in.name != "custom") {
        assert_eq!(refused(built_in.name, ""), [""; 0], "{}", built_in.name);
    }
    assert!(WorkloadSpec::deserialize("nothing", toml::Table::new()).is_none());
}

#[test]
fn contradictions_are_refused_at_the_parameter_that_mends_them() {
    for (name, parameters, path) in [
        ("sequential-read", "workers = 0", "workers"),
        ("sequential-read", "io_size = 0", "io_size"),
        ("sequential-read", "file_size = 0\nio_size = 0", "io_size"),
        ("sequential-read", "files = 0", "files"),
        ("sequential-read", "duration = '0s'", "duration"),
        ("sequential-read", "io_size = '1MiB'\nfile_size = '64KiB'", "io_size"),
        ("sequential-read", "queue_depth = 4", "queue_depth"),
        ("sequential-read", "sync = 'o_sync'", "sync"),
        ("sequential-read", "prefill = false", "prefill"),
        ("sequential-write", "io = 'io_uring'\nqueue_depth = 2\nsync = 'fsync'", "sync"),
        ("random-write", "direct = true\nio_size = 1000\nfile_size = '64KiB'", "io_size"),
        ("random-write", "verify = true\nio_size = 1000\nfile_size = '64KiB'", "io_size"),
        ("small-file-read", "verify = true\nfile_size = 1000", "file_size"),
        ("small-file-read", "files = 0", "files"),
        ("file-creation", "files = 0", "files"),
        ("write-latency", "sync = 'fsync'", "sync"),
        ("metadata", "directory_entries = 0", "directory_entries"),
        ("file-creation", "verify = true\nfile_size = 1000", "file_size"),
        ("write-latency", "verify = true\nio_size = 1000", "io_size"),
        ("locked-read", "files = 10\nworkers = 3", "files"),
        ("locked-read", "repeats = 0", "repeats"),
        ("file-server", "files = 20\nworkers = 5", "files"),
        ("file-server", "verify = true\nio_size = 1000", "io_size"),
        ("web-server", "reads = 0", "reads"),
        ("mail-server", "append_size = 0", "append_size"),
        ("bonnie", "file_size = '4KiB'", "io_size"),
        ("bonnie", "verify = true\nchar_size = 1", "char_size"),
        ("delegation-recall", "holders = 0", "holders"),
        ("delegation-grant", "case = 'held-for-writing'", "case"),
        ("oltp", "log_size = '4KiB'", "log_io_size"),
        ("oltp", "direct = true\nio_size = 1000", "io_size"),
        ("client-network", "workers = 0", "workers"),
        ("client-network", "duration = '0s'", "duration"),
        ("client-network", "test = 'read'\nio_size = '2GiB'", "io_size"),
        ("client-network", "test = 'write'\nverify = true\nio_size = 1000", "io_size"),
        ("client-network", "test = 'read'\ndirect = true\nio_size = 1000", "io_size"),
        ("client-cache", "repeats = 0", "repeats"),
        ("client-cache", "verify = true\nfile_size = 1000", "io_size"),
        ("client-locks", "part_size = 5000", "part_size"),
        ("client-locks", "verify = true\nio_size = 1000\npart_size = 4000", "io_size"),
        ("client-structures", "dirty = 5000", "dirty"),
        ("client-structures", "workers = 0", "workers"),
        ("software-build", "workers = 0", "workers"),
        ("client-scheduling", "order = 'strided'\nstride = '1KiB'", "stride"),
        ("client-scheduling", "file_size = 1500", "file_size"),
        ("ior", "block_size = '1000KB'", "block_size"),
        ("ior", "phases = 'read'\nsync = 'o_sync'", "sync"),
        ("ior", "phases = 'read'\nfsync = true", "fsync"),
        ("ior", "phases = 'write'\nreorder = true", "reorder"),
        ("ior", "verify = true\ntransfer_size = 1000\nblock_size = 1000", "transfer_size"),
        ("mdtest", "items = 0", "items"),
        ("mdtest", "phases = []", "phases"),
        ("mdtest", "phases = ['stat', 'stat']", "phases"),
        ("mdtest", "unique = true\ndepth = 2", "unique"),
        ("mdtest", "depth = 30\nbranch = 2", "depth"),
        ("mdtest", "phases = ['stat']\nfsync = true", "fsync"),
        ("smallfile", "operation = 'stat'\nfsync = true", "fsync"),
        ("smallfile", "operation = 'append'\nverify = true", "verify"),
        ("smallfile", "operation = 'append'\nfile_size = 0", "file_size"),
        ("smallfile", "operation = 'read'\nverify = true\nio_size = 1000", "io_size"),
        ("mixed", "reads = 1.5", "reads"),
        ("mixed", "reads = 1\nsync = 'fsync'", "sync"),
        ("mixed", "offset = 'append'", "offset"),
        ("mixed", "io_size = '2GiB'", "io_size"),
        ("mixed", "verify = true\nio_size = 1000", "io_size"),
        ("mixed", "io_size = { distribution = 'weighted', sizes = [] }", "io_size"),
        ("postmark", "bias_read = 11", "bias_read"),
        ("postmark", "bias_create = 0", "bias_create"),
        ("postmark", "size_min = 2000\nsize_max = 1000", "size_min"),
        ("tree-extract", "directory_width = 0", "directory_width"),
        ("tree-extract", "file_size = 0", "file_size"),
        ("tree-clone", "files = 0", "files"),
        ("software-build", "source_size = 0", "source_size"),
        ("software-build", "verify = true\nio_size = 1000", "io_size"),
        ("replay", "trace = ''", "trace"),
        ("replay", "trace = '/no/such/file'", "trace"),
        ("replay", "root = '/elsewhere'\ncwd = '/somewhere'", "trace"),
        ("replay", "root = 'relative'", "root"),
        ("replay", "cwd = 'relative'", "cwd"),
    ] {
        let found = refused(name, parameters);
        assert!(found.iter().any(|found| found == path), "{name} with {parameters}: {found:?}");
    }
}

#[test]
fn parameters_that_fit_together_are_accepted() {
    for (name, parameters) in [
        ("random-read", "io = 'io_uring'\nqueue_depth = 32\nio_size = '4KiB'\ndirect = true\nverify = true"),
        ("sequential-write", "prefill = false\nsync = 'o_dsync'\nrate = '100/s'\nbytes = '1GiB'"),
        ("sequential-write", "file_size = 100000\nio_size = 4096\nverify = true"),
        ("random-write", "sync = 'fdatasync'\nsharing = 'shared'\nfileset = 'common'\nwarm_up = '1s'"),
        ("file-creation", "file_size = '256KiB'\nfsync = true\nworkers = 4\ndirectory_width = 100"),
        ("write-latency", "file_size = 1000\nworkers = 3\nsync = 'o_sync'"),
        ("small-file-read", "file_size = '3MiB'\nverify = true"),
        ("locked-read", "reopen = true\nlock = 'write'\nsharing = 'shared'\nworkers = 4\nverify = true"),
        ("file-server", "workers = 10\nverify = true\nrate = '100/s'"),
        ("web-server", "directory_width = 0\nverify = true"),
        ("mail-server", "workers = 200\nverify = true"),
        ("bonnie", "column = 'rewrite'\nverify = true"),
        ("bonnie", "column = 'seeks'\nprefill = false\nfileset = 'b'"),
        ("bonnie", "column = 'char-read'\nchar_size = 1"),
        ("delegation-recall", "rounds = 3\nholders = 4"),
        ("delegation-grant", "case = 'stat-first'\nopens = 1"),
        ("oltp", "direct = true\nverify = true\nthink_time = '0s'"),
        ("client-network", "test = 'rate'\nverify = true\nio_size = 0"),
        ("client-network", "test = 'write'\nverify = true\ndirect = true\nworkers = 2"),
        ("client-cache", "file_size = 4096\nverify = true\nworkers = 3"),
        ("client-locks", "files = 'own'\noperation = 'stat'\nverify = true"),
        ("client-locks", "operation = 'read'\nverify = true"),
        ("ior", "file_per_process = true\nreorder = true\nsync = 'o_dsync'\ndirect = true\nverify = true"),
        ("ior", "phases = 'read'\nfileset = 'common'\nsegments = 1"),
        ("mdtest", "file_size = 3901\ndepth = 3\nbranch = 10\nleaves_only = true\nneighbour = true"),
        ("mdtest", "phases = ['create']\nunique = true\nfsync = true\ndirectories = 10"),
        ("smallfile", "operation = 'ls-l'\ndirectory_width = 0\npause = '1ms'"),
        ("smallfile", "operation = 'swift-put'\nverify = true"),
        ("smallfile", "operation = 'create'\nfile_size = 0\nverify = true"),
        ("mixed", "io_size = '4KiB'\ndirect = true\nsync = 'o_sync'\nsharing = 'shared'\nrate = '100/s'"),
        ("mixed", "io_size = { distribution = 'uniform', min = '4KiB', max = '64KiB' }\nverify = true"),
        ("postmark", "bias_read = 0\nbias_create = 10\nbuffering = false\nsubdirectories = 10"),
        ("postmark", "bias_read = 10\nbias_create = 0\nfiles = 501\nworkers = 3\nsize_max = 500"),
        ("tree-extract", "verify = true\nworkers = 3"),
        ("tree-clone", "verify = true\nworkers = 3"),
        ("software-build", "compile_time = '10ms'\nverify = true\nheader_size = '1KiB'"),
        ("client-structures", "order = 'random'\nopen_files = 1001\nverify = true"),
    ] {
        assert_eq!(refused(name, parameters), [""; 0], "{name} with {parameters}");
    }
}

#[test]
fn over_the_wire_any_number_of_operations_is_outstanding() {
    let parameters: toml::Table = "queue_depth = 4".parse().unwrap();
    let spec = WorkloadSpec::deserialize("random-read", parameters).unwrap().unwrap();
    let workload = spec.expand_for("w", Access::Nfs).unwrap();
    assert_eq!(Program::compile_for(&workload, Access::Nfs).unwrap().groups[0].queue_depth, 4);
    let refused = Program::compile(&workload).unwrap_err();
    assert_eq!(refused[0].path, "groups[0].queue_depth");
}

#[test]
fn directories_are_nested_as_filebench_nests_them() {
    use super::common::nested;
    // 10,000 files by 20: 500 directories, in two levels.
    let tree = nested(10_000, 20).unwrap();
    assert_eq!((tree.depth, tree.branch, tree.leaves_only), (2, 23, true));
    assert_eq!([nested(400, 20), nested(1_000_000, 0), nested(1000, 1_000_000)], [None; 3]);
    assert_eq!(nested(200_000, 20).map(|tree| tree.depth), Some(3));
}
