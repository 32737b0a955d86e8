//! Clients of 4.0: SETCLIENTID and what goes with it.

use super::{Identity, LockOwner4, Netaddr4, Verifier4};

xdr_struct! {
    /// Identity of a client.
    pub struct NfsClientId4<'a> {
        /// Instance: changes with the client's restart.
        pub verifier: Verifier4,
        /// Identity that stays.
        pub id: Identity<'a>,
    }
    /// Where callbacks go.
    pub struct CbClient4<'a> {
        /// Program number.
        pub cb_program: u32,
        /// Address.
        pub cb_location: Netaddr4<'a>,
    }
    /// Arguments of SETCLIENTID.
    pub struct SetclientidArgs<'a> {
        /// The client.
        pub client: NfsClientId4<'a>,
        /// Where its callbacks go.
        pub callback: CbClient4<'a>,
        /// Number that callbacks carry.
        pub callback_ident: u32,
    }
    /// Result of SETCLIENTID.
    pub struct SetclientidOk {
        /// Client id.
        pub clientid: u64,
        /// Verifier for SETCLIENTID_CONFIRM.
        pub setclientid_confirm: Verifier4,
    }
    /// Arguments of SETCLIENTID_CONFIRM.
    pub struct SetclientidConfirmArgs {
        /// Client id.
        pub clientid: u64,
        /// Verifier of the SETCLIENTID.
        pub setclientid_confirm: Verifier4,
    }
    /// Arguments of RENEW.
    pub struct RenewArgs {
        /// Client id.
        pub clientid: u64,
    }
    /// Arguments of RELEASE_LOCKOWNER.
    pub struct ReleaseLockownerArgs<'a> {
        /// The owner.
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
