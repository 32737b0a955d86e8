//! One kind of operation on many small files.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Conditions;
use super::common::{Checks, Expanded};
use super::scale::{Scale, Scaled};
use super::template::Template;
use benchmaster_record::model::{Size, Verify};
use benchmaster_units::{ByteSize, TimeSpan};

/// What `smallfile` does with each file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SmallfileOperation {
    /// Create, write, close.
    #[default]
    Create,
    /// Open, write as much again at the end, close.
    Append,
    /// Open, write in place from start to end, close.
    Overwrite,
    /// Open and empty, write, close.
    TruncateOverwrite,
    /// Open, read from start to end, close.
    Read,
    /// Read the attributes.
    Stat,
    /// Set the permissions.
    Chmod,
    /// Set an extended attribute.
    Setxattr,
    /// Read it.
    Getxattr,
    /// Make a symbolic link to the file.
    Symlink,
    /// Rename.
    Rename,
    /// Remove a file.
    Delete,
    /// Remove a file that was renamed before.
    DeleteRenamed,
    /// Make a directory.
    Mkdir,
    /// Remove a directory.
    Rmdir,
    /// List a directory.
    Readdir,
    /// List a directory with the attributes of all that is in it.
    #[serde(rename = "ls-l")]
    LsL,
    /// Remove a file, its symbolic link and its directory.
    Cleanup,
    /// Write a file under another name, set its attribute, flush it, and give it its name, as OpenStack Swift does.
    SwiftPut,
    /// Read a file and its attribute, as OpenStack Swift does.
    SwiftGet,
}

parameters! { pub struct SmallfileParameters: "Parameters of `smallfile`.";
    /// What is done with each file.
    operation: SmallfileOperation = SmallfileOperation::Create,
    /// Files of each worker.
    files: u64 = 10_000,
    /// Their sizes.
    file_size: Size = Size::Fixed(ByteSize::kib(64)),
    /// Bytes per read or write.
    io_size: ByteSize = ByteSize::mib(1),
    /// Files per directory; 0 puts all files into one directory.
    directory_width: u64 = 100,
    /// Bytes of an extended attribute.
    attribute_size: ByteSize = ByteSize(64),
    /// Flush every file that is written before it is closed.
    fsync: bool = false,
    /// Wait before each file.
    pause: TimeSpan = TimeSpan::default(),
    /// Workers per client.
    workers: u32 = 8,
    /// Stamp every block written and check every block read.
    verify: Verify = Verify::Off,
    /// Record every call.
    trace: bool = false,
}

impl Scaled for SmallfileParameters {
    fn scale(&mut self, scale: Scale) {
        self.files = scale.count(self.files, 1);
    }
}

impl SmallfileOperation {
    fn writes(self) -> bool {
        matches!(
            self,
            Self::Create | Self::Append | Self::Overwrite | Self::TruncateOverwrite | Self::SwiftPut
        )
    }

    fn moves_data(self) -> bool {
        self.writes() || matches!(self, Self::Read | Self::SwiftGet)
    }
}

static TEMPLATE: Template = Template::new(include_str!("smallfile.toml"));

pub(super) fn expand(p: &SmallfileParameters, name: &str, _: Conditions) -> Expanded {
    let op = p.operation;
    let fixed = p.file_size.fixed();
    let mut checks = Checks::default();
    positive!(checks, p: files, workers);
    if op.moves_data() {
        positive!(checks, p: io_size);
        checks.provable("io_size", fixed.map_or(p.io_size, |size| p.io_size.min(size)), p.verify);
    }
    checks.require(
        !p.fsync || op.writes() && op != SmallfileOperation::SwiftPut,
        "fsync",
        "`fsync` is about files that are written, and this operation writes none or flushes them anyway",
        "remove it",
    );
    let append = op == SmallfileOperation::Append;
    checks.require(
        !append || fixed.is_some_and(|size| size.0 > 0),
        "file_size",
        "what is appended to a file is as long as the file was, and needs one size for all",
        "write for example `file_size = \"64KiB\"`",
    );
    checks.require(!append || !p.verify.is_on(), "verify", "appended data cannot be verified", "remove it");
    checks.finish()?;
    let io_size = fixed.map_or(p.io_size, |size| p.io_size.min(size).max(ByteSize(1)));
    let has_data = fixed != Some(ByteSize(0));
    // A directory is listed once.
    let lists = matches!(op, SmallfileOperation::Readdir | SmallfileOperation::LsL);
    let per_iteration = if lists && p.directory_width == 0 { p.files } else { p.directory_width };
    let derived = json!({
        "number": p.files.saturating_mul(p.workers.into()),
        "iterations": if lists { p.files.div_ceil(per_iteration) } else { p.files },
        "io_size": io_size,
        "has_data": has_data,
        "appends": fixed.unwrap_or_default().0.div_ceil(io_size.0.max(1)),
        "pauses": p.pause.nanos() > 0,
        "verify": p.verify.where_data(op.moves_data() && has_data),
    });
    TEMPLATE.fill(name, p, derived)
}
