//! The `Range` header: one span of bytes.

/// The part of a file that a request selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Span {
    Whole,
    /// First byte and number of bytes.
    Part(u64, u64),
    Unsatisfiable,
}

/// Several ranges, or what cannot be read, mean the whole file, as HTTP allows.
pub(crate) fn parse(header: Option<&str>, size: u64) -> Span {
    let Some(spec) = header.and_then(|h| h.trim().strip_prefix("bytes=")) else { return Span::Whole };
    let Some((from, to)) = spec.split_once('-').filter(|_| !spec.contains(',')) else { return Span::Whole };
    match (from.trim().parse::<u64>(), to.trim()) {
        (Ok(from), _) if from >= size => Span::Unsatisfiable,
        (Ok(from), "") => Span::Part(from, size - from),
        (Ok(from), to) => match to.parse::<u64>() {
            Ok(to) if to >= from => Span::Part(from, to.min(size - 1) - from + 1),
            _ => Span::Whole,
        },
        (Err(_), to) if from.trim().is_empty() => match to.parse::<u64>() {
            Ok(0) => Span::Unsatisfiable,
            Ok(last) => Span::Part(size.saturating_sub(last), last.min(size)),
            Err(_) => Span::Whole,
        },
        _ => Span::Whole,
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, parse};

    #[test]
    fn ranges_as_http_means_them() {
        for (header, want) in [
            ("bytes=0-3", Span::Part(0, 4)),
            ("bytes=4-", Span::Part(4, 6)),
            ("bytes=8-100", Span::Part(8, 2)),
            ("bytes=-3", Span::Part(7, 3)),
            ("bytes=-30", Span::Part(0, 10)),
            ("bytes=10-", Span::Unsatisfiable),
            ("bytes=-0", Span::Unsatisfiable),
            ("bytes=5-2", Span::Whole),
            ("bytes=0-1,3-4", Span::Whole),
            ("lines=0-1", Span::Whole),
            ("bytes=x-y", Span::Whole),
        ] {
            assert_eq!(parse(Some(header), 10), want, "{header}");
        }
        assert_eq!(parse(None, 10), Span::Whole);
    }
}
