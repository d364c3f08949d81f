//! Kernels: loaded, looked at and launched. The image is PTX, so that the driver compiles it for
//! any device.

use crossover_device::memory::Buffer;
use crossover_device::module::{Kernel, Module, Shape};
use crossover_device::stream::Stream;

use crate::device;

/// Writes a word and its own number into each thread's place: `{ u64 to; u32 word; u32 unused; }`.
const PTX: &str = "\
.version 7.0
.target sm_70
.address_size 64
.visible .entry number(.param .align 8 .b8 p[16])
{
    .reg .b32 %r<6>;
    .reg .b64 %d<4>;
    ld.param.u64 %d0, [p];
    ld.param.u32 %r0, [p+8];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    add.s32 %r5, %r4, %r0;
    cvta.to.global.u64 %d1, %d0;
    mul.wide.u32 %d2, %r4, 4;
    add.s64 %d3, %d1, %d2;
    st.global.u32 [%d3], %r5;
    ret;
}
\0";

fn parameter(to: &Buffer, word: u32) -> [u8; 16] {
    let mut parameter = [0; 16];
    parameter[..8].copy_from_slice(&to.address().to_ne_bytes());
    parameter[8..12].copy_from_slice(&word.to_ne_bytes());
    parameter
}

fn launch(kernel: &Kernel, to: &Buffer, word: u32, stream: &Stream, programmatic: bool) {
    let shape = Shape { blocks: 4, threads: 64, programmatic };
    // SAFETY: the parameter is the kernel's, and the tests keep the buffer until the stream is
    // done.
    unsafe { kernel.launch(shape, &parameter(to, word), stream.raw()) }.unwrap();
}

fn words(buffer: &Buffer, stream: &Stream) -> Vec<u32> {
    let mut read = vec![0; 4 * 64 * 4];
    buffer.download(0, &mut read, stream).unwrap();
    read.chunks_exact(4).map(|word| u32::from_ne_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn every_thread_of_a_launch_runs_with_its_parameter() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let kernel = Module::load(&device, PTX.as_bytes()).unwrap().kernel("number").unwrap();
    let buffers = [0; 3].map(|_| Buffer::new(&device, 4 * 64 * 4).unwrap());
    // A programmatic launch behind another need not wait for it: each has a buffer of its own.
    for (at, buffer) in (0..).zip(&buffers) {
        launch(&kernel, buffer, 1000 * at, &stream, at > 0);
    }
    for (at, buffer) in (0..).zip(&buffers) {
        let expected: Vec<u32> = (1000 * at..1000 * at + 4 * 64).collect();
        assert_eq!(words(buffer, &stream), expected);
    }
}

#[test]
fn launches_are_recorded_with_their_parameters() {
    let Some(device) = device() else { return };
    let stream = Stream::new(&device).unwrap();
    let kernel = Module::load(&device, PTX.as_bytes()).unwrap().kernel("number").unwrap();
    let [first, second] = [0; 2].map(|_| Buffer::new(&device, 4 * 64 * 4).unwrap());
    let graph = stream
        .capture(|| {
            launch(&kernel, &first, 5, &stream, false);
            launch(&kernel, &second, 6, &stream, true);
            Ok::<(), crossover_device::error::DeviceError>(())
        })
        .unwrap();
    for _ in 0..3 {
        first.fill(0, &stream).unwrap();
        second.fill(0, &stream).unwrap();
        graph.replay(stream.raw()).unwrap();
        assert_eq!(words(&first, &stream), (5..5 + 4 * 64).collect::<Vec<_>>());
        assert_eq!(words(&second, &stream), (6..6 + 4 * 64).collect::<Vec<_>>());
    }
}

#[test]
fn what_the_compiler_made_of_a_kernel_is_told() {
    let Some(device) = device() else { return };
    let kernel = Module::load(&device, PTX.as_bytes()).unwrap().kernel("number").unwrap();
    let used = kernel.usage().unwrap();
    assert!((1..=255).contains(&used.registers) && used.local == 0 && used.shared == 0, "{used:?}");
    assert_eq!(used.threads, 1024);
    let resident = kernel.resident_blocks(1024).unwrap();
    assert!(resident >= device.description().multiprocessors, "{resident}");
}

#[test]
fn what_is_no_image_or_no_kernel_is_refused() {
    let Some(device) = device() else { return };
    let module = Module::load(&device, PTX.as_bytes()).unwrap();
    let said = module.kernel("letter").unwrap_err().to_string();
    assert!(said.contains("cuModuleGetFunction"), "{said}");
    assert!(module.kernel("num\0ber").is_err());
    let broken = PTX.replace("ld.param.u64", "ld.param.u65");
    assert!(Module::load(&device, broken.as_bytes()).is_err());
    assert!(Module::load(&device, &PTX.as_bytes()[..PTX.len() - 1]).is_err(), "no end");
    assert!(Module::load(&device, &[]).is_err());
}
