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

/// Six samples of six series, of two teams alternately.
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

#[test]
fn a_token_that_cannot_verify_stores_the_records_and_the_same_command_continues() {
    let place = Place { guarded: Guarded::start() };
    let writer = place.token("writer", &["--role", "write"]);
    let both = place.token("both", &["--role", "read,write"]);
    let error = "error: the records are stored, but not verified: token \"writer\" does not have the role read\n\
                 hint: repeat the command with a token that also has the role read, which verifies them, or with --no-verify";
    for (name, token, more, verified) in
        [("a", &both, &[][..], true), ("b", &writer, &["--no-verify"], false)]
    {
        let file = place.file(&format!("{name}.lp"), &lines(name));
        let (code, _, stderr) = place.import(&file, &writer, &[]);
        assert!(code == Some(1) && stderr.contains(error), "{stderr}");
        let (code, stdout, stderr) = place.import(&file, token, more);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        assert!(stdout.contains("6 of them were stored by an earlier run"), "{stdout}");
        assert_eq!(stdout.contains("verified: the store holds 6 samples"), verified, "{stdout}");
    }
}

#[test]
fn samples_that_a_token_refused_are_sent_again_with_another_token() {
    let place = Place { guarded: Guarded::start() };
    let both = place.token("both", &["--role", "read,write"]);
    // The first import with this token fails at the verification, the other one ends.
    for (name, role, code) in [("writer", "write", 1), ("reader", "read,write", 3)] {
        let confined = place.token(name, &["--role", role, "--match", "{team=\"a\"}"]);
        let file = place.file(&format!("{name}.lp"), &lines(name));
        assert_eq!(place.import(&file, &confined, &[]).0, Some(code));
        let (code, stdout, stderr) = place.import(&file, &both, &[]);
        assert_eq!(code, Some(0), "{stdout}{stderr}");
        let told = "sending all samples again, because a token refused 3 records in an earlier run\n";
        assert!(stderr.contains(told), "{stderr}");
        assert!(stdout.starts_with("imported 6 samples") && !stdout.contains("refused"), "{stdout}");
        assert!(stdout.contains("verified: the store holds 6 samples"), "{stdout}");
        let (code, stdout, _) = place.import(&file, &both, &[]);
        assert!(code == Some(0) && stdout.ends_with("is complete; --again repeats it\n"), "{stdout}");
    }
    // Entries would be stored twice.
    let confined = place.token("confined", &["--role", "read,write", "--match", "{team=\"a\"}"]);
    let file = place.file("log.lp", "log,team=a v=\"x\" 1\nlog,team=b v=\"y\" 2\n");
    assert_eq!(place.import(&file, &confined, &[]).0, Some(3));
    let (code, stdout, _) = place.import(&file, &both, &[]);
    let told = "is complete; 1 record was refused; --again sends all records again: entries are then stored twice, \
                samples once\n";
    assert!(code == Some(0) && stdout.ends_with(told), "{stdout}");
}
