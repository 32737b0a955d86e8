//! Makes a program linked with the C library musl as fast as one linked with glibc; does nothing with other C libraries.
//!
//! musl's allocator has one lock for all threads, its `memcmp` compares byte by byte, and on x86_64 its `memcpy` takes five
//! times as long as glibc's for the short copies that requests and paths consist of. What is defined here is linked
//! instead, also into the C code of the same program. See docs/decisions/0043-packages.md.

pub mod compare;
#[cfg(target_arch = "x86_64")]
pub mod copy;

#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[cfg(target_env = "musl")]
mod symbols {
    use core::ffi::{c_int, c_void};

    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcmp(a: *const c_void, b: *const c_void, length: usize) -> c_int {
        // SAFETY: the caller's promise: both are readable for `length` bytes.
        unsafe { super::compare::compare(a.cast(), b.cast(), length) }
    }

    #[unsafe(no_mangle)]
    unsafe extern "C" fn bcmp(a: *const c_void, b: *const c_void, length: usize) -> c_int {
        // SAFETY: as above.
        unsafe { super::compare::compare(a.cast(), b.cast(), length) }
    }

    #[cfg(target_arch = "x86_64")]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memcpy(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void {
        // SAFETY: the caller's promise: `from` is readable and `to` writable for `length` bytes.
        unsafe { super::copy::copy(to.cast(), from.cast(), length) };
        to
    }

    #[cfg(target_arch = "x86_64")]
    #[unsafe(no_mangle)]
    unsafe extern "C" fn memmove(to: *mut c_void, from: *const c_void, length: usize) -> *mut c_void {
        // SAFETY: as above.
        unsafe { super::copy::copy(to.cast(), from.cast(), length) };
        to
    }
}
