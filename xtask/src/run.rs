//! Running one program and reading along.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program with its arguments and environment, which can be shown as the line that repeats it.
#[derive(Clone)]
pub(crate) struct Line {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
}

impl Line {
    /// `cargo` with these arguments, split at blanks.
    pub(crate) fn cargo(args: &str) -> Self {
        Self::new("cargo", args)
    }

    /// A program with these arguments, split at blanks.
    pub(crate) fn new(program: &str, args: &str) -> Self {
        let args = args.split_whitespace().map(str::to_owned).collect();
        Self { program: program.into(), args, env: Vec::new() }
    }

    /// One more argument.
    pub(crate) fn arg(mut self, arg: &str) -> Self {
        self.args.push(arg.into());
        self
    }

    /// The same, but only the tests of these names, one after the other.
    pub(crate) fn only_tests(&self, names: &[String]) -> Self {
        let mut line = self.clone();
        if !line.args.iter().any(|arg| arg == "--") {
            line.args.push("--".into());
        }
        if let Some(at) = line.args.iter().position(|arg| arg == "--test-threads") {
            line.args.drain(at..=at + 1);
        }
        line.args.extend(["--exact", "--test-threads", "1"].map(str::to_owned));
        line.args.extend_from_slice(names);
        line
    }

    /// Whether the environment, its own or ours, sets this variable.
    pub(crate) fn sets(&self, name: &str) -> bool {
        self.env.iter().any(|(own, _)| own == name) || std::env::var_os(name).is_some()
    }

    /// One more environment variable.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// What to type to repeat it.
    pub(crate) fn shown(&self) -> String {
        let quoted = |text: &String| match text.contains(char::is_whitespace) {
            true => format!("'{text}'"),
            false => text.clone(),
        };
        let env = self.env.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        env.chain([self.program.clone()]).chain(self.args.iter().map(quoted)).collect::<Vec<_>>().join(" ")
    }

    /// Runs it in the workspace root with our own output. `false` also when it could not be started.
    pub(crate) fn run(&self) -> bool {
        match self.command().status() {
            Ok(status) => status.success(),
            Err(error) => self.not_started(&error),
        }
    }

    /// Runs it, giving each line of output and errors, in the order they were written, to `each` as well as to ours.
    pub(crate) fn run_reading(&self, mut each: impl FnMut(&str)) -> bool {
        let (reader, writer) = std::io::pipe().expect("a process may have one more pipe");
        let second = writer.try_clone().expect("a process may have one more pipe");
        let spawned = self.command().stdout(writer).stderr(second).spawn();
        let mut child = match spawned {
            Ok(child) => child,
            Err(error) => return self.not_started(&error),
        };
        for line in BufReader::new(reader).split(b'\n').map_while(Result::ok) {
            let line = String::from_utf8_lossy(&line);
            println!("{line}");
            each(&line);
        }
        child.wait().is_ok_and(|status| status.success())
    }

    /// Runs it and gives back what it wrote, if it went well.
    pub(crate) fn output(&self) -> Option<String> {
        let output = self.command().stderr(std::process::Stdio::inherit()).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value))).current_dir(root());
        command
    }

    fn not_started(&self, error: &std::io::Error) -> bool {
        eprintln!("cannot start `{}`: {error}", self.program);
        false
    }
}

/// The workspace root.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("xtask lies in the workspace").to_owned()
}

/// The release build of the `leasehold` binary.
pub(crate) fn release_binary() -> PathBuf {
    target().join("release/leasehold")
}

/// The build of it that packages have.
pub(crate) fn dist_binary() -> PathBuf {
    target().join("dist/leasehold")
}

/// Where cargo builds.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}

/// Whether a program of this name can be found.
pub(crate) fn on_path(program: impl AsRef<OsStr>) -> bool {
    let program = program.as_ref();
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).chain(server_directories()).any(|dir| dir.join(program).is_file())
}

/// Where Debian keeps servers, which is not on everybody's PATH.
fn server_directories() -> impl Iterator<Item = PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let postgres = versions.map(|version| version.path().join("bin"));
    ["/usr/sbin", "/usr/local/sbin", "/sbin"].into_iter().map(PathBuf::from).chain(postgres)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_by_name_run_one_after_the_other() {
        let line = Line::cargo("test --test engines -- --nocapture --test-threads 4");
        let again = line.only_tests(&["a::b".into()]);
        let expected = "cargo test --test engines -- --nocapture --exact --test-threads 1 a::b";
        assert_eq!(again.shown(), expected);
        let again = Line::cargo("test --lib").only_tests(&["a::b".into()]);
        assert_eq!(again.shown(), "cargo test --lib -- --exact --test-threads 1 a::b");
    }
}
