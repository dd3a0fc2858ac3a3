//! The session stream: one stream is one session, frames carry batches, requests are pipelined.
//!
//! Opening is idempotent under the client's resume key, so resuming needs no memory here: the table knows the key as
//! long as the session lives, and everything that was not answered is asked again under the same lease ids. What this
//! side does for a broken stream is to keep its waiting acquires in the queue ([`Work::outlive`]): the one that is
//! asked again takes the place of the first, and without a resume they end with the session.

mod answer;
mod held;
mod pipeline;
mod request;

use std::sync::Arc;

use futures_util::stream::unfold;
use futures_util::{Stream, TryStreamExt};
use leasehold_api::{ErrorCode, Problem};
use leasehold_core::{Command, Reply};
use leasehold_proto::v1 as pb;
use leasehold_types::SessionId;
use tokio::sync::mpsc;
use tonic::{Status, Streaming};

use super::losses::{Loss, LossSender};
use super::{convert, problem};
use crate::http::{App, convert as http_convert, draining, unexpected};
use pipeline::Pipeline;
use request::Done;

pub(super) use request::note_expired;

/// Frames that wait to be written. More would only add delay: a client that does not read is not answered faster.
const FRAMES: usize = 8;
/// Answers in one frame where an append blocks the loop: while the client reads them, and its tasks ask again, the next
/// are put into words, and what was asked is decided. On an engine, which takes as long for one as for all, whoever asks
/// again early would have an append to themselves; there everything that one commit answers is one frame.
const AT_ONCE: usize = 32;
/// A resume key of fewer characters could be guessed.
const RESUME_KEY_LEAST: usize = 16;

/// Serves a stream; what is returned are its frames.
pub(super) fn start(
    app: Arc<App>,
    inbound: Streaming<pb::ClientFrame>,
) -> impl Stream<Item = Result<pb::ServerFrame, Status>> + Send {
    let (out, frames) = mpsc::channel(FRAMES);
    tokio::spawn(serve(app, inbound, out));
    unfold(frames, |mut frames| async { frames.recv().await.map(|frame| (frame, frames)) })
}

type Out = mpsc::Sender<Result<pb::ServerFrame, Status>>;

async fn serve(app: Arc<App>, mut inbound: Streaming<pb::ClientFrame>, out: Out) {
    let first = match inbound.try_next().await {
        Ok(Some(frame)) => frame,
        Ok(None) | Err(_) => return,
    };
    match Work::open(app, first.open.clone()).await {
        Ok((work, opening)) => work.run(first, opening, inbound, out).await,
        // Nobody reads it if the client is gone.
        Err(refused) => drop(out.send(Err(problem::status(refused))).await),
    }
}

/// How the serving of a stream ended.
enum End {
    /// The client closed the session.
    Closed,
    /// The stream broke, or the server shuts down: the session lives on until it is resumed or its time is over.
    Broken,
}

/// One stream that is served.
struct Work {
    app: Arc<App>,
    session: SessionId,
    epoch: u64,
    /// Answers in one frame.
    at_once: usize,
    pipeline: Pipeline,
    losses: LossSender,
    lost: mpsc::UnboundedReceiver<Loss>,
}

impl Work {
    /// Opens or resumes; gives the first frame.
    async fn open(app: Arc<App>, open: Option<pb::Open>) -> Result<(Self, pb::ServerFrame), Problem> {
        let open = open.ok_or_else(|| http_convert::bad_field("open", "the first frame must have it"))?;
        if open.resume_key.len() < RESUME_KEY_LEAST {
            return Err(http_convert::bad_field("resume_key", "must be random, with at least 16 characters"));
        }
        let key = convert::key(&open.resume_key)?;
        let held = held::leases(&open)?;
        let request = leasehold_api::OpenSessionRequest {
            owner_id: convert::owner(&open.owner_id)?,
            ttl_ms: open.ttl_ms,
            ttl_seconds: None,
            labels: convert::labels(open.labels)?,
        };
        let open = http_convert::open_session(request, &app.limits)?;
        let opened = match app.submit(key, Command::OpenSession(open)).await? {
            Reply::SessionOpened(opened) => opened,
            other => unexpected(&other),
        };
        let status = app.handle.status();
        let (losses, lost) = mpsc::unbounded_channel();
        // Watched before they are asked for, so that nothing falls between the two.
        app.losses.watch(opened.session_id, &losses);
        let gone = held::gone(&app, opened.session_id, held)
            .await
            .inspect_err(|_| app.losses.leave(opened.session_id, &losses))?;
        let answer = pb::Opened {
            session_id: opened.session_id.as_bytes().to_vec().into(),
            cluster_id: status.cluster.to_string(),
            ttl_ms: opened.ttl_ms,
            expires_at_ms: opened.expires_at.0,
        };
        let work = Self {
            at_once: if app.handle.appends_block() { AT_ONCE } else { usize::MAX },
            pipeline: Pipeline::new(Arc::clone(&app), opened.session_id),
            app,
            session: opened.session_id,
            epoch: status.epoch.0,
            losses,
            lost,
        };
        let frame = pb::ServerFrame { opened: Some(answer), losses: gone, ..work.frame() };
        Ok((work, frame))
    }

    async fn run(
        mut self,
        first: pb::ClientFrame,
        opening: pb::ServerFrame,
        inbound: Streaming<pb::ClientFrame>,
        out: Out,
    ) {
        if out.send(Ok(opening)).await.is_ok() {
            let end = match self.take(first) {
                Some(end) => end,
                None => self.talk(inbound, &out).await,
            };
            if matches!(end, End::Closed) {
                self.close(&out).await;
            }
        }
        self.outlive();
    }

    async fn talk(&mut self, mut inbound: Streaming<pb::ClientFrame>, out: &Out) -> End {
        let mut drain = self.app.drain.clone();
        let mut done = Vec::new();
        loop {
            let frame = tokio::select! {
                biased;
                frame = inbound.try_next() => match frame {
                    Ok(Some(frame)) => match self.take(frame) {
                        Some(end) => return end,
                        None => continue,
                    },
                    Ok(None) | Err(_) => return End::Broken,
                },
                () = self.pipeline.done(&mut done) => {
                    if self.tell_answers(&mut done, out).await {
                        continue;
                    }
                    return End::Broken;
                }
                Some(loss) = self.lost.recv() => self.tell_losses(loss),
                () = draining(&mut drain) => {
                    let end = Problem::new(ErrorCode::NotActive, "the node is shutting down");
                    let frame = pb::ServerFrame { end: Some(problem::wire(end)), ..self.frame() };
                    // The client learns the same from the closed connection.
                    drop(out.send(Ok(frame)).await);
                    return End::Broken;
                }
            };
            if out.send(Ok(frame)).await.is_err() {
                return End::Broken;
            }
        }
    }

    fn frame(&self) -> pb::ServerFrame {
        pb::ServerFrame { epoch: self.epoch, ..pb::ServerFrame::default() }
    }

    /// Takes what a client asks, in order.
    fn take(&mut self, frame: pb::ClientFrame) -> Option<End> {
        self.pipeline.take(frame.requests, frame.keep_alive);
        frame.close.then_some(End::Closed)
    }

    /// Tells everything that is answered by now; false if that was the last of the stream, or nobody hears it.
    async fn tell_answers(&mut self, done: &mut Vec<Done>, out: &Out) -> bool {
        let mut done = done.drain(..);
        loop {
            let mut frame = self.frame();
            frame.answers.reserve(done.len().min(self.at_once));
            for done in done.by_ref().take(self.at_once) {
                answer::put(&self.app, done, &mut frame);
                // It confirms what was decided before it (R7): the rest is for the next frame.
                if !frame.kept_alive.is_empty() {
                    break;
                }
            }
            let ends = frame.end.is_some();
            if out.send(Ok(frame)).await.is_err() || ends {
                return false;
            }
            if done.len() == 0 {
                return true;
            }
            // So that it is written before the next one is made.
            tokio::task::yield_now().await;
        }
    }

    /// One frame with everything that is lost by now. A client that has not heard of a grant would take its loss for that
    /// of another's lease and forget it: such a loss is told with the next keep-alive, which comes after the grant.
    fn tell_losses(&mut self, first: Loss) -> pb::ServerFrame {
        let mut frame = self.frame();
        let mut next = Some(first);
        while let Some(loss) = next {
            if !self.pipeline.is_acquiring(loss.lease_id) {
                frame.losses.push(answer::loss(loss.lease_id, &loss.resource, Some(loss.token), loss.reason));
            }
            next = self.lost.try_recv().ok();
        }
        frame
    }

    /// Answers what was asked before the close, and ends the session.
    async fn close(&mut self, out: &Out) {
        let close = Command::CloseSession { session_id: self.session, by_operator: None };
        let closed = self.app.submit(None, close).await;
        let mut frame = self.frame();
        let mut done = Vec::new();
        while self.pipeline.pending() > 0 {
            self.pipeline.done(&mut done).await;
            done.drain(..).for_each(|done| answer::put(&self.app, done, &mut frame));
        }
        frame.end = closed.err().map(problem::wire);
        // A client that has left does not need to hear it.
        drop(out.send(Ok(frame)).await);
    }

    /// Keeps what waits in its place. The session's end, the wait's end or the same acquire asked again ends it.
    fn outlive(mut self) {
        self.lost.close();
        self.app.losses.leave(self.session, &self.losses);
        if self.pipeline.pending() > 0 {
            tokio::spawn(self.pipeline.outlive());
        }
    }
}
