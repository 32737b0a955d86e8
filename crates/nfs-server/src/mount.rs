//! MOUNT versions 1, 2 and 3. (Signatures first.)
#![allow(dead_code, unused_variables, clippy::todo)]

use crate::call::{Call, Served};

/// Executes a call.
pub(crate) fn serve(call: &mut Call<'_>) -> Served {
    todo!()
}
