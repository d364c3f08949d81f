//! A library that is loaded at run time, through an adapter of `adapters/`: its functions are those of
//! `adapters/peer.h`.

use std::ffi::{c_int, c_void};
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use libloading::os::unix::{Library as Handle, RTLD_GLOBAL, RTLD_NOW};

use super::Contender;
use crate::call::Dtype;

type Start = unsafe extern "C" fn() -> c_int;
type TwoBuffers = unsafe extern "C" fn(c_int, usize, *const c_void, *mut c_void) -> c_int;
type OneBuffer = unsafe extern "C" fn(c_int, usize, *mut c_void) -> c_int;

pub(crate) struct Library {
    rank: usize,
    world: usize,
    all_reduce: TwoBuffers,
    all_gather: TwoBuffers,
    reduce_scatter: TwoBuffers,
    broadcast: OneBuffer,
    finish: Start,
    /// Last: the functions are its.
    _handle: Handle,
}

impl Library {
    /// Loads the adapter and, with it, its library, and starts it. Collective.
    pub(crate) fn load(adapter: &Path) -> Result<Library> {
        let name = adapter.display();
        // SAFETY: the adapter has no initialisers; its library's are what a program linked to it
        // would run. Global, since such libraries load components that look for their symbols.
        let handle = unsafe { Handle::open(Some(adapter), RTLD_NOW | RTLD_GLOBAL) }
            .with_context(|| format!("{name} cannot be loaded"))?;
        // SAFETY: peer.h has each function with this signature.
        let library = unsafe {
            let start: Start = *handle.get(b"peer_start\0")?;
            let status = start();
            ensure!(status == 0, "{name}: peer_start failed with {status}");
            let rank: Start = *handle.get(b"peer_rank\0")?;
            let world: Start = *handle.get(b"peer_world\0")?;
            Library {
                rank: rank() as usize,
                world: world() as usize,
                all_reduce: *handle.get(b"peer_all_reduce\0")?,
                all_gather: *handle.get(b"peer_all_gather\0")?,
                reduce_scatter: *handle.get(b"peer_reduce_scatter\0")?,
                broadcast: *handle.get(b"peer_broadcast\0")?,
                finish: *handle.get(b"peer_finish\0")?,
                _handle: handle,
            }
        };
        Ok(library)
    }
}

#[inline]
fn checked(status: c_int) -> Result<()> {
    ensure!(status == 0, "the library returned {status}");
    Ok(())
}

/// As peer.h numbers them.
fn code(dtype: Dtype) -> c_int {
    match dtype {
        Dtype::F32 => 0,
        Dtype::Bf16 => 1,
    }
}

impl Contender for Library {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world(&self) -> usize {
        self.world
    }

    unsafe fn all_reduce(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.all_reduce)(code(dtype), count, input.cast(), output.cast()) })
    }

    unsafe fn all_gather(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.all_gather)(code(dtype), count, input.cast(), output.cast()) })
    }

    unsafe fn reduce_scatter(
        &mut self,
        dtype: Dtype,
        count: usize,
        input: *const u8,
        output: *mut u8,
    ) -> Result<()> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.reduce_scatter)(code(dtype), count, input.cast(), output.cast()) })
    }

    unsafe fn broadcast(&mut self, dtype: Dtype, count: usize, buffer: *mut u8) -> Result<()> {
        // SAFETY: the caller's promise.
        checked(unsafe { (self.broadcast)(code(dtype), count, buffer.cast()) })
    }

    fn finish(self: Box<Self>) -> Result<()> {
        // SAFETY: it was started, and nothing is called after it.
        checked(unsafe { (self.finish)() })
    }
}
