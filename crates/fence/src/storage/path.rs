//! Paths of files, as callers may name them.

use std::fmt;

/// The longest path.
const PATH_BYTES: usize = 1024;
/// The longest name in it: what file systems take.
const NAME_BYTES: usize = 255;

/// A relative path of plain names: no `..`, no `.`, no empty name, no control characters. What it names lies inside the
/// directory as long as no symbolic link is followed, and none is.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct FilePath(String);

/// A path that is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a file path is relative, of names without `.`, `..`, control characters and backslashes")]
pub struct InvalidPath;

impl FilePath {
    /// Parses a path.
    ///
    /// # Errors
    /// Absolute, too long, or with a name that is none.
    pub fn parse(text: &str) -> Result<Self, InvalidPath> {
        let valid = |name: &str| {
            let plain = !matches!(name, "" | "." | "..") && name.len() <= NAME_BYTES;
            plain && !name.contains(|c: char| c.is_control() || c == '\\')
        };
        if text.len() <= PATH_BYTES && text.split('/').all(valid) {
            return Ok(Self(text.to_owned()));
        }
        Err(InvalidPath)
    }

    /// The path as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The names of the directories, and that of the file.
    pub(super) fn split(&self) -> (impl Iterator<Item = &str>, &str) {
        let (parents, leaf) =
            self.0.rsplit_once('/').map_or((None, self.0.as_str()), |(parents, leaf)| (Some(parents), leaf));
        (parents.into_iter().flat_map(|parents| parents.split('/')), leaf)
    }
}

impl fmt::Display for FilePath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_path_leaves_the_directory() {
        let long = "a/".repeat(600) + "b";
        let name = "n".repeat(256);
        for path in [
            "",
            "/",
            "/etc/passwd",
            "..",
            "a/../b",
            "a/..",
            "./a",
            "a//b",
            "a/",
            "a\0b",
            "a\nb",
            "..\\a",
            &long,
            &name,
        ] {
            assert_eq!(FilePath::parse(path), Err(InvalidPath), "{path:?}");
        }
        for path in ["a", "a/b.txt", "...", "a/..b", "ä/ü", "%2e%2e/a"] {
            assert_eq!(FilePath::parse(path).map(|path| path.to_string()).as_deref(), Ok(path));
        }
    }
}
