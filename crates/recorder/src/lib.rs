//! Nothing hangs silently: what each rank did last, kept where a crash cannot reach it, and read
//! by whoever is left.
//!
//! A call's way: the communicator tells its [`GroupRecorder`], which writes a record of one cache line into
//! the rank's [`Ring`]. Peers on the node have that open, and a thread, the watchdog, looks at all rings ten
//! times a second; where a rank is awaited for too long, is gone, or has another history than its
//! peers, [`analyse`](analyse()) says what is the matter, from [`Image`]s of the rings alone. The same
//! images are read from files by `crossover diagnose`.

mod about;
mod analyse;
mod clock;
mod coded;
mod diagnosis;
mod dump;
mod export;
mod find;
mod forked;
mod group;
mod image;
mod last;
mod layout;
mod life;
mod parse;
mod place;
mod reader;
mod ring;
mod sites;
mod text;
mod watch;
mod words;

pub use about::{About, Process};
pub use analyse::{analyse, analyse_twice};
pub use diagnosis::{Branch, Class, DeviceState, Diagnosis, GroupState, RankState, Verdict};
pub use dump::own_dumps;
pub use export::{RankDump, chrome_trace, flight_recorder, timeline};
pub use find::{Found, Refused, in_folder, of_job, on_node, sweep};
pub use group::{Dumps, GroupRecorder, Job, Options};
pub use image::{DeviceWait, Image, Life, Phase, Progress, Record, What};
pub use last::after;
pub use layout::BYTES;
pub use parse::Damage;
pub use reader::{ReadError, Reader};
pub use ring::{Ring, RingError};
pub use text::text;
