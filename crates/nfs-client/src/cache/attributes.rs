//! How long attributes and access rights are believed.

use std::time::{Duration, Instant};

use crate::options::AttributeTimes;
use crate::types::{AccessBits, Attributes, FileType};

/// Attributes of a file as they were last seen. They are believed for a time that begins at the shortest and doubles
/// whenever it passed without a change, up to the longest; a change sets it back (Linux: `nfs_update_inode`).
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Known {
    seen: Option<Seen>,
}

#[derive(Debug, Clone, Copy)]
struct Seen {
    attributes: Attributes,
    /// When they were seen.
    at: Instant,
    /// How long they are believed.
    timeout: Duration,
    /// Since when with this timeout.
    since: Instant,
    /// Not to be believed any more, whatever the time.
    invalid: bool,
    /// We changed the file ourselves: the next difference is ours.
    ours: bool,
}

impl Known {
    /// The attributes, however old.
    pub(crate) fn last(&self) -> Option<Attributes> {
        self.seen.map(|seen| seen.attributes)
    }

    /// The attributes if they are to be believed; with a delegation the time does not matter.
    pub(crate) fn valid(&self, now: Instant, delegated: bool) -> Option<Attributes> {
        let seen = self.seen.filter(|seen| !seen.invalid && (delegated || now < seen.at + seen.timeout))?;
        Some(seen.attributes)
    }

    /// How long access rights are believed: as long as attributes.
    pub(crate) fn timeout(&self) -> Duration {
        self.seen.map_or(Duration::ZERO, |seen| seen.timeout)
    }

    /// They are not to be believed any more.
    pub(crate) fn invalidate(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.invalid = true;
        }
    }

    /// We changed the file: what is known is old, and the next difference is no change by others.
    pub(crate) fn changed_by_us(&mut self) {
        if let Some(seen) = &mut self.seen {
            seen.invalid = true;
            seen.ours = true;
        }
    }

    /// The file is at least as large: we wrote there.
    pub(crate) fn grow(&mut self, size: u64) {
        if let Some(seen) = &mut self.seen {
            seen.attributes.size = seen.attributes.size.max(size);
        }
    }

    /// The file has this size: we set it.
    pub(crate) fn resize(&mut self, size: u64) {
        if let Some(seen) = &mut self.seen {
            seen.attributes.size = size;
        }
    }

    /// Takes in what the server says; `ours`: after a change that we made. Returns whether others changed the content.
    pub(crate) fn update(
        &mut self,
        new: Attributes,
        now: Instant,
        times: &AttributeTimes,
        ours: bool,
    ) -> bool {
        let (shortest, longest) = match new.kind {
            FileType::Directory => (times.directory_min, times.directory_max),
            _ => (times.regular_min, times.regular_max),
        };
        let Some(seen) = &mut self.seen else {
            let invalid = false;
            self.seen =
                Some(Seen { attributes: new, at: now, timeout: shortest, since: now, invalid, ours: false });
            return false;
        };
        let old = seen.attributes;
        let ours = ours || seen.ours;
        let content = (old.change, old.modified, old.size) != (new.change, new.modified, new.size);
        if content || old.changed != new.changed {
            (seen.timeout, seen.since) = (shortest, now);
        } else if now >= seen.since + seen.timeout {
            (seen.timeout, seen.since) = ((seen.timeout * 2).clamp(shortest, longest), now);
        }
        seen.attributes = new;
        seen.at = now;
        seen.invalid = false;
        seen.ours = false;
        content && !ours
    }
}

/// Access rights as the server reported them.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Access(Option<(AccessBits, AccessBits, Instant)>);

impl Access {
    /// Whether all of `wanted` is granted; `None`: not known, or not any more.
    pub(crate) fn granted(&self, wanted: u32, now: Instant, timeout: Option<Duration>) -> Option<bool> {
        let (asked, granted, at) = self.0?;
        let valid = timeout.is_none_or(|timeout| now < at + timeout) && asked.0 & wanted == wanted;
        valid.then_some(granted.0 & wanted == wanted)
    }

    /// The server granted some of what was asked for.
    pub(crate) fn learn(&mut self, asked: AccessBits, granted: AccessBits, now: Instant) {
        self.0 = Some((asked, granted, now));
    }

    /// They have to be asked for again.
    pub(crate) fn forget(&mut self) {
        self.0 = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Time;

    fn attributes(change: u64) -> Attributes {
        Attributes {
            kind: FileType::Regular,
            mode: 0o644,
            links: 1,
            uid: 0,
            gid: 0,
            size: 10,
            used: 10,
            fsid: (0, 0),
            fileid: 1,
            accessed: Time::default(),
            modified: Time::default(),
            changed: Time { seconds: change.cast_signed(), nanos: 0 },
            change,
        }
    }

    #[test]
    fn attributes_are_believed_longer_the_longer_they_do_not_change() {
        let times = AttributeTimes::default();
        let mut known = Known::default();
        let mut now = Instant::now();
        assert!(!known.update(attributes(1), now, &times, false));
        let mut lives = Vec::new();
        for _ in 0..7 {
            let life = (1..).find(|s| known.valid(now + Duration::from_secs(*s), false).is_none()).unwrap();
            lives.push(life);
            now += Duration::from_secs(life);
            assert!(!known.update(attributes(1), now, &times, false));
        }
        assert_eq!(lives, [3, 6, 12, 24, 48, 60, 60]);
        assert!(known.update(attributes(2), now, &times, false));
        assert!(known.valid(now + Duration::from_millis(2999), false).is_some());
        assert!(known.valid(now + Duration::from_secs(3), false).is_none());
        assert!(known.valid(now + Duration::from_secs(3), true).is_some());
        // Seen again before the time is over: believed from then on, but not longer.
        assert!(!known.update(attributes(2), now + Duration::from_secs(2), &times, false));
        assert!(known.valid(now + Duration::from_millis(4999), false).is_some());
        assert!(known.valid(now + Duration::from_secs(5), false).is_none());
    }

    #[test]
    fn what_we_changed_is_no_change_by_others() {
        let times = AttributeTimes::default();
        let now = Instant::now();
        let mut known = Known::default();
        known.update(attributes(1), now, &times, false);
        known.changed_by_us();
        assert_eq!(known.valid(now, true), None);
        assert!(!known.update(attributes(2), now, &times, false));
        assert!(!known.update(attributes(3), now, &times, true));
        assert!(known.update(attributes(4), now, &times, false));
    }

    #[test]
    fn access_is_believed_for_a_time_or_until_forgotten() {
        let now = Instant::now();
        let mut access = Access::default();
        assert_eq!(access.granted(AccessBits::READ, now, None), None);
        access.learn(AccessBits(AccessBits::READ | AccessBits::MODIFY), AccessBits(AccessBits::READ), now);
        let timeout = Some(Duration::from_secs(3));
        assert_eq!(access.granted(AccessBits::READ, now, timeout), Some(true));
        assert_eq!(access.granted(AccessBits::MODIFY, now, timeout), Some(false));
        assert_eq!(access.granted(AccessBits::EXECUTE, now, timeout), None);
        let later = now + Duration::from_secs(3);
        assert_eq!(access.granted(AccessBits::READ, later, timeout), None);
        assert_eq!(access.granted(AccessBits::READ, later, None), Some(true));
        access.forget();
        assert_eq!(access.granted(AccessBits::READ, now, timeout), None);
    }
}
