//! Kubernetes resource quantities: `100m`, `1.5Gi`, `1e3`. Values are exact; the printed form is canonical.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::str::FromStr;

use num_bigint::{BigInt, Sign};

use crate::text_serde::text_serde;

/// An amount with the family of suffix it was written in.
#[derive(Clone, Debug)]
pub struct Quantity {
    /// The value is `unscaled * 10^exponent`. The exponent is at least -9: Kubernetes has no unit below nano.
    unscaled: BigInt,
    exponent: i32,
    format: Format,
}

/// How a quantity is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// Powers of ten as `e3`.
    DecimalExponent,
    /// Powers of 1024: `Ki`, `Mi`, …
    BinarySi,
    /// Powers of 1000: `m`, `k`, `M`, …
    DecimalSi,
}

/// Why a text is not a quantity, with Kubernetes' messages.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum QuantityError {
    /// It does not match the grammar.
    #[error("quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'")]
    Format,
    /// The numeric part is not a number.
    #[error("unable to parse numeric part of quantity")]
    Numeric,
    /// The suffix is in none of the three families.
    #[error("unable to parse quantity's suffix")]
    Suffix,
}

const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// Limit on exponents: a larger one would only fill memory with zeros. Kubernetes has no limit, but no
/// cluster has such a quantity.
const MAX_EXPONENT: i64 = 1_000;
/// Limit on digits: parsing is quadratic in their number.
const MAX_DIGITS: usize = 1_000;

fn pow10(n: u32) -> BigInt {
    BigInt::from(10).pow(n)
}

enum Suffix {
    Decimal(i32, Format),
    Binary(u32),
}

fn suffix(text: &str) -> Result<Suffix, QuantityError> {
    if let Some((_, exponent)) = DECIMAL.iter().find(|(s, _)| *s == text) {
        return Ok(Suffix::Decimal(*exponent, Format::DecimalSi));
    }
    if let Some((_, bits)) = BINARY.iter().find(|(s, _)| *s == text) {
        return Ok(Suffix::Binary(*bits));
    }
    let exponent = text.strip_prefix(['e', 'E']).ok_or(QuantityError::Suffix)?;
    let exponent = exponent.parse::<i64>().map_err(|_| QuantityError::Suffix)?;
    if exponent.abs() > MAX_EXPONENT {
        return Err(QuantityError::Numeric);
    }
    let exponent = i32::try_from(exponent).map_err(|_| QuantityError::Numeric)?;
    Ok(Suffix::Decimal(exponent, Format::DecimalExponent))
}

/// Splits `-1.5Gi` into sign, digits before and after the point, and suffix.
fn split(text: &str) -> Result<(bool, &str, &str, &str), QuantityError> {
    let (negative, rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    let digits = |s: &str| s.bytes().position(|b| !b.is_ascii_digit()).unwrap_or(s.len());
    let (whole, mut rest) = rest.split_at(digits(rest));
    let mut decimals = "";
    if let Some(after) = rest.strip_prefix('.') {
        (decimals, rest) = after.split_at(digits(after));
    }
    let letters = rest.bytes().position(|b| !b"eEinumkKMGTP".contains(&b)).unwrap_or(rest.len());
    let mut tail = &rest[letters..];
    tail = tail.strip_prefix(['-', '+']).unwrap_or(tail);
    if digits(tail) != tail.len() {
        return Err(QuantityError::Format);
    }
    Ok((negative, whole, decimals, rest))
}

impl FromStr for Quantity {
    type Err = QuantityError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err(QuantityError::Format);
        }
        let (negative, whole, decimals, suffix_text) = split(text)?;
        if whole.len() + decimals.len() > MAX_DIGITS {
            return Err(QuantityError::Numeric);
        }
        let suffix = suffix(suffix_text)?;
        // The leading zero replaces missing digits: Kubernetes reads `.` and `Ki` as zero.
        let mut unscaled =
            format!("0{whole}{decimals}").parse::<BigInt>().map_err(|_| QuantityError::Numeric)?;
        let places = i32::try_from(decimals.len()).map_err(|_| QuantityError::Numeric)?;
        let (mut exponent, mut format) = match suffix {
            Suffix::Decimal(exponent, format) => (exponent - places, format),
            Suffix::Binary(bits) => {
                unscaled <<= bits;
                (-places, Format::BinarySi)
            }
        };
        if exponent < -9 {
            // Rounded away from zero, so that a tiny amount does not become zero.
            let divisor = pow10(exponent.abs_diff(-9));
            unscaled = (&unscaled + (&divisor - 1u32)) / &divisor;
            exponent = -9;
        }
        let mut quantity = Quantity { unscaled, exponent, format };
        if format == Format::BinarySi {
            let max = Quantity { unscaled: BigInt::from(i64::MAX), exponent: 0, format };
            if quantity > max {
                quantity = max;
            }
            if quantity.sign() == Ordering::Greater && quantity.is_below(1) {
                format = Format::DecimalSi;
            }
        }
        quantity.format = format;
        if negative {
            quantity.unscaled = -quantity.unscaled;
        }
        Ok(quantity)
    }
}

impl Quantity {
    /// A whole number in the given family.
    #[must_use]
    pub fn new(value: i64, format: Format) -> Self {
        Quantity { unscaled: BigInt::from(value), exponent: 0, format }
    }

    /// The family of suffix.
    #[must_use]
    pub fn format(&self) -> Format {
        self.format
    }

    /// Comparison with zero.
    #[must_use]
    pub fn sign(&self) -> Ordering {
        match self.unscaled.sign() {
            Sign::Minus => Ordering::Less,
            Sign::NoSign => Ordering::Equal,
            Sign::Plus => Ordering::Greater,
        }
    }

    /// The value rounded up to a whole number; `None` outside 64 bits.
    #[must_use]
    pub fn value(&self) -> Option<i64> {
        self.scaled_up(0)
    }

    /// The value in thousandths, rounded up; `None` outside 64 bits.
    #[must_use]
    pub fn milli_value(&self) -> Option<i64> {
        self.scaled_up(-3)
    }

    /// The nearest float.
    #[must_use]
    pub fn as_f64(&self) -> f64 {
        format!("{}e{}", self.unscaled, self.exponent).parse().unwrap_or(f64::NAN)
    }

    /// The value, if it is a whole number that fits 64 bits.
    #[must_use]
    pub fn as_i64_exact(&self) -> Option<i64> {
        self.is_whole().then(|| self.value()).flatten()
    }

    /// The sum. It keeps the format unless `self` is zero, as in Kubernetes.
    #[must_use]
    pub fn plus(&self, other: &Quantity) -> Quantity {
        let format = if self.sign() == Ordering::Equal { other.format } else { self.format };
        let exponent = self.exponent.min(other.exponent);
        Quantity { unscaled: self.at(exponent) + other.at(exponent), exponent, format }
    }

    /// The difference. It keeps the format unless `self` is zero.
    #[must_use]
    pub fn minus(&self, other: &Quantity) -> Quantity {
        let negated = Quantity { unscaled: -&other.unscaled, ..other.clone() };
        self.plus(&negated)
    }

    /// The unscaled value for a smaller or equal exponent.
    fn at(&self, exponent: i32) -> BigInt {
        &self.unscaled * pow10(self.exponent.abs_diff(exponent))
    }

    fn is_whole(&self) -> bool {
        self.exponent >= 0 || (&self.unscaled % pow10(self.exponent.unsigned_abs())).sign() == Sign::NoSign
    }

    fn is_below(&self, limit: i64) -> bool {
        *self < Quantity::new(limit, self.format)
    }

    /// `self / 10^scale`, rounded away from zero.
    fn scaled_up(&self, scale: i32) -> Option<i64> {
        let value = if self.exponent >= scale {
            self.at(scale)
        } else {
            let divisor = pow10(self.exponent.abs_diff(scale));
            let (quotient, rest) = (&self.unscaled / &divisor, &self.unscaled % &divisor);
            match rest.sign() {
                Sign::NoSign => quotient,
                Sign::Plus => quotient + 1,
                Sign::Minus => quotient - 1,
            }
        };
        i64::try_from(value).ok()
    }
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.unscaled.sign() == Sign::NoSign {
            return f.write_str("0");
        }
        let small = self.is_below(1024) && *self > Quantity::new(-1024, self.format);
        let format = match self.format {
            // Amounts below 1024 and fractions are printed in decimal, because binary suffixes would round
            // them.
            Format::BinarySi if small || !self.is_whole() => Format::DecimalSi,
            other => other,
        };
        if format == Format::BinarySi {
            let mut value = if self.exponent >= 0 {
                self.at(0)
            } else {
                &self.unscaled / pow10(self.exponent.unsigned_abs())
            };
            let mut power = 0;
            while power < BINARY.len() && (&value % 1024u32).sign() == Sign::NoSign {
                value /= 1024u32;
                power += 1;
            }
            return write!(f, "{value}{}", if power == 0 { "" } else { BINARY[power - 1].0 });
        }
        let (mut value, mut exponent) = (self.unscaled.clone(), self.exponent);
        while (&value % 10u32).sign() == Sign::NoSign {
            value /= 10u32;
            exponent += 1;
        }
        while exponent % 3 != 0 {
            value *= 10u32;
            exponent -= 1;
        }
        write!(f, "{value}")?;
        if exponent == 0 {
            return Ok(());
        }
        match DECIMAL.iter().find(|(_, e)| *e == exponent) {
            Some((name, _)) if format == Format::DecimalSi => f.write_str(name),
            // Beyond its suffixes Kubernetes prints none and thereby changes the value; an exponent preserves
            // it.
            _ => write!(f, "e{exponent}"),
        }
    }
}

impl Ord for Quantity {
    fn cmp(&self, other: &Self) -> Ordering {
        let exponent = self.exponent.min(other.exponent);
        self.at(exponent).cmp(&other.at(exponent))
    }
}

impl PartialOrd for Quantity {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Quantity {
    /// Compares amounts, regardless of the suffix: `1` equals `1000m`.
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Quantity {}

impl Hash for Quantity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at(-9).hash(state);
    }
}

text_serde!(Quantity, "a quantity such as \"100m\" or \"1Gi\"");

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        text.parse::<Quantity>().map_or_else(|e| e.to_string(), |q| q.to_string())
    }

    #[test]
    fn canonical_form_matches_kubernetes() {
        // Recorded from k8s.io/apimachinery 0.34 (ParseQuantity, then String of a copy without the cached
        // text).
        let table = [
            ("0", "0"),
            ("0Ki", "0"),
            ("00.00", "0"),
            ("1", "1"),
            ("100m", "100m"),
            ("0.1", "100m"),
            ("1000m", "1"),
            ("1500m", "1500m"),
            ("1.5", "1500m"),
            ("1.5k", "1500"),
            ("1000", "1k"),
            ("1000k", "1M"),
            ("12e6", "12e6"),
            ("1e3", "1e3"),
            ("1e4", "10e3"),
            ("1.5e3", "1500"),
            ("1E", "1E"),
            ("1E3", "1e3"),
            ("1024", "1024"),
            ("1Ki", "1Ki"),
            ("1024Ki", "1Mi"),
            ("0.5Gi", "512Mi"),
            ("1.5Gi", "1536Mi"),
            ("1000Ki", "1000Ki"),
            ("1023Ki", "1023Ki"),
            ("0.5Ki", "512"),
            ("0.1Ki", "102400m"),
            ("0.0001Ki", "102400u"),
            ("1n", "1n"),
            ("0.1n", "1n"),
            ("1.1n", "2n"),
            ("-1.1n", "-2n"),
            ("-1Ki", "-1Ki"),
            ("+1", "1"),
            ("1.", "1"),
            (".5", "500m"),
            ("8Ei", "9223372036854775807"),
            ("16Gi", "16Gi"),
            ("123456789012345678901", "123456789012345678901"),
            (".", "0"),
            ("-", "0"),
            ("Ki", "0"),
            ("1e30", "1e30"),
            ("1e-12", "1e-9"),
        ];
        for (text, wanted) in table {
            assert_eq!(canonical(text), wanted, "{text}");
        }
    }

    #[test]
    fn error_messages_match_kubernetes() {
        let format = QuantityError::Format.to_string();
        let suffix = QuantityError::Suffix.to_string();
        for (text, error) in [
            ("", &format),
            ("1Qi", &format),
            ("1 Gi", &format),
            ("1.2.3", &format),
            ("a", &format),
            ("1mm", &suffix),
            ("1KI", &format),
            ("1e", &suffix),
            ("1i", &suffix),
            ("1Ki3", &suffix),
        ] {
            assert_eq!(&canonical(text), error, "{text}");
        }
    }

    #[test]
    fn quantities_compare_by_amount() {
        let q = |s: &str| s.parse::<Quantity>().expect("a quantity");
        assert_eq!(q("1"), q("1000m"));
        assert!(q("1Gi") > q("1G"));
        assert!(q("-1") < q("1n"));
        assert_eq!(q("1.5Gi").value(), Some(1_610_612_736));
        assert_eq!(q("1500m").value(), Some(2));
        assert_eq!(q("0.5").milli_value(), Some(500));
        assert_eq!(q("1Gi").plus(&q("1Gi")).to_string(), "2Gi");
        assert_eq!(q("1").minus(&q("100m")).to_string(), "900m");
    }
}
