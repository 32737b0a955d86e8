//! What a request asks for, and how it may be repeated.

use crate::ops::Op;

/// What is asked for, and how.
#[derive(Debug, Clone, Copy)]
pub(in crate::v4) struct Kind<'p> {
    /// Counted under this.
    pub(in crate::v4) op: Op,
    /// The server is to keep the reply.
    pub(in crate::v4) cache: bool,
    /// Executing it twice is not the same as once.
    pub(in crate::v4) changes: bool,
    /// Part of a recovery: passes the gate, and what is lost meanwhile is its caller's affair.
    pub(in crate::v4) recovery: bool,
    /// Without SEQUENCE.
    pub(in crate::v4) bare: bool,
    /// Holds an owner's turn (4.0), for which the gate was passed.
    pub(in crate::v4) held: bool,
    pub(in crate::v4) connection: Option<usize>,
    pub(super) payload: &'p [u8],
}

impl<'p> Kind<'p> {
    /// Changes nothing.
    pub(in crate::v4) fn reading(op: Op) -> Self {
        Self {
            op,
            cache: false,
            changes: false,
            recovery: false,
            bare: false,
            held: false,
            connection: None,
            payload: &[],
        }
    }

    /// Changes something, but executing it twice does no harm.
    pub(in crate::v4) fn repeatable(op: Op) -> Self {
        Self { cache: true, ..Self::reading(op) }
    }

    /// Must not be executed twice.
    pub(in crate::v4) fn once(op: Op) -> Self {
        Self { changes: true, ..Self::repeatable(op) }
    }

    /// As part of a recovery.
    pub(in crate::v4) fn recovering(self, recovery: bool) -> Self {
        Self { recovery, ..self }
    }

    /// Without SEQUENCE, on this connection.
    pub(in crate::v4) fn bare(self, connection: usize) -> Self {
        Self { bare: true, connection: Some(connection), ..self }
    }

    /// While an owner's turn is held.
    pub(in crate::v4) fn held(self) -> Self {
        Self { held: true, ..self }
    }

    pub(in crate::v4) fn payload(self, payload: &'p [u8]) -> Self {
        Self { payload, ..self }
    }
}
