//! Durability witnesses: ledgers that outlived their process, checked.
//!
//! A workload's own process compares at the end what was acknowledged with what is there. A ledger of a process that was killed
//! is left behind, and says where the files are and what was acknowledged of them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use benchmaster_nfs_client::options::MountOptions;
use benchmaster_record::witness::Witness;

use crate::area::{AreaError, WorkArea, id_of};
use crate::files::{FileTable, Rules};
use crate::ledger::read;
pub use crate::ledger::{Header, LedgerError};
use crate::model::{Fileset, ParameterError, Sharing};
use crate::nfs::SharedMount;
use crate::program::{Access, Program};
use crate::target::{NfsTarget, Target};

mod judge;

pub(crate) use judge::judge;

/// Why a ledger cannot be checked.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// The ledger.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Its target is none of this host.
    #[error("the ledger's target `{target}` cannot be reached: {problem}")]
    Target { target: String, problem: String },
    /// Its workload cannot be executed by this version.
    #[error("the ledger's workload cannot be read: {}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))]
    Workload(Vec<ParameterError>),
    /// The working directory.
    #[error(transparent)]
    Area(#[from] AreaError),
    /// It is gone.
    #[error("`{}` is not there: nothing that was acknowledged survived, or another study has removed it", .0.display())]
    Gone(PathBuf),
    /// The files cannot be read.
    #[error("{0}")]
    Read(std::io::Error),
    /// The ledger is damaged.
    #[error("the ledger has an entry of table {table} and file {file}, which its workload has not")]
    Entry { table: u32, file: u32 },
}

/// Looks for everything that a ledger says was acknowledged, at `target` or where the ledger says.
///
/// # Errors
/// [`CheckError`]. What is missing is no error: it is in the verdict.
pub fn check(path: &Path, target: Option<&str>, stop: &AtomicBool) -> Result<(Header, Witness), CheckError> {
    let (header, entries) = read(path)?;
    let target = self::target(target.unwrap_or(&header.target))?;
    let access = match target {
        Target::Directory(_) => Access::System,
        Target::Nfs(_) => Access::Nfs,
    };
    let program = Program::compile_for(&header.workload, access).map_err(CheckError::Workload)?;
    let block = program.verify_block.unwrap_or(crate::content::BLOCK);
    let tables = tables(&header, block);
    for (number, table) in (0u32..).zip(&tables) {
        table.witness(Rules { names: true, close: true }, None, number);
        table.promise_all();
    }
    for entry in entries {
        let (number, file) = entry.place();
        let table = tables.get(number as usize).filter(|table| u64::from(file) < table.files());
        let table = table.ok_or(CheckError::Entry { table: number, file })?;
        if let Some(promises) = table.promises() {
            promises.again(&entry);
        }
    }
    let place = target.place().join(&header.directory);
    let id = id_of(&header.directory).ok_or_else(|| CheckError::Gone(place.clone()))?;
    let area = WorkArea::find(&target, id)?.ok_or(CheckError::Gone(place))?;
    let shared = SharedMount::default();
    let tables: Vec<&FileTable> = tables.iter().map(|table| &**table).collect();
    let verdict = judge(&area, &shared, &tables, block, stop, &mut |_| ());
    area.end_jobs(shared)?;
    Ok((header, verdict.map_err(|error| CheckError::Read(error.0))?))
}

fn target(text: &str) -> Result<Target, CheckError> {
    if !text.starts_with("nfs://") {
        return Ok(Target::Directory(text.into()));
    }
    let wrong = |problem: String| CheckError::Target { target: text.to_owned(), problem };
    let options: MountOptions = text.parse().map_err(|error| wrong(format!("{error}")))?;
    Ok(Target::Nfs(NfsTarget::new(options)))
}

/// The tables of a ledger, in the order in which it counts them.
fn tables(header: &Header, block: usize) -> Vec<Arc<FileTable>> {
    let (first, count) = header.clients;
    let table = |name: &str, fileset: &Fileset, client| {
        Arc::new(FileTable::new(name, fileset, client, header.fileset_seed, Some(block)))
    };
    let filesets = header.workload.filesets.iter();
    let of = |(name, fileset): (&String, &Fileset)| -> Vec<_> {
        match fileset.sharing {
            Sharing::Shared => vec![table(name, fileset, None)],
            Sharing::Private => (first..first.saturating_add(count))
                .map(|client| table(name, fileset, Some(client)))
                .collect(),
        }
    };
    filesets.flat_map(of).collect()
}
