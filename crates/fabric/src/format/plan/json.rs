//! A JSON document that knows where it stands: every value is read through a [`Located`], which names its path in errors.
//!
//! Unlike a plain JSON tree this one refuses objects that name a field twice, since nobody could say which is meant.

use std::{fmt, str::FromStr};

use serde::de::{Deserialize, Deserializer, MapAccess, SeqAccess, Visitor};

use super::PlanFileError;
use crate::VlanId;

/// A JSON value.
#[derive(Debug)]
pub(super) enum Json {
    Null,
    Bool(bool),
    Whole(u64),
    Number(f64),
    Text(String),
    List(Vec<Json>),
    Object(Vec<(String, Json)>),
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Json;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Json, E> {
        Ok(Json::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Json, E> {
        Ok(Json::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Json, E> {
        Ok(Json::Whole(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Json, E> {
        Ok(Json::Number(value as f64))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Json, E> {
        Ok(Json::Number(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Json, E> {
        Ok(Json::Text(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Json, A::Error> {
        let mut list = Vec::new();
        while let Some(item) = items.next_element()? {
            list.push(item);
        }
        Ok(Json::List(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Json, A::Error> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        while let Some(field) = entries.next_entry()? {
            fields.push(field);
        }
        let mut names: Vec<&str> = fields.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
            return Err(serde::de::Error::custom(format!("the field {:?} is named twice", twice[0])));
        }
        Ok(Json::Object(fields))
    }
}

/// A value and its path in the document.
#[derive(Clone, Copy)]
pub(super) struct Located<'a> {
    value: &'a Json,
    path: Path<'a>,
}

#[derive(Clone, Copy)]
enum Path<'a> {
    Root,
    Field(&'a Located<'a>, &'a str),
    Item(&'a Located<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => Ok(()),
            Self::Field(Located { path: Path::Root, .. }, name) => f.write_str(name),
            Self::Field(parent, name) => write!(f, "{}.{name}", parent.path),
            Self::Item(parent, index) => write!(f, "{}[{index}]", parent.path),
        }
    }
}

pub(super) type Read<T> = Result<T, PlanFileError>;

impl<'a> Located<'a> {
    pub(super) fn root(value: &'a Json) -> Self {
        Self { value, path: Path::Root }
    }

    /// An error about this value.
    pub(super) fn error(&self, message: impl fmt::Display) -> PlanFileError {
        let path = match self.path {
            Path::Root => "the file".to_owned(),
            _ => self.path.to_string(),
        };
        PlanFileError::Invalid { path, message: message.to_string() }
    }

    /// The fields, each with its name.
    pub(super) fn fields(&'a self) -> Read<impl Iterator<Item = (&'a str, Located<'a>)>> {
        let Json::Object(fields) = self.value else { return Err(self.error("this is no object")) };
        Ok(fields.iter().map(|(name, value)| (name.as_str(), Located { value, path: Path::Field(self, name) })))
    }

    /// Refuses fields that are none of `known`.
    pub(super) fn only(&self, known: &[&str]) -> Read<()> {
        for (name, field) in self.fields()? {
            if !known.contains(&name) {
                return Err(field.error(format!("there is no such field here, only {}", known.join(", "))));
            }
        }
        Ok(())
    }

    /// A field that may be absent.
    pub(super) fn optional(&'a self, name: &'a str) -> Read<Option<Located<'a>>> {
        Ok(self.fields()?.find(|(field, _)| *field == name).map(|(_, value)| value))
    }

    /// A field that must be there.
    pub(super) fn field(&'a self, name: &'a str) -> Read<Located<'a>> {
        self.optional(name)?.ok_or_else(|| self.error(format!("the field {name} is missing")))
    }

    /// The items of a list.
    pub(super) fn items(&'a self) -> Read<impl ExactSizeIterator<Item = Located<'a>>> {
        let Json::List(items) = self.value else { return Err(self.error("this is no list")) };
        Ok(items.iter().enumerate().map(|(index, value)| Located { value, path: Path::Item(self, index) }))
    }

    /// The items of a list that must have `count`, one a `what`.
    pub(super) fn items_for(&'a self, count: usize, what: &str) -> Read<impl ExactSizeIterator<Item = Located<'a>>> {
        let items = self.items()?;
        if items.len() != count {
            return Err(self.error(format!("there are {} values for {count} {what}", items.len())));
        }
        Ok(items)
    }

    pub(super) fn is_null(&self) -> bool {
        matches!(self.value, Json::Null)
    }

    pub(super) fn text(&self) -> Read<&'a str> {
        match self.value {
            Json::Text(text) => Ok(text),
            _ => Err(self.error("this is no text")),
        }
    }

    /// A text that reads as a `T`.
    pub(super) fn parsed<T: FromStr<Err: fmt::Display>>(&self) -> Read<T> {
        self.text()?.parse().map_err(|error| self.error(error))
    }

    /// A whole number that fits in a `T`.
    pub(super) fn whole<T: TryFrom<u64>>(&self) -> Read<T> {
        match *self.value {
            Json::Whole(number) => T::try_from(number).map_err(|_| self.error(format!("{number} is too large"))),
            _ => Err(self.error("this is no whole number")),
        }
    }

    /// Whether this is a whole number.
    pub(super) fn is_whole(&self) -> bool {
        matches!(self.value, Json::Whole(_))
    }

    /// A VLAN written as a number.
    pub(super) fn vlan(&self) -> Read<VlanId> {
        let number: u64 = self.whole()?;
        let id = u16::try_from(number).ok().and_then(|id| VlanId::new(id).ok());
        id.ok_or_else(|| self.error(format!("{number} is not a VLAN id: they run from 1 to 4094")))
    }

    /// A whole number below `count`, the number of a `what`.
    pub(super) fn index(&self, what: &str, count: usize) -> Read<usize> {
        let index = self.whole()?;
        if index >= count {
            return Err(self.error(format!("there is no {what} {index}: there are {count}")));
        }
        Ok(index)
    }

    pub(super) fn number(&self) -> Read<f64> {
        match *self.value {
            Json::Whole(number) => Ok(number as f64),
            Json::Number(number) => Ok(number),
            _ => Err(self.error("this is no number")),
        }
    }

    pub(super) fn truth(&self) -> Read<bool> {
        match self.value {
            Json::Bool(truth) => Ok(*truth),
            _ => Err(self.error("this is neither true nor false")),
        }
    }
}
