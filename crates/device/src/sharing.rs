//! Memory between processes: what one gives and another maps.

use std::os::fd::{BorrowedFd, OwnedFd};

use crate::device::Device;
use crate::driver::{IpcHandle, Provenance, Sharing};
use crate::error::DeviceError;

/// What another process needs to map an allocation. It is of the whole allocation: who shares a
/// pointer within one sends its offset too.
#[derive(Debug)]
pub enum Share {
    /// A handle, which is sent as bytes.
    Handle(IpcHandle),
    /// A descriptor, which is passed over a Unix socket. It need not stay open here once it was.
    Descriptor(OwnedFd),
}

impl Share {
    /// Of the allocation that a pointer comes from.
    ///
    /// # Errors
    /// It cannot be shared between processes of one node, or the driver refuses.
    pub fn of(device: &Device, from: &Provenance) -> Result<Share, DeviceError> {
        device.make_current()?;
        match from.sharing {
            Sharing::LegacyIpc => device.driver().export(from.base).map(Share::Handle),
            Sharing::PosixFd => device.driver().export_fd(from.base).map(Share::Descriptor),
            Sharing::Fabric | Sharing::None => Err(DeviceError::Invalid(format!(
                "the allocation at {:#x} can be given to another process neither by a handle \
                 nor by a descriptor: stage its data in memory that can",
                from.base
            ))),
        }
    }
}

/// Another process's allocation, mapped here; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    device: Device,
    address: u64,
    bytes: usize,
    kind: Kind,
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Handle,
    Descriptor,
}

impl Mapping {
    /// Maps an allocation of `bytes` by its handle. The process that made the handle cannot map it.
    ///
    /// # Errors
    /// The allocation is gone, its device cannot be reached, or a container keeps the processes
    /// apart.
    pub fn by_handle(
        device: &Device,
        handle: &IpcHandle,
        bytes: usize,
    ) -> Result<Mapping, DeviceError> {
        device.make_current()?;
        let address = device.driver().import(handle)?;
        Ok(Mapping { device: device.clone(), address, bytes, kind: Kind::Handle })
    }

    /// Maps an allocation by a descriptor of it. The bytes are all of the allocation's, as its
    /// owner has them from the driver. The descriptor is not needed any more then.
    ///
    /// # Errors
    /// It is no such descriptor, the bytes are others, or the allocation's device cannot be
    /// reached.
    pub fn by_descriptor(
        device: &Device,
        descriptor: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<Mapping, DeviceError> {
        device.make_current()?;
        let address = device.driver().import_fd(device.ordinal(), descriptor, bytes)?;
        Ok(Mapping { device: device.clone(), address, bytes, kind: Kind::Descriptor })
    }

    /// Its first byte here.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let Mapping { address, bytes, kind, .. } = *self;
        self.device.give_back("a peer's memory", |driver| match kind {
            Kind::Handle => driver.unimport(address),
            Kind::Descriptor => driver.free_virtual(address, bytes),
        });
    }
}
