//! One tenant's flood leaves another its share: what a quiet tenant waits for is counted in calls, which a busy machine
//! makes slower but not more.

use leasehold_node::Call;
use leasehold_types::TenantName;

use super::hindered::world_behind_a_gate;
use super::world::*;

/// Calls that the flood has under way: many batches full.
const FLOOD: usize = 2_000;
/// The longest message of one tenant, which may have been taken before another is seen.
const LONGEST: u64 = 256;
/// Calls of one tenant in one batch while another asks, on a journal whose confirmations are not free, as an engine's.
const SHARE: usize = 64;

fn acquire_of(tenant: &str, resource: &str) -> Call {
    Call { tenant: TenantName::new(tenant).unwrap(), ..acquire_with(resource, |_| {}) }
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
    assert_eq!(quiet, first + LONGEST + 1, "one piece of the frame goes before it");
    let mut answers = Vec::new();
    while lane.pending() > 0 {
        lane.answers(&mut answers).await;
    }
    answers.sort_by_key(|(tag, _)| *tag);
    let tokens: Vec<_> = answers.iter().map(|(_, answer)| token(answer.as_ref().unwrap().get())).collect();
    assert!(tokens.len() == FLOOD && tokens.is_sorted(), "the frame is decided in its order");
    let batches = world.seen.batches.lock().unwrap().clone();
    let with_quiet = batches.iter().position(|facts| *facts > SHARE).expect("the piece and the call");
    assert_eq!(batches[with_quiet], LONGEST as usize + 1, "{batches:?}");
    let later = &batches[with_quiet + 1..];
    assert!(later.iter().all(|facts| *facts <= SHARE), "its next call meets small commits: {batches:?}");
}
