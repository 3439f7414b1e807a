//! Tests `tacho import` with tokens that do not permit all that the command does.

use std::path::{Path, PathBuf};

use crate::support::guarded::Guarded;
use crate::support::run;

struct Place {
    guarded: Guarded,
}

impl Place {
    fn file(&self, name: &str, content: &str) -> PathBuf {
        let file = self.guarded.place.path().join(name);
        std::fs::write(&file, content).unwrap();
        file
    }

    /// The file with a new token.
    fn token(&self, name: &str, more: &[&str]) -> PathBuf {
        self.file(name, &self.guarded.token(name, more))
    }

    fn import(&self, file: &Path, token: &Path, more: &[&str]) -> (Option<i32>, String, String) {
        let url = self.guarded.server.url();
        let args =
            ["import", file.to_str().unwrap(), "--token-file", token.to_str().unwrap(), "--server", &url];
        run(&[&args[..], more].concat())
    }
}

/// Six samples of six series, of two teams by turns.
fn lines(name: &str) -> String {
    let line = |nth: usize| format!("{name},team={},host=h{nth} v={nth} {}\n", ["a", "b"][nth % 2], nth + 1);
    (0..6).map(line).collect()
}

#[test]
fn records_that_a_token_refuses_are_reported_with_the_reason_and_a_hint_about_the_token() {
    let place = Place { guarded: Guarded::start() };
    for (name, limit, refused, said) in [
        (
            "confined",
            ["--match", "{team=\"a\"}"],
            3,
            "3 records kept, 3 refused:\n  token \"confined\" is confined to {team=\"a\"}: for example \
             confined_v{host=\"h1\", team=\"b\"}\nverified: the store holds 3 samples",
        ),
        (
            "few",
            ["--series-max", "2"],
            4,
            "2 records kept, 4 refused:\n  token \"few\" may write 2 series a day: for example few_v{",
        ),
    ] {
        let token = place.token(name, &[&["--role", "read,write"][..], &limit].concat());
        let file = place.file(&format!("{name}.lp"), &lines(name));
        let (code, stdout, stderr) = place.import(&file, &token, &[]);
        assert_eq!(code, Some(3), "{stdout}{stderr}");
        assert!(stdout.starts_with("sent 6 samples of 6 series ") && stdout.contains(said), "{stdout}");
        let error = format!(
            "error: the token refused {refused} records\nhint: use a token that permits these series"
        );
        assert!(stderr.contains(&error) && !stderr.contains("tacho cardinality"), "{stderr}");
    }
}
