//! A client that carries its operations out one after the other and tells the oracle what it sees.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::mount::{File, Mount, OpenFlags};
use benchmaster_nfs_client::options::{Cache, MountOptions};
use benchmaster_nfs_client::protocol::NfsResult;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::rpc::Transport;
use benchmaster_nfs_client::types::{LockKind, Range};

use crate::history::Who;
use crate::oracle::{HELD, Seen};
use crate::scenario::{Name, Op, Scenario, Step, letter};
use crate::simulation::{AUDITOR, NAME, PORT, Simulation};

/// Bytes of a block.
const BLOCK: usize = 512;
const COUNTER: &[u8] = b"/shared/counter";
const ALL: Range = Range { offset: 0, length: 0 };
/// How long a client waits for a reply before it sends the call again on a new connection.
const TIMEOUT_S: u64 = 5;

/// What all clients of a scenario share.
#[derive(Debug, Clone)]
pub(crate) struct Site {
    pub(crate) world: Rc<Simulation>,
    pub(crate) reactor: Reactor,
}

/// How a client mounts.
pub(crate) fn options(scenario: &Scenario, client: usize) -> MountOptions {
    let auditor = client == AUDITOR;
    let mut options = MountOptions::new(format!("10.0.0.{client}"), "/export");
    options.version = scenario.version;
    options.port = Some(PORT);
    options.mount_port = Some(PORT);
    options.timeo = Some(Duration::from_secs(TIMEOUT_S));
    // As a hard mount: an operation ends when the server has answered.
    options.retrans = Some(1000);
    if scenario.udp {
        options.transport = Transport::Udp;
        options.timeo = Some(Duration::from_millis(1100));
        options.read_size = 8192;
        options.write_size = 8192;
    }
    if scenario.cached && !auditor {
        options.cache = Cache::Linux;
    }
    if scenario.hurried && options.cache == Cache::Linux {
        options.paging.dirty_expire = Duration::from_millis(100);
        options.paging.dirty_writeback = Duration::from_millis(50);
    }
    options
}

fn flags(read: bool, write: bool, create: bool, exclusive: bool) -> OpenFlags {
    OpenFlags { read, write, create, exclusive, ..OpenFlags::READ }
}

fn path(client: usize, name: &str) -> Vec<u8> {
    format!("/c{client}/{name}").into_bytes()
}

fn own(client: usize, name: Name) -> Vec<u8> {
    path(client, &letter(name).to_string())
}

fn record_of(client: usize) -> Vec<u8> {
    format!("/shared/record{client}").into_bytes()
}

/// Makes what clients find, and leaves.
pub(crate) async fn prepare(site: &Site, scenario: &Scenario) -> Result<(), String> {
    let fail = |error: NfsError| error.to_string();
    let mount = Mount::connect(&site.reactor, &options(scenario, AUDITOR), "auditor")
        .await
        .map_err(|error| error.to_string())?;
    mount.mkdir(b"/shared", 0o777).await.map_err(fail)?;
    write_block(&mount, COUNTER, 0, 0, true).await.map_err(fail)?;
    for client in 0..scenario.clients.len() {
        mount.mkdir(format!("/c{client}").as_bytes(), 0o777).await.map_err(fail)?;
        write_block(&mount, &record_of(client), 0, 0, true).await.map_err(fail)?;
    }
    mount.unmount().await.map_err(fail)
}

/// Looks at everything when all is over.
pub(crate) async fn audit(site: &Site, scenario: &Scenario) -> Result<(), String> {
    let fail = |error: NfsError| error.to_string();
    let mount = Mount::connect(&site.reactor, &options(scenario, AUDITOR), "auditor")
        .await
        .map_err(|error| error.to_string())?;
    for client in 0..scenario.clients.len() {
        let mut files = BTreeMap::new();
        for name in list(&mount, client).await.map_err(fail)? {
            let path = path(client, &name);
            let size = mount.stat(&path).await.map_err(fail)?.size;
            let mut blocks = Vec::new();
            for block in 0..size.div_ceil(BLOCK as u64) {
                match read_block(&mount, &path, block).await.map_err(fail)? {
                    Seen::Value(Some(value)) => blocks.push(value),
                    other => return Err(format!("block {block} of {name} of client {client}: {other:?}")),
                }
            }
            files.insert(name, blocks);
        }
        site.world.oracle.borrow_mut().found(client, &files);
    }
    match read_block(&mount, COUNTER, 0).await.map_err(fail)? {
        Seen::Value(Some(value)) => site.world.oracle.borrow_mut().counter_found(value),
        other => return Err(format!("the counter: {other:?}")),
    }
    for client in 0..scenario.clients.len() {
        let least = site.world.oracle.borrow().generation(client);
        let seen = read_block(&mount, &record_of(client), 0).await.map_err(fail)?;
        site.world.oracle.borrow_mut().observed(AUDITOR, client, least, &seen);
    }
    mount.unmount().await.map_err(fail)
}

/// One client from its mount to its end.
pub(crate) async fn client(site: &Site, scenario: &Scenario, number: usize, steps: &[Step]) {
    let world = &site.world;
    let who = Who::Client(number as u8);
    let mount = Mount::connect(&site.reactor, &options(scenario, number), &format!("{NAME}{number}")).await;
    let mount = match mount {
        Ok(mount) => mount,
        Err(error) => {
            let what = format!("client {number} cannot mount: {error}");
            world.oracle.borrow_mut().wrong.get_or_insert(what);
            return;
        }
    };
    let mut held = None;
    for step in steps {
        site.reactor.sleep(step.pause).await;
        if world.oracle.borrow().wrong.is_some() {
            break;
        }
        let op = step.op;
        if matches!(op, Op::Increment { .. }) && !scenario.has_locks() {
            continue;
        }
        // What is left of a scenario may lack its beginning.
        if held.is_none() && matches!(op, Op::WriteHeld { .. } | Op::SyncHeld | Op::Release)
            || held.is_some() && op == Op::Hold
        {
            continue;
        }
        world.note(who, op.to_string());
        world.oracle.borrow_mut().begins(number, op, world.elapsed());
        let shared = match op {
            Op::Increment { hold } => Some(increment(site, &mount, number, hold).await),
            Op::Publish => Some(publish(site, &mount, number).await),
            Op::Observe { of } => Some(observe(site, &mount, number, usize::from(of)).await),
            _ => None,
        };
        match shared {
            Some(result) => {
                let error = result.err().map(|error| error.to_string());
                world.note(who, format!("{op}: {}", error.as_deref().unwrap_or("done")));
                world.oracle.borrow_mut().shared_ends(number, op, error.as_deref(), world.elapsed());
            }
            None => {
                let seen =
                    perform(&mount, number, &mut held, op).await.unwrap_or_else(|error| seen_of(&error));
                world.note(who, format!("{op}: {seen:x?}"));
                world.oracle.borrow_mut().ends(number, op, &seen, world.elapsed());
            }
        }
    }
    if let Some(file) = held.take() {
        world.note(who, Op::Release.to_string());
        world.oracle.borrow_mut().begins(number, Op::Release, world.elapsed());
        let seen = mount.close(file).await.map_or_else(|error| seen_of(&error), |()| Seen::Done);
        world.oracle.borrow_mut().ends(number, Op::Release, &seen, world.elapsed());
    }
    // A server that was started again meanwhile may know less than the client gives back.
    let result = mount.unmount().await;
    world.note(
        who,
        format!("unmounts: {}", result.map_or_else(|error| error.to_string(), |()| "done".into())),
    );
}

fn seen_of(error: &NfsError) -> Seen {
    match error {
        error if error.is_absent() => Seen::Absent,
        error if error.is_present() => Seen::Present,
        error => Seen::Failed(error.to_string()),
    }
}

async fn perform(mount: &Mount, client: usize, held: &mut Option<File>, op: Op) -> NfsResult<Seen> {
    match op {
        Op::Create { name, exclusive } => {
            let file = mount.open(&own(client, name), &flags(false, true, true, exclusive)).await?;
            mount.close(file).await?;
        }
        Op::Write { name, block, value } => {
            write_block(mount, &own(client, name), block, value, false).await?
        }
        Op::Read { name, block } => return read_block(mount, &own(client, name), block).await,
        Op::Stat { name } => {
            let size = mount.stat(&own(client, name)).await?.size;
            let blocks = size / BLOCK as u64;
            let whole = size.is_multiple_of(BLOCK as u64);
            return Ok(if whole { Seen::Size(blocks) } else { Seen::Failed(format!("{size} bytes")) });
        }
        Op::Truncate { name, blocks } => mount.truncate(&own(client, name), blocks * BLOCK as u64).await?,
        Op::Remove { name } => mount.remove(&own(client, name)).await?,
        Op::Rename { from, to } => mount.rename(&own(client, from), &own(client, to)).await?,
        Op::List => return Ok(Seen::Names(list(mount, client).await?)),
        Op::Hold => *held = Some(mount.open(&path(client, HELD), &flags(true, true, true, false)).await?),
        Op::WriteHeld { block, value } => {
            if let Some(file) = held {
                put(mount, file, block, value).await?;
            }
        }
        Op::SyncHeld => {
            if let Some(file) = held {
                mount.fsync(file).await?;
            }
        }
        Op::Release => {
            if let Some(file) = held.take() {
                mount.close(file).await?;
            }
        }
        Op::Increment { .. } | Op::Publish | Op::Observe { .. } => {}
    }
    Ok(Seen::Done)
}

async fn list(mount: &Mount, client: usize) -> NfsResult<BTreeSet<String>> {
    let mut names = BTreeSet::new();
    let directory = format!("/c{client}");
    mount
        .readdir(directory.as_bytes(), &mut |entry| {
            names.insert(String::from_utf8_lossy(entry.name).into_owned());
        })
        .await?;
    Ok(names)
}

async fn write_block(mount: &Mount, path: &[u8], block: u64, value: u64, create: bool) -> NfsResult<()> {
    let file = mount.open(path, &flags(false, true, create, false)).await?;
    let written = put(mount, &file, block, value).await;
    written.and(mount.close(file).await)
}

async fn put(mount: &Mount, file: &File, block: u64, value: u64) -> NfsResult<()> {
    let data = value.to_be_bytes().repeat(BLOCK / 8);
    let mut done = 0;
    while done < BLOCK {
        done += mount.write(file, &data[done..], block * BLOCK as u64 + done as u64).await?;
    }
    Ok(())
}

async fn read_block(mount: &Mount, path: &[u8], block: u64) -> NfsResult<Seen> {
    let file = mount.open(path, &flags(true, false, false, false)).await?;
    let read = get(mount, &file, block).await;
    let closed = mount.close(file).await;
    let read = read?;
    closed?;
    Ok(read)
}

async fn get(mount: &Mount, file: &File, block: u64) -> NfsResult<Seen> {
    let mut data = [0; BLOCK];
    let len = mount.read(file, &mut data, block * BLOCK as u64).await?;
    let mut values: Vec<u64> =
        data[..len].as_chunks().0.iter().map(|bytes| u64::from_be_bytes(*bytes)).collect();
    values.dedup();
    Ok(match values[..] {
        [] => Seen::Value(None),
        [value] if len == BLOCK => Seen::Value(Some(value)),
        _ => Seen::Torn(values),
    })
}

async fn increment(site: &Site, mount: &Mount, client: usize, hold: Duration) -> NfsResult<()> {
    let oracle = &site.world.oracle;
    let file = mount.open(COUNTER, &flags(true, true, false, false)).await?;
    let result = async {
        mount.lock(&file, LockKind::Write, ALL, true).await?;
        site.world.note(Who::Client(client as u8), "has the lock".into());
        oracle.borrow_mut().locked(client, site.world.elapsed());
        let Seen::Value(Some(value)) = get(mount, &file, 0).await? else {
            return Err(NfsError::Nonsense("the counter is no number"));
        };
        oracle.borrow_mut().counted(client, value);
        site.reactor.sleep(hold).await;
        oracle.borrow_mut().increments();
        put(mount, &file, 0, value + 1).await?;
        mount.fsync(&file).await?;
        oracle.borrow_mut().incremented();
        oracle.borrow_mut().unlocks(client);
        mount.unlock(&file, ALL).await
    }
    .await;
    oracle.borrow_mut().unlocks(client);
    let closed = mount.close(file).await;
    result.and(closed)
}

async fn publish(site: &Site, mount: &Mount, client: usize) -> NfsResult<()> {
    let generation = site.world.oracle.borrow_mut().publishes(client);
    write_block(mount, &record_of(client), 0, generation, false).await?;
    site.world.oracle.borrow_mut().published(client, generation);
    Ok(())
}

async fn observe(site: &Site, mount: &Mount, client: usize, of: usize) -> NfsResult<()> {
    let least = site.world.oracle.borrow().generation(of);
    let seen = read_block(mount, &record_of(of), 0).await?;
    site.world.oracle.borrow_mut().observed(client, of, least, &seen);
    Ok(())
}
