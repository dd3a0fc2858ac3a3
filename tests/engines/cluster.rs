//! Several nodes on one engine, each a process of its own.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use leasehold_testbed::Network;
use leasehold_tests::{Http, Server, binary, free_port, until};
use serde_json::Value;
use tempfile::TempDir;

/// Longer than a take-over on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which program the nodes are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Program {
    /// `leasehold serve`.
    Leasehold,
    /// The same server with a mistake in it, so that a drill can be seen to fail: see `tests/naive`.
    Naive(&'static str),
}

impl Program {
    /// The program and its first argument.
    fn words(self) -> (String, &'static str) {
        match self {
            Self::Leasehold => (binary::path().display().to_string(), "serve"),
            Self::Naive(mistake) => (env!("CARGO_BIN_EXE_leasehold-naive").to_owned(), mistake),
        }
    }
}

/// The nodes of a drill.
pub(crate) struct Cluster {
    program: Program,
    /// The journal as each node reaches it.
    urls: Vec<String>,
    addresses: Vec<SocketAddr>,
    /// Where the nodes run, one at each place in order; `None`: all here.
    network: Option<Arc<Network>>,
    nodes: Vec<Option<Server>>,
    // Declared after the nodes: their logs are still there when one of them tells how it ended.
    dir: TempDir,
}

impl Cluster {
    /// One node for each URL of the journal, all ready.
    pub(crate) fn start(program: Program, urls: Vec<String>) -> Self {
        let addresses = urls.iter().map(|_| SocketAddr::from((Ipv4Addr::LOCALHOST, free_port()))).collect();
        Self::new(program, urls, addresses, None)
    }

    /// One node at each of the first places of a network, all ready.
    pub(crate) fn start_in(network: &Arc<Network>, urls: Vec<String>) -> Self {
        // Ports of a namespace are nobody else's.
        let address = |place| SocketAddr::from((network.place(place).address(), 7_420));
        let addresses = (0..urls.len()).map(address).collect();
        Self::new(Program::Leasehold, urls, addresses, Some(Arc::clone(network)))
    }

    fn new(
        program: Program,
        urls: Vec<String>,
        addresses: Vec<SocketAddr>,
        network: Option<Arc<Network>>,
    ) -> Self {
        let nodes = urls.iter().map(|_| None).collect();
        let mut cluster =
            Self { program, urls, addresses, network, nodes, dir: tempfile::tempdir().unwrap() };
        for index in 0..cluster.len() {
            cluster.start_node(index);
        }
        cluster
    }

    /// Starts a node and waits until it is ready: active, or in reach of the active one.
    pub(crate) fn start_node(&mut self, index: usize) {
        self.spawn_node(index);
        self.node_mut(index).wait_ready();
    }

    /// Starts a node without waiting.
    pub(crate) fn spawn_node(&mut self, index: usize) {
        let (program, first) = self.program.words();
        let mut command = match &self.network {
            Some(network) => network.place(index).command(&program),
            None => Command::new(program),
        };
        command.arg(first);
        // Where the engine can lose what it acknowledged: what is tested here is that it does not come to that.
        command.env("LEASEHOLD_ACCEPT_CORRECTNESS_LOCKS_ON_LOSSY_JOURNAL", "true");
        let open: &[&str] = if self.network.is_some() { &["--insecure"] } else { &[] };
        let more = [&["--journal", &self.urls[index]], open].concat();
        self.nodes[index] = Some(Server::spawn_by(command, self.addresses[index], &self.data(index), &more));
    }

    /// The data directory of a node.
    pub(crate) fn data(&self, index: usize) -> PathBuf {
        self.dir.path().join(format!("node-{index}"))
    }

    pub(crate) fn kill9(&mut self, index: usize) {
        self.nodes[index].take().expect("it runs").kill9();
    }

    /// Stops a node in order and starts it again.
    pub(crate) fn restart_node(&mut self, index: usize) {
        let ended = self.nodes[index].take().expect("it runs").stop();
        assert!(ended.success(), "it stops in order: {ended}");
        self.start_node(index);
    }

    /// Ends all nodes, as crashes would.
    pub(crate) fn kill_all(&mut self) {
        self.nodes.iter_mut().filter_map(Option::take).for_each(Server::kill9);
    }

    pub(crate) fn node(&self, index: usize) -> &Server {
        self.nodes[index].as_ref().expect("it runs")
    }

    pub(crate) fn node_mut(&mut self, index: usize) -> &mut Server {
        self.nodes[index].as_mut().expect("it runs")
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        self.addresses.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.addresses.len()
    }

    /// The active node, once there is one.
    pub(crate) fn active(&self) -> usize {
        until("an active node", PATIENCE, || {
            (0..self.len()).find(|index| self.nodes[*index].is_some() && self.role(*index) == "active")
        })
    }

    /// What a node calls itself; empty if it does not answer.
    pub(crate) fn role(&self, index: usize) -> String {
        self.status(index)["role"].as_str().unwrap_or_default().to_owned()
    }

    /// Waits until the nodes agree: one is active, all others stand by, under one epoch. Gives the epoch.
    pub(crate) fn agreed(&self) -> u64 {
        until("one active node, and nobody who thinks otherwise", PATIENCE, || {
            let all: Vec<_> = (0..self.len()).map(|index| self.status(index)).collect();
            let are = |role: &str| all.iter().filter(|status| status["role"] == role).count();
            let epoch = all[0]["epoch"].as_u64()?;
            let same = all.iter().all(|status| status["epoch"] == epoch);
            (are("active") == 1 && are("standby") == self.len() - 1 && same).then_some(epoch)
        })
    }

    fn status(&self, index: usize) -> Value {
        let status = Http::at(self.addresses[index]).patience(Duration::from_secs(5)).get("/v1/status");
        status.map_or(Value::Null, |status| status.json())
    }

    /// Kills all nodes and has the first replaced by `leasehold` itself, with this URL.
    ///
    /// # Errors
    /// What the node said when it would not serve what the others have left.
    pub(crate) fn take_stock(&mut self, url: &str) -> Result<(), String> {
        self.kill_all();
        (self.program, self.urls[0]) = (Program::Leasehold, url.to_owned());
        self.spawn_node(0);
        until("a node to serve or to end", PATIENCE, || match self.role(0).as_str() {
            "active" => Some(Ok(())),
            _ => self.node_mut(0).ended().map(|_| Err(self.node(0).log())),
        })
    }
}
