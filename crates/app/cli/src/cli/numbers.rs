//! Numbers of the command line: each option has a range, and a number outside it, negative ones included, is answered with
//! that range.

use std::ops::RangeInclusive;

use clap::{
    Arg, Command, Error,
    builder::ValueParser,
    error::{ContextKind, ContextValue, ErrorKind},
};

/// A parser for whole numbers of a range.
pub(crate) fn whole(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<u64, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<u64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ if *range.end() == u64::MAX => Err(format!("it must be a whole number, {} or more", range.start())),
        _ => Err(format!("it must be a whole number from {} to {}", range.start(), range.end())),
    }
}

/// The same for what is counted.
pub(crate) fn count(
    range: RangeInclusive<u64>,
) -> impl Fn(&str) -> Result<usize, String> + Clone + Send + Sync + 'static {
    let whole = whole(range);
    move |text| whole(text).map(|number| usize::try_from(number).unwrap_or(usize::MAX))
}

/// The same for numbers of 32 bits.
pub(crate) fn short(
    range: RangeInclusive<u32>,
) -> impl Fn(&str) -> Result<u32, String> + Clone + Send + Sync + 'static {
    let whole = whole(u64::from(*range.start())..=u64::from(*range.end()));
    move |text| whole(text).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// The same for ports of UDP and TCP, and other numbers of 16 bits.
pub(crate) fn port(range: RangeInclusive<u16>) -> impl Fn(&str) -> Result<u16, String> + Clone + Send + Sync + 'static {
    let whole = whole(u64::from(*range.start())..=u64::from(*range.end()));
    move |text| whole(text).map(|number| u16::try_from(number).unwrap_or(u16::MAX))
}

/// A parser for numbers of a range, with or without a fraction.
pub(crate) fn real(range: RangeInclusive<f64>) -> impl Fn(&str) -> Result<f64, String> + Clone + Send + Sync + 'static {
    move |text| match text.parse::<f64>() {
        Ok(number) if range.contains(&number) => Ok(number),
        _ => Err(format!("it must be a number from {} to {}", range.start(), range.end())),
    }
}

/// Has every option with a value that is neither a word nor a path take what begins with a minus and a digit, so that its
/// own parser answers for it and not "unexpected argument".
pub(crate) fn accept_negative(command: Command) -> Command {
    let command = command.mut_args(|arg| if is_number(&arg) { arg.allow_negative_numbers(true) } else { arg });
    let verbs: Vec<String> = command.get_subcommands().map(|verb| verb.get_name().to_owned()).collect();
    verbs.into_iter().fold(command, |command, verb| command.mut_subcommand(verb, accept_negative))
}

/// The same error, but for what begins with a minus and a digit where no such value is taken: nothing is negative there, so it
/// is not told how to be passed as a value.
pub(crate) fn refuse_negative(error: Error) -> Error {
    let Some(ContextValue::String(found)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_negative =
        |word: &str| word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if error.kind() != ErrorKind::UnknownArgument || !is_negative(found) {
        return error;
    }
    // Of a word of several letters the error bears the first.
    let whole = std::env::args().find(|word| word.starts_with(found.as_str())).unwrap_or_else(|| found.clone());
    Error::raw(ErrorKind::InvalidValue, format!("'{whole}' is negative, and sizes and counts begin at 1\n"))
}

fn is_number(arg: &Arg) -> bool {
    let words = [ValueParser::string().type_id(), ValueParser::path_buf().type_id(), ValueParser::bool().type_id()];
    arg.get_action().takes_values()
        && !arg.is_allow_hyphen_values_set()
        && !words.contains(&arg.get_value_parser().type_id())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<T>(parse: impl Fn(&str) -> Result<T, String>, right: &[&str], wrong: &[&str], range: &str) {
        for text in right {
            assert!(parse(text).is_ok(), "{text}");
        }
        for text in wrong {
            assert!(parse(text).is_err_and(|error| error.ends_with(range)), "{text:?}");
        }
    }

    #[test]
    fn what_looks_negative_is_not_told_to_become_a_value() {
        let command = || Command::new("x").arg(Arg::new("SIZE").num_args(1..)).arg(Arg::new("kind").short('k'));
        let said = |words: &[&str]| {
            let error = command().try_get_matches_from(words).expect_err("no such argument");
            refuse_negative(error).to_string()
        };
        assert_eq!(said(&["x", "-4"]), "error: '-4' is negative, and sizes and counts begin at 1\n");
        assert!(said(&["x", "-y"]).contains("unexpected argument '-y'"));
    }

    #[test]
    fn numbers_outside_their_range_are_told_the_range() {
        check(whole(1..=9), &["1", "9"], &["0", "10", "-1", "", "1.5", "x"], "from 1 to 9");
        check(whole(1..=u64::MAX), &["1"], &["0", "-3", "18446744073709551616"], "1 or more");
        check(short(0..=200), &["0", "200"], &["201", "-1"], "from 0 to 200");
        check(real(0.25..=3600.0), &["0.25", "7", "1e3"], &["-1", "nan", "inf", "0.2", ""], "from 0.25 to 3600");
        assert_eq!((port(1..=65_535)("161"), count(1..=4096)("32")), (Ok(161), Ok(32)));
    }
}
