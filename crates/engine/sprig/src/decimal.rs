//! Decimal arithmetic of the `…f` functions, as in `shopspring/decimal`.

use fl_gotemplate::CallError;
use num_bigint::BigInt;

/// Digits after the decimal point that a division keeps.
const DIVISION_PRECISION: i64 = 16;

/// `coefficient * 10^exponent`
#[derive(Debug, Clone)]
pub(crate) struct Decimal {
    coefficient: BigInt,
    exponent: i64,
}

fn power(n: i64) -> BigInt {
    BigInt::from(10).pow(u32::try_from(n.max(0)).unwrap_or(u32::MAX))
}

impl Decimal {
    /// The shortest decimal that parses to the same float.
    pub(crate) fn from_float(x: f64) -> Result<Self, CallError> {
        if !x.is_finite() {
            let shown = fl_gotemplate::fmt::format_float(x, b'g', None);
            return Err(CallError::new(format!("Cannot create a Decimal from {shown}")));
        }
        let text = format!("{x:e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let coefficient = format!("{whole}{fraction}").parse().unwrap_or_default();
        let exponent: i64 = exponent.parse().unwrap_or(0);
        Ok(Decimal { coefficient, exponent: exponent - fraction.len() as i64 })
    }

    /// The nearest float.
    pub(crate) fn to_float(&self) -> f64 {
        format!("{}e{}", self.coefficient, self.exponent).parse().unwrap_or(0.0)
    }

    fn aligned(&self, other: &Self) -> (BigInt, BigInt, i64) {
        let exponent = self.exponent.min(other.exponent);
        let scale = |d: &Decimal| &d.coefficient * power(d.exponent - exponent);
        (scale(self), scale(other), exponent)
    }

    pub(crate) fn add(&self, other: &Self) -> Result<Self, CallError> {
        let (a, b, exponent) = self.aligned(other);
        Ok(Decimal { coefficient: a + b, exponent })
    }

    pub(crate) fn sub(&self, other: &Self) -> Result<Self, CallError> {
        let (a, b, exponent) = self.aligned(other);
        Ok(Decimal { coefficient: a - b, exponent })
    }

    pub(crate) fn mul(&self, other: &Self) -> Result<Self, CallError> {
        let exponent = self.exponent + other.exponent;
        if exponent.abs() > 100_000 {
            return Err(CallError::budget("decimal grows beyond all bounds"));
        }
        Ok(Decimal { coefficient: &self.coefficient * &other.coefficient, exponent })
    }

    /// Division rounded half away from zero.
    pub(crate) fn div(&self, other: &Self) -> Result<Self, CallError> {
        let zero = BigInt::ZERO;
        if other.coefficient == zero {
            return Err(CallError::new("decimal division by 0"));
        }
        let shift = self.exponent - other.exponent + DIVISION_PRECISION;
        let (a, b) = if shift >= 0 {
            (&self.coefficient * power(shift), other.coefficient.clone())
        } else {
            (self.coefficient.clone(), &other.coefficient * power(-shift))
        };
        let negative = (a < zero) != (b < zero);
        let (a, b) = (BigInt::from(a.magnitude().clone()), BigInt::from(b.magnitude().clone()));
        let mut quotient = &a / &b;
        let remainder: BigInt = &a % &b;
        if remainder * 2 >= b {
            quotient += 1;
        }
        Ok(Decimal {
            coefficient: if negative { -quotient } else { quotient },
            exponent: -DIVISION_PRECISION,
        })
    }
}
