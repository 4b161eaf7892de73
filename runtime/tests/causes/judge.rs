//! Judging what was said of a mutation: its class, its line, whether all that differs is told and nothing else.
use super::mutate::{Mutation, Root};
use super::places::places;
use std::collections::BTreeSet;
use xlazy::insight::{Class, Compilation, Difference, Explanation, Place};

/// One explanation, its places as rows of the program's text.
#[derive(Debug)]
pub struct Said {
    pub class: Class,
    pub row: Option<usize>,
    pub differences: Vec<Difference>,
    pub hidden: usize,
    /// What to do about it.
    pub fix: String,
}

/// What was said of the compilations of a step; `None` stands for one of which nothing was.
pub fn said(compilations: &[Compilation]) -> Vec<Option<Said>> {
    said_of(compilations.iter().map(|c| c.why.as_ref()))
}

pub fn said_of<'a>(all: impl Iterator<Item = Option<&'a Explanation>>) -> Vec<Option<Said>> {
    let one = |why: &Explanation| {
        let (differences, hidden) = (why.differences.clone(), why.hidden);
        Some(Said { class: why.class, row: row_of(why.at), differences, hidden, fix: why.fix.clone() })
    };
    // Each cause of a compilation by itself.
    let each = |why: Option<&Explanation>| match why {
        Some(why) => std::iter::once(why).chain(&why.also).map(one).collect(),
        None => vec![None],
    };
    all.flat_map(each).collect()
}

/// The row of the program's text, or of its copy, where a place is.
pub fn row_of(at: Place) -> Option<usize> {
    let first = places(0).into_iter().find(|first| first.file() == at.file() && first.line() <= at.line())?;
    Some((at.line() - first.line()) as usize)
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Verdict {
    pub cause: bool,
    pub line: bool,
    pub coverage: bool,
}

fn tells(root: &Root, d: &Difference) -> bool {
    let places = [d.now_at, d.was_at].into_iter().flatten().filter_map(row_of);
    let here = places.into_iter().any(|row| root.rows.contains(&row));
    let text = |t: &String| d.what.contains(t) || d.was.contains(t) || d.now.contains(t);
    here && (root.texts.is_empty() || root.texts.iter().any(text))
}

/// Whether one mutation is told among whatever else is: all of its roots, none of them merely counted.
pub fn tells_all(m: &Mutation, said: &[Option<Said>]) -> bool {
    let differences = || said.iter().flatten().flat_map(|s| &s.differences);
    m.roots.iter().all(|r| differences().any(|d| tells(r, d)))
}

pub fn judge(mutations: &[&Mutation], said: &[Option<Said>]) -> Verdict {
    let explained: Vec<&Said> = said.iter().flatten().collect();
    let of_class = |s: &&&Said| mutations.iter().any(|m| m.classes.contains(&s.class));
    let cause = !explained.is_empty() && explained.len() == said.len() && explained.iter().all(|s| of_class(&s));
    let right = |s: &&&Said| {
        mutations.iter().any(|m| m.classes.contains(&s.class) && s.row.is_some_and(|row| m.lines.contains(&row)))
    };
    let line = explained.iter().any(|s| right(&s));
    let differences: Vec<&Difference> = explained.iter().flat_map(|s| &s.differences).collect();
    let hidden: usize = explained.iter().map(|s| s.hidden).sum();
    let roots: Vec<&Root> = mutations.iter().flat_map(|m| &m.roots).collect();
    let untold = roots.iter().filter(|r| !differences.iter().any(|d| tells(r, d))).count();
    let allowed: BTreeSet<usize> = mutations
        .iter()
        .flat_map(|m| m.lines.iter().chain(&m.follows).chain(m.roots.iter().flat_map(|r| &r.rows)))
        .copied()
        .collect();
    // What has no place of the program (the sync of a test, say) is of no line.
    let invented = |d: &&&Difference| {
        let mut rows = [d.now_at, d.was_at].into_iter().flatten().filter_map(row_of).peekable();
        rows.peek().is_some() && !rows.any(|row| allowed.contains(&row))
    };
    let coverage = untold <= hidden && differences.iter().all(|d| !invented(&d)) && !differences.is_empty();
    Verdict { cause, line, coverage }
}
