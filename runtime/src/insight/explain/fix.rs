//! What to do about a cause, with the numbers at hand.
use super::super::record::{Record, same_place};
use super::super::report::{Class, Place};
use super::align::Aligned;
use super::{InputDifference, count};
use crate::display::place::location;
use crate::ir::Step;
use crate::op::Type;
use std::collections::HashMap;
use std::sync::Arc;

pub(super) fn evicted(new: &Record) -> String {
    format!(
        "the cache holds {}; raise it with `insight::set_cache_capacity(n)` (or XLAZY_COMPILATION_CACHE_SIZE), or pad the \
         inputs to one shape so that one program serves",
        new.capacity
    )
}

pub(super) fn control_flow(read: Place) -> String {
    format!(
        "the ops depend on the value read at {}: choose on the device with `where_(&condition, &a, &b)`, so that one program \
         serves both ways",
        location(read)
    )
}

pub(super) fn dtype(d: &InputDifference) -> String {
    match &d.was {
        Some(was) => format!(
            "convert where the data come in: `.to({})` on what was made at {}",
            was.dtype.name().to_uppercase(),
            location(d.at)
        ),
        None => "convert where the data come in".into(),
    }
}

/// Sizes to pad to: for a few sizes each of them, for many the powers of two around them.
fn buckets(sizes: &[usize]) -> Vec<usize> {
    let mut all: Vec<usize> = match sizes.len() {
        0..=2 => vec![sizes.iter().copied().max().unwrap_or(1)],
        _ => sizes.iter().map(|s| s.next_power_of_two()).collect(),
    };
    all.sort_unstable();
    all.dedup();
    all
}

pub(super) fn shape(was: Option<&Type>, now: Option<&Type>, new: &Record, old: &Record, seen: &Seen) -> String {
    let (Some(was), Some(now)) = (was, now) else { return "pad to one shape".into() };
    if seen.depends_on_data {
        return format!(
            "the size depends on the data ({} became {}): keep the shape with `where_(&mask, &x, 0.0)` or multiply by the mask",
            was.shape, now.shape
        );
    }
    if was.shape.len() != now.shape.len() {
        return format!("the number of dimensions changed ({} to {}): reshape before the step", was.shape, now.shape);
    }
    let Some(d) = (0..was.shape.len()).find(|&d| was.shape[d] != now.shape[d]) else {
        return "pad to one shape".into();
    };
    let (a, b) = (was.shape[d], now.shape[d]);
    let mut sizes = seen.sizes(d);
    sizes.extend([a, b]);
    sizes.sort_unstable();
    sizes.dedup();
    let pad = buckets(&sizes);
    let list = |all: &[usize]| all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    if d == 0 && b < a && sizes.len() == 2 {
        return format!(
            "a short last batch: `drop_last: true` in the loader's options, or pad {b} rows to {a} and mask them out: \
             `.dynamic(0).buckets([{a}])` on the batch"
        );
    }
    let programs = count(pad.len(), "program");
    let sites = if same_place(new.site, old.site) { "" } else { " (compared with another sync)" };
    format!(
        "dimension {d} has been {}{sites}: pad and mask with `.dynamic({d}).buckets([{}])`, {programs} instead of one for each size",
        list(&sizes),
        list(&pad)
    )
}

/// What the history says of an input whose shape changes.
pub(super) struct Seen {
    pub depends_on_data: bool,
    types: Vec<Type>,
}

impl Seen {
    /// The types that the input made at `at` has had in the programs of this sync.
    pub fn of(new: &Record, at: Place, known: &[Arc<Record>]) -> Seen {
        let data_dependent = |s: &Step| matches!(s.op.name, "nonzero" | "masked_select");
        // What is made where a value was read got its size from it.
        let depends_on_data = new.steps.iter().any(data_dependent) || new.reads.iter().any(|r| same_place(r.at, at));
        let here = known.iter().filter(|r| same_place(r.site, new.site) && r.is_read() == new.is_read());
        let leaves = here.flat_map(|r| r.leaves.iter()).filter(|l| !l.scalar && same_place(l.at, at));
        Seen { depends_on_data, types: leaves.map(|l| l.ty.clone()).collect() }
    }

    fn sizes(&self, d: usize) -> Vec<usize> {
        self.types.iter().filter_map(|t| t.shape.get(d).copied()).collect()
    }
}

pub(super) fn attribute(class: Class, name: &str, step: &Step, was: &str) -> String {
    let op = step.op.name;
    match class {
        Class::Dtype => format!("keep the dtype: convert once, before the step, with `.to({was})`"),
        Class::Index => format!(
            "`{name}` of {op} is part of the program: keep it fixed, or select by a tensor of positions (`index_select`), \
             which is data"
        ),
        _ => format!("`{name}` of {op} is part of the program: keep it at {was}, or pass the number as a tensor"),
    }
}

pub(super) fn donation(donated: bool) -> String {
    match donated {
        true => "nothing holds the old value any more, so its buffer is reused: expected once".into(),
        false => "something still holds the old value (a variable, a kept result that needs gradients): drop it, or \
                  `detach()` what you keep"
            .into(),
    }
}

pub(super) fn roots(new: &Record, old: &Record) -> String {
    format!(
        "the last sync gave {}, this one {}: keep the same tensors alive at every sync, and read values after it",
        count(old.roots.len(), "result"),
        count(new.roots.len(), "result")
    )
}

pub(super) fn early_read(new: &Record) -> String {
    let left = match new.left_pending {
        0 => String::new(),
        1 => " (1 other result stays pending)".into(),
        n => format!(" ({n} other results stay pending)"),
    };
    format!(
        "read after the barrier, when the value is there already: move this line behind `sync()`{left}; compiled once, the \
         read costs {} each time",
        count(new.steps.len(), "op")
    )
}

pub(super) fn mode(training: bool) -> String {
    let (now, before) = if training { ("training", "evaluation") } else { ("evaluation", "training") };
    format!("expected once for each mode: {now} is another program than {before}, and both stay in the cache")
}

/// State that the first step made: had it been there before, the first step would have been this program.
pub(super) fn warm_up(made: &Type) -> String {
    format!(
        "expected once: later steps that take it up find this program. To compile once only, make it before the first step \
         (`Tensor::zeros({:?})`), so that the first step takes it up, too",
        made.shape.iter().collect::<Vec<_>>()
    )
}

pub(super) fn structure(new: &Record, old: &Record, aligned: &Aligned, inputs: &[InputDifference]) -> String {
    // One line that was run another number of times: a loop, or a cell run again. With other inputs it is another model.
    let known = |d: &InputDifference| d.now.is_none() || old.lines.contains(&d.line);
    if inputs.iter().all(known)
        && let Some((step, line)) = match (aligned.only_new.first(), aligned.only_old.first()) {
            (Some(&i), _) => Some((&new.steps[i as usize], new.lines[i as usize])),
            (None, Some(&j)) => Some((&old.steps[j as usize], old.lines[j as usize])),
            (None, None) => None,
        }
    {
        let runs = |r: &Record| -> HashMap<u32, usize> {
            let mut all = HashMap::new();
            let here = r.steps.iter().zip(&r.lines).filter(|(_, l)| **l == line);
            here.for_each(|(s, _)| *all.entry(s.op.id).or_default() += 1);
            all
        };
        let (new_runs, old_runs) = (runs(new), runs(old));
        let of = |all: &HashMap<u32, usize>, op: &u32| all.get(op).copied().unwrap_or(0);
        let (now, was) = (of(&new_runs, &step.op.id), of(&old_runs, &step.op.id));
        // All that the line does, and as much more of each.
        let alike = |op: &u32| of(&new_runs, op) * was == of(&old_runs, op) * now;
        if now != was && now > 0 && was > 0 && new_runs.keys().chain(old_runs.keys()).all(alike) {
            return format!(
                "the line at {} ran {} before this sync, {} before the last one: `sync()` at the end of each round, so that \
                 every round is the same program, or always run {} and mask what is too much (`where_`)",
                location(step.at),
                count(now, "time"),
                count(was, "time"),
                count(now.max(was), "round")
            );
        }
    }
    let (more, fewer) = (aligned.only_new.len(), aligned.only_old.len());
    format!(
        "{} new and {fewer} gone: expected once if you changed the model; do all such changes before training",
        count(more, "op")
    )
}
