//! Version 4 against the embedded server, over sockets.

use std::net::SocketAddr;

use benchmaster_nfs_client::ops;
use benchmaster_nfs_client::protocol::Protocol;
use benchmaster_nfs_client::v4::{Client, Connect};

use crate::support::embedded::{run, server};
use crate::support::operations::{Can, every_operation};

fn to(server: SocketAddr, minor: u32) -> Connect {
    Connect::new(server, "/export", minor, "a test", [7; 8])
}

#[test]
fn every_operation_of_every_minor_version() {
    for minor in 0..3 {
        let server = server(&[]);
        run(async |reactor, counters| {
            let client = Client::connect(&reactor, &counters, &to(server.address(), minor)).await.unwrap();
            assert_eq!((client.limits().max_read, client.limits().max_write), (1 << 20, 1 << 20));
            every_operation(&client, Can::ALL).await;
            client.unmount().await.unwrap();
            let counted = counters.snapshot();
            let expected = if minor == 0 { ops::v4::SETCLIENTID } else { ops::v4::DESTROY_SESSION };
            assert_eq!((counted.op(expected).ops, counted.op(expected).errors), (1, 0));
            assert_eq!(counters.outstanding(), 0);
        });
        let state = server.report().state;
        assert_eq!((state.files, state.sessions), (0, 0), "{state:?}");
        // Version 4.0 keeps the stateid of an owner's last CLOSE, for a repeated request.
        assert!(state.stateids == 0 || minor == 0, "{state:?}");
    }
}
