//! What one node proves to another about a request that it passes on (N7).
//!
//! A passed-on request is marked with who passed it on, and with a proof: a keyed hash over everything in its head that
//! the active node rests on, under the secret that the nodes share in the journal. So no client can pretend that its
//! request was passed on, let alone for whom. The proof does not cover the body, and the same request could be sent
//! again by whoever has read it on the wire: nodes that are not on one trusted network speak TLS with each other.
//!
//! A journal of format 1 has no secret: there the mark stops a second hop, and an identity is never accepted.

use http::header::{HeaderName, HeaderValue};
use http::request::Parts;
use http::{HeaderMap, Method};
use leasehold_api::{ErrorCode, Problem, REQUEST_KEY_HEADER};
use leasehold_core::ClusterSecret;
use leasehold_types::ClusterId;

/// Marks a request that has made its hop; its value is the name and the address of the node that passed it on.
pub(crate) static FORWARDED: HeaderName = HeaderName::from_static("leasehold-forwarded");
/// The proof, in hexadecimal digits.
pub(crate) static PROOF: HeaderName = HeaderName::from_static("leasehold-forwarded-proof");
/// For whom it was passed on, as the passing node found out.
pub(crate) static IDENTITY: HeaderName = HeaderName::from_static("leasehold-forwarded-identity");
/// What the passing node tells of itself.
pub(crate) static ABOUT: HeaderName = HeaderName::from_static("leasehold-node");

/// Tells this use of the secret from every other.
const CONTEXT: &[u8] = b"leasehold forwarded request 1";

/// Who asks, as the node that a request came to first has found out. It stands in the extensions of a request: put there
/// by that node before it passes the request on, and by [`check`] on the node that it was passed on to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ForwardedIdentity(pub(crate) HeaderValue);

/// Whether a request has made its hop already.
pub(crate) fn is_forwarded(headers: &HeaderMap) -> bool {
    headers.contains_key(&FORWARDED)
}

/// Whether a request says something that only a node may say.
pub(crate) fn is_of_a_node(headers: &HeaderMap) -> bool {
    is_forwarded(headers) || headers.contains_key(&IDENTITY)
}

/// Takes away what only nodes may say, before a request is passed on.
pub(crate) fn strip(headers: &mut HeaderMap) {
    for name in [&FORWARDED, &PROOF, &IDENTITY, &ABOUT] {
        headers.remove(name);
    }
}

/// Proves the head of a request that is about to be passed on, as it is now.
pub(crate) fn sign(secret: &ClusterSecret, cluster: ClusterId, head: &mut Parts) {
    let proof = proof(secret, cluster, &head.method, path(head), &head.headers).to_hex();
    let proof = HeaderValue::from_str(&proof).expect("hexadecimal digits are a valid header");
    head.headers.insert(&PROOF, proof);
}

/// Checks that a request which says that it was passed on was passed on by a node of this journal. Its identity is then
/// in the extensions.
///
/// # Errors
/// `forbidden` for a wrong proof, and for an identity without one; `not_active` where the proof is missing: the node may
/// learn the secret in a moment, and nothing has happened.
pub(crate) fn check(
    secret: Option<&ClusterSecret>,
    cluster: ClusterId,
    head: &mut Parts,
) -> Result<(), Problem> {
    let identity = head.headers.get(&IDENTITY).cloned();
    let is_proved = match (secret, head.headers.get(&PROOF)) {
        _ if !is_forwarded(&head.headers) => false,
        (Some(secret), Some(given)) => {
            if !verify(secret, cluster, head, given) {
                return Err(forbidden("the proof of a passed-on request is wrong"));
            }
            true
        }
        (Some(_), None) => {
            let detail = "a passed-on request carries no proof, which every node of this journal can give";
            return Err(Problem::new(ErrorCode::NotActive, detail));
        }
        (None, _) => false,
    };
    match identity {
        Some(_) if !is_proved => Err(forbidden("only a node of this journal may say for whom it asks")),
        Some(identity) => {
            head.extensions.insert(ForwardedIdentity(identity));
            Ok(())
        }
        None => Ok(()),
    }
}

fn verify(secret: &ClusterSecret, cluster: ClusterId, head: &Parts, given: &HeaderValue) -> bool {
    let given = given.to_str().ok().and_then(|text| blake3::Hash::from_hex(text).ok());
    // Hashes are compared in constant time.
    given == Some(proof(secret, cluster, &head.method, path(head), &head.headers))
}

fn path(head: &Parts) -> &str {
    head.uri.path_and_query().map_or("", |path| path.as_str())
}

fn proof(
    secret: &ClusterSecret,
    cluster: ClusterId,
    method: &Method,
    path: &str,
    headers: &HeaderMap,
) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new_keyed(secret.as_bytes());
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    part(CONTEXT);
    part(cluster.as_bytes());
    part(method.as_str().as_bytes());
    part(path.as_bytes());
    for name in [&FORWARDED, &ABOUT, &IDENTITY, &HeaderName::from_static(REQUEST_KEY_HEADER)] {
        let values: Vec<_> = headers.get_all(name).iter().collect();
        part(&(values.len() as u64).to_le_bytes());
        values.iter().for_each(|value| part(value.as_bytes()));
    }
    hasher.finalize()
}

fn forbidden(detail: &str) -> Problem {
    Problem::new(ErrorCode::Forbidden, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: ClusterSecret = ClusterSecret::from_bytes([7; 32]);

    fn cluster() -> ClusterId {
        ClusterId::from_bytes([1; 16])
    }

    fn head() -> Parts {
        let request = http::Request::post("/v1/locks/acquire?a=1")
            .header(&FORWARDED, "n1 http://n1")
            .header(&IDENTITY, "ann")
            .header(REQUEST_KEY_HEADER, "k");
        request.body(()).unwrap().into_parts().0
    }

    fn signed() -> Parts {
        let mut head = head();
        sign(&SECRET, cluster(), &mut head);
        head
    }

    fn code(checked: Result<(), Problem>) -> ErrorCode {
        checked.expect_err("it is refused").code
    }

    #[test]
    fn what_a_node_signed_is_taken_with_its_identity() {
        let mut head = signed();
        check(Some(&SECRET), cluster(), &mut head).unwrap();
        let identity = head.extensions.get::<ForwardedIdentity>().expect("it was proved");
        assert_eq!(identity.0, "ann");
    }

    #[test]
    fn anything_changed_is_refused() {
        let changes: [fn(&mut Parts); 7] = [
            |head| head.method = Method::GET,
            |head| head.uri = "/v1/locks/acquire?a=2".parse().unwrap(),
            |head| drop(head.headers.insert(&IDENTITY, "bob".parse().unwrap())),
            |head| assert!(head.headers.append(&IDENTITY, "bob".parse().unwrap())),
            |head| drop(head.headers.remove(REQUEST_KEY_HEADER)),
            |head| drop(head.headers.insert(&FORWARDED, "n2 http://n2".parse().unwrap())),
            |head| drop(head.headers.insert(&PROOF, "00".parse().unwrap())),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut head = signed();
            change(&mut head);
            assert_eq!(code(check(Some(&SECRET), cluster(), &mut head)), ErrorCode::Forbidden, "{number}");
            assert!(head.extensions.get::<ForwardedIdentity>().is_none());
        }
        let other = ClusterSecret::from_bytes([8; 32]);
        assert_eq!(code(check(Some(&other), cluster(), &mut signed())), ErrorCode::Forbidden);
        let elsewhere = ClusterId::from_bytes([2; 16]);
        assert_eq!(code(check(Some(&SECRET), elsewhere, &mut signed())), ErrorCode::Forbidden);
    }

    #[test]
    fn a_mark_without_proof_is_nobodys() {
        assert_eq!(code(check(Some(&SECRET), cluster(), &mut head())), ErrorCode::NotActive);
        let mut unmarked = head();
        unmarked.headers.remove(&FORWARDED);
        assert_eq!(code(check(Some(&SECRET), cluster(), &mut unmarked)), ErrorCode::Forbidden);
    }

    #[test]
    fn without_a_secret_a_mark_is_only_a_mark() {
        assert_eq!(code(check(None, cluster(), &mut head())), ErrorCode::Forbidden, "it has an identity");
        let mut plain = head();
        plain.headers.remove(&IDENTITY);
        check(None, cluster(), &mut plain).unwrap();
        assert!(plain.extensions.get::<ForwardedIdentity>().is_none());
        strip(&mut plain.headers);
        assert_eq!(plain.headers.len(), 1, "the key stays");
    }
}
