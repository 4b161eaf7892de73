//! What a controller and its workers say to one another: frames of a length and a body, in order. Lengths and numbers are
//! little-endian; a body is a kind and its fields. Nothing that a peer sends is trusted: what does not parse is refused.
use std::io::{Error, ErrorKind, Read};

/// The first line that a worker writes; what stands before it is its shell's.
pub fn greeting() -> String {
    format!("xlazy worker, protocol {PROTOCOL}, version {}\n", env!("CARGO_PKG_VERSION"))
}

/// Changes with anything below.
pub const PROTOCOL: u32 = 3;

/// More than any buffer has; a longer frame is no frame.
const MOST_BYTES: u64 = 1 << 40;
/// What is reserved before it has come.
const AT_ONCE: usize = 1 << 20;

/// Something that travels.
pub trait Wire: Sized {
    fn put(&self, out: &mut Vec<u8>);
    fn take(from: &mut &[u8]) -> Option<Self>;
}

/// Bytes that travel as they are.
#[derive(Clone, PartialEq)]
pub struct Bytes(pub Vec<u8>);

impl std::fmt::Debug for Bytes {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} bytes", self.0.len())
    }
}

macro_rules! numbers {
    ($($ty:ty)*) => { $(
        impl Wire for $ty {
            fn put(&self, out: &mut Vec<u8>) {
                out.extend(self.to_le_bytes());
            }
            fn take(from: &mut &[u8]) -> Option<$ty> {
                let (head, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(<$ty>::from_le_bytes(*head))
            }
        }
    )* };
}
numbers!(u8 u32 u64 u128 i64 f32);

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }
    fn take(from: &mut &[u8]) -> Option<bool> {
        match u8::take(from)? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }
}

impl Wire for Bytes {
    fn put(&self, out: &mut Vec<u8>) {
        (self.0.len() as u64).put(out);
        out.extend_from_slice(&self.0);
    }
    fn take(from: &mut &[u8]) -> Option<Bytes> {
        let n = usize::try_from(u64::take(from)?).ok()?;
        let (head, rest) = from.split_at_checked(n)?;
        *from = rest;
        Some(Bytes(head.to_vec()))
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        out.extend_from_slice(self.as_bytes());
    }
    fn take(from: &mut &[u8]) -> Option<String> {
        String::from_utf8(Bytes::take(from)?.0).ok()
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        (self.len() as u64).put(out);
        self.iter().for_each(|x| x.put(out));
    }
    fn take(from: &mut &[u8]) -> Option<Vec<T>> {
        // Each takes a byte at least, so a count cannot reserve more than came.
        let n = usize::try_from(u64::take(from)?).ok().filter(|n| *n <= from.len())?;
        (0..n).map(|_| T::take(from)).collect()
    }
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|x| x.put(out));
    }
    fn take(from: &mut &[u8]) -> Option<Option<T>> {
        Some(if bool::take(from)? { Some(T::take(from)?) } else { None })
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }
    fn take(from: &mut &[u8]) -> Option<(A, B)> {
        Some((A::take(from)?, B::take(from)?))
    }
}

impl<T: Wire> Wire for std::result::Result<T, Failure> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_ok().put(out);
        match self {
            Ok(x) => x.put(out),
            Err(e) => e.put(out),
        }
    }
    fn take(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::take(from)? { Ok(T::take(from)?) } else { Err(Failure::take(from)?) })
    }
}

macro_rules! structs {
    ($($(#[$doc:meta])* $name:ident { $($field:ident: $ty:ty,)* })*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $(pub $field: $ty,)* }

        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)*
            }
            fn take(from: &mut &[u8]) -> Option<$name> {
                Some($name { $($field: Wire::take(from)?,)* })
            }
        }
    )* };
}

macro_rules! kinds {
    ($(#[$doc:meta])* $name:ident { $($(#[$what:meta])* $number:literal $kind:ident { $($field:ident: $ty:ty),* })* }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $($(#[$what])* $kind { $($field: $ty),* },)* }

        impl Wire for $name {
            fn put(&self, out: &mut Vec<u8>) {
                match self {
                    $($name::$kind { $($field),* } => {
                        out.push($number);
                        $($field.put(out);)*
                    })*
                }
            }
            fn take(from: &mut &[u8]) -> Option<$name> {
                match u8::take(from)? {
                    $($number => Some($name::$kind { $($field: Wire::take(from)?),* }),)*
                    _ => None,
                }
            }
        }
    };
}

structs! {
    /// What a plugin refused, or a worker.
    Failure { call: String, code: i64, message: String, }
    /// How a worker makes its client.
    Open { worker: u32, workers: u32, host: String, platform: String, variables: Vec<(String, String)>, }
    /// A device of a worker's client.
    DeviceInfo { id: i64, kind: String, attributes: Vec<(String, Attribute)>, }
    /// What a client is, whether its plugin makes none that others can join, and for what it compiles: those of one kind can load
    /// one another's programs, unless it is empty.
    Opened { platform: String, version: String, process: u32, alone: bool, compiles_for: String, devices: Vec<DeviceInfo>, }
    /// As in `xlazy_pjrt::CompileOptions`; devices by the worker's ids.
    Options {
        replicas: i64,
        partitions: i64,
        assignment: Option<Vec<i64>>,
        spmd: bool,
        shardy: bool,
        level: Option<i64>,
        flags: Vec<(String, Attribute)>,
    }
    /// A compiled program: what its results look like on one device, and on which devices it runs, in order.
    Made { results: Vec<(u32, Vec<i64>)>, devices: Vec<i64>, fingerprint: Bytes, code_bytes: u64, }
}

kinds! {
    /// A named value of a plugin's.
    Attribute {
        1 Str { s: String }
        2 Int { i: i64 }
        3 Ints { l: Vec<i64> }
        4 Float { x: f32 }
        5 Bool { b: bool }
    }
}

kinds! {
    /// What a controller tells a worker. It is done in this order, and answered when it is done.
    Command {
        1 Open { open: Open }
        2 Compile { request: u64, program: u64, hash: u128, format: String, code: Bytes, options: Options, compares: bool }
        3 Upload { buffer: u64, device: u32, dtype: u32, dims: Vec<i64>, bytes: Bytes }
        /// For each device of the worker's the buffers in and out, and arguments that are not given away.
        4 Run { run: u64, program: u64, hash: u128, arguments: Vec<Vec<u64>>, results: Vec<Vec<u64>>, kept: Vec<i64> }
        5 Fetch { request: u64, buffer: u64 }
        6 Copy { from: u64, to: u64, device: u32 }
        7 Free { buffer: u64 }
        8 Forget { program: u64 }
        9 Ask { request: u64, about: About }
        /// The answer to `Get`.
        10 Value { request: u64, value: Option<Bytes> }
        /// What another worker has compiled.
        11 Load { request: u64, program: u64, hash: u128, code: Bytes }
        /// An upload of runs of a file of the worker's own.
        12 Read { buffer: u64, device: u32, dtype: u32, dims: Vec<i64>, path: String, runs: Vec<(u64, u64)> }
    }
}

kinds! {
    /// What may be asked.
    About {
        1 Optimized { program: u64 }
        2 Costs { program: u64 }
        3 Needs { program: u64 }
        4 Memory { device: u32 }
        5 Serialized { program: u64 }
        6 File { path: String, at: u64, length: u64 }
    }
}

kinds! {
    /// What a worker says.
    Said {
        1 Opened { made: Result<Opened, Failure> }
        /// It lives: which run has started, and which has ended.
        2 Beat { started: u64, ended: u64 }
        3 Compiled { request: u64, made: Result<Made, Failure> }
        4 Started { run: u64 }
        /// Whether it never started is told, too.
        5 Ended { run: u64, failed: Option<Failure>, started: bool }
        6 Answer { request: u64, answer: Result<Bytes, Failure> }
        7 Get { request: u64, key: String, waits: bool }
        8 Put { key: String, value: Bytes }
    }
}

/// A frame with a number: each side counts what it sends.
pub fn frame(number: u64, what: &impl Wire) -> Vec<u8> {
    let mut out = vec![0; 8];
    number.put(&mut out);
    what.put(&mut out);
    let n = (out.len() - 8) as u64;
    out[..8].copy_from_slice(&n.to_le_bytes());
    out
}

/// The next frame, which must bear this number; `None` at the end of the stream.
///
/// Errors: another number, what is no frame, what the stream says.
pub fn receive<T: Wire>(from: &mut impl Read, number: u64) -> std::io::Result<Option<T>> {
    let mut head = [0; 8];
    if from.read(&mut head[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut head[1..])?;
    let n = u64::from_le_bytes(head);
    let refused = |what: String| Error::new(ErrorKind::InvalidData, what);
    if !(8..=MOST_BYTES).contains(&n) {
        return Err(refused(format!("a frame of {n} bytes")));
    }
    let mut body = Vec::with_capacity(AT_ONCE.min(n as usize));
    from.take(n).read_to_end(&mut body)?;
    if body.len() as u64 != n {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    let mut left = body.as_slice();
    let got = u64::take(&mut left);
    if got != Some(number) {
        return Err(refused(format!("frame {} where {number} was expected", got.unwrap_or(0))));
    }
    T::take(&mut left)
        .filter(|_| left.is_empty())
        .map(Some)
        .ok_or_else(|| refused(format!("frame {number} does not parse")))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is drawn, the same in every run.
    struct Random(fastrand::Rng);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0.u64(..1 << 31)
        }
        fn bytes(&mut self) -> Vec<u8> {
            (0..self.next() % 40).map(|_| self.next() as u8).collect()
        }
        fn numbers(&mut self) -> Vec<u64> {
            (0..self.next() % 5).map(|_| self.next()).collect()
        }
        fn command(&mut self) -> Command {
            let (request, program) = (self.next(), self.next());
            match self.next() % 7 {
                6 => Command::Read {
                    buffer: request,
                    device: 1,
                    dtype: 11,
                    dims: vec![3],
                    path: "data/x.safetensors".into(),
                    runs: vec![(8, program), (program, 4)],
                },
                0 => Command::Upload {
                    buffer: request,
                    device: 3,
                    dtype: 11,
                    dims: vec![2, -1],
                    bytes: Bytes(self.bytes()),
                },
                1 => Command::Run {
                    run: request,
                    program,
                    hash: u128::from(program) << 70,
                    arguments: vec![self.numbers(), self.numbers()],
                    results: vec![self.numbers()],
                    kept: vec![1, 2],
                },
                2 => Command::Ask { request, about: About::Memory { device: 1 } },
                3 => Command::Value { request, value: (program % 2 == 0).then(|| Bytes(self.bytes())) },
                4 => Command::Compile {
                    request,
                    program,
                    hash: 1,
                    format: "mlir".into(),
                    code: Bytes(self.bytes()),
                    options: Options {
                        replicas: 1,
                        partitions: 2,
                        assignment: Some(vec![0, 131072]),
                        spmd: true,
                        shardy: false,
                        level: None,
                        flags: vec![
                            ("a".into(), Attribute::Bool { b: true }),
                            ("b".into(), Attribute::Float { x: 1.5 }),
                        ],
                    },
                    compares: true,
                },
                _ => Command::Free { buffer: request },
            }
        }
    }

    #[test]
    fn what_was_sent_is_what_comes_and_anything_else_is_refused() {
        let mut random = Random(fastrand::Rng::with_seed(7));
        for _ in 0..300 {
            let all: Vec<Command> = (0..1 + random.next() % 4).map(|_| random.command()).collect();
            let sent: Vec<u8> = all.iter().zip(1..).flat_map(|(c, n)| frame(n, c)).collect();
            let mut from = sent.as_slice();
            for (n, command) in (1..).zip(&all) {
                assert_eq!(receive::<Command>(&mut from, n).unwrap().as_ref(), Some(command));
            }
            assert_eq!(receive::<Command>(&mut from, 9).unwrap(), None);
            // Cut short, it is no end; changed, it is refused or another command, and nothing else happens.
            let first = frame(1, &all[0]);
            for cut in 1..first.len() {
                assert!(receive::<Command>(&mut &first[..cut], 1).is_err(), "{cut}");
            }
            for _ in 0..50 {
                let mut changed = first.clone();
                let at = random.next() as usize % changed.len();
                changed[at] ^= 1 << (random.next() % 8);
                let _ = receive::<Command>(&mut changed.as_slice(), 1);
                let _ = receive::<Said>(&mut changed.as_slice(), 1);
            }
        }
        assert!(
            receive::<Command>(&mut frame(2, &Command::Free { buffer: 1 }).as_slice(), 1).is_err(),
            "a frame was lost"
        );
        assert!(receive::<Command>(&mut u64::MAX.to_le_bytes().as_slice(), 1).is_err());
    }
}
