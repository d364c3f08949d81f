//! The functions, by the names that the library exports.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong, c_void};

use libloading::Library;

use crate::layout::{IpcMemHandle, MemAccessDesc, MemAllocationProp, Uuid};

/// A structure of functions that are all there, or it is not.
macro_rules! table {
    ($(#[$about:meta])* $see:vis struct $table:ident { $(
        $(#[$doc:meta])*
        $field:ident = $symbol:literal ($($name:ident: $kind:ty),* $(,)?) -> $result:ty;
    )* }) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug)]
        $see struct $table { $(
            $(#[$doc])*
            pub $field: unsafe extern "C" fn($($name: $kind),*) -> $result,
        )* }

        impl $table {
            /// Finds them all, or names the first that is missing.
            pub(crate) fn find(library: &Library) -> Result<Self, &'static str> {
                Ok(Self { $(
                    // SAFETY: the signature is HIP's for this name. The pointer is used while the
                    // library is loaded, which is for ever: `Hip` never unloads it.
                    $field: unsafe { library.get($symbol.as_bytes()).map(|f| *f) }
                        .map_err(|_| $symbol)?,
                )* })
            }
        }
    };
}

table! {
    /// What every release has, and every use needs. Each returns HIP's status, 0 for success.
    pub struct Calls {
        /// Text of a status, which lives as long as the library.
        get_error_string = "hipGetErrorString" (status: c_int) -> *const c_char;
        /// The calling thread's last error, which is taken.
        get_last_error = "hipGetLastError" () -> c_int;
        /// The runtime's version: major * 10^7 + minor * 10^5 + patch.
        runtime_get_version = "hipRuntimeGetVersion" (version: *mut c_int) -> c_int;

        /// Devices that this process sees.
        get_device_count = "hipGetDeviceCount" (count: *mut c_int) -> c_int;
        /// Its marketing name, ended by a zero.
        device_get_name = "hipDeviceGetName"
            (name: *mut c_char, room: c_int, device: c_int) -> c_int;
        /// Such as `0000:c1:00.0`, ended by a zero.
        device_get_pci_bus_id = "hipDeviceGetPCIBusId"
            (id: *mut c_char, room: c_int, device: c_int) -> c_int;
        /// One number about a device.
        device_get_attribute = "hipDeviceGetAttribute"
            (value: *mut c_int, attribute: c_int, device: c_int) -> c_int;
        /// Bytes of its memory.
        device_total_mem = "hipDeviceTotalMem" (bytes: *mut usize, device: c_int) -> c_int;
        /// The device that is current on the calling thread.
        get_device = "hipGetDevice" (device: *mut c_int) -> c_int;
        /// Makes it current on the calling thread.
        set_device = "hipSetDevice" (device: c_int) -> c_int;
        /// Waits for the current device.
        device_synchronize = "hipDeviceSynchronize" () -> c_int;
        /// Can `device` reach `peer`'s memory?
        device_can_access_peer = "hipDeviceCanAccessPeer"
            (can: *mut c_int, device: c_int, peer: c_int) -> c_int;
        /// Lets the current device reach `peer`'s memory. Flags are 0.
        device_enable_peer_access = "hipDeviceEnablePeerAccess"
            (peer: c_int, flags: c_uint) -> c_int;

        /// Device memory of a kind.
        ext_malloc_with_flags = "hipExtMallocWithFlags"
            (pointer: *mut *mut c_void, bytes: usize, flags: c_uint) -> c_int;
        /// Frees it.
        free = "hipFree" (pointer: *mut c_void) -> c_int;
        /// Locks pages and maps them.
        host_register = "hipHostRegister"
            (pages: *mut c_void, bytes: usize, flags: c_uint) -> c_int;
        /// Undoes it.
        host_unregister = "hipHostUnregister" (pages: *mut c_void) -> c_int;
        /// The device's address of registered pages. Flags are 0.
        host_get_device_pointer = "hipHostGetDevicePointer"
            (device: *mut *mut c_void, pages: *mut c_void, flags: c_uint) -> c_int;
        /// Copies in stream order.
        memcpy_async = "hipMemcpyAsync" (to: *mut c_void, from: *const c_void, bytes: usize,
            kind: c_int, stream: *mut c_void) -> c_int;
        /// Sets 32-bit words in stream order.
        memset_d32_async = "hipMemsetD32Async"
            (to: *mut c_void, word: c_int, words: usize, stream: *mut c_void) -> c_int;
        /// The allocation that holds a pointer.
        mem_get_address_range = "hipMemGetAddressRange"
            (base: *mut *mut c_void, bytes: *mut usize, pointer: *mut c_void) -> c_int;
        /// One fact about a pointer. How wide it writes depends on the fact and on the release: give
        /// it eight zeroed bytes.
        pointer_get_attribute = "hipPointerGetAttribute"
            (value: *mut c_void, attribute: c_int, pointer: *mut c_void) -> c_int;
        /// A handle of an allocation.
        ipc_get_mem_handle = "hipIpcGetMemHandle"
            (handle: *mut IpcMemHandle, base: *mut c_void) -> c_int;
        /// Maps another process's allocation.
        ipc_open_mem_handle = "hipIpcOpenMemHandle"
            (base: *mut *mut c_void, handle: IpcMemHandle, flags: c_uint) -> c_int;
        /// Unmaps it.
        ipc_close_mem_handle = "hipIpcCloseMemHandle" (base: *mut c_void) -> c_int;

        /// A stream.
        stream_create_with_flags = "hipStreamCreateWithFlags"
            (stream: *mut *mut c_void, flags: c_uint) -> c_int;
        /// Destroys it.
        stream_destroy = "hipStreamDestroy" (stream: *mut c_void) -> c_int;
        /// Waits for it.
        stream_synchronize = "hipStreamSynchronize" (stream: *mut c_void) -> c_int;
        /// Success or [`NOT_READY`](crate::layout::NOT_READY).
        stream_query = "hipStreamQuery" (stream: *mut c_void) -> c_int;
        /// Makes it wait for an event. Flags are 0.
        stream_wait_event = "hipStreamWaitEvent"
            (stream: *mut c_void, event: *mut c_void, flags: c_uint) -> c_int;
        /// An event; flags 0: one that takes times.
        event_create_with_flags = "hipEventCreateWithFlags"
            (event: *mut *mut c_void, flags: c_uint) -> c_int;
        /// Destroys it.
        event_destroy = "hipEventDestroy" (event: *mut c_void) -> c_int;
        /// Records it in a stream.
        event_record = "hipEventRecord" (event: *mut c_void, stream: *mut c_void) -> c_int;
        /// Milliseconds between two.
        event_elapsed_time = "hipEventElapsedTime"
            (milliseconds: *mut f32, from: *mut c_void, to: *mut c_void) -> c_int;

        /// Is a stream being captured?
        stream_is_capturing = "hipStreamIsCapturing"
            (stream: *mut c_void, status: *mut c_int) -> c_int;
        /// Sets how the calling thread's calls bear captures elsewhere; gives what was set.
        thread_exchange_stream_capture_mode = "hipThreadExchangeStreamCaptureMode"
            (mode: *mut c_int) -> c_int;
        /// Starts to capture.
        stream_begin_capture = "hipStreamBeginCapture"
            (stream: *mut c_void, mode: c_int) -> c_int;
        /// Ends it.
        stream_end_capture = "hipStreamEndCapture"
            (stream: *mut c_void, graph: *mut *mut c_void) -> c_int;
        /// Makes an executable graph; what a failed one says goes to `log`.
        graph_instantiate = "hipGraphInstantiate" (executable: *mut *mut c_void,
            graph: *mut c_void, node: *mut *mut c_void, log: *mut c_char, room: usize) -> c_int;
        /// Destroys what a capture made.
        graph_destroy = "hipGraphDestroy" (graph: *mut c_void) -> c_int;
        /// Runs an executable graph.
        graph_launch = "hipGraphLaunch" (executable: *mut c_void, stream: *mut c_void) -> c_int;
        /// Destroys it.
        graph_exec_destroy = "hipGraphExecDestroy" (executable: *mut c_void) -> c_int;

        /// Loads a code object, which must stay where it is while the module is loaded.
        module_load_data = "hipModuleLoadData"
            (module: *mut *mut c_void, image: *const c_void) -> c_int;
        /// Unloads it.
        module_unload = "hipModuleUnload" (module: *mut c_void) -> c_int;
        /// A kernel of it.
        module_get_function = "hipModuleGetFunction"
            (function: *mut *mut c_void, module: *mut c_void, name: *const c_char) -> c_int;
        /// One number about a kernel.
        func_get_attribute = "hipFuncGetAttribute"
            (value: *mut c_int, attribute: c_int, function: *mut c_void) -> c_int;
        /// Blocks that a compute unit holds at a time.
        module_occupancy = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"
            (blocks: *mut c_int, function: *mut c_void, threads: c_int, shared: usize) -> c_int;
        /// Launches a kernel: grid and block, in blocks and threads, then the rest.
        module_launch_kernel = "hipModuleLaunchKernel" (function: *mut c_void,
            grid_x: c_uint, grid_y: c_uint, grid_z: c_uint,
            block_x: c_uint, block_y: c_uint, block_z: c_uint, shared: c_uint,
            stream: *mut c_void, parameters: *mut *mut c_void, extra: *mut *mut c_void) -> c_int;
    }
}

table! {
    /// Virtual memory: all of it, or none.
    pub struct Vmm {
        /// Physical memory.
        create = "hipMemCreate" (handle: *mut *mut c_void, bytes: usize,
            what: *const MemAllocationProp, flags: c_ulonglong) -> c_int;
        /// Gives a reference to it back.
        release = "hipMemRelease" (handle: *mut c_void) -> c_int;
        /// Bytes that sizes must be a multiple of.
        get_granularity = "hipMemGetAllocationGranularity"
            (bytes: *mut usize, what: *const MemAllocationProp, option: c_int) -> c_int;
        /// Addresses.
        address_reserve = "hipMemAddressReserve" (pointer: *mut *mut c_void, bytes: usize,
            alignment: usize, wish: *mut c_void, flags: c_ulonglong) -> c_int;
        /// Gives them back.
        address_free = "hipMemAddressFree" (pointer: *mut c_void, bytes: usize) -> c_int;
        /// Puts memory at addresses. Offset and flags are 0.
        map = "hipMemMap" (pointer: *mut c_void, bytes: usize, offset: usize,
            handle: *mut c_void, flags: c_ulonglong) -> c_int;
        /// Takes it away.
        unmap = "hipMemUnmap" (pointer: *mut c_void, bytes: usize) -> c_int;
        /// Who may reach it.
        set_access = "hipMemSetAccess" (pointer: *mut c_void, bytes: usize,
            who: *const MemAccessDesc, count: usize) -> c_int;
        /// A descriptor of it, written as a `c_int`.
        export = "hipMemExportToShareableHandle" (shareable: *mut c_void, handle: *mut c_void,
            kind: c_int, flags: c_ulonglong) -> c_int;
        /// Memory from a descriptor: given as a pointer to it, and since ROCm 7.1 as its value.
        import = "hipMemImportFromShareableHandle"
            (handle: *mut *mut c_void, shareable: *mut c_void, kind: c_int) -> c_int;
    }
}

table! {
    /// Since ROCm 5.2.
    pub struct DeviceUuid {
        /// What tells devices apart in every process.
        get = "hipDeviceGetUuid" (uuid: *mut Uuid, device: c_int) -> c_int;
    }
}

table! {
    /// Device properties as ROCm 5 lays them out.
    pub(crate) struct PropertiesR0000 {
        get = "hipGetDeviceProperties" (properties: *mut c_void, device: c_int) -> c_int;
    }
}

table! {
    /// Device properties as ROCm 6 and 7 lay them out.
    pub(crate) struct PropertiesR0600 {
        get = "hipGetDevicePropertiesR0600" (properties: *mut c_void, device: c_int) -> c_int;
    }
}
