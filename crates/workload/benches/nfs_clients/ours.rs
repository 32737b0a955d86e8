//! Our client in a process of its own: by its protocol, or by its mount.

use std::cell::Cell;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, ensure};
use benchmaster_nfs_client::buffer::Buffer;
use benchmaster_nfs_client::mount::{Client, ClientFile, File, Mount, OpenFlags};
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::types::{Create, Handle, OpenHow, Stability};
use rustix::time::{ClockId, clock_gettime};

use super::job::{Job, Operation, Outcome};

/// Which layer is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Layer {
    /// One request for each call.
    Protocol,
    /// Paths, open files, splitting, writes that are kept until they are committed.
    Mount,
}

const PLAIN: OpenHow =
    OpenHow { read: false, write: false, create: Create::No, truncate: false, mode: 0o644 };

/// What tasks work on: one open file for all, as other clients do it, or a directory.
enum Subject {
    Protocol(ClientFile),
    Mount(File),
    /// For new files.
    Directory(Handle),
}

/// Does the job in this thread.
pub(crate) fn run(job: &Job, layer: Layer) -> Result<Outcome> {
    let reactor = Reactor::new()?;
    let options = job.url().parse()?;
    let identity = format!("bench-{}", std::process::id());
    let mount = reactor.block_on(Mount::connect(&reactor, &options, &identity))??;
    let subject = reactor.block_on(subject(job, layer, &mount))??;
    let (names, completed) = (Cell::new(0), Cell::new(0));
    let (over, outcome) = (Cell::new(false), Cell::new(None));
    let bench = Bench { job, layer, mount: &mount, subject, names, completed, over, outcome };
    let bench = &bench;
    // One future more, which keeps the time.
    let mut tasks: Vec<_> = (0..=job.outstanding)
        .map(|number| {
            let reactor = reactor.clone();
            Box::pin(async move {
                match number.checked_sub(1) {
                    None => {
                        bench.keep_time(&reactor).await;
                        Ok(())
                    }
                    Some(task) => bench.work(task).await.inspect_err(|_| bench.over.set(true)),
                }
            })
        })
        .collect();
    for result in reactor.run_all(&mut tasks)? {
        result?;
    }
    bench.outcome.get().ok_or_else(|| anyhow!("the time was not kept"))
}

/// Name of what this process makes.
fn own_name(kind: &str) -> String {
    format!("{kind}-{}", std::process::id())
}

async fn subject(job: &Job, layer: Layer, mount: &Mount) -> Result<Subject> {
    let (client, written) = (mount.client(), own_name("written"));
    let how = OpenHow { read: true, ..PLAIN };
    Ok(match (job.operation, layer) {
        (Operation::Create, _) => {
            let directory = own_name("made");
            mount.mkdir(directory.as_bytes(), 0o755).await?;
            Subject::Directory(client.lookup(&client.root(), directory.as_bytes()).await?.0)
        }
        (Operation::Write, Layer::Protocol) => {
            let how = OpenHow { write: true, create: Create::IfAbsent, ..how };
            Subject::Protocol(client.open(&client.root(), written.as_bytes(), &how).await?.file)
        }
        (Operation::Write, Layer::Mount) => {
            Subject::Mount(mount.open(written.as_bytes(), &OpenFlags::CREATE).await?)
        }
        (_, Layer::Protocol) => Subject::Protocol(client.open(&client.root(), b"data", &how).await?.file),
        (_, Layer::Mount) => Subject::Mount(mount.open(b"data", &OpenFlags::READ).await?),
    })
}

struct Bench<'a> {
    job: &'a Job,
    layer: Layer,
    mount: &'a Mount,
    subject: Subject,
    names: Cell<u64>,
    completed: Cell<u64>,
    over: Cell<bool>,
    outcome: Cell<Option<Outcome>>,
}

impl Bench<'_> {
    async fn keep_time(&self, reactor: &Reactor) {
        let seconds = Duration::from_secs_f64(self.job.seconds);
        reactor.sleep(seconds / 10).await;
        while self.completed.get() < self.job.outstanding.into() && !self.over.get() {
            reactor.sleep(Duration::from_millis(1)).await;
        }
        let (before, cpu, started) = (self.completed.get(), cpu_seconds(), Instant::now());
        reactor.sleep(seconds).await;
        while self.completed.get() - before < self.job.least() && !self.over.get() {
            reactor.sleep(Duration::from_millis(1)).await;
        }
        self.outcome.set(Some(Outcome {
            calls: self.completed.get() - before,
            seconds: started.elapsed().as_secs_f64(),
            cpu: cpu_seconds() - cpu,
        }));
        self.over.set(true);
    }

    async fn work(&self, task: u32) -> Result<()> {
        let mut buffer = Buffer::new(self.job.size as usize);
        for place in self.job.places(task).take_while(|_| !self.over.get()) {
            self.mount.renew(&mut buffer);
            let moved = self.call(&mut buffer, place).await?;
            ensure!(moved == buffer.len(), "{moved} of {} bytes were moved", buffer.len());
            self.completed.set(self.completed.get() + 1);
        }
        Ok(())
    }

    /// One call; returns how many bytes it moved.
    async fn call(&self, buffer: &mut Buffer, place: u64) -> Result<usize> {
        let (mount, client) = (self.mount, self.mount.client());
        let reads = self.job.operation == Operation::Read;
        Ok(match (&self.subject, self.job.operation) {
            (Subject::Directory(directory), _) => {
                let name = self.names.replace(self.names.get() + 1);
                match self.layer {
                    Layer::Protocol => {
                        let how = OpenHow { create: Create::IfAbsent, write: true, ..PLAIN };
                        let opened = client.open(directory, name.to_string().as_bytes(), &how).await?;
                        client.close(opened.file).await?;
                    }
                    Layer::Mount => {
                        let path = format!("{}/{name}", own_name("made"));
                        mount.close(mount.open(path.as_bytes(), &OpenFlags::CREATE).await?).await?;
                    }
                }
                0
            }
            (Subject::Protocol(file), Operation::Read | Operation::Write) => {
                if reads {
                    client.read(file, buffer, place).await?.len
                } else {
                    client.write(file, buffer, place, Stability::Unstable).await?.len
                }
            }
            (Subject::Protocol(file), _) => {
                client.getattr(&<Client as Protocol>::handle(file)).await?;
                0
            }
            (Subject::Mount(file), Operation::Read | Operation::Write) => {
                if reads {
                    mount.read(file, buffer, place).await?
                } else {
                    // What is written is new each time.
                    if let Some(byte) = buffer.first_mut() {
                        *byte = byte.wrapping_add(1);
                    }
                    mount.write_buffer(file, buffer, 0..buffer.len(), place).await?
                }
            }
            (Subject::Mount(file), _) => {
                mount.stat_file(file).await?;
                0
            }
        })
    }
}

/// CPU time of this process.
pub(crate) fn cpu_seconds() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
