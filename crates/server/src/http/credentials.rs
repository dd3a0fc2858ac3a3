//! `/v1/credentials`.

use leasehold_api as api;
use leasehold_api::{Problem, Timestamp};
use leasehold_core::{
    AddCredential, Command, Credential, Operator, Proof, Query as CoreQuery, Reply, RevokeCredential,
};
use leasehold_types::{CredentialId, RequestKey, WallTime, limits};

use super::answer::{Answer, Failure, json};
use super::convert::{self, bad_field};
use super::locks::page_size;
use super::received::Received;
use super::request;
use super::{App, unexpected};
use crate::auth::Bearer;

/// A hundred years.
const LONGEST_SECONDS: u64 = 3_153_600_000;

/// `POST /v1/credentials`.
pub(super) async fn create(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let (key, request) = received.change::<api::CreateCredentialRequest>().await?;
    let operator = operator(app, request.actor_id.as_deref(), request.reason.as_deref())?;
    let id = id_for(app, key.as_ref());
    let (proof, bearer) = match &request.san {
        Some(san) => (Proof::San(lawful_san(san)?), None),
        None => {
            let bearer = Bearer::new(id);
            (Proof::Secret(bearer.hash()), Some(bearer))
        }
    };
    let credential = credential(app, id, request, proof)?;
    let add = AddCredential { credential: Box::new(credential.clone()), operator };
    match app.submit(key, Command::AddCredential(add)).await? {
        Reply::CredentialAdded { audit_seq } => Ok(json(&api::CreateCredentialAnswer {
            credential: record(credential),
            secret: bearer.map(|bearer| bearer.reveal().to_owned()),
            audit_seq,
        })),
        other => unexpected(&other),
    }
}

/// With a key, the id follows from it: a retry meets the credential of the first attempt instead of making a second.
fn id_for(app: &App, key: Option<&RequestKey>) -> CredentialId {
    let Some(key) = key else { return Bearer::new_id() };
    let mut hasher = blake3::Hasher::new_derive_key("leasehold credential of a request key");
    hasher.update(app.identity().unwrap_or_default().as_bytes());
    hasher.update(&[0]);
    hasher.update(key.as_str().as_bytes());
    let [a, b, c, d, e, f, g, h, ..] = *hasher.finalize().as_bytes();
    CredentialId::from_bytes([a, b, c, d, e, f, g, h])
}

fn credential(
    app: &App,
    id: CredentialId,
    request: api::CreateCredentialRequest,
    proof: Proof,
) -> Result<Credential, Problem> {
    if request.scopes.len() > limits::SCOPES {
        return Err(bad_field("scopes", format_args!("there are more than {}", limits::SCOPES)));
    }
    let now = app.clock.read().wall;
    let expires_at = match request.expires_in_seconds {
        None => None,
        Some(seconds @ 1..=LONGEST_SECONDS) => Some(now.plus_ms(seconds * 1_000)),
        Some(_) => return Err(bad_field("expiresInSeconds", "is not from 1 second to 100 years")),
    };
    Ok(Credential {
        id,
        principal: request.principal,
        tenant: request.tenant.unwrap_or_else(|| app.tenant.clone()),
        role: request.role,
        scopes: request.scopes,
        proof,
        created_at: now,
        expires_at,
    })
}

fn lawful_san(san: &str) -> Result<Box<str>, Problem> {
    match san.len() {
        1..=limits::SAN_BYTES if san.bytes().all(|byte| byte.is_ascii_graphic()) => Ok(san.into()),
        _ => Err(bad_field("san", "is not a DNS name or URI of a certificate")),
    }
}

fn operator(app: &App, actor: Option<&str>, reason: Option<&str>) -> Result<Operator, Problem> {
    let caller = app.identity();
    let actor = actor.or(caller.as_deref()).unwrap_or("somebody");
    convert::operator(actor, reason.unwrap_or("not said"))
}

/// `DELETE /v1/credentials/{credentialId}`.
pub(super) async fn revoke(app: &App, id: &str, received: Received<'_>) -> Result<Answer, Failure> {
    let query = received.parameters(&["actorId", "reason"])?;
    let key = received.key()?;
    let id = request::path_part("credentialId", id)?;
    let id = id.parse().map_err(|invalid| bad_field("credentialId", invalid))?;
    let operator = operator(app, query.text("actorId"), query.text("reason"))?;
    match app.submit(key, Command::RevokeCredential(RevokeCredential { id, operator })).await? {
        Reply::CredentialRevoked { credential, audit_seq } => {
            Ok(json(&api::RevokeCredentialAnswer { credential: record(*credential), audit_seq }))
        }
        other => unexpected(&other),
    }
}

/// `GET /v1/credentials`.
pub(super) async fn list(app: &App, received: Received<'_>) -> Result<Answer, Failure> {
    let query = received.parameters(&["pageSize", "cursor"])?;
    let after = query.parsed("cursor", str::parse)?;
    match app.query(CoreQuery::Credentials { after, page_size: page_size(&query)? }).await? {
        Reply::Credentials { credentials, next } => Ok(json(&api::CredentialsPage {
            credentials: credentials.into_iter().map(record).collect(),
            next_cursor: next.map(|id| id.to_string()),
        })),
        other => unexpected(&other),
    }
}

fn record(credential: Credential) -> api::CredentialRecord {
    let told = |at: WallTime| Timestamp(at);
    api::CredentialRecord {
        credential_id: credential.id,
        principal: credential.principal,
        tenant: credential.tenant,
        role: credential.role,
        scopes: credential.scopes,
        san: match credential.proof {
            Proof::San(san) => Some(san.into()),
            Proof::Secret(_) => None,
        },
        created_at: told(credential.created_at),
        expires_at: credential.expires_at.map(told),
    }
}
