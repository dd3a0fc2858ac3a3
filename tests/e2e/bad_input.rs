//! What a service meets on a network: every bad request is refused with a useful detail, and nothing changes.

use leasehold_tests::Server;
use serde_json::Value;

/// A request, the status it must get, and a word that its detail must have.
struct Case {
    name: &'static str,
    request: Vec<u8>,
    status: u16,
    detail: &'static str,
}

#[test]
fn bad_input_is_refused_with_a_detail_and_changes_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&dir.path().join("data"));
    let mut http = server.http();
    let before = http.get("/v1/status").unwrap().json();
    let mut wrong = Vec::new();
    for case in cases(server.port()) {
        http.hang_up();
        match http.raw(&case.request) {
            Ok(answer) => {
                let problem = answer.json();
                let detail = problem["detail"].as_str().unwrap_or_default();
                let told =
                    answer.status == case.status && detail.contains(case.detail) && is_problem(&problem);
                if !told {
                    wrong.push(format!("{}: {} {}", case.name, answer.status, answer.body));
                }
            }
            Err(error) => wrong.push(format!("{}: no answer: {error}", case.name)),
        }
    }
    assert!(wrong.is_empty(), "{} cases differ:\n{}", wrong.len(), wrong.join("\n"));
    http.hang_up();
    let after = http.get("/v1/status").unwrap().json();
    for field in ["lastToken", "slot", "locksHeld", "sessionsOpen"] {
        assert_eq!(after[field], before[field], "{field} changed");
    }
    let log = server.log();
    let errors: Vec<&str> = log.lines().filter(|line| line.contains("ERROR")).collect();
    assert!(errors.is_empty(), "a caller's mistake is no error of ours: {errors:?}");
}

fn is_problem(problem: &Value) -> bool {
    let has = |field: &str| problem[field].is_string();
    has("type") && has("title") && has("code") && has("sideEffects") && problem["retryable"].is_boolean()
}

fn cases(port: u16) -> Vec<Case> {
    let mut cases: Vec<Case> = bodies()
        .into_iter()
        .map(|(name, body, detail)| Case {
            name,
            request: post(port, "/v1/locks/acquire", "application/json", body.as_ref()),
            status: 400,
            detail,
        })
        .collect();
    cases.extend(others(port));
    cases
}

/// Bodies of an acquire, all of them 400.
fn bodies() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let text = |text: &str| text.as_bytes().to_vec();
    let long = format!(r#"{{"resource":"{}","ownerId":"a"}}"#, "x".repeat(513));
    vec![
        ("empty body", text(""), ""),
        ("not JSON", text("hello"), ""),
        ("truncated JSON", text(r#"{"resource":"a","ownerId":"#), ""),
        ("not an object", text("[]"), ""),
        ("no resource", text(r#"{"ownerId":"a"}"#), "resource"),
        ("no owner", text(r#"{"resource":"a"}"#), "ownerId"),
        ("empty resource", text(r#"{"resource":"","ownerId":"a"}"#), "resource is empty"),
        ("resource of dots", text(r#"{"resource":"..","ownerId":"a"}"#), "resource"),
        ("resource too long", text(&long), "513"),
        ("control character", text(r#"{"resource":"a\u0000b","ownerId":"a"}"#), "not allowed"),
        ("not UTF-8", b"{\"resource\":\"\xff\xfe\",\"ownerId\":\"a\"}".to_vec(), ""),
        ("resource of wrong type", text(r#"{"resource":7,"ownerId":"a"}"#), ""),
        ("ttl 0", text(r#"{"resource":"a","ownerId":"a","ttlMs":0}"#), "ttl"),
        ("ttl negative", text(r#"{"resource":"a","ownerId":"a","ttlMs":-5}"#), ""),
        ("ttl absurd", text(r#"{"resource":"a","ownerId":"a","ttlMs":99999999999}"#), "ttl"),
        (
            "ttl overflowing",
            text(r#"{"resource":"a","ownerId":"a","ttlSeconds":18446744073709551615}"#),
            "ttl",
        ),
        ("ttl as text", text(r#"{"resource":"a","ownerId":"a","ttlMs":"15s"}"#), ""),
        ("ttl fractional", text(r#"{"resource":"a","ownerId":"a","ttlMs":1.5}"#), ""),
        ("both ttls", text(r#"{"resource":"a","ownerId":"a","ttlMs":5000,"ttlSeconds":5}"#), "ttl"),
        ("null field", text(r#"{"resource":"a","ownerId":"a","ttlMs":null}"#), ""),
        ("unknown field", text(r#"{"resource":"a","ownerId":"a","colour":"red"}"#), "colour"),
        ("duplicate field", text(r#"{"resource":"a","resource":"b","ownerId":"a"}"#), "resource"),
        ("wait absurd", text(r#"{"resource":"a","ownerId":"a","waitMs":999999999}"#), "wait"),
        ("unknown mode", text(r#"{"resource":"a","ownerId":"a","mode":"writer"}"#), "writer"),
        ("semaphore without limit", text(r#"{"resource":"a","ownerId":"a","mode":"semaphore"}"#), "limit"),
        ("limit 0", text(r#"{"resource":"a","ownerId":"a","mode":"semaphore","limit":0}"#), "limit"),
        ("limit without semaphore", text(r#"{"resource":"a","ownerId":"a","limit":3}"#), "limit"),
        ("lease id not a UUID", text(r#"{"resource":"a","ownerId":"a","leaseId":"7"}"#), ""),
        (
            "lease id not random",
            text(r#"{"resource":"a","ownerId":"a","leaseId":"6ba7b810-9dad-11d1-80b4-00c04fd430c8"}"#),
            "",
        ),
        ("deep nesting", format!("{}{}", "[".repeat(10_000), "]".repeat(10_000)).into_bytes(), ""),
    ]
}

/// Everything that is wrong outside of an acquire's body.
fn others(port: u16) -> Vec<Case> {
    let good: &[u8] = br#"{"resource":"a","ownerId":"a"}"#;
    let case = |name, request, status, detail| Case { name, request, status, detail };
    let acquire = |content_type: &str, body: &[u8]| post(port, "/v1/locks/acquire", content_type, body);
    vec![
        case("10 MB body", acquire("application/json", &vec![b' '; 10 << 20]), 413, ""),
        case("content type text", acquire("text/plain", good), 415, ""),
        case("content type form", acquire("application/x-www-form-urlencoded", good), 415, ""),
        case("wrong method", get(port, "PUT", "/v1/locks/acquire", ""), 405, ""),
        case("no such path", get(port, "GET", "/v2/locks", ""), 404, ""),
        case("unknown parameter", get(port, "GET", "/v1/locks?colour=red", ""), 400, "colour"),
        case("parameter of wrong type", get(port, "GET", "/v1/locks?pageSize=many", ""), 400, ""),
        case("lease id in path not a UUID", get(port, "GET", "/v1/locks/7", ""), 400, ""),
        case("resource in path not UTF-8", get(port, "GET", "/v1/resources/%FF", ""), 400, ""),
        case(
            "resource in path too long",
            get(port, "GET", &format!("/v1/resources/{}", "x".repeat(600)), ""),
            400,
            "",
        ),
        case("host of somebody else", get(port, "GET", "/v1/status", "host: evil.example\r\n"), 403, ""),
        case(
            "origin of somebody else",
            get(port, "GET", "/v1/status", "origin: http://evil.example\r\n"),
            403,
            "",
        ),
        case("key too long", keyed(port, &"k".repeat(200)), 400, "Idempotency-Key"),
    ]
}

fn post(port: u16, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let mut request = format!(
        "POST {path} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    request.extend_from_slice(body);
    request
}

fn get(port: u16, method: &str, path: &str, header: &str) -> Vec<u8> {
    let host =
        if header.starts_with("host:") { String::new() } else { format!("host: 127.0.0.1:{port}\r\n") };
    format!("{method} {path} HTTP/1.1\r\n{host}{header}\r\n").into_bytes()
}

fn keyed(port: u16, key: &str) -> Vec<u8> {
    let body = r#"{"resource":"a","ownerId":"a"}"#;
    let length = body.len();
    format!(
        "POST /v1/locks/acquire HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\ncontent-type: application/json\r\n\
         idempotency-key: {key}\r\ncontent-length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
