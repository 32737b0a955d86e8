//! NFS version 4: minor versions 0 (RFC 7531), 1 (RFC 5662), 2 (RFC 7863), extended attributes (RFC 8276), and
//! callbacks.
//!
//! Names are those of the XDR descriptions in CamelCase, without the 4 of operations' argument and result types
//! (`READ4args` is [`ReadArgs`], `READ4resok` [`ReadOk`]); fields have lost their prefixes. Where XDR has an array of
//! at most one element the field is an `Option`, which has the same form on the wire. Enumerations that the RFCs
//! close do not decode outside their values (NFS4ERR_BADXDR, RFC 8881 §15.1.1.1).

mod bitmap;
mod status;
#[macro_use]
mod types;

mod acl;
mod attr;
mod callback;
mod client40;
mod compound;
mod dir;
mod file;
mod session;
mod state;
mod v42;
mod xattr;

pub use acl::*;
pub use attr::*;
pub use bitmap::*;
pub use callback::*;
pub use client40::*;
pub use compound::*;
pub use dir::*;
pub use file::*;
pub use session::*;
pub use state::*;
pub use status::*;
pub use types::*;
pub use v42::*;
pub use xattr::*;
