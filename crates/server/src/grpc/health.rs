//! The standard health service: serving as long as the node is active and makes progress, or knows who is.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::Stream;
use futures_util::stream::unfold;
use leasehold_node::Role;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use crate::http::App;

/// See the module.
pub(super) struct HealthService {
    app: Arc<App>,
}

impl HealthService {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

fn answer(app: &App) -> HealthCheckResponse {
    let status = app.handle.status();
    let decides = status.role == Role::Active && !status.stalled;
    let serves = (decides || app.forward.is_some()) && !*app.drain.borrow();
    let status = if serves { ServingStatus::Serving } else { ServingStatus::NotServing };
    HealthCheckResponse { status: status.into() }
}

fn known(request: &HealthCheckRequest) -> Result<(), Status> {
    match request.service.as_str() {
        "" | "leasehold.v1.Locks" => Ok(()),
        _ => Err(Status::not_found("no such service")),
    }
}

#[tonic::async_trait]
impl Health for HealthService {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        known(request.get_ref())?;
        Ok(Response::new(answer(&self.app)))
    }

    type WatchStream = Pin<Box<dyn Stream<Item = Result<HealthCheckResponse, Status>> + Send>>;

    /// Tells the status now, and again when the server begins to shut down.
    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        known(request.get_ref())?;
        let stream = unfold((Arc::clone(&self.app), 0), |(app, told)| async move {
            match told {
                0 => {}
                1 => {
                    let mut drain = app.drain.clone();
                    drain.wait_for(|draining| *draining).await.ok()?;
                }
                _ => return None,
            }
            Some((Ok(answer(&app)), (app, told + 1)))
        });
        Ok(Response::new(Box::pin(stream)))
    }
}
