//! Cuts a text into tokens, and steps over blocks without looking at what is in them.
//!
//! A token knows its line, so a place costs nothing. Blocks are skipped with the standard library's byte
//! search, which is optimised even in a build that is not, as procedural macros are.

use crate::error::Position;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub(crate) kind: Kind,
    /// As written; a string with its quotes, a directive or modifier with its dot.
    pub(crate) text: &'a str,
    pub(crate) start: usize,
    pub(crate) position: Position,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A name: `saxpy`, `%r1`, `$L__BB0_2`, `_`.
    Word,
    /// A dot and what follows it: `.entry`, `.u64`, `.L2::128B`.
    Directive,
    /// Anything that starts with a digit: `12`, `0x1fU`, `0f3F800000`, `1.5e-3`.
    Number,
    String,
    Punct(u8),
    Unknown,
    OpenString,
    OpenComment,
    End,
}

impl<'a> Token<'a> {
    pub(crate) fn is(&self, punct: u8) -> bool {
        self.kind == Kind::Punct(punct)
    }

    pub(crate) fn is_directive(&self, text: &str) -> bool {
        self.kind == Kind::Directive && self.text == text
    }

    pub(crate) fn end(&self) -> usize {
        self.start + self.text.len()
    }

    /// What a string holds.
    pub(crate) fn contents(&self) -> &'a str {
        self.text.trim_matches('"')
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Lexer<'a> {
    source: &'a str,
    at: usize,
    line: u32,
    line_start: usize,
    marks: Marks,
}

impl<'a> Lexer<'a> {
    pub(crate) fn new(source: &'a str) -> Lexer<'a> {
        let at = if source.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        Lexer {
            source: source.trim_end_matches('\0'),
            at,
            line: 1,
            line_start: at,
            marks: Marks::default(),
        }
    }

    /// Goes on at `at`, which lies at `position`, in a text that ends at `end`.
    pub(crate) fn resume(
        source: &'a str,
        at: usize,
        end: usize,
        position: Position,
    ) -> Option<Lexer<'a>> {
        source.get(at..end)?;
        let line_start = at.checked_sub(position.column as usize - 1)?;
        let source = source.get(..end)?;
        Some(Lexer {
            source,
            at,
            line: position.line,
            line_start,
            marks: Marks::default(),
        })
    }

    pub(crate) fn source(&self) -> &'a str {
        self.source
    }

    pub(crate) fn next(&mut self) -> Token<'a> {
        if let Some(open_comment) = self.skip_blank() {
            return open_comment;
        }
        let bytes = self.source.as_bytes();
        let start = self.at;
        let Some(&first) = bytes.get(start) else {
            return self.token(Kind::End, start);
        };
        match first {
            b'.' if is_fraction(bytes, start) => {
                self.at = number_end(bytes, start);
                self.token(Kind::Number, start)
            }
            b'.' if bytes.get(start + 1).is_some_and(|&byte| is_follow(byte)) => {
                self.at = follow_end(bytes, start + 1);
                while bytes[self.at..].starts_with(b"::") {
                    self.at = follow_end(bytes, self.at + 2);
                }
                self.token(Kind::Directive, start)
            }
            b'0'..=b'9' => {
                self.at = number_end(bytes, start);
                self.token(Kind::Number, start)
            }
            b'"' => {
                let end = string_end(self.source, start);
                let kind = if end.is_some() {
                    Kind::String
                } else {
                    Kind::OpenString
                };
                let text = self
                    .source
                    .get(start..end.unwrap_or(start))
                    .unwrap_or_default();
                let token = Token {
                    kind,
                    text,
                    start,
                    position: self.position(start),
                };
                self.at = end.unwrap_or(bytes.len());
                self.count_lines(start);
                token
            }
            b'%' if !bytes.get(start + 1).is_some_and(|&byte| is_follow(byte)) => {
                self.at += 1;
                self.token(Kind::Punct(b'%'), start)
            }
            b'%' => {
                self.at = follow_end(bytes, start + 1);
                self.token(Kind::Word, start)
            }
            _ if is_follow(first) => {
                self.at = follow_end(bytes, start);
                self.token(Kind::Word, start)
            }
            0x21..=0x7e => {
                self.at += 1;
                self.token(Kind::Punct(first), start)
            }
            _ => {
                self.at += 1;
                self.token(Kind::Unknown, start)
            }
        }
    }

    /// Steps behind the brace that closes the block whose `{` was just read, and says whether there is one.
    ///
    /// Each of the four marks is searched once over the text, whatever lies between them.
    pub(crate) fn skip_block(&mut self) -> bool {
        let from = self.at;
        self.marks.pass(self.source, from);
        let mut depth = 1_usize;
        let closed = loop {
            let Some((at, mark)) = self.marks.first() else {
                break None;
            };
            let next = match mark {
                b'{' => {
                    depth += 1;
                    at + 1
                }
                b'}' => {
                    depth -= 1;
                    at + 1
                }
                b'"' => match string_end(self.source, at) {
                    Some(end) => end,
                    None => break None,
                },
                _ => match self.source.as_bytes().get(at + 1) {
                    Some(b'/') => line_end(self.source, at),
                    Some(b'*') => match find(self.source, at + 2, "*/") {
                        Some(end) => end + 2,
                        None => break None,
                    },
                    _ => at + 1,
                },
            };
            if depth == 0 {
                break Some(next);
            }
            self.marks.pass(self.source, next);
        };
        self.at = closed.unwrap_or(self.source.len());
        self.count_lines(from);
        closed.is_some()
    }

    /// How far the text is read.
    pub(crate) fn position_in_text(&self) -> usize {
        self.at
    }

    /// Where the line that holds `at` ends.
    pub(crate) fn line_end(&self, at: usize) -> usize {
        line_end(self.source, at)
    }

    /// Steps to `at`, which is ahead.
    pub(crate) fn skip_to(&mut self, at: usize) {
        let from = self.at;
        self.at = at.max(from);
        self.count_lines(from);
    }

    fn token(&self, kind: Kind, start: usize) -> Token<'a> {
        let text = self.source.get(start..self.at).unwrap_or_default();
        Token {
            kind,
            text,
            start,
            position: self.position(start),
        }
    }

    fn position(&self, at: usize) -> Position {
        let column = u32::try_from(at - self.line_start + 1).unwrap_or(u32::MAX);
        Position {
            line: self.line,
            column,
        }
    }

    fn count_lines(&mut self, from: usize) {
        let mut at = from;
        while let Some(newline) = self
            .source
            .get(at..self.at)
            .and_then(|rest| rest.find('\n'))
        {
            at += newline + 1;
            self.line = self.line.saturating_add(1);
            self.line_start = at;
        }
    }

    /// Skips blanks, comments and the line marks of a preprocessor; the token says that a comment is open.
    fn skip_blank(&mut self) -> Option<Token<'a>> {
        let bytes = self.source.as_bytes();
        let mut first_on_line = self.at == self.line_start;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\n' => {
                    self.at += 1;
                    self.line = self.line.saturating_add(1);
                    self.line_start = self.at;
                    first_on_line = true;
                }
                b' ' | b'\t' | b'\r' | 0x0b | 0x0c => self.at += 1,
                b'/' if bytes.get(self.at + 1) == Some(&b'/') => {
                    self.at = line_end(self.source, self.at);
                }
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => {
                    let start = self.at;
                    let Some(end) = find(self.source, start + 2, "*/") else {
                        let token = self.token(Kind::OpenComment, start);
                        self.at = bytes.len();
                        return Some(token);
                    };
                    self.at = end + 2;
                    self.count_lines(start);
                }
                b'#' if first_on_line && self.is_line_mark() => {
                    self.at = line_end(self.source, self.at);
                }
                _ => break,
            }
        }
        None
    }

    /// `# 12 "saxpy.cu"`
    fn is_line_mark(&self) -> bool {
        let line = self
            .source
            .get(self.at + 1..line_end(self.source, self.at))
            .unwrap_or_default();
        let line = line.trim_start();
        line.starts_with(|first: char| first.is_ascii_digit()) || line.starts_with("line ")
    }
}

/// The next `{`, `}`, `"` and `/`, kept from block to block so that no stretch is searched twice.
#[derive(Clone, Debug)]
struct Marks([(usize, u8); 4]);

impl Default for Marks {
    fn default() -> Marks {
        Marks([b'{', b'}', b'"', b'/'].map(|mark| (0, mark)))
    }
}

impl Marks {
    const NOWHERE: usize = usize::MAX;

    fn first(&self) -> Option<(usize, u8)> {
        let mut first = self.0[0];
        for &mark in &self.0[1..] {
            if mark.0 < first.0 {
                first = mark;
            }
        }
        (first.0 != Marks::NOWHERE).then_some(first)
    }

    fn pass(&mut self, source: &str, to: usize) {
        for (at, mark) in &mut self.0 {
            if *at < to {
                *at = find_byte(source, to, *mark).unwrap_or(Marks::NOWHERE);
            }
        }
    }
}

fn find_byte(source: &str, from: usize, byte: u8) -> Option<usize> {
    source
        .get(from..)?
        .find(char::from(byte))
        .map(|at| from + at)
}

fn find(source: &str, from: usize, text: &str) -> Option<usize> {
    source.get(from..)?.find(text).map(|at| from + at)
}

fn line_end(source: &str, from: usize) -> usize {
    find_byte(source, from, b'\n').unwrap_or(source.len())
}

/// The end of the string that starts at `start`: the next quote, for PTX knows no escapes.
fn string_end(source: &str, start: usize) -> Option<usize> {
    find_byte(source, start + 1, b'"').map(|quote| quote + 1)
}

fn is_follow(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'$' || byte >= 0x80
}

fn follow_end(bytes: &[u8], from: usize) -> usize {
    let mut at = from;
    while bytes.get(at).is_some_and(|&byte| is_follow(byte)) {
        at += 1;
    }
    at
}

/// `.5`, but not the `.16x64b` nor the `.1d` of an instruction.
fn is_fraction(bytes: &[u8], start: usize) -> bool {
    let is_behind_word = start > 0 && is_follow(bytes[start - 1]);
    if is_behind_word || !bytes.get(start + 1).is_some_and(u8::is_ascii_digit) {
        return false;
    }
    let end = follow_end(bytes, start + 1);
    let mut rest = bytes[start + 1..end]
        .iter()
        .skip_while(|byte| byte.is_ascii_digit());
    match rest.next() {
        None => true,
        Some(b'e' | b'E') => rest.all(u8::is_ascii_digit),
        Some(_) => false,
    }
}

/// The end of the number at `start`: letters and digits, a point, an exponent with its sign.
fn number_end(bytes: &[u8], start: usize) -> usize {
    let is_decimal = !matches!(
        (bytes[start], bytes.get(start + 1)),
        (
            b'0',
            Some(b'x' | b'X' | b'b' | b'B' | b'f' | b'F' | b'd' | b'D')
        )
    );
    let mut at = follow_end(bytes, start);
    if !is_decimal {
        return at;
    }
    if bytes.get(at) == Some(&b'.') && bytes[start..at].iter().all(u8::is_ascii_digit) {
        at = follow_end(bytes, at + 1);
    }
    let is_exponent = matches!(bytes[at - 1], b'e' | b'E')
        && matches!(bytes.get(at), Some(b'+' | b'-'))
        && bytes.get(at + 1).is_some_and(u8::is_ascii_digit);
    if is_exponent {
        follow_end(bytes, at + 1)
    } else {
        at
    }
}
