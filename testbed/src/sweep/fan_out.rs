//! Runs spread over threads. What comes out depends on nothing but what went in.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use super::{Cell, Folder, Sample, Shard, Shared, SweepError};

/// The samples of every cell, in the order of cells and seeds. Under a shard, those there are.
pub type Samples = Vec<Vec<Sample>>;

/// How cells are run.
#[derive(Debug)]
pub struct Work<'a> {
    /// Under these seeds, but for cells that have one of their own.
    pub seeds: RangeInclusive<u64>,
    /// On so many threads.
    pub threads: usize,
    /// The runs to make; `None`: all have to be there.
    pub compute: Option<Shard>,
    /// What was made for other runs.
    pub shared: &'a Shared,
}

impl Work<'_> {
    /// Runs every cell under every seed, but for what `folder` knows; `progress` is told how many
    /// of how many runs are done.
    ///
    /// # Errors
    ///
    /// A run can't be made, or the folder can't be written.
    pub fn run(
        &self,
        cells: &[Cell],
        folder: &mut Folder,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Samples, SweepError> {
        let todo = self.todo(cells, folder)?;
        let total = todo.len();
        progress(0, total);
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        std::thread::scope(|scope| {
            let (sender, receiver) = mpsc::channel();
            for _ in 0..self.threads.clamp(1, total.max(1)) {
                let (sender, next, stop, todo) = (sender.clone(), &next, &stop, &todo);
                scope.spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        let Some(&(cell, seed)) = todo.get(next.fetch_add(1, Ordering::Relaxed))
                        else {
                            break;
                        };
                        if sender.send((cell, seed, cell.run(seed, self.shared))).is_err() {
                            break;
                        }
                    }
                });
            }
            drop(sender);
            let mut kept = Ok(());
            for (done, (cell, seed, sample)) in receiver.iter().enumerate() {
                kept = kept.and_then(|()| folder.keep(cell, seed, sample?));
                if kept.is_err() {
                    stop.store(true, Ordering::Relaxed);
                }
                progress(done + 1, total);
            }
            kept
        })?;
        let sample = |cell, seed| folder.known(cell, seed).cloned();
        Ok(cells
            .iter()
            .map(|cell| cell.seeds(&self.seeds).filter_map(|seed| sample(cell, seed)).collect())
            .collect())
    }

    fn todo<'c>(
        &self,
        cells: &'c [Cell],
        folder: &Folder,
    ) -> Result<Vec<(&'c Cell, u64)>, SweepError> {
        let all =
            || cells.iter().flat_map(|cell| cell.seeds(&self.seeds).map(move |seed| (cell, seed)));
        let missing: Vec<_> =
            all().filter(|(cell, seed)| folder.known(cell, *seed).is_none()).collect();
        let Some(shard) = self.compute else {
            return match missing.first() {
                None => Ok(Vec::new()),
                Some((cell, seed)) => Err(SweepError::Incomplete {
                    missing: missing.len(),
                    total: all().count(),
                    first: format!("{} seed {seed}", cell.case),
                }),
            };
        };
        // A part is the same whatever is known already.
        let mine: BTreeSet<_> = all()
            .enumerate()
            .filter(|(n, _)| shard.has(*n))
            .map(|(_, (cell, seed))| (cell.digest(), seed))
            .collect();
        let mut seen = BTreeSet::new();
        Ok(missing
            .into_iter()
            .filter(|(cell, seed)| {
                let key = (cell.digest(), *seed);
                mine.contains(&key) && seen.insert(key)
            })
            .collect())
    }
}
