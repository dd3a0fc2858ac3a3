//! Who holds a resource after it was lost: looked up beside everything else, best effort.

use std::sync::Arc;
use std::time::Duration;

use leasehold_proto::v1 as pb;
use tokio::runtime;
use tokio::time::timeout;

use super::held::Held;
use crate::client::Settings;
use crate::clock;
use crate::connections::Locks;
use crate::error::Holder;
use crate::retry::Backoff;
use crate::session::Shared;

/// Nobody reads it later than this.
const PATIENCE: Duration = Duration::from_secs(3);

/// Asks the service in the background who has the resource now. Only so many are asked for at a time
/// ([`Settings::look_ups`]): when a session with many leases is lost, the first ones say enough.
pub(super) fn look_up(held: &Arc<Held>, shared: &Shared) {
    let settings = Arc::clone(&shared.settings);
    let (Ok(runtime), Ok(place)) =
        (runtime::Handle::try_current(), Arc::clone(&settings.look_ups).try_acquire_owned())
    else {
        return;
    };
    let held = Arc::clone(held);
    runtime.spawn(async move {
        let _place = place;
        if let Ok(holder) = timeout(PATIENCE, holder_of(&settings, &held)).await {
            held.taken_by(holder);
        }
    });
}

/// Asks until somebody else has it.
async fn holder_of(settings: &Settings, held: &Held) -> Holder {
    let mut backoff = Backoff::new(Duration::from_millis(50), Duration::from_millis(500));
    loop {
        if let Some(holder) = present_holder(settings, held).await {
            return holder;
        }
        tokio::time::sleep(backoff.pause(clock::random())).await;
    }
}

async fn present_holder(settings: &Settings, held: &Held) -> Option<Holder> {
    let explain = |mut locks: Locks| {
        let question = pb::ExplainRequest { resource: held.resource.to_string() };
        async move { locks.explain(question).await }
    };
    let explained = settings.call(explain).await.ok()?;
    let other = explained.holders.into_iter().find(|holder| holder.fencing_token != held.token.get())?;
    Some(Holder { owner: other.owner_id, token: other.fencing_token })
}
