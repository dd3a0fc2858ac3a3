//! The console at `/`: a few files, built into the binary as they are. They hold no data; what a page shows it asks the
//! API for, with the rights of whoever looks.

use http::StatusCode;
use http::header::{CONTENT_SECURITY_POLICY, HeaderValue, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS};
use leasehold_api::{ErrorCode, Problem};

use super::answer::{Answer, Failure, whole};

/// Only files of this server are loaded, nothing inline runs, nobody may frame it, and it talks to this server alone.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'";

/// The files by their names, each with its kind.
macro_rules! files {
    ($($name:literal: $kind:literal),* $(,)?) => {
        &[$(($name, $kind, include_str!(concat!("../../console/", $name)))),*]
    };
}

const FILES: &[(&str, &str, &str)] = files! {
    "index.html": "text/html; charset=utf-8",
    "console.css": "text/css; charset=utf-8",
    "icon.svg": "image/svg+xml",
    "api.js": "text/javascript; charset=utf-8",
    "app.js": "text/javascript; charset=utf-8",
    "dom.js": "text/javascript; charset=utf-8",
    "force_release.js": "text/javascript; charset=utf-8",
    "format.js": "text/javascript; charset=utf-8",
    "live.js": "text/javascript; charset=utf-8",
    "metrics.js": "text/javascript; charset=utf-8",
    "pages/audit.js": "text/javascript; charset=utf-8",
    "pages/cluster.js": "text/javascript; charset=utf-8",
    "pages/elections.js": "text/javascript; charset=utf-8",
    "pages/fences.js": "text/javascript; charset=utf-8",
    "pages/locks.js": "text/javascript; charset=utf-8",
    "pages/overview.js": "text/javascript; charset=utf-8",
    "pages/resource.js": "text/javascript; charset=utf-8",
    "pages/sessions.js": "text/javascript; charset=utf-8",
    "pages/tenants.js": "text/javascript; charset=utf-8",
};

/// `GET /`.
pub(super) fn root() -> Result<Answer, Failure> {
    file("index.html")
}

/// `GET /console/{name}`.
pub(super) fn file(name: &str) -> Result<Answer, Failure> {
    let Some((_, kind, text)) = FILES.iter().find(|(known, ..)| *known == name) else {
        return Err(Problem::new(ErrorCode::NotFound, "the console has no such file").into());
    };
    let mut answer = whole(StatusCode::OK, kind, *text);
    let headers = answer.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_console_is_served_and_none_has_inline_code() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/console");
        let mut there = Vec::new();
        for folder in [folder.to_owned(), format!("{folder}/pages")] {
            let entries = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path());
            there.extend(entries.filter(|path| path.is_file()));
        }
        assert_eq!(
            there.len(),
            FILES.len(),
            "a file of the console is missing in the table, or a row is too many"
        );
        for (name, _, text) in FILES {
            assert!(!text.contains("innerHTML") && !text.contains("localStorage"), "{name}");
            assert!(
                !text.contains("<script>") && !text.contains(" style=") && !text.contains(" onclick="),
                "{name}"
            );
        }
    }
}
