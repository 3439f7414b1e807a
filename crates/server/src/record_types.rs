//! Which record types have programs declared, and what are their fields' types and units?
//!
//! Before: `listen/connection.rs` tells what an agent has defined. After: `http/records.rs`, for the page. In memory only:
//! an agent defines its types again on each connection, and the entries themselves say all but the units.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_ingest::wire::RecordType;
use tacho_model::Timestamp;

/// Forms of types that are listed, over all services. Past it new ones are counted; their records are kept all the same.
const FORMS_MAX: usize = 1_000;

/// One form of one type, as one service has it. A type that changed with the version of a program has several.
#[derive(Clone, Debug)]
pub struct Form {
    pub record_type: Arc<RecordType>,
    pub service: Arc<str>,
    /// When it was defined first and last.
    pub since: Timestamp,
    pub seen: Timestamp,
}

#[derive(Default)]
pub struct RecordTypes {
    table: Mutex<Table>,
}

#[derive(Default)]
struct Table {
    forms: HashMap<(Arc<str>, Arc<RecordType>), (Timestamp, Timestamp)>,
    left_out: u64,
}

impl RecordTypes {
    pub fn defined(&self, service: &str, types: Vec<Arc<RecordType>>, now: Timestamp) {
        if types.is_empty() {
            return;
        }
        let service: Arc<str> = service.into();
        let mut table = self.lock();
        for record_type in types {
            let key = (Arc::clone(&service), record_type);
            if let Some((_, seen)) = table.forms.get_mut(&key) {
                *seen = now;
            } else if table.forms.len() < FORMS_MAX {
                table.forms.insert(key, (now, now));
            } else {
                table.left_out += 1;
            }
        }
    }

    /// All forms by name and service, the newest of each last; and how many definitions found no room.
    pub fn list(&self) -> (Vec<Form>, u64) {
        let table = self.lock();
        let mut forms: Vec<Form> = Vec::with_capacity(table.forms.len());
        for ((service, record_type), (since, seen)) in &table.forms {
            let (record_type, service) = (Arc::clone(record_type), Arc::clone(service));
            forms.push(Form { record_type, service, since: *since, seen: *seen });
        }
        let left_out = table.left_out;
        drop(table);
        forms.sort_by(|a, b| {
            let key = |form: &Form| (form.record_type.name.clone(), form.service.clone(), form.seen);
            key(a).cmp(&key(b))
        });
        (forms, left_out)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Arc<RecordType> {
        Arc::new(RecordType { name: name.into(), fields: Vec::new() })
    }

    #[test]
    fn forms_are_listed_once_and_no_more_than_the_limit() {
        let types = RecordTypes::default();
        types.defined("shop", vec![named("b"), named("a")], 1);
        types.defined("shop", vec![named("b")], 2);
        types.defined("board", vec![named("b")], 3);
        let (forms, left_out) = types.list();
        let listed: Vec<_> = forms
            .iter()
            .map(|form| (&*form.record_type.name, &*form.service, form.since, form.seen))
            .collect();
        assert_eq!(listed, [("a", "shop", 1, 1), ("b", "board", 3, 3), ("b", "shop", 1, 2)]);
        assert_eq!(left_out, 0);
        let many: Vec<_> = (0..FORMS_MAX).map(|i| named(&format!("t{i}"))).collect();
        types.defined("shop", many, 4);
        types.defined("shop", vec![named("a")], 5);
        let (forms, left_out) = types.list();
        assert_eq!((forms.len(), left_out), (FORMS_MAX, 3));
        assert_eq!(forms[0].seen, 5);
    }
}
