//! Formats argument errors like all other errors: one line with the error, one line with the hint.

use clap::CommandFactory;
use tacho_api::settings::WHOLE_NUMBER;

use super::Cli;
use crate::failure::Failure;

/// Shortens the message of clap: removes the usage, and the advice to put an unknown flag after `--`. `words` are the
/// arguments without the name of the executable.
pub fn mistake(error: &clap::Error, words: impl IntoIterator<Item = String>) -> Failure {
    let text = error.render().to_string();
    let said: Vec<&str> = text.lines().map(str::trim).take_while(|line| !line.is_empty()).collect();
    let said = said.join(" ");
    // The message of `std::num::ParseIntError`.
    let said = said.replace("invalid digit found in string", &format!("not {WHOLE_NUMBER}"));
    let message = said.strip_prefix("error: ").unwrap_or(&said);
    let mut tips = text.lines().filter_map(|line| line.trim().strip_prefix("tip: "));
    let hint = match tips.find(|tip| !tip.starts_with("to pass ")) {
        Some(tip) => tip.to_owned(),
        None => format!("`{} --help` lists the arguments", subcommand(words)),
    };
    Failure::usage(message).hint(hint)
}

/// `tacho` and the subcommands at the beginning of the arguments. Not every error of clap names them.
fn subcommand(words: impl IntoIterator<Item = String>) -> String {
    let mut name = String::from("tacho");
    let mut at = &Cli::command();
    for word in words {
        let Some(next) = at.find_subcommand(&word) else { break };
        name.push_str(&format!(" {}", next.get_name()));
        at = next;
    }
    name
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[test]
    fn an_argument_error_has_two_lines() {
        for (line, expect) in [
            (
                "query up --nope",
                "error: unexpected argument '--nope' found\nhint: `tacho query --help` lists the arguments",
            ),
            (
                "query up --rang",
                "error: unexpected argument '--rang' found\nhint: a similar argument exists: '--range'",
            ),
            (
                "querry up",
                "error: unrecognized subcommand 'querry'\nhint: some similar subcommands exist: 'queries', 'query'",
            ),
            (
                "serve --requests-max 16MB",
                "error: invalid value '16MB' for '--requests-max <N>': not a whole number from 0 without a unit\n\
                 hint: `tacho serve --help` lists the arguments",
            ),
            (
                "delete",
                "error: the following required arguments were not provided: --match <SELECTOR>\n\
                 hint: `tacho delete --help` lists the arguments",
            ),
            (
                "query up --time soon",
                "error: invalid value 'soon' for '--time <TIME>': give Unix seconds, RFC 3339 as \
                 2026-01-31T12:00:00Z, a date as 2026-01-31 (UTC), or a time before now as -2h\n\
                 hint: `tacho query --help` lists the arguments",
            ),
            (
                "query up --time 2h",
                "error: invalid value '2h' for '--time <TIME>': write -2h or '2h ago' for a time before now\n\
                 hint: `tacho query --help` lists the arguments",
            ),
            (
                "probes off * --wait soon",
                "error: invalid value 'soon' for '--wait <DURATION>': give for example 100ms, 5m or 1h30m\n\
                 hint: `tacho probes off --help` lists the arguments",
            ),
            ("--nope", "error: unexpected argument '--nope' found\nhint: `tacho --help` lists the arguments"),
        ] {
            for file in ["tacho", "/opt/Tacho-0.1_x86"] {
                let args = [file].into_iter().chain(line.split(' '));
                let error = Cli::try_parse_from(args).err().expect("the arguments are wrong");
                let words = line.split(' ').map(str::to_owned);
                assert_eq!(mistake(&error, words).to_string(), expect, "{line}");
            }
        }
    }
}
