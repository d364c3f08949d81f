//! The time of day as nccl-tests' reports write it, in UTC.

use std::time::{SystemTime, UNIX_EPOCH};

const SECONDS_A_DAY: u64 = 86_400;

/// `2026-03-01 12:00:00`.
pub(super) fn now() -> String {
    text(SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs()))
}

/// A time in seconds since 1970.
pub(crate) fn text(since_epoch: u64) -> String {
    let (year, month, day) = date(since_epoch / SECONDS_A_DAY);
    let of_day = since_epoch % SECONDS_A_DAY;
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}")
}

/// The Gregorian date of a day after 1970-01-01.
fn date(mut days: u64) -> (u64, u64, u64) {
    let leap =
        |year: u64| year.is_multiple_of(4) && !year.is_multiple_of(100) || year.is_multiple_of(400);
    let mut year = 1970;
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 1;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!(text(0), "1970-01-01 00:00:00");
        assert_eq!(text(951_782_400), "2000-02-29 00:00:00");
        assert_eq!(text(1_735_689_599), "2024-12-31 23:59:59");
        assert_eq!(text(1_772_366_400), "2026-03-01 12:00:00");
    }
}
