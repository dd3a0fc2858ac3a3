//! `/v1/resources` and `/v1/tokens`.

use leasehold_api as api;
use leasehold_api::Problem;
use leasehold_core::{Command, Query as CoreQuery, Reply};
use leasehold_types::ResourceName;

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::received::Received;
use super::request;
use super::{App, unexpected};

/// `GET /v1/resources/{resource}`.
pub(super) async fn explain(app: &App, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    received.nothing()?;
    match app.query(CoreQuery::Explain(resource(name)?)).await? {
        Reply::Explained(explained) => {
            let mut answer = convert::explained(*explained);
            answer.fence_rejections = app.fences.rejections(&app.tenant, answer.resource.as_str());
            Ok(json(&answer))
        }
        other => unexpected(&other),
    }
}

/// `POST /v1/resources/{resource}/force-release`.
pub(super) async fn force_release(app: &App, name: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let resource = resource(name)?;
    let (key, request) = received.change::<api::ForceReleaseRequest>().await?;
    let force = convert::force_release(resource, request)?;
    match app.submit(key, Command::ForceRelease(force)).await? {
        Reply::ForceReleased { released, audit_seq } => Ok(json(&api::ForceReleaseAnswer {
            released: released.into_iter().map(convert::holder).collect(),
            audit_seq,
        })),
        other => unexpected(&other),
    }
}

/// `POST /v1/tokens/validate`.
pub(super) async fn validate(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    // A question changes nothing, so every repetition of it is the same; the key is still checked.
    let (_, request) = received.change::<api::ValidateRequest>().await?;
    let question = CoreQuery::Validate {
        resource: request.resource,
        token: request.fencing_token,
        permit: request.permit,
    };
    match app.query(question).await? {
        Reply::Validated { current, last_token } => Ok(json(&api::ValidateAnswer { current, last_token })),
        other => unexpected(&other),
    }
}

fn resource(raw: &str) -> Result<ResourceName, Problem> {
    let name = request::path_part("resource", raw)?;
    ResourceName::new(&name).map_err(|invalid| bad_field("resource", invalid))
}
