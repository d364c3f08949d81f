//! Inputs that captured calls read where they are, and outputs that they write there. While a graph
//! is captured nobody knows the peers' addresses, so a kernel is told a row of a table for each, which
//! is filled when the capture is committed: with the addresses, or with the word that has the call
//! stage it, the same on every rank. What is said of inputs here holds for such outputs too.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, PoisonError};

use crossover_core::agreement::{Local, Setup, SetupError, StepError};
use crossover_device::driver::{IpcHandle, Sharing};
use crossover_device::error::DeviceError;
use crossover_device::memory::Buffer;
use crossover_device::sharing::{Mapping, Share};
use crossover_kernel_abi::MAX_WORLD;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

use crate::memory::{self, Own};

/// Tensors of a group's captured calls that can have a row, of which a call has one or two; later
/// ones are staged.
const ROWS: usize = 32768; // size: rows, 4 MiB of a device
/// Bytes of a row.
const ROW: u64 = (MAX_WORLD * 8) as u64;
/// What a kernel reads of a row that was agreed to stage.
const STAGED: u64 = 1;
/// Stands where nobody reads an input: no word that says anything else.
const NOWHERE: u64 = u64::MAX;

/// The table and what has been exchanged.
pub(crate) struct Rows {
    table: Buffer,
    /// Calls since the last commit, in order.
    pending: Vec<Pending>,
    used: usize,
    /// Was there once no room for a row?
    is_full: bool,
    /// Peers' allocations, by rank and allocation, kept for as long as the group lives.
    mapped: BTreeMap<(u32, u64), Mapping>,
}

#[derive(Clone, Copy)]
struct Pending {
    input: u64,
    /// 0: peers read nothing of it, and it need not be anywhere.
    bytes: u64,
    /// Must not be read by peers while the call runs.
    must_stage: bool,
}

/// One captured input, as peers are told.
#[derive(Clone, Copy, PartialEq, Serialize, Deserialize)]
enum Offered {
    /// So many bytes into an allocation.
    At { allocation: u64, offset: u64 },
    /// Nothing of it is read.
    Nothing,
    /// It cannot be read where it is.
    Staged,
}

/// The allocations that inputs are in, and the process that they belong to.
#[derive(Serialize, Deserialize)]
struct Catalogue {
    process: u64,
    inputs: Vec<Offered>,
    allocations: BTreeMap<u64, Allocation>,
}

#[derive(Clone, Serialize, Deserialize)]
struct Allocation {
    base: u64,
    bytes: u64,
    /// A handle, or the number of its descriptor among those that travel beside.
    handle: Option<Vec<u8>>,
    descriptor: Option<u32>,
}

impl Rows {
    pub(crate) fn new(own: &Own) -> Result<Rows, DeviceError> {
        let table = Buffer::new(&own.device, ROWS * ROW as usize)?;
        table.fill(0, &own.stream)?;
        Ok(Rows { table, pending: Vec::new(), used: 0, is_full: false, mapped: BTreeMap::new() })
    }

    /// A row for a captured call, of whose input peers read `bytes` or, if those are none, nothing; 0
    /// if the table is full, on every rank alike.
    pub(crate) fn take(&mut self, input: u64, bytes: u64, must_stage: bool) -> u64 {
        let nth = self.used + self.pending.len();
        if nth >= ROWS {
            if !self.is_full {
                self.is_full = true;
                tracing::warn!(
                    target: "crossover::ipc",
                    "captured calls have {ROWS} tensors: those of later ones are staged"
                );
            }
            return 0;
        }
        self.pending.push(Pending { input, bytes, must_stage });
        self.table.address() + nth as u64 * ROW
    }

    /// Forgets the calls since the last commit. Their rows are nobody else's: a graph that was
    /// thrown away and is replayed all the same finds them empty.
    pub(crate) fn discard(&mut self) {
        self.used += self.pending.len();
        self.pending.clear();
    }

    /// Unmaps what peers told of. No graph of the group runs any more.
    pub(crate) fn unmap(&mut self) {
        self.mapped.clear();
    }
}

/// Exchanges what was captured. The session keeps the rows behind a lock, since steps of a set-up
/// own what they touch.
pub(crate) fn commit<'g>(
    own: &Arc<Own>,
    rows: &Arc<Mutex<Rows>>,
    setup: &mut Setup<'g>,
) -> Result<(), SetupError> {
    let (mine, table) = (Arc::clone(own), Arc::clone(rows));
    let told = setup.step("look up captured inputs", Local::new(()), move |_, ()| {
        let rows = table.lock().unwrap_or_else(PoisonError::into_inner);
        catalogue(&mine, &rows)
    })?;
    let (catalogue, descriptors) = told.unzip();
    let catalogues =
        setup.exchange("tell captured inputs", catalogue, |_, catalogue| Ok(catalogue))?;
    let descriptors = setup.exchange_fds("pass captured allocations", descriptors)?;
    let (mine, table) = (Arc::clone(own), Arc::clone(rows));
    let catalogues = Arc::new(catalogues.into_inner());
    let theirs = Arc::clone(&catalogues);
    let mapped = setup.step("map captured inputs", descriptors, move |here, descriptors| {
        let mut rows = table.lock().unwrap_or_else(PoisonError::into_inner);
        let addresses = map(&mine, &mut rows, here.rank(), &theirs, &descriptors);
        Ok((addresses.iter().map(Option::is_some).collect::<Vec<bool>>(), addresses))
    })?;
    let (could, addresses) = mapped.unzip();
    let could = setup.exchange("tell what could be mapped", could, |_, could| Ok(could))?;
    let could = could.into_inner();
    let (mine, table) = (Arc::clone(own), Arc::clone(rows));
    setup.step("write the rows of captured inputs", addresses, move |_, addresses| {
        let mut rows = table.lock().unwrap_or_else(PoisonError::into_inner);
        write(&mine, &mut rows, &could, &addresses).map_err(StepError::new)
    })?;
    Ok(())
}

/// Every rank's address of one captured input.
type Row = [u64; MAX_WORLD];

fn catalogue(own: &Own, rows: &Rows) -> Result<(Catalogue, Vec<OwnedFd>), StepError> {
    let mut told =
        Catalogue { process: memory::process(), inputs: Vec::new(), allocations: BTreeMap::new() };
    let mut descriptors = Vec::new();
    for pending in &rows.pending {
        if pending.bytes == 0 {
            told.inputs.push(Offered::Nothing);
            continue;
        }
        let found = own.device.provenance(pending.input).map_err(StepError::new)?;
        let offset = pending.input - found.base;
        // A tensor can lie over several allocations that are mapped side by side.
        let is_whole = offset + pending.bytes <= found.bytes;
        let shareable = matches!(found.sharing, Sharing::LegacyIpc | Sharing::PosixFd);
        if pending.must_stage || !shareable || !is_whole {
            told.inputs.push(Offered::Staged);
            continue;
        }
        let key = xxh3_64(&[found.id.to_ne_bytes(), found.base.to_ne_bytes()].concat());
        if let Entry::Vacant(vacant) = told.allocations.entry(key) {
            let (handle, descriptor) = match Share::of(&own.device, &found) {
                Ok(Share::Handle(handle)) => (Some(handle.to_vec()), None),
                Ok(Share::Descriptor(fd)) => {
                    descriptors.push(fd);
                    (None, Some(descriptors.len() as u32 - 1))
                }
                Err(e) => {
                    tracing::warn!(target: "crossover::ipc", "a captured input is staged: {e}");
                    told.inputs.push(Offered::Staged);
                    continue;
                }
            };
            let (base, bytes) = (found.base, found.bytes);
            vacant.insert(Allocation { base, bytes, handle, descriptor });
        }
        told.inputs.push(Offered::At { allocation: key, offset });
    }
    Ok((told, descriptors))
}

/// Maps what is not mapped yet. `None` for an input that some rank stages, or that cannot be mapped
/// here. The core has seen that all ranks captured as many calls.
fn map(
    own: &Own,
    rows: &mut Rows,
    rank: u32,
    catalogues: &[Catalogue],
    descriptors: &[Vec<OwnedFd>],
) -> Vec<Option<Row>> {
    let mut all = Vec::with_capacity(rows.pending.len());
    for (nth, pending) in rows.pending.iter().enumerate() {
        let inputs = catalogues.iter().map(|c| c.inputs.get(nth));
        let are_shared = inputs.clone().all(|input| input.is_some_and(|i| *i != Offered::Staged));
        let mut row = are_shared.then_some([NOWHERE; MAX_WORLD]);
        for (peer, input) in (0..).zip(inputs.flatten()) {
            let Some(addresses) = &mut row else { break };
            let Offered::At { allocation, offset } = *input else { continue };
            if peer == rank {
                addresses[peer as usize] = pending.input;
                continue;
            }
            match base_of(own, &mut rows.mapped, peer, catalogues, descriptors, allocation) {
                Ok(base) => addresses[peer as usize] = base + offset,
                Err(e) => {
                    tracing::warn!(target: "crossover::ipc", "an input of rank {peer} is staged: {e}");
                    row = None;
                }
            }
        }
        all.push(row);
    }
    all
}

/// Writes the rows: addresses where every rank has all of them.
fn write(
    own: &Own,
    rows: &mut Rows,
    could: &[Vec<bool>],
    addresses: &[Option<Row>],
) -> Result<(), DeviceError> {
    let mut bytes = Vec::with_capacity(addresses.len() * ROW as usize);
    for (nth, row) in addresses.iter().enumerate() {
        let everywhere = could.iter().all(|rank| rank.get(nth) == Some(&true));
        let mut staged = [0; MAX_WORLD];
        staged[0] = STAGED;
        let row = row.filter(|_| everywhere).unwrap_or(staged);
        bytes.extend(row.iter().flat_map(|word| word.to_ne_bytes()));
    }
    if !bytes.is_empty() {
        rows.table.upload(rows.used * ROW as usize, &bytes, &own.stream)?;
    }
    rows.used += addresses.len();
    rows.pending.clear();
    Ok(())
}

fn base_of(
    own: &Own,
    mapped: &mut BTreeMap<(u32, u64), Mapping>,
    peer: u32,
    catalogues: &[Catalogue],
    descriptors: &[Vec<OwnedFd>],
    id: u64,
) -> Result<u64, DeviceError> {
    let theirs = &catalogues[peer as usize];
    let missing =
        || DeviceError::Invalid(format!("rank {peer} told of an input but not of its allocation"));
    let allocation = theirs.allocations.get(&id).ok_or_else(missing)?;
    if theirs.process == memory::process() {
        return Ok(allocation.base);
    }
    if let Some(known) = mapped.get(&(peer, id)) {
        return Ok(known.address());
    }
    let bytes = allocation.bytes as usize;
    let mapping = match (&allocation.handle, allocation.descriptor) {
        (Some(handle), _) => {
            let handle: IpcHandle = handle.as_slice().try_into().map_err(|_| missing())?;
            Mapping::by_handle(&own.device, &handle, bytes)?
        }
        (None, Some(nth)) => {
            let fd = descriptors[peer as usize].get(nth as usize).ok_or_else(missing)?;
            Mapping::by_descriptor(&own.device, fd.as_fd(), bytes)?
        }
        (None, None) => return Err(missing()),
    };
    let address = mapping.address();
    mapped.insert((peer, id), mapping);
    Ok(address)
}
