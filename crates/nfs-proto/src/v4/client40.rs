//! Clients of 4.0: SETCLIENTID and what goes with it.

use super::{Identity, LockOwner4, Netaddr4, Verifier4};

xdr_struct! {
    /// Identity of a client.
    pub struct NfsClientId4<'a> {
        /// Instance: changes with the client's restart.
        pub verifier: Verifier4,
        /// The same after a restart of the client.
        pub id: Identity<'a>,
    }
    /// Where callbacks go.
    pub struct CbClient4<'a> {
        /// RPC program number of callbacks.
        pub cb_program: u32,
        /// Where the client's callback program listens.
        pub cb_location: Netaddr4<'a>,
    }
    /// Arguments of SETCLIENTID.
    pub struct SetclientidArgs<'a> {
        /// Name and verifier of the client instance.
        pub client: NfsClientId4<'a>,
        /// Where its callbacks go.
        pub callback: CbClient4<'a>,
        /// Number that callbacks carry.
        pub callback_ident: u32,
    }
    /// Result of SETCLIENTID.
    pub struct SetclientidOk {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
        /// Verifier for SETCLIENTID_CONFIRM.
        pub setclientid_confirm: Verifier4,
    }
    /// Arguments of SETCLIENTID_CONFIRM.
    pub struct SetclientidConfirmArgs {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
        /// Verifier of the SETCLIENTID.
        pub setclientid_confirm: Verifier4,
    }
    /// Arguments of RENEW.
    pub struct RenewArgs {
        /// Client id, from EXCHANGE_ID or SETCLIENTID.
        pub clientid: u64,
    }
    /// Arguments of RELEASE_LOCKOWNER.
    pub struct ReleaseLockownerArgs<'a> {
        /// Owner of the locks.
        pub lock_owner: LockOwner4<'a>,
    }
}

result_union! {
    /// Result of SETCLIENTID.
    pub enum SetclientidRes<'a> {
        Ok(SetclientidOk),
        /// Another principal uses the identity, from this address.
        CLID_INUSE => ClidInuse(Netaddr4<'a>),
    }
}
