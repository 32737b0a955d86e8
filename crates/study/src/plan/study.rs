//! The plan of a study: its treatments, each checked.

use benchmaster_design::GENERATOR;
use benchmaster_record::model::Workload;
use benchmaster_record::results::{NagleEnds, RunParameters, StudyRecord, TreatmentRecord, WorkloadRecord};

use super::treatments;
use crate::diagnostics::Diagnostics;
use crate::file::{StudyFile, TimeOfDay, Treatment};
use crate::settings::Settings;

/// A block with a name.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedBlock {
    pub name: String,
    /// The time of day that is waited for before each of its replicates begins.
    pub at: Option<TimeOfDay>,
    /// All treatments as they are in this block; none when blocks set no parameters.
    pub treatments: Vec<PlannedTreatment>,
}

/// A study that can be run: every treatment has been checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// What the results directory keeps of the study; its `id` is empty.
    pub study: StudyRecord,
    /// The treatments in standard order.
    pub treatments: Vec<PlannedTreatment>,
    /// The blocks that have names, in order; complete replicates go to them in turn.
    pub blocks: Vec<PlannedBlock>,
    /// What the study's author should know.
    pub warnings: Diagnostics,
    /// The file, for treatments that are added later.
    pub(super) file: StudyFile,
}

/// A treatment with everything it sets.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedTreatment {
    /// Its number, levels and label.
    pub record: TreatmentRecord,
    pub settings: Settings,
    /// Its workloads in full, in the order in which a run does them.
    pub workloads: Vec<(String, Workload)>,
    /// The number of the block that it is for, when blocks set parameters.
    pub in_block: Option<u32>,
}

impl PlannedTreatment {
    /// What its runs keep of it.
    pub fn parameters(&self) -> RunParameters {
        let settings = &self.settings;
        let network = &settings.network;
        let delegations = match &settings.lab {
            Some(lab) => Some(lab.delegations),
            None => settings.is_embedded().then_some(settings.server.delegations),
        };
        // The address of the server has no say in it.
        let mount = settings.target.mount_options("127.0.0.1").ok().flatten();
        RunParameters {
            congestion: network.congestion.clone(),
            cwnd_clamp: network.cwnd_clamp,
            mtu: network.mtu,
            server_bandwidth: network.server_bandwidth.map(|bandwidth| bandwidth.0),
            transmit_queues: network.of_queues().map(|_| network.queues.unwrap_or(1)),
            delegations,
            nagle: NagleEnds {
                clients: mount.as_ref().is_some_and(|options| options.nagle),
                server: settings.is_embedded() && settings.server.nagle,
            },
            slots_asked: mount.map(|options| options.slots),
            slots_granted: settings.is_embedded().then_some(settings.server.slots),
            workloads: self.workloads.clone(),
        }
    }
}

impl Plan {
    /// Lists the treatments of a study and checks each of them. `version` is that of the program.
    ///
    /// # Errors
    /// All contradictions of all treatments, at their places in the file.
    pub fn from_study(file: &StudyFile, version: &str) -> Result<Self, Diagnostics> {
        let listed = treatments::list(file)?;
        let (treatments, blocks) = planned(file, &listed.treatments)?;
        let workloads = file
            .base
            .workloads
            .iter()
            .map(|(name, spec)| WorkloadRecord { name: name.clone(), use_name: spec.use_name().to_owned() });
        let order = benchmaster_design::Order::from(file.design.order);
        let study = StudyRecord {
            name: file.study.name.clone(),
            description: file.study.description.clone(),
            text: file.text.clone(),
            id: String::new(),
            seed: file.study.seed,
            generator: GENERATOR.to_owned(),
            design: file.design.kind.name().to_owned(),
            design_details: listed.details,
            order: order.name().to_owned(),
            replicates: file.design.replicates.into(),
            confidence: file.design.confidence,
            primary_response: file.response.clone(),
            factors: file.factors.clone(),
            treatments: treatments.iter().map(|treatment| treatment.record.clone()).collect(),
            stages: Vec::new(),
            workloads: workloads.collect(),
            version: version.to_owned(),
        };
        Ok(Self { study, treatments, blocks, warnings: file.warnings.clone(), file: file.clone() })
    }

    /// The plan with the treatments that were added to a stored study after it had begun. What the file asks for stays as
    /// it is in this plan; whether the stored study is the same is for [`compatible`](super::compatible()) to say.
    ///
    /// # Errors
    /// When an added treatment cannot be run.
    pub fn with_stages(&self, stored: &StudyRecord) -> Result<Self, Diagnostics> {
        let mut plan = self.clone();
        plan.study.stages = stored.stages.clone();
        plan.study.design_details.screen = stored.design_details.screen;
        plan.study.treatments.retain(|treatment| treatment.stage == 0);
        plan.study
            .treatments
            .extend(stored.treatments.iter().filter(|treatment| treatment.stage > 0).cloned());
        (plan.treatments, plan.blocks) = planned(&self.file, &plan.study.treatments)?;
        Ok(plan)
    }

    /// A treatment as it is in a block: what is to be run.
    pub fn treatment(&self, treatment: u32, block: Option<u32>) -> Option<&PlannedTreatment> {
        let in_block =
            block.and_then(|block| self.blocks.get(block as usize)?.treatments.get(treatment as usize));
        in_block.or_else(|| self.treatments.get(treatment as usize))
    }

    /// All treatments, in every block where blocks set parameters.
    pub fn all_treatments(&self) -> impl Iterator<Item = &PlannedTreatment> {
        let in_blocks = self.blocks.iter().flat_map(|block| &block.treatments);
        let plain = self.blocks.iter().all(|block| block.treatments.is_empty());
        self.treatments.iter().filter(move |_| plain).chain(in_blocks)
    }
}

/// The treatments with what they set, and the blocks that have names.
fn planned(
    file: &StudyFile,
    records: &[TreatmentRecord],
) -> Result<(Vec<PlannedTreatment>, Vec<PlannedBlock>), Diagnostics> {
    let planned = |read: Vec<Treatment>, in_block: Option<u32>| {
        let pairs = records.iter().zip(read);
        let treatments = pairs.map(|(record, Treatment { settings, workloads })| PlannedTreatment {
            record: record.clone(),
            settings,
            workloads,
            in_block,
        });
        treatments.collect()
    };
    let rows: Vec<_> = records.iter().map(|treatment| treatment.levels.clone()).collect();
    let read = file.treatments(&rows)?;
    let blocks = (0..).zip(read.blocks).map(|(number, (block, read))| PlannedBlock {
        name: block.name,
        at: block.at,
        treatments: planned(read, Some(number)),
    });
    Ok((planned(read.all, None), blocks.collect()))
}
