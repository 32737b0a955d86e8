//! Job files of fio as studies.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use benchmaster_import::fio::{self, Keyword, Surroundings};
use benchmaster_import::{ImportError, Imported, Note, NoteKind, to_study};
use benchmaster_record::model::Workload;
use benchmaster_testkit::{Random, damage};
use benchmaster_workload::program::Program;

struct Elsewhere;

impl Surroundings for Elsewhere {
    fn variable(&self, name: &str) -> Option<String> {
        (name == "SIZE").then(|| "64k".into())
    }

    fn include(&self, path: &str) -> io::Result<String> {
        match path {
            "more.inc" => Ok("bs=8k\niodepth=1\n".into()),
            "circle.inc" => Ok("include circle.inc\n".into()),
            "section.inc" => Ok("[other]\n".into()),
            "wrong.inc" => Ok("bs=8k\nbsise=1\n".into()),
            _ => Err(io::Error::new(io::ErrorKind::NotFound, "no such file")),
        }
    }

    fn existing_size(&self) -> Option<u64> {
        None
    }

    fn keyword(&self, keyword: Keyword) -> u64 {
        match keyword {
            Keyword::PageSize => 4096,
            Keyword::MemoryMib => 1000,
            Keyword::Processors => 3,
        }
    }
}

fn import(text: &str) -> Result<Imported, ImportError> {
    let imported = fio::import("dir/some job.fio", text, &Elsewhere)?;
    checked(&imported);
    Ok(imported)
}

/// The study is readable TOML that says the workloads as they are, and they can be carried out.
fn checked(imported: &Imported) {
    let text = to_study(imported);
    let study: toml::Table = text.parse().unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert_eq!(study["study"]["name"].as_str(), Some(imported.name.as_str()));
    for (name, workload) in &imported.workloads {
        let table = study["workload"][name].clone();
        assert_eq!(table.try_into::<Workload>().unwrap(), *workload, "{text}");
        if let Err(errors) = Program::compile(workload) {
            panic!("{errors:?}\n{text}");
        }
    }
    for note in imported.unmet() {
        assert!(text.contains(&format!("# line {}: ", note.line)), "{note}\n{text}");
    }
}

/// The only workload of a job with these options.
fn workload(options: &str) -> Workload {
    let imported = import(&format!("[job]\nsize=64k\n{options}")).unwrap();
    assert_eq!(imported.workloads.len(), 1);
    imported.workloads.into_iter().next().unwrap().1
}

/// The flow of the only group as it is written in a study.
fn flow(options: &str) -> String {
    let workload = workload(options);
    let [group] = workload.groups.as_slice() else { panic!("{workload:?}") };
    steps(&group.flow)
}

fn steps(steps: &[benchmaster_record::model::Step]) -> String {
    serde_json::to_string(steps).unwrap().replace('"', "")
}

fn notes(options: &str, kind: NoteKind) -> Vec<String> {
    let imported = import(&format!("[job]\nsize=64k\n{options}")).unwrap();
    imported.notes.into_iter().filter(|note| note.kind == kind).map(|note| note.text).collect()
}

fn mistakes(text: &str) -> Vec<String> {
    import(text).unwrap_err().mistakes.iter().map(ToString::to_string).collect()
}

#[test]
fn every_kind_of_rw() {
    assert_eq!(flow("rw=read"), "[{op:read,io_size:4KiB,offset:sequential}]");
    assert_eq!(flow("rw=randwrite\nbs=16k"), "[{op:write,io_size:16KiB,offset:random}]");
    assert_eq!(
        flow("rw=randrw\nrwmixread=70\nbs=4k,8k"),
        "[{choose:[{weight:70.0,flow:[{op:read,io_size:4KiB,offset:random}]},\
         {weight:30.0,flow:[{op:write,io_size:8KiB,offset:random}]}]}]"
    );
    assert_eq!(flow("rw=read:8k"), "[{op:read,io_size:4KiB,offset:{strided:{stride:12KiB}}}]");
    assert_eq!(flow("rw=read:-8k"), "[{op:read,io_size:4KiB,offset:reverse}]");
    assert_eq!(notes("rw=read:-8k", NoteKind::Approximated), [""; 0]);
    assert_eq!(notes("rw=randread:8", NoteKind::Approximated), ["rw=randread:8"]);
}

#[test]
fn sizes_of_operations() {
    let weighted = |parts: &str| {
        format!("[{{op:read,io_size:{{distribution:weighted,sizes:[{parts}]}},offset:random}}]")
    };
    assert_eq!(
        flow("rw=randread\nbssplit=4k/10:64k/50:32k/"),
        weighted("{size:4KiB,weight:10.0},{size:64KiB,weight:50.0},{size:32KiB,weight:40.0}")
    );
    assert_eq!(
        flow("rw=randread\nbsrange=4k-12k"),
        weighted("{size:4KiB,weight:1.0},{size:8KiB,weight:1.0},{size:12KiB,weight:1.0}")
    );
    assert_eq!(
        flow("rw=randread\nbsrange=1k-4k\nbs_unaligned"),
        "[{op:read,io_size:{distribution:uniform,min:1KiB,max:4KiB},offset:random}]"
    );
    assert_eq!(flow("rw=randread\nbs=(2*4)k"), "[{op:read,io_size:8KiB,offset:random}]");
    assert_eq!(flow("rw=randread\nbs=2*$pagesize"), "[{op:read,io_size:8KiB,offset:random}]");
    assert_eq!(flow("rw=randread\nbs=${SIZE}"), "[{op:read,io_size:64KiB,offset:random}]");
}

#[test]
fn distributions_of_positions() {
    let offset = |options: &str| flow(&format!("rw=randread\nrandom_distribution={options}"));
    assert_eq!(offset("zipf:1.2"), "[{op:read,io_size:4KiB,offset:{zipf:{exponent:1.2}}}]");
    assert_eq!(offset("pareto:0.2"), "[{op:read,io_size:4KiB,offset:{hotspot:{share:0.2,accesses:0.8}}}]");
    assert_eq!(
        offset("zoned:75/25:25/75"),
        "[{op:read,io_size:4KiB,offset:{hotspot:{share:0.25,accesses:0.75}}}]"
    );
    assert_eq!(notes("rw=randread\nrandom_distribution=zoned:75/25:25/75", NoteKind::Approximated), [""; 0]);
    assert_eq!(
        flow("rw=randread\npercentage_random=25"),
        "[{choose:[{weight:25.0,flow:[{op:read,io_size:4KiB,offset:random}]},\
         {weight:75.0,flow:[{op:read,io_size:4KiB,offset:sequential}]}]}]"
    );
}

#[test]
fn flushes_and_pauses() {
    assert_eq!(
        flow("rw=write\nfsync=8"),
        "[{repeat:8,flow:[{op:write,io_size:4KiB,offset:sequential}]},{op:fsync}]"
    );
    assert_eq!(flow("rw=write\nfdatasync=1"), "[{op:write,io_size:4KiB,offset:sequential},{op:fdatasync}]");
    assert_eq!(flow("rw=read\nthinktime=200"), "[{op:read,io_size:4KiB,offset:sequential},{pause:200us}]");
    assert_eq!(
        flow("rw=read\nthinktime=1ms\nthinktime_blocks=4"),
        "[{repeat:4,flow:[{op:read,io_size:4KiB,offset:sequential}]},{pause:1ms}]"
    );
    assert_eq!(
        flow("rw=read\nthinktime=1s\nthinktime_iotime=9"),
        "[{repeat:{duration:9s},flow:[{op:read,io_size:4KiB,offset:sequential}]},{pause:1s}]"
    );
    // A flush at the end is part of what is measured.
    assert_eq!(
        flow("rw=write\nend_fsync=1"),
        "[{repeat:16,flow:[{op:write,io_size:4KiB,offset:sequential}]},{op:fsync}]"
    );
}

#[test]
fn several_outstanding_are_a_fixed_round() {
    let options = "rw=randrw\nrwmixread=75\nioengine=io_uring\niodepth=8";
    let group = workload(options).groups.remove(0);
    assert_eq!((group.queue_depth, group.flow.len()), (8, 4));
    assert_eq!(notes(options, NoteKind::Approximated), ["rw=randrw", "rwmixread=75"]);
    // A flush lets nothing be outstanding.
    let options = "rw=randwrite\nfsync=4\nioengine=io_uring\niodepth=8";
    assert_eq!(workload(options).groups[0].queue_depth, 1);
    assert_eq!(notes(options, NoteKind::Approximated), ["iodepth=8"]);
}

#[test]
fn limits() {
    let until = |options: &str| serde_json::to_string(&workload(options).until).unwrap().replace('"', "");
    assert_eq!(until("rw=read"), "{duration:null,iterations:null,bytes:64KiB}");
    assert_eq!(until("rw=read\nio_size=1m"), "{duration:null,iterations:null,bytes:1MiB}");
    assert_eq!(until("rw=read\nio_size=50%"), "{duration:null,iterations:null,bytes:32KiB}");
    assert_eq!(until("rw=read\nloops=3"), "{duration:null,iterations:null,bytes:192KiB}");
    assert_eq!(until("rw=read\nnumber_ios=5"), "{duration:null,iterations:null,bytes:20KiB}");
    assert_eq!(until("rw=read\nruntime=10"), "{duration:10s,iterations:null,bytes:64KiB}");
    assert_eq!(until("rw=read\nruntime=1m\ntime_based"), "{duration:1min,iterations:null,bytes:null}");
}

#[test]
fn the_response_has_the_unit_of_the_rate() {
    let response = |jobs: &str| import(&format!("[global]\nsize=64k\n{jobs}")).unwrap().response;
    let throughput = |name: &str| Some(format!("{name}.throughput"));
    assert_eq!(response("[job]\nrw=write\nrate=20m"), throughput("job"));
    assert_eq!(response("[job]\nrw=write\nrate_iops=20"), None);
    assert_eq!(response("[job]\nrw=write\nrate_iops=20\nrate=20m"), None);
    assert_eq!(response("[job]\nrw=write"), None);
    assert_eq!(response("[job]\nioengine=filestat\nrate=20m"), None);
    assert_eq!(response("[a]\nrw=write\nrate=20m\n[b]\nrw=read\nrate=10m"), throughput("a-b"));
    assert_eq!(response("[a]\nrw=write\nrate=20m\n[b]\nrw=read"), None);
    assert_eq!(response("[a]\nrw=write\nrate=20m\n[b]\nrw=read\nstonewall"), throughput("a"));
    let text = to_study(&import("[job]\nsize=64k\nrw=write\nrate=20m").unwrap());
    assert!(text.contains("[design]\nresponse = \"job.throughput\""), "{text}");
}

#[test]
fn files_and_those_who_share_them() {
    let imported = import(
        "[global]\nsize=1m\nfilename=/mnt/data/one:/mnt/data/two\n[write]\nrw=write\n[read]\nstonewall\nrw=read\nnumjobs=2\n",
    )
    .unwrap();
    assert_eq!(imported.directory.as_deref(), Some("/mnt/data"));
    let names: Vec<&str> = imported.workloads.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["write", "read"]);
    // Both describe the files alike, so that they are the same; fio makes files that are read before all jobs.
    let (write, read) = (&imported.workloads[0].1, &imported.workloads[1].1);
    assert_eq!(write.filesets, read.filesets);
    assert_eq!(write.filesets.keys().collect::<Vec<_>>(), ["one", "two"]);
    assert!(write.filesets.values().all(|fileset| fileset.files == 1 && fileset.prefill == 1.0));
    assert_eq!(
        steps(&read.groups[0].flow),
        "[{op:read,handle:f0,io_size:4KiB,offset:sequential},{op:read,handle:f1,io_size:4KiB,offset:sequential}]"
    );
    // Without a name every job and clone has files of its own, which only exist before when they are read.
    let imported = import("[a]\nsize=1m\nrw=write\nnumjobs=3\n[b]\nsize=2m\nrw=read\n").unwrap();
    let [(name, both)] = imported.workloads.as_slice() else { panic!("{imported:?}") };
    assert_eq!(name, "a-b");
    let files: Vec<_> = both.filesets.iter().map(|(name, f)| (name.as_str(), f.files, f.prefill)).collect();
    assert_eq!(files, [("a", 3, 0.0), ("b", 1, 1.0)]);
}

/// Their names alone would take all memory.
#[test]
fn billions_of_files_are_a_number() {
    let workload = workload("rw=read\nfilesize=4k\nnrfiles=4294967295");
    let files: Vec<u64> = workload.filesets.values().map(|fileset| fileset.files).collect();
    assert_eq!(files, [4_294_967_295]);
}

#[test]
fn jobs_that_end_differently_run_together() {
    let imported = import("[a]\nsize=64k\nrw=read\n[b]\nsize=128k\nrw=read\nstartdelay=2\n").unwrap();
    let (_, both) = &imported.workloads[0];
    assert_eq!(both.until.iterations, Some(1));
    assert_eq!(steps(&both.groups[0].flow), "[{repeat:16,flow:[{op:read,io_size:4KiB,offset:sequential}]}]");
    assert_eq!(
        steps(&both.groups[1].flow),
        "[{pause:2s},{repeat:32,flow:[{op:read,io_size:4KiB,offset:sequential}]}]"
    );
    assert_eq!(imported.unmet().count(), 0);
    let imported = import("[a]\nsize=64k\nrw=read\n[b]\nsize=64k\nrw=read\ntime_based\nruntime=3\n").unwrap();
    let (_, both) = &imported.workloads[0];
    assert_eq!(
        steps(&both.groups[1].flow),
        "[{repeat:{duration:3s},flow:[{op:read,io_size:4KiB,offset:sequential}]}]"
    );
    assert_eq!(imported.unmet().count(), 0);
}

#[test]
fn what_is_verified_is_read_back() {
    let imported = import("[job]\nsize=64k\nrw=write\nverify=crc32c\n").unwrap();
    let names: Vec<&str> = imported.workloads.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["job", "job-verify"]);
    assert!(imported.workloads.iter().all(|(_, workload)| workload.verify.is_on()));
    assert_eq!(
        steps(&imported.workloads[1].1.groups[0].flow),
        "[{op:open,fileset:job,file:own},{repeat:end-of-file,flow:[{op:read,io_size:4KiB,offset:sequential}]},{op:close}]"
    );
    assert_eq!(import("[job]\nsize=64k\nrw=write\nverify=md5\ndo_verify=0\n").unwrap().workloads.len(), 1);
}

#[test]
fn operations_on_names() {
    let flow = |engine: &str| flow(&format!("ioengine={engine}\nfilesize=4k\nnrfiles=100"));
    assert_eq!(flow("filecreate"), "[{op:create,fileset:job,file:new},{op:close}]");
    assert_eq!(flow("filestat"), "[{op:stat,fileset:job,file:once}]");
    assert_eq!(flow("filedelete"), "[{op:unlink,fileset:job,file:once}]");
}

#[test]
fn many_files_are_opened_one_after_the_other() {
    let options = "rw=randread\nnrfiles=16\nfile_service_type=zipf:1.1";
    assert_eq!(
        flow(options),
        "[{op:open,fileset:job,file:{zipf:{exponent:1.1}}},\
         {repeat:1,flow:[{op:read,io_size:4KiB,offset:random}]},{op:close}]"
    );
}

#[test]
fn globals_includes_and_stages() {
    let imported = import(
        "# defaults\n[global]\nsize=64k ; each\n\n[one]\ninclude more.inc\n\n[global]\nrw=randread\n[two]\n[three]\nwait_for=one\n",
    )
    .unwrap();
    let names: Vec<&str> = imported.workloads.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["one-two", "three"]);
    let (_, first) = &imported.workloads[0];
    assert_eq!(steps(&first.groups[0].flow), "[{op:read,io_size:8KiB,offset:sequential}]");
    assert_eq!(steps(&first.groups[1].flow), "[{op:read,io_size:4KiB,offset:random}]");
    let of_include = imported.notes.iter().find(|note| note.file.is_some()).unwrap();
    assert_eq!((of_include.file.as_deref(), of_include.line), (Some("more.inc"), 1));
    assert_eq!(imported.name, "some-job");
    assert_eq!(imported.run["cache"].as_str(), Some("fadvise"));
}

#[test]
fn mistakes_name_line_and_remedy() {
    assert_eq!(
        mistakes("[job]\nsize=1m\niodpeth=4\nbs=1.5k\n"),
        [
            "line 3: `iodpeth=4`: fio 3.33 has no option `iodpeth`; did you mean `iodepth`?",
            "line 4: `bs=1.5k`: `1.5k` has a fraction, which fio drops; write a whole number"
        ]
    );
    assert_eq!(
        mistakes("[job]\nsize=1m\ninclude wrong.inc\n"),
        ["wrong.inc, line 2: `bsise=1`: fio 3.33 has no option `bsise`; did you mean `size`?"]
    );
    assert!(mistakes("[job]\ninclude circle.inc\n")[0].contains("more than 16 deep"));
    assert!(mistakes("[job]\ninclude section.inc\n")[0].contains("may not have sections"));
    assert!(mistakes("[job]\ninclude none\n")[0].contains("cannot include `none`: no such file"));
    assert!(
        mistakes("size=1m\n[job]\n")[0].starts_with("line 1: `size=1m`: an option before the first section")
    );
    assert!(mistakes("; nothing\n")[0].contains("the file has no job"));
    assert!(mistakes("[job\nsize=1m\n")[0].contains("ends with `]`"));
    assert!(mistakes("[job]\nsize=1m\nrw=sideways\n")[0].contains("`sideways` is none of"));
    assert!(mistakes("[job]\nsize=1m\nioengine=warp\n")[0].contains("has no engine `warp`"));
    assert!(mistakes("[job]\nsize=1m\ndirect\n")[0].contains("needs a value"));
    assert!(mistakes("[job]\nsize=1m\ntime_based\n")[0].contains("needs a `runtime`"));
    assert!(mistakes("[job]\nsize=1m\n[b]\nsize=1m\nwait_for=c\n")[0].contains("no job of this name"));
    assert!(mistakes("[job]\nrw=read\n")[0].contains("it has no `size`"));
    assert!(mistakes("[job]\nioengine=net\n")[0].contains("its engine measures networks"));
}

#[test]
fn every_option_of_the_job_has_its_note() {
    let text = fs::read_to_string(jobs().join("everything.fio")).unwrap();
    let imported = import(&text).unwrap();
    let lines = text.lines().enumerate().filter(|(_, line)| line.contains('=') && !line.starts_with(';'));
    for (number, line) in lines {
        let of_line: Vec<&Note> = imported.notes.iter().filter(|note| note.line == number + 1).collect();
        assert_eq!(of_line.len(), 1, "{line}: {of_line:?}");
        assert_ne!(of_line[0].message, "", "{line}");
    }
}

fn jobs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs")
}

#[test]
fn the_job_files_of_this_directory_are_imported() {
    let mut count = 0;
    for entry in fs::read_dir(jobs()).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        let imported = fio::import(&path.to_string_lossy(), &text, &Elsewhere);
        checked(&imported.unwrap_or_else(|error| panic!("{}: {error}", path.display())));
        count += 1;
    }
    assert!(count >= 12, "{count}");
}

/// fio's own examples, where its package is installed: a job is imported, or the file is refused because no job of it is
/// about files.
#[test]
fn examples_of_fio_are_imported_or_refused_by_name() {
    let directory = std::env::var_os("FIO_EXAMPLES").unwrap_or_else(|| "/usr/share/doc/fio/examples".into());
    let Ok(entries) = fs::read_dir(&directory) else {
        eprintln!("skipped: no {}: install fio-examples, or set FIO_EXAMPLES", directory.display());
        return;
    };
    struct Sized;
    impl Surroundings for Sized {
        fn variable(&self, name: &str) -> Option<String> {
            Elsewhere.variable(name)
        }
        fn include(&self, path: &str) -> io::Result<String> {
            Elsewhere.include(path)
        }
        fn existing_size(&self) -> Option<u64> {
            Some(1 << 30)
        }
        fn keyword(&self, keyword: Keyword) -> u64 {
            Elsewhere.keyword(keyword)
        }
    }
    let files = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "fio"));
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        match fio::import(&path.to_string_lossy(), &text, &Sized) {
            Ok(imported) => checked(&imported),
            Err(error) => {
                // Some examples take their values from variables that only their user knows.
                let known = |text: &str| text.contains("is not imported") || text.contains("needs a value");
                let unknown = error.mistakes.iter().find(|mistake| !known(&mistake.message));
                assert!(unknown.is_none(), "{}: {unknown:?}", path.display());
            }
        }
    }
}

proptest::proptest! {
    #[test]
    fn no_text_panics(text in "\\PC*") {
        let _ = fio::import("x", &text, &Elsewhere);
    }

    #[test]
    fn no_value_panics(
        name in proptest::sample::select(vec![
            "bs", "bsrange", "bssplit", "size", "io_size", "rw", "numjobs", "random_distribution", "runtime",
            "file_service_type", "filesize", "rate", "offset_increment", "nrfiles", "thinktime", "startdelay", "fsync",
        ]),
        value in "[0-9a-z%:/,.()*+-]{0,12}",
    ) {
        let text = format!("[job]\nsize=64k\nrw=randrw\n{name}={value}\n");
        if let Ok(imported) = fio::import("x", &text, &Elsewhere) {
            let _ = to_study(&imported);
        }
    }
}

#[test]
fn damaged_job_files_are_imported_or_refused() {
    let jobs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/jobs");
    let mut paths: Vec<PathBuf> = fs::read_dir(jobs).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let files: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
    let (mut random, mut imported) = (Random(1), 0);
    for number in 0..3000 {
        let mut bytes = files[number % files.len()].clone();
        damage(&mut bytes, 4, &mut random);
        let result = fio::import("job.fio", &String::from_utf8_lossy(&bytes), &Elsewhere);
        imported += usize::from(result.is_ok_and(|imported| !to_study(&imported).is_empty()));
    }
    assert!(imported > 100, "{imported} of 3000 were imported");
}
