//! Elections through the client.
#![allow(clippy::unwrap_used, reason = "whatever fails, fails the test")]

use std::time::Duration;

use leasehold::testing::TestServer;
use leasehold::{
    AcquireError, Client, HandOverError, Leader, LeaderChange, Leadership, LostReason, Observer,
};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(60);

fn candidate(server: &TestServer, owner: &str) -> Client {
    Client::builder().endpoint(server.url()).owner(owner).build().unwrap()
}

/// Stands, and is known to.
async fn standing(
    server: &TestServer,
    owner: &str,
    place: usize,
) -> JoinHandle<Result<Leadership, AcquireError>> {
    let campaign = candidate(server, owner).election("jobs").campaign();
    let standing = tokio::spawn(campaign.into_future());
    server.until_waiters("election/jobs", place).await;
    standing
}

async fn next(observer: &mut Observer) -> LeaderChange {
    timeout(PATIENCE, observer.next()).await.expect("a change")
}

async fn leader(observer: &mut Observer) -> Leader {
    match next(observer).await {
        LeaderChange::Leads(leader) => leader,
        other => panic!("somebody leads: {other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn followers_learn_the_leader_its_value_and_its_term() {
    let server = TestServer::start().await;
    let election = candidate(&server, "ada").election("jobs");
    let mut observer = candidate(&server, "follower").election("jobs").observe();
    assert_eq!(next(&mut observer).await, LeaderChange::Vacant { last_term: None });
    let leadership = election.campaign().value("host:1").await.unwrap();
    let seen = leader(&mut observer).await;
    assert_eq!((seen.owner.as_str(), seen.value.as_deref()), ("ada", Some("host:1")));
    assert_eq!(seen.term, leadership.term().unwrap());
    leadership.proclaim("host:2").await.unwrap();
    assert_eq!(leader(&mut observer).await.value.as_deref(), Some("host:2"));
    let shown = election.standing().await.unwrap();
    assert_eq!((shown.leader.map(|leader| leader.term), shown.candidates.len()), (Some(seen.term), 0));
    leadership.resign().await.unwrap();
    assert_eq!(next(&mut observer).await, LeaderChange::Vacant { last_term: Some(seen.term) });
}

#[tokio::test(flavor = "multi_thread")]
async fn an_observer_outlives_a_restart_and_says_when_nobody_can_be_asked() {
    let mut server = TestServer::start().await;
    let leadership = candidate(&server, "ada").election("jobs").campaign().await.unwrap();
    let mut observer = candidate(&server, "follower").election("jobs").observe();
    let term = leader(&mut observer).await.term;
    server.stop().await;
    assert!(matches!(next(&mut observer).await, LeaderChange::OutOfReach { .. }));
    server.resume().await;
    assert_eq!(leader(&mut observer).await.term, term, "the same leader, in the same term");
    assert_eq!(leadership.term().unwrap(), term);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_question_is_asked_again_until_the_service_can_be_reached() {
    let server = TestServer::start().await;
    let leadership = candidate(&server, "ada").election("jobs").campaign().await.unwrap();
    let election = candidate(&server, "follower").election("jobs");
    server.cut();
    let healed = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.heal();
    };
    let (standing, ()) = tokio::join!(election.standing(), healed);
    assert_eq!(standing.unwrap().leader.map(|leader| leader.term), leadership.term().ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_drains_before_it_releases() {
    let server = TestServer::start().await;
    let leadership = candidate(&server, "ada").election("jobs").campaign().await.unwrap();
    let term = leadership.term().unwrap();
    let next = standing(&server, "ben", 1).await;
    let (shutdown, told) = oneshot::channel::<()>();
    let led = tokio::spawn(leadership.lead(async { drop(told.await) }, async |leadership| {
        leadership.draining().cancelled().await;
        // It still leads while it drains.
        tokio::time::sleep(Duration::from_millis(50)).await;
        leadership.term().map_err(|lost| lost.reason)
    }));
    shutdown.send(()).unwrap();
    assert_eq!(timeout(PATIENCE, led).await.expect("it drains").unwrap().unwrap(), Ok(term));
    let next = timeout(PATIENCE, next).await.expect("the next one leads").unwrap().unwrap();
    assert!(next.term().unwrap() > term);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_leader_that_cannot_be_sure_stops_before_the_next_one_leads() {
    let server = TestServer::start().await;
    let election = candidate(&server, "ada").election("jobs");
    // The margin is a second: the leader is told within it, however busy the machine is.
    let leadership = election.campaign().ttl(Duration::from_secs(6)).await.unwrap();
    let next = tokio::spawn(server.direct_client().election("jobs").campaign().into_future());
    server.until_waiters("election/jobs", 1).await;
    server.cut();
    let leading = leadership.lead(std::future::pending(), async |_| std::future::pending::<()>().await);
    let leading = tokio::spawn(leading);
    timeout(PATIENCE, next).await.expect("the next one leads").unwrap().unwrap();
    assert!(leading.is_finished(), "the leader has stopped before the next one leads");
    assert_eq!(leading.await.unwrap().unwrap_err().reason, LostReason::NotRenewed);
}

#[tokio::test(flavor = "multi_thread")]
async fn leadership_goes_to_the_chosen_candidate_and_stays_when_there_is_none() {
    let server = TestServer::start().await;
    let leadership = candidate(&server, "ada").election("jobs").campaign().await.unwrap();
    let ben = standing(&server, "ben", 1).await;
    let cleo = standing(&server, "cleo", 2).await;
    let leadership = match leadership.hand_over("nobody").await {
        Err(HandOverError::NoCandidate(leadership)) => leadership,
        other => panic!("nobody of that name stands: {other:?}"),
    };
    let term = leadership.term().unwrap();
    leadership.hand_over("cleo").await.unwrap();
    let cleo = timeout(PATIENCE, cleo).await.expect("cleo leads").unwrap().unwrap();
    assert!(cleo.term().unwrap() > term);
    assert!(!ben.is_finished(), "ben keeps his place");
    cleo.resign().await.unwrap();
    timeout(PATIENCE, ben).await.expect("ben leads").unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_campaign_that_does_not_wait_says_who_leads() {
    let server = TestServer::start().await;
    let _leads = candidate(&server, "ada").election("jobs").campaign().await.unwrap();
    match candidate(&server, "ben").election("jobs").campaign().no_wait().await {
        Err(AcquireError::NotAcquired(not)) => assert_eq!(not.holders[0].owner, "ada"),
        other => panic!("{other:?}"),
    }
}
