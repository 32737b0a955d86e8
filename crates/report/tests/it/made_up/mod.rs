//! Experiments made up from known effects, the same every time.

use benchmaster_analysis::experiment::{
    Experiment, Options, Table, TableFactor, TableRow, Transform, analyze,
};
use benchmaster_record::results::Unit;

const NAMES: [&str; 10] =
    ["version", "storage", "sync", "io_size", "file_size", "delay", "slots", "nconnect", "readahead", "acl"];

/// What the runs of an experiment are made from.
pub(crate) struct MadeUp<'m> {
    /// Levels of each factor.
    pub(crate) levels: &'m [u32],
    /// Runs of each treatment.
    pub(crate) replicates: u32,
    /// Terms, as the numbers of their factors, with their half effects; of three levels the linear part.
    pub(crate) effects: &'m [(&'m [usize], f64)],
    /// Standard deviation of the noise.
    pub(crate) noise: f64,
    /// Effects multiply the response instead of adding to it.
    pub(crate) multiply: bool,
    /// Which treatments of the full design are run.
    pub(crate) keep: fn(&[u32]) -> bool,
}

impl MadeUp<'_> {
    /// Responses around 100 MB/s; effects and noise are shares of it, or logarithms.
    pub(crate) fn analysed(&self) -> Experiment {
        self.with_terms_up_to(None)
    }

    /// The same by a model whose terms have up to this number of factors.
    pub(crate) fn with_terms_up_to(&self, max_order: Option<u32>) -> Experiment {
        let treatments: u32 = self.levels.iter().product();
        let mut random = 42u64;
        let mut rows = Vec::new();
        for replicate in 0..self.replicates {
            for treatment in 0..treatments {
                let mut rest = treatment;
                let levels: Vec<u32> = self
                    .levels
                    .iter()
                    .map(|count| {
                        let level = rest % count;
                        rest /= count;
                        level
                    })
                    .collect();
                if !(self.keep)(&levels) {
                    continue;
                }
                let code = |f: &usize| f64::from(levels[*f]) * 2.0 / f64::from(self.levels[*f] - 1) - 1.0;
                let effect = self.effects.iter().map(|(term, q)| q * term.iter().map(code).product::<f64>());
                let value = effect.sum::<f64>() + self.noise * normal(&mut random);
                let response = if self.multiply { 1e8 * value.exp() } else { 1e8 * (1.0 + value) };
                // Not the order of the rows, so that nothing depends on it.
                let order = u64::from(replicate * treatments + treatment * 7 % treatments);
                let (block, whole_plot) = (None, None);
                rows.push(TableRow {
                    levels,
                    response,
                    block,
                    whole_plot,
                    order: Some(order),
                    centre: false,
                });
            }
        }
        let factor = |(number, count): (usize, &u32)| TableFactor {
            name: NAMES[number].into(),
            levels: match count {
                2 => vec!["low".into(), "high".into()],
                _ => (0..*count).map(|level| format!("{level}ms")).collect(),
            },
            values: (*count > 2).then(|| (0..*count).map(f64::from).collect()),
            hard_to_change: false,
        };
        let table = Table {
            response: "write.throughput".into(),
            unit: Some(Unit::BytesPerSecond),
            factors: self.levels.iter().enumerate().map(factor).collect(),
            rows,
            left_out: vec![],
        };
        let transform = if self.multiply { Transform::Log } else { Transform::None };
        analyze(&table, &Options { transform, max_order, ..Options::default() }).unwrap()
    }
}

/// Nearly normal, from SplitMix64.
fn normal(state: &mut u64) -> f64 {
    let mut sum = -6.0;
    for _ in 0..12 {
        *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = *state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        sum += ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
    }
    sum
}

pub(crate) fn all(_: &[u32]) -> bool {
    true
}

/// Effects as in a study of six factors: E most, then B, C and F, and BF, CF and BCF.
pub(crate) const SIX: &[(&[usize], f64)] = &[
    (&[4], 0.30),
    (&[1], 0.15),
    (&[2], -0.12),
    (&[5], 0.09),
    (&[1, 5], -0.06),
    (&[2, 5], 0.05),
    (&[1, 2, 5], 0.035),
];

/// 2^6 with five replicates.
pub(crate) fn six(multiply: bool) -> Experiment {
    let levels = &[2; 6];
    MadeUp { levels, replicates: 5, effects: SIX, noise: 0.05, multiply, keep: all }.analysed()
}

/// 2^(6-3) by D=AB, E=AC, F=BC.
pub(crate) fn fraction() -> Experiment {
    let keep = |l: &[u32]| {
        let same = |a: usize, b: usize, c: usize| (l[a] + l[b] + l[c]) % 2 == 1;
        same(0, 1, 3) && same(0, 2, 4) && same(1, 2, 5)
    };
    let levels = &[2; 6];
    MadeUp { levels, replicates: 5, effects: SIX, noise: 0.05, multiply: false, keep }.analysed()
}

/// 2^5 without replicates.
pub(crate) fn unreplicated() -> Experiment {
    let effects = &SIX[..3];
    MadeUp { levels: &[2; 5], replicates: 1, effects, noise: 0.02, multiply: false, keep: all }.analysed()
}

/// 2^3 x 3.
pub(crate) fn mixed() -> Experiment {
    let effects: &[(&[usize], f64)] = &[(&[3], -0.3), (&[1], 0.1), (&[1, 3], 0.08)];
    let levels = &[2, 2, 2, 3];
    MadeUp { levels, replicates: 2, effects, noise: 0.02, multiply: false, keep: all }.analysed()
}
