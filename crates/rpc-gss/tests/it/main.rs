//! The protocol with a mechanism without Kerberos.

mod mock;
mod protocol;
