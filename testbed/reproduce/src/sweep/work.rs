//! Runs cells on several threads. The results depend only on the inputs.

use std::collections::BTreeSet;
use std::ops::RangeInclusive;
use std::sync::{Mutex, PoisonError};

use dormouse_analysis::RunSample;
use rayon::ThreadPoolBuilder;
use rayon::iter::{ParallelBridge as _, ParallelIterator as _};

use super::{SharedInputs, SweepError, SweepFolder, SweepShard};

/// Something that gives one sample for each seed.
pub trait SampleSource: Sync {
    /// Name of the source in tables.
    fn case(&self) -> &str;

    /// Digest of everything that the samples depend on, besides the seed.
    fn digest(&self) -> &str;

    /// Seeds that the source is run with if `wanted` are requested.
    fn seeds(&self, wanted: &RangeInclusive<u64>) -> RangeInclusive<u64> {
        wanted.clone()
    }

    /// Runs the cell with one seed, and returns its sample.
    ///
    /// # Errors
    ///
    /// It can't be scheduled, or the run got stuck.
    fn run(&self, seed: u64, shared: &SharedInputs) -> Result<RunSample, SweepError>;
}

/// Samples of every cell, in the order of cells and seeds; in a shard, only those that exist.
pub type Samples = Vec<Vec<RunSample>>;

/// Seeds, threads and shared data with which cells are run.
#[derive(Debug)]
pub struct SweepWork<'a> {
    /// Seeds of all cells, except for cells with a seed of their own.
    pub seeds: RangeInclusive<u64>,
    /// Number of threads on which runs are made.
    pub threads: usize,
    /// Shard whose runs are made; `None` if no run is made, because all have to exist.
    pub compute: Option<SweepShard>,
    /// Plans and jobs that are shared with other runs.
    pub shared: &'a SharedInputs,
}

impl SweepWork<'_> {
    /// Runs every cell with every seed, except runs that `folder` has; `progress` gets the number
    /// of finished runs and of all.
    pub fn run<C: SampleSource>(
        &self,
        cells: &[C],
        folder: &mut SweepFolder,
        progress: &mut (dyn FnMut(usize, usize) + Send),
    ) -> Result<Samples, SweepError> {
        let runs = |cell| C::seeds(cell, &self.seeds).map(move |seed| (cell, seed));
        cells.iter().flat_map(runs).for_each(|(cell, seed)| folder.reuse(cell, seed));
        let todo = self.runs_to_make(cells.iter().flat_map(runs).collect(), folder)?;
        let total = todo.len();
        folder.keep_for(self.compute.unwrap_or(SweepShard::ALL));
        progress(0, total);
        let pool = ThreadPoolBuilder::new().num_threads(self.threads.clamp(1, total.max(1)));
        let pool = pool.build().map_err(|error| {
            SweepError::BadInput(format!("--threads {}: {error}; give fewer", self.threads))
        })?;
        let kept = Mutex::new((0, &mut *folder, progress));
        // Not a parallel iterator of the list itself, which would be cut in halves: runs at the
        // same time should have the same jobs, of which only a few lists are kept.
        let runs = todo.into_iter().par_bridge();
        pool.install(|| {
            runs.try_for_each(|(cell, seed)| {
                let sample = cell.run(seed, self.shared)?;
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let (done, folder, progress) = &mut *kept;
                folder.keep(cell, seed, sample)?;
                *done += 1;
                progress(*done, total);
                Ok::<_, SweepError>(())
            })
        })?;
        let samples = |cell| {
            let seeds = C::seeds(cell, &self.seeds);
            seeds.filter_map(|seed| folder.known(cell, seed).cloned()).collect()
        };
        Ok(cells.iter().map(samples).collect())
    }

    /// Runs that are still to be made. Which runs belong to a shard does not depend on the runs that exist already.
    fn runs_to_make<'c, C: SampleSource>(
        &self,
        all: Vec<(&'c C, u64)>,
        folder: &SweepFolder,
    ) -> Result<Vec<(&'c C, u64)>, SweepError> {
        let is_missing = |(cell, seed): &(&C, u64)| folder.known(*cell, *seed).is_none();
        if let Some(shard) = self.compute {
            let mut seen = BTreeSet::new();
            let mine = all.into_iter().enumerate().filter(|(n, _)| shard.has(*n));
            let mine = mine.map(|(_, run)| run).filter(is_missing);
            return Ok(mine.filter(|(cell, seed)| seen.insert((cell.digest(), *seed))).collect());
        }
        let missing: Vec<_> = all.iter().filter(|run| is_missing(run)).collect();
        match missing.first() {
            None => Ok(Vec::new()),
            Some((cell, seed)) => Err(SweepError::BadInput(format!(
                "{} of {} runs are missing, the first is {} seed {seed}; give the folders of all \
                 shards, made by this same program, or start the shards again: they make what is \
                 missing",
                missing.len(),
                all.len(),
                cell.case()
            ))),
        }
    }
}
