//! Servers that list a directory without end, over sockets: each listing ends in an error, in bounded time and memory,
//! and can be given up at any moment.

use std::cell::Cell;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::{Duration, Instant};

use benchmaster_nfs_client::error::NfsError;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::{v3, v4};
use benchmaster_nfs_proto::v3::{
    Entry, EntryPlus, Proc3, ReaddirOk as Readdir3, ReaddirRes, ReaddirplusOk, ReaddirplusRes,
};
use benchmaster_nfs_proto::v4::{
    Bitmap4, CompoundRes, CompoundResHeader, Entry4, Fattr4, Nfsstat4, ReaddirOk, Resop,
};
use benchmaster_nfs_proto::xdr::{Chain, Decoder, Encoder};

use super::BOUND;
use super::between::Between;
use crate::support::allocations::peak_bytes;
use crate::support::embedded::{run, server};
use crate::support::scripted::record;
use crate::support::stub::{self, Call, results};

/// What a server lists: cookies and names of one page after the other, none of them the last.
type Pages = fn(u64) -> Vec<(u64, String)>;

fn one(cookie: u64, name: impl ToString) -> Vec<(u64, String)> {
    vec![(cookie, name.to_string())]
}

/// New entries in pages of a good length.
fn without_end(page: u64) -> Vec<(u64, String)> {
    (1..=100).map(|n| (page * 100 + n, format!("file {page} {n}"))).collect()
}

/// How a server goes on without end.
const ENDLESS: [(&str, Pages); 8] = [
    ("nothing", |_| Vec::new()),
    ("the same cookie", |page| one(7, page)),
    ("two places", |page| one(1 + page % 2, page)),
    ("a circle", |page| one(1 + page % 1000, page)),
    ("a circle that is come to later", |page| one(if page < 50 { 1000 + page } else { page % 7 }, page)),
    ("back to the start", |page| if page == 0 { one(3, "a") } else { one(0, "b") }),
    ("the same name at new places", |page| one(page + 1, "name")),
    ("dots alone", |page| one(page + 1, if page % 2 == 0 { "." } else { ".." })),
];

/// Lists a directory to its end, which there must be.
async fn listed<P: Protocol>(client: &P, plus: bool, what: &str) {
    let (begun, mut entries) = (Instant::now(), 0);
    let end = client.readdir(&client.root(), plus, &mut |_| entries += 1).await;
    let fine = matches!(end, Err(NfsError::Nonsense(_) | NfsError::V4(Nfsstat4::TOOSMALL)));
    assert!(fine, "{what}: {end:?} after {entries} entries");
    assert!(entries < 50_000, "{what}: {entries}");
    assert!(begun.elapsed() < Duration::from_secs(60), "{what}: {:?}", begun.elapsed());
}

/// Lists a directory until there were this many entries, and then gives up.
async fn given_up<P: Protocol>(client: &P, plus: bool) {
    let entries = Cell::new(0);
    let root = client.root();
    let mut visit = |_: &benchmaster_nfs_client::types::Entry<'_>| entries.set(entries.get() + 1);
    let mut listing = pin!(client.readdir(&root, plus, &mut visit));
    poll_fn(|context| match listing.as_mut().poll(context) {
        Poll::Ready(end) => panic!("{end:?}"),
        Poll::Pending if entries.get() < 100_000 => Poll::Pending,
        Poll::Pending => Poll::Ready(()),
    })
    .await;
    assert!(entries.get() < 200_000);
}

/// A server of version 3 that lists these pages.
fn of_v3(pages: Pages) -> impl FnMut(&Call<'_>) -> Option<stub::Reply> {
    let mut page = 0;
    move |call| {
        let plus = call.is(Proc3::READDIRPLUS);
        if !plus && !call.is(Proc3::READDIR) {
            return None;
        }
        let list = pages(page);
        page += 1;
        let (dir_attributes, cookieverf, eof) = (None, [1; 8], false);
        if plus {
            let (name_attributes, name_handle) = (None, None);
            let entries = list.iter().map(|(cookie, name)| EntryPlus {
                fileid: 9,
                name: name.as_bytes().into(),
                cookie: *cookie,
                name_attributes,
                name_handle,
            });
            let entries: Vec<_> = entries.collect();
            let entries = Chain::Items(&entries[..]);
            results(&ReaddirplusRes::Ok(ReaddirplusOk { dir_attributes, cookieverf, entries, eof }))
        } else {
            let entries = list.iter().map(|(cookie, name)| Entry {
                fileid: 9,
                name: name.as_bytes().into(),
                cookie: *cookie,
            });
            let entries: Vec<_> = entries.collect();
            let entries = Chain::Items(&entries[..]);
            results(&ReaddirRes::Ok(Readdir3 { dir_attributes, cookieverf, entries, eof }))
        }
    }
}

/// Bytes of an accepted reply before its results.
const REPLY_HEADER: usize = 24;

/// Puts these entries in place of what a server of version 4 says to READDIR.
fn forge(message: &[u8], list: impl FnOnce() -> Vec<(u64, String)>) -> Option<Vec<u8>> {
    let (head, results) = message.split_at_checked(REPLY_HEADER)?;
    let mut compound: CompoundRes<'_> = Decoder::new(results).get().ok()?;
    let mut results = Vec::new();
    while let Some(result) = compound.results.take() {
        results.push(result.ok()?);
    }
    let at = results.iter().position(|result| matches!(result, Resop::Readdir(_)))?;
    let list = list();
    let attrs = Fattr4 { attrmask: Bitmap4::EMPTY, attr_vals: (&[][..]).into() };
    let entries =
        list.iter().map(|(cookie, name)| Entry4 { cookie: *cookie, name: name.as_bytes().into(), attrs });
    let entries: Vec<_> = entries.collect();
    results[at] =
        Resop::Readdir(Ok(ReaddirOk { cookieverf: [1; 8], entries: Chain::Items(&entries), eof: false }));
    let mut e = Encoder::new();
    e.put(&CompoundResHeader { status: Nfsstat4::OK, tag: compound.tag, count: results.len() as u32 });
    results.iter().for_each(|result| e.put(result));
    Some([head, e.buffer()].concat())
}

/// A server of version 4 that lists these pages.
fn of_v4(server: SocketAddr, pages: Pages) -> Between {
    let page = Arc::new(Mutex::new(0));
    Between::start(server, move |_| {
        let page = page.clone();
        Box::new(move |message| {
            let list = || {
                let mut page = page.lock().unwrap();
                *page += 1;
                pages(*page - 1)
            };
            let forged = forge(&message, list);
            Some(record(&forged.unwrap_or(message)))
        })
    })
}

fn to(address: SocketAddr, minor: u32) -> v4::Connect {
    v4::Connect { nconnect: 1, ..v4::Connect::new(address, "/export", minor, "a test", [1; 8]) }
}

#[test]
fn version_3() {
    for (what, pages) in ENDLESS {
        for plus in [false, true] {
            let peak = peak_bytes(|| {
                stub::with(
                    |_| {},
                    of_v3(pages),
                    async |client: &v3::Client, _| listed(client, plus, what).await,
                )
            });
            assert!(peak < BOUND, "{what}: {peak} bytes");
        }
    }
    for plus in [false, true] {
        stub::with(|_| {}, of_v3(without_end), async |client, _| given_up(client, plus).await);
    }
}

#[test]
fn version_4() {
    let server = server(&[]);
    for minor in 0..3 {
        for (what, pages) in ENDLESS {
            // What takes long is the same in all of them.
            if minor != 1 && (pages(1) == one(2, "name") || pages(1) == one(2, "..")) {
                continue;
            }
            let between = of_v4(server.address(), pages);
            let peak = peak_bytes(|| {
                run(async |reactor, counters| {
                    let connect = to(between.address, minor);
                    let client = v4::Client::connect(&reactor, &counters, &connect).await.unwrap();
                    listed(&client, minor > 0, what).await;
                    client.unmount().await.unwrap();
                });
            });
            assert!(peak < BOUND, "{what}: {peak} bytes");
        }
        let between = of_v4(server.address(), without_end);
        run(async |reactor, counters| {
            let client = v4::Client::connect(&reactor, &counters, &to(between.address, minor)).await.unwrap();
            given_up(&client, true).await;
            client.unmount().await.unwrap();
        });
    }
}
