//! Parses operands and the operators between them.

use crate::Error;

use super::super::aggregations;
use super::super::node::{AggregateOp, BinaryOp, Cardinality, LabelChoice, Matching, Modifiers};
use super::Parser;
use super::lexer::{Kind, Token};
use super::literal::quoted;
use super::tree::{Aggregate, Binary, Expr, Kind as ExprKind};

/// Precedence of `^`, the only operator that is right-associative. Signs have a lower precedence: `-2^2` is -4.
const POWER: u8 = 6;

/// Operators with their precedence. An operator with a higher precedence binds tighter.
const OPERATORS: [(&str, BinaryOp, u8); 16] = [
    ("or", BinaryOp::Or, 1),
    ("and", BinaryOp::And, 2),
    ("unless", BinaryOp::Unless, 2),
    ("==", BinaryOp::Equal, 3),
    ("!=", BinaryOp::NotEqual, 3),
    ("<", BinaryOp::Less, 3),
    ("<=", BinaryOp::LessEqual, 3),
    (">", BinaryOp::Greater, 3),
    (">=", BinaryOp::GreaterEqual, 3),
    ("+", BinaryOp::Add, 4),
    ("-", BinaryOp::Subtract, 4),
    ("*", BinaryOp::Multiply, 5),
    ("/", BinaryOp::Divide, 5),
    ("%", BinaryOp::Modulo, 5),
    ("atan2", BinaryOp::Atan2, 5),
    ("^", BinaryOp::Power, POWER),
];

/// Keywords that can be the name of a metric only in braces and quotes: `{"on"}`. The words `inf` and `nan`, which are numbers,
/// need braces and quotes as well.
pub const RESERVED: [&str; 6] = ["atan2", "bool", "group_left", "group_right", "ignoring", "on"];

pub fn operator_name(op: BinaryOp) -> &'static str {
    OPERATORS.iter().find(|(_, other, _)| *other == op).map_or("", |(name, ..)| *name)
}

fn operator(token: Token<'_>) -> Option<(BinaryOp, u8)> {
    let is_it = |name: &str| match token.kind {
        Kind::Symbol => token.text == name,
        Kind::Word => token.text.eq_ignore_ascii_case(name),
        _ => false,
    };
    OPERATORS.iter().find(|(name, ..)| is_it(name)).map(|(_, op, precedence)| (*op, *precedence))
}

impl<'t> Parser<'t, '_> {
    /// An operand, and the operators after it whose precedence is at least `least`.
    pub fn expression(&mut self, least: u8) -> Result<Expr<'t>, Error> {
        let mut left = self.operand()?;
        while let Some((op, precedence)) = operator(self.next).filter(|(_, binds)| *binds >= least) {
            self.count_operator()?;
            let op_at = self.take()?.at;
            let (yields_bool, matching) = self.matching(op)?;
            let right = self.expression(if op == BinaryOp::Power { POWER } else { precedence + 1 })?;
            let at = left.at;
            let binary = Binary { op, op_at, left, right, yields_bool, matching };
            left = Expr { kind: ExprKind::Binary(Box::new(binary)), at };
        }
        Ok(left)
    }

    /// Parses the modifiers of an operator: `bool`, `on` or `ignoring`, `group_left` or `group_right`.
    fn matching(&mut self, op: BinaryOp) -> Result<(bool, Matching), Error> {
        let yields_bool = self.next.is_word("bool");
        if yields_bool {
            if !op.is_comparison() {
                return Err(self.error_here("bool modifier can only be used on comparison operators"));
            }
            self.take()?;
        }
        let mut matching = Matching {
            on: LabelChoice::Except(Vec::new()),
            cardinality: Cardinality::OneToOne,
            include: Vec::new(),
        };
        if self.takes_word("on")? {
            matching.on = LabelChoice::Only(self.labels("on")?);
        } else if self.takes_word("ignoring")? {
            matching.on = LabelChoice::Except(self.labels("ignoring")?);
        } else {
            return self.refuse_fill().map(|()| (yields_bool, matching));
        }
        for (word, cardinality) in
            [("group_left", Cardinality::ManyToOne), ("group_right", Cardinality::OneToMany)]
        {
            if !self.next.is_word(word) {
                continue;
            }
            if op.is_set() {
                let name = operator_name(op);
                return Err(self.error_here(format!("no grouping allowed for {name:?} operation")));
            }
            let at = self.take()?.at;
            matching.cardinality = cardinality;
            if self.is("(") {
                matching.include = self.labels(word)?;
            }
            if let LabelChoice::Only(on) = &matching.on
                && let Some(both) = matching.include.iter().find(|label| on.contains(label))
            {
                let message = format!("label {both:?} must not occur in on and {word} at once");
                return Err(self.source.error(at, message));
            }
            break;
        }
        self.refuse_fill().map(|()| (yields_bool, matching))
    }

    fn refuse_fill(&self) -> Result<(), Error> {
        let is_fill = ["fill", "fill_left", "fill_right"].iter().any(|word| self.next.is_word(word));
        let after = self.source.text[self.next.end()..].trim_start();
        if is_fill && after.starts_with('(') {
            return Err(self.error_here("modifier fill is not available yet"));
        }
        Ok(())
    }

    /// Parses a primary with its modifiers, or a sign and its operand. The operand of a sign includes powers: `-2^2` is -4.
    fn operand(&mut self) -> Result<Expr<'t>, Error> {
        if !self.is("-") && !self.is("+") {
            return self.primary();
        }
        self.count_operator()?;
        let sign = self.take()?;
        let inner = Box::new(self.expression(POWER)?);
        Ok(Expr { kind: ExprKind::Sign { minus: sign.text == "-", inner }, at: sign.at })
    }

    fn primary(&mut self) -> Result<Expr<'t>, Error> {
        let at = self.next.at;
        let kind = match self.next.kind {
            Kind::Symbol if self.is("(") => {
                let open = self.open()?;
                let mut inner = self.expression(0)?;
                self.close(open, "")?;
                inner.at = at;
                return self.modified(inner, true);
            }
            Kind::Symbol if self.is("{") => self.selector(None)?,
            Kind::Number => ExprKind::Number(self.number()?.value()),
            Kind::Text => ExprKind::Text(self.text()?),
            Kind::Word => self.word()?,
            Kind::Symbol | Kind::End => return Err(self.expected("an expression")),
        };
        self.modified(Expr { kind, at }, false)
    }

    /// Parses an operand that starts with a word: a number, a call, an aggregation, or a selector.
    fn word(&mut self) -> Result<ExprKind<'t>, Error> {
        let word = self.next;
        if let Some(number) = special_number(word) {
            self.take()?;
            return Ok(ExprKind::Number(number));
        }
        if RESERVED.iter().any(|reserved| word.is_word(reserved)) {
            let name = quoted(word.text);
            return Err(self.error_here(format!(
                "{name} is a keyword here; a metric of this name is written {{{name}}}"
            )));
        }
        self.take()?;
        let groups = self.next.is_word("by") || self.next.is_word("without");
        if self.is("(") || groups {
            if let Some(op) = aggregations::find(|name| word.is_word(name)) {
                return self.aggregate(word, op);
            }
            if word.is_word("limit_ratio") {
                return Err(self.source.error(word.at, "aggregation limit_ratio is not available yet"));
            }
        }
        let is_operator = operator(word).is_some();
        let is_keyword = ["by", "without", "offset"].iter().any(|keyword| word.is_word(keyword));
        if self.is("(") && !is_operator && !is_keyword {
            let open = self.open()?;
            let arguments = self.arguments(open)?;
            return Ok(ExprKind::Call { name: word.text, arguments });
        }
        self.selector(Some(word))
    }

    fn aggregate(&mut self, word: Token<'t>, op: AggregateOp) -> Result<ExprKind<'t>, Error> {
        let mut grouping = self.grouping()?;
        if !self.is("(") {
            return Err(self.expected(&format!("\"(\" and the operand of {}", aggregations::name(op))));
        }
        let open = self.open()?;
        let mut arguments = self.arguments(open)?;
        if grouping.is_none() {
            grouping = self.grouping()?;
        }
        let wants = op.parameter();
        let (found, inner) = (arguments.len(), arguments.pop());
        let parameter = arguments.pop();
        match inner.filter(|_| found == 1 + usize::from(wants.is_some())) {
            Some(inner) => {
                let grouping = grouping.unwrap_or(LabelChoice::Only(Vec::new()));
                Ok(ExprKind::Aggregate(Box::new(Aggregate { op, parameter, inner, grouping })))
            }
            None => {
                let name = aggregations::name(op);
                let parameter = wants.map_or_else(String::new, |(name, wants)| format!("{name} {wants}, "));
                Err(self.source.error(
                    word.at,
                    format!("wrong number of arguments: got {found} for {name}({parameter}v instant-vector)"),
                ))
            }
        }
    }

    /// Parses `by (...)` or `without (...)`, if one follows.
    fn grouping(&mut self) -> Result<Option<LabelChoice>, Error> {
        if self.takes_word("by")? {
            return self.labels("by").map(LabelChoice::Only).map(Some);
        }
        if self.takes_word("without")? {
            return self.labels("without").map(LabelChoice::Except).map(Some);
        }
        Ok(None)
    }

    /// Parses expressions up to the parenthesis that closes `open`.
    fn arguments(&mut self, open: Token<'t>) -> Result<Vec<Expr<'t>>, Error> {
        let mut arguments = Vec::new();
        if !self.is(")") {
            arguments.push(self.expression(0)?);
            while self.takes(",")? {
                arguments.push(self.expression(0)?);
            }
        }
        self.close(open, "\",\" or ")?;
        Ok(arguments)
    }

    /// Parses the ranges, `offset` and `@` after a primary.
    fn modified(&mut self, mut expr: Expr<'t>, mut in_parentheses: bool) -> Result<Expr<'t>, Error> {
        let mut has_offset = false;
        loop {
            if self.is("[") {
                expr = self.ranged(expr, in_parentheses)?;
                (in_parentheses, has_offset) = (false, false);
                continue;
            }
            let (word, is_at) = (self.next, self.is("@"));
            if !is_at && !word.is_word("offset") {
                return Ok(expr);
            }
            let modifiers = modifiers_of(&mut expr).filter(|_| !in_parentheses).ok_or_else(|| {
                let name = quoted(word.text);
                self.error_here(format!("{name} must follow a selector, a range or a subquery"))
            })?;
            let again = if is_at { modifiers.at.is_some() } else { has_offset };
            if again {
                return Err(self.error_here(format!("{} is given twice", quoted(word.text))));
            }
            self.take()?;
            if is_at {
                modifiers.at = Some(self.at_time()?);
            } else {
                modifiers.offset = self.offset()?;
                has_offset = true;
            }
        }
    }
}

fn modifiers_of<'e>(expr: &'e mut Expr<'_>) -> Option<&'e mut Modifiers> {
    match &mut expr.kind {
        ExprKind::Instant(selector) | ExprKind::Range { selector, .. } => Some(&mut selector.modifiers),
        ExprKind::Subquery { modifiers, .. } => Some(modifiers),
        _ => None,
    }
}

fn special_number(word: Token<'_>) -> Option<f64> {
    if word.is_word("inf") {
        return Some(f64::INFINITY);
    }
    word.is_word("nan").then_some(f64::NAN)
}
