//! The question whether a server has TLS: a NULL call with the flavour AUTH_TLS (RFC 9289 §4.1).

use benchmaster_nfs_proto::record;
use benchmaster_nfs_proto::rpc::{
    AuthFlavor, CallHeader, Message, OpaqueAuth, RPC_VERSION, RpcReply, put_reply,
};
use benchmaster_nfs_proto::xdr::{Decoder, Encoder, Opaque};

use crate::error::TlsError;

/// What the verifier of a server with TLS contains.
const STARTTLS: &[u8; 8] = b"STARTTLS";

/// The NULL call of every program.
const NULL: u32 = 0;

/// The probe for a program, with its record mark.
pub fn probe(xid: u32, program: u32, version: u32) -> Vec<u8> {
    call(xid, program, version, OpaqueAuth { flavor: AuthFlavor::TLS, body: Opaque(&[]) })
}

/// A NULL call without a credential, with its record mark: a server that answers it within a session has taken our
/// certificate, or wants none.
pub fn null(xid: u32, program: u32, version: u32) -> Vec<u8> {
    call(xid, program, version, OpaqueAuth::NONE)
}

fn call(xid: u32, program: u32, version: u32, cred: OpaqueAuth<'_>) -> Vec<u8> {
    let mut e = Encoder::new();
    let mark = record::begin(&mut e);
    let verf = OpaqueAuth::NONE;
    e.put(&CallHeader { xid, rpc_version: RPC_VERSION, program, version, procedure: NULL, cred, verf });
    record::end(&mut e, mark);
    e.buffer().to_vec()
}

/// Whether a call asks for TLS, in the only form that is allowed: NULL, with an empty credential.
pub fn is_probe(call: &CallHeader<'_>) -> bool {
    call.cred.flavor == AuthFlavor::TLS && call.procedure == NULL && call.cred.body.0.is_empty()
}

/// The answer of a server that has TLS (without a record mark): whatever follows on the connection is TLS.
pub fn reply_to_probe(e: &mut Encoder, xid: u32) {
    let verf = OpaqueAuth { flavor: AuthFlavor::NONE, body: Opaque(STARTTLS) };
    put_reply(e, xid, RpcReply::Success(verf));
}

/// Whether the answer to a probe (without a record mark) lets TLS begin.
///
/// # Errors
/// [`TlsError::NotOffered`], with what the server says instead.
pub fn answer(reply: &[u8], xid: u32) -> Result<(), TlsError> {
    let not = |answer| Err(TlsError::NotOffered { answer });
    let Ok(Message::Reply { xid: of, reply: said }) = Decoder::new(reply).get() else {
        return not("it answers the probe with something that is no reply");
    };
    if of != xid {
        return not("it answers another call than the probe");
    }
    match said {
        RpcReply::AuthError(_) => not("it refuses AUTH_TLS"),
        RpcReply::RpcMismatch(..) => not("it does not speak this version of RPC"),
        RpcReply::Success(verf) if verf.flavor == AuthFlavor::NONE && verf.body.0 == STARTTLS => Ok(()),
        RpcReply::Success(_) => not("its answer to the probe does not say STARTTLS"),
        _ => not("it does not serve the program"),
    }
}

#[cfg(test)]
mod tests {
    use benchmaster_nfs_proto::rpc::AuthStat;

    use super::*;

    fn said(write: impl FnOnce(&mut Encoder)) -> Result<(), TlsError> {
        let mut e = Encoder::new();
        write(&mut e);
        answer(e.buffer(), 7)
    }

    #[test]
    fn only_starttls_lets_tls_begin() {
        assert_eq!(said(|e| reply_to_probe(e, 7)), Ok(()));
        assert!(said(|e| reply_to_probe(e, 8)).is_err(), "the answer to another call");
        assert!(said(|e| put_reply(e, 7, RpcReply::Success(OpaqueAuth::NONE))).is_err());
        assert!(said(|e| put_reply(e, 7, RpcReply::AuthError(AuthStat::BADCRED))).is_err());
        let stripped = OpaqueAuth { flavor: AuthFlavor::NONE, body: Opaque(b"STARTTLT") };
        assert!(said(|e| put_reply(e, 7, RpcReply::Success(stripped))).is_err());
        let other = OpaqueAuth { flavor: AuthFlavor::SYS, body: Opaque(STARTTLS) };
        assert!(said(|e| put_reply(e, 7, RpcReply::Success(other))).is_err());
        assert!(said(|e| e.raw(&[0; 3])).is_err());
    }

    #[test]
    fn a_probe_is_a_null_call_without_a_body() {
        let bytes = probe(7, 100_003, 3);
        let mut d = Decoder::new(&bytes[record::HEADER..]);
        let Ok(Message::Call(call)) = d.get() else { panic!("no call") };
        assert!(is_probe(&call) && call.verf == OpaqueAuth::NONE);
        assert!(!is_probe(&CallHeader { procedure: 1, ..call }));
        assert!(!is_probe(&CallHeader { cred: OpaqueAuth::NONE, ..call }));
    }
}
