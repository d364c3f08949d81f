//! A ring's bytes, read. They come from a process that still writes them, from one that died while it did,
//! or from a file that somebody cut: nothing is taken on trust.

use std::collections::BTreeMap;
use std::mem::offset_of;

use crossover_core::call::{Dtype, Mode, Op, ReduceOp};

use crate::about::About;
use crate::clock::{self, Moment};
use crate::coded::{mix, note};
use crate::image::{DeviceWait, Image, Life, Phase, Progress, Record, What};
use crate::layout::{
    ABOUT_BYTES, BYTES, BeatLine, DeviceLine, END_BYTES, EndText, MAGIC, Memory, ProgressLine,
    SITE_BYTES, SITES, SLOTS, SiteText, Slot, VERSION,
};

/// A wait of the device that was not seen for longer than some looks of the watchdog is over.
const RECENT: u64 = 500_000_000;

/// Bytes that are no ring.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Damage {
    /// Too few of them.
    #[error("{source_name}: {got} B, and a ring has {BYTES}: it was cut, or is no ring")]
    Cut {
        /// Where they come from.
        source_name: String,
        /// How many there are.
        got: usize,
    },
    /// They do not begin as a ring does.
    #[error("{source_name}: no ring, or one whose owner died while it made it")]
    NoRing {
        /// Where they come from.
        source_name: String,
    },
    /// Of another version of this program.
    #[error(
        "{source_name}: a ring of layout {got}, and this program reads layout {VERSION}: use the \
             program of the version that wrote it"
    )]
    Version {
        /// Where they come from.
        source_name: String,
        /// The layout's version.
        got: u32,
    },
    /// The description of group and rank cannot be read.
    #[error("{source_name}: the description of its group cannot be read: {why}")]
    About {
        /// Where they come from.
        source_name: String,
        /// Why not.
        why: String,
    },
}

impl Image {
    /// Reads a ring. Records that were torn, or do not fit their own digests, are left out.
    ///
    /// # Errors
    ///
    /// These bytes are no ring.
    pub fn parse(bytes: &[u8], source: &str) -> Result<Image, Damage> {
        Bytes { bytes }.image(source, &|_| true)
    }

    /// The same, of a ring that is written meanwhile: `before` and `after` are one after the other, and
    /// only records that are in both alike were whole.
    pub(crate) fn parse_twice(before: &[u8], after: &[u8], source: &str) -> Result<Image, Damage> {
        let whole = |at: usize| {
            before.get(at..at + size_of::<Slot>()) == after.get(at..at + size_of::<Slot>())
        };
        Bytes { bytes: after }.image(source, &whole)
    }
}

struct Bytes<'a> {
    bytes: &'a [u8],
}

impl Bytes<'_> {
    fn image(&self, source: &str, whole: &dyn Fn(usize) -> bool) -> Result<Image, Damage> {
        let source_name = source.to_owned();
        if self.bytes.len() != BYTES {
            return Err(Damage::Cut { source_name, got: self.bytes.len() });
        }
        if self.word(offset_of!(Memory, magic)) != MAGIC {
            return Err(Damage::NoRing { source_name });
        }
        let version = self.half(offset_of!(Memory, version));
        if version != VERSION {
            return Err(Damage::Version { source_name, got: version });
        }
        let bytes = (self.half(offset_of!(Memory, about_bytes)) as usize).min(ABOUT_BYTES);
        let at = offset_of!(Memory, about);
        let about =
            about(&self.bytes[at..at + bytes]).map_err(|why| Damage::About { source_name, why })?;
        let times = self.times();
        let sites = self.sites();
        let read = Reading { targets: &about.targets, sites: &sites, times };
        Ok(Image {
            source: source.to_owned(),
            progress: self.progress(times),
            records: self.records(&read, whole),
            life: Life::Unknown,
            about,
        })
    }

    fn progress(&self, (first, last): (Moment, Moment)) -> Progress {
        let line = |at: usize| self.word(offset_of!(Memory, progress) + at);
        Progress {
            issued: line(offset_of!(ProgressLine, issued)),
            finished: line(offset_of!(ProgressLine, finished)),
            chain: line(offset_of!(ProgressLine, chain)),
            step: line(offset_of!(ProgressLine, step)) as u32,
            phase: phase(line(offset_of!(ProgressLine, phase))),
            entered: line(offset_of!(ProgressLine, entered)),
            device: self.device(first, last),
            end: self.text(offset_of!(Memory, end), offset_of!(EndText, text), END_BYTES),
            born: first.unix,
            beat: clock::told(last.ticks, first, last),
            taken: clock::now(first),
        }
    }

    /// What the device waits for, if it did at the watchdog's last look.
    fn device(&self, first: Moment, last: Moment) -> Option<DeviceWait> {
        let word = |at: usize| self.word(offset_of!(Memory, device) + at);
        let seen = word(offset_of!(DeviceLine, seen));
        if seen == 0 || seen.saturating_add(RECENT) < last.unix {
            return None;
        }
        let what =
            (0..4).flat_map(|nth| word(offset_of!(DeviceLine, what) + 8 * nth).to_ne_bytes());
        let what: Vec<u8> = what.take_while(|byte| *byte != 0).collect();
        let awaited = word(offset_of!(DeviceLine, awaited));
        // The time of day may have been set since the ring was made: as old, on the scale of all else.
        let age = last.unix.saturating_sub(word(offset_of!(DeviceLine, since)));
        Some(DeviceWait {
            call: word(offset_of!(DeviceLine, call)),
            awaited: (0..u64::BITS).filter(|rank| awaited >> rank & 1 != 0).collect(),
            what: String::from_utf8_lossy(&what).into_owned(),
            since: clock::told(last.ticks, first, last).saturating_sub(age),
        })
    }

    /// The two moments that times are told by.
    fn times(&self) -> (Moment, Moment) {
        let moment = |at: usize| {
            let at = offset_of!(Memory, beat) + at;
            Moment::from_words([self.word(at), self.word(at + 8), self.word(at + 16)])
        };
        (moment(offset_of!(BeatLine, first)), moment(offset_of!(BeatLine, last)))
    }

    fn sites(&self) -> Vec<String> {
        let count = (self.half(offset_of!(Memory, site_count)) as usize).min(SITES);
        let site = |nth: usize| {
            let at = offset_of!(Memory, sites) + nth * size_of::<SiteText>();
            self.text(at, offset_of!(SiteText, text), SITE_BYTES).unwrap_or_default()
        };
        (0..count).map(site).collect()
    }

    fn records(&self, read: &Reading<'_>, whole: &dyn Fn(usize) -> bool) -> BTreeMap<u64, Record> {
        // In a copy of a ring that moved, what was copied later is newer than what it is judged by.
        let issued = self.word(offset_of!(Memory, progress) + offset_of!(ProgressLine, issued));
        let slots =
            (0..SLOTS).map(|nth| (nth, offset_of!(Memory, slots) + nth * size_of::<Slot>()));
        let whole = slots.filter(|(nth, at)| {
            let tag = self.word(at + offset_of!(Slot, tag));
            let counted = tag <= issued.saturating_add(1);
            tag != 0 && counted && tag as usize % SLOTS == *nth && whole(*at)
        });
        let mut records: BTreeMap<u64, Record> =
            whole.filter_map(|(_, at)| read.record(self, at)).map(|r| (r.number, r)).collect();
        // A record that was torn and yet looks whole does not follow from the one before it.
        let follows = |record: &Record| match records.get(&(record.number - 1)) {
            Some(before) => mix(before.chain, record.fingerprint) == record.chain,
            None => record.number > 1 || mix(0, record.fingerprint) == record.chain,
        };
        let odd: Vec<u64> = records.values().filter(|r| !follows(r)).map(|r| r.number).collect();
        for number in odd {
            records.remove(&number);
        }
        records
    }

    /// A text with its length before it; `None` if it has none.
    fn text(&self, at: usize, text: usize, room: usize) -> Option<String> {
        let bytes = (self.word(at) as usize).min(room);
        let bytes = &self.bytes[at + text..at + text + bytes];
        (!bytes.is_empty()).then(|| String::from_utf8_lossy(bytes).into_owned())
    }

    fn word(&self, at: usize) -> u64 {
        self.bytes
            .get(at..at + 8)
            .and_then(|word| word.try_into().ok())
            .map_or(0, u64::from_ne_bytes)
    }

    fn half(&self, at: usize) -> u32 {
        self.bytes
            .get(at..at + 4)
            .and_then(|half| half.try_into().ok())
            .map_or(0, u32::from_ne_bytes)
    }
}

/// The description of a group in which every rank has a process and a node, and this one is among
/// them.
fn about(bytes: &[u8]) -> Result<About, String> {
    let about: About = postcard::from_bytes(bytes).map_err(|e| e.to_string())?;
    let (rank, world) = (about.rank, about.world);
    let (members, nodes) = (about.members.len(), about.nodes.len());
    let listed = members == world as usize && nodes == members;
    match rank < world && listed {
        true => Ok(about),
        false => Err(format!("rank {rank} of {world}, with {members} members on {nodes} nodes")),
    }
}

/// What numbers in records stand for.
struct Reading<'a> {
    targets: &'a [String],
    sites: &'a [String],
    times: (Moment, Moment),
}

impl Reading<'_> {
    fn record(&self, bytes: &Bytes<'_>, at: usize) -> Option<Record> {
        let word = |field: usize| bytes.word(at + field);
        let (place, coded) = (word(offset_of!(Slot, place)), word(offset_of!(Slot, what)));
        let field = |shift: u32| (coded >> shift & 0xFF) as usize;
        let what = match coded as u8 {
            note::STATE => What::State,
            note::REPLAY => What::Replay,
            note::COMMIT => What::Commit,
            note::CLOSE => What::Close,
            op => What::Call(*Op::ALL.get(usize::from(op))?),
        };
        let target = match what {
            What::Call(_) => self.targets.get(place as usize & 0xFFFF)?.clone(),
            _ => String::new(),
        };
        let site = (place >> 16 & 0xFFFF) as usize;
        Some(Record {
            number: word(offset_of!(Slot, tag)),
            seq: word(offset_of!(Slot, seq)),
            what,
            dtype: *Dtype::ALL.get(field(8))?,
            reduce_op: *ReduceOp::ALL.get(field(16))?,
            mode: *Mode::ALL.get(field(24))?,
            root: (coded >> 32) as u32,
            count: word(offset_of!(Slot, count)),
            step: (place >> 32) as u32,
            site: site
                .checked_sub(1)
                .and_then(|nth| self.sites.get(nth))
                .cloned()
                .unwrap_or_default(),
            target,
            fingerprint: word(offset_of!(Slot, fingerprint)),
            chain: word(offset_of!(Slot, chain)),
            at: clock::told(word(offset_of!(Slot, ticks)), self.times.0, self.times.1),
        })
    }
}

pub(crate) fn phase(number: u64) -> Phase {
    usize::try_from(number).ok().and_then(|n| Phase::ALL.get(n)).copied().unwrap_or_default()
}
