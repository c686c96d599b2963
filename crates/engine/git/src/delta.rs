//! Deltas: an object told as copies from a base and new bytes.

/// Applies a delta. Every copy is checked against the base and the announced size; `limit` bounds the result.
pub(crate) fn apply(base: &[u8], delta: &[u8], limit: u64) -> Result<Vec<u8>, String> {
    let mut input = delta;
    let base_size = size(&mut input).ok_or("its base size is malformed")?;
    let result_size = size(&mut input).ok_or("its result size is malformed")?;
    if base_size != base.len() as u64 {
        return Err(format!("it wants a base of {base_size} bytes, the base has {}", base.len()));
    }
    if result_size > limit {
        return Err(format!("its result of {result_size} bytes is over the limit of {limit}"));
    }
    let capacity = usize::try_from(result_size).map_err(|_| "its result does not fit memory")?;
    let mut out = Vec::with_capacity(capacity);
    while let Some((&command, rest)) = input.split_first() {
        input = rest;
        let piece = match command {
            0 => return Err("it has a command 0".to_owned()),
            n if n & 0x80 != 0 => {
                let (from, len) = copy_range(n, &mut input).ok_or("a copy command is cut off")?;
                from.checked_add(len)
                    .and_then(|end| base.get(from..end))
                    .ok_or("a copy reaches beyond its base")?
            }
            n => {
                let (new, rest) =
                    input.split_at_checked(usize::from(n)).ok_or("an insert command is cut off")?;
                input = rest;
                new
            }
        };
        if out.len() + piece.len() > capacity {
            return Err("it makes more than it announced".to_owned());
        }
        out.extend_from_slice(piece);
    }
    if out.len() == capacity { Ok(out) } else { Err("it makes less than it announced".to_owned()) }
}

/// A size in groups of seven bits, least significant first.
pub(crate) fn size(input: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for shift in (0..63).step_by(7) {
        let (&byte, rest) = input.split_first()?;
        *input = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

/// Offset and length of a copy: the command's bits say which of their bytes follow.
fn copy_range(command: u8, input: &mut &[u8]) -> Option<(usize, usize)> {
    let mut number = |bits: std::ops::Range<u8>| {
        let mut value = 0usize;
        for (i, bit) in bits.enumerate() {
            if command & (1 << bit) != 0 {
                let (&byte, rest) = input.split_first()?;
                *input = rest;
                value |= usize::from(byte) << (8 * i);
            }
        }
        Some(value)
    };
    let from = number(0..4)?;
    let len = number(4..7)?;
    Some((from, if len == 0 { 0x10000 } else { len }))
}

#[cfg(test)]
mod tests {
    use super::apply;

    #[test]
    fn copies_and_inserts() {
        let delta = [10, 7, 0x91, 6, 4, 3, b'x', b'y', b'z'];
        assert_eq!(apply(b"0123456789", &delta, 100).unwrap(), b"6789xyz");
    }

    #[test]
    fn a_delta_cannot_reach_out_of_its_base_or_lie_about_sizes() {
        for (delta, why) in [
            (&[10, 4, 0x91, 8, 4][..], "beyond"),
            (&[9, 1, 1, b'x'], "wants a base"),
            (&[10, 2, 1, b'x'], "less"),
            (&[10, 1, 2, b'x', b'y'], "more"),
            (&[10, 1, 0], "command 0"),
            (&[10, 5, 5, b'x'], "cut off"),
            (&[10, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f], "limit"),
            (&[0x80], "malformed"),
        ] {
            let error = apply(b"0123456789", delta, 1000).unwrap_err();
            assert!(error.contains(why), "{error} / {why}");
        }
    }
}
