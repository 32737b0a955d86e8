//! What the rate that stands for a workload counts.

use benchmaster_record::results::WorkloadRecord;

/// What the rate that stands for a workload counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Counts {
    /// Data are moved for their own sake.
    Bytes,
    /// Files are read, names are looked up and changed, or the study has a flow of its own.
    Operations,
    /// Files are made, each by one `create`, however many writes and closes it takes.
    Created,
}

impl Counts {
    /// Those of a workload.
    pub fn of(workload: &WorkloadRecord) -> Self {
        match workload.use_name.as_str() {
            "file-creation" => Self::Created,
            // As `default_response` of the study has them.
            "small-file-read" | "metadata" | "file-server" | "web-server" | "mail-server" | "custom" => {
                Self::Operations
            }
            _ => Self::Bytes,
        }
    }

    /// Names of responses, without the workload's: the first that it has stands for it.
    pub fn responses(self) -> &'static [&'static str] {
        match self {
            Self::Bytes => &["throughput", "operations", "flow_operations"],
            Self::Operations => &["flow_operations", "operations", "throughput"],
            Self::Created => &["create.operations", "flow_operations", "operations", "throughput"],
        }
    }
}
