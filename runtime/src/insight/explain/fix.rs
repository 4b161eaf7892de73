//! What to do about a cause, with the numbers at hand.
use super::super::record::{LeafRecord, Read, Record, same_place};
use super::super::report::{Class, Place};
use super::align::{Aligned, roots_explain};
use super::inputs::InputDifference;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use xlazy_core::ir::{Input, Step};
use xlazy_core::run::Cause;
use xlazy_core::text::{decides_rounds, location, quote};
use xlazy_core::ty::{DType, Type};
use xlazy_mime::count;

/// What becomes of programs that are needed again: promised only where the cache has room for another one.
fn stay(new: &Record, which: &str) -> String {
    match new.room.full {
        false => format!("{which} stay in the cache"),
        true => format!(
            "the cache, which holds {}, is full: `insight::set_cache_capacity(n)` (or XLAZY_CACHE_BYTES) has room for {which}",
            new.room.capacity
        ),
    }
}

fn once(new: &Record, which: &str) -> String {
    let stay = stay(new, which);
    if new.room.full { stay } else { format!("compiled once, and {stay}") }
}

/// `needed` programs ran in turn, this one among them; `padded` may be one.
pub(super) fn evicted(new: &Record, needed: usize, padded: bool) -> String {
    let pad = if padded { ", or pad the inputs to one shape so that one program serves" } else { "" };
    match needed > new.room.programs {
        true => format!(
            "the cache holds {}, and {needed} ran in turn: `insight::set_cache_capacity({needed})` (or \
             XLAZY_COMPILATION_CACHE_SIZE) keeps them all{pad}",
            new.room.capacity
        ),
        false => format!(
            "the cache holds {}, enough for the {} that ran in turn unless their code is larger (XLAZY_CACHE_BYTES){pad}",
            new.room.capacity,
            count(needed, "program")
        ),
    }
}

pub(super) fn control_flow(read: Place) -> String {
    if decides_rounds(read) {
        return format!(
            "the value read at {} decides how many rounds the loop has: `sync()` at the end of each, so that every round is the \
             same program, or always run as many and mask what is too much (`where_`)",
            location(read)
        );
    }
    format!(
        "the ops depend on the value read at {}: choose on the device with `where_(&condition, &a, &b)`, so that one program \
         serves both ways",
        location(read)
    )
}

pub(super) fn dtype(d: &InputDifference, known: &[Arc<Record>]) -> String {
    let (Some(was), Some(now)) = (&d.was, &d.now) else {
        return "convert where the data come in, before the step".into();
    };
    // A copy of a result (`detach`) has its line.
    let computed =
        |made: bool, line: Option<u64>| made || line.is_some_and(|l| known.iter().any(|r| r.lines.contains(&l)));
    let was = Made { dtype: was.dtype, at: d.was_at.unwrap_or(d.at), computed: computed(d.was_computed, d.was_line) };
    let now = Made { dtype: now.dtype, at: d.at, computed: computed(d.computed, Some(d.line)) };
    wider(was, now)
}

/// An input, and whether an op made it or it is data of the host's.
struct Made {
    dtype: DType,
    at: Place,
    computed: bool,
}

/// Data come as one dtype in every step: the one that holds the values of both. A conversion would be a program, too.
fn wider(was: Made, now: Made) -> String {
    let promoted = was.dtype.promote(now.dtype);
    // Broken numbers are doubled by accident more often than on purpose.
    let both = if (was.dtype, now.dtype) == (DType::F32, DType::F64) { was.dtype } else { promoted };
    let narrower = if both == was.dtype { now.dtype } else { was.dtype };
    let holds = match promoted == both {
        true => format!(": {} holds what {} does, not the other way round", both.name(), narrower.name()),
        false => String::new(),
    };
    if was.computed || now.computed {
        let one = |made: &Made| match made.computed {
            true => format!("convert what is computed at {} (`.to({both:?})`, in that line)", location(made.at)),
            false => format!("make the data {} before they become a tensor at {}", both.name(), location(made.at)),
        };
        let which = match (both == was.dtype, both == now.dtype) {
            (true, _) => one(&now),
            (_, true) => one(&was),
            _ => format!("{}, and {}", one(&was), one(&now)),
        };
        return format!("{which}, so that every step takes {}{holds}", both.name());
    }
    let at = |at: Place| format!("become a tensor at {}", location(at));
    let which = match (both == was.dtype, both == now.dtype) {
        (true, _) => format!("the data {} before they {}", both.name(), at(now.at)),
        (_, true) => format!("the data {} before they {}, too", both.name(), at(was.at)),
        _ if was.at == now.at => format!("both {} before they {}", both.name(), at(now.at)),
        _ => format!(
            "both {}, which holds the values of {} and {}, where the data come in",
            both.name(),
            was.dtype.name(),
            now.dtype.name()
        ),
    };
    format!(
        "make {which}{holds}. With `.to({both:?})` convert once, before the loop: within the step it is another program for each \
         dtype"
    )
}

pub(super) fn swapped() -> String {
    "the same inputs in another order: hand them over in the same order in every step".into()
}

pub(super) fn converted(new: &Record, was: DType, now: DType) -> String {
    format!(
        "convert in every step or in none: {} and {} are a program each, {}",
        was.name(),
        now.name(),
        once(new, "both")
    )
}

/// An operand came as another kind of number, or as a tensor where it was a number.
pub(super) fn operand(class: Class, both_numbers: bool, was: DType) -> String {
    match (class, both_numbers) {
        (_, true) => format!(
            "write the number alike in every step, `2.0` or `2`, or make the tensor {} (`.to({was:?})`), which takes both alike",
            was.name()
        ),
        (Class::Dtype, false) => format!("keep the dtype: convert with `.to({was:?})` before the step"),
        _ => "hand it over as the same in every step: always a number, or always a tensor".into(),
    }
}

pub(super) fn another_model(new: &Record, programs: usize) -> String {
    let stay = match programs > new.room.programs {
        true => format!(
            "while the cache, of at most {} now, has room for all: `insight::set_cache_capacity({programs})`",
            new.room.programs
        ),
        false => format!("and {}", stay(new, "all of them")),
    };
    format!("another model, or the same built with other sizes: expected once for each, {stay}")
}

/// A read that runs what an earlier line left pending.
pub(super) fn takes_up(new: &Record, pending: &Step) -> String {
    let of = format!("the line at {}", location(pending.at));
    let what = match new.named(pending) {
        Some(name) => format!("`{name}`, which {of} left pending"),
        None => format!("what {of} left pending"),
    };
    format!("the read runs {what}: `sync()` after making it, then it is data here")
}

/// State that an earlier step made takes the place of another input.
pub(super) fn taken_up() -> String {
    "expected once: this step takes up what an earlier one made, where the first took another input. The step is compiled once \
     if it begins with data of its own: from the host, or a `copy()` and `sync()` before the loop (a small program)"
        .into()
}

pub(super) fn never_synced(kept: usize, optimizer: bool) -> String {
    let end = if optimizer { "`optimizer_step(&mut optimizer)` or `sync()`" } else { "`sync()`" };
    format!(
        "nothing was synced since the last read, so this runs {} of earlier rounds again, and grows with every round: end each \
         with {end}, then all rounds are one program",
        count(kept, "op")
    )
}

/// A tensor that the program itself makes has another size.
pub(super) fn made_here(seen: &Seen, was: &Type, now: &Type) -> String {
    let all =
        |d: usize| seen.sizes(d).into_iter().chain([was.shape.get(d), now.shape.get(d)].into_iter().flatten().copied());
    let largest: Vec<usize> = (0..now.shape.len()).map(|d| all(d).max().unwrap_or(0)).collect();
    let mut shapes: Vec<String> = Vec::new();
    for ty in seen.types.iter().chain([was, now]) {
        if !shapes.contains(&ty.shape.to_string()) {
            shapes.push(ty.shape.to_string());
        }
    }
    let shapes = shapes.join(", ");
    let d = (0..now.shape.len()).find(|&d| was.shape.get(d) != now.shape.get(d)).unwrap_or(0);
    let mut sizes: Vec<usize> = all(d).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let pad = list(&buckets(&sizes));
    format!(
        "the program makes it, so each size ({shapes}) is a program: make the largest, {largest:?}, in every step and mask what is too \
         much (`where_`), or make it on the host (`Tensor::from_vec`), where `.dynamic({d}).buckets([{pad}])` applies"
    )
}

fn list(all: &[usize]) -> String {
    all.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")
}

/// The same of sizes in any order.
fn padding(mut sizes: Vec<usize>) -> Vec<usize> {
    sizes.sort_unstable();
    sizes.dedup();
    buckets(&sizes)
}

/// Sizes to pad to, fewer than there are: the powers of two around them, or the largest alone.
fn buckets(sizes: &[usize]) -> Vec<usize> {
    let mut all: Vec<usize> = sizes.iter().map(|s| s.next_power_of_two()).collect();
    all.sort_unstable();
    all.dedup();
    match sizes.len() > 2 && all.len() < sizes.len() {
        true => all,
        false => vec![sizes.iter().copied().max().unwrap_or(1)],
    }
}

pub(super) fn shape(
    was: Option<&Type>,
    now: Option<&Type>,
    new: &Record,
    old: &Record,
    seen: &Seen,
    made_at: Option<Place>,
) -> String {
    let (Some(was), Some(now)) = (was, now) else { return "pad to one shape".into() };
    let made = made_at.and_then(quote).unwrap_or_default();
    let calls = |name: &str| made.contains(&format!("{name}("));
    if calls(".buckets") {
        let bucket = (0..now.shape.len()).find(|&d| was.shape.get(d) != now.shape.get(d)).map(|d| now.shape[d]);
        return format!(
            "the bucket {} is used for the first time: expected once for each bucket",
            bucket.map_or(String::new(), |b| b.to_string())
        );
    }
    if seen.depends_on_data {
        let sizes: Vec<usize> = seen
            .sizes(0)
            .into_iter()
            .chain([was.shape.first(), now.shape.first()].into_iter().flatten().copied())
            .collect();
        let instead = match () {
            _ if calls(".nonzero") => &*format!(
                "pad the positions, as in `n.dynamic(0).buckets([{}])`: one program for each bucket",
                list(&padding(sizes))
            ),
            _ if calls(".unique") => {
                "how many values differ is known only then. Keep them all, sorted (`x.sort(0, false)`), and take each value's \
                 first with a mask: `s.diff(1, 0).ne(0.0)` says where the next one begins"
            }
            _ => "keep the shape with `where_(&mask, &x, 0.0)` or multiply by the mask",
        };
        return format!("the size depends on the data ({} became {}): {instead}", was.shape, now.shape);
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
    if let Some(joins) = ["cat", "stack"].into_iter().find(|op| calls(op)) {
        return format!(
            "it grows by `{joins}` (dimension {d} has been {}): allocate it once at its largest size, write at a position \
             (`index_copy`), and mask what is not filled",
            list(&sizes)
        );
    }
    let others: Vec<usize> = (0..was.shape.len()).filter(|&e| e != d && was.shape[e] != now.shape[e]).collect();
    let refuses = new.steps.iter().find(|s| s.op.name.starts_with("conv") || s.op.name.ends_with("_pool"));
    if let Some(op) = refuses.map(|s| s.op.name).or((!others.is_empty()).then_some("")) {
        let largest = largest(was, now);
        let why = match op {
            "" => String::new(),
            op => format!(" (`.dynamic` is refused by {op})"),
        };
        let drop = if d == 0 && others.is_empty() && b < a { "drop the short last batch, or " } else { "" };
        return format!(
            "{} became {}: {drop}pad the data on the host to {largest:?} in every step and mask what is too much{why}",
            was.shape, now.shape
        );
    }
    if d == 0 && b < a && sizes.len() == 2 {
        return format!(
            "a short last batch: `drop_last: true` in the loader's options, or pad {b} rows to {a} and mask them out: \
             `.dynamic(0).buckets([{a}])` on the batch"
        );
    }
    let (least, most) = (sizes[0].max(1), sizes[sizes.len() - 1]);
    if pad.len() == 1 && most / least > 16 {
        return format!(
            "dimension {d} has been {}: padding {least} to {most} would be {} times the work. A program for each, compiled once, \
             is better while the sizes are few",
            list(&sizes),
            most / least
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

/// The sizes that hold both.
fn largest(a: &Type, b: &Type) -> Vec<usize> {
    a.shape.iter().zip(b.shape.iter()).map(|(a, b)| *a.max(b)).collect()
}

/// What the history says of an input whose shape changes.
pub(super) struct Seen {
    pub depends_on_data: bool,
    types: Vec<Type>,
}

impl Seen {
    /// The types that the input made at `at`, or of that name, has had in the programs of this sync.
    pub fn of(new: &Record, at: Place, name: Option<&str>, known: &[Arc<Record>]) -> Seen {
        let data_dependent = |s: &Step| matches!(s.op.name, "nonzero" | "masked_select");
        // What is made where a value was read got its size from it.
        let depends_on_data = new.steps.iter().any(data_dependent) || new.reads.iter().any(|r| same_place(r.at, at));
        let here = known.iter().filter(|r| same_place(r.site, new.site) && r.is_read() == new.is_read());
        let named = |l: &LeafRecord| name.is_some() && l.name.as_deref() == name;
        let leaves = here.flat_map(|r| r.leaves.iter()).filter(|l| !l.scalar && (same_place(l.at, at) || named(l)));
        Seen { depends_on_data, types: leaves.map(|l| l.ty.clone()).collect() }
    }

    /// The same of what an op makes; `past` is what it was before.
    pub fn of_step(new: &Record, step: &Step, past: &[&Step]) -> Seen {
        let depends_on_data = new.reads.iter().any(|r| same_place(r.at, step.at));
        Seen { depends_on_data, types: past.iter().map(|s| s.ty.clone()).collect() }
    }

    fn sizes(&self, d: usize) -> Vec<usize> {
        self.types.iter().filter_map(|t| t.shape.get(d).copied()).collect()
    }
}

/// An op's name without the form of it that healing chose.
pub(super) fn as_users_say(op: &'static str) -> &'static str {
    op.split('.').next().unwrap_or(op)
}

/// The attribute at `k`; `past` is what the op was in earlier programs.
pub(super) fn attribute(
    class: Class,
    name: &str,
    step: &Step,
    old: &Step,
    k: usize,
    past: &[&Step],
    new: &Record,
) -> String {
    let (op, was) = (as_users_say(step.op.name), old.attrs[k].to_string());
    let mut values: Vec<String> = Vec::new();
    for s in past.iter().copied().chain([old, step]) {
        let value = s.attrs.get(k).map(ToString::to_string).unwrap_or_default();
        if !values.contains(&value) {
            values.push(value);
        }
    }
    // A second value may be the last one; a third tells that there will be more.
    let been = match values.len() {
        0..=2 => String::new(),
        3 => format!(" and has a third value ({})", values.join(", ")),
        n => format!(" and has a {n}th value ({})", values.join(", ")),
    };
    match class {
        _ if name == "has_max" || name == "has_min" => {
            format!("which bounds {op} has is part of the program: always give both (`clamp(0.0, f64::INFINITY)`)")
        }
        _ if name == "dim" || name == "dims" => {
            format!("{op} along another dimension is another program: expected once for each, and {}", stay(new, "all"))
        }
        Class::Index | Class::Shape if name != "shape" && step.ty.shape != old.ty.shape => {
            let all = past.iter().map(|s| &s.ty).filter(|t| t.shape.len() == step.ty.shape.len());
            let largest = all.fold(largest(&step.ty, &old.ty), |most, t| {
                most.iter().zip(t.shape.iter()).map(|(a, b)| *a.max(b)).collect()
            });
            format!(
                "`{name}` of {op} decides how large the result is{been}: take the largest, {largest:?}, in every step and mask \
                 what is too much (`where_`)"
            )
        }
        Class::Dtype => {
            let (was, now) = (old.ty.dtype, step.ty.dtype);
            format!(
                "the dtype is part of the program: keep one in every step; {} holds the values of {} and {}",
                was.promote(now).name(),
                was.name(),
                now.name()
            )
        }
        Class::Index => format!(
            "`{name}` of {op} is part of the program{been}: keep it fixed, or select by a tensor of positions \
             (`index_select`), which is data"
        ),
        _ => format!(
            "`{name}` of {op} is part of the program{been}: keep it at {was}; values that come by turns are a program each, \
             {}",
            once(new, "all")
        ),
    }
}

/// A buffer is given away from now on, or no longer; `holder` is a variable that keeps it.
pub(super) fn donation(donated: bool, holder: Option<&String>) -> String {
    match donated {
        false if holder.is_some() => {
            let name = holder.map_or("", String::as_str);
            format!(
                "`{name}` holds the old value at every step, and copying it each time would not pay: drop `{name}` before the \
                 step, or keep what you need of it (a number, a part)"
            )
        }
        true => "nothing holds the old value any more, so its buffer is reused: expected once".into(),
        false => "something holds the old value at every step (a variable, a kept result that needs gradients), and copying it \
                  each time would not pay: drop it, or `detach()` what you keep"
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

/// `shared` of the ops that the read runs are the step's.
pub(super) fn early_read(new: &Record, old: &Record, shared: usize) -> String {
    if new.site.file() == old.site.file()
        && new.site.line() > old.site.line()
        && let Some(last) = new.steps.last()
        && last.at.file() == old.site.file()
        && last.at.line() > old.site.line()
    {
        return format!(
            "the value comes from the line at {}, behind the {} at {}: move that line before it, then the value is there \
             when it is read",
            location(last.at),
            old.cause.name(),
            location(old.site)
        );
    }
    let left = match new.left_pending {
        0 => String::new(),
        1 => " (1 other result stays pending)".into(),
        n => format!(" ({n} other results stay pending)"),
    };
    let ops = count(new.steps.len(), "op");
    if new.cause == Cause::DeviceChange {
        return format!(
            "move what has its value, data before the step or a result after `sync()`: that runs nothing{left}; compiled once, the \
             move costs {ops} each time"
        );
    }
    if shared < new.steps.len() {
        return format!(
            "compute it in every step and read it after the barrier: keep it in a variable before `sync()`{left}; compiled once, \
             the read costs {ops} each time, {shared} of which the step runs anyway"
        );
    }
    format!(
        "read after the barrier, when the value is there already: move this line behind `sync()`{left}; compiled once, the \
         read costs {ops} each time"
    )
}

pub(super) fn mode(new: &Record, training: bool) -> String {
    let (now, before) = if training { ("training", "evaluation") } else { ("evaluation", "training") };
    format!("expected once for each mode: {now} is another program than {before}, and {}", stay(new, "both"))
}

/// Parameters were frozen, or thawed, or one in place of another.
pub(super) fn frozen(new: &Record, gone: usize, came: usize) -> String {
    let ops = match (gone, came) {
        (0, came) => format!("{} more", count(came, "op")),
        (gone, 0) => format!("{} fewer", count(gone, "op")),
        (gone, came) => format!("{} new and {gone} gone", count(came, "op")),
    };
    format!(
        "expected once for each set of parameters that are trained ({ops}): say before the first step which ones \
         (`requires_grad_`) if it is to be one program; {}",
        stay(new, "sets that come by turns")
    )
}

/// State that the first step made, at `at`: what would have made the first step the same program, where that is known.
pub(super) fn warm_up(new: &Record, old: &Record, aligned: &Aligned, made: &Type, at: Place) -> String {
    let expected = "expected once: the second step takes up what the first made";
    let news: Vec<&Step> = aligned.only_new.iter().map(|&i| &new.steps[i as usize]).collect();
    let late = |s: &&Step| s.at.file() == new.site.file() && s.at.line() > new.site.line();
    if let Some(first) = news.first().filter(|_| news.iter().all(late)) {
        return format!(
            "{expected}. The line at {} runs after the {} at {} and so in the next step's program: move it before",
            location(first.at),
            new.cause.name(),
            location(new.site)
        );
    }
    let zero = match made.dtype {
        DType::F32 | DType::F64 => format!("0.0{}", made.dtype.name()),
        DType::I32 | DType::I64 => format!("0{}", made.dtype.name()),
        _ => return expected.into(),
    };
    let dims = match made.shape.len() {
        0 => "()".to_owned(),
        _ => format!("{:?}", made.shape.iter().collect::<Vec<_>>()),
    };
    let on_host = format!("`Tensor::from_vec(vec![{zero}; {}], {dims})`", made.shape.numel());
    // What the first step made of nothing may come from the host.
    let mut gone = aligned.only_old.iter().map(|&j| &old.steps[j as usize]);
    if news.is_empty() && gone.all(|s| s.op.name == "zeros") {
        return format!(
            "{expected}. To compile once only, make it on the host: {on_host}, which is data from the start"
        );
    }
    // Nothing is what a sum begins with, if all that the second step does more is done to what it took up.
    let mut takes: HashSet<u32> = HashSet::new();
    for (i, step) in new.steps.iter().enumerate() {
        let of_it = |input: &Input| match input {
            Input::Step(s) => takes.contains(s),
            Input::Leaf(l) => new.leaves.get(*l as usize).is_some_and(|leaf| !leaf.scalar && same_place(leaf.at, at)),
        };
        if step.inputs.iter().any(of_it) {
            takes.insert(i as u32);
        }
    }
    let sums = news.iter().all(|s| matches!(s.op.name, "add" | "mul")) && news.iter().any(|s| s.op.name == "add");
    let gradient = quote(at).is_some_and(|line| line.contains(".backward("));
    if sums && !gradient && aligned.only_new.iter().all(|i| takes.contains(i)) {
        return format!(
            "{expected}. To compile once only, begin with zeros from the host where they give the same result: {on_host}"
        );
    }
    expected.into()
}

/// The read that decides how many rounds a loop has, some of which are in the program.
fn rounds(new: &Record) -> Option<Place> {
    let decides = |r: &&Read| decides_rounds(r.at);
    let made = |last: &&Read| {
        let first = new.reads.iter().find(|r| same_place(r.at, last.at));
        first.is_some_and(|first| new.steps.iter().any(|s| first.seq < s.seq && s.seq <= last.seq))
    };
    new.reads.iter().rev().filter(decides).find(made).map(|r| r.at)
}

pub(super) fn structure(new: &Record, old: &Record, aligned: &Aligned, inputs: &[InputDifference]) -> String {
    // One line that was run another number of times: a loop, or a cell run again. With other inputs it is another model.
    let made_before = |line: u64| old.lines.contains(&line) || old.leaves.iter().any(|l| l.line == line);
    let known = |d: &InputDifference| d.now.is_none() || made_before(d.line);
    let joins = |s: &Step| matches!(s.op.name, "cat" | "stack");
    let grown = aligned.pairs.iter().map(|&(i, j)| (&new.steps[i as usize], &old.steps[j as usize]));
    if let Some((a, b)) = grown.into_iter().find(|(a, b)| joins(a) && a.inputs.len() != b.inputs.len()) {
        return format!(
            "the list that is joined at {} has {}, had {}: allocate one tensor at its largest size and write at a position \
             (`index_copy`), or read each after `sync()` and join the values on the host",
            location(a.at),
            count(a.inputs.len(), "tensor"),
            b.inputs.len()
        );
    }
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
        // Most of what the line does, and as much more of each: gradients of the first round lack an op or two.
        let alike = |op: &&u32| of(&new_runs, op) * was == of(&old_runs, op) * now;
        let most = 2 * new_runs.keys().filter(alike).count() > new_runs.len();
        if now != was && now > 0 && was > 0 && most {
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
    if new.is_read()
        && let Some(read) = rounds(new)
    {
        return format!("the rounds of the loop before it are in it: {}", control_flow(read));
    }
    if new.is_read() {
        return format!(
            "{} new and {fewer} gone: each expression that is read is a program, compiled once. What is looked at often can be \
             made in the step, in a variable, and read after `sync()`, which compiles nothing",
            count(more, "op")
        );
    }
    if fewer == 0 && new.roots.len() > old.roots.len() && roots_explain(new, aligned) {
        return format!(
            "{} more for {} that the last sync did not have: compute them in every step, and look at them when wanted, or after \
             `sync()`",
            count(more, "op"),
            count(new.roots.len() - old.roots.len(), "result")
        );
    }
    format!(
        "{} new and {fewer} gone: expected once for each form of the step (a changed model, a branch of the host's); {}",
        count(more, "op"),
        stay(new, "forms that come by turns")
    )
}
