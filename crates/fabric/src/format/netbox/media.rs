//! Types of interfaces and their rates: `25gbase-x-sfp28` is 25 Gbit/s.
//!
//! Source: NetBox, `InterfaceTypeChoices`.

/// The type that an interface of this rate is given: the usual plug. `other` for a rate that Ethernet does not have.
pub(super) fn type_of(rate_bps: u64) -> &'static str {
    const TYPES: [(u64, &str); 12] = [
        (100_000_000, "100base-tx"),
        (1_000_000_000, "1000base-t"),
        (2_500_000_000, "2.5gbase-t"),
        (5_000_000_000, "5gbase-t"),
        (10_000_000_000, "10gbase-x-sfpp"),
        (25_000_000_000, "25gbase-x-sfp28"),
        (40_000_000_000, "40gbase-x-qsfpp"),
        (50_000_000_000, "50gbase-x-sfp56"),
        (100_000_000_000, "100gbase-x-qsfp28"),
        (200_000_000_000, "200gbase-x-qsfp56"),
        (400_000_000_000, "400gbase-x-qsfpdd"),
        (800_000_000_000, "800gbase-x-qsfpdd"),
    ];
    TYPES.iter().find(|(rate, _)| *rate == rate_bps).map_or("other", |(_, name)| name)
}

/// The rate that a type's name begins with: a number, `g` or `t` for Gbit/s or Tbit/s, and `base`; none for other types.
pub(super) fn rate_of(name: &str) -> Option<u64> {
    let (rate, _) = name.split_once("base-")?;
    let (number, unit) = match rate.as_bytes().last()? {
        b'g' => (&rate[..rate.len() - 1], 1e9),
        b't' => (&rate[..rate.len() - 1], 1e12),
        _ => (rate, 1e6),
    };
    let is_number = number.len() <= 6 && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let rate = number.parse::<f64>().ok().filter(|_| is_number)? * unit;
    (rate >= 1.0).then_some(rate.round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_types_tell_rates() {
        for (name, expected) in [
            ("100base-tx", Some(100_000_000)),
            ("1000base-x-sfp", Some(1_000_000_000)),
            ("2.5gbase-t", Some(2_500_000_000)),
            ("10gbase-x-sfpp", Some(10_000_000_000)),
            ("100gbase-x-qsfp28", Some(100_000_000_000)),
            ("1.6tbase-x-osfp1600", Some(1_600_000_000_000)),
            ("lag", None),
            ("virtual", None),
            ("8gfc-sfpp", None),
            ("base-t", None),
            ("gbase-t", None),
            ("1e9gbase-t", None),
            ("0gbase-t", None),
        ] {
            assert_eq!(rate_of(name), expected, "{name}");
        }
    }

    #[test]
    fn a_type_that_is_written_has_the_rate_that_is_read() {
        for rate in [100_000_000, 1_000_000_000, 2_500_000_000, 25_000_000_000, 400_000_000_000, 800_000_000_000] {
            assert_eq!(rate_of(type_of(rate)), Some(rate));
        }
        assert_eq!(type_of(7), "other");
    }
}
