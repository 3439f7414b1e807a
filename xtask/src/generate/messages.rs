//! How are the messages written as functions and constants in Java, JavaScript and Python?

use super::table::Tables;

const JAVA_COLUMNS: usize = 100;

struct Message<'a> {
    name: &'a str,
    pieces: Vec<Piece<'a>>,
}

#[derive(Clone, Copy, PartialEq, Debug)]
enum Piece<'a> {
    Text(&'a str),
    Parameter(&'a str),
}

impl<'a> Message<'a> {
    fn parse(name: &'a str, text: &'a str) -> Self {
        let mut pieces = vec![];
        let mut rest = text;
        while let Some((before, after)) = rest.split_once('{') {
            let (parameter, after) = after.split_once('}').unwrap_or((after, ""));
            pieces.extend([Piece::Text(before), Piece::Parameter(parameter)]);
            rest = after;
        }
        pieces.push(Piece::Text(rest));
        pieces.retain(|piece| *piece != Piece::Text(""));
        Self { name, pieces }
    }

    /// Each parameter once, in order of first use.
    fn parameters(&self) -> Vec<&'a str> {
        let mut names = vec![];
        for piece in &self.pieces {
            if let Piece::Parameter(name) = piece
                && !names.contains(name)
            {
                names.push(*name);
            }
        }
        names
    }

    /// Converts `setting_wrong` to `settingWrong`.
    fn camel(&self) -> String {
        let mut words = self.name.split('_');
        let first = words.next().unwrap_or_default().to_owned();
        words.fold(first, |name, word| {
            let (head, tail) = word.split_at(word.len().min(1));
            name + &head.to_uppercase() + tail
        })
    }
}

fn all(tables: &Tables) -> impl Iterator<Item = Message<'_>> {
    tables.messages.iter().map(|(name, text)| Message::parse(name, text))
}

/// Static methods and constants of the class `Messages`.
pub fn java(tables: &Tables) -> Vec<String> {
    let mut lines = vec![];
    for message in all(tables) {
        let parameters: Vec<String> =
            message.parameters().iter().map(|name| format!("Object {name}")).collect();
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
            Piece::Parameter(name) => (*name).to_owned(),
        };
        let pieces: Vec<String> = message.pieces.iter().map(piece).collect();
        if !lines.is_empty() {
            lines.push(String::new());
        }
        if parameters.is_empty() {
            let name = message.name.to_uppercase();
            lines.extend(java_statement(4, &format!("public static final String {name} ="), &pieces));
            continue;
        }
        lines.push(format!("    public static String {}({}) {{", message.camel(), parameters.join(", ")));
        lines.extend(java_statement(8, "return", &pieces));
        lines.push("    }".to_owned());
    }
    lines
}

/// Writes the statement in one line, or with one line for each piece.
fn java_statement(indent: usize, before: &str, pieces: &[String]) -> Vec<String> {
    let space = " ".repeat(indent);
    let line = format!("{space}{before} {};", pieces.join(" + "));
    if line.chars().count() <= JAVA_COLUMNS {
        return vec![line];
    }
    let (first, others) = pieces.split_first().expect("a message is not empty");
    let mut lines = vec![format!("{space}{before} {first}")];
    lines.extend(others.iter().map(|piece| format!("{space}        + {piece}")));
    if let Some(last) = lines.last_mut() {
        last.push(';');
    }
    lines
}

pub fn node(tables: &Tables) -> Vec<String> {
    let mut lines = vec![];
    for message in all(tables) {
        let parameters = message.parameters();
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => text.replace('\\', "\\\\").replace('`', "\\`"),
            Piece::Parameter(name) => format!("${{{name}}}"),
        };
        let text: String = message.pieces.iter().map(piece).collect();
        lines.push(String::new());
        if parameters.is_empty() {
            let quote = if text.contains('\'') { '"' } else { '\'' };
            lines.push(format!("export const {} = {quote}{text}{quote};", message.name.to_uppercase()));
            continue;
        }
        let types: Vec<String> = parameters.iter().map(|name| format!("@param {{Value}} {name}")).collect();
        lines.push(format!("/** {} */", types.join(" ")));
        lines.push(format!("export function {}({}) {{", message.camel(), parameters.join(", ")));
        lines.push(format!("  return `{text}`;"));
        lines.push("}".to_owned());
    }
    lines
}

pub fn python(tables: &Tables) -> Vec<String> {
    let mut lines = vec![];
    let mut was_function = true;
    for message in all(tables) {
        let parameters: Vec<String> =
            message.parameters().iter().map(|name| format!("{name}: object")).collect();
        let piece = |piece: &Piece<'_>| match piece {
            Piece::Text(text) => text.replace('\\', "\\\\").replace('"', "\\\""),
            Piece::Parameter(name) => format!("{{{name}}}"),
        };
        let text: String = message.pieces.iter().map(piece).collect();
        let is_function = !parameters.is_empty();
        if is_function || was_function {
            lines.extend([String::new(), String::new()]);
        }
        was_function = is_function;
        if is_function {
            lines.push(format!("def {}({}) -> str:", message.name, parameters.join(", ")));
            lines.push(format!("    return f\"{text}\""));
        } else {
            lines.push(format!("{} = \"{text}\"", message.name.to_uppercase()));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_split_at_its_parameters() {
        let message = Message::parse("it_is_wrong", "{a}=\"{b}\", {a}");
        let expect = [
            Piece::Parameter("a"),
            Piece::Text("=\""),
            Piece::Parameter("b"),
            Piece::Text("\", "),
            Piece::Parameter("a"),
        ];
        assert_eq!(message.pieces, expect);
        assert_eq!((message.parameters(), message.camel()), (vec!["a", "b"], "itIsWrong".to_owned()));
    }

    #[test]
    fn each_language_has_its_notation() {
        let tables = Tables::parse("setting = []", "it_is = \"{a} is '{b}'\"\nover = \"it's \"\n").unwrap();
        let expect = [
            "    public static String itIs(Object a, Object b) {",
            "        return a + \" is '\" + b + \"'\";",
            "    }",
            "",
            "    public static final String OVER = \"it's \";",
        ];
        assert_eq!(java(&tables), expect);
        let expect = [
            "",
            "",
            "def it_is(a: object, b: object) -> str:",
            "    return f\"{a} is '{b}'\"",
            "",
            "",
            "OVER = \"it's \"",
        ];
        assert_eq!(python(&tables), expect);
        let tables = Tables::parse("setting = []", "it_is = \"{a} is '{b}'\"\n").unwrap();
        let expect = [
            "",
            "/** @param {Value} a @param {Value} b */",
            "export function itIs(a, b) {",
            "  return `${a} is '${b}'`;",
            "}",
        ];
        assert_eq!(node(&tables), expect);
    }
}
