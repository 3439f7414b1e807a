//! Generates a table of `include_bytes!` with all files of the built page (`ui/dist`). Some names contain hashes, so
//! the list cannot be written by hand.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    // Several checkouts may share one target directory, and so one compiled build script. Therefore the script reads the package
    // directory when it runs, and gives cargo a relative path.
    let package = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets CARGO_MANIFEST_DIR"));
    println!("cargo::rerun-if-changed=../../ui/dist");
    let root = package.join("../../ui/dist");
    let mut files = Vec::new();
    if root.is_dir() {
        collect(&root, &mut files)?;
    }
    let mut entries: Vec<(String, PathBuf)> =
        files.into_iter().map(|path| (relative(&root, &path), path)).collect();
    entries.sort();
    let mut table = String::from("const FILES: &[File] = &[\n");
    for (name, path) in entries {
        let _ = writeln!(
            table,
            "    File {{ path: {name:?}, bytes: include_bytes!({:?}) }},",
            path.display().to_string()
        );
    }
    table.push_str("];\n");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    fs::write(out.join("page_files.rs"), table)
}

fn collect(dir: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        if path.is_dir() { collect(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

fn relative(root: &Path, path: &Path) -> String {
    let below = path.strip_prefix(root).unwrap_or(path);
    below.components().map(|part| part.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/")
}
