//! Which column is next, and what does it contain? An error of a column names it.

use tacho_model::ValueType;

use crate::bytes::Reader;
use crate::codec::Part;
use crate::header::ColumnInfo;
use crate::text::Texts;
use crate::{Error, Role, codec, text};

/// Reads the columns of a body from first to last.
pub(crate) struct Columns<'a> {
    infos: &'a [ColumnInfo],
    body: Reader<'a>,
    number: usize,
}

impl<'a> Columns<'a> {
    pub(crate) const fn new(infos: &'a [ColumnInfo], body: &'a [u8]) -> Self {
        Self { infos, body: Reader::new(body), number: 0 }
    }

    pub(crate) fn role(&self) -> Option<Role> {
        self.infos.first().map(|info| info.role)
    }

    /// The next column. It must have this role and contain `count` numbers of `kind`.
    pub(crate) fn numbers(&mut self, role: Role, count: usize, kind: ValueType) -> Result<Vec<u64>, Error> {
        self.next(role, |tag, bytes| codec::decode(tag, bytes, count, kind, 0))
    }

    pub(crate) fn u64(&mut self, role: Role, count: usize) -> Result<Vec<u64>, Error> {
        self.numbers(role, count, ValueType::U64)
    }

    /// A part of a column of numbers. Other numbers may not be checked.
    pub(crate) fn u64_part(&mut self, role: Role, part: &Part) -> Result<Vec<u64>, Error> {
        self.next(role, |tag, bytes| codec::decode_part(tag, bytes, part, ValueType::U64, 0))
    }

    /// Numbers that are indexes below `limit`.
    pub(crate) fn indices(&mut self, role: Role, count: usize, limit: usize) -> Result<Vec<u32>, Error> {
        let words = self.u64(role, count)?;
        let index = |word: u64| match u32::try_from(word) {
            Ok(index) if word < limit as u64 => Ok(index),
            _ => Err(self.at(role, Error::Index { index: word, count: limit })),
        };
        words.into_iter().map(index).collect()
    }

    pub(crate) fn i64(&mut self, role: Role, count: usize) -> Result<Vec<i64>, Error> {
        Ok(self.numbers(role, count, ValueType::I64)?.into_iter().map(u64::cast_signed).collect())
    }

    pub(crate) fn texts(&mut self, role: Role, count: usize) -> Result<Texts, Error> {
        self.next(role, |tag, bytes| text::decode(tag, bytes, count, 0))
    }

    /// Skips the columns before the next column with this role.
    pub(crate) fn skip_to(&mut self, role: Role) -> Result<(), Error> {
        while self.role().is_some_and(|next| next != role) {
            self.skip()?;
        }
        Ok(())
    }

    /// Skips the next column, if there is one.
    pub(crate) fn skip(&mut self) -> Result<(), Error> {
        self.role().map_or(Ok(()), |role| self.next(role, |_, _| Ok(())))
    }

    /// Skips the next column, which must have this role.
    pub(crate) fn skip_role(&mut self, role: Role) -> Result<(), Error> {
        self.next(role, |_, _| Ok(()))
    }

    pub(crate) fn end(&self) -> Result<(), Error> {
        if self.infos.is_empty() {
            Ok(())
        } else {
            Err(Error::limit("number of columns after the last expected one", self.infos.len(), 0))
        }
    }

    /// Adds the number of the column that was read last, and its expected role, to an error.
    pub(crate) fn at(&self, role: Role, source: Error) -> Error {
        Error::Column { number: self.number, role: role.name(), source: Box::new(source) }
    }

    fn next<T>(
        &mut self,
        role: Role,
        decode: impl FnOnce(u8, &'a [u8]) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.number += 1;
        let Some((info, rest)) = self.infos.split_first() else {
            return Err(self.at(role, Error::Absent));
        };
        self.infos = rest;
        let bytes = self.body.take(info.bytes, "body")?;
        if info.role != role {
            return Err(self.at(role, Error::value("role of the column", info.role as u8)));
        }
        decode(info.tag, bytes).map_err(|error| self.at(role, error))
    }
}
