//! Those who live on the loop's own thread.

use leasehold_node::{StopReason, SubmitError};
use tokio::sync::oneshot;

use super::cluster::*;
use super::world::{World, acquire, token, waiting};

fn thread_name() -> String {
    std::thread::current().name().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn whoever_is_there_is_on_the_loops_thread_and_is_answered_like_anybody() {
    let cluster = Cluster::new(1).await;
    let handle = cluster.members[0].handle.clone();
    let (tell, told) = oneshot::channel();
    let asking = handle.clone();
    let work = async move {
        let granted = asking.submit(acquire("r", 1)).await.unwrap();
        let _ = tell.send((thread_name(), token(granted.get())));
    };
    handle.beside_the_loop().expect("a place is free").run(work).await;
    assert_eq!(told.await.unwrap(), ("leasehold-loop".to_owned(), 1));
}

#[tokio::test]
async fn there_is_no_place_beside_a_standby_nor_where_an_append_may_block_the_thread() {
    let cluster = Cluster::new(2).await;
    assert!(
        cluster.members[1].handle.beside_the_loop().is_none(),
        "it forwards, and may have much to replay"
    );
    let world = World::new().await;
    assert!(world.handle.beside_the_loop().is_none(), "its journal is its own");
}

/// The loop waits for them before it goes: what it told them last, they can pass on.
#[tokio::test]
async fn who_is_there_hears_of_the_end_and_takes_its_leave() {
    let mut cluster = Cluster::new(1).await;
    let member = cluster.members.remove(0);
    member.grant("r", 1).await;
    let (asking, beside) = (member.handle.clone(), member.handle.beside_the_loop().unwrap());
    let (begin, begun) = oneshot::channel();
    let (tell, told) = oneshot::channel();
    let work = beside.run(async move {
        let _ = begin.send(());
        let answer = asking.submit(waiting("r", 2, 60_000)).await;
        // As if it were to be written to a socket that takes its time.
        for _ in 0..100 {
            tokio::task::yield_now().await;
        }
        let _ = tell.send(answer.map(drop));
    });
    let work = tokio::spawn(work);
    begun.await.unwrap();
    assert_eq!(member.shut_down().await, StopReason::Shutdown);
    assert_eq!(told.await.expect("it was not cut off"), Err(SubmitError::ShuttingDown));
    work.await.unwrap();
}
