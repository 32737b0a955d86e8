//! What srun and its tasks print, apart from each other.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::launch::LastLines;

/// How a task prints its rank and node.
pub(super) const MARK: &str = "benchmaster-task ";

/// Lines of srun (`--label`) by task. Copies share them.
#[derive(Debug, Clone)]
pub(super) struct Output(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    tasks: Vec<Task>,
    srun: LastLines,
}

#[derive(Debug, Default)]
struct Task {
    node: Mutex<Option<String>>,
    errors: LastLines,
    failed: Mutex<bool>,
}

impl Output {
    /// The number of tasks.
    pub(super) fn new(tasks: u32) -> Self {
        let tasks = (0..tasks).map(|_| Task::default()).collect();
        Self(Arc::new(Shared { tasks, srun: LastLines::default() }))
    }

    fn of(&self, rank: u32) -> Option<&Task> {
        self.0.tasks.get(usize::try_from(rank).ok()?)
    }

    pub(super) fn line(&self, line: &str) {
        let line = line.trim_end();
        let labelled = line.split_once(':').and_then(|(rank, text)| Some((rank.trim().parse().ok()?, text)));
        match labelled.and_then(|(rank, text)| Some((self.of(rank)?, text.strip_prefix(' ').unwrap_or(text))))
        {
            Some((task, text)) => match text.strip_prefix(MARK) {
                Some(place) => *task.node.lock() = place.split(' ').nth(1).map(str::to_owned),
                None => task.errors.push(text),
            },
            None => {
                self.0.srun.push(line);
                // `srun: error: n3: task 2: Exited with exit code 1`
                let rank =
                    line.split_once(": task ").and_then(|(_, rest)| rest.split(':').next()?.parse().ok());
                if let Some(task) = rank.and_then(|rank| self.of(rank)) {
                    *task.failed.lock() = true;
                    task.errors.push(line);
                }
            }
        }
    }

    /// The node on which a task has begun.
    pub(super) fn node(&self, rank: u32) -> Option<String> {
        self.of(rank)?.node.lock().clone()
    }

    /// What a task said, and srun of it.
    pub(super) fn errors(&self, rank: u32) -> LastLines {
        self.of(rank).map(|task| task.errors.clone()).unwrap_or_default()
    }

    pub(super) fn srun(&self) -> &LastLines {
        &self.0.srun
    }

    /// Ranks that ended badly, by what srun says.
    pub(super) fn failed(&self) -> Vec<u32> {
        (0..).zip(&self.0.tasks).filter(|(_, task)| *task.failed.lock()).map(|(rank, _)| rank).collect()
    }

    /// A task in words: rank, node, last words.
    pub(super) fn task(&self, rank: u32) -> String {
        let node = self.node(rank).map_or_else(String::new, |node| format!(" on {node}"));
        let said = self.errors(rank).text();
        let last: Vec<&str> = said.lines().rev().take(3).collect();
        let last: String = last.into_iter().rev().collect::<Vec<_>>().join(" | ");
        if last.is_empty() { format!("rank {rank}{node}") } else { format!("rank {rank}{node}: {last}") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_by_task() {
        let output = Output::new(12);
        let lines = [
            "00: benchmaster-task 0 n1",
            "11: benchmaster-task 11 n12\n",
            "11: first: line",
            " 3: sh: 1: exec: /opt/bm: not found",
            "12: of nobody",
            "srun: job 7 queued and waiting for resources",
            "srun: error: n4: task 3: Exited with exit code 127",
            "",
            "x: y",
        ];
        lines.iter().for_each(|line| output.line(line));
        assert_eq!(output.node(0).as_deref(), Some("n1"));
        assert_eq!((output.node(1), output.node(99)), (None, None));
        assert_eq!(output.task(11), "rank 11 on n12: first: line");
        assert!(output.task(3).starts_with("rank 3: sh: 1: exec: /opt/bm: not found | srun: error: n4"));
        assert_eq!(output.task(5), "rank 5");
        assert_eq!(output.failed(), [3]);
        assert_eq!(output.srun().text().lines().count(), 4);
    }
}
