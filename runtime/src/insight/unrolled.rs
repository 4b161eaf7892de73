//! Programs that write out the rounds of a loop one by one: found by their repetition, and told what has one body for all rounds.
use super::mode::Derived;
use super::record::Record;
use super::report::Unrolled;
use foldhash::{HashMap, HashMapExt};
use std::ops::Range;
use xlazy_core::ir::Input;
use xlazy_core::run::{Cause, ROUNDS, Rounds, longer_in_each, repetition};
use xlazy_core::text::{Source, Spot, callers, cell, function, kept, location, loops};
use xlazy_core::ty::TypeRef;
use xlazy_mime::count;

/// Fewer ops in all rounds are no reason to write another kind of loop.
const OPS: usize = 500;
/// Fewer steps of training in one program may be meant so.
const STEPS: usize = 4;

impl Unrolled {
    pub(super) fn sentence(&self) -> String {
        let Unrolled { at, rounds, ops, carried, training, optimizer, ended, grows } = self;
        let steps = |o: &String| {
            let lent = if is_lent(at, o) { "" } else { "&mut " };
            format!("`optimizer_step({lent}{o})` in place of `{o}.step()`")
        };
        if *ended == Some(Cause::WrittenOut) {
            return self.one_by_one();
        }
        if let Some(cause) = ended {
            let by_steps = *cause == Cause::UnendedSteps;
            // In front of what is read of a round: that is computed with it.
            let ends = match optimizer {
                Some(o) => format!("{}, or `sync()` right behind it,", steps(o)),
                None if *training => "`sync()` right behind the optimizer's step".into(),
                None => "`sync()` at the end of each round".into(),
            };
            return format!(
                "{}, {} each, are one program, since nothing ends them: the {} at {} does from now on, with all that is pending. \
                 {ends} compiles one round, which serves {}.",
                count(*rounds, "round"),
                count(*ops, "op"),
                if by_steps { "step" } else { "read" },
                location(at),
                match grows {
                    Some([first, last]) => format!(
                        "all of its size (what is {first} in the first is {last} in the last: give it the largest, written at a position and \
                         masked)"
                    ),
                    None => "them all".into(),
                }
            );
        }
        if *training {
            return format!(
                "{rounds} steps of training at {}, {} each, are one program: {} compiles one step, which serves them all.",
                location(at),
                count(*ops, "op"),
                optimizer.as_ref().map_or("`sync()` behind it".into(), |o| steps(o) + ", or `sync()` behind it,")
            );
        }
        if let Some([first, last]) = grows {
            return format!(
                "{rounds} rounds of the loop at {}, {} each, are written out in one program, and what is {first} in the first is {last} in \
                 the last: give it one size (a window of what came last, or the largest size, written at a position and masked), then \
                 `sync()` at the end of each round compiles one round, which serves them all.",
                location(at),
                count(*ops, "op")
            );
        }
        let advice = match carried {
            true => "`scan` compiles one round, which serves however many there are",
            false => "`map`, or ops on all of them at once with one dimension more, compile one for all",
        };
        format!(
            "{rounds} rounds of the loop at {}, {} each, are written out in one program: {advice}.",
            location(at),
            count(*ops, "op")
        )
    }

    /// Of rounds that would make a program long.
    fn one_by_one(&self) -> String {
        let Unrolled { at, rounds, ops, carried, grows, .. } = self;
        let advice = match (grows, carried) {
            (Some([first, last]), _) => format!(
                "what is {first} in the first is {last} in the last, so that each is compiled: give it one size (a window of what came \
                 last, or the largest size, written at a position and masked), and one serves them all"
            ),
            (None, true) => "`scan` makes them one program, which runs faster".into(),
            (None, false) => {
                "`map`, or ops on all of them at once with one dimension more, are one program, which runs faster"
                    .into()
            }
        };
        format!(
            "{rounds} rounds of the loop at {}, {} each, run one after another and not as one program, which XLA would take long for: \
             {advice}.",
            location(at),
            count(*ops, "op")
        )
    }
}

/// Whether a function around the place is given this by `&mut`, and hands it on as it is.
fn is_lent(at: &Spot, name: &str) -> bool {
    let declared = |text: &str| text.contains(&format!("{name}: &mut "));
    function(at).is_some() && cell(at).and_then(kept).is_some_and(|text| declared(&text))
}

/// The loop whose rounds make up most of a program, if it is one that could be recorded once. Layers, each of which has parameters of
/// its own, are none. Steps of training want a barrier between them.
pub(super) fn unrolled(record: &Record, explained: bool) -> Option<Unrolled> {
    if record.cause.ends_rounds() {
        return (!explained).then(|| ended(record));
    }
    if let Some(rounds) = &record.rounds {
        return (!explained && record.cause == Cause::WrittenOut).then(|| one_by_one(record, rounds));
    }
    if record.steps.len() < OPS || record.cause == Cause::Eager {
        return None;
    }
    training(record).or_else(|| rounds(record))
}

/// What runs round by round, since all of it is long.
fn one_by_one(record: &Record, of: &Rounds) -> Unrolled {
    Unrolled {
        at: of_the_loop(of.lines.iter().map(|at| Spot::from(Source::of(at)))),
        rounds: of.rounds,
        ops: of.ops,
        carried: of.carried,
        training: false,
        optimizer: None,
        ended: Some(record.cause),
        grows: of.grows,
    }
}

/// What a read or a step found of several rounds.
fn ended(record: &Record) -> Unrolled {
    let steps = || updates(record).len();
    let rounds = if record.cause == Cause::UnendedSteps { steps() } else { record.reads_here + 1 }.max(2);
    let at = Spot::from(record.site);
    Unrolled {
        at,
        rounds,
        ops: record.steps.len() / rounds,
        carried: true,
        training: record.stepped(),
        optimizer: record.optimizer(),
        ended: Some(record.cause),
        grows: grown(record, rounds),
    }
}

/// What a line gives once in each of so many rounds, larger in each: in the first and in the last.
fn grown(record: &Record, rounds: usize) -> Option<[TypeRef; 2]> {
    let mut types: HashMap<u64, Vec<TypeRef>> = HashMap::new();
    for (token, step) in record.tokens().iter().zip(record.steps.iter()) {
        types.entry(*token).or_default().push(step.ty);
    }
    let mut all = record.tokens().iter().map(|token| &types[token]).filter(|all| all.len() == rounds);
    all.find_map(|all| longer_in_each(all.iter().copied()))
}

/// What optimizers' steps do stands together, between what passes of the model record.
fn training(record: &Record) -> Option<Unrolled> {
    let steps = updates(record);
    let (last, rounds) = (steps.last()?, steps.len());
    let at = Spot::from(record.steps[*last].at);
    let ops = record.steps.len() / rounds;
    (rounds >= STEPS).then_some(Unrolled {
        at,
        rounds,
        ops,
        carried: true,
        training: true,
        optimizer: record.optimizer(),
        ended: None,
        grows: None,
    })
}

/// Where optimizers' steps begin, of the line that steps last: an optimizer each for two models makes half as many.
pub(super) fn updates(record: &Record) -> Vec<usize> {
    let is_update = |i: usize| record.derived(i as u32) == Some(Derived::Update);
    let begins = |i: &usize| is_update(*i) && !is_update(i.wrapping_sub(1));
    let mut steps: Vec<usize> = (1..record.steps.len()).filter(begins).collect();
    let line = |i: &usize| location(record.steps[*i].at);
    let last = steps.last().map(line);
    steps.retain(|i| Some(line(i)) == last);
    steps
}

fn rounds(record: &Record) -> Option<Unrolled> {
    let own: Vec<usize> = (0..record.steps.len()).filter(|&i| record.derived(i as u32).is_none()).collect();
    let (typed, tokens) = (record.typed(), record.tokens());
    let is_long = |(period, run): &(usize, Range<usize>)| {
        run.len() / period >= ROUNDS && run.len() >= OPS && run.len() * 2 >= own.len()
    };
    let equal = repetition(&own.iter().map(|&i| typed[i]).collect::<Vec<_>>()).filter(is_long);
    // The same lines in each, with types of their own.
    let alike = || repetition(&own.iter().map(|&i| tokens[i]).collect::<Vec<_>>());
    let grown = || alike().filter(is_long).and_then(|found| Some((grows(record, &own, &found)?, found)));
    let (grows, (period, run)) = match equal {
        Some(found) => (None, found),
        None => grown().map(|(grows, found)| (Some(grows), found))?,
    };
    let rounds = run.len() / period;
    let update = |i: usize| record.derived(i as u32) == Some(Derived::Update);
    let (first, last) = (own[run.start], own[run.end - 1]);
    if (first..=last).any(update) {
        return None;
    }
    let round = |step: u32| {
        let place = own.binary_search(&(step as usize)).ok().filter(|place| run.contains(place))?;
        Some((place - run.start) / period)
    };
    let (mut carried, mut layers) = (false, false);
    for place in run.clone() {
        let here = (place - run.start) / period;
        let before = place.checked_sub(period).filter(|before| run.contains(before));
        let inputs = &record.steps[own[place]].inputs;
        for (i, input) in inputs.iter().enumerate() {
            match *input {
                Input::Step(x) => carried |= round(x).is_some_and(|there| there + 1 == here),
                Input::Leaf(l) => {
                    let there = before.and_then(|before| record.steps[own[before]].inputs.get(i));
                    let another = matches!(there, Some(Input::Leaf(k)) if *k != l);
                    layers |= another && record.leaves[l as usize].parameter;
                }
            }
        }
    }
    (!layers).then(|| Unrolled {
        at: of_the_loop(own[run.start..run.start + period].iter().map(|&i| Spot::from(record.steps[i].at))),
        rounds,
        ops: period,
        carried,
        training: false,
        optimizer: None,
        ended: None,
        grows,
    })
}

/// What is longer in each round than in the one before, in the first and in the last.
fn grows(record: &Record, own: &[usize], (period, run): &(usize, Range<usize>)) -> Option<[TypeRef; 2]> {
    let types = |offset: usize| run.clone().skip(offset).step_by(*period).map(|place| record.steps[own[place]].ty);
    (0..*period).find_map(|offset| longer_in_each(types(offset)))
}

/// The loop around the lines of a round, or around the call that leads there.
fn of_the_loop(round: impl Iterator<Item = Spot>) -> Spot {
    let lines: Vec<Spot> = round.collect();
    let own = lines.iter().find_map(|at| loops(at).into_iter().next());
    let calling = || lines.iter().flat_map(callers).find_map(|call| loops(&call).into_iter().next());
    own.or_else(calling).map_or_else(|| lines[0].clone(), |l| l.head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix;

    /// Whatever stands around them, and whatever a round is made of, rounds are found as long as they are most of it.
    #[test]
    fn drawn_rounds_are_found() {
        for seed in 0..300 {
            let mut draw = SplitMix(seed);
            let mut below = |n: u64| draw.next() % n;
            // A mark may stand in a round more than once; its first one does not, but where half a round comes twice.
            let period = 1 + below(20) as usize;
            let mut round: Vec<u64> = (0..period).map(|_| 10 + below(12)).collect();
            round[0] = 1;
            // As that of a function that is called twice.
            if period > 6 && below(2) == 0 {
                let twice = round[..period / 2 - 1].to_vec();
                let from = period - twice.len();
                round[from..].copy_from_slice(&twice);
            }
            let rounds = 16 + below(40) as usize;
            let [before, behind] =
                [below(30), below(30)].map(|n| (0..n).map(|i| 1000 + i + below(3)).collect::<Vec<u64>>());
            let marks = [before.clone(), round.repeat(rounds), behind].concat();
            let (found, run) = repetition(&marks).expect("rounds");
            assert_eq!((found, run.len() / found), (period, rounds), "seed {seed}: {round:?}");
            assert_eq!(run.start, before.len(), "seed {seed}");
        }
        assert_eq!(repetition(&[1, 2, 3]), None);
    }
}
