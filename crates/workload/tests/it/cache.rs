//! Cache control and hooks.

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use benchmaster_record::model::Workload;
use benchmaster_workload::cache::{self, CacheControl, CacheError};
use benchmaster_workload::conduct::{Alone, Share};
use benchmaster_workload::execute::ExecuteError;

use crate::bench::{Bench, count, workload};

const DATA: u64 = 8 << 20;

fn reading() -> Workload {
    workload(
        "until = { iterations = 1 }
         filesets.data = { files = 8, size = '1MiB' }
         [[groups]]
         name = 'g'
         setup = [{ op = 'open', file = 'own' }]
         flow = [{ op = 'read', io_size = '4KiB' }]",
    )
}

/// What the kernel does on the file system of a directory when it is told that pages are not needed.
#[derive(Debug, PartialEq)]
enum Advice {
    Drops,
    /// Memory is the storage.
    Keeps,
    Unknown,
}

fn advice(directory: &Path) -> Advice {
    const EXT4: i64 = 0xef53;
    const XFS: i64 = 0x5846_5342;
    const BTRFS: i64 = 0x9123_683e;
    const TMPFS: i64 = 0x0102_1994;
    const RAMFS: i64 = 0x8584_58f6;
    match rustix::fs::statfs(directory).unwrap().f_type {
        EXT4 | XFS | BTRFS => Advice::Drops,
        TMPFS | RAMFS => Advice::Keeps,
        _ => Advice::Unknown,
    }
}

#[test]
fn fadvise_empties_the_page_cache_of_the_files() {
    let shared_memory = Path::new("/dev/shm");
    let temporary = std::env::temp_dir();
    for directory in [temporary.as_path(), shared_memory].into_iter().filter(|path| path.is_dir()) {
        let mut bench = Bench::on(directory);
        let kept = bench.run(&reading());
        assert_eq!((kept.cache.requested.as_str(), kept.cache.done.as_str()), ("keep", "nothing"));
        bench.cache = CacheControl::Fadvise;
        let advised = bench.run(&reading());
        assert_eq!(advised.cache.requested, "fadvise");
        assert_eq!(advised.cache.done, "fdatasync and POSIX_FADV_DONTNEED on 8 files");
        assert!(advised.filesets[0].reused);
        let cached = advised.filesets[0].cached_bytes.unwrap();
        match advice(directory) {
            Advice::Drops => {
                assert!(cached < DATA / 20, "{cached} bytes are still cached in {}", directory.display())
            }
            Advice::Keeps => assert_eq!(cached, DATA, "{}", directory.display()),
            Advice::Unknown => assert!(cached <= DATA),
        }
    }
}

#[test]
fn a_workload_that_does_not_read_asks_nothing_of_the_cache() {
    let mut bench = Bench::new();
    let recording = bench.run(&workload(
        "until = { iterations = 1 }
         filesets.data = { files = 1, size = '4KiB' }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]",
    ));
    assert_eq!(recording.filesets[0].cached_bytes, None);
}

#[test]
fn dropping_caches_without_being_root_is_an_error_and_nothing_is_tried_instead() {
    let drop_caches = || {
        let result = cache::control(CacheControl::Drop, Path::new("/"), &[], &AtomicBool::new(false));
        result.unwrap_err().to_string()
    };
    let as_nobody = move || {
        // SAFETY: the raw system call changes this thread's user alone (the C library would change all threads'), and the
        // thread ends right after.
        let result = unsafe { libc::syscall(libc::SYS_setresuid, 65534, 65534, 65534) };
        // Not root in the first place: nothing to give up.
        assert!(result == 0 || !rustix::process::geteuid().is_root());
        drop_caches()
    };
    let error = std::thread::spawn(as_nobody).join().unwrap();
    assert!(error.starts_with("cannot drop caches through /proc/sys/vm/drop_caches: "), "{error}");
    assert!(error.ends_with("; run as root, or use `cache = \"fadvise\"` or a `cache_hook`"), "{error}");
}

#[test]
fn the_hook_knows_the_target_and_is_recorded() {
    let mut bench = Bench::new();
    let file = bench.target.path().join("seen");
    let command = format!("printf '%s %s' \"$BENCHMASTER_TARGET\" \"$PWD\" > {}", file.display());
    bench.hook(command.clone());
    let recording = bench.run(&reading());
    let expected = format!("{} /", bench.target.path().display());
    assert_eq!(std::fs::read_to_string(file).unwrap(), expected);
    assert_eq!(recording.cache.requested, format!("keep, then the hook `{command}`"));
    assert_eq!(recording.cache.done, format!("nothing; ran `{command}`"));
}

#[test]
fn a_hook_that_fails_fails_the_run_with_what_it_printed() {
    let mut bench = Bench::new();
    // More than a pipe holds, which nobody would read.
    bench.hook("yes | head -c 200000; echo out; echo err >&2; exit 3");
    let error = bench.try_run(&reading()).unwrap_err();
    assert!(matches!(error, ExecuteError::Cache(CacheError::Hook { .. })));
    let text = error.to_string();
    assert!(text.contains("failed (exit status: 3): "), "{text}");
    assert!(text.ends_with("y\nout\nerr") && text.len() < 5000, "{text}");
    bench.hook = None;
    assert_eq!(count(&bench.run(&reading()), "read"), 1, "the area can be used again");
}

#[test]
fn a_hook_that_takes_too_long_is_killed_with_all_it_started() {
    let mut bench = Bench::new();
    let pids = bench.target.path().join("pids");
    let command = format!("echo begun; sleep 600 & echo $! > {}; wait", pids.display());
    bench.hook = Some((command, Duration::from_millis(500)));
    let began = Instant::now();
    let error = bench.try_run(&reading()).unwrap_err().to_string();
    assert!(error.ends_with("was killed after 0.5 s (`hook_timeout`): begun"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(300));
    let child: i32 = std::fs::read_to_string(pids).unwrap().trim().parse().unwrap();
    // Killed, though whoever inherited it may not have collected it yet.
    for _ in 0..1000 {
        let state = std::fs::read_to_string(format!("/proc/{child}/stat"));
        match state.ok().and_then(|text| Some(text.rsplit_once(") ")?.1.chars().next()? == 'Z')) {
            None | Some(true) => return,
            Some(false) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
    panic!("the hook's child lives on");
}

#[test]
fn a_hook_that_is_stopped_ends_at_once() {
    let mut bench = Bench::new();
    bench.hook("touch $BENCHMASTER_TARGET/begun; sleep 600");
    let begun = bench.target.path().join("begun");
    std::thread::scope(|scope| {
        let Bench { area, stop, hook, .. } = &mut bench;
        let options = benchmaster_workload::execute::Options {
            share: Share::all(1),
            stagger: Duration::ZERO,
            neighbours: 1,
            seed: 1,
            fileset_seed: 1,
            interval_ns: 1_000_000_000,
            cache: CacheControl::Keep,
            hook: hook.as_ref().map(|(command, timeout)| (command.as_str(), *timeout * 10)),
            max_errors: 1,
            ledgers: Path::new("/tmp"),
            stop,
        };
        let stop = &*stop;
        scope.spawn(move || {
            while !begun.exists() {
                std::thread::sleep(Duration::from_millis(5));
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
        });
        let result = benchmaster_workload::execute::execute(
            area,
            "w",
            &reading(),
            &options,
            &mut Alone,
            None,
            &mut |_| {},
        );
        assert!(matches!(result, Err(ExecuteError::Stopped)), "{result:?}");
    });
}

#[test]
fn no_file_of_the_target_is_open_while_the_hook_runs() {
    let mut bench = Bench::new();
    // The hook's parent is this process. Other tests have files open, but in targets of their own.
    bench.hook("ls -l /proc/$PPID/fd /proc/$PPID/cwd | grep \"$BENCHMASTER_TARGET\"; test $? = 1");
    bench.run(&reading());
    bench.run(&reading());
}

#[test]
fn a_target_that_is_gone_after_the_hook_is_an_error_and_nothing_else_is_written() {
    let mut bench = Bench::new();
    let path = bench.area.path().to_owned();
    bench.hook(format!("mv {0} {0}.away", path.display()));
    let error = bench.try_run(&reading()).unwrap_err().to_string();
    assert_eq!(error, format!("cannot open `{}`: No such file or directory (os error 2)", path.display()));
    bench.hook = None;
    assert_eq!(bench.try_run(&reading()).unwrap_err().to_string(), error, "and again, while it is not there");
    std::fs::rename(path.with_extension("away"), &path).unwrap();
    assert!(bench.run(&reading()).filesets[0].reused);
}
