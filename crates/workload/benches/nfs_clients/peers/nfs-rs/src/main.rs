//! A load client on the crate `nfs-rs`: one thread, so many calls outstanding.
//!
//! `peer-nfs-rs HOST PORT VERSION OPERATION SIZE OUTSTANDING CONNECTIONS SECONDS`, as `libnfs.c` beside this.

use std::cell::Cell;
use std::error::Error;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use nfs_rs::{Mount, OPEN_READ};
use rustix::time::{ClockId, clock_gettime};
use tokio::task::LocalSet;

const DATA_SIZE: u64 = 256 << 20;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

#[derive(Clone, Copy, PartialEq)]
enum Operation {
    Read,
    Write,
    Getattr,
    Create,
}

struct Task {
    mount: Arc<dyn Mount>,
    operation: Operation,
    /// The file, or the directory to create in.
    file: Bytes,
    size: u64,
    offset: u64,
    step: u64,
    completed: Rc<Cell<u64>>,
    names: Rc<Cell<u64>>,
    /// A version without OPEN has no CLOSE either.
    closes: bool,
}

impl Task {
    async fn call(&self, data: &Bytes) -> Result<()> {
        match self.operation {
            // Larger calls than the connection takes are for the caller to split.
            Operation::Read => {
                let most = u64::from(self.mount.get_max_read_size());
                let mut done = 0;
                while done < self.size {
                    let want = most.min(self.size - done) as u32;
                    let read = self.mount.read(self.file.clone(), self.offset + done, want).await?;
                    if read.is_empty() {
                        return Err("the file is too short".into());
                    }
                    done += read.len() as u64;
                }
            }
            Operation::Write => {
                let most = u64::from(self.mount.get_max_write_size());
                let mut done = 0;
                while done < self.size {
                    let part = data.slice(done as usize..(done + most.min(self.size - done)) as usize);
                    let outcome = self.mount.write(self.file.clone(), self.offset + done, part).await?;
                    if outcome.count == 0 {
                        return Err("nothing was written".into());
                    }
                    done += u64::from(outcome.count);
                }
            }
            Operation::Getattr => drop(self.mount.getattr(self.file.clone()).await?),
            Operation::Create => {
                let name = self.names.replace(self.names.get() + 1).to_string();
                let made = self.mount.create(self.file.clone(), &name, Some(0o644)).await?;
                if self.closes {
                    self.mount.close(made.fh).await?;
                }
            }
        }
        Ok(())
    }

    async fn run(mut self) {
        let data = Bytes::from(vec![0; if self.operation == Operation::Write { self.size as usize } else { 0 }]);
        loop {
            if let Err(error) = self.call(&data).await {
                eprintln!("nfs-rs: a call failed: {error}");
                std::process::exit(1);
            }
            self.completed.set(self.completed.get() + 1);
            if self.size > 0 {
                self.offset = (self.offset + self.step) % (DATA_SIZE - self.size + 1) / self.size * self.size;
            }
        }
    }
}

fn cpu() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

async fn measure() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [host, port, version, operation, size, outstanding, connections, seconds] = &arguments[..] else {
        return Err("peer-nfs-rs HOST PORT VERSION OPERATION SIZE OUTSTANDING CONNECTIONS SECONDS".into());
    };
    let operation = match operation.as_str() {
        "read" => Operation::Read,
        "write" => Operation::Write,
        "getattr" => Operation::Getattr,
        "create" => Operation::Create,
        other => return Err(format!("no operation {other}").into()),
    };
    let size: u64 = size.parse()?;
    let (outstanding, connections): (u64, u64) = (outstanding.parse()?, connections.parse()?);
    let seconds: f64 = seconds.parse()?;
    let url = format!("nfs://{host}/export?version={version}&nfsport={port}&mountport={port}&noresvport=true");
    let own = std::process::id();
    let mut mounts: Vec<(Arc<dyn Mount>, Bytes)> = Vec::new();
    for number in 0..connections {
        let mount: Arc<dyn Mount> = Arc::from(nfs_rs::parse_url_and_mount(&url).await?);
        let file = match operation {
            Operation::Read | Operation::Getattr => mount.open_path("data", OPEN_READ).await?.fh,
            Operation::Write => mount.create_path(&format!("written-{own}-{number}"), Some(0o644)).await?.fh,
            Operation::Create if number == 0 => mount.mkdir_path(&format!("made-{own}"), 0o755).await?.fh,
            Operation::Create => mounts[0].1.clone(),
        };
        mounts.push((mount, file));
    }
    let (completed, names) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    for number in 0..outstanding {
        let (mount, file) = &mounts[(number % connections) as usize];
        let task = Task {
            mount: Arc::clone(mount),
            operation,
            file: file.clone(),
            size,
            offset: if size == 0 { 0 } else { number * size % (DATA_SIZE - size + 1) / size * size },
            step: size * outstanding,
            completed: Rc::clone(&completed),
            names: Rc::clone(&names),
            closes: version != "3",
        };
        tokio::task::spawn_local(task.run());
    }
    tokio::time::sleep(Duration::from_secs_f64(seconds / 10.0)).await;
    while completed.get() < outstanding {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (before, used, started) = (completed.get(), cpu(), Instant::now());
    tokio::time::sleep(Duration::from_secs_f64(seconds)).await;
    while completed.get() - before < 10 * outstanding {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let elapsed = started.elapsed().as_secs_f64();
    println!("{} {elapsed:.9} {:.9}", completed.get() - before, cpu() - used);
    // Calls are outstanding; the server sees the connections close.
    std::process::exit(0);
}

fn main() -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, measure())
}
