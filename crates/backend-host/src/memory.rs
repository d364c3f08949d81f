//! Moving bytes.

/// Copies `len` bytes.
///
/// # Safety
///
/// As for [`std::ptr::copy_nonoverlapping`], of bytes: any alignment.
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { to.copy_from_nonoverlapping(from, len) };
}

/// Copies `len` bytes past the caches, for data that nobody nearby reads soon. Whatever is
/// written is in order before any later store.
///
/// # Safety
///
/// As for [`copy`].
pub(crate) unsafe fn stream(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the caller's.
    unsafe { copy(from, to, len) };
}

/// Asks for `len` bytes' cache lines so as to write them soon. Changes nothing, waits for nothing.
#[inline]
pub(crate) fn claim(at: *const u8, len: usize) {
    #[cfg(target_arch = "x86_64")]
    for offset in (0..len).step_by(64) {
        use std::arch::x86_64::{_MM_HINT_ET0, _mm_prefetch};
        // SAFETY: a prefetch may be given any address.
        unsafe { _mm_prefetch::<_MM_HINT_ET0>(at.wrapping_add(offset).cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (at, len);
}
