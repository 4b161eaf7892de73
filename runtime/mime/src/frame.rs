//! The frames between the kernel process and its session process, each `u32 length, u8 kind, fields`.
use crate::codec::{Reader, Writer, bad};
use crate::{Bundle, Question};
use std::io::{self, Read, Write};

/// No frame is longer. Text that somebody writes between frames would be: its first four bytes are no such length.
pub const MOST_BYTES: usize = 0x1fff_ffff;

/// A message that can be framed: [`Ask`] travels kernel → session, [`Tell`] session → kernel.
pub trait Frame: Sized {
    fn encode(&self) -> Vec<u8>;
    fn decode(body: &[u8]) -> io::Result<Self>;

    /// Writes one frame with a single write call, so that frames of several threads never interleave.
    ///
    /// Errors: `FileTooLarge` where it is too long, and nothing is written; otherwise the writer's.
    fn send(&self, out: &mut impl Write) -> io::Result<()> {
        let body = self.encode();
        if body.len() > MOST_BYTES {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        let mut frame = (body.len() as u32).to_le_bytes().to_vec();
        frame.extend_from_slice(&body);
        out.write_all(&frame)?;
        out.flush()
    }

    /// Reads one frame; `None` at a clean end of the stream.
    fn receive(input: &mut impl Read) -> io::Result<Option<Self>> {
        let mut head = [0; 4];
        match input.read_exact(&mut head) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            other => other?,
        }
        let mut body = vec![0; u32::from_le_bytes(head) as usize];
        input.read_exact(&mut body)?;
        Self::decode(&body).map(Some)
    }
}

/// A compiled cell to load and run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunCell {
    /// Counts every run; the answer carries it.
    pub run: u64,
    /// The cell's number as the user sees it (`In [7]`); 0 for code that no cell shows.
    pub cell: u64,
    /// The shared object's path and the symbol of its entry function.
    pub object: String,
    pub symbol: String,
    /// What the question `cell` takes: the name of the source file that the cell's locations carry, what of it is where in
    /// the cell, and the cell as the user wrote it, for reports that quote its lines.
    pub places: String,
}

/// Kernel → session.
#[derive(Clone, Debug, PartialEq)]
pub enum Ask {
    Run(RunCell),
    /// A question to the session; answered by [`Tell::Reply`].
    Call {
        id: u64,
        question: Question,
        args: String,
    },
    /// What the user typed, or why there is no answer.
    Input(Result<String, String>),
    /// Everything that was asked before it is to end.
    Interrupt,
    /// What was written before [`Tell::Fence`] of that number has been read.
    Drained(u64),
    Shutdown,
}

/// What went wrong in a cell, in the terms of Jupyter's error reply.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Fault {
    /// `TensorError`, `Panic`, `Interrupted`…
    pub name: String,
    pub message: String,
    /// Source file as in [`RunCell::places`], 1-based line and column.
    pub file: String,
    pub line: u32,
    pub column: u32,
    /// Further sentences: what was expected, what to do, which variables are lost.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    Ok,
    Failed(Fault),
    Interrupted,
}

/// A variable in the session's store.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Var {
    pub name: String,
    /// As `std::any::type_name` gives it.
    pub type_name: String,
    /// A short description for listings, empty where there is none.
    pub summary: String,
    /// The cell that stored it last.
    pub cell: u64,
    /// Handles (tensors, small `Clone` values) are copied into a cell, everything else is moved.
    pub handle: bool,
    /// Something borrows it, so it is never changed or moved: cells load a reference.
    pub lent: bool,
    /// Something borrows it to change it, for as long as no cell mentions it.
    pub away: bool,
}

/// Session → kernel.
#[derive(Clone, Debug, PartialEq)]
pub enum Tell {
    Ready {
        version: String,
    },
    Stream {
        stderr: bool,
        text: String,
    },
    Display {
        bundle: Bundle,
        id: Option<String>,
        update: bool,
    },
    /// The value of a cell's last expression.
    Result(Bundle),
    ClearOutput {
        wait: bool,
    },
    AskInput {
        prompt: String,
        password: bool,
    },
    /// Something that happened in the runtime (a compile, a sync), as JSON.
    Event {
        kind: String,
        json: String,
    },
    Done {
        run: u64,
        outcome: Outcome,
        /// Every variable in the store after the run.
        vars: Vec<Var>,
        /// Variables that this run moved or lost, each with its type's name, which is empty where nobody knows it.
        lost: Vec<(String, String)>,
        /// The random generator's seed, and how often it was drawn from.
        generator: (u64, u64),
    },
    Reply {
        id: u64,
        answer: Result<Bundle, Fault>,
    },
    /// A message from a widget to its front ends, as JSON: `type`, `id`, `data`, `buffers` in base64.
    Comm(String),
    /// To be answered with [`Ask::Drained`]: a display came before it, and what is written raw from now on comes after.
    Fence(u64),
}

impl Frame for Ask {
    fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Ask::Run(c) => {
                w.u8(0);
                w.u64(c.run);
                w.u64(c.cell);
                w.str(&c.object);
                w.str(&c.symbol);
                w.str(&c.places);
            }
            Ask::Call { id, question, args } => {
                w.u8(1);
                w.u64(*id);
                w.str(question.name());
                w.str(args);
            }
            Ask::Input(answer) => {
                w.u8(2);
                w.bool(answer.is_ok());
                w.str(answer.as_ref().unwrap_or_else(|e| e));
            }
            Ask::Shutdown => w.u8(3),
            Ask::Interrupt => w.u8(4),
            Ask::Drained(fence) => {
                w.u8(5);
                w.u64(*fence);
            }
        }
        w.0
    }

    fn decode(body: &[u8]) -> io::Result<Ask> {
        let mut r = Reader(body);
        Ok(match r.u8()? {
            0 => {
                let (run, cell) = (r.u64()?, r.u64()?);
                let (object, symbol) = (r.str()?, r.str()?);
                Ask::Run(RunCell { run, cell, object, symbol, places: r.str()? })
            }
            1 => {
                let (id, name) = (r.u64()?, r.str()?);
                let question = Question::named(&name).ok_or_else(|| bad("a question that there is not"))?;
                Ask::Call { id, question, args: r.str()? }
            }
            2 => {
                let ok = r.bool()?;
                let text = r.str()?;
                Ask::Input(if ok { Ok(text) } else { Err(text) })
            }
            3 => Ask::Shutdown,
            4 => Ask::Interrupt,
            5 => Ask::Drained(r.u64()?),
            _ => return Err(bad("unknown question")),
        })
    }
}

fn put_fault(w: &mut Writer, f: &Fault) {
    w.str(&f.name);
    w.str(&f.message);
    w.str(&f.file);
    w.u32(f.line);
    w.u32(f.column);
    w.list(&f.notes, |w, n| w.str(n));
}

fn get_fault(r: &mut Reader) -> io::Result<Fault> {
    Ok(Fault {
        name: r.str()?,
        message: r.str()?,
        file: r.str()?,
        line: r.u32()?,
        column: r.u32()?,
        notes: r.list(|r| r.str())?,
    })
}

impl Frame for Tell {
    fn encode(&self) -> Vec<u8> {
        let mut w = Writer::default();
        match self {
            Tell::Ready { version } => {
                w.u8(0);
                w.str(version);
            }
            Tell::Stream { stderr, text } => {
                w.u8(1);
                w.bool(*stderr);
                w.str(text);
            }
            Tell::Display { bundle, id, update } => {
                w.u8(2);
                w.bundle(bundle);
                w.option(id, |w, id| w.str(id));
                w.bool(*update);
            }
            Tell::Result(bundle) => {
                w.u8(3);
                w.bundle(bundle);
            }
            Tell::ClearOutput { wait } => {
                w.u8(4);
                w.bool(*wait);
            }
            Tell::AskInput { prompt, password } => {
                w.u8(5);
                w.str(prompt);
                w.bool(*password);
            }
            Tell::Event { kind, json } => {
                w.u8(6);
                w.str(kind);
                w.str(json);
            }
            Tell::Done { run, outcome, vars, lost, generator } => {
                w.u8(7);
                w.u64(*run);
                match outcome {
                    Outcome::Ok => w.u8(0),
                    Outcome::Failed(f) => {
                        w.u8(1);
                        put_fault(&mut w, f);
                    }
                    Outcome::Interrupted => w.u8(2),
                }
                w.list(vars, |w, v| {
                    w.str(&v.name);
                    w.str(&v.type_name);
                    w.str(&v.summary);
                    w.u64(v.cell);
                    w.bool(v.handle);
                    w.bool(v.lent);
                    w.bool(v.away);
                });
                w.list(lost, |w, (name, type_name)| {
                    w.str(name);
                    w.str(type_name);
                });
                w.u64(generator.0);
                w.u64(generator.1);
            }
            Tell::Reply { id, answer } => {
                w.u8(8);
                w.u64(*id);
                w.bool(answer.is_ok());
                match answer {
                    Ok(b) => w.bundle(b),
                    Err(f) => put_fault(&mut w, f),
                }
            }
            Tell::Fence(number) => {
                w.u8(9);
                w.u64(*number);
            }
            Tell::Comm(json) => {
                w.u8(10);
                w.str(json);
            }
        }
        w.0
    }

    fn decode(body: &[u8]) -> io::Result<Tell> {
        let mut r = Reader(body);
        Ok(match r.u8()? {
            0 => Tell::Ready { version: r.str()? },
            1 => Tell::Stream { stderr: r.bool()?, text: r.str()? },
            2 => Tell::Display { bundle: r.bundle()?, id: r.option(|r| r.str())?, update: r.bool()? },
            3 => Tell::Result(r.bundle()?),
            4 => Tell::ClearOutput { wait: r.bool()? },
            5 => Tell::AskInput { prompt: r.str()?, password: r.bool()? },
            6 => Tell::Event { kind: r.str()?, json: r.str()? },
            7 => {
                let run = r.u64()?;
                let outcome = match r.u8()? {
                    0 => Outcome::Ok,
                    1 => Outcome::Failed(get_fault(&mut r)?),
                    2 => Outcome::Interrupted,
                    _ => return Err(bad("unknown outcome")),
                };
                let vars = r.list(|r| {
                    Ok(Var {
                        name: r.str()?,
                        type_name: r.str()?,
                        summary: r.str()?,
                        cell: r.u64()?,
                        handle: r.bool()?,
                        lent: r.bool()?,
                        away: r.bool()?,
                    })
                })?;
                let lost = r.list(|r| Ok((r.str()?, r.str()?)))?;
                Tell::Done { run, outcome, vars, lost, generator: (r.u64()?, r.u64()?) }
            }
            8 => {
                let id = r.u64()?;
                let answer = if r.bool()? { Ok(r.bundle()?) } else { Err(get_fault(&mut r)?) };
                Tell::Reply { id, answer }
            }
            9 => Tell::Fence(r.u64()?),
            10 => Tell::Comm(r.str()?),
            _ => return Err(bad("unknown answer")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<F: Frame + PartialEq + std::fmt::Debug>(frames: &[F]) {
        let mut stream = Vec::new();
        frames.iter().for_each(|f| f.send(&mut stream).unwrap());
        let mut input = stream.as_slice();
        for f in frames {
            assert_eq!(F::receive(&mut input).unwrap().as_ref(), Some(f));
        }
        assert_eq!(F::receive(&mut input).unwrap(), None);
        for cut in 0..frames[0].encode().len() {
            let whole = frames[0].encode();
            assert!(F::decode(&whole[..cut]).is_err(), "a frame cut at {cut} must be refused");
        }
    }

    #[test]
    fn every_frame_survives_the_way() {
        let fault = Fault { name: "Panic".into(), message: "m".into(), notes: vec!["n".into()], ..Fault::default() };
        round_trip(&[
            Ask::Run(RunCell { run: 1, cell: 7, object: "o".into(), symbol: "s".into(), places: "f 7\nt".into() }),
            Ask::Call { id: 3, question: Question::Metrics, args: "".into() },
            Ask::Input(Ok("ü".into())),
            Ask::Input(Err("no stdin".into())),
            Ask::Interrupt,
            Ask::Drained(4),
            Ask::Shutdown,
        ]);
        round_trip(&[
            Tell::Done {
                run: 9,
                outcome: Outcome::Failed(fault.clone()),
                vars: vec![Var { name: "x".into(), type_name: "i32".into(), cell: 2, handle: true, ..Var::default() }],
                lost: vec![("y".into(), "f32".into())],
                generator: (3, 4),
            },
            Tell::Display {
                bundle: Bundle::html("<b>", "b").with_bytes("image/png", vec![1, 2]),
                id: Some("d".into()),
                update: true,
            },
            Tell::Ready { version: "0".into() },
            Tell::Stream { stderr: true, text: "t".into() },
            Tell::Result(Bundle::text("x")),
            Tell::ClearOutput { wait: true },
            Tell::AskInput { prompt: "p".into(), password: false },
            Tell::Event { kind: "compile".into(), json: "{}".into() },
            Tell::Reply { id: 1, answer: Err(fault) },
            Tell::Fence(4),
        ]);
    }
}
