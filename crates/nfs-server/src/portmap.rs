//! Portmapper version 2 and rpcbind versions 3 and 4. (Signatures first.)
#![allow(dead_code, unused_variables, clippy::todo)]

use crate::call::{Call, Served};

/// Executes a call.
pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    todo!()
}
