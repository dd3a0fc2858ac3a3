//! What the documents tell users works: the console blocks of README and docs/, run word for word.

use leasehold_tests::{binary, console};

#[test]
fn the_readme_works_as_written() {
    console::check(&[binary::root().join("README.md")], binary::path());
}

#[test]
fn every_page_works_as_written() {
    console::check(&console::documents(&binary::root().join("docs")), binary::path());
}
