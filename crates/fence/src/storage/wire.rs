//! What is asked and answered, as JSON.

use std::num::NonZeroU64;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use leasehold_types::{FencingToken, Permit, ResourceName};
use serde::{Deserialize, Serialize};

use super::path::FilePath;
use super::store::{Change, Write, Written};
use crate::{Ask, Grant, Kind};

/// `POST /v1/writes`. Names in camelCase; snake_case is understood too.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct WriteRequest {
    #[serde(alias = "resource_id")]
    resource_id: String,
    #[serde(alias = "fencing_token")]
    fencing_token: u64,
    permit: Option<u32>,
    step: Option<u64>,
    #[serde(alias = "write_payload")]
    write_payload: Payload,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Payload {
    #[serde(alias = "file_path")]
    file_path: String,
    #[serde(alias = "mutation_type")]
    mutation_type: MutationType,
    bytes: String,
}

#[derive(Debug, Clone, Copy, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "UPPERCASE")]
enum MutationType {
    Append,
    Put,
}

/// `POST /v1/claims`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ClaimRequest {
    #[serde(alias = "resource_id")]
    resource_id: String,
    #[serde(alias = "fencing_token")]
    fencing_token: u64,
    permit: Option<u32>,
}

/// The answer to a write.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WriteAnswer<'a> {
    /// `false`: this very step was applied before.
    applied: bool,
    resource_id: &'a str,
    fencing_token: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<NonZeroU64>,
    file_path: &'a str,
    /// The length of the file now.
    length: u64,
}

/// The answer to a claim, and to a question about a resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ResourceAnswer<'a> {
    pub(super) resource_id: &'a str,
    pub(super) highest_token: Option<u64>,
    /// Admitted writes of that token: the next step is one more.
    pub(super) writes: u64,
}

/// The grant that these numbers name.
fn grant(resource: &str, token: u64, permit: Option<u32>) -> Result<Grant, String> {
    let resource = ResourceName::new(resource).map_err(|error| format!("resourceId: {error}"))?;
    let token = FencingToken::new(token).map_err(|error| format!("fencingToken: {error}"))?;
    let kind = permit.map_or(Kind::Exclusive, |permit| Kind::Permit(Permit(permit)));
    Ok(Grant::new(resource, token, kind))
}

impl ClaimRequest {
    pub(super) fn meant(self) -> Result<Grant, String> {
        grant(&self.resource_id, self.fencing_token, self.permit)
    }
}

impl WriteRequest {
    /// What is asked; the text says what is wrong with it.
    pub(super) fn meant(self) -> Result<Write, String> {
        let grant = grant(&self.resource_id, self.fencing_token, self.permit)?;
        let ask = self.ask(&grant)?;
        let path =
            FilePath::parse(&self.write_payload.file_path).map_err(|error| format!("filePath: {error}"))?;
        let bytes = STANDARD.decode(&self.write_payload.bytes);
        let bytes = bytes.map_err(|error| format!("bytes: not base64: {error}"))?;
        let change = match self.write_payload.mutation_type {
            MutationType::Append => Change::Append,
            MutationType::Put => Change::Put,
        };
        Ok(Write { ask, path, change, bytes })
    }

    fn ask(&self, grant: &Grant) -> Result<Ask, String> {
        match (self.step, self.write_payload.mutation_type) {
            (None, MutationType::Put) => Ok(grant.write()),
            (None, MutationType::Append) => {
                Err("step: an APPEND needs one, counted from 1: without it a retry would append twice"
                    .to_owned())
            }
            (Some(step), _) => {
                let step = NonZeroU64::new(step).ok_or("step: counted from 1")?;
                grant.step(step).map_err(|error| error.to_string())
            }
        }
    }
}

impl<'a> WriteAnswer<'a> {
    pub(super) fn new(write: &'a Write, written: &Written) -> Self {
        Self {
            applied: written.applied,
            resource_id: write.ask.grant().resource().as_str(),
            fencing_token: write.ask.token().get(),
            step: write.ask.step(),
            file_path: write.path.as_str(),
            length: written.length,
        }
    }
}
