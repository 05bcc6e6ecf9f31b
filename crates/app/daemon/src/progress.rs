//! What happens in the current deployment of a target, or happened in the last one: kept in memory, read as a whole or line by line.
//!
//! ```text
//!   work ─ begin, tell, end ─▶ Progress ─┬─▶ current
//!                                        └─▶ follow: past lines, then each as it comes, then the end
//! ```

use std::sync::{Mutex, PoisonError};

use tokio::sync::watch;

use crate::documents::{Deployment, DeploymentOutcome, Target};

/// Most lines that are kept of a deployment; the rest are left out.
const LINES_MAX: usize = 10_000;

/// The current deployment, or the last one.
pub struct Progress {
    deployment: Mutex<Option<Deployment>>,
    /// Counts changes.
    changes: watch::Sender<u64>,
}

impl Default for Progress {
    fn default() -> Self {
        Self { deployment: Mutex::default(), changes: watch::channel(0).0 }
    }
}

impl Progress {
    /// Takes that a target's deployment begins, in place of the one before.
    pub fn begin(&self, target: &Target, at_s: u64) {
        let deployment =
            Deployment { target: target.number, plan: target.plan.clone(), at_s, lines: Vec::new(), outcome: None };
        self.change(|current| *current = Some(deployment));
    }

    /// Takes lines of the deployment that was begun.
    pub fn tell(&self, lines: Vec<String>) {
        if lines.is_empty() {
            return;
        }
        self.change(|current| {
            if let Some(Deployment { lines: kept, .. }) = current {
                let room = LINES_MAX - kept.len();
                kept.extend(lines.into_iter().take(room));
            }
        });
    }

    /// Takes how it ended.
    pub fn end(&self, outcome: DeploymentOutcome) {
        self.change(|current| {
            if let Some(deployment) = current {
                deployment.outcome = Some(outcome);
            }
        });
    }

    /// The current deployment, or the last one; none since the daemon was started.
    pub fn current(&self) -> Option<Deployment> {
        self.deployment.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Follows the deployment that is current, from its first line.
    pub fn follow(&self) -> Follower {
        let target = self.current().map(|deployment| deployment.target);
        Follower { changes: self.changes.subscribe(), target, told: 0, is_over: false }
    }

    fn change(&self, change: impl FnOnce(&mut Option<Deployment>)) {
        change(&mut self.deployment.lock().unwrap_or_else(PoisonError::into_inner));
        self.changes.send_modify(|count| *count += 1);
    }
}

/// Where a reader of a deployment is.
pub struct Follower {
    changes: watch::Receiver<u64>,
    target: Option<u64>,
    told: usize,
    is_over: bool,
}

/// Something that a reader is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A line.
    Line(String),
    /// The end.
    Ended(DeploymentOutcome),
}

impl Follower {
    /// The next step, as soon as there is one; none after the end, and once another target is deployed.
    pub async fn next(&mut self, progress: &Progress) -> Option<Step> {
        while !self.is_over {
            self.changes.borrow_and_update();
            let step = self.step(progress);
            if step.is_some() || self.is_over {
                return step;
            }
            self.is_over = self.changes.changed().await.is_err();
        }
        None
    }

    fn step(&mut self, progress: &Progress) -> Option<Step> {
        let current = progress.deployment.lock().unwrap_or_else(PoisonError::into_inner);
        let deployment = current.as_ref().filter(|deployment| Some(deployment.target) == self.target);
        let Some(deployment) = deployment else {
            self.is_over = true;
            return None;
        };
        if let Some(line) = deployment.lines.get(self.told) {
            self.told += 1;
            return Some(Step::Line(line.clone()));
        }
        let outcome = deployment.outcome.clone()?;
        self.is_over = true;
        Some(Step::Ended(outcome))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::documents::{TargetState, Way};

    fn target(number: u64) -> Target {
        Target {
            number,
            parent: number - 1,
            plan: "d1".to_owned(),
            way: Way::Drained,
            proposal: number,
            by: "ada".to_owned(),
            at_s: 0,
            state: TargetState::Pending,
            note: None,
        }
    }

    fn outcome() -> DeploymentOutcome {
        DeploymentOutcome { word: "deployed".to_owned(), lines: vec!["all hold it".to_owned()], is_sound: true }
    }

    #[test]
    fn a_reader_gets_past_lines_then_new_ones_then_the_end() {
        let progress = Progress::default();
        progress.begin(&target(1), 7);
        progress.tell(vec!["a".to_owned(), "b".to_owned()]);
        let mut follower = progress.follow();
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let line = |text: &str| Some(Step::Line(text.to_owned()));
        runtime.block_on(async {
            assert_eq!(follower.next(&progress).await, line("a"));
            assert_eq!(follower.next(&progress).await, line("b"));
            let later = async {
                tokio::task::yield_now().await;
                progress.tell(vec!["c".to_owned()]);
                tokio::task::yield_now().await;
                progress.end(outcome());
            };
            let steps = async { (follower.next(&progress).await, follower.next(&progress).await) };
            let ((first, second), ()) = futures_util::future::join(steps, later).await;
            assert_eq!((first, second), (line("c"), Some(Step::Ended(outcome()))));
            assert_eq!(follower.next(&progress).await, None);
        });
    }

    #[test]
    fn a_reader_of_one_deployment_is_told_nothing_of_the_next() {
        let progress = Progress::default();
        progress.begin(&target(1), 7);
        let mut follower = progress.follow();
        progress.begin(&target(2), 8);
        progress.tell(vec!["of another".to_owned()]);
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        assert_eq!(runtime.block_on(follower.next(&progress)), None);
        assert_eq!(progress.current().map(|deployment| deployment.target), Some(2));
    }

    #[test]
    fn lines_are_bounded() {
        let progress = Progress::default();
        progress.begin(&target(1), 7);
        progress.tell(vec![String::new(); LINES_MAX + 1]);
        progress.tell(vec![String::new()]);
        assert_eq!(progress.current().map(|deployment| deployment.lines.len()), Some(LINES_MAX));
    }
}
