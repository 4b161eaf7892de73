//! `%pod`: programs on other processes' devices, through the whole system; and what becomes of a notebook when one of them dies,
//! stands still, or is none.
mod eval_support;
mod folder;
mod sizes;

use eval_support::{engine, run};
use folder::Folder;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use sizes::rounds;
use std::time::{Duration, Instant};
use xlazy_kernel::engine::{Engine, Event, Reply, Request};
use xlazy_kernel::eval::RustEngine;
use xlazy_kernel::eval::install::Installation;

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
    // The first has compiled what both run, and the other one has loaded that.
    let of = |w: usize, what: &str| told[w]["programs"][what].as_u64();
    assert!(of(1, "loaded") >= Some(2) && of(0, "loaded") == Some(0), "{told:?}");
    assert!(of(0, "compiled") >= of(1, "loaded"), "{told:?}");
}

/// In how many ways so many devices are in groups.
const GROUPINGS: &str = r#"fn groupings(n: usize) -> Vec<Vec<Vec<usize>>> {
    let Some(last) = n.checked_sub(1) else { return vec![vec![]] };
    let mut all = vec![];
    for before in groupings(last) {
        for i in 0..=before.len() {
            let mut with = before.clone();
            if i == before.len() { with.push(vec![]) }
            with[i].push(last);
            all.push(with);
        }
    }
    all
}"#;

/// What eight devices of one process are asked by the runtime's tests.
const TABLE: &str = include_str!("../../runtime/tests/table/mod.rs");

#[test]
fn two_workers_exchange_what_one_process_does() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2 --devices 2");
    if !joins(&engine) {
        return println!("skipped: this CPU plugin has no collectives between processes");
    }
    ok(&engine, &TABLE.lines().filter(|l| !l.starts_with("//!")).collect::<Vec<_>>().join("\n"));
    ok(&engine, GROUPINGS);
    ok(&engine, "let mesh = Mesh::new(&[(\"x\", 4)]); let all = groupings(4); assert_eq!(all.len(), 15);");
    // Programs of so many collectives take seconds to compile: in the long tests all groups are asked of all dtypes.
    let (step, dtypes) = if rounds(1) > 1 { (1, "&DType::ALL") } else { (3, "&KINDS") };
    ok(&engine, &format!("for groups in all.iter().step_by({step}) {{ check(&mesh, \"x\", groups, {dtypes}); }}"));
    ok(
        &engine,
        &format!(
            "for groups in all.iter().step_by({step}).step_by(2) {{ check_gradients(&mesh, \"x\", groups, {dtypes}); }}"
        ),
    );
    // In another order in their groups than on the workers.
    ok(
        &engine,
        "check(&mesh, \"x\", &[vec![3, 1], vec![2, 0]], &DType::ALL); check(&mesh, \"x\", &[vec![2, 0, 3, 1]], &KINDS);",
    );
}

/// One that came ready may lie beside it: several processes take the one that knows of others, a single one does not.
#[test]
fn workers_take_the_plugin_that_joins_them_where_there_is_one() {
    let (engine, dir) = (engine(), Folder::new("multi"));
    let plugins = Installation::find().unwrap_or_else(|f| panic!("{}", f.message)).plugins_dir;
    std::fs::create_dir_all(dir.0.join("cpu")).unwrap();
    std::fs::write(dir.0.join("cpu/libpjrt_cpu.so"), "no library").unwrap();
    std::os::unix::fs::symlink(plugins.join("cpu"), dir.0.join("cpu-multi")).unwrap();
    let start = |workers: usize| {
        format!("%pod start --workers {workers} --devices 1 --env XLAZY_PLUGIN_DIR={}", dir.0.display())
    };
    assert!(refused(&engine, &start(1)).contains("cpu/libpjrt_cpu.so"));
    ok(&engine, &start(2));
    assert_eq!(workers(&engine).len(), 2);
}

#[test]
fn each_worker_reads_its_own_files() {
    let (engine, dir) = (engine(), Folder::new("files"));
    let at = dir.0.display();
    ok(&engine, &format!("let at = {:?};", at.to_string()));
    // Rows that follow one another, and all of them in one file.
    let save = r#"
std::fs::create_dir_all(at).unwrap();
let rows = |from: i64, to: i64| Tensor::arange(from * 3, to * 3, 1).reshape([to - from, 3]);
let flags = |n: i64| Tensor::arange(0, n, 1).gt(0);
let save = |file: &str, x: Tensor, b: Tensor| {
    nn::save(format!("{at}/{file}"), &[("x".to_owned(), x), ("b".to_owned(), b)]).unwrap()
};
save("0", rows(0, 4), flags(4)); save("1", rows(4, 8), flags(4)); save("all", rows(0, 8), flags(8)); save("other", rows(0, 2), flags(2));
std::fs::write(format!("{at}/none"), "no tensors").unwrap();
"#;
    ok(&engine, save);
    ok(&engine, "%pod start --workers 2 --devices 2");
    let ask = |file: &str, rules: &str, what: &str| {
        format!(
            "{{ let mesh = Mesh::new(&[(\"data\", 4)]); let rules: &[(&str, &[Option<&str>])] = &[{rules}]; \
             nn::parallel::load(\"{at}/{file}\", &mesh, rules).map(|t| {what}).map_err(|e| e.to_string()) }}"
        )
    };
    let rows = r#"("x", &[Some("data"), None]), ("b", &[Some("data")])"#;
    let values = "(t[0].1.to_vec::<i64>() == (0..24).collect::<Vec<i64>>(), t[0].1.sharding().unwrap().to_string(), t[1].1.to_vec::<bool>())";
    let of = |b: &str| format!("=> Ok((true, \"(data, None)\", [{b}]))\n");
    let (own, whole) = ("false, true, true, true", "true, true, true, true");
    assert_eq!(ok(&engine, &ask("{i}", rows, values)), of(&format!("{own}, {own}")));
    assert_eq!(ok(&engine, &ask("all", rows, values)), of(&format!("{own}, {whole}")));
    for (file, why) in [
        ("missing", "worker 0 (local): cannot read "),
        ("none", "of worker 0: the file is too short for its header"),
        ("other", "`x`: dimension 0 of size 2 does not split evenly in 4 parts"),
    ] {
        let said = ok(&engine, &ask(file, rows, "t.len()"));
        assert!(said.contains("Err(") && said.contains(why), "{file}: {said}");
    }
    // Whole on each device, of rows that are on the other machine.
    let said = ok(&engine, &ask("{i}", "", "t.len()"));
    assert!(said.contains("is to hold rows that are in another machine's file"), "{said}");
}

/// What is promised on a machine that does nothing else, as in the long tests; one under load is given more.
fn within(seconds: f64) -> Duration {
    let load = if std::env::var_os("XLAZY_ROUNDS").is_some() { 1.0 } else { 10.0 };
    Duration::from_secs_f64(seconds * load)
}

/// Runs a cell, and does something as soon as the cell has printed so often; how long ago that was when it ended.
fn doing(engine: &RustEngine, code: &str, after: usize, does: impl Fn()) -> (Reply, Option<Duration>) {
    let request = Request { code: code.into(), cell: 1, store_history: true, allow_stdin: false, silent: false };
    let (mut printed, mut at) = (0, None);
    let reply = engine.execute(&request, &mut |event| {
        if let Event::Stream { stderr: false, text } = event {
            printed += text.lines().count();
            if printed > after && at.is_none() {
                does();
                at = Some(Instant::now());
            }
        }
    });
    (reply, at.map(|at| at.elapsed()))
}

fn disturbed(engine: &RustEngine, code: &str, after: usize, pids: &[Pid], with: Signal) -> (Reply, Option<Duration>) {
    doing(engine, code, after, || pids.iter().for_each(|&pid| kill(pid, with).expect("a process")))
}

const STEPS: &str = "let mut y = Tensor::ones([64, 64]); for i in 0..400 { y = (y.matmul(&y) * 0.01).tanh(); sync(); \
                     if i % 4 == 0 { println!(\"{i} {:.2}\", y.sum().item()); } }";

/// The same on a mesh over all workers, and without a look at what comes of it: so many programs are on their way that another
/// one waits for its turn.
const TOGETHER: &str = r#"let mesh = Mesh::new(&[("data", 4)]); let on = |x: &Tensor| mark_sharding(x, &mesh, &[Some("data"), None]);
let mut y = on(&Tensor::ones([16, 16])); sync();
for i in 0..400 { y = on(&(&y * 0.5 + (y.t().matmul(&y) * 1e-4).tanh())); sync(); println!("{i}"); }
y.sum().item().is_finite()"#;

/// What is disturbed on a pod: the cells that its CPU plugin can run.
fn cells(engine: &RustEngine) -> &'static [&'static str] {
    if joins(engine) { &[STEPS, TOGETHER] } else { &[STEPS] }
}

/// What is said of a pod that ended while a cell ran.
fn why_it_ended(engine: &RustEngine, reply: Reply) -> String {
    match reply {
        Reply::Error(f) => f.message,
        // It had printed its last line.
        Reply::Ok => refused(engine, "kept.sum().item()"),
        Reply::Interrupted => panic!("nobody has interrupted"),
    }
}

#[test]
fn a_worker_that_is_killed_is_told_by_its_name() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2 --devices 2");
    ok(&engine, "let kept = Tensor::ones([3]) * 2.0; sync(); let hosts = 5;");
    let (mut random, cells) = (fastrand::Rng::with_seed(12345), cells(&engine));
    for round in 0..rounds(4) {
        let (which, after) = (random.usize(..2), random.usize(..60));
        let pid = processes(&engine)[which];
        let cell = cells[round as usize % cells.len()];
        let (reply, took) = disturbed(&engine, cell, after, &[pid], Signal::SIGKILL);
        let took = took.expect("it was killed");
        let said = why_it_ended(&engine, reply);
        let who = format!("worker {which} (local) died (killed, signal 9): it has ");
        assert!(said.contains(&who) && said.contains("`%recover` starts all workers anew"), "round {round}: {said}");
        assert!(took < within(1.0), "{took:?}");
        // Until then everything says so, and what is the host's is there.
        assert!(refused(&engine, "Tensor::ones([2]).sum().item()").contains(&who));
        assert!(ok(&engine, "%pod").contains(&who));
        // Both ways to workers that are started anew.
        if round % 2 == 0 {
            ok(&engine, "%pod restart");
        }
        let told = ok(&engine, "%recover");
        assert!(told.contains("Recovered"), "{told}");
        assert_eq!(ok(&engine, "(kept.sum().item(), hosts)"), "=> (6.0, 5)\n", "round {round}");
    }
}

/// The others wait in it for the worker that cannot take part: that is told, and the next step starts the pod again.
#[test]
fn a_program_that_fails_on_one_worker_ends_the_pod_and_recover_starts_it_again() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2 --devices 2");
    if !joins(&engine) {
        return println!("skipped: this CPU plugin has no collectives between processes");
    }
    let kept = "let mesh = Mesh::new(&[(\"data\", 4)]); let rows = |x: &Tensor| mark_sharding(x, &mesh, &[Some(\"data\"), None]); \
                let kept = rows(&(Tensor::ones([8, 4]) * 2.0)); sync(); let hosts = 5;";
    ok(&engine, kept);
    let before = processes(&engine);
    // What it has, and some more.
    let status = std::fs::read_to_string(format!("/proc/{}/status", before[1])).expect("a process");
    let size = status.lines().find_map(|l| l.strip_prefix("VmSize:")).expect("a size");
    let size: u64 = size.trim().trim_end_matches(" kB").parse().expect("a number");
    let limit = format!("--as={}", (size << 10) + (32 << 20));
    let limited = std::process::Command::new("prlimit").args(["--pid", &before[1].to_string(), &limit]).status();
    assert!(limited.expect("prlimit").success());
    let large = "let large = rows(&(kept.sum_dim(1, true) * Tensor::ones([1, 1 << 23]))); let sum = large.sum(); sync(); sum.item()";
    let said = refused(&engine, large);
    assert!(said.contains("worker 1 (local) ") && said.contains(", and the others wait for it: "), "{said}");
    assert!(said.contains("`%recover` starts all workers anew"), "{said}");
    assert_eq!(refused(&engine, "kept.sum().item()"), said);
    let told = ok(&engine, "%recover");
    assert!(told.contains("Recovered"), "{told}");
    assert_eq!(ok(&engine, "(kept.sum().item(), hosts)"), "=> (64.0, 5)\n");
    assert!(processes(&engine).iter().all(|now| !before.contains(now)));
}

/// Processes stand still at a random moment of a cell's, are told of, and go on: nothing was lost.
fn stands_still(engine: &RustEngine, cell: &str, pids: &[Pid], after: usize) {
    let (reply, took) = disturbed(engine, cell, after, pids, Signal::SIGSTOP);
    let Reply::Error(f) = reply else { panic!("{reply:?}") };
    // It may have been between two programs.
    let at = f.message.contains("has not ") || f.message.contains("has run all of");
    assert!(at && f.message.contains("worker 0") && f.message.contains(" was not heard for "), "{}", f.message);
    assert!(f.message.contains("the network to it is cut"), "{}", f.message);
    let took = took.expect("it was stopped");
    assert!(took < within(3.5), "{took:?}");
    pids.iter().for_each(|&pid| kill(pid, Signal::SIGCONT).expect("a process"));
    let limit = Instant::now() + Duration::from_secs(20);
    while ok(engine, "%pod").contains("was not heard") {
        assert!(Instant::now() < limit);
    }
    assert_eq!(ok(engine, "kept.sum().item()"), "=> 6.0\n");
}

#[test]
fn a_worker_that_stands_still_is_told_of_and_may_come_back() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2 --devices 2");
    ok(&engine, "let kept = Tensor::ones([3]) * 2.0; sync();");
    let (mut random, cells) = (fastrand::Rng::with_seed(777), cells(&engine));
    for round in 0..rounds(4) {
        let cell = cells[round as usize % cells.len()];
        stands_still(&engine, cell, &processes(&engine)[..1], random.usize(..60));
    }
    // A long program is no hang, and an interrupt ends the wait for one.
    let long = "let mut y = Tensor::ones([600, 600]); for _ in 0..60 { y = (y.matmul(&y) * 0.001).tanh(); } y.sum().item().is_finite()";
    assert_eq!(ok(&engine, long), "=> true\n");
}

impl Folder {
    fn script(&self, name: &str, text: &str) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(&path, text).expect("a script");
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a script");
    }
}

/// What passes bytes on between a worker and its controller, so that a network can be cut: the options of a pod behind two of
/// them for each worker, and where they write their numbers.
struct Relays(Folder);

impl Relays {
    fn new() -> Relays {
        let dir = Folder::new("relays");
        dir.script("relay", "echo $$ > $1.new; mv $1.new $1; exec cat");
        Relays(dir)
    }

    fn pod(&self, workers: usize) -> String {
        let (dir, xlazy) = (self.0.0.display(), env!("CARGO_BIN_EXE_xlazy"));
        let via = format!("sh {dir}/relay {dir}/to{{i}} | {{worker}} | sh {dir}/relay {dir}/from{{i}}");
        format!("%pod start --workers {workers} --via '{via}' --worker '{xlazy} worker'")
    }

    fn of(&self, worker: usize) -> [Pid; 2] {
        ["to", "from"].map(|way| {
            let text = std::fs::read_to_string(self.0.0.join(format!("{way}{worker}"))).expect("a number");
            Pid::from_raw(text.trim().parse().expect("a number"))
        })
    }
}

#[test]
fn a_network_that_is_cut_is_told_and_may_come_back() {
    let (engine, relays) = (engine(), Relays::new());
    ok(&engine, &relays.pod(2));
    ok(&engine, "let kept = Tensor::ones([3]) * 2.0; sync();");
    let mut random = fastrand::Rng::with_seed(99);
    for _ in 0..rounds(3) {
        stands_still(&engine, STEPS, &relays.of(0), random.usize(..60));
    }
    // Cut for good, with the connection closed: as a worker that died.
    let (reply, _) = disturbed(&engine, STEPS, random.usize(..60), &relays.of(1), Signal::SIGKILL);
    let said = why_it_ended(&engine, reply);
    assert!(said.contains("worker 1 died (") && said.contains("`%recover` starts all workers anew"), "{said}");
    ok(&engine, "%recover");
    assert_eq!(ok(&engine, "kept.sum().item()"), "=> 6.0\n");
}

#[test]
fn an_interrupt_issues_nothing_more_and_a_second_one_ends_the_workers() {
    let engine = engine();
    ok(&engine, "%pod start --workers 2");
    ok(&engine, "let kept = Tensor::ones([3]) * 2.0; sync();");
    let before = processes(&engine);
    let mut random = fastrand::Rng::with_seed(4321);
    // On one worker, and from one to the other by way of this machine.
    for round in 0..rounds(4) {
        let next = ["&y", "&y.to(\"cpu:1\").to(\"cpu:0\")"][round as usize % 2];
        let forever = format!(
            "{{ let mut y = Tensor::ones([64, 64]); loop {{ y = (y.matmul({next}) * 0.01).tanh(); sync(); println!(\"on\"); }} }}"
        );
        let (reply, took) = doing(&engine, &forever, random.usize(..40), || assert!(engine.interrupt()));
        assert_eq!(reply, Reply::Interrupted);
        assert!(took.expect("it was interrupted") < within(1.0), "{took:?}");
        // What was issued ends, and nothing comes behind it.
        let programs = || workers(&engine).iter().map(|w| w["programs"].clone()).collect::<Vec<Value>>();
        let limit = Instant::now() + Duration::from_secs(20);
        while programs().iter().any(|p| p["told"] != p["ended"]) {
            assert!(Instant::now() < limit, "{:?}", programs());
        }
        assert_eq!(programs(), programs());
        assert_eq!(ok(&engine, "kept.sum().item()"), "=> 6.0\n");
    }
    assert_eq!(processes(&engine), before, "the same workers");
    // Nothing looks at an interrupt there.
    let stuck = "unsafe extern \"C\" { fn pthread_mutex_lock(mutex: *mut u64) -> i32; }\nlet mut mutex = [0u64; 5];\n\
                 println!(\"go\");\nunsafe { pthread_mutex_lock(mutex.as_mut_ptr()); pthread_mutex_lock(mutex.as_mut_ptr()) };";
    let twice = || {
        assert!(engine.interrupt());
        // So long after the first is what makes it the second one.
        std::thread::park_timeout(Duration::from_millis(300));
        assert!(engine.interrupt());
    };
    match doing(&engine, stuck, 0, twice).0 {
        Reply::Error(f) => assert!(f.message.contains("Lost variables: kept"), "{}", f.message),
        reply => panic!("{reply:?}"),
    }
    let limit = Instant::now() + Duration::from_secs(20);
    while before.iter().any(|&pid| kill(pid, None).is_ok()) {
        assert!(Instant::now() < limit, "the workers are there still");
    }
    ok(&engine, "%recover");
    assert_eq!(ok(&engine, "kept.sum().item()"), "=> 6.0\n");
}

/// Stand-ins for what reaches other machines, with their arguments: each runs what it is given in a home of its own, with nothing of
/// this process's environment, behind a greeting.
const MACHINES: &[(&str, &str)] = &[
    ("ssh", r#"while [ "$1" = -o ]; do shift 2; done; host=$1; shift; on $host sh -c "$*""#),
    (
        "gcloud",
        r#"for a; do case $a in --worker=*) host=w${a#*=} ;; --command=*) command=${a#*=} ;; esac; done; on $host sh -c "$command""#,
    ),
    ("kubectl", r#"host=$3; shift 4; on $host "$@""#),
    ("srun", r#"host=${3#--nodelist=}; shift 3; on $host "$@""#),
];

#[test]
fn xlazy_is_copied_to_other_machines_and_found_there() {
    let dir = Folder::new("machines");
    let (bin, here) = (dir.0.join("bin"), dir.0.display());
    let plugins = xlazy_kernel::eval::install::Installation::find().expect("a runtime").plugins_dir;
    for (name, does) in MACHINES {
        let text = format!(
            "#!/bin/sh\non() {{ echo \"{name} $host\" >> {here}/log; mkdir -p {here}/$1; cd {here}/$1 || exit 1; shift; echo Welcome.\n\
             exec env -i HOME=$PWD PATH=/usr/bin:/bin XLAZY_PLUGIN_DIR={} \"$@\"; }}\n{does}\n",
            plugins.display()
        );
        dir.script(&format!("bin/{name}"), &text);
    }
    let path = std::env::var("PATH").expect("a path");
    let eval = |cells: &[&str]| {
        let mut xlazy = std::process::Command::new(env!("CARGO_BIN_EXE_xlazy"));
        xlazy.arg("eval").args(cells).env_remove("XLAZY_HOME").env("PATH", format!("{}:{path}", bin.display()));
        let done = xlazy.stdin(std::process::Stdio::null()).output().expect("xlazy");
        (done.status.success(), String::from_utf8_lossy(&[done.stdout, done.stderr].concat()).into_owned())
    };
    // The second device of the second worker; and where the workers' programs lie.
    let value = "(Tensor::arange(0, 6, 1).to(F32).to(\"cpu:3\") * 2.0).sum().item()";
    let lie = format!("!readlink /proc/[0-9]*/exe | grep ^{here} | sort");
    for (options, hosts, copied) in [
        ("--hosts localhost,me@127.0.0.1", ["localhost", "me@127.0.0.1"], true),
        ("--via kubectl --hosts localhost,me@127.0.0.1", ["localhost", "me@127.0.0.1"], false),
        ("--via srun --hosts localhost,me@127.0.0.1", ["localhost", "me@127.0.0.1"], false),
        ("--via gcloud --name v4 --zone z --workers 2", ["w0", "w1"], true),
    ] {
        let (good, told) = eval(&[&format!("%pod start {options} --devices 2"), value, &lie]);
        assert!(good && told.contains("30.0"), "{options}: {told}");
        assert_eq!(told.matches("xlazy is copied there").count(), if copied { 2 } else { 0 }, "{options}: {told}");
        for host in hosts {
            let at = format!("{here}/{host}/.cache/xlazy/workers/");
            assert!(told.lines().any(|l| l.starts_with(&at) && l.ends_with("/xlazy-session")), "{options}: {told}");
        }
    }
    let log = std::fs::read_to_string(dir.0.join("log")).expect("a log");
    let mut reached: Vec<&str> = log.lines().collect();
    reached.sort_unstable();
    let of = |way: &'static str, hosts: [&'static str; 2]| hosts.map(|host| format!("{way} {host}"));
    let named = ["kubectl", "srun", "ssh"].map(|way| of(way, ["localhost", "me@127.0.0.1"]));
    assert_eq!(reached, [of("gcloud", ["w0", "w1"]).to_vec(), named.concat()].concat());
    // A machine where nothing can be written, and another kind of machine.
    std::fs::create_dir(dir.0.join("full")).expect("a folder");
    std::fs::write(dir.0.join("full/.cache"), "").expect("a file");
    let (good, told) = eval(&["%pod start --hosts full"]);
    assert!(!good && told.contains("worker 0 (full) did not start (exit code 1). It wrote:\nmkdir: "), "{told}");
    dir.script("bin/uname", "#!/bin/sh\necho Darwin arm64\n");
    let via = format!("%pod start --hosts mac --via 'HOME={here} PATH={}:/usr/bin:/bin'", bin.display());
    let (good, told) = eval(&[&via]);
    assert!(!good && told.contains("worker 0 (mac) has no xlazy ") && told.contains("is Darwin arm64"), "{told}");
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
