//! The key of one launch, and the check that it is the one: a raw public key (RFC 7250) in the place of a certificate.

use std::sync::Arc;

use ring::digest::{SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::sign::any_supported_type;
use rustls::crypto::{CryptoProvider, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, PeerIncompatible, SignatureScheme};
use rustls::{ClientConfig, ServerConfig, version};
use zeroize::Zeroizing;

use super::credentials::KEY_BYTES;

/// The name that a client must ask for. It has no meaning: the fingerprint is what counts.
const NAME: &str = "benchmaster";

fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

fn fingerprint(key: &[u8]) -> [u8; KEY_BYTES] {
    let mut bytes = [0; KEY_BYTES];
    bytes.copy_from_slice(digest(&SHA256, key).as_ref());
    bytes
}

/// A new private key (PKCS #8).
pub(super) fn generate() -> Result<Zeroizing<Vec<u8>>, String> {
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &SystemRandom::new());
    let pair = pair.map_err(|_| "the kernel gives no random numbers")?;
    Ok(Zeroizing::new(pair.as_ref().to_vec()))
}

/// A server with this private key, and the fingerprint of its public part.
pub(super) fn server(pkcs8: &[u8]) -> Result<(ServerConfig, [u8; KEY_BYTES]), String> {
    let pair = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(pkcs8));
    let key = any_supported_type(&pair).map_err(|error| error.to_string())?;
    let public = key.public_key().ok_or("the key has no public part")?.to_vec();
    let fingerprint = fingerprint(&public);
    let certified = Arc::new(CertifiedKey::new(vec![CertificateDer::from(public)], key));
    let mut config = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| error.to_string())?
        .with_no_client_auth()
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(certified)));
    // No agent comes twice.
    config.send_tls13_tickets = 0;
    Ok((config, fingerprint))
}

/// A client that takes one key.
pub(super) fn client(fingerprint: [u8; KEY_BYTES]) -> Result<ClientConfig, rustls::Error> {
    let provider = provider();
    let pinned = Pinned { fingerprint, provider: Arc::clone(&provider) };
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_no_client_auth();
    config.enable_sni = false;
    config.resumption = rustls::client::Resumption::disabled();
    Ok(config)
}

/// See [`NAME`].
pub(super) fn name() -> Result<ServerName<'static>, rustls::pki_types::InvalidDnsNameError> {
    ServerName::try_from(NAME)
}

/// Takes the key with this fingerprint and no other. That the peer has its key is proved by the signature of the
/// handshake, as always.
#[derive(Debug)]
struct Pinned {
    fingerprint: [u8; KEY_BYTES],
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        if fingerprint(key) == self.fingerprint {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(PeerIncompatible::Tls12NotOffered.into())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms)
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
