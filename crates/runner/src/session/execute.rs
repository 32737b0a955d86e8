//! One workload of a run: what agents are told, and what is read beside them.

use benchmaster_clock::is_virtual;
use benchmaster_design::stream_seed;
use benchmaster_fleet::job::{CollectSpec, Job, Side};
use benchmaster_record::model::Workload;
use benchmaster_record::recording::{HostSamples, Recording, WorkerRecording};
use benchmaster_record::results::{NetworkAchieved, RunKey, ServerUse};
use benchmaster_store::trace::{TraceFacts, TraceWorker, TraceWriter};
use benchmaster_telemetry::sampling::{Sampler, Sampling, SamplingConfig, Watched as Looked};
use benchmaster_trace::TraceSink;
use benchmaster_workload::cache::CacheControl;
use benchmaster_workload::execute::Edge;
use benchmaster_workload::target::Target;

use super::super::crew::{CrewError, Moment};
use super::super::faults::Faults;
use super::super::server_use::{
    Reading, SERVER_AGENT, ServerSampler, disk_samplers, note_arrivals, start_monotonic_ns,
};
use super::super::services::Reached;
use super::super::setup;
use super::super::{RunError, RunEvent};
use super::Runner;
use super::failure;
use benchmaster_diagnosis::validity::machines::LabLook;
use benchmaster_study::settings::{self, Launcher, Settings};

/// What was measured, and what others say of it.
pub(super) struct Executed {
    pub(super) recording: Recording,
    pub(super) server_use: Option<ServerUse>,
    pub(super) lab: Option<LabLook>,
    /// By the wire of a lab.
    pub(super) carried: Option<NetworkAchieved>,
}
impl Runner<'_> {
    fn job(
        &self,
        key: RunKey,
        settings: &Settings,
        reached: &Reached,
        name: &str,
        workload: &Workload,
    ) -> Job {
        let label = format!("run/{}/{}/{name}", key.treatment, key.replicate);
        let watch = match &reached.target {
            Target::Directory(path) => Looked { mount: Some(path.clone()), ..Looked::default() },
            Target::Nfs(target) => {
                Looked { server_ports: vec![target.options.nfs_port()], ..Looked::default() }
            }
        };
        let sampling = settings.sampling.enabled.then(|| SamplingConfig {
            interval: settings.sampling.interval.0,
            samplers: settings.sampling.samplers.clone(),
            watch,
            ..SamplingConfig::default()
        });
        let collect = settings.collect.iter().map(|collect| CollectSpec {
            name: collect.name.clone(),
            command: collect.command.clone(),
            // Without a host of its own the server is on this one, as the clients are.
            on: if settings.has_server_agent() { setup::side(collect.on) } else { Side::Clients },
            limit: collect.limit.0,
        });
        Job {
            name: name.to_owned(),
            workload: workload.clone(),
            stagger: settings.clients.stagger.0,
            seed: stream_seed(self.study.seed, &label),
            fileset_seed: stream_seed(self.study.seed, "filesets"),
            interval_ns: settings.run.interval_for(workload.until.duration).nanos(),
            cache: match settings.run.cache {
                settings::CacheControl::Keep | settings::CacheControl::Remount => CacheControl::Keep,
                settings::CacheControl::Drop => CacheControl::Drop,
                settings::CacheControl::Fadvise => CacheControl::Fadvise,
            },
            hook: setup::before_measuring(settings, self.set_up.mounted.as_ref()),
            max_errors: settings.run.max_errors,
            // Where they are found again if this process is killed; agents elsewhere have directories of their own.
            ledgers: matches!(settings.launcher(), Launcher::Threads | Launcher::Local)
                .then(|| self.store.directory().to_owned()),
            trace: is_traced(settings, workload),
            sampling,
            collect: collect.collect(),
        }
    }

    /// What is needed to understand the trace of a workload.
    pub(super) fn trace_facts(&self, workload: &Workload, recording: &Recording) -> TraceFacts {
        let worker =
            |w: &WorkerRecording| TraceWorker { client: w.client, group: w.group.clone(), worker: w.worker };
        TraceFacts {
            workload: recording.workload.clone(),
            series: recording.series.iter().map(|series| series.key.clone()).collect(),
            workers: recording.workers.iter().map(worker).collect(),
            filesets: workload.filesets.clone(),
            fileset_seed: stream_seed(self.study.seed, "filesets"),
        }
    }

    pub(super) fn execute(
        &mut self,
        key: RunKey,
        settings: &Settings,
        reached: &Reached,
        (name, workload): (&str, &Workload),
        trace: Option<&mut TraceWriter>,
    ) -> Result<Executed, CrewError> {
        let job = self.job(key, settings, reached, name, workload);
        let no_client = || CrewError::Failed("no client can do it; this is a bug in benchmaster".into());
        let crew = self.crew.as_mut().ok_or_else(no_client)?;
        let services = &mut self.targets.services;
        let observe = &mut *self.observe;
        let sink = trace.map(|trace| trace as &mut dyn TraceSink);
        let server = services.embedded(settings, reached.network).cloned();
        let (mut before, mut server_use, mut sampling, mut samples) = (None, None, None, None);
        let (mut emulation, mut arrivals) = (Ok(()), Vec::new());
        let labs = &self.labs;
        let (mut cut, seed) = (Ok(None), job.seed);
        let (mut seen, mut look, mut in_lab) = (None, None, Ok(None));
        let faults = Faults::of(self.request.faults, labs, settings);
        let stop = self.request.stop;
        let mut at_moments = |moment: Moment<'_>| {
            match moment {
                Moment::Edge(Edge::Begin) => {
                    if let Some(wired) = services.wired(reached.network) {
                        emulation = wired.begin();
                    }
                    if settings.lab.is_some() {
                        seen = Some((labs.look_at_server(), labs.look_at_clients(settings)));
                        in_lab = labs.begin().map(|()| None);
                    }
                    if let Some(server) = &server {
                        server.arrivals().watch();
                        let queues = services.wired(reached.network).and_then(|wired| wired.sampler());
                        let server_sampler: Box<dyn Sampler> = Box::new(ServerSampler(server.clone()));
                        let samplers =
                            [server_sampler].into_iter().chain(queues).chain(disk_samplers(server)).collect();
                        sampling = job.sampling.as_ref().map(|config| {
                            // Those of the system are read where the clients are.
                            let config = SamplingConfig { samplers: Some(Vec::new()), ..config.clone() };
                            Sampling::start(&config, samplers)
                        });
                        before = Some(Reading::now(server));
                    }
                    faults.iter().for_each(Faults::begin);
                }
                Moment::Edge(Edge::End) => {
                    if let Some((server, before)) = server.as_ref().zip(before.as_ref()) {
                        arrivals = server.arrivals().noted();
                        server_use = Some(before.until(&Reading::now(server), name));
                    }
                    samples = sampling.take().map(Sampling::stop);
                    if let Some((server, clients)) = seen.take() {
                        if in_lab.is_ok() {
                            in_lab = labs.carried();
                        }
                        look = Some(LabLook {
                            server: server.zip(labs.look_at_server()),
                            server_address: benchmaster_lab::network::server_address().to_string(),
                            clients,
                        });
                    }
                    if let Some(wired) = services.wired(reached.network).filter(|_| emulation.is_ok()) {
                        emulation = wired.end();
                    }
                }
                Moment::Edge(Edge::Cut) => {
                    faults.iter().for_each(Faults::wait);
                    cut = failure::cut(settings, server.as_deref(), labs, seed, self.request.stop);
                }
                Moment::Progress(progress, clients) => {
                    observe(RunEvent::Progress { workload: name, progress, clients });
                }
            }
        };
        let recording = std::thread::scope(|threads| {
            if let Some(faults) = &faults {
                threads.spawn(|| faults.work());
            }
            let recording =
                crew.perform(&reached.place, &job, settings.clients(), sink, stop, &mut at_moments);
            faults.iter().for_each(Faults::end);
            recording
        });
        // Before what became of the clients: a server that did not come back is why they failed.
        let cut =
            cut.map_err(|problem| CrewError::Failed(format!("the server could not be cut: {problem}")))?;
        let mut recording = recording?;
        if let Some(witness) = &mut recording.witness {
            witness.cut = cut;
        }
        emulation.map_err(RunError::from)?;
        let carried = in_lab?;
        let of_kernel = look.as_ref().and_then(|look| look.server.as_ref());
        if let Some((before, after)) = of_kernel {
            server_use = before.until(after, name);
        }
        let start = start_monotonic_ns(&recording);
        note_arrivals(&mut recording, &arrivals, start, settings.clients());
        if let Some(mut samples) = samples {
            let points = samples.series.iter_mut().flat_map(|series| &mut series.points);
            points.for_each(|point| point.time_ns -= start);
            recording.samples.push(HostSamples { agent: SERVER_AGENT.into(), samples });
        }
        Ok(Executed { recording, server_use, lab: look, carried })
    }
}

/// Whether every call is recorded: on virtual time latencies are exact, and only a trace keeps them so.
pub(super) fn is_traced(settings: &Settings, workload: &Workload) -> bool {
    workload.trace || settings.run.trace || is_virtual()
}
