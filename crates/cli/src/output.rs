//! What goes to standard output: tables for people, stable JSON for scripts.

use std::io::{self, IsTerminal as _, Write};

use serde::Serialize;

use crate::failure::Failure;

/// Tables or JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// For people; may change.
    #[default]
    Table,
    /// For scripts; stable.
    Json,
}

/// Standard output with the chosen format.
pub(crate) struct Out {
    format: Format,
    bold: bool,
    to: Box<dyn Write>,
}

impl Out {
    /// Standard output; headings are bold on a terminal unless `NO_COLOR` is set.
    pub(crate) fn new(format: Format) -> Self {
        let stdout = io::stdout();
        let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self { format, bold: stdout.is_terminal() && !plain, to: Box::new(stdout.lock()) }
    }

    /// Which format was chosen.
    pub(crate) fn format(&self) -> Format {
        self.format
    }

    /// One JSON value on one line.
    pub(crate) fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        let line = serde_json::to_string(value).map_err(|error| Failure::output(error.into()))?;
        self.line(&line)
    }

    /// One line, seen at once even when piped.
    pub(crate) fn line(&mut self, line: &str) -> Result<(), Failure> {
        writeln!(self.to, "{line}").and_then(|()| self.to.flush()).map_err(Failure::output)
    }

    /// Text that has its own line ends.
    pub(crate) fn text(&mut self, text: &str) -> Result<(), Failure> {
        text.lines().try_for_each(|line| self.line(line))
    }

    /// Names and values, one pair on a line, values in one column.
    pub(crate) fn pairs(&mut self, pairs: &[(&str, String)]) -> Result<(), Failure> {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in pairs {
            self.line(&format!("{name:<width$}  {value}"))?;
        }
        Ok(())
    }

    /// A table with a heading. Nothing but the heading when there are no rows.
    pub(crate) fn table(&mut self, headings: &[&str], rows: &[Vec<String>]) -> Result<(), Failure> {
        let widths: Vec<usize> = (0..headings.len()).map(|column| width(headings, rows, column)).collect();
        let heading = row(&widths, headings.iter().copied());
        let heading = if self.bold { format!("\x1b[1m{heading}\x1b[0m") } else { heading };
        self.line(&heading)?;
        rows.iter().try_for_each(|cells| self.line(&row(&widths, cells.iter().map(String::as_str))))
    }
}

fn width(headings: &[&str], rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|cells| cells.get(column)).map(|cell| cell.chars().count());
    cells.chain([headings[column].len()]).max().unwrap_or(0)
}

fn row<'a>(widths: &[usize], cells: impl Iterator<Item = &'a str>) -> String {
    let padded: Vec<String> =
        widths.iter().zip(cells).map(|(width, cell)| format!("{cell:<width$}")).collect();
    padded.join("  ").trim_end().to_owned()
}

/// The value, or a dash where there is none.
pub(crate) fn or_dash(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "-".into(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows =
            vec![vec!["a/long/name".to_owned(), "7".to_owned()], vec!["ü".to_owned(), "1000".to_owned()]];
        let widths: Vec<usize> = (0..2).map(|column| width(&["RESOURCE", "TOKEN"], &rows, column)).collect();
        assert_eq!(widths, [11, 5]);
        assert_eq!(row(&widths, ["ü", "7"].into_iter()), "ü            7");
    }
}
