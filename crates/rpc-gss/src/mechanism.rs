//! What RPCSEC_GSS needs of a mechanism of GSS-API.

use std::fmt::Debug;
use std::time::Duration;

use crate::error::GssError;

/// A security context that both sides have established.
pub trait Context: Debug + Send + Sync {
    /// A checksum of a message (`GSS_GetMIC`).
    ///
    /// # Errors
    /// When the context is of no use any more.
    fn mic(&self, message: &[u8]) -> Result<Vec<u8>, GssError>;

    /// Checks a message against its checksum (`GSS_VerifyMIC`).
    ///
    /// # Errors
    /// When the other side did not write it so.
    fn verify(&self, message: &[u8], mic: &[u8]) -> Result<(), GssError>;

    /// Encrypts a message (`GSS_Wrap`, with confidentiality).
    ///
    /// # Errors
    /// When the context is of no use any more, or does not encrypt.
    fn wrap(&self, message: &[u8]) -> Result<Vec<u8>, GssError>;

    /// Decrypts a message (`GSS_Unwrap`).
    ///
    /// # Errors
    /// When the other side did not write it so, or did not encrypt it.
    fn unwrap(&self, sealed: &[u8]) -> Result<Vec<u8>, GssError>;
}

/// What is known once a context is established.
#[derive(Debug)]
pub struct Established {
    /// The context.
    pub context: Box<dyn Context>,
    /// Who is at the other end.
    pub peer: String,
    /// How long it lasts; `None`: without end.
    pub lifetime: Option<Duration>,
}

/// What a side has to do next.
#[derive(Debug)]
pub struct Step {
    /// To be sent to the other side, unless it is empty.
    pub token: Vec<u8>,
    /// The context, when this side has it.
    pub established: Option<Established>,
}

/// A context on the way.
pub trait Negotiation: Debug + Send {
    /// Takes the other side's token; the initiator begins with an empty one. It may ask a KDC, and wait for it.
    ///
    /// # Errors
    /// When there will be no context.
    fn step(&mut self, token: &[u8]) -> Result<Step, GssError>;
}

/// One side's half of a mechanism, with what it needs to make contexts.
pub trait Mechanism: Debug + Send + Sync {
    /// Begins a context.
    fn begin(&self) -> Box<dyn Negotiation>;
}
