//! What C hands over: pointers that may be null, texts, and structures that may be older or newer.

use std::ffi::{CStr, c_char};

use crate::failure::Failure;

/// No header will have a structure of more bytes; what states more was not set up.
const MOST: usize = 4096; // size: many times the greatest structure's

/// Null is refused; nothing is read.
pub(crate) fn not_null<T>(pointer: *const T, what: &str) -> Result<(), Failure> {
    if pointer.is_null() { Err(null(what)) } else { Ok(()) }
}

/// What a pointer points to; null is refused. `what` names the argument, as in "`group`".
///
/// # Safety
///
/// It is null or valid while it is used.
pub(crate) unsafe fn given<'a, T>(pointer: *const T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// Where a result goes; null is refused.
///
/// # Safety
///
/// It is null or may be written while it is used.
pub(crate) unsafe fn place<'a, T>(pointer: *mut T, what: &str) -> Result<&'a mut T, Failure> {
    // SAFETY: the caller's promise.
    unsafe { pointer.as_mut() }.ok_or_else(|| null(what))
}

fn null(what: &str) -> Failure {
    Failure::usage(format!("{what} is null: pass a pointer to it"))
}

/// A text; `None` for null.
///
/// # Safety
///
/// It is null or ends with a zero, and is valid while it is used.
pub(crate) unsafe fn text<'a>(
    pointer: *const c_char,
    what: &str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(pointer) };
    let text = text.to_str().map_err(|_| Failure::usage(format!("{what} is not UTF-8 text")));
    text.map(Some)
}

/// A C structure whose first field is its size in bytes, as its user knows it.
///
/// # Safety
///
/// It is `repr(C)`, its first field is a `usize`, and any bytes are a value of it.
pub(crate) unsafe trait Structure: Copy {
    /// What C calls it.
    const NAME: &'static str;
}

/// Reads a structure of this or a newer header. What a newer one has beyond this must be zero: it
/// asks for nothing that this library does not know.
///
/// # Safety
///
/// The pointer is null, or as many bytes as the structure's first field says are valid.
pub(crate) unsafe fn structure<T: Structure>(pointer: *const T, what: &str) -> Result<T, Failure> {
    not_null(pointer, what)?;
    // SAFETY: the first field is always there; the caller vouches for it.
    let size = unsafe { size_of_structure(pointer) };
    let known = size_of::<T>();
    if size < known {
        return Err(Failure::usage(format!(
            "{what} says that it has {size} bytes, and a {} has {known}: set its size to \
             sizeof({})",
            T::NAME,
            T::NAME,
        )));
    }
    if size > MOST {
        return Err(Failure::usage(format!(
            "{what} says that it has {size} bytes, and no {} has more than {MOST}: zero it, then \
             set its size to sizeof({})",
            T::NAME,
            T::NAME,
        )));
    }
    // SAFETY: the caller vouches for `size` bytes, and the type takes any.
    let (value, rest) = unsafe {
        let rest = std::slice::from_raw_parts(pointer.cast::<u8>().add(known), size - known);
        (pointer.read_unaligned(), rest)
    };
    if rest.iter().any(|byte| *byte != 0) {
        return Err(Failure::usage(format!(
            "{what} uses what this library ({}) does not know yet: use the header that came with \
             it",
            env!("CARGO_PKG_VERSION"),
        )));
    }
    Ok(value)
}

/// # Safety
///
/// The first field is valid.
pub(crate) unsafe fn size_of_structure<T: Structure>(pointer: *const T) -> usize {
    // SAFETY: the first field is a `usize`.
    unsafe { pointer.cast::<usize>().read_unaligned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Two {
        size: usize,
        value: u64,
    }

    // SAFETY: its first field is a `usize`, and it is made of integers.
    unsafe impl Structure for Two {
        const NAME: &'static str = "crossover_two";
    }

    fn read(words: &[u64]) -> Result<Two, String> {
        // SAFETY: no test states more bytes than there are.
        unsafe { structure(words.as_ptr().cast::<Two>(), "`two`") }
            .map_err(|failure| format!("{failure:?}"))
    }

    #[test]
    fn a_newer_structure_is_read_where_it_asks_for_nothing_new() {
        assert_eq!(read(&[16, 7]), Ok(Two { size: 16, value: 7 }));
        assert_eq!(read(&[24, 7, 0]), Ok(Two { size: 24, value: 7 }));
        let told = read(&[24, 7, 1]).expect_err("it asks for more");
        assert!(told.contains("`two` uses what this library"), "{told}");
    }

    #[test]
    fn a_structure_without_its_size_is_refused() {
        let told = read(&[0, 7]).expect_err("no size");
        assert!(told.contains("says that it has 0 bytes, and a crossover_two has 16"), "{told}");
        for garbage in [4097, u64::MAX] {
            let told = read(&[garbage, 7]).expect_err("beyond any structure");
            assert!(told.contains("and no crossover_two has more than 4096"), "{told}");
        }
        // SAFETY: null is refused before anything is read.
        let told = unsafe { structure::<Two>(std::ptr::null(), "`two`") }.expect_err("null");
        assert_eq!(told, Failure::usage("`two` is null: pass a pointer to it"));
    }
}
