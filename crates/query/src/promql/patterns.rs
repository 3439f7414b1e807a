//! Keeps patterns from the parser: it compiles each to check it, which can take as long as the whole query does otherwise, and
//! throws the result away. [`tacho_model::Matcher`] checks them, and compiles only those that are no choice of texts.

use super::guard::{Kind, Scanner};

/// Begins a text that is a pattern. Private to whoever uses it (Unicode's private use area), so hardly anybody does.
const MARK: char = '\u{f8ff}';

/// The same query with `=` for `=~` and `!=` for `!~` before plain patterns, which get a mark instead. Plain are those that the
/// parser hands on as they are: nothing in them is escaped, nor a brace. `None` where there is none, or the query has marks.
pub fn hidden(text: &str) -> Option<String> {
    if text.contains(MARK) {
        return None;
    }
    let mut scanner = Scanner::new(text);
    let (mut hidden, mut copied, mut before) = (String::new(), 0, None);
    while let Ok(Some(token)) = scanner.next() {
        let operator = before.take();
        match (operator, token.kind) {
            (Some((at, sign)), Kind::Text) if !token.text.contains(['\\', '{']) => {
                hidden.push_str(&text[copied..at]);
                hidden.push_str(sign);
                hidden.push_str(&text[at + 2..token.at + 1]);
                hidden.push(MARK);
                copied = token.at + 1;
            }
            (_, Kind::Symbol) if token.text == "=~" => before = Some((token.at, "=")),
            (_, Kind::Symbol) if token.text == "!~" => before = Some((token.at, "!=")),
            _ => {}
        }
    }
    if copied == 0 {
        return None;
    }
    hidden.push_str(&text[copied..]);
    Some(hidden)
}

/// The pattern that a text stands for; `None` when it is a text.
pub fn revealed(value: &str) -> Option<&str> {
    value.strip_prefix(MARK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_patterns_become_marked_texts() {
        let check = |text: &str, expect: Option<&str>| {
            assert_eq!(hidden(text).map(|text| text.replace(MARK, "@")).as_deref(), expect, "{text}");
        };
        check(r#"a{b=~"c|d",e !~ 'f.*'} + g{h="i"}"#, Some(r#"a{b="@c|d",e != '@f.*'} + g{h="i"}"#));
        check(r#"a{b="c"}"#, None);
        check(r#"a{b=~"c\\d",e=~"f{2}"}"#, None);
        check(r#"a{b=~"c\\d",e=~"é"} # =~"x""#, Some(r#"a{b=~"c\\d",e="@é"} # =~"x""#));
        check("a{b=~\"\u{f8ff}c\"}", None);
    }
}
