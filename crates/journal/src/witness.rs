//! What a node remembers of its journal, so that it notices when the journal has forgotten (J9).

use std::fs;
use std::io::{self, Write as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::SystemTime;

use leasehold_types::{ClusterId, Epoch, FencingToken, Generation, Nonce, Slot};

use crate::lines::{Lines, LinesError, seal};
use crate::{Hash, OpenError, Opened, ReadError, Reader, Slots, Tail};

const TITLE: &str = "leasehold witness";
const VERSION: u32 = 1;

/// The most that a node has seen of a journal. Stored when it opens the journal and once a second; what it says must be
/// durable in the journal already, else a crash would look like a loss.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Witness {
    /// The journal's id.
    pub cluster: ClusterId,
    /// The last slot and its hash.
    pub tail: Tail,
    /// The epoch.
    pub epoch: Epoch,
    /// The largest fencing token, if there was a grant.
    pub token: Option<FencingToken>,
    /// Where the data directory was, for the embedded journal.
    pub directory: Option<Directory>,
    /// The journal's generation; absent in what versions before this line wrote.
    pub generation: Option<Generation>,
    /// The nonce of the epoch, if this node claimed it itself: when it is still the journal's, nobody else is active.
    pub claimed: Option<Nonce>,
}

/// What tells a directory from a copy of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Directory {
    /// The machine's id, where it has one. Containers often have none; then it is not compared.
    pub host: Option<String>,
    /// The inode.
    pub inode: u64,
    /// Nanoseconds since 1970 at which the directory was made, where the file system tells: inodes are used again.
    pub born: Option<u128>,
}

impl Directory {
    /// The identity of the directory (or file) at this path.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|metadata| Self::from_metadata(&metadata))
    }

    /// The identity of what this was looked up for.
    pub fn from_metadata(metadata: &fs::Metadata) -> Self {
        let born = metadata.created().ok().and_then(|at| at.duration_since(SystemTime::UNIX_EPOCH).ok());
        Self { host: machine_id(), inode: metadata.ino(), born: born.map(|since| since.as_nanos()) }
    }

    /// What is different about a directory that should be this one; `None` if nothing is.
    pub fn difference(&self, now: &Self) -> Option<&'static str> {
        let differ = |a: bool, b: bool| a && b;
        if differ(self.host.is_some() && now.host.is_some(), self.host != now.host) {
            return Some("it is on another machine");
        }
        if self.inode != now.inode || differ(self.born.is_some() && now.born.is_some(), self.born != now.born)
        {
            return Some("it was made anew");
        }
        None
    }
}

/// The machine's id as the system keeps it.
fn machine_id() -> Option<String> {
    let text = fs::read_to_string("/etc/machine-id").ok()?;
    Some(text.trim().to_owned()).filter(|id| !id.is_empty() && !id.contains('\n'))
}

/// What a journal shows of itself now, to be compared with a [`Witness`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Sighting {
    /// The journal's id.
    pub cluster: ClusterId,
    /// The epoch that was current before anything we did.
    pub epoch: Epoch,
    /// The last slot and its hash.
    pub tail: Tail,
    /// The hash at the witness's slot; `None` when that slot was compacted away or is past the tail.
    pub hash_there: Option<Hash>,
    /// Where the data directory is, for the embedded journal.
    pub directory: Option<Directory>,
}

impl Sighting {
    /// What a freshly opened journal shows to `witness`.
    ///
    /// # Errors
    /// The witness's slot could not be read.
    pub async fn of(
        opened: &mut Opened,
        witness: &Witness,
        directory: Option<Directory>,
    ) -> Result<Self, ReadError> {
        let hash_there = Self::hash_at(witness.tail.slot, opened.tail, &mut *opened.reader).await?;
        let epoch = Epoch(opened.epoch.0.saturating_sub(1));
        Ok(Self { cluster: opened.cluster, epoch, tail: opened.tail, hash_there, directory })
    }

    /// The hash at this slot of a journal with this tail; `None` when it was compacted away or is past the tail.
    ///
    /// # Errors
    /// The slot could not be read.
    pub async fn hash_at(slot: Slot, tail: Tail, reader: &mut dyn Reader) -> Result<Option<Hash>, ReadError> {
        if slot >= tail.slot || slot == Slot(0) {
            return Ok((slot == tail.slot).then_some(tail.hash));
        }
        Ok(match reader.slots(slot).await? {
            Slots::Found(found) => found.first().map(|committed| committed.hash()),
            Slots::Compacted { .. } => None,
        })
    }
}

impl Witness {
    /// Compares what was seen with what is there now.
    ///
    /// # Errors
    /// [`OpenError::Regressed`], saying what happened and what to do.
    pub fn check(&self, now: &Sighting) -> Result<(), OpenError> {
        let seen = self.tail;
        let what = if self.cluster != now.cluster {
            return Err(OpenError::Regressed(format!(
                "this node belongs to cluster {}, the journal to cluster {}; {MIXED_UP}. If it is the same \
                 journal, made anew: {ADVICE}",
                self.cluster, now.cluster
            )));
        } else if now.tail.slot < seen.slot {
            format!("it ends at slot {}, but slot {} was already committed", now.tail.slot, seen.slot)
        } else if now.hash_there.is_some_and(|hash| hash != seen.hash) {
            format!("slot {} holds another batch than the one that was committed", seen.slot)
        } else if now.epoch < self.epoch {
            format!("its epoch is {}, but epoch {} was already given out", now.epoch, self.epoch)
        } else if let Some(difference) = self.moved(now) {
            format!("the data directory is a copy: {difference}, so newer writes may exist elsewhere")
        } else {
            return Ok(());
        };
        Err(OpenError::Regressed(format!("{what}; {ADVICE}")))
    }

    /// Compares the largest token that was seen with the largest in the journal: where the witness's slot was compacted away,
    /// this is what is left to compare.
    ///
    /// # Errors
    /// [`OpenError::Regressed`], saying what happened and what to do.
    pub fn check_token(&self, last_token: u64) -> Result<(), OpenError> {
        match self.token.map(FencingToken::get).filter(|seen| last_token < *seen) {
            Some(seen) => Err(OpenError::Regressed(format!(
                "its largest token is {last_token}, but token {seen} was already given out; {ADVICE}"
            ))),
            None => Ok(()),
        }
    }

    /// Whether a journal that shows less than was seen may only lag behind it, as a member of an engine can.
    pub fn may_still_come(&self, now: &Sighting) -> bool {
        self.cluster == now.cluster
            && now.hash_there.is_none_or(|hash| hash == self.tail.hash)
            && (now.tail.slot < self.tail.slot || now.epoch < self.epoch)
    }

    /// What to say of an engine that holds no journal of this name at all.
    pub fn misses_everything(&self) -> OpenError {
        let Self { cluster, tail, .. } = self;
        OpenError::Regressed(format!(
            "there is none of this name, but this node has seen slot {} of cluster {cluster}; {MIXED_UP}. If they do, it \
             is gone: bring the engine's data back, or restore a backup with `leasehold restore`",
            tail.slot
        ))
    }

    /// Whether what was seen has been given up by an operator's `recover`: the journal is of a later generation, and every
    /// token that was seen is below the floor of that recovery, so that none can be given twice. A journal that missed
    /// what was seen is then no loss that nobody knows of.
    pub fn is_given_up_by(&self, generation: Generation, recovered_above: Option<u64>) -> bool {
        let token = self.token.map_or(0, FencingToken::get);
        // The embedded journal has one user, whose witness `recover` itself writes anew.
        self.directory.is_none()
            && self.generation.is_some_and(|seen| seen < generation)
            && recovered_above.is_some_and(|floor| token <= floor)
    }

    fn moved(&self, now: &Sighting) -> Option<&'static str> {
        self.directory.as_ref()?.difference(now.directory.as_ref()?)
    }

    /// Reads the witness at this path; `None` if there is none yet.
    ///
    /// # Errors
    /// It is damaged, too new, or cannot be read. A damaged witness says nothing: look why, then remove it.
    pub fn load(path: &Path) -> Result<Option<Self>, OpenError> {
        match fs::read(path) {
            Ok(bytes) => {
                Self::parse(&String::from_utf8_lossy(&bytes)).map(Some).map_err(|e| in_file(path, e))
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(OpenError::Unavailable(format!("{}: {error}", path.display()))),
        }
    }

    /// Stores the witness at this path in one step: a crash leaves the old one or the new one.
    ///
    /// # Errors
    /// It could not be written; the old one is still there.
    pub fn store(&self, path: &Path) -> io::Result<()> {
        let tmp = path.with_extension("tmp");
        let mut file = fs::File::create(&tmp)?;
        file.write_all(self.text().as_bytes())?;
        file.sync_all()?;
        fs::rename(&tmp, path)?;
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        fs::File::open(parent)?.sync_all()
    }

    fn text(&self) -> String {
        let mut lines = vec![
            ("cluster", self.cluster.to_string()),
            ("slot", self.tail.slot.to_string()),
            ("hash", self.tail.hash.to_string()),
            ("epoch", self.epoch.to_string()),
        ];
        if let Some(token) = self.token {
            lines.push(("token", token.to_string()));
        }
        lines.extend(self.generation.map(|generation| ("generation", generation.to_string())));
        lines.extend(self.claimed.map(|nonce| ("claimed", nonce.to_string())));
        if let Some(directory) = &self.directory {
            directory.add_to(&mut lines);
        }
        seal(TITLE, VERSION, &lines)
    }

    fn parse(text: &str) -> Result<Self, LinesError> {
        let lines = Lines::read(TITLE, VERSION, text)?;
        let token = lines.optional::<u64>("token")?.map(FencingToken::new).transpose();
        Ok(Self {
            cluster: lines.value("cluster")?,
            tail: Tail { slot: Slot(lines.value("slot")?), hash: lines.value("hash")? },
            epoch: Epoch(lines.value("epoch")?),
            token: token.map_err(|error| LinesError::Damaged(error.to_string()))?,
            directory: Directory::from_lines(&lines)?,
            generation: lines.optional("generation")?.map(Generation),
            claimed: lines.optional("claimed")?,
        })
    }
}

impl Directory {
    /// Adds the identity to the lines of a small checked file.
    pub fn add_to(&self, lines: &mut Vec<(&'static str, String)>) {
        lines.push(("directory-inode", self.inode.to_string()));
        lines.extend(self.host.iter().map(|host| ("directory-host", host.clone())));
        lines.extend(self.born.map(|born| ("directory-born", born.to_string())));
    }

    /// Reads the identity back; `None` if the lines have none.
    ///
    /// # Errors
    /// A line is not what is expected.
    pub fn from_lines(lines: &Lines) -> Result<Option<Self>, LinesError> {
        let Some(inode) = lines.optional("directory-inode")? else { return Ok(None) };
        let (host, born) = (lines.optional("directory-host")?, lines.optional("directory-born")?);
        Ok(Some(Self { host, inode, born }))
    }
}

/// What an operator should look at before believing that a journal is gone.
const MIXED_UP: &str = "see that --journal, --cluster and --data belong together";

/// What an operator can do about a regressed journal.
const ADVICE: &str = "fencing tokens could be given out twice, so nothing is served. If the newer journal still \
                      exists, start on that one; if it is lost for good, run `leasehold recover`, which raises the \
                      token floor above everything seen";

fn in_file(path: &Path, error: LinesError) -> OpenError {
    match error {
        LinesError::TooNew { .. } => OpenError::TooNew(format!("{}: {error}", path.display())),
        LinesError::Damaged(detail) => OpenError::Corrupt { place: path.display().to_string(), detail },
    }
}

#[cfg(test)]
#[path = "witness_tests.rs"]
mod tests;
