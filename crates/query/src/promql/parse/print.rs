//! Prints a parsed query with all parentheses. The printed text parses to the same tree.

use std::fmt;

use tacho_model::{DURATION_UNITS, MatchOp, NAME};

use super::super::aggregations;
use super::super::node::{At, Cardinality, LabelChoice, Modifiers};
use super::expression::{RESERVED, operator_name};
use super::tree::{Aggregate, Binary, Expr, Kind, LabelMatcher, Selector};

impl fmt::Display for Expr<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Number(number) if number.is_infinite() => f.write_str("Inf"),
            Kind::Number(number) => write!(f, "{number}"),
            Kind::Text(text) => write!(f, "{}", Quoted(text)),
            Kind::Instant(selector) => write!(f, "{selector}{}", selector.modifiers),
            Kind::Range { selector, range } => {
                write!(f, "{selector}[{}]{}", Span(*range), selector.modifiers)
            }
            Kind::Subquery { inner, range, step, modifiers } => {
                write!(f, "({inner})[{}:", Span(*range))?;
                step.map_or(Ok(()), |step| write!(f, "{}", Span(step)))?;
                write!(f, "]{modifiers}")
            }
            Kind::Sign { minus, inner } => write!(f, "({}{inner})", if *minus { '-' } else { '+' }),
            Kind::Binary(binary) => write!(f, "{binary}"),
            Kind::Aggregate(aggregate) => write!(f, "{aggregate}"),
            Kind::Call { name, arguments } => {
                write!(f, "{name}(")?;
                list(f, arguments)?;
                f.write_str(")")
            }
        }
    }
}

impl fmt::Display for Binary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { left, right, op, yields_bool, matching, .. } = self;
        write!(f, "({left} {}", operator_name(*op))?;
        if *yields_bool {
            f.write_str(" bool")?;
        }
        let word = match matching.cardinality {
            Cardinality::OneToOne => "",
            Cardinality::ManyToOne => "group_left",
            Cardinality::OneToMany => "group_right",
        };
        match &matching.on {
            LabelChoice::Only(labels) => choice(f, " on", labels)?,
            LabelChoice::Except(labels) if labels.is_empty() && word.is_empty() => {}
            LabelChoice::Except(labels) => choice(f, " ignoring", labels)?,
        }
        if !word.is_empty() {
            write!(f, " {word}")?;
            choice(f, "", &matching.include)?;
        }
        write!(f, " {right})")
    }
}

impl fmt::Display for Aggregate<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, parameter, inner, grouping } = self;
        f.write_str(aggregations::name(*op))?;
        match grouping {
            LabelChoice::Only(labels) if labels.is_empty() => {}
            LabelChoice::Only(labels) => choice(f, " by ", labels)?,
            LabelChoice::Except(labels) => choice(f, " without ", labels)?,
        }
        match parameter {
            Some(parameter) => write!(f, "({parameter}, {inner})"),
            None => write!(f, "({inner})"),
        }
    }
}

impl fmt::Display for Selector<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.matchers.iter().filter(|matcher| matcher.label == NAME).count();
        let rest = match &self.matchers[..] {
            [LabelMatcher { label, op: MatchOp::Equal, value, .. }, rest @ ..]
                if names == 1 && label == NAME && is_metric(value) =>
            {
                f.write_str(value)?;
                rest
            }
            all => all,
        };
        if rest.is_empty() && !self.matchers.is_empty() {
            return Ok(());
        }
        f.write_str("{")?;
        list(f, rest)?;
        f.write_str("}")
    }
}

/// Whether a selector may start with this name.
fn is_metric(name: &str) -> bool {
    let is_plain = name.starts_with(|c: char| c.is_ascii_alphabetic() || "_:".contains(c))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || "_:".contains(c));
    is_plain && !RESERVED.iter().chain(&["inf", "nan"]).any(|word| name.eq_ignore_ascii_case(word))
}

impl fmt::Display for LabelMatcher<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.op {
            MatchOp::Equal => "=",
            MatchOp::NotEqual => "!=",
            MatchOp::Regex => "=~",
            MatchOp::NotRegex => "!~",
        };
        write!(f, "{}{op}{}", Name(&self.label), Quoted(&self.value))
    }
}

impl fmt::Display for Modifiers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            None => {}
            Some(At::Start) => f.write_str(" @ start()")?,
            Some(At::End) => f.write_str(" @ end()")?,
            Some(At::Time(time)) => write!(f, " @ {}", Span(time))?,
        }
        match self.offset {
            0 => Ok(()),
            offset => write!(f, " offset {}", Span(offset)),
        }
    }
}

fn list<T: fmt::Display>(f: &mut fmt::Formatter<'_>, items: &[T]) -> fmt::Result {
    items.iter().enumerate().try_for_each(|(index, item)| {
        f.write_str(if index > 0 { ", " } else { "" })?;
        write!(f, "{item}")
    })
}

fn choice(f: &mut fmt::Formatter<'_>, word: &str, labels: &[String]) -> fmt::Result {
    write!(f, "{word}(")?;
    list(f, &labels.iter().map(|label| Name(label)).collect::<Vec<_>>())?;
    f.write_str(")")
}

/// A label, quoted if necessary.
struct Name<'n>(&'n str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_plain = self.0.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && self.0.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if is_plain { f.write_str(self.0) } else { write!(f, "{}", Quoted(self.0)) }
    }
}

struct Quoted<'n>(&'n str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\"", self.0.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
    }
}

/// Writes a duration or time: with units if it is a whole number of milliseconds other than 0, otherwise in seconds.
struct Span(i64);

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 < 0 { "-" } else { "" })?;
        let mut rest = self.0.unsigned_abs();
        if rest == 0 || !rest.is_multiple_of(1_000_000) {
            return write!(f, "{}", rest as f64 / 1e9);
        }
        DURATION_UNITS.iter().try_for_each(|(unit, ns)| {
            let count = rest / ns.unsigned_abs();
            rest %= ns.unsigned_abs();
            if count > 0 { write!(f, "{count}{unit}") } else { Ok(()) }
        })
    }
}
