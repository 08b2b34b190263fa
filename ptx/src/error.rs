//! What is wrong with a text, and where.

use std::fmt;

use crate::lexer::{Kind, Token};

/// A place in a PTX text, both numbers counted from 1.
///
/// Columns are counted in bytes, so that a place is found without reading its line again.
///
/// ```
/// let module = gridcall_ptx::Module::parse(".version 9.5\n.target sm_90\n.entry k()\n{ ret; }")?;
/// assert_eq!(module.entries()[0].position().to_string(), "3:8");
/// # Ok::<(), gridcall_ptx::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 1.
    pub line: u32,
    /// The byte in the line, from 1.
    pub column: u32,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A text that is not the PTX it should be.
///
/// ```
/// use gridcall_ptx::Module;
///
/// let error = Module::parse(".version 9.5\n.target sm_90\n.entry k(.param .u99 n) {}").unwrap_err();
/// assert_eq!(error.to_string(), "line 3, column 17: expected a type, found `.u99`");
/// assert_eq!(error.position().line, 3);
/// assert_eq!(error.expected(), Some("a type"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    position: Position,
    problem: Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Problem {
    Expected { what: String, found: String },
    Other(String),
}

impl Error {
    /// Where the text stops making sense.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// What should have been there, if the error is that something else was.
    #[must_use]
    pub fn expected(&self) -> Option<&str> {
        match &self.problem {
            Problem::Expected { what, .. } => Some(what),
            Problem::Other(_) => None,
        }
    }

    /// The error without its place.
    #[must_use]
    pub fn message(&self) -> String {
        self.problem.to_string()
    }

    pub(crate) fn expected_at(token: &Token<'_>, what: impl Into<String>) -> Error {
        let problem = Problem::Expected {
            what: what.into(),
            found: describe(token),
        };
        Error {
            position: token.position,
            problem,
        }
    }

    pub(crate) fn at(position: Position, message: impl Into<String>) -> Error {
        Error {
            position,
            problem: Problem::Other(message.into()),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.position;
        write!(f, "line {line}, column {column}: {}", self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Problem::Expected { what, found } => write!(f, "expected {what}, found {found}"),
            Problem::Other(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for Error {}

fn describe(token: &Token<'_>) -> String {
    match token.kind {
        Kind::End => "the end of the text".to_owned(),
        Kind::OpenString => "a string without its closing quote".to_owned(),
        Kind::OpenComment => "a comment without its `*/`".to_owned(),
        _ => format!("`{}`", shorten(token.text)),
    }
}

/// A C++ name may have thousands of characters, and a control character is not for a terminal.
pub(crate) fn shorten(text: &str) -> String {
    const MOST: usize = 60;
    let mut shown = String::new();
    for character in text.chars().take(MOST) {
        if character.is_control() {
            shown.extend(character.escape_default());
        } else {
            shown.push(character);
        }
    }
    if text.chars().nth(MOST).is_some() {
        shown.push('…');
    }
    shown
}
