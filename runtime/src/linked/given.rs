//! The program that is looked at: what would run, or what ran last, in one form.
use crate::aot::line::Line;
use crate::aot::lines::lines;
use crate::inside::parameter_name;
use crate::{Error, Result, Tensor};
use std::collections::HashMap;
use std::sync::Arc;
use xlazy_core::device::{client, is_dry};
use xlazy_core::host::named;
use xlazy_core::ir::{Mark, Params, Payload, Step, graph as arena};
use xlazy_core::run::{LeafOrigin, Lowered, compile_aside, last_runs, lowered_step};
use xlazy_core::text::{Place, Source};
use xlazy_core::ty::{Type, TypeRef};

/// What a program is given: a value or a number.
pub(super) struct Leaf {
    pub name: Option<String>,
    pub ty: Type,
    /// Of a number of user code.
    pub number: Option<String>,
    pub at: &'static Source,
    pub statement: Option<&'static Source>,
}

/// What a compiler made of the program.
#[derive(Default)]
pub(super) struct Compiled {
    /// `CPU`, `v5e:1x1`.
    pub target: String,
    pub lines: Vec<Line>,
    /// The compiler's estimate of all of it, where it has one.
    pub cycles: Option<u64>,
}

pub(super) struct Given {
    pub what: String,
    pub text: String,
    pub marks: Vec<Mark>,
    pub steps: Arc<[Step]>,
    /// Where each step is from, and the statement that called it.
    pub places: Vec<(&'static Source, Option<&'static Source>)>,
    pub leaves: Vec<Leaf>,
    /// The leaves that each parameter of the program holds.
    pub parameters: Vec<Vec<u32>>,
    pub device: u8,
}

impl Given {
    /// What a barrier on these alone would run.
    pub fn of(tensors: &[Tensor]) -> Result<Given> {
        tensors.iter().try_for_each(Tensor::refuse_read)?;
        // Names first: who holds the graph asks nobody.
        let named = named();
        let message = "the value is on the device already, so there is no program to trace: give the expression that \
                       computes it, or nothing for the program that ran last";
        let lowered = lowered_step(tensors.iter().map(Tensor::id).collect());
        let lowered = lowered.ok_or_else(|| Error::Usage { message: message.into() })?;
        let Lowered { text, marks, params, steps, leaves, device, .. } = lowered;
        let g = arena();
        let names: HashMap<u64, &str> = named.iter().rev().map(|n| (g.node(n.node).lineage, n.name.as_str())).collect();
        let leaf = |l: &LeafOrigin| {
            let number = match g.node(l.node).payload {
                Payload::Scalar(bits) => Some(number(&l.ty, bits)),
                _ => None,
            };
            let name = names.get(&l.lineage).map(|&n| n.to_owned());
            Leaf { name, ty: l.ty.clone(), number, at: l.at, statement: l.statement }
        };
        let leaves = leaves.iter().map(leaf).collect();
        drop(g);
        Ok(Given {
            what: "what a sync of this would run".into(),
            text,
            marks,
            places: steps.iter().map(|s| (s.at, s.statement)).collect(),
            steps,
            leaves,
            parameters: parameters(&params),
            device,
        })
    }

    /// The program that ran last, with the lines of that run.
    pub fn last() -> Result<Given> {
        let message = "no program has run yet: show or read a tensor, or call sync(), and ask again; `%trace y` shows what \
                       computing y would run";
        let run = last_runs().into_iter().next().ok_or_else(|| Error::Usage { message: message.into() })?;
        let program = &run.program;
        let leaf = |(n, (ty, at, bits)): (usize, (TypeRef, Place, Option<u64>))| Leaf {
            name: parameter_name(&run, n),
            ty: Type::clone(&ty),
            number: bits.map(|bits| number(&ty, bits)),
            at: Source::of(at),
            statement: None,
        };
        let kind = if run.barrier { "sync" } else { "read" };
        Ok(Given {
            what: format!("the program that ran last ({kind} {})", run.number),
            text: program.text.clone(),
            marks: program.marks.clone(),
            steps: program.steps.clone(),
            places: run.lines.iter().map(|(at, from)| (Source::of(at), from.map(Source::of))).collect(),
            leaves: run.inputs().enumerate().map(leaf).collect(),
            parameters: parameters(&program.params),
            device: program.device,
        })
    }

    /// The platform that it is for.
    pub fn target(&self) -> Result<String> {
        Ok(client()?.pjrt.platform_name().to_uppercase())
    }

    /// What XLA makes of the text for the device that it is for.
    pub fn compile(&self, text: &str) -> Result<Compiled> {
        if is_dry() {
            return Ok(Compiled { target: "no device".into(), ..Compiled::default() });
        }
        let executable = compile_aside(text, self.device)?;
        let (format, bytes) = executable.optimized_program()?;
        let target = self.target()?;
        let lines = lines(&format, &bytes).ok_or_else(|| Error::Usage {
            message: format!("the plugin gives its optimised programs as {format}, which xlazy cannot read"),
        })?;
        Ok(Compiled { target, lines, cycles: None })
    }
}

fn parameters(params: &Params) -> Vec<Vec<u32>> {
    let data = params.data.iter().map(|&l| vec![l]);
    data.chain(params.packs.iter().map(|(_, members)| members.clone())).collect()
}

fn number(ty: &Type, bits: u64) -> String {
    match ty.dtype.is_differentiable() {
        true => f64::from_bits(bits).to_string(),
        false => (bits as i64).to_string(),
    }
}
