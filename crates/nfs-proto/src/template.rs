//! Calls encoded once and patched in place.
//!
//! A load generator sends the same call again and again with another xid, slot, sequence number or offset. A
//! [`Template`] holds the encoded call; a [`Field`] is the place of one value in it. Places are found by experiment,
//! when the template is made: the message is encoded with two different values, and where the bytes differ is the
//! field. So any message that can be encoded can be patched, in any field of fixed size, and nothing has to be kept
//! in step with the codec.
//!
//! ```
//! use benchmaster_nfs_proto::{template::Shape, v3, xdr::Encoder};
//!
//! let args = v3::ReadArgs { file: b"handle"[..].into(), offset: 0, count: 4096 };
//! let shape = Shape::new(args, |args, e: &mut Encoder| e.put(args));
//! let offset = shape.field(|args, value: u64| args.offset = value)?;
//! let mut template = shape.template();
//!
//! template.set(offset, 1 << 40);
//! let mut expected = Encoder::new();
//! expected.put(&v3::ReadArgs { offset: 1 << 40, ..args });
//! assert_eq!(template.bytes(), expected.buffer());
//! # Ok::<(), benchmaster_nfs_proto::template::TemplateError>(())
//! ```

use std::marker::PhantomData;

use crate::xdr::{Cut, Encode, Encoder};

/// Why a field cannot be patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    /// The encoded message does not depend on it.
    #[error("the field is not part of the message")]
    Absent,
    /// The message changes in length, in other places, or otherwise than by the value's own encoding.
    #[error("the field does not have a fixed position in the message")]
    Scattered,
}

/// A value of fixed size that can be patched.
pub trait Patch: Copy {
    /// Its encoding.
    type Bytes: AsRef<[u8]>;
    /// Two values whose encodings differ at least in their last byte.
    const PROBES: [Self; 2];

    /// Its XDR form.
    fn to_bytes(self) -> Self::Bytes;
}

macro_rules! patch_integer {
    ($($t:ty),*) => { $(
        impl Patch for $t {
            type Bytes = [u8; size_of::<$t>()];
            const PROBES: [Self; 2] = [0, !0];

            #[inline]
            fn to_bytes(self) -> Self::Bytes {
                self.to_be_bytes()
            }
        }
    )* };
}
patch_integer!(u32, i32, u64, i64);

impl Patch for bool {
    type Bytes = [u8; 4];
    const PROBES: [Self; 2] = [false, true];

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        u32::from(self).to_be_bytes()
    }
}

/// Fixed opaque data (verifiers, session identifiers, the `other` of a stateid).
impl<const N: usize> Patch for [u8; N] {
    type Bytes = Self;
    const PROBES: [Self; 2] = [[0; N], [!0; N]];

    #[inline]
    fn to_bytes(self) -> Self {
        self
    }
}

/// The place of a value of type `T` in a [`Template`].
#[derive(Debug)]
pub struct Field<T> {
    at: usize,
    of: PhantomData<T>,
}

impl<T> Clone for Field<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Field<T> {}

/// A message to be made a template: its values, and how they are encoded.
///
/// The values may be any type, a tuple of header and arguments for instance; `encode` appends the whole message, record
/// mark included where there is to be one.
#[derive(Debug, Clone)]
pub struct Shape<V, E> {
    values: V,
    encode: E,
}

impl<V: Clone, E: Fn(&V, &mut Encoder)> Shape<V, E> {
    /// A message.
    pub fn new(values: V, encode: E) -> Self {
        Self { values, encode }
    }

    /// The encoded message.
    pub fn template(&self) -> Template {
        Template { message: self.encoded(&self.values) }
    }

    /// Finds the value that `set` changes.
    pub fn field<T: Patch>(&self, set: impl Fn(&mut V, T)) -> Result<Field<T>, TemplateError> {
        let probes = T::PROBES.map(|probe| {
            let mut values = self.values.clone();
            set(&mut values, probe);
            self.encoded(&values)
        });
        let [a, b] = probes.each_ref().map(Encoder::buffer);
        if a.len() != b.len() || probes[0].cuts() != probes[1].cuts() {
            return Err(TemplateError::Scattered);
        }
        let last = a.iter().zip(b).rposition(|(a, b)| a != b).ok_or(TemplateError::Absent)?;
        let encoded = T::PROBES.map(T::to_bytes);
        let [value_a, value_b] = encoded.each_ref().map(AsRef::as_ref);
        let end = last + 1;
        let at = end.checked_sub(value_a.len()).ok_or(TemplateError::Scattered)?;
        if &a[at..end] != value_a || &b[at..end] != value_b || a[..at] != b[..at] {
            return Err(TemplateError::Scattered);
        }
        Ok(Field { at, of: PhantomData })
    }

    fn encoded(&self, values: &V) -> Encoder {
        let mut e = Encoder::new();
        (self.encode)(values, &mut e);
        e
    }
}

/// An encoded message whose fields can be overwritten.
#[derive(Debug, Clone)]
pub struct Template {
    message: Encoder,
}

impl Template {
    /// Overwrites a field. A field of another template is ignored if it lies outside this one.
    #[inline]
    pub fn set<T: Patch>(&mut self, field: Field<T>, value: T) {
        overwrite(self.message.buffer_mut(), field.at, value);
    }

    /// The message, without what belongs into the cuts.
    pub fn bytes(&self) -> &[u8] {
        self.message.buffer()
    }

    /// The cuts (of a WRITE with detached data).
    pub fn cuts(&self) -> &[Cut] {
        self.message.cuts()
    }

    /// Appends a copy to `e`, where it can be patched while the template stays as it is.
    #[inline]
    pub fn append<'e>(&self, e: &'e mut Encoder) -> Appended<'e> {
        let start = e.mark().buffer;
        e.put(self);
        Appended { e, start }
    }
}

impl Encode for Template {
    #[inline]
    fn encode(&self, e: &mut Encoder) {
        let (bytes, mut at) = (self.bytes(), 0);
        for cut in self.cuts() {
            e.raw(&bytes[at..cut.at]);
            e.cut(cut.len);
            at = cut.at;
        }
        e.raw(&bytes[at..]);
    }
}

/// A copy of a [`Template`] in an [`Encoder`].
#[derive(Debug)]
pub struct Appended<'e> {
    e: &'e mut Encoder,
    start: usize,
}

impl Appended<'_> {
    /// Overwrites a field of the copy.
    #[inline]
    pub fn set<T: Patch>(&mut self, field: Field<T>, value: T) -> &mut Self {
        overwrite(self.e.buffer_mut(), self.start + field.at, value);
        self
    }
}

#[inline]
fn overwrite<T: Patch>(buffer: &mut [u8], at: usize, value: T) {
    let value = value.to_bytes();
    let value = value.as_ref();
    if let Some(place) = buffer.get_mut(at..at + value.len()) {
        place.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{AuthFlavor, AuthSys, CallHeader, OpaqueAuth, RPC_VERSION};
    use crate::xdr::{Bulk, List};
    use crate::{record, v3};

    #[derive(Clone)]
    struct Write<'a> {
        call: CallHeader<'a>,
        args: v3::WriteArgs<'a>,
    }

    impl Write<'_> {
        fn encode(&self, e: &mut Encoder) {
            let mark = record::begin(e);
            e.put(&self.call);
            e.put(&self.args);
            record::end(e, mark);
        }
    }

    fn credential() -> Encoder {
        let mut e = Encoder::new();
        let (machine_name, gids) = ("client"[..].into(), List::Items(&[4, 24][..]));
        e.put(&AuthSys { stamp: 1, machine_name, uid: 1000, gid: 1000, gids });
        e
    }

    fn write<'a>(credential: &'a Encoder, data: Bulk<'a>) -> Write<'a> {
        let cred = OpaqueAuth { flavor: AuthFlavor::SYS, body: credential.buffer().into() };
        let (program, version, procedure) = (v3::PROGRAM, v3::VERSION, v3::Proc3::WRITE.0);
        let verf = OpaqueAuth::NONE;
        Write {
            call: CallHeader { xid: 5, rpc_version: RPC_VERSION, program, version, procedure, cred, verf },
            args: v3::WriteArgs {
                file: b"0123456789"[..].into(),
                offset: 0,
                count: data.len() as u32,
                stable: v3::StableHow::Unstable,
                data,
            },
        }
    }

    #[test]
    fn a_patched_template_is_the_message_encoded_anew() {
        let credential = credential();
        for data in [Bulk::Bytes(b"datum"), Bulk::Detached(5)] {
            let base = write(&credential, data);
            let shape = Shape::new(base.clone(), Write::encode);
            let xid = shape.field(|w, xid: u32| w.call.xid = xid).unwrap();
            let offset = shape.field(|w, offset: u64| w.args.offset = offset).unwrap();
            let mut template = shape.template();
            for (x, o) in [(0, 0), (1, 1 << 63), (u32::MAX, u64::MAX), (0x0102_0304, 5)] {
                let mut expected = base.clone();
                (expected.call.xid, expected.args.offset) = (x, o);
                let mut e = Encoder::new();
                expected.encode(&mut e);

                template.set(xid, x);
                template.set(offset, o);
                assert_eq!(template.bytes(), e.buffer());
                assert_eq!(template.cuts(), e.cuts());

                let mut two = Encoder::new();
                two.put(&0u32);
                shape.template().append(&mut two).set(xid, x).set(offset, o);
                assert_eq!(&two.buffer()[4..], e.buffer());
                let cuts: Vec<_> = two.cuts().iter().map(|cut| Cut { at: cut.at - 4, ..*cut }).collect();
                assert_eq!(cuts, e.cuts());
            }
        }
    }

    #[test]
    fn fields_of_every_kind_are_found() {
        let shape = Shape::new((7u32, false, [1u8; 16], -1i64), |(a, b, c, d), e: &mut Encoder| {
            e.put(a);
            e.put(b);
            e.put(c);
            e.put(d);
        });
        assert_eq!(shape.field(|v, x: u32| v.0 = x).map(|f| f.at), Ok(0));
        assert_eq!(shape.field(|v, x: bool| v.1 = x).map(|f| f.at), Ok(4));
        assert_eq!(shape.field(|v, x: [u8; 16]| v.2 = x).map(|f| f.at), Ok(8));
        assert_eq!(shape.field(|v, x: i64| v.3 = x).map(|f| f.at), Ok(24));
    }

    #[test]
    fn what_has_no_place_of_its_own_is_refused() {
        let shape = Shape::new((1u32, None::<u32>), |(a, b), e: &mut Encoder| {
            e.put(a);
            e.put(b);
            e.put(a);
        });
        assert_eq!(shape.field(|v, x: u32| v.0 = x).unwrap_err(), TemplateError::Scattered);
        assert_eq!(shape.field(|v, x: bool| v.1 = x.then_some(1)).unwrap_err(), TemplateError::Scattered);
        assert_eq!(shape.field(|_, _: u64| ()).unwrap_err(), TemplateError::Absent);
    }
}
