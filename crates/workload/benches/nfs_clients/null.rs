//! The least that a client can do: READs over version 3 from a prepared request, a reply's data copied to where it
//! belongs, one receive and one send per batch. No recording, no clock, no checks but the lengths.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use benchmaster_nfs_client::mount::Mount;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::reactor::Reactor;
use benchmaster_nfs_client::rpc::credential;
use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{AuthFlavor, CallHeader, OpaqueAuth, RPC_VERSION};
use benchmaster_nfs_proto::v3::{PROGRAM, Proc3, ReadArgs, VERSION};
use benchmaster_nfs_proto::xdr::Encoder;

use super::job::{Job, Operation, Outcome};
use super::ours::cpu_seconds;

/// Does the job in this thread.
pub(crate) fn run(job: &Job) -> Result<Outcome> {
    ensure!((job.operation, job.version.as_str()) == (Operation::Read, "3"), "it only reads, over version 3");
    let (tasks, size) = (job.outstanding as usize, job.size as usize);
    let mut request = request(job)?;
    let offset_at = request.len() - 12;
    let mut places: Vec<_> = (0..job.outstanding).map(|task| job.places(task)).collect();
    let mut destinations = vec![vec![0; size]; tasks];
    let mut received = vec![0; (256 << 10).max(2 * size)];
    let (mut end, mut completed, mut counting, started) = (0, 0u64, None, Instant::now());
    let mut stream = TcpStream::connect((job.host.as_str(), job.port))?;
    stream.set_nodelay(true)?;
    // The transaction number is the number of the task, whose next request waits for its last reply.
    let mut answered: Vec<usize> = (0..tasks).collect();
    let mut batch = Vec::new();
    loop {
        batch.clear();
        for task in answered.drain(..) {
            request[4..8].copy_from_slice(&(task as u32).to_be_bytes());
            let place = places[task].next().context("places have no end")?;
            request[offset_at..offset_at + 8].copy_from_slice(&place.to_be_bytes());
            batch.extend_from_slice(&request);
        }
        stream.write_all(&batch)?;
        let elapsed = started.elapsed().as_secs_f64();
        match counting {
            None if elapsed > job.seconds / 10.0 => counting = Some((completed, elapsed, cpu_seconds())),
            Some((before, begin, cpu)) if elapsed - begin > job.seconds => {
                let calls = completed - before;
                return Ok(Outcome { calls, seconds: elapsed - begin, cpu: cpu_seconds() - cpu });
            }
            _ => {}
        }
        let n = stream.read(&mut received[end..])?;
        ensure!(n > 0, "the server has closed the connection");
        end += n;
        let mut start = 0;
        while let Some(mark) = received[start..end].first_chunk() {
            let length = (u32::from_be_bytes(*mark) & !record::LAST_FRAGMENT) as usize;
            let Some(reply) = received[start..end].get(record::HEADER..record::HEADER + length) else {
                break;
            };
            let xid = reply.first_chunk().map_or(0, |xid| u32::from_be_bytes(*xid)) as usize;
            let data = reply.len().checked_sub(size).context("a short reply")?;
            destinations.get_mut(xid).context("a stray reply")?.copy_from_slice(&reply[data..]);
            answered.push(xid);
            start += record::HEADER + length;
        }
        completed += answered.len() as u64;
        received.copy_within(start..end, 0);
        end -= start;
    }
}

/// A READ of the file, with record mark; it ends with offset and length.
fn request(job: &Job) -> Result<Vec<u8>> {
    let reactor = Reactor::new()?;
    let options = job.url().parse()?;
    let handle = reactor.block_on(async {
        let mount = Mount::connect(&reactor, &options, "null").await?;
        let client = mount.client();
        let (handle, _) = client.lookup(&client.root(), b"data").await?;
        mount.unmount().await?;
        Ok::<_, anyhow::Error>(handle)
    })??;
    let credential = credential("benchmaster", 0, 0, &[]);
    let mut e = Encoder::new();
    let mark = record::begin(&mut e);
    e.put(&CallHeader {
        xid: 0,
        rpc_version: RPC_VERSION,
        program: PROGRAM,
        version: VERSION,
        procedure: Proc3::READ.0,
        cred: OpaqueAuth { flavor: AuthFlavor::SYS, body: credential[..].into() },
        verf: OpaqueAuth::NONE,
    });
    e.put(&ReadArgs { file: handle.bytes().into(), offset: 0, count: job.size as u32 });
    record::end(&mut e, mark);
    Ok(e.buffer().to_vec())
}
