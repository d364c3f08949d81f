//! One GPU: what it is, its instances, its links.

use nvml_wrapper::Device;

use super::super::facts::{Gpu, Instance, Link, Remote};
use super::raw::{Kind, Raw};
use super::{DeviceError, failed};

/// Links that are asked for. More than any GPU has (18 on a B200); the state query fails for those
/// that are not there.
const LINKS_ASKED: u32 = 36;

pub(super) fn read(device: &Device<'_>, raw: &Raw) -> Result<Gpu, DeviceError> {
    let pci = device.pci_info().map_err(failed("nvmlDeviceGetPciInfo"))?;
    let mig = device.mig_mode().is_ok_and(|mode| mode.current == MIG_ENABLED);
    Ok(Gpu {
        uuid: device.uuid().map_err(failed("nvmlDeviceGetUUID"))?,
        name: device.name().map_err(failed("nvmlDeviceGetName"))?,
        pci: pci.bus_id.parse()?,
        mig,
        instances: if mig { instances(device, raw) } else { Vec::new() },
        links: links(
            |number| device.link_wrapper_for(number).is_active().ok(),
            |number| remote(device, raw, number),
        ),
        fabric: raw.fabric(device),
    })
}

/// `NVML_DEVICE_MIG_ENABLE`.
const MIG_ENABLED: u32 = 1;

fn instances(device: &Device<'_>, raw: &Raw) -> Vec<Instance> {
    let most = device.mig_device_count().unwrap_or(0);
    // The numbers have gaps: places of instances that are not made.
    let made = (0..most).filter_map(|index| device.mig_device_by_index(index).ok());
    let facts = made.filter_map(|part| {
        let (gpu_instance, compute_instance) = raw.instance(&part)?;
        Some(Instance { uuid: part.uuid().ok()?, gpu_instance, compute_instance })
    });
    facts.collect()
}

/// The links that are there: those that have a state.
fn links(is_up: impl Fn(u32) -> Option<bool>, remote: impl Fn(u32) -> Remote) -> Vec<Link> {
    let there = (0..LINKS_ASKED).filter_map(|number| Some((number, is_up(number)?)));
    // The other end of a link that is down is not known to it.
    let end = |number, up| if up { remote(number) } else { Remote::Unknown };
    there.map(|(number, up)| Link { number, up, remote: end(number, up) }).collect()
}

fn remote(device: &Device<'_>, raw: &Raw, number: u32) -> Remote {
    let address = || {
        let info = device.link_wrapper_for(number).remote_pci_info().ok()?;
        info.bus_id.parse().ok()
    };
    match raw.remote_kind(device, number) {
        Some(Kind::Switch) => Remote::Switch,
        Some(Kind::Other) => Remote::Unknown,
        // A driver that cannot tell the kind knows no switches either.
        Some(Kind::Gpu) | None => address().map_or(Remote::Unknown, Remote::Gpu),
    }
}

#[cfg(test)]
mod tests {
    use super::{LINKS_ASKED, Link, Remote, links};

    #[test]
    fn links_without_a_state_are_not_there() {
        // 36 that NVML says something about, 18 up, and an error for the state of 18.
        let found = links(|number| (number < 18).then_some(true), |_| Remote::Switch);
        assert_eq!((LINKS_ASKED, found.len()), (36, 18));
        assert!(found.iter().all(|link| link.up && link.remote == Remote::Switch));
    }

    #[test]
    fn links_that_are_down_lead_nowhere() {
        let found = links(|number| (number == 3).then_some(false), |_| panic!("not to be asked"));
        assert_eq!(found, [Link { number: 3, up: false, remote: Remote::Unknown }]);
    }
}
