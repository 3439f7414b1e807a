//! How is a pattern of Prometheus (RE2, as Go's `regexp/syntax` parses it) written for the `regex` crate?
//!
//! In Go `\w`, `\d`, `\s` and `\b` are ASCII. `[a&&b]` and `[a[b]` are plain lists of characters. `{` may be
//! a literal, and `\Q..\E` quotes. [`translate`] parses a pattern by Go's rules and writes an equivalent
//! pattern for `regex`. It refuses surrogates (`\x{D800}`). A test compares it with results of Go in
//! `testdata/re2`.

use std::fmt::Write;
use std::iter::Peekable;
use std::str::Chars;

/// Limit on the count of a repetition `{n,m}`, and on the product of nested counts.
const REPEAT_MAX: u32 = 1_000;
/// Limit on nested groups; the limit of the `regex` crate is 250.
const NESTING_MAX: usize = 200;

/// Approximate costs, in states of an automaton over bytes. A class in brackets costs `COST_ASCII` (a complement `[^...]`:
/// `COST_ANY`) plus the cost of its members. `.`, a class such as `\d`, and a range beyond ASCII each cost `COST_ANY`.
const COST_ASCII: u64 = 4;
const COST_ANY: u64 = 12;
const COST_PROPERTY: u64 = 800;

/// Limit on the cost of one pattern.
const COST_MAX: u64 = 100_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Translated {
    pub text: String,
    /// Approximate number of states of the pattern's automaton, with repetitions expanded.
    pub cost: u64,
    /// Names of groups, with their indexes. The groups in `text` have no names, because `regex` accepts fewer names
    /// than Go.
    pub names: Vec<(String, usize)>,
}

/// If `dot_newline` is true, `.` also matches a newline, as if the pattern started with `(?s)`.
///
/// # Errors
/// If Go refuses the pattern, if the pattern has a surrogate, or if it exceeds a limit of this file.
pub fn translate(pattern: &str, dot_newline: bool) -> Result<Translated, String> {
    let flags = Flags { dot_newline, ..Flags::default() };
    let mut translation = Translation {
        rest: pattern.chars().peekable(),
        out: String::with_capacity(pattern.len() + 16),
        level: Level { flags, ..Level::default() },
        outer: Vec::new(),
        names: Vec::new(),
        groups: 0,
        has_named_class: true,
    };
    translation.run()?;
    if !translation.outer.is_empty() {
        return Err("missing closing )".into());
    }
    let Translation { out: text, names, level, .. } = translation;
    Ok(Translated { text, names, cost: level.cost.saturating_add(1) })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Flags {
    fold_case: bool,
    multi_line: bool,
    dot_newline: bool,
    swap_greed: bool,
}

impl Flags {
    /// All flags in the syntax of `regex`: the flags that are on, `-`, the flags that are off.
    fn text(self) -> String {
        let all =
            [('i', self.fold_case), ('m', self.multi_line), ('s', self.dot_newline), ('U', self.swap_greed)];
        let list = |wanted| all.iter().filter(move |(_, on)| *on == wanted).map(|(name, _)| *name);
        let (on, off): (String, String) = (list(true).collect(), list(false).collect());
        if off.is_empty() { on } else { format!("{on}-{off}") }
    }

    fn set(&mut self, name: char, on: bool) -> bool {
        match name {
            'i' => self.fold_case = on,
            'm' => self.multi_line = on,
            's' => self.dot_newline = on,
            'U' => self.swap_greed = on,
            _ => return false,
        }
        true
    }
}

/// The operand to which a following repetition operator applies.
#[derive(Clone, Copy, Debug, Default)]
enum Last {
    /// No operand: the position is the start of a group or of an alternative.
    #[default]
    None,
    Item(Item),
    /// A repetition, which cannot be repeated again.
    Repeated,
}

#[derive(Clone, Copy, Debug)]
struct Item {
    cost: u64,
    /// Product of the nested repetitions in the item.
    repeats: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Level {
    flags: Flags,
    /// Whether the flags must still be written. They are written late, because the operator in `a(?i)*` repeats `a`.
    has_new_flags: bool,
    last: Last,
    cost: u64,
    repeats: u32,
}

struct Translation<'p> {
    rest: Peekable<Chars<'p>>,
    out: String,
    level: Level,
    outer: Vec<Level>,
    names: Vec<(String, usize)>,
    groups: usize,
    /// Whether a `:]` may still follow in the rest of the pattern.
    has_named_class: bool,
}

impl Translation<'_> {
    fn run(&mut self) -> Result<(), String> {
        while let Some(c) = self.rest.next() {
            match c {
                '(' => self.open()?,
                ')' => self.close()?,
                '|' => {
                    self.out.push('|');
                    self.level.last = Last::None;
                }
                '^' | '$' => self.item(1, |out| out.push(c)),
                '.' => self.item(COST_ANY, |out| out.push('.')),
                '[' => self.class()?,
                '*' => self.repeat("*", (0, None))?,
                '+' => self.repeat("+", (1, None))?,
                '?' => self.repeat("?", (0, Some(1)))?,
                '{' => self.counted()?,
                '\\' => self.escaped()?,
                other => self.literal(other),
            }
            affordable(self.level.cost)?;
        }
        Ok(())
    }

    fn say_flags(&mut self) {
        if std::mem::take(&mut self.level.has_new_flags) {
            let _ = write!(self.out, "(?{})", self.level.flags.text());
        }
    }

    fn item(&mut self, cost: u64, write: impl FnOnce(&mut String)) {
        self.say_flags();
        write(&mut self.out);
        self.took(Item { cost, repeats: 1 });
    }

    fn took(&mut self, item: Item) {
        self.level.cost = self.level.cost.saturating_add(item.cost);
        self.level.repeats = self.level.repeats.max(item.repeats);
        self.level.last = Last::Item(item);
    }

    fn literal(&mut self, c: char) {
        let cost = c.len_utf8() as u64 * if self.level.flags.fold_case { 2 } else { 1 };
        self.item(cost, |out| push_char(out, c));
    }

    fn open(&mut self) -> Result<(), String> {
        if self.outer.len() >= NESTING_MAX {
            return Err(format!("more than {NESTING_MAX} nested groups"));
        }
        let mut inner = self.level.flags;
        if self.rest.next_if_eq(&'?').is_some() {
            let ahead: String = self.rest.clone().take(2).collect();
            if ahead.starts_with('<') || ahead == "P<" {
                let name = self.name(ahead.starts_with('<'))?;
                self.groups += 1;
                self.names.push((name, self.groups));
                self.say_flags();
                self.out.push('(');
            } else {
                let is_group = self.flags(&mut inner)?;
                if !is_group {
                    self.level.flags = inner;
                    self.level.has_new_flags = true;
                    return Ok(());
                }
                self.say_flags();
                let _ = write!(self.out, "(?{}:", inner.text());
            }
        } else {
            self.groups += 1;
            self.say_flags();
            self.out.push('(');
        }
        let outside = std::mem::replace(&mut self.level, Level { flags: inner, ..Level::default() });
        self.outer.push(outside);
        Ok(())
    }

    /// Reads `P<name>`, or `<name>` in the short form.
    fn name(&mut self, short: bool) -> Result<String, String> {
        let skipped = if short { 1 } else { 2 };
        let rest: String = self.rest.clone().skip(skipped).collect();
        let is_name = |c: char| c == '_' || c.is_ascii_alphanumeric();
        let (name, _) = rest
            .split_once('>')
            .filter(|(name, _)| !name.is_empty() && name.chars().all(is_name))
            .ok_or("invalid named capture")?;
        self.rest.nth(skipped + name.len());
        Ok(name.to_owned())
    }

    /// Parses flags up to `:` (returns true: a group follows) or up to `)`.
    fn flags(&mut self, flags: &mut Flags) -> Result<bool, String> {
        let (mut on, mut seen) = (true, false);
        let mut read = String::from("(?");
        for c in self.rest.by_ref() {
            read.push(c);
            match c {
                '-' if on => (on, seen) = (false, false),
                ':' | ')' if on || seen => return Ok(c == ':'),
                c if flags.set(c, on) => seen = true,
                _ => break,
            }
        }
        Err(format!("invalid or unsupported Perl syntax: {read}"))
    }

    fn close(&mut self) -> Result<(), String> {
        let Some(outside) = self.outer.pop() else { return Err("unexpected )".into()) };
        self.out.push(')');
        let inner = std::mem::replace(&mut self.level, outside);
        self.took(Item { cost: inner.cost.saturating_add(1), repeats: inner.repeats.max(1) });
        Ok(())
    }

    /// Reads `{n}`, `{n,}` or `{n,m}`. Any other text after `{` makes the brace a literal.
    fn counted(&mut self) -> Result<(), String> {
        let mut ahead = self.rest.clone();
        let Some((min, max, text)) = counts(&mut ahead) else {
            self.literal('{');
            return Ok(());
        };
        let too_many = |n: Option<u32>| n.is_none_or(|n| n > REPEAT_MAX);
        let bad = too_many(min) || max.is_some_and(|max| too_many(max) || max < min);
        if bad {
            return Err(format!("invalid repeat count: {{{text}"));
        }
        self.rest = ahead;
        self.repeat(&format!("{{{text}"), (min.unwrap_or(0), max.flatten()))
    }

    fn repeat(&mut self, text: &str, (min, max): (u32, Option<u32>)) -> Result<(), String> {
        let item = match self.level.last {
            Last::Item(item) => item,
            Last::None => return Err(format!("missing argument to repetition operator: {text}")),
            Last::Repeated => return Err(format!("invalid nested repetition operator: {text}")),
        };
        self.out.push_str(text);
        if self.rest.next_if_eq(&'?').is_some() {
            self.out.push('?');
        }
        let counted = text.starts_with('{');
        let factor = if counted { max.unwrap_or(min) } else { 1 };
        let repeats = if factor == 0 { 1 } else { item.repeats.saturating_mul(factor) };
        if counted && factor >= 2 && repeats > REPEAT_MAX {
            return Err(format!("invalid repeat count: {text}"));
        }
        let copies = u64::from(max.unwrap_or(min.saturating_add(1)));
        self.level.cost = self.level.cost.saturating_add(item.cost.saturating_mul(copies.saturating_sub(1)));
        self.level.repeats = self.level.repeats.max(repeats);
        self.level.last = Last::Repeated;
        Ok(())
    }

    fn escaped(&mut self) -> Result<(), String> {
        match self.rest.peek().copied() {
            Some('A') => self.simple(r"\A"),
            Some('z') => self.simple(r"\z"),
            Some('b') => self.simple(r"(?-u:\b)"),
            Some('B') => self.simple(r"(?-u:\B)"),
            Some('Q') => self.quoted(),
            Some('p' | 'P') => {
                let class = property(&mut self.rest)?;
                self.item(COST_PROPERTY, |out| out.push_str(&class));
            }
            Some(c) if perl_class(c).is_some() => {
                self.rest.next();
                let class = perl_class(c).unwrap_or_default();
                self.item(COST_ANY, |out| out.push_str(class));
            }
            _ => {
                let c = escape(&mut self.rest)?;
                self.literal(c);
            }
        }
        Ok(())
    }

    fn simple(&mut self, text: &str) {
        self.rest.next();
        self.item(1, |out| out.push_str(text));
    }

    /// Reads the literals quoted by `\Q...\E`.
    fn quoted(&mut self) {
        self.rest.next();
        while let Some(c) = self.rest.next() {
            if c == '\\' && self.rest.next_if_eq(&'E').is_some() {
                return;
            }
            self.literal(c);
        }
    }

    fn class(&mut self) -> Result<(), String> {
        self.say_flags();
        self.out.push('[');
        let mut cost = COST_ASCII;
        if self.rest.next_if_eq(&'^').is_some() {
            self.out.push('^');
            cost = COST_ANY;
        }
        let mut first = true;
        loop {
            match self.rest.peek().copied() {
                Some(']') if !first => {
                    self.rest.next();
                    self.out.push(']');
                    self.took(Item { cost, repeats: 1 });
                    return Ok(());
                }
                Some('[') if self.named_class()? => {}
                Some(_) => {
                    cost = cost.saturating_add(self.member()?);
                    affordable(cost)?;
                }
                None => return Err("missing closing ]".into()),
            }
            first = false;
        }
    }

    /// One member of a class: another class, a character, a range. Returns its cost.
    fn member(&mut self) -> Result<u64, String> {
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('\\') {
            match ahead.peek().copied() {
                Some('p' | 'P') => {
                    let class = property(&mut ahead)?;
                    self.out.push_str(&class);
                    self.rest = ahead;
                    return Ok(COST_PROPERTY);
                }
                Some(c) if perl_class(c).is_some() => {
                    ahead.next();
                    self.out.push_str(perl_class(c).unwrap_or_default());
                    self.rest = ahead;
                    return Ok(COST_ANY);
                }
                _ => {}
            }
        }
        let low = self.class_char()?;
        push_char(&mut self.out, low);
        let mut ahead = self.rest.clone();
        if ahead.next() == Some('-') && ahead.peek().is_some_and(|c| *c != ']') {
            self.rest.next();
            let high = self.class_char()?;
            if high < low {
                return Err(format!("invalid character class range: {low}-{high}"));
            }
            self.out.push('-');
            push_char(&mut self.out, high);
            return Ok(if high.is_ascii() { 1 } else { COST_ANY });
        }
        Ok(low.len_utf8() as u64)
    }

    fn class_char(&mut self) -> Result<char, String> {
        match self.rest.next() {
            Some('\\') => escape(&mut self.rest),
            Some(c) => Ok(c),
            None => Err("missing closing ]".into()),
        }
    }

    /// Reads `[:alpha:]` within a class. Returns false if the text is not such a class, so that `[` is a literal.
    fn named_class(&mut self) -> Result<bool, String> {
        let mut ahead = self.rest.clone();
        ahead.next();
        if !self.has_named_class || ahead.next() != Some(':') {
            return Ok(false);
        }
        let text: String = ahead.collect();
        let Some((name, _)) = text.split_once(":]") else {
            self.has_named_class = false;
            return Ok(false);
        };
        if !POSIX.contains(&name.strip_prefix('^').unwrap_or(name)) {
            return Err(format!("invalid character class range: [:{name}:]"));
        }
        let _ = write!(self.out, "[:{name}:]");
        self.rest.nth(3 + name.chars().count());
        Ok(true)
    }
}

fn affordable(cost: u64) -> Result<(), String> {
    if cost > COST_MAX {
        return Err(format!("it needs at least {cost} states, at most {COST_MAX} are allowed"));
    }
    Ok(())
}

const POSIX: [&str; 14] = [
    "alnum", "alpha", "ascii", "blank", "cntrl", "digit", "graph", "lower", "print", "punct", "space",
    "upper", "word", "xdigit",
];

/// The class `\c` (such as `\d`) in the syntax of `regex`, valid also inside another class.
const fn perl_class(c: char) -> Option<&'static str> {
    match c {
        'd' => Some("[0-9]"),
        'D' => Some("[^0-9]"),
        's' => Some(r"[\t\n\f\r ]"),
        'S' => Some(r"[^\t\n\f\r ]"),
        'w' => Some("[0-9A-Za-z_]"),
        'W' => Some("[^0-9A-Za-z_]"),
        _ => None,
    }
}

/// Escapes a character so that it is a literal inside and outside of classes, under any flags.
fn push_char(out: &mut String, c: char) {
    if c.is_ascii_alphanumeric() || !c.is_ascii() {
        out.push(c);
    } else {
        let _ = write!(out, r"\x{:02X}", u32::from(c));
    }
}

/// Minimum, maximum, and the text after `{` up to and including `}`. A minimum of `None` or a maximum of `Some(None)` is too
/// large for a `u32`. A maximum of `None` means that there is no upper bound.
type Counts = (Option<u32>, Option<Option<u32>>, String);

fn counts(rest: &mut Peekable<Chars<'_>>) -> Option<Counts> {
    let mut text = String::new();
    let min = count(rest, &mut text)?;
    let max = match rest.next()? {
        '}' => {
            text.push('}');
            return Some((min, Some(min), text));
        }
        ',' if rest.peek() == Some(&'}') => None,
        ',' => {
            text.push(',');
            Some(count(rest, &mut text)?)
        }
        _ => return None,
    };
    if max.is_none() {
        text.push(',');
    }
    if rest.next()? != '}' {
        return None;
    }
    text.push('}');
    Some((min, max, text))
}

/// A number without leading zeros; the inner `None` if the number is too large.
fn count(rest: &mut Peekable<Chars<'_>>, text: &mut String) -> Option<Option<u32>> {
    let mut digits = String::new();
    while let Some(digit) = rest.next_if(char::is_ascii_digit) {
        digits.push(digit);
    }
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    text.push_str(&digits);
    Some(digits.parse().ok())
}

/// Reads a category or script (`\pN`, `\p{Name}` or `\p{^Name}`) from the `p` on, and returns it as a class of `regex`.
fn property(rest: &mut Peekable<Chars<'_>>) -> Result<String, String> {
    let mut negated = rest.next() == Some('P');
    let bad = |name: &str| format!("invalid character class range: \\p{{{name}}}");
    let mut name = String::new();
    match rest.next() {
        Some('{') => loop {
            match rest.next() {
                Some('}') => break,
                Some(c) => name.push(c),
                None => return Err(bad(&name)),
            }
        },
        Some(c) => name.push(c),
        None => return Err(bad("")),
    }
    if let Some(positive) = name.strip_prefix('^') {
        name = positive.to_owned();
        negated = !negated;
    }
    let letters = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ' ' | '-');
    if name.is_empty() || !name.chars().all(letters) {
        return Err(bad(&name));
    }
    let known = ["gc", "sc"].into_iter().find_map(|kind| {
        let class = format!(r"\p{{{kind}={name}}}");
        regex_syntax::Parser::new().parse(&class).is_ok().then_some(class)
    });
    let class = known.ok_or_else(|| bad(&name))?;
    Ok(if negated { class.replacen('p', "P", 1) } else { class })
}

/// Reads an escape sequence after its backslash, and returns the character that it stands for.
fn escape(rest: &mut Peekable<Chars<'_>>) -> Result<char, String> {
    let Some(c) = rest.next() else { return Err("trailing backslash at end of expression".into()) };
    let bad = || format!("invalid escape sequence: \\{c}");
    let octal = |c: &char| ('0'..='7').contains(c);
    match c {
        'a' => Ok('\u{7}'),
        'f' => Ok('\u{c}'),
        'n' => Ok('\n'),
        'r' => Ok('\r'),
        't' => Ok('\t'),
        'v' => Ok('\u{b}'),
        'x' => hexadecimal(rest).and_then(char::from_u32).ok_or_else(bad),
        '0'..='7' if c == '0' || rest.peek().is_some_and(octal) => {
            let mut value = u32::from(c) - u32::from('0');
            for _ in 0..2 {
                let Some(digit) = rest.next_if(octal) else { break };
                value = value * 8 + (u32::from(digit) - u32::from('0'));
            }
            char::from_u32(value).ok_or_else(bad)
        }
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Ok(c),
        _ => Err(bad()),
    }
}

/// Reads the hexadecimal digits `41` or `{1F600}`.
fn hexadecimal(rest: &mut Peekable<Chars<'_>>) -> Option<u32> {
    if rest.next_if_eq(&'{').is_none() {
        let high = rest.next()?.to_digit(16)?;
        return Some(high * 16 + rest.next()?.to_digit(16)?);
    }
    let mut value = None;
    loop {
        match rest.next()? {
            '}' => return value,
            c => value = Some(value.unwrap_or(0u32).checked_mul(16)?.checked_add(c.to_digit(16)?)?),
        }
    }
}
