//! The programs that ran last, and where in them a variable, a line or an op is.
use crate::insight::mode::derived_of;
use crate::insight::parameters;
use crate::{Error, Result};
use std::sync::Arc;
use xlazy_core::run::{Gone, Run, last_runs};
use xlazy_core::text::{Place, Source, binding, cell, line, location, told};

/// A result inside of a run.
#[derive(Clone)]
pub(crate) struct Spot {
    pub run: Arc<Run>,
    pub step: u32,
}

/// What is asked for.
pub(crate) enum Wanted<'a> {
    /// The variable that a line binds.
    Name(&'a str),
    /// A line of a cell; of the latest one that has it, where none is named.
    Line { cell: Option<u64>, line: u32 },
}

impl Spot {
    pub fn at(&self) -> Place {
        self.run.lines[self.step as usize].0
    }

    /// `cell 1, line 3, called from cell 2, line 1`.
    pub fn place(&self) -> String {
        let (at, statement) = self.run.lines[self.step as usize];
        told(at, statement)
    }

    pub fn op(&self) -> &'static str {
        self.run.program.steps[self.step as usize].op.torch_name()
    }

    pub fn name(&self) -> String {
        binding(self.at()).unwrap_or_else(|| self.op().to_owned())
    }

    pub fn ty(&self) -> String {
        self.run.program.steps[self.step as usize].ty.to_string()
    }
}

/// The results of ops of the user's lines, of the first run that has some; gradients and updates have the lines of what they
/// follow from.
pub(crate) fn find(wanted: &Wanted) -> Vec<Spot> {
    let runs = last_runs();
    runs.iter().map(|run| find_in(run, wanted)).find(|found| !found.is_empty()).unwrap_or_default()
}

fn find_in(run: &Arc<Run>, wanted: &Wanted) -> Vec<Spot> {
    let derived = derived_of(run.program.steps.iter().map(|s| s.seq));
    let newest = |of: u32| {
        let on = run.lines.iter().filter(|(at, _)| line(*at) == of);
        on.filter_map(|(at, _)| cell(*at)).max()
    };
    let is_wanted = |at: Place| match wanted {
        Wanted::Name(name) => binding(at).as_deref() == Some(name),
        Wanted::Line { cell: None, line: of } => line(at) == *of && cell(at) == newest(*of),
        Wanted::Line { cell: which, line: of } => line(at) == *of && cell(at) == *which,
    };
    let steps = (0..run.lines.len()).filter(|&i| derived[i].is_none() && is_wanted(run.lines[i].0));
    results(run, steps.collect()).into_iter().map(|step| Spot { run: run.clone(), step }).collect()
}

/// Of the ops of a line the last one each time that the line ran. It began anew where its first op comes again behind another.
fn results(run: &Run, steps: Vec<usize>) -> Vec<u32> {
    let at = |i: usize| run.lines[i].0;
    let same = |a: usize, b: usize| std::ptr::eq(at(a), at(b));
    let (mut out, mut first): (Vec<u32>, usize) = (vec![], 0);
    for (k, &step) in steps.iter().enumerate() {
        let begins =
            k > 0 && same(step, steps[first]) && !(same(step, steps[k - 1]) && follows(run, steps[k - 1], step));
        if k == 0 || begins {
            first = k;
            out.push(step as u32);
        } else {
            *out.last_mut().expect("the first one begins") = step as u32;
        }
    }
    out
}

/// Whether the one op is a part of the same call as the other: it takes what that gave, right behind it.
fn follows(run: &Run, before: usize, step: usize) -> bool {
    use xlazy_core::ir::Input;
    step == before + 1 || run.program.steps[step].inputs.contains(&Input::Step(before as u32))
}

/// What a parameter of a run is called: by its line, or as when its program was compiled, where it is still of that line.
pub(crate) fn parameter_name(run: &Run, parameter: usize) -> Option<String> {
    let at = run.made_at(parameter)?;
    let known = parameters(run.program.key.hash).into_iter().nth(parameter);
    known.filter(|(_, then)| *then == Source::of(at)).and_then(|(name, _)| name).or_else(|| binding(at))
}

/// Why these cannot be computed again: which parameters are gone, by name and line.
pub(crate) fn refuse_gone(run: &Run, wanted: &[u32], what: &str) -> Result<()> {
    let gone = run.gone(wanted);
    if gone.is_empty() {
        return Ok(());
    }
    let name = |leaf: usize| match (parameter_name(run, leaf), run.made_at(leaf)) {
        (Some(name), Some(at)) => format!("`{name}` ({})", location(at)),
        (_, Some(at)) => format!("what {} made", location(at)),
        _ => "a parameter".to_owned(),
    };
    let list = |how: Gone| {
        let mut names: Vec<String> = gone.iter().filter(|g| g.1 == how).map(|g| name(g.0)).collect();
        let many = names.len() > 1;
        names.dedup();
        let list = match names.len() {
            0..=3 => names.join(", "),
            n => format!("{} and {} more", names[..3].join(", "), n - 3),
        };
        (list, many)
    };
    let mut why = Vec::new();
    for (how, one, many) in [
        (Gone::Donated, "was donated (a result took its buffer)", "were donated (results took their buffers)"),
        (Gone::Dropped, "is held by nothing any more", "are held by nothing any more"),
    ] {
        if gone.iter().any(|g| g.1 == how) {
            let (names, several) = list(how);
            why.push(format!("{names} {}", if several { many } else { one }));
        }
    }
    let message = format!(
        "{what} cannot be computed again from what its program was given: {}. `%peek on` keeps what the next run is given",
        why.join("; ")
    );
    Err(Error::Usage { message })
}
