//! Keeps patterns from the parser: it compiles each to check it, by another syntax than Prometheus', which can take as
//! long as the whole query does otherwise, and throws the result away. [`tacho_model::Matcher`] checks them, and compiles
//! only those that are no choice of texts.

use super::guard::{Kind, Scanner};

/// The same query with `=` for `=~` and `!=` for `!~` before patterns, each of which begins with the mark instead.
#[derive(Debug, PartialEq, Eq)]
pub struct Hidden {
    pub text: String,
    pub mark: char,
}

/// `None` where there is no pattern.
pub fn hidden(text: &str) -> Option<Hidden> {
    // One that the query does not have: no query is as long as the private use areas.
    let mark = ('\u{e000}'..='\u{f8ff}').chain('\u{f0000}'..='\u{ffffd}').find(|c| !text.contains(*c))?;
    let mut scanner = Scanner::new(text);
    let (mut hidden, mut copied, mut before) = (String::new(), 0, None);
    while let Ok(Some(token)) = scanner.next() {
        let operator = before.take();
        match (operator, token.kind) {
            (Some((at, sign)), Kind::Text) => {
                hidden.push_str(&text[copied..at]);
                hidden.push_str(sign);
                hidden.push_str(&text[at + 2..token.at + 1]);
                hidden.push(mark);
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
    Some(Hidden { text: hidden, mark })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_become_marked_texts() {
        let check = |text: &str, expect: Option<&str>| {
            let hidden = hidden(text).map(|hidden| hidden.text.replace(hidden.mark, "@"));
            assert_eq!(hidden.as_deref(), expect, "{text}");
        };
        check(r#"a{b=~"c|d",e !~ 'f.*'} + g{h="i"}"#, Some(r#"a{b="@c|d",e != '@f.*'} + g{h="i"}"#));
        check(r#"a{b="c"}"#, None);
        check(r#"a{b=~"c\\d",e=~`f{2}`}"#, Some(r#"a{b="@c\\d",e=`@f{2}`}"#));
        check(r#"a{b=~"é"} # =~"x""#, Some(r#"a{b="@é"} # =~"x""#));
        check("a{b=~\"\u{e000}c\"}", Some("a{b=\"@\u{e000}c\"}"));
    }
}
