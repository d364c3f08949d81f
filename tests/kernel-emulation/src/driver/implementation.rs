//! The driver's calls.

use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crossover_device::driver::{
    Capture, Description, Driver, FunctionUse, Handle, IpcHandle, Launch, Provenance, Vendor,
};
use crossover_device::error::DeviceError;

use super::capture::Recording;
use super::event::Event;
use super::stream::{Function, Op};
use super::{CURRENT, Emulated, current, failed, find, lock, take};
use crate::runtime::Runtime;

impl Driver for Emulated {
    fn vendor(&self) -> Vendor {
        Vendor::Emulated
    }

    fn version(&self) -> Result<String, DeviceError> {
        Ok(env!("CARGO_PKG_VERSION").to_owned())
    }

    fn devices(&self) -> Result<Vec<Description>, DeviceError> {
        Ok((0..self.options.devices)
            .map(|ordinal| Description {
                ordinal,
                name: "Emulated device".to_owned(),
                arch: "emulated".to_owned(),
                uuid: format!("GPU-00000000-0000-0000-0000-{ordinal:012x}"),
                pci: format!("0000:{ordinal:02x}:00.0"),
                multiprocessors: self.options.multiprocessors,
                l2: self.options.l2,
                memory: 1 << 30,
            })
            .collect())
    }

    fn retain(&self, ordinal: u32) -> Result<Handle, DeviceError> {
        let retained = self.retained.get(ordinal as usize);
        let retained = retained.ok_or_else(|| failed("retain", 101, "there is no such device"))?;
        retained.fetch_add(1, Ordering::Relaxed);
        Ok(Handle(u64::from(ordinal) + 1))
    }

    fn release(&self, ordinal: u32) -> Result<(), DeviceError> {
        let retained = self.retained.get(ordinal as usize);
        let retained = retained.ok_or_else(|| failed("release", 101, "there is no such device"))?;
        retained
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |count| count.checked_sub(1))
            .map(|_| ())
            .map_err(|_| failed("release", 201, "its context is not retained"))
    }

    fn make_current(&self, context: Handle) -> Result<(), DeviceError> {
        if context.0 == 0 || context.0 > self.retained.len() as u64 {
            return Err(failed("make_current", 201, "there is no such context"));
        }
        CURRENT.set(context.0 as u32);
        Ok(())
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        let ordinal = current()?;
        let mut streams: Vec<_> = lock(&self.streams).values().map(Arc::clone).collect();
        streams.extend(lock(&self.default_streams).values().map(Arc::clone));
        let mut ours = streams.iter().filter(|stream| stream.ordinal == ordinal);
        ours.try_for_each(|stream| stream.synchronize())
    }

    fn alloc(&self, bytes: usize) -> Result<u64, DeviceError> {
        self.memory.alloc(current()?, bytes)
    }

    fn free(&self, pointer: u64) -> Result<(), DeviceError> {
        self.memory.free(pointer)
    }

    unsafe fn register_host(&self, pages: *mut u8, bytes: usize) -> Result<u64, DeviceError> {
        self.memory.register_host(pages as u64, bytes)
    }

    fn unregister_host(&self, pages: *mut u8) -> Result<(), DeviceError> {
        self.memory.unregister_host(pages as u64)
    }

    unsafe fn copy(
        &self,
        to: u64,
        from: u64,
        bytes: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        self.enqueue(stream, Op::Copy { to, from, bytes })
    }

    unsafe fn fill(
        &self,
        to: u64,
        word: u32,
        words: usize,
        stream: u64,
    ) -> Result<(), DeviceError> {
        self.enqueue(stream, Op::Fill { to, word, words })
    }

    fn provenance(&self, pointer: u64) -> Result<Provenance, DeviceError> {
        Ok(self.memory.provenance(pointer))
    }

    fn export(&self, base: u64) -> Result<IpcHandle, DeviceError> {
        self.memory.export(base)
    }

    fn import(&self, handle: &IpcHandle) -> Result<u64, DeviceError> {
        self.memory.import(current()?, handle)
    }

    fn unimport(&self, base: u64) -> Result<(), DeviceError> {
        self.memory.unimport(base)
    }

    fn alloc_virtual(&self, ordinal: u32, bytes: usize) -> Result<(u64, usize), DeviceError> {
        self.memory.alloc_virtual(ordinal, bytes)
    }

    fn free_virtual(&self, pointer: u64, _bytes: usize) -> Result<(), DeviceError> {
        self.memory.free_virtual(pointer)
    }

    fn export_fd(&self, pointer: u64) -> Result<OwnedFd, DeviceError> {
        self.memory.export_fd(pointer)
    }

    fn import_fd(
        &self,
        ordinal: u32,
        fd: BorrowedFd<'_>,
        bytes: usize,
    ) -> Result<u64, DeviceError> {
        self.memory.import_fd(ordinal, fd, bytes)
    }

    fn can_access(&self, ordinal: u32, peer: u32) -> Result<bool, DeviceError> {
        Ok(ordinal.max(peer) < self.options.devices)
    }

    fn enable_peer(&self, peer: u32) -> Result<(), DeviceError> {
        if peer >= self.options.devices || peer == current()? {
            return Err(failed("enable_peer", 101, format!("device {peer} is no peer")));
        }
        Ok(())
    }

    fn create_stream(&self) -> Result<Handle, DeviceError> {
        let (ordinal, handle) = (current()?, self.handle());
        let stream = self.new_stream(ordinal, handle);
        lock(&self.streams).insert(handle, stream);
        Ok(Handle(handle))
    }

    fn destroy_stream(&self, stream: Handle) -> Result<(), DeviceError> {
        take(&self.streams, stream.0, "stream")?.stop();
        Ok(())
    }

    fn synchronize_stream(&self, stream: u64) -> Result<(), DeviceError> {
        self.stream(stream)?.synchronize()
    }

    fn is_done(&self, stream: u64) -> Result<bool, DeviceError> {
        self.stream(stream)?.is_done()
    }

    fn create_event(&self) -> Result<Handle, DeviceError> {
        let handle = self.handle();
        lock(&self.events).insert(handle, Arc::new(Event::default()));
        Ok(Handle(handle))
    }

    fn destroy_event(&self, event: Handle) -> Result<(), DeviceError> {
        take(&self.events, event.0, "event").map(|_| ())
    }

    fn record(&self, event: Handle, stream: u64) -> Result<(), DeviceError> {
        let event = find(&self.events, event.0, "event")?;
        let stream = self.stream(stream)?;
        if let Some(recording) = stream.recording() {
            event.capture(&recording);
            return Ok(());
        }
        let number = event.record();
        stream.push(Op::Record { event, number })
    }

    fn wait(&self, stream: u64, event: Handle) -> Result<(), DeviceError> {
        let event = find(&self.events, event.0, "event")?;
        let stream = self.stream(stream)?;
        match (stream.recording(), event.recording()) {
            (None, None) => {
                let number = event.last();
                stream.push(Op::Wait { event, number })
            }
            // A stream that waits for a capture takes part in it.
            (None, Some(recording)) => {
                stream.join(&recording);
                Ok(())
            }
            (Some(ours), Some(theirs)) if Arc::ptr_eq(&ours, &theirs) => Ok(()),
            (Some(ours), _) => Err(ours.invalidate("wait")),
        }
    }

    fn elapsed(&self, from: Handle, to: Handle) -> Result<f32, DeviceError> {
        let from = find(&self.events, from.0, "event")?.time()?;
        let to = find(&self.events, to.0, "event")?.time()?;
        Ok(to.saturating_duration_since(from).as_secs_f32() * 1e3)
    }

    fn capture(&self, stream: u64) -> Result<Capture, DeviceError> {
        Ok(match self.stream(stream)?.recording() {
            None => Capture::None,
            Some(recording) if recording.is_invalid() => Capture::Invalidated,
            Some(_) => Capture::Active,
        })
    }

    fn begin_capture(&self, stream: u64) -> Result<(), DeviceError> {
        if stream == 0 {
            return Err(failed("begin_capture", 900, "the default stream cannot be captured"));
        }
        let stream = self.stream(stream)?;
        if stream.recording().is_some() {
            return Err(failed("begin_capture", 401, "the stream is being captured already"));
        }
        stream.join(&Arc::new(Recording::default()));
        Ok(())
    }

    fn end_capture(&self, stream: u64) -> Result<Handle, DeviceError> {
        let recording = self.stream(stream)?.recording();
        let recording =
            recording.ok_or_else(|| failed("end_capture", 401, "the stream is not captured"))?;
        lock(&self.streams).values().for_each(|stream| stream.leave(&recording));
        let ops = recording.finish()?;
        let handle = self.handle();
        lock(&self.graphs).insert(handle, ops.into());
        Ok(Handle(handle))
    }

    fn replay(&self, graph: Handle, stream: u64) -> Result<(), DeviceError> {
        let ops = find(&self.graphs, graph.0, "graph")?;
        self.enqueue(stream, Op::Replay(ops))
    }

    fn destroy_graph(&self, graph: Handle) -> Result<(), DeviceError> {
        take(&self.graphs, graph.0, "graph").map(|_| ())
    }

    fn load(&self, image: &[u8]) -> Result<Handle, DeviceError> {
        current()?;
        let mut images = lock(&self.images);
        let known = images.iter().find(|(bytes, _)| bytes == image);
        let runtime = match known {
            Some((_, runtime)) => Arc::clone(runtime),
            None => {
                let runtime = Runtime::load(image).map_err(|why| failed("load", 200, why))?;
                images.push((image.to_owned(), Arc::clone(&runtime)));
                runtime
            }
        };
        let handle = self.handle();
        lock(&self.modules).insert(handle, runtime);
        Ok(Handle(handle))
    }

    fn unload(&self, module: Handle) -> Result<(), DeviceError> {
        take(&self.modules, module.0, "module").map(|_| ())
    }

    fn function(&self, module: Handle, name: &str) -> Result<Handle, DeviceError> {
        let runtime = find(&self.modules, module.0, "module")?;
        let kernel = runtime.find(name);
        let kernel =
            kernel.ok_or_else(|| failed("function", 500, format!("there is no kernel {name}")))?;
        let handle = self.handle();
        lock(&self.functions).insert(handle, Function { runtime, kernel });
        Ok(Handle(handle))
    }

    fn function_use(&self, function: Handle) -> Result<FunctionUse, DeviceError> {
        let function = find(&self.functions, function.0, "function")?;
        let threads = function.kernel.max_threads;
        Ok(FunctionUse { registers: 0, local: 0, shared: 0, threads })
    }

    fn occupancy(&self, function: Handle, _threads: u32) -> Result<u32, DeviceError> {
        find(&self.functions, function.0, "function").map(|_| 1)
    }

    unsafe fn launch(&self, launch: &Launch, parameter: &[u8]) -> Result<(), DeviceError> {
        let function = find(&self.functions, launch.function.0, "function")?;
        let kernel = function.kernel;
        if parameter.len() != kernel.parameter_bytes as usize {
            let (given, taken) = (parameter.len(), kernel.parameter_bytes);
            let text = format!("the kernel's parameter has {taken} bytes, not {given}");
            return Err(failed("launch", 1, text));
        }
        if launch.blocks == 0 || launch.threads == 0 || launch.threads > kernel.max_threads {
            let (blocks, threads, most) = (launch.blocks, launch.threads, kernel.max_threads);
            let text = format!("{blocks} blocks of {threads} threads, of which it takes {most}");
            return Err(failed("launch", 1, text));
        }
        let op = Op::Launch {
            function,
            blocks: launch.blocks,
            threads: launch.threads,
            programmatic: launch.programmatic,
            parameter: parameter.into(),
        };
        self.enqueue(launch.stream, op)
    }
}
