//! What the documents tell users works: the console blocks of README and docs/, run word for word.

use std::path::{Path, PathBuf};

use leasehold_tests::{binary, console};

#[test]
fn the_readme_works_as_written() {
    console::check(&[binary::root().join("README.md")], binary::path());
}

#[test]
fn every_page_works_as_written() {
    let (_, pages) = pages();
    console::check(&pages, binary::path());
}

#[test]
fn pages_that_use_a_database_work_as_written() {
    let (with_database, _) = pages();
    let server = leasehold_testbed::postgres();
    let port = server.url().rsplit([':', '/']).nth(1).expect("the address has a port").to_owned();
    let variables = [
        ("PGHOST", "127.0.0.1".to_owned()),
        ("PGPORT", port),
        ("PGUSER", "postgres".to_owned()),
        ("PGDATABASE", "postgres".to_owned()),
    ];
    console::check_with(&with_database, binary::path(), &variables);
}

/// Pages whose blocks need a PostgreSQL, and all others.
fn pages() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let uses_database = |page: &PathBuf| text(page).contains("psql -X");
    console::documents(&binary::root().join("docs")).into_iter().partition(uses_database)
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = binary::root();
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"].map(|page| root.join(page)).into();
    markdown(&root.join("docs"), &mut pages);
    let broken: Vec<String> = pages.iter().flat_map(|page| broken_links(page)).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn markdown(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in
        std::fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path())
    {
        if entry.is_dir() {
            markdown(&entry, found);
        } else if entry.extension().is_some_and(|extension| extension == "md") {
            found.push(entry);
        }
    }
}

/// Relative links of a page to files that are not there.
fn broken_links(page: &Path) -> Vec<String> {
    let directory = page.parent().expect("a page lies in a directory");
    let text = text(page);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|target| !target.contains([' ', '\n']) && !target.contains("://"));
    let files = local.filter_map(|target| target.split('#').next()).filter(|file| !file.is_empty());
    let missing = files.filter(|file| !directory.join(file).exists());
    missing.map(|file| format!("{}: {file}", page.display())).collect()
}

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}
