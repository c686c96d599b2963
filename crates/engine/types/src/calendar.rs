//! Conversion between days since 1970 and dates of the proleptic Gregorian calendar.
//!
//! Years are counted from March internally, so that the leap day is the last day of a year.

/// Days of 400 years, the period of the calendar.
const DAYS_PER_400_YEARS: i64 = 146_097;
/// Days from 1 March of the year 0 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_468;

/// Days since 1970-01-01 of a date. A month or day that is out of range carries over.
#[must_use]
pub fn days_of_date(year: i64, month: i64, day: i64) -> i64 {
    let months = month - 3;
    let (year, month) = (year + months.div_euclid(12), months.rem_euclid(12));
    let (era, year) = (year.div_euclid(400), year.rem_euclid(400));
    era * DAYS_PER_400_YEARS + year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + day
        - 1
        - DAYS_TO_1970
}

/// Year, month and day of a number of days since 1970-01-01.
#[must_use]
pub fn date_of_days(days: i64) -> (i64, i64, i64) {
    let (era, day) = (
        (days + DAYS_TO_1970).div_euclid(DAYS_PER_400_YEARS),
        (days + DAYS_TO_1970).rem_euclid(DAYS_PER_400_YEARS),
    );
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
    fn days_of_known_dates() {
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
    fn days_and_dates_round_trip() {
        for days in -DAYS_PER_400_YEARS..=DAYS_PER_400_YEARS {
            let (year, month, day) = date_of_days(days);
            assert_eq!(days_of_date(year, month, day), days);
        }
    }

    #[test]
    fn months_and_days_out_of_range_carry_over() {
        assert_eq!(days_of_date(2023, 14, 1), days_of_date(2024, 2, 1));
        assert_eq!(days_of_date(2024, 0, 31), days_of_date(2023, 12, 31));
        assert_eq!(days_of_date(2024, 2, 30), days_of_date(2024, 3, 1));
    }
}
