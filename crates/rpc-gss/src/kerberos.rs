//! Kerberos 5 as mechanism: keytabs and credential caches in, contexts out.
//!
//! Realms and KDCs are configured as for every program of the host: `/etc/krb5.conf`, or the file in the environment variable
//! `KRB5_CONFIG`. Keytabs and caches are named to the library call by call, so that no variable has to be set for them.

use std::ffi::{CString, c_int};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::error::GssError;
use crate::flavor::KRB5_OID;
use crate::library::{Buffer, KeyValue, KeyValues, Library, Oid, OidSet, Opaque, library};
use crate::mechanism::{Context, Established, Mechanism, Negotiation, Step};

static KRB5: Oid = Oid::new(KRB5_OID);
static KRB5_SET: OidSet = OidSet { count: 1, elements: &raw const KRB5 };
/// `GSS_C_NT_HOSTBASED_SERVICE`: 1.2.840.113554.1.2.1.4.
static SERVICE_NAME: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x01\x04");
/// `GSS_KRB5_NT_PRINCIPAL_NAME`: 1.2.840.113554.1.2.2.1.
static PRINCIPAL_NAME: Oid = Oid::new(b"\x2a\x86\x48\x86\xf7\x12\x01\x02\x02\x01");

// <gssapi/gssapi.h>
const INITIATE: c_int = 1;
const ACCEPT: c_int = 2;
const INDEFINITE: u32 = u32::MAX;
const MUTUAL_FLAG: u32 = 2;
const CONF_FLAG: u32 = 16;
const INTEG_FLAG: u32 = 32;
const CONTINUE_NEEDED: u32 = 1;
const STATUS_OF_GSS: c_int = 1;
const STATUS_OF_MECHANISM: c_int = 2;
/// The bits of a major status that mean failure.
const FAILURES: u32 = 0xffff_0000;

/// Whether the status means success; else what the library says.
fn check(library: &Library, doing: &'static str, (major, minor): (u32, u32)) -> Result<u32, GssError> {
    if major & FAILURES == 0 {
        return Ok(major);
    }
    let codes = [(major, STATUS_OF_GSS), (minor, STATUS_OF_MECHANISM)];
    let said = codes.into_iter().filter(|(code, _)| *code != 0);
    let said: Vec<_> = said.map(|(code, kind)| display_status(library, code, kind)).collect();
    let message = said.join(": ");
    Err(GssError::Refused { doing, message, major, minor })
}

fn display_status(library: &Library, code: u32, kind: c_int) -> String {
    let (mut minor, mut more) = (0, 0);
    let mut text = Output::new(library);
    // SAFETY: places for the minor status, the continuation and the text, which `Output` releases.
    let major = unsafe {
        (library.gss_display_status)(&raw mut minor, code, kind, &raw const KRB5, &raw mut more, text.place())
    };
    if major == 0 { String::from_utf8_lossy(text.bytes()).into_owned() } else { String::new() }
}

/// A buffer that the library fills, and that is given back to it.
struct Output<'l> {
    library: &'l Library,
    buffer: Buffer,
}

impl<'l> Output<'l> {
    fn new(library: &'l Library) -> Self {
        Self { library, buffer: Buffer::EMPTY }
    }

    fn place(&mut self) -> *mut Buffer {
        &raw mut self.buffer
    }

    fn bytes(&self) -> &[u8] {
        if self.buffer.value.is_null() {
            return &[];
        }
        // SAFETY: the library allocated `length` bytes at `value`, which stay until the buffer is released.
        unsafe { std::slice::from_raw_parts(self.buffer.value.cast(), self.buffer.length) }
    }
}

impl Drop for Output<'_> {
    fn drop(&mut self) {
        let mut minor = 0;
        // SAFETY: the buffer is empty or was filled by the library, and is not used afterwards.
        unsafe { (self.library.gss_release_buffer)(&raw mut minor, &raw mut self.buffer) };
    }
}

/// Something that the library made and that is given back to it.
macro_rules! owned {
    ($( $(#[$m:meta])* $name:ident, |$library:ident, $place:ident, $minor:ident| $release:expr; )*) => { $(
        $(#[$m])*
        #[derive(Debug)]
        struct $name {
            library: &'static Library,
            pointer: Opaque,
        }

        // SAFETY: the library's objects belong to no thread; whoever owns one uses it alone, or behind a mutex.
        unsafe impl Send for $name {}

        impl $name {
            fn new(library: &'static Library) -> Self {
                Self { library, pointer: null_mut() }
            }
        }

        impl Drop for $name {
            fn drop(&mut self) {
                let ($library, $place, mut minor) = (self.library, &raw mut self.pointer, 0);
                let $minor = &raw mut minor;
                if !self.pointer.is_null() {
                    // SAFETY: the library made the object, which is not used afterwards.
                    unsafe { $release };
                }
            }
        }
    )* };
}

owned! {
    /// A `gss_name_t`.
    Name, |library, place, minor| (library.gss_release_name)(minor, place);
    /// A `gss_cred_id_t`.
    Credential, |library, place, minor| (library.gss_release_cred)(minor, place);
    /// A `gss_ctx_id_t`.
    Handle, |library, place, minor| (library.gss_delete_sec_context)(minor, place, null_mut());
}

impl Name {
    fn import(library: &'static Library, text: &str, kind: &'static Oid) -> Result<Self, GssError> {
        let mut name = Self::new(library);
        let (buffer, mut minor) = (Buffer::of(text.as_bytes()), 0);
        // SAFETY: the text outlives the call, which copies it; the name is released by its owner.
        let major = unsafe {
            (library.gss_import_name)(&raw mut minor, &raw const buffer, kind, &raw mut name.pointer)
        };
        check(library, "reading a name", (major, minor))?;
        Ok(name)
    }

    fn text(&self) -> Result<String, GssError> {
        let mut text = Output::new(self.library);
        let (mut minor, mut kind) = (0, null());
        // SAFETY: the name is one of the library's; the text is released by `Output`.
        let major = unsafe {
            (self.library.gss_display_name)(&raw mut minor, self.pointer, text.place(), &raw mut kind)
        };
        check(self.library, "writing a name", (major, minor))?;
        Ok(String::from_utf8_lossy(text.bytes()).into_owned())
    }
}

impl Credential {
    /// From a store: pairs of a key and a value (`gss_acquire_cred_from`, MIT's "credential store extensions").
    fn acquire(
        library: &'static Library,
        name: Option<&Name>,
        usage: c_int,
        store: &[(&CString, &CString)],
    ) -> Result<Self, GssError> {
        let elements: Vec<_> =
            store.iter().map(|(key, value)| KeyValue { key: key.as_ptr(), value: value.as_ptr() }).collect();
        let set = KeyValues { count: elements.len() as u32, elements: elements.as_ptr() };
        let (mut credential, mut minor) = (Self::new(library), 0);
        // SAFETY: name, set and its strings outlive the call; the credential is released by its owner; the sets and times
        // that are not wanted have no place.
        let major = unsafe {
            (library.gss_acquire_cred_from)(
                &raw mut minor,
                name.map_or(null_mut(), |name| name.pointer),
                INDEFINITE,
                &raw const KRB5_SET,
                usage,
                &raw const set,
                &raw mut credential.pointer,
                null_mut(),
                null_mut(),
            )
        };
        check(library, "getting Kerberos credentials", (major, minor))?;
        Ok(credential)
    }
}

/// A context whose messages are protected one at a time: the library's contexts are not for several threads at once.
#[derive(Debug)]
struct Protection(Mutex<Handle>);

impl Protection {
    /// Calls a function that turns a message into another one.
    fn turn(
        &self,
        doing: &'static str,
        call: impl FnOnce(&Library, *mut u32, Opaque, *mut Buffer) -> Result<u32, GssError>,
    ) -> Result<Vec<u8>, GssError> {
        let handle = self.0.lock();
        let mut minor = 0;
        let mut output = Output::new(handle.library);
        let major = call(handle.library, &raw mut minor, handle.pointer, output.place())?;
        check(handle.library, doing, (major, minor))?;
        Ok(output.bytes().to_vec())
    }
}

const NOT_ENCRYPTED: GssError = GssError::Unprotected("a message that is not encrypted");

impl Context for Protection {
    fn mic(&self, message: &[u8]) -> Result<Vec<u8>, GssError> {
        let input = Buffer::of(message);
        self.turn("making a checksum", |library, minor, context, output| {
            // SAFETY: context and places are valid, and the message outlives the call.
            Ok(unsafe { (library.gss_get_mic)(minor, context, 0, &raw const input, output) })
        })
    }

    fn verify(&self, message: &[u8], mic: &[u8]) -> Result<(), GssError> {
        let (message, mic) = (Buffer::of(message), Buffer::of(mic));
        let handle = self.0.lock();
        let (mut minor, mut quality) = (0, 0);
        // SAFETY: the context is valid, and message and checksum outlive the call.
        let major = unsafe {
            (handle.library.gss_verify_mic)(
                &raw mut minor,
                handle.pointer,
                &raw const message,
                &raw const mic,
                &raw mut quality,
            )
        };
        check(handle.library, "checking a checksum", (major, minor)).map(drop)
    }

    fn wrap(&self, message: &[u8]) -> Result<Vec<u8>, GssError> {
        let (input, mut encrypted) = (Buffer::of(message), 0);
        let wrapped = self.turn("encrypting", |library, minor, context, output| {
            // SAFETY: context and places are valid, and the message outlives the call.
            Ok(unsafe {
                (library.gss_wrap)(minor, context, 1, 0, &raw const input, &raw mut encrypted, output)
            })
        })?;
        if encrypted == 0 { Err(NOT_ENCRYPTED) } else { Ok(wrapped) }
    }

    fn unwrap(&self, sealed: &[u8]) -> Result<Vec<u8>, GssError> {
        let (input, mut encrypted, mut quality) = (Buffer::of(sealed), 0, 0);
        let plain = self.turn("decrypting", |library, minor, context, output| {
            // SAFETY: context and places are valid, and the message outlives the call.
            Ok(unsafe {
                (library.gss_unwrap)(
                    minor,
                    context,
                    &raw const input,
                    output,
                    &raw mut encrypted,
                    &raw mut quality,
                )
            })
        })?;
        if encrypted == 0 { Err(NOT_ENCRYPTED) } else { Ok(plain) }
    }
}

fn lifetime(seconds: u32) -> Option<Duration> {
    (seconds != INDEFINITE).then(|| Duration::from_secs(seconds.into()))
}

fn c_string(what: &'static str, text: &str) -> Result<CString, GssError> {
    CString::new(text).map_err(|_| GssError::Text { what, text: text.to_owned() })
}

/// A name of a keytab in a store: its type, and its path.
fn file(path: &Path) -> Result<CString, GssError> {
    if let Err(error) = File::open(path) {
        return Err(GssError::Keytab { path: path.display().to_string(), reason: error.to_string() });
    }
    c_string("path", &format!("FILE:{}", path.display()))
}

/// The server's half: the keys of a keytab.
#[derive(Debug, Clone)]
pub struct Acceptor {
    credential: Arc<Mutex<Credential>>,
}

impl Acceptor {
    /// Reads a keytab; `None`: the system's (`/etc/krb5.keytab`).
    ///
    /// Tokens that begin contexts are not looked up in a replay cache: whoever repeats one gets a context whose key he
    /// does not know, and every call needs it.
    ///
    /// # Errors
    /// When there is no library, or no key in the keytab.
    pub fn new(keytab: Option<&Path>) -> Result<Self, GssError> {
        let library = library()?;
        let (rcache, none, keytab_key) = (c"rcache".into(), c"none:".into(), c"keytab".into());
        let mut store = vec![(&rcache, &none)];
        let keytab = keytab.map(file).transpose()?;
        store.extend(keytab.as_ref().map(|keytab| (&keytab_key, keytab)));
        let credential = Credential::acquire(library, None, ACCEPT, &store)?;
        Ok(Self { credential: Arc::new(Mutex::new(credential)) })
    }
}

impl Mechanism for Acceptor {
    fn begin(&self) -> Box<dyn Negotiation> {
        Box::new(Accepting { credential: Arc::clone(&self.credential), context: None })
    }
}

#[derive(Debug)]
struct Accepting {
    credential: Arc<Mutex<Credential>>,
    context: Option<Handle>,
}

impl Negotiation for Accepting {
    fn step(&mut self, token: &[u8]) -> Result<Step, GssError> {
        let credential = self.credential.lock();
        let library = credential.library;
        let mut context = self.context.take().unwrap_or_else(|| Handle::new(library));
        let (input, mut output, mut peer) = (Buffer::of(token), Output::new(library), Name::new(library));
        let (mut minor, mut flags, mut seconds) = (0, 0, 0);
        // SAFETY: context and credential are the library's; the token outlives the call; what it makes is released by its
        // owners; delegated credentials and the mechanism are not wanted and have no place.
        let major = unsafe {
            (library.gss_accept_sec_context)(
                &raw mut minor,
                &raw mut context.pointer,
                credential.pointer,
                &raw const input,
                null(),
                &raw mut peer.pointer,
                null_mut(),
                output.place(),
                &raw mut flags,
                &raw mut seconds,
                null_mut(),
            )
        };
        drop(credential);
        let major = check(library, "accepting a Kerberos ticket", (major, minor))?;
        let token = output.bytes().to_vec();
        if major & CONTINUE_NEEDED != 0 {
            self.context = Some(context);
            return Ok(Step { token, established: None });
        }
        if flags & INTEG_FLAG == 0 {
            return Err(GssError::Unprotected("a context without integrity"));
        }
        let (peer, lifetime) = (peer.text()?, lifetime(seconds));
        let context = Box::new(Protection(Mutex::new(context)));
        Ok(Step { token, established: Some(Established { context, peer, lifetime }) })
    }
}

/// Who a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerName {
    /// `nfs/HOST` in the realm that the configuration has for the host. The library may ask DNS for its full name.
    Host(String),
    /// A principal as it is.
    Principal(String),
}

/// Where a client's credentials are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InitiatorFiles {
    /// Keys from which tickets are got, again when they expire.
    pub keytab: Option<PathBuf>,
    /// Tickets, as `kinit` keeps them: a path, or a name with a type such as `KEYRING:persistent:0`. Without a keytab and
    /// without this, the default of the host.
    pub cache: Option<String>,
    /// Which principal to be; else the first of the keytab, or that of the cache.
    pub principal: Option<String>,
}

/// The client's half: a keytab or a cache of tickets, and the server's name.
#[derive(Debug, Clone)]
pub struct Initiator {
    library: &'static Library,
    server: ServerName,
    principal: Option<String>,
    store: Arc<Vec<(CString, CString)>>,
}

impl Initiator {
    /// Looks whether there is a library, and the keytab can be read; what it has is looked at when a context is made.
    ///
    /// # Errors
    /// When there is no library, the keytab cannot be read, or a name has a zero byte.
    pub fn new(server: ServerName, files: &InitiatorFiles) -> Result<Self, GssError> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let library = library()?;
        let mut store = Vec::new();
        if let Some(keytab) = &files.keytab {
            store.push((c"client_keytab".into(), file(keytab)?));
        }
        match &files.cache {
            Some(cache) => store.push((c"ccache".into(), c_string("credential cache", cache)?)),
            // Tickets from a keytab are this client's own.
            None if files.keytab.is_some() => {
                let (process, number) = (std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
                let name = format!("MEMORY:benchmaster-{process}-{number}");
                store.push((c"ccache".into(), c_string("credential cache", &name)?));
            }
            None => {}
        }
        Ok(Self { library, server, principal: files.principal.clone(), store: Arc::new(store) })
    }

    fn credential(&self) -> Result<Credential, GssError> {
        let name = self.principal.as_deref().map(|name| Name::import(self.library, name, &PRINCIPAL_NAME));
        let store: Vec<_> = self.store.iter().map(|(key, value)| (key, value)).collect();
        Credential::acquire(self.library, name.transpose()?.as_ref(), INITIATE, &store)
    }

    fn server(&self) -> Result<Name, GssError> {
        match &self.server {
            ServerName::Host(host) => Name::import(self.library, &format!("nfs@{host}"), &SERVICE_NAME),
            ServerName::Principal(name) => Name::import(self.library, name, &PRINCIPAL_NAME),
        }
    }
}

impl Mechanism for Initiator {
    fn begin(&self) -> Box<dyn Negotiation> {
        Box::new(Initiating { initiator: self.clone(), under_way: None })
    }
}

#[derive(Debug)]
struct Initiating {
    initiator: Initiator,
    under_way: Option<(Credential, Name, Handle)>,
}

impl Negotiation for Initiating {
    fn step(&mut self, token: &[u8]) -> Result<Step, GssError> {
        let library = self.initiator.library;
        let (credential, server, mut context) = match self.under_way.take() {
            Some(under_way) => under_way,
            None => (self.initiator.credential()?, self.initiator.server()?, Handle::new(library)),
        };
        let (input, mut output) = (Buffer::of(token), Output::new(library));
        let (mut minor, mut flags, mut seconds) = (0, 0, 0);
        // SAFETY: credential, name and context are the library's; the token outlives the call; what it makes is released by
        // its owners; the mechanism is not wanted and has no place.
        let major = unsafe {
            (library.gss_init_sec_context)(
                &raw mut minor,
                credential.pointer,
                &raw mut context.pointer,
                server.pointer,
                &raw const KRB5,
                MUTUAL_FLAG | INTEG_FLAG | CONF_FLAG,
                0,
                null(),
                &raw const input,
                null_mut(),
                output.place(),
                &raw mut flags,
                &raw mut seconds,
            )
        };
        let major = check(library, "getting a ticket for the server", (major, minor))?;
        let token = output.bytes().to_vec();
        if major & CONTINUE_NEEDED != 0 {
            self.under_way = Some((credential, server, context));
            return Ok(Step { token, established: None });
        }
        if flags & MUTUAL_FLAG == 0 || flags & INTEG_FLAG == 0 {
            return Err(GssError::Unprotected("a context in which the server does not show who it is"));
        }
        let (peer, lifetime) = (server.text()?, lifetime(seconds));
        let context = Box::new(Protection(Mutex::new(context)));
        Ok(Step { token, established: Some(Established { context, peer, lifetime }) })
    }
}
