//! What is compiled: tensors, and the program that computes them.
use super::driver::{self, Effort, ask};
use super::options::Options;
use super::report::Report;
use super::show::Comparison;
use super::{program, roofline};
use crate::{Error, Result, Tensor};
use xlazy_core::ir::Mark;
use xlazy_core::run::Lowered;

/// Tensors whose program is compiled: one, a list, or a tuple of up to four.
pub trait Outputs {
    /// The tensors.
    fn tensors(&self) -> Vec<Tensor>;
}

impl Outputs for Tensor {
    fn tensors(&self) -> Vec<Tensor> {
        vec![self.clone()]
    }
}
impl<T: Outputs + ?Sized> Outputs for &T {
    fn tensors(&self) -> Vec<Tensor> {
        (**self).tensors()
    }
}
impl<T: Outputs> Outputs for [T] {
    fn tensors(&self) -> Vec<Tensor> {
        self.iter().flat_map(Outputs::tensors).collect()
    }
}
impl<T: Outputs> Outputs for Vec<T> {
    fn tensors(&self) -> Vec<Tensor> {
        self[..].tensors()
    }
}
impl<T: Outputs, const N: usize> Outputs for [T; N] {
    fn tensors(&self) -> Vec<Tensor> {
        self[..].tensors()
    }
}
macro_rules! tuples {
    ($(($($name:ident $n:tt),+))+) => {$(
        impl<$($name: Outputs),+> Outputs for ($($name,)+) {
            fn tensors(&self) -> Vec<Tensor> {
                let mut all = Vec::new();
                $(all.extend(self.$n.tensors());)+
                all
            }
        }
    )+};
}
tuples!((A 0, B 1) (A 0, B 1, C 2) (A 0, B 1, C 2, D 3));

/// A program, with what each of its lines comes from.
pub(super) struct Program {
    pub text: Vec<u8>,
    pub marks: Vec<Mark>,
}

impl Program {
    /// What a barrier on these tensors alone would run.
    pub fn of<O: Outputs + ?Sized>(outputs: &O) -> Result<Program> {
        let tensors = outputs.tensors();
        tensors.iter().try_for_each(|t| t.refuse_read())?;
        match xlazy_core::run::lowered_step(tensors.iter().map(Tensor::id).collect()) {
            Some(Lowered { text, marks, .. }) => {
                Ok(Program { text: program::with_locations(&text, &marks).into_bytes(), marks })
            }
            None => Err(Error::Usage {
                message:
                    "these tensors have their values already, so there is no program to compile: give the expression \
                          that computes them, or `last` for the program that ran last"
                        .into(),
            }),
        }
    }

    /// The program that ran last.
    pub fn last() -> Result<Program> {
        let message = "no program has run yet: show or read a tensor, or call sync(), and ask again";
        let last = xlazy_core::run::last_program().ok_or_else(|| Error::Usage { message: message.into() })?;
        let text = program::with_locations(&last.text, &last.marks).into_bytes();
        Ok(Program { text, marks: last.marks.clone() })
    }

    pub fn ask(&self, topology: &str, options: &Options, effort: Effort) -> Result<Option<Report>> {
        let mut report = ask(self.text.clone(), topology, options, effort)?;
        if let Some(report) = &mut report {
            program::resolve(report.sources_mut(), &self.marks);
        }
        Ok(report)
    }

    pub fn report(&self, topology: &str, options: &Options) -> Result<Report> {
        let report = self.ask(topology, options, Effort::Compile)?;
        report.ok_or_else(|| Error::Usage { message: "the compiler gave no report".into() })
    }

    /// Where the program and its kernels stand below the chip's peak rates.
    pub fn roofline(&self, topology: &str, options: &Options) -> Result<roofline::Roofline> {
        let report = driver::ask_lines(self.text.clone(), topology, options)?;
        let mut report = report.ok_or_else(|| Error::Usage { message: "the compiler gave no report".into() })?;
        program::resolve(report.sources_mut(), &self.marks);
        roofline::Roofline::of(report, &self.marks)
    }

    /// Two at a time: more would only wait for each other.
    pub fn compare(&self, topologies: &[&str], options: &Options) -> Comparison {
        let halves = [0, 1].map(|half| topologies.iter().skip(half).step_by(2).copied().collect::<Vec<_>>());
        let all = |names: &[&str]| names.iter().map(|t| self.report(t, options)).collect::<Vec<_>>();
        let [first, second] = std::thread::scope(|s| {
            let second = s.spawn(|| all(&halves[1]));
            let first = all(&halves[0]);
            [first, second.join().unwrap_or_default()]
        });
        let (mut first, mut second) = (first.into_iter(), second.into_iter());
        let rows = topologies.iter().enumerate().map(|(n, topology)| {
            let report = if n % 2 == 0 { first.next() } else { second.next() };
            let lost = || Err(Error::Usage { message: "the compile was interrupted".into() });
            ((*topology).to_owned(), report.unwrap_or_else(lost))
        });
        Comparison { rows: rows.collect() }
    }
}
