//! Where spans begin, and how they reach the one who exports them.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, SystemTime};

use leasehold_types::ids;
use tokio::sync::{mpsc, oneshot};

use crate::context::TraceContext;
use crate::exporter::{self, Endpoint, InvalidEndpoint, Job};
use crate::span::{Kind, OpenSpan, Span};

/// Spans that may wait to be sent: some seconds of a busy server.
const QUEUE: usize = 8_192;
/// How long [`Tracer::flush`] waits at most.
const FLUSH: Duration = Duration::from_secs(2);

/// Where spans go, and which.
#[derive(Clone, PartialEq, Debug)]
pub struct Settings {
    /// The collector's URL, such as `http://127.0.0.1:4318`; `/v1/traces` is added where it has no path.
    pub endpoint: String,
    /// The part of the calls without a trace of their own for which one is begun, from 0 to 1. A call that comes with a
    /// trace is recorded if that one is.
    pub ratio: f64,
    /// `service.name` of every span.
    pub service: String,
    /// `service.instance.id` of every span: the node, or the process.
    pub instance: String,
}

/// The way of spans to the collector. Cheap to clone; the last one ends the task that exports, after what is there.
#[derive(Clone, Debug)]
pub struct Tracer(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    jobs: mpsc::Sender<Job>,
    /// Random numbers below this begin a trace.
    threshold: u64,
    dropped: Arc<AtomicU64>,
}

impl Tracer {
    /// Begins to export, in a task of its own: inside of a tokio runtime. Nothing is sent before there is a span.
    ///
    /// # Errors
    /// The endpoint is not a URL that can be used.
    pub fn start(settings: Settings) -> Result<Self, InvalidEndpoint> {
        let endpoint = Endpoint::parse(&settings.endpoint)?;
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let ratio = settings.ratio.clamp(0.0, 1.0);
        // As a float, 1 gives the largest number there is, and no random one is above that.
        let threshold = (ratio * u64::MAX as f64) as u64;
        tokio::spawn(exporter::run(endpoint, settings, waiting, Arc::clone(&dropped)));
        Ok(Self(Arc::new(Inner { jobs, threshold, dropped })))
    }

    /// Begins a span inside of `parent`, or a new trace; `None` if that one is not recorded.
    pub fn begin(
        &self,
        name: impl Into<Cow<'static, str>>,
        kind: Kind,
        parent: Option<TraceContext>,
    ) -> Option<OpenSpan> {
        let context = match parent {
            Some(parent) => parent.child(),
            None => TraceContext::root(self.is_chosen()),
        };
        if !context.is_sampled() {
            return None;
        }
        let began = now();
        let (attributes, error) = (Vec::new(), None);
        let span = Span { context, parent, name: name.into(), kind, began, ended: began, attributes, error };
        Some(OpenSpan::new(self.clone(), span))
    }

    /// Tells of a span that is over.
    pub fn record(&self, span: Span) {
        if span.context.is_sampled() {
            self.tell(span);
        }
    }

    /// Spans that were lost, because the collector was slow or gone.
    pub fn dropped(&self) -> u64 {
        self.0.dropped.load(Relaxed)
    }

    /// Waits, but not for long, until everything that is over has left.
    pub async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        let flush = async {
            if self.0.jobs.send(Job::Flush(done)).await.is_ok() {
                // An exporter that is gone has nothing more to send.
                drop(flushed.await);
            }
        };
        // A collector that does not answer must not hold up whoever ends.
        drop(tokio::time::timeout(FLUSH, flush).await);
    }

    pub(crate) fn tell(&self, span: Span) {
        if self.0.jobs.try_send(Job::Span(Box::new(span))).is_err() {
            self.0.dropped.fetch_add(1, Relaxed);
        }
    }

    fn is_chosen(&self) -> bool {
        // The first bytes of a random UUID are random.
        let random = ids::random();
        let mut number = [0; 8];
        number[..6].copy_from_slice(&random[..6]);
        u64::from_be_bytes(number) < self.0.threshold
    }
}

/// The time of day, since 1970. Spans of several machines are put side by side with it, and nothing is decided by it.
#[expect(clippy::disallowed_methods, reason = "a span says when it was; no decision is made from it")]
pub fn now() -> Duration {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default()
}
