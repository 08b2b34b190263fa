//! Words of C++ text, without comments and with the line of each.

use std::borrow::Cow;

/// A word, number, literal or mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token<'a> {
    pub(super) kind: Kind,
    pub(super) text: &'a str,
    /// The line in the file, from 1.
    pub(super) line: u32,
    /// Whether nothing but blanks stands before it on its line.
    pub(super) first: bool,
    /// Whether a blank stands before it, which tells `#define f (x)` from `#define f(x)`.
    pub(super) spaced: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Word,
    Number,
    /// A string or a character, with its quotes.
    Literal,
    /// One character, or `::`.
    Mark,
    /// A macro that is not looked into.
    Opaque,
    /// The start of code that may not be compiled.
    If,
    /// The start of what is compiled in its place.
    Else,
    /// The end of both.
    EndIf,
}

impl Token<'_> {
    pub(super) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Word | Kind::Mark) && self.text == text
    }

    pub(super) fn is_word(&self) -> bool {
        self.kind == Kind::Word
    }
}

/// A text whose lines are joined where a backslash ends one.
pub(super) struct Spliced<'a> {
    text: Cow<'a, str>,
    /// Where in `text` a line of the file ends without a newline.
    joints: Vec<usize>,
}

impl<'a> Spliced<'a> {
    pub(super) fn new(text: &'a str) -> Spliced<'a> {
        if !text.contains("\\\n") && !text.contains("\\\r\n") {
            return Spliced {
                text: Cow::Borrowed(text),
                joints: Vec::new(),
            };
        }
        let (mut joined, mut joints) = (String::with_capacity(text.len()), Vec::new());
        for line in text.split_inclusive('\n') {
            let body = line.trim_end_matches(['\n', '\r']);
            match body.strip_suffix('\\') {
                Some(body) if body.len() + 1 < line.len() => {
                    joined.push_str(body);
                    joints.push(joined.len());
                }
                _ => joined.push_str(line),
            }
        }
        Spliced {
            text: Cow::Owned(joined),
            joints,
        }
    }

    pub(super) fn tokens(&self) -> Tokens<'_> {
        Tokens {
            text: &self.text,
            joints: &self.joints,
            at: 0,
            line: 1,
            first: true,
            spaced: false,
        }
    }
}

pub(super) struct Tokens<'a> {
    text: &'a str,
    joints: &'a [usize],
    at: usize,
    line: u32,
    first: bool,
    spaced: bool,
}

impl Tokens<'_> {
    fn byte(&self, ahead: usize) -> u8 {
        self.text
            .as_bytes()
            .get(self.at + ahead)
            .copied()
            .unwrap_or(0)
    }

    fn bump(&mut self) {
        if self.byte(0) == b'\n' {
            self.line += 1;
            self.first = true;
        }
        self.at += 1;
        while let [joint, rest @ ..] = self.joints
            && *joint <= self.at
        {
            self.line += 1;
            self.joints = rest;
        }
    }

    fn bump_while(&mut self, holds: impl Fn(u8) -> bool) {
        while self.at < self.text.len() && holds(self.byte(0)) {
            self.bump();
        }
    }

    fn starts_with(&self, start: &str) -> bool {
        self.text.as_bytes()[self.at..].starts_with(start.as_bytes())
    }

    /// Moves behind `end`, or to the end of the text.
    fn bump_past(&mut self, end: &str) {
        while self.at < self.text.len() {
            if self.starts_with(end) {
                (0..end.len()).for_each(|_| self.bump());
                return;
            }
            self.bump();
        }
    }

    fn skip_blanks(&mut self) {
        self.spaced = false;
        while self.at < self.text.len() {
            if self.byte(0).is_ascii_whitespace() || self.byte(0) == 0x0b {
                self.bump();
            } else if self.starts_with("//") {
                self.bump_while(|byte| byte != b'\n');
            } else if self.starts_with("/*") {
                // A newline inside of it does not start a directive's line.
                let first = self.first;
                self.bump();
                self.bump();
                self.bump_past("*/");
                self.first = first;
            } else {
                return;
            }
            self.spaced = true;
        }
    }

    fn quoted(&mut self, quote: u8) {
        self.bump();
        while self.at < self.text.len() && !matches!(self.byte(0), b'\n') {
            let byte = self.byte(0);
            self.bump();
            if byte == quote {
                return;
            }
            if byte == b'\\' && self.byte(0) != b'\n' {
                self.bump();
            }
        }
    }

    /// `"delimiter( .. )delimiter"`, its `R` already read.
    fn raw_string(&mut self) {
        let start = self.at + 1;
        let Some(length) = self.text.get(start..).and_then(|rest| rest.find('(')) else {
            return self.quoted(b'"');
        };
        // The standard allows 16 characters; what is longer is no raw string.
        if length > 16 {
            return self.quoted(b'"');
        }
        let end = format!("){}\"", &self.text[start..start + length]);
        self.bump_past(&end);
    }

    fn token(&mut self) -> Kind {
        let byte = self.byte(0);
        match byte {
            b'"' | b'\'' => {
                self.quoted(byte);
                Kind::Literal
            }
            b'0'..=b'9' => {
                self.bump_while(|byte| {
                    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'\'')
                });
                Kind::Number
            }
            _ if is_word(byte) => self.word(),
            b':' if self.byte(1) == b':' => {
                self.bump();
                self.bump();
                Kind::Mark
            }
            _ => {
                self.bump();
                Kind::Mark
            }
        }
    }

    fn word(&mut self) -> Kind {
        let start = self.at;
        self.bump_while(|byte| is_word(byte) || byte.is_ascii_digit());
        let word = &self.text[start..self.at];
        let prefix = matches!(
            word,
            "L" | "u" | "U" | "u8" | "R" | "LR" | "uR" | "UR" | "u8R"
        );
        match self.byte(0) {
            b'"' if prefix && word.ends_with('R') => {
                self.raw_string();
                Kind::Literal
            }
            quote @ (b'"' | b'\'') if prefix && !word.ends_with('R') => {
                self.quoted(quote);
                Kind::Literal
            }
            _ => Kind::Word,
        }
    }
}

impl<'a> Iterator for Tokens<'a> {
    type Item = Token<'a>;

    fn next(&mut self) -> Option<Token<'a>> {
        self.skip_blanks();
        if self.at >= self.text.len() {
            return None;
        }
        let (start, line, first, spaced) = (self.at, self.line, self.first, self.spaced);
        self.first = false;
        let kind = self.token();
        let text = self.text.get(start..self.at).unwrap_or_default();
        Some(Token {
            kind,
            text,
            line,
            first,
            spaced,
        })
    }
}

/// Also every byte of a character that is not ASCII, so that no token ends within one.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<(String, u32)> {
        let spliced = Spliced::new(text);
        spliced
            .tokens()
            .map(|token| (token.text.to_owned(), token.line))
            .collect()
    }

    fn texts(text: &str) -> Vec<String> {
        words(text).into_iter().map(|(text, _)| text).collect()
    }

    #[test]
    fn comments_are_blanks() {
        assert_eq!(texts("a/* b\n */c // d\ne"), ["a", "c", "e"]);
        assert_eq!(
            words("a/*\n*/c // d\ne"),
            [("a".into(), 1), ("c".into(), 2), ("e".into(), 3)]
        );
        assert_eq!(texts("a // b \\\n c\nd"), ["a", "d"]);
    }

    #[test]
    fn literals_are_whole() {
        assert_eq!(
            texts(r#"f("a \" // b", '"', 1'000)"#),
            ["f", "(", r#""a \" // b""#, ",", "'\"'", ",", "1'000", ")"]
        );
        assert_eq!(texts("R\"x(a )\" b\n)x\" c"), ["R\"x(a )\" b\n)x\"", "c"]);
        assert_eq!(texts("u8\"a\" L'b' u8"), ["u8\"a\"", "L'b'", "u8"]);
        assert_eq!(texts("don't\nx"), ["don", "'t", "x"]);
    }

    #[test]
    fn a_backslash_joins_lines() {
        assert_eq!(
            words("flo\\\nat x;\ny"),
            [
                ("float".into(), 1),
                ("x".into(), 2),
                (";".into(), 2),
                ("y".into(), 3)
            ]
        );
        assert_eq!(texts("a \\\r\n b"), ["a", "b"]);
    }

    #[test]
    fn any_text_is_read_to_its_end() {
        for text in [
            "\"", "'", "R\"", "R\"(", "/*", "/", "\\", "é", "a\\", "u8R\"é(", "#", "\u{0}",
        ] {
            let _ = words(text);
        }
    }
}
