//! Groups and steps with all else by default.

use benchmaster_record::model::{Group, IoMethod, OperationKind, Repeat, RepeatUntil, Step};

/// A group that does nothing yet.
pub(crate) fn group(name: String, workers: u32) -> Group {
    Group {
        name,
        clients: None,
        workers,
        queue_depth: 1,
        io: IoMethod::Sync,
        rate: None,
        setup: Vec::new(),
        flow: Vec::new(),
        teardown: Vec::new(),
    }
}

pub(crate) fn step(op: OperationKind) -> Step {
    Step { op: Some(op), ..Step::default() }
}

pub(crate) fn times(times: u64, flow: Vec<Step>) -> Step {
    Step { repeat: Some(Repeat::Times(times)), flow, ..Step::default() }
}

pub(crate) fn to_end_of_file(flow: Vec<Step>) -> Step {
    Step { repeat: Some(Repeat::Until(RepeatUntil::EndOfFile)), flow, ..Step::default() }
}
