//! Jobs that run together as one workload, with what ends it.

use std::collections::BTreeMap;
use std::time::Duration;

use benchmaster_record::model::{
    Claim, FilePick, Group, OffsetPick, OperationKind, Repeat, RepeatFor, Step, Until, Verify, Workload,
};
use benchmaster_units::{ByteSize, TimeSpan};

use super::files::{Files, JobFiles};
use super::flow::{self, Plan};
use super::reader::Reader;
use super::spec::Spec;
use crate::name_of;
use crate::steps::{self, step, times, to_end_of_file};

/// A job that is imported.
pub(super) struct Part<'a> {
    pub(super) reader: Reader<'a>,
    pub(super) spec: Spec,
    pub(super) files: JobFiles,
    /// Name of its group, and of its workload when it is alone.
    pub(super) name: String,
    /// Name of the workload it is in.
    pub(super) workload: String,
}

/// Where each stage begins: at jobs that wait for those before them.
pub(super) fn begin(parts: &mut [Part<'_>]) -> Vec<usize> {
    let mut starts = vec![0];
    for at in 1..parts.len() {
        let start = starts.last().copied().unwrap_or(0);
        let waits = parts[at].spec.wait_for.clone();
        let running = |name: &String| parts[start..at].iter().any(|other| other.spec.name == *name);
        let known = |name: &String| parts[..at].iter().any(|other| other.spec.name == *name);
        let alone = at - start == 1;
        let here = waits.as_ref().is_some_and(running);
        if waits.as_ref().is_some_and(|name| !known(name)) {
            parts[at].reader.wrong(Some("wait_for"), "no job of this name is defined above");
        }
        match (here, alone) {
            (true, false) => {
                let message = "a separate workload after all earlier jobs";
                parts[at].reader.approximated("wait_for", message);
            }
            _ => parts[at].reader.translated("wait_for", "a separate workload after that of the other job"),
        }
        if parts[at].spec.stonewall || here {
            starts.push(at);
        }
    }
    starts
}

/// The workloads of a stage: what its jobs do, and where data are verified afterwards a second one that reads them.
pub(super) fn workloads(
    parts: &mut [Part<'_>],
    files: &Files,
    taken: &dyn Fn(&str) -> bool,
) -> Vec<(String, Workload)> {
    let plans: Vec<Plan> = parts
        .iter_mut()
        .map(|part| flow::group(&mut part.reader, &part.spec, &part.files, files, &part.name))
        .collect();
    let name = free(&joined(parts), taken);
    for part in parts.iter_mut() {
        part.workload.clone_from(&name);
    }
    let verify = verify(parts);
    let (until, groups) = ended(parts, plans);
    let ramp = ramp(parts);
    let names: Vec<String> = parts.iter().flat_map(|part| part.files.filesets.clone()).collect();
    let claims = if parts.iter().any(|part| part.spec.cached) { Claim::Cache } else { Claim::Device };
    let main = Workload {
        filesets: files.describe(&names),
        groups,
        until,
        warm_up: TimeSpan(Duration::from_nanos(ramp)),
        verify: verify.into(),
        trace: parts.iter().any(|part| part.spec.trace),
        claims,
    };
    let back = read_back(parts, files);
    let mut all = vec![(name.clone(), main)];
    all.extend(back.map(|workload| (free(&format!("{name}-verify"), taken), workload)));
    all
}

fn free(name: &str, taken: &dyn Fn(&str) -> bool) -> String {
    let short: String = name.chars().take(58).collect();
    let mut others = (2..).map(|number| format!("{short}-{number}"));
    if taken(name) { others.find(|other| !taken(other)).unwrap_or(short) } else { name.to_owned() }
}

/// A name for jobs that run together.
fn joined(parts: &[Part<'_>]) -> String {
    let names: Vec<&str> = parts.iter().map(|part| part.name.as_str()).collect();
    let text = names.join("-");
    match (names.as_slice(), text.len()) {
        (_, ..=40) => name_of(&text, "jobs"),
        ([first, ..], _) => {
            name_of(&format!("{}-and-{}-more", &first[..first.len().min(40)], names.len() - 1), "jobs")
        }
        ([], _) => "jobs".into(),
    }
}

fn verify(parts: &mut [Part<'_>]) -> bool {
    let any = parts.iter().any(|part| part.spec.verify);
    let all = parts.iter().all(|part| part.spec.verify);
    if any && !all {
        for part in parts.iter_mut().filter(|part| part.spec.verify) {
            part.reader.approximated("verify", "`verify = true`, for all jobs that run at the same time");
        }
    }
    any
}

fn ramp(parts: &mut [Part<'_>]) -> u64 {
    let longest = parts.iter().map(|part| part.spec.ramp).max().unwrap_or(0);
    for part in parts.iter_mut().filter(|part| part.spec.ramp != longest) {
        part.reader
            .approximated("ramp_time", "the longest one counts for all jobs that run at the same time");
    }
    longest
}

/// Limits that end every group where its job ends.
///
/// A workload has one limit for all workers. Where jobs differ, or something follows the last operation, the flow is
/// done once, and what it did before is repeated in it as often as the job needs; jobs for which that is not possible
/// end with the longest one.
fn ended(parts: &mut [Part<'_>], plans: Vec<Plan>) -> (Until, Vec<Group>) {
    let longest = parts.iter().filter_map(|part| part.spec.runtime).max();
    let span = |nanos: u64| TimeSpan(Duration::from_nanos(nanos));
    let data: Vec<&Plan> = plans.iter().filter(|plan| !plan.ends_by_files).collect();
    let same_bytes = data.windows(2).all(|pair| pair[0].bytes == pair[1].bytes);
    let same_time = parts.windows(2).all(|pair| pair[0].spec.runtime == pair[1].spec.runtime);
    let follows =
        plans.iter().any(|plan| !plan.at_end.is_empty()) || parts.iter().any(|part| part.spec.delay > 0);
    let limited = |(part, plan): (&Part<'_>, &Plan)| {
        plan.may_nest
            && part.spec.ramp == 0
            && (plan.bytes.is_none() || part.spec.runtime.is_none() || same_time)
    };
    if (!same_bytes || !same_time || follows) && parts.iter().zip(&plans).all(limited) {
        return nested(parts, plans);
    }
    let duration = longest.map(span);
    let bytes = data.iter().map(|plan| plan.bytes).collect::<Option<Vec<u64>>>();
    let most = bytes.and_then(|bytes| bytes.into_iter().max());
    let mut groups = Vec::new();
    for (part, mut plan) in parts.iter_mut().zip(plans) {
        let reader = &mut part.reader;
        if part.spec.runtime != longest {
            reader.approximated("runtime", "the workload ends for all its groups with the longest one");
        }
        if !plan.ends_by_files && plan.bytes != most {
            let message = match most {
                Some(most) => format!("every worker of the workload moves {}", ByteSize(most)),
                None => "the workload ends with its `duration`".to_owned(),
            };
            for name in ["io_size", "number_ios", "size"] {
                if reader.has(name) {
                    reader.approximated(name, message);
                    break;
                }
            }
        }
        if part.spec.delay > 0 {
            reader.unsupported("startdelay", "all groups of this workload start at the same instant");
        }
        if !plan.at_end.is_empty() {
            for name in ["end_fsync", "fsync_on_close"] {
                reader.approximated(name, "after the measured phase");
            }
            plan.group.teardown = plan.at_end;
        }
        groups.push(plan.group);
    }
    (Until { duration, iterations: None, bytes: most.map(ByteSize) }, groups)
}

/// Every flow is done once: a pause, the job's operations as often or as long as the job needs, what follows them.
fn nested(parts: &[Part<'_>], plans: Vec<Plan>) -> (Until, Vec<Group>) {
    let span = |nanos: u64| TimeSpan(Duration::from_nanos(nanos));
    let mut duration = None;
    let groups = parts.iter().zip(plans).map(|(part, mut plan)| {
        let mut flow = Vec::new();
        if part.spec.delay > 0 {
            flow.push(Step { pause: Some(span(part.spec.delay)), ..Step::default() });
        }
        let repeat = match (plan.bytes, part.spec.runtime) {
            (None, Some(time)) => Repeat::For(RepeatFor { duration: span(time) }),
            (bytes, time) => {
                // All jobs have this time, if any.
                duration = time.map(|time| span(time.saturating_add(part.spec.delay))).max(duration);
                let times = bytes.unwrap_or(0) as f64 / plan.bytes_per_repetition;
                Repeat::Times(times.round().max(1.0) as u64)
            }
        };
        let body = std::mem::take(&mut plan.group.flow);
        flow.push(Step { repeat: Some(repeat), flow: body, ..Step::default() });
        flow.extend(plan.at_end);
        plan.group.flow = flow;
        plan.group
    });
    let groups = groups.collect();
    (Until { duration, iterations: Some(1), bytes: None }, groups)
}

/// Reads back what the jobs of a stage have written and verified.
fn read_back(parts: &[Part<'_>], files: &Files) -> Option<Workload> {
    let wanted: Vec<&Part<'_>> = parts.iter().filter(|part| part.spec.read_back).collect();
    let names: Vec<String> = wanted.iter().flat_map(|part| part.files.filesets.clone()).collect();
    if names.is_empty() {
        return None;
    }
    let groups = wanted.iter().map(|part| {
        let spec = &part.spec;
        let mut flow = Vec::new();
        for fileset in &part.files.filesets {
            let file = if part.files.many.is_some() { FilePick::Next } else { FilePick::Own };
            let io_size = Some(ByteSize(spec.smallest_block().max(1)).into());
            let offset = Some(OffsetPick::Sequential);
            flow.push(Step { fileset: Some(fileset.clone()), file: Some(file), ..step(OperationKind::Open) });
            flow.push(to_end_of_file(vec![Step { io_size, offset, ..step(OperationKind::Read) }]));
            flow.push(step(OperationKind::Close));
        }
        let flow = match part.files.many {
            Some(many) => vec![times(many, flow)],
            None => flow,
        };
        Group { flow, ..steps::group(part.name.clone(), spec.clones) }
    });
    Some(Workload {
        filesets: files.describe(&names).into_iter().collect::<BTreeMap<_, _>>(),
        groups: groups.collect(),
        until: Until { iterations: Some(1), ..Until::default() },
        warm_up: TimeSpan::default(),
        verify: Verify::Blocks,
        trace: false,
        claims: Claim::Cache,
    })
}
