//! A password reaches the engine from wherever an operator may have put it, and a wrong one is refused.

use std::path::Path;

use super::small_node::fresh_claim;
use crate::remote::PASSWORD_VARIABLE;
use crate::{Journal, OpenError};

/// What a variable says.
type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Opens a journal whose engine asks for a password: with it in the URL, in a file, in the environment; with a wrong one;
/// with none. `url` names the user and no password; `journal` makes a journal of a URL and of what the environment says.
/// `dir` is for the file.
///
/// # Panics
/// When the right password is refused, or anything else is not.
pub async fn every_place_of_a_password<J: Journal>(
    url: &str,
    password: &str,
    dir: &Path,
    journal: impl Fn(&str, Environment<'_>) -> Result<J, String>,
) {
    let file = dir.join("password");
    for (password, is_right) in [(password, true), ("a guess", false)] {
        std::fs::write(&file, format!("{password}\n")).expect("the directory is the test's own");
        let (before, after) = url.split_once('@').expect("the URL names a user");
        let in_url = format!("{before}:{}@{after}", password.replace(' ', "%20"));
        let separator = if url.contains('?') { '&' } else { '?' };
        let in_file = format!("{url}{separator}password_file={}", file.display());
        let in_environment = |name: &str| (name == PASSWORD_VARIABLE).then(|| password.to_owned());
        let places: [(&str, &str, Environment<'_>); 3] = [
            ("the URL", &in_url, &|_| None),
            ("a file", &in_file, &|_| None),
            ("the environment", url, &in_environment),
        ];
        for (place, url, environment) in places {
            let opened = journal(url, environment).expect("the URL is lawful").open(fresh_claim()).await;
            match opened {
                Ok(_) => assert!(is_right, "a wrong password in {place} was accepted"),
                Err(error) => {
                    assert!(!is_right, "the right password in {place} was refused: {error}");
                    assert!(matches!(error, OpenError::Refused(_)), "a wrong password in {place}: {error}");
                    assert!(!error.to_string().contains(password), "a secret is shown: {error}");
                }
            }
        }
    }
    // Some say so before they ask the engine.
    if let Ok(journal) = journal(url, &|_| None) {
        let refused = journal.open(fresh_claim()).await;
        assert!(matches!(refused, Err(OpenError::Refused(_))), "no password at all: {refused:?}");
    }
}
