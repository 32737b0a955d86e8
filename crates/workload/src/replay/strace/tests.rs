use super::super::plan::{After, NONE};
use super::*;

fn plan_of(text: &str) -> Plan {
    read(text.as_bytes(), &Where::new(Some("/w"), None).unwrap()).unwrap()
}

/// The calls of a thread in short: kind, object, offset, length, moved, error.
fn short(plan: &Plan, thread: usize) -> Vec<String> {
    let calls = plan.calls[plan.threads[thread].calls.clone()].iter();
    let text = |call: &Call| {
        let Some(kind) = call.kind else { return "wait".into() };
        let object = if call.on_handle() {
            format!("#{}", call.object)
        } else {
            String::from_utf8_lossy(plan.paths.get(call.object)).into_owned()
        };
        let mut text = format!("{} {object}", kind.name());
        if call.offset != u64::MAX {
            text += &format!(" @{}", call.offset);
        }
        if call.length > 0 {
            text += &format!(" {}/{}", call.moved, call.length);
        }
        if call.error > 0 {
            text += &format!(" !{}", call.error);
        }
        text
    };
    calls.map(text).collect()
}

fn initial(plan: &Plan) -> Vec<String> {
    let entry = |initial: &super::super::plan::Initial| {
        let path = String::from_utf8_lossy(plan.paths.get(initial.path)).into_owned();
        if initial.directory { format!("{path}/") } else { format!("{path} {}", initial.size) }
    };
    plan.initial.iter().map(entry).collect()
}

#[test]
fn descriptors_positions_and_duplicates_become_offsets_in_open_files() {
    let plan = plan_of(
        r#"7 100.000000 openat(AT_FDCWD, "a", O_RDWR) = 3 <0.1>
7 100.000100 read(3, "x"..., 4096) = 4096 <0.1>
7 100.000200 dup(3) = 4 <0.1>
7 100.000300 read(4, "x"..., 4096) = 100 <0.1>
7 100.000400 lseek(3, -50, SEEK_CUR) = 4146 <0.1>
7 100.000500 writev(3, [{iov_base="ab", iov_len=2}, {iov_base="c", iov_len=1}], 2) = 3 <0.1>
7 100.000600 pwrite64(3, "abc", 3, 9000) = 3 <0.1>
7 100.000700 close(3) = 0 <0.1>
7 100.000800 fsync(4) = 0 <0.1>
7 100.000900 dup2(1, 4) = 4 <0.1>
7 100.001000 write(1, "hello", 5) = 5 <0.1>
"#,
    );
    let expected = [
        "open a",
        "read #0 @0 4096/4096",
        "read #0 @4096 100/4096",
        "write #0 @4146 3/3",
        "write #0 @9000 3/3",
        "fsync #0",
        "close #0",
    ];
    assert_eq!(short(&plan, 0), expected);
    assert_eq!(initial(&plan), ["a 4196"], "as large as what was read of it");
    let times: Vec<u64> = plan.calls.iter().map(|call| call.at_ns / 1000).collect();
    assert_eq!(times, [0, 100, 300, 500, 600, 800, 900]);
    let left: Vec<_> = plan.left_out.iter().map(|(what, count)| (what.why, &what.call[..], *count)).collect();
    assert_eq!(left, [(Why::Elsewhere, "write", 1)]);
}

#[test]
fn names_are_followed_through_directories_failures_and_renames() {
    let plan = plan_of(
        r#"7 1.0 stat("/w/none", 0x7ff) = -1 ENOENT (No such file or directory) <0.1>
7 1.1 newfstatat(AT_FDCWD, "big", {st_mode=S_IFREG|0644, st_size=10000, ...}, 0) = 0 <0.1>
7 1.2 mkdir("d", 0777) = 0 <0.1>
7 1.3 chdir("d") = 0 <0.1>
7 1.4 openat(AT_FDCWD, "../old/x", O_RDONLY) = 3 <0.1>
7 1.5 rename("/w/old", "/w/new") = 0 <0.1>
7 1.6 openat(AT_FDCWD, "/w/new/y", O_RDONLY) = 4 <0.1>
7 1.7 openat(AT_FDCWD, "../new", O_RDONLY|O_DIRECTORY) = 5 <0.1>
7 1.8 getdents64(5, 0x1 /* 4 entries */, 32768) = 112 <0.1>
7 1.9 getdents64(5, 0x1 /* 0 entries */, 32768) = 0 <0.1>
7 2.0 openat(5, "z", O_WRONLY|O_CREAT|O_EXCL, 0666) = 6 <0.1>
7 2.1 unlinkat(5, "y", 0) = 0 <0.1>
7 2.2 openat(AT_FDCWD, "/etc/passwd", O_RDONLY) = 7 <0.1>
7 2.3 read(7, "root"..., 4096) = 500 <0.1>
7 2.4 mkdir("/w/d", 0777) = -1 EEXIST (File exists) <0.1>
"#,
    );
    let expected = [
        "stat none !2",
        "stat big",
        "mkdir d",
        "stat d",
        "open old/x",
        "rename old",
        "open new/y",
        "stat new",
        "readdir new",
        "create new/z",
        "unlink new/y",
        "mkdir d !17",
    ];
    assert_eq!(short(&plan, 0), expected);
    assert_eq!(initial(&plan), ["old/", "big 10000", "old/x 0", "old/y 0"]);
    assert_eq!(plan.left_out.values().sum::<u64>(), 2, "{:?}", plan.left_out);
}

#[test]
fn threads_share_descriptors_and_processes_inherit_them() {
    let plan = plan_of(
        r#"7 1.0 openat(AT_FDCWD, "a", O_RDONLY|O_CLOEXEC) = 3 <0.1>
7 1.1 clone3({flags=CLONE_VM|CLONE_FS|CLONE_FILES, child_tid=0x7f}, 88 <unfinished ...>
8 1.15 openat(AT_FDCWD, "b", O_RDONLY) = 4 <0.1>
7 1.2 <... clone3 resumed>) = 8 <0.1>
7 1.3 read(4, "x", 10) = 10 <0.1>
7 1.4 close(3 <unfinished ...>
8 1.41 openat(AT_FDCWD, "c", O_RDONLY) = 3 <0.1>
7 1.42 <... close resumed>) = 0 <0.1>
8 1.5 read(3, "x", 10) = 10 <0.1>
7 1.6 fork() = 9 <0.1>
9 1.7 read(3, "x", 10) = 10 <0.1>
9 1.8 close(3) = 0 <0.1>
9 1.85 close(4) = 0 <0.1>
9 1.9 +++ exited with 0 +++
8 2.0 read(3, "x", 10) = 5 <0.1>
7 2.1 exit_group(0) = ?
8 2.2 +++ exited with 0 +++
7 2.3 +++ exited with 0 +++
"#,
    );
    assert_eq!(plan.threads.iter().map(|thread| &thread.name[..]).collect::<Vec<_>>(), ["7", "8", "9"]);
    assert_eq!(short(&plan, 0), ["open a", "read #1 @0 10/10", "close #0", "close #1", "close #2"]);
    assert_eq!(short(&plan, 1), ["open b", "open c", "read #2 @0 10/10", "read #2 @20 5/10"]);
    assert_eq!(
        short(&plan, 2),
        ["wait", "read #2 @10 10/10"],
        "the position is shared, and so is the open file"
    );
    let after = |thread: usize, call: usize| plan.calls[plan.threads[thread].calls.start + call].after;
    assert_eq!(after(0, 1), After { thread: 1, call: 0 }, "the open of another thread");
    assert_eq!(after(2, 0), After { thread: 0, call: 2 }, "earlier calls of its process");
    assert_eq!(after(2, 1), After { thread: 1, call: 1 });
    assert_eq!(after(0, 0), After::NOTHING);
    let waits = plan.calls[plan.threads[0].calls.clone()].iter().filter(|call| call.after.thread != NONE);
    assert!(waits.count() >= 2, "the last close waits for those who use the file");
}

#[test]
fn what_is_not_replayed_is_counted_by_name() {
    let plan = plan_of(
        r#"7 1.0 openat(AT_FDCWD, "a", O_RDONLY) = 3 <0.1>
7 1.1 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3, 0) = 0x7f <0.1>
7 1.2 mmap(NULL, 4096, PROT_READ, MAP_ANONYMOUS, -1, 0) = 0x7f <0.1>
7 1.3 new_call(3, "x") = 0 <0.1>
7 1.4 fcntl(3, F_SETLK, {l_type=F_RDLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = 0 <0.1>
7 1.5 futex(0x1, FUTEX_WAIT, 0, NULL) = 0 <0.1>
this is no line of it
7 1.6 read(3, "abc
7 1.7 pread64(3 <unfinished ...>
"#,
    );
    let left: Vec<_> = plan.left_out.iter().map(|(what, count)| (what.why, &what.call[..], *count)).collect();
    let expected = [
        (Why::Unsupported, "fcntl(F_SETLK)", 1),
        (Why::Unsupported, "mmap", 1),
        (Why::Unknown, "new_call", 1),
        (Why::Incomplete, "line", 1),
        (Why::Incomplete, "pread64", 1),
        (Why::Incomplete, "read", 1),
        (Why::NoFile, "futex", 1),
        (Why::NoFile, "mmap", 1),
    ];
    assert_eq!(left, expected);
    assert_eq!(short(&plan, 0), ["open a"]);
}

#[test]
fn descriptors_that_were_open_before_are_known_by_the_paths_that_strace_shows() {
    let plan = plan_of(
        r#"7 1.0 read(5</w/data/log>, "x", 100) = 100 <0.1>
7 1.1 write(6</w/out>, "x", 7) = 7 <0.1>
7 1.2 openat(AT_FDCWD</w/data>, "more", O_RDONLY) = 7</w/data/more> <0.1>
"#,
    );
    assert_eq!(short(&plan, 0), ["read #0 @0 100/100", "write #1 @0 7/7", "open data/more"]);
    assert_eq!(plan.opened.len(), 2);
    assert!(!plan.opened[0].flags.open().write && plan.opened[1].flags.open().write);
    assert_eq!(initial(&plan), ["data/", "out 0", "data/log 100", "data/more 0"]);
}

#[test]
fn appended_data_go_to_the_end_and_new_files_are_not_made_before() {
    let plan = plan_of(
        r#"7 1.0 openat(AT_FDCWD, "log", O_WRONLY|O_CREAT|O_APPEND, 0666) = 3 <0.1>
7 1.1 write(3, "abc", 3) = 3 <0.1>
7 1.2 openat(AT_FDCWD, "new", O_RDWR|O_CREAT|O_TRUNC, 0666) = 4 <0.1>
7 1.3 write(4, "abcdef", 6) = 6 <0.1>
7 1.4 pread64(4, "ab", 2, 0) = 2 <0.1>
7 1.5 newfstatat(4, "", {st_mode=S_IFREG|0644, st_size=6, ...}, AT_EMPTY_PATH) = 0 <0.1>
"#,
    );
    let append = plan.calls[1];
    assert!(append.flags.0 & Flags::APPENDS != 0 && append.offset == u64::MAX);
    assert_eq!(initial(&plan), ["log 0"], "the trace does not show whether it existed: it may have");
    assert!(plan.calls[0].flags.open().append && plan.calls[2].flags.open().truncate);
}

#[test]
fn what_is_no_trace_is_refused() {
    let place = Where::default();
    assert!(matches!(read(&b"hello\nworld\n"[..], &place), Err(StraceError::NoTrace)));
    assert!(matches!(read(&b""[..], &place), Err(StraceError::NoTrace)));
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(500))]
    #[test]
    fn changed_traces_are_read_or_refused(changes in proptest::collection::vec((0usize..1 << 20, 0usize..1 << 20, 0usize..40), 1..6)) {
        let mut trace = include_bytes!("../example.strace").to_vec();
        for (at, from, length) in changes {
            let (at, from) = (at % trace.len(), from % trace.len());
            let piece = trace[from..(from + length).min(trace.len())].to_vec();
            // Put over what is there, or, every other time, between.
            let end = if length % 2 == 0 { at } else { (at + length).min(trace.len()) };
            trace.splice(at..end, piece);
        }
        let place = Where::new(Some("/"), Some("/home")).unwrap();
        if let Ok(plan) = read(&trace[..], &place) {
            proptest::prop_assert!(plan.threads() > 0 || plan.calls() == 0);
        }
    }
}
