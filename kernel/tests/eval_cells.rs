//! Runs the literate cells of tests/cells: each file is one session, each ```rust block a cell, and the ```output or
//! ```error block after it what the cell must show. `[..]` stands for anything in a line, a line `[...]` for any lines.
//! `$TMP` is a folder for files; a line `Environment: NAME=VALUE` above the first cell is set for the session.
//! What the scenarios say is to be changed in the code is changed, and compiles nothing more (`eval_support::fixes`).
//! With XLAZY_BLESS=1 the blocks are rewritten to what the cells do; read the difference before you keep it.
mod eval_support;

use eval_support::{cells_dir, engine, fixes, plain, run_told};
use serde_json::Value;
use xlazy_kernel::engine::Reply;

macro_rules! files {
    ($list:ident, $folder:literal, $($name:ident)*) => {
        const $list: &[&str] = &[$(stringify!($name)),*];
        $(
            #[test]
            fn $name() {
                check(concat!($folder, stringify!($name)));
            }
        )*
    };
}

files!(FILES, "", mnist char_gpt from_torch inside lessons shows bucketing fixes healing values items impls meanings meanings_of_types namespaces redefinitions macros_and_uses macros_of_items moves panics_and_errors compile_errors devices display output closures threads dependencies dependencies_later dependencies_level locations control networks recover checkpoint checkpoint_serde jpeg kept nan open borrowed filled lent rust_takes told habits torchs_ways);

// Recompilations of torch_xla's users: here the compilations of each cell are part of what it shows.
files!(SCENARIOS, "scenarios/",
    s01_last_short_batch s03_dtype_change s04_loop_counter_baked s05_special_scalars_0_1 s06_lr_schedule
    s07_momentum_second_step s08_print_loss_in_step s09_item_in_condition s13_masked_select_nonzero s15_dropout_no_barrier
    s18_alternating_tiny_cache s20_equal_scalars_dedup s21_rerun_cell_x_plus_1 s22_read_one_of_several s28_model_surgery
    s30_negative_controls
    m01_sequence_lengths m02_eval_batch m03_labels_become_floats m04_numbers_of_the_program m05_moving_slice
    m06_loop_count m07_while_a_value m08_train_and_eval m09_gradient_accumulation m10_frozen_layer
    m11_one_tensor_twice m12_a_kept_value m13_precision m14_momentum_by_hand m15_assert_in_the_step
    m16_losses_are_kept m17_an_edited_cell m18_one_result_more m19_said_of_it
    m20_told_with_its_history m21_looked_at_again m22_what_is_not_promised
    m23_where_it_comes_from m24_moved_to_a_device m25_fixes_in_code m26_rounds_written_out m27_steps_without_a_barrier m28_rounds_that_end m29_what_rounds_have_in_common m30_the_loop_of_another_cell m31_rounds_one_by_one m32_what_other_cells_left m33_a_list_with_gradients m34_two_sets_and_positions
    m35_joined_and_read
    m36_called_by_several_statements
    m31_reads_keep_what_took_work
);

#[test]
fn every_file_is_run() {
    for (folder, listed) in [(cells_dir(), FILES), (cells_dir().join("scenarios"), SCENARIOS)] {
        let mut found: Vec<String> = std::fs::read_dir(folder)
            .expect("a folder of cells")
            .filter_map(|e| Some(e.ok()?.file_name().to_str()?.strip_suffix(".md")?.to_owned()))
            .collect();
        found.sort();
        let mut listed = listed.to_vec();
        listed.sort();
        assert_eq!(found, listed);
    }
}

/// What `$TMP` stands for: a folder for files that a cell makes.
const TMP: &str = env!("CARGO_TARGET_TMPDIR");

/// One cell and the blocks around it.
#[derive(Default)]
struct Block {
    /// Text up to and with the cell's closing fence.
    before: String,
    code: String,
    output: String,
    error: String,
}

fn check(name: &str) {
    let path = cells_dir().join(format!("{name}.md"));
    let text = std::fs::read_to_string(&path).expect("a literate file");
    let (blocks, rest) = parse(&text);
    set_environment(&text);
    let engine = engine();
    let (mut codes, mut all) = (Vec::new(), Vec::new());
    let mut wrong = Vec::new();
    let mut blessed = String::new();
    for (i, block) in blocks.iter().enumerate() {
        codes.push(block.code.replace("$TMP", TMP));
        let (mut output, reply, told) = run_told(&engine, i as u64 + 1, &codes[i]);
        if name.starts_with("scenarios/") {
            if !output.is_empty() && !output.ends_with('\n') {
                output.push('\n');
            }
            let compiled: Vec<Value> =
                told.iter().flat_map(|c| c["compilations"].as_array().expect("a list").clone()).collect();
            output += &told.iter().map(|cell| compilations(cell, &compiled)).collect::<String>();
            all.push(if reply == Reply::Ok { compiled } else { vec![] });
        }
        let error = match &reply {
            Reply::Ok => String::new(),
            Reply::Error(failure) => plain(failure),
            Reply::Interrupted => "Interrupted".into(),
        };
        let [output, error] = [output, error].map(|text| text.replace(TMP, "$TMP"));
        for (what, wanted, got) in [("output", &block.output, &output), ("error", &block.error, &error)] {
            if !matches(wanted, got) {
                let code = &block.code;
                wrong.push(format!("cell {}:\n{code}--- wanted {what}:\n{wanted}\n--- got:\n{got}\n", i + 1));
            }
        }
        blessed += &block.before;
        for (fence, wanted, got) in [("output", &block.output, output), ("error", &block.error, error)] {
            let text = if matches(wanted, &got) { wanted.clone() } else { got };
            if !text.trim().is_empty() {
                blessed += &format!("```{fence}\n{}\n```\n", trimmed(&text).join("\n"));
            }
        }
    }
    drop(engine);
    let unmended = fixes::check(&codes, &all);
    if std::env::var_os("XLAZY_BLESS").is_some() {
        std::fs::write(&path, blessed + &rest).expect("blessing");
    } else {
        assert!(wrong.is_empty(), "{}\n{}", path.display(), wrong.join("\n"));
    }
    assert!(unmended.is_empty(), "{}\n{unmended}", path.display());
}

/// A line for each program, with the reason.
fn compilations(cell: &Value, compiled: &[Value]) -> String {
    let sentence = |c: &Value| {
        let rounds = c["unrolled"]["sentence"].as_str().map_or(String::new(), |said| format!("[loop] {said}\n"));
        format!("[compiled] {}\n{rounds}", c["sentence"].as_str().expect("a sentence"))
    };
    match (cell["syncs"].as_u64(), compiled.is_empty()) {
        (Some(0), true) => "[nothing ran]\n".into(),
        (_, true) => "[compiled nothing]\n".into(),
        _ => compiled.iter().map(sentence).collect(),
    }
}

// nextest gives each file a process of its own.
#[allow(unsafe_code)]
fn set_environment(text: &str) {
    let set = text.lines().find_map(|l| l.strip_prefix("Environment: ")?.split_once('='));
    if let Some((name, value)) = set {
        // SAFETY: no other thread of the test runs yet.
        unsafe { std::env::set_var(name, value) }
    }
}

fn parse(text: &str) -> (Vec<Block>, String) {
    let mut blocks: Vec<Block> = Vec::new();
    let mut before = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let body = |lines: &mut std::str::Lines| -> String {
            lines.take_while(|l| *l != "```").map(|l| format!("{l}\n")).collect()
        };
        match (line, blocks.last_mut()) {
            ("```rust", _) => {
                let code = body(&mut lines);
                before += &format!("```rust\n{code}```\n");
                blocks.push(Block { before: std::mem::take(&mut before), code, ..Block::default() });
            }
            ("```output", Some(block)) => block.output = body(&mut lines),
            ("```error", Some(block)) => block.error = body(&mut lines),
            _ => before += &format!("{line}\n"),
        }
    }
    (blocks, before)
}

fn trimmed(text: &str) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    let start = lines.iter().position(|l| !l.is_empty()).unwrap_or(lines.len());
    let end = lines.iter().rposition(|l| !l.is_empty()).map_or(start, |i| i + 1);
    lines[start..end].to_vec()
}

fn matches(wanted: &str, got: &str) -> bool {
    lines_match(&trimmed(wanted), &trimmed(got))
}

fn lines_match(wanted: &[&str], got: &[&str]) -> bool {
    match (wanted, got) {
        ([], []) => true,
        ([w, wanted @ ..], _) if w.trim() == "[...]" => (0..=got.len()).any(|n| lines_match(wanted, &got[n..])),
        ([w, wanted @ ..], [g, got @ ..]) => line_matches(w, g) && lines_match(wanted, got),
        _ => false,
    }
}

fn line_matches(wanted: &str, got: &str) -> bool {
    match wanted.split_once("[..]") {
        None => wanted == got,
        Some((start, rest)) => got.strip_prefix(start).is_some_and(|got| {
            got.char_indices().map(|(i, _)| i).chain([got.len()]).any(|i| line_matches(rest, &got[i..]))
        }),
    }
}
