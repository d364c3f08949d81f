//! What reducing costs, by instruction set, dtype, size and number of sources, beside a plain loop
//! and a copy: `cargo bench -p crossover-backend-host`. To reach, with the best instructions: 5 ns
//! for 2 f32, 20 ns for 256, 0.9 of the plain loop's rate from 16 KiB on.

#![allow(missing_docs)] // criterion's macros

use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use crossover_backend_host::reduce::{Isa, Sources, Target, reduce, reduce_by};
use crossover_core::call::{Dtype, ReduceOp};

const SIZES: [usize; 7] = [8, 64, 1 << 10, 1 << 14, 1 << 18, 1 << 20, 1 << 24]; // size: calls
const DTYPES: [Dtype; 3] = [Dtype::F32, Dtype::Bf16, Dtype::F16];

/// Buffers of the largest size at the same place of a page each, as slots are.
struct Buffers {
    memory: Vec<Vec<u8>>,
}

impl Buffers {
    fn new() -> Self {
        let largest = SIZES[SIZES.len() - 1];
        // Bytes of which any dtype makes a number near one.
        Buffers { memory: (0..5).map(|_| vec![0x3e; largest + 4096]).collect() } // size: a page
    }

    fn at(&mut self, buffer: usize) -> *mut u8 {
        let memory = &mut self.memory[buffer];
        let ahead = memory.as_ptr().align_offset(4096);
        memory[ahead..].as_mut_ptr()
    }
}

fn references(criterion: &mut Criterion) {
    let mut buffers = Buffers::new();
    let (a, b, to) = (buffers.at(0), buffers.at(1), buffers.at(4));
    let mut group = criterion.benchmark_group("reference");
    for bytes in SIZES {
        group.throughput(Throughput::Bytes(bytes as u64));
        group.bench_function(BenchmarkId::new("copy", bytes), |bencher| {
            // SAFETY: inside the buffers, which are apart.
            bencher.iter(|| unsafe { black_box(to).copy_from_nonoverlapping(a, bytes) });
        });
        group.bench_function(BenchmarkId::new("plain loop", bytes), |bencher| {
            // SAFETY: inside the buffers; the loop is for this machine.
            bencher.iter(|| unsafe { plain(black_box(a), b, to, bytes) });
        });
    }
}

/// c = a + b, by the widest vectors, and nothing else.
///
/// # Safety
///
/// `bytes` bytes of a and b can be read, and of c be written, none of them overlapping.
unsafe fn plain(a: *const u8, b: *const u8, c: *mut u8, bytes: usize) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx512f") {
        // SAFETY: the caller's promise, and just seen.
        return unsafe { plain_avx512(a, b, c, bytes) };
    }
    // SAFETY: the caller's promise.
    unsafe { add(a, b, c, 0, bytes) };
}

/// # Safety
///
/// As for [`plain`], with AVX-512.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
unsafe fn plain_avx512(a: *const u8, b: *const u8, c: *mut u8, bytes: usize) {
    use std::arch::x86_64::{_mm512_add_ps, _mm512_loadu_ps, _mm512_storeu_ps};
    let whole = bytes - bytes % 256;
    for tile in (0..whole).step_by(256) {
        for at in (tile..tile + 256).step_by(64) {
            // SAFETY: the caller's promise.
            unsafe {
                let (a, b) = (_mm512_loadu_ps(a.add(at).cast()), _mm512_loadu_ps(b.add(at).cast()));
                _mm512_storeu_ps(c.add(at).cast(), _mm512_add_ps(a, b));
            }
        }
    }
    // SAFETY: the caller's promise.
    unsafe { add(a, b, c, whole, bytes) };
}

/// # Safety
///
/// As for [`plain`].
unsafe fn add(a: *const u8, b: *const u8, c: *mut u8, from: usize, bytes: usize) {
    for at in (from..bytes).step_by(4) {
        // SAFETY: the caller's promise.
        unsafe {
            let (a, b) = (a.add(at).cast::<f32>().read(), b.add(at).cast::<f32>().read());
            c.add(at).cast::<f32>().write(a + b);
        }
    }
}

fn reductions(criterion: &mut Criterion) {
    let mut buffers = Buffers::new();
    let starts = [0, 1, 2, 3].map(|buffer| buffers.at(buffer).cast_const());
    let to = buffers.at(4);
    for (name, isa) in names() {
        for dtype in DTYPES {
            for world in [2, 4] {
                for stream in [false, true] {
                    let ways = if stream { "streamed" } else { "cached" };
                    let name = format!("{name}/{dtype}/{world} sources/{ways}");
                    let mut group = criterion.benchmark_group(name);
                    for bytes in SIZES.into_iter().filter(|bytes| !stream || *bytes > 1024) {
                        let sources = Sources::new(world, |rank| starts[rank as usize]);
                        let target = Target { stream, ..Target::one(to) };
                        group.throughput(Throughput::Bytes(bytes as u64));
                        group.bench_function(BenchmarkId::from_parameter(bytes), |bencher| {
                            let dtype = black_box(dtype);
                            // SAFETY: inside the buffers; the machine has the instructions.
                            bencher.iter(|| unsafe {
                                match isa {
                                    None => reduce(dtype, ReduceOp::Sum, &sources, &target, bytes),
                                    Some(isa) => {
                                        let op = ReduceOp::Sum;
                                        reduce_by(isa, dtype, op, &sources, &target, bytes);
                                    }
                                }
                            });
                        });
                    }
                }
            }
        }
    }
}

/// As calls do it, and by each instruction set.
fn names() -> Vec<(String, Option<Isa>)> {
    let best = ("best".to_owned(), None);
    let each = Isa::available().map(|isa| (format!("{isa:?}").to_lowercase(), Some(isa)));
    std::iter::once(best).chain(each).collect()
}

fn short() -> Criterion {
    let criterion = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(100));
    criterion.measurement_time(Duration::from_millis(300)).configure_from_args()
}

criterion_group!(name = benches; config = short(); targets = references, reductions);
criterion_main!(benches);
