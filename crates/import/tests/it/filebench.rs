//! Workload files of Filebench as workloads: each construct of the language, in files of our own.
use benchmaster_import::{Imported, NoteKind, filebench, to_study};
use benchmaster_record::model::{
    FilePick, Group, OffsetPick, OpenFlag, OperationKind, Repeat, Size, SizeDistribution, Step, Until,
    Workload,
};
use benchmaster_testkit::{Random, damage};
use benchmaster_units::{ByteSize, TimeSpan};
use benchmaster_workload::program::Program;

/// Imports a file that must be right, and checks that the workload can be run and reads back from the study's text.
fn import(text: &str) -> Imported {
    let imported = filebench::import("dir/work-1.f", text).unwrap_or_else(|error| panic!("{error}"));
    let (name, workload) = &imported.workloads[0];
    assert_eq!((name.as_str(), imported.workloads.len()), ("work-1", 1));
    if let Err(errors) = Program::compile(workload) {
        panic!("{errors:?}\n{}", to_study(&imported));
    }
    let study: toml::Table = to_study(&imported).parse().unwrap();
    let back: Workload = study["workload"][name].clone().try_into().unwrap();
    assert_eq!(back, *workload);
    imported
}

fn workload(text: &str) -> Workload {
    import(text).workloads.remove(0).1
}

/// A file with one fileset `data` of ten files of 64 KiB and one thread with this flow.
fn flow(flow: &str) -> String {
    format!(
        "define fileset name=data,path=/mnt/x,size=64k,entries=10,dirwidth=100,prealloc\n\
         define process name=p {{ thread name=t {{\n{flow}\n}} }}\nrun 10\n"
    )
}

fn group(text: &str) -> Group {
    workload(text).groups.remove(0)
}

fn notes(imported: &Imported, kind: NoteKind) -> Vec<(usize, &str, &str)> {
    let of_kind = imported.notes.iter().filter(|note| note.kind == kind);
    of_kind.map(|note| (note.line, note.text.as_str(), note.message.as_str())).collect()
}

/// The operations of a flow in short: `open>fd1`, repeats in brackets.
fn short(steps: &[Step]) -> String {
    let one = |step: &Step| match step {
        Step { repeat: Some(repeat), flow, .. } => {
            let times = if let Repeat::Times(times) = repeat { times.to_string() } else { "eof".into() };
            format!("{times}[{}]", short(flow))
        }
        Step { op: Some(op), handle, .. } => {
            let handle = handle.as_ref().map_or_else(String::new, |handle| format!(">{handle}"));
            format!("{}{handle}", op.name())
        }
        Step { pause: Some(pause), .. } => format!("pause {pause}"),
        Step { take: Some(take), count, .. } => format!("take {take} {}", count.unwrap_or(1)),
        Step { post: Some(post), count, limit, .. } => {
            format!(
                "post {post} {}{}",
                count.unwrap_or(1),
                limit.map_or_else(String::new, |limit| format!(" up to {limit}"))
            )
        }
        other => panic!("{other:?}"),
    };
    steps.iter().map(one).collect::<Vec<_>>().join(" ")
}

/// A server of files, whose variables change until it runs.
const SERVER: &str = "\
set $dir=/mnt/data
set $files=1000
set $threads=2 * 2
set $size=cvar(type=cvar-gamma,parameters=mean:131072;gamma:1.5)
define fileset name=bigset,path=$dir,size=$size,entries=$files,dirwidth=20,dirgamma=0,prealloc=80,paralloc
define process name=server,instances=2
{
  thread name=worker,memsize=10m,instances=$threads
  {
    flowop createfile name=create1,filesetname=bigset,fd=1
    flowop writewholefile name=write1,srcfd=1,fd=1,iosize=1m
    flowop closefile name=close1,fd=1
    flowop openfile name=open1,filesetname=bigset,fd=1
    flowop appendfilerand name=append1,iosize=16k,fd=1
    flowop closefile name=close2,fd=1
    flowop openfile name=open2,filesetname=bigset,fd=1
    flowop readwholefile name=read1,fd=1,iosize=1m
    flowop closefile name=close3,fd=1
    flowop deletefile name=delete1,filesetname=bigset
    flowop statfile name=stat1,filesetname=bigset
  }
}
set $files=500
echo \"loaded with $files files\"
run 30
";

#[test]
fn a_server_of_files_with_variables_that_change_until_the_run() {
    let imported = import(SERVER);
    assert_eq!(imported.directory.as_deref(), Some("/mnt/data"));
    assert_eq!(imported.unmet().count(), 0, "{:?}", imported.notes);
    let irrelevant: Vec<_> =
        notes(&imported, NoteKind::Irrelevant).iter().map(|note| (note.0, note.1)).collect();
    assert_eq!(irrelevant, [(5, "paralloc"), (8, "memsize=10m"), (24, "echo \"loaded with $files files\"")]);
    let workload = &imported.workloads[0].1;
    let fileset = &workload.filesets["bigset"];
    assert_eq!((fileset.files, fileset.prefill), (500, 0.8));
    let gamma = SizeDistribution::Gamma { mean: ByteSize::kib(128), shape: 1.5 };
    assert_eq!(fileset.size, Size::Distributed(gamma));
    let tree = fileset.tree.unwrap();
    assert_eq!((tree.depth, tree.branch, tree.leaves_only), (1, 25, true));
    assert_eq!(workload.until, Until { duration: Some(TimeSpan::seconds(30)), ..Until::default() });
    let group = &workload.groups[0];
    assert_eq!((group.name.as_str(), group.workers, group.setup.len()), ("worker", 8, 0));
    assert_eq!(
        short(&group.flow),
        "create>fd1 eof[write>fd1] close>fd1 open>fd1-2 write>fd1-2 close>fd1-2 open>fd1 eof[read>fd1] close>fd1 \
         unlink stat"
    );
    assert_eq!(group.flow[3].flags, [OpenFlag::Write, OpenFlag::Append]);
    let append = &group.flow[4];
    let uniform = SizeDistribution::Uniform { min: ByteSize(1), max: ByteSize::kib(16) };
    assert_eq!(append.io_size, Some(Size::Distributed(uniform)));
    assert_eq!((append.offset, append.label.as_deref()), (Some(OffsetPick::Append), Some("append1")));
    assert_eq!((group.flow[0].file, group.flow[9].file), (Some(FilePick::New), Some(FilePick::Next)));
}

#[test]
fn files_that_no_flowop_opens_stay_open() {
    let group = group(&flow(
        "flowop read name=r,filesetname=data,iosize=8k,random,directio\n\
         flowop write name=w,filesetname=data,fd=2,iosize=8k,random,dsync,iters=5\n\
         flowop statfile name=s,fd=2\n\
         flowop fsync name=f,fd=2",
    ));
    assert_eq!(short(&group.setup), "open>fd0 open>fd2");
    assert_eq!(group.setup[0].flags, [OpenFlag::Write, OpenFlag::Direct]);
    assert_eq!(group.setup[1].flags, [OpenFlag::Write, OpenFlag::Sync]);
    assert_eq!(short(&group.flow), "read>fd0 5[write>fd2] fstat>fd2 fsync>fd2");
    assert_eq!(group.flow[0].offset, Some(OffsetPick::Random));
}

#[test]
fn a_file_that_is_closed_is_opened_where_it_is_used_first() {
    let group = group(&flow(
        "flowop readwholefile name=r,filesetname=data,fd=1\nflowop closefile name=c,fd=1\nflowop statfile name=s,filesetname=data",
    ));
    assert_eq!(
        (short(&group.setup).as_str(), short(&group.flow).as_str()),
        ("", "open>fd1 eof[read>fd1] close>fd1 stat")
    );
    let Some(Repeat::Until(_)) = group.flow[1].repeat else { panic!("no repeat") };
    assert_eq!(group.flow[1].flow[0].io_size, Some(Size::Fixed(ByteSize::kib(64))));
}

#[test]
fn openings_of_a_descriptor_share_a_handle_where_their_flags_are_the_same() {
    let group = group(&flow(
        "flowop openfile name=a,filesetname=data,fd=1\nflowop appendfile name=b,fd=1,iosize=1k\nflowop closefile name=c,fd=1\n\
         flowop openfile name=d,filesetname=data,fd=1\nflowop appendfile name=e,fd=1,iosize=1k\nflowop closefile name=f,fd=1\n\
         flowop openfile name=g,filesetname=data,fd=1\nflowop readwholefile name=h,fd=1,iosize=1k\nflowop closefile name=i,fd=1",
    ));
    assert_eq!(
        short(&group.flow),
        "open>fd1 write>fd1 close>fd1 open>fd1 write>fd1 close>fd1 open>fd1-2 eof[read>fd1-2] close>fd1-2"
    );
}

#[test]
fn a_read_only_fileset_is_opened_for_reading() {
    let text = flow("flowop openfile name=o,filesetname=data,fd=1\nflowop closefile name=c,fd=1");
    assert_eq!(group(&text.replace("prealloc", "prealloc,readonly")).flow[0].flags, []);
    assert_eq!(group(&text.replace("prealloc", "prealloc,writeonly")).flow[0].flags, [OpenFlag::WriteOnly]);
}

#[test]
fn composite_flowops_are_taken_apart_with_their_own_variables() {
    let text = "\
define fileset name=one,path=/d,size=4k,entries=100,prealloc=50
define fileset name=two,path=/d,size=4k,entries=100,prealloc=50
define flowop name=inner, $set, $times=2
{
  flowop openfile name=open,filesetname=$set,fd=1
  flowop read name=read,fd=1,iosize=1k,iters=$times
  flowop closefile name=close,fd=1
}
define flowop name=outer, $which
{
  flowop inner name=in, iters=3, $set=$which, $times=5
  flowop createfile name=new,filesetname=$which,fd=2
  flowop closefile name=end,fd=2
}
define process name=p { thread name=a { flowop outer name=x, $which=one } thread name=b,instances=3 { flowop inner name=y,$set=two } }
psrun -10 20
";
    let workload = workload(text);
    assert_eq!(short(&workload.groups[0].flow), "3[open>fd1 5[read>fd1] close>fd1] create>fd2 close>fd2");
    assert_eq!(workload.groups[0].flow[0].flow[0].label.as_deref(), Some("x-in-open"));
    assert_eq!(workload.groups[0].flow[0].flow[0].fileset.as_deref(), Some("one"));
    assert_eq!(short(&workload.groups[1].flow), "open>fd1 2[read>fd1] close>fd1");
    assert_eq!(workload.groups[1].flow[0].fileset.as_deref(), Some("two"));
    assert_eq!(workload.until.duration, Some(TimeSpan::seconds(20)));
}

#[test]
fn semaphores_become_counters() {
    let text = "\
define file name=log,path=/d,size=1m,prealloc,reuse
define process name=writer,instances=3
{
  thread name=writer { flowop write name=w,filename=log,iosize=4k,random flowop semblock name=room,value=10,highwater=20 }
}
define process name=reader,instances=5
{
  thread name=reader
  {
    flowop read name=r,filename=log,iosize=4k,random
    flowop sempost name=post,value=2,target=room,blocking
    flowop hog name=think,value=200000
    flowop hog name=short,value=100
    flowop delay name=wait,value=2
  }
}
run 5
";
    let imported = import(text);
    let groups = &imported.workloads[0].1.groups;
    assert_eq!(short(&groups[0].flow), "write>fd0 take room 10");
    // Filebench posts to each of the three that wait: they share what is posted.
    assert_eq!(short(&groups[1].flow), "read>fd0 post room 6 up to 90 pause 200us pause 2s");
    assert_eq!(notes(&imported, NoteKind::Unsupported).iter().map(|note| note.0).collect::<Vec<_>>(), [13]);
    assert_eq!(notes(&imported, NoteKind::Approximated).iter().map(|note| note.0).collect::<Vec<_>>(), [12]);
}

#[test]
fn those_that_wake_each_other_up() {
    let text = "\
set $n=100
eventgen rate=0
define fileset name=many,path=/d,entries=$n,size=4k,filesizegamma=0,dirwidth=$n
define flowop name=make { flowop createfile name=c,filesetname=many,fd=1 flowop writewholefile name=w,filesetname=many,fd=1
  flowop closefile name=e,fd=1 flowop eventlimit name=limit }
define process name=makers { thread name=maker { flowop make name=m, iters=$n flowop wakeup name=wd,target=bd flowop block name=bm } }
define process name=removers { thread name=remover { flowop block name=bd flowop deletefile name=d,filesetname=many,iters=$n
  flowop wakeup name=wm,target=bm } }
";
    let workload = workload(text);
    assert_eq!(
        short(&workload.groups[0].flow),
        "100[create>fd1 eof[write>fd1] close>fd1] post bd 1 take bm 1"
    );
    assert_eq!(short(&workload.groups[1].flow), "take bd 1 100[unlink] post bm 1");
    // Without `run` it is done as if there were one without a time.
    assert_eq!(workload.until.duration, Some(TimeSpan::seconds(60)));
}

#[test]
fn the_event_generator_sets_rates() {
    let limited = |limit: &str, rate: u32| {
        let body = "flowop openfile name=o,filesetname=data,fd=1\nflowop readwholefile name=r,fd=1,iosize=4k\n\
                    flowop appendfile name=a,fd=1,iosize=64k\nflowop closefile name=c,fd=1\n";
        let text = flow(&format!("{body}flowop {limit}"));
        let text = text.replace("size=64k", "size=1m");
        group(&format!("eventgen rate={rate}\n{text}")).rate.map(|rate| rate.0)
    };
    assert_eq!(limited("eventlimit name=l", 12), Some(12.0));
    assert_eq!(limited("iopslimit name=l", 12), Some(6.0));
    assert_eq!(limited("iopslimit name=l,target=r", 12), Some(12.0));
    assert_eq!(limited("opslimit name=l", 12), Some(3.0));
    assert_eq!(limited("bwlimit name=l,target=r", 12), Some(12.0));
    assert_eq!(limited("bwlimit name=l", 17), Some(8.5));
    assert_eq!(limited("opslimit name=l", 0), None);
}

#[test]
fn what_ends_a_run() {
    let until = |flowops: &str, head: &str, run: &str| {
        let text = flow(flowops).replace("run 10\n", run).replace("name=t {", "name=t,instances=4 {");
        workload(&format!("{head}\n{text}")).until
    };
    let read = "flowop read name=r,filesetname=data,iosize=4k,iters=10\n";
    let count = |value, rest: &str| format!("{read}flowop finishoncount name=f,value={value}{rest}");
    let iterations = |n| Until { iterations: Some(n), ..Until::default() };
    assert_eq!(until(&count(1, ""), "", ""), iterations(1));
    assert_eq!(until(&count(4000, ""), "", ""), iterations(100));
    assert_eq!(until(&count(400, ",target=r"), "", ""), iterations(40));
    let timed = Until { duration: Some(TimeSpan::seconds(60)), ..iterations(1) };
    assert_eq!(until(&count(1, ""), "", "run"), timed);
    let bytes = format!("{read}flowop finishonbytes name=f,value=1m");
    assert_eq!(until(&bytes, "", ""), Until { bytes: Some(ByteSize::kib(256)), ..Until::default() });
    let unlink = "flowop deletefile name=d,filesetname=data";
    assert_eq!(until(unlink, "set mode quit firstdone", "run"), Until::default());
    assert_eq!(until(unlink, "set mode quit alldone", ""), Until::default());
    let ten = Until { duration: Some(TimeSpan::seconds(10)), ..Until::default() };
    assert_eq!(until(unlink, "set mode quit alldone", "set $t=10\nrun $t"), ten);
    // Nothing is used up: it would never end.
    let sixty = Until { duration: Some(TimeSpan::seconds(60)), ..Until::default() };
    assert_eq!(until(read, "set mode quit alldone", ""), sixty);
}

#[test]
fn directories_are_made_listed_and_removed() {
    let text = |kind: &str, more: &str| {
        format!(
            "set mode quit firstdone\ndefine fileset name=dirs,path=/d,size=0,leafdirs=100,dirwidth=1000{more}\n\
             define process name=p {{ thread name=t,instances=4 {{ flowop {kind} name=x,filesetname=dirs }} }}\nrun\n"
        )
    };
    let made = workload(&text("makedir", ""));
    assert_eq!(
        (made.groups[0].flow[0].op, made.groups[0].flow[0].file),
        (Some(OperationKind::Mkdir), Some(FilePick::Once))
    );
    assert_eq!(
        (made.until, made.filesets["dirs"].files, made.filesets["dirs"].prefill),
        (Until::default(), 100, 0.0)
    );
    let removed = workload(&text("removedir", ",prealloc"));
    assert_eq!(
        (short(&removed.groups[0].setup).as_str(), short(&removed.groups[0].flow).as_str()),
        ("25[mkdir]", "rmdir")
    );
    assert_eq!(removed.until.iterations, Some(25));
    assert_eq!(short(&group(&flow("flowop listdir name=l,filesetname=data")).flow), "readdir");
}

#[test]
fn files_without_bytes_grow() {
    let text = "define file name=f,path=/d,size=0,prealloc\ndefine process name=p { thread name=t {\n\
                flowop write name=w,filename=f,iosize=1m,iters=8\nflowop fsync name=s } }\nrun 5";
    let grown = group(text);
    assert_eq!(
        (short(&grown.setup).as_str(), short(&grown.flow).as_str()),
        ("open>fd0", "8[write>fd0] fsync>fd0")
    );
    assert_eq!(grown.setup[0].flags, [OpenFlag::Write, OpenFlag::Append]);
    assert_eq!(grown.flow[0].flow[0].offset, Some(OffsetPick::Append));
}

#[test]
fn nothing_is_dropped_in_silence() {
    let text = "\
set mode quit nothing
define process name=p { thread name=t { flowop nop } }
";
    assert!(
        filebench::import("x", text)
            .unwrap_err()
            .to_string()
            .contains("line 1: `set mode quit nothing`: modes are")
    );
    let text = "\
set $index=randvar(type=gamma,min=0,gamma=100)
set $pause=randvar(type=uniform,mean=4)
define fileset name=a,path=/d,size=10m,entries=100,dirwidth=5,prealloc,reuse
define fileset name=b,path=/other,size=1m,entries=100,prealloc
define process name=p,nice=5,instances=1
{
  thread name=t,memsize=1m,useism,ioprio=3,instances=2
  {
    flowop aiowrite name=aw,filesetname=a,iosize=8k,random,workingset=1m,opennext
    flowop aiowait name=wait
    flowop read name=seq,filesetname=a,fd=3,iosize=8k,workingset=20m,noreadahead
    flowop openfile name=o,filesetname=b,fd=1,indexed=$index
    flowop openfile name=o2,filesetname=a,fd=2
    flowop writewholefile name=ww,fd=2,srcfd=1,iosize=4k
    flowop closefile name=c,fd=1,iosize=8k
    flowop closefile name=c2,fd=2
    flowop deletefile name=d,fd=1
    flowop delay name=z,value=$pause
    flowop testrandvar name=tr,value=$index
  }
}
system \"sync\"
run 10
run 20
";
    let imported = import(text);
    let told = |kind| notes(&imported, kind).iter().map(|note| note.0).collect::<Vec<_>>();
    assert_eq!(told(NoteKind::Approximated), [3, 4, 9, 9, 9, 11, 12, 14, 17, 18]);
    assert_eq!(told(NoteKind::Unsupported), [5, 7, 11, 22, 24]);
    assert_eq!(told(NoteKind::Irrelevant), [3, 7, 7, 10, 15, 19]);
    let workload = &imported.workloads[0].1;
    assert_eq!(
        workload.groups[0].flow[0].offset,
        Some(OffsetPick::Hotspot { share: 0.1, accesses: 0.999_999 })
    );
    assert_eq!(workload.groups[0].setup[0].file, Some(FilePick::Own));
    let study = to_study(&imported);
    for line in ["# line 12: `indexed=$index`: approximated: ", "# line 5: `nice=5`: not supported: "] {
        assert!(study.contains(line), "{study}");
    }
    assert!(!study.contains("memsize"), "{study}");
}

#[test]
fn mistakes_name_their_line() {
    for (text, line, found, says) in [
        (
            "define fileset path=/d,entries=1,size=1\n",
            1,
            "define fileset path=/d,entries=1,size=1",
            "needs a name",
        ),
        ("define fileset name=f,path=/d,width=3\n", 1, "width=3", "has no attribute `width`"),
        ("define fileset name=f,path=/d,entries=$n\n", 1, "entries=$n", "`$n` has no value"),
        ("define fileset name=f,path=/d\n", 1, "define fileset name=f,path=/d", "has no files"),
        ("set $n=5\nset $m=$k\n", 2, "set $m=$k", "`$k` has no value"),
        ("set $n=5\n\n", 1, "", "defines no process"),
        (
            "define process name=p { thread name=t {\nflowop copyfile name=c } }\n",
            2,
            "flowop copyfile name=c",
            "unknown flowop `copyfile`",
        ),
        (
            "define process name=p { thread name=t {\nflowop read name=r,iosize=1k } }\n",
            2,
            "flowop read name=r,iosize=1k",
            "needs a fileset",
        ),
        (
            "define process name=p { thread name=t {\nflowop statfile filesetname=g } }\n",
            2,
            "filesetname=g",
            "unknown fileset or file `g`",
        ),
        (
            "define process name=p { thread name=t {\nflowop closefile name=c,fd=1 } }\n",
            2,
            "flowop closefile name=c,fd=1",
            "not open",
        ),
        (
            "define process name=p { thread name=t {\nflowop sempost name=c,target=x } }\n",
            2,
            "flowop sempost name=c,target=x",
            "`x`",
        ),
        (
            "define process name=p { thread name=t {\nflowop read name=r,colour=red } }\n",
            2,
            "colour=red",
            "has no attribute `colour`",
        ),
        (
            "define file name=f,path=/d,size=1m\ndefine process name=p { thread name=t {\nflowop read name=r,filename=f } }\n",
            3,
            "flowop read name=r,filename=f",
            "needs an `iosize`",
        ),
        (
            "define flowop name=a { flowop a name=b }\ndefine process name=p { thread name=t {\nflowop a name=c } }",
            1,
            "flowop a name=b",
            "deeper than 8 levels",
        ),
    ] {
        let error = filebench::import("x.f", text).unwrap_err();
        let mistake = &error.mistakes[0];
        assert_eq!((mistake.line, mistake.text.as_str()), (line, found), "{text}{error}");
        assert!(mistake.message.contains(says), "{text}{error}");
    }
}

#[test]
fn damaged_files_are_imported_or_refused() {
    let (mut random, mut imported) = (Random(1), 0);
    for _ in 0..3000 {
        let mut bytes = SERVER.as_bytes().to_vec();
        damage(&mut bytes, 4, &mut random);
        let result = filebench::import("work.f", &String::from_utf8_lossy(&bytes));
        imported += usize::from(result.is_ok_and(|imported| !to_study(&imported).is_empty()));
    }
    assert!(imported > 50, "{imported} of 3000 were imported");
}
