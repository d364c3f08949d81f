//! The HIP runtime, loaded at run time.
