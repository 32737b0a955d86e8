//! What is wrong with settings.

/// A parameter that cannot be as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    /// The path of the parameter.
    pub(crate) path: String,
    pub(crate) message: String,
    pub(crate) help: String,
}

#[derive(Debug, Default)]
pub(crate) struct Problems(pub(crate) Vec<Problem>);

impl Problems {
    pub(super) fn add(&mut self, path: &str, message: String, help: impl Into<String>) {
        self.0.push(Problem { path: path.to_owned(), message, help: help.into() });
    }
}
