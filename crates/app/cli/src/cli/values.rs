//! Parsers of values that are one of a few words.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

/// A parser for values that are written as one of a few words, each with its line in the help.
pub(super) fn choices<T>(
    all: &'static [T],
    word: fn(T) -> &'static str,
    about: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = move |name: String| *all.iter().find(|value| word(**value) == name).expect("it is a possible value");
    PossibleValuesParser::new(all.iter().map(|value| PossibleValue::new(word(*value)).help(about(*value)))).map(named)
}

/// A parser for values that are written as one of a few words.
pub(super) fn words<T>(all: &'static [T], word: fn(T) -> &'static str) -> impl TypedValueParser<Value = T>
where
    T: Copy + Send + Sync + 'static,
{
    let named = move |name: String| *all.iter().find(|value| word(**value) == name).expect("it is a possible value");
    PossibleValuesParser::new(all.iter().map(|value| word(*value))).map(named)
}
