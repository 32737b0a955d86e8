//! Several addresses of one server in one session (session trunking, RFC 8881 §2.10.5).
//!
//! Whether two addresses are of one server is what EXCHANGE_ID says at each of them: the same server owner with the same
//! minor id, the same scope, and the same client id. Only then are the connections to the other address bound to the session.
//! A server whose owner has another minor id there shares client ids but no sessions (client id trunking), which this client,
//! with its one session, cannot use.

use std::rc::Rc;

use benchmaster_nfs_proto::v4::ExchangeIdOk;

use super::{ConnectError, Inner};
use crate::error::NfsError;

/// Who a server says that it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct ServerIdentity {
    major: Vec<u8>,
    minor: u64,
    scope: Vec<u8>,
}

/// What EXCHANGE_ID gave.
#[derive(Debug)]
pub(super) struct Introduced {
    pub(super) client: u64,
    pub(super) sequence: u32,
    pub(super) flags: u32,
    pub(super) server: ServerIdentity,
}

impl Introduced {
    pub(super) fn of(ok: &ExchangeIdOk<'_>) -> Self {
        let server = ServerIdentity {
            major: ok.server_owner.major_id.0.to_vec(),
            minor: ok.server_owner.minor_id,
            scope: ok.server_scope.0.to_vec(),
        };
        Self { client: ok.clientid, sequence: ok.sequenceid, flags: ok.flags, server }
    }
}

impl Inner {
    /// Binds the connections to other addresses to the session, where they are of the same server.
    pub(super) async fn trunk(self: &Rc<Self>) -> Result<(), ConnectError> {
        let addresses = 1 + self.options.others.len();
        let others = (0..self.rpc.connections()).filter(|connection| connection % addresses != 0);
        for connection in others {
            let address = self.rpc.address(connection);
            self.rpc
                .reached(connection)
                .await
                .map_err(|source| ConnectError::Connection { address, source })?;
            // Once for each address.
            let same = if connection < addresses { self.is_same_server(connection).await } else { Ok(()) };
            let bound = match same {
                Ok(()) => self.bind(connection).await,
                Err(error) => Err(error),
            };
            let beside = self.options.address;
            bound.map_err(|reason| ConnectError::Trunk { address, beside, reason })?;
        }
        Ok(())
    }

    async fn is_same_server(self: &Rc<Self>, connection: usize) -> Result<(), NfsError> {
        let there = self.exchange_id_on(connection).await?;
        let here = self.server.borrow();
        if there.server.major != here.major || there.server.scope != here.scope {
            return Err(NfsError::Unsupported("it is the address of another server"));
        }
        if there.server.minor != here.minor {
            let reason = "the server has sessions of its own at this address, and a mount has one session";
            return Err(NfsError::Unsupported(reason));
        }
        if there.client != self.client.get() {
            return Err(NfsError::Unsupported("the server has another client id for this client there"));
        }
        Ok(())
    }
}
