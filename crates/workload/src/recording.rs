//! What one workload of one run leaves behind; the types are those of [`benchmaster_record::recording`].

pub use benchmaster_record::recording::*;
pub use benchmaster_trace::TraceSink;
