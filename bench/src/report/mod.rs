//! The report: the goals, Markdown tables, and plots beside them.

mod goals;
mod machine;
mod plot;
mod tables;

use std::fmt::Write as _;
use std::path::Path;

use anyhow::Context as _;

use crate::figures::{Figures, Occasion};

pub(crate) use machine::occasion;

/// Everything between these two lines of a page is written by this program.
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench-peers --page` -->";
const END: &str = "<!-- end of figures -->";

/// The tables as text.
pub(crate) fn markdown(figures: &Figures) -> String {
    let mut text = goals::table(figures);
    for (title, table, occasions) in tables::all(figures) {
        let made: Vec<_> = occasions.into_iter().map(line).collect();
        let _ = write!(text, "\n### {title}\n\n{table}\n{}\n", made.join("\\\n"));
    }
    text
}

fn line(occasion: &Occasion) -> String {
    let Occasion { date, machine, rounds, turn_seconds } = occasion;
    format!("*{date}, {machine}; {rounds} rounds, turns of {turn_seconds:.1} s.*")
}

/// Puts tables and plots into a page, between its two marks. The figures themselves lie in a folder of the page's name.
pub(crate) fn write_page(page: &Path, figures: &Figures) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let (before, rest) = old.split_once(BEGIN).context("the page has no mark for figures")?;
    let (_, after) = rest.split_once(END).context("the page has no mark for the end of figures")?;
    let folder = page.with_extension("");
    let name = folder.file_name().context("a page has a name")?.to_string_lossy();
    std::fs::create_dir_all(&folder)?;
    figures.store(&folder.join("figures.json"))?;
    let mut text = markdown(figures);
    for (file, title, svg) in plot::all(figures) {
        std::fs::write(folder.join(&file), svg)?;
        let _ = write!(text, "\n![{title}]({name}/{file})\n");
    }
    std::fs::write(page, format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))?;
    Ok(())
}

/// What was kept beside a page.
pub(crate) fn figures_of(page: &Path) -> anyhow::Result<Figures> {
    Figures::load(&page.with_extension("").join("figures.json"))
}
