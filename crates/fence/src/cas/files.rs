//! A store in files, for things on a local disk.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::{CompareAndSet, Versioned};

/// One file for each key in a directory of its own. A put takes an exclusive lock on a lock file, compares, writes a
/// new file beside, syncs it, and renames it over the old one: a reader sees the old document or the new one, a crash
/// leaves one of them.
///
/// For a local disk: locks of network file systems do not deserve the trust. Calls block the thread.
#[derive(Debug, Clone)]
pub struct FileStore {
    directory: PathBuf,
}

impl FileStore {
    /// A store in this directory, which is made if it is not there. It belongs to the store alone.
    ///
    /// # Errors
    /// The directory cannot be made.
    pub fn open(directory: &Path) -> io::Result<Self> {
        fs::create_dir_all(directory)?;
        Ok(Self { directory: directory.to_owned() })
    }

    /// The file of a key. Letters, digits, `-` and `_` stand for themselves, everything else as `%` and two digits, so
    /// that no key leaves the directory and no two keys meet.
    fn path(&self, key: &str) -> PathBuf {
        let one = |byte: u8| match byte {
            b'-' | b'_' | b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => char::from(byte).to_string(),
            _ => format!("%{byte:02X}"),
        };
        let name: String = key.bytes().map(one).collect();
        // File systems take 255 bytes: longer names are cut into directories.
        let parts: Vec<String> =
            name.as_bytes().chunks(200).map(|part| String::from_utf8_lossy(part).into()).collect();
        parts.iter().fold(self.directory.clone(), |path, part| path.join(part)).with_added_extension("fenced")
    }

    fn replace(&self, path: &Path, value: &[u8], version: Option<&Vec<u8>>) -> io::Result<bool> {
        let parent = path.parent().unwrap_or(&self.directory);
        fs::create_dir_all(parent)?;
        let lock = OpenOptions::new().create(true).append(true).open(path.with_added_extension("lock"))?;
        lock.lock()?;
        if existing(path)?.as_ref() != version {
            return Ok(false);
        }
        let fresh = path.with_added_extension("new");
        let mut file = File::create(&fresh)?;
        file.write_all(value)?;
        file.sync_all()?;
        fs::rename(&fresh, path)?;
        File::open(parent)?.sync_all()?;
        Ok(true)
        // The lock ends with the file that holds it.
    }
}

fn existing(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

impl CompareAndSet for FileStore {
    /// The document itself: it has a random number for each put, so it never comes back.
    type Version = Vec<u8>;
    type Error = io::Error;

    async fn read(&self, key: &str) -> io::Result<Option<Versioned<Vec<u8>>>> {
        Ok(existing(&self.path(key))?.map(|bytes| (bytes.clone(), bytes)))
    }

    async fn put_if(&self, key: &str, value: &[u8], version: Option<&Vec<u8>>) -> io::Result<bool> {
        self.replace(&self.path(key), value, version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_key_leaves_the_directory() {
        let store = FileStore { directory: "/d".into() };
        assert_eq!(store.path("../../etc/passwd"), Path::new("/d/%2E%2E%2F%2E%2E%2Fetc%2Fpasswd.fenced"));
        assert_eq!(store.path("a:ü"), Path::new("/d/a%3A%C3%BC.fenced"));
        let long = store.path(&"/".repeat(512));
        assert!(long.iter().all(|part| part.len() < 230), "{}", long.display());
    }
}
