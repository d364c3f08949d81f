//! What was found, in the forms of other tools, and as a picture. Pure functions from images: no
//! file is opened here.

mod chrome_trace;
mod flight_recorder;
mod places;
#[cfg(test)]
mod tests;
mod timeline;

pub use chrome_trace::chrome_trace;
pub use flight_recorder::{RankDump, flight_recorder};
pub use timeline::timeline;

use crate::image::What;

/// The word for a record.
pub(crate) const fn word(what: What) -> &'static str {
    match what {
        What::Call(op) => op.name(),
        What::State => "state",
        What::Replay => "replay",
        What::Commit => "commit",
        What::Close => "close",
    }
}
