//! What the documents tell users works: the console blocks of README and docs/, run word for word.

use leasehold_tests::{binary, console};

#[test]
fn the_readme_works_as_written() {
    console::check(&binary::root().join("README.md"), binary::path());
}

#[test]
fn every_page_works_as_written() {
    for document in console::documents(&binary::root().join("docs")) {
        println!("{}", document.strip_prefix(binary::root()).unwrap().display());
        console::check(&document, binary::path());
    }
}
