//! Why an operation failed, and the names of errors.

/// Why an operation failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, thiserror::Error)]
pub enum OperationError {
    /// The system said so.
    #[error("{}", std::io::Error::from_raw_os_error(*.0))]
    Os(i32),
    /// Fewer bytes than asked for, before the end of the file.
    #[error("only {done} of {asked} bytes were moved")]
    Short { asked: usize, done: usize },
    /// The server lists a directory on and on.
    #[error("the directory has more than {0} entries")]
    TooManyEntries(usize),
    /// It succeeded, and in the trace that is replayed it did not.
    #[error("it succeeded, and failed when it was recorded: {}", std::io::Error::from_raw_os_error(*recorded))]
    Succeeded {
        /// `errno` of the trace.
        recorded: i32,
    },
}

impl OperationError {
    /// A short name to count by: `ENOSPC`, `short`.
    pub fn name(self) -> String {
        match self {
            Self::Short { .. } => "short".into(),
            Self::TooManyEntries(_) => "too many entries".into(),
            Self::Succeeded { .. } => "unexpected success".into(),
            Self::Os(number) => errno_name(number).map_or_else(|| format!("errno {number}"), str::to_owned),
        }
    }

    /// The error number for traces; short transfers are `EIO`.
    pub fn number(self) -> u16 {
        match self {
            Self::Short { .. } | Self::Succeeded { .. } => libc::EIO as u16,
            Self::TooManyEntries(_) => libc::EOVERFLOW as u16,
            Self::Os(number) => u16::try_from(number).unwrap_or(u16::MAX),
        }
    }
}

impl From<rustix::io::Errno> for OperationError {
    fn from(errno: rustix::io::Errno) -> Self {
        Self::Os(errno.raw_os_error())
    }
}

impl From<OperationError> for std::io::Error {
    fn from(error: OperationError) -> Self {
        match error {
            OperationError::Os(number) => Self::from_raw_os_error(number),
            OperationError::Short { .. }
            | OperationError::Succeeded { .. }
            | OperationError::TooManyEntries(_) => Self::other(error),
        }
    }
}

/// The number of the error with this name.
pub(crate) fn errno_named(name: &str) -> Option<u16> {
    (1..=133).find(|&number| errno_name(i32::from(number)) == Some(name))
}

fn errno_name(number: i32) -> Option<&'static str> {
    macro_rules! names {
        ($($name:ident)*) => { match number { $(libc::$name => Some(stringify!($name)),)* _ => None } };
    }
    names!(EPERM ENOENT EINTR EIO ENXIO EBADF EAGAIN ENOMEM EACCES EFAULT EBUSY EEXIST EXDEV ENODEV ENOTDIR EISDIR
        EINVAL ENFILE EMFILE ENOTTY ETXTBSY EFBIG ENOSPC ESPIPE EROFS EMLINK EPIPE ERANGE EDEADLK ENAMETOOLONG ENOLCK ENOSYS
        ENOTEMPTY ELOOP ENODATA ETIME EREMOTE ECOMM EPROTO EOVERFLOW EOPNOTSUPP ENETDOWN ENETUNREACH ECONNRESET
        ECONNREFUSED EHOSTDOWN EHOSTUNREACH ETIMEDOUT ESTALE EDQUOT EREMOTEIO)
}
