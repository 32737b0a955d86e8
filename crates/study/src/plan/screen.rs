//! The design that a screening begins with.

use crate::file::{DesignKind, FractionBy, StudyFile};

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
    match (two_level, factors) {
        // Two factors have no fraction worth the name.
        (_, ..3) => {}
        (true, _) => {
            file.design.kind = DesignKind::Fractional;
            file.choice.fraction = Some(FractionBy::Resolution(if factors == 3 { 3 } else { 4 }));
        }
        (false, _) => file.design.kind = DesignKind::OrthogonalArray,
    }
}
