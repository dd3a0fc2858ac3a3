//! `leasehold run`: a command under a lock.
//!
//! Two processes take part. `run` holds the lease; a *keeper*, the same program started again, is the leader of the
//! command's process group and its parent. `run` tells the keeper, after every renewal, until when the command may live;
//! the keeper enforces it, so that even a `run` that was stopped cannot let the command outlive its lease. When `run`
//! dies the connection between them ends, and the keeper kills the whole group, itself included. There is no moment in
//! which the command lives and nobody watches: the keeper waits for the first message before it starts the command.

mod group;
mod keeper;
mod link;
mod terminal;

use std::io::{IsTerminal as _, Write as _};
use std::process::ExitCode;
use std::time::Duration;

use leasehold::{AcquireError, ErrorCode, LeaseGuard, LeaseState, Lost, LostReason};
use leasehold_types::{Class, Mode, OwnerId, ResourceName};
use tokio::signal::unix::{Signal as Arrival, SignalKind, signal};

use crate::client::{Client, Servers};
use crate::commands::election::Candidacy;
use crate::exit::Exit;
use crate::failure::Failure;
use group::Group;
use link::Limits;

pub(crate) use keeper::{KeepPlan, keep};

/// How long `run` tries to reach a server before it says that there is none.
const PATIENCE: Duration = Duration::from_secs(3);
/// Waiting is told to people after this.
const QUIET: Duration = Duration::from_secs(2);
/// An interrupted wait is withdrawn, but nobody waits long for that.
const WITHDRAW: Duration = Duration::from_millis(200);
/// Who has taken over is said if it is known within this.
const NAMING: Duration = Duration::from_millis(200);

/// What to run, under which lock.
pub(crate) struct RunPlan {
    pub(crate) servers: Servers,
    pub(crate) resource: ResourceName,
    pub(crate) owner: OwnerId,
    pub(crate) ttl: Duration,
    /// `None`: until interrupted.
    pub(crate) wait: Option<Duration>,
    pub(crate) mode: Mode,
    pub(crate) limit: Option<u32>,
    pub(crate) class: Class,
    pub(crate) on_lost: Option<String>,
    pub(crate) run_when_unavailable: bool,
    pub(crate) grace: Duration,
    /// Empty only in an election: then leading is all there is to do.
    pub(crate) command: Vec<String>,
    /// With `elect`.
    pub(crate) candidacy: Option<Candidacy>,
}

/// Runs it; the exit code is the command's own, unless the lock decided otherwise.
pub(crate) fn run(plan: RunPlan) -> Result<ExitCode, Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(|error| Failure::Io { what: "cannot start the runtime".into(), error })?;
    let code = runtime.block_on(begin(&plan));
    runtime.shutdown_timeout(Duration::from_millis(100));
    code.map(ExitCode::from)
}

async fn begin(plan: &RunPlan) -> Result<u8, Failure> {
    plan.command.first().map_or(Ok(()), |command| find(command))?;
    let mut signals = Signals::new()?;
    let client = client(plan)?;
    let acquired = tokio::select! {
        biased;
        number = signals.next() => Err(number),
        acquired = acquire(plan, &client) => Ok(acquired),
    };
    let code = match acquired {
        Err(number) => Ok(128 + number),
        Ok(Ok(guard)) => granted(plan, guard, &mut signals).await,
        Ok(Err(AcquireError::Unavailable(_))) if plan.run_when_unavailable => {
            unguarded(plan, &mut signals).await
        }
        Ok(Err(AcquireError::Unavailable(error))) => Err(unavailable(plan, &error).await),
        Ok(Err(error)) => Ok(not_acquired(&error)),
    };
    // Lets a withdrawal or a release that is under way leave; the lease ends by itself otherwise. Whoever waits for the end
    // of a holder that lost its lease is told at once: there is nothing to give back, and its time is nearly over.
    if !matches!(code, Ok(code) if code == Exit::LeaseGone as u8) {
        drop(tokio::time::timeout(WITHDRAW, client.close()).await);
    }
    code
}

fn client(plan: &RunPlan) -> Result<leasehold::Client, Failure> {
    let security = plan.servers.first().security().clone();
    let mut builder =
        leasehold::Client::builder().owner(plan.owner.as_str()).patience(PATIENCE).security(security);
    for server in plan.servers.iter() {
        builder = builder.endpoint(server.to_string());
    }
    builder.build().map_err(|error| Failure::Usage(error.to_string()))
}

async fn acquire(plan: &RunPlan, client: &leasehold::Client) -> Result<LeaseGuard, AcquireError> {
    let mut acquire = client.acquire(plan.resource.as_str()).ttl(plan.ttl).class(plan.class);
    acquire = match (plan.mode, plan.limit) {
        (Mode::Exclusive, _) => acquire,
        (Mode::Shared, _) => acquire.shared(),
        (Mode::Semaphore, limit) => acquire.semaphore(limit.unwrap_or(1)),
    };
    if let Some(wait) = plan.wait {
        acquire = acquire.wait(wait);
    }
    if let Some(value) = plan.candidacy.as_ref().and_then(|candidacy| candidacy.value.as_ref()) {
        acquire = acquire.value(value);
    }
    let mut acquired = std::pin::pin!(acquire.into_future());
    tokio::select! {
        biased;
        acquired = acquired.as_mut() => return acquired,
        () = tokio::time::sleep(QUIET) => {}
    }
    if std::io::stderr().is_terminal() {
        tell(&format!("waiting for {}; Ctrl-C to give up", plan.resource));
    }
    acquired.await
}

/// Nobody answered, or somebody who is no server of ours.
async fn unavailable(plan: &RunPlan, error: &str) -> Failure {
    let stranger = Client::new(plan.servers.clone()).stranger().await;
    stranger.unwrap_or_else(|| plan.servers.unreachable(error))
}

fn not_acquired(error: &AcquireError) -> u8 {
    let exit = match error {
        AcquireError::NotAcquired(_) => Exit::NotAcquired,
        AcquireError::Lost(_) => Exit::LeaseGone,
        AcquireError::Invalid(_) => Exit::Usage,
        AcquireError::Refused(refused) => match refused.code {
            ErrorCode::BadRequest | ErrorCode::ClassNotSupported => Exit::Usage,
            code if code.is_retryable() => Exit::Unavailable,
            _ => Exit::Failed,
        },
        _ => Exit::Failed,
    };
    tell(&error.to_string());
    exit as u8
}

/// Runs the command without a lock, since that was asked for.
async fn unguarded(plan: &RunPlan, signals: &mut Signals) -> Result<u8, Failure> {
    tell(&format!(
        "no lock on {}: the service is not available, and --on-unavailable run was given",
        plan.resource
    ));
    let mut group = Group::start(&plan.command, &environment(plan, None)).await?;
    group.limit(Limits::NONE).await;
    loop {
        tokio::select! {
            ended = group.ended() => return ended,
            number = signals.next() => group.signal(number),
        }
    }
}

/// What follows: the command, or leading alone.
async fn granted(plan: &RunPlan, guard: LeaseGuard, signals: &mut Signals) -> Result<u8, Failure> {
    match &plan.candidacy {
        Some(candidacy) if plan.command.is_empty() => leading(plan, candidacy, guard, signals).await,
        _ => guarded(plan, guard, signals).await,
    }
}

/// Leads until interrupted, and says so; ends before the lease can have ended.
async fn leading(
    plan: &RunPlan,
    candidacy: &Candidacy,
    guard: LeaseGuard,
    signals: &mut Signals,
) -> Result<u8, Failure> {
    candidacy.announce(&plan.owner, &guard)?;
    let unsure = guard.cancelled();
    tokio::select! {
        biased;
        _ = signals.next() => {
            if let Err(error) = guard.release().await {
                tell(&format!("{}: {error}", plan.resource));
            }
            Ok(Exit::Done as u8)
        }
        () = unsure.cancelled() => {
            tell(&guard.why_unsure().to_string());
            Ok(Exit::LeaseGone as u8)
        }
    }
}

/// Runs the command under the lock.
async fn guarded(plan: &RunPlan, guard: LeaseGuard, signals: &mut Signals) -> Result<u8, Failure> {
    if let Some(warning) = guard.warning() {
        tell(warning);
    }
    let mut group = Group::start(&plan.command, &environment(plan, Some(&guard))).await?;
    let outcome = watched(plan, &guard, &mut group, signals).await;
    match outcome {
        Ok(code) => {
            if let Err(error) = guard.release().await {
                tell(&format!("{}: {error}", plan.resource));
            }
            Ok(code)
        }
        Err(Stop::Failed(failure)) => {
            drop(guard.release().await);
            Err(failure)
        }
        Err(Stop::Lost(lost)) => {
            let lost = with_holder(&guard, *lost).await;
            tell(&format!("{lost}; the command was stopped"));
            on_lost(plan, &guard, &lost).await;
            Ok(Exit::LeaseGone as u8)
        }
    }
}

/// The loss with who holds the resource now, if that is known in a moment. The command has been stopped already; a loss
/// that the service did not tell is before anybody else's grant, and is told at once.
async fn with_holder(guard: &LeaseGuard, lost: Lost) -> Lost {
    if lost.reason == LostReason::NotRenewed {
        return lost;
    }
    let named = async {
        loop {
            match guard.state() {
                LeaseState::Lost(named) if named.holder.is_some() => return named,
                _ => tokio::time::sleep(NAMING / 20).await,
            }
        }
    };
    tokio::time::timeout(NAMING, named).await.unwrap_or(lost)
}

/// Why the command did not end by itself.
enum Stop {
    Lost(Box<Lost>),
    Failed(Failure),
}

async fn watched(
    plan: &RunPlan,
    guard: &LeaseGuard,
    group: &mut Group,
    signals: &mut Signals,
) -> Result<u8, Stop> {
    // Often enough that the keeper's limits are never much behind, rarely enough to cost nothing.
    let tick = (plan.ttl / 20).clamp(Duration::from_millis(20), Duration::from_millis(250));
    loop {
        let limits = Limits::of(guard, plan.grace);
        group.limit(limits).await;
        tokio::select! {
            biased;
            ended = group.ended() => return match (ended, guard.state()) {
                // The keeper asked it to end, since its time was up.
                (_, state) if state != LeaseState::Held && limits.term_passed() => {
                    Err(Stop::Lost(Box::new(guard.why_unsure())))
                }
                (Ok(code), _) => Ok(code),
                (Err(failure), _) => Err(Stop::Failed(failure)),
            },
            lost = guard.lost() => {
                group.kill().await;
                return Err(Stop::Lost(Box::new(lost)));
            }
            () = limits.kill_passed() => {
                group.kill().await;
                return Err(Stop::Lost(Box::new(guard.why_unsure())));
            }
            number = signals.next() => group.signal(number),
            () = tokio::time::sleep(tick) => {}
        }
    }
}

/// What the command finds of its lock in its environment. Where there is nothing to say a variable is empty: a nested command
/// must not take that of the lock around it for its own.
fn environment(plan: &RunPlan, guard: Option<&LeaseGuard>) -> [(&'static str, String); 6] {
    let of_guard = |show: fn(&LeaseGuard) -> Option<String>| guard.and_then(show).unwrap_or_default();
    [
        ("LEASEHOLD_RESOURCE", plan.resource.as_str().to_owned()),
        ("LEASEHOLD_OWNER_ID", plan.owner.as_str().to_owned()),
        ("LEASEHOLD_LEASE_ID", of_guard(|guard| Some(guard.lease_id().to_string()))),
        ("LEASEHOLD_EXPIRES_AT", of_guard(|guard| Some(expires_at(guard)))),
        ("LEASEHOLD_FENCING_TOKEN", of_guard(|guard| guard.token().ok().map(|token| token.to_string()))),
        ("LEASEHOLD_SIGNED_TOKEN", of_guard(|guard| guard.signed_token().ok().flatten().map(str::to_owned))),
    ]
}

fn expires_at(guard: &LeaseGuard) -> String {
    let since = guard.expires_at().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    leasehold_api::Timestamp(leasehold_types::WallTime(crate::duration::ms(since))).to_string()
}

/// Runs what the user wants to happen on loss: a line for the shell, after the command is dead.
async fn on_lost(plan: &RunPlan, guard: &LeaseGuard, lost: &Lost) {
    let Some(line) = &plan.on_lost else { return };
    let mut command = tokio::process::Command::new("sh");
    command
        .arg("-c")
        .arg(line)
        .envs(environment(plan, Some(guard)))
        .env("LEASEHOLD_LOST", lost.reason.as_str());
    if let Err(error) = command.status().await {
        tell(&format!("--on-lost: {error}"));
    }
}

/// A command that is not there is told before anybody waits for a lock.
fn find(command: &str) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt as _;
    let runs = |path: &std::path::Path| {
        path.metadata().is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    };
    let found = if command.contains('/') {
        runs(std::path::Path::new(command))
    } else {
        let path = std::env::var_os("PATH").unwrap_or_else(|| "/usr/local/bin:/usr/bin:/bin".into());
        std::env::split_paths(&path).any(|folder| runs(&folder.join(command)))
    };
    if found { Ok(()) } else { Err(Failure::Failed(format!("{command}: no such command"))) }
}

/// One line for people, on standard error: standard output is the command's.
fn tell(line: &str) {
    // Nobody reads it if it is closed.
    drop(writeln!(std::io::stderr(), "leasehold: {line}"));
}

/// The signals that are passed on to the command.
struct Signals(Vec<(u8, Arrival)>);

impl Signals {
    fn new() -> Result<Self, Failure> {
        let kinds = [
            SignalKind::hangup(),
            SignalKind::interrupt(),
            SignalKind::quit(),
            SignalKind::terminate(),
            SignalKind::user_defined1(),
            SignalKind::user_defined2(),
        ];
        let listen = |kind: SignalKind| {
            let number = u8::try_from(kind.as_raw_value()).expect("the numbers of signals are small");
            signal(kind).map(|arrival| (number, arrival))
        };
        let signals = kinds.into_iter().map(listen).collect::<Result<_, _>>();
        signals.map(Self).map_err(|error| Failure::Io { what: "cannot listen for signals".into(), error })
    }

    /// The next one that arrives. Cancel-safe.
    async fn next(&mut self) -> u8 {
        std::future::poll_fn(|cx| {
            for (number, arrival) in &mut self.0 {
                if arrival.poll_recv(cx).is_ready() {
                    return std::task::Poll::Ready(*number);
                }
            }
            std::task::Poll::Pending
        })
        .await
    }
}
