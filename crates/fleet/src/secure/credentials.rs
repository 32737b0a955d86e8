//! What an agent needs to join a launch.

use std::fmt;
use std::io::{self, BufRead};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use ring::rand::{SecureRandom as _, SystemRandom};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use zeroize::Zeroizing;

use super::build::hex;

/// Bytes of a fingerprint and of a token.
pub(super) const KEY_BYTES: usize = 32;

/// Most bytes of credentials as text.
const MOST_BYTES: u64 = 4096;

/// A secret that the agents of one launch show. Its memory is wiped when it is dropped.
#[derive(Clone)]
pub(super) struct Token(Zeroizing<[u8; KEY_BYTES]>);

impl Token {
    /// A new one from the kernel's random numbers; `None` when the kernel has none.
    pub(super) fn random() -> Option<Self> {
        let mut bytes = Zeroizing::new([0; KEY_BYTES]);
        SystemRandom::new().fill(bytes.as_mut_slice()).ok()?;
        Some(Self(bytes))
    }

    /// Whether these bytes are it, in a time that does not tell how many are right.
    pub(super) fn is(&self, bytes: &[u8]) -> bool {
        bool::from(self.0.as_slice().ct_eq(bytes))
    }

    pub(super) fn bytes(&self) -> &[u8] {
        self.0.as_slice()
    }

    pub(super) fn from_hex(text: &str) -> Option<Self> {
        let bytes = unhex(text)?;
        Some(Self(Zeroizing::new(bytes.as_slice().try_into().ok()?)))
    }
}

/// What an agent needs to join a launch: how to know the controller, and how to be known by it. Shows nothing when it is
/// printed with `{:?}`.
#[derive(Clone)]
pub struct Credentials {
    pub(super) fingerprint: [u8; KEY_BYTES],
    pub(super) token: Token,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Credentials(..)")
    }
}

/// Why credentials could not be read. Never has anything of their content.
#[derive(Debug, thiserror::Error)]
pub enum CredentialsError {
    /// Not what a controller writes.
    #[error("{place} does not hold the credentials of a launch, one line of JSON written by the controller")]
    Malformed {
        /// Where they were read: a file, or `standard input`.
        place: String,
    },
    #[error("cannot read the credentials from {place}: {source}")]
    Read {
        /// See above.
        place: String,
        source: io::Error,
    },
    /// Others could have read or changed the file.
    #[error(
        "{} holds credentials but belongs to another user or can be read by others; \
         make it the agent's own with `chmod 600 {0}`", path.display()
    )]
    Exposed { path: PathBuf },
}

/// The text form.
#[derive(Serialize, Deserialize)]
struct Text {
    key_sha256: Zeroizing<String>,
    token: Zeroizing<String>,
}

impl Credentials {
    /// One line of JSON for an agent's standard input or a file with mode 0600. This is the secret itself: it must not
    /// come to a command line, an environment variable, a log or the results. Its memory is wiped when it is dropped.
    pub fn to_json(&self) -> Zeroizing<String> {
        let token = Zeroizing::new(hex(self.token.bytes()));
        let fingerprint = hex(&self.fingerprint);
        Zeroizing::new(format!("{{\"key_sha256\":\"{fingerprint}\",\"token\":\"{}\"}}\n", token.as_str()))
    }

    fn from_json(bytes: &[u8]) -> Option<Self> {
        // An error of the parser may quote what it read.
        let text: Text = serde_json::from_slice(bytes).ok()?;
        let fingerprint = unhex(&text.key_sha256)?.as_slice().try_into().ok()?;
        Some(Self { fingerprint, token: Token::from_hex(&text.token)? })
    }

    /// Reads one line.
    ///
    /// # Errors
    /// When there is none, or it is something else; `place` says in the message where it was read.
    pub fn read(reader: impl BufRead, place: &str) -> Result<Self, CredentialsError> {
        Self::from_json(&line(reader, place)?)
            .ok_or_else(|| CredentialsError::Malformed { place: place.to_owned() })
    }

    /// Reads a file, which must be its user's alone.
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or it holds something else.
    pub fn read_file(path: &Path) -> Result<Self, CredentialsError> {
        Self::from_json(&own_line(path)?)
            .ok_or_else(|| CredentialsError::Malformed { place: path.display().to_string() })
    }
}

/// The first line, with its end.
fn line(reader: impl BufRead, place: &str) -> Result<Zeroizing<Vec<u8>>, CredentialsError> {
    let mut line = Zeroizing::new(Vec::with_capacity(MOST_BYTES as usize));
    reader
        .take(MOST_BYTES)
        .read_until(b'\n', &mut line)
        .map_err(|source| CredentialsError::Read { place: place.to_owned(), source })?;
    Ok(line)
}

/// The first line of a file, which must be its user's alone.
pub(super) fn own_line(path: &Path) -> Result<Zeroizing<Vec<u8>>, CredentialsError> {
    let place = path.display().to_string();
    let failed = |source| CredentialsError::Read { place: place.clone(), source };
    let file = std::fs::File::open(path).map_err(failed)?;
    let facts = file.metadata().map_err(failed)?;
    let ours = facts.uid() == rustix::process::geteuid().as_raw();
    if facts.is_file() && (!ours || facts.mode() & 0o077 != 0) {
        return Err(CredentialsError::Exposed { path: path.to_owned() });
    }
    line(io::BufReader::new(file), &place)
}

/// Bytes of pairs of digits.
pub(super) fn unhex(text: &str) -> Option<Zeroizing<Vec<u8>>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    let mut bytes = Zeroizing::new(Vec::with_capacity(pairs.len()));
    for pair in pairs {
        let [high, low] = pair.map(|c| char::from(c).to_digit(16));
        bytes.push((high? << 4 | low?) as u8);
    }
    rest.is_empty().then_some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use proptest::prelude::*;

    use super::*;

    fn credentials() -> Credentials {
        Credentials { fingerprint: [0xa5; KEY_BYTES], token: Token::random().unwrap() }
    }

    #[test]
    fn they_travel_as_one_line_and_show_nothing() {
        let sent = credentials();
        let text = sent.to_json();
        assert_eq!(text.lines().count(), 1);
        let got = Credentials::read(text.as_bytes(), "here").unwrap();
        assert_eq!(got.fingerprint, sent.fingerprint);
        assert!(got.token.is(sent.token.bytes()));
        assert_eq!(format!("{got:?} {got:#?}"), "Credentials(..) Credentials(..)");
        assert!(!credentials().token.is(sent.token.bytes()), "tokens are random");
        assert!(!sent.token.is(&[]) && !sent.token.is(&sent.token.bytes()[..31]));
    }

    #[test]
    fn errors_show_nothing_of_the_content() {
        let secret = "5ec7e7".repeat(10) + "5ec7";
        let wrong = [
            String::new(),
            "\n".into(),
            secret.clone(),
            format!("\"{secret}\""),
            format!("{{\"token\":\"{secret}\"}}"),
            format!("{{\"key_sha256\":\"{secret}\",\"token\":\"{secret}x\"}}"),
            format!("{{\"key_sha256\":\"{secret}\",\"token\":\"{}\"}}", secret.replace('5', "+")),
            format!("{{\"key_sha256\":{{}},\"token\":\"{secret}\"}}"),
            format!("{{\"key_sha256\":\"{secret}\",\"token\":\"é{}\"}}", &secret[2..]),
            " ".repeat(5000) + credentials().to_json().as_str(),
        ];
        for text in wrong {
            let error = Credentials::read(text.as_bytes(), "standard input").unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(said.starts_with("standard input does not hold the credentials of a launch"), "{said}");
            assert!(!said.contains("5ec7"), "{said}");
        }
    }

    #[test]
    fn a_file_that_others_can_read_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), credentials().to_json().as_bytes()).unwrap();
        for (mode, good) in [(0o600, true), (0o400, true), (0o640, false), (0o604, false), (0o620, false)] {
            std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(mode)).unwrap();
            let read = Credentials::read_file(file.path());
            assert_eq!(read.is_ok(), good, "{mode:o}");
            if let Err(error) = read {
                let path = file.path().display();
                assert!(error.to_string().ends_with(&format!("`chmod 600 {path}`")), "{error}");
            }
        }
        let missing = Credentials::read_file(Path::new("/nonexistent")).unwrap_err().to_string();
        assert!(
            missing.starts_with("cannot read the credentials from /nonexistent: No such file"),
            "{missing}"
        );
    }

    proptest! {
        #[test]
        fn noise_is_no_credentials(noise in prop::collection::vec(any::<u8>(), 0..300)) {
            prop_assert!(Credentials::read(noise.as_slice(), "here").is_err());
        }
    }
}
