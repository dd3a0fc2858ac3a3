//! Documents with console blocks.

/// A document in order: text that is left alone, and steps.
pub(super) struct Document {
    parts: Vec<Part>,
}

enum Part {
    Text(String),
    Step(Step),
}

/// One command and what it prints.
pub(super) struct Step {
    /// What is typed; several lines when it goes on after a backslash.
    pub(super) command: String,
    /// How it ends.
    pub(super) code: i32,
    /// What comes out, with wildcards.
    pub(super) expected: Vec<String>,
}

impl Document {
    /// Finds the console blocks.
    pub(super) fn parse(text: &str) -> Self {
        let mut parts: Vec<Part> = Vec::new();
        let mut in_block = false;
        let mut goes_on = false;
        for line in text.lines() {
            if line.starts_with("```") {
                in_block = !in_block && line.trim_end() == "```console";
                parts.push(Part::Text(line.into()));
                continue;
            }
            if !in_block {
                parts.push(Part::Text(line.into()));
                continue;
            }
            if let Some(command) = line.strip_prefix("$ ") {
                parts.push(Part::Step(Step { command: command.into(), code: 0, expected: Vec::new() }));
                goes_on = command.ends_with('\\');
                continue;
            }
            let Some(Part::Step(step)) = parts.last_mut() else {
                panic!("a console block begins with a command, not with `{line}`");
            };
            if goes_on {
                step.command.push('\n');
                step.command.push_str(line);
                goes_on = line.ends_with('\\');
            } else if let Some(code) = line.strip_prefix("? ").filter(|_| step.expected.is_empty()) {
                step.code = code.parse().expect("a line `? N` gives an exit code");
            } else {
                step.expected.push(line.into());
            }
        }
        Self { parts }
    }

    /// The steps, in order.
    pub(super) fn steps_mut(&mut self) -> impl Iterator<Item = &mut Step> {
        self.parts.iter_mut().filter_map(|part| match part {
            Part::Step(step) => Some(step),
            Part::Text(_) => None,
        })
    }

    /// The document again.
    pub(super) fn text(&self) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(line) => text.push_str(line),
                Part::Step(step) => text.push_str(&step.lines().join("\n")),
            }
            text.push('\n');
        }
        text
    }
}

impl Step {
    /// Whether this is what the document says.
    pub(super) fn is_met_by(&self, output: &str, code: i32) -> bool {
        let lines: Vec<&str> = output.lines().collect();
        let expected: Vec<&str> = self.expected.iter().map(String::as_str).collect();
        // An empty line at the end of a block separates it from the next command; it is not output.
        let expected = expected.strip_suffix(&[""]).unwrap_or(&expected);
        code == self.code && lines_match(expected, &lines)
    }

    /// Takes over what came.
    pub(super) fn take(&mut self, output: &str, code: i32) {
        self.code = code;
        self.expected = output.lines().map(str::to_owned).collect();
    }

    fn lines(&self) -> Vec<String> {
        let mut lines = vec![format!("$ {}", self.command)];
        if self.code != 0 {
            lines.push(format!("? {}", self.code));
        }
        lines.extend(self.expected.iter().cloned());
        lines
    }
}

/// The line without what is another in each run: UUIDs, times and hashes. Documents show real ones, which differ.
fn without_chance(line: &str) -> String {
    let is_part = |c: char| c.is_ascii_hexdigit() || matches!(c, '-' | ':' | '.' | 'T' | 'Z');
    let mut kept = String::new();
    let mut rest = line;
    while let Some(first) = rest.chars().next() {
        let length = rest.find(|c| is_part(c) != is_part(first)).unwrap_or(rest.len());
        let (run, more) = rest.split_at(length);
        let by_chance = match run.len() {
            24 => run.contains('T') && run.ends_with('Z'),
            36 => run.matches('-').count() == 4,
            64 => run.chars().all(|c| c.is_ascii_hexdigit()),
            _ => false,
        };
        kept.push_str(if by_chance { "<by chance>" } else { run });
        rest = more;
    }
    kept
}

fn lines_match(expected: &[&str], lines: &[&str]) -> bool {
    match expected.split_first() {
        None => lines.is_empty(),
        Some((&"...", rest)) => (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..])),
        Some((first, rest)) => match lines.split_first() {
            Some((line, more)) => {
                line_matches(&without_chance(first), &without_chance(line)) && lines_match(rest, more)
            }
            None => false,
        },
    }
}

fn line_matches(expected: &str, line: &str) -> bool {
    let Some((before, after)) = expected.split_once("[..]") else { return expected == line };
    let Some(rest) = line.strip_prefix(before) else { return false };
    (0..=rest.len()).filter(|&at| rest.is_char_boundary(at)).any(|at| line_matches(after, &rest[at..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_text_and_for_lines() {
        assert!(line_matches("token [..] of [..]", "token 7 of 9"));
        assert!(!line_matches("token [..] of", "token 7 of 9"));
        assert!(lines_match(&["a", "...", "z"], &["a", "b", "c", "z"]));
        assert!(lines_match(&["..."], &[]));
        assert!(!lines_match(&["a"], &["a", "b"]));
    }

    #[test]
    fn ids_and_times_may_be_others() {
        let line = |time: &str, id: &str| format!(r#"{{"at":"{time}"}} lease {id} token 7"#);
        let shown = line("2026-11-15T20:14:03.178Z", "6e411ee1-edc7-43d6-8ea8-6083b23dd804");
        let came = line("2027-01-01T00:00:00.000Z", "00000000-0000-4000-8000-000000000000");
        assert!(lines_match(&[&shown], &[&came]));
        assert!(!lines_match(&[&shown], &[&came.replace("token 7", "token 8")]));
    }

    #[test]
    fn a_document_is_written_as_it_was_read() {
        let text = "# T\n```console\n$ a \\\n  b\n? 75\nout\n\n$ c\n```\n```sh\n$ not run\n```\nend\n";
        let mut document = Document::parse(text);
        assert_eq!(document.text(), text);
        let steps: Vec<_> = document.steps_mut().collect();
        assert_eq!(steps.len(), 2);
        assert_eq!((steps[0].command.as_str(), steps[0].code), ("a \\\n  b", 75));
        assert!(steps[0].is_met_by("out\n", 75));
        assert!(!steps[0].is_met_by("out\n", 0));
    }
}
