//! Names of tables and columns, as people type them.

use std::fmt;

use super::Dialect;

/// PostgreSQL cuts longer names off without a word; with a suffix of ours it must still fit.
const MOST_BYTES: usize = 48;

/// Why a text is not a name of a table or column.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error(
    "{0:?} is not a name of a table or column: 1 to 48 bytes without control characters, one dot at most"
)]
pub struct InvalidIdentifier(String);

/// A table, with its schema where one is given: `accounts`, `billing.accounts`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TableName {
    schema: Option<String>,
    name: String,
}

impl TableName {
    /// Reads `table` or `schema.table`.
    ///
    /// # Errors
    /// A part that is empty, too long or has a control character; more than two parts.
    pub fn parse(text: &str) -> Result<Self, InvalidIdentifier> {
        let invalid = || InvalidIdentifier(text.to_owned());
        let parts: Vec<&str> = text.split('.').collect();
        if !parts.iter().all(|part| valid(part)) {
            return Err(invalid());
        }
        match *parts {
            [name] => Ok(Self { schema: None, name: name.to_owned() }),
            [schema, name] => Ok(Self { schema: Some(schema.to_owned()), name: name.to_owned() }),
            _ => Err(invalid()),
        }
    }

    /// The table without its schema.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The schema (on MariaDB the database, on SQLite the attached file), if one was given.
    pub fn schema(&self) -> Option<&str> {
        self.schema.as_deref()
    }

    /// The name as it stands in a statement.
    pub fn quoted(&self, dialect: Dialect) -> String {
        self.sibling(dialect, &self.name)
    }

    /// Another name in the same schema, as it stands in a statement.
    pub(crate) fn sibling(&self, dialect: Dialect, name: &str) -> String {
        match &self.schema {
            Some(schema) => format!("{}.{}", dialect.quote(schema), dialect.quote(name)),
            None => dialect.quote(name),
        }
    }
}

/// Checks the name of a column.
pub(crate) fn column(text: &str) -> Result<String, InvalidIdentifier> {
    if valid(text) { Ok(text.to_owned()) } else { Err(InvalidIdentifier(text.to_owned())) }
}

fn valid(part: &str) -> bool {
    !part.is_empty() && part.len() <= MOST_BYTES && !part.chars().any(char::is_control)
}

impl fmt::Display for TableName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.schema {
            Some(schema) => write!(f, "{schema}.{}", self.name),
            None => f.write_str(&self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_quoted_not_trusted() {
        let table = TableName::parse("billing.odd\"name").expect("odd but lawful");
        assert_eq!(table.quoted(Dialect::Postgres), "\"billing\".\"odd\"\"name\"");
        assert_eq!(table.quoted(Dialect::Mariadb), "`billing`.`odd\"name`");
        assert_eq!(Dialect::Mariadb.literal("a'\\b"), "'a''\\\\b'");
    }

    #[test]
    fn what_is_no_name_is_refused() {
        for text in ["", "a.b.c", "a.", "a\nb", &"x".repeat(49)] {
            assert!(TableName::parse(text).is_err(), "{text:?}");
        }
    }
}
