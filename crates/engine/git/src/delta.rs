//! Deltas: an object as copies from a base and new bytes.

/// Why a delta cannot be applied.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub(crate) enum DeltaError {
    #[error("its base size is malformed")]
    BaseSize,
    #[error("its result size is malformed")]
    ResultSize,
    #[error("it wants a base of {wanted} bytes, the base has {found}")]
    WrongBase { wanted: u64, found: usize },
    #[error("its result of {size} bytes is over the limit of {limit}")]
    TooLarge { size: u64, limit: u64 },
    #[error("its result does not fit memory")]
    Memory,
    #[error("it has a command 0")]
    Reserved,
    #[error("a copy command is cut off")]
    CopyCutOff,
    #[error("an insert command is cut off")]
    InsertCutOff,
    #[error("a copy reaches beyond its base")]
    OutOfBase,
    #[error("it makes more than it announced")]
    TooLong,
    #[error("it makes less than it announced")]
    TooShort,
}

/// Applies a delta. Every copy is checked against the base and the announced size; `limit` bounds the result.
pub(crate) fn apply(base: &[u8], delta: &[u8], limit: u64) -> Result<Vec<u8>, DeltaError> {
    let mut input = delta;
    let base_size = size(&mut input).ok_or(DeltaError::BaseSize)?;
    let result_size = size(&mut input).ok_or(DeltaError::ResultSize)?;
    if base_size != base.len() as u64 {
        return Err(DeltaError::WrongBase { wanted: base_size, found: base.len() });
    }
    if result_size > limit {
        return Err(DeltaError::TooLarge { size: result_size, limit });
    }
    let capacity = usize::try_from(result_size).map_err(|_| DeltaError::Memory)?;
    let mut out = Vec::with_capacity(capacity);
    while let Some((&command, rest)) = input.split_first() {
        input = rest;
        let piece = match command {
            0 => return Err(DeltaError::Reserved),
            n if n & 0x80 != 0 => {
                let (from, len) = copy_range(n, &mut input).ok_or(DeltaError::CopyCutOff)?;
                from.checked_add(len).and_then(|end| base.get(from..end)).ok_or(DeltaError::OutOfBase)?
            }
            n => {
                let (new, rest) = input.split_at_checked(usize::from(n)).ok_or(DeltaError::InsertCutOff)?;
                input = rest;
                new
            }
        };
        if out.len() + piece.len() > capacity {
            return Err(DeltaError::TooLong);
        }
        out.extend_from_slice(piece);
    }
    if out.len() == capacity { Ok(out) } else { Err(DeltaError::TooShort) }
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
            assert!(error.to_string().contains(why), "{error} / {why}");
        }
    }
}
