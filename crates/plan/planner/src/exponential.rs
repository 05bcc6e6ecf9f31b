//! Powers of e with the same bits on every machine.
//!
//! The last bits of libm's `exp`, `ln` and `powf` differ between machines and its versions, and a search that compares
//! prices takes another turn at the last bit. So that the same request gives the same plan everywhere, the planner uses
//! these series alone; clippy denies the others in this crate.
//!
//! ```text
//!   e^x = 2^k · e^r    k whole, |r| ≤ ln 2 / 2, e^r by eight terms of its series
//! ```
//! Source: W. J. Cody and W. Waite, "Software manual for the elementary functions", 1980, chapters 5 and 6.

/// e^x with a relative error below 10⁻⁸, the same bits on every machine. Beyond ±700 it stays where it is there.
#[inline]
pub(crate) fn exp(x: f64) -> f64 {
    let scaled = x.clamp(-700.0, 700.0) * std::f64::consts::LOG2_E;
    let whole = (scaled + 2048.5) as i64 - 2048;
    let r = (scaled - whole as f64) * std::f64::consts::LN_2;
    let series = 1.0
        + r * (1.0
            + r * (1.0 / 2.0
                + r * (1.0 / 6.0 + r * (1.0 / 24.0 + r * (1.0 / 120.0 + r * (1.0 / 720.0 + r / 5040.0))))));
    series * f64::from_bits(((whole + 1023) as u64) << 52)
}

/// The natural logarithm of a positive number with an error below 10⁻⁹, the same bits on every machine.
pub(crate) fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    // A mantissa between √½ and √2, times a power of two.
    let high = u64::from(bits & ((1 << 52) - 1) > 0x6_a09e_667f_3bcd);
    let exponent = (bits >> 52) + high;
    let mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 - high) << 52);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let t = s * s;
    let series =
        s * (2.0 + t * (2.0 / 3.0 + t * (2.0 / 5.0 + t * (2.0 / 7.0 + t * (2.0 / 9.0 + t * (2.0 / 11.0 + t / 6.5))))));
    series + (exponent as f64 - 1023.0) * std::f64::consts::LN_2
}

/// The number that lies so far, 0 to 1, on the way from one positive number to another, by ratios.
pub(crate) fn between(low: f64, high: f64, way: f64) -> f64 {
    low * exp(way * ln(high / low))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "libm is the judge here")]
    fn the_logarithm_is_exact_enough_everywhere() {
        for step in -7000..=7000 {
            let x = f64::from(step) / 10.0;
            assert!((ln(x.exp()) - x).abs() < 1e-9 * x.abs().max(1.0), "{x}");
        }
        assert_eq!(ln(1.0), 0.0);
        assert!((between(0.2, 4.0, 0.5) - 0.8_f64.sqrt()).abs() < 1e-6);
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "libm is the judge here")]
    fn the_exponential_is_exact_enough_everywhere() {
        for step in -70_000..=70_000 {
            let x = f64::from(step) / 100.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < 1e-8, "{x}");
        }
        assert_eq!((exp(0.0), exp(-1e300), exp(1e300)), (1.0, exp(-700.0), exp(700.0)));
    }
}
