//! What `%graph` draws: the structure of twelve graphs, folded, and what holds for any.
use expect_test::{Expect, expect};
use std::sync::{Arc, Mutex};
use xlazy::cell::named::{LearnModule as _, LearnOptimizer as _, Named};
use xlazy::cell::rt::{KeepMove as _, Of};
use xlazy::prelude::*;
use xlazy::show;
use xlazy_core::host::{self, Host};

#[path = "../../tests/support/schema.rs"]
mod schema;

// The pending graph is everybody's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    // As a session's process does.
    host::set(Host {
        note: |_| (),
        event: |_, _| (),
        line_of_input: |_| None,
        printed: |_| false,
        variables: Vec::new,
        named: xlazy::cell::named::all,
    });
    sync();
    guard
}

/// As a cell leaves a variable behind.
fn call_module<M: Module + 'static>(name: &str, module: &Arc<M>) {
    (&&&Named(module)).learn();
    Of::<Arc<M>>::TYPE.keep(name, module.clone());
}

fn data(y: &Tensor) -> serde_json::Value {
    let json = show::graph(y, true);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    schema::Schema::read(root).check("graph", json.get("application/json").unwrap())
}

/// The groups as a tree, each with its ops; ops in a row are one line.
fn structure(y: &Tensor) -> String {
    let graph = data(y);
    let mut out = String::new();
    fn items(graph: &serde_json::Value, all: &serde_json::Value, depth: usize, out: &mut String) {
        let indent = "  ".repeat(depth);
        let mut ops: Vec<&str> = Vec::new();
        let flush = |ops: &mut Vec<&str>, out: &mut String| {
            if !ops.is_empty() {
                *out += &format!("{indent}{}\n", ops.join(" "));
                ops.clear();
            }
        };
        for item in all.as_array().unwrap() {
            if let Some(n) = item["node"].as_u64() {
                ops.push(graph["nodes"][n as usize]["op"].as_str().unwrap());
                continue;
            }
            flush(&mut ops, out);
            let g = &graph["groups"][item["group"].as_u64().unwrap() as usize];
            // The lines of this file differ from edit to edit.
            let label = g["label"].as_str().unwrap();
            let label: String =
                label.split(", ").map(|l| l.split(".rs:").next().unwrap()).collect::<Vec<_>>().join(", ");
            let times = match g["times"].as_u64().unwrap() {
                1 => String::new(),
                n => format!(" ×{n}"),
            };
            *out += &format!("{indent}[{} {label}{times}: {}]\n", g["kind"].as_str().unwrap(), g["ops"]);
            // What repeats is told once.
            let children = &g["children"];
            match times.is_empty() {
                true => items(graph, children, depth + 1, out),
                false => items(graph, &serde_json::json!([children[0]]), depth + 1, out),
            }
        }
        flush(&mut ops, out);
    }
    items(&graph, &graph["top"], 0, &mut out);
    out
}

fn check(y: &Tensor, expected: Expect) {
    expected.assert_eq(&structure(y));
}

struct Block {
    ln: nn::LayerNorm,
    fc1: nn::Linear,
    fc2: nn::Linear,
}
impl Module for Block {
    parts!(ln, fc1, fc2);
    fn forward(&self, x: &Tensor) -> Tensor {
        let h = self.fc1.forward(&self.ln.forward(x)).gelu();
        x + self.fc2.forward(&h)
    }
}

struct Net {
    embed: nn::Linear,
    layers: Vec<Block>,
    head: nn::Linear,
}
impl Module for Net {
    parts!(embed, layers, head);
    fn forward(&self, x: &Tensor) -> Tensor {
        let mut h = self.embed.forward(x);
        for layer in &self.layers {
            h = layer.forward(&h);
        }
        self.head.forward(&h)
    }
}

fn net(layers: usize) -> Arc<Net> {
    let block = || Block { ln: nn::LayerNorm::new([8]), fc1: nn::Linear::new(8, 16), fc2: nn::Linear::new(16, 8) };
    let net = Arc::new(Net {
        embed: nn::Linear::new(4, 8),
        layers: (0..layers).map(|_| block()).collect(),
        head: nn::Linear::new(8, 2),
    });
    call_module("net", &net);
    sync();
    net
}

#[test]
fn small_graphs() {
    let _alone = alone();
    let x = tensor([1.0, 2.0]);
    // A chain, a value used twice, sources alone, and what has its value already.
    check(
        &(&x * 2.0 + 1.0).exp().sum(),
        expect![[r#"
        [line graphs: 4]
          mul add exp sum
    "#]],
    );
    let y = &x * 2.0;
    check(
        &(&y + &y.exp()),
        expect![[r#"
        mul
        [line graphs: 2]
          exp add
    "#]],
    );
    check(&Tensor::ones([3]), expect![[""]]);
    sync();
    check(&y, expect![[""]]);
    let z = x.exp();
    z.to_vec::<f32>();
    check(
        &(&z + 1.0),
        expect![[r#"
        add
    "#]],
    );
}

#[test]
fn loops_are_there_once() {
    let _alone = alone();
    let w = Tensor::ones([4, 4]);
    sync();
    let mut h = Tensor::ones([4, 4]);
    for _ in 0..12 {
        h = h.matmul(&w);
        h = h.tanh() + 1.0;
    }
    check(
        &h,
        expect![[r#"
        matmul
        [rounds graphs, matmul ×11: 33]
          [round round 1 of 11: 3]
            [line graphs: 2]
              tanh add
            matmul
        [line graphs: 2]
          tanh add
    "#]],
    );
    // Nested: three rounds of one line, and one more.
    let mut h = Tensor::ones([4]);
    for _ in 0..5 {
        for _ in 0..3 {
            h = h.sin();
        }
        h = &h + &h.cos();
    }
    check(
        &h,
        expect![[r#"
        [line graphs: 3]
          sin sin sin
        [rounds graphs, graphs ×4: 20]
          [round round 1 of 4: 5]
            [line graphs: 2]
              cos add
            [line graphs: 3]
              sin sin sin
        [line graphs: 2]
          cos add
    "#]],
    );
    let (last, _) = scan(
        |h: Tensor, x: Tensor| {
            let h = (h + x).tanh();
            (h.clone(), h)
        },
        &Tensor::ones([2]),
        &Tensor::ones([5, 2]),
    );
    check(
        &last,
        expect![[r#"
        [line graphs: 2]
          scan result
    "#]],
    );
}

#[test]
fn models_fold_by_their_parameters() {
    let _alone = alone();
    let net = net(3);
    let (x, target) = (Tensor::ones([5, 4]), Tensor::zeros([5, 2]));
    Of::<Tensor>::TYPE.keep("x", x.clone());
    sync();
    check(
        &net.forward(&x),
        expect![[r#"
        [module net: 57]
          [module embed: 3]
            permute matmul add
          [module layers: 50]
            [rounds 0 … 1 ×2: 34]
              [module 0: 17]
                [module ln: 9]
                  mean sub square mean add rsqrt mul mul add
                [module fc1: 3]
                  permute matmul add
                gelu
                [module fc2: 3]
                  permute matmul add
                add
            [module 2: 16]
              [module ln: 9]
                mean sub square mean add rsqrt mul mul add
              [module fc1: 3]
                permute matmul add
              gelu
              [module fc2: 3]
                permute matmul add
          add
          [module head: 3]
            permute matmul add
    "#]],
    );
    let layers = Arc::new(nn::Sequential::new((nn::Linear::new(4, 8), nn::ReLU, nn::Linear::new(8, 2))));
    call_module("mlp", &layers);
    sync();
    check(
        &layers.forward(&x),
        expect![[r#"
        [module mlp: 7]
          [module 0: 3]
            permute matmul add
          relu
          [module 2: 3]
            permute matmul add
    "#]],
    );
    // Gradients and an update, of which the picture names what they take of the forward ops.
    let loss = (net.forward(&x) - &target).square().mean();
    loss.backward();
    let weight = net.head.named_parameters()[0].1.clone();
    check(
        &weight.grad().unwrap(),
        expect![[r#"
        [phase forward: 58]
          [module net: 57]
            [module embed: 3]
              permute matmul add
            [module layers: 50]
              [rounds 0 … 1 ×2: 34]
                [module 0: 17]
                  [module ln: 9]
                    mean sub square mean add rsqrt mul mul add
                  [module fc1: 3]
                    permute matmul add
                  gelu
                  [module fc2: 3]
                    permute matmul add
                  add
              [module 2: 16]
                [module ln: 9]
                  mean sub square mean add rsqrt mul mul add
                [module fc1: 3]
                  permute matmul add
                gelu
                [module fc2: 3]
                  permute matmul add
            add
            [module head: 3]
              permute matmul add
          sub
        [phase gradients: 8]
          [line graphs: 3]
            mul reshape expand
          [line graphs: 2]
            mul mul
          [module net: 3]
            permute matmul permute
    "#]],
    );
    let mut opt = optim::Adam::new(net.parameters(), 0.1);
    (&&Named(&opt)).learn();
    let loss = (net.forward(&x) - &target).square().mean();
    opt.zero_grad();
    loss.backward();
    opt.step();
    Of::<optim::Adam>::TYPE.keep("opt", opt);
    let of_embed = net.embed.named_parameters()[0].1.clone();
    check(
        &of_embed,
        expect![[r#"
        [phase forward: 58]
          [module net: 57]
            [module embed: 3]
              permute matmul add
            [module layers: 50]
              [rounds 0 … 1 ×2: 34]
                [module 0: 17]
                  [module ln: 9]
                    mean sub square mean add rsqrt mul mul add
                  [module fc1: 3]
                    permute matmul add
                  gelu
                  [module fc2: 3]
                    permute matmul add
                  add
              [module 2: 16]
                [module ln: 9]
                  mean sub square mean add rsqrt mul mul add
                [module fc1: 3]
                  permute matmul add
                gelu
                [module fc2: 3]
                  permute matmul add
            add
            [module head: 3]
              permute matmul add
          sub
        [phase gradients: 109]
          [line graphs: 3]
            mul reshape expand
          [line graphs: 2]
            mul mul
          [module net: 104]
            permute matmul
            [module layers: 102]
              [rounds 2 … 1 ×2: 66]
                [module 2: 33]
                  permute matmul
                  [module fc1: 12]
                    mul erf add mul square mul exp mul mul add mul permute
                  matmul
                  [module ln: 10]
                    mul mul mul sum_to_size pow mul mul mul expand mul
                  mul add neg add sum_to_size mul expand add
              [module 0: 36]
                permute matmul
                [module fc1: 12]
                  mul erf add mul square mul exp mul mul add mul permute
                matmul
                [module ln: 21]
                  mul mul mul sum_to_size pow mul mul mul expand mul mul add neg add sum_to_size mul expand add permute matmul permute
        [phase update: 19]
          [module net.embed.weight: 19]
            sub full mul add full mul square full mul add sqrt full div full add div full mul sub
    "#]],
    );
    let picture = show::graph(&of_embed, false);
    assert!(picture.get("image/svg+xml").unwrap().contains("from forward"));
    assert!(picture.plain().contains("net ("), "{}", picture.plain());
}

/// What holds whatever is open is a unit test's; this is for sizes.
#[test]
fn ten_thousand_nodes_make_one_page() {
    let _alone = alone();
    let net = net(2);
    let mut h = Tensor::ones([5, 4]);
    for _ in 0..240 {
        h = net.embed.forward(&h).narrow(1, 0, 4).relu() + net.forward(&h).sum();
    }
    let start = std::time::Instant::now();
    let shown = show::graph(&h, false);
    println!("{:?} for {}", start.elapsed(), shown.plain().lines().next().unwrap());
    let nodes: usize = shown.plain().split(' ').next().unwrap().parse().unwrap();
    assert!(nodes >= 10_000, "{nodes}");
    let html = shown.get("text/html").unwrap();
    assert!(html.len() < 2_000_000, "{} bytes", html.len());
    assert!(shown.plain().lines().count() < 100, "{}", shown.plain());
    for from_elsewhere in ["src=", "href=", "@import", "fetch("] {
        let own = html.replace("src=\"data:image/svg+xml;base64,", "");
        assert!(!own.contains(from_elsewhere), "{from_elsewhere}");
    }
    assert!(show::graph_as(&h, "dot").unwrap().plain().starts_with("digraph"));
    let explorer = show::graph_as(&h, "model-explorer").unwrap();
    let explorer: serde_json::Value = serde_json::from_str(explorer.get("application/json").unwrap()).unwrap();
    let nodes = explorer["graphs"][0]["nodes"].as_array().unwrap();
    let ids: std::collections::HashSet<&str> = nodes.iter().map(|n| n["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), nodes.len());
    let edges = nodes.iter().flat_map(|n| n["incomingEdges"].as_array().unwrap());
    edges.for_each(|e| assert!(ids.contains(e["sourceNodeId"].as_str().unwrap()), "{e}"));
}
