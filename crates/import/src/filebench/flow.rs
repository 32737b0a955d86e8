//! The flowops of a thread, with composite ones taken apart and each on the descriptor that it works on.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Notes;
use super::parse::Flowop;
use super::script::Composite;
use super::set::Set;
use super::value::{Attributes, Scope, Value};
use crate::{Mistake, NoteKind};

/// One flowop or several that are repeated.
#[derive(Debug)]
pub(super) enum Node<'a> {
    One(Op<'a>),
    Repeat { times: u64, flow: Vec<Node<'a>> },
}

#[derive(Debug)]
pub(super) struct Op<'a> {
    pub(super) flowop: &'a Flowop,
    /// Its name, behind that of the composite flowops it is in.
    pub(super) name: String,
    pub(super) scope: Scope,
    /// The handle it works on: an index into [`Flow::handles`].
    pub(super) handle: Option<usize>,
    /// The fileset it names.
    pub(super) set: Option<String>,
}

impl Op<'_> {
    pub(super) fn kind(&self) -> &str {
        &self.flowop.kind
    }

    /// Whether its kind has a property.
    pub(super) fn is(&self, property: impl Fn(&Kind) -> bool) -> bool {
        KINDS.get(self.kind()).is_some_and(property)
    }

    pub(super) fn attributes(&self) -> Result<Attributes<'_>, Mistake> {
        Attributes::new(&self.flowop.attributes, &self.scope, &self.flowop.kind, KNOWN)
    }
}

/// An open file: from where it is opened to where it is closed.
#[derive(Debug, Default)]
pub(super) struct Handle {
    pub(super) fd: u64,
    pub(super) set: String,
    /// Opened by a flowop of its own, not by the first one that uses it.
    pub(super) explicit: bool,
    pub(super) closed: bool,
    pub(super) sync: bool,
    pub(super) direct: bool,
    /// Each worker takes a file of its own: Filebench goes through all files with a descriptor for each.
    pub(super) rotates: bool,
    /// Written at its end, and elsewhere.
    pub(super) appends: bool,
    pub(super) writes: bool,
}

/// The flow of a thread.
#[derive(Debug)]
pub(super) struct Flow<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) handles: Vec<Handle>,
}

pub(super) const KNOWN: &str = "name filename filesetname possetname fd srcfd iosize iters random workingset opennext dsync directio \
     indexed target value blocking highwater noreadahead file";

/// What is known of a kind of flowops.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Kind {
    /// The attributes that it looks at.
    uses: String,
    pub(super) counted: bool,
    pub(super) moves_data: bool,
    pub(super) consumes: bool,
}

pub(super) static KINDS: LazyLock<BTreeMap<String, Kind>> =
    LazyLock::new(|| toml::from_str(include_str!("flowops.toml")).unwrap_or_default());

/// Takes the flowops of a thread apart.
pub(super) struct Builder<'a, 'n> {
    pub(super) composites: &'a BTreeMap<String, Composite<'a>>,
    pub(super) sets: &'n BTreeMap<String, Set>,
    pub(super) notes: &'n mut Notes,
    handles: Vec<Handle>,
    open: BTreeMap<u64, usize>,
}

impl<'a, 'n> Builder<'a, 'n> {
    pub(super) fn new(
        composites: &'a BTreeMap<String, Composite<'a>>,
        sets: &'n BTreeMap<String, Set>,
        notes: &'n mut Notes,
    ) -> Self {
        Self { composites, sets, notes, handles: Vec::new(), open: BTreeMap::new() }
    }

    /// # Errors
    /// The first flowop that is none, or that works on a file that is not there.
    pub(super) fn build(mut self, flow: &'a [Flowop], scope: &Scope) -> Result<Flow<'a>, Mistake> {
        let nodes = self.nodes(flow, scope, "", 0)?;
        Ok(Flow { nodes, handles: self.handles })
    }

    fn nodes(
        &mut self,
        flow: &'a [Flowop],
        scope: &Scope,
        prefix: &str,
        depth: usize,
    ) -> Result<Vec<Node<'a>>, Mistake> {
        let mut nodes = Vec::new();
        for flowop in flow {
            let (times, one) = match self.composites.get(&flowop.kind) {
                Some(composite) => self.composite(flowop, *composite, scope, prefix, depth)?,
                None => self.single(flowop, scope, prefix)?,
            };
            match times {
                0 => {}
                1 => nodes.extend(one),
                times => nodes.push(Node::Repeat { times, flow: one }),
            }
        }
        Ok(nodes)
    }

    fn composite(
        &mut self,
        flowop: &'a Flowop,
        composite: Composite<'a>,
        scope: &Scope,
        prefix: &str,
        depth: usize,
    ) -> Result<(u64, Vec<Node<'a>>), Mistake> {
        if depth == 8 {
            return Err(flowop.mistake("composite flowops are nested deeper than 8 levels"));
        }
        let mut locals = BTreeMap::new();
        let value = |scope: &Scope, raw| scope.value(raw).map_err(|message| flowop.mistake(message));
        for (list, from) in [(composite.attributes, None), (&flowop.attributes, Some(scope))] {
            for attribute in list.iter().filter(|attribute| attribute.local) {
                if let Some(raw) = &attribute.value {
                    locals.insert(attribute.name.clone(), value(from.unwrap_or(scope), raw)?);
                }
            }
        }
        let known = "name iters";
        let defined = Attributes::new(composite.attributes, scope, "define flowop", known)?;
        let used = Attributes::new(&flowop.attributes, scope, &flowop.kind, known)?;
        let name = format!("{prefix}{}", used.text("name")?.unwrap_or_else(|| flowop.kind.clone()));
        let times = match used.find("iters") {
            Some(_) => self.times(&used)?,
            None => self.times(&defined)?,
        };
        let inner = scope.within(locals);
        Ok((times, self.nodes(composite.flow, &inner, &format!("{name}."), depth + 1)?))
    }

    fn times(&mut self, attributes: &Attributes<'_>) -> Result<u64, Mistake> {
        let Some((attribute, amount)) = attributes.amount("iters")? else { return Ok(1) };
        let mean = amount.mean().round() as u64;
        if matches!(amount, super::value::Amount::Drawn(_)) {
            let message = format!("always {mean} times, the mean");
            self.notes.add(Some(attribute), NoteKind::Approximated, &message);
        }
        Ok(mean)
    }

    fn single(
        &mut self,
        flowop: &'a Flowop,
        scope: &Scope,
        prefix: &str,
    ) -> Result<(u64, Vec<Node<'a>>), Mistake> {
        let Some(kind) = KINDS.get(&flowop.kind) else {
            let message = format!("unknown flowop `{}`, and the file defines none", flowop.kind);
            return Err(flowop.mistake(message));
        };
        let attributes = Attributes::new(&flowop.attributes, scope, &flowop.kind, KNOWN)?;
        for attribute in &flowop.attributes {
            let name = match attribute.name.as_str() {
                "filename" | "filesetname" | "file" => "set",
                other => other,
            };
            // The fileset of a descriptor that is open anyhow is often repeated.
            let fine =
                ["name", "iters", "set"].contains(&name) || kind.uses.split(' ').any(|used| used == name);
            if !fine {
                let why = format!("`{}` ignores it, as in Filebench", flowop.kind);
                self.notes.add(Some(attribute), NoteKind::Irrelevant, &why);
            }
        }
        let name = format!("{prefix}{}", attributes.text("name")?.unwrap_or_else(|| flowop.kind.clone()));
        let set = match ["filesetname", "filename", "file"].iter().find_map(|name| attributes.find(name)) {
            Some(attribute) => Some(self.named_set(attribute, scope)?),
            None => None,
        };
        let times = self.times(&attributes)?;
        let handle = self.handle(flowop, &attributes, set.as_deref())?;
        let scope = scope.clone();
        Ok((times, vec![Node::One(Op { flowop, name, scope, handle, set })]))
    }

    fn named_set(&self, attribute: &super::parse::Attribute, scope: &Scope) -> Result<String, Mistake> {
        let value = attribute.value.as_ref().map(|raw| scope.value(raw)).transpose();
        let name = match value.map_err(|message| attribute.mistake(message))? {
            Some(Value::Text(name)) => name,
            Some(Value::Number(name)) => name.to_string(),
            _ => return Err(attribute.mistake("expected the name of a fileset")),
        };
        if self.sets.contains_key(&name) {
            Ok(name)
        } else {
            Err(attribute.mistake(format!("unknown fileset or file `{name}`")))
        }
    }

    /// The handle of a flowop that works on a descriptor, opened where it is not open.
    fn handle(
        &mut self,
        flowop: &Flowop,
        attributes: &Attributes<'_>,
        set: Option<&str>,
    ) -> Result<Option<usize>, Mistake> {
        let fd = attributes.number("fd")?.unwrap_or(0);
        let kind = flowop.kind.as_str();
        let needs_set = || set.ok_or_else(|| flowop.mistake("it needs a fileset: `filesetname=files`"));
        match kind {
            "openfile" | "createfile" => {
                let set = needs_set()?;
                let rotates = attributes.truth("opennext")?;
                if self.open.contains_key(&fd) && !rotates {
                    return Err(
                        flowop.mistake(format!("descriptor {fd} is still open here: close it before"))
                    );
                }
                let handle = self.add(fd, set, attributes)?;
                self.handles[handle].explicit = true;
                if rotates {
                    // Each descriptor is closed at once.
                    self.handles[handle].closed = true;
                } else {
                    self.open.insert(fd, handle);
                }
                Ok(Some(handle))
            }
            "closefile" => {
                let Some(handle) = self.open.remove(&fd) else {
                    return Err(flowop.mistake(format!("descriptor {fd} is not open here")));
                };
                self.handles[handle].closed = true;
                Ok(Some(handle))
            }
            "fsync" => match self.open.get(&fd) {
                Some(handle) => Ok(Some(*handle)),
                None => Err(flowop.mistake(format!("descriptor {fd} is not open here"))),
            },
            "statfile" | "deletefile" if fd > 0 => Ok(self.open.get(&fd).copied()),
            "read" | "write" | "aiowrite" | "readwholefile" | "writewholefile" | "appendfile"
            | "appendfilerand" => {
                let handle = match self.open.get(&fd).copied() {
                    Some(handle) => {
                        self.other_set(flowop, handle, set);
                        handle
                    }
                    None => {
                        let handle = self.add(fd, needs_set()?, attributes)?;
                        self.handles[handle].rotates = attributes.truth("opennext")?;
                        self.open.insert(fd, handle);
                        handle
                    }
                };
                let appends =
                    kind.starts_with("append") || kind == "write" && self.grows(handle, attributes)?;
                let handles = &mut self.handles[handle];
                handles.appends |= appends;
                handles.writes |= !appends && kind.contains("write");
                Ok(Some(handle))
            }
            _ => Ok(None),
        }
    }

    /// Whether writes one after the other make the file longer: those to a file without bytes.
    fn grows(&self, handle: usize, attributes: &Attributes<'_>) -> Result<bool, Mistake> {
        let empty = self.sets.get(&self.handles[handle].set).is_some_and(|set| set.mean == 0.0);
        Ok(empty && !attributes.truth("random")?)
    }

    fn other_set(&mut self, flowop: &Flowop, handle: usize, set: Option<&str>) {
        let own = &self.handles[handle].set;
        if let Some(set) = set.filter(|set| set != own) {
            let message = format!(
                "descriptor 0 is already open on `{own}`, so Filebench does not use `{set}`: give each file an `fd`"
            );
            self.notes.line(flowop.line, &flowop.text, NoteKind::Translated, &message);
        }
    }

    fn add(&mut self, fd: u64, set: &str, attributes: &Attributes<'_>) -> Result<usize, Mistake> {
        self.notes.add(
            attributes.find("noreadahead"),
            NoteKind::Unsupported,
            "the kernel is not advised that reads are random",
        );
        self.handles.push(Handle {
            fd,
            set: set.to_owned(),
            sync: attributes.truth("dsync")?,
            direct: attributes.truth("directio")?,
            ..Handle::default()
        });
        Ok(self.handles.len() - 1)
    }
}

/// How often what `wanted` counts is done in one repetition of a flow.
pub(super) fn count(nodes: &[Node<'_>], wanted: &dyn Fn(&Op<'_>) -> f64) -> f64 {
    let one = |node: &Node<'_>| match node {
        Node::One(op) => wanted(op),
        Node::Repeat { times, flow } => *times as f64 * count(flow, wanted),
    };
    nodes.iter().map(one).sum()
}

/// All flowops in order.
pub(super) fn leaves<'n, 'a>(nodes: &'n [Node<'a>]) -> Box<dyn Iterator<Item = &'n Op<'a>> + 'n> {
    Box::new(nodes.iter().flat_map(|node| match node {
        Node::One(op) => Box::new(std::iter::once(op)) as Box<dyn Iterator<Item = &'n Op<'a>> + 'n>,
        Node::Repeat { flow, .. } => leaves(flow),
    }))
}
