//! The terminal: taken for the view, and given back as it was, however the view ends.

use std::io::{self, IsTerminal as _, Read as _, Write as _};
use std::time::Duration;

use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;

use crate::failure::Failure;

/// Another screen, no cursor.
const TAKE: &str = "\x1b[?1049h\x1b[?25l";
const GIVE_BACK: &str = "\x1b[?25h\x1b[?1049l";
/// A terminal that does not know its size.
const USUAL: (usize, usize) = (80, 24);

/// What was typed, as far as it matters.
pub(super) enum Key {
    Quit,
    Other,
}

/// A terminal in which single keys are read.
pub(super) struct Screen {
    before: Termios,
    keys: mpsc::UnboundedReceiver<u8>,
    interrupted: Signal,
    terminated: Signal,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Self, Failure> {
        if !(io::stdin().is_terminal() && io::stdout().is_terminal()) {
            return Err(Failure::Usage("top needs a terminal; --once prints one frame".into()));
        }
        let interrupted = signal(SignalKind::interrupt()).map_err(Failure::output)?;
        let terminated = signal(SignalKind::terminate()).map_err(Failure::output)?;
        let before = tcgetattr(io::stdin()).map_err(|error| Failure::output(error.into()))?;
        let mut single = before.clone();
        // Signals stay with the terminal, so that Ctrl-C works even when this program does not.
        single.local_modes.remove(LocalModes::ICANON | LocalModes::ECHO);
        tcsetattr(io::stdin(), OptionalActions::Now, &single)
            .map_err(|error| Failure::output(error.into()))?;
        let screen = Self { before, keys: keys(), interrupted, terminated };
        put(TAKE)?;
        Ok(screen)
    }

    /// Shows a frame that fits.
    pub(super) fn show(&self, frame: impl FnOnce(usize, usize) -> Vec<String>) -> Result<(), Failure> {
        let (columns, rows) = match tcgetwinsize(io::stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => (size.ws_col.into(), size.ws_row.into()),
            _ => USUAL,
        };
        // Every line is cleared as it is written, and then the rest: nothing flickers.
        let lines: String = frame(columns, rows).join("\x1b[K\r\n");
        put(&format!("\x1b[H{lines}\x1b[K\x1b[J"))
    }

    /// The next key, Ctrl-C or TERM; `None` when none came in this time.
    pub(super) async fn key(&mut self, within: Duration) -> Option<Key> {
        tokio::select! {
            key = self.keys.recv() => Some(match key {
                Some(b'q' | b'Q') | None => Key::Quit,
                Some(_) => Key::Other,
            }),
            _ = self.interrupted.recv() => Some(Key::Quit),
            _ = self.terminated.recv() => Some(Key::Quit),
            () = tokio::time::sleep(within) => None,
        }
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A terminal that is gone needs nothing back.
        drop(put(GIVE_BACK));
        let _ = tcsetattr(io::stdin(), OptionalActions::Now, &self.before);
    }
}

/// Reads keys on a thread of its own; it ends with the program or with the terminal.
fn keys() -> mpsc::UnboundedReceiver<u8> {
    let (send, keys) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        for byte in io::stdin().lock().bytes().map_while(Result::ok) {
            if send.send(byte).is_err() {
                return;
            }
        }
    });
    keys
}

fn put(text: &str) -> Result<(), Failure> {
    let mut out = io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).map_err(Failure::output)
}
