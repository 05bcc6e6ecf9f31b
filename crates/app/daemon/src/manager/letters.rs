//! Letters about events: written, due, taken or not.

use std::{collections::BTreeMap, sync::PoisonError, time::Duration};

use super::{Inner, Manager, Refused};
use crate::{
    archive::ArchiveError,
    core::{
        events::EventChange,
        letters::{after_failure, is_told},
    },
    documents::{Letter, Notification},
    show::timestamp,
};

/// Letters that are remembered; beyond, the oldest dead ones are forgotten.
const LETTERS_MAX: usize = 1000;

/// Letters that nobody has taken yet, as they are in the archive.
#[derive(Default)]
pub(super) struct Letters {
    letters: BTreeMap<u64, Letter>,
    /// Whether some may be due that were not when it was looked last.
    news: bool,
}

impl Letters {
    pub(super) fn waiting(&self) -> usize {
        self.letters.len() - self.dead()
    }

    pub(super) fn dead(&self) -> usize {
        self.letters.values().filter(|letter| letter.next_s.is_none()).count()
    }
}

impl Inner {
    /// Takes letters that are to be told.
    pub(super) fn post(&mut self, letters: Vec<Letter>) {
        self.letters.news |= !letters.is_empty();
        self.letters.letters.extend(letters.into_iter().map(|letter| (letter.id, letter)));
    }
}

impl Manager {
    /// What is told of a change, and to whom; without numbers.
    pub(super) fn letters_about(&self, change: &EventChange) -> Vec<Letter> {
        let config = self.config();
        let told = config.notify.iter().filter(|notify| is_told(change, notify.least));
        let at_s = self.now_s();
        let letter = |to: &str| {
            let notification = Notification {
                kind: format!("event.{}", change.word()),
                timestamp: timestamp(at_s),
                data: change.event().clone(),
            };
            let body = serde_json::to_string(&notification).expect("notifications have only keys that are text");
            Letter { id: 0, to: to.to_owned(), body, at_s, tries: 0, next_s: Some(at_s), failure: None }
        };
        told.map(|notify| letter(&notify.name)).collect()
    }

    /// Letters that are due, oldest first.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn letters_due(&self) -> Result<Vec<Letter>, ArchiveError> {
        let now_s = self.now_s();
        let mut inner = self.inner();
        inner.letters.news = false;
        while inner.letters.letters.len() > LETTERS_MAX {
            let mut letters = inner.letters.letters.values();
            let Some(oldest) = letters.find(|letter| letter.next_s.is_none()).map(|letter| letter.id) else { break };
            self.archive.forget_letter(oldest)?;
            inner.letters.letters.remove(&oldest);
        }
        let is_due = |letter: &&Letter| letter.next_s.is_some_and(|next_s| next_s <= now_s);
        Ok(inner.letters.letters.values().filter(is_due).cloned().collect())
    }

    /// Waits until letters may be due, at most so long.
    pub fn wait_for_letters(&self, at_most: Duration) {
        let inner = self.inner();
        let idle = |inner: &mut Inner| !inner.letters.news && !inner.stop;
        drop(self.due.wait_timeout_while(inner, at_most, idle).unwrap_or_else(PoisonError::into_inner));
    }

    /// Takes that a letter was taken.
    ///
    /// # Errors
    /// [`ArchiveError`]; then it is told once more.
    pub fn letter_taken(&self, letter: &Letter) -> Result<(), ArchiveError> {
        self.archive.forget_letter(letter.id)?;
        self.inner().letters.letters.remove(&letter.id);
        Ok(())
    }

    /// Takes that a letter was not taken.
    ///
    /// # Errors
    /// [`ArchiveError`].
    pub fn letter_failed(&self, letter: Letter, why: String, is_hopeless: bool, luck: f64) -> Result<(), ArchiveError> {
        let letter = after_failure(letter, self.now_s(), why, is_hopeless, luck);
        // It waits all the same if that cannot be kept.
        self.inner().letters.letters.insert(letter.id, letter.clone());
        self.archive.keep_letter(&letter)
    }

    /// Letters that nobody has taken yet, oldest first.
    pub fn letters(&self) -> Vec<Letter> {
        self.inner().letters.letters.values().cloned().collect()
    }

    /// Has a letter tried again at once, as if it were new.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn retry_letter(&self, id: u64, by: &str) -> Result<Letter, Refused> {
        let letter = Letter { tries: 0, next_s: Some(self.now_s()), ..self.find_letter(id)? };
        self.archive.keep_letter(&letter)?;
        self.inner().post(vec![letter.clone()]);
        self.due.notify_all();
        self.audit(by, &format!("had letter {id} to {} tried again", letter.to))?;
        Ok(letter)
    }

    /// Forgets a letter.
    ///
    /// # Errors
    /// [`Refused`].
    pub fn drop_letter(&self, id: u64, by: &str) -> Result<(), Refused> {
        let letter = self.find_letter(id)?;
        self.letter_taken(&letter)?;
        self.audit(by, &format!("dropped letter {id} to {}", letter.to))?;
        Ok(())
    }

    fn find_letter(&self, id: u64) -> Result<Letter, Refused> {
        let found = self.inner().letters.letters.get(&id).cloned();
        found.ok_or_else(|| Refused::NotFound(format!("there is no letter {id}; espalierd letters lists them")))
    }
}
