//! `effectgate log export`

mod columns;
mod row;

use std::{
    fs::{File, Permissions},
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::Arc,
};

use anyhow::{Context, Result, bail};
use effectgate_core::{forensics::Frame, record::SCHEMA};
use parquet::{
    basic::{Compression, ZstdLevel},
    file::{metadata::KeyValue, properties::WriterProperties, writer::SerializedFileWriter},
    schema::{parser::parse_message_type, types::SchemaDescriptor},
};
use serde_json::json;

use super::{
    ask,
    out::Out,
    sources::{Sources, Step, asked},
};
use crate::{
    cli::{Format, LogExport},
    exit::{self, Code, Outcomes},
    whole::directory,
};
use columns::Columns;

/// The columns, in Parquet's own notation.
const RECORDS: &str = include_str!("export/records.schema");
/// Rows that readers take up at once.
const GROUP: usize = 1 << 16;
/// A group with long arguments is closed earlier, bytes in memory.
const LARGE: usize = 64 << 20;

pub fn export(args: &LogExport, format: Format) -> Outcomes {
    let filter = ask::filter(&args.which).code(exit::USAGE)?;
    let mut sources = Sources::find(&args.logs.logs).code(exit::USAGE)?;
    let mut table = Table::create(&args.parquet).code(exit::USAGE)?;
    let mut failed = None;
    for log in sources.logs() {
        let name = effectgate_core::escape::escape(log.as_os_str().as_encoded_bytes());
        let mut on = |frame: &Frame<'_>, line: &[u8]| {
            let record = match asked(&filter, frame, line) {
                Err(step) => return step,
                Ok(None) => return Step::On,
                Ok(Some(record)) => record,
            };
            let Some(row) = row::row(&name, &record, line) else { return Step::Broken };
            match table.add(row) {
                Ok(()) => Step::On,
                Err(error) => {
                    failed = Some(error);
                    Step::Enough
                }
            }
        };
        if sources.read(&log, &filter, &mut on) == Step::Enough {
            break;
        }
    }
    let cannot = || format!("cannot write {}", ask::shown(&args.parquet));
    let written = match failed {
        Some(error) => Err(error),
        None => table.finish(&args.parquet),
    };
    let (records, bytes) = written.with_context(cannot).code(exit::USAGE)?;
    let mut out = Out::new();
    match format {
        Format::Json => out.value(&json!({
            "file": args.parquet, "logs": sources.logs().len(), "records": records, "bytes": bytes,
        })),
        Format::Text => out.text(&format!(
            "{records} records of {} logs in {} ({bytes} bytes)",
            sources.logs().len(),
            args.parquet.display()
        )),
    };
    out.end(sources.code())
}

/// The file in the making. It has another name until it is whole.
struct Table {
    writer: SerializedFileWriter<File>,
    file: tempfile::NamedTempFile,
    columns: Columns,
    records: u64,
}

impl Table {
    fn create(path: &Path) -> Result<Table> {
        if path.symlink_metadata().is_ok() {
            bail!("{} is there already; name a new file", path.display());
        }
        let file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(directory(path))
            .with_context(|| format!("cannot create {}", path.display()))?;
        let schema = Arc::new(parse_message_type(RECORDS).context("the schema of records")?);
        let version = KeyValue::new("effectgate.schema".to_owned(), SCHEMA.to_owned());
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_key_value_metadata(Some(vec![version]))
            .build();
        let columns = Columns::of(&SchemaDescriptor::new(schema.clone()));
        let to = file.reopen().with_context(|| format!("cannot create {}", path.display()))?;
        let writer = SerializedFileWriter::new(to, schema, Arc::new(properties))?;
        Ok(Table { writer, file, columns, records: 0 })
    }

    fn add(&mut self, row: [columns::Cell<'_>; row::COLUMNS]) -> Result<()> {
        self.columns.add(row)?;
        self.records += 1;
        if self.columns.rows() == GROUP || self.columns.bytes() >= LARGE {
            self.columns.write(&mut self.writer)?;
        }
        Ok(())
    }

    /// How many records and bytes the file has.
    fn finish(mut self, path: &Path) -> Result<(u64, u64)> {
        if self.columns.rows() > 0 {
            self.columns.write(&mut self.writer)?;
        }
        let file = self.writer.into_inner()?;
        file.sync_all()?;
        let bytes = file.metadata()?.len();
        self.file.persist_noclobber(path)?;
        Ok((self.records, bytes))
    }
}
