//! How are the settings written in Java, JavaScript, Python and Markdown?

use super::list;
use super::table::{Agent, Kind, Setting, Tables};

/// Line lengths up to which the formatters of the three languages keep a list in one line.
const JAVA_COLUMNS: usize = 100;
const NODE_COLUMNS: usize = 130;
const PYTHON_COLUMNS: usize = 130;

/// Constants of the enum `Setting`.
pub fn java(tables: &Tables) -> Vec<String> {
    let settings = tables.settings(Agent::Java);
    let last = settings.len().saturating_sub(1);
    let line = |(at, setting): (usize, &Setting)| {
        let bounds = setting.bounds.iter().map(|(least, most)| format!(", \"{least}\", \"{most}\""));
        format!(
            "    {}(Type.{}, \"{}\"{}){}",
            setting.name.to_uppercase(),
            java_type(setting.kind),
            setting.default,
            bounds.collect::<String>(),
            if at == last { ';' } else { ',' }
        )
    };
    settings.iter().enumerate().map(line).collect()
}

fn java_type(kind: Kind) -> &'static str {
    match kind {
        Kind::Text | Kind::Address => "TEXT",
        Kind::Secret => "SECRET",
        Kind::Flag => "FLAG",
        Kind::Policy => "POLICY",
        Kind::Number => "NUMBER",
        Kind::PowerOfTwo => "POWER_OF_TWO",
        Kind::MultipleOf64 => "MULTIPLE_OF_64",
        Kind::Duration => "DURATION",
        Kind::Size => "SIZE",
        Kind::Share => "SHARE",
        Kind::List | Kind::Probes => "LIST",
    }
}

pub fn java_others(tables: &Tables) -> Vec<String> {
    let names: Vec<String> = tables.others(Agent::Java).iter().map(|name| format!("\"{name}\"")).collect();
    [vec!["    private static final Set<String> OTHERS =".to_owned()], java_set(&names)].concat()
}

/// Writes the elements in the line of `Set.of` if they fit, otherwise one element per line.
fn java_set(elements: &[String]) -> Vec<String> {
    let line = format!("            Set.of({});", elements.join(", "));
    if line.chars().count() <= JAVA_COLUMNS {
        return vec![line];
    }
    let element = |(at, element): (usize, &String)| {
        let after = if at + 1 == elements.len() { ");" } else { "," };
        format!("                    {element}{after}")
    };
    let lines = elements.iter().enumerate().map(element);
    std::iter::once("            Set.of(".to_owned()).chain(lines).collect()
}

pub fn node(tables: &Tables) -> Vec<String> {
    let settings = tables.settings(Agent::Node);
    let mut lines =
        vec!["/** @type {Record<string, Row>} */".to_owned(), "export const SETTINGS = {".to_owned()];
    for setting in &settings {
        let bounds = setting.bounds.iter().map(|(least, most)| format!(", '{least}', '{most}'"));
        let bounds: String = bounds.collect();
        let kind = node_type(setting.kind).0;
        lines.push(format!("  {}: ['{kind}', '{}'{bounds}],", setting.name, setting.default));
    }
    lines.extend(["};", "", "/**", " * Durations are in ms, sizes in bytes."].map(str::to_owned));
    lines.push(" * @typedef {object} Settings".to_owned());
    let property =
        |setting: &Setting| format!(" * @property {{{}}} {}", node_type(setting.kind).1, setting.name);
    lines.extend(settings.iter().map(property));
    lines.push(" */".to_owned());
    lines
}

/// The name of the type in the table of the Node.js agent, and the JSDoc type of its values.
fn node_type(kind: Kind) -> (&'static str, &'static str) {
    match kind {
        Kind::Secret => ("secret", "import('./secret.js').Secret"),
        Kind::Flag => ("flag", "boolean"),
        Kind::Duration => ("duration", "number"),
        Kind::Size => ("size", "number"),
        Kind::List => ("list", "string[]"),
        Kind::Probes => ("probes", "string[]"),
        Kind::Address => ("address", "{ host: string, port: number }"),
        Kind::Text | Kind::Policy | Kind::Number | Kind::PowerOfTwo | Kind::MultipleOf64 | Kind::Share => {
            ("text", "string")
        }
    }
}

pub fn node_others(tables: &Tables) -> Vec<String> {
    let names: Vec<String> = tables.others(Agent::Node).iter().map(|name| format!("'{name}'")).collect();
    let lines = list(0, "export const OTHERS = new Set([", &names, "]);", NODE_COLUMNS);
    lines.iter().map(|line| line.replacen("    ", "  ", 1)).collect()
}

/// Fields of the class `Settings`.
pub fn python(tables: &Tables) -> Vec<String> {
    tables.settings(Agent::Python).iter().map(|setting| format!("    {}", python_field(setting))).collect()
}

fn python_field(setting: &Setting) -> String {
    let Setting { name, kind, default, bounds, .. } = setting;
    let bounded = |unit: &str| {
        let (least, most) = bounds.clone().unwrap_or_default();
        format!("_number(\"{default}\", {unit}, \"{least}\", \"{most}\")")
    };
    let parts: Vec<&str> = default.split(',').filter(|part| !part.is_empty()).collect();
    let comma = if parts.len() == 1 { "," } else { "" };
    let quoted: Vec<String> = parts.iter().map(|part| format!("\"{part}\"")).collect();
    let tuple = format!("({}{comma})", quoted.join(", "));
    let read = |value: &str, by: &str| format!("field(default={value}, metadata={{\"read\": {by}}})");
    match kind {
        Kind::Flag if default == "true" => format!("{name}: bool = True"),
        Kind::Flag => format!("{name}: bool = False"),
        Kind::Number | Kind::PowerOfTwo | Kind::MultipleOf64 => {
            format!("{name}: int = {}", bounded("_WHOLE"))
        }
        Kind::Size => format!("{name}: int = {}", bounded("_SIZE")),
        Kind::Duration => format!("{name}: float = {}", bounded("_DURATION")),
        Kind::List => format!("{name}: tuple[str, ...] = {tuple}"),
        Kind::Probes => format!("{name}: tuple[str, ...] = {}", read(&tuple, "_probes")),
        Kind::Address => format!("{name}: str = {}", read(&format!("\"{default}\""), "_address")),
        Kind::Secret => format!("{name}: Secret = Secret(\"{default}\")"),
        Kind::Text | Kind::Policy | Kind::Share => format!("{name}: str = \"{default}\""),
    }
}

pub fn python_others(tables: &Tables) -> Vec<String> {
    let names: Vec<String> = tables.others(Agent::Python).iter().map(|name| format!("\"{name}\"")).collect();
    list(0, "_OTHERS = (", &names, ")", PYTHON_COLUMNS)
}

/// The table of a README.md.
pub fn page(tables: &Tables, agent: Agent) -> Vec<String> {
    let settings = tables.settings(agent);
    let heading = if agent == Agent::Node { "variable" } else { "name" };
    let mut lines = vec![
        String::new(),
        format!("| {heading} | value | default | meaning | cost |"),
        "|---|---|---|---|---|".to_owned(),
    ];
    for setting in &settings {
        let Setting { name, shown, meaning, cost, .. } = setting;
        let name = if agent == Agent::Node { format!("TACHO_{}", name.to_uppercase()) } else { name.clone() };
        let space = if cost.is_empty() { "" } else { " " };
        lines.push(format!("| `{name}` | {} | {shown} | {meaning} |{space}{cost} |", value(setting)));
    }
    lines.push(String::new());
    lines
}

/// The values that a user may write.
fn value(setting: &Setting) -> String {
    let form = match setting.kind {
        Kind::Text | Kind::Secret => "text",
        Kind::Flag => "`true` or `false`",
        Kind::Policy => "`drop` or `block`",
        Kind::Number => "number",
        Kind::PowerOfTwo => "power of two",
        Kind::MultipleOf64 => "multiple of 64",
        Kind::Duration => "duration",
        Kind::Size => "size",
        Kind::Share => "share",
        Kind::List | Kind::Probes => "list",
        Kind::Address => "address",
    };
    let bounds = setting.bounds.iter().map(|(least, most)| format!(", `{least}` to `{most}`"));
    format!("{form}{}", bounds.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "
[[setting]]
name = 'wait_max'
type = 'duration'
default = '5s'
least = '0'
most = '9m'
meaning = 'longest wait'

[[setting]]
name = 'headers'
type = 'list'
default = 'A,B'
shown = 'two'
meaning = 'names'
cost = 'none'

[[setting]]
name = 'only'
type = 'flag'
default = 'true'
meaning = 'one'
agents = ['node']
";

    #[test]
    fn a_long_set_of_java_has_one_element_per_line() {
        // 79 characters fit between the brackets.
        let elements = |bytes: usize| [format!("\"{}\"", "a".repeat(bytes - 7)), "\"b\"".to_owned()];
        let (fits, long) = (elements(79), elements(80));
        assert_eq!(java_set(&fits), [format!("            Set.of({}, \"b\");", fits[0])]);
        let lines = [
            "            Set.of(",
            &format!("                    {},", long[0]),
            "                    \"b\");",
        ];
        assert_eq!(java_set(&long), lines);
    }

    #[test]
    fn each_language_has_its_notation() {
        let tables = Tables::parse(ROWS, "").unwrap();
        assert_eq!(
            java(&tables),
            ["    WAIT_MAX(Type.DURATION, \"5s\", \"0\", \"9m\"),", "    HEADERS(Type.LIST, \"A,B\");"]
        );
        assert_eq!(
            java_others(&tables),
            ["    private static final Set<String> OTHERS =", "            Set.of(\"only\");"]
        );
        assert_eq!(
            node(&tables)[2..5],
            [
                "  wait_max: ['duration', '5s', '0', '9m'],",
                "  headers: ['list', 'A,B'],",
                "  only: ['flag', 'true'],",
            ]
        );
        assert_eq!(node_others(&tables), ["export const OTHERS = new Set([]);"]);
        assert_eq!(
            python(&tables),
            [
                "    wait_max: float = _number(\"5s\", _DURATION, \"0\", \"9m\")",
                "    headers: tuple[str, ...] = (\"A\", \"B\")",
            ]
        );
        assert_eq!(
            page(&tables, Agent::Node)[3..],
            [
                "| `TACHO_WAIT_MAX` | duration, `0` to `9m` | `5s` | longest wait | |",
                "| `TACHO_HEADERS` | list | two | names | none |",
                "| `TACHO_ONLY` | `true` or `false` | `true` | one | |",
                "",
            ]
        );
    }
}
