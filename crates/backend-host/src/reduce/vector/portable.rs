//! Vectors that the compiler makes of whatever the architecture always has.

use super::Vector;

/// As many bytes as a few registers hold.
#[derive(Clone, Copy)]
#[repr(align(16))]
pub(crate) struct Portable([u8; 32]);

// SAFETY: bytes; nothing is asked of the machine.
unsafe impl Vector for Portable {
    #[inline(always)]
    unsafe fn load(from: *const u8) -> Self {
        // SAFETY: the caller's promise.
        Portable(unsafe { from.cast::<[u8; 32]>().read() })
    }

    #[inline(always)]
    unsafe fn load_first(from: *const u8, len: usize) -> Self {
        let mut all = [0; 32];
        // SAFETY: the caller's promise.
        unsafe { few(from, all.as_mut_ptr(), len) };
        Portable(all)
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { to.cast::<[u8; 32]>().write(self.0) };
    }

    #[inline(always)]
    unsafe fn store_first(self, to: *mut u8, len: usize) {
        // SAFETY: the caller's promise.
        unsafe { few(self.0.as_ptr(), to, len) };
    }

    #[inline(always)]
    unsafe fn stream(self, to: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.store(to) };
    }

    #[inline(always)]
    fn fence() {}
}

/// Copies fewer than 32 bytes, by pieces that overlap.
///
/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`].
#[inline(always)]
pub(super) unsafe fn few(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: both pieces lie inside, since the whole is at least as long as one.
    unsafe {
        if len >= 16 {
            ends::<[u8; 16]>(from, to, len);
        } else if len >= 8 {
            ends::<[u8; 8]>(from, to, len);
        } else if len >= 4 {
            ends::<[u8; 4]>(from, to, len);
        } else if len >= 2 {
            ends::<[u8; 2]>(from, to, len);
        } else if len == 1 {
            to.write(from.read());
        }
    }
}

/// Copies the first and the last piece.
#[inline(always)]
unsafe fn ends<P>(from: *const u8, to: *mut u8, len: usize) {
    let last = len - size_of::<P>();
    // SAFETY: the caller's promise.
    unsafe {
        let (head, tail) =
            (from.cast::<P>().read_unaligned(), from.add(last).cast::<P>().read_unaligned());
        to.cast::<P>().write_unaligned(head);
        to.add(last).cast::<P>().write_unaligned(tail);
    }
}
