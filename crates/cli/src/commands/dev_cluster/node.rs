//! One node of the cluster: this program again, as a server.

use std::path::Path;

use rustix::process::Signal;
use tokio::time::Instant;

use super::process::Process;
use crate::failure::Failure;

/// See the module.
pub(super) struct Node {
    name: String,
    url: String,
    process: Process,
    is_told: bool,
}

impl Node {
    /// Starts it on a free port. The journal's URL goes by the environment: it may have a password in it.
    pub(super) fn start(number: usize, dir: &Path, journal: &str, cluster: &str) -> Result<Self, Failure> {
        let name = format!("node-{number}");
        let program = std::env::current_exe()
            .map_err(|error| Failure::Io { what: "cannot find this program".into(), error })?;
        let data = dir.join(&name);
        let args = ["serve", "--listen", "127.0.0.1:0", "--cluster", cluster, "--data"].map(Into::into);
        let args: Vec<_> = args.into_iter().chain([data.into_os_string()]).collect();
        let variables = [("LEASEHOLD_JOURNAL", journal), ("LEASEHOLD_NODE", &name)];
        let process = Process::start(&program, &args, &variables, dir.join(format!("{name}.log")))?;
        Ok(Self { name, url: String::new(), process, is_told: false })
    }

    /// Waits until it says where it listens.
    pub(super) async fn until_listening(&mut self, give_up: Instant) -> Result<(), Failure> {
        let line = self.process.until_said("\"event\":\"serving\"", give_up).await?;
        let told: serde_json::Value = serde_json::from_str(&line).unwrap_or_default();
        let url = told["url"].as_str().or_else(|| told["fields"]["url"].as_str());
        self.url = url
            .ok_or_else(|| Failure::Failed(format!("{} does not say where it listens: {line}", self.name)))?
            .to_owned();
        Ok(())
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn url(&self) -> &str {
        &self.url
    }

    pub(super) fn pid(&self) -> u32 {
        self.process.pid()
    }

    pub(super) fn log(&self) -> &Path {
        self.process.log()
    }

    /// How it ended, once.
    pub(super) fn ended(&mut self) -> Option<String> {
        let status = self.process.ended()?;
        let is_news = !std::mem::replace(&mut self.is_told, true);
        is_news.then(|| status.to_string())
    }

    /// Whether its end was told.
    pub(super) fn is_gone(&self) -> bool {
        self.is_told
    }

    pub(super) fn ask_to_end(&mut self) {
        self.process.signal(Signal::TERM);
    }

    pub(super) async fn until_ended(&mut self) {
        self.process.until_ended().await;
    }
}
