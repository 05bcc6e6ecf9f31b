//! Link rates as people write them.

use thiserror::Error;

/// The rate of a link that states none: 1 Gbit/s.
pub const DEFAULT_RATE_BPS: u64 = 1_000_000_000;

/// Why a text is not a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("not a rate: write a positive number and a unit, such as 100mbit or 10gbit")]
pub struct RateError;

const UNITS: [(&str, u64); 4] = [("gbit", 1_000_000_000), ("mbit", 1_000_000), ("kbit", 1_000), ("bit", 1)];

/// Reads a rate such as `100mbit`, `2.5gbit`, `10G` or `9600bit`, in bits per second.
///
/// # Errors
/// [`RateError`] if the text is no positive number with a unit, or exceeds 100 Tbit/s.
pub fn parse_rate(text: &str) -> Result<u64, RateError> {
    let lower = text.trim().to_ascii_lowercase();
    let digits = lower.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or(RateError)?;
    let (number, unit) = lower.split_at(digits);
    let unit = unit.trim().trim_end_matches("/s").trim_end_matches("ps");
    let scale = UNITS
        .iter()
        .find(|(name, _)| unit == *name || (unit.len() == 1 && name.len() > 3 && name.starts_with(unit)))
        .ok_or(RateError)?
        .1;
    let rate = number.parse::<f64>().map_err(|_| RateError)? * scale as f64;
    if (1.0..=1e14).contains(&rate) { Ok(rate.round() as u64) } else { Err(RateError) }
}

/// Writes a rate in the largest unit that leaves it whole: `100mbit`, `2500mbit`, `10gbit`.
pub fn format_rate(rate_bps: u64) -> String {
    let (unit, scale) =
        UNITS.iter().find(|(_, scale)| rate_bps >= *scale && rate_bps % scale == 0).unwrap_or(&UNITS[3]);
    format!("{}{unit}", rate_bps / scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_writes_rates() {
        for (text, rate_bps, written) in [
            ("100mbit", 100_000_000, "100mbit"),
            ("2.5gbit", 2_500_000_000, "2500mbit"),
            ("10G", 10_000_000_000, "10gbit"),
            ("1 Gbit/s", 1_000_000_000, "1gbit"),
            ("9600bit", 9600, "9600bit"),
        ] {
            assert_eq!(parse_rate(text), Ok(rate_bps), "{text}");
            assert_eq!(format_rate(rate_bps), written);
        }
        for text in ["", "fast", "10", "-1gbit", "0mbit", "1e9gbit", "10 apples", "999999999gbit"] {
            assert_eq!(parse_rate(text), Err(RateError), "{text}");
        }
    }
}
