//! Refuses patterns that no agent supports. The agents do all other checks, because the letters allowed in a name depend on the
//! language (`agent/java/README.md`, Patterns; `testdata/rules`).

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    #[error("pattern {pattern:?}: methods are named without their parameters, {without:?}")]
    Parameters { pattern: String, without: String },
    #[error("pattern {pattern:?}: {c:?} cannot be part of a pattern")]
    Letter { pattern: String, c: char },
    #[error("pattern {pattern:?}: a dot is out of place")]
    Dot { pattern: String },
    #[error("pattern {pattern:?}: a name must follow the @")]
    NoName { pattern: String },
}

pub(super) fn check(pattern: &str) -> Result<(), Mistake> {
    let owned = || pattern.to_owned();
    // Users may copy the name of an operation, which has parameters: com.shop.Board.post(int).
    if let Some((without, _)) = pattern.split_once('(')
        && pattern.ends_with(')')
        && check(without).is_ok()
    {
        return Err(Mistake::Parameters { pattern: owned(), without: without.to_owned() });
    }
    let name = pattern.strip_prefix('@').unwrap_or(pattern);
    if let Some(c) = name.chars().find(|c| !may_be_part(*c)) {
        return Err(Mistake::Letter { pattern: owned(), c });
    }
    if name.is_empty() {
        return Err(Mistake::NoName { pattern: owned() });
    }
    let begins_with_one = name.starts_with('.') && !name.starts_with("..");
    if name.contains("...") || name.ends_with('.') || begins_with_one {
        return Err(Mistake::Dot { pattern: owned() });
    }
    Ok(())
}

fn may_be_part(c: char) -> bool {
    !c.is_ascii() || c.is_ascii_alphanumeric() || "_$.*<>-".contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_no_agent_supports_are_refused() {
        // The test vectors of all agents. A line `fault = N` says that no agent supports the pattern of rule N, counted
        // from 0.
        let vectors = include_str!("../../../../testdata/rules/decisions.vec");
        let mut seen = [0; 2];
        for case in vectors.split("\n\ncase ").skip(1) {
            let of = |key: &str| -> Vec<&str> {
                case.lines().filter_map(|line| line.strip_prefix(key)?.strip_prefix(" = ")).collect()
            };
            let faults = of("fault");
            for (at, rule) in of("rule").into_iter().enumerate() {
                let (_, pattern) = rule.split_once(' ').expect("a state and a pattern");
                let is_fault = faults.contains(&at.to_string().as_str());
                assert_eq!(check(pattern).is_err(), is_fault, "{pattern}");
                seen[usize::from(is_fault)] += 1;
            }
        }
        assert!(seen[0] > 20 && seen[1] > 5, "{seen:?}");
    }

    #[test]
    fn errors_describe_the_mistake() {
        for (pattern, expect) in [
            ("@com.shop.Watched", None),
            ("http-server", None),
            ("com.größe..漢*", None),
            (
                "com.shop.Board.post(int)",
                Some("methods are named without their parameters, \"com.shop.Board.post\""),
            ),
            ("Board.<init>()", Some("methods are named without their parameters, \"Board.<init>\"")),
            ("post(int", Some("'(' cannot be part of a pattern")),
            ("GET /ads", Some("' ' cannot be part of a pattern")),
            ("a.@b", Some("'@' cannot be part of a pattern")),
            ("@", Some("a name must follow the @")),
            ("..", Some("a dot is out of place")),
            ("com.shop.", Some("a dot is out of place")),
        ] {
            let said = check(pattern).err().map(|mistake| mistake.to_string());
            let expect = expect.map(|expect| format!("pattern {pattern:?}: {expect}"));
            assert_eq!(said, expect);
        }
    }
}
