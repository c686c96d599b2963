//! Days and dates of the Gregorian calendar, also before there was one.
//!
//! Years are counted from March here, so that the day that comes and goes is the last of its year.

/// Days of four hundred years, after which the calendar repeats itself.
const ERA: i64 = 146_097;
/// From the first of March of the year 0 to 1970.
const TO_1970: i64 = 719_468;

/// Days since 1970-01-01 of a date; a month or a day out of range is carried over.
#[must_use]
pub fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let months = month - 3;
    let (year, month) = (year + months.div_euclid(12), months.rem_euclid(12));
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * ERA + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day - 1 - TO_1970
}

/// Year, month and day of a day since 1970-01-01.
#[must_use]
pub fn date_of_days(days: i64) -> (i64, i64, i64) {
    let (era, day) = ((days + TO_1970).div_euclid(ERA), (days + TO_1970).rem_euclid(ERA));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for (date, days) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2000, 3, 1), 11_017),
            ((1900, 2, 28), -25_509),
            ((1900, 3, 1), -25_508),
            ((0, 3, 1), -719_468),
            ((-1, 12, 31), -719_529),
            ((9999, 12, 31), 2_932_896),
        ] {
            let (year, month, day) = date;
            assert_eq!(days_of_date(year, month, day), days, "{date:?}");
            assert_eq!(date_of_days(days), date, "{days}");
        }
    }

    #[test]
    fn every_day_of_an_era_and_back() {
        for days in -ERA..=ERA {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_of_date(year, month, day), days);
        }
    }

    #[test]
    fn what_is_out_of_range_is_carried_over() {
        assert_eq!(days_of_date(2023, 14, 1), days_of_date(2024, 2, 1));
        assert_eq!(days_of_date(2024, 0, 31), days_of_date(2023, 12, 31));
        assert_eq!(days_of_date(2024, 2, 30), days_of_date(2024, 3, 1));
    }
}
