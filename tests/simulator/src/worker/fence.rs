//! A fence that stops or kills a simulated process, as SIGSTOP and SIGKILL do.

use std::{
    collections::BTreeMap,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// The fence around all tasks of one process. A killed process does nothing more; a stopped one continues later where
/// it was.
#[derive(Clone, Debug, Default)]
pub(super) struct Fence(Arc<Mutex<State>>);

#[derive(Debug, Default)]
struct State {
    killed: bool,
    /// Number of stops that have not been followed by a continuation yet.
    stops: u32,
    tasks: u64,
    /// The waker of each task that waits at the fence, by the task's number.
    wakers: BTreeMap<u64, Waker>,
}

impl Fence {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a task of the process behind the fence; its result is `None` if the process is killed.
    pub(super) fn around<F: Future>(&self, task: F) -> Fenced<F> {
        let mut state = self.state();
        state.tasks += 1;
        Fenced { fence: self.clone(), number: state.tasks, task: Some(Box::pin(task)) }
    }

    pub(super) fn is_killed(&self) -> bool {
        self.state().killed
    }

    pub(super) fn kill(&self) {
        self.state().killed = true;
        self.wake();
    }

    pub(super) fn stop(&self) {
        self.state().stops += 1;
    }

    pub(super) fn go_on(&self) {
        let mut state = self.state();
        state.stops = state.stops.saturating_sub(1);
        let goes_on = state.stops == 0;
        drop(state);
        if goes_on {
            self.wake();
        }
    }

    fn wake(&self) {
        let wakers = std::mem::take(&mut self.state().wakers);
        for waker in wakers.into_values() {
            waker.wake();
        }
    }
}

/// A task behind a fence.
#[derive(Debug)]
pub(super) struct Fenced<F> {
    fence: Fence,
    number: u64,
    task: Option<Pin<Box<F>>>,
}

impl<F: Future> Future for Fenced<F> {
    type Output = Option<F::Output>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { fence, number, task } = self.get_mut();
        let mut state = fence.state();
        if state.killed {
            drop(state);
            *task = None;
            return Poll::Ready(None);
        }
        let is_known = state.wakers.get(number).is_some_and(|it| it.will_wake(context.waker()));
        if !is_known {
            state.wakers.insert(*number, context.waker().clone());
        }
        if state.stops > 0 {
            return Poll::Pending;
        }
        drop(state);
        let Some(running) = task else { return Poll::Ready(None) };
        match running.as_mut().poll(context) {
            Poll::Ready(done) => {
                *task = None;
                Poll::Ready(Some(done))
            }
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<F> Drop for Fenced<F> {
    fn drop(&mut self) {
        self.fence.state().wakers.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::time::{Instant, sleep};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_stopped_process_goes_on_late_and_a_killed_one_never() {
        let (fence, began) = (Fence::default(), Instant::now());
        let task = tokio::spawn(fence.around(async {
            sleep(Duration::from_millis(10)).await;
            Instant::now()
        }));
        tokio::task::yield_now().await;
        fence.stop();
        sleep(Duration::from_millis(50)).await;
        assert!(!task.is_finished());
        fence.go_on();
        let ended = task.await.expect("it does not panic").expect("it is not killed");
        assert_eq!(ended - began, Duration::from_millis(50));
        let task = tokio::spawn(fence.around(sleep(Duration::from_millis(10))));
        tokio::task::yield_now().await;
        fence.kill();
        assert_eq!(task.await.expect("it does not panic"), None);
        assert_eq!(began.elapsed(), Duration::from_millis(50));
    }
}
