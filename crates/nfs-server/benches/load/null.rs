//! A server that does nothing: it receives the same calls and sends replies of the same size, all to one receive in one send.
//! What it costs is what the kernel and the load cost any server. The data come from as much memory, in the same order.

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};

use anyhow::{Context, Result, ensure};
use benchmaster_nfs_proto::record::LAST_FRAGMENT;

use super::calls::FILE_SIZE;

/// Bytes of a reply of READ in front of the data: record mark, RPC header, status, attributes, counts.
const HEAD: usize = 132;
const PAGE: usize = 4096;

/// Serves one connection after the other; READs of 4 KiB are all it knows.
pub(crate) fn serve(port: u16) -> Result<()> {
    let data = vec![0x5a; FILE_SIZE as usize];
    let listener = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))?;
    for stream in listener.incoming() {
        let stream = stream?;
        stream.set_nodelay(true)?;
        connection(stream, &data)?;
    }
    Ok(())
}

fn connection(mut stream: TcpStream, data: &[u8]) -> Result<()> {
    let (mut calls, mut kept) = (vec![0; 1 << 20], 0);
    let mut heads = Vec::new();
    let mut pages = (0u64..).map(|made| {
        let page = made.wrapping_mul(40_503) as usize % (data.len() / PAGE);
        &data[page * PAGE..][..PAGE]
    });
    loop {
        let received = stream.read(&mut calls[kept..])?;
        if received == 0 {
            return Ok(());
        }
        let (end, mut at) = (kept + received, 0);
        heads.clear();
        while let Some((mark, rest)) = calls[at..end].split_first_chunk::<4>() {
            let length = (u32::from_be_bytes(*mark) & !LAST_FRAGMENT) as usize;
            let Some(call) = rest.get(..length) else { break };
            let mut head = [0; HEAD];
            head[..4].copy_from_slice(&(LAST_FRAGMENT | (HEAD - 4 + PAGE) as u32).to_be_bytes());
            head[4..8].copy_from_slice(call.get(..4).context("a call without a number")?);
            head[11] = 1;
            heads.push(head);
            at += 4 + length;
        }
        calls.copy_within(at..end, 0);
        kept = end - at;
        let mut slices: Vec<IoSlice<'_>> = heads
            .iter()
            .zip(&mut pages)
            .flat_map(|(head, page)| [IoSlice::new(head), IoSlice::new(page)])
            .collect();
        let mut left = &mut slices[..];
        while !left.is_empty() {
            let sent = stream.write_vectored(left)?;
            ensure!(sent > 0, "nothing is sent");
            IoSlice::advance_slices(&mut left, sent);
        }
    }
}
