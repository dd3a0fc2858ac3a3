//! Whose directory this is: cluster, epoch, and the marks by which a copy of it is noticed.

use std::io;

use leasehold_journal::{Directory, Lines, LinesError, OpenError, seal};
use leasehold_types::{ClusterId, Epoch, Nonce};

use crate::disk::{Disk, DiskFile};

pub(crate) const IDENTITY: &str = "identity";
const TMP: &str = "identity.tmp";
const TITLE: &str = "leasehold journal";
const VERSION: u32 = 1;
/// Far more than an identity takes; a longer file is none.
const LARGEST: u64 = 64 << 10;

/// How far a journal has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Phase {
    /// Being made: nothing was ever acknowledged.
    Founding,
    /// Being filled from an archive or another journal.
    Importing,
    /// Filled from elsewhere, or mended, or found to be a copy: refused until a recovery has committed a batch.
    Recovering,
    /// In use.
    Ready,
}

impl Phase {
    fn word(self) -> &'static str {
        match self {
            Self::Founding => "founding",
            Self::Importing => "importing",
            Self::Recovering => "recovering",
            Self::Ready => "ready",
        }
    }

    fn parse(word: &str) -> Option<Self> {
        let all = [Self::Founding, Self::Importing, Self::Recovering, Self::Ready];
        all.into_iter().find(|phase| phase.word() == word)
    }
}

/// What the identity file says. It is replaced whole, in one step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Identity {
    pub(crate) cluster: ClusterId,
    pub(crate) phase: Phase,
    pub(crate) epoch: Epoch,
    pub(crate) nonce: Nonce,
}

impl Identity {
    /// Reads the identity; `None` if there is none. Also what shows that the directory is a copy, if anything does.
    pub(crate) fn load(disk: &dyn Disk) -> Result<Option<(Self, Option<String>)>, OpenError> {
        let unavailable = |error| OpenError::Unavailable(format!("{}: {error}", disk.path(IDENTITY)));
        let file = match disk.open(IDENTITY) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unavailable(error)),
        };
        let text = read_text(file.as_ref()).map_err(unavailable)?;
        let parsed = Self::parse(&text).map_err(|error| match error {
            LinesError::TooNew { .. } => OpenError::TooNew(format!("{}: {error}", disk.path(IDENTITY))),
            LinesError::Damaged(detail) => OpenError::Corrupt { place: disk.path(IDENTITY), detail },
        })?;
        let (identity, directory, itself) = parsed;
        let moved = directory.difference(&disk.identity().map_err(unavailable)?);
        let replaced = itself.difference(&file.identity().map_err(unavailable)?);
        let copied = moved.map(|what| format!("the directory is a copy: {what}"));
        let copied =
            copied.or_else(|| replaced.map(|what| format!("{} is a copy: {what}", disk.path(IDENTITY))));
        Ok(Some((identity, copied)))
    }

    /// Stores the identity durably, pinned to this directory and to the new file.
    pub(crate) fn store(&self, disk: &dyn Disk) -> io::Result<()> {
        remove_if_there(disk, TMP)?;
        let file = disk.create(TMP)?;
        let text = self.text(&disk.identity()?, &file.identity()?);
        file.write_at(0, text.as_bytes())?;
        file.sync()?;
        disk.rename(TMP, IDENTITY)?;
        disk.sync()
    }

    fn text(&self, directory: &Directory, itself: &Directory) -> String {
        let mut lines = vec![
            ("cluster", self.cluster.to_string()),
            ("phase", self.phase.word().to_owned()),
            ("epoch", self.epoch.to_string()),
            ("nonce", self.nonce.to_string()),
            ("file-inode", itself.inode.to_string()),
        ];
        lines.extend(itself.born.map(|born| ("file-born", born.to_string())));
        directory.add_to(&mut lines);
        seal(TITLE, VERSION, &lines)
    }

    fn parse(text: &str) -> Result<(Self, Directory, Directory), LinesError> {
        let lines = Lines::read(TITLE, VERSION, text)?;
        let missing = |what: &str| LinesError::Damaged(format!("no line {what}"));
        let phase = Phase::parse(&lines.value::<String>("phase")?).ok_or_else(|| missing("phase"))?;
        let identity = Self {
            cluster: lines.value("cluster")?,
            phase,
            epoch: Epoch(lines.value("epoch")?),
            nonce: lines.value("nonce")?,
        };
        let directory = Directory::from_lines(&lines)?.ok_or_else(|| missing("directory-inode"))?;
        let (inode, born) = (lines.value("file-inode")?, lines.optional("file-born")?);
        Ok((identity, directory, Directory { host: None, inode, born }))
    }
}

fn read_text(file: &dyn DiskFile) -> io::Result<String> {
    let size = usize::try_from(file.size()?.min(LARGEST)).expect("small");
    let mut bytes = vec![0; size];
    let count = file.read_at(0, &mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes[..count]).into_owned())
}

/// Deletes a file if it is there.
pub(crate) fn remove_if_there(disk: &dyn Disk, name: &str) -> io::Result<()> {
    match disk.remove(name) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}
