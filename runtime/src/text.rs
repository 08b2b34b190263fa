//! Messages that are put together while a crate compiles.

/// A text put together in a constant.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    bytes: [u8; 1024],
    len: usize,
}

impl Text {
    pub(crate) const fn new() -> Text {
        Text {
            bytes: [0; 1024],
            len: 0,
        }
    }

    /// The parameter of a kernel that a message is about.
    pub(crate) const fn parameter(kernel: &str, index: usize, param: &str) -> Text {
        Text::new()
            .text("parameter ")
            .number(index)
            .text(", `")
            .text(param)
            .text("`, of `")
            .text(kernel)
            .text("`")
    }

    /// The static that a message is about, and its type.
    pub(crate) const fn symbol(name: &str, ty: &str) -> Text {
        Text::new()
            .text("`")
            .text(name)
            .text("` is `")
            .text(ty)
            .text("`")
    }

    /// Appends a text; what does not fit is left out, and only a message grows shorter by it.
    pub(crate) const fn text(mut self, text: &str) -> Text {
        let bytes = text.as_bytes();
        if self.len + bytes.len() > self.bytes.len() {
            return self;
        }
        let mut index = 0;
        while index < bytes.len() {
            self.bytes[self.len] = bytes[index];
            self.len += 1;
            index += 1;
        }
        self
    }

    pub(crate) const fn number(self, number: usize) -> Text {
        let mut digits = [0_u8; 20];
        let mut first = digits.len();
        let mut rest = number;
        loop {
            first -= 1;
            digits[first] = b"0123456789"[rest % 10];
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        match std::str::from_utf8(digits.split_at(first).1) {
            Ok(digits) => self.text(digits),
            Err(_) => self,
        }
    }

    pub(crate) const fn as_str(&self) -> &str {
        match std::str::from_utf8(self.bytes.split_at(self.len).0) {
            Ok(text) => text,
            Err(_) => "the layouts differ",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_holds_what_was_put_in() {
        let text = Text::new()
            .text("a ")
            .number(0)
            .text(" b ")
            .number(usize::MAX);
        assert_eq!(text.as_str(), format!("a 0 b {}", usize::MAX));
    }

    #[test]
    fn a_text_that_is_full_stays_readable() {
        let long = "x".repeat(1000);
        let text = Text::new().text(&long).text(&long).text("end");
        assert_eq!(text.as_str(), format!("{long}end"));
    }
}
