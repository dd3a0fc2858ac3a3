//! Many sessions that are only kept alive: what they cost the server.

use std::time::Duration;

use leasehold::{Client, LeaseGuard};
use leasehold_tests::{Server, Stopwatch};
use tokio::runtime::Runtime;

const SESSIONS: usize = 10_000;
/// Renewed every five seconds: two thousand keep-alives a second.
const TTL: Duration = Duration::from_secs(15);
/// One round of renewals and a half; `LEASEHOLD_SECONDS=60` makes it a minute.
const SECONDS: u64 = 8;
/// Of one core. Processor time, not time that passes, so that a busy machine does not matter.
const SHARE: f64 = 1.0 / 3.0;

#[test]
fn ten_thousand_sessions_are_kept_alive_with_a_third_of_a_core() {
    let _alone = crate::alone();
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let runtime = Runtime::new().unwrap();
    let client = Client::builder().endpoint(server.url()).patience(Duration::from_secs(120)).build().unwrap();
    let guards = runtime.block_on(open(&client));
    let seconds = std::env::var("LEASEHOLD_SECONDS").map_or(SECONDS, |text| text.parse().unwrap());
    let (watch, before) = (Stopwatch::start(), server.processor_time());
    runtime.block_on(async { tokio::time::sleep(Duration::from_secs(seconds)).await });
    let share = (server.processor_time() - before).as_secs_f64() / watch.elapsed().as_secs_f64();
    let lost = guards.iter().filter(|guard| guard.token().is_err()).count();
    println!(
        "{SESSIONS} sessions kept alive for {seconds} s: {share:.3} of a core on the server, {lost} lost"
    );
    assert!(share < SHARE, "{share:.3} of a core");
    assert_eq!(lost, 0, "leases were lost");
    // Ten thousand orderly ends are not part of the figure.
    runtime.block_on(async { drop(guards) });
    runtime.shutdown_background();
}

/// Every session with a lease.
async fn open(client: &Client) -> Vec<LeaseGuard> {
    let mut guards = Vec::with_capacity(SESSIONS);
    for batch in (0..SESSIONS).collect::<Vec<_>>().chunks(200) {
        let opening = batch.iter().map(|n| {
            let session = client.session(TTL);
            tokio::spawn(session.acquire(format!("sessions/{n}")).no_wait().into_future())
        });
        for opening in opening.collect::<Vec<_>>() {
            guards.push(opening.await.unwrap().unwrap());
        }
    }
    guards
}
