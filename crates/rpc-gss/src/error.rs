//! Why GSS-API, or Kerberos below it, refuses.

/// Name of the library that is opened, and the Debian package that has it.
pub const LIBRARY: &str = "libgssapi_krb5.so.2";

/// Why there is no context, or why a message is not what its sender wrote.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GssError {
    /// The host has no Kerberos library, or the program is linked statically.
    #[error(
        "Kerberos needs the library {LIBRARY}, which cannot be opened ({reason}); install the package \
         libgssapi-krb5-2 (Debian, Ubuntu) or krb5-libs (Fedora, RHEL), and use a program that is not linked statically"
    )]
    NoLibrary {
        /// What the system says.
        reason: String,
    },
    /// The library refuses.
    #[error("{doing}: {message}")]
    Refused {
        /// What was to be done.
        doing: &'static str,
        /// The library's own words.
        message: String,
        /// Major status of GSS-API.
        major: u32,
        /// Minor status, of the mechanism.
        minor: u32,
    },
    /// A name or path cannot be given to the library.
    #[error("{what} `{text}` has a zero byte")]
    Text {
        /// What it is.
        what: &'static str,
        /// Text as given.
        text: String,
    },
    /// A keytab cannot be read. The library would only say that there are no credentials.
    #[error("the keytab {path} cannot be read: {reason}")]
    Keytab {
        /// Path as given.
        path: String,
        /// What the system says.
        reason: String,
    },
    /// What came is not protected as it must be.
    #[error("{0}")]
    Unprotected(&'static str),
}

/// `GSS_S_CONTEXT_EXPIRED`.
pub(crate) const CONTEXT_EXPIRED: u32 = 12 << 16;

impl GssError {
    /// Whether a new context would help: this one's ticket has expired.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Refused { major, .. } if major & 0x00ff_0000 == CONTEXT_EXPIRED)
    }

    /// Major and minor status, as the protocol reports them.
    pub fn status(&self) -> (u32, u32) {
        match self {
            Self::Refused { major, minor, .. } => (*major, *minor),
            // GSS_S_FAILURE
            _ => (13 << 16, 0),
        }
    }
}
