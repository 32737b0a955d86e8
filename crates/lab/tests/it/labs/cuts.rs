//! Power cuts of the server: what was acknowledged as stable is there afterwards, where server and disk keep their word.
//!
//! Writers append numbered blocks of 4 KiB until power is cut; then every file is read back. Some write each block as a stable
//! WRITE, others commit many at once, so that the disk's cache is not empty. A block that is stable by what the server
//! answered, and is not there, is lost. `BENCHMASTER_CUTS` sets the number of cuts of each test, and `BENCHMASTER_CUTS_SEED`
//! their first seed (1): the tests measure, then, and print what they counted.

use std::fs;
use std::io::Write as _;
use std::net::Ipv4Addr;
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use benchmaster_lab::facts::ProblemKind;
use benchmaster_lab::guest::Command;
use benchmaster_lab::{
    BackEnd, CutDisk, FileSystem, KnfsdConfig, Lab, LabConfig, LabError, PowerCut, Recent, ServerKind,
    network,
};
use benchmaster_nfs_client::mount::{Mount, OpenFlags};
use benchmaster_nfs_client::options::MountOptions;
use benchmaster_nfs_client::reactor::Reactor;
use libtest_mimic::Failed;

use super::{config, up};

const BLOCK: usize = 4096;
const WRITERS: u64 = 4;
/// Blocks of a COMMIT.
const BATCH: u64 = 64;

/// What the cuts of a test came to.
#[derive(Debug, Default)]
struct Counted {
    cuts: u64,
    /// Of blocks that were stable.
    written: u64,
    lost: u64,
    cuts_with_loss: u64,
    repaired: u64,
    at_risk: u64,
    outage: Duration,
}

pub(super) fn sync_on_ext4(back_end: BackEnd) -> Result<(), Failed> {
    nothing_lost(back_end, FileSystem::Ext4)
}

pub(super) fn sync_on_xfs(back_end: BackEnd) -> Result<(), Failed> {
    nothing_lost(back_end, FileSystem::Xfs)
}

fn nothing_lost(back_end: BackEnd, file_system: FileSystem) -> Result<(), Failed> {
    let name = file_system.to_string();
    let lab = lab(back_end, &name, knfsd(file_system, true))?;
    let counted = cuts(&lab, &format!("sync on {name}"), CutDisk::Cached, 5)?;
    assert_eq!(counted.lost, 0, "{counted:?}");
    Ok(())
}

pub(super) fn asynchronous(back_end: BackEnd) -> Result<(), Failed> {
    let lab = lab(back_end, "async", knfsd(FileSystem::Ext4, false))?;
    let counted = cuts(&lab, "async on ext4", CutDisk::Cached, 3)?;
    assert!(counted.cuts_with_loss * 20 >= counted.cuts * 19, "{counted:?}");
    Ok(())
}

pub(super) fn lying(back_end: BackEnd) -> Result<(), Failed> {
    let lab = lab(back_end, "lying", knfsd(FileSystem::Ext4, true))?;
    let counted = cuts(&lab, "sync on ext4", CutDisk::Lying(Recent::Writes(200)), 5)?;
    assert!(counted.cuts_with_loss > 0, "{counted:?}");
    Ok(())
}

/// What would be seen if the server or its file system forgot to flush: `sync` promises nothing then.
pub(super) fn without_barriers(back_end: BackEnd) -> Result<(), Failed> {
    let knfsd = KnfsdConfig { mount_options: "nobarrier".into(), ..knfsd(FileSystem::Ext4, true) };
    let lab = lab(back_end, "barriers", knfsd)?;
    let counted = cuts(&lab, "without barriers", CutDisk::Cached, 5)?;
    assert!(counted.cuts_with_loss > 0, "{counted:?}");
    Ok(())
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |value| value.parse().unwrap())
}

fn knfsd(file_system: FileSystem, sync: bool) -> KnfsdConfig {
    // Clients have to find out within the grace period, however busy this host is.
    let lease = Duration::from_secs(30);
    KnfsdConfig { file_system, sync, lease, disk_size: 512 << 20, ..KnfsdConfig::default() }
}

fn lab(back_end: BackEnd, name: &str, knfsd: KnfsdConfig) -> Result<Lab, LabError> {
    let server = ServerKind::Knfsd(knfsd);
    up(&LabConfig { server, clients: 2, power_cuts: true, ..config(back_end, name) })
}

fn cuts(lab: &Lab, what: &str, disk: CutDisk, number: u64) -> Result<Counted, Failed> {
    let first = setting("BENCHMASTER_CUTS_SEED", 1);
    let mut counted = Counted::default();
    for seed in first..first + setting("BENCHMASTER_CUTS", number) {
        one(lab, PowerCut { disk, seed }, &mut counted)?;
        let Counted { cuts, written, lost, cuts_with_loss, repaired, at_risk, outage } = &counted;
        println!(
            "{what}, {disk:?}: {cuts} cuts (last seed {seed}), {lost} of {written} blocks lost in {cuts_with_loss} cuts, \
             {repaired} repairs, {at_risk} writes were at risk, mean outage {:?}",
            *outage / *cuts as u32
        );
    }
    Ok(counted)
}

/// A writer's file after a cut: blocks that were stable, and those of them that are not there.
struct File {
    stable: u64,
    lost: u64,
}

fn one(lab: &Lab, cut: PowerCut, counted: &mut Counted) -> Result<(), Failed> {
    let (stop, answered) = (AtomicBool::new(false), AtomicU64::new(0));
    // So that cuts come at all places of what the file system does.
    let enough = 100 + cut.seed * 137 % 1500;
    let (facts, files) = std::thread::scope(|scope| {
        let writer = |number: u64| {
            let (stop, answered) = (&stop, &answered);
            let write =
                move || in_lab(async |reactor| write(&reactor, number, cut.seed, stop, answered).await);
            scope.spawn(move || lab.namespace().run(write).unwrap())
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        while answered.load(Ordering::Relaxed) < enough && !writers.iter().any(|writer| writer.is_finished())
        {
            std::thread::sleep(Duration::from_millis(1));
        }
        let facts = lab.cut_server(&cut);
        stop.store(true, Ordering::Relaxed);
        (facts, writers.into_iter().map(|writer| writer.join().unwrap()).collect::<Vec<_>>())
    });
    let facts = facts?;
    let files: Result<Vec<File>, Failed> = files
        .into_iter()
        .zip(0..)
        .map(|(stable, number)| {
            let check = || in_lab(async |reactor| read_back(&reactor, number, cut.seed, stable).await);
            Ok(File { stable, lost: lab.namespace().run(check).unwrap() })
        })
        .collect();
    let files = files?;
    let lost: u64 = files.iter().map(|file| file.lost).sum();
    counted.cuts += 1;
    counted.written += files.iter().map(|file| file.stable).sum::<u64>();
    counted.lost += lost;
    counted.cuts_with_loss += u64::from(lost > 0);
    counted.repaired += u64::from(facts.repaired.is_some());
    counted.at_risk += facts.disk.at_risk;
    counted.outage += facts.outage;
    if lost > 0 || facts.repaired.is_some() {
        println!("seed {}: {lost} blocks lost; {facts:?}", cut.seed);
    }
    Ok(())
}

fn in_lab<F: Future>(what: impl FnOnce(Reactor) -> F) -> F::Output {
    const PATIENCE: Duration = Duration::from_secs(300);
    let reactor = Reactor::new().unwrap();
    let all = what(reactor.clone());
    let deadline = std::time::Instant::now() + PATIENCE;
    reactor.block_on(reactor.until(deadline, all)).unwrap().expect("the client hangs")
}

/// Mounts, while the server is off, too.
async fn mount(reactor: &Reactor) -> Mount {
    let server: Ipv4Addr = network::control_address(0);
    let options = format!("nfs://{server}/export?version=3&timeo=10&retrans=100");
    let options: MountOptions = options.parse().unwrap();
    loop {
        match Mount::connect(reactor, &options, "witness").await {
            Ok(mount) => return mount,
            Err(_) => reactor.sleep(Duration::from_millis(100)).await,
        }
    }
}

fn name(writer: u64, seed: u64) -> Vec<u8> {
    format!("witness-{seed}-{writer}").into_bytes()
}

/// What a block holds.
fn stamp(writer: u64, seed: u64, block: u64) -> Vec<u8> {
    [seed, writer, block, 0].map(u64::to_le_bytes).concat().repeat(BLOCK / 32)
}

/// Appends blocks until it is to stop; the number of those that are stable.
async fn write(reactor: &Reactor, writer: u64, seed: u64, stop: &AtomicBool, all: &AtomicU64) -> u64 {
    let mount = mount(reactor).await;
    let commits = writer % 2 == 1;
    let flags = OpenFlags { sync: !commits, ..OpenFlags::CREATE };
    let file = mount.open(&name(writer, seed), &flags).await.unwrap();
    let (mut written, mut stable) = (0, 0);
    while !stop.load(Ordering::Relaxed) {
        let data = stamp(writer, seed, written);
        let mut done = mount.write(&file, &data, written * BLOCK as u64).await.map(drop);
        written += 1;
        if commits && done.is_ok() && written % BATCH == 0 {
            done = mount.fsync(&file).await;
        }
        match done {
            Ok(()) if !commits || written % BATCH == 0 => stable = written,
            Ok(()) => {}
            // The file itself was lost.
            Err(error) => {
                println!("writer {writer}: {error}");
                break;
            }
        }
        all.fetch_add(1, Ordering::Relaxed);
    }
    stable
}

/// How many of the first blocks of a file are not there; it is removed.
async fn read_back(reactor: &Reactor, writer: u64, seed: u64, blocks: u64) -> u64 {
    let mount = mount(reactor).await;
    let name = name(writer, seed);
    let Ok(file) = mount.open(&name, &OpenFlags::READ).await else { return blocks };
    let mut lost = 0;
    for block in 0..blocks {
        let mut data = vec![0; BLOCK];
        let read = mount.read(&file, &mut data, block * BLOCK as u64).await.unwrap_or(0);
        lost += u64::from(data[..read] != stamp(writer, seed, block)[..]);
    }
    mount.close(file).await.unwrap();
    mount.remove(&name).await.unwrap();
    mount.unmount().await.unwrap();
    lost
}

/// In a machine, a program that has a file open and locked, and writes into it once more on request.
pub(crate) fn hold_lock(file: &str, signs: &str) -> ExitCode {
    let sign = |name: &str| format!("{signs}.{name}");
    let mut file = fs::File::create(file).unwrap();
    file.lock().unwrap();
    let mut write = |text: &str, done: &str| {
        file.write_all(text.as_bytes()).unwrap();
        file.sync_all().unwrap();
        fs::write(sign(done), "").unwrap();
    };
    write("before\n", "holds");
    while !fs::exists(sign("go")).unwrap() {
        std::thread::sleep(Duration::from_millis(100));
    }
    write("after\n", "wrote");
    loop {
        std::thread::park();
    }
}

/// Clients of the kernel go on by themselves: what they have open and locked they reclaim.
pub(super) fn clients_go_on(back_end: BackEnd) -> Result<(), Failed> {
    const VERSIONS: [&str; 3] = ["3", "4.0", "4.2"];
    let lab = lab(back_end, "go-on", knfsd(FileSystem::Ext4, true))?;
    let shell = |machine: &str, script: &str| {
        let output =
            lab.run(machine, &Command { limit: Duration::from_secs(150), ..Command::shell(script) })?;
        if output.status == 0 {
            Ok(output.stdout)
        } else {
            Err(Failed::from(format!("{script}: {output:?}")))
        }
    };
    for version in VERSIONS {
        shell(
            "c1",
            &format!(
                "mkdir -p /mnt/{version}; mount -t nfs -o vers={version} 10.77.0.1:/export /mnt/{version}
                 setsid /benchmaster hold-lock /mnt/{version}/held{version} /tmp/{version} >/tmp/{version}.said 2>&1 </dev/null &
                 until [ -e /tmp/{version}.holds ]; do sleep 0.1; done"
            ),
        )?;
    }
    // Else nfsdcld forgets the last client: SQLite does not wait for the removal of its journal, with which it commits.
    shell("server", "sync")?;
    let facts = lab.cut_server(&PowerCut { disk: CutDisk::Cached, seed: 1 })?;
    assert_eq!((facts.repaired.as_deref(), facts.grace), (None, true), "{facts:?}");
    let messages = shell("server", "dmesg")?;
    assert!(messages.contains("nfsdcld client tracking"), "{messages}");
    for version in VERSIONS {
        let held = format!("/mnt/{version}/held{version}");
        let text = shell(
            "c1",
            &format!("touch /tmp/{version}.go; until [ -e /tmp/{version}.wrote ] || [ -s /tmp/{version}.said ]; do sleep 0.1; done
                      cat /tmp/{version}.said {held}"),
        )?;
        assert_eq!(text, "before\nafter\n", "{version}");
        // Its lock is held again.
        shell(
            "server",
            &format!(
                "inode=$(stat -c %i /srv/nfs/export/held{version})
                 until grep \"POSIX.*:$inode \" /proc/locks; do sleep 0.1; done"
            ),
        )?;
    }
    let problems = lab.problems();
    let ended = |what: &ProblemKind| matches!(what, ProblemKind::Ended | ProblemKind::Hangs);
    assert!(!problems.iter().any(|problem| ended(&problem.what)), "{problems:?}");
    Ok(())
}

/// What is not cut says why.
pub(super) fn refused(back_end: BackEnd) -> Result<(), Failed> {
    let cut = PowerCut { disk: CutDisk::Durable, seed: 1 };
    let lab = up(&config(back_end, "uncut"))?;
    let error = lab.cut_server(&cut).unwrap_err().to_string();
    assert!(error.contains("power_cuts"), "{error}");
    drop(lab);
    let lab = self::lab(back_end, "memory", knfsd(FileSystem::Tmpfs, true))?;
    let error = lab.cut_server(&cut).unwrap_err().to_string();
    assert!(error.contains("tmpfs"), "{error}");
    drop(lab);
    let config = LabConfig { server: ServerKind::Memory, power_cuts: true, ..config(back_end, "none") };
    let error = up(&config).unwrap_err().to_string();
    assert!(error.contains("`power_cuts`") && error.contains("knfsd"), "{error}");
    Ok(())
}
