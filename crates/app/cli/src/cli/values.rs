//! Parsers of values that are one of a few words.

use std::ffi::OsStr;

use clap::{
    Arg, Command, Error,
    builder::{PossibleValue, PossibleValuesParser, TypedValueParser},
};
use sim::pattern::Pattern;

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

/// A parser for traffic patterns: a word of `all`, or `shift=N`.
pub(super) fn patterns(all: &'static [Pattern]) -> impl TypedValueParser<Value = Pattern> {
    PatternParser { all }
}

#[derive(Clone)]
struct PatternParser {
    all: &'static [Pattern],
}

impl TypedValueParser for PatternParser {
    type Value = Pattern;

    fn parse_ref(&self, command: &Command, arg: Option<&Arg>, value: &OsStr) -> Result<Pattern, Error> {
        if value.to_str().and_then(Pattern::shift_of).is_some() {
            return parse_shift.parse_ref(command, arg, value);
        }
        // An unknown word is refused with the list of all patterns.
        let words = PossibleValuesParser::new(self.possible_values().into_iter().flatten());
        let word = words.parse_ref(command, arg, value)?;
        Ok(*self.all.iter().find(|pattern| pattern.word() == word).expect("it is a possible value"))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.all.iter().map(|pattern| pattern.word()).chain([Pattern::SHIFT_WORD]);
        Some(Box::new(words.map(PossibleValue::new)))
    }
}

fn parse_shift(text: &str) -> Result<Pattern, String> {
    Pattern::shift_of(text).expect("it begins as a shift does")
}
