//! `record_types.json` in the data directory keeps the declared record types over restarts. The file is replaced as a whole,
//! durably (`docs/format/record_types.md`).

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tacho_ingest::wire::{FieldType, RECORD_FIELDS_MAX, RecordField, RecordType};
use tacho_model::Timestamp;

use super::form::{FORM_BYTES_MAX, FORMS_MAX, Form, bytes_of};
use crate::versioned;

const VERSION: u32 = 2;
/// Name of the file, and the newest version that this program reads.
pub const NAME: (&str, u32) = ("record_types.json", VERSION);

#[derive(Clone, Debug)]
pub(super) struct File(PathBuf);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    version: u32,
    types: Vec<Kept>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    name: Box<str>,
    service: Box<str>,
    since: Timestamp,
    seen: Timestamp,
    fields: Vec<KeptField>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptField {
    name: Box<str>,
    #[serde(rename = "type")]
    field_type: Box<str>,
    unit: Box<str>,
}

impl File {
    pub(super) fn of(data: &Path) -> Self {
        Self(data.join(NAME.0))
    }

    /// Empty if there is no file. The error describes the fault of the file.
    pub(super) fn read(&self) -> Result<Vec<Form>, String> {
        versioned::read(&self.0, VERSION)?.map_or(Ok(Vec::new()), forms)
    }

    pub(super) fn check(&self) -> Result<(), String> {
        versioned::look(&self.0, VERSION)?.map_or(Ok(()), |content| forms(content).map(drop))
    }

    pub(super) fn write(&self, forms: &[Form]) -> io::Result<()> {
        versioned::write(
            &self.0,
            &Content { version: VERSION, types: forms.iter().map(Kept::from).collect() },
        )
    }
}

fn forms(Content { types, .. }: Content) -> Result<Vec<Form>, String> {
    if types.len() > FORMS_MAX {
        return Err(format!("{} types, at most {FORMS_MAX} are allowed", types.len()));
    }
    let forms = types.into_iter().map(Kept::form).collect::<Result<Vec<Form>, String>>()?;
    let bytes = |form: &Form| bytes_of(&(Arc::clone(&form.service), Arc::clone(&form.record_type)));
    let bytes: usize = forms.iter().map(bytes).sum();
    if bytes > FORM_BYTES_MAX {
        return Err(format!("{bytes} bytes of names, at most {FORM_BYTES_MAX} are allowed"));
    }
    Ok(forms)
}

impl Kept {
    fn form(self) -> Result<Form, String> {
        let Self { name, service, since, seen, fields } = self;
        let count = fields.len();
        if count > RECORD_FIELDS_MAX {
            return Err(format!("type {name:?} has {count} fields, at most {RECORD_FIELDS_MAX} are allowed"));
        }
        let fields = fields.into_iter().map(|field| field.field(&name)).collect::<Result<_, String>>()?;
        Ok(Form { record_type: Arc::new(RecordType { name, fields }), service: service.into(), since, seen })
    }
}

impl KeptField {
    fn field(self, of: &str) -> Result<RecordField, String> {
        let Self { name, field_type, unit } = self;
        // `Text` and `TextId` have the same name. `find` returns `Text`, whose values are not ids of a dictionary.
        let known = FieldType::ALL.into_iter().find(|known| known.name() == &*field_type);
        let field_type =
            known.ok_or_else(|| format!("type {of:?}: type {field_type:?} of field {name:?} is unknown"))?;
        Ok(RecordField { field_type, name, unit })
    }
}

impl From<&Form> for Kept {
    fn from(form: &Form) -> Self {
        let field = |field: &RecordField| KeptField {
            name: field.name.clone(),
            field_type: field.field_type.name().into(),
            unit: field.unit.clone(),
        };
        Self {
            name: form.record_type.name.clone(),
            service: (*form.service).into(),
            since: form.since,
            seen: form.seen,
            fields: form.record_type.fields.iter().map(field).collect(),
        }
    }
}

/// The content of a file after it was read and encoded again. For the fuzz targets only.
#[cfg(fuzzing)]
pub fn read_again(bytes: &[u8]) -> Result<Vec<u8>, String> {
    let forms = versioned::parse(bytes, VERSION).and_then(forms)?;
    let types = forms.iter().map(Kept::from).collect();
    versioned::encode(&Content { version: VERSION, types }).map_err(|error| error.to_string())
}

impl fmt::Display for File {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.display().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(name: &str, fields: &[(FieldType, &str, &str)]) -> Form {
        let field = |(field_type, name, unit): &(FieldType, &str, &str)| RecordField {
            field_type: *field_type,
            name: (*name).into(),
            unit: (*unit).into(),
        };
        let fields = fields.iter().map(field).collect();
        let record_type = Arc::new(RecordType { name: name.into(), fields });
        let (since, seen) = (1_763_758_800_000_000_001, 1_763_762_400_000_000_002);
        Form { record_type, service: "shop".into(), since, seen }
    }

    #[test]
    fn the_golden_file_matches_the_format() {
        let [first, golden] = [
            include_str!("../../../../testdata/record_types/version-1.json"),
            include_str!("../../../../testdata/record_types/version-2.json"),
        ];
        let described = include_str!("../../../../docs/format/record_types.md");
        assert!(
            described.contains(&format!("```json\n{golden}```")),
            "the example in the documentation is not the golden file"
        );
        let fields = [(FieldType::Text, "customer", ""), (FieldType::F64, "größe", "EUR")];
        let forms = vec![form("shop_order_placed", &fields)];
        let directory = tempfile::tempdir().unwrap();
        let file = File::of(directory.path());
        assert_eq!(file.read(), Ok(Vec::new()));
        file.write(&forms).unwrap();
        let path = directory.path().join("record_types.json");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), golden);
        assert_eq!(file.read().as_ref(), Ok(&forms));
        let first = versioned::parse(first.as_bytes(), VERSION).and_then(super::forms);
        assert_eq!(first, Ok(forms));
        let left: Vec<_> =
            std::fs::read_dir(directory.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, ["record_types.json"]);
    }

    #[test]
    fn every_field_type_round_trips() {
        let all = FieldType::ALL.into_iter().filter(|kind| *kind != FieldType::TextId);
        let fields: Vec<(FieldType, &str, &str)> = all.map(|kind| (kind, kind.name(), "")).collect();
        let forms = vec![form("all", &fields), form("none", &[])];
        let directory = tempfile::tempdir().unwrap();
        File::of(directory.path()).write(&forms).unwrap();
        assert_eq!(File::of(directory.path()).read(), Ok(forms));
    }

    #[test]
    fn errors_describe_the_fault_of_a_file() {
        let field = r#"{"name":"f","type":"i64","unit":""}"#;
        let one =
            |fields: &str| format!(r#"{{"name":"a","service":"s","since":1,"seen":2,"fields":[{fields}]}}"#);
        let content = |types: &str| format!(r#"{{"version":1,"types":[{types}]}}"#);
        let many = |count: usize, what: &str| vec![what; count].join(",");
        let long = one(&field.replace("\"f\"", &format!("\"{}\"", "f".repeat(FORM_BYTES_MAX))));
        for (text, cause) in [
            (String::new(), "EOF while parsing a value at line 1 column 0"),
            (content(&one("")).split_at(40).0.to_owned(), "EOF while parsing"),
            (r#"{"version":3,"forms":[]}"#.to_owned(), "it has version 3, this program knows 1 to 2"),
            (
                content(&one(&field.replace("i64", "i65"))),
                "type \"a\": type \"i65\" of field \"f\" is unknown",
            ),
            (content(&one(field).replace("seen", "sehen")), "unknown field `sehen`"),
            (content(&many(FORMS_MAX + 1, &one(""))), "1001 types, at most 1000 are allowed"),
            (content(&one(&many(65, field))), "type \"a\" has 65 fields, at most 64 are allowed"),
            (content(&long), "4194306 bytes of names, at most 4194304 are allowed"),
        ] {
            let directory = tempfile::tempdir().unwrap();
            std::fs::write(directory.path().join("record_types.json"), &text).unwrap();
            let error = File::of(directory.path()).read().unwrap_err();
            assert!(error.contains(cause), "{error}");
        }
    }
}
