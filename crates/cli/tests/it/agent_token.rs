//! Tests the token of the Java agent. A program with a token for writing is recorded. A program without such a token is not
//! recorded and not disturbed, and its log says why.

use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::support::java::{Java, Program};
use crate::support::{Server, run, tacho, wait_for};

struct Place {
    dir: TempDir,
    admin: String,
    server: Server,
}

impl Place {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let data = dir.path().join("data");
        std::fs::create_dir(&data).unwrap();
        let admin = add(&data, &["admin", "--role", "admin"]);
        let server = Server::start_with(&data, &["--selfwatch-seconds", "0"]);
        Self { dir, admin, server }
    }

    fn add(&self, arguments: &[&str]) -> String {
        add(&self.server.data, arguments)
    }

    /// Replaces a file as a whole, as administrators should. Returns its path.
    fn put(&self, name: &str, token: &str) -> String {
        let [path, new] = [name, "new"].map(|name| self.dir.path().join(name));
        std::fs::write(&new, format!("{token}\n")).unwrap();
        std::fs::rename(new, &path).unwrap();
        path.to_str().unwrap().to_owned()
    }

    /// The output of `tacho operations`.
    fn operations(&self, service: &str) -> String {
        let mut command = Command::new(tacho());
        command.args(["operations", "--service", service, "--server", &self.server.url()]);
        let output = command.env("TACHO_TOKEN", &self.admin).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    fn records(&self, service: &str) {
        let is_there = || self.operations(service).contains("late.Loop.step").then_some(());
        wait_for(&format!("calls of {service}"), is_there);
    }

    fn program(&self, java: &Java, version: u32, service: &str, variables: &[(&str, &str)]) -> Program {
        let agent = format!("-javaagent:{}", java.agent.display());
        let to = self.server.records.to_string();
        let common = [
            ("TACHO_SERVER", &*to),
            ("TACHO_SERVICE", service),
            ("TACHO_INCLUDE", "late..*"),
            ("TACHO_EXCLUDE", "late.Loop.main"),
        ];
        java.start(version, &[&agent], &[&common, variables].concat())
    }
}

/// Adds a token. Returns its text.
fn add(data: &Path, arguments: &[&str]) -> String {
    let data = data.to_str().unwrap();
    let (code, stdout, stderr) = run(&[&["token", "add"], arguments, &["--data", data]].concat());
    assert_eq!(code, Some(0), "{stderr}");
    stdout.trim().to_owned()
}

/// Waits for a text in the program's log, and checks that the log has no token.
fn says(program: &Program, expect: &str) {
    wait_for(expect, || {
        let log = program.errors();
        assert!(!log.contains("tacho_"), "{log}");
        log.contains(expect).then_some(())
    });
}

#[test]
fn a_program_with_a_token_records_and_others_are_not_disturbed() {
    let Some(java) = Java::new() else { return };
    let place = Place::new();
    let writer = place.add(&["writer", "--role", "write"]);
    let reader = place.add(&["reader", "--role", "read"]);
    let confined = place.add(&["confined", "--role", "write", "--match", "{service=\"other\"}"]);
    let file = place.put("writer.token", &writer);
    for version in [17, 25] {
        for (name, value) in [("TACHO_TOKEN", &writer), ("TACHO_TOKEN_FILE", &file)] {
            let service = format!("{name}{version}");
            let mut program = place.program(&java, version, &service, &[(name, value)]);
            place.records(&service);
            says(&program, "connected to");
            program.check();
        }
    }
    for (variables, expect) in [
        (&[][..], "the server requires a token: set token_file or token (error 12)"),
        (&[("TACHO_TOKEN", "tacho_unknown")], "the server refuses the token: "),
        (&[("TACHO_TOKEN", &*reader)], "the token does not permit this: "),
        (&[("TACHO_TOKEN", &*confined)], "is confined to {service=\"other\"}"),
    ] {
        let mut program = place.program(&java, 17, "refused", variables);
        says(&program, expect);
        program.check();
    }
    assert_eq!(place.operations("refused"), "");
    let _program = place.program(&java, 17, "other", &[("TACHO_TOKEN", &confined)]);
    place.records("other");
}

#[test]
fn a_revoked_token_can_be_replaced_in_its_file() {
    let Some(java) = Java::new() else { return };
    let place = Place::new();
    let file = place.dir.path().join("shop.token");
    let mut program = place.program(&java, 17, "shop", &[("TACHO_TOKEN_FILE", file.to_str().unwrap())]);
    says(&program, "shop.token: no such file; the program goes on");
    place.put("shop.token", &place.add(&["first", "--role", "write"]));
    place.records("shop");
    let (code, _, stderr) = run(&["token", "revoke", "first", "--data", place.server.data.to_str().unwrap()]);
    assert_eq!(code, Some(0), "{stderr}");
    says(&program, ": the server refuses the token: ");
    place.put("shop.token", &place.add(&["second", "--role", "write"]));
    says(&program, "connected again to");
    program.check();
}

#[test]
fn a_token_is_given_to_a_running_program_by_a_file() {
    let Some(java) = Java::new() else { return };
    let place = Place::new();
    let writer = place.add(&["writer", "--role", "write"]);
    let to = format!("server={}", place.server.records);
    let with = |service: &str, more: &[&str]| {
        let mut program = java.start(17, &[], &[]);
        let pid = program.pid();
        let jar = java.agent.to_str().unwrap();
        let service = format!("service={service}");
        let common = ["attach", &pid, "--jar", jar, &to, &service, "include=late..*"];
        let ended = run(&[&common, more].concat());
        program.check();
        (program, ended)
    };
    let token = format!("token={writer}");
    let (_, (code, stdout, stderr)) = with("argument", &[&token]);
    assert_eq!((code, stdout.as_str()), (Some(2), ""), "{stderr}");
    assert!(stderr.contains("all users of this machine can read a token on a command line"), "{stderr}");
    let file = format!("token_file={}", place.put("writer.token", &writer));
    let (_program, (code, _, stderr)) = with("file", &[&file]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    place.records("file");
    let config = place.dir.path().join("agent.toml");
    std::fs::write(&config, format!("token = \"{writer}\"\n")).unwrap();
    let (program, (code, _, stderr)) = with("config", &["--config", config.to_str().unwrap()]);
    assert_eq!((code, stderr.as_str()), (Some(0), ""));
    place.records("config");
    says(&program, "connected to");
}
