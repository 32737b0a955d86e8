//! Centre points among the rows of a file.

use benchmaster_analysis::experiment::CENTRE;

use super::FactorColumn;

/// Finds the rows that are centre points of a two-level design, and leaves the factors with their two levels, and
/// [`CENTRE`] for the middle. `None` without such rows.
///
/// Two or more factors have a third level halfway between the other two, and rows have it in all of these factors or in
/// none. Other factors have two levels: what cannot be halved, such as a version, has one of them in a centre point.
pub(crate) fn centre_points(factors: &mut [FactorColumn]) -> Option<Vec<bool>> {
    let halved: Vec<usize> = (0..factors.len()).filter(|&i| has_middle(&factors[i])).collect();
    let others_have_two = (0..factors.len()).all(|i| halved.contains(&i) || factors[i].levels.len() == 2);
    if halved.len() < 2 || !others_have_two {
        return None;
    }
    let rows = factors.first()?.rows.len();
    let in_the_middle = |row: usize| halved.iter().filter(|&&i| factors[i].rows[row] == 1).count();
    let counts: Vec<usize> = (0..rows).map(in_the_middle).collect();
    let centre: Vec<bool> = counts.iter().map(|&n| n == halved.len()).collect();
    if counts.iter().any(|&n| n > 0 && n < halved.len()) || centre.iter().all(|&c| c) {
        return None;
    }
    for &i in &halved {
        let factor = &mut factors[i];
        factor.levels.remove(1);
        if let Some(values) = &mut factor.values {
            values.remove(1);
        }
        factor.rows.iter_mut().for_each(|level| *level = [0, CENTRE, 1][*level as usize]);
    }
    Some(centre)
}

/// Whether a factor has three numeric levels, the second halfway between the others.
fn has_middle(factor: &FactorColumn) -> bool {
    match factor.values.as_deref() {
        Some(&[low, middle, high]) => {
            low < high && ((low + high) / 2.0 - middle).abs() <= 1e-9 * (high - low)
        }
        _ => false,
    }
}
