//! The threads that serve connections. Each has a runtime of its own, and a connection stays on one of them.
//!
//! A call crosses threads twice, to the loop and back. On a runtime with several workers it also woke those that had
//! nothing to do, which looked for work, found that it was done already, and slept again.

use std::future::Future;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// See the module. Dropping it ends the threads, and with them what they still serve.
#[derive(Debug)]
pub(crate) struct Workers(Vec<Worker>);

#[derive(Debug)]
struct Worker {
    runtime: Handle,
    /// Connections that it serves.
    load: Arc<AtomicUsize>,
    /// Dropped, it ends the thread.
    _stay: oneshot::Sender<()>,
}

impl Workers {
    /// One for each core.
    pub(crate) fn start() -> io::Result<Self> {
        Self::start_some(thread::available_parallelism()?.get())
    }

    fn start_some(count: usize) -> io::Result<Self> {
        (0..count).map(|_| Worker::start()).collect::<Result<_, _>>().map(Self)
    }

    /// Serves a connection on the thread that has the fewest.
    pub(crate) fn spawn(
        &self,
        connections: &mut JoinSet<()>,
        serve: impl Future<Output = ()> + Send + 'static,
    ) {
        let worker = self.0.iter().min_by_key(|worker| worker.load.load(Relaxed)).expect("there is a core");
        let served = Served::by(worker);
        let task = async move {
            serve.await;
            drop(served);
        };
        connections.spawn_on(task, &worker.runtime);
    }
}

impl Worker {
    fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stay, gone) = oneshot::channel::<()>();
        let work = move || {
            // It is only ever dropped.
            let _ = runtime.block_on(gone);
            // A task that is stuck in the disk must not hold the process up.
            runtime.shutdown_background();
        };
        thread::Builder::new().name("leasehold-io".to_owned()).spawn(work)?;
        Ok(Self { runtime: handle, load: Arc::default(), _stay: stay })
    }
}

/// A connection that is being served.
struct Served(Arc<AtomicUsize>);

impl Served {
    fn by(worker: &Worker) -> Self {
        worker.load.fetch_add(1, Relaxed);
        Self(Arc::clone(&worker.load))
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use std::future::pending;

    use tokio::sync::mpsc;

    use super::*;

    /// Spawns a task that tells its thread and then does as told.
    async fn thread_of(
        workers: &Workers,
        connections: &mut JoinSet<()>,
        then: impl Future<Output = ()> + Send + 'static,
    ) -> thread::ThreadId {
        let (tell, mut told) = mpsc::channel(1);
        workers.spawn(connections, async move {
            tell.send(thread::current().id()).await.expect("the test waits for it");
            then.await;
        });
        told.recv().await.expect("it begins")
    }

    #[tokio::test]
    async fn connections_go_where_there_are_the_fewest() {
        let (workers, mut connections) = (Workers::start_some(2).unwrap(), JoinSet::new());
        let (leave, left) = oneshot::channel::<()>();
        let first = thread_of(&workers, &mut connections, async { drop(left.await) }).await;
        let second = thread_of(&workers, &mut connections, pending()).await;
        assert_ne!(first, second);
        drop(leave);
        assert!(connections.join_next().await.is_some_and(|ended| ended.is_ok()));
        assert_eq!(thread_of(&workers, &mut connections, pending()).await, first, "the other still has one");
    }

    #[tokio::test]
    async fn what_is_served_ends_with_its_thread() {
        let (workers, mut connections) = (Workers::start_some(1).unwrap(), JoinSet::new());
        thread_of(&workers, &mut connections, pending()).await;
        drop(workers);
        assert!(
            connections.join_next().await.is_some_and(|ended| ended.is_err_and(|error| error.is_cancelled()))
        );
    }
}
