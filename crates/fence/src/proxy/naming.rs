//! Which fence a request is to.

use http::HeaderName;
use http::request::Parts;
use leasehold_types::ResourceName;
use percent_encoding::percent_decode_str;

use crate::Fence;

/// How the lock that guards a request's target is named.
#[derive(Clone, Debug)]
pub struct Naming {
    rules: Vec<Rule>,
    each_permit: bool,
}

#[derive(Clone, Debug)]
enum Rule {
    Header(HeaderName),
    Path(PathRule),
}

/// `/books/{year}/{rest*}` and `books/{year}`.
#[derive(Clone, Debug)]
struct PathRule {
    segments: Vec<Segment>,
    name: String,
}

#[derive(Clone, Debug)]
enum Segment {
    Literal(String),
    One(String),
    Rest(String),
}

/// A header name, path template or name template that is none.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidNaming(String);

impl Naming {
    /// The lock's name is the value of this header. Whoever sends the request chooses the fence: use it only where the
    /// callers are trusted to name the right one.
    ///
    /// # Errors
    /// No name of a header.
    pub fn header(name: &str) -> Result<Self, InvalidNaming> {
        let header = name.parse().map_err(|_| InvalidNaming(format!("{name:?} is no name of a header")))?;
        Ok(Self { rules: vec![Rule::Header(header)], each_permit: false })
    }

    /// The lock's name is made from the path: `("/books/{year}", "books/{year}")`. `{name}` stands for one segment,
    /// `{name*}`, at the end, for the rest; a template fits every path that it begins.
    ///
    /// # Errors
    /// A template that is none, or a name that uses what the template does not have.
    pub fn path(template: &str, name: &str) -> Result<Self, InvalidNaming> {
        Ok(Self { rules: vec![Rule::Path(PathRule::parse(template, name)?)], each_permit: false })
    }

    /// The locks are semaphores: requests carry `X-Fencing-Permit`, and each permit has an order of its own. Exclusive
    /// grants are of the wrong scope then.
    #[must_use]
    pub fn each_permit(mut self) -> Self {
        self.each_permit = true;
        self
    }

    /// Tries this one's rules first, then the other's.
    #[must_use]
    pub fn or(mut self, other: Self) -> Self {
        self.rules.extend(other.rules);
        self
    }

    /// The fence of a request; `None`: no rule fits, or what fits is no name.
    pub fn find(&self, parts: &Parts) -> Option<Fence> {
        let name = self.rules.iter().find_map(|rule| match rule {
            Rule::Header(header) => Some(parts.headers.get(header)?.to_str().ok()?.to_owned()),
            Rule::Path(rule) => rule.name(parts.uri.path()),
        })?;
        let fence = Fence::of(&ResourceName::new(&name).ok()?);
        Some(if self.each_permit { fence.each_permit() } else { fence })
    }
}

impl PathRule {
    fn parse(template: &str, name: &str) -> Result<Self, InvalidNaming> {
        let invalid = |why: &str| InvalidNaming(format!("{template:?}: {why}"));
        let path = template.strip_prefix('/').ok_or_else(|| invalid("a path begins with /"))?;
        let segments: Vec<Segment> = path.trim_end_matches('/').split('/').map(Segment::parse).collect();
        let rest = segments.iter().position(|segment| matches!(segment, Segment::Rest(_)));
        if rest.is_some_and(|at| at + 1 < segments.len()) {
            return Err(invalid("{…*} stands for the rest and comes last"));
        }
        let rule = Self { segments, name: name.to_owned() };
        let sample = rule.fill(|variable| rule.has(variable).then(|| "x".to_owned()));
        let sample = sample.ok_or_else(|| invalid("the name uses a variable that the path has not"))?;
        ResourceName::new(&sample).map_err(|_| InvalidNaming(format!("{name:?} is no name of a lock")))?;
        Ok(rule)
    }

    fn has(&self, variable: &str) -> bool {
        self.segments.iter().any(|segment| segment.variable() == Some(variable))
    }

    /// The name for this path. Each segment is decoded once, after the path was cut.
    fn name(&self, path: &str) -> Option<String> {
        let mut rest = Some(path.strip_prefix('/')?);
        let mut values = Vec::new();
        for segment in &self.segments {
            let left = rest?;
            let (one, after) = left.split_once('/').map_or((left, None), |(one, after)| (one, Some(after)));
            match segment {
                Segment::Literal(literal) if literal.is_empty() || decoded(one)? == *literal => {}
                Segment::Literal(_) => return None,
                Segment::One(variable) => values.push((variable, decoded(one)?)),
                Segment::Rest(variable) => values.push((variable, decoded(left)?)),
            }
            rest = after;
        }
        let value = |wanted: &str| values.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
        self.fill(|variable| value(variable).filter(|value| !value.is_empty()).cloned())
    }

    fn fill(&self, value: impl Fn(&str) -> Option<String>) -> Option<String> {
        let (mut filled, mut left) = (String::new(), self.name.as_str());
        while let Some((before, after)) = left.split_once('{') {
            let (variable, after) = after.split_once('}')?;
            filled = filled + before + &value(variable)?;
            left = after;
        }
        Some(filled + left)
    }
}

impl Segment {
    fn parse(text: &str) -> Self {
        match text.strip_prefix('{').and_then(|inner| inner.strip_suffix('}')) {
            None => Self::Literal(text.to_owned()),
            Some(name) => match name.strip_suffix('*') {
                Some(name) => Self::Rest(name.to_owned()),
                None => Self::One(name.to_owned()),
            },
        }
    }

    fn variable(&self) -> Option<&str> {
        match self {
            Self::Literal(_) => None,
            Self::One(name) | Self::Rest(name) => Some(name),
        }
    }
}

fn decoded(text: &str) -> Option<String> {
    Some(percent_decode_str(text).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(naming: &Naming, uri: &str) -> Option<String> {
        let request = http::Request::post(uri).header("x-lock", "from-header").body(()).unwrap();
        naming.find(&request.into_parts().0).map(|fence| fence.guard().to_string())
    }

    #[test]
    fn a_path_names_its_lock() {
        let naming = Naming::path("/books/{year}", "books/{year}").unwrap();
        assert_eq!(named(&naming, "/books/2026").as_deref(), Some("books/2026"));
        assert_eq!(named(&naming, "/books/2026/close?x=1").as_deref(), Some("books/2026"));
        assert_eq!(named(&naming, "/books/20%2F26").as_deref(), Some("books/20/26"), "decoded once");
        for path in ["/books", "/books/", "/book/2026", "/", "/Books/2026", "/books/%00"] {
            assert_eq!(named(&naming, path), None, "{path}");
        }
    }

    #[test]
    fn the_rest_and_everything() {
        let naming = Naming::path("/files/{path*}", "files/{path}").unwrap();
        assert_eq!(named(&naming, "/files/a/b").as_deref(), Some("files/a/b"));
        let one = Naming::path("/", "the-service").unwrap();
        assert_eq!(named(&one, "/any/where").as_deref(), Some("the-service"));
        let both = Naming::path("/x/{a}", "{a}").unwrap().or(Naming::header("X-Lock").unwrap());
        assert_eq!(named(&both, "/x/y").as_deref(), Some("y"));
        assert_eq!(named(&both, "/z").as_deref(), Some("from-header"));
    }

    #[test]
    fn templates_that_are_none() {
        for (path, name) in [("books", "b"), ("/{a*}/b", "x"), ("/{a}", "{b}"), ("/{a}", ""), ("/a", "{b")] {
            assert!(Naming::path(path, name).is_err(), "{path} {name}");
        }
        assert!(Naming::header("no header").is_err());
    }
}
