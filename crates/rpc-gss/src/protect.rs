//! Calls and replies with RPCSEC_GSS: headers with checksums, arguments and results with integrity or privacy (RFC 2203
//! §5.3).

use std::borrow::Cow;

use benchmaster_nfs_proto::gss::{GssCredential, GssIntegrity, GssProc, VERSION};
use benchmaster_nfs_proto::rpc::{AuthFlavor, OpaqueAuth};
use benchmaster_nfs_proto::v4::RpcGssSvc;
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, Opaque};

use crate::error::GssError;
use crate::mechanism::Context;

/// Most bytes by which protection makes a message longer: verifier and checksum, or the header, confounder, padding and
/// checksum of an encrypted body, with their counts (RFC 4121 §4.2, RFC 8009).
pub const OVERHEAD: usize = 256;

/// A verifier with this checksum.
pub fn verifier(mic: &[u8]) -> OpaqueAuth<'_> {
    OpaqueAuth { flavor: AuthFlavor::RPCSEC_GSS, body: Opaque(mic) }
}

/// Writes a credential.
pub fn put_credential(e: &mut Encoder, procedure: GssProc, sequence: u32, service: RpcGssSvc, handle: &[u8]) {
    let mut body = Encoder::new();
    body.put(&GssCredential { version: VERSION, procedure, sequence, service, handle: Opaque(handle) });
    e.put(&OpaqueAuth { flavor: AuthFlavor::RPCSEC_GSS, body: Opaque(body.buffer()) });
}

/// Writes the verifier of a call, whose header, from the transaction number to the credential, is all that `header`
/// contains.
///
/// # Errors
/// When the context is of no use any more.
pub fn put_verifier(context: &dyn Context, header: &mut Encoder) -> Result<(), GssError> {
    let mic = context.mic(header.buffer())?;
    header.put(&verifier(&mic));
    Ok(())
}

/// The verifier of a reply: a checksum of a number, which is the call's sequence number or the window of a context.
///
/// # Errors
/// When the context is of no use any more.
pub fn number_mic(context: &dyn Context, number: u32) -> Result<Vec<u8>, GssError> {
    context.mic(&number.to_be_bytes())
}

/// Checks the verifier of a reply.
///
/// # Errors
/// When it is not the server's for this number.
pub fn check_number(context: &dyn Context, number: u32, verf: &OpaqueAuth<'_>) -> Result<(), GssError> {
    if verf.flavor != AuthFlavor::RPCSEC_GSS {
        return Err(GssError::Unprotected("a reply without the verifier of RPCSEC_GSS"));
    }
    context.verify(&number.to_be_bytes(), verf.body.0)
}

/// Writes arguments or results as the service wants them. `plain` begins with four bytes of room, for the sequence number.
///
/// # Errors
/// When the context is of no use any more.
pub fn seal(
    context: &dyn Context,
    service: RpcGssSvc,
    sequence: u32,
    plain: &mut [u8],
    e: &mut Encoder,
) -> Result<(), GssError> {
    if let Some(room) = plain.get_mut(..4) {
        room.copy_from_slice(&sequence.to_be_bytes());
    }
    match service {
        RpcGssSvc::None => e.raw(plain.get(4..).unwrap_or_default()),
        RpcGssSvc::Integrity => {
            let checksum = context.mic(plain)?;
            e.opaque(plain);
            e.opaque(&checksum);
        }
        RpcGssSvc::Privacy => e.opaque(&context.wrap(plain)?),
    }
    Ok(())
}

/// Arguments or results that were checked.
#[derive(Debug)]
pub struct Opened<'a> {
    plain: Cow<'a, [u8]>,
    start: usize,
}

impl Opened<'_> {
    /// The arguments or results.
    pub fn bytes(&self) -> &[u8] {
        self.plain.get(self.start..).unwrap_or_default()
    }
}

/// The arguments or results in `body`, checked.
///
/// # Errors
/// When they are not as the other side wrote them, or belong to another sequence number.
pub fn open<'a>(
    context: &dyn Context,
    service: RpcGssSvc,
    sequence: u32,
    body: &'a [u8],
) -> Result<Opened<'a>, GssError> {
    const NO_XDR: GssError = GssError::Unprotected("a protected body that does not decode");
    let mut d = Decoder::new(body);
    let plain = match service {
        RpcGssSvc::None => return Ok(Opened { plain: Cow::Borrowed(body), start: 0 }),
        RpcGssSvc::Integrity => {
            let protected: GssIntegrity<'_> = d.get().map_err(|_| NO_XDR)?;
            context.verify(protected.body.0, protected.checksum.0)?;
            Cow::Borrowed(protected.body.0)
        }
        RpcGssSvc::Privacy => {
            let sealed: Opaque<'_> = d.get().map_err(|_| NO_XDR)?;
            Cow::Owned(context.unwrap(sealed.0)?)
        }
    };
    if !d.rest().is_empty() {
        return Err(GssError::Unprotected("bytes behind a protected body"));
    }
    if plain.get(..4) != Some(&sequence.to_be_bytes()) {
        return Err(GssError::Unprotected("a protected body of another sequence number"));
    }
    Ok(Opened { plain, start: 4 })
}
