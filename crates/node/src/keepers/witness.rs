//! Writes down how far the journal was seen to be durable (J9), once a second, on a thread of its own.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread::JoinHandle;

use leasehold_journal::{OpenError, Tail, Witness};
use leasehold_types::FencingToken;

use crate::{Observer, StartError};

/// The witness's name in the data directory.
const FILE: &str = "witness";

/// What a node of this data directory has seen; `None` before the first opening.
pub(crate) fn load_witness(data_dir: &Path) -> Result<Option<Witness>, OpenError> {
    Witness::load(&data_dir.join(FILE))
}

/// Writes the witness.
pub(crate) fn store_witness(data_dir: &Path, witness: &Witness) -> Result<(), StartError> {
    let stored = std::fs::create_dir_all(data_dir).and_then(|()| witness.store(&data_dir.join(FILE)));
    stored.map_err(|error| StartError::Witness(format!("{}: {error}", data_dir.join(FILE).display())))
}

/// The thread.
pub(crate) struct WitnessKeeper {
    marks: SyncSender<(Tail, u64)>,
    thread: JoinHandle<()>,
}

impl WitnessKeeper {
    pub(crate) fn start(
        data_dir: &Path,
        witness: Witness,
        observer: &Arc<dyn Observer>,
    ) -> Result<Self, StartError> {
        // One place: a mark that finds it taken is dropped, and the next second brings a newer one.
        let (marks, inbox) = sync_channel(1);
        let (data_dir, observer) = (data_dir.to_owned(), Arc::clone(observer));
        let builder = std::thread::Builder::new().name("leasehold-witness".to_owned());
        let thread =
            builder.spawn(move || keep(data_dir, witness, &inbox, &*observer)).map_err(StartError::Thread)?;
        Ok(Self { marks, thread })
    }

    /// Tells what is durable; never waits.
    pub(crate) fn tell(&self, tail: Tail, token: u64) {
        match self.marks.try_send((tail, token)) {
            // A thread that is gone has told the observer why.
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }

    /// Tells what is durable for the last time, and waits until it is written.
    pub(crate) fn finish(self, tail: Tail, token: u64) {
        // A thread that is gone has told the observer why.
        let _ = self.marks.send((tail, token));
        self.end();
    }

    /// Waits until everything told is written.
    pub(crate) fn end(self) {
        drop(self.marks);
        self.thread.join().expect("the witness thread does not panic");
    }
}

fn keep(data_dir: PathBuf, mut witness: Witness, inbox: &Receiver<(Tail, u64)>, observer: &dyn Observer) {
    for (tail, token) in inbox {
        let token = FencingToken::new(token).ok().max(witness.token);
        if (tail, token) == (witness.tail, witness.token) {
            continue;
        }
        (witness.tail, witness.token) = (tail, token);
        if let Err(error) = store_witness(&data_dir, &witness) {
            observer.trouble("the witness was not written", &error.to_string());
        }
    }
}
