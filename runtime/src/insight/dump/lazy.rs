//! The graphs of lazy tensors that torch_xla writes (`XLA_SAVE_TENSORS_FILE`), each with the calls that led to its sync, as its own
//! text (`IR {`) or as HLO or StableHLO; and such a text as a module.
use super::hlo::{end_of, parts, types};
use super::module::{Argument, Block, From, Line, Module, Op, Unread};
use xlazy_core::run::Cause;

/// One graph of such a file.
pub(super) struct Graph<'a> {
    pub text: &'a str,
    /// Lines of the file before it.
    pub before: u32,
    /// The calls that led to the sync, from the innermost on.
    pub frames: Vec<Line>,
    /// Why it was synced, as far as these tell.
    pub cause: Cause,
    /// What torch_xla's cache knows it by.
    pub hash: &'a str,
}

const BEGIN: &str = "## BEGIN_GRAPH";
const END: &str = "## END_GRAPH";
const HASH: &str = "Graph Hash: ";

/// The graphs of a file, in the order in which they were synced; none where it is no such file.
pub(super) fn graphs(text: &str) -> Vec<Graph<'_>> {
    let (mut all, mut line, mut rest) = (Vec::new(), 0, text);
    while let Some((head, behind)) = rest.split_once(BEGIN) {
        let (body, behind) = behind.split_once(END).unwrap_or((behind, ""));
        let before = line + head.lines().count() as u32;
        line += rest[..rest.len() - behind.len()].matches('\n').count() as u32;
        let (text, hash) = body.split_once(HASH).unwrap_or((body, ""));
        let frames: Vec<Line> = head.lines().filter_map(frame).collect();
        all.push(Graph { text, before, cause: cause(&frames), frames, hash: hash.trim() });
        rest = behind;
    }
    all
}

/// A barrier is a call of torch_xla's; else somebody read a value, by showing it where torch's printing asks for it.
fn cause(frames: &[Line]) -> Cause {
    let through = |part: &str| frames.iter().any(|l| l.file.contains(part));
    match () {
        () if through("/torch_xla/") => Cause::Sync,
        () if through("/_tensor_str.py") => Cause::Display,
        () => Cause::Read,
    }
}

/// `  step (train.py:15)`
fn frame(line: &str) -> Option<Line> {
    let (_, place) = line.strip_prefix("  ")?.split_once(" (")?;
    let (file, line) = place.strip_suffix(')')?.rsplit_once(':')?;
    Some(Line { file: file.to_owned(), line: line.parse().ok()?, column: 0 })
}

/// `IR { %0 = f32[4]{0} xla::device_data(), location=step@train.py:10, … }`. `own` are the files of the user's, since a text has
/// no more than the last part of a file's name.
pub(super) fn read(text: &str, own: &[Line]) -> Result<Module, Unread> {
    let mut block = Block { line: 1, ..Block::default() };
    let mut returns: Vec<(usize, String)> = Vec::new();
    for (n, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        if !line.starts_with('%') {
            continue;
        }
        let refuse = |why: &str| Err(Unread { line: n, why: why.into() });
        let Some((name, rest)) = line.split_once(" = ") else {
            return refuse("a node is expected: `%0 = type op(…)`");
        };
        let ty_end = match rest.strip_prefix('(') {
            Some(inside) => 1 + end_of(inside) + 1,
            None => rest.find(' ').unwrap_or(rest.len()),
        };
        let (Some(ty), Some(rest)) = (rest.get(..ty_end), rest.get(ty_end..)) else {
            return refuse("the type has no end");
        };
        let Some((op, rest)) = rest.trim_start().split_once('(') else {
            return refuse("an op and its operands are expected");
        };
        let end = end_of(rest);
        let (operands, rest) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        let mut node = Op {
            name: op.rsplit("::").next().unwrap_or(op).to_ascii_lowercase(),
            types: types(ty),
            line: n,
            ..Op::default()
        };
        node.inputs = parts(operands).into_iter().map(str::to_owned).collect();
        node.results = match node.types.len() {
            0 | 1 => vec![name.to_owned()],
            several => (0..several).map(|k| if k == 0 { name.to_owned() } else { format!("{name}.{k}") }).collect(),
        };
        for (key, value) in parts(rest.trim_start_matches(',')).into_iter().filter_map(|part| part.split_once('=')) {
            match key {
                "location" => node.from = located(value, own),
                "ROOT" => returns.push((value.parse().unwrap_or(returns.len()), name.to_owned())),
                "xla_shape" | "num_outputs" | "scope" | "device" | "sharding" => {}
                _ => node.attributes.push((key.to_owned(), value.to_owned())),
            }
        }
        // Where data are from is told by whoever took them last, so it tells nothing.
        if node.name == "device_data" {
            let ty = node.types.first().cloned().unwrap_or_default();
            block.arguments.push(Argument { name: name.to_owned(), ty, from: From::default(), line: n });
        } else {
            block.ops.push(node);
        }
    }
    returns.sort_by_key(|r| r.0);
    block.returns = returns.into_iter().map(|r| r.1).collect();
    let main = "main".to_owned();
    Ok(Module { name: String::new(), main: main.clone(), functions: [(main, block)].into(), donated: vec![] })
}

/// `step@train.py:10`
fn located(text: &str, own: &[Line]) -> From {
    let place = text.rsplit_once('@').and_then(|(_, place)| place.rsplit_once(':'));
    let Some((file, line)) = place.and_then(|(file, line)| Some((file, line.parse().ok()?))) else {
        return From::default();
    };
    let last = |l: &&Line| l.file.rsplit('/').next() == Some(file);
    // What is none of the user's is the framework's.
    let file = own.iter().find(last).map_or_else(|| format!("site-packages/{file}"), |l| l.file.clone());
    From { at: Some(Line { file, line, column: 0 }), ..From::default() }
}
