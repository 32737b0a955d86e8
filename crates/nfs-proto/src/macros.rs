//! XDR types from a description close to the RFCs': the codec is made by these macros, and so is, in tests, a
//! generator of values for the round-trip properties.

/// A structure: its fields in order. `pub struct Name<'a> { pub field: Type<'a>, … }`, with or without the lifetime.
macro_rules! xdr_struct {
    ($( $(#[$m:meta])* pub struct $name:ident $(<$lt:lifetime>)? {
        $( $(#[$fm:meta])* pub $f:ident : $t:ty ),* $(,)?
    } )*) => { $(
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub struct $name $(<$lt>)? { $( $(#[$fm])* pub $f : $t ),* }
        xdr_impl! { $name $(<$lt>)?,
            |d| Ok(Self { $( $f: <$t as $crate::xdr::Decode<'_>>::decode(d)? ),* }),
            |this, e| { $( $crate::xdr::Encode::encode(&this.$f, e); )* }
        }
    )* };
}

/// `Decode` and `Encode` from two closures.
macro_rules! xdr_impl {
    ($name:ident <$lt:lifetime>, |$d:ident| $decode:expr, |$this:ident, $e:ident| $encode:expr) => {
        impl<$lt> $crate::xdr::Decode<$lt> for $name<$lt> {
            #[inline]
            #[allow(unused_variables)]
            fn decode($d: &mut $crate::xdr::Decoder<$lt>) -> Result<Self, $crate::xdr::XdrError> {
                $decode
            }
        }
        impl<$lt> $crate::xdr::Encode for $name<$lt> {
            #[inline]
            #[allow(unused_variables)]
            fn encode(&self, $e: &mut $crate::xdr::Encoder) {
                let $this = self;
                $encode
            }
        }
    };
    ($name:ident, |$d:ident| $decode:expr, |$this:ident, $e:ident| $encode:expr) => {
        impl<'de> $crate::xdr::Decode<'de> for $name {
            #[inline]
            #[allow(unused_variables)]
            fn decode($d: &mut $crate::xdr::Decoder<'de>) -> Result<Self, $crate::xdr::XdrError> {
                $decode
            }
        }
        impl $crate::xdr::Encode for $name {
            #[inline]
            #[allow(unused_variables)]
            fn encode(&self, $e: &mut $crate::xdr::Encoder) {
                let $this = self;
                $encode
            }
        }
    };
}

/// A closed enumeration: a value outside it does not decode. `pub enum Name { Variant = 0, … }`.
macro_rules! xdr_enum {
    ($( $(#[$m:meta])* pub enum $name:ident { $( $(#[$vm:meta])* $v:ident = $n:literal ),* $(,)? } )*) => { $(
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        #[repr(u32)]
        pub enum $name { $( $(#[$vm])* $v = $n ),* }
        xdr_impl! { $name,
            |d| match d.get::<u32>()? {
                $( $n => Ok(Self::$v), )*
                value => Err($crate::xdr::XdrError::BadValue { what: stringify!($name), value }),
            },
            |this, e| e.put(&(*this as u32))
        }
    )* };
}

/// An open enumeration (status and operation numbers): a number with named values; others survive decoding and are
/// printed as numbers. `pub struct Name("PREFIX_") { /// doc NAME = 0, … }`; `Display` and `FromStr` use prefix and
/// name.
macro_rules! xdr_code {
    ($( $(#[$m:meta])* pub struct $name:ident ($prefix:literal) {
        $( $(#[$vm:meta])* $v:ident = $n:literal ),* $(,)?
    } )*) => { $(
        $(#[$m])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub struct $name(pub u32);
        impl $name {
            $( $(#[$vm])* pub const $v: Self = Self($n); )*
            /// The named values, in order.
            pub const ALL: &'static [Self] = &[$( Self::$v ),*];
            /// The name without its prefix, where the value has one.
            pub fn name(self) -> Option<&'static str> {
                match self { $( Self::$v => Some(stringify!($v)), )* _ => None }
            }
        }
        xdr_impl! { $name, |d| d.get().map(Self), |this, e| e.put(&this.0) }
        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                match self.name() {
                    Some(name) => write!(f, "{}{name}", $prefix),
                    None => write!(f, "{}{}", $prefix, self.0),
                }
            }
        }
        impl std::fmt::Debug for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result { std::fmt::Display::fmt(self, f) }
        }
        impl std::str::FromStr for $name {
            type Err = ();
            /// With or without the prefix.
            fn from_str(text: &str) -> Result<Self, ()> {
                match text.strip_prefix($prefix).unwrap_or(text) {
                    $( stringify!($v) => Ok(Self::$v), )*
                    _ => Err(()),
                }
            }
        }
    )* };
}

/// A discriminated union: `pub enum Name<'a> { 0 => Variant(Type<'a>), 1 => Void, … }`; a last `; Other` keeps any
/// other discriminant, with void.
macro_rules! xdr_union {
    ($( $(#[$m:meta])* pub enum $name:ident $(<$lt:lifetime>)? {
        $( $(#[$vm:meta])* $n:literal => $v:ident $(($t:ty))? ),*
        $(,)? $(; $(#[$dm:meta])* $default:ident )?
    } )*) => { $(
        $(#[$m])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[cfg_attr(test, derive(arbitrary::Arbitrary))]
        pub enum $name $(<$lt>)? { $( $(#[$vm])* $v $(($t))? ,)* $( $(#[$dm])* $default(#[cfg_attr(test, arbitrary(with = $crate::macros::unnamed))] u32), )? }
        xdr_impl! { $name $(<$lt>)?,
            |d| match d.get::<u32>()? {
                $( $n => Ok(Self::$v $((<$t as $crate::xdr::Decode<'_>>::decode(d)?))?), )*
                $( value => Ok(Self::$default(value)), )?
                #[allow(unreachable_patterns)]
                value => Err($crate::xdr::XdrError::BadValue { what: stringify!($name), value }),
            },
            |this, e| match this {
                $( xdr_union!(@pattern $v value $($t)?) => { e.put(&($n as u32)); xdr_union!(@put e value $($t)?); } )*
                $( Self::$default(value) => e.put(value), )?
            }
        }
    )* };
    (@pattern $v:ident $value:ident $t:ty) => { Self::$v($value) };
    (@pattern $v:ident $value:ident) => { Self::$v };
    (@put $e:ident $value:ident $t:ty) => { $crate::xdr::Encode::encode($value, $e) };
    (@put $e:ident $value:ident) => {};
}

/// A discriminant that no arm of a union has.
#[cfg(test)]
pub(crate) fn unnamed(u: &mut arbitrary::Unstructured<'_>) -> arbitrary::Result<u32> {
    u.arbitrary().map(|n: u32| n | 0x8000_0000)
}
