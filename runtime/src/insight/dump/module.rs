//! A program as a text has it, in StableHLO or HLO: blocks of operations, each with where it is from.
use std::collections::HashMap;
use xlazy_core::text::is_library;

/// What could not be read.
#[derive(Debug, PartialEq)]
pub(super) struct Unread {
    /// From 1.
    pub line: u32,
    pub why: String,
}

#[derive(Debug, Default)]
pub(super) struct Module {
    /// `jit_step`: what the framework calls it.
    pub name: String,
    pub main: String,
    pub functions: HashMap<String, Block>,
    /// Parameters whose buffers a result may take, by number.
    pub donated: Vec<usize>,
}

/// A function, a computation or a region.
#[derive(Clone, Debug, Default)]
pub(super) struct Block {
    pub arguments: Vec<Argument>,
    pub ops: Vec<Op>,
    pub returns: Vec<String>,
    pub line: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Argument {
    pub name: String,
    pub ty: Ty,
    pub from: From,
    pub line: u32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Op {
    /// `dot_general`, without its dialect.
    pub name: String,
    /// The names of its results: one, or a stem for several.
    pub results: Vec<String>,
    pub inputs: Vec<String>,
    pub attributes: Vec<(String, String)>,
    pub types: Vec<Ty>,
    pub regions: Vec<Block>,
    /// Functions that are called; what they do stands in the place of the op.
    pub calls: Option<String>,
    pub from: From,
    pub line: u32,
}

/// An element type by its name, and sizes; -1 is a size that is known when it runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ty {
    pub element: String,
    pub sizes: Vec<i64>,
}

/// Where an op is from, as far as it is said.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct From {
    /// The framework's name of the op, with those around it: `jit(step)/transpose(jvp(model))/dot_general`.
    pub name: Option<String>,
    pub at: Option<Line>,
    /// Where that was called from.
    pub caller: Option<Line>,
    /// The outermost call that led there.
    pub call: Option<Line>,
}

impl From {
    /// `frames` are those of the calls that led there, from the innermost on.
    pub fn of(name: Option<String>, frames: &[Line]) -> From {
        let own: Vec<&Line> = frames.iter().filter(|l| !l.is_library()).collect();
        let at = own.first().copied().or(frames.first());
        let call = own.last().copied().filter(|_| own.len() > 1);
        From { name, at: at.cloned(), caller: own.get(1).map(|l| (*l).clone()), call: call.cloned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Line {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl Line {
    pub fn is_library(&self) -> bool {
        is_library(&self.file)
    }
}
