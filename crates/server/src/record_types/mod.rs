//! The record types that programs declared, with the types and units of their fields.
//!
//! ```text
//!   listen/connection ── defined ──▶ RecordTypes ── list ──▶ http/records
//!                                       │   ▲ at the start
//!                                       ▼   │
//!                                 record_types.json
//! ```
//!
//! The entries themselves contain the names and values of the fields, but not their types and units. A connection reads its next
//! frame only after [`RecordTypes::defined`] has returned. Then the types are on disk, unless the file cannot be written or a
//! limit is reached. So the types of acknowledged records survive a crash.
//!
//! A form has the fields of a type in one service (`form.rs`). At a limit, services share the space: a new form replaces a form
//! of the service that takes most of it, if that service takes more than the service of the new form. So one service cannot
//! exclude the types of others.

#[cfg(fuzzing)]
pub mod file;
#[cfg(not(fuzzing))]
mod file;
mod form;
mod loss;

use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tacho_ingest::wire::{FieldType, RecordType};
use tacho_model::Timestamp;

pub use file::NAME as FILE;
pub use form::Form;
use form::{FORM_BYTES_MAX, FORMS_MAX, Key, bytes_of};
use loss::Losses;

/// At the limit, a new form may replace a form whose last definition is older than this, ns.
const FORGOTTEN_AFTER_NS: i64 = 30 * DAY_NS;
/// If the newest form of a type is defined again, the file is written only if the form's `seen` in the file is older than this,
/// ns.
const SEEN_EXACT_NS: i64 = DAY_NS;
const DAY_NS: i64 = 86_400_000_000_000;

#[derive(Default)]
pub struct RecordTypes {
    table: Mutex<Table>,
    /// `None` when types are not stored in a file.
    keeper: Option<tokio::sync::Mutex<Keeper>>,
}

/// The file and its state. Locked while the file is written.
struct Keeper {
    file: file::File,
    /// Whether the last attempt to write failed. Then further failures are not logged.
    is_failing: bool,
}

#[derive(Default)]
struct Table {
    forms: HashMap<Key, Times>,
    /// Total size of the forms ([`bytes_of`]).
    bytes: usize,
    changes: u64,
    /// Number of changes on disk.
    written: u64,
    /// Definitions that were not kept, and forms that were replaced before they expired.
    losses: Losses,
}

#[derive(Clone, Copy)]
struct Times {
    since: Timestamp,
    seen: Timestamp,
    /// The value of `seen` in the file.
    kept: Timestamp,
}

pub fn check(data: &Path) -> Result<(), String> {
    file::File::of(data).check()
}

impl RecordTypes {
    /// If the file cannot be used, logs a warning and starts with an empty list. Programs define their types again when they
    /// connect.
    pub fn open(data: &Path) -> Self {
        let file = file::File::of(data);
        let forms = file.read().unwrap_or_else(|cause| {
            tracing::warn!(
                %file, cause,
                "cannot use the file of record types: no type is known until programs declare it again, which replaces the file"
            );
            Vec::new()
        });
        let mut table = Table::default();
        for form in forms {
            table.insert((form.service, form.record_type), form.since, form.seen);
        }
        let keeper = tokio::sync::Mutex::new(Keeper { file, is_failing: false });
        Self { table: Mutex::new(table), keeper: Some(keeper) }
    }

    /// Adds the definitions of an agent, and counts those that `types` omits. On return, new forms are on disk, unless a limit
    /// is reached or the file cannot be written. Of successive failures, only the first is logged.
    pub async fn defined(
        self: &Arc<Self>,
        service: &str,
        types: (Vec<Arc<RecordType>>, u64),
        now: Timestamp,
    ) {
        if self.note(service, types, now) {
            self.keep().await;
        }
    }

    /// Adds definitions to the table. Returns whether the table has changes that are not on disk yet.
    fn note(&self, service: &str, (types, omitted): (Vec<Arc<RecordType>>, u64), now: Timestamp) -> bool {
        if types.is_empty() {
            return false;
        }
        let service: Arc<str> = service.into();
        let mut table = self.lock();
        for record_type in types {
            table.define((Arc::clone(&service), plain(record_type)), now);
        }
        table.losses.add(&service, omitted);
        let is_changed = table.changes > table.written;
        drop(table);
        self.log_losses(now);
        is_changed
    }

    /// Logs the definitions that were not kept, if a line is due.
    pub fn log_losses(&self, now: Timestamp) {
        let lost = self.lock().losses.take_unlogged(now);
        if let Some((lost, services)) = lost {
            tracing::warn!(
                lost,
                services,
                "the limit on record types is reached: fields and units of some are not kept, their records are"
            );
        }
    }

    async fn keep(self: &Arc<Self>) {
        let types = Arc::clone(self);
        // A separate task holds the lock of the file until the write has ended, even if the connection ends earlier.
        let work = tokio::spawn(async move {
            let Some(keeper) = &types.keeper else { return };
            let mut keeper = keeper.lock().await;
            // `None` when another connection has written the changes in the meantime.
            let Some((changes, forms)) = types.lock().unwritten() else { return };
            let file = keeper.file.clone();
            let work = tokio::task::spawn_blocking(move || file.write(&forms));
            match work.await.unwrap_or_else(|panic| Err(io::Error::other(panic))) {
                Ok(()) => {
                    types.lock().written = changes;
                    keeper.is_failing = false;
                }
                Err(cause) => {
                    if !keeper.is_failing {
                        let file = &keeper.file;
                        tracing::warn!(%file, %cause, "cannot store record types: new ones are lost when the server stops");
                    }
                    keeper.is_failing = true;
                }
            }
        });
        // Waiting cannot fail, because the task neither panics nor is cancelled.
        let _ = work.await;
    }

    /// All forms in the order of name and service, the newest form of each last. Also returns the number of losses: definitions
    /// that were not kept, plus forms that were replaced before they expired.
    pub fn list(&self) -> (Vec<Form>, u64) {
        let table = self.lock();
        let (forms, lost) = (table.list(), table.losses.total());
        drop(table);
        (sorted(forms), lost)
    }

    fn lock(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Table {
    fn define(&mut self, key: Key, now: Timestamp) {
        let is_newest = self.is_newest(&key);
        if let Some(times) = self.forms.get_mut(&key) {
            times.seen = now;
            if !is_newest || now.saturating_sub(times.kept) > SEEN_EXACT_NS {
                self.changes += 1;
            }
        } else if self.make_room(&key, now) {
            self.insert(key, now, now);
            self.changes += 1;
        } else {
            self.losses.add(&key.0, 1);
        }
    }

    fn insert(&mut self, key: Key, since: Timestamp, seen: Timestamp) {
        self.bytes += bytes_of(&key);
        self.forms.insert(key, Times { since, seen, kept: seen });
    }

    /// Whether the form is known, and was defined last among the forms of its type and service.
    fn is_newest(&self, key: &Key) -> bool {
        let Some(times) = self.forms.get(key) else { return false };
        let is_later = |(other, its): (&Key, &Times)| {
            its.seen > times.seen && other.0 == key.0 && other.1.name == key.1.name
        };
        !self.forms.iter().any(is_later)
    }

    /// Removes forms until `new` fits: expired ones, the oldest first, then those of [`Self::surplus`]. Returns whether it fits.
    fn make_room(&mut self, new: &Key, now: Timestamp) -> bool {
        while self.forms.len() >= FORMS_MAX || self.bytes + bytes_of(new) > FORM_BYTES_MAX {
            let oldest = self.forms.iter().min_by_key(|(_, times)| times.seen);
            let expired = oldest.filter(|(_, times)| now.saturating_sub(times.seen) > FORGOTTEN_AFTER_NS);
            if let Some(key) = expired.map(|(key, _)| key.clone()) {
                self.remove(&key);
            } else if self.has_surplus(new)
                && let Some(key) = self.surplus(new)
            {
                self.remove(&key);
                self.losses.add(&key.0, 1);
            } else {
                return false;
            }
        }
        true
    }

    /// Whether `new` fits if every other service is reduced to the bytes that the service of `new` takes, `new` included. If it
    /// does not fit even then, no form is removed for it.
    fn has_surplus(&self, new: &Key) -> bool {
        let lacking = (self.bytes + bytes_of(new)).saturating_sub(FORM_BYTES_MAX);
        let weights = self.weights(new, bytes_of);
        let own = weights.get(&*new.0).copied().unwrap_or_default();
        weights.values().map(|weight| weight.saturating_sub(own)).sum::<usize>() >= lacking
    }

    /// The sum of the weights of the forms of each service, with `new`.
    fn weights<'k>(&'k self, new: &'k Key, weight: impl Fn(&Key) -> usize) -> HashMap<&'k str, usize> {
        let mut weights: HashMap<&str, usize> = HashMap::from([(&*new.0, weight(new))]);
        for key in self.forms.keys() {
            *weights.entry(&key.0).or_default() += weight(key);
        }
        weights
    }

    /// The oldest form of the service that takes most of the limit that is reached. `None` if no service takes more than the
    /// service of `new` takes, `new` included.
    fn surplus(&self, new: &Key) -> Option<Key> {
        let is_of_forms = self.forms.len() >= FORMS_MAX;
        let weights = self.weights(new, |key| if is_of_forms { 1 } else { bytes_of(key) });
        let own = weights.get(&*new.0).copied();
        let above = weights.into_iter().filter(|(_, weight)| Some(*weight) > own);
        let (most, _) = above.max_by_key(|(service, weight)| (*weight, *service))?;
        let of_most = self.forms.iter().filter(|((service, _), _)| &**service == most);
        let oldest =
            of_most.min_by(|(a, of_a), (b, of_b)| (of_a.seen, &a.1.name).cmp(&(of_b.seen, &b.1.name)));
        oldest.map(|(key, _)| key.clone())
    }

    fn remove(&mut self, key: &Key) {
        self.bytes -= bytes_of(key);
        self.forms.remove(key);
        self.changes += 1;
    }

    fn list(&self) -> Vec<Form> {
        let form = |((service, record_type), times): (&Key, &Times)| {
            let (record_type, service) = (Arc::clone(record_type), Arc::clone(service));
            Form { record_type, service, since: times.since, seen: times.seen }
        };
        self.forms.iter().map(form).collect()
    }

    /// All forms, and the number of changes that they include. `None` when all changes are on disk.
    fn unwritten(&mut self) -> Option<(u64, Vec<Form>)> {
        if self.written == self.changes {
            return None;
        }
        for times in self.forms.values_mut() {
            times.kept = times.seen;
        }
        Some((self.changes, sorted(self.list())))
    }
}

fn sorted(mut forms: Vec<Form>) -> Vec<Form> {
    let key = |form: &Form| (form.record_type.name.clone(), Arc::clone(&form.service), form.seen);
    forms.sort_by_cached_key(key);
    forms
}

/// Types that differ only in the encoding of texts have the same form.
fn plain(record_type: Arc<RecordType>) -> Arc<RecordType> {
    if record_type.fields.iter().all(|field| field.field_type != FieldType::TextId) {
        return record_type;
    }
    let mut plain = RecordType::clone(&record_type);
    for field in &mut plain.fields {
        if field.field_type == FieldType::TextId {
            field.field_type = FieldType::Text;
        }
    }
    Arc::new(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tacho_ingest::wire::RecordField;

    fn typed(name: &str, field_type: FieldType, unit: &str) -> Arc<RecordType> {
        let field = RecordField { field_type, name: "total".into(), unit: unit.into() };
        Arc::new(RecordType { name: name.into(), fields: vec![field] })
    }

    fn named(name: &str) -> Arc<RecordType> {
        typed(name, FieldType::F64, "")
    }

    fn note(types: &RecordTypes, service: &str, what: &[Arc<RecordType>], now: Timestamp) {
        types.note(service, (what.to_vec(), 0), now);
    }

    fn listed(types: &RecordTypes) -> Vec<(String, String, Timestamp, Timestamp)> {
        let text = |form: &Form| (form.record_type.name.to_string(), form.service.to_string());
        let forms = types.list().0;
        forms.iter().map(|form| (text(form).0, text(form).1, form.since, form.seen)).collect()
    }

    #[test]
    fn each_form_is_listed_once_the_newest_last() {
        let types = RecordTypes::default();
        note(&types, "shop", &[named("b"), named("a")], 1);
        note(&types, "shop", &[named("b")], 2);
        note(&types, "board", &[typed("b", FieldType::Text, "")], 3);
        note(&types, "board", &[typed("b", FieldType::TextId, "")], 4);
        note(&types, "shop", &[typed("b", FieldType::F64, "EUR")], 5);
        note(&types, "shop", &[named("b")], 6);
        let line =
            |name: &str, service: &str, since, seen| (name.to_owned(), service.to_owned(), since, seen);
        let expect = [
            line("a", "shop", 1, 1),
            line("b", "board", 3, 4),
            line("b", "shop", 5, 5),
            line("b", "shop", 1, 6),
        ];
        assert_eq!(listed(&types), expect);
        assert_eq!(types.list().1, 0);
    }

    #[test]
    fn above_the_limits_a_single_service_replaces_only_expired_forms() {
        let long = |at: usize| typed(&format!("t{at}{}", "n".repeat(256)), FieldType::F64, &"u".repeat(64));
        let fields = |at: usize| {
            let one = long(at).fields[0].clone();
            let field = |nth| RecordField { name: format!("{nth}{}", "f".repeat(250)).into(), ..one.clone() };
            Arc::new(RecordType { name: long(at).name.clone(), fields: (0..64).map(field).collect() })
        };
        let short = |at: usize| named(&format!("t{at}"));
        let check = |form: &dyn Fn(usize) -> Arc<RecordType>, room: usize| {
            let types = RecordTypes::default();
            let many: Vec<_> = (0..room + 3).map(form).collect();
            note(&types, "shop", &many, 0);
            assert_eq!((types.list().0.len(), types.list().1), (room, 3));
            note(&types, "shop", &[form(0)], 1);
            note(&types, "shop", &[form(room + 10)], FORGOTTEN_AFTER_NS);
            assert_eq!(types.list().1, 4, "a form that has not expired was replaced");
            note(&types, "shop", &[form(room + 11)], FORGOTTEN_AFTER_NS + 1);
            let names: Vec<String> = listed(&types).into_iter().map(|line| line.0).collect();
            assert_eq!((names.len(), types.list().1), (room, 4));
            assert!(
                names.contains(&form(room + 11).name.to_string())
                    && names.contains(&form(0).name.to_string())
            );
        };
        check(&short, FORMS_MAX);
        let each = bytes_of(&("shop".into(), fields(100)));
        check(&fields, FORM_BYTES_MAX / each);
    }

    /// The number of forms of each service, in the order of `services`.
    fn shares<const N: usize>(types: &RecordTypes, services: [&str; N]) -> [usize; N] {
        let all = listed(types);
        services.map(|service| all.iter().filter(|line| line.1 == service).count())
    }

    #[test]
    fn a_service_with_most_forms_makes_room_for_others_but_not_for_itself() {
        let types = RecordTypes::default();
        let many = |count: usize| (0..count).map(|n| named(&format!("t{n}"))).collect::<Vec<_>>();
        let count = |service: &str, wanted: usize, now| note(&types, service, &many(wanted), now);
        let services = ["hog", "new", "late"];
        types.note("hog", (many(1_024), 476), 1);
        assert_eq!((shares(&types, services), types.list().1), ([FORMS_MAX, 0, 0], 500));
        count("new", 3, 2);
        assert_eq!((shares(&types, services), types.list().1), ([FORMS_MAX - 3, 3, 0], 503));
        // The oldest forms of the hog were replaced. Its new definitions do not replace forms of others.
        count("hog", 1_024, 3);
        assert_eq!((shares(&types, services), types.list().1), ([FORMS_MAX - 3, 3, 0], 530));
        // Two services that both define more forms than the limit get the same share, and then neither replaces forms of the
        // other.
        count("late", 1_024, 4);
        let half = [499, 3, 498];
        assert_eq!(shares(&types, services), half);
        for (service, now) in [("hog", 5), ("late", 6), ("hog", 7)] {
            count(service, 1_024, now);
            assert_eq!(shares(&types, services), half);
        }
        count("new", 5, 8);
        assert_eq!(shares(&types, services), [498, 5, 497]);
    }

    fn large(at: usize, fields: usize) -> Arc<RecordType> {
        let field = |nth: usize| {
            let name = format!("{nth}{}", "f".repeat(250)).into();
            RecordField { field_type: FieldType::F64, name, unit: "u".repeat(64).into() }
        };
        Arc::new(RecordType { name: format!("t{at}").into(), fields: (0..fields).map(field).collect() })
    }

    #[test]
    fn no_form_is_removed_for_a_form_that_does_not_fit_anyway() {
        let types = RecordTypes::default();
        let all = FORM_BYTES_MAX / bytes_of(&("hog".into(), large(100, 20)));
        assert!(all < FORMS_MAX);
        // The hog has four or five forms more than the other service. A form of 64 fields takes the bytes of three of these
        // forms. If the hog lost three forms to make room for it, the other service would then have more than the hog.
        let share = [(all + 5) / 2, all - (all + 5) / 2];
        for (service, count) in ["hog", "new"].into_iter().zip(share) {
            let forms: Vec<_> = (100..100 + count).map(|at| large(at, 20)).collect();
            note(&types, service, &forms, 1);
        }
        note(&types, "new", &[large(900, 64)], 2);
        assert_eq!((shares(&types, ["hog", "new"]), types.list().1), (share, 1));
        note(&types, "new", &[large(900, 20)], 3);
        let moved = [share[0] - 1, share[1] + 1];
        assert_eq!((shares(&types, ["hog", "new"]), types.list().1), (moved, 2));
    }

    #[test]
    fn services_also_share_the_bytes_of_names() {
        let types = RecordTypes::default();
        let hog: Vec<_> = (0..300).map(|at| large(at, 64)).collect();
        note(&types, "hog", &hog, 1);
        let [full, _] = shares(&types, ["hog", "new"]);
        assert!(full < 300 && types.list().1 == (300 - full) as u64);
        note(&types, "new", &[large(0, 64), large(1, 1)], 2);
        let [hog, new] = shares(&types, ["hog", "new"]);
        assert!((full - 2..full).contains(&hog) && new == 2, "{hog} {new}");
        let table = types.lock();
        assert_eq!(table.bytes, table.forms.keys().map(bytes_of).sum::<usize>());
        assert!(table.bytes <= FORM_BYTES_MAX);
    }

    #[tokio::test]
    async fn a_known_form_is_written_again_only_after_another_form_or_a_day() {
        let directory = tempfile::tempdir().unwrap();
        let types = Arc::new(RecordTypes::open(directory.path()));
        let path = directory.path().join("record_types.json");
        let other = typed("a", FieldType::F64, "EUR");
        for (what, now, is_written) in [
            (vec![named("a")], 1, true),
            (vec![named("a")], 2, false),
            (vec![], DAY_NS * 9, false),
            (vec![named("a"), named("b")], 3, true),
            (vec![other.clone()], 4, true),
            (vec![other.clone()], 5, false),
            (vec![named("a")], 6, true),
            (vec![named("a")], 6 + SEEN_EXACT_NS, false),
            (vec![named("a")], 7 + SEEN_EXACT_NS, true),
        ] {
            let _ = std::fs::remove_file(&path);
            types.defined("shop", (what, 0), now).await;
            assert_eq!(path.exists(), is_written, "{now}");
            let kept = RecordTypes::open(directory.path());
            assert!(!is_written || listed(&kept) == listed(&types), "{:?}", listed(&kept));
        }
    }
}
