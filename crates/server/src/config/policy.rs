//! What is said of lock names by how they begin (E5b).

use std::str::FromStr;

use leasehold_api::{AcquireRequest, ErrorCode, Problem};
use leasehold_core::Reply;
use leasehold_types::{Class, limits};
use serde::{Deserialize, Serialize};

use super::{ConfigError, WrittenDuration};

/// What becomes of acquires of names that no policy declares.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Undeclared {
    /// Nothing.
    #[default]
    Allow,
    /// The grant carries a warning.
    Warn,
    /// They are refused.
    Refuse,
}

impl FromStr for Undeclared {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "allow" => Ok(Self::Allow),
            "warn" => Ok(Self::Warn),
            "refuse" => Ok(Self::Refuse),
            _ => Err("is none of allow, warn, refuse"),
        }
    }
}

/// A policy as it is written.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawPolicy {
    /// How the names begin.
    pub prefix: String,
    /// What they are for, for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The ttl of acquires that ask for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<WrittenDuration>,
    /// `correctness` or `efficiency`: of acquires that ask for none; others are refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<String>,
    /// What kind of fence guards what they protect, such as `postgres`: grants then say `fenced`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fence: Option<String>,
}

/// What is said of the names that begin with a prefix.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Policy {
    /// How the names begin.
    pub prefix: String,
    /// What they are for, for people.
    pub description: String,
    /// The ttl of acquires that ask for none.
    pub ttl_ms: Option<u64>,
    /// The class of acquires that ask for none; no other is granted.
    pub class: Option<Class>,
    /// What kind of fence guards what they protect.
    pub fence: Option<String>,
}

impl Policy {
    fn spelled_out(&self) -> String {
        let mut line = format!("policy {}", self.prefix);
        if let Some(ttl_ms) = self.ttl_ms {
            line.push_str(&format!(" ttl {ttl_ms} ms"));
        }
        if let Some(class) = self.class {
            line.push_str(&format!(" class {class}"));
        }
        if let Some(fence) = &self.fence {
            line.push_str(&format!(" fence {fence}"));
        }
        if !self.description.is_empty() {
            line.push_str(&format!(" ({})", self.description));
        }
        line
    }
}

/// Every policy.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Policies {
    /// Longest prefix first, so that the first that fits is the one that counts.
    rules: Vec<Policy>,
    undeclared: Undeclared,
}

const UNDECLARED: &str = "no policy declares this name";

/// More than anybody keeps an overview of.
const MOST: usize = 1_000;

impl Policies {
    pub(super) fn resolve(written: Vec<RawPolicy>, undeclared: Undeclared) -> Result<Self, ConfigError> {
        if written.len() > MOST {
            return Err(ConfigError::new("policies", format!("there are more than {MOST}")));
        }
        let mut rules = written.into_iter().map(resolve).collect::<Result<Vec<_>, _>>()?;
        rules.sort_by(|a, b| (b.prefix.len(), &a.prefix).cmp(&(a.prefix.len(), &b.prefix)));
        match rules.windows(2).find(|pair| pair[0].prefix == pair[1].prefix) {
            Some(pair) => Err(ConfigError::new("policies", format!("`{}` is there twice", pair[0].prefix))),
            None => Ok(Self { rules, undeclared }),
        }
    }

    /// Every policy, and what becomes of other names, as one text: the same settings give the same text.
    pub(super) fn spelled_out(&self) -> Vec<String> {
        let mut lines: Vec<_> = self.rules.iter().map(Policy::spelled_out).collect();
        if self.undeclared != Undeclared::default() {
            lines.push(format!("undeclared {:?}", self.undeclared).to_lowercase());
        }
        lines
    }

    /// What is said of this name.
    pub fn of(&self, name: &str) -> Option<&Policy> {
        self.rules.iter().find(|rule| name.starts_with(&rule.prefix))
    }

    /// The prefix that is declared for this name, for whoever groups names; a rule for every name is no prefix.
    pub fn prefix_of(&self, name: &str) -> Option<&str> {
        self.of(name).map(|rule| rule.prefix.as_str()).filter(|prefix| !prefix.is_empty())
    }

    /// Prefixes with the kind of fence that is declared for them.
    pub(crate) fn fences(&self) -> impl Iterator<Item = (&str, &str)> {
        self.rules.iter().filter_map(|rule| Some((rule.prefix.as_str(), rule.fence.as_deref()?)))
    }

    /// What becomes of a name of which nothing is said.
    pub fn undeclared(&self) -> Undeclared {
        self.undeclared
    }

    /// Fills in what an acquire leaves open, and refuses what is not as declared.
    pub(crate) fn govern(&self, request: &mut AcquireRequest) -> Result<(), Problem> {
        if self.is_empty() {
            return Ok(());
        }
        let Some(policy) = self.of(request.resource.as_str()) else {
            return match self.undeclared {
                Undeclared::Refuse => Err(Problem::new(
                    ErrorCode::Forbidden,
                    "no policy declares this name, and undeclared ones are refused",
                )),
                Undeclared::Allow | Undeclared::Warn => Ok(()),
            };
        };
        if let Some(class) = policy.class
            && *request.class.get_or_insert(class) != class
        {
            let detail = format!("the policy of `{}` wants the class {class}", policy.prefix);
            return Err(Problem::new(ErrorCode::ClassNotSupported, detail));
        }
        if request.session_id.is_none() && request.ttl_ms.is_none() && request.ttl_seconds.is_none() {
            request.ttl_ms = policy.ttl_ms;
        }
        Ok(())
    }

    /// Says of a grant that nothing is declared of its name, where that is wanted.
    pub(crate) fn warn(&self, reply: &mut Reply) {
        if self.undeclared == Undeclared::Warn
            && let Reply::Granted(grant) = reply
            && self.of(grant.resource.as_str()).is_none()
        {
            grant.warning = grant.warning.or(Some(UNDECLARED));
        }
    }

    /// Whether nothing is said of any name.
    pub fn is_empty(&self) -> bool {
        self.rules.is_empty() && self.undeclared == Undeclared::Allow
    }
}

fn resolve(raw: RawPolicy) -> Result<Policy, ConfigError> {
    let wrong = |what: &str| ConfigError::new(format!("policies.{}", raw.prefix), what);
    if raw.prefix.len() > limits::NAME_BYTES || raw.prefix.chars().any(char::is_control) {
        return Err(wrong("a prefix is the beginning of a resource name"));
    }
    let class = match raw.class.as_deref() {
        None => None,
        Some(text) => Some(Class::parse(text).ok_or_else(|| wrong("class: correctness or efficiency"))?),
    };
    let ttl_ms = raw.ttl.map(|ttl| u64::try_from(ttl.0.as_millis()).unwrap_or(u64::MAX));
    Ok(Policy {
        prefix: raw.prefix,
        description: raw.description.unwrap_or_default(),
        ttl_ms,
        class,
        fence: raw.fence,
    })
}

#[cfg(test)]
mod tests {
    use crate::config::RawConfig;

    use super::*;

    fn policies(text: &str) -> Result<Policies, ConfigError> {
        RawConfig::from_toml(text).unwrap().resolve().map(|config| (*config.limits.policies.now()).clone())
    }

    #[test]
    fn the_longest_prefix_counts() {
        let policies = policies(
            "[[policies]]\nprefix = \"a/\"\nttl = \"30s\"\n\
             [[policies]]\nprefix = \"a/b/\"\nclass = \"efficiency\"\nfence = \"postgres\"\n",
        )
        .unwrap();
        assert_eq!(policies.of("a/x").unwrap().ttl_ms, Some(30_000));
        let inner = policies.of("a/b/c").unwrap();
        assert_eq!((inner.class, inner.fence.as_deref()), (Some(Class::Efficiency), Some("postgres")));
        assert!(policies.of("b").is_none() && !policies.is_empty());
    }

    #[test]
    fn nonsense_is_refused() {
        let twice = "[[policies]]\nprefix = \"a\"\n[[policies]]\nprefix = \"a\"\n";
        assert!(policies(twice).is_err());
        assert!(policies("[[policies]]\nprefix = \"a\"\nclass = \"best\"\n").is_err());
        assert_eq!(policies("undeclared = \"refuse\"").unwrap().undeclared(), Undeclared::Refuse);
    }
}
