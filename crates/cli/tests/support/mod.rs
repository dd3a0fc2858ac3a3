//! What the tests of the built binary share.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]
#![allow(dead_code, reason = "each test program uses its part")]

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

/// The binary with these arguments.
pub(crate) fn leasehold(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_leasehold"));
    command.args(args).stdin(Stdio::null());
    command
}

/// A process that serves, whatever it serves; it dies with this.
pub(crate) struct Serving {
    process: Child,
    /// Where.
    pub(crate) url: String,
    /// What it said before that.
    pub(crate) said: Vec<String>,
}

impl Serving {
    /// Starts it, and waits for the line that says where it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut process = leasehold(args).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines();
        let mut said = Vec::new();
        let url = loop {
            let line = lines.next().unwrap_or_else(|| panic!("it did not serve: {said:#?}")).unwrap();
            let url =
                line.split("serving on ").nth(1).and_then(|rest| rest.split(['"', ' ', '\u{1b}']).next());
            if let Some(url) = url {
                break url.to_owned();
            }
            said.push(line);
        };
        // The pipe must not fill up.
        std::thread::spawn(move || lines.map_while(Result::ok).for_each(drop));
        Self { process, url, said }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Tells it to read its files again.
    pub(crate) fn hang_up(&self) {
        let pid = rustix::process::Pid::from_child(&self.process);
        rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
    }

    /// As a crash would.
    pub(crate) fn kill(mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have been killed already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Keeps what is put, shows it when asked: a service as it might be anywhere.
pub(crate) fn service() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let kept = Arc::new(Mutex::new(HashMap::new()));
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let kept = kept.clone();
            std::thread::spawn(move || serve(stream.unwrap(), &kept));
        }
    });
    address
}

fn serve(stream: TcpStream, kept: &Mutex<HashMap<String, Vec<u8>>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let mut head = Vec::new();
        while head.last().is_none_or(|line: &String| !line.trim().is_empty()) {
            let mut line = String::new();
            if reader.read_line(&mut line).ok()? == 0 {
                return None;
            }
            head.push(line);
        }
        let length = head.iter().filter_map(|line| {
            line.to_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        });
        let mut body = vec![0; length.sum()];
        reader.read_exact(&mut body).ok()?;
        let path = head[0].split(' ').nth(1)?.to_owned();
        let mut kept = kept.lock().unwrap();
        if head[0].starts_with("PUT") {
            kept.insert(path.clone(), body);
        }
        let shown = kept.get(&path).cloned().unwrap_or_default();
        let answer =
            [format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", shown.len()).into_bytes(), shown]
                .concat();
        reader.get_mut().write_all(&answer).ok()?;
    }
}
