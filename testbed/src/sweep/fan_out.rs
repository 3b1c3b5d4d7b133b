//! Runs spread over threads. What comes out depends on nothing but what went in.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;

use super::{Folder, Plans, Sample, Seeded, Shard, SweepError};

/// The samples of every cell, in the order of cells and seeds. Under a shard, those there are.
pub type Samples<S = Sample> = Vec<Vec<S>>;

/// How cells are run.
#[derive(Debug)]
pub struct Work<'a> {
    /// Under seeds 1 to this, but for cells that have one of their own.
    pub seeds: u64,
    /// On so many threads.
    pub threads: usize,
    /// The runs to make; `None`: all have to be there.
    pub compute: Option<Shard>,
    /// Plans already made.
    pub plans: &'a Plans,
}

impl Work<'_> {
    /// Runs every cell under every seed, but for what `folder` knows; `progress` is told how many
    /// of how many runs are done.
    ///
    /// # Errors
    ///
    /// A run can't be made, or the folder can't be written.
    pub fn run<C: Seeded>(
        &self,
        cells: &[C],
        folder: &mut Folder<C::Sample>,
        progress: &mut dyn FnMut(usize, usize),
    ) -> Result<Samples<C::Sample>, SweepError> {
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
                        if sender.send((cell, seed, cell.run(seed, self.plans))).is_err() {
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
            .map(|cell| cell.seeds(self.seeds).filter_map(|seed| sample(cell, seed)).collect())
            .collect())
    }

    fn todo<'c, C: Seeded>(
        &self,
        cells: &'c [C],
        folder: &Folder<C::Sample>,
    ) -> Result<Vec<(&'c C, u64)>, SweepError> {
        let all =
            || cells.iter().flat_map(|cell| cell.seeds(self.seeds).map(move |seed| (cell, seed)));
        let missing: Vec<_> =
            all().filter(|(cell, seed)| folder.known(*cell, *seed).is_none()).collect();
        let Some(shard) = self.compute else {
            return match missing.first() {
                None => Ok(Vec::new()),
                Some((cell, seed)) => Err(SweepError::Incomplete {
                    missing: missing.len(),
                    total: all().count(),
                    first: format!("{} seed {seed}", cell.case()),
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
