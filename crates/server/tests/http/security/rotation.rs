//! Credentials and certificates are replaced under load, and no lease is lost.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use serde_json::json;

use super::Protected;

/// Renewals between two rotations, over all workers.
const RENEWALS: u64 = 40;
const ROTATIONS: usize = 4;

#[tokio::test]
async fn credentials_are_rotated_under_load_without_a_lost_lease() {
    let protected = Arc::new(Protected::start().await);
    let secret = protected.credential("web", "acme", "client").await;
    let present = Arc::new(std::sync::Mutex::new(secret));
    let (stop, renewed) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let mut workers = Vec::new();
    for number in 0..4 {
        let (protected, present) = (Arc::clone(&protected), Arc::clone(&present));
        let (stop, renewed) = (Arc::clone(&stop), Arc::clone(&renewed));
        let secret = present.lock().unwrap().clone();
        let lease = protected.as_caller(&secret).acquire(&format!("job/{number}")).await;
        let lease = lease["leaseId"].as_str().unwrap().to_owned();
        workers.push(tokio::spawn(async move {
            while !stop.load(Relaxed) {
                let secret = present.lock().unwrap().clone();
                let answer =
                    protected.as_caller(&secret).post(&format!("/v1/locks/{lease}/renew"), json!({})).await;
                // Between reading the present secret and using it, it may have been revoked: then the next is there.
                let was_replaced = *present.lock().unwrap() != secret;
                assert!(answer.status == 200 || (answer.status == 401 && was_replaced), "{answer:?}");
                renewed.fetch_add(u64::from(answer.status == 200), Relaxed);
            }
            let secret = present.lock().unwrap().clone();
            let released = protected.as_caller(&secret).delete(&format!("/v1/locks/{lease}")).await;
            assert_eq!(released.status, 200, "the lease of the first credential, given back with the last");
        }));
    }
    for _ in 0..ROTATIONS {
        let enough = renewed.load(Relaxed) + RENEWALS;
        let running = async {
            while renewed.load(Relaxed) < enough {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(60), running).await.expect("renewals go on");
        let next = protected.credential("web", "acme", "client").await;
        let old = std::mem::replace(&mut *present.lock().unwrap(), next);
        assert_eq!(protected.revoke(&old).await.status, 200);
    }
    stop.store(true, Relaxed);
    for worker in workers {
        worker.await.unwrap();
    }
}
