//! A server with tokens.

use std::path::Path;

use crate::support::tokens::{add, add_to, ask};
use crate::support::{Response, Server, wait_for};

/// A server with an administrator's token.
pub struct Guarded {
    pub server: Server,
    pub admin: String,
    pub place: tempfile::TempDir,
}

impl Guarded {
    pub fn start() -> Self {
        let place = tempfile::tempdir().unwrap();
        let data = place.path().join("data");
        let admin = add(&data, "admin", &["--role", "admin"]);
        let server = Server::start(&data);
        // `tokens::changing` counts the log lines about reads of the tokens, and waits for one more. So the line about the first
        // read must exist before a test calls it.
        wait_for("the log line about the tokens", || server.log().contains("tokens read").then_some(()));
        Self { server, admin, place }
    }

    pub fn token(&self, name: &str, more: &[&str]) -> String {
        add_to(&self.server, name, more)
    }

    pub fn data(&self) -> &Path {
        &self.server.data
    }

    pub fn origin(&self) -> String {
        format!("http://{}", self.server.http)
    }

    /// Logs in as the page does. `more` are further headers.
    pub fn login(&self, token: &str, more: &[(&str, &str)]) -> Response {
        let origin = self.origin();
        let headers = [("Origin", &*origin), ("Content-Type", "application/json")];
        let headers: Vec<(&str, &str)> = headers.iter().chain(more).copied().collect();
        let body = serde_json::json!({ "token": token }).to_string();
        self.server.post("/api/session", &headers, body.as_bytes())
    }

    pub fn cookie(&self, token: &str) -> String {
        let response = self.login(token, &[]);
        assert_eq!(response.status, 200, "{}", response.text());
        let set = response.header("set-cookie").expect("a cookie is set").to_owned();
        assert!(
            set.contains("; HttpOnly") && set.contains("; SameSite=Strict") && !set.contains(token),
            "{set}"
        );
        set.split(';').next().unwrap().to_owned()
    }

    pub fn refused(&self, token: &str, reason: &str) -> u64 {
        let text = ask(&self.server, "GET", "/metrics", &self.admin).text();
        let begin = format!("tacho_token_refused_total{{token=\"{token}\",reason=\"{reason}\"}} ");
        text.lines().find_map(|line| line.strip_prefix(&*begin)?.parse().ok()).unwrap_or(0)
    }
}
