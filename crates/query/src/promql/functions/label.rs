//! Which functions change labels?

use std::sync::Arc;

use tacho_model::limits::LABEL_VALUE_BYTES_MAX;
use tacho_model::{Labels, Rewrite};

use crate::Error;
use crate::promql::functions::call::Call;
use crate::promql::label_memory::LabelRoom;
use crate::promql::labels::{check_value, with};
use crate::promql::rows::{Row, Twins, Value, settle};

pub fn replace<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let room = call.canvas.labels;
    let [rows, destination, replacement, source, pattern] = call.take()?;
    let [destination, replacement, source, pattern] =
        [destination.into_text()?, replacement.into_text()?, source.into_text()?, pattern.into_text()?];
    let pattern = compile(&pattern)?;
    check_name(&destination)?;
    relabel(rows.into_rows()?, room, |labels| {
        let text = labels.get(&source).unwrap_or("");
        let Some(value) = pattern.apply(text, &replacement, LABEL_VALUE_BYTES_MAX) else {
            return Ok(None);
        };
        let value = value.or_else(|bytes| check_value(&destination, bytes).map(|()| String::new()))?;
        with(labels, &[(&destination, &value)]).map(Some)
    })
}

pub fn join<'d>(call: Call<'_, 'd>) -> Result<Value<'d>, Error> {
    let room = call.canvas.labels;
    let mut arguments = call.arguments.into_iter();
    let rows = arguments.next().map_or(Ok(Vec::new()), Value::into_rows)?;
    let texts = arguments.map(Value::into_text).collect::<Result<Vec<_>, _>>()?;
    let [destination, separator, sources @ ..] = &texts[..] else {
        return Err(Error::execution("internal: wrong number of arguments"));
    };
    check_name(destination)?;
    relabel(rows, room, |labels| {
        let values: Vec<&str> = sources.iter().map(|source| labels.get(source).unwrap_or("")).collect();
        let between = separator.len() * values.len().saturating_sub(1);
        check_value(destination, values.iter().map(|value| value.len()).sum::<usize>() + between)?;
        with(labels, &[(destination, &values.join(separator))]).map(Some)
    })
}

fn relabel<'d>(
    mut rows: Vec<Row>,
    room: &LabelRoom,
    change: impl Fn(&Labels) -> Result<Option<Arc<Labels>>, Error>,
) -> Result<Value<'d>, Error> {
    for row in &mut rows {
        room.check_cancel()?;
        if let Some(labels) = change(&row.labels)? {
            row.labels = room.keep(labels)?;
        }
    }
    Ok(Value::Vector(settle(rows, Twins::Refuse)?))
}

fn compile(pattern: &str) -> Result<Rewrite, Error> {
    Rewrite::new(pattern).map_err(|cause| {
        Error::execution(format!("invalid regular expression in label_replace(): {pattern}: {cause}"))
    })
}

/// Every non-empty UTF-8 text is a valid label name.
fn check_name(name: &str) -> Result<(), Error> {
    if name.is_empty() {
        Err(Error::execution("invalid destination label name: it is empty"))
    } else {
        Ok(())
    }
}
