//! What can go wrong below.

/// A vendor's library cannot be had, or one of its calls failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The library is not there, is too old, or sees no device. The sentence says what was tried.
    #[error("{0}")]
    Absent(String),
    /// A vendor's call failed.
    #[error("{call} failed: {text} ({code})")]
    Call {
        /// The vendor's function.
        call: &'static str,
        /// Its status.
        code: i32,
        /// The status in words.
        text: String,
    },
    /// This vendor has no such thing.
    #[error("{vendor} has no {what}")]
    Unsupported {
        /// Whose.
        vendor: &'static str,
        /// What is missing.
        what: &'static str,
    },
    /// A kernel image is not there.
    #[error("no kernel image for {arch} (looked for {looked}): build it with `{command}`")]
    NoImage {
        /// The architecture.
        arch: String,
        /// The files looked for.
        looked: String,
        /// The command that builds it.
        command: String,
    },
    /// What was asked for makes no sense, such as a device that does not exist.
    #[error("{0}")]
    Invalid(String),
}
