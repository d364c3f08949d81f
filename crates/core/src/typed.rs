//! Safe calls on slices of host memory.

use crate::call::{CallBuffers, CallSig, Mode, Op, ReduceOp, Split};
use crate::communicator::{CallError, Communicator};
use crate::element::Element;
use crate::facts::HOST_ARCH;

/// Each call returns when the output is complete; the input may then be overwritten.
///
/// # Errors
///
/// As for [`Communicator::run`]; slices of wrong lengths and groups whose memory is on devices are
/// [`CallError::Invalid`].
impl Communicator {
    /// Every rank receives the reduction of all `input`s.
    #[track_caller]
    pub fn all_reduce<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        reduce_op: ReduceOp,
    ) -> Result<(), CallError> {
        let call = CallSig { reduce_op, ..self.signature::<T>(Op::AllReduce, input.len()) };
        let fits = same_len(Op::AllReduce, "output", output.len(), input.len());
        self.run_slices(&call, fits, input.as_ptr(), output.as_mut_ptr())
    }

    /// [`Communicator::all_reduce`], in place.
    #[track_caller]
    pub fn all_reduce_in_place<T: Element>(
        &self,
        data: &mut [T],
        reduce_op: ReduceOp,
    ) -> Result<(), CallError> {
        let call = CallSig { reduce_op, ..self.signature::<T>(Op::AllReduce, data.len()) };
        let data = data.as_mut_ptr();
        self.run_slices(&call, Ok(()), data, data)
    }

    /// `output` receives every rank's `input`, in rank order.
    #[track_caller]
    pub fn all_gather<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), CallError> {
        let call = self.signature::<T>(Op::AllGather, input.len());
        let whole = input.len().saturating_mul(self.world() as usize);
        let fits = same_len(Op::AllGather, "output", output.len(), whole);
        self.run_slices(&call, fits, input.as_ptr(), output.as_mut_ptr())
    }

    /// `output` receives every rank's `input`, in rank order; rank r gives `counts[r]` elements.
    #[track_caller]
    pub fn all_gather_v<T: Element>(
        &self,
        input: &[T],
        counts: &[usize],
        output: &mut [T],
    ) -> Result<(), CallError> {
        let count = counts.iter().copied().max().unwrap_or(0);
        let call =
            CallSig { split: Split::PerRank(counts), ..self.signature::<T>(Op::AllGather, count) };
        let fits = crate::validate::validate(&call, self.world()).and_then(|()| {
            same_len(Op::AllGather, "input", input.len(), counts[self.rank() as usize])?;
            same_len(Op::AllGather, "output", output.len(), counts.iter().sum())
        });
        self.run_slices(&call, fits, input.as_ptr(), output.as_mut_ptr())
    }

    /// Rank r's `output` receives part r of the reduction of all `input`s.
    #[track_caller]
    pub fn reduce_scatter<T: Element>(
        &self,
        input: &[T],
        output: &mut [T],
        reduce_op: ReduceOp,
    ) -> Result<(), CallError> {
        let call = CallSig { reduce_op, ..self.signature::<T>(Op::ReduceScatter, input.len()) };
        let whole = output.len().saturating_mul(self.world() as usize);
        let fits = same_len(Op::ReduceScatter, "input", input.len(), whole);
        self.run_slices(&call, fits, input.as_ptr(), output.as_mut_ptr())
    }

    /// Rank r's `output` receives part r of the reduction; part r has `counts[r]` elements.
    #[track_caller]
    pub fn reduce_scatter_v<T: Element>(
        &self,
        input: &[T],
        counts: &[usize],
        output: &mut [T],
        reduce_op: ReduceOp,
    ) -> Result<(), CallError> {
        let call = CallSig {
            reduce_op,
            split: Split::PerRank(counts),
            ..self.signature::<T>(Op::ReduceScatter, input.len())
        };
        let fits = crate::validate::validate(&call, self.world()).and_then(|()| {
            same_len(Op::ReduceScatter, "output", output.len(), counts[self.rank() as usize])
        });
        self.run_slices(&call, fits, input.as_ptr(), output.as_mut_ptr())
    }

    /// Every rank's `data` becomes the root's.
    #[track_caller]
    pub fn broadcast<T: Element>(&self, data: &mut [T], root: u32) -> Result<(), CallError> {
        let call = CallSig { root, ..self.signature::<T>(Op::Broadcast, data.len()) };
        let data = data.as_mut_ptr();
        self.run_slices(&call, Ok(()), data, data)
    }

    /// Part p of `input` goes to rank p; part p of `output` comes from rank p.
    #[track_caller]
    pub fn all_to_all<T: Element>(&self, input: &[T], output: &mut [T]) -> Result<(), CallError> {
        let call = self.signature::<T>(Op::AllToAll, input.len());
        let fits = same_len(Op::AllToAll, "output", output.len(), input.len());
        self.run_slices(&call, fits, input.as_ptr(), output.as_mut_ptr())
    }

    /// An eager, even call with the group's contract: what the typed calls start from, and what
    /// to give to [`Communicator::explain`] to ask about one.
    pub fn signature<T: Element>(&self, op: Op, count: usize) -> CallSig<'static> {
        CallSig {
            op,
            dtype: T::DTYPE,
            reduce_op: ReduceOp::Sum,
            count,
            mode: Mode::Eager,
            root: 0,
            split: Split::Even,
            contract: self.plan().contract(),
        }
    }

    /// Runs the call if its slices fit it.
    #[track_caller]
    fn run_slices<T: Element>(
        &self,
        call: &CallSig<'_>,
        fits: Result<(), CallError>,
        input: *const T,
        output: *mut T,
    ) -> Result<(), CallError> {
        fits.and_then(|()| self.on_host(call.op)).map_err(|why| self.refuse(why))?;
        let buffers = CallBuffers { input: input.cast(), output: output.cast(), stream: 0 };
        // SAFETY: both come from live slices whose lengths the callers checked against the call;
        // a host session is done with them when it returns.
        unsafe { self.run(call, &buffers) }
    }

    #[inline]
    fn on_host(&self, op: Op) -> Result<(), CallError> {
        if self.facts().profile().arch == HOST_ARCH { Ok(()) } else { Err(self.not_on_host(op)) }
    }

    #[cold]
    fn not_on_host(&self, op: Op) -> CallError {
        let arch = &self.facts().profile().arch;
        let what = format!("slices are host memory, and this group's devices are {arch}");
        CallError::Invalid { op, what }
    }
}

#[inline]
fn same_len(op: Op, what: &str, got: usize, want: usize) -> Result<(), CallError> {
    if got == want { Ok(()) } else { Err(other_len(op, what, got, want)) }
}

#[cold]
fn other_len(op: Op, what: &str, got: usize, want: usize) -> CallError {
    CallError::Invalid { op, what: format!("the {what} has {got} elements, not {want}") }
}
