//! What a request brings beside its path, as its handler takes it: all of it is looked at, so that nothing that a caller
//! sent is silently dropped.

use http::HeaderMap;
use hyper::body::Incoming;
use leasehold_api::Problem;
use leasehold_types::RequestKey;
use serde::de::DeserializeOwned;

use super::request::{self, Query};

/// See the module.
pub(super) struct Received<'a> {
    pub(super) headers: &'a HeaderMap,
    query: Option<&'a str>,
    body: Incoming,
    /// The most bytes that a body may have.
    body_bytes: usize,
}

impl<'a> Received<'a> {
    pub(super) fn new(
        headers: &'a HeaderMap,
        query: Option<&'a str>,
        body: Incoming,
        body_bytes: usize,
    ) -> Self {
        Self { headers, query, body, body_bytes }
    }

    /// For a question that the path says whole.
    pub(super) fn nothing(&self) -> Result<(), Problem> {
        self.parameters(&[]).map(drop)
    }

    /// For a question with parameters; a body is a mistake.
    pub(super) fn parameters(&self, known: &[&'static str]) -> Result<Query, Problem> {
        let query = Query::read(self.query, known)?;
        request::no_body(&self.body)?;
        Ok(query)
    }

    /// For a change without a body.
    pub(super) fn key(&self) -> Result<Option<RequestKey>, Problem> {
        request::key(self.headers)
    }

    /// For a change that its body describes: its key, and the body.
    pub(super) async fn change<T: DeserializeOwned>(self) -> Result<(Option<RequestKey>, T), Problem> {
        Query::read(self.query, &[])?;
        let key = self.key()?;
        Ok((key, request::json(self.headers, self.body, self.body_bytes).await?))
    }

    /// The same where an empty body says that everything is as usual.
    pub(super) async fn change_or_default<T: DeserializeOwned + Default>(
        self,
    ) -> Result<(Option<RequestKey>, T), Problem> {
        Query::read(self.query, &[])?;
        let key = self.key()?;
        Ok((key, request::json_or_default(self.headers, self.body, self.body_bytes).await?))
    }
}
