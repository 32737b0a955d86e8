//! The loads that a curve can be measured at.
//!
//! They are fixed before anything is run, so that a study that is resumed anywhere, or by another version of the program,
//! measures the same ones: those of the rise, and between two of these as many as the search needs.

/// Loads among which a curve can be searched, at most.
pub const MOST_LOADS: usize = 500;

/// The factor by which loads rise unless something else is asked for.
const FACTOR: f64 = 1.5;

/// Loads in ascending order.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// All of them.
    pub loads: Vec<f64>,
    /// Which of them are run while the load rises: the first and the last are among them.
    pub rise: Vec<u32>,
}

/// The loads from `from` to `to`. They rise by `factor`, or in `points` equal steps, and between two of them lie this many
/// that neighbours differ by no more than the share `resolution`, as far as they are `whole` numbers or have four
/// significant digits.
///
/// # Errors
/// How many there would be, when they are more than [`MOST_LOADS`].
pub fn loads(
    from: f64,
    to: f64,
    factor: Option<f64>,
    points: Option<u32>,
    resolution: f64,
    whole: bool,
) -> Result<Grid, u64> {
    let tidy = |load: f64| if whole { load.round() } else { significant(load) };
    let mut rise: Vec<f64> = match points {
        Some(points) => {
            let step = (to - from) / f64::from(points.max(2) - 1);
            (0..points.max(2)).map(|point| from + f64::from(point) * step).collect()
        }
        None => {
            let factor = factor.unwrap_or(FACTOR);
            let steps = (to / from).ln() / factor.ln();
            if steps > MOST_LOADS as f64 {
                return Err(steps as u64);
            }
            // A last step that is hardly one would be no point of its own.
            (0..).map(|step| from * factor.powi(step)).take_while(|load| *load < to / 1.001).collect()
        }
    };
    rise.iter_mut().skip(1).for_each(|load| *load = tidy(*load));
    if rise.last().is_some_and(|last| *last < to) {
        rise.push(to);
    }
    rise.dedup();
    let between = |low: f64, high: f64| ((high / low).ln() / (1.0 + resolution).ln()).ceil().max(1.0) as u64;
    let count = 1 + rise.windows(2).map(|pair| between(pair[0], pair[1])).sum::<u64>();
    if !whole && count > MOST_LOADS as u64 {
        return Err(count);
    }
    let mut loads = vec![rise[0]];
    let mut numbers = vec![0];
    for pair in rise.windows(2) {
        let (low, high) = (pair[0], pair[1]);
        let parts = between(low, high);
        for part in 1..=parts {
            let load =
                if part == parts { high } else { tidy(low * (high / low).powf(part as f64 / parts as f64)) };
            if loads.last().is_some_and(|last| *last < load) && (load < high || part == parts) {
                loads.push(load);
            }
            if loads.len() > MOST_LOADS {
                return Err(count);
            }
        }
        numbers.push(loads.len() as u32 - 1);
    }
    Ok(Grid { loads, rise: numbers })
}

/// A number with four significant digits.
fn significant(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn risen(grid: &Grid) -> Vec<f64> {
        grid.rise.iter().map(|&level| grid.loads[level as usize]).collect()
    }

    #[test]
    fn loads_rise_by_a_factor_and_end_where_asked() {
        let grid = loads(100.0, 1000.0, Some(2.0), None, 0.05, false).unwrap();
        assert_eq!(risen(&grid), [100.0, 200.0, 400.0, 800.0, 1000.0]);
        assert!(grid.loads.windows(2).all(|w| w[0] < w[1] && w[1] / w[0] < 1.051), "{:?}", grid.loads);
        let default = loads(100.0, 200.0, None, None, 0.05, false).unwrap();
        assert_eq!(risen(&default), [100.0, 150.0, 200.0]);
    }

    #[test]
    fn loads_rise_in_equal_steps() {
        let grid = loads(100.0, 1000.0, None, Some(10), 0.02, false).unwrap();
        assert_eq!(risen(&grid), (1..=10).map(|n| f64::from(n) * 100.0).collect::<Vec<_>>());
        assert!(grid.loads.windows(2).all(|w| w[0] < w[1] && w[1] / w[0] < 1.022), "{:?}", grid.loads);
    }

    #[test]
    fn workers_are_whole_and_different() {
        let grid = loads(1.0, 64.0, Some(2.0), None, 0.05, true).unwrap();
        assert_eq!(risen(&grid), [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
        assert!(grid.loads.iter().all(|load| load.fract() == 0.0));
        assert_eq!(grid.loads[..20], (1..=20).map(f64::from).collect::<Vec<_>>());
        let slow = loads(1.0, 5.0, Some(1.1), None, 0.05, true).unwrap();
        assert_eq!(risen(&slow), [1.0, 2.0, 3.0, 4.0, 5.0]);
    }

    #[test]
    fn too_many_are_refused() {
        assert!(loads(1.0, 1e9, None, None, 0.005, false).unwrap_err() > 500);
        assert!(loads(1.0, 1e9, Some(1.000_001), None, 0.05, false).is_err());
    }
}
