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
