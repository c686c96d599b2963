//! Cron schedules in the dialect of Kubernetes' CronJobs, with its parser's texts.

/// The lowest and highest value of a field and the names it knows.
struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
    first_name: u32,
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[], first_name: 0 },
    Bounds { min: 0, max: 23, names: &[], first_name: 0 },
    Bounds { min: 1, max: 31, names: &[], first_name: 0 },
    Bounds { min: 1, max: 12, names: MONTHS, first_name: 1 },
    Bounds { min: 0, max: 6, names: DAYS, first_name: 0 },
];

/// Why `schedule` is not one.
pub(super) fn check(schedule: &str) -> Result<(), String> {
    if schedule.is_empty() {
        return Err("empty spec string".to_owned());
    }
    let mut rest = schedule;
    if rest.starts_with("TZ=") || rest.starts_with("CRON_TZ=") {
        let (zone, after) = rest.split_once(' ').unwrap_or((rest, ""));
        let zone = zone.split_once('=').map_or("", |(_, zone)| zone);
        if jiff::tz::TimeZone::get(zone).is_err() && !zone.is_empty() && zone != "UTC" {
            return Err(format!("provided bad location {zone}: unknown time zone {zone}"));
        }
        rest = after.trim();
    }
    if let Some(descriptor) = rest.strip_prefix('@') {
        return check_descriptor(rest, descriptor);
    }
    let fields: Vec<&str> = rest.split_whitespace().collect();
    if fields.len() != 5 {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            check_range(part, bounds)?;
        }
    }
    Ok(())
}

fn check_descriptor(whole: &str, descriptor: &str) -> Result<(), String> {
    if matches!(descriptor, "yearly" | "annually" | "monthly" | "weekly" | "daily" | "midnight" | "hourly") {
        return Ok(());
    }
    if let Some(duration) = descriptor.strip_prefix("every ") {
        return match duration.parse::<fl_types::Duration>() {
            Ok(_) => Ok(()),
            Err(error) => Err(format!("failed to parse duration {whole}: {error}")),
        };
    }
    Err(format!("unrecognized descriptor: {whole}"))
}

fn number(text: &str, bounds: &Bounds) -> Result<u32, String> {
    let lower = text.to_lowercase();
    if let Some(at) = bounds.names.iter().position(|name| *name == lower) {
        return Ok(bounds.first_name + u32::try_from(at).unwrap_or(0));
    }
    match text.parse::<i64>() {
        Ok(value) if value < 0 => Err(format!("negative number ({value}) not allowed: {text}")),
        Ok(value) => {
            u32::try_from(value).map_err(|_| format!("failed to parse int from {text}: value out of range"))
        }
        Err(_) => {
            Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax"))
        }
    }
}

fn check_range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let steps: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = steps[0].split('-').collect();
    let single = ends.len() == 1;
    let (start, mut end) = match ends.as_slice() {
        ["*" | "?"] => (bounds.min, bounds.max),
        [one] => (number(one, bounds)?, number(one, bounds)?),
        [from, to] => (number(from, bounds)?, number(to, bounds)?),
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match steps.as_slice() {
        [_] => 1,
        [_, step] => {
            let step = match step.parse::<i64>() {
                Ok(step) if step < 0 => {
                    return Err(format!("negative number ({step}) not allowed: {}", steps[1]));
                }
                Ok(step) => step,
                Err(_) => {
                    return Err(format!(
                        "failed to parse int from {step}: strconv.Atoi: parsing {step:?}: invalid syntax"
                    ));
                }
            };
            if single {
                end = bounds.max;
            }
            step
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn schedules() {
        for good in
            ["* * * * *", "*/15 0 1,15 * 1-5", "@daily", "@every 1h30m", "0 0 * jan sun", "5/15 * * * *"]
        {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        for (bad, why) in [
            ("every day", "expected exactly 5 fields, found 2: [every day]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("@often", "unrecognized descriptor: @often"),
        ] {
            assert_eq!(check(bad).expect_err("refused"), why);
        }
    }
}
