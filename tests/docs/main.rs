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
    let (server, redis) = (leasehold_testbed::postgres(), leasehold_testbed::redis());
    let port = server.url().rsplit([':', '/']).nth(1).expect("the address has a port").to_owned();
    let variables = [
        ("PGHOST", "127.0.0.1".to_owned()),
        ("PGPORT", port),
        ("PGUSER", "postgres".to_owned()),
        ("PGDATABASE", "postgres".to_owned()),
        ("REDIS", redis.url().to_owned()),
    ];
    console::check_with(&with_database, binary::path(), &variables);
}

/// Pages whose blocks need a PostgreSQL, and perhaps a Redis too; and all others.
fn pages() -> (Vec<PathBuf>, Vec<PathBuf>) {
    let uses_database = |page: &PathBuf| text(page).contains("psql -X");
    console::documents(&binary::root().join("docs")).into_iter().partition(uses_database)
}

#[test]
fn links_between_pages_lead_somewhere() {
    let root = binary::root();
    let mut pages: Vec<PathBuf> =
        ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "deploy/README.md"]
            .map(|page| root.join(page))
            .into();
    markdown(&root.join("docs"), &mut pages);
    let broken: Vec<String> = pages.iter().flat_map(|page| broken_links(page)).collect();
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn the_index_names_every_page_and_the_architecture_every_decision() {
    let docs = binary::root().join("docs");
    let (index, architecture) =
        (text(&docs.join("README.md")), text(&binary::root().join("ARCHITECTURE.md")));
    let mut pages = Vec::new();
    markdown(&docs, &mut pages);
    for page in pages {
        let name = page.strip_prefix(&docs).expect("it was found there").display().to_string();
        let is_named = match name.as_str() {
            "README.md" => true,
            decision if decision.starts_with("decisions/") => {
                architecture.contains(&format!("(docs/{name})"))
            }
            _ => index.contains(&format!("({name})")),
        };
        assert!(is_named, "{name} is in no index");
    }
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

/// Relative links of a page to files, or to headings of pages, that are not there.
fn broken_links(page: &Path) -> Vec<String> {
    let text = text(page);
    let targets = text.split("](").skip(1).filter_map(|rest| rest.split_once(')')).map(|(target, _)| target);
    let local = targets.filter(|target| !target.contains([' ', '\n']) && !target.contains("://"));
    let broken = local.filter(|target| !leads_somewhere(page, target));
    broken.map(|target| format!("{}: {target}", page.display())).collect()
}

fn leads_somewhere(page: &Path, target: &str) -> bool {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let directory = page.parent().expect("a page lies in a directory");
    let file = if file.is_empty() { page.to_owned() } else { directory.join(file) };
    file.exists() && (heading.is_empty() || headings(&file).any(|found| found == heading))
}

/// The headings of a page as links name them.
fn headings(page: &Path) -> impl Iterator<Item = String> {
    let text = text(page);
    let lines: Vec<String> =
        text.lines().filter(|line| line.starts_with('#')).map(str::to_lowercase).collect();
    let is_kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
    let name =
        move |line: &str| line.trim_start_matches('#').trim().chars().filter(is_kept).collect::<String>();
    lines.into_iter().map(move |line| name(&line).replace(' ', "-"))
}

fn text(page: &Path) -> String {
    std::fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}
