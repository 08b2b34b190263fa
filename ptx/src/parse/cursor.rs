//! Walks over the tokens of a text, one ahead.

use crate::error::Error;
use crate::lexer::{Kind, Lexer, Token};
use crate::number;

pub(crate) struct Cursor<'a> {
    lexer: Lexer<'a>,
    next: Token<'a>,
    /// Where the last token read ends.
    end: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(source: &'a str) -> Cursor<'a> {
        Cursor::at(Lexer::new(source))
    }

    pub(crate) fn at(mut lexer: Lexer<'a>) -> Cursor<'a> {
        let next = lexer.next();
        Cursor {
            lexer,
            next,
            end: next.start,
        }
    }

    pub(crate) fn source(&self) -> &'a str {
        self.lexer.source()
    }

    pub(crate) fn peek(&self) -> &Token<'a> {
        &self.next
    }

    /// The token behind the next one, which is read twice then.
    pub(crate) fn peek_second(&self) -> Token<'a> {
        self.lexer.clone().next()
    }

    /// The byte right behind the next token, which must be one byte long.
    pub(crate) fn byte_behind(&self) -> Option<u8> {
        self.source().as_bytes().get(self.next.start + 1).copied()
    }

    pub(crate) fn bump(&mut self) -> Token<'a> {
        let token = self.next;
        self.end = token.end();
        self.next = self.lexer.next();
        token
    }

    /// Where the last token read ends.
    pub(crate) fn end(&self) -> usize {
        self.end
    }

    pub(crate) fn eat(&mut self, punct: u8) -> bool {
        let found = self.next.is(punct);
        if found {
            self.bump();
        }
        found
    }

    pub(crate) fn expect(&mut self, punct: u8) -> Result<Token<'a>, Error> {
        if self.next.is(punct) {
            Ok(self.bump())
        } else {
            Err(Error::expected_at(
                &self.next,
                format!("`{}`", char::from(punct)),
            ))
        }
    }

    pub(crate) fn expect_word(&mut self, what: &str) -> Result<Token<'a>, Error> {
        if self.next.kind == Kind::Word {
            Ok(self.bump())
        } else {
            Err(self.expected(what))
        }
    }

    pub(crate) fn expect_u32(&mut self, what: &str) -> Result<u32, Error> {
        let number = number::integer(self.next.text).and_then(|number| u32::try_from(number).ok());
        match number {
            Some(number) => {
                self.bump();
                Ok(number)
            }
            None => Err(self.expected(what)),
        }
    }

    pub(crate) fn expected(&self, what: impl Into<String>) -> Error {
        Error::expected_at(&self.next, what)
    }

    /// Steps over the block whose `{` comes next, and gives where it ends.
    pub(crate) fn skip_block(&mut self) -> Result<usize, Error> {
        let open = self.next;
        if !open.is(b'{') {
            return Err(self.expected("`{`"));
        }
        if !self.lexer.skip_block() {
            return Err(Error::at(open.position, "this `{` is not closed"));
        }
        self.end = self.lexer.position_in_text();
        self.next = self.lexer.next();
        Ok(self.end)
    }

    /// Steps to the line behind the next token's.
    pub(crate) fn skip_line(&mut self) {
        let end = self.lexer.line_end(self.next.start);
        self.lexer.skip_to(end);
        self.next = self.lexer.next();
    }

    /// Steps over a directive that nobody knows: to its `;`, over its block, or to the end of its line.
    ///
    /// A line that ends in a comma goes on in the next.
    pub(crate) fn skip_unknown(&mut self) -> Result<(), Error> {
        let mut last = self.bump();
        loop {
            let token = self.next;
            if token.is(b'{') {
                self.skip_block()?;
                return Ok(());
            }
            let is_same_line = token.position.line == last.position.line || last.is(b',');
            if token.kind == Kind::End || !is_same_line {
                return Ok(());
            }
            last = self.bump();
            if last.is(b';') {
                return Ok(());
            }
        }
    }
}
