//! Certificates for tests: an authority, and what it signs. ECDSA on P-256, X.509 version 3 (RFC 5280).
//!
//! The few forms that are needed are written here as DER: a crate that writes all of them would bring 23 packages.

use std::net::IpAddr;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use ring::digest::{SHA256, digest};
use ring::rand::{SecureRandom as _, SystemRandom};
use ring::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair as _};

use crate::error::TlsError;

/// A certificate and its private key, as PEM.
#[derive(Clone)]
pub struct Pem {
    /// The certificate.
    pub certificate: String,
    /// The private key (PKCS #8).
    pub key: String,
}

impl std::fmt::Debug for Pem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pem").field("certificate", &self.certificate).finish_non_exhaustive()
    }
}

/// When certificates are valid.
#[derive(Debug, Clone, Copy)]
pub struct Lifetime {
    /// From then on,
    pub from: Timestamp,
    /// until then.
    pub until: Timestamp,
}

/// For whom a certificate is.
#[derive(Debug, Clone)]
pub struct Maker<'m> {
    /// What it is called in listings (common name); nothing is checked against it.
    pub common_name: &'m str,
    /// DNS names and IP addresses by which its owner is reached (subject alternative names).
    pub names: &'m [&'m str],
    /// When it is valid.
    pub lifetime: Lifetime,
}

/// An authority that signs certificates.
pub struct Authority {
    key: Key,
    /// Its own, so that a certificate of another authority is not taken for a forgery.
    name: String,
    certificate: Vec<u8>,
}

impl std::fmt::Debug for Authority {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Authority").finish_non_exhaustive()
    }
}

struct Key {
    pair: EcdsaKeyPair,
    pkcs8: Vec<u8>,
}

/// Name of the authority's certificate that [`Authority::write_set`] writes.
pub const CA_FILE: &str = "ca.pem";
/// Names of the server's certificate and key.
pub const SERVER_FILES: [&str; 2] = ["server.pem", "server.key"];
/// Names of the client's.
pub const CLIENT_FILES: [&str; 2] = ["client.pem", "client.key"];

impl Authority {
    /// A new one, with a new key.
    ///
    /// # Errors
    /// [`TlsError::Setup`] when the system has no randomness.
    pub fn new(lifetime: Lifetime) -> Result<Self, TlsError> {
        let key = Key::new()?;
        let ca = [
            extension(&BASIC_CONSTRAINTS, true, &sequence(&[&tagged(BOOLEAN, &[0xff])])),
            // keyCertSign, cRLSign
            extension(&KEY_USAGE, true, &tagged(BIT_STRING, &[1, 0x06])),
        ];
        let number = key.identifier().iter().take(4).fold(0u32, |n, byte| n << 8 | u32::from(*byte));
        let name = format!("Benchmaster test authority {number:08x}");
        let certificate = certificate((&key, &name), (&key, &name), lifetime, &ca.concat())?;
        Ok(Self { key, name, certificate })
    }

    /// Its certificate, as PEM.
    pub fn certificate(&self) -> String {
        pem("CERTIFICATE", &self.certificate)
    }

    /// Signs a certificate for a new key, good for servers and clients.
    ///
    /// # Errors
    /// [`TlsError::Setup`] when the system has no randomness.
    pub fn issue(&self, wanted: &Maker<'_>) -> Result<Pem, TlsError> {
        let key = Key::new()?;
        let names: Vec<u8> = wanted
            .names
            .iter()
            .flat_map(|name| match name.parse::<IpAddr>() {
                Ok(IpAddr::V4(address)) => tagged(IP_ADDRESS, &address.octets()),
                Ok(IpAddr::V6(address)) => tagged(IP_ADDRESS, &address.octets()),
                Err(_) => tagged(DNS_NAME, name.as_bytes()),
            })
            .collect();
        let purposes = [SERVER_AUTH, CLIENT_AUTH, RPC_TLS_CLIENT, RPC_TLS_SERVER];
        let purposes = purposes.map(|purpose| tagged(OBJECT, &purpose)).concat();
        let extensions = [
            // digitalSignature
            extension(&KEY_USAGE, true, &tagged(BIT_STRING, &[7, 0x80])),
            extension(&EXTENDED_KEY_USAGE, false, &tagged(SEQUENCE, &purposes)),
            extension(&SUBJECT_ALT_NAME, false, &tagged(SEQUENCE, &names)),
        ];
        let (by, of) = ((&self.key, &*self.name), (&key, wanted.common_name));
        let certificate = certificate(by, of, wanted.lifetime, &extensions.concat())?;
        Ok(Pem { certificate: pem("CERTIFICATE", &certificate), key: pem("PRIVATE KEY", &key.pkcs8) })
    }

    /// Writes a set for tests into a directory, which is made: `ca.pem`, `server.pem`, `server.key`, `client.pem`,
    /// `client.key`. The server is reached by `names`; only the owner can read the keys. Returns the five paths.
    ///
    /// # Errors
    /// [`TlsError::File`] when a file is there already or cannot be written.
    pub fn write_set(directory: &Path, names: &[&str], lifetime: Lifetime) -> Result<[PathBuf; 5], TlsError> {
        let authority = Self::new(lifetime)?;
        let server = authority.issue(&Maker { common_name: "server", names, lifetime })?;
        let client = authority.issue(&Maker { common_name: "client", names: &["client"], lifetime })?;
        std::fs::create_dir_all(directory).map_err(|error| TlsError::file(directory, error))?;
        let texts = [authority.certificate(), server.certificate, server.key, client.certificate, client.key];
        let ([cert, key], [client_cert, client_key]) = (SERVER_FILES, CLIENT_FILES);
        let paths = [CA_FILE, cert, key, client_cert, client_key].map(|name| directory.join(name));
        for (path, text) in paths.iter().zip(texts) {
            write_new(path, &text)?;
        }
        Ok(paths)
    }
}

fn write_new(path: &Path, text: &str) -> Result<(), TlsError> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let mode = if path.extension().is_some_and(|extension| extension == "key") { 0o600 } else { 0o644 };
    let opened = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(path);
    opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|error| TlsError::file(path, error))
}

impl Key {
    fn new() -> Result<Self, TlsError> {
        let random = SystemRandom::new();
        let failed = |_| TlsError::Setup("no key can be made: the system gives no random numbers".into());
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, &random).map_err(failed)?;
        let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_ASN1_SIGNING, pkcs8.as_ref(), &random);
        let pair = pair.map_err(|error| TlsError::Setup(error.to_string()))?;
        Ok(Self { pair, pkcs8: pkcs8.as_ref().to_vec() })
    }

    fn public(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    /// A number for the key (RFC 7093 §2, method 1).
    fn identifier(&self) -> Vec<u8> {
        digest(&SHA256, self.public()).as_ref()[..20].to_vec()
    }
}

const BOOLEAN: u8 = 0x01;
const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const GENERALIZED_TIME: u8 = 0x18;
const UTC_TIME: u8 = 0x17;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
/// Context-specific tags of a certificate's version and extensions.
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;
/// Context-specific tags of general names, and of the authority's key identifier.
const DNS_NAME: u8 = 0x82;
const IP_ADDRESS: u8 = 0x87;
const KEY_IDENTIFIER: u8 = 0x80;

/// Object identifiers, encoded.
const COMMON_NAME: [u8; 3] = [0x55, 4, 3];
const EC_PUBLIC_KEY: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const PRIME256V1: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const ECDSA_WITH_SHA256: [u8; 8] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
const SUBJECT_KEY_IDENTIFIER: [u8; 3] = [0x55, 0x1d, 14];
const KEY_USAGE: [u8; 3] = [0x55, 0x1d, 15];
const SUBJECT_ALT_NAME: [u8; 3] = [0x55, 0x1d, 17];
const BASIC_CONSTRAINTS: [u8; 3] = [0x55, 0x1d, 19];
const AUTHORITY_KEY_IDENTIFIER: [u8; 3] = [0x55, 0x1d, 35];
const EXTENDED_KEY_USAGE: [u8; 3] = [0x55, 0x1d, 37];
const SERVER_AUTH: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 1];
const CLIENT_AUTH: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 2];
/// RFC 9289 §7.3.
const RPC_TLS_CLIENT: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 33];
const RPC_TLS_SERVER: [u8; 8] = [0x2b, 6, 1, 5, 5, 7, 3, 34];

/// A certificate for the second key, of the second name, signed by the first.
fn certificate(
    (by, issuer): (&Key, &str),
    (of, subject): (&Key, &str),
    lifetime: Lifetime,
    extensions: &[u8],
) -> Result<Vec<u8>, TlsError> {
    let random = SystemRandom::new();
    let failed = |_| TlsError::Setup("no certificate can be signed".into());
    let mut serial = [0; 16];
    random.fill(&mut serial).map_err(failed)?;
    // Positive, and without a leading zero.
    serial[0] = serial[0] & 0x3f | 0x40;
    let algorithm = sequence(&[&tagged(OBJECT, &ECDSA_WITH_SHA256)]);
    let curve = sequence(&[&tagged(OBJECT, &EC_PUBLIC_KEY), &tagged(OBJECT, &PRIME256V1)]);
    let identifiers = [
        extension(&SUBJECT_KEY_IDENTIFIER, false, &tagged(OCTET_STRING, &of.identifier())),
        extension(&AUTHORITY_KEY_IDENTIFIER, false, &sequence(&[&tagged(KEY_IDENTIFIER, &by.identifier())])),
    ];
    let content = sequence(&[
        &tagged(VERSION, &tagged(INTEGER, &[2])),
        &tagged(INTEGER, &serial),
        &algorithm,
        &name(issuer),
        &sequence(&[&time(lifetime.from), &time(lifetime.until)]),
        &name(subject),
        &sequence(&[&curve, &bits(of.public())]),
        &tagged(EXTENSIONS, &sequence(&[&identifiers.concat(), extensions])),
    ]);
    let signature = by.pair.sign(&random, &content).map_err(failed)?;
    Ok(sequence(&[&content, &algorithm, &bits(signature.as_ref())]))
}

fn name(common: &str) -> Vec<u8> {
    let attribute = sequence(&[&tagged(OBJECT, &COMMON_NAME), &tagged(UTF8_STRING, common.as_bytes())]);
    sequence(&[&tagged(SET, &attribute)])
}

/// Years before 2050 have two digits (RFC 5280 §4.1.2.5).
fn time(at: Timestamp) -> Vec<u8> {
    let date = at.to_zoned(jiff::tz::TimeZone::UTC);
    match date.year() {
        1950..2050 => tagged(UTC_TIME, date.strftime("%y%m%d%H%M%SZ").to_string().as_bytes()),
        _ => tagged(GENERALIZED_TIME, date.strftime("%Y%m%d%H%M%SZ").to_string().as_bytes()),
    }
}

fn extension(object: &[u8], critical: bool, value: &[u8]) -> Vec<u8> {
    let critical = if critical { tagged(BOOLEAN, &[0xff]) } else { Vec::new() };
    sequence(&[&tagged(OBJECT, object), &critical, &tagged(OCTET_STRING, value)])
}

/// A string of bits, of whole bytes.
fn bits(bytes: &[u8]) -> Vec<u8> {
    tagged(BIT_STRING, &[&[0], bytes].concat())
}

fn sequence(parts: &[&[u8]]) -> Vec<u8> {
    tagged(SEQUENCE, &parts.concat())
}

/// Tag, length, content (X.690, DER).
fn tagged(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = content.len().to_be_bytes();
    let significant = &length[length.iter().position(|byte| *byte != 0).unwrap_or(length.len() - 1)..];
    let mut out = vec![tag];
    if content.len() < 128 {
        out.push(content.len() as u8);
    } else {
        out.push(0x80 | significant.len() as u8);
        out.extend_from_slice(significant);
    }
    out.extend_from_slice(content);
    out
}

/// RFC 7468: base64 in lines of 64 characters.
fn pem(label: &str, der: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for (line, part) in der.chunks(48).enumerate() {
        if line > 0 {
            text.push('\n');
        }
        for three in part.chunks(3) {
            let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
            let word = byte(0) << 16 | byte(1) << 8 | byte(2);
            for at in 0..4 {
                let digit = DIGITS[(word >> (18 - 6 * at) & 63) as usize];
                text.push(if at <= three.len() { char::from(digit) } else { '=' });
            }
        }
    }
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}
