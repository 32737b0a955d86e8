//! The arguments of `import`.

use std::path::PathBuf;

use benchmaster_units::ByteSize;
use clap::{Args, Subcommand};

/// Make a study of a job file of another tool
///
/// The study is printed. Every option of the job file is translated, or it is named on standard error with its line and
/// what became of it, and stands as a comment in the study. docs/import.md lists what is supported.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  benchmaster import fio random-read.fio -o random-read.toml
  SIZE=64m benchmaster import fio jobs.fio --target nfs://filer/vol1 > jobs.toml
  benchmaster import filebench fileserver.f --target /mnt/nfs -o fileserver.toml
  benchmaster import fio jobs.fio --strict > /dev/null     can this file be imported as it is?")]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) format: ImportFormat,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ImportFormat {
    /// A job file of fio
    Fio(ImportFio),
    /// A workload file of Filebench (a personality)
    Filebench(ImportFile),
    /// A trace of system calls: the output of `strace -f -ttt -T -o FILE COMMAND`, or of an earlier run
    Strace(ImportStrace),
    /// A capture of NFSv3 or NFSv4 traffic over TCP: pcap or pcapng, as `tcpdump -s 0 -w FILE` writes it
    Pcap(ImportPcap),
}

#[derive(Debug, Args)]
pub(crate) struct ImportFile {
    /// The file
    pub(crate) file: PathBuf,
    #[command(flatten)]
    pub(crate) common: ImportCommon,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The study names the trace, and replays it with the workload `replay` (docs/replay.md).

Examples:
  strace -f -ttt -T -o build.strace make
  benchmaster import strace build.strace --root $PWD --target /mnt/nfs -o build.toml
  benchmaster run build.toml")]
pub(crate) struct ImportStrace {
    /// The trace
    pub(crate) file: PathBuf,
    /// Directory of the traced machine below which calls are replayed [default: all but the system's own]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) root: Option<String>,
    /// Directory that the traced command was started in [default: the root]
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) cwd: Option<String>,
    /// File to write the study to, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What the study measures: a directory or an nfs:// URL
    #[arg(long, value_name = "TARGET", default_value = ".")]
    pub(crate) target: String,
    /// End with status 1 when a call on files is not replayed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print what is in the trace, and the study, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
The calls are written as a trace of system calls beside the capture, which the study replays with the workload `replay`
(docs/replay.md).

Examples:
  tcpdump -i eth0 -s 0 -w nfs.pcap port 2049
  benchmaster import pcap nfs.pcap --target /mnt/nfs -o nfs.toml
  benchmaster run nfs.toml")]
pub(crate) struct ImportPcap {
    /// The capture
    pub(crate) file: PathBuf,
    /// File to write the trace to [default: the capture's name and `.strace`]
    #[arg(long, value_name = "FILE")]
    pub(crate) trace: Option<PathBuf>,
    /// File to write the study to, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What the study measures: a directory or an nfs:// URL
    #[arg(long, value_name = "TARGET", default_value = ".")]
    pub(crate) target: String,
    /// End with status 1 when something in the capture is not replayed
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print what is in the capture and the trace, and the study, as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ImportFio {
    #[command(flatten)]
    pub(crate) file: ImportFile,
    /// Size of files and devices of which the job file does not say it, because they exist already; a study makes files of
    /// this size instead
    #[arg(long, value_name = "SIZE")]
    pub(crate) size: Option<ByteSize>,
}

/// What all formats have in common.
#[derive(Debug, Args)]
pub(crate) struct ImportCommon {
    /// File to write the study to, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// What the study measures: a directory or an nfs:// URL [default: the directory that the file names, else `.`]
    #[arg(long, value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// End with status 1 when an option is not supported or only approximated
    #[arg(long)]
    pub(crate) strict: bool,
    /// Print what was imported, the study and all notes as JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// Name the options that were translated, and those that are not needed, as well
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
