//! Parses selectors of series, their ranges and times, and lists of labels.

use std::borrow::Cow;

use tacho_model::{MatchOp, NAME};

use crate::Error;

use super::super::node::{At, Modifiers};
use super::Parser;
use super::lexer::{Kind, Token};
use super::literal::{Number, quoted, too_long, unquote};
use super::tree::{Expr, Kind as ExprKind, LabelMatcher, Selector};

impl<'t> Parser<'t, '_> {
    /// Parses `name{a="b"}` after the name was read, or braces without a name.
    pub fn selector(&mut self, name: Option<Token<'t>>) -> Result<ExprKind<'t>, Error> {
        let mut matchers = Vec::new();
        let mut has_name = name.is_some();
        if let Some(name) = name {
            matchers.push(named(name.text.into(), name.at));
        }
        if self.is("{") {
            let open = self.open()?;
            while !self.is("}") {
                let (matcher, is_name) = self.label_matcher()?;
                has_name |= is_name;
                matchers.push(matcher);
                if self.next.is_word("or") {
                    return Err(self.error_here("\"or\" between label matchers is not available yet"));
                }
                if !self.takes(",")? {
                    break;
                }
            }
            self.close(open, "\",\" or ")?;
        }
        let mut names = matchers.iter().filter(|matcher| matcher.label == NAME);
        if has_name && let (Some(first), Some(second)) = (names.next(), names.next()) {
            let (first, other) = (quoted(&first.value), quoted(&second.value));
            let message = format!("metric name must not be set twice: {first} and {other}");
            return Err(self.source.error(second.at, message));
        }
        Ok(ExprKind::Instant(Selector { matchers, modifiers: Modifiers::default() }))
    }

    /// One condition in braces, and whether the condition is a quoted metric name.
    fn label_matcher(&mut self) -> Result<(LabelMatcher<'t>, bool), Error> {
        let at = self.next.at;
        let is_quoted = self.next.kind == Kind::Text;
        let label = self.label("a label or \"}\"")?;
        let op = match self.next.text {
            "=" => MatchOp::Equal,
            "!=" => MatchOp::NotEqual,
            "=~" => MatchOp::Regex,
            "!~" => MatchOp::NotRegex,
            _ if is_quoted => return Ok((named(label, at), true)),
            _ => return Err(self.expected(&format!("=, !=, =~ or !~ after the label {}", quoted(&label)))),
        };
        if matches!(op, MatchOp::Regex | MatchOp::NotRegex) {
            self.patterns += 1;
            self.check_limit("patterns", self.patterns, self.limits.patterns_max)?;
        }
        self.take()?;
        if self.next.kind != Kind::Text {
            return Err(self.expected("a value in quotes"));
        }
        Ok((LabelMatcher { label, op, value: self.text()?, at }, false))
    }

    /// Parses the labels in parentheses after `word`.
    pub fn labels(&mut self, word: &str) -> Result<Vec<String>, Error> {
        if !self.is("(") {
            return Err(self.expected(&format!("\"(\" and labels after {word}")));
        }
        let open = self.open()?;
        let mut labels = Vec::new();
        while !self.is(")") {
            labels.push(self.label("a label or \")\"")?.into_owned());
            if !self.takes(",")? {
                break;
            }
        }
        self.close(open, "\",\" or ")?;
        Ok(labels)
    }

    /// Parses a label name, with or without quotes.
    fn label(&mut self, wanted: &str) -> Result<Cow<'t, str>, Error> {
        match self.next.kind {
            Kind::Text => self.text(),
            Kind::Word if self.next.text.contains(':') => {
                let name = quoted(self.next.text);
                Err(self.error_here(format!("a label with a colon must be in quotes: {name}")))
            }
            Kind::Word => Ok(self.take()?.text.into()),
            _ => Err(self.expected(wanted)),
        }
    }

    pub fn text(&mut self) -> Result<Cow<'t, str>, Error> {
        let token = self.take()?;
        unquote(token.text).map_err(|(distance, message)| self.source.error(token.at + distance, message))
    }

    pub fn number(&mut self) -> Result<Number, Error> {
        let number = Number::parse(self.next.text).map_err(|message| self.error_here(message))?;
        self.take()?;
        Ok(number)
    }

    /// Parses `[5m]` or `[1h:1m]` after an expression.
    pub fn ranged(&mut self, expr: Expr<'t>, in_parentheses: bool) -> Result<Expr<'t>, Error> {
        let open = self.open()?;
        let range = self.positive_duration("a duration such as 5m")?;
        let at = expr.at;
        if self.takes(":")? {
            // A subquery counts as an operator, because a chain such as `x[1m:][1m:]` is a deep tree without
            // nested brackets.
            self.count_operator()?;
            let step = if self.is("]") { None } else { Some(self.positive_duration("a duration or \"]\"")?) };
            self.close(open, "")?;
            let (inner, modifiers) = (Box::new(expr), Modifiers::default());
            return Ok(Expr { kind: ExprKind::Subquery { inner, range, step, modifiers }, at });
        }
        self.close(open, "\":\" or ")?;
        let message = match expr.kind {
            ExprKind::Instant(selector) if !in_parentheses && selector.modifiers == Modifiers::default() => {
                return Ok(Expr { kind: ExprKind::Range { selector, range }, at });
            }
            ExprKind::Instant(_) if !in_parentheses => {
                "a range must stand before offset and @: x[5m] offset 1h"
            }
            _ => "a range must follow a selector; the range of another expression is a subquery: [5m:]",
        };
        Err(self.source.error(open.at, message))
    }

    fn positive_duration(&mut self, wanted: &str) -> Result<i64, Error> {
        match self.duration(wanted)? {
            (0, at) => Err(self.source.error(at, "duration must be greater than 0")),
            (ns, _) => Ok(ns),
        }
    }

    /// A duration in ns, with its position.
    fn duration(&mut self, wanted: &str) -> Result<(i64, usize), Error> {
        let token = self.next;
        if token.kind != Kind::Number {
            return Err(self.expected(wanted));
        }
        let ns = self.number()?.nanoseconds();
        ns.map(|ns| (ns, token.at)).ok_or_else(|| self.source.error(token.at, too_long(token.text)))
    }

    /// Parses the duration after `offset`; returns ns.
    pub fn offset(&mut self) -> Result<i64, Error> {
        let sign = self.sign()?;
        Ok(sign * self.duration("a duration after offset")?.0)
    }

    pub fn at_time(&mut self) -> Result<At, Error> {
        for (word, at) in [("start", At::Start), ("end", At::End)] {
            if self.takes_word(word)? {
                if !self.is("(") {
                    return Err(self.expected(&format!("\"()\" after {word}")));
                }
                let open = self.open()?;
                return self.close(open, "").map(|()| at);
            }
        }
        let sign = self.sign()?;
        let token = self.next;
        let out_of_range =
            |parser: &Self| parser.source.error(token.at, format!("the time {} is out of range", token.text));
        if token.is_word("inf") || token.is_word("nan") {
            return Err(out_of_range(self));
        }
        if token.kind != Kind::Number {
            return Err(self.expected("seconds, start() or end() after @"));
        }
        let ns = self.number()?.nanoseconds().ok_or_else(|| out_of_range(self))?;
        Ok(At::Time(sign * ns))
    }

    /// Returns -1 after a minus sign, otherwise 1.
    fn sign(&mut self) -> Result<i64, Error> {
        if self.takes("-")? {
            return Ok(-1);
        }
        self.takes("+").map(|_| 1)
    }
}

fn named(name: Cow<'_, str>, at: usize) -> LabelMatcher<'_> {
    LabelMatcher { label: NAME.into(), op: MatchOp::Equal, value: name, at }
}
