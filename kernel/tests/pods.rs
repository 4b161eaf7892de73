//! `%pod`: programs on other processes' devices, through the whole system; and what becomes of a notebook when one of them dies,
//! stands still, or is none.
mod eval_support;

use eval_support::{engine, run};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use std::time::{Duration, Instant};
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;

/// A cell that must go well: what it gave.
fn ok(engine: &RustEngine, code: &str) -> String {
    let (out, reply) = run(engine, 1, code);
    assert_eq!(reply, Reply::Ok, "{code}: {out}");
    out
}

fn refused(engine: &RustEngine, code: &str) -> String {
    match run(engine, 1, code) {
        (_, Reply::Error(f)) => f.message,
        (out, reply) => panic!("{code}: {reply:?} {out}"),
    }
}

fn workers(engine: &RustEngine) -> Vec<Value> {
    let text = ok(engine, "%pod --json");
    let json: Value = serde_json::from_str(text.trim().trim_start_matches("[display] ")).expect("JSON");
    json.as_array().expect("a list").clone()
}

fn processes(engine: &RustEngine) -> Vec<Pid> {
    let pid = |w: &Value| Pid::from_raw(w["process"].as_i64().expect("a number") as i32);
    workers(engine).iter().map(pid).collect()
}

/// Ten steps of training: donated weights, momentum, numbers, random draws, integers.
const TRAIN: &str = r#"
manual_seed(7);
let x = Tensor::randn([32, 8]); let labels = tensor((0..32).map(|i| i % 4).collect::<Vec<i64>>());
let net = nn::Sequential::new((nn::Linear::new(8, 16), nn::ReLU, nn::Linear::new(16, 4)));
let mut opt = optim::Adam::new(net.parameters(), 0.01);
let mut losses: Vec<f32> = vec![];
for step in 0..10 {
    opt.zero_grad();
    let loss = nn::functional::cross_entropy(&net.forward(&x), &labels);
    loss.backward();
    optimizer_step(&mut opt);
    losses.push(loss.item() as f32);
}
"#;

#[test]
fn a_pod_of_one_gives_what_this_machine_gives() {
    let engine = engine();
    let wanted = "(losses.clone(), x.argmax_dim(1, false).to_vec::<i64>(), (&x * 2.0).sum().item())";
    ok(&engine, TRAIN);
    let here = ok(&engine, wanted);
    let said = ok(&engine, "%pod start --devices 2");
    assert!(said.contains("`%recover` runs the cells again") && said.contains("cpu:0, cpu:1"), "{said}");
    assert!(ok(&engine, "%recover").contains("Recovered"));
    assert_eq!(ok(&engine, wanted), here);
    // Its devices, and what a mesh over them does.
    assert_eq!(ok(&engine, "(x.to(\"cpu:1\") * 0.0 + 3.0).sum().item()"), "=> 768.0\n");
    let mesh = "let mesh = Mesh::new(&[(\"data\", 2)]); let s = mark_sharding(&x, &mesh, &[Some(\"data\"), None]); \
                let gram = s.t().matmul(&s);";
    ok(&engine, mesh);
    assert!(ok(&engine, "%collectives").contains("no collectives") || ok(&engine, "gram").contains("mesh(data=2)"));
    assert_eq!(ok(&engine, "(gram - x.t().matmul(&x)).abs().max().item() < 1e-3"), "=> true\n");
    // What XLA refuses is refused at its line, and what one device refuses later is told where its value is read.
    assert!(refused(&engine, "x.matmul(&x)").contains("matmul"));
    assert!(refused(&engine, "let i = tensor([99i64]); x.index_select(0, &i).sum().item()").contains("99"));
    let all = workers(&engine);
    assert_eq!(all.len(), 1);
    assert!(all[0]["programs"]["ended"].as_u64() > Some(3) && all[0]["in_use_bytes"].as_u64() > Some(1024), "{all:?}");
    assert!(all[0]["last_program"].as_str().is_some_and(|at| at.starts_with("cell 1, line ")), "{all:?}");
    assert!(ok(&engine, "%pod stop").contains("programs run on this machine"));
    // What this machine has not is told by the cell that wants it.
    assert!(refused(&engine, "%recover").contains("there is no device \"cpu:1\""));
    assert_eq!(ok(&engine, wanted), here);
    assert_eq!(refused(&engine, "%pod stop"), "there is no pod");
}

/// Whether this machine's CPU plugin has collectives between processes: a ready one has none.
fn joins(engine: &RustEngine) -> bool {
    let (out, reply) = run(
        engine,
        1,
        "{ let mesh = Mesh::new(&[(\"data\", 4)]); mark_sharding(&Tensor::ones([4]), &mesh, &[Some(\"data\")]).sum().item() }",
    );
    match reply {
        Reply::Ok => true,
        Reply::Error(f) if f.message.contains("has no collectives between processes") => false,
        other => panic!("{other:?} {out}"),
    }
}

#[test]
fn two_workers_are_one_mesh() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2 --devices 2");
    // From one worker to the other by way of this machine.
    assert_eq!(ok(&engine, "(Tensor::ones([3]).to(\"cpu:3\") * 3.0).to(\"cpu:0\").sum().item()"), "=> 9.0\n");
    if !joins(&engine) {
        return println!("skipped: this CPU plugin has no collectives between processes");
    }
    let cell = r#"
manual_seed(1);
let x = Tensor::randn([8, 4]); let w = Tensor::randn([4, 4]).requires_grad_(true);
let loss = x.matmul(&w).tanh().pow(2.0).sum(); loss.backward();
let (one, grad) = (loss.item() as f32, w.grad().unwrap().to_vec::<f32>());
let mesh = Mesh::new(&[("data", 4)]);
let v = w.detach().requires_grad_(true);
let sharded = mark_sharding(&x, &mesh, &[Some("data"), None]).matmul(&v).tanh().pow(2.0).sum(); sharded.backward();
let (many, of_many) = (sharded.item() as f32, v.grad().unwrap().to_vec::<f32>());
let off = grad.iter().zip(&of_many).map(|(a, b)| (a - b).abs()).fold((one - many).abs(), f32::max);
"#;
    ok(&engine, cell);
    assert_eq!(ok(&engine, "off < 1e-4"), "=> true\n");
    // Ranks, over all and in groups; each reduction is one program of both workers.
    let ranks = "spawn(4, |rank| { let t = tensor([rank as f32 + 1.0]); let sum = xm::all_reduce(xm::Sum, &[&t], 0.5, ()).remove(0); \
                 let max = xm::all_reduce(xm::Max, &[&t], 1.0, [vec![0, 3], vec![1, 2]].to_vec()).remove(0); \
                 (sum.item(), max.item()) })";
    assert_eq!(ok(&engine, ranks), "=> [(5.0, 4.0), (5.0, 3.0), (5.0, 3.0), (5.0, 4.0)]\n");
    let told = workers(&engine);
    assert!(told.iter().all(|w| w["programs"]["ended"].as_u64() >= Some(2)), "{told:?}");
}

/// What is promised on a machine that does nothing else, as in the long tests; one under load is given more.
fn within(seconds: f64) -> Duration {
    let load = if std::env::var_os("XLAZY_ROUNDS").is_some() { 1.0 } else { 10.0 };
    Duration::from_secs_f64(seconds * load)
}

/// Runs a cell, and does something to a process as soon as the cell has printed so often.
fn disturbed(engine: &RustEngine, code: &str, after: usize, pid: Pid, with: Signal) -> (Reply, Option<Duration>) {
    let request = Request { code: code.into(), cell: 1, store_history: true, allow_stdin: false, silent: false };
    let (mut printed, mut at) = (0, None);
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Stream { stderr: false, text } = event {
            printed += text.lines().count();
            if printed > after && at.is_none() {
                kill(pid, with).expect("a process");
                at = Some(Instant::now());
            }
        }
    });
    (reply, at.map(|at| at.elapsed()))
}

const STEPS: &str = "let mut y = Tensor::ones([64, 64]); for i in 0..400 { y = (y.matmul(&y) * 0.01).tanh(); sync(); \
                     if i % 4 == 0 { println!(\"{i} {:.2}\", y.sum().item()); } }";

#[test]
fn a_worker_that_is_killed_is_told_by_its_name() {
    let rounds = std::env::var("XLAZY_ROUNDS").ok().and_then(|n| n.parse().ok()).map_or(2, |n: usize| n * 10);
    let engine = engine();
    ok(&engine, "%pod start --workers 2");
    ok(&engine, "let kept = Tensor::ones([3]) * 2.0; sync(); let hosts = 5;");
    let mut random = fastrand::Rng::with_seed(12345);
    for round in 0..rounds {
        let (which, after) = (random.usize(..2), random.usize(..60));
        let pid = processes(&engine)[which];
        let (reply, took) = disturbed(&engine, STEPS, after, pid, Signal::SIGKILL);
        let took = took.expect("it was killed");
        let said = match reply {
            Reply::Error(f) => f.message,
            // It had printed its last line.
            Reply::Ok => refused(&engine, "kept.sum().item()"),
            Reply::Interrupted => panic!("nobody has interrupted"),
        };
        let who = format!("worker {which} (local) died (killed, signal 9): it has ");
        assert!(said.contains(&who) && said.contains("`%pod restart`"), "round {round}: {said}");
        assert!(took < within(1.0), "{took:?}");
        // Until then everything says so, and what is the host's is there.
        assert!(refused(&engine, "Tensor::ones([2]).sum().item()").contains(&who));
        assert!(ok(&engine, "%pod").contains(&who));
        ok(&engine, "%pod restart");
        let told = ok(&engine, "%recover");
        assert!(told.contains("Recovered"), "{told}");
        assert_eq!(ok(&engine, "(kept.sum().item(), hosts)"), "=> (6.0, 5)\n", "round {round}");
    }
}

#[test]
fn a_worker_that_stands_still_is_told_of_and_may_come_back() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2");
    ok(&engine, "let kept = Tensor::ones([3]) * 2.0; sync();");
    let pid = processes(&engine)[0];
    let (reply, took) = disturbed(&engine, STEPS, 3, pid, Signal::SIGSTOP);
    let Reply::Error(f) = reply else { panic!("{reply:?}") };
    // It may have been between two programs.
    let at = f.message.contains("has not ") || f.message.contains("has run all of");
    assert!(at && f.message.contains("worker 0 (local) was not heard for "), "{}", f.message);
    let took = took.expect("it was stopped");
    assert!(took < within(3.5), "{took:?}");
    kill(pid, Signal::SIGCONT).expect("a process");
    // Nothing was lost.
    let limit = Instant::now() + Duration::from_secs(20);
    while ok(&engine, "%pod").contains("was not heard") {
        assert!(Instant::now() < limit);
    }
    assert_eq!(ok(&engine, "kept.sum().item()"), "=> 6.0\n");
    // A long program is no hang, and an interrupt ends the wait for one.
    let long = "let mut y = Tensor::ones([600, 600]); for _ in 0..60 { y = (y.matmul(&y) * 0.001).tanh(); } y.sum().item().is_finite()";
    assert_eq!(ok(&engine, long), "=> true\n");
}

#[test]
fn what_is_no_pod_is_told_before_anything_ends() {
    let engine = engine();
    ok(&engine, "let kept = 5;");
    for (wanted, why) in [
        ("--workers 0", "expected a number from 1 to 128"),
        ("--via telnet", "there are local, ssh, gcloud, kubectl, srun"),
        ("--hosts 'a;b'", "is no host"),
    ] {
        let said = refused(&engine, &format!("%pod start {wanted}"));
        assert!(said.contains(why), "{wanted}: {said}");
        assert_eq!(ok(&engine, "kept"), "=> 5\n");
    }
    for (wanted, why) in [
        ("--via 'echo hello; echo oh no >&2; exit 3 #{worker}'", "worker 0 hello. It wrote:\noh no"),
        ("--via 'exec xlazy-is-not-there'", "worker 0 did not start (exit code 127). It wrote:\n"),
        (
            "--via 'echo xlazy worker, protocol 0, version 0.0.9; cat > /dev/null #{worker}'",
            "is another xlazy (protocol 0, version 0.0.9",
        ),
        ("--device TPU --env TPU_SKIP_MDS_QUERY=1", "worker 0 has no client: There is no TPU in this machine"),
        ("--env PJRT_DEVICE=abacus", "worker 0 has no client: PJRT_DEVICE is \"abacus\", which is no platform"),
        (concat!("--via 'echo welcome; exec {worker}' --worker '", env!("CARGO_BIN_EXE_xlazy"), " worker'"), ""),
    ] {
        if why.is_empty() {
            // A shell's greeting is none of a worker's.
            ok(&engine, &format!("%pod start {wanted}"));
            continue;
        }
        let said = refused(&engine, &format!("%pod start {wanted}"));
        assert!(said.contains(why), "{wanted}: {said}");
        assert!(ok(&engine, "%pod").contains("there is no pod"));
    }
}
