//! Filesets and files.

use benchmaster_record::model::{Fileset, Size, SizeDistribution, Tree};
use benchmaster_units::ByteSize;

use super::Notes;
use super::parse::Attribute;
use super::value::{Amount, Attributes, Scope};
use crate::{Mistake, NoteKind, name_of};

/// A fileset as it is used by the flows.
#[derive(Debug, Clone)]
pub(super) struct Set {
    /// Its name in the workload.
    pub(super) name: String,
    pub(super) fileset: Fileset,
    /// Mean size of the files.
    pub(super) mean: f64,
    /// The directory it is in.
    pub(super) path: String,
    pub(super) read_only: bool,
    pub(super) write_only: bool,
    pub(super) cached: bool,
    /// Directories to make or remove, with the share of them that is there at first.
    pub(super) leaves: Option<(u64, f64)>,
}

impl Set {
    /// Directories that each of so many workers makes beforehand, to remove them.
    pub(super) fn directories(&self, workers: u64) -> u64 {
        let (directories, share) = self.leaves.unwrap_or((0, 0.0));
        match (directories as f64 * share) as u64 {
            0 => 0,
            there => (there / workers.max(1)).max(1),
        }
    }
}

const KNOWN: &str = "name path entries size dirwidth dirdepthrv dirgamma filesizegamma leafdirs prealloc paralloc reuse \
     readonly writeonly trusttree cached client fstype namelength";

/// The fileset's own name and what it becomes.
///
/// # Errors
/// Attributes that it has not, values that cannot be, and a fileset without name or files.
pub(super) fn set(
    single: bool,
    list: &[Attribute],
    scope: &Scope,
    place: (usize, &str),
    notes: &mut Notes,
) -> Result<(String, Set), Mistake> {
    let what = if single { "define file" } else { "define fileset" };
    let attributes = Attributes::new(list, scope, what, KNOWN)?;
    let missing = |message: &str| Mistake {
        file: None,
        line: place.0,
        text: place.1.to_owned(),
        message: message.to_owned(),
    };
    let own = attributes.text("name")?.ok_or_else(|| missing("the fileset needs a name: `name=files`"))?;
    let entries = if single { 1 } else { attributes.number("entries")?.unwrap_or(0) };
    let leaf_directories = attributes.number("leafdirs")?.unwrap_or(0);
    let files = if entries > 0 { entries } else { leaf_directories };
    if files == 0 {
        return Err(missing("the fileset has no files: give it `entries`"));
    }
    let prealloc = match attributes.amount("prealloc") {
        Ok(Some((_, Amount::Fixed(percent)))) => percent.min(100) as f64 / 100.0,
        _ => f64::from(u8::from(attributes.truth("prealloc")?)),
    };
    let (size, mean) = size(&attributes, notes)?;
    let (directory_width, tree) = if single { (0, None) } else { directories(&attributes, files, notes)? };
    for (name, why) in [
        ("paralloc", "files are always made by several threads"),
        ("reuse", "files of the same fileset are always used again where they fit"),
        ("trusttree", "a fileset is always checked before it is used again"),
        ("fstype", "the target says what file system it is"),
        ("client", "filesets have no such attribute in Filebench 1.5"),
    ] {
        notes.add(attributes.find(name), NoteKind::Irrelevant, why);
    }
    notes.add(attributes.find("namelength"), NoteKind::Unsupported, "names of files have nine letters");
    if entries > 0 && leaf_directories > 0 {
        let why = "directories without files are made only in a fileset that has no files";
        notes.add(attributes.find("leafdirs"), NoteKind::Unsupported, why);
    }
    let leaves = (entries == 0).then_some((leaf_directories, prealloc));
    let fileset = Fileset {
        files,
        size,
        directory_width,
        tree,
        // The directories that Filebench makes beforehand are made in the set-up of the group that removes them.
        prefill: if leaves.is_some() { 0.0 } else { prealloc },
        ..Fileset::default()
    };
    let set = Set {
        name: name_of(&own, "files"),
        fileset,
        mean,
        path: attributes.text("path")?.unwrap_or_else(|| ".".into()),
        read_only: attributes.truth("readonly")?,
        write_only: attributes.truth("writeonly")?,
        cached: attributes.truth("cached")?,
        leaves,
    };
    Ok((own, set))
}

fn size(attributes: &Attributes<'_>, notes: &mut Notes) -> Result<(Size, f64), Mistake> {
    // Until Filebench 1.4 the sizes had a gamma distribution whose shape, in thousandths, was an attribute.
    let shape = attributes.number("filesizegamma")?.filter(|shape| *shape > 0);
    let Some((attribute, amount)) = attributes.amount("size")? else {
        return Ok((Size::Fixed(ByteSize(0)), 0.0));
    };
    let mean = amount.mean();
    Ok(match (amount, shape) {
        (Amount::Fixed(bytes), Some(shape)) if bytes > 0 => {
            let shape = shape as f64 / 1000.0;
            (Size::Distributed(SizeDistribution::Gamma { mean: ByteSize(bytes), shape }), mean)
        }
        (Amount::Fixed(bytes), _) => (Size::Fixed(ByteSize(bytes)), mean),
        (Amount::Drawn(draw), _) => {
            let (size, different) = draw.size();
            if let Some(different) = different {
                notes.add(Some(attribute), NoteKind::Approximated, &different);
            }
            (size, mean)
        }
    })
}

/// Files per directory, or nested directories that hold about as many.
fn directories(
    attributes: &Attributes<'_>,
    files: u64,
    notes: &mut Notes,
) -> Result<(u64, Option<Tree>), Mistake> {
    let Some((attribute, width)) = attributes.amount("dirwidth")? else { return Ok((0, None)) };
    if let Some((place, Amount::Drawn(_))) = attributes.amount("dirdepthrv")? {
        notes.add(Some(place), NoteKind::Unsupported, "depths of directories do not follow a distribution");
    }
    let even = attributes.number("dirgamma")? == Some(0);
    let width = (width.mean().round() as u64).max(1);
    if width >= files {
        return Ok((0, None));
    }
    let leaves = files.div_ceil(width);
    let (tree, how) = match width {
        1 => (None, "one file each, beside each other".to_owned()),
        _ => {
            // As deep as directories of this width must be nested for so many leaves, and as wide as that needs.
            let depth = ((leaves as f64).ln() / (width as f64).ln()).round().clamp(1.0, 16.0);
            let branch = (leaves as f64).powf(1.0 / depth).ceil().max(1.0) as u32;
            let tree = Tree { depth: depth as u32, branch, leaves_only: true, in_turn: false };
            (Some(tree), format!("{branch} in each, {depth} deep, and files in the last ones only"))
        }
    };
    if !even {
        let message = format!(
            "all directories have the same shape: {how}; Filebench draws widths and depths at random"
        );
        notes.add(Some(attribute), NoteKind::Approximated, &message);
    }
    Ok((if tree.is_some() { 0 } else { width }, tree))
}
