//! What of the acknowledged survived a failure of the server.

use benchmaster_analysis::durability;
use benchmaster_record::results::StudyResults;
use benchmaster_record::witness::Witness;

use super::results::with_levels_of;
use crate::document::{Block, Cell, Columns, Document, Section, Table};
use crate::format;
use crate::overview;

/// What happened to the server and what was found, of each treatment and workload with a witness: the sums over the runs that
/// count.
pub(crate) fn section(results: &StudyResults) -> Section {
    let mut rows: Vec<(u32, &str, Witness)> = Vec::new();
    for treatment in &results.study.treatments {
        for workload in &results.study.workloads {
            let name = workload.name.as_str();
            let runs = overview::counted_runs(results, treatment.index);
            let recordings = runs.flat_map(|run| &run.recordings).filter(|one| one.workload == name);
            let sum = recordings.filter_map(|one| one.witness.clone()).reduce(Witness::and);
            rows.extend(sum.map(|sum| (treatment.index, name, sum)));
        }
    }
    let Some((.., first)) = rows.first() else { return Section::new("durability", "Durability") };
    let how = first.cut.as_ref().map_or_else(
        || "Nothing was cut: what was acknowledged was only read back.".to_owned(),
        |cut| {
            format!(
                "At the end of the measured phase, with files open: {} ({}); it served again after {}.",
                cut.kind.told(),
                cut.how,
                format::time(cut.outage_ns as f64)
            )
        },
    );
    let table = Table::of("Acknowledged as stable, and looked for", rows);
    let table = with_levels_of(table, results, |(treatment, ..)| *treatment)
        .column("workload", |(_, workload, _)| Cell::name(*workload))
        .column("durability", |(treatment, workload, _)| {
            Cell::text(durability(results, *treatment, Some(workload)).name())
        });
    let table = counts(table, |(.., witness)| witness).note(
        "Sums over runs. Newer: content that was written later than what was promised, which is allowed. Names are promised by \
         replies over NFS; data by WRITE with FILE_SYNC or DATA_SYNC, by fsync, and by close where that flushes.",
    );
    Section::new("durability", "Durability").brief([how.into(), Block::Table(table.table())])
}

fn counts<R>(table: Columns<R>, of: impl Fn(&R) -> &Witness) -> Columns<R> {
    type Count = fn(&Witness) -> u64;
    let columns: [(&str, Count); 6] = [
        ("#blocks", |w| w.blocks),
        ("#names", |w| w.names),
        ("#lost", |w| w.lost),
        ("#old", |w| w.old),
        ("#torn", |w| w.torn),
        ("#newer|2", |w| w.newer),
    ];
    columns
        .into_iter()
        .fold(table, |table, (head, count)| table.column(head, |row| Cell::whole(Some(count(of(row))))))
}

/// What was found of the ledger of a workload.
pub fn document(workload: &str, found: &Witness) -> Document {
    let answer = match found.missing() {
        0 => format!(
            "Everything that was acknowledged is there: {} blocks and names.",
            format::count(found.acknowledged())
        ),
        missing => format!(
            "{} of {} acknowledged blocks and names are not there as promised.",
            format::count(missing),
            format::count(found.acknowledged())
        ),
    };
    let table = counts(Table::of("Acknowledged as stable, and looked for", [found]), |row| row);
    let broken = Table::of("The first that were broken", &found.broken)
        .column("file", |broken| Cell::name(&broken.file))
        .column("#offset", |broken| Cell::whole(broken.offset))
        .column("promised by", |broken| Cell::text(broken.promise.name()))
        .column("found", |broken| Cell::text(&broken.found));
    Document {
        kind: "Benchmaster witness",
        title: format!("What was acknowledged to {workload}"),
        lead: Vec::new(),
        sections: vec![
            Section::new("answer", "Answer")
                .brief([Block::Answer(vec![answer]), Block::Table(table.table())]),
            Section::new("broken", "Broken").brief(broken.filled().map(Block::Table)),
        ],
    }
}
