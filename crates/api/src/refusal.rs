//! Summarises the series that a store or a token refused. A text is reported for each: `series a{id="x"}: limit of 3 series is
//! reached`.

const SERIES_CHARS_MAX: usize = 200;

/// Most reasons of `tacho_store` (index/admission.rs, scatter.rs) and those of a token (`server/src/access/writer.rs`) begin with
/// one of these texts, directly after the series. [`parts`] does not separate other reasons from their series.
const REASONS: [&str; 3] = [": limit of ", ": label \"", ": token \""];

/// A reason may end with details that apply to one series only. They begin with one of these texts.
const DETAILS: [&str; 2] = [" (new: ", " (of this series: "];

/// Splits a text into the series and the reason without details of this series. If the text has another form, the
/// series is empty and the reason is the whole text.
pub fn parts(text: &str) -> (&str, &str) {
    // `label "id" already has 4 values, at most 4 are allowed (new: "x")`
    let why = DETAILS.iter().find_map(|detail| text.rsplit_once(detail)).map_or(text, |(why, _)| why);
    let begin = REASONS.iter().filter_map(|begin| why.rfind(begin)).max();
    match begin.and_then(|at| Some((why.get(..at)?.strip_prefix("series ")?, why.get(at + 2..)?))) {
        Some(parts) => parts,
        None => ("", text),
    }
}

/// Part of every reason that states the limit on chunks. The counts after this part differ between batches.
pub const CHUNKS: &str = "(chunks_max): ";

/// Whether a reason without its series is that of a token.
pub fn is_of_token(why: &str) -> bool {
    why.starts_with("token \"")
}

/// The part of a reason that is the same for all records refused by one limit.
pub fn limit(why: &str) -> &str {
    why.split_once(CHUNKS).map_or(why, |(limit, _)| limit)
}

pub fn cut(series: &str) -> String {
    match series.char_indices().nth(SERIES_CHARS_MAX) {
        Some((end, _)) => format!("{}...", series.get(..end).unwrap_or(series)),
        None => series.to_owned(),
    }
}

/// Lists each reason once, preceded by the series that it applies to.
pub fn summaries<'a>(texts: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut out: Vec<(&str, Vec<String>)> = Vec::new();
    for (series, why) in texts.map(parts) {
        let place = match out.iter().position(|(known, _)| *known == why) {
            Some(place) => place,
            None => {
                out.push((why, Vec::new()));
                out.len() - 1
            }
        };
        if let Some((_, list)) = out.get_mut(place) {
            list.extend((!series.is_empty()).then(|| cut(series)));
        }
    }
    let one = |(why, series): (&str, Vec<String>)| match &*series {
        [] => why.to_owned(),
        series => format!("series {}: {why}", series.join(", ")),
    };
    out.into_iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_listed_once_with_its_series() {
        let long = format!("a{{x=\"{}\"}}", "y".repeat(300));
        for (texts, expect) in [
            (
                vec![
                    "series a: limit of 3 series is reached".to_owned(),
                    "series b{c=\"}: label \"}: limit of 3 series is reached".into(),
                ],
                vec!["series a, b{c=\"}: label \"}: limit of 3 series is reached".to_owned()],
            ),
            (
                vec![
                    "series a{id=\"x\"}: label \"id\" already has 4 values, at most 4 are allowed (new: \"x\")"
                        .into(),
                    "no room".into(),
                ],
                vec![
                    "series a{id=\"x\"}: label \"id\" already has 4 values, at most 4 are allowed".into(),
                    "no room".into(),
                ],
            ),
            (
                vec![
                    "series a: limit of 9 chunks (chunks_max): 5 are stored; far ones are refused (of this series: 1 of 2)"
                        .into(),
                    "series b: limit of 9 chunks (chunks_max): 5 are stored; far ones are refused (of this series: 7 of 7)"
                        .into(),
                ],
                vec!["series a, b: limit of 9 chunks (chunks_max): 5 are stored; far ones are refused".into()],
            ),
            (
                vec![
                    "series a{team=\"b\"}: token \"t\" is confined to {team=\"a\"}".to_owned(),
                    "series c: token \"t\" is confined to {team=\"a\"}".into(),
                    "series d: token \"t\" may write 1 series a day".into(),
                ],
                vec![
                    "series a{team=\"b\"}, c: token \"t\" is confined to {team=\"a\"}".to_owned(),
                    "series d: token \"t\" may write 1 series a day".into(),
                ],
            ),
            (
                vec![format!("series {long}: limit of 3 series is reached")],
                vec![format!("series {}...: limit of 3 series is reached", long.get(..200).unwrap())],
            ),
        ] {
            assert_eq!(summaries(texts.iter().map(String::as_str)), expect);
        }
    }
}
