//! Refuses retired words in comments, strings, identifiers and documents. The table `## Retired` of `docs/words.md` lists each
//! word or phrase with its replacement, and optionally the directories in which it is retired.
//!
//! A phrase also matches across a line break. A retired word that is only part of an identifier does not match.
//!
//! Also limits the number of terms in the table `## Terms`.

use super::Finding;
use super::tree::{File, Tree};

const LIST: &str = "docs/words.md";
const TERMS: &str = "## Terms";
const HEADING: &str = "## Retired";
/// A page of terms is read whole by newcomers, so it stays short.
const TERMS_MAX: usize = 40;
/// Files that quote old texts: the list of retired words, and the history of releases.
const EXEMPT: [&str; 2] = [LIST, "CHANGELOG.md"];
/// Characters that, like white space, may separate the words of a phrase: comment markers, and the backslash of a string that
/// continues in the next line.
const SEPARATORS: [char; 6] = ['/', '!', '*', '#', '>', '\\'];

struct Retired {
    /// In lower case.
    words: Vec<String>,
    replacement: String,
    /// Prefixes of the paths in which the phrase is retired; empty means all paths.
    places: Vec<String>,
}

struct Word {
    line: usize,
    text: String,
    /// Whether only white space without an empty line, and [`SEPARATORS`], are between the previous word and this word.
    continues: bool,
}

pub fn check(tree: &Tree) -> Vec<Finding> {
    let list = tree.files.iter().find(|file| file.path == LIST).map(retired).unwrap_or_default();
    if list.is_empty() {
        let message = format!("no table of retired words under `{HEADING}`");
        return vec![Finding { path: LIST.to_owned(), line: 0, message }];
    }
    let files = tree.files.iter().filter(|file| !EXEMPT.contains(&file.path.as_str()));
    let uses = files.flat_map(|file| check_file(file, &list));
    uses.chain(tree.files.iter().filter(|file| file.path == LIST).filter_map(too_many_terms)).collect()
}

/// The lines from a heading to the next heading.
fn section<'f>(file: &'f File, heading: &'f str) -> impl Iterator<Item = &'f str> {
    let lines = file.text.lines().skip_while(move |line| line.trim_end() != heading).skip(1);
    lines.take_while(|line| !line.starts_with('#'))
}

/// Rows `` | `phrase` | replacement | `` or `` | `phrase` | replacement | `directory/` ... | ``.
fn retired(file: &File) -> Vec<Retired> {
    let row = |line: &str| {
        let (phrase, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
        let words: Vec<String> = words(phrase).into_iter().map(|word| word.text).collect();
        let rest = rest.trim_end().trim_end_matches('|').trim();
        let (replacement, places) = rest.split_once(" | ").unwrap_or((rest, ""));
        let places = places.split_whitespace().map(|place| place.trim_matches('`').to_owned()).collect();
        (!words.is_empty()).then_some(Retired { words, replacement: replacement.to_owned(), places })
    };
    section(file, HEADING).filter_map(row).collect()
}

fn too_many_terms(file: &File) -> Option<Finding> {
    // The first row is the header; the second, `|---|`, has no blank after the first `|`.
    let terms = section(file, TERMS).filter(|line| line.starts_with("| ")).count().saturating_sub(1);
    let message = format!("{terms} terms, at most {TERMS_MAX} are allowed: join or remove some");
    (terms > TERMS_MAX).then_some(Finding { path: file.path.clone(), line: 0, message })
}

fn check_file(file: &File, list: &[Retired]) -> Vec<Finding> {
    let applies = |retired: &&Retired| {
        retired.places.is_empty() || retired.places.iter().any(|place| file.path.starts_with(place))
    };
    let list: Vec<&Retired> = list.iter().filter(applies).collect();
    let words = words(&file.text);
    let mut findings = Vec::new();
    for (at, first) in words.iter().enumerate() {
        for retired in list.iter().filter(|retired| is_at(&words[at..], &retired.words)) {
            let message = format!("\"{}\" is retired, use: {}", retired.words.join(" "), retired.replacement);
            findings.push(Finding { path: file.path.clone(), line: first.line, message });
        }
    }
    findings
}

fn is_at(words: &[Word], phrase: &[String]) -> bool {
    words.len() >= phrase.len()
        && words.iter().zip(phrase).all(|(word, expected)| word.text == *expected)
        && words.iter().take(phrase.len()).skip(1).all(|word| word.continues)
}

/// Words in lower case: sequences of letters, digits, `_`, and apostrophes between letters.
fn words(text: &str) -> Vec<Word> {
    let text = text.replace('\u{2019}', "'").to_lowercase();
    let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '\'');
    let is_gap = |c: char| c.is_whitespace() || SEPARATORS.contains(&c);
    let (mut found, mut line, mut continues, mut rest) = (Vec::new(), 1, false, text.as_str());
    while let Some(begin) = rest.find(is_part) {
        let (gap, from_word) = rest.split_at(begin);
        let (quoted, after) = from_word.split_at(from_word.find(|c| !is_part(c)).unwrap_or(from_word.len()));
        let word = quoted.trim_matches('\'');
        let breaks = gap.matches('\n').count();
        line += breaks;
        // An empty line ends a paragraph.
        continues &= breaks <= 1 && gap.chars().all(is_gap) && quoted.starts_with(word);
        if !word.is_empty() {
            found.push(Word { line, text: word.to_owned(), continues });
        }
        continues = quoted.ends_with(word) && !word.is_empty();
        rest = after;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: &str = "# Words\n\n| `visible` | not in the table |\n\n## Retired\n\n| retired | use | where |\n|---|---|---|\n\
        | `forsooth` | indeed |\n| `hither and thither` | everywhere |\n| `morrow's` | tomorrow |\n\
        | `yonder` | there | `area/a/` `area/b/` |\n\n\
        ## Other\n\n| `visible` | not in the table |\n";

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn tree(files: Vec<File>) -> Tree {
        Tree { root: ".".into(), files }
    }

    /// Checks a file with this text. Returns `line: message` of each finding.
    fn found(text: &str) -> Vec<String> {
        let findings = check(&tree(vec![file(LIST, WORDS), file("ui/a.ts", text)]));
        assert!(findings.iter().all(|finding| finding.path == "ui/a.ts"));
        findings.into_iter().map(|finding| format!("{}: {}", finding.line, finding.message)).collect()
    }

    const FORSOOTH: &str = "\"forsooth\" is retired, use: indeed";
    const HITHER: &str = "\"hither and thither\" is retired, use: everywhere";
    const MORROW: &str = "\"morrow's\" is retired, use: tomorrow";

    #[test]
    fn retired_words_are_found_whole_and_in_any_case() {
        assert_eq!(
            found("one\n// Forsooth, \"FORSOOTH\"."),
            [format!("2: {FORSOOTH}"), format!("2: {FORSOOTH}")]
        );
        assert_eq!(found("help = 'forsooth';"), [format!("1: {FORSOOTH}")]);
        assert_eq!(found("morrow's morrow\u{2019}s"), [format!("1: {MORROW}"), format!("1: {MORROW}")]);
        assert_eq!(found("forsoothly forsooth_1 morrow visible hither thither"), Vec::<String>::new());
    }

    #[test]
    fn phrases_are_found_across_lines_of_a_comment() {
        for text in [
            "hither and thither",
            "/// Hither and\n    /// thither.",
            " * hither\n * and *thither*",
            "# hither and\n# thither",
            "\"hither \\\n   and thither\"",
            "'hither and thither'",
        ] {
            assert_eq!(found(text), [format!("1: {HITHER}")], "{text}");
        }
    }

    #[test]
    fn phrases_end_at_punctuation_and_empty_lines() {
        for text in
            ["hither. And thither", "hither, and thither", "hither and\n\nthither", "hither 'and thither'"]
        {
            assert_eq!(found(text), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn exempt_paths_are_not_checked() {
        let text = "forsooth";
        let paths = ["CHANGELOG.md", LIST, "docs/CHANGELOG.md"];
        let files = paths.map(|path| if path == LIST { file(LIST, WORDS) } else { file(path, text) });
        let findings = check(&tree(files.into()));
        let paths: Vec<&str> = findings.iter().map(|finding| finding.path.as_str()).collect();
        assert_eq!(paths, ["docs/CHANGELOG.md"]);
    }

    #[test]
    fn words_with_directories_are_retired_only_there() {
        let paths = ["area/a/x.rs", "area/b/src/y.rs", "area/c/z.rs", "ui/a.ts"];
        let files = paths.map(|path| file(path, "yonder"));
        let findings = check(&tree(files.into_iter().chain([file(LIST, WORDS)]).collect()));
        let found: Vec<String> =
            findings.iter().map(|finding| format!("{}: {}", finding.path, finding.message)).collect();
        let message = "\"yonder\" is retired, use: there";
        assert_eq!(found, [format!("area/a/x.rs: {message}"), format!("area/b/src/y.rs: {message}")]);
    }

    #[test]
    fn a_page_of_too_many_terms_is_a_finding() {
        for (rows, expected) in [(TERMS_MAX, 0), (TERMS_MAX + 1, 1)] {
            let terms = "| word | meaning |\n".repeat(rows);
            let text = format!("## Terms\n\n| term | meaning |\n|---|---|\n{terms}\n{WORDS}");
            let findings = check(&tree(vec![file(LIST, &text)]));
            assert_eq!(findings.len(), expected, "{rows} rows");
            assert!(findings.iter().all(|finding| finding.message.starts_with("41 terms")));
        }
    }

    #[test]
    fn a_missing_table_is_a_finding() {
        for files in [vec![], vec![file(LIST, "# Words\n\n| `forsooth` | indeed |\n")]] {
            let findings = check(&tree(files));
            assert_eq!(findings.len(), 1);
            assert_eq!((findings[0].path.as_str(), findings[0].line), (LIST, 0));
        }
    }
}
