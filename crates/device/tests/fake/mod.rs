//! A driver that does nothing, writes down what it is asked, and fails where it is told to.

use std::collections::HashSet;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Mutex;

use crossover_device::driver::{
    Capture, Description, Driver, FunctionUse, Handle, IpcHandle, Launch, Provenance, Sharing,
    Vendor,
};
use crossover_device::error::DeviceError;

/// See the module. It hands out one number after the other, and counts what is still alive.
#[derive(Default)]
pub(crate) struct Fake {
    state: Mutex<State>,
    // The calls that fail.
    failing: Mutex<HashSet<&'static str>>,
}

#[derive(Default)]
struct State {
    calls: Vec<String>,
    last: u64,
    alive: HashSet<u64>,
}

impl Fake {
    /// What was asked since the last time, but for what makes a context current.
    pub(crate) fn calls(&self) -> Vec<String> {
        std::mem::take(&mut self.state.lock().unwrap().calls)
    }

    /// How many things are alive.
    pub(crate) fn alive(&self) -> usize {
        self.state.lock().unwrap().alive.len()
    }

    /// From now on the call fails.
    pub(crate) fn fail(&self, call: &'static str) {
        self.failing.lock().unwrap().insert(call);
    }

    fn note(&self, call: &'static str, what: &str) -> Result<(), DeviceError> {
        self.state.lock().unwrap().calls.push(format!("{call}{what}"));
        match self.failing.lock().unwrap().contains(call) {
            true => Err(DeviceError::Call { call, code: 1, text: "as told".into() }),
            false => Ok(()),
        }
    }

    fn make(&self, call: &'static str) -> Result<u64, DeviceError> {
        let made = {
            let mut state = self.state.lock().unwrap();
            state.last += 1;
            state.last
        };
        self.note(call, &format!(" -> {made}"))?;
        self.state.lock().unwrap().alive.insert(made);
        Ok(made)
    }

    fn end(&self, call: &'static str, what: u64) -> Result<(), DeviceError> {
        assert!(self.state.lock().unwrap().alive.remove(&what), "{call} {what}: it is not alive");
        self.note(call, &format!(" {what}"))
    }
}

impl Driver for Fake {
    fn vendor(&self) -> Vendor {
        Vendor::Emulated
    }
    fn version(&self) -> Result<String, DeviceError> {
        Ok("0.0".into())
    }
    fn devices(&self) -> Result<Vec<Description>, DeviceError> {
        let device = |ordinal| Description {
            ordinal,
            name: "a fake".into(),
            arch: "host".into(),
            uuid: format!("GPU-{ordinal}"),
            pci: "0000:00:00.0".into(),
            multiprocessors: 4,
            l2: 0,
            memory: 0,
        };
        Ok(vec![device(0), device(1)])
    }
    fn current(&self) -> Result<Option<u32>, DeviceError> {
        Ok(Some(1))
    }
    fn retain(&self, _: u32) -> Result<Handle, DeviceError> {
        self.make("retain").map(Handle)
    }
    fn release(&self, ordinal: u32) -> Result<(), DeviceError> {
        // A context is retained first: it has the lowest number that is alive.
        let context = self.state.lock().unwrap().alive.iter().min().copied();
        self.end("release", context.unwrap_or_else(|| panic!("{ordinal} was not retained")))
    }
    fn make_current(&self, context: Handle) -> Result<(), DeviceError> {
        let alive = self.state.lock().unwrap().alive.contains(&context.0);
        assert!(alive, "a context that was given back is made current");
        Ok(())
    }
    fn synchronize(&self) -> Result<(), DeviceError> {
        self.note("synchronize", "")
    }
    fn alloc(&self, _: usize) -> Result<u64, DeviceError> {
        self.make("alloc")
    }
    fn free(&self, pointer: u64) -> Result<(), DeviceError> {
        self.end("free", pointer)
    }
    unsafe fn register_host(&self, _: *mut u8, _: usize) -> Result<u64, DeviceError> {
        self.note("register_host", "").map(|()| 0x1000)
    }
    fn unregister_host(&self, _: *mut u8) -> Result<(), DeviceError> {
        self.note("unregister_host", "")
    }
    unsafe fn copy(&self, to: u64, from: u64, bytes: usize, _: u64) -> Result<(), DeviceError> {
        let _ = from;
        self.note("copy", &format!(" {bytes} to {to}"))
    }
    unsafe fn fill(&self, to: u64, word: u32, words: usize, _: u64) -> Result<(), DeviceError> {
        self.note("fill", &format!(" {words} words of {word} at {to}"))
    }
    fn provenance(&self, pointer: u64) -> Result<Provenance, DeviceError> {
        let sharing = match pointer {
            1 => Sharing::LegacyIpc,
            2 => Sharing::PosixFd,
            3 => Sharing::Fabric,
            _ => Sharing::None,
        };
        Ok(Provenance { base: pointer, bytes: 64, ordinal: 0, sharing, id: pointer })
    }
    fn export(&self, base: u64) -> Result<IpcHandle, DeviceError> {
        self.note("export", &format!(" {base}")).map(|()| [7; 64])
    }
    fn import(&self, _: &IpcHandle) -> Result<u64, DeviceError> {
        self.make("import")
    }
    fn unimport(&self, base: u64) -> Result<(), DeviceError> {
        self.end("unimport", base)
    }
    fn alloc_virtual(&self, _: u32, bytes: usize) -> Result<(u64, usize), DeviceError> {
        Ok((self.make("alloc_virtual")?, bytes.next_multiple_of(256)))
    }
    fn free_virtual(&self, pointer: u64, bytes: usize) -> Result<(), DeviceError> {
        assert!(bytes.is_multiple_of(256), "{bytes} bytes were never mapped");
        self.end("free_virtual", pointer)
    }
    fn export_fd(&self, pointer: u64) -> Result<OwnedFd, DeviceError> {
        self.note("export_fd", &format!(" {pointer}"))?;
        Ok(tempfile::tempfile().unwrap().into())
    }
    fn import_fd(&self, _: u32, _: BorrowedFd<'_>, _: usize) -> Result<u64, DeviceError> {
        self.make("import_fd")
    }
    fn can_access(&self, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
        Ok(ordinal < peer)
    }
    fn enable_peer(&self, peer: u32) -> Result<(), DeviceError> {
        self.note("enable_peer", &format!(" {peer}"))
    }
    fn create_stream(&self) -> Result<Handle, DeviceError> {
        self.make("create_stream").map(Handle)
    }
    fn destroy_stream(&self, stream: Handle) -> Result<(), DeviceError> {
        self.end("destroy_stream", stream.0)
    }
    fn synchronize_stream(&self, _: u64) -> Result<(), DeviceError> {
        self.note("synchronize_stream", "")
    }
    fn is_done(&self, _: u64) -> Result<bool, DeviceError> {
        Ok(true)
    }
    fn create_event(&self) -> Result<Handle, DeviceError> {
        self.make("create_event").map(Handle)
    }
    fn destroy_event(&self, event: Handle) -> Result<(), DeviceError> {
        self.end("destroy_event", event.0)
    }
    fn record(&self, event: Handle, stream: u64) -> Result<(), DeviceError> {
        self.note("record", &format!(" {} in {stream}", event.0))
    }
    fn wait(&self, stream: u64, event: Handle) -> Result<(), DeviceError> {
        self.note("wait", &format!(" for {} in {stream}", event.0))
    }
    fn elapsed(&self, from: Handle, to: Handle) -> Result<f32, DeviceError> {
        Ok(to.0 as f32 - from.0 as f32)
    }
    fn capture(&self, _: u64) -> Result<Capture, DeviceError> {
        Ok(Capture::None)
    }
    fn begin_capture(&self, _: u64) -> Result<(), DeviceError> {
        self.note("begin_capture", "")
    }
    fn end_capture(&self, _: u64) -> Result<Handle, DeviceError> {
        self.make("end_capture").map(Handle)
    }
    fn replay(&self, graph: Handle, stream: u64) -> Result<(), DeviceError> {
        self.note("replay", &format!(" {} in {stream}", graph.0))
    }
    fn destroy_graph(&self, graph: Handle) -> Result<(), DeviceError> {
        self.end("destroy_graph", graph.0)
    }
    fn load(&self, _: &[u8]) -> Result<Handle, DeviceError> {
        self.make("load").map(Handle)
    }
    fn unload(&self, module: Handle) -> Result<(), DeviceError> {
        self.end("unload", module.0)
    }
    fn function(&self, _: Handle, name: &str) -> Result<Handle, DeviceError> {
        self.note("function", &format!(" {name}")).map(|()| Handle(0))
    }
    fn function_use(&self, _: Handle) -> Result<FunctionUse, DeviceError> {
        Ok(FunctionUse { registers: 32, local: 0, shared: 0, threads: 1024 })
    }
    fn occupancy(&self, _: Handle, threads: u32) -> Result<u32, DeviceError> {
        Ok(2048 / threads)
    }
    unsafe fn launch(&self, launch: &Launch, parameter: &[u8]) -> Result<(), DeviceError> {
        let Launch { blocks, threads, programmatic, .. } = launch;
        self.note("launch", &format!(" {blocks}x{threads} {programmatic} {parameter:?}"))
    }
}
