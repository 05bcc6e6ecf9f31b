//! Moments as RFC 3339 writes them, in UTC and whole seconds: `2026-11-23T18:40:00Z`.
//!
//! Days are counted from 1970-01-01 in eras of 400 years, which all have 146,097 days, each year beginning in March so that
//! the leap day is its last.

const DAY_S: u64 = 86_400;
const ERA_DAYS: u64 = 146_097;
/// From 0000-03-01 to 1970-01-01.
const EPOCH_DAYS: u64 = 719_468;

/// A moment, in seconds since 1970-01-01, as text.
pub fn write_moment(unix_s: u64) -> String {
    let (days, s) = (unix_s / DAY_S + EPOCH_DAYS, unix_s % DAY_S);
    let (era, of_era) = (days / ERA_DAYS, days % ERA_DAYS);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_based = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_based + 2) / 5 + 1;
    let month = if march_based < 10 { march_based + 3 } else { march_based - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}Z", s / 3600, s / 60 % 60, s % 60)
}

/// The moment that a text names, in seconds since 1970-01-01; none if it is not written so.
pub fn parse_moment(text: &str) -> Option<u64> {
    let number = |range: std::ops::Range<usize>| -> Option<u64> {
        let digits = text.get(range)?;
        digits.bytes().all(|byte| byte.is_ascii_digit()).then(|| digits.parse().ok())?
    };
    let (year, month, day) = (number(0..4)?, number(5..7)?, number(8..10)?);
    let (hour, minute, second) = (number(11..13)?, number(14..16)?, number(17..19)?);
    if year < 1970 || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (march_based, of) = if month > 2 { (month - 3, year) } else { (month + 9, year - 1) };
    let (era, year_of_era) = (of / 400, of % 400);
    let of_year = (153 * march_based + 2) / 5 + day - 1;
    let of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + of_year;
    let moment = (era * ERA_DAYS + of_era - EPOCH_DAYS) * DAY_S + hour * 3600 + minute * 60 + second;
    // What is written back the same is such a moment: no 30 February, no 25 o'clock.
    (write_moment(moment) == text).then_some(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_and_read() {
        let cases = [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (951_868_800, "2000-03-01T00:00:00Z"),
            (1_795_459_200, "2026-11-23T18:40:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ];
        for (moment, text) in cases {
            assert_eq!((write_moment(moment).as_str(), parse_moment(text)), (text, Some(moment)));
        }
        for day in 0..200_000 {
            let moment = day * DAY_S + day % DAY_S;
            assert_eq!(parse_moment(&write_moment(moment)), Some(moment));
        }
    }

    #[test]
    fn other_texts_are_no_moments() {
        for text in [
            "",
            "yesterday",
            "2026-11-23",
            "2026-02-30T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:00:00+01:00",
            "2026-01-01 00:00:00Z",
            "1969-12-31T23:59:59Z",
            "2026-01-01T00:00:00.5Z",
        ] {
            assert_eq!(parse_moment(text), None, "{text:?}");
        }
    }
}
