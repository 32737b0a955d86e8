//! What a controller needs to be the one that agents were given credentials for beforehand.

use std::fmt;
use std::path::Path;

use serde::Deserialize;
use zeroize::Zeroizing;

use super::build::hex;
use super::credentials::{Credentials, CredentialsError, Token, own_line, unhex};
use super::key;

/// The private key of a controller and the token of its agents: for one launch, or kept in a file for launches whose agents
/// something else starts. Shows nothing when it is printed with `{:?}`.
pub struct ControllerKey {
    pub(super) pkcs8: Zeroizing<Vec<u8>>,
    pub(super) token: Token,
}

impl fmt::Debug for ControllerKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ControllerKey(..)")
    }
}

/// The kernel gives no random numbers, or they make no key.
#[derive(Debug, thiserror::Error)]
#[error("cannot make a key for this launch: {0}")]
pub struct KeyError(pub(super) String);

/// The text form.
#[derive(Deserialize)]
struct Text {
    key: Zeroizing<String>,
    token: Zeroizing<String>,
}

impl ControllerKey {
    /// A new one.
    ///
    /// # Errors
    /// When the kernel gives no random numbers.
    pub fn generate() -> Result<Self, KeyError> {
        let token = Token::random().ok_or_else(|| KeyError("the kernel gives no random numbers".into()))?;
        Ok(Self { pkcs8: key::generate().map_err(KeyError)?, token })
    }

    /// What its agents need.
    ///
    /// # Errors
    /// When it is no key for TLS.
    pub fn credentials(&self) -> Result<Credentials, KeyError> {
        let (_, fingerprint) = key::server(&self.pkcs8).map_err(KeyError)?;
        Ok(Credentials { fingerprint, token: self.token.clone() })
    }

    /// One line of JSON for a file with mode 0600: see [`Credentials::to_json`].
    pub fn to_json(&self) -> Zeroizing<String> {
        let (key, token) = (Zeroizing::new(hex(&self.pkcs8)), Zeroizing::new(hex(self.token.bytes())));
        Zeroizing::new(format!("{{\"key\":\"{}\",\"token\":\"{}\"}}\n", key.as_str(), token.as_str()))
    }

    /// Reads a file, which must be its user's alone.
    ///
    /// # Errors
    /// When it cannot be read, others can read it, or it holds something else.
    pub fn read_file(path: &Path) -> Result<Self, CredentialsError> {
        let line = own_line(path)?;
        let parsed = || {
            let text: Text = serde_json::from_slice(&line).ok()?;
            let key = Self { pkcs8: unhex(&text.key)?, token: Token::from_hex(&text.token)? };
            key.credentials().is_ok().then_some(key)
        };
        parsed().ok_or_else(|| CredentialsError::Malformed { place: path.display().to_string() })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_key_that_is_kept_is_the_one_its_agents_know() {
        let key = ControllerKey::generate().unwrap();
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("controller");
        fs::write(&path, key.to_json().as_bytes()).unwrap();
        let exposed = ControllerKey::read_file(&path).unwrap_err().to_string();
        assert!(exposed.contains("`chmod 600 "), "{exposed}");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let kept = ControllerKey::read_file(&path).unwrap();
        let [kept, made] = [kept, key].map(|key| key.credentials().unwrap().to_json().as_str().to_owned());
        assert_eq!(kept, made);
        assert_eq!(format!("{:?}", ControllerKey::generate().unwrap()), "ControllerKey(..)");
    }

    #[test]
    fn anything_else_is_no_key_and_errors_show_nothing_of_it() {
        let key = ControllerKey::generate().unwrap();
        let good = key.to_json();
        let cut = good.replacen("\"key\":\"", "\"key\":\"ab", 1);
        let agents = key.credentials().unwrap().to_json();
        let file = tempfile::NamedTempFile::new().unwrap();
        for wrong in ["", "{}", "{\"key\":\"5ec7e7\",\"token\":\"5ec7e7\"}", cut.as_str(), agents.as_str()] {
            fs::write(file.path(), wrong).unwrap();
            let error = ControllerKey::read_file(file.path()).unwrap_err().to_string();
            assert!(error.contains("does not hold") && !error.contains("5ec7"), "{error}");
        }
    }
}
