//! Compiling what workers do together: meetings and counters.

use super::compile::{Compiler, Section, place_of};
use super::limits::is_name;
use super::{GroupProgram, Instruction, Meeting};
use crate::model::Step;

impl Compiler<'_> {
    /// `count` and `limit` where they mean something.
    pub(super) fn check_counts(&mut self, path: &str, step: &Step) {
        let fields = [
            ("count", step.count, step.post.is_some() || step.take.is_some(), "`post` and `take`"),
            ("limit", step.limit, step.post.is_some(), "`post`"),
        ];
        for (field, value, belongs, whose) in fields {
            let at = format!("{path}.{field}");
            match value {
                Some(_) if !belongs => {
                    self.error(at, format!("`{field}` belongs to {whose}"), "remove it");
                }
                Some(0) => self.error(at, format!("`{field}` is 0"), "it must be at least 1"),
                _ => {}
            }
        }
    }

    /// A step at which workers wait for each other.
    pub(super) fn synchronize(
        &mut self,
        path: &str,
        name: &str,
        step: &Step,
        section: Section,
        code: &mut Vec<Instruction>,
    ) {
        let (field, what) = match (&step.meet, &step.post) {
            (Some(_), _) => ("meet", "meeting"),
            (None, Some(_)) => ("post", "counter"),
            (None, None) => ("take", "counter"),
        };
        if !is_name(name) {
            let fix = "use up to 64 letters, digits, `-` and `_`";
            self.error(format!("{path}.{field}"), format!("`{name}` is not a name for a {what}"), fix);
        }
        if section == Section::TearDown {
            let message =
                format!("`{field}` has no effect in `teardown`: workers do not wait for each other there");
            self.error(path, message, "move it to the flow");
        }
        code.push(match field {
            "meet" => {
                let meeting = Meeting { name: name.to_owned(), in_flow: section == Section::Flow };
                Instruction::Meet(place_of(&mut self.meetings, meeting))
            }
            _ => {
                let counter = place_of(&mut self.counters, name.to_owned());
                let count = step.count.unwrap_or(1);
                match field {
                    "post" => Instruction::Post { counter, count, limit: step.limit.unwrap_or(u64::MAX) },
                    _ => Instruction::Take { counter, count },
                }
            }
        });
    }

    /// Counters at which somebody waits for what nobody does.
    pub(super) fn check_counters(&mut self, groups: &[GroupProgram]) {
        let code = || groups.iter().flat_map(|group| group.setup.iter().chain(&group.flow));
        for (number, name) in (0u16..).zip(self.counters.clone()) {
            let posted =
                |at: &Instruction| matches!(at, Instruction::Post { counter, .. } if *counter == number);
            let taken =
                |at: &Instruction| matches!(at, Instruction::Take { counter, .. } if *counter == number);
            let limited = |at: &Instruction| matches!(at, Instruction::Post { counter, limit, .. } if *counter == number && *limit < u64::MAX);
            if code().any(taken) && !code().any(posted) {
                let fix = format!("add `{{ post = \"{name}\" }}` to the flow of another group");
                self.error("groups", format!("workers take from the counter `{name}`, and none posts"), fix);
            }
            if code().any(limited) && !code().any(taken) {
                let message = format!("the counter `{name}` has a limit, but no step takes from it");
                self.error("groups", message, "remove `limit`, or add a `take`");
            }
        }
    }
}
