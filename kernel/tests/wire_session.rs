//! The session process answers questions while a cell runs.
use nix::sys::stat::Mode;
use std::io::Write;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use xlazy_kernel::eval::install::Installation;
use xlazy_mime::{Ask, Frame, Outcome, Question, RunCell, Tell};

/// A cell that ends when somebody opens the FIFO's other end: it needs nothing of the runtime.
const CELL: &str = r#"
#[unsafe(no_mangle)]
pub extern "C-unwind" fn cell() {
    let _ = std::fs::read(env!("FIFO"));
}
"#;

fn call(to: &mut UnixStream, id: u64, question: Question, args: &str) {
    Ask::Call { id, question, args: args.into() }.send(to).unwrap();
}

/// The next answer or end of a cell.
fn next(from: &mut UnixStream) -> Tell {
    loop {
        let tell = Tell::receive(from).unwrap().expect("the session ended");
        if matches!(tell, Tell::Reply { .. } | Tell::Done { .. }) {
            return tell;
        }
    }
}

#[test]
fn questions_are_answered_while_a_cell_runs() {
    let install = Installation::find().unwrap_or_else(|f| panic!("{}", f.message));
    let folder = std::env::temp_dir().join(format!("xb-{}", uuid::Uuid::new_v4().simple()));
    std::fs::create_dir_all(&folder).unwrap();
    let (fifo, source, object) = (folder.join("fifo"), folder.join("cell.rs"), folder.join("cell.so"));
    nix::unistd::mkfifo(&fifo, Mode::S_IRWXU).unwrap();
    std::fs::write(&source, CELL).unwrap();
    let compiled = Command::new(&install.toolchain.rustc)
        .args(["--edition=2024", "--crate-type=cdylib", "-o"])
        .args([&object, &source])
        .env("FIFO", &fifo)
        .status();
    assert!(compiled.unwrap().success());

    let (mut kernel, session) = UnixStream::pair().unwrap();
    let mut child = Command::new(&install.session_exe)
        .stdin(OwnedFd::from(session))
        .env("LD_LIBRARY_PATH", install.library_path())
        .spawn()
        .unwrap();
    let (object, symbol) = (object.display().to_string(), "cell".into());
    Ask::Run(RunCell { run: 1, cell: 1, object, symbol, places: "cell 1".into() }).send(&mut kernel).unwrap();
    let asked = [Question::Metrics, Question::Names, Question::Doc, Question::Graph];
    for (id, question) in (1..).zip(asked) {
        call(&mut kernel, id, question, if question == Question::Doc { "Tensor::exp" } else { "" });
        let Tell::Reply { id: answered, answer } = next(&mut kernel) else { panic!("the cell ended by itself") };
        assert_eq!((answered, answer.is_ok()), (id, true), "{question}");
    }
    // What only the cell thread can do waits for the cell.
    call(&mut kernel, 5, Question::Forget, "x");
    call(&mut kernel, 6, Question::Metrics, "--json");
    assert!(matches!(next(&mut kernel), Tell::Reply { id: 6, .. }));
    std::fs::OpenOptions::new().write(true).open(&fifo).unwrap().write_all(b"end").unwrap();
    assert!(matches!(next(&mut kernel), Tell::Done { run: 1, outcome: Outcome::Ok, .. }));
    assert!(matches!(next(&mut kernel), Tell::Reply { id: 5, answer: Ok(_) }));
    Ask::Shutdown.send(&mut kernel).unwrap();
    assert!(child.wait().unwrap().success());
    std::fs::remove_dir_all(folder).unwrap();
}
