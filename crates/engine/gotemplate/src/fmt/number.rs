//! Integers and floats, as `fmt` and `strconv.FormatFloat` write them.

use super::Printer;

/// `strconv.FormatFloat(x, format, precision, 64)`; without a precision, the shortest text that parses to the
/// same number.
/// Formats: `e`, `E`, `f`, `g`, `G`, `b`, `x`, `X`.
pub fn format_float(x: f64, format: u8, precision: Option<usize>) -> String {
    if x.is_nan() {
        return "NaN".to_owned();
    }
    if x.is_infinite() {
        return if x > 0.0 { "+Inf" } else { "-Inf" }.to_owned();
    }
    match format {
        b'f' => match precision {
            Some(p) => format!("{x:.p$}"),
            None => format!("{x}"),
        },
        b'e' | b'E' => {
            let (sign, digits, exponent) = decimal(x, precision.map(|p| p + 1));
            scientific(sign, &digits, exponent, precision.unwrap_or(digits.len() - 1), format)
        }
        b'b' => binary(x),
        b'x' | b'X' => hexadecimal(x, precision, format == b'X'),
        _ => general(x, precision, format),
    }
}

/// Sign, digits and decimal exponent; rounded to `count` digits if given.
fn decimal(x: f64, count: Option<usize>) -> (bool, Vec<u8>, i32) {
    let text = match count {
        Some(n) => format!("{:.*e}", n.max(1) - 1, x.abs()),
        None => format!("{:e}", x.abs()),
    };
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.bytes().filter(|b| *b != b'.').collect();
    (x.is_sign_negative(), digits, exponent.parse().unwrap_or(0))
}

fn scientific(negative: bool, digits: &[u8], exponent: i32, precision: usize, letter: u8) -> String {
    let mut out = String::new();
    if negative {
        out.push('-');
    }
    out.push(digits[0] as char);
    if precision > 0 {
        out.push('.');
        for i in 1..=precision {
            out.push(digits.get(i).map_or('0', |d| *d as char));
        }
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("{}{sign}{:02}", letter as char, exponent.abs()));
    out
}

/// `%g`: scientific for exponents below -4 or not below the precision.
fn general(x: f64, precision: Option<usize>, format: u8) -> String {
    let count = precision.map(|p| p.max(1));
    let (negative, mut digits, exponent) = decimal(x, count);
    while digits.len() > 1 && digits.last() == Some(&b'0') {
        digits.pop();
    }
    let point = if x == 0.0 { 0 } else { exponent + 1 };
    let significant = if x == 0.0 { 0 } else { digits.len() };
    let mut threshold = count.unwrap_or(6);
    if threshold > significant && significant as i32 >= point {
        threshold = significant;
    }
    if count.is_none() {
        threshold = 6;
    }
    let exp = point - 1;
    if exp < -4 || exp >= threshold as i32 {
        if x == 0.0 {
            // Go counts no digits in zero; `%.0e`-like output is "0e+00".
            return scientific(negative, b"0", 0, 0, if format == b'G' { b'E' } else { b'e' });
        }
        let letter = if format == b'G' { b'E' } else { b'e' };
        return scientific(negative, &digits, exponent, digits.len() - 1, letter);
    }
    let decimals = (significant as i32 - point).max(0) as usize;
    let mut out = String::new();
    if negative {
        out.push('-');
    }
    if point > 0 {
        for i in 0..point as usize {
            out.push(digits.get(i).map_or('0', |d| *d as char));
        }
    } else {
        out.push('0');
    }
    if decimals > 0 {
        out.push('.');
        for i in 0..decimals as i32 {
            let at = point + i;
            let digit = usize::try_from(at).ok().and_then(|at| digits.get(at));
            out.push(digit.map_or('0', |d| *d as char));
        }
    }
    out
}

/// Mantissa and exponent so that the value is `mantissa * 2^exponent`.
fn parts(x: f64) -> (u64, i32) {
    let bits = x.to_bits();
    let exponent = ((bits >> 52) & 0x7ff) as i32;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 0 { (fraction, -1074) } else { (fraction | 1 << 52, exponent - 1075) }
}

fn binary(x: f64) -> String {
    let (mantissa, exponent) = parts(x);
    let sign = if x.is_sign_negative() { "-" } else { "" };
    format!("{sign}{mantissa}p{exponent:+}")
}

fn hexadecimal(x: f64, precision: Option<usize>, upper: bool) -> String {
    let (mut mantissa, mut exponent) = parts(x);
    if mantissa == 0 {
        exponent = 0;
    } else {
        exponent += 52;
        mantissa <<= 8;
        while mantissa & (1 << 60) == 0 {
            mantissa <<= 1;
            exponent -= 1;
        }
        if let Some(p) = precision.filter(|p| *p < 15) {
            let shift = (p * 4) as u32;
            let extra = (mantissa << shift) & ((1 << 60) - 1);
            mantissa >>= 60 - shift;
            if extra | (mantissa & 1) > 1 << 59 {
                mantissa += 1;
            }
            mantissa <<= 60 - shift;
            if mantissa & (1 << 61) != 0 {
                mantissa >>= 1;
                exponent += 1;
            }
        }
    }
    let mut out = String::new();
    if x.is_sign_negative() {
        out.push('-');
    }
    out.push_str("0x");
    out.push(if mantissa == 0 { '0' } else { '1' });
    let mut rest = mantissa << 4;
    let wanted = precision.unwrap_or(usize::MAX);
    if (precision.is_none() && rest != 0) || precision.is_some_and(|p| p > 0) {
        out.push('.');
        let mut written = 0;
        while written < wanted && (precision.is_some() || rest != 0) {
            out.push(char::from_digit(((rest >> 60) & 15) as u32, 16).unwrap_or('0'));
            rest <<= 4;
            written += 1;
        }
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    out.push_str(&format!("p{sign}{:02}", exponent.abs()));
    if upper { out.to_uppercase() } else { out }
}

impl Printer<'_> {
    pub(super) fn fmt_integer(&mut self, magnitude: u64, negative: bool, base: u32, verb: char) {
        let flags = self.flags;
        let mut least = 0;
        if let Some(precision) = flags.precision {
            least = precision;
            if precision == 0 && magnitude == 0 {
                let zero = std::mem::take(&mut self.flags.zero);
                self.write_padding(flags.width.unwrap_or(0));
                self.flags.zero = zero;
                return;
            }
        } else if let Some(width) = flags.width
            && flags.zero
            && !flags.minus
        {
            least = width;
            if negative || flags.plus || flags.space {
                least = least.saturating_sub(1);
            }
        }
        let digits = match base {
            2 => format!("{magnitude:b}"),
            8 => format!("{magnitude:o}"),
            16 if verb == 'X' => format!("{magnitude:X}"),
            16 => format!("{magnitude:x}"),
            _ => magnitude.to_string(),
        };
        let mut body = String::new();
        for _ in digits.len()..least {
            body.push('0');
        }
        body.push_str(&digits);
        let mut text = String::new();
        if negative {
            text.push('-');
        } else if flags.plus {
            text.push('+');
        } else if flags.space {
            text.push(' ');
        }
        if verb == 'O' {
            text.push_str("0o");
        }
        if flags.sharp {
            match base {
                2 => text.push_str("0b"),
                8 if !body.starts_with('0') => text.push('0'),
                16 => text.push_str(if verb == 'X' { "0X" } else { "0x" }),
                _ => {}
            }
        }
        text.push_str(&body);
        let zero = std::mem::take(&mut self.flags.zero);
        self.pad(text.as_bytes());
        self.flags.zero = zero;
    }

    /// An unsigned number in hex, always with `0x`.
    pub(super) fn fmt_0x(&mut self, n: u64, leading: bool) {
        let sharp = std::mem::replace(&mut self.flags.sharp, leading);
        self.fmt_integer(n, false, 16, 'v');
        self.flags.sharp = sharp;
    }

    pub(super) fn fmt_float(&mut self, x: f64, verb: u8, precision: Option<usize>) {
        let precision = self.flags.precision.or(precision);
        let mut num = format_float(x, verb, precision).into_bytes();
        if !matches!(num.first(), Some(b'-' | b'+')) {
            num.insert(0, b'+');
        }
        let flags = self.flags;
        if flags.space && num[0] == b'+' && !flags.plus {
            num[0] = b' ';
        }
        if matches!(num.get(1), Some(b'I' | b'N')) {
            let zero = std::mem::take(&mut self.flags.zero);
            let skip = usize::from(num[1] == b'N' && !flags.space && !flags.plus);
            let skip = if num[1] == b'I' && num[0] == b'+' && !flags.plus { 0 } else { skip };
            self.pad(&num[skip..]);
            self.flags.zero = zero;
            return;
        }
        if flags.sharp && verb != b'b' {
            num = keep_zeros(num, verb, precision);
        }
        if flags.plus || num[0] != b'+' {
            if let Some(width) = flags.width.filter(|w| flags.zero && !flags.minus && *w > num.len()) {
                self.out.push(num[0]);
                self.write_padding(width - num.len());
                self.out.extend_from_slice(&num[1..]);
                return;
            }
            return self.pad(&num);
        }
        self.pad(&num[1..]);
    }
}

/// The `#` flag: always a decimal point, and for `%g` the trailing zeros.
fn keep_zeros(mut num: Vec<u8>, verb: u8, precision: Option<usize>) -> Vec<u8> {
    let mut digits = if matches!(verb, b'g' | b'G' | b'x') { precision.unwrap_or(6) as i64 } else { 0 };
    let mut tail = Vec::new();
    let mut point = false;
    let mut nonzero = false;
    let mut i = 1;
    while i < num.len() {
        match num[i] {
            b'.' => point = true,
            b'p' | b'P' => tail = num.split_off(i),
            b'e' | b'E' if !matches!(verb, b'x' | b'X') => tail = num.split_off(i),
            c => {
                nonzero |= c != b'0';
                digits -= i64::from(nonzero);
            }
        }
        i += 1;
    }
    if !point {
        if num.len() == 2 && num[1] == b'0' {
            digits -= 1;
        }
        num.push(b'.');
    }
    num.resize(num.len() + digits.max(0) as usize, b'0');
    num.extend(tail);
    num
}
