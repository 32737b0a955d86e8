//! What labs are for.

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use benchmaster_lab::LabConfig;
use benchmaster_lab::backend::BackEnd;
use benchmaster_lab::guest::Command;
use benchmaster_netem::link::Link;
use libtest_mimic::Failed;

use super::{config, gone, up};

pub(super) fn programs(back_end: BackEnd) -> Result<(), Failed> {
    let config = LabConfig { clients: 2, ..config(back_end, "programs") };
    let lab = up(&config)?;
    let output = lab.run("c2", &Command { input: "one\ntwo\n".into(), ..Command::new(["wc", "-l"]) })?;
    assert_eq!((output.status, output.stdout.trim()), (0, "2"), "{output:?}");
    let output = lab.run("c1", &Command::shell("echo out; echo err >&2; exit 3"))?;
    assert_eq!((output.status, output.stdout.as_str(), output.stderr.as_str()), (3, "out\n", "err\n"));
    let environment = vec![("WHICH".to_owned(), "this one".to_owned())];
    let output = lab.run("c1", &Command { environment, ..Command::shell("echo $WHICH") })?;
    assert_eq!(output.stdout, "this one\n");
    let slow = Command { limit: Duration::from_millis(300), ..Command::shell("sleep 100 & sleep 100") };
    let output = lab.run("c1", &slow)?;
    assert_eq!(output.status, 124, "{output:?}");
    let error = lab.run("c1", &Command::new(["no-such-program"])).unwrap_err().to_string();
    assert!(error.contains("no-such-program") && error.contains("c1"), "{error}");
    let error = lab.run("c3", &Command::new(["true"])).unwrap_err().to_string();
    assert!(error.contains("no machine `c3`") && error.contains("c1, c2"), "{error}");
    let facts = lab.facts()?;
    assert_eq!(facts.back_end, back_end);
    if back_end != BackEnd::Namespaces {
        let names: Vec<_> = facts.machines.iter().map(|machine| machine.name.as_str()).collect();
        assert_eq!(names, ["server", "c1", "c2"]);
        assert_eq!(lab.guest_facts("c2")?.host_name, "c2");
        assert!(facts.wake_ups > 0.0);
    }
    assert!(lab.problems().is_empty(), "{:?}", lab.problems());
    drop(lab);
    gone(&config.name)
}

pub(super) fn streams(back_end: BackEnd) -> Result<(), Failed> {
    let config = config(back_end, "streams");
    let lab = up(&config)?;
    let mut stream = lab.stream("c1", &["cat".into()])?;
    // More than any buffer on the way holds.
    let data: Vec<u8> = (0..4 << 20).map(|number: u32| (number % 251) as u8).collect();
    let mut back = vec![0; data.len()];
    std::thread::scope(|scope| {
        let mut sending = stream.try_clone().unwrap();
        let data = &data;
        scope.spawn(move || {
            sending.write_all(data).unwrap();
            sending.shutdown(std::net::Shutdown::Write).unwrap();
        });
        stream.read_exact(&mut back).unwrap();
    });
    assert!(back == data);
    assert_eq!(stream.read(&mut [0; 1])?, 0, "the program has ended");
    let error = lab.stream("c1", &["/no/program".into()]).unwrap_err().to_string();
    assert!(error.contains("/no/program"), "{error}");
    let mut terminal = lab.shell("c1", &["sh".into()], (33, 77))?;
    terminal.write_all(b"stty size; tty; exit\n")?;
    let mut text = String::new();
    terminal.read_to_string(&mut text)?;
    assert!(text.contains("33 77") && text.contains("/dev/pts/"), "{text}");
    Ok(())
}

pub(super) fn files(back_end: BackEnd) -> Result<(), Failed> {
    let config = LabConfig { clients: 2, ..config(back_end, "files") };
    let lab = up(&config)?;
    for version in ["3", "4.0", "4.2"] {
        let mount = format!("mkdir -p /mnt/n; mount -t nfs -o vers={version} 10.77.0.1:/export /mnt/n");
        let written = Command::shell(&format!("{mount}; echo {version} >/mnt/n/{version}; umount /mnt/n"));
        let output = lab.run("c1", &written)?;
        assert_eq!(output.status, 0, "{output:?}");
        let read = Command::shell(&format!("{mount}; cat /mnt/n/{version}; umount /mnt/n"));
        let output = lab.run("c2", &read)?;
        assert_eq!((output.status, output.stdout.trim()), (0, version), "{output:?}");
    }
    let error = lab.set_link(&Link::default()).unwrap_err().to_string();
    assert!(error.contains("--emulated"), "{error}");
    Ok(())
}

pub(super) fn emulated(back_end: BackEnd) -> Result<(), Failed> {
    let config = LabConfig { emulated: true, ..config(back_end, "emulated") };
    let lab = up(&config)?;
    let mounted =
        lab.run("c1", &Command::shell("mkdir -p /mnt/n; mount -t nfs -o vers=4.2 10.77.0.1:/export /mnt/n"))?;
    assert_eq!(mounted.status, 0, "{mounted:?}");
    lab.set_link(&Link::of_delay(Duration::from_millis(100)))?;
    lab.clear_network_report()?;
    let start = Instant::now();
    let output = lab.run("c1", &Command::shell("stat /mnt/n/none 2>/dev/null || true; mkdir /mnt/n/made"))?;
    assert_eq!(output.status, 0, "{output:?}");
    // At least the round trip of MKDIR.
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    let report = lab.network_report()?;
    assert!(report.clients[0].to_server.frames >= 2, "{report:?}");
    assert_eq!(report.overruns(), 0, "{report:?}");
    Ok(())
}
