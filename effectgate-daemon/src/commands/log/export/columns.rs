//! Values of a group of rows, column by column, as Parquet wants them.

use std::fs::File;

use anyhow::{Result, bail};
use parquet::{
    basic::Type,
    data_type::{BoolType, ByteArray, ByteArrayType, Int32Type, Int64Type},
    file::writer::{SerializedColumnWriter, SerializedFileWriter},
    schema::types::SchemaDescriptor,
};

/// What a row has in a column.
#[derive(Clone, Debug)]
pub enum Cell<'a> {
    Text(Option<&'a str>),
    Int(Option<u32>),
    Long(Option<u64>),
    /// Unix time in nanoseconds.
    Time(i64),
    Bool(bool),
    Texts(Vec<Option<&'a str>>),
    Ints(Vec<u32>),
}

/// The columns of the schema, in its order.
#[derive(Debug)]
pub struct Columns {
    columns: Vec<Column>,
    rows: usize,
    bytes: usize,
}

#[derive(Debug)]
struct Column {
    values: Values,
    /// Which values are there and where lists begin (Dremel's levels, as
    /// Parquet's documentation of nested encoding has them).
    definitions: Vec<i16>,
    repetitions: Vec<i16>,
    /// The definition level of a value that is there.
    present: i16,
    is_list: bool,
}

#[derive(Debug)]
enum Values {
    Text(Vec<ByteArray>),
    Int(Vec<i32>),
    Long(Vec<i64>),
    Bool(Vec<bool>),
}

impl Columns {
    pub fn of(schema: &SchemaDescriptor) -> Columns {
        let column = |at: usize| {
            let column = schema.column(at);
            let values = match column.physical_type() {
                Type::BOOLEAN => Values::Bool(Vec::new()),
                Type::INT32 => Values::Int(Vec::new()),
                Type::INT64 => Values::Long(Vec::new()),
                _ => Values::Text(Vec::new()),
            };
            Column {
                values,
                definitions: Vec::new(),
                repetitions: Vec::new(),
                present: column.max_def_level(),
                is_list: column.max_rep_level() > 0,
            }
        };
        let columns = (0..schema.num_columns()).map(column).collect();
        Columns { columns, rows: 0, bytes: 0 }
    }

    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of text that are held.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// # Errors
    /// When the row is not one of the schema's.
    pub fn add<const N: usize>(&mut self, row: [Cell<'_>; N]) -> Result<()> {
        if self.columns.len() != N {
            bail!("a row of {N} cells for {} columns", self.columns.len());
        }
        for (column, cell) in self.columns.iter_mut().zip(row) {
            self.bytes += column.add(cell)?;
        }
        self.rows += 1;
        Ok(())
    }

    /// Writes the rows as a group, and begins anew.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, writer: &mut SerializedFileWriter<File>) -> Result<()> {
        let mut group = writer.next_row_group()?;
        for column in &mut self.columns {
            let Some(to) = group.next_column()? else { bail!("a column too many") };
            column.write(to)?;
        }
        group.close()?;
        (self.rows, self.bytes) = (0, 0);
        Ok(())
    }
}

impl Column {
    /// The bytes of text that were added.
    fn add(&mut self, cell: Cell<'_>) -> Result<usize> {
        let mut bytes = 0;
        match cell {
            Cell::Text(text) => {
                bytes = text.map_or(0, str::len);
                self.one(text.is_some());
                self.put(text.map(|text| Value::Text(text.into())))?;
            }
            Cell::Int(number) => {
                self.one(number.is_some());
                self.put(number.map(Value::Int))?;
            }
            Cell::Long(number) => {
                self.one(number.is_some());
                self.put(number.map(|number| Value::Long(number.cast_signed())))?;
            }
            Cell::Time(time) => {
                self.one(true);
                self.put(Some(Value::Long(time)))?;
            }
            Cell::Bool(value) => {
                self.one(true);
                self.put(Some(Value::Bool(value)))?;
            }
            Cell::Texts(texts) => {
                self.list(texts.iter().map(Option::is_some));
                for text in texts.into_iter().flatten() {
                    bytes += text.len();
                    self.put(Some(Value::Text(text.into())))?;
                }
            }
            Cell::Ints(numbers) => {
                self.list(numbers.iter().map(|_| true));
                for number in numbers {
                    self.put(Some(Value::Int(number)))?;
                }
            }
        }
        Ok(bytes)
    }

    fn one(&mut self, is_there: bool) {
        if self.present > 0 {
            self.definitions.push(if is_there { self.present } else { self.present - 1 });
        }
    }

    fn list(&mut self, are_there: impl ExactSizeIterator<Item = bool>) {
        if are_there.len() == 0 {
            self.definitions.push(0);
            self.repetitions.push(0);
        }
        for (at, is_there) in are_there.enumerate() {
            self.definitions.push(if is_there { self.present } else { self.present - 1 });
            self.repetitions.push(i16::from(at > 0));
        }
    }

    fn put(&mut self, value: Option<Value>) -> Result<()> {
        match (&mut self.values, value) {
            (Values::Text(all), Some(Value::Text(text))) => all.push(text),
            (Values::Int(all), Some(Value::Int(number))) => all.push(number.cast_signed()),
            (Values::Long(all), Some(Value::Long(number))) => all.push(number),
            (Values::Bool(all), Some(Value::Bool(value))) => all.push(value),
            (_, None) if self.present > 0 => {}
            (values, value) => bail!("{value:?} is no value for {values:?}"),
        }
        Ok(())
    }

    fn write(&mut self, mut to: SerializedColumnWriter<'_>) -> Result<()> {
        let definitions = (self.present > 0).then_some(self.definitions.as_slice());
        let repetitions = self.is_list.then_some(self.repetitions.as_slice());
        match &mut self.values {
            Values::Text(all) => {
                to.typed::<ByteArrayType>().write_batch(all, definitions, repetitions)?;
                all.clear();
            }
            Values::Int(all) => {
                to.typed::<Int32Type>().write_batch(all, definitions, repetitions)?;
                all.clear();
            }
            Values::Long(all) => {
                to.typed::<Int64Type>().write_batch(all, definitions, repetitions)?;
                all.clear();
            }
            Values::Bool(all) => {
                to.typed::<BoolType>().write_batch(all, definitions, repetitions)?;
                all.clear();
            }
        }
        to.close()?;
        self.definitions.clear();
        self.repetitions.clear();
        Ok(())
    }
}

#[derive(Debug)]
enum Value {
    Text(ByteArray),
    Int(u32),
    Long(i64),
    Bool(bool),
}
