//! PostMark: the small files of a mail or news server.

use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{SizeDistribution, Tree};
use benchmaster_units::ByteSize;

/// What both biases count to.
const TENTHS: u32 = 10;
/// The buffer of the C library's streams.
const STREAM: ByteSize = ByteSize::kib(4);

parameters! { pub struct PostmarkParameters: "Parameters of `postmark`.";
    /// Files per client that are created first (`set number`); rounded up to a multiple of `workers`.
    files: u64 = 500,
    /// Transactions per client (`set transactions`); rounded up to a multiple of `workers`.
    transactions: u64 = 500,
    /// Smallest and largest file (`set size`); sizes between them are equally likely.
    size_min: ByteSize = ByteSize(500),
    size_max: ByteSize = ByteSize(10_000),
    /// Directories that the files are distributed over (`set subdirectories`); 0 puts all into one.
    subdirectories: u32 = 0,
    /// Bytes per read (`set read`).
    read: ByteSize = ByteSize(512),
    /// Bytes per write (`set write`).
    write: ByteSize = ByteSize(512),
    /// Reads and writes of the C library's streams, of at least 4 KiB (`set buffering`).
    buffering: bool = true,
    /// Of ten accesses to data, those that read a file; the others append to one (`set bias read`).
    bias_read: u32 = 5,
    /// Of ten changes of the set of files, those that create one; the others delete one (`set bias create`).
    bias_create: u32 = 5,
    /// Workers per client, each with its share of files and transactions; PostMark is one.
    workers: u32 = 1,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for PostmarkParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, self.workers.into());
        self.transactions = scale.count(self.transactions, self.workers.into());
    }
}

static TEMPLATE: Template = Template::new(include_str!("postmark.toml"));

pub(super) fn expand(p: &PostmarkParameters, name: &str, _: Conditions) -> Expanded {
    let mut checks = Checks::default();
    positive!(checks, p: files, transactions, size_min, size_max, read, write, workers);
    let message = format!("`size_min` is {} and `size_max` is {}", p.size_min, p.size_max);
    checks.require(p.size_min <= p.size_max, "size_min", message, "use the smaller one for `size_min`");
    for (path, bias) in [("bias_read", p.bias_read), ("bias_create", p.bias_create)] {
        let message = format!("`{path}` counts tenths, and {bias} is more than {TENTHS}");
        checks.require(bias <= TENTHS, path, message, "write a number from 0 to 10");
    }
    checks.require(
        p.bias_create > 0 || p.transactions < p.files,
        "bias_create",
        format!("{} transactions that only delete need more than {} files", p.transactions, p.files),
        "use more `files`, or a `bias_create` above 0",
    );
    checks.finish()?;
    let workers = u64::from(p.workers);
    let (files, transactions) = (p.files.div_ceil(workers), p.transactions.div_ceil(workers));
    // Each transaction may create one.
    let most = files.saturating_add(transactions);
    let call = |size: ByteSize| if p.buffering { size.max(STREAM) } else { size };
    let tree = (p.subdirectories > 0).then_some(Tree {
        depth: 1,
        branch: p.subdirectories,
        leaves_only: true,
        in_turn: true,
    });
    // On average as long as PostMark's, which fills up to the largest size: a quarter of the range.
    let longest = ((p.size_max.0 - p.size_min.0) / 2).max(1);
    let derived = json!({
        "files_each": files,
        "transactions_each": transactions,
        "most": most,
        "number": most.saturating_mul(workers),
        "size": SizeDistribution::Uniform { min: p.size_min, max: p.size_max },
        "append_size": SizeDistribution::Uniform { min: ByteSize(1), max: ByteSize(longest) },
        "tree": tree,
        "read_size": call(p.read),
        "write_size": call(p.write),
        "reads": p.bias_read > 0,
        "read_weight": f64::from(p.bias_read),
        "appends": p.bias_read < TENTHS,
        "append_weight": f64::from(TENTHS - p.bias_read),
        "creates": p.bias_create > 0,
        "create_weight": f64::from(p.bias_create),
        "deletes": p.bias_create < TENTHS,
        "delete_weight": f64::from(TENTHS - p.bias_create),
    });
    TEMPLATE.fill(name, p, derived)
}
