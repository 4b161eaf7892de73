//! Replicas, as torch_xla has them: the same code once for each device, on tensors of its own, and what the replicas tell one
//! another. `spawn` runs them; the names are those of `torch_xla.core.xla_model`.
use crate::insight::INSIGHT;
use crate::nn::Module;
use crate::ops::collective::{Groups, Inside};
use crate::ops::{generator, own_generator, set_generator};
use crate::optim::{Optimizer, optimizer_step as step_alone};
use crate::tensor::{Tensor, on_behalf, refuse, sync};
use crate::{Changes, Error};
use std::panic::Location;
use std::time::Instant;
use xlazy_core::device::device_names;
use xlazy_core::mesh::Mesh;
use xlazy_core::run;
use xlazy_core::thread::{innermost, rank, thread};

pub use crate::data::MpDeviceLoader;
pub use crate::spmd::{
    And, Max, Min, Or, Prod, ReduceOp, Sum, all_gather, all_reduce, all_reduce_many, all_to_all,
    broadcast as collective_broadcast, collective_permute, reduce_scatter,
};

/// Runs a closure once for each of the first `n` devices, and gives what each gave, by rank (`torch_xla.distributed.
/// xla_multiprocessing.spawn`; XLA: replicas). What a rank makes is on its device; what it uses from outside is copied there,
/// and may be read, not written to: models and optimizers are made in the closure. All ranks begin with the same state of the
/// random generator, so their parameters begin alike.
///
/// All ranks run one program, in one launch, each on its own data: a barrier, and a read of what has no value yet, waits until
/// all ranks want one, and they must have recorded the same. Where they have not, the cell ends with the rank and the line; it
/// never hangs. What has a value is read at once, so `if rank == 0 { println!("{loss}") }` is fine behind a step. The closures
/// run one at a time, in the order of the ranks, each up to where all must meet: what is printed comes in the same order every
/// time, and ranks wait for one another by [`rendezvous`] only (a channel or a lock between them would wait for ever).
///
/// Ends the cell where there are fewer devices.
///
/// ```no_run
/// use xlazy::prelude::*;
/// let losses = spawn(8, |rank| {
///     let net = nn::Linear::new(4, 1);
///     let mut opt = optim::SGD::new(net.parameters(), 0.1);
///     let x = Tensor::full([2, 4], rank as f64);
///     let loss = net.forward(&x).square().mean();
///     loss.backward();
///     xm::optimizer_step(&mut opt);   // gradients of all ranks, averaged
///     loss.item()
/// });
/// assert_eq!(losses.len(), 8);
/// ```
#[track_caller]
pub fn spawn<R: Send>(n: usize, f: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let refused = |message: String| Error::Op { op: "spawn", operands: vec![], message };
    if rank().is_some() {
        refused("this is a rank already: ranks start no others".into()).raise();
    }
    if let Some(body) = thread(|t| t.body.get()) {
        refused(format!("the body of `{}` is recorded once, and nothing runs in it", body.op)).raise();
    }
    let mesh = match device_names().and_then(|names| Mesh::of_ranks(n, names.len()).map_err(refused)) {
        Ok(mesh) => mesh,
        Err(e) => e.raise(),
    };
    // What is from outside has its value then, which ranks read.
    sync();
    let state = generator();
    let begin = || {
        own_generator(state);
        std::mem::forget(Inside::of(mesh));
    };
    let ended = run::ranks(&INSIGHT, mesh, &begin, &|rank| (f(rank), generator()));
    // As if the first one had run alone.
    set_generator(ended[0].1);
    ended.into_iter().map(|(given, _)| given).collect()
}

/// Which rank this is; 0 outside of [`spawn`] (`xm.get_ordinal`).
pub fn get_ordinal() -> usize {
    rank().map_or(0, |rank| rank.device.into())
}

/// How many ranks there are; 1 outside of [`spawn`] (`xm.xrt_world_size`, `torch_xla.runtime.world_size`).
pub fn world_size() -> usize {
    run::world_size().unwrap_or(1)
}

/// Whether this is rank 0 (`xm.is_master_ordinal`).
pub fn is_master_ordinal() -> bool {
    get_ordinal() == 0
}

/// [`sync`], by its older name (`xm.mark_step`).
#[track_caller]
pub fn mark_step() {
    sync();
}

/// Adds up the gradients of all ranks, over their number (`xm.reduce_gradients`): one collective of XLA's. Outside of [`spawn`] it
/// changes nothing.
#[track_caller]
pub fn reduce_gradients(optimizer: &dyn Optimizer) {
    let n = world_size();
    if n == 1 {
        return;
    }
    on_behalf(Location::caller(), false, || {
        let with: Vec<(&Tensor, Tensor)> =
            optimizer.parameters().iter().filter_map(|p| Some((p, p.held_grad()?))).collect();
        let grads: Vec<&Tensor> = with.iter().map(|(_, g)| g).collect();
        let sums = all_reduce(Sum, &grads, 1.0 / n as f64, Groups::All);
        let mut changes = Changes::new();
        with.iter().zip(sums).for_each(|((p, _), sum)| changes.set_grad(p, Some(sum)));
        changes.apply();
    });
}

/// Averages the gradients over all ranks, takes a step and runs it (`xm.optimizer_step` with `barrier=True`). Outside of [`spawn`] it is
/// [`optim::optimizer_step`](crate::optim::optimizer_step).
#[track_caller]
pub fn optimizer_step(optimizer: &mut dyn Optimizer) {
    reduce_gradients(optimizer);
    step_alone(optimizer);
}

/// Gives all ranks the parameters and buffers of rank 0 (`xm.broadcast_master_param`).
#[track_caller]
pub fn broadcast_master_param(module: &(impl Module + ?Sized)) {
    if world_size() == 1 {
        return;
    }
    on_behalf(Location::caller(), false, || {
        let all = module.named_parameters().into_iter().chain(module.named_buffers());
        let mut changes = Changes::new();
        for (_, t) in all {
            changes.set(&t, collective_broadcast(&t.detach(), 0, Groups::All));
        }
        changes.apply();
    });
    sync();
}

/// Waits until all ranks are at the rendezvous of this name, and gives what each brought, by rank (`xm.rendezvous`). No program runs.
/// Outside of [`spawn`] there is one rank.
///
/// ```
/// use xlazy::prelude::*;
/// assert_eq!(xm::rendezvous("sizes", 3), [3]);
/// ```
#[track_caller]
pub fn rendezvous<T: Clone + Send + Sync + 'static>(tag: &str, payload: T) -> Vec<T> {
    let at = innermost(Location::caller());
    match run::rendezvous(tag, Box::new(payload.clone()), at) {
        None => vec![payload],
        Some(Err(e)) => e.raise(),
        Some(Ok(all)) => {
            let one = |brought: &run::Payload| brought.downcast_ref::<T>().cloned();
            let found: Option<Vec<T>> = all.iter().map(one).collect();
            found.unwrap_or_else(|| {
                let why = format!(
                    "at {tag:?} ranks bring values of different types: all must bring a {}",
                    std::any::type_name::<T>()
                );
                refuse("rendezvous", &[], why)
            })
        }
    }
}

/// What all ranks have, put together by a function on the host (`xm.mesh_reduce`): each rank gets the same.
///
/// ```
/// use xlazy::prelude::*;
/// let accuracy = xm::mesh_reduce("accuracy", 0.5, |all| all.iter().sum::<f64>() / all.len() as f64);
/// assert_eq!(accuracy, 0.5);
/// ```
#[track_caller]
pub fn mesh_reduce<T: Clone + Send + Sync + 'static, R>(tag: &str, data: T, reduce: impl FnOnce(&[T]) -> R) -> R {
    reduce(&rendezvous(tag, data))
}

/// How many samples a second a loop takes (`torch_xla.core.xla_model.RateTracker`): [`rate`](RateTracker::rate) since it was asked
/// last, smoothed, and [`global_rate`](RateTracker::global_rate) since the tracker was made. Steps run while the next are recorded,
/// so it is true over several steps, or behind a read.
///
/// ```
/// use xlazy::prelude::*;
/// let mut tracker = xm::RateTracker::new();
/// for batch in Tensor::ones([6, 2]).split(2, 0) {
///     tracker.add(batch.size(0));
///     batch.sum().item();
/// }
/// assert!(tracker.rate() > 0.0 && tracker.global_rate() > 0.0);
/// ```
#[derive(Clone, Debug)]
pub struct RateTracker {
    smooth_factor: f64,
    start: Instant,
    /// When the rate was asked for last, how much had been added by then, and what it was.
    asked: (Instant, f64, Option<f64>),
    count: f64,
}

impl Default for RateTracker {
    fn default() -> Self {
        RateTracker::new()
    }
}

impl RateTracker {
    /// A rate counts 0.6, the one that was told before 0.4.
    pub fn new() -> RateTracker {
        let now = Instant::now();
        RateTracker { smooth_factor: 0.4, start: now, asked: (now, 0.0, None), count: 0.0 }
    }

    /// How much the rate that was told before counts, from 0 (nothing) to below 1.
    pub fn smooth_factor(self, smooth_factor: f64) -> RateTracker {
        RateTracker { smooth_factor, ..self }
    }

    /// So many samples more.
    pub fn add(&mut self, count: usize) {
        self.count += count as f64;
    }

    /// Samples a second since this was asked last, smoothed.
    pub fn rate(&mut self) -> f64 {
        let now = Instant::now();
        let (since, counted, before) = self.asked;
        let rate = per_second(self.count - counted, since, now);
        let rate = before.map_or(rate, |before| (1.0 - self.smooth_factor) * rate + self.smooth_factor * before);
        self.asked = (now, self.count, Some(rate));
        rate
    }

    /// Samples a second since the tracker was made.
    pub fn global_rate(&self) -> f64 {
        per_second(self.count, self.start, Instant::now())
    }
}

fn per_second(count: f64, since: Instant, now: Instant) -> f64 {
    let seconds = now.duration_since(since).as_secs_f64();
    if seconds > 0.0 { count / seconds } else { 0.0 }
}
