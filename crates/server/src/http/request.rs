//! What arrives: bodies, path parts, queries, headers; each read once, and strictly.

use std::pin::pin;

use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use leasehold_api::{ErrorCode, Object, Problem, REQUEST_KEY_HEADER};
use leasehold_types::RequestKey;
use percent_encoding::percent_decode_str;
use serde::de::DeserializeOwned;

use super::convert::bad_field;
use crate::config::patience;

/// Reads a JSON body.
pub(crate) async fn json<T: DeserializeOwned>(
    headers: &HeaderMap,
    body: Incoming,
    most: usize,
) -> Result<T, Problem> {
    check_content_type(headers)?;
    parse(&read(body, most).await?)
}

/// Reads a JSON body that may be empty.
pub(crate) async fn json_or_default<T: DeserializeOwned + Default>(
    headers: &HeaderMap,
    body: Incoming,
    most: usize,
) -> Result<T, Problem> {
    if headers.contains_key(CONTENT_TYPE) || !body.is_end_stream() {
        check_content_type(headers)?;
    }
    let bytes = read(body, most).await?;
    if bytes.is_empty() { Ok(T::default()) } else { parse(&bytes) }
}

/// A call without a body: one that is there is a mistake of the caller's, and not silently dropped.
pub(crate) fn no_body(body: &Incoming) -> Result<(), Problem> {
    if body.is_end_stream() { Ok(()) } else { Err(bad_field("body", "this call has none")) }
}

fn check_content_type(headers: &HeaderMap) -> Result<(), Problem> {
    let is_json = |value: &http::HeaderValue| {
        let essence = value.as_bytes().split(|&byte| byte == b';').next().unwrap_or_default();
        essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
    };
    match headers.get(CONTENT_TYPE) {
        Some(value) if is_json(value) => Ok(()),
        _ => Err(Problem::new(
            ErrorCode::UnsupportedMediaType,
            "send the body as Content-Type: application/json",
        )),
    }
}

fn too_large(most: usize) -> Problem {
    Problem::new(ErrorCode::TooLarge, format!("the body has more than {most} bytes"))
}

/// Reads a body of at most `most` bytes. A larger one is refused as soon as that is known, by its announced length or
/// by what has arrived.
async fn read(body: Incoming, most: usize) -> Result<Bytes, Problem> {
    if body.size_hint().lower() > most as u64 {
        return Err(too_large(most));
    }
    let mut reading = pin!(collect(body, most));
    // Nearly every body comes with its head, and needs no timer.
    if let Some(read) = (&mut reading).now_or_never() {
        return read;
    }
    match tokio::time::timeout(patience::BODY, reading).await {
        Ok(read) => read,
        Err(_) => Err(bad_field("body", "did not arrive in time")),
    }
}

async fn collect(mut body: Incoming, most: usize) -> Result<Bytes, Problem> {
    let mut first = Bytes::new();
    let mut rest = BytesMut::new();
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| bad_field("body", "ended before its announced length"))?;
        let Ok(data) = frame.into_data() else { continue };
        if first.len() + rest.len() + data.len() > most {
            return Err(too_large(most));
        }
        // Nearly every body is one piece, which need not be copied.
        if first.is_empty() {
            first = data;
        } else {
            rest.extend_from_slice(&data);
        }
    }
    if rest.is_empty() {
        return Ok(first);
    }
    let mut whole = BytesMut::from(first);
    whole.unsplit(rest);
    Ok(whole.freeze())
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    match serde_json::from_slice(bytes) {
        Ok(Object(request)) => Ok(request),
        Err(_) => Err(explain::<T>(bytes)),
    }
}

/// Reads a body that is known to be wrong once more, slowly, to name the field.
fn explain<T: DeserializeOwned>(bytes: &[u8]) -> Problem {
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let detail = match serde_path_to_error::deserialize::<_, Object<T>>(&mut reader) {
        // A body that breaks off before the name of a field has a path of `?`, or one that ends with it.
        Err(error) => match error.path().to_string().trim_end_matches(['.', '?']) {
            "" => error.inner().to_string(),
            field => format!("{field}: {}", error.inner()),
        },
        Ok(_) => "there is something after the JSON value".to_owned(),
    };
    Problem::new(ErrorCode::BadRequest, format!("body: {detail}"))
}

/// The caller's key that makes a retry the same command.
pub(crate) fn key(headers: &HeaderMap) -> Result<Option<RequestKey>, Problem> {
    let mut values = headers.get_all(REQUEST_KEY_HEADER).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() {
        return Err(bad_field("Idempotency-Key", "is there more than once"));
    }
    let text = value.to_str().map_err(|_| bad_field("Idempotency-Key", "must be printable ASCII"))?;
    RequestKey::new(text)
        .map(Some)
        .map_err(|invalid| Problem::new(ErrorCode::BadRequest, invalid.to_string()))
}

/// One part of a path, percent-decoded exactly once.
pub(crate) fn path_part<'a>(field: &str, raw: &'a str) -> Result<std::borrow::Cow<'a, str>, Problem> {
    percent_decode_str(raw).decode_utf8().map_err(|_| bad_field(field, "is not UTF-8 after percent-decoding"))
}

/// The parameters of a query, each known, each at most once.
#[derive(Debug)]
pub(crate) struct Query {
    pairs: Vec<(&'static str, String)>,
}

impl Query {
    /// Reads a query that may have these parameters.
    pub(crate) fn read(query: Option<&str>, known: &[&'static str]) -> Result<Self, Problem> {
        let mut pairs: Vec<(&'static str, String)> = Vec::new();
        for pair in query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let name = form_decoded("query", name)?;
            let Some(&known) = known.iter().find(|known| **known == name) else {
                return Err(unknown_parameter(&name, known));
            };
            if pairs.iter().any(|(seen, _)| *seen == known) {
                return Err(bad_field(known, "is there more than once"));
            }
            pairs.push((known, form_decoded(known, value)?));
        }
        Ok(Self { pairs })
    }

    /// The text of a parameter.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// A parameter read into its type.
    pub(crate) fn parsed<T, E: std::fmt::Display>(
        &self,
        name: &str,
        parse: impl FnOnce(&str) -> Result<T, E>,
    ) -> Result<Option<T>, Problem> {
        self.text(name).map(|text| parse(text).map_err(|error| bad_field(name, error))).transpose()
    }

    /// A whole number from `least` to `most`: digits alone.
    pub(crate) fn number(&self, name: &str, least: u64, most: u64) -> Result<Option<u64>, Problem> {
        self.parsed(name, |text| match text.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) && text.bytes().all(|b| b.is_ascii_digit()) => {
                Ok(number)
            }
            _ => Err(format!("must be a whole number from {least} to {most}")),
        })
    }
}

fn unknown_parameter(name: &str, known: &[&str]) -> Problem {
    let detail = match known {
        [] => "unknown query parameter; this call has none".to_owned(),
        _ => format!("unknown query parameter; known are {}", known.join(", ")),
    };
    bad_field(&format!("`{}`", name.escape_debug()), detail)
}

fn form_decoded(field: &str, raw: &str) -> Result<String, Problem> {
    let spaced = raw.replace('+', " ");
    Ok(path_part(field, &spaced)?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_once_and_strictly() {
        let query = Query::read(Some("prefix=a%2Fb+c&after=7&"), &["prefix", "after"]).unwrap();
        assert_eq!(query.text("prefix"), Some("a/b c"));
        assert_eq!(query.number("after", 0, 9).unwrap(), Some(7));
        assert_eq!(Query::read(Some("prefix=%252F"), &["prefix"]).unwrap().text("prefix"), Some("%2F"));
        for (text, named) in
            [("nope=1", "nope"), ("prefix=1&prefix=2", "more than once"), ("prefix=%FF", "UTF-8"), ("x", "x")]
        {
            let problem = Query::read(Some(text), &["prefix"]).unwrap_err();
            assert!(problem.detail.contains(named), "{text}: {problem}");
        }
        for text in ["", "-1", "+1", "1.0", "10", "99999999999999999999"] {
            assert!(
                Query::read(Some(&format!("n={text}")), &["n"]).unwrap().number("n", 1, 9).is_err(),
                "{text}"
            );
        }
    }

    #[test]
    fn a_wrong_body_is_explained_by_its_field() {
        type Request = leasehold_api::AcquireRequest;
        for (body, named) in [
            (r#"{"resource":"a","ttlMs":-1}"#, "ttlMs"),
            (r#"{"resource":""}"#, "resource: resource is empty"),
            (r#"{"resource":"a","labels":{"x":1}}"#, "labels.x"),
            (r#"{"resource":"a","labels":{"x":"1","x":"2"}}"#, "duplicate label `x`"),
            (r#"{"resource":"a","resource":"b"}"#, "duplicate field `resource`"),
            (r#"{"resource":"a","mode":"odd"}"#, "exclusive, shared, semaphore"),
            (r#"{"resource":"a","waitMs":null}"#, "waitMs"),
            (r#"{"resource":"a","wait":1}"#, "unknown field `wait`"),
            (r#"{"ownerId":"o"}"#, "missing field `resource`"),
            (r#"{"resource":"a""#, "body: EOF"),
            ("{", "body: EOF"),
            (r#"{"resource":"a","labels":{"#, "body: labels: EOF"),
            (r#"{"resource":"a"} x"#, "after the JSON value"),
            ("[]", "expected an object"),
            (r#"["a"]"#, "expected an object"),
        ] {
            let problem = parse::<Request>(body.as_bytes()).unwrap_err();
            assert!(problem.detail.contains(named), "{body}: {problem}");
        }
        // All of its fields may be left out, and still it is an object.
        assert!(parse::<leasehold_api::RenewSessionRequest>(b"[]").is_err());
    }
}
