//! The table of magics against a session that only records what it is asked.
use expect_test::{Expect, expect};
use std::cell::RefCell;
use std::sync::Mutex;
use xlazy_kernel::engine::{Event, Failure, Reply};
use xlazy_kernel::magics::{self, Host, TABLE, Takes};
use xlazy_mime::{Bundle, Question, Var};

#[derive(Default)]
struct Recorder {
    asked: RefCell<Vec<String>>,
    vars: Vec<Var>,
}

impl Host for Recorder {
    fn call(&self, question: Question, args: &str) -> Result<Bundle, Failure> {
        self.asked.borrow_mut().push(format!("call {question} [{args}]"));
        Ok(Bundle::text(format!("<{question}>")))
    }

    fn run_code(&self, code: &str, events: &mut dyn FnMut(Event)) -> Reply {
        self.asked.borrow_mut().push(format!("run {code:?}"));
        events(Event::Insight { kind: "rustc".into(), json: r#"{"statements_ms": 20.5}"#.into() });
        events(Event::Result(Bundle::text("<result>")));
        match code.contains("panic") {
            true => Reply::Error(Failure { name: "Panic".into(), ..Failure::default() }),
            false => Reply::Ok,
        }
    }

    fn vars(&self) -> Vec<Var> {
        self.vars.clone()
    }

    fn optimise(&self, level: u8) {
        self.asked.borrow_mut().push(format!("optimise {level}"));
    }

    fn checkpoint(&self, args: &str, _events: &mut dyn FnMut(Event)) -> Reply {
        self.asked.borrow_mut().push(format!("checkpoint [{args}]"));
        Reply::Ok
    }

    fn autosave(&self, args: &str, _events: &mut dyn FnMut(Event)) -> Reply {
        self.asked.borrow_mut().push(format!("autosave [{args}]"));
        Reply::Ok
    }

    fn pod(&self) -> Option<String> {
        Some("--workers 1".into())
    }

    fn move_to(&self, pod: Option<String>) -> String {
        self.asked.borrow_mut().push(format!("move to {pod:?}"));
        String::new()
    }

    fn recover(&self, _events: &mut dyn FnMut(Event)) -> Reply {
        self.asked.borrow_mut().push("recover".into());
        Reply::Ok
    }
}

/// Runs a line and writes down everything that came of it.
fn transcript(session: &Recorder, line: &str, body: Option<&str>) -> String {
    let mut out = String::new();
    let reply = magics::run(line, body, session, &mut |event| {
        out.push_str(&match event {
            Event::Stream { stderr: true, text } => format!("stderr: {text}"),
            Event::Stream { stderr: false, text } => format!("stdout: {text}"),
            Event::Display { bundle, .. } => format!("display: {}\n", bundle.plain()),
            Event::Result(bundle) => format!("result: {}\n", bundle.plain()),
            Event::Page(bundle) => format!("page: {}", bundle.plain()),
            other => format!("{other:?}\n"),
        })
    });
    session.asked.borrow_mut().drain(..).for_each(|asked| out.push_str(&format!("asked: {asked}\n")));
    match reply {
        Reply::Ok => {}
        Reply::Error(f) => out.push_str(&format!("error {}: {}\n", f.name, f.message)),
        Reply::Interrupted => out.push_str("interrupted\n"),
    }
    out
}

fn check(line: &str, expected: Expect) {
    expected.assert_eq(&transcript(&Recorder::default(), line, None));
}

#[test]
fn every_magic_explains_itself() {
    for magic in TABLE {
        let name = magic.name;
        assert!(magic.usage.contains(name), "usage of {name}");
        assert!(magic.summary.len() > 10 && !magic.summary.ends_with('.'), "summary of {name}");
        let fences = magic.help.lines().filter(|l| *l == "```").count();
        assert!(fences >= 2 && fences % 2 == 0, "help of {name} has no example in a fence");
        let example = magic.help.split("```").nth(1).unwrap();
        assert!(example.contains(name), "the example of {name} does not use it");
        for line in magic.help.lines().chain(magic.usage.lines()) {
            assert!(line.chars().count() <= 120, "help of {name} has a line too long for a terminal");
        }
        let page = transcript(&Recorder::default(), &format!("%help {name}"), None);
        assert!(page.starts_with(&format!("page: {}", magic.usage)), "{page}");
    }
}

#[test]
fn names_are_unique_and_complete() {
    let mut names: Vec<&str> = magics::names().collect();
    assert!(names.contains(&"metrics") && names.contains(&"who"));
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn unknown_magics_name_the_nearest() {
    check(
        "%metric",
        expect![[r#"
            error UnknownMagic: there is no magic %metric. Did you mean %metrics?
            Magics: %help %magics %doc %vars %who %whos %time %metrics %graph %ir %stablehlo %hlo %trace %memory %timeline %profile %collectives %tpu %device %pod %pending %compiles %why %fix %healed %heal %nan %peek %compare %eager %step %budget %opt %quiet %recover %checkpoint %autosave, !command. %help tells more.
        "#]],
    );
    check(
        "%elephant",
        expect![[r#"
            error UnknownMagic: there is no magic %elephant.
            Magics: %help %magics %doc %vars %who %whos %time %metrics %graph %ir %stablehlo %hlo %trace %memory %timeline %profile %collectives %tpu %device %pod %pending %compiles %why %fix %healed %heal %nan %peek %compare %eager %step %budget %opt %quiet %recover %checkpoint %autosave, !command. %help tells more.
        "#]],
    );
    check(
        "%",
        expect![[r#"
        error UsageError: there is no magic name after %. %help lists the magics.
    "#]],
    );
    check(
        "%help tiem",
        expect![[r#"
        error UsageError: nothing is known about `tiem`, and there is no magic of that name. Did you mean %time?
            %help [--json] [NAME]
            ?NAME
    "#]],
    );
}

#[test]
fn help_lists_the_table() {
    check(
        "%help",
        expect![[r#"
            page: Magics (%help NAME explains one, and ?NAME tells what a name is):
              %help         lists the magics, or tells what a magic, a variable, a function or a type is
              %vars         lists the variables that live across cells
              %time %%time  times a line or a cell, and counts what it made the runtime do
              %metrics      what the session compiled, ran and transferred so far
              %graph        draws the pending graph of an expression, or of everything pending
              %ir           prints the lazy IR of an expression, or of everything pending
              %stablehlo    prints the StableHLO of an expression, or of the last synced program
              %hlo          prints the HLO that XLA's passes made of an expression, or of the last synced program
              %trace        lines, ops, StableHLO and optimised HLO side by side: pointing at one shows it in the others
              %memory       device memory by variable: parameters, state, gradients, activations, and who keeps them
              %timeline     where time went: cells, tracing, compiling, running, transfers on one line
              %%profile     measures what the device does while a cell runs: each instruction's time, with its lines
              %collectives  lists what devices tell one another in the last synced program, and which line is behind it
              %tpu          compiles for a TPU that need not be there: does it fit, what would it take
              %device       says or chooses which platform programs run on
              %pod          runs programs on the devices of other machines
              %pending      the tensors that have no value yet, and what a sync would do
              %compiles     every program compiled so far, and why
              %why          why the last program was compiled again, or the N-th
              %fix          makes the cell with the fix that an explanation advises
              %healed       attributes that became parameters because they kept changing
              %heal         turn healing on or off
              %nan          stop at the op that makes the first NaN
              %peek         looks at a value inside of the last program: numbers, NaN, a histogram
              %compare      finds the first op whose result differs from a reference run
              %eager        runs each op as it is recorded, to compare it with lazy tensors
              %step %%step  runs a cell and shows its stages: record, cut, lower, compile, run, read back
              %budget       let a cell compile N programs and no more
              %opt %%opt    compile this cell optimised
              %quiet        turn off the line under each cell, or on again
              %recover      runs the cells again that made the variables lost in a crash
              %checkpoint   keeps the variables in a file, and loads them again
              %autosave     saves the variables after a cell when so much time has passed
              !command      runs a shell command
        "#]],
    );
    check(
        "%help %vars",
        expect![[r#"
        page: %vars [--json]

        Lists every variable that a later cell can use: its name, its type, the cell that stored it last, and what it
        holds where that is cheap to say. No tensor is computed for it.

            let x = Tensor::ones([2, 3]);
            let n = 7;
            %vars

        Also written: %who %whos
    "#]],
    );
}

#[test]
fn programs_are_asked_of_the_runtime_or_shown_by_a_hidden_cell() {
    check(
        "%graph",
        expect![[r#"
            display: <graph>
            asked: call unnamed []
            asked: call graph []
        "#]],
    );
    check(
        "%ir --json",
        expect![[r#"
        display: <ir>
        asked: call ir [--json]
    "#]],
    );
    check(
        "%stablehlo x.matmul(&w)",
        expect![[r#"
        Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
        result: <result>
        asked: run "xlazy::show::stablehlo(&(x.matmul(&w)\n), false)"
    "#]],
    );
    check(
        "%hlo y --json",
        expect![[r#"
        Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
        result: <result>
        asked: run "xlazy::show::hlo(&(y\n), true)"
    "#]],
    );
    check(
        "%trace --tpu v5e y --line 4",
        expect![[r#"
            Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
            result: <result>
            asked: call unnamed []
            asked: run "xlazy::linked::magic(\"--tpu v5e --line 4\", &(y\n))"
        "#]],
    );
    check(
        "graph y; ",
        expect![[r#"
            Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
            result: <result>
            asked: call unnamed []
            asked: run "xlazy::show::graph(&(y\n), false)"
        "#]],
    );
    check(
        "%graph --dot y",
        expect![[r#"
        Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
        result: <result>
        asked: call unnamed []
        asked: run "xlazy::show::graph_as(&(y\n), \"dot\").unwrap()"
    "#]],
    );
    check(
        "%graph --svg y",
        expect![[r#"
        asked: call unnamed []
        error UsageError: %graph has no option --svg.
            %graph [--json | --dot | --model-explorer] [EXPRESSION]
    "#]],
    );
}

#[test]
fn metrics_pass_on_what_they_know() {
    check(
        "%metrics",
        expect![[r#"
        display: <metrics>
        asked: call metrics []
    "#]],
    );
    check(
        "%metrics clear",
        expect![[r#"
        display: <metrics>
        asked: call metrics [clear]
    "#]],
    );
    check(
        "%metrics --json",
        expect![[r#"
        display: <metrics>
        asked: call metrics [--json]
    "#]],
    );
    check(
        "%metrics all",
        expect![[r#"
        error UsageError: %metrics does not know `all`.
            %metrics [--json]
            %metrics clear
    "#]],
    );
}

#[test]
fn what_a_magic_does_not_take_is_refused_before_anything_is_asked() {
    check(
        "%heal maybe",
        expect![[r#"
            error UsageError: %heal does not know `maybe`.
                %heal [on|off]
        "#]],
    );
    check(
        "%budget compiles=many",
        expect![[r#"
            error UsageError: %budget takes compiles=N or off, not `compiles=many`.
                %budget compiles=N
                %budget off
                %budget [--json]
        "#]],
    );
    check(
        "%why not --json",
        expect![[r#"
            error UsageError: %why takes the number of a compilation, not `not`.
                %why [N] [--json]
        "#]],
    );
    check(
        "%device CPU TPU",
        expect![[r#"
            error UsageError: %device takes one platform, and behind it a number, not `CPU TPU`.
                %device [CPU|TPU|CUDA]
                %device CPU N
        "#]],
    );
    check(
        "%opt 4",
        expect![[r#"
            error UsageError: `%opt` takes a level from 0 to 3
        "#]],
    );
    for magic in TABLE.iter().filter(|m| !matches!(m.takes, Takes::Rest | Takes::Magic)) {
        let out = transcript(&Recorder::default(), &format!("%{} zzz zzz", magic.name), None);
        assert!(out.starts_with("error UsageError: ") && !out.contains("asked:"), "{out}");
        for word in magic.words().unwrap_or_default() {
            let out = transcript(&Recorder::default(), &format!("%{} {word}", magic.name), None);
            assert!(!out.contains("UsageError"), "{out}");
        }
    }
}

#[test]
fn what_is_taken_arrives_as_it_was_written() {
    check(
        "%budget compiles=3 --json",
        expect![[r#"
            display: <budget>
            asked: call budget [compiles=3 --json]
        "#]],
    );
    check(
        "%why --json 12",
        expect![[r#"
            display: <why>
            asked: call why [12 --json]
        "#]],
    );
    check(
        "%checkpoint save --force a b",
        expect![[r#"
            asked: checkpoint [save --force a b]
        "#]],
    );
    expect![[r#"
        Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
        result: <result>
        asked: optimise 3
        asked: run "f()"
    "#]]
    .assert_eq(&transcript(&Recorder::default(), "%%opt 3", Some("f()")));
}

#[test]
fn a_line_is_completed_by_what_its_magic_takes() {
    assert_eq!(magics::candidates("%heal o"), Some(vec!["on", "off"]));
    assert_eq!(magics::candidates("%checkpoint "), Some(vec!["save", "load", "delete"]));
    assert_eq!(magics::candidates("%checkpoint load n"), Some(vec![]));
    assert!(magics::candidates("%he").is_some_and(|all| all.contains(&"help") && all.contains(&"heal")));
    assert!(magics::candidates("%help he").is_some_and(|all| all.contains(&"heal")));
    assert_eq!(magics::candidates("%time x.su"), None, "Rust");
}

#[test]
fn magics_that_read_answer_while_a_cell_runs() {
    let read = |line: &str| magics::only_reads(line);
    for line in
        ["%vars --json", "%metrics", "%metrics --json", "%heal", "%budget", "%graph --json", "%why 3", "%help !"]
    {
        assert!(read(line), "{line}");
    }
    for line in
        ["%metrics clear", "%heal off", "%budget compiles=1", "%graph x", "%time f()", "%opt 3", "!ls", "%quiet"]
    {
        assert!(!read(line), "{line}");
    }
}

#[test]
fn variables_are_a_table() {
    check(
        "%vars",
        expect![[r#"
        display: No variables yet. `let x = 1;` in a cell keeps x for the cells after it.
    "#]],
    );
    let var = |name: &str, kind: &str, cell, summary: &str| Var {
        name: name.into(),
        type_name: kind.into(),
        cell,
        summary: summary.into(),
        handle: true,
        ..Var::default()
    };
    let session = Recorder {
        vars: vec![
            var("x", "xlazy::tensor::Tensor", 3, "f32[2, 3], pending"),
            var("label", "alloc::vec::Vec<alloc::string::String>", 12, "<b>\nbold"),
        ],
        ..Recorder::default()
    };
    expect![[r#"
        display: Name   Type         Cell  Value
        x      Tensor       3     f32[2, 3], pending
        label  Vec<String>  12    <b> bold
    "#]]
    .assert_eq(&transcript(&session, "%vars", None));
    expect![[r#"
        display: [{"cell":3,"handle":true,"name":"x","summary":"f32[2, 3], pending","type":"xlazy::tensor::Tensor"},{"cell":12,"handle":true,"name":"label","summary":"<b>\nbold","type":"alloc::vec::Vec<alloc::string::String>"}]
    "#]].assert_eq(&transcript(&session, "%who --json", None));
    let mut html = String::new();
    magics::run("%vars", None, &session, &mut |event| {
        if let Event::Display { bundle, .. } = event {
            html = bundle.get("text/html").unwrap().to_owned();
        }
    });
    assert!(html.contains("&lt;b&gt;") && !html.contains("<b>"), "{html}");
}

#[test]
fn time_runs_the_code_and_counts_what_it_did() {
    let session = Recorder::default();
    let steady = |text: String| {
        let wall = text.split("wall time: ").nth(1).unwrap().split(['·', '(']).next().unwrap().trim().to_owned();
        text.replace(&wall, "…")
    };
    expect![[r#"
        Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
        result: <result>
        display: wall time: … · rustc 20 ms
        asked: run "f(x)"
    "#]]
    .assert_eq(&steady(transcript(&session, "%time f(x)", None)));
    expect![[r#"
        Insight { kind: "rustc", json: "{\"statements_ms\": 20.5}" }
        result: <result>
        display: wall time: … (the code failed) · rustc 20 ms
        asked: run "let a = 1;\npanic!()\n"
        error Panic: 
    "#]]
    .assert_eq(&steady(transcript(&session, "%%time", Some("let a = 1;\npanic!()\n"))));
    check(
        "%time",
        expect![[r#"
        error UsageError: %time needs code to time.
            %time [--json] CODE
            %%time [--json]   (the rest of the cell is timed)
    "#]],
    );
    expect![[r#"
        error UsageError: %%time takes no code on its own line: `f()` belongs below it.
            %time [--json] CODE
            %%time [--json]   (the rest of the cell is timed)
    "#]]
    .assert_eq(&transcript(&session, "%%time f()", Some("g()")));
}

#[test]
fn a_magic_in_the_wrong_place_says_where_it_belongs() {
    expect![[r#"
        error UsageError: %vars is a line magic: it takes no cell body. Write it as %vars on a line of its own.
            %vars [--json]
    "#]]
    .assert_eq(&transcript(&Recorder::default(), "%%vars", Some("let x = 1;")));
}

/// An interrupt reaches every running command, so the tests with commands take turns.
static TURN: Mutex<()> = Mutex::new(());

#[test]
fn shell_output_exit_codes_and_signals_are_shown() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    check(
        "!printf 'one\\nzwölf\\n'",
        expect![[r#"
            stdout: one
            zwölf
        "#]],
    );
    check(
        "!exit 3",
        expect![[r#"
        stderr: [exit code 3]
    "#]],
    );
    check(
        "!kill -9 $$",
        expect![[r#"
        stderr: [ended by SIGKILL]
    "#]],
    );
    check("!cat", expect![[""]]);
    check(
        "!",
        expect![[r#"
        error UsageError: write the command after the !, on one line.
            !COMMAND
    "#]],
    );
}

#[test]
fn a_process_left_in_the_background_does_not_hold_the_cell() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let start = std::time::Instant::now();
    check(
        "!sleep 20 & echo started",
        expect![[r#"
        stdout: started
    "#]],
    );
    assert!(start.elapsed().as_secs() < 15, "it waited for the process, which takes 20 s");
}

/// Interrupts a command as soon as it has printed something.
fn interrupted(command: &str) -> String {
    let mut out = String::new();
    let reply = magics::run(command, None, &Recorder::default(), &mut |event| {
        if let Event::Stream { text, .. } = event {
            out.push_str(&text);
            magics::interrupt();
        }
    });
    assert_eq!(reply, Reply::Interrupted);
    out
}

#[test]
fn an_interrupt_ends_a_command() {
    let _turn = TURN.lock().unwrap_or_else(|e| e.into_inner());
    let start = std::time::Instant::now();
    assert_eq!(interrupted("!echo on; sleep 60"), "on\n");
    // Even one that will not listen.
    assert_eq!(interrupted("!trap '' INT; echo on; sleep 60; sleep 60"), "on\n");
    assert!(start.elapsed().as_secs() < 45, "it waited for a command, which takes 60 s and more");
    magics::interrupt();
}
