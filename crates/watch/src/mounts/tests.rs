//! The model on recorded readings, and the view as pictures.

use std::time::Duration;

use benchmaster_telemetry::mountstats::Mountstats;

use super::*;
use crate::keys::{Action, Key};
use crate::screen::Screen;

const BEFORE: &str = include_str!("../../../telemetry/src/mountstats/samples/linux-6.1-before.txt");
const AFTER: &str = include_str!("../../../telemetry/src/mountstats/samples/linux-6.1.txt");

fn seconds(n: u64) -> Duration {
    Duration::from_secs(n)
}

fn one(text: &str) -> Mountstats {
    let mut stats = Mountstats::parse(text).unwrap();
    stats.mounts.truncate(1);
    stats
}

fn recorded() -> Mounts {
    let mut mounts = Mounts::default();
    mounts.take(Mountstats::parse(BEFORE).unwrap(), seconds(10));
    mounts.take(Mountstats::parse(AFTER).unwrap(), seconds(12));
    mounts
}

/// A busy mount whose rates rise and fall, with errors, timeouts and requests sent again.
fn busy(ticks: u64) -> Mounts {
    let (mut mounts, mut stats) = (Mounts::default(), Mountstats::parse(AFTER).unwrap());
    stats.mounts.truncate(3);
    for tick in 0..=ticks {
        mounts.take(stats.clone(), seconds(tick));
        for (at, mount) in stats.mounts.iter_mut().enumerate() {
            let load = (tick * 7 % 13 + 1) * (3 - at as u64);
            for (name, ops) in [("READ", 400), ("WRITE", 150), ("GETATTR", 30), ("ACCESS", 9)] {
                let operation = mount.operations.iter_mut().find(|operation| operation.name == name).unwrap();
                let ops = ops * load;
                operation.ops += ops;
                operation.transmissions += ops + u64::from(name == "WRITE") * load;
                operation.bytes_sent += ops * if name == "WRITE" { 65_700 } else { 120 };
                operation.bytes_received += ops * if name == "READ" { 65_700 } else { 140 };
                operation.queue_ms += ops / 40;
                operation.rtt_ms += ops * 2 / 3;
                operation.execute_ms += ops * 3 / 4;
                operation.timeouts += u64::from(name == "WRITE");
                operation.errors = operation.errors.map(|errors| errors + u64::from(name == "ACCESS") * load);
            }
        }
    }
    mounts
}

fn picture(view: &MountsView, mounts: &Mounts, width: u16, height: u16) -> String {
    let mut screen = Screen::new(width, height);
    view.draw(&mut screen, mounts, "client1", seconds(1));
    // As snapshots have it: spaces at the ends of rows are seen.
    screen
        .to_string()
        .lines()
        .map(|row| {
            format!(
                "\"{row}\"
"
            )
        })
        .collect()
}

#[test]
fn rates_are_those_of_the_interval() {
    let mounts = recorded();
    assert_eq!(mounts.interval(), Some(seconds(2)));
    for watched in mounts.mounts() {
        let before = Mountstats::parse(BEFORE).unwrap();
        let earlier = before
            .mounts
            .iter()
            .find(|mount| {
                mount.device == watched.stats.device && mount.mount_point == watched.stats.mount_point
            })
            .unwrap();
        let interval = watched.interval.as_ref().unwrap();
        let ops: u64 = watched.stats.operations.iter().map(|operation| operation.ops).sum::<u64>()
            - earlier.operations.iter().map(|operation| operation.ops).sum::<u64>();
        assert_eq!((interval.total.ops, interval.total.ops_per_s), (ops, ops as f64 / 2.0));
        let read = watched.stats.operation("READ").unwrap();
        let rates = interval.operations.iter().find(|operation| operation.name == "READ").unwrap();
        let n = read.ops - earlier.operation("READ").unwrap().ops;
        assert_eq!(rates.ops, n);
        let rtt = (read.rtt_ms - earlier.operation("READ").unwrap().rtt_ms) as f64 / n as f64;
        assert_eq!(rates.rtt_ms, (n > 0).then_some(rtt));
    }
}

#[test]
fn a_mount_that_comes_goes_or_begins_anew() {
    let mut mounts = Mounts::default();
    mounts.take(one(BEFORE), seconds(0));
    assert!(mounts.mounts()[0].interval.is_none());
    mounts.take(Mountstats::parse(AFTER).unwrap(), seconds(1));
    assert!(mounts.mounts()[0].interval.is_some());
    assert!(mounts.mounts()[1].interval.is_none() && mounts.mounts()[1].note.is_none());
    // Mounted again: the counters are lower.
    mounts.take(one(BEFORE), seconds(2));
    let [again] = mounts.mounts() else { panic!("one is left") };
    assert_eq!(again.interval, None);
    assert_eq!(again.note.as_deref(), Some("its counters went back: it was mounted again"));
    mounts.take(one(AFTER), seconds(3));
    assert!(mounts.mounts()[0].interval.is_some() && mounts.mounts()[0].note.is_none());
    mounts.take(Mountstats::default(), seconds(4));
    assert!(mounts.mounts().is_empty());
    assert_eq!(lines(&mounts), "no NFS mounts\n");
}

#[test]
fn two_readings_at_once_have_no_rates() {
    let mut mounts = Mounts::default();
    mounts.take(one(BEFORE), seconds(5));
    mounts.take(one(AFTER), seconds(5));
    assert!(mounts.mounts()[0].interval.is_none());
}

#[test]
fn lines_for_pipes() {
    insta::assert_snapshot!("lines", lines(&recorded()));
    insta::assert_snapshot!("lines_busy", lines(&busy(3)));
}

#[test]
fn values_for_json() {
    let mounts = busy(2);
    let value = serde_json::to_value(Snapshot::of(&mounts, 5)).unwrap();
    assert_eq!(value["time_ms"], 5);
    let read = &value["mounts"][0]["interval"]["operations"];
    let read = read.as_array().unwrap().iter().find(|operation| operation["name"] == "READ").unwrap();
    assert_eq!(read["ops"], 9_600);
    assert_eq!(value["mounts"][0]["interval"]["total"]["timeouts"], 1);
    assert!(value["mounts"][0].get("note").is_none());
}

#[test]
fn pictures_at_both_sizes() {
    for (width, height) in [(80, 24), (140, 40)] {
        let view = MountsView::default();
        insta::assert_snapshot!(format!("busy_{width}"), picture(&view, &busy(60), width, height));
        insta::assert_snapshot!(format!("recorded_{width}"), picture(&view, &recorded(), width, height));
    }
}

#[test]
fn pictures_of_little() {
    let view = MountsView::default();
    let mut first = Mounts::default();
    first.take(one(BEFORE), seconds(0));
    insta::assert_snapshot!("first", picture(&view, &first, 80, 12));
    insta::assert_snapshot!("nothing", picture(&view, &Mounts::default(), 80, 6));
    let mut help = view;
    help.key(Key::Char('?'), &first);
    insta::assert_snapshot!("help", picture(&help, &busy(3), 80, 24));
}

#[test]
fn keys_select_sort_and_pause() {
    let mounts = busy(3);
    let mut view = MountsView::default();
    let shown = |view: &MountsView| {
        let text = picture(view, &mounts, 100, 30);
        let first = text.lines().find(|line| line.contains("OPERATION")).unwrap();
        let next = text.lines().skip_while(|line| *line != first).nth(1).unwrap();
        let about = text.lines().find(|line| line.contains("10.78.0.2:/export")).unwrap().to_owned();
        (
            about.trim_start_matches('"').split(' ').next().unwrap().to_owned(),
            next.trim_start_matches('"').split(' ').next().unwrap().to_owned(),
        )
    };
    // The busiest mount and operation come first.
    assert_eq!(shown(&view), ("/mnt/3".into(), "READ".into()));
    assert_eq!(view.key(Key::Down, &mounts), Action::Draw);
    assert_eq!(shown(&view).0, "/mnt/4.0");
    view.key(Key::End, &mounts);
    view.key(Key::Down, &mounts);
    assert_eq!(shown(&view).0, "/mnt/4.1");
    // What is selected stays so when the order changes.
    view.key(Key::Char('r'), &mounts);
    assert_eq!(shown(&view), ("/mnt/4.1".into(), "ACCESS".into()));
    view.key(Key::Home, &mounts);
    assert_eq!(shown(&view).0, "/mnt/4.1");
    view.key(Key::Left, &mounts);
    assert_eq!(shown(&view).1, "ACCESS");
    for _ in 0..20 {
        view.key(Key::Right, &mounts);
    }
    assert_eq!(shown(&view).1, "WRITE", "by timeouts");
    view.key(Key::Char(' '), &mounts);
    assert!(view.is_paused() && picture(&view, &mounts, 80, 24).contains("PAUSED"));
    view.key(Key::Char('?'), &mounts);
    assert_eq!(view.key(Key::Escape, &mounts), Action::Draw, "it closes the help");
    assert_eq!(view.key(Key::Char('+'), &mounts), Action::Faster);
    assert_eq!(view.key(Key::Char('-'), &mounts), Action::Slower);
    assert_eq!(view.key(Key::Escape, &mounts), Action::Quit);
    assert_eq!(view.key(Key::Char('q'), &mounts), Action::Quit);
}

#[test]
fn no_size_is_too_small() {
    let mounts = busy(20);
    let mut all = MountsView::default();
    all.key(Key::Char('a'), &mounts);
    all.key(Key::Char('?'), &mounts);
    for view in [MountsView::default(), all] {
        for (width, height) in [(1, 1), (2, 5), (10, 3), (30, 10), (300, 100), (79, 23)] {
            picture(&view, &mounts, width, height);
            picture(&view, &Mounts::default(), width, height);
        }
    }
}

#[test]
fn names_do_not_reach_the_terminal_as_commands() {
    let text = BEFORE.replace("/mnt/3 ", "/mnt/\\033[2J\\007 ");
    let mut mounts = Mounts::default();
    mounts.take(Mountstats::parse(&text).unwrap(), seconds(0));
    for text in [lines(&mounts), picture(&MountsView::default(), &mounts, 80, 24)] {
        assert!(text.contains("/mnt/?[2J?") && !text.contains('\x1b'), "{text}");
    }
}
