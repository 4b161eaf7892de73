//! A module as one row of operations: calls are followed, regions stand before the operation that runs them.
use super::module::{Argument, Block, From, Module, Op, Ty, Unread};
use super::ops;
use std::collections::HashMap;
use xlazy_core::ir::{Attr, Input};

pub(super) struct Flat {
    pub name: String,
    pub arguments: Vec<Argument>,
    pub donated: Vec<usize>,
    pub steps: Vec<Flattened>,
    /// The steps that give results.
    pub roots: Vec<u32>,
    pub line: u32,
}

impl Flat {
    /// The text begins behind so many lines of its file.
    pub fn shift(&mut self, lines: u32) {
        self.line += lines;
        self.arguments.iter_mut().for_each(|a| a.line += lines);
        self.steps.iter_mut().for_each(|s| s.line += lines);
    }
}

pub(super) struct Flattened {
    pub name: String,
    pub attributes: Vec<(String, Attr)>,
    pub inputs: Vec<Input>,
    pub ty: Ty,
    pub from: From,
    pub line: u32,
}

/// How deep calls and regions may stand in one another.
const DEEPEST: usize = 64;

/// Operations, with those of all that is called, and calls themselves.
const MOST: usize = 1 << 18;

pub(super) fn flatten(module: &Module) -> Result<Flat, Unread> {
    let Some(main) = module.functions.get(&module.main) else {
        return Err(Unread { line: 1, why: format!("`{}` is not there", module.main) });
    };
    let mut walk = Walk { module, steps: vec![], blocks: 0 };
    let arguments = main.arguments.iter().enumerate();
    let mut scope = arguments.map(|(i, a)| (a.name.clone(), Input::Leaf(i as u32))).collect();
    let returns = walk.block(main, &mut scope, None, DEEPEST)?;
    let mut roots: Vec<u32> = Vec::new();
    for input in returns {
        match input {
            Input::Step(s) => roots.push(s),
            // An argument that is given back as it is.
            Input::Leaf(l) => {
                let a = &main.arguments[l as usize];
                roots.push(walk.push("copy", vec![], vec![input], &a.ty, &a.from, a.line)?);
            }
        }
    }
    Ok(Flat {
        name: module.name.clone(),
        arguments: main.arguments.clone(),
        donated: module.donated.clone(),
        steps: walk.steps,
        roots,
        line: main.line,
    })
}

type Scope = HashMap<String, Input>;

struct Walk<'a> {
    module: &'a Module,
    steps: Vec<Flattened>,
    /// How many blocks were walked through.
    blocks: usize,
}

impl Walk<'_> {
    fn push(
        &mut self,
        name: &str,
        attributes: Vec<(String, Attr)>,
        inputs: Vec<Input>,
        ty: &Ty,
        from: &From,
        line: u32,
    ) -> Result<u32, Unread> {
        self.room(line)?;
        let (name, ty, from) = (name.to_owned(), ty.clone(), from.clone());
        self.steps.push(Flattened { name, attributes, inputs, ty, from, line });
        Ok(self.steps.len() as u32 - 1)
    }

    fn room(&self, line: u32) -> Result<(), Unread> {
        if self.steps.len() + self.blocks < MOST {
            return Ok(());
        }
        Err(Unread { line, why: format!("there are more than {MOST} operations with all that is called") })
    }

    /// The operations of a block; `caller` is where it was called from. Gives what it returns.
    fn block(
        &mut self,
        block: &Block,
        scope: &mut Scope,
        caller: Option<&From>,
        depth: usize,
    ) -> Result<Vec<Input>, Unread> {
        if depth == 0 {
            return Err(Unread { line: block.line, why: "calls go too deep".into() });
        }
        self.room(block.line)?;
        self.blocks += 1;
        for op in &block.ops {
            self.op(op, scope, caller, depth)?;
        }
        block.returns.iter().map(|name| find(name, scope, block.line)).collect()
    }

    fn op(&mut self, op: &Op, scope: &mut Scope, caller: Option<&From>, depth: usize) -> Result<(), Unread> {
        let mut inputs = op.inputs.iter().map(|name| find(name, scope, op.line)).collect::<Result<Vec<Input>, _>>()?;
        let mut from = op.from.clone();
        if let Some(caller) = caller {
            from.caller = from.caller.or_else(|| caller.at.clone());
            from.call = from.call.or_else(|| caller.call.clone());
            from.name = from.name.or_else(|| caller.name.clone());
            if from.at.is_none() {
                (from.at, from.caller) = (caller.at.clone(), caller.caller.clone());
            }
        }
        if let Some(name) = &op.calls {
            let Some(called) = self.module.functions.get(name) else {
                return Err(Unread { line: op.line, why: format!("`{name}`, which is called, is not there") });
            };
            let mut inside: Scope = called.arguments.iter().map(|a| a.name.clone()).zip(inputs).collect();
            let returns = self.block(called, &mut inside, Some(&from), depth - 1)?;
            bind(op, &returns, scope);
            return Ok(());
        }
        let called = op.attributes.iter().filter(|(key, _)| key.starts_with("called "));
        let called: Vec<&Block> = called.filter_map(|(_, name)| self.module.functions.get(name)).collect();
        let given = inputs.clone();
        for region in op.regions.iter().chain(called) {
            for (k, a) in region.arguments.iter().enumerate() {
                let of = given.get(k).copied();
                let untyped = Ty::default();
                let ty = match op.types.get(k).filter(|_| a.ty == untyped) {
                    Some(ty) => ty,
                    None => &a.ty,
                };
                let step = self.push("argument", vec![], of.into_iter().collect(), ty, &from, a.line)?;
                scope.insert(a.name.clone(), Input::Step(step));
            }
            inputs.extend(self.block(region, scope, caller, depth - 1)?);
        }
        let own: Vec<(String, String)> =
            op.attributes.iter().filter(|(key, _)| !key.starts_with("called ")).cloned().collect();
        let untyped = Ty::default();
        let step =
            self.push(&op.name, ops::attributes(&own), inputs, op.types.first().unwrap_or(&untyped), &from, op.line)?;
        let results: Vec<Input> = match &op.results[..] {
            [] | [_] => vec![Input::Step(step)],
            several => {
                let one = |k: usize| {
                    let index = vec![("index".to_owned(), Attr::Int(k as i64))];
                    let ty = op.types.get(k).unwrap_or(&untyped);
                    self.push("result", index, vec![Input::Step(step)], ty, &from, op.line).map(Input::Step)
                };
                (0..several.len()).map(one).collect::<Result<_, _>>()?
            }
        };
        bind(op, &results, scope);
        Ok(())
    }
}

fn bind(op: &Op, results: &[Input], scope: &mut Scope) {
    for (name, input) in op.results.iter().zip(results) {
        scope.insert(name.clone(), *input);
    }
}

fn find(name: &str, scope: &Scope, line: u32) -> Result<Input, Unread> {
    scope.get(name).copied().ok_or_else(|| Unread { line, why: format!("`{name}` is not defined before") })
}
