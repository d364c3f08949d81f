//! Declares a structure once for Rust and for C.

/// A field as C declares it.
pub(crate) struct Field {
    /// Its name.
    pub(crate) name: &'static str,
    /// Its type, with the number of elements of an array in brackets.
    pub(crate) rust_type: &'static str,
    /// Bytes from the start of its structure.
    pub(crate) offset: usize,
}

/// A structure as C declares it.
pub(crate) struct Declared {
    /// Its name.
    pub(crate) name: &'static str,
    /// What it is, in lines.
    pub(crate) about: &'static [&'static str],
    /// Its bytes.
    pub(crate) size: usize,
    /// Its fields, in order.
    pub(crate) fields: &'static [Field],
}

/// `#[repr(C)]` structures of integers, arrays of them and one another. Padding must be written
/// out: C and Rust would agree about it, and a comparison of bytes would not.
macro_rules! declare {
    ($(
        $(#[doc = $about:literal])*
        pub struct $name:ident {
            $($(#[doc = $field_about:literal])* pub $field:ident: $type:ty,)*
        }
    )*) => {
        $(
            $(#[doc = $about])*
            #[repr(C)]
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub struct $name {
                $($(#[doc = $field_about])* pub $field: $type,)*
            }

            const _: () = assert!(
                size_of::<$name>() == 0 $(+ size_of::<$type>())*,
                concat!(stringify!($name), " has padding that is not written out")
            );

            impl $name {
                /// All zero: what memory holds before anybody writes.
                pub const ZERO: Self =
                    // SAFETY: integers and arrays of integers, for which zeros are a value.
                    unsafe { std::mem::zeroed() };

                /// Its bytes, as a kernel receives them.
                pub fn as_bytes(&self) -> &[u8] {
                    // SAFETY: there is no padding (asserted above), so every byte is initialised.
                    unsafe {
                        std::slice::from_raw_parts(std::ptr::from_ref(self).cast(), size_of::<Self>())
                    }
                }
            }
        )*

        pub(crate) const DECLARED: &[$crate::declare::Declared] = &[$(
            $crate::declare::Declared {
                name: stringify!($name),
                about: &[$($about),*],
                size: size_of::<$name>(),
                fields: &[$($crate::declare::Field {
                    name: stringify!($field),
                    rust_type: stringify!($type),
                    offset: std::mem::offset_of!($name, $field),
                }),*],
            }
        ),*];
    };
}

pub(crate) use declare;
