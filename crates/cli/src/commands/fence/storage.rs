//! `fence storage`: the reference storage service.

use std::net::SocketAddr;
use std::path::PathBuf;

use leasehold_fence::storage::Storage;

use super::args::StorageArgs;
use super::serving::{self, Ending};
use crate::exit::Exit;
use crate::failure::Failure;

/// What to serve, and where.
pub(crate) struct StoragePlan {
    directory: PathBuf,
    listen: SocketAddr,
}

impl StoragePlan {
    pub(super) fn new(args: &StorageArgs) -> Result<Self, Failure> {
        let listen = serving::address("--listen", &args.listen, args.insecure)?;
        Ok(Self { directory: args.dir.clone(), listen })
    }
}

/// Serves until it is told to stop.
pub(super) async fn serve(plan: StoragePlan) -> Result<Exit, Failure> {
    let log = serving::log()?;
    let ending = Ending::new()?;
    let refused =
        |error| Failure::RefusedToStart(format!("cannot use {}: {error}", plan.directory.display()));
    let storage = Storage::open(&plan.directory).map_err(refused)?;
    let listener = serving::listen(plan.listen).await?;
    let address = listener.local_addr().map_err(|error| Failure::Io { what: "no address".into(), error })?;
    tracing::info!(event = "serving", directory = %plan.directory.display(), "serving on http://{address}");
    let served = storage.serve(listener, ending.asked()).await;
    log.flush();
    served.map_err(|error| Failure::Io { what: "the storage ended".into(), error })?;
    Ok(Exit::Done)
}
