//! Ages in the short form of kubectl.

/// Seconds in Kubernetes' short form: two units at most, fewer as the duration grows (`5s`, `3m4s`, `7h`,
/// `2d3h`, `5y20d`).
#[must_use]
pub fn human_duration(seconds: i64) -> String {
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| {
        if small == 0 { format!("{big}{unit}") } else { format!("{big}{unit}{small}{small_unit}") }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match seconds {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(days, "d", hours % 24, "h"),
        _ if days < 730 => format!("{days}d"),
        _ if days < 2920 => two(days / 365, "y", days % 365, "d"),
        _ => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::human_duration;

    #[test]
    fn long_durations_have_fewer_units() {
        for (seconds, text) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (121, "2m1s"),
            (130, "2m10s"),
            (599, "9m59s"),
            (600, "10m"),
            (601, "10m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (47 * 3600, "47h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (700_000, "8d"),
            (9 * 86400, "9d"),
            (800 * 86400, "2y70d"),
            (4000 * 86400, "10y"),
        ] {
            assert_eq!(human_duration(seconds), text, "{seconds}");
        }
    }
}
