//! Which syntax tree does the text of a query have?
//!
//! Step before: the caller, which has the text of a query. Step after: `lower.rs`, which checks types and functions.
//!
//! `lexer.rs` cuts the text into tokens; the parser looks one token ahead. `expression.rs` reads operands and operators
//! by precedence (V. R. Pratt, "Top Down Operator Precedence", POPL 1973). `selector.rs` reads the content of braces,
//! brackets and lists of labels. `literal.rs` computes the values of numbers, durations and strings.
//!
//! The recursion depth is limited by [`Limits::nesting_max`] and [`Limits::operators_max`] together. Memory is
//! proportional to the length of the text. The parser counts patterns, but does not check their syntax. It stops at the
//! first error.

mod expression;
mod lexer;
mod literal;
#[cfg(test)]
mod print;
mod selector;
mod source;
#[cfg(test)]
mod tests;
mod tree;

use crate::Error;

use super::Limits;
pub use expression::operator_name;
pub use lexer::is_blank;
use lexer::{Kind, Lexer, Token};
use literal::{quoted, quoted_already};
pub use source::Source;
pub use tree::{Aggregate, Binary, Expr, Kind as ExprKind, LabelMatcher, Selector};

/// Parses one expression, up to the end of the text.
pub fn parse<'t>(text: &'t str, limits: &Limits) -> Result<Expr<'t>, Error> {
    if text.len() > limits.query_bytes_max {
        return Err(Error::limit("bytes of text", text.len() as u128, limits.query_bytes_max));
    }
    let source = Source { text };
    let mut lexer = Lexer::new(source);
    let next = lexer.next()?;
    let mut parser = Parser { source, lexer, next, end: 0, limits, nesting: 0, operators: 0, patterns: 0 };
    if parser.next.kind == Kind::End {
        return Err(source.error(0, "the query is empty"));
    }
    let expression = parser.expression(0)?;
    match parser.next.kind {
        Kind::End => Ok(expression),
        _ if [")", "]", "}"].contains(&parser.next.text) => {
            Err(parser.error_here(format!("{} closes nothing", quoted(parser.next.text))))
        }
        _ => Err(parser.expected("an operator or the end of the query")),
    }
}

struct Parser<'t, 'l> {
    source: Source<'t>,
    lexer: Lexer<'t>,
    next: Token<'t>,
    /// End of the token before `next`.
    end: usize,
    limits: &'l Limits,
    /// Open brackets.
    nesting: usize,
    operators: usize,
    patterns: usize,
}

impl<'t> Parser<'t, '_> {
    /// Removes the next token and returns it.
    fn take(&mut self) -> Result<Token<'t>, Error> {
        let next = self.lexer.next()?;
        self.end = self.next.end();
        Ok(std::mem::replace(&mut self.next, next))
    }

    fn is(&self, symbol: &str) -> bool {
        self.next.kind == Kind::Symbol && self.next.text == symbol
    }

    fn takes(&mut self, symbol: &str) -> Result<bool, Error> {
        let found = self.is(symbol);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn takes_word(&mut self, word: &str) -> Result<bool, Error> {
        let found = self.next.is_word(word);
        if found {
            self.take()?;
        }
        Ok(found)
    }

    /// Removes an opening bracket. [`Parser::close`] must close it.
    fn open(&mut self) -> Result<Token<'t>, Error> {
        self.nesting += 1;
        self.check_limit("levels of brackets", self.nesting, self.limits.nesting_max)?;
        self.take()
    }

    /// Removes the bracket that closes `open`. In the message of an error, `instead` is written before this bracket. It names
    /// another valid token and ends with "or ", or it is empty.
    fn close(&mut self, open: Token<'t>, instead: &str) -> Result<(), Error> {
        let bracket = match open.text {
            "(" => ")",
            "[" => "]",
            _ => "}",
        };
        if !self.is(bracket) {
            let (opened, place) = (open.text, self.source.place(open.at));
            return Err(self.expected(&format!("{instead}{bracket:?} to close the {opened:?} at {place}")));
        }
        self.nesting -= 1;
        self.take()?;
        Ok(())
    }

    /// An error has the place of the next token.
    fn count_operator(&mut self) -> Result<(), Error> {
        self.operators += 1;
        self.check_limit("operators", self.operators, self.limits.operators_max)
    }

    fn check_limit(&self, what: &str, value: usize, limit: usize) -> Result<(), Error> {
        if value <= limit {
            return Ok(());
        }
        Err(Error::limit(what, value as u128, limit).at(self.source.place(self.next.at)))
    }

    fn error_here(&self, message: impl Into<String>) -> Error {
        self.source.error(self.next.at, message)
    }

    fn expected(&self, wanted: &str) -> Error {
        let found = match self.next.kind {
            Kind::End => "the end of the query".to_owned(),
            Kind::Text => format!("the string {}", quoted_already(self.next.text)),
            _ => quoted(self.next.text),
        };
        // The end of the query is the end of its last token, without the blanks and comments that follow.
        let at = if self.next.kind == Kind::End { self.end } else { self.next.at };
        self.source.error(at, format!("expected {wanted}, found {found}"))
    }
}
