//! Certificates of the embedded server, made for a session: a study with TLS needs no files.

use std::net::IpAddr;
use std::path::PathBuf;

use benchmaster_nfs_client::options::{MountOptions, Security};
use benchmaster_rpc_tls::{Authority, CA_FILE, Lifetime, SERVER_FILES, ServerFiles};
use benchmaster_study::settings::CERTIFICATES;
use jiff::{SignedDuration, Timestamp};
use tempfile::TempDir;

use crate::RunError;

/// A directory with an authority, a server's certificate and a client's; it is removed with the server.
#[derive(Debug)]
pub(crate) struct Certificates {
    directory: TempDir,
    mutual: bool,
}

/// How long they are valid, from an hour ago on, in case the clocks of machines differ: longer than any study takes.
const VALID: SignedDuration = SignedDuration::from_hours(24 * 365);

impl Certificates {
    /// Makes them for a server at this address, unless nothing is to be protected.
    pub(crate) fn make(security: Security, address: IpAddr) -> Result<Option<Self>, RunError> {
        let mutual = match security {
            Security::None => return Ok(None),
            Security::Tls => false,
            Security::Mtls => true,
        };
        let failed = |error: String| RunError::Certificates { error };
        let directory = tempfile::Builder::new().prefix("benchmaster-certificates-").tempdir();
        let directory = directory.map_err(|error| failed(error.to_string()))?;
        let now = Timestamp::now();
        let lifetime = Lifetime { from: now - SignedDuration::from_hours(1), until: now + VALID };
        // A relay is at the loopback address.
        let address = address.to_string();
        Authority::write_set(directory.path(), &[&address, "127.0.0.1", "localhost"], lifetime)
            .map_err(|error| failed(error.to_string()))?;
        Ok(Some(Self { directory, mutual }))
    }

    /// The files of the server.
    pub(crate) fn of_server(&self) -> ServerFiles {
        let [cert, key] = SERVER_FILES.map(|name| self.path(name));
        ServerFiles { cert, key, ca: self.mutual.then(|| self.path(CA_FILE)) }
    }

    /// Names the files in the place of [`CERTIFICATES`].
    pub(crate) fn give(&self, options: &mut MountOptions) {
        let directory = self.directory.path().to_string_lossy();
        for file in [&mut options.tls_ca, &mut options.tls_cert, &mut options.tls_key].into_iter().flatten() {
            *file = file.replacen(CERTIFICATES, &directory, 1);
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }
}
