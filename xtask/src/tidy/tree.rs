//! The project's own text files that git does not ignore, even if they are not added yet: files with an ending of [`ENDINGS`],
//! each `Makefile`, and `.ci/run`. Test data, build output and lock files are excluded.

use std::path::PathBuf;
use std::process::Command;

pub struct File {
    /// Path relative to the repository, with `/`.
    pub path: String,
    pub text: String,
}

impl File {
    pub fn has_ending(&self, endings: &[&str]) -> bool {
        endings.iter().any(|ending| self.path.rsplit('.').next() == Some(*ending))
    }

    /// Lines with their numbers, counted from 1.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(at, line)| (at + 1, line))
    }

    /// The path of the file's crate, such as `crates/model`; `None` outside `crates/`.
    pub fn krate(&self) -> Option<&str> {
        let end = self.path.match_indices('/').nth(1)?.0;
        self.path.starts_with("crates/").then(|| &self.path[..end])
    }
}

pub struct Tree {
    pub root: PathBuf,
    pub files: Vec<File>,
}

const ENDINGS: [&str; 18] = [
    "rs", "java", "ts", "tsx", "js", "mjs", "cjs", "css", "html", "md", "toml", "sh", "yml", "xml", "qtest",
    "py", "go", "json",
];
/// Endings of the files in `testdata/` that are not test data.
const TESTDATA_ENDINGS: [&str; 3] = ["md", "py", "go"];

impl Tree {
    pub fn read() -> Result<Self, String> {
        let root = PathBuf::from(git(&["rev-parse", "--show-toplevel"])?.trim());
        let listed = git(&["ls-files", "--cached", "--others", "--exclude-standard", "--full-name", ":/"])?;
        let paths: Vec<String> =
            listed.lines().map(str::to_owned).filter(|p| root.join(p).is_file()).collect();
        let mut files = Vec::new();
        for path in paths.iter().filter(|path| is_ours(path)) {
            let bytes = std::fs::read(root.join(path)).map_err(|e| format!("cannot read {path}: {e}"))?;
            let text = String::from_utf8(bytes).map_err(|_| format!("{path} is not UTF-8"))?;
            files.push(File { path: path.to_owned(), text });
        }
        Ok(Self { root, files })
    }
}

fn is_ours(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or("");
    let own = ENDINGS.contains(&ending) || path.ends_with("Makefile") || path == ".ci/run";
    let is_data = path.starts_with("testdata/") && !TESTDATA_ENDINGS.contains(&ending);
    own && !path.starts_with("ui/dist/") && !is_data && !path.ends_with("package-lock.json")
}

fn git(args: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(args).output().map_err(|e| format!("cannot run git: {e}"))?;
    if !output.status.success() {
        return Err(format!("git {}: {}", args.join(" "), String::from_utf8_lossy(&output.stderr).trim()));
    }
    String::from_utf8(output.stdout).map_err(|_| "git printed a path that is not UTF-8".to_owned())
}
