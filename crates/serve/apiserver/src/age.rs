//! How old things are, as kubectl says it.

/// Seconds as `5s`, `3m4s`, `7h`, `2d3h`, `5y20d`.
#[must_use]
pub fn human(seconds: i64) -> String {
    let s = seconds;
    if s < -1 {
        return "<invalid>".to_owned();
    }
    if s < 0 {
        return "0s".to_owned();
    }
    if s < 120 {
        return format!("{s}s");
    }
    let minutes = s / 60;
    if minutes < 10 {
        let rest = s % 60;
        return if rest == 0 { format!("{minutes}m") } else { format!("{minutes}m{rest}s") };
    }
    if minutes < 180 {
        return format!("{minutes}m");
    }
    let hours = s / 3600;
    if hours < 8 {
        let rest = minutes % 60;
        return if rest == 0 { format!("{hours}h") } else { format!("{hours}h{rest}m") };
    }
    if hours < 48 {
        return format!("{hours}h");
    }
    let days = hours / 24;
    if hours < 24 * 8 {
        let rest = hours % 24;
        return if rest == 0 { format!("{days}d") } else { format!("{days}d{rest}h") };
    }
    if hours < 24 * 365 * 2 {
        return format!("{days}d");
    }
    let years = days / 365;
    if hours < 24 * 365 * 8 {
        let rest = days % 365;
        return if rest == 0 { format!("{years}y") } else { format!("{years}y{rest}d") };
    }
    format!("{years}y")
}

#[cfg(test)]
mod tests {
    #[test]
    fn ages_read_like_kubectl() {
        for (seconds, want) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (599, "9m59s"),
            (601, "10m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (700_000, "8d"),
            (-5, "<invalid>"),
        ] {
            assert_eq!(super::human(seconds), want, "{seconds}");
        }
    }
}
