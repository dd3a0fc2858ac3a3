//! Which call a path means. A small table of our own: paths are matched before they are decoded, so that `%2F` in a
//! name stays part of the name, and every other method than the listed ones is told what the path has.

use std::borrow::Cow;

use http::{Method, Uri};

/// How the span of a request is called: by its method and its route, never by what is in the path.
pub(crate) fn span_name(method: &Method, uri: &Uri) -> Cow<'static, str> {
    let route = Place::of(uri.path()).map_or("an unknown path", Place::route);
    format!("{method} {route}").into()
}

/// What a path names; parts of it are still percent-encoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place<'a> {
    Root,
    /// A file of the console; no call of the API.
    Console(&'a str),
    Acquire,
    Locks,
    Lock(&'a str),
    RenewLock(&'a str),
    Resource(&'a str),
    ForceRelease(&'a str),
    ValidateToken,
    FenceReport,
    Fences,
    Identity,
    Sessions,
    Session(&'a str),
    RenewSession(&'a str),
    Campaign(&'a str),
    Election(&'a str),
    Proclaim(&'a str),
    Resign(&'a str),
    Observe(&'a str),
    Events,
    Audit,
    AuditVerify,
    Credentials,
    Credential(&'a str),
    UpgradeFinish,
    Backups,
    Status,
    Healthz,
    Readyz,
    Metrics,
    OpenApi,
}

impl<'a> Place<'a> {
    /// What this path names.
    pub(crate) fn of(path: &'a str) -> Option<Self> {
        let path = path.strip_prefix('/')?;
        // No name or id is empty, so neither is a part of a path.
        if path.ends_with('/') || path.starts_with('/') || path.contains("//") {
            return None;
        }
        if let Some(file) = path.strip_prefix("console/") {
            return Some(Self::Console(file));
        }
        let mut parts = path.split('/');
        let parts = [parts.next(), parts.next(), parts.next(), parts.next(), parts.next()];
        Some(match parts {
            [Some(""), None, ..] => Self::Root,
            [Some("v1"), Some("locks"), None, ..] => Self::Locks,
            [Some("v1"), Some("locks"), Some("acquire"), None, _] => Self::Acquire,
            [Some("v1"), Some("locks"), Some(id), None, _] => Self::Lock(id),
            [Some("v1"), Some("locks"), Some(id), Some("renew"), None] => Self::RenewLock(id),
            [Some("v1"), Some("resources"), Some(name), None, _] => Self::Resource(name),
            [Some("v1"), Some("resources"), Some(name), Some("force-release"), None] => {
                Self::ForceRelease(name)
            }
            [Some("v1"), Some("tokens"), Some("validate"), None, _] => Self::ValidateToken,
            [Some("v1"), Some("fences"), Some("report"), None, _] => Self::FenceReport,
            [Some("v1"), Some("fences"), None, ..] => Self::Fences,
            [Some("v1"), Some("identity"), None, ..] => Self::Identity,
            [Some("v1"), Some("sessions"), None, ..] => Self::Sessions,
            [Some("v1"), Some("sessions"), Some(id), None, _] => Self::Session(id),
            [Some("v1"), Some("sessions"), Some(id), Some("renew"), None] => Self::RenewSession(id),
            [Some("v1"), Some("elections"), Some(name), None, _] => Self::Election(name),
            [Some("v1"), Some("elections"), Some(name), Some("campaign"), None] => Self::Campaign(name),
            [Some("v1"), Some("elections"), Some(name), Some("proclaim"), None] => Self::Proclaim(name),
            [Some("v1"), Some("elections"), Some(name), Some("resign"), None] => Self::Resign(name),
            [Some("v1"), Some("elections"), Some(name), Some("observe"), None] => Self::Observe(name),
            [Some("v1"), Some("events"), None, ..] => Self::Events,
            [Some("v1"), Some("audit"), None, ..] => Self::Audit,
            [Some("v1"), Some("audit"), Some("verify"), None, _] => Self::AuditVerify,
            [Some("v1"), Some("upgrade"), Some("finish"), None, _] => Self::UpgradeFinish,
            [Some("v1"), Some("backups"), None, ..] => Self::Backups,
            [Some("v1"), Some("credentials"), None, ..] => Self::Credentials,
            [Some("v1"), Some("credentials"), Some(id), None, _] => Self::Credential(id),
            [Some("v1"), Some("status"), None, ..] => Self::Status,
            [Some("healthz"), None, ..] => Self::Healthz,
            [Some("readyz"), None, ..] => Self::Readyz,
            [Some("metrics"), None, ..] => Self::Metrics,
            [Some("openapi.json"), None, ..] => Self::OpenApi,
            _ => return None,
        })
    }

    /// Whether the answer is the table's, so the active node's alone; else it is about the node that is asked.
    pub(crate) const fn is_of_the_table(self) -> bool {
        !matches!(
            self,
            Self::Root
                | Self::Console(_)
                | Self::Status
                | Self::Healthz
                | Self::Readyz
                | Self::Metrics
                | Self::OpenApi
        )
    }

    /// The path without what is named in it.
    pub(crate) const fn route(self) -> &'static str {
        match self {
            Self::Root => "/",
            Self::Console(_) => "/console/{file}",
            Self::Acquire => "/v1/locks/acquire",
            Self::Locks => "/v1/locks",
            Self::Lock(_) => "/v1/locks/{leaseId}",
            Self::RenewLock(_) => "/v1/locks/{leaseId}/renew",
            Self::Resource(_) => "/v1/resources/{resource}",
            Self::ForceRelease(_) => "/v1/resources/{resource}/force-release",
            Self::ValidateToken => "/v1/tokens/validate",
            Self::FenceReport => "/v1/fences/report",
            Self::Fences => "/v1/fences",
            Self::Identity => "/v1/identity",
            Self::Sessions => "/v1/sessions",
            Self::Session(_) => "/v1/sessions/{sessionId}",
            Self::RenewSession(_) => "/v1/sessions/{sessionId}/renew",
            Self::Campaign(_) => "/v1/elections/{name}/campaign",
            Self::Election(_) => "/v1/elections/{name}",
            Self::Proclaim(_) => "/v1/elections/{name}/proclaim",
            Self::Resign(_) => "/v1/elections/{name}/resign",
            Self::Observe(_) => "/v1/elections/{name}/observe",
            Self::Events => "/v1/events",
            Self::Audit => "/v1/audit",
            Self::AuditVerify => "/v1/audit/verify",
            Self::Credentials => "/v1/credentials",
            Self::Credential(_) => "/v1/credentials/{id}",
            Self::UpgradeFinish => "/v1/upgrade/finish",
            Self::Backups => "/v1/backups",
            Self::Status => "/v1/status",
            Self::Healthz => "/healthz",
            Self::Readyz => "/readyz",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/openapi.json",
        }
    }

    /// The methods of this path, as `Allow` lists them.
    pub(crate) const fn allow(self) -> &'static str {
        match self {
            Self::Acquire
            | Self::RenewLock(_)
            | Self::ForceRelease(_)
            | Self::ValidateToken
            | Self::FenceReport
            | Self::RenewSession(_)
            | Self::Campaign(_)
            | Self::Proclaim(_)
            | Self::Resign(_)
            | Self::UpgradeFinish
            | Self::Backups => "POST",
            Self::Lock(_) | Self::Session(_) => "GET, HEAD, DELETE",
            Self::Credential(_) => "DELETE",
            Self::Sessions | Self::Credentials => "GET, HEAD, POST",
            Self::Events | Self::Observe(_) => "GET",
            Self::Root
            | Self::Console(_)
            | Self::Locks
            | Self::Fences
            | Self::Identity
            | Self::Resource(_)
            | Self::Election(_)
            | Self::Audit
            | Self::AuditVerify
            | Self::Status
            | Self::Healthz
            | Self::Readyz
            | Self::Metrics
            | Self::OpenApi => "GET, HEAD",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_with_slashes_are_one_part_when_encoded() {
        assert_eq!(Place::of("/v1/resources/a%2Fb"), Some(Place::Resource("a%2Fb")));
        assert_eq!(Place::of("/v1/resources/a%2Fb/force-release"), Some(Place::ForceRelease("a%2Fb")));
        assert_eq!(Place::of("/v1/resources/a/b"), None);
        assert_eq!(Place::of("/v1/locks/acquire"), Some(Place::Acquire));
        for path in
            ["", "v1/locks", "/v1/locks/x/renew/", "/v1/locks/x/y", "/v2/locks", "//", "/v1", "/v1/tokens"]
        {
            assert_eq!(Place::of(path), None, "{path}");
        }
    }

    #[test]
    fn the_openapi_document_has_these_paths_and_methods_and_no_others() {
        let document: serde_json::Value = serde_json::from_str(leasehold_api::OPENAPI).unwrap();
        let paths = document["paths"].as_object().expect("paths");
        for (path, item) in paths {
            let place = Place::of(path).unwrap_or_else(|| panic!("{path} is documented and not served"));
            let mut methods: Vec<_> = item
                .as_object()
                .unwrap()
                .keys()
                .filter(|key| *key != "parameters")
                .map(|m| m.to_uppercase())
                .collect();
            let mut served: Vec<_> =
                place.allow().split(", ").filter(|m| *m != "HEAD").map(str::to_owned).collect();
            methods.sort();
            served.sort();
            assert_eq!(methods, served, "{path}");
        }
        assert_eq!(paths.len(), 31, "as many as Place has variants");
    }
}
