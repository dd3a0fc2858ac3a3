//! `fence proxy`: a reverse proxy in front of a service that nobody can change.

use std::net::SocketAddr;
use std::sync::Arc;

use leasehold_fence::metrics::FenceMetrics;
use leasehold_fence::proxy::{self, Config, Naming, Proxy, Unmatched, Upstream};
use leasehold_fence::reports::{self, Reports, SendError};
use leasehold_fence::rollout::shared::{Documents, SharedRollout};
use leasehold_fence::rollout::{Rollout, Stage};

use tokio::task::JoinHandle;

use super::args::ProxyArgs;
use super::keys::Keys;
use super::serving::{self, Ending};
use super::{stage, wall_time};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::plan::usage;

/// What to serve, and where.
pub(crate) struct ProxyPlan {
    config: Config,
    keys: Option<Keys>,
    listen: SocketAddr,
    admin: Option<SocketAddr>,
    state: String,
    stage: Stage,
    rollout: Option<String>,
    report_to: Option<String>,
}

impl ProxyPlan {
    pub(super) fn new(args: &ProxyArgs) -> Result<Self, Failure> {
        let upstream = Upstream::parse(&args.upstream)
            .map_err(|error| Failure::Usage(format!("--upstream: {error}")))?;
        let mut config = Config::new(upstream, naming(args)?).drain(args.drain);
        if args.pass_unmatched {
            config.unmatched = Unmatched::Pass;
        }
        let keys = Keys::new(args)?;
        config.checker = keys.as_ref().map(|keys| keys.checker.clone());
        let admin = args.admin.as_deref().map(|text| serving::address("--admin", text, args.insecure));
        Ok(Self {
            config,
            keys,
            listen: serving::address("--listen", &args.listen, args.insecure)?,
            admin: admin.transpose()?,
            rollout: rollout_store(args),
            report_to: args.report_to.as_deref().map(service).transpose()?,
            state: args.state.clone(),
            stage: stage("--stage", &args.stage)?,
        })
    }
}

/// The lock service that is told what was rejected.
fn service(url: &str) -> Result<String, Failure> {
    let parsed = Upstream::parse(url).map_err(|error| Failure::Usage(format!("--report-to: {error}")));
    parsed.map(|_| url.to_owned())
}

/// Where stages are kept: what is in memory is for tests, and shared with nobody.
fn rollout_store(args: &ProxyArgs) -> Option<String> {
    let beside = (!args.state.starts_with("memory:")).then(|| args.state.clone());
    args.rollout.clone().or(beside)
}

/// Path rules in their order, then the header.
fn naming(args: &ProxyArgs) -> Result<Naming, Failure> {
    let rule = |text: &String| {
        let wrong =
            || Failure::Usage(format!("--lock: `{text}` is not of the form /PATH/{{NAME}}=LOCK/{{NAME}}"));
        let (template, name) = text.split_once('=').ok_or_else(wrong)?;
        Naming::path(template, name).map_err(|error| Failure::Usage(format!("--lock: {error}")))
    };
    let mut rules: Vec<Naming> = args.lock.iter().map(rule).collect::<Result<_, _>>()?;
    rules.extend(args.lock_header.as_deref().map(Naming::header).transpose().map_err(usage)?);
    let missing = || Failure::Usage("--lock or --lock-header must say which lock guards a request".into());
    let naming = rules.into_iter().reduce(Naming::or).ok_or_else(missing)?;
    Ok(if args.each_permit { naming.each_permit() } else { naming })
}

/// Serves until it is told to stop.
pub(super) async fn serve(plan: ProxyPlan) -> Result<Exit, Failure> {
    let log = serving::log()?;
    let ending = Ending::new()?;
    let following = plan.keys.map(Keys::follow).transpose()?.map(tokio::spawn);
    let flights =
        proxy::open(&plan.state).await.map_err(|error| Failure::RefusedToStart(error.to_string()))?;
    let metrics = Arc::new(FenceMetrics::default());
    let reports = Arc::new(Reports::new(metrics.clone()));
    let rollout = Arc::new(Rollout::new(plan.stage, reports.clone(), wall_time));
    let reporting = plan.report_to.map(|service| tokio::spawn(report(service, reports, rollout.clone())));
    let keeping = match &plan.rollout {
        Some(store) => Some(tokio::spawn(keep(super::rollout::open(store).await?, rollout.clone()))),
        None => None,
    };
    let listener = serving::listen(plan.listen).await?;
    let admin = match plan.admin {
        Some(address) => Some(serving::listen(address).await?),
        None => None,
    };
    let address = listener.local_addr().map_err(|error| Failure::Io { what: "no address".into(), error })?;
    if let Some(Ok(admin)) = admin.as_ref().map(tokio::net::TcpListener::local_addr) {
        tracing::info!(event = "serving_admin", "metrics on http://{admin}/metrics");
    }
    tracing::info!(event = "serving", stage = %plan.stage, "serving on http://{address}");
    let proxy = Proxy::new(plan.config, flights, rollout, metrics);
    let served = proxy.serve(listener, admin, ending.asked()).await;
    keeping.inspect(JoinHandle::abort);
    reporting.inspect(JoinHandle::abort);
    following.inspect(JoinHandle::abort);
    log.flush();
    served.map_err(|error| Failure::Io { what: "the proxy ended".into(), error })?;
    Ok(Exit::Done)
}

/// Tells the lock service what the fence rejects.
async fn report(service: String, reports: Arc<Reports<Arc<FenceMetrics>>>, rollout: Arc<Rollout>) {
    let credential = std::env::var("LEASEHOLD_CREDENTIAL").ok();
    let failed =
        |error: &SendError| tracing::warn!(event = "report_failed", %error, "the service was not told");
    reports::keep(&reports, &rollout, &service, credential.as_deref(), failed).await;
}

/// Takes stages and overrides over from the roll-out, and hands in what was counted.
async fn keep(shared: SharedRollout<Documents>, rollout: Arc<Rollout>) {
    let failed = |error: &_| tracing::warn!(event = "rollout_unreachable", %error, "stages stay as they are");
    shared.keep(&rollout, wall_time, failed).await;
}
