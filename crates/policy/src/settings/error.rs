//! Why the settings cannot be read.

use std::path::PathBuf;

/// A setting that is none, or that has no such value.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A variable whose value is not UTF-8.
    #[error("the variable {name} does not hold UTF-8 text")]
    NotText {
        /// Which.
        name: String,
    },
    /// The settings file is not TOML.
    #[error("{origin}: the settings file is not TOML: {what}")]
    Syntax {
        /// The file and line.
        origin: String,
        /// What the parser says.
        what: String,
    },
    /// No setting has this name.
    #[error("{origin}: there is no setting `{key}`; {help}")]
    Unknown {
        /// The variable, option, or line of a file.
        origin: String,
        /// What it sets.
        key: String,
        /// The nearest, and all of them.
        help: String,
    },
    /// The settings file cannot be read.
    #[error("the settings file {}, named by CROSSOVER_CONFIG, cannot be read: {error}", path.display())]
    Unreadable {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        error: std::io::Error,
    },
    /// A value that the setting does not take.
    #[error("{origin}: `{value}` is no value of the setting `{key}`: {want}")]
    Value {
        /// The variable, option, or line of a file.
        origin: String,
        /// The setting.
        key: String,
        /// What it holds.
        value: String,
        /// What it takes.
        want: String,
    },
}
