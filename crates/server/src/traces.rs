//! Traces: every request as a span, and inside of it what the node and the journal did for it. Off, unless the settings
//! say where they go; then a request costs one question more.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderValue};
use leasehold_api::Problem;
use leasehold_node::{Clock, Settled, Stations, Trail};
use leasehold_trace::{Kind, OpenSpan, Settings, Span, TRACEPARENT, TraceContext, Tracer, Value};

use crate::config::{Config, ConfigError};

/// `service.name` of a server's spans.
const SERVICE: &str = "leasehold";

tokio::task_local! {
    /// The span of the request that is being answered, where it is traced.
    static PRESENT: TraceContext;
}

/// See the module.
#[derive(Clone)]
pub(crate) struct Traces {
    tracer: Option<Tracer>,
    clock: Arc<dyn Clock>,
}

/// A request of a stream that is traced.
#[derive(Debug)]
pub(crate) struct Traced {
    span: OpenSpan,
    /// Where the loop notes how it fares.
    pub(crate) trail: Arc<Trail>,
}

impl Traces {
    /// As the settings say.
    ///
    /// # Errors
    /// The address of the collector cannot be used.
    pub(crate) fn start(config: &Config, clock: Arc<dyn Clock>) -> Result<Self, ConfigError> {
        let tracer = config.traces.clone().map(|traces| {
            Tracer::start(Settings {
                endpoint: traces.endpoint,
                ratio: traces.ratio,
                service: SERVICE.to_owned(),
                instance: config.node.clone(),
            })
        });
        let tracer = tracer.transpose();
        let tracer = tracer.map_err(|error| ConfigError::new("traces.endpoint", error.to_string()))?;
        Ok(Self { tracer, clock })
    }

    /// Begins the span of a request; the name is made only if there is one.
    pub(crate) fn request(
        &self,
        headers: &HeaderMap,
        name: impl FnOnce() -> Cow<'static, str>,
    ) -> Option<OpenSpan> {
        let tracer = self.tracer.as_ref()?;
        let parent = headers.get(TRACEPARENT).and_then(|value| value.to_str().ok());
        tracer.begin(name(), Kind::Server, parent.and_then(TraceContext::parse))
    }

    /// Begins the span of a request in a stream.
    pub(crate) fn streamed(&self, name: &'static str, traceparent: &str) -> Option<Box<Traced>> {
        let tracer = self.tracer.as_ref()?;
        let span = tracer.begin(name, Kind::Server, TraceContext::parse(traceparent))?;
        Some(Box::new(Traced { span, trail: Arc::default() }))
    }

    /// Ends the span of a request in a stream.
    pub(crate) fn answered(&self, mut traced: Traced, problem: Option<&Problem>) {
        self.tell(traced.span.context(), &traced.trail);
        if let Some(problem) = problem {
            traced.span.fail(problem.to_string());
        }
    }

    /// Tells what the node did for the request of this span.
    pub(crate) fn tell(&self, request: TraceContext, trail: &Trail) {
        let Some(tracer) = &self.tracer else { return };
        let Stations { decided, settled } = trail.stations();
        // Both clocks are read now, and between now and then they went alike.
        let since_1970 = leasehold_trace::now().saturating_sub(self.clock.read().monotonic);
        let record = |name: &'static str, from: Duration, to: Duration, attributes| {
            tracer.record(Span {
                context: request.child(),
                parent: Some(request),
                name: name.into(),
                kind: Kind::Internal,
                began: since_1970 + from,
                ended: since_1970 + to,
                attributes,
                error: None,
            });
        };
        if let Some((from, to)) = decided {
            record("node decide", from, to, Vec::new());
        }
        match settled {
            Some(Settled { slot: Some(slot), began, ended }) => {
                record("journal commit", began, ended, vec![("leasehold.slot", Value::from(slot.0))]);
            }
            Some(Settled { slot: None, began, ended }) => {
                record("journal confirm", began, ended, Vec::new());
            }
            None => {}
        }
    }

    /// Waits, but not for long, until everything has left.
    pub(crate) async fn flush(&self) {
        if let Some(tracer) = &self.tracer {
            tracer.flush().await;
        }
    }
}

impl std::fmt::Debug for Traces {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Traces").field("tracer", &self.tracer).finish_non_exhaustive()
    }
}

/// The span of the request that is being answered, where it is traced.
pub(crate) fn present() -> Option<TraceContext> {
    PRESENT.try_with(|context| *context).ok()
}

/// Does the work of a request that is traced: [`present`] is its span meanwhile.
pub(crate) async fn within<F: Future>(span: &OpenSpan, work: F) -> F::Output {
    PRESENT.scope(span.context(), work).await
}

/// Makes the present span, where there is one, the parent of whatever the next node does.
pub(crate) fn hand_on(headers: &mut HeaderMap) {
    if let Some(context) = present()
        && let Ok(value) = HeaderValue::from_str(&context.to_string())
    {
        headers.insert(TRACEPARENT, value);
    }
}
