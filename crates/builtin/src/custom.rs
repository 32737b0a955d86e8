//! A workload in full, made smaller.

use super::scale::{Scale, Scaled};
use benchmaster_record::model::{Fileset, Group, Size, Step, Workload};
use benchmaster_units::ByteSize;

/// Files up to this size are what makes a workload one of small files: their number shrinks, not their size.
const SMALL: ByteSize = ByteSize::mib(1);

/// The number of files shrinks as far as each worker keeps one; files of one large size shrink by what is left.
impl Scaled for Workload {
    fn scale(&mut self, scale: Scale) {
        let workers = self.groups.iter().map(|group| u64::from(group.workers)).sum();
        let size = |step: &Step| step.io_size.as_ref().map(|size| ByteSize(size.mean().ceil() as u64));
        let unit = self.groups.iter().flat_map(steps).filter_map(size).max();
        for fileset in self.filesets.values_mut() {
            shrink(fileset, scale, workers, unit.unwrap_or(ByteSize(4096)));
        }
        self.until.duration = self.until.duration.map(|time| scale.duration(time));
        self.until.iterations = self.until.iterations.map(|times| scale.count(times, 1));
        self.until.bytes = self.until.bytes.map(|bytes| scale.size(bytes, unit.unwrap_or(ByteSize(4096))));
        self.warm_up = scale.duration(self.warm_up);
    }
}

fn shrink(fileset: &mut Fileset, scale: Scale, workers: u64, unit: ByteSize) {
    let before = fileset.files;
    fileset.files = scale.count(before, workers);
    let left = scale.factor() * before as f64 / fileset.files.max(1) as f64;
    if let (Size::Fixed(size), Some(left)) = (&mut fileset.size, Scale::new(left))
        && *size > SMALL
    {
        *size = left.size(*size, unit);
    }
}

fn steps(group: &Group) -> Vec<&Step> {
    fn below<'s>(steps: &'s [Step], all: &mut Vec<&'s Step>) {
        for step in steps {
            all.push(step);
            below(&step.flow, all);
            step.choose.iter().for_each(|choice| below(&choice.flow, all));
        }
    }
    let mut all = Vec::new();
    [&group.setup, &group.flow, &group.teardown].into_iter().for_each(|part| below(part, &mut all));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_files_become_fewer_and_large_ones_smaller() {
        let text = "
            groups = [{ name = 'g', workers = 4, flow = [{ repeat = 2, flow = [{ op = 'read', io_size = '64KiB' }] }] }]
            until = { duration = '5min' }
            filesets.small = { files = 10000, size = '4KiB' }
            filesets.few = { files = 4, size = '4KiB' }
            filesets.large = { files = 8, size = '1GiB' }";
        let mut workload: Workload = toml::from_str(text).unwrap();
        workload.scale(Scale::new(0.01).unwrap());
        let of = |name: &str| (workload.filesets[name].files, workload.filesets[name].size.clone());
        assert_eq!(of("small"), (100, Size::Fixed(ByteSize::kib(4))));
        assert_eq!(of("few"), (4, Size::Fixed(ByteSize::kib(4))));
        // 4 files and 2 % of their size are 1 % of all.
        let part = ((1u64 << 30) as f64 * 0.02) as u64 / 65536 * 65536;
        assert_eq!(of("large"), (4, Size::Fixed(ByteSize(part))));
        assert_eq!(workload.until.duration.map(|time| time.nanos()), Some(3_000_000_000));
    }
}
