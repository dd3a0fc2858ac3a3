//! The report: Markdown tables, and plots beside them.

mod machine;
mod plot;
mod tables;

use std::path::Path;

use anyhow::Context as _;

use crate::args::Plan;
use crate::contest::Figures;

/// Everything between these two lines of a page is written by this program.
const BEGIN: &str = "<!-- figures: written by `cargo xtask bench-peers` -->";
const END: &str = "<!-- end of figures -->";

/// The tables as text.
pub(crate) fn markdown(plan: &Plan, figures: &Figures) -> String {
    let mut text = machine::heading(plan);
    text.push_str(&tables::all(figures));
    text
}

/// Puts tables and plots into a page, between its two marks.
pub(crate) fn write_page(page: &Path, plan: &Plan, figures: &Figures) -> anyhow::Result<()> {
    let old = std::fs::read_to_string(page).with_context(|| format!("cannot read {}", page.display()))?;
    let (before, rest) = old.split_once(BEGIN).context("the page has no mark for figures")?;
    let (_, after) = rest.split_once(END).context("the page has no mark for the end of figures")?;
    let mut text = markdown(plan, figures);
    let folder = page.parent().context("a page lies in a folder")?;
    for (name, title, svg) in plot::all(figures) {
        std::fs::write(folder.join(&name), svg)?;
        text.push_str(&format!("\n![{title}]({name})\n"));
    }
    std::fs::write(page, format!("{before}{BEGIN}\n\n{text}\n{END}{after}"))?;
    Ok(())
}
