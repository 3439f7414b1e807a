//! Finds the jar of the agent.

use std::path::{Path, PathBuf};

use crate::failure::Failure;

const NAME: &str = "tachograph-agent.jar";
const BUILT: &str = "agent/java/target/tachograph-agent.jar";
/// A zip entry that only the jar of the agent has.
const ENTRY_POINT: &[u8] = b"io/tachograph/agent/Premain.class";

/// The jar `named`, or else the first jar in [`places`].
pub(super) fn find(named: Option<&Path>) -> Result<PathBuf, Failure> {
    let jar = match named {
        Some(named) if named.is_file() => named.to_owned(),
        Some(named) => {
            return Err(Failure::usage(format!("there is no agent at {}", named.display())).hint(BUILD));
        }
        None => {
            let places = places(std::env::current_exe().ok().as_deref());
            match places.iter().find(|place| place.is_file()) {
                Some(place) => place.clone(),
                None => return Err(missing(&places)),
            }
        }
    };
    let cannot_read = |error| Failure::new(format!("cannot read {}: {error}", jar.display()));
    let bytes = std::fs::read(&jar).map_err(cannot_read)?;
    if !bytes.windows(ENTRY_POINT.len()).any(|window| window == ENTRY_POINT) {
        return Err(Failure::usage(format!("{} is not the Java agent", jar.display())).hint(BUILD));
    }
    // The observed program reads the jar as long as it runs. A symbolic link in the path could later lead to another file.
    jar.canonicalize().map_err(cannot_read)
}

const BUILD: &str = "`make build` leaves it in agent/java/target; name it with --jar or TACHO_AGENT_JAR";

/// The places to search: next to the binary, in the checkout from which the binary was built, and in the checkout in the
/// current directory.
fn places(binary: Option<&Path>) -> Vec<PathBuf> {
    let folder = binary.and_then(Path::parent);
    let beside = folder.map(|folder| folder.join(NAME));
    // A build writes the binary to target/release/tacho in the checkout.
    let checkout = folder.and_then(|folder| Some(folder.parent()?.parent()?.join(BUILT)));
    beside.into_iter().chain(checkout).chain([BUILT.into()]).collect()
}

fn missing(places: &[PathBuf]) -> Failure {
    let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
    Failure::usage(format!("the Java agent is not here: looked for {}", places.join(", "))).hint(BUILD)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_places_are_searched_in_order() {
        let binary = Path::new("/src/tachograph/target/release/tacho");
        let expect = [
            "/src/tachograph/target/release/tachograph-agent.jar",
            "/src/tachograph/agent/java/target/tachograph-agent.jar",
            "agent/java/target/tachograph-agent.jar",
        ];
        assert_eq!(places(Some(binary)), expect.map(PathBuf::from));
        assert_eq!(places(None), [PathBuf::from(BUILT)]);
        let said = missing(&places(None)).to_string();
        assert!(
            said.starts_with("error: the Java agent is not here: looked for agent/java/target/"),
            "{said}"
        );
    }

    #[test]
    fn another_jar_is_not_accepted() {
        let directory = tempfile::tempdir().unwrap();
        let jar = directory.path().join("a.jar");
        let said = find(Some(&jar)).unwrap_err().to_string();
        assert!(
            said.starts_with(&format!("error: there is no agent at {}\nhint: ", jar.display())),
            "{said}"
        );
        std::fs::write(&jar, "PK some other jar").unwrap();
        let said = find(Some(&jar)).unwrap_err().to_string();
        assert!(said.contains("a.jar is not the Java agent"), "{said}");
        std::fs::write(&jar, [b"PK".as_slice(), ENTRY_POINT].concat()).unwrap();
        assert_eq!(find(Some(&jar)).unwrap(), jar.canonicalize().unwrap());
    }
}
