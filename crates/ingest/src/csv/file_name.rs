//! Which labels are in the name of a file? The published data of Chronix (github.com/ChronixDB) has such names: fields
//! before `--`, separated by `_`.

/// Labels from a file's name. `names` are the label names in the order of the fields. An empty name or `-` skips a
/// field. Fields after the last name are ignored.
///
/// # Errors
/// If the name has fewer fields than `names`.
pub fn attributes(file: &str, names: &[String]) -> Result<Vec<(String, String)>, String> {
    let stem = [".gz", ".csv", ".txt", ".parquet"]
        .iter()
        .fold(file, |name, end| name.strip_suffix(end).unwrap_or(name));
    let head = stem.split_once("--").map_or(stem, |(head, _)| head);
    let fields: Vec<&str> = head.split('_').collect();
    if fields.len() < names.len() {
        return Err(format!(
            "file name {file:?} has {} fields before \"--\", {} are named",
            fields.len(),
            names.len()
        ));
    }
    let named = names.iter().zip(fields).filter(|(name, _)| !name.is_empty() && *name != "-");
    Ok(named.map(|(name, field)| (name.clone(), field.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_become_labels() {
        let check = |file: &str, names: &str, expect: Result<&str, &str>| {
            let names: Vec<String> = names.split(',').map(str::to_owned).collect();
            let got = attributes(file, &names);
            let got = got.map(|l| l.iter().map(|(n, v)| format!("{n}={v}")).collect::<Vec<_>>().join(","));
            assert_eq!(got.as_deref().map_err(String::as_str), expect, "{file}");
        };
        let file = "pre-int_EKG-Collector_jmx-all_pre-int_2015.08.12_19.23.03--java-lang-name-x.csv.gz";
        check(file, "host,process,group", Ok("host=pre-int,process=EKG-Collector,group=jmx-all"));
        check(file, "-,process,,env", Ok("process=EKG-Collector,env=pre-int"));
        check("a_b.csv", "x,y", Ok("x=a,y=b"));
        check("a_b.csv", "x,y,z", Err("file name \"a_b.csv\" has 2 fields before \"--\", 3 are named"));
    }
}
