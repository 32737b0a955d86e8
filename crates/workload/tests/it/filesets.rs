//! Filesets: reuse, sharing, and what becomes of them.

use benchmaster_record::model::Workload;
use benchmaster_workload::area::WorkArea;

use crate::bench::{Bench, count, workload};

fn reading(rest: &str) -> Workload {
    workload(&format!(
        "until = {{ iterations = 2 }}
         filesets.data = {{ files = 3, size = '4KiB' {rest} }}
         [[groups]]
         name = 'g'
         flow = [{{ op = 'stat' }}]"
    ))
}

fn removing() -> Workload {
    workload(
        "until = { iterations = 1 }
         filesets.data = { files = 3, size = '4KiB' }
         [[groups]]
         name = 'g'
         flow = [{ op = 'unlink', file = 'once' }]",
    )
}

#[test]
pub(crate) fn files_are_reused_by_later_runs_until_something_differs() {
    let mut bench = Bench::new();
    let reused = |bench: &mut Bench, workload: Workload| {
        bench.area.begin_run(false).unwrap();
        bench.run(&workload).filesets[0].reused
    };
    assert!(!reused(&mut bench, reading("")));
    assert!(reused(&mut bench, reading("")));
    assert!(!reused(&mut bench, reading(", sharing = 'shared'")), "another description");
    assert_eq!(bench.names("data"), ["shared"], "the old files are gone");
    assert!(!reused(&mut bench, reading("")));
    bench.clients = 2;
    assert!(!reused(&mut bench, reading("")), "another number of clients");
    assert!(reused(&mut bench, removing()));
    assert!(!reused(&mut bench, reading("")), "files were removed");
    assert!(reused(&mut bench, reading("")));
    bench.area.begin_run(true).unwrap();
    assert!(!bench.run(&reading("")).filesets[0].reused, "all were to be made anew");
}

#[test]
pub(crate) fn the_executor_is_measured_once_for_the_runs_of_a_workload() {
    let mut bench = Bench::new();
    let mut rate = |workload: Workload| bench.run(&workload).host.null_rate.unwrap();
    let first = rate(reading(""));
    assert!(first > 0.0);
    assert_eq!(first, rate(reading("")), "remembered");
    assert_ne!(first, rate(reading(", sharing = 'shared'")), "another workload");
    assert_eq!(first, rate(reading("")));
}

#[test]
pub(crate) fn workloads_of_one_run_find_what_an_earlier_one_left() {
    let mut bench = Bench::new();
    assert_eq!(bench.run(&removing()).filesets[0].files, 3);
    let facts = &bench.run(&removing()).filesets[0];
    assert_eq!((facts.files, facts.bytes, facts.reused), (2, 8192, true));
    assert_eq!(bench.names("data/c0"), ["f00000002"]);
    assert_eq!(count(&bench.run(&removing()), "unlink"), 1);
    assert_eq!(count(&bench.run(&removing()), "unlink"), 0, "nothing is left to pick");
}

#[test]
pub(crate) fn clients_have_files_of_their_own_unless_they_share() {
    for (sharing, directories) in [("private", ["c0", "c1", "c2"].as_slice()), ("shared", &["shared"])] {
        let mut bench = Bench::new();
        bench.clients = 3;
        let facts = &bench.run(&reading(&format!(", sharing = '{sharing}'"))).filesets[0];
        assert_eq!(bench.names("data"), directories);
        let files = 3 * directories.len() as u64;
        assert_eq!((facts.files, facts.bytes), (files, 4096 * files));
    }
}

#[test]
pub(crate) fn prefilled_files_cannot_be_compressed() {
    let mut bench = Bench::new();
    bench.run(&workload(
        "until = { iterations = 1 }
         filesets.data = { files = 4, size = 40000, prefill = 0.5 }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]",
    ));
    assert_eq!(bench.names("data/c0"), ["f00000000", "f00000001"]);
    let mut counts = [0u32; 256];
    for name in bench.names("data/c0") {
        let content = bench.content(&format!("data/c0/{name}"));
        assert_eq!(content.len(), 40_000);
        content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    }
    // 80,000 bytes: each value about 312 times; the headers of the blocks add some zeros.
    assert!(counts.iter().all(|count| (220..1000).contains(count)), "{counts:?}");
    assert!(counts[1..].iter().filter(|count| (240..390).contains(*count)).count() > 245);
}

#[test]
pub(crate) fn sizes_are_the_same_in_every_run_and_client() {
    let text = "until = { iterations = 1 }
         filesets.data = { files = 5, size = { distribution = 'log-normal', median = '8KiB', sigma = 0.5 } }
         [[groups]]
         name = 'g'
         flow = [{ op = 'stat' }]";
    let sizes = || {
        let mut bench = Bench::new();
        bench.run(&workload(text));
        bench.names("data/c0").iter().map(|name| bench.size(&format!("data/c0/{name}"))).collect::<Vec<_>>()
    };
    let drawn = sizes();
    assert_eq!(drawn, sizes());
    assert!(drawn.windows(2).any(|pair| pair[0] != pair[1]));
}

#[test]
pub(crate) fn removing_the_area_leaves_the_target_as_it_was() {
    let mut bench = Bench::new();
    std::fs::write(bench.target.path().join("foreign"), "x").unwrap();
    bench.run(&reading(""));
    let Bench { area, target, .. } = bench;
    area.remove().unwrap();
    let names: Vec<_> =
        std::fs::read_dir(target.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["foreign"]);
    drop(WorkArea::create(&target.path().into(), "test").unwrap());
}
