//! A pod's worker as its controller meets it: a process that does what it is told, and nothing that is not for it.
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use xlazy_core::pod::wire::{self, About, Bytes, Command as Tell, Open, Options, Said};

const AS_WORKER: &str = "XLAZY_TEST_AS_WORKER";

/// This program is the worker, too: what a test prints before it is a shell's greeting.
#[test]
fn as_a_worker() {
    if std::env::var_os(AS_WORKER).is_some() {
        std::process::exit(xlazy::worker_main());
    }
}

struct Worker {
    child: Child,
    to: Option<ChildStdin>,
    from: BufReader<ChildStdout>,
    told: u64,
    heard: u64,
}

impl Worker {
    fn start() -> Worker {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "as_a_worker", "--nocapture"]).env(AS_WORKER, "1").env("PJRT_DEVICE", "CPU");
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, mut from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let mut line = String::new();
        while line != wire::greeting() {
            line.clear();
            assert!(from.read_line(&mut line).unwrap() > 0, "no greeting came");
        }
        Worker { child, to: Some(to), from, told: 0, heard: 0 }
    }

    fn tell(&mut self, command: Tell) {
        self.told += 1;
        self.to.as_mut().unwrap().write_all(&wire::frame(self.told, &command)).unwrap();
    }

    /// What it says next, besides that it lives and what it has started.
    fn hear(&mut self) -> Said {
        loop {
            self.heard += 1;
            match wire::receive(&mut self.from, self.heard).unwrap().expect("an answer") {
                Said::Beat { .. } | Said::Started { .. } => {}
                said => return said,
            }
        }
    }

    fn open(&mut self) {
        let variables = vec![("XLAZY_CPU_DEVICES".into(), "1".into())];
        let (host, platform) = (String::new(), "CPU".into());
        self.tell(Tell::Open { open: Open { worker: 0, workers: 1, host, platform, variables } });
        let Said::Opened { made: Ok(opened) } = self.hear() else { panic!("no client") };
        assert_eq!((opened.platform.as_str(), opened.devices.len()), ("cpu", 1));
    }

    fn numbers(&mut self, buffer: u64) -> Vec<f32> {
        self.tell(Tell::Fetch { request: 1000 + buffer, buffer });
        match self.hear() {
            Said::Answer { request, answer: Ok(Bytes(bytes)) } if request == 1000 + buffer => {
                bytes.chunks_exact(4).map(|c| f32::from_le_bytes(c.try_into().unwrap())).collect()
            }
            said => panic!("{said:?}"),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const TWICE: &str = "module @twice { func.func public @main(%0: tensor<2xf32>) -> (tensor<2xf32>) {
    %1 = stablehlo.add %0, %0 : tensor<2xf32>
    return %1 : tensor<2xf32>
  } }";
const HASH: u128 = 77;
/// PJRT's number of float32.
const F32: u32 = 11;

fn options() -> Options {
    let (assignment, level, flags) = Default::default();
    Options { replicas: 1, partitions: 1, assignment, spmd: false, shardy: false, level, flags }
}

#[test]
fn runs_that_are_not_for_it_are_refused_and_change_nothing() {
    let mut w = Worker::start();
    w.open();
    let (format, code) = ("mlir".to_owned(), Bytes(TWICE.into()));
    w.tell(Tell::Compile { request: 1, program: 5, hash: HASH, format, code, options: options(), compares: false });
    assert!(matches!(w.hear(), Said::Compiled { request: 1, made: Ok(made) } if made.results == [(F32, vec![2])]));
    let mut random = fastrand::Rng::with_seed(21);
    let (mut value, mut at, mut next, mut buffers) = ([1.5f32, -2.0], 1u64, 1u64, 1u64);
    let bytes = |v: [f32; 2]| Bytes(v.iter().flat_map(|x| x.to_le_bytes()).collect());
    w.tell(Tell::Upload { buffer: at, device: 0, dtype: F32, dims: vec![2], bytes: bytes(value) });
    for step in 0..60 {
        buffers += 1;
        let (mut run, mut hash, mut program) = (next, HASH, 5);
        let (mut arguments, mut results) = (vec![vec![at]], vec![vec![buffers]]);
        let kind = random.usize(..8);
        let why = match kind {
            // A run was lost, or comes twice: it is not even counted.
            0 => {
                run = if random.bool() { next + 1 + random.u64(..3) } else { next.saturating_sub(1 + random.u64(..2)) };
                "came where run"
            }
            1 => {
                hash ^= 1 << random.u32(..128);
                "is of another program than program 5 is here"
            }
            2 => {
                program = 6;
                "there is no program 6 here"
            }
            3 => {
                arguments = vec![vec![9999]];
                "there is no buffer 9999 here"
            }
            4 => {
                arguments.push(vec![at]);
                "is not for 1 devices with 1 results each"
            }
            5 => {
                results[0].clear();
                "is not for 1 devices with 1 results each"
            }
            _ => "",
        };
        w.tell(Tell::Run { run, program, hash, arguments, results, kept: vec![0] });
        let Said::Ended { run: of, failed, started } = w.hear() else { panic!("step {step}") };
        assert_eq!((of, started), (run, why.is_empty()), "step {step}: {failed:?}");
        match failed {
            None => {
                value = value.map(|x| (x + x) % 1e6);
                assert!(why.is_empty(), "step {step}: a run of kind {kind} was taken");
                let got = w.numbers(buffers);
                let got = [got[0] % 1e6, got[1] % 1e6];
                assert_eq!(got, value, "step {step}");
                w.tell(Tell::Free { buffer: buffers });
                w.tell(Tell::Upload {
                    buffer: at + 100_000,
                    device: 0,
                    dtype: F32,
                    dims: vec![2],
                    bytes: bytes(value),
                });
                at += 100_000;
            }
            Some(failure) => assert!(!why.is_empty() && failure.message.contains(why), "step {step}: {failure:?}"),
        }
        next += u64::from(kind != 0);
    }
    assert_eq!(w.numbers(at), value);
}

#[test]
fn what_one_worker_has_compiled_another_one_loads() {
    let (mut one, mut other) = (Worker::start(), Worker::start());
    one.open();
    other.open();
    let (format, code) = ("mlir".to_owned(), Bytes(TWICE.into()));
    one.tell(Tell::Compile { request: 1, program: 5, hash: HASH, format, code, options: options(), compares: true });
    assert!(matches!(one.hear(), Said::Compiled { made: Ok(_), .. }));
    one.tell(Tell::Ask { request: 2, about: About::Serialized { program: 5 } });
    let Said::Answer { answer: Ok(code), .. } = one.hear() else { panic!("no code") };
    other.tell(Tell::Load { request: 1, program: 5, hash: HASH, code: Bytes(code.0[..code.0.len() / 2].to_vec()) });
    assert!(matches!(other.hear(), Said::Compiled { made: Err(_), .. }), "half of it was taken");
    other.tell(Tell::Load { request: 2, program: 5, hash: HASH, code });
    assert!(matches!(other.hear(), Said::Compiled { made: Ok(made), .. } if made.results == [(F32, vec![2])]));
    let bytes = Bytes([3f32, 4.0].iter().flat_map(|x| x.to_le_bytes()).collect());
    other.tell(Tell::Upload { buffer: 1, device: 0, dtype: F32, dims: vec![2], bytes });
    let (arguments, results) = (vec![vec![1]], vec![vec![2]]);
    other.tell(Tell::Run { run: 1, program: 5, hash: HASH, arguments, results, kept: vec![] });
    assert!(matches!(other.hear(), Said::Ended { run: 1, failed: None, started: true }));
    assert_eq!(other.numbers(2), [6.0, 8.0]);
}

#[test]
fn it_ends_with_its_controller() {
    let mut w = Worker::start();
    w.open();
    w.to = None;
    assert!(w.child.wait().unwrap().success());
}
