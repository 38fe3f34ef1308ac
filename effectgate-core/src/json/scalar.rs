//! Numbers and strings.

use super::Reader;
use crate::tree::{Broken, Value};

impl Reader<'_> {
    fn digits(&mut self) -> Result<(), Broken> {
        if !matches!(self.peek(), Some('0'..='9')) {
            return Err(self.unexpected("a digit"));
        }
        while matches!(self.peek(), Some('0'..='9')) {
            self.bump();
        }
        Ok(())
    }

    pub(super) fn number(&mut self) -> Result<Value, Broken> {
        let (text, start) = (self.rest.clone(), self.at);
        if self.peek() == Some('-') {
            self.bump();
        }
        if self.peek() == Some('0') {
            self.bump();
        } else {
            self.digits()?;
        }
        if self.peek() == Some('.') {
            self.bump();
            self.digits()?;
        }
        if matches!(self.peek(), Some('e' | 'E')) {
            self.bump();
            if matches!(self.peek(), Some('+' | '-')) {
                self.bump();
            }
            self.digits()?;
        }
        let length = self.at.column.saturating_sub(start.column) as usize;
        Ok(Value::Number(text.take(length).collect()))
    }

    pub(super) fn string(&mut self) -> Result<String, Broken> {
        self.bump();
        let mut text = String::new();
        loop {
            match self.peek() {
                None | Some('\0'..='\u{1f}') => {
                    return Err(self.unexpected("the rest of a string"));
                }
                Some('"') => {
                    self.bump();
                    return Ok(text);
                }
                Some('\\') => {
                    self.bump();
                    text.push(self.escape()?);
                }
                Some(c) => {
                    self.bump();
                    text.push(c);
                }
            }
        }
    }

    fn escape(&mut self) -> Result<char, Broken> {
        let c = match self.peek() {
            Some(c @ ('"' | '\\' | '/')) => c,
            Some('b') => '\u{8}',
            Some('f') => '\u{c}',
            Some('n') => '\n',
            Some('r') => '\r',
            Some('t') => '\t',
            Some('u') => {
                self.bump();
                return self.unicode();
            }
            _ => return Err(self.unexpected("an escape (one of \" \\ / b f n r t u)")),
        };
        self.bump();
        Ok(c)
    }

    fn unicode(&mut self) -> Result<char, Broken> {
        let first = self.hex4()?;
        let code = if (0xd800..0xdc00).contains(&first) {
            for c in ['\\', 'u'] {
                if self.peek() != Some(c) {
                    return Err(self.unexpected("the second half of a surrogate pair"));
                }
                self.bump();
            }
            let second = self.hex4()?;
            if !(0xdc00..0xe000).contains(&second) {
                return Err(self.unexpected("the second half of a surrogate pair"));
            }
            0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)
        } else {
            first
        };
        char::from_u32(code).ok_or_else(|| self.unexpected("a whole surrogate pair"))
    }

    fn hex4(&mut self) -> Result<u32, Broken> {
        let mut code = 0;
        for _ in 0..4 {
            let Some(digit) = self.peek().and_then(|c| c.to_digit(16)) else {
                return Err(self.unexpected("four hexadecimal digits"));
            };
            self.bump();
            code = code * 16 + digit;
        }
        Ok(code)
    }
}
