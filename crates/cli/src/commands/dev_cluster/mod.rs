//! `dev-cluster`: several nodes on this machine over one journal, for trying out. Everything it starts ends with it.

mod engine;
mod node;
mod process;

use std::path::PathBuf;
use std::time::Duration;

use leasehold_api::StatusAnswer;
use leasehold_server::JournalConfig;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::args::{DevClusterArgs, DevEngine};
use crate::client::{Call, Client};
use crate::ending::Ending;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::output::{Format, Out};
use crate::plan::{servers, usage};
use engine::PrivateEtcd;
use node::Node;

/// More would only take turns on one machine.
const MOST_NODES: usize = 9;
/// A new cluster on an idle machine takes a second or two.
const READY: Duration = Duration::from_secs(60);
/// How often the nodes are looked after.
const LOOK: Duration = Duration::from_millis(200);

/// What to bring up.
pub(crate) struct DevClusterPlan {
    engine: Engine,
    nodes: usize,
    cluster: String,
    data: Option<PathBuf>,
}

/// Where the journal lives.
enum Engine {
    /// On an engine that runs already.
    Running(String),
    /// On an etcd that is started for it.
    Etcd,
}

impl DevClusterPlan {
    /// Reads what was typed.
    ///
    /// # Errors
    /// [`Failure::Usage`]: there is no engine that several nodes could share.
    pub(crate) fn new(args: DevClusterArgs) -> Result<Self, Failure> {
        let engine = match (args.journal, args.engine) {
            (Some(url), _) if url.starts_with("embedded") => return Err(no_engine(EMBEDDED)),
            (Some(url), _) => Engine::Running(url),
            (None, Some(DevEngine::Etcd)) => Engine::Etcd,
            (None, None) => return Err(no_engine("it needs an engine that several nodes can share")),
        };
        let url = if let Engine::Running(url) = &engine { url } else { "etcd://127.0.0.1" };
        JournalConfig::from_url(url, &args.cluster).map_err(usage)?;
        if args.nodes == 0 || args.nodes > MOST_NODES {
            return Err(Failure::Usage(format!("--nodes: 1 to {MOST_NODES}")));
        }
        Ok(Self { engine, nodes: args.nodes, cluster: args.cluster, data: args.data })
    }
}

const EMBEDDED: &str = "the embedded journal belongs to one node alone: `leasehold serve` is all it needs";

fn no_engine(why: &str) -> Failure {
    let etcd = match engine::etcd_program() {
        Some(_) => "or let it start a private etcd with --engine etcd",
        None => "or install etcd (Debian: etcd-server) and let it start a private one with --engine etcd",
    };
    Failure::Usage(format!("{why}; name an engine with --journal postgres://… (or etcd://…), {etcd}"))
}

/// Brings the cluster up, says where it is, and keeps it until it is interrupted.
pub(crate) async fn dev_cluster(out: &mut Out, plan: DevClusterPlan) -> Result<Exit, Failure> {
    let mut ending = Ending::new()?;
    let place = Place::new(plan.data.as_deref())?;
    let started = async {
        let (engine, url) = match &plan.engine {
            Engine::Running(url) => (None, url.clone()),
            Engine::Etcd => {
                let engine = PrivateEtcd::start(place.path()).await?;
                let url = engine.url();
                (Some(engine), url)
            }
        };
        let start = |number| Node::start(number, place.path(), &url, &plan.cluster);
        let nodes = (1..=plan.nodes).map(start).collect::<Result<Vec<_>, _>>()?;
        let mut running = Running { nodes, _engine: engine };
        running.until_ready().await?;
        Ok::<_, Failure>(running)
    };
    let mut running = tokio::select! {
        started = started => started?,
        () = ending.asked() => return Ok(Exit::Done),
    };
    running.show(out)?;
    let outcome = tokio::select! {
        outcome = running.watch(out) => outcome,
        () = ending.asked() => Ok(Exit::Done),
    };
    running.stop().await;
    outcome
}

/// The directory that everything is in.
enum Place {
    Kept(PathBuf),
    Temporary(tempfile::TempDir),
}

impl Place {
    fn new(data: Option<&std::path::Path>) -> Result<Self, Failure> {
        let failed = |error| Failure::Io { what: "cannot make the data directory".into(), error };
        match data {
            Some(data) => std::fs::create_dir_all(data).map(|()| Self::Kept(data.to_owned())),
            None => tempfile::Builder::new().prefix("leasehold-dev-").tempdir().map(Self::Temporary),
        }
        .map_err(failed)
    }

    fn path(&self) -> &std::path::Path {
        match self {
            Self::Kept(path) => path,
            Self::Temporary(dir) => dir.path(),
        }
    }
}

/// A cluster that runs. Nodes end before their engine: fields are dropped in this order.
struct Running {
    nodes: Vec<Node>,
    _engine: Option<PrivateEtcd>,
}

impl Running {
    /// Waits until every node serves, and one of them is active.
    async fn until_ready(&mut self) -> Result<(), Failure> {
        let give_up = Instant::now() + READY;
        for node in &mut self.nodes {
            node.until_listening(give_up).await?;
        }
        let client = Client::new(servers(&self.urls())?);
        loop {
            let answer = client.call(&Call::get("/v1/status")).await?;
            if answer.read::<StatusAnswer>()?.active_address.is_some() {
                return Ok(());
            }
            if Instant::now() > give_up {
                return Err(Failure::Failed("no node became active in time; look at the logs".into()));
            }
            sleep(LOOK).await;
        }
    }

    fn urls(&self) -> Vec<String> {
        self.nodes.iter().map(|node| node.url().to_owned()).collect()
    }

    fn show(&self, out: &mut Out) -> Result<(), Failure> {
        let all = self.urls().join(",");
        if out.format() == Format::Json {
            let node = |node: &Node| json!({"node": node.name(), "url": node.url(), "pid": node.pid()});
            return out
                .json(&json!({"servers": all, "nodes": self.nodes.iter().map(node).collect::<Vec<_>>()}));
        }
        let cells = |node: &Node| {
            let log = node.log().display().to_string();
            vec![node.name().to_owned(), node.url().to_owned(), node.pid().to_string(), log]
        };
        let rows: Vec<_> = self.nodes.iter().map(cells).collect();
        out.table(&["NODE", "ADDRESS", "PID", "LOG"], &rows)?;
        out.line("")?;
        out.line("In another terminal:")?;
        out.line(&format!("  export LEASEHOLD_SERVER={all}"))?;
        out.line("  leasehold status                       # who is active, who stands by")?;
        out.line("  leasehold run jobs/report -- sleep 60  # and kill -9 the active node meanwhile")?;
        out.line("Ctrl-C ends all of it.")
    }

    /// Tells which nodes end, until none is left.
    async fn watch(&mut self, out: &mut Out) -> Result<Exit, Failure> {
        loop {
            for node in &mut self.nodes {
                if let Some(how) = node.ended() {
                    let (name, log) = (node.name(), node.log().display());
                    let told = format!("{name} ended: {how}; its log is {log}");
                    match out.format() {
                        Format::Table => out.line(&told)?,
                        Format::Json => out.json(&json!({"ended": name, "how": how}))?,
                    }
                }
            }
            if self.nodes.iter().all(Node::is_gone) {
                return Err(Failure::Failed("every node has ended".into()));
            }
            sleep(LOOK).await;
        }
    }

    /// Ends the nodes in order, all at once.
    async fn stop(&mut self) {
        self.nodes.iter_mut().for_each(Node::ask_to_end);
        for node in &mut self.nodes {
            node.until_ended().await;
        }
    }
}
