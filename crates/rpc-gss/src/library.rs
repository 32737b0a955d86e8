//! The system's GSS-API library (RFC 2744, and MIT's extensions), opened at run time: a host without Kerberos runs the same
//! program, and building it needs neither headers nor the library.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use crate::error::{GssError, LIBRARY};

/// `gss_OID_desc`.
#[repr(C)]
pub(crate) struct Oid {
    length: u32,
    elements: *const c_void,
}

// SAFETY: the bytes it points to are constants of this program, which are never written.
unsafe impl Sync for Oid {}

impl Oid {
    pub(crate) const fn new(bytes: &'static [u8]) -> Self {
        Self { length: bytes.len() as u32, elements: bytes.as_ptr().cast() }
    }
}

/// `gss_buffer_desc`.
#[repr(C)]
pub(crate) struct Buffer {
    pub(crate) length: usize,
    pub(crate) value: *mut c_void,
}

impl Buffer {
    pub(crate) const EMPTY: Self = Self { length: 0, value: std::ptr::null_mut() };

    /// The library only reads what is given so.
    pub(crate) fn of(bytes: &[u8]) -> Self {
        Self { length: bytes.len(), value: bytes.as_ptr().cast_mut().cast() }
    }
}

/// `gss_key_value_element_desc`.
#[repr(C)]
pub(crate) struct KeyValue {
    pub(crate) key: *const c_char,
    pub(crate) value: *const c_char,
}

/// `gss_key_value_set_desc`.
#[repr(C)]
pub(crate) struct KeyValues {
    pub(crate) count: u32,
    pub(crate) elements: *const KeyValue,
}

/// `gss_OID_set_desc`.
#[repr(C)]
pub(crate) struct OidSet {
    pub(crate) count: usize,
    pub(crate) elements: *const Oid,
}

// SAFETY: it points to constants of this program, which are never written.
unsafe impl Sync for OidSet {}

/// What the library makes: a name, a credential or a context.
pub(crate) type Opaque = *mut c_void;

macro_rules! functions {
    ($( $name:ident: fn($($argument:ty),*); )*) => {
        /// The functions that are used. All return the major status and take the place of the minor one first.
        #[allow(non_snake_case)]
        pub(crate) struct Library {
            $( pub(crate) $name: unsafe extern "C" fn(*mut u32, $($argument),*) -> u32, )*
        }

        impl Library {
            fn load() -> Result<Self, String> {
                let handle = open(LIBRARY)?;
                Ok(Self {
                    // SAFETY: the symbol is the function of that name, whose C declaration in <gssapi/gssapi.h> or
                    // <gssapi/gssapi_ext.h> of MIT Kerberos is repeated below; the library is never closed.
                    $( $name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn(*mut u32, $($argument),*) -> u32>(
                            symbol(handle, concat!(stringify!($name), "\0"))?,
                        )
                    }, )*
                })
            }
        }
    };
}

functions! {
    gss_import_name: fn(*const Buffer, *const Oid, *mut Opaque);
    gss_display_name: fn(Opaque, *mut Buffer, *mut *const Oid);
    gss_acquire_cred_from: fn(Opaque, u32, *const OidSet, c_int, *const KeyValues, *mut Opaque, *mut *mut OidSet, *mut u32);
    gss_init_sec_context: fn(Opaque, *mut Opaque, Opaque, *const Oid, u32, u32, *const c_void, *const Buffer, *mut *const Oid, *mut Buffer, *mut u32, *mut u32);
    gss_accept_sec_context: fn(*mut Opaque, Opaque, *const Buffer, *const c_void, *mut Opaque, *mut *const Oid, *mut Buffer, *mut u32, *mut u32, *mut Opaque);
    gss_get_mic: fn(Opaque, u32, *const Buffer, *mut Buffer);
    gss_verify_mic: fn(Opaque, *const Buffer, *const Buffer, *mut u32);
    gss_wrap: fn(Opaque, c_int, u32, *const Buffer, *mut c_int, *mut Buffer);
    gss_unwrap: fn(Opaque, *const Buffer, *mut Buffer, *mut c_int, *mut u32);
    gss_display_status: fn(u32, c_int, *const Oid, *mut u32, *mut Buffer);
    gss_release_buffer: fn(*mut Buffer);
    gss_release_name: fn(*mut Opaque);
    gss_release_cred: fn(*mut Opaque);
    gss_delete_sec_context: fn(*mut Opaque, *mut Buffer);
}

impl std::fmt::Debug for Library {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(LIBRARY)
    }
}

/// The library, opened with the first call.
pub(crate) fn library() -> Result<&'static Library, GssError> {
    static OPENED: OnceLock<Result<Library, String>> = OnceLock::new();
    let opened = OPENED.get_or_init(Library::load);
    opened.as_ref().map_err(|reason| GssError::NoLibrary { reason: reason.clone() })
}

fn open(name: &str) -> Result<*mut c_void, String> {
    let name = CString::new(name).map_err(|error| error.to_string())?;
    // SAFETY: the name is a C string; the library's constructors only set up its own tables.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() { Err(last_error()) } else { Ok(handle) }
}

fn symbol(handle: *mut c_void, name: &'static str) -> Result<*mut c_void, String> {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).map_err(|error| error.to_string())?;
    // SAFETY: the handle is of an open library, the name a C string.
    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if found.is_null() { Err(last_error()) } else { Ok(found) }
}

fn last_error() -> String {
    // SAFETY: dlerror returns a C string, of this thread until its next call, or null.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".into();
    }
    // SAFETY: not null, thus a C string, which is copied before anything else is called.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_the_library_the_package_is_named() {
        let reason = open("libgssapi_none.so.0").unwrap_err();
        assert!(reason.contains("libgssapi_none.so.0"), "{reason}");
        let text = GssError::NoLibrary { reason }.to_string();
        assert!(
            text.contains("libgssapi_none.so.0") && text.contains("install the package libgssapi-krb5-2"),
            "{text}"
        );
    }
}
