//! Messages of NFS and the protocols around it: XDR (RFC 4506), ONC RPC (RFC 5531) and its RPCSEC_GSS (RFC 2203),
//! portmap and rpcbind (RFC 1833), MOUNT, NLM and NSM (RFC 1813 and X/Open XNFS), NFS version 2 (RFC 1094), 3 (RFC
//! 1813), 4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2 (RFC 7862) with extended attributes (RFC 8276).
//!
//! Pure: no I/O, no clock, no randomness, and no panic on any input. Decoding borrows from the receive buffer and
//! never allocates; encoding appends to a reusable [`xdr::Encoder`], in which bulk data (READ and WRITE payloads) is
//! a *cut*: a place between two pieces of the buffer where the caller's own memory is sent from.

#![deny(missing_docs)]

#[macro_use]
mod macros;
pub mod gss;
mod messages;
pub mod mount;
pub mod mutant;
pub mod nlm;
pub mod nsm;
pub mod portmap;
pub mod record;
pub mod rpc;
pub mod template;
pub mod v2;
pub mod v3;
pub mod v4;
pub mod xdr;

#[cfg(test)]
mod round_trip;
