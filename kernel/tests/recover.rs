//! `%recover` compares what the user made. How long something took, from where a program came, and addresses are others
//! whenever a cell is run, and stop it nowhere.
mod eval_support;

use eval_support::{engine, run};
use xlazy_kernel::engine::Reply;

#[test]
fn what_a_cell_shows_of_the_moment_does_not_stop_it() {
    let engine = engine();
    let cells = [
        "let x = tensor([1.0, 2.0]) * 2.0; x",
        "let w = (&x + 1.0).requires_grad_(true); display(&w); display_with_id(&w, \"w\"); update_display(&x, \"w\");",
        "let kept = vec![x.sum(), w.sum()]; kept[0]",
        "let begun = std::time::Instant::now(); let a = 1; begun.elapsed()",
        "let b = Box::new(2); &*b as *const i32",
        "let c = 3; Some(std::thread::current().id())",
        "let f: fn(i32) -> i32 = |x| x + 1; f",
        "let d = 4; println!(\"{x} {}\", f(1)); eprintln!(\"{w:.2}\"); x",
    ];
    for (i, cell) in cells.iter().enumerate() {
        assert_eq!(run(&engine, i as u64 + 1, cell).1, Reply::Ok, "{cell}");
    }
    for crash in ["std::process::abort()", "unsafe { *std::ptr::null_mut::<i32>().wrapping_add(1) = 1; }"] {
        assert!(matches!(run(&engine, 20, crash).1, Reply::Error(f) if f.name == "SessionDied"));
        let (said, reply) = run(&engine, 21, "%recover");
        assert_eq!(reply, Reply::Ok, "{said}");
        assert!(said.contains("Recovered") && !said.contains("Not recovered"), "{said}");
        let values = "(x.to_vec::<f32>(), w.requires_grad(), kept.len(), a, *b, c, f(1), d)";
        assert_eq!(run(&engine, 22, values).0, "=> ([2.0, 4.0], true, 2, 1, 2, 3, 2, 4)\n");
    }
}

#[test]
fn what_it_shows_of_other_values_stops_it() {
    let engine = engine();
    let file = std::env::temp_dir().join(format!("xlazy-recover-other-{}", std::process::id()));
    std::fs::write(&file, "1").expect("a file");
    let cell = format!("let x = tensor([std::fs::read_to_string({file:?}).unwrap().parse::<f32>().unwrap()]); x");
    assert_eq!(run(&engine, 1, &cell).1, Reply::Ok);
    std::fs::write(&file, "2").expect("a file");
    drop(run(&engine, 2, "std::process::abort()"));
    match run(&engine, 3, "%recover").1 {
        Reply::Error(f) => {
            assert!(f.message.contains("printed `[2.]` where it had printed `[1.]`"), "{}", f.message)
        }
        other => panic!("{other:?}"),
    }
    let _ = std::fs::remove_file(file);
}
