//! One tenant's flood leaves another its share: what a quiet tenant waits for is counted in commits and in calls, which a
//! busy machine makes slower but not more.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use leasehold_node::Call;
use leasehold_types::TenantName;
use tokio::time::Instant;

use super::hindered::{slow_world, world_behind_a_gate};
use super::world::*;

/// A commit takes as long as on a good disk.
const COMMIT: Duration = Duration::from_millis(3);
/// Calls that the flood has under way: many batches full.
const FLOOD: usize = 4_000;
/// Calls of one tenant in one batch while another asks.
const SHARE: u64 = 256;
/// Callers of the quiet tenant, and calls of each.
const CALLERS: usize = 8;
const CALLS: usize = 25;

fn acquire_of(tenant: &str, resource: &str) -> Call {
    Call { tenant: TenantName::new(tenant).unwrap(), ..acquire_with(resource, |_| {}) }
}

/// What the quiet tenant waited: the slowest of a hundred calls, in commits and in time.
async fn p99(world: &Arc<World>, round: &str) -> (usize, Duration) {
    let callers = (0..CALLERS).map(|caller| {
        let (world, round) = (Arc::clone(world), round.to_owned());
        tokio::spawn(async move {
            let commits = || world.seen.batches.lock().unwrap().len();
            let mut waited = Vec::with_capacity(CALLS);
            for call in 0..CALLS {
                let (before, begun) = (commits(), Instant::now());
                token(&world.ask(acquire_of("quiet", &format!("{round}/{caller}/{call}"))).await);
                waited.push((commits() - before, begun.elapsed()));
            }
            waited
        })
    });
    let (mut commits, mut times) = (Vec::new(), Vec::new());
    for caller in callers.collect::<Vec<_>>() {
        for (passed, took) in caller.await.unwrap() {
            commits.push(passed);
            times.push(took);
        }
    }
    commits.sort_unstable();
    times.sort_unstable();
    let place = CALLERS * CALLS * 99 / 100;
    (commits[place], times[place])
}

/// Keeps as much under way as it can, until it is told to stop.
async fn flood(world: Arc<World>, stop: Arc<AtomicBool>) -> usize {
    let mut lane = world.handle.lane();
    let (mut sent, mut answers) = (0, Vec::new());
    while !stop.load(Relaxed) {
        let more = FLOOD - lane.pending();
        lane.send((sent..sent + more).map(|n| (n, acquire_of("flood", &format!("flood/{n}")))));
        sent += more;
        lane.answers(&mut answers).await;
        answers.clear();
    }
    sent
}

#[tokio::test(flavor = "multi_thread")]
async fn beside_a_flood_of_one_tenant_another_waits_for_at_most_twice_as_many_commits() {
    let world = Arc::new(slow_world(COMMIT).await);
    let alone = p99(&world, "alone").await;
    let stop = Arc::new(AtomicBool::new(false));
    let flooding = tokio::spawn(flood(Arc::clone(&world), Arc::clone(&stop)));
    // It is under way when something of it is answered.
    while world.handle.status().counts.leases < CALLERS * CALLS + 1_000 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let beside = p99(&world, "beside").await;
    stop.store(true, Relaxed);
    let flooded = flooding.await.unwrap();
    println!(
        "p99 of a quiet tenant: {} commits, {:.1?} alone; {} commits, {:.1?} beside a flood of {flooded} calls: {:.2} times",
        alone.0,
        alone.1,
        beside.0,
        beside.1,
        beside.1.as_secs_f64() / alone.1.as_secs_f64()
    );
    // Whoever uses a server that is in use meets a commit that is under way, and then waits for its own.
    assert!(beside.0 <= 2 * alone.0.max(2), "{} commits beside the flood, {} alone", beside.0, alone.0);
}

#[tokio::test]
async fn a_call_passes_the_frame_of_another_tenant_that_came_before_it() {
    let (world, gate) = world_behind_a_gate().await;
    gate.set_shut(true);
    let first = world.spawn(acquire("first", 1));
    until(&gate.arrived, 1).await;

    let mut lane = world.handle.lane();
    lane.send((0..FLOOD).map(|n| (n, acquire_of("flood", &format!("flood/{n}")))));
    let quiet = world.spawn(acquire_of("quiet", "quiet"));
    while world.handle.status().queued <= FLOOD {
        tokio::task::yield_now().await;
    }
    gate.set_shut(false);

    let first = token(first.await.unwrap().unwrap().get());
    let quiet = token(quiet.await.unwrap().unwrap().get());
    assert_eq!(quiet, first + SHARE + 1, "one share of the frame goes before it");
    let mut answers = Vec::new();
    while lane.pending() > 0 {
        lane.answers(&mut answers).await;
    }
    answers.sort_by_key(|(tag, _)| *tag);
    let tokens: Vec<_> = answers.iter().map(|(_, answer)| token(answer.as_ref().unwrap().get())).collect();
    assert!(tokens.len() == FLOOD && tokens.is_sorted(), "the frame is decided in its order");
    let most = world.seen.batches.lock().unwrap().iter().max().copied();
    assert!(most <= Some(SHARE as usize + 1), "a commit of {most:?} facts");
}
