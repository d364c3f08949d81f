//! What is known of all pairs of a group.

use std::collections::BTreeMap;

use crate::driver::{Description, Driver};
use crate::error::DeviceError;

use super::{Pair, Verdict};

/// The verdict on each directed pair of a group's devices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// Each pair once, ascending. None for a single device, which needs no peer.
    pub pairs: Vec<(Pair, Verdict)>,
}

impl Verdicts {
    /// Puts together what was found, of some pairs by several ranks: what speaks most against a
    /// pair holds. A device that uses its own memory is passed over.
    pub fn of(found: impl IntoIterator<Item = (Pair, Verdict)>) -> Verdicts {
        let mut pairs: BTreeMap<Pair, Verdict> = BTreeMap::new();
        for (pair, verdict) in found.into_iter().filter(|(pair, _)| pair.user != pair.owner) {
            match pairs.get(&pair) {
                Some(known) if known.weight() >= verdict.weight() => {}
                _ => drop(pairs.insert(pair, verdict)),
            }
        }
        Verdicts { pairs: pairs.into_iter().collect() }
    }

    /// Why peers must not be used: the first pair that is not proven. `None` allows them.
    pub fn veto(&self) -> Option<&(Pair, Verdict)> {
        self.pairs.iter().find(|(_, verdict)| *verdict != Verdict::Proven)
    }
}

/// The pairs of `own`, a device of this driver, with each of `units`, UUIDs of devices, whose memory it
/// cannot reach, says the driver. One that this process does not see cannot be asked about: mapping
/// it will tell.
///
/// # Errors
/// The driver does not answer.
pub fn refused(
    driver: &dyn Driver,
    own: &Description,
    units: &[String],
) -> Result<Vec<Pair>, DeviceError> {
    let mut pairs = Vec::new();
    for peer in driver.devices()? {
        let is_peer = peer.uuid != own.uuid && units.contains(&peer.uuid);
        if is_peer && !driver.can_access(own.ordinal, peer.ordinal)? {
            pairs.push(Pair { user: own.uuid.clone(), owner: peer.uuid });
        }
    }
    Ok(pairs)
}
