//! The order of keys in Go's YAML output: letters after other characters, runs of digits by number.

use std::cmp::Ordering;

/// Compares two keys as Go's YAML libraries sort them.
#[must_use]
pub fn compare_keys(a: &str, b: &str) -> Ordering {
    if a == b {
        Ordering::Equal
    } else if less(a, b) {
        Ordering::Less
    } else {
        Ordering::Greater
    }
}

/// Compares two keys as `yaml.v3` does: after a digit, letters come first.
#[must_use]
pub fn compare_keys_v3(a: &str, b: &str) -> Ordering {
    let mut before = None;
    for (x, y) in a.chars().zip(b.chars()) {
        if x != y {
            return match (before.is_some_and(is_digit), x.is_alphabetic(), y.is_alphabetic()) {
                (true, true, false) => Ordering::Less,
                (true, false, true) => Ordering::Greater,
                _ => compare_keys(a, b),
            };
        }
        before = Some(x);
    }
    compare_keys(a, b)
}

pub(crate) fn less(a: &str, b: &str) -> bool {
    let (ab, bb) = (a.as_bytes(), b.as_bytes());
    let Some(at) = ab.iter().zip(bb).position(|(x, y)| x != y) else { return ab.len() < bb.len() };
    let (x, y) = (ab[at], bb[at]);
    if x.is_ascii_alphabetic() && y.is_ascii_alphabetic() {
        return x < y;
    }
    if x.is_ascii() && y.is_ascii() && !x.is_ascii_digit() && !y.is_ascii_digit() {
        let (xl, yl) = (x.is_ascii_alphabetic(), y.is_ascii_alphabetic());
        return if xl || yl { yl } else { x < y };
    }
    // The first differing byte may be inside of a character: move back to its start.
    let at = (0..=at).rev().find(|i| a.is_char_boundary(*i)).unwrap_or(0);
    less_from(a, b, at)
}

fn less_from(a: &str, b: &str, at: usize) -> bool {
    let (Some(x), Some(y)) = (a[at..].chars().next(), b[at..].chars().next()) else {
        return a.len() < b.len();
    };
    let (xl, yl) = (x.is_alphabetic(), y.is_alphabetic());
    if xl && yl {
        return x < y;
    }
    if xl || yl {
        return yl;
    }
    // Equal digits before this position matter only because they are not leading zeros.
    let mut lead = 0;
    if x == '0' || y == '0' {
        let before = a[..at].chars().rev().take_while(|c| is_digit(*c));
        lead = i64::from(before.into_iter().any(|c| c != '0'));
    }
    let run = |s: &str| {
        s[at..].chars().take_while(|c| is_digit(*c)).fold((lead, 0usize), |(n, len), c| {
            (n.wrapping_mul(10).wrapping_add(i64::from(u32::from(c)) - 48), len + 1)
        })
    };
    let ((xn, x_len), (yn, y_len)) = (run(a), run(b));
    if xn != yn {
        return xn < yn;
    }
    if x_len != y_len {
        return x_len < y_len;
    }
    x < y
}

fn is_digit(c: char) -> bool {
    c.is_ascii_digit() || (!c.is_ascii() && c.is_numeric())
}

/// Sorts indexes by key. Go's order is not total for every set of keys, for which the standard sort may
/// panic; a merge sort accepts any order.
pub(crate) fn sorted_indexes(keys: &[&str]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..keys.len() as u32).collect();
    let before = |x: u32, y: u32| less(keys[x as usize], keys[y as usize]);
    if order.len() <= 16 {
        for i in 1..order.len() {
            let mut j = i;
            while j > 0 && before(order[j], order[j - 1]) {
                order.swap(j, j - 1);
                j -= 1;
            }
        }
        return order;
    }
    let mut scratch = order.clone();
    let mut width = 1;
    while width < order.len() {
        for start in (0..order.len()).step_by(2 * width) {
            let middle = (start + width).min(order.len());
            let end = (start + 2 * width).min(order.len());
            let (mut i, mut j) = (start, middle);
            for slot in &mut scratch[start..end] {
                let right = i == middle || (j < end && before(order[j], order[i]));
                let from = if right { &mut j } else { &mut i };
                *slot = order[*from];
                *from += 1;
            }
        }
        std::mem::swap(&mut order, &mut scratch);
        width *= 2;
    }
    order
}
