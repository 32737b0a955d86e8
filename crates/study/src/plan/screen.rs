//! The design that a screening begins with.

use crate::file::{DesignKind, FractionBy, Layout, StudyFile};

/// Makes a study a screening: in place of all combinations it begins with a fraction. A fraction or another design that
/// the study asks for itself stays, and so do all combinations with some excluded.
///
/// With two levels of every factor it is the smallest fraction of resolution IV, whose main effects are clear of interactions
/// of two factors; for three factors of resolution III; else the smallest orthogonal array.
pub fn screening(file: &mut StudyFile) {
    if file.design.kind != DesignKind::Full || !file.choice.exclude.is_empty() {
        return;
    }
    let factors = file.factors.len();
    let two_level = file.factors.iter().all(|factor| factor.settings.len() == 2);
    if factors < 3 {
        // Two factors have no fraction worth the name.
    } else if two_level {
        file.design.kind = DesignKind::Fractional;
        let resolution = if factors == 3 { 3 } else { 4 };
        file.choice.layout = Layout::Fraction(FractionBy::Resolution(resolution));
    } else {
        file.design.kind = DesignKind::OrthogonalArray;
        file.choice.layout = Layout::OrthogonalArray { runs: None };
    }
}
