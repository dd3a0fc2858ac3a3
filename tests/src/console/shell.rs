//! One bash that runs step after step.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tempfile::TempDir;

use super::PORT;
use crate::{Http, free_port, until};

/// Written after each step, with its exit code.
const MARK: &str = "--end-of-step--";
/// What a reader does where the servers run.
const CTRL_C: &str = "# Ctrl-C in the terminal of the server";
/// A server that a document starts is ready within this.
const READY: Duration = Duration::from_secs(20);
/// No step says nothing for longer.
const SILENT: Duration = Duration::from_secs(120);

/// A shell in a fresh directory, with the binary on its path.
pub(super) struct Shell {
    process: Child,
    input: ChildStdin,
    output: Receiver<String>,
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
            .process_group(0)
            .spawn()
            .unwrap();
        let (input, lines) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (sender, output) = channel();
        // Ends with the shell, and with what the shell leaves running.
        thread::spawn(move || {
            lines
                .split(b'\n')
                .map_while(Result::ok)
                .try_for_each(|line| sender.send(String::from_utf8_lossy(&line).into_owned() + "\n"))
        });
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
        let (output, code) = match command.as_str() {
            CTRL_C => self.step("kill $servers; wait; servers="),
            serve if is_foreground_server(serve) => self.serve(serve),
            other => self.step(other),
        };
        (output.replace(&self.port.to_string(), PORT), code)
    }

    /// Leaves a server running, as in a second terminal; what it logs is then not part of the document. One that ends
    /// instead is shown as any command.
    fn serve(&mut self, command: &str) -> (String, i32) {
        // A function in the background would be a shell with the server below it, which nobody could stop.
        let command = command.replace("cargo run --release --", "leasehold");
        let command = without_comment(&command);
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
            let line = self.output.recv_timeout(SILENT).unwrap_or_else(|error| match error {
                RecvTimeoutError::Disconnected => panic!("bash ended during `{command}`"),
                RecvTimeoutError::Timeout => {
                    // With what it waits for, and what it left running.
                    let _ = kill_process_group(Pid::from_child(&self.process), Signal::KILL);
                    panic!("nothing came for {SILENT:?} during `{command}`, after: {}", lines.concat())
                }
            });
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

/// Nothing can stand behind a comment.
fn without_comment(command: &str) -> &str {
    command.split_once(" #").map_or(command, |(command, _)| command)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What the runner adds would stand in the comment, and the server in the foreground for ever.
    #[test]
    fn a_server_is_started_without_the_comment_behind_it() {
        assert_eq!(without_comment("leasehold serve --data d   # apart"), "leasehold serve --data d  ");
        assert_eq!(without_comment("leasehold serve"), "leasehold serve");
    }
}
