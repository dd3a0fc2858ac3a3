//! The reference page and the surface agree.

use leasehold_api::{ErrorCode, OPENAPI};
use serde_json::Value;

use crate::support::TestServer;

const PAGE: &str = include_str!("../../../../docs/reference/http-api.md");

#[test]
fn every_call_and_every_code_is_explained() {
    let document: Value = serde_json::from_str(OPENAPI).unwrap();
    for (path, item) in document["paths"].as_object().unwrap() {
        for method in item.as_object().unwrap().keys() {
            let call = format!("`{} {path}`", method.to_uppercase());
            assert!(PAGE.contains(&call), "{call} is not explained");
        }
    }
    for code in ErrorCode::ALL {
        let row = format!("| `{code}` | {} |", code.http_status());
        assert!(PAGE.contains(&row), "{row} is not explained");
    }
}

/// What the page shows of an answer has the fields that the answer has.
#[tokio::test]
async fn shown_answers_are_like_real_ones() {
    let server = TestServer::start().await;
    let mut shown = PAGE.lines();
    let mut checked = 0;
    while let Some(command) = shown.next() {
        let Some(path) = path_of(command) else { continue };
        let answer = shown.next().expect("an answer follows its command");
        let Ok(answer) = serde_json::from_str::<Value>(answer) else { continue };
        let real = match body_of(command) {
            Some(body) => server.post(&path, serde_json::from_str(body).unwrap()).await.json(),
            None if command.contains("-X ") => continue,
            None => server.get(&path).await.json(),
        };
        let fields = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(fields(&answer), fields(&real), "{command}");
        checked += 1;
    }
    assert!(checked >= 8, "{checked} examples were checked");
}

fn path_of(command: &str) -> Option<String> {
    let after = command.strip_prefix("$ curl")?.split("$S").nth(1)?;
    Some(after.split([' ', '"']).next()?.to_owned())
}

fn body_of(command: &str) -> Option<&str> {
    command.split("-d '").nth(1)?.strip_suffix('\'')
}

#[tokio::test]
async fn every_metric_is_explained_and_every_explained_one_exists() {
    let page = include_str!("../../../../docs/reference/metrics.md");
    let server = TestServer::start().await;
    server.acquire("a/b", "ann").await;
    let text = server.get("/metrics").await.text().to_owned();
    let served: Vec<_> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .map(|line| line.replace(' ', "` | "))
        .map(|start| format!("| `{start} |"))
        .collect();
    for row in &served {
        assert!(page.contains(row.as_str()), "{row} is not explained");
    }
    assert_eq!(
        page.lines().filter(|line| line.starts_with("| `")).count(),
        served.len(),
        "rows of metrics.md"
    );
}
