//! Reads typed values from the tree of a study. What serde says of a mistake is kept as data, with its path and span.

use std::cell::RefCell;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::de::value::{MapAccessDeserializer, StrDeserializer};
use serde::de::{self, DeserializeSeed, Expected, IntoDeserializer, Unexpected, Visitor};
use serde::forward_to_deserialize_any;

use super::tree::{Key, Node, Value};
use crate::suggest;

/// A mistake in a value: which one, and where.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mistake {
    pub(crate) fault: Fault,
    /// Path and span of the value with the mistake; of an unknown key, the path of its table and the span of the key.
    pub(crate) location: Option<(String, Range<usize>)>,
    /// The key was put there by a level of a factor.
    pub(crate) by_level: bool,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    UnknownKey {
        key: String,
        known: &'static [&'static str],
    },
    UnknownWord {
        word: String,
        known: &'static [&'static str],
    },
    MissingKey(&'static str),
    /// A key that is likely a misspelling of it is reported instead.
    Misspelt,
    WrongType {
        found: String,
        expected: String,
    },
    /// In the words of the type.
    Other(String),
}

impl From<Fault> for Mistake {
    fn from(fault: Fault) -> Self {
        Self { fault, location: None, by_level: false }
    }
}

impl Mistake {
    /// The innermost location is kept.
    fn at(mut self, path: &str, node: &Node) -> Self {
        if self.location.is_none() {
            let key = match &self.fault {
                Fault::UnknownKey { key, .. } => node.table().and_then(|table| table.entry(key)),
                _ => None,
            };
            self.by_level = key.is_some_and(|(key, _)| key.by_level);
            self.location = Some((path.to_owned(), key.map_or(&node.span, |(key, _)| &key.span).clone()));
        }
        self
    }

    fn wrong_type(node: &Node, expected: impl Into<String>) -> Self {
        Fault::WrongType { found: in_words(node), expected: expected.into() }.into()
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

impl std::error::Error for Mistake {}

impl de::Error for Mistake {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Fault::Other(message.to_string()).into()
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let found = match found {
            Unexpected::Map | Unexpected::StructVariant => "a table".to_owned(),
            Unexpected::Seq | Unexpected::TupleVariant => "an array".to_owned(),
            Unexpected::Float(number) => format!("the number `{number:?}`"),
            Unexpected::Signed(_) | Unexpected::Unsigned(_) | Unexpected::Bool(_) | Unexpected::Str(_) => {
                format!("the {found}")
            }
            found => found.to_string(),
        };
        Fault::WrongType { found, expected: expected.to_string() }.into()
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn unknown_variant(word: &str, known: &'static [&'static str]) -> Self {
        Fault::UnknownWord { word: word.to_owned(), known }.into()
    }

    fn unknown_field(key: &str, known: &'static [&'static str]) -> Self {
        Fault::UnknownKey { key: key.to_owned(), known }.into()
    }

    fn missing_field(key: &'static str) -> Self {
        Fault::MissingKey(key).into()
    }
}

fn in_words(node: &Node) -> String {
    match &node.value {
        Value::Text(text) => format!("the string {text:?}"),
        Value::Integer(number) => format!("the integer `{number}`"),
        Value::Float(number) => format!("the number `{number:?}`"),
        Value::Boolean(boolean) => format!("the boolean `{boolean}`"),
        value => value.type_name().to_owned(),
    }
}

/// Unknown keys, all of which are found in one reading; any other mistake ends it.
pub(crate) type UnknownKeys = RefCell<Vec<Mistake>>;

/// Reads one value of the tree.
pub(crate) struct Deserializer<'a> {
    node: &'a Arc<Node>,
    path: String,
    unknown: &'a UnknownKeys,
}

impl<'a> Deserializer<'a> {
    pub(crate) fn new(node: &'a Arc<Node>, path: &str, unknown: &'a UnknownKeys) -> Self {
        Self { node, path: path.to_owned(), unknown }
    }

    fn within(&self, node: &'a Arc<Node>, path: String) -> Self {
        Self { node, path, unknown: self.unknown }
    }

    /// Whatever the value is.
    fn visit<V: Visitor<'a>>(&self, visitor: V) -> Result<V::Value, Mistake> {
        let value = match &self.node.value {
            Value::Text(text) => visitor.visit_borrowed_str(text),
            Value::Integer(number) => visitor.visit_i64(*number),
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Boolean(boolean) => visitor.visit_bool(*boolean),
            Value::Date => Err(de::Error::invalid_type(Unexpected::Other("a date"), &visitor)),
            Value::Array(_) => visitor.visit_seq(Elements { array: self, next: 0 }),
            Value::Table(_) => visitor.visit_map(Entries { table: self, known: None, next: 0 }),
        };
        value.map_err(|mistake| mistake.at(&self.path, self.node))
    }

    /// A value of a type that has words for what it expects.
    fn expect<V: Visitor<'a>>(&self, fits: bool, expected: &str, visitor: V) -> Result<V::Value, Mistake> {
        if fits {
            self.visit(visitor)
        } else {
            Err(Mistake::wrong_type(self.node, expected).at(&self.path, self.node))
        }
    }

    fn integer<V: Visitor<'a>>(&self, least: i64, most: u64, visitor: V) -> Result<V::Value, Mistake> {
        let range = i128::from(least)..=i128::from(most);
        let fits = matches!(self.node.value, Value::Integer(number) if range.contains(&number.into()));
        let expected = match (least, most) {
            (0, most) if most >= i64::MAX as u64 => "a whole number, 0 or more".to_owned(),
            (i64::MIN, _) => "a whole number".to_owned(),
            _ => format!("a whole number from {least} to {most}"),
        };
        self.expect(fits, &expected, visitor)
    }
}

macro_rules! integers {
    ($($method:ident: $type:ty,)+) => {
        $(fn $method<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
            self.integer(<$type>::MIN as i64, <$type>::MAX as u64, visitor)
        })+
    };
}

impl<'a> de::Deserializer<'a> for Deserializer<'a> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.visit(visitor)
    }

    integers! {
        deserialize_u8: u8,
        deserialize_u16: u16,
        deserialize_u32: u32,
        deserialize_u64: u64,
        deserialize_i8: i8,
        deserialize_i16: i16,
        deserialize_i32: i32,
        deserialize_i64: i64,
    }

    fn deserialize_f64<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        let fits = matches!(self.node.value, Value::Integer(_) | Value::Float(_));
        self.expect(fits, "a number", visitor)
    }

    fn deserialize_bool<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.expect(matches!(self.node.value, Value::Boolean(_)), "`true` or `false`", visitor)
    }

    fn deserialize_string<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.expect(self.node.text().is_some(), "a string", visitor)
    }

    fn deserialize_seq<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.expect(matches!(self.node.value, Value::Array(_)), "an array", visitor)
    }

    fn deserialize_map<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.expect(self.node.table().is_some(), "a table", visitor)
    }

    fn deserialize_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let Some(table) = self.node.table() else { return self.expect(false, "a table", visitor) };
        let unknown: Vec<_> = table.keys().filter(|key| !fields.contains(&&*key.name)).collect();
        for key in &unknown {
            let fault = Fault::UnknownKey { key: key.name.clone(), known: fields };
            self.unknown.borrow_mut().push(Mistake::from(fault).at(&self.path, self.node));
        }
        let entries = Entries { table: &self, known: Some(fields), next: 0 };
        visitor.visit_map(entries).map_err(|mut mistake: Mistake| {
            let meant = |missing| unknown.iter().any(|key| suggest::is_like(&key.name, missing));
            if matches!(mistake.fault, Fault::MissingKey(key) if mistake.location.is_none() && meant(key)) {
                mistake.fault = Fault::Misspelt;
            }
            mistake.at(&self.path, self.node)
        })
    }

    fn deserialize_enum<V: Visitor<'a>>(
        self,
        _name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let value = match &self.node.value {
            Value::Text(word) if !variants.contains(&word.as_str()) => {
                Err(de::Error::unknown_variant(word, variants))
            }
            Value::Text(word) => visitor.visit_enum(IntoDeserializer::<Mistake>::into_deserializer(&**word)),
            Value::Table(_) => {
                let entries = Entries { table: &self, known: None, next: 0 };
                visitor.visit_enum(MapAccessDeserializer::new(entries))
            }
            _ => Err(Mistake::wrong_type(self.node, "a string")),
        };
        value.map_err(|mistake| mistake.at(&self.path, self.node))
    }

    fn deserialize_option<V: Visitor<'a>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'a>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        <V: Visitor<'a>>
        i128 u128 f32 char str bytes byte_buf unit unit_struct tuple tuple_struct identifier ignored_any
    }
}

struct Elements<'t, 'a> {
    array: &'t Deserializer<'a>,
    next: usize,
}

impl<'a> de::SeqAccess<'a> for Elements<'_, 'a> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'a>>(&mut self, seed: T) -> Result<Option<T::Value>, Mistake> {
        let Value::Array(elements) = &self.array.node.value else { return Ok(None) };
        let Some(node) = elements.get(self.next) else { return Ok(None) };
        let path = format!("{}[{}]", self.array.path, self.next);
        self.next += 1;
        let value = seed.deserialize(self.array.within(node, path.clone()));
        value.map(Some).map_err(|mistake| mistake.at(&path, node))
    }
}

struct Entries<'t, 'a> {
    table: &'t Deserializer<'a>,
    /// The keys of a struct; others are passed over.
    known: Option<&'static [&'static str]>,
    next: usize,
}

impl<'a> Entries<'_, 'a> {
    fn entry(&self) -> Option<(&'a Key, &'a Arc<Node>)> {
        self.table.node.table()?.iter().nth(self.next)
    }
}

impl<'a> de::MapAccess<'a> for Entries<'_, 'a> {
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'a>>(&mut self, seed: K) -> Result<Option<K::Value>, Mistake> {
        let is_unknown = |key: &Key| self.known.is_some_and(|known| !known.contains(&&*key.name));
        while self.entry().is_some_and(|(key, _)| is_unknown(key)) {
            self.next += 1;
        }
        let Some((key, _)) = self.entry() else { return Ok(None) };
        seed.deserialize(StrDeserializer::new(&key.name)).map(Some)
    }

    fn next_value_seed<V: DeserializeSeed<'a>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let Some((key, node)) = self.entry() else {
            return Err(de::Error::custom("a key without a value"));
        };
        self.next += 1;
        let path = format!("{}.{}", self.table.path, key.name);
        let value = seed.deserialize(self.table.within(node, path.clone()));
        value.map_err(|mistake| mistake.at(&path, node))
    }
}
