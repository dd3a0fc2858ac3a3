//! What a session, its guards and its connection share.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use leasehold_proto::v1 as pb;
use leasehold_types::{LeaseId, ids};
use tokio::sync::{Notify, oneshot, watch};

use super::SessionEnd;
use super::leases::Leases;
use super::wire::Wire;
use crate::client::Settings;
use crate::deadline::{Life, Stamp, ms};
use crate::error::{LostReason, end_reason};
use crate::guard::Held;

/// Losses that one keep-alive says it has seen; the others are for the next one.
const SEEN_ENDED: usize = 5_000;

/// The server that a session began with (K2).
#[derive(Clone, PartialEq, Eq, Debug)]
struct Identity {
    session_id: Vec<u8>,
    cluster: String,
    epoch: u64,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) settings: Arc<Settings>,
    pub(crate) ttl: Duration,
    /// Whoever has it may take the session over, so it is as secret as a lease id.
    resume_key: String,
    life: Mutex<Life>,
    pub(crate) wire: Arc<Wire>,
    /// Told on every confirmation and at the end, for those who watch a deadline.
    changed: watch::Sender<u64>,
    pub(crate) closing: Notify,
    identity: Mutex<Option<Identity>>,
    leases: Leases,
    seen_ended: Mutex<Vec<LeaseId>>,
    confirmations: AtomicU64,
    trouble: Mutex<Option<String>>,
    is_closing: AtomicBool,
    over: OnceLock<SessionEnd>,
}

impl Shared {
    pub(crate) fn new(settings: Arc<Settings>, ttl: Duration) -> Self {
        Self {
            settings,
            ttl,
            resume_key: leasehold_types::SessionId::from_bytes(ids::random()).to_string(),
            life: Mutex::new(Life::new(ttl)),
            wire: Arc::default(),
            changed: watch::Sender::new(0),
            closing: Notify::new(),
            identity: Mutex::default(),
            leases: Leases::default(),
            seen_ended: Mutex::default(),
            confirmations: AtomicU64::new(0),
            trouble: Mutex::default(),
            is_closing: AtomicBool::new(false),
            over: OnceLock::new(),
        }
    }

    pub(crate) fn life(&self) -> MutexGuard<'_, Life> {
        lock(&self.life)
    }

    /// Completes on the next confirmation, or at the end.
    pub(crate) fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    /// How long an answer is waited for before the connection counts as broken: short enough for several tries before
    /// the deadline.
    pub(super) fn answer_patience(&self) -> Duration {
        (self.ttl / 4).clamp(Duration::from_millis(200), Duration::from_secs(5))
    }

    pub(super) fn confirmations(&self) -> u64 {
        self.confirmations.load(Relaxed)
    }

    pub(super) fn renewal_due(&self, jitter: f64) -> Stamp {
        self.life().renewal_due(jitter)
    }

    /// What opens this session, the first time and on every later connection.
    pub(super) fn opening(&self) -> pb::Open {
        pb::Open {
            resume_key: self.resume_key.clone(),
            owner_id: self.settings.owner.clone(),
            ttl_ms: Some(ms(self.ttl)),
            labels: self.settings.labels.clone(),
            held: self.leases.ids().iter().map(lease_bytes).collect(),
        }
    }

    /// A keep-alive with what there is to report; its number is the wire's affair.
    pub(super) fn report(&self) -> pb::KeepAlive {
        let report = self.life().take_report();
        let seen_ended = lock(&self.seen_ended).iter().take(SEEN_ENDED).map(lease_bytes).collect();
        let mut last_error = report.last_error.unwrap_or_default().replace(char::is_control, " ");
        while last_error.len() > leasehold_types::limits::ERROR_TEXT_BYTES {
            last_error.pop();
        }
        pb::KeepAlive {
            id: 0,
            report: Some(pb::RenewalReport {
                missed: report.missed,
                last_error,
                max_gap_ms: ms(report.max_gap),
                expired_while_executing: self.settings.expired_while_executing.swap(0, Relaxed),
            }),
            seen_ended,
        }
    }

    /// The connection is gone, and with it perhaps what was reported through it.
    pub(super) fn disconnected(&self) {
        for report in self.wire.disconnect() {
            self.settings.expired_while_executing.fetch_add(report.expired_while_executing, Relaxed);
            self.life().pause(Duration::from_millis(report.max_gap_ms));
        }
    }

    /// The service opened or resumed the session.
    pub(super) fn opened(&self, opened: &pb::Opened, epoch: u64, sent: Stamp) -> Result<(), SessionEnd> {
        let found =
            Identity { session_id: opened.session_id.to_vec(), cluster: opened.cluster_id.clone(), epoch };
        {
            let mut identity = lock(&self.identity);
            match &*identity {
                Some(known) if known.cluster != found.cluster => {
                    let (expected, found) = (known.cluster.clone(), found.cluster);
                    return Err(SessionEnd::OtherCluster { expected, found });
                }
                // The key was forgotten, so the session had ended: this is another one, with nothing in it.
                Some(known) if known.session_id != found.session_id => return Err(SessionEnd::Ended),
                _ => {}
            }
            let epoch = identity.as_ref().map_or(epoch, |known| known.epoch.max(epoch));
            *identity = Some(Identity { epoch, ..found });
        }
        *lock(&self.trouble) = None;
        self.confirmed(sent, opened.ttl_ms);
        Ok(())
    }

    /// Answers from an older epoch than one already seen are not trusted (K2).
    pub(super) fn check_epoch(&self, epoch: u64) -> Result<(), String> {
        match lock(&self.identity).as_mut() {
            Some(known) if epoch < known.epoch => {
                Err(format!("epoch {epoch} answers after epoch {}", known.epoch))
            }
            Some(known) => {
                known.epoch = epoch;
                Ok(())
            }
            None => Ok(()),
        }
    }

    /// A keep-alive is confirmed; gives those who wait for that, or nothing if this connection has sent no such one.
    pub(super) fn kept_alive(&self, kept: &pb::KeptAlive) -> Option<Vec<oneshot::Sender<()>>> {
        let (sent, waiters) = self.wire.kept_alive(kept.id)?;
        let mut seen_ended = lock(&self.seen_ended);
        let told = seen_ended.len().min(SEEN_ENDED);
        seen_ended.drain(..told);
        drop(seen_ended);
        self.confirmed(sent, kept.ttl_ms);
        Some(waiters)
    }

    fn confirmed(&self, sent: Stamp, ttl_ms: u64) {
        self.life().confirm(sent, Duration::from_millis(ttl_ms));
        self.confirmations.fetch_add(1, Relaxed);
        self.changed.send_modify(|count| *count += 1);
    }

    pub(super) fn miss(&self, error: &str) {
        self.life().miss(error);
        *lock(&self.trouble) = Some(error.to_owned());
    }

    pub(super) fn pause(&self, gap: Duration) {
        self.life().pause(gap);
    }

    /// A lease is lost under the hands of its holder. One whose time ran out is reported with the next keep-alive, of
    /// this session or of the next one of this client.
    pub(crate) fn lost_while_executing(&self, reason: LostReason) {
        let ran_out = match reason {
            LostReason::NotRenewed | LostReason::Expired => true,
            LostReason::SessionEnded => !self.is_closing.load(Relaxed),
            LostReason::Forced | LostReason::Released | LostReason::Unknown => false,
        };
        if ran_out {
            self.settings.expired_while_executing.fetch_add(1, Relaxed);
        }
    }

    /// A lease of this session ended without its holder.
    pub(super) fn lost(&self, loss: &pb::Loss) {
        let Ok(bytes) = <[u8; 16]>::try_from(&loss.lease_id[..]) else { return };
        let lease_id = LeaseId::from_bytes(bytes);
        let reason = pb::EndReason::try_from(loss.reason).unwrap_or(pb::EndReason::Unknown);
        let reason = LostReason::of(end_reason(reason));
        lock(&self.seen_ended).push(lease_id);
        if let Some(held) = self.leases.lose(lease_id, reason) {
            held.lose(self, reason);
        }
    }

    /// A lease is asked for: its loss is kept for whoever asks, until [`Shared::hold`] or [`Shared::let_go`].
    pub(crate) fn expect_grant(&self, lease_id: LeaseId) {
        self.leases.ask(lease_id);
    }

    /// A granted lease is held from now on, unless its loss was told before: then why.
    pub(crate) fn hold(&self, lease_id: LeaseId, held: &Arc<Held>) -> Result<(), LostReason> {
        self.leases.hold(lease_id, held)
    }

    /// Whether there is no room for one more lease.
    pub(crate) fn is_full(&self) -> bool {
        self.leases.is_full()
    }

    pub(crate) fn let_go(&self, lease_id: LeaseId) {
        self.leases.remove(lease_id);
    }

    /// What is wrong, for people.
    pub(crate) fn trouble(&self) -> String {
        lock(&self.trouble).clone().unwrap_or_else(|| "no answer in time".to_owned())
    }

    /// Closes: from now on nothing of this session counts as held here.
    pub(crate) fn begin_close(&self) {
        self.is_closing.store(true, Relaxed);
        self.wire.close();
        self.closing.notify_one();
    }

    /// The session is over: every lease of it is lost, every caller is told.
    pub(super) fn end(&self, end: &SessionEnd) {
        if self.over.set(end.clone()).is_err() {
            return;
        }
        self.wire.end(end);
        for held in self.leases.take() {
            held.lose(self, LostReason::SessionEnded);
        }
        self.changed.send_modify(|count| *count += 1);
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get().is_some() || self.is_closing.load(Relaxed)
    }

    pub(crate) fn why_over(&self) -> SessionEnd {
        self.over.get().cloned().unwrap_or(SessionEnd::Closed)
    }

    pub(crate) async fn until_over(&self) {
        let mut changed = self.subscribe();
        while self.over.get().is_none() {
            if changed.changed().await.is_err() {
                return;
            }
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("ttl", &self.ttl)
            .field("over", &self.over.get())
            .finish_non_exhaustive()
    }
}

/// A lease id as it is sent.
pub(crate) fn lease_bytes(id: &LeaseId) -> Bytes {
    // Encoding clones it; of bytes that have an owner that is only a count.
    Bytes::from_owner(*id.as_bytes())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("nothing panics while it holds a lock of the session")
}
