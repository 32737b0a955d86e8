//! The protocol with a mechanism without Kerberos, and Kerberos with a realm of its own.

mod kerberos;
mod mock;
mod protocol;
mod realm;
