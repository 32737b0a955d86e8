//! How commands end and why they fail.

use std::io::{self, ErrorKind};

/// How a command ended; see the exit status in the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    Fine,
    ChecksFailed,
    WrongInput,
    Interrupted,
}

impl Status {
    /// The exit status of the process.
    pub(crate) fn code(self) -> u8 {
        match self {
            Self::Fine => 0,
            Self::ChecksFailed => 1,
            Self::WrongInput => 2,
            Self::Interrupted => 130,
        }
    }
}

/// Why a command failed.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) status: Status,
    pub(crate) error: anyhow::Error,
    /// Text to print as it is instead of the error.
    pub(crate) rendered: Option<String>,
    /// What it means for what was done before.
    pub(crate) consequence: Option<String>,
}

impl Failure {
    pub(crate) fn new(status: Status, error: anyhow::Error) -> Self {
        Self { status, error, rendered: None, consequence: None }
    }

    pub(crate) fn wrong_input(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Status::WrongInput, error.into())
    }

    /// Of wrong input, in a message.
    pub(crate) fn wrong(message: impl Into<String>) -> Self {
        Self::wrong_input(anyhow::Error::msg(message.into()))
    }

    /// Of a measurement, in a message.
    pub(crate) fn fault(message: impl Into<String>) -> Self {
        Self::failed(anyhow::Error::msg(message.into()))
    }

    pub(crate) fn failed(error: impl Into<anyhow::Error>) -> Self {
        Self::new(Status::ChecksFailed, error.into())
    }

    /// For something that could not be written where the user wanted it: a place that cannot be is wrong input.
    pub(crate) fn of_a_place_given(mut self) -> Self {
        let wrong = |kind| is_no_place(kind) || kind == ErrorKind::NotFound;
        let mut reasons = self.error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
        if reasons.any(|reason| wrong(reason.kind())) {
            self.status = Status::WrongInput;
        }
        self
    }
}

/// An error of which nothing else is known is one of the measurement.
impl<E: std::error::Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self::failed(error)
    }
}

/// Whether something else is in the way of a file or directory to be made.
pub(crate) fn is_no_place(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::AlreadyExists | ErrorKind::NotADirectory | ErrorKind::IsADirectory)
}

pub(crate) type Result<T> = std::result::Result<T, Failure>;
