//! Shamir's secret sharing over GF(256), as SOPS splits a data key among groups: each byte is the constant
//! term of a polynomial; a share holds the values at one x coordinate, which is its last byte.

use fl_types::Secret;

/// Reconstructs the secret from shares.
pub(crate) fn combine(shares: &[Secret<Vec<u8>>]) -> Result<Secret<Vec<u8>>, &'static str> {
    let length = shares.first().map_or(0, |s| s.expose().len());
    if shares.len() < 2 || length < 2 {
        return Err("the shares of the key groups are too few or too short");
    }
    let mut xs = Vec::with_capacity(shares.len());
    for share in shares {
        let share = share.expose();
        let x = *share.last().ok_or("a share of a key group is empty")?;
        if share.len() != length {
            return Err("the shares of the key groups have different lengths");
        }
        // x = 0 would be the secret itself.
        if x == 0 || xs.contains(&x) {
            return Err("two key groups hold the same share");
        }
        xs.push(x);
    }
    let weights: Vec<u8> = xs.iter().map(|x| weight(&xs, *x)).collect();
    let byte = |at: usize| shares.iter().zip(&weights).fold(0, |sum, (s, w)| sum ^ times(s.expose()[at], *w));
    Ok(Secret::new((0..length - 1).map(byte).collect()))
}

/// Lagrange coefficient of an x coordinate for the value at zero.
fn weight(xs: &[u8], x: u8) -> u8 {
    xs.iter()
        .filter(|other| **other != x)
        .fold(1, |product, other| times(product, times(*other, inverse(x ^ *other))))
}

/// Product in the field of AES.
fn times(a: u8, b: u8) -> u8 {
    (0..8).rev().fold(0, |sum: u8, bit| {
        let doubled = sum << 1 ^ (0x1b & 0u8.wrapping_sub(sum >> 7));
        doubled ^ (a & 0u8.wrapping_sub(b >> bit & 1))
    })
}

/// Inverse: the 254th power.
fn inverse(a: u8) -> u8 {
    let mut power = a;
    for _ in 0..6 {
        power = times(times(power, power), a);
    }
    times(power, power)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_multiply_to_one() {
        for a in 1..=255 {
            assert_eq!(times(a, inverse(a)), 1, "{a}");
        }
        // Example of the AES standard.
        assert_eq!(times(0x57, 0x83), 0xc1);
    }

    #[test]
    fn any_two_of_three_shares_suffice() {
        let (secret, slope) = ([0x12u8, 0xff, 0x00], [0x9c, 0x01, 0x55]);
        let share = |x: u8| {
            let values = secret.iter().zip(slope).map(|(s, k)| s ^ times(k, x));
            Secret::new(values.chain([x]).collect::<Vec<u8>>())
        };
        for pair in [[1, 2], [3, 1], [2, 3]] {
            let found = combine(&pair.map(share)).expect("enough shares");
            assert_eq!(found.expose(), &secret);
        }
        assert!(combine(&[share(1)]).is_err() && combine(&[share(1), share(1)]).is_err());
        assert!(combine(&[share(0), share(1)]).is_err());
        assert!(combine(&[share(1), Secret::new(vec![1, 2])]).is_err());
    }
}
