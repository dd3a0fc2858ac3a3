//! One bash that runs step after step.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use tempfile::TempDir;

use super::PORT;
use crate::{Http, free_port, until};

/// Written after each step, with its exit code.
const MARK: &str = "--end-of-step--";
/// A server that a document starts is ready within this.
const READY: Duration = Duration::from_secs(20);

/// A shell in a fresh directory, with the binary on its path.
pub(super) struct Shell {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    port: u16,
    // Removed after the processes in it were stopped.
    _directory: TempDir,
}

impl Shell {
    /// Starts it.
    pub(super) fn start(binary: &Path, variables: &[(&str, String)]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = free_port();
        let bin = binary.parent().expect("the binary lies in a directory");
        let path = std::env::join_paths(
            std::iter::once(bin.to_owned())
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())),
        );
        let mut process = Command::new("bash")
            .args(["--noprofile", "--norc"])
            .current_dir(directory.path())
            .env("PATH", path.unwrap())
            .env("LEASEHOLD_LISTEN", format!("127.0.0.1:{port}"))
            .env("LEASEHOLD_SERVER", format!("http://127.0.0.1:{port}"))
            .env("NO_COLOR", "1")
            .env("USER", "ada")
            .env_remove("LEASEHOLD_DATA")
            .envs(variables.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut shell = Self { process, input, output, port, _directory: directory };
        // `cargo run --release -- ARGS`: the program was built before. Servers end with the shell, however it ends.
        shell.run(
            "exec 2>&1; cargo() { shift 3; leasehold \"$@\"; }; trap 'kill $servers 2>/dev/null; wait' EXIT",
        );
        shell
    }

    /// Runs one command; gives its output with the port of the documents, and its exit code.
    pub(super) fn run(&mut self, command: &str) -> (String, i32) {
        let command = command.replace(PORT, &self.port.to_string());
        let (output, code) = match is_foreground_server(&command) {
            true => self.serve(&command),
            false => self.step(&command),
        };
        (output.replace(&self.port.to_string(), PORT), code)
    }

    /// Leaves a server running, as in a second terminal; what it logs is then not part of the document. One that ends
    /// instead is shown as any command.
    fn serve(&mut self, command: &str) -> (String, i32) {
        // A function in the background would be a shell with the server below it, which nobody could stop.
        let command = command.replace("cargo run --release --", "leasehold");
        let started =
            self.step(&format!("{command} > serve.log 2>&1 & server=$!; servers=\"$servers $server\""));
        let mut http = Http::new(self.port);
        until("the document's server to be ready or to end", READY, || {
            let ready = http.get("/readyz").is_ok_and(|answer| answer.status == 200);
            if ready {
                return Some(started.clone());
            }
            let (_, ended) = self.step("! kill -0 $server 2>/dev/null");
            (ended == 0).then(|| self.step("cat serve.log; wait $server"))
        })
    }

    fn step(&mut self, command: &str) -> (String, i32) {
        writeln!(self.input, "{command}\nprintf '\\n%s %d\\n' {MARK} $?").unwrap();
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            let read = self.output.read_line(&mut line).unwrap();
            assert!(read > 0, "bash ended during `{command}`");
            if let Some(code) = line.strip_prefix(MARK) {
                let code = code.trim().parse().unwrap();
                return (finish(lines), code);
            }
            lines.push(line);
        }
    }
}

/// Without the line break that the mark began with, and without the one that ends the output.
fn finish(lines: Vec<String>) -> String {
    let text = lines.concat();
    let text = text.strip_suffix('\n').unwrap_or(&text);
    text.strip_suffix('\n').unwrap_or(text).to_owned()
}

fn is_foreground_server(command: &str) -> bool {
    let starts =
        ["cargo run --release -- serve", "leasehold serve"].iter().any(|start| command.starts_with(start));
    starts && !command.contains(['&', '|', '>'])
}

impl Drop for Shell {
    fn drop(&mut self) {
        // Servers that the document left running end by the trap.
        let _ = writeln!(self.input, "exit");
        let _ = self.process.wait();
        if !std::thread::panicking() {
            let gone = || TcpStream::connect(("127.0.0.1", self.port)).is_err().then_some(());
            until("the document's servers to end", READY, gone);
        }
    }
}
