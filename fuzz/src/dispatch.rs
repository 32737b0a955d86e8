//! The server's dispatcher, as one connection sees it.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use benchmaster_nfs_proto::record::{self, Joiner, Scan};
use benchmaster_nfs_proto::rpc::Message;
use benchmaster_nfs_proto::xdr::Decoder;
use benchmaster_nfs_server::dispatch::{Conversation, Disposition, handle};
use benchmaster_nfs_server::fs::Time;
use benchmaster_nfs_server::moment::Moment;
use benchmaster_nfs_server::outbox::Outbox;
use benchmaster_nfs_server::peer::{Peer, Protection};
use benchmaster_nfs_server::reply::Reply;
use benchmaster_nfs_server::shared::Shared;
use benchmaster_nfs_server::state::ConnectionId;
use benchmaster_nfs_server::{ExportConfig, ServerConfig};

/// Those of the servers in the tests that recorded the corpus: handles and identifiers in it mean something.
const INSTANCE: u32 = 77;
const BOOT: u64 = 0x1122_3344_5566_7788;
/// Longest record taken.
const LIMIT: usize = 1 << 20;

/// A new server gets a stream of records; after each the time is a second later, so that leases run out and timers
/// strike.
pub fn session(stream: &[u8]) {
    static START: OnceLock<Instant> = OnceLock::new();
    let start = *START.get_or_init(Instant::now);
    let moment = |seconds: u32| Moment {
        instant: start + Duration::from_secs(seconds.into()),
        wall: Time { seconds: 1_700_000_000 + i64::from(seconds), nanos: 5 },
    };
    let export = ExportConfig { path: "/export".into(), limit: Some(1 << 24), ..ExportConfig::default() };
    let config = ServerConfig { threads: 1, exports: vec![export], ..ServerConfig::default() };
    let address = config.listen;
    let server = Shared::detached(config, INSTANCE, BOOT, moment(0)).expect("a server of one export");
    let peer = Peer {
        connection: ConnectionId(1),
        address: SocketAddr::from(([127, 0, 0, 1], 700)),
        local: address,
        outbox: Some(Arc::new(Outbox::default())),
        protection: Protection::default(),
    };

    let (mut rest, mut joiner, mut reply) = (stream, Joiner::new(), Reply::new());
    let mut conversation = Conversation::default();
    for second in 1.. {
        let now = moment(second);
        let mut call = |message: &[u8]| {
            reply.clear();
            let disposition = handle(&server, &peer, &mut conversation, message, &mut reply, now);
            if disposition == Disposition::Send && !reply.is_empty() {
                let bytes = reply.copy_since(Reply::new().mark());
                let answer = Decoder::new(&bytes).get::<Message<'_>>();
                assert!(matches!(answer, Ok(Message::Reply { .. })), "a reply is no RPC reply: {bytes:02x?}");
            }
            let mut effects = server.state.tick(now.instant);
            server.apply(&mut effects);
            disposition
        };
        let disposition = match record::next_record(rest, LIMIT) {
            Ok(Scan::Record { payload, consumed }) => {
                let disposition = call(&rest[payload]);
                rest = &rest[consumed..];
                disposition
            }
            Ok(Scan::Fragmented) => match joiner.feed(rest, LIMIT) {
                Ok(fed) if fed.complete => {
                    let disposition = call(joiner.record());
                    rest = &rest[fed.consumed..];
                    joiner.clear(LIMIT);
                    disposition
                }
                _ => return,
            },
            _ => return,
        };
        if disposition == Disposition::Disconnect {
            return;
        }
    }
}
