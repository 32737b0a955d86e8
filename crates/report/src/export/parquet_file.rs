//! A table as a Parquet file.

use std::fs::File;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::table::{Column, Table, Values};

/// A Parquet file of one table in parts: a row group each, every column nullable.
pub(super) struct ParquetWriter<'f> {
    writer: SerializedFileWriter<&'f File>,
}

impl<'f> ParquetWriter<'f> {
    /// Begins a file of tables with the columns of `table`.
    pub(super) fn new(table: &Table, file: &'f File) -> Result<Self, ParquetError> {
        let fields = table.columns.iter().map(field).collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(Type::group_type_builder(table.name).with_fields(fields).build()?);
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_created_by(format!("benchmaster {}", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { writer: SerializedFileWriter::new(file, schema, Arc::new(properties))? })
    }

    /// Writes the rows of a part; all parts have the same columns.
    pub(super) fn put(&mut self, table: &Table) -> Result<(), ParquetError> {
        let mut group = self.writer.next_row_group()?;
        for column in &table.columns {
            match &column.values {
                Values::Text(values) => {
                    put::<ByteArrayType, _>(&mut group, values, |text| ByteArray::from(text.as_str()))?;
                }
                Values::Unsigned(values) => put::<Int64Type, _>(&mut group, values, |n| n.cast_signed())?,
                Values::Signed(values) => put::<Int64Type, _>(&mut group, values, |n| *n)?,
                Values::Real(values) => put::<DoubleType, _>(&mut group, values, |x| *x)?,
                Values::Flag(values) => put::<BoolType, _>(&mut group, values, |flag| *flag)?,
            }
        }
        group.close()?;
        Ok(())
    }

    pub(super) fn finish(self) -> Result<(), ParquetError> {
        self.writer.close()?;
        Ok(())
    }
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let integer = |is_signed| Some(LogicalType::integer(64, is_signed));
    let (physical, logical) = match column.values {
        Values::Text(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Values::Unsigned(_) => (Physical::INT64, integer(false)),
        Values::Signed(_) => (Physical::INT64, integer(true)),
        Values::Real(_) => (Physical::DOUBLE, None),
        Values::Flag(_) => (Physical::BOOLEAN, None),
    };
    let field = Type::primitive_type_builder(&column.name, physical)
        .with_repetition(Repetition::OPTIONAL)
        .with_converted_type(ConvertedType::NONE)
        .with_logical_type(logical)
        .build()?;
    Ok(Arc::new(field))
}

fn put<T: DataType, V>(
    group: &mut SerializedRowGroupWriter<'_, &File>,
    values: &[Option<V>],
    convert: impl Fn(&V) -> T::T,
) -> Result<(), ParquetError> {
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<T::T> = values.iter().flatten().map(convert).collect();
    let Some(mut column) = group.next_column()? else {
        return Err(ParquetError::General("the schema has too few columns".into()));
    };
    column.typed::<T>().write_batch(&present, Some(&levels), None)?;
    column.close()
}
