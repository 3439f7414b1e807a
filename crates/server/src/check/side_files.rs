//! Can the server read the files next to `chunks/` and `journal/` in a data directory?

use std::path::Path;

use tacho_store::check::{Finding, FindingKind, Loss, Place, unusable_lock};
use tacho_store::disk::{RealDisk, irregular, irregular_or_link, names_in};
use tacho_store::pin::SIDE_FILES;
use tacho_store::{Error, Result};

use crate::{access, control, record_types, snapshots};

/// Name of a file that marks the directory as the unfinished result of `tacho repair`. The last step of the repair removes it.
pub const INCOMPLETE: &str = "INCOMPLETE";

/// Files and directories of a data directory, in addition to [`SIDE_FILES`].
const OTHERS: [&str; 7] =
    ["LOCK", "journal", "chunks", "tokens.lock", access::AUDIT_FILE, snapshots::DIRECTORY, INCOMPLETE];

fn is_known(name: &str) -> bool {
    SIDE_FILES.contains(&name) || OTHERS.contains(&name)
}

/// # Errors
/// `Invalid` if the directory is the unfinished result of `tacho repair`.
pub fn refuse_incomplete(data: &Path) -> Result<()> {
    if !data.join(INCOMPLETE).exists() {
        return Ok(());
    }
    let message = format!(
        "directory is the unfinished result of tacho repair (it has a file {INCOMPLETE}): remove the directory and run tacho \
         repair again"
    );
    Err(Error::invalid(message).with("path", data.display()))
}

pub fn findings(data: &Path) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for name in names_in(&RealDisk, "list data directory", data)? {
        let is_copy = name.strip_suffix(".new").is_some_and(is_known);
        if is_copy {
            findings.push(Finding::new(
                FindingKind::Leftover,
                Place::file(name),
                "an unfinished new version of a file",
            ));
        } else if !is_known(&name) && !name.starts_with("audit.log.") {
            findings.push(Finding::new(
                FindingKind::UnknownFile,
                Place::file(name),
                "not a file of this store",
            ));
        }
    }
    let side = |name: &str, why: String, effect| {
        Finding::new(FindingKind::SideFileDamaged, Place::file(name), why).effect(effect)
    };
    if let Err(unusable) = control::check(data) {
        let finding = side("probes.json", unusable.cause, "the server does not start");
        findings.push(finding.remedy(control::REMEDY));
    }
    if let access::file::Found::Broken(why) = access::file::read(data) {
        findings.push(side("tokens", why, "the server refuses every request that needs a token"));
    }
    let lock = irregular_or_link(&data.join("LOCK"));
    findings.extend(lock.map(|why| unusable_lock(Place::file("LOCK"), why)));
    for (name, why, remedy) in access::file::irregular_files(data) {
        let effect = "the server and tacho token cannot write it";
        findings.push(side(name, why.to_owned(), effect).loss(Loss::Nothing).remedy(remedy));
    }
    if let Some(mode) = access::file::mode_for_others(data) {
        let why = format!("mode {mode:o}: other users may add tokens and change roles");
        let remedy = "check the tokens with tacho token list, then chmod 600 the file";
        findings.push(Finding::new(FindingKind::WritableByOthers, Place::file("tokens"), why).remedy(remedy));
    }
    if let Err(why) = record_types::check(data) {
        findings.push(side("record_types.json", why, "types and units of declared records are unknown"));
    }
    for name in SIDE_FILES {
        let is_told = findings.iter().any(|finding| &*finding.place.file == name);
        if let Some(why) = irregular(&data.join(name)).filter(|_| !is_told) {
            findings.push(side(name, why.to_owned(), "the server cannot read it"));
        }
    }
    Ok(findings)
}
