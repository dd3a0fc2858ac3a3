//! Histories in files: one JSON object a line.

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::Path;
use std::sync::Mutex;

use crate::checker::{Checker, Verdict, Violation};
use crate::record::Record;

/// Why a file could not be judged.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is not a record.
    #[error("line {line}: {error}")]
    Line {
        /// Which, from 1.
        line: usize,
        /// What is wrong with it.
        error: serde_json::Error,
    },
}

/// What came of a file.
#[derive(Debug)]
pub enum FileVerdict {
    /// Every promise that it can show held.
    Held(Verdict),
    /// One did not.
    Broken {
        /// Which, and how.
        violation: Violation,
        /// The lines that show it: number from 1, and text.
        excerpt: Vec<(usize, String)>,
    },
}

/// Judges the history in a file.
///
/// # Errors
/// See [`FileError`].
pub fn check_file(path: &Path, checker: Checker) -> Result<FileVerdict, FileError> {
    check_lines(BufReader::new(File::open(path)?), checker)
}

/// Judges a history. Lines of several writers need not be in the order of time.
///
/// # Errors
/// See [`FileError`].
pub fn check_lines(lines: impl BufRead, mut checker: Checker) -> Result<FileVerdict, FileError> {
    let mut records: Vec<(usize, String, Record)> = Vec::new();
    for (number, text) in lines.lines().enumerate() {
        let (line, text) = (number + 1, text?);
        if text.trim().is_empty() {
            continue;
        }
        let record = serde_json::from_str(&text).map_err(|error| FileError::Line { line, error })?;
        records.push((line, text, record));
    }
    // Stable, so that what one writer wrote at one time stays in its order.
    records.sort_by_key(|(_, _, record)| record.at());
    let judged = records.iter().try_for_each(|(_, _, record)| checker.take(record));
    match judged.and_then(|()| checker.finish()) {
        Ok(verdict) => Ok(FileVerdict::Held(verdict)),
        Err(violation) => {
            let shown = |index: &u64| {
                let (line, text, _) = records.get(usize::try_from(*index).ok()?)?;
                Some((*line, text.clone()))
            };
            let excerpt = violation.records.iter().filter_map(shown).collect();
            Ok(FileVerdict::Broken { violation, excerpt })
        }
    }
}

/// Writes a history, from any number of threads. A line is handed to the system at once, so that it survives the
/// process.
#[derive(Debug)]
pub struct Writer {
    file: Mutex<BufWriter<File>>,
}

impl Writer {
    /// A new file at this path.
    ///
    /// # Errors
    /// The system's.
    pub fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: Mutex::new(BufWriter::new(File::create(path)?)) })
    }

    /// Adds a record.
    ///
    /// # Errors
    /// The system's; the record may be there in part.
    pub fn write(&self, record: &Record) -> io::Result<()> {
        let mut file = self.file.lock().expect("nobody panics while writing a line");
        serde_json::to_writer(&mut *file, record)?;
        file.write_all(b"\n")?;
        file.flush()
    }
}
