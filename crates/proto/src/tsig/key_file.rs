//! The `key` statement of BIND's configuration syntax, as far as key files use it.

use super::Key;

/// Reads the first `key` statement.
pub(super) fn parse(text: &str) -> Result<Key, String> {
    let mut tokens = Tokens { rest: text };
    loop {
        match tokens.next()? {
            Some(Token::Word("key")) => return key_statement(&mut tokens),
            Some(_) => {}
            None => return Err("there is no `key` statement in the key file".to_owned()),
        }
    }
}

/// Reads `NAME { algorithm ALG; secret SECRET; }`; the order of the two does not matter.
fn key_statement(tokens: &mut Tokens<'_>) -> Result<Key, String> {
    let name = tokens.expect_text("a name after `key`")?;
    if tokens.next()? != Some(Token::Mark('{')) {
        return Err(format!("expected `{{` after key name `{name}`"));
    }
    let (mut algorithm, mut secret) = (None, None);
    loop {
        match tokens.next()? {
            Some(Token::Word("algorithm")) => {
                algorithm = Some(tokens.expect_text("a name after `algorithm`")?);
            }
            Some(Token::Word("secret")) => {
                secret = Some(tokens.expect_text("base64 after `secret`")?);
            }
            Some(Token::Mark(';')) => {}
            Some(Token::Mark('}')) => break,
            Some(_) => return Err(format!("unknown clause in the statement of key `{name}`")),
            None => return Err(format!("the statement of key `{name}` is not closed")),
        }
    }
    let algorithm = algorithm.ok_or_else(|| format!("key `{name}` has no algorithm"))?;
    let secret = secret.ok_or_else(|| format!("key `{name}` has no secret"))?;
    Key::new(algorithm.parse()?, name, secret)
}

/// What the syntax is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    /// Text without quotes.
    Word(&'a str),
    /// Text between double quotes; there are no escapes.
    Quoted(&'a str),
    /// `{`, `}` or `;`.
    Mark(char),
}

/// What has not been read yet.
struct Tokens<'a> {
    rest: &'a str,
}

impl<'a> Tokens<'a> {
    /// The next token; `None` at the end.
    fn next(&mut self) -> Result<Option<Token<'a>>, String> {
        self.skip_space_and_comments()?;
        let Some(first) = self.rest.chars().next() else {
            return Ok(None);
        };
        let token = match first {
            '{' | '}' | ';' => {
                self.rest = &self.rest[1..];
                Token::Mark(first)
            }
            '"' => {
                let unclosed = || "a quoted text in the key file is not closed".to_owned();
                let (text, rest) = self.rest[1..].split_once('"').ok_or_else(unclosed)?;
                self.rest = rest;
                Token::Quoted(text)
            }
            _ => {
                let is_end = |c: char| c.is_whitespace() || matches!(c, '{' | '}' | ';' | '"');
                let (word, rest) = self
                    .rest
                    .split_at(self.rest.find(is_end).unwrap_or(self.rest.len()));
                self.rest = rest;
                Token::Word(word)
            }
        };
        Ok(Some(token))
    }

    fn skip_space_and_comments(&mut self) -> Result<(), String> {
        loop {
            self.rest = self.rest.trim_start();
            if self.rest.starts_with("//") || self.rest.starts_with('#') {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
            } else if let Some(comment) = self.rest.strip_prefix("/*") {
                let unclosed = || "a comment in the key file is not closed".to_owned();
                self.rest = comment.split_once("*/").ok_or_else(unclosed)?.1;
            } else {
                return Ok(());
            }
        }
    }

    fn expect_text(&mut self, what: &str) -> Result<&'a str, String> {
        match self.next()? {
            Some(Token::Word(text) | Token::Quoted(text)) => Ok(text),
            _ => Err(format!("expected {what} in the key file")),
        }
    }
}
