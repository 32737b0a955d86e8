//! Values ↔ columns, and structs ↔ the columns of a table.

use std::fmt::Display;

use benchmaster_record::model::OperationKind;
use benchmaster_record::nfs::NfsVersion;
use benchmaster_record::phase::Phase;
use benchmaster_record::recording::{EncodedHistogram, PartOf, RpcSource, StopReason};
use benchmaster_record::results::{
    CheckKind, Emulator, EvidenceUnit, LabTime, ServedBy, SessionEnd, Severity, StageKind, Unit,
};
use benchmaster_record::samples::Kind;
use benchmaster_record::witness::Durability;
use jiff::Timestamp;
use rusqlite::types::{Type, Value, ValueRef};
use rusqlite::{Connection, Error, Result, Row, params_from_iter};
use serde::de::value::{Error as NameError, StrDeserializer};
use serde::de::{DeserializeOwned, IntoDeserializer};
use serde::{Deserialize, Serialize};

/// Why a record could not be stored.
#[derive(Debug)]
pub(crate) enum RowError {
    Sqlite(Error),
    Record(String),
}

impl From<Error> for RowError {
    fn from(error: Error) -> Self {
        Self::Sqlite(error)
    }
}

/// A value of one column.
pub(super) trait Cell: Sized {
    fn store(&self) -> Result<Value, String>;
    fn load(row: &Row<'_>, column: &str) -> Result<Self>;
}

/// A struct whose fields are columns of one table.
pub(super) trait Columns: Sized {
    fn store(&self, row: NewRow) -> NewRow;
    fn load(row: &Row<'_>) -> Result<Self>;
}

/// A row to be inserted.
#[derive(Debug, Default)]
pub(super) struct NewRow {
    names: Vec<&'static str>,
    values: Vec<Value>,
    problem: Option<String>,
}

impl NewRow {
    /// The row number `ordinal` of those that belong to `parent`.
    pub(super) fn child(column: &'static str, parent: i64, ordinal: u32) -> Self {
        Self::default().set(column, &parent).set("ordinal", &ordinal)
    }

    pub(super) fn set(mut self, column: &'static str, value: &impl Cell) -> Self {
        match value.store() {
            Ok(value) => {
                self.names.push(column);
                self.values.push(value);
            }
            Err(problem) => self.problem = Some(format!("{column}: {problem}")),
        }
        self
    }

    pub(super) fn with(self, columns: &impl Columns) -> Self {
        columns.store(self)
    }

    /// Inserts the row and returns its number.
    pub(super) fn insert(self, connection: &Connection, table: &str) -> Result<i64, RowError> {
        if let Some(problem) = self.problem {
            return Err(RowError::Record(problem));
        }
        let marks = vec!["?"; self.names.len()].join(", ");
        let sql = format!("INSERT INTO {table} ({}) VALUES ({marks})", self.names.join(", "));
        connection.prepare_cached(&sql)?.execute(params_from_iter(self.values))?;
        Ok(connection.last_insert_rowid())
    }
}

/// The column of a field: its name, or what follows it.
macro_rules! column {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:literal) => {
        $column
    };
}

/// Sets columns from the fields of a struct: `field` or `field = "column"`.
macro_rules! store {
    ($row:expr, $from:expr, { $($field:ident $(= $column:literal)?),* $(,)? }) => {
        $row$(.set(column!($field $($column)?), &$from.$field))*
    };
}

/// Makes a struct of columns, as for `store!`, and of further fields with their values.
macro_rules! load {
    ($row:expr, $type:ident { $($field:ident $(= $column:literal)?),* ; $($more:tt)* }) => {
        $type { $($field: Cell::load($row, column!($field $($column)?))?,)* $($more)* }
    };
}

/// Implements [`Columns`] for a struct: its fields as for `store!`, then after `;` those that are such structs themselves.
macro_rules! columns {
    ($($type:ident { $($field:ident $(= $column:literal)?),* $(; $($part:ident),+)? })*) => {$(
        impl Columns for $type {
            fn store(&self, row: NewRow) -> NewRow {
                store!(row, self, { $($field $(= $column)?),* })$($(.with(&self.$part))+)?
            }

            fn load(row: &Row<'_>) -> Result<Self> {
                Ok(load!(row, Self { $($field $(= $column)?),* ; $($($part: Columns::load(row)?),+)? }))
            }
        }
    )*};
}

macro_rules! integers {
    ($($type:ty),*) => {$(
        impl Cell for $type {
            fn store(&self) -> Result<Value, String> {
                let number = i64::try_from(*self).map_err(|_| format!("{self} is out of range"))?;
                Ok(Value::Integer(number))
            }

            fn load(row: &Row<'_>, column: &str) -> Result<Self> {
                row.get(column)
            }
        }
    )*};
}

integers!(u32, i64);

/// Half of what SQLite's integers reach, which leaves room to add: 4 EiB, or the nanoseconds of 10,000 workers in five days. A
/// limit for what one worker does in a run would refuse what a large fleet has measured.
const LARGEST: u64 = 1 << 62;

impl Cell for u64 {
    fn store(&self) -> Result<Value, String> {
        if *self > LARGEST {
            return Err(format!("{self} is out of range"));
        }
        Ok(Value::Integer(self.cast_signed()))
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        let number: Self = row.get(column)?;
        if number > LARGEST {
            return Err(Error::IntegralValueOutOfRange(
                row.as_ref().column_index(column)?,
                number.cast_signed(),
            ));
        }
        Ok(number)
    }
}

impl Cell for bool {
    fn store(&self) -> Result<Value, String> {
        Ok(Value::Integer(i64::from(*self)))
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        row.get(column)
    }
}

/// SQLite keeps NaN as NULL.
impl Cell for f64 {
    fn store(&self) -> Result<Value, String> {
        Ok(if self.is_nan() { Value::Null } else { Value::Real(*self) })
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        Ok(row.get::<_, Option<Self>>(column)?.unwrap_or(Self::NAN))
    }
}

impl Cell for String {
    fn store(&self) -> Result<Value, String> {
        Ok(Value::Text(self.clone()))
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        row.get(column)
    }
}

impl Cell for Vec<u8> {
    fn store(&self) -> Result<Value, String> {
        Ok(Value::Blob(self.clone()))
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        row.get(column)
    }
}

impl Cell for EncodedHistogram {
    fn store(&self) -> Result<Value, String> {
        self.0.store()
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        Cell::load(row, column).map(Self)
    }
}

impl Cell for Timestamp {
    fn store(&self) -> Result<Value, String> {
        Ok(Value::Text(self.to_string()))
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        parsed(row, column, str::parse)
    }
}

/// A hash, in hexadecimal digits: SQLite's integers are signed, and hashes are compared by eye.
#[derive(Debug)]
pub(super) struct Hash(pub(super) u64);

impl Cell for Hash {
    fn store(&self) -> Result<Value, String> {
        Ok(Value::Text(format!("{:016x}", self.0)))
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        parsed(row, column, |text| u64::from_str_radix(text, 16)).map(Self)
    }
}

/// A value that is stored as JSON.
#[derive(Debug)]
pub(super) struct Json<T>(pub(super) T);

impl<T: Serialize + DeserializeOwned> Cell for Json<T> {
    fn store(&self) -> Result<Value, String> {
        serde_json::to_string(&self.0).map(Value::Text).map_err(|error| error.to_string())
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        parsed(row, column, |text| serde_json::from_str(text)).map(Self)
    }
}

impl<T: Cell> Cell for Option<T> {
    fn store(&self) -> Result<Value, String> {
        self.as_ref().map_or(Ok(Value::Null), Cell::store)
    }

    fn load(row: &Row<'_>, column: &str) -> Result<Self> {
        match row.get_ref(column)? {
            ValueRef::Null => Ok(None),
            _ => T::load(row, column).map(Some),
        }
    }
}

/// Enums of fixed words.
macro_rules! words {
    ($($type:ty = $what:literal),*) => {$(
        impl Cell for $type {
            fn store(&self) -> Result<Value, String> {
                Ok(Value::Text(self.name().to_owned()))
            }

            fn load(row: &Row<'_>, column: &str) -> Result<Self> {
                parsed(row, column, |name| {
                    Self::from_name(name).ok_or_else(|| format!("`{name}` is not a known {}", $what))
                })
            }
        }
    )*};
}

words!(
    CheckKind = "validity check",
    Durability = "durability class",
    Emulator = "emulator",
    EvidenceUnit = "unit of evidence",
    LabTime = "time of a lab",
    NfsVersion = "version of NFS",
    OperationKind = "operation",
    PartOf = "part",
    Phase = "phase",
    ServedBy = "server"
);

/// Enums are stored by the name that serde gives them.
macro_rules! named {
    ($($type:ty),*) => {$(
        impl Cell for $type {
            fn store(&self) -> Result<Value, String> {
                name_of(self).map(Value::Text)
            }

            fn load(row: &Row<'_>, column: &str) -> Result<Self> {
                parsed(row, column, |name| {
                    let deserializer: StrDeserializer<'_, NameError> = name.into_deserializer();
                    Self::deserialize(deserializer)
                })
            }
        }
    )*};
}

named!(Kind, RpcSource, SessionEnd, Severity, StageKind, StopReason, Unit);

/// The name that serde gives a variant of an enum.
pub(crate) fn name_of(value: &impl Serialize) -> Result<String, String> {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(name)) => Ok(name),
        other => Err(format!("{other:?} is not a name")),
    }
}

/// A value that is stored as text.
fn parsed<T, E: Display>(row: &Row<'_>, column: &str, parse: impl FnOnce(&str) -> Result<T, E>) -> Result<T> {
    let text: String = row.get(column)?;
    parse(&text).map_err(|error| damaged(column, error))
}

/// A value that cannot be right.
pub(super) fn damaged(column: &str, error: impl Display) -> Error {
    Error::FromSqlConversionFailure(0, Type::Text, format!("column {column}: {error}").into())
}
