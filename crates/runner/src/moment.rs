//! Waiting for a time of day.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::{Timestamp, ToSpan, Zoned};

use benchmaster_study::file::TimeOfDay;

/// The clock is looked at so often: it may be set while it is waited for, and a stop is to be seen soon.
const LOOK: Duration = Duration::from_millis(200);

/// When it is next that time of day, on the clock and in the time zone of `now`: now if it is that minute. `None` only at
/// the end of time.
pub(super) fn next_at(now: &Zoned, at: TimeOfDay) -> Option<Zoned> {
    let on = |day: &Zoned| day.date().at(at.hour(), at.minute(), 0, 0).to_zoned(day.time_zone().clone()).ok();
    let today = on(now)?;
    if now.duration_until(&today).as_secs() > -60 {
        return Some(today);
    }
    on(&now.checked_add(1.day()).ok()?)
}

/// Waits until then, or until it is stopped.
pub(super) fn wait_until(until: Timestamp, stop: &AtomicBool) {
    loop {
        let left = Duration::try_from(Timestamp::now().duration_until(until)).unwrap_or_default();
        if left.is_zero() || stop.load(Ordering::Relaxed) {
            return;
        }
        std::thread::sleep(left.min(LOOK));
    }
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;
    use jiff::tz::{self, TimeZone};

    use super::*;

    fn next(now: &Zoned, at: &str) -> Zoned {
        next_at(now, at.parse().unwrap()).unwrap()
    }

    #[test]
    fn it_is_today_or_tomorrow() {
        let zone = TimeZone::fixed(tz::offset(2));
        let now = date(2026, 12, 31).at(9, 30, 20, 0).to_zoned(zone.clone()).unwrap();
        assert_eq!(next(&now, "21:00"), date(2026, 12, 31).at(21, 0, 0, 0).to_zoned(zone.clone()).unwrap());
        assert_eq!(next(&now, "09:30"), date(2026, 12, 31).at(9, 30, 0, 0).to_zoned(zone.clone()).unwrap());
        assert_eq!(next(&now, "09:29"), date(2027, 1, 1).at(9, 29, 0, 0).to_zoned(zone).unwrap());
    }

    #[test]
    fn days_of_another_length_do_not_matter() {
        // Central European time with the rules for summer.
        let zone = TimeZone::posix("CET-1CEST,M3.5.0,M10.5.0/3").unwrap();
        let before = date(2026, 3, 28).at(9, 5, 0, 0).to_zoned(zone.clone()).unwrap();
        let then = next(&before, "09:00");
        assert_eq!((then.date(), then.hour(), then.minute()), (date(2026, 3, 29), 9, 0));
        assert_eq!(before.duration_until(&then).as_secs(), 23 * 3600 - 300);
        // There is no such time on that day: it is that long after midnight.
        let missing = next(&before, "02:30");
        assert_eq!((missing.date(), missing.hour(), missing.minute()), (date(2026, 3, 29), 3, 30));
    }

    #[test]
    fn a_wait_ends_when_it_is_over_or_stopped() {
        wait_until(Timestamp::now(), &AtomicBool::new(false));
        wait_until(Timestamp::MAX, &AtomicBool::new(true));
    }
}
