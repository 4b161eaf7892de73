//! Recording an op beside what its type rule does: a rule is the op's code, and nobody else may pay for it.
use super::{Entry, Tensor, no_grad, trace};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{LazyLock, Mutex};
use std::time::Duration;
use xlazy_core::ir::{graph, rules};

/// Longer than any of this takes on a busy machine: what waits for itself is told instead of hanging.
const LONG: Duration = Duration::from_secs(30);

#[test]
fn a_type_rule_that_panics_leaves_the_graph_as_it_was() {
    static PANICS: Entry = Entry::new("panics", |_| panic!("a bug in the rule"), |l| l.x(0));
    let x = Tensor::ones([2, 3]);
    let counts = || {
        let g = graph();
        (g.live(), g.pending_nodes().count(), g.node(x.id()).refs)
    };
    let before = counts();
    for _ in 0..3 {
        let ended = catch_unwind(AssertUnwindSafe(|| trace(&PANICS, [(&x).into(), 2.0.into()], [])));
        assert_eq!(ended.err().unwrap().downcast_ref::<&str>(), Some(&"a bug in the rule"));
        assert_eq!(counts(), before);
    }
    let y = &x * 2.0;
    let there = x.clone();
    let other = std::thread::spawn(move || (there + 1.0).sum().item());
    assert_eq!((y.sum().item(), other.join().unwrap()), (12.0, 12.0));
}

#[test]
fn a_type_rule_that_refuses_leaves_no_numbers_behind() {
    let x = Tensor::ones([2]).to(crate::DType::Bool);
    let live = || graph().live();
    let before = live();
    assert!(catch_unwind(AssertUnwindSafe(|| -x.clone())).is_err());
    assert!(catch_unwind(AssertUnwindSafe(|| x.leaky_relu(0.5))).is_err());
    assert_eq!(live(), before);
}

#[test]
fn a_type_rule_may_take_its_time_and_ask_the_graph() {
    type Ends = (Mutex<Sender<()>>, Mutex<Receiver<()>>);
    fn ends() -> (Ends, Ends) {
        let ((a, b), (c, d)) = (channel(), channel());
        ((Mutex::new(a), Mutex::new(d)), (Mutex::new(c), Mutex::new(b)))
    }
    static BOTH: LazyLock<(Ends, Ends)> = LazyLock::new(ends);
    static WAITS: Entry = Entry::new(
        "waits",
        |s| {
            assert!(graph().live() > 0);
            let (say, hear) = &BOTH.0;
            say.lock().unwrap().send(()).unwrap();
            hear.lock().unwrap().recv_timeout(LONG).map_err(|e| format!("nobody else could trace: {e}"))?;
            rules::same(s)
        },
        |l| l.x(0),
    );
    let x = Tensor::ones([3]);
    let there = x.clone();
    let traced = std::thread::spawn(move || trace(&WAITS, [(&there).into()], []));
    let (say, hear) = &BOTH.1;
    hear.lock().unwrap().recv_timeout(LONG).expect("the rule runs");
    let beside = &x * 3.0;
    say.lock().unwrap().send(()).unwrap();
    let sums = (beside.sum().item(), traced.join().unwrap().sum().item());
    assert_eq!(sums, (9.0, 3.0));
}

#[test]
fn an_op_is_recorded_on_what_its_type_rule_saw() {
    static X: LazyLock<Tensor> = LazyLock::new(|| Tensor::ones([2]));
    static MOVES: Entry = Entry::new(
        "moves",
        |s| {
            // What another thread might do between looking at the operands and recording the op.
            if s.shape(0).len() == 1 {
                no_grad(|| X.set_data(Tensor::full([4, 2], 5.0)));
            }
            rules::same(s)
        },
        |l| l.x(0),
    );
    let y = trace(&MOVES, [(&*X).into()], []);
    assert_eq!(y.shape(), [4, 2]);
    assert_eq!(y.sum().item(), 40.0);
}

#[test]
fn a_view_keeps_nothing_of_a_base_that_is_gone() {
    let x = Tensor::ones([1000]).relu();
    let (part, turned) = (x.i(..2), x.reshape([10, 100]).t());
    drop(x);
    crate::sync();
    let g = graph();
    assert!([&part, &turned].iter().all(|v| g.node(v.id()).inputs.is_empty()));
    assert_eq!(g.live(), 2);
}

/// A node, its handle as the allocator rounds it, and the handle's place in a list: the guide says how much that is.
#[test]
fn a_pending_op_takes_what_the_guide_says() {
    let handle = (size_of::<super::Inner>() + 2 * size_of::<usize>() + 8).next_multiple_of(16);
    let bytes = size_of::<xlazy_core::ir::Node>() + handle + size_of::<Tensor>();
    let guide = include_str!("../../../docs/measured.md");
    let told = guide.lines().find_map(|l| l.strip_prefix("| bytes per pending op | ")?.split(' ').next()?.parse().ok());
    let told: usize = told.expect("the guide has the figure");
    assert!(bytes.abs_diff(told) * 20 <= told, "{bytes} bytes, and the guide says {told}");
}
