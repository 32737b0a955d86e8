//! RPCSEC_GSS version 1 (RFC 2203), and Kerberos 5 below it (RFC 4121).
//!
//! The protocol knows a mechanism by the traits of [`mechanism`] only, so that it is tested without one. [`protect`] writes
//! and opens what calls and replies carry; [`contexts`] is the server's table of contexts; [`kerberos`] is the mechanism,
//! made by the system's library, which is opened when it is first needed.

#![deny(missing_docs)]

pub mod contexts;
pub mod error;
pub mod flavor;
pub mod kerberos;
mod library;
pub mod mechanism;
pub mod protect;
pub mod window;

pub use contexts::{Contexts, Limits, ServerContext};
pub use error::GssError;
pub use flavor::{Flavor, Flavors};
pub use kerberos::{Acceptor, Initiator, InitiatorFiles, ServerName};
pub use mechanism::{Context, Established, Mechanism, Negotiation, Step};
