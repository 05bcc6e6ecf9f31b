//! A tree of values with their places, which YAML and JSON texts have in common.

use std::rc::Rc;

use crate::format::diagnostic::TextSpan;

/// Deepest nesting that is read; no format here needs more than a dozen.
pub(crate) const DEPTH_MAX: usize = 48;

/// A value and where it stands.
#[derive(Debug)]
pub(crate) struct Node {
    pub place: TextSpan,
    pub value: Value,
}

/// What a value is. Children are shared, so that an alias costs a pointer however large its target.
#[derive(Debug)]
pub(crate) enum Value {
    /// A scalar's text. Only a plain (unquoted) one can mean "no value".
    Scalar { text: String, style: Style },
    /// Items in order.
    List(Vec<Rc<Node>>),
    /// Keys and values in order; keys may repeat.
    Map(Vec<(Rc<Node>, Rc<Node>)>),
}

/// How a scalar is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Style {
    Plain,
    Quoted,
}

impl Node {
    /// The text of a scalar, `null` excepted.
    pub(crate) fn text(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } if !self.is_null() => Some(text),
            _ => None,
        }
    }

    /// Whether the value is left out or written as null.
    pub(crate) fn is_null(&self) -> bool {
        matches!(&self.value, Value::Scalar { text, style: Style::Plain } if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }

    /// The items of a list; none for anything else.
    pub(crate) fn items(&self) -> &[Rc<Self>] {
        match &self.value {
            Value::List(items) => items,
            _ => &[],
        }
    }

    /// The entries of a map; none for anything else.
    pub(crate) fn entries(&self) -> &[(Rc<Self>, Rc<Self>)] {
        match &self.value {
            Value::Map(entries) => entries,
            _ => &[],
        }
    }

    /// The value of a key, the first one if it repeats.
    pub(crate) fn get(&self, key: &str) -> Option<&Rc<Self>> {
        self.entries().iter().find(|(name, _)| name.key() == Some(key)).map(|(_, value)| value)
    }

    /// The text of a map's key: a switch may well be called `null`.
    pub(crate) fn key(&self) -> Option<&str> {
        match &self.value {
            Value::Scalar { text, .. } => Some(text),
            _ => None,
        }
    }

    /// What the value is, for a sentence such as "expected a map, found …".
    pub(crate) fn kind(&self) -> &'static str {
        match &self.value {
            _ if self.is_null() => "nothing",
            Value::Scalar { .. } => "a word",
            Value::List(_) => "a list",
            Value::Map(_) => "a map",
        }
    }
}
