//! NFS version 2 (RFC 1094). (Signatures first.)
#![allow(dead_code, unused_variables, clippy::todo)]

use crate::call::{Call, Served};

/// Executes a call.
pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    todo!()
}

/// Whether a repeated call must be answered from the duplicate request cache.
pub(crate) fn must_not_repeat(procedure: u32) -> bool {
    todo!()
}
