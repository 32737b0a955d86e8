//! Versions of NFS.

words! {
    /// A version of NFS.
    NfsVersion {
        /// RFC 1094.
        V2 = "2",
        /// RFC 1813.
        V3 = "3",
        /// RFC 7530.
        V40 = "4.0",
        /// RFC 8881.
        V41 = "4.1",
        /// RFC 7862.
        V42 = "4.2",
    }
}

impl NfsVersion {
    pub fn major(self) -> u32 {
        match self {
            Self::V2 => 2,
            Self::V3 => 3,
            Self::V40 | Self::V41 | Self::V42 => 4,
        }
    }

    /// The minor version of version 4.
    pub fn minor(self) -> Option<u32> {
        match self {
            Self::V2 | Self::V3 => None,
            Self::V40 => Some(0),
            Self::V41 => Some(1),
            Self::V42 => Some(2),
        }
    }

    /// Whether servers keep state of clients, such as open files: version 4.
    pub fn has_state(self) -> bool {
        self >= Self::V40
    }

    /// Whether it has sessions.
    pub fn has_sessions(self) -> bool {
        self >= Self::V41
    }
}
