//! The results directory, opened for writing or read whole.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use benchmaster_record::environment::Environment;
use jiff::Timestamp;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Transaction, TransactionBehavior, params};

use crate::directory::{self, DATABASE, Lock, TRACES};
use crate::error::{At, CreateError, DatabaseError, LoadError, OpenError, WriteError};
use crate::rows::{self, RowError};
use crate::schema;
use benchmaster_record::results::{
    BaselineRecord, HookRecord, Response, RunKey, RunRecord, SessionEnd, StageRecord, StudyRecord,
    StudyResults, TreatmentRecord,
};

/// How long to wait for another process that writes; a commit takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A results directory open for writing; no other process can have it open so at the same time.
#[derive(Debug)]
pub struct Store {
    directory: PathBuf,
    database: PathBuf,
    study: StudyRecord,
    connection: Connection,
    _lock: Lock,
}

/// What a scheduler needs to know of a stored run.
#[derive(Debug, Clone, PartialEq)]
pub struct CompletedRun {
    pub key: RunKey,
    /// Position in the order of execution.
    pub position: u32,
    /// Why it failed, if it did.
    pub failure: Option<String>,
    /// Its responses; none if it failed.
    pub responses: Vec<Response>,
}

impl Store {
    /// Makes a results directory for `study`: `study.toml`, byte for byte, and an empty database.
    ///
    /// A process that dies on the way leaves a directory which the next call recognises as unfinished and makes anew.
    ///
    /// # Errors
    /// When the directory holds results or anything else, cannot be written, or the plan contradicts itself.
    pub fn create(directory: &Path, study: &StudyRecord) -> Result<Self, CreateError> {
        let lock = directory::create(directory, &study.text, |path| build(path, study))?;
        let database = directory.join(DATABASE);
        let connection = connect(&database)?;
        Ok(Self { directory: directory.into(), database, study: study.clone(), connection, _lock: lock })
    }

    /// Opens a results directory to continue its study.
    ///
    /// # Errors
    /// When there is none, another process has it open, or the database is damaged or of another schema version.
    pub fn open(directory: &Path) -> Result<Self, OpenError> {
        if !Self::exists(directory) {
            return Err(OpenError::Missing(directory.into()));
        }
        let lock = Lock::take(directory)?;
        let database = directory.join(DATABASE);
        let connection = connect(&database)?;
        schema::check(&connection, &database)?;
        let study = rows::load_study(&connection).at(&database)?;
        Ok(Self { directory: directory.into(), database, study, connection, _lock: lock })
    }

    /// Reads a results directory, also while a run is going on in it: finished runs as of this moment.
    ///
    /// Points of samples (`series` of the samples of each recording) and outputs of attached commands are left out, since
    /// those of a long study may be larger than memory: [`Store::load_run`] reads them.
    ///
    /// # Errors
    /// When there is none, or its database cannot be read, is damaged or of another schema version.
    pub fn load(directory: &Path) -> Result<StudyResults, LoadError> {
        Ok(Reader::open(directory)?.read(rows::load_results)?)
    }

    /// [`Reader::load_run`] for one run.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_run(directory: &Path, key: RunKey) -> Result<Option<RunRecord>, LoadError> {
        Reader::open(directory)?.load_run(key)
    }

    /// Whether `directory` holds the results of a study.
    pub fn exists(directory: &Path) -> bool {
        directory.join(DATABASE).is_file()
    }

    /// Closes the database. Until what is returned is dropped, no other process can be at work in the directory.
    pub(crate) fn close(self) -> Lock {
        self._lock
    }

    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The study and its plan.
    pub fn study(&self) -> &StudyRecord {
        &self.study
    }

    /// Finished runs in order of execution.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub fn completed(&self) -> Result<Vec<CompletedRun>, DatabaseError> {
        rows::all(&self.connection, "SELECT * FROM runs ORDER BY position, run_id", [], |row| {
            Ok(CompletedRun {
                key: rows::key(row)?,
                position: row.get("position")?,
                failure: row.get("failure")?,
                responses: rows::responses(&self.connection, row.get("run_id")?)?,
            })
        })
        .at(&self.database)
    }

    /// Begins a session and returns its number, from 1.
    ///
    /// A run that an earlier session left in flight is noted as that session's lost run, and trace files which belong to
    /// no stored run are removed.
    ///
    /// # Errors
    /// When the database or a left-over trace file cannot be changed.
    pub fn begin_session(
        &mut self,
        command: &str,
        started: Timestamp,
        environment: &BTreeMap<String, Environment>,
    ) -> Result<u32, WriteError> {
        let session = self.write(|transaction| {
            note_lost_run(transaction)?;
            let session = "SELECT coalesce(max(session), 0) + 1 FROM sessions";
            let session: u32 = transaction.query_row(session, [], |row| row.get(0))?;
            let sql = "INSERT INTO sessions (session, started, command) VALUES (?1, ?2, ?3)";
            transaction.execute(sql, params![session, started.to_string(), command])?;
            rows::insert_environments(transaction, session, environment)?;
            Ok(session)
        })?;
        self.remove_leftover_traces()?;
        Ok(session)
    }

    /// Stores the environment of a session in place of the one it has.
    ///
    /// # Errors
    /// When there is no such session or the database refuses.
    pub fn set_environment(
        &mut self,
        session: u32,
        environment: &BTreeMap<String, Environment>,
    ) -> Result<(), WriteError> {
        self.write(|transaction| {
            check_session(transaction, session)?;
            rows::insert_environments(transaction, session, environment)
        })
    }

    /// Stores a command that was run, when it has ended.
    ///
    /// # Errors
    /// When there is no such session or treatment, or the database refuses.
    pub fn add_hook(&mut self, hook: &HookRecord) -> Result<(), WriteError> {
        self.write(|transaction| {
            check_session(transaction, hook.session)?;
            rows::insert_hook(transaction, hook)
        })
    }

    /// Stores what a network is capable of.
    ///
    /// # Errors
    /// When there is no such session, a number is missing, or the database refuses.
    pub fn add_baseline(&mut self, baseline: &BaselineRecord) -> Result<(), WriteError> {
        self.write(|transaction| {
            check_session(transaction, baseline.session)?;
            rows::insert_baseline(transaction, baseline)
        })
    }

    /// Ends a session. A run still marked as in flight is noted as lost.
    ///
    /// # Errors
    /// When there is no such session or the database refuses.
    pub fn end_session(
        &mut self,
        session: u32,
        ended: Timestamp,
        outcome: SessionEnd,
    ) -> Result<(), WriteError> {
        self.write(|transaction| {
            check_session(transaction, session)?;
            note_lost_run(transaction)?;
            let sql = "UPDATE sessions SET ended = ?2, outcome = ?3 WHERE session = ?1";
            transaction.execute(
                sql,
                params![session, ended.to_string(), rows::name_of(&outcome).map_err(RowError::Record)?],
            )?;
            Ok(())
        })
    }

    /// Adds a stage with its new treatments to the study, all of it or nothing. The next session runs it.
    ///
    /// # Errors
    /// When the stage or a treatment does not have the next number, the stage runs a treatment that is not there or one
    /// twice, or the database refuses.
    pub fn add_stage(
        &mut self,
        stage: &StageRecord,
        treatments: &[TreatmentRecord],
    ) -> Result<(), WriteError> {
        let mut study = self.study.clone();
        study.treatments.extend_from_slice(treatments);
        study.stages.push(stage.clone());
        let own = |treatment: &&TreatmentRecord| treatment.stage != stage.number;
        if let Some(treatment) = treatments.iter().find(own) {
            let problem = format!(
                "treatment `{}` is of stage {}, not of stage {}, which it is added with",
                treatment.label, treatment.stage, stage.number
            );
            return Err(WriteError::Record { path: self.database.clone(), problem });
        }
        self.write(|transaction| rows::insert_stage(transaction, &study, treatments.len()))?;
        self.study = study;
        Ok(())
    }

    /// Marks a run as in flight, so that it is known as lost if this process dies before it is committed. The mark is not flushed
    /// to the disk: after a loss of power the run is made again without it.
    ///
    /// # Errors
    /// When the run is stored already, the session or treatment does not exist, or the database refuses.
    pub fn begin_run(&mut self, session: u32, key: RunKey, position: u32) -> Result<(), WriteError> {
        self.check_new(key)?;
        self.flush_commits(false)?;
        let marked = self.write(|transaction| {
            check_session(transaction, session)?;
            let sql = "INSERT OR REPLACE INTO in_flight (slot, session, treatment, replicate, position) \
                       VALUES (0, ?1, ?2, ?3, ?4)";
            transaction.execute(sql, params![session, key.treatment, key.replicate, position])?;
            Ok(())
        });
        self.flush_commits(true)?;
        marked
    }

    /// Whether commits are flushed to the disk. What a process that dies has committed is there in any case.
    fn flush_commits(&self, flushed: bool) -> Result<(), DatabaseError> {
        let level = if flushed { "full" } else { "normal" };
        self.connection.pragma_update(None, "synchronous", level).at(&self.database)
    }

    /// Stores a finished run, whole or not at all, and takes back its mark as in flight. After an error the same run can
    /// be committed again.
    ///
    /// # Errors
    /// When the run is stored already, refers to what does not exist, or the database refuses (disk full, …).
    pub fn commit_run(&mut self, run: &RunRecord) -> Result<(), WriteError> {
        self.check_new(run.key)?;
        self.write(|transaction| {
            check_session(transaction, run.session)?;
            rows::insert_run(transaction, run)?;
            transaction.execute("DELETE FROM in_flight", [])?;
            Ok(())
        })
    }

    /// Does all of `change` in one transaction or nothing of it.
    fn write<T>(
        &mut self,
        change: impl FnOnce(&Transaction<'_>) -> Result<T, RowError>,
    ) -> Result<T, WriteError> {
        let fault = |error: RowError| match error {
            RowError::Sqlite(source) => DatabaseError::new(&self.database, source).into(),
            RowError::Record(problem) => WriteError::Record { path: self.database.clone(), problem },
        };
        let begun = self.connection.transaction_with_behavior(TransactionBehavior::Immediate);
        let transaction = begun.map_err(|e| fault(e.into()))?;
        let value = change(&transaction).map_err(fault)?;
        transaction.commit().map_err(|e| fault(e.into()))?;
        Ok(value)
    }

    fn check_new(&self, key: RunKey) -> Result<(), WriteError> {
        let sql = "SELECT 1 FROM runs WHERE treatment = ?1 AND replicate = ?2";
        let found = self.connection.query_row(sql, [key.treatment, key.replicate], |_| Ok(())).optional();
        if found.at(&self.database)?.is_some() {
            return Err(WriteError::Doubled { path: self.database.clone(), key });
        }
        if key.treatment as usize >= self.study.treatments.len() {
            let problem = format!("the study has no treatment {}", key.treatment);
            return Err(WriteError::Record { path: self.database.clone(), problem });
        }
        Ok(())
    }

    fn remove_leftover_traces(&self) -> Result<(), WriteError> {
        let kept: BTreeSet<PathBuf> =
            rows::all(&self.connection, "SELECT path FROM traces", [], |row| row.get::<_, String>(0))
                .at(&self.database)?
                .into_iter()
                .map(|path| self.directory.join(path))
                .collect();
        let traces = self.directory.join(TRACES);
        let fault = |path: &Path, source| WriteError::Leftover { path: path.into(), source };
        let entries = match fs::read_dir(&traces) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(error) => return Err(fault(&traces, error)),
        };
        for entry in entries {
            let path = entry.map_err(|e| fault(&traces, e))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
            let ours = name.starts_with("run-")
                && (name.ends_with(".parquet") || name.ends_with(".parquet.partial"));
            if ours && !kept.contains(&path) {
                fs::remove_file(&path).map_err(|e| fault(&path, e))?;
            }
        }
        Ok(())
    }
}

/// A results directory open for reading run after run.
#[derive(Debug)]
pub struct Reader {
    database: PathBuf,
    connection: Connection,
}

impl Reader {
    /// Opens a results directory, also while a run is going on in it.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn open(directory: &Path) -> Result<Self, LoadError> {
        if !Store::exists(directory) {
            return Err(LoadError::Missing(directory.into()));
        }
        let database = directory.join(DATABASE);
        let connection = connect_to_read(&database)?;
        schema::check(&connection, &database)?;
        Ok(Self { database, connection })
    }

    /// Reads one finished run whole, with its samples and the outputs of attached commands. `None` when there is no such
    /// run.
    ///
    /// # Errors
    /// As [`Store::load`].
    pub fn load_run(&mut self, key: RunKey) -> Result<Option<RunRecord>, LoadError> {
        Ok(self.read(|connection| rows::load_run(connection, key))?)
    }

    /// Reads in one transaction, so that all tables are of the same moment.
    pub(crate) fn read<T>(
        &mut self,
        read: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        let transaction = self.connection.transaction().at(&self.database)?;
        read(&transaction).at(&self.database)
    }
}

/// Turns the mark of a run in flight into the lost run of its session.
fn note_lost_run(transaction: &Transaction<'_>) -> Result<(), RowError> {
    transaction.execute_batch(
        "UPDATE sessions SET lost_treatment = f.treatment, lost_replicate = f.replicate \
         FROM in_flight f WHERE f.session = sessions.session; DELETE FROM in_flight;",
    )?;
    Ok(())
}

fn check_session(transaction: &Transaction<'_>, session: u32) -> Result<(), RowError> {
    let sql = "SELECT 1 FROM sessions WHERE session = ?1";
    match transaction.query_row(sql, [session], |_| Ok(())).optional()? {
        Some(()) => Ok(()),
        None => Err(RowError::Record(format!("there is no session {session}"))),
    }
}

/// Fills a new database at `path`.
fn build(path: &Path, study: &StudyRecord) -> Result<(), CreateError> {
    let fill = || -> Result<(), RowError> {
        let mut connection = Connection::open(path)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let transaction = connection.transaction()?;
        schema::create(&transaction)?;
        rows::insert_study(&transaction, study)?;
        schema::create_response_view(&transaction)?;
        transaction.commit()?;
        connection.pragma_update(None, "journal_mode", "wal")?;
        connection.close().map_err(|(_, error)| error)?;
        Ok(())
    };
    fill().map_err(|error| match error {
        RowError::Sqlite(source) => DatabaseError::new(path, source).into(),
        RowError::Record(problem) => CreateError::Plan(problem),
    })
}

/// A connection that commits durably.
fn connect(path: &Path) -> Result<Connection, DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).at(path)?;
    connection.busy_timeout(PATIENCE).at(path)?;
    keep_statements(&connection).at(path)?;
    connection.pragma_update(None, "synchronous", "full").at(path)?;
    connection.pragma_update(None, "foreign_keys", true).at(path)?;
    if connection.is_readonly("main").at(path)? {
        return Err(DatabaseError::ReadOnly { path: path.into() });
    }
    // Whatever forbids writing is to show before a run is done, not when it is to be stored.
    connection.execute_batch("BEGIN IMMEDIATE; ROLLBACK").at(path)?;
    Ok(connection)
}

/// Statements are prepared once: there is room for all of a run, and no value that is bound makes SQLite plan one again.
fn keep_statements(connection: &Connection) -> rusqlite::Result<()> {
    connection.set_prepared_statement_cache_capacity(256);
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true).map(drop)
}

/// A connection for reading.
///
/// It is opened for writing where that is allowed (SQLite falls back to reading by itself), because only then can the
/// last one to close the database clear away the write-ahead log; `query_only` keeps it from changing anything.
fn connect_to_read(path: &Path) -> Result<Connection, DatabaseError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let open = || {
        let connection = Connection::open_with_flags(path, flags)?;
        connection.busy_timeout(PATIENCE)?;
        connection.pragma_update(None, "query_only", true)?;
        keep_statements(&connection)?;
        // The first access to the file: fails where the shared memory of the log can be neither found nor made.
        connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
        Ok(connection)
    };
    match open() {
        Ok(connection) => Ok(connection),
        Err(error) => match DatabaseError::new(path, error) {
            DatabaseError::Access { detail, .. } if !has_log(path) => {
                immutable(path).map_err(|_| DatabaseError::Access { path: path.into(), detail })
            }
            error => Err(error),
        },
    }
}

/// Whether the write-ahead log may hold what the database file does not.
fn has_log(path: &Path) -> bool {
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    fs::metadata(log).is_ok_and(|meta| meta.len() > 0)
}

/// Opens a database that nobody can write to, in a directory where no file can be made.
fn immutable(path: &Path) -> rusqlite::Result<Connection> {
    use std::os::unix::ffi::OsStrExt;
    let mut uri = String::from("file:");
    for &byte in path.as_os_str().as_bytes() {
        match byte {
            b'/' | b'.' | b'-' | b'_' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => uri.push(char::from(byte)),
            byte => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags =
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    connection.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(()))?;
    Ok(connection)
}

#[cfg(test)]
mod tests;
