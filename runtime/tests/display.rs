//! What a person sees: values as text and HTML, pictures, plots, graphs, programs.
use expect_test::{Expect, expect};
use std::sync::Mutex;
use xlazy::metrics::{counter_value, metric_data};
use xlazy::mime::Content;
use xlazy::prelude::*;
use xlazy::show;

// The runtime is one per process, and what is pending is everybody's: one test at a time.
static ONE: Mutex<()> = Mutex::new(());

fn alone() -> std::sync::MutexGuard<'static, ()> {
    let guard = ONE.lock().unwrap_or_else(|p| p.into_inner());
    sync();
    guard
}

/// Text that does not depend on how fast the machine is.
fn steady(text: &str) -> String {
    match text.split_once("compiled in ") {
        Some((before, after)) => {
            let end = after.find([',', '\n']).or(after.find(" ·")).unwrap_or(after.len());
            format!("{before}compiled in N ms{}", &after[end..])
        }
        None => text.to_owned(),
    }
}

fn check(x: &Tensor, expected: Expect) {
    expected.assert_eq(&steady(x.rich().plain()));
}

/// As [`check`], whether another test has compiled the program before or not.
fn check_values(x: &Tensor, expected: Expect) {
    let text = steady(x.rich().plain());
    expected.assert_eq(&text.replace("compiled in N ms", "ran").replace("from the cache", "ran"));
}

#[test]
fn values_are_aligned_and_told_with_what_they_are() {
    let _alone = alone();
    check(
        &tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]),
        expect![[r#"
        [[1., 2., 3.],
         [4., 5., 6.]]
        f32[2,3] on cpu:0 · already computed"#]],
    );
    let x = tensor([[1.0, -2.5], [100.0, 0.25]]);
    let y = &x * 1.5;
    check(
        &y,
        expect![[r#"
        [[  1.5000,  -3.7500],
         [150.0000,   0.3750]]
        f32[2,2] on cpu:0 · compiled in N ms"#]],
    );
    check(
        &y,
        expect![[r#"
        [[  1.5000,  -3.7500],
         [150.0000,   0.3750]]
        f32[2,2] on cpu:0 · already computed"#]],
    );
    check(
        &(&x * 2.5),
        expect![[r#"
        [[  2.5000,  -6.2500],
         [250.0000,   0.6250]]
        f32[2,2] on cpu:0 · from the cache"#]],
    );
    check(
        &(&x * 2.0).requires_grad_(true),
        expect![[r#"
        [[  2.0000,  -5.0000],
         [200.0000,   0.5000]]
        f32[2,2] on cpu:0 · from the cache · requires grad"#]],
    );
}

#[test]
fn every_dtype_has_its_form() {
    let _alone = alone();
    check_values(
        &tensor([1, -20, 300]),
        expect![[r#"
        [  1, -20, 300]
        i64[3] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor([true, false]),
        expect![[r#"
        [ true, false]
        bool[2] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor([1u8, 200]),
        expect![[r#"
        [  1, 200]
        u8[2] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor(vec![1.5f64, 1e-7]),
        expect![[r#"
        [1.5000e+00, 1.0000e-07]
        f64[2] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor([0.1, 1.0 / 3.0]).to(BF16),
        expect![[r#"
        [0.1001, 0.3340]
        bf16[2] on cpu:0 · ran"#]],
    );
    check_values(
        &tensor([0.1, 65504.0]).to(F16),
        expect![[r#"
        [9.9976e-02, 6.5504e+04]
        f16[2] on cpu:0 · ran"#]],
    );
    check_values(
        &tensor([1.5, -2.0]).to(C64),
        expect![[r#"
        [ 1.5000+0.j, -2.0000+0.j]
        c64[2] on cpu:0 · ran"#]],
    );
    check_values(
        &tensor([f32::NAN, f32::INFINITY, 1.0]),
        expect![[r#"
        [nan, inf,  1.]
        f32[3] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor([1.0, 123456.0]),
        expect![[r#"
        [1.0000e+00, 1.2346e+05]
        f32[2] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor([9007199254740993i64]),
        expect![[r#"
        [9007199254740993]
        i64[1] on cpu:0 · already computed"#]],
    );
}

#[test]
fn odd_shapes_are_shown() {
    let _alone = alone();
    check_values(
        &tensor(0.1),
        expect![[r#"
        0.1000
        f32[] on cpu:0 · already computed"#]],
    );
    check_values(
        &tensor(7),
        expect![[r#"
        7
        i64[] on cpu:0 · already computed"#]],
    );
    check_values(
        &Tensor::zeros([0]),
        expect![[r#"
        []
        f32[0] on cpu:0 · ran"#]],
    );
    check_values(
        &Tensor::zeros([2, 0, 3]),
        expect![[r#"
        []
        f32[2,0,3] on cpu:0 · ran"#]],
    );
    check_values(
        &Tensor::arange(0, 8, 1).reshape([2, 2, 2]),
        expect![[r#"
        [[[0, 1],
          [2, 3]],

         [[4, 5],
          [6, 7]]]
        i64[2,2,2] on cpu:0 · ran"#]],
    );
    check_values(
        &Tensor::arange(0, 30, 1),
        expect![[r#"
        [ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19,
         20, 21, 22, 23, 24, 25, 26, 27, 28, 29]
        i64[30] on cpu:0 · ran"#]],
    );
}

#[test]
fn large_tensors_show_their_edges() {
    let _alone = alone();
    check_values(
        &Tensor::arange(0, 2000, 1),
        expect![[r#"
        [   0,    1,    2,  ..., 1997, 1998, 1999]
        i64[2000] on cpu:0 · ran"#]],
    );
    check_values(
        &Tensor::arange(0, 10_000, 1).reshape([100, 100]),
        expect![[r#"
        [[   0,    1,    2,  ...,   97,   98,   99],
         [ 100,  101,  102,  ...,  197,  198,  199],
         [ 200,  201,  202,  ...,  297,  298,  299],
         ...,
         [9700, 9701, 9702,  ..., 9797, 9798, 9799],
         [9800, 9801, 9802,  ..., 9897, 9898, 9899],
         [9900, 9901, 9902,  ..., 9997, 9998, 9999]]
        i64[100,100] on cpu:0 · ran"#]],
    );
    check_values(
        &Tensor::arange(0, 4000, 1).reshape([2, 1000, 2]),
        expect![[r#"
        [[[   0,    1],
          [   2,    3],
          [   4,    5],
          ...,
          [1994, 1995],
          [1996, 1997],
          [1998, 1999]],

         [[2000, 2001],
          [2002, 2003],
          [2004, 2005],
          ...,
          [3994, 3995],
          [3996, 3997],
          [3998, 3999]]]
        i64[2,1000,2] on cpu:0 · ran"#]],
    );
}

#[test]
fn a_huge_tensor_is_cut_down_on_the_device() {
    let _alone = alone();
    let x = Tensor::arange(0, 3_000_000, 1).reshape([3000, 1000]);
    sync();
    let before = metric_data("InboundData").unwrap().1;
    check_values(
        &x,
        expect![[r#"
        [[      0,       1,       2,  ...,     997,     998,     999],
         [   1000,    1001,    1002,  ...,    1997,    1998,    1999],
         [   2000,    2001,    2002,  ...,    2997,    2998,    2999],
         ...,
         [2997000, 2997001, 2997002,  ..., 2997997, 2997998, 2997999],
         [2998000, 2998001, 2998002,  ..., 2998997, 2998998, 2998999],
         [2999000, 2999001, 2999002,  ..., 2999997, 2999998, 2999999]]
        i64[3000,1000] on cpu:0 · already computed"#]],
    );
    assert_eq!(metric_data("InboundData").unwrap().1 - before, 36.0 * 8.0);
}

#[test]
fn showing_leaves_the_pending_graph_alone() {
    let _alone = alone();
    let x = tensor([1.0, 2.0]);
    let y = (&x * 3.0).exp();
    let pending = show::ir(&y, false);
    let _ = format!("{y}");
    let again = show::ir(&y, false);
    assert_eq!(pending.plain().lines().count(), again.plain().lines().count());
    assert!(again.plain().contains("cached"));
}

#[test]
fn display_is_the_values_alone() {
    let _alone = alone();
    let x = tensor([[1.5, 2.0]]);
    assert_eq!(format!("{x}"), "[[1.5000, 2.0000]]");
    assert_eq!(format!("{x:.1}"), "[[1.5, 2.0]]");
    assert_eq!(format!("loss {}", tensor(0.25)), "loss 0.2500");
    assert_eq!(format!("{:?}", &x * 2.0), "Tensor(f32[1,2], pending)");
}

#[test]
fn html_holds_every_value_and_escapes() {
    let _alone = alone();
    let html = |x: &Tensor| x.rich().get("text/html").unwrap().to_owned();
    let of = html(&tensor([[1.5, 2.0], [f32::NAN, 4.0]]));
    for value in ["1.5000", "2.0000", "nan", "4.0000"] {
        assert_eq!(of.matches(&format!(">{value}</td>")).count(), 1, "{of}");
    }
    assert_eq!(html(&Tensor::zeros([100, 100])).matches("0.</td>").count(), 36);
    assert_eq!(html(&Tensor::zeros([2, 3, 4, 5])).matches("<table").count(), 6);
    assert_eq!(html(&Tensor::zeros([64, 64, 3])).matches("<table").count(), 6);
    assert!(html(&Tensor::zeros([0])).contains("no elements"));
}

/// Width, height, channels and pixels of a bundle's PNG.
fn png_of(b: &Bundle) -> (u32, u32, usize, Vec<u8>) {
    let found = b.entries.iter().find(|(mime, _)| mime == "image/png").expect("a PNG");
    let Content::Bytes(bytes) = &found.1 else { panic!("a PNG is bytes") };
    let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    (info.width, info.height, info.color_type.samples(), pixels)
}

#[test]
fn pictures_decode_to_what_they_were() {
    let _alone = alone();
    let grey = image(&tensor([[0.0, 1.0], [0.5, 0.0]]));
    assert_eq!(grey.plain(), "image 2×2, grey, 0 to 1");
    let (w, h, channels, pixels) = png_of(&grey);
    assert_eq!((w, h, channels), (112, 112, 1));
    assert_eq!([pixels[0], pixels[111], pixels[111 * 112], pixels[112 * 112 - 1]], [0, 255, 128, 0]);

    let colour = Tensor::from_slice(&[255u8, 0, 0, 0, 0, 255], [1, 2, 3]).expand([2, 2, 3]);
    let (w, h, channels, pixels) = png_of(&image_with(&colour, ImageOptions { scale: Some(1), ..Default::default() }));
    let twice = [255, 0, 0, 0, 0, 255, 255, 0, 0, 0, 0, 255];
    assert_eq!((w, h, channels, &pixels[..]), (2, 2, 3, &twice[..]));
    let planes = colour.permute([2, 0, 1]);
    let (_, _, _, pixels) = png_of(&image_with(&planes, ImageOptions { scale: Some(1), ..Default::default() }));
    assert_eq!(pixels, twice);

    assert_eq!(image(&tensor([[-4.0, 12.0]])).plain(), "image 1×2, grey, -4 to 12");
    assert_eq!(image(&Tensor::zeros([3, 4])).plain(), "image 3×4, grey, 0 to 1");
    let refused = std::panic::catch_unwind(|| image(&Tensor::zeros([2, 5, 5])));
    assert!(refused.is_err(), "two channels are no colour");
}

#[test]
fn pictures_make_a_grid() {
    let _alone = alone();
    let batch = Tensor::arange(0, 5 * 8 * 8, 1).float().reshape([5, 8, 8]);
    let grid = images_with(&batch, ImageOptions { columns: Some(3), ..Default::default() });
    assert_eq!(grid.plain(), "5 images of 8×8, grey, 0 to 319");
    let (w, h, channels, _) = png_of(&grid);
    assert_eq!((w, h, channels), (3 * 70 - 6, 2 * 70 - 6, 4));
    let captions = vec!["<0>".to_owned(), "1".to_owned()];
    let two = images_with(&[&batch.select(0, 0), &batch.select(0, 1)], ImageOptions { captions, ..Default::default() });
    assert!(two.get("text/html").unwrap().contains("&lt;0&gt;"));
    assert!(two.plain().ends_with(": <0>, 1"));
}

#[test]
fn plots_are_svg_with_a_sparkline() {
    let losses: Vec<f64> = (0..100).map(|i| 2.0 / (1.0 + i as f64 / 10.0)).collect();
    let plot = line_plot("training", "step", "loss", &[("train", &losses), ("test", &[1.0, f64::NAN, 0.5])]);
    expect![[r#"
        training (loss over step)
        train  █▇▅▅▄▄▃▃▃▃▃▂▂▂▂▂▂▂▂▂▂▂▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁  first 2, last 0.1835, min 0.1835, max 2
        test   █ ▁  first 1, last 0.5, min 0.5, max 1"#]]
    .assert_eq(plot.plain());
    let svg = plot.get("image/svg+xml").unwrap();
    assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"), "{}", &svg[svg.len() - 40..]);
    assert_eq!(svg.matches("<svg").count(), 1);
    assert!(svg.contains("training") && svg.contains("step"));
    assert!(!svg.contains("NaN"));
    for (name, values) in [("none", vec![]), ("one", vec![3.0]), ("flat", vec![1.0; 5]), ("nan", vec![f64::NAN; 2])] {
        let plot = line_plot(name, "x", "y", &[(name, &values)]);
        assert!(plot.get("image/svg+xml").is_some_and(|svg| !svg.contains("NaN")), "{name}");
    }
}

#[test]
fn plots_have_marks_limits_and_scales() {
    let _alone = alone();
    let svg = |plot: Plot| plot.rich().get("image/svg+xml").unwrap().to_owned();
    let ys = [0.001, 0.1, 10.0, 1000.0];
    let log = svg(Plot::new("log").line("a", ys).log_y());
    assert!(["0.01", "1", "100"].iter().all(|tick| log.contains(&format!("\n{tick}\n"))), "{log}");
    let heights = |svg: &str| -> Vec<i32> {
        let points = svg.split("<polyline").last().unwrap().split("points=\"").nth(1).unwrap();
        points
            .split('"')
            .next()
            .unwrap()
            .split_whitespace()
            .map(|p| p.split(',').nth(1).unwrap().parse().unwrap())
            .collect()
    };
    let y = heights(&log);
    assert!(y.len() == 4 && (y[0] - y[1] - (y[2] - y[3])).abs() <= 2, "equal factors are equal steps: {y:?}");
    // What lies outside is cut off at the limits.
    let cut = svg(Plot::new("cut").line("a", [0.0, 10.0, 0.0]).y_limits(0.0, 5.0));
    let frame = heights(&cut);
    assert!(cut.matches("<polyline").count() > 2 && frame.iter().all(|y| (0..400).contains(y)), "{cut}");
    let bars = Plot::new("digits").bars(&["zero", "one"], vec![3, 6]).rich();
    assert!(bars.get("image/svg+xml").unwrap().contains("zero"));
    assert_eq!(bars.plain(), "digits\nzero  ███████████████ 3\none   ██████████████████████████████ 6");
    let values = Tensor::arange(0, 10, 1).float();
    let histogram = Plot::new("h").histogram("", &values, 2).rich();
    assert!(histogram.plain().contains("0 to 4.5") && histogram.plain().ends_with(" 5"), "{}", histogram.plain());
    let heat = Plot::new("eye").heat_map(&Tensor::eye(3)).rich();
    assert_eq!(heat.plain(), "eye\n█··\n·█·\n··█\n0 to 1");
    assert!(heat.get("image/svg+xml").unwrap().contains("#FDE725"), "the largest is yellow");
    // On a page it is an image on a card, which a script puts into the page, in its ink.
    let page = bars.get("text/html").unwrap();
    assert!(page.starts_with("<img id=\"xlazy-drawing-") && page.contains("alt=\"digits\"") && !page.contains("<svg"));
    assert!(
        page.contains("data:image/svg+xml;base64,") && page.contains("'currentColor'") && page.ends_with("</script>")
    );
    assert!(bars.get("image/svg+xml").unwrap().contains("<rect data-card=\"1\" width=\"640\""));
    let odd = [f64::NAN, f64::INFINITY, -1.0];
    for plot in [
        Plot::new("nothing"),
        Plot::new("nan").line("", odd).log_y().log_x(),
        Plot::new("flat").scatter("", [1.0], [1.0]).log_x(),
        Plot::new("none").histogram("", Vec::<f64>::new(), 0),
        Plot::new("limits").line("", [1.0]).x_limits(1.0, 1.0).y_limits(f64::NAN, 3.0),
        Plot::new("empty").heat_map(&Tensor::zeros([0, 0])),
        Plot::new("bars").bars::<&str>(&[], Vec::<f64>::new()),
    ] {
        let text = svg(plot);
        assert!(!text.contains("NaN") && !text.contains("inf\""), "{text}");
    }
    let two = grid(&[Plot::new("a").line("", [1.0]), Plot::new("b").size(300, 200)], 2);
    assert!(two.get("image/svg+xml").unwrap().contains("viewBox=\"0 0 1280 400\""));
}

#[test]
fn what_has_tensors_in_it_is_computed_by_one_program() {
    let _alone = alone();
    let x = tensor([1.5, 2.0]);
    let parts = (&x * 31.25, [Some((&x + 31.25).sum()), None], vec![x.to(BF16) * 3.0]);
    let count = |name| counter_value(name).unwrap();
    let (compiled, read) = (count("UncachedCompile"), count("SyncTensorsToData"));
    xlazy::display!(&parts);
    assert_eq!((count("UncachedCompile"), count("SyncTensorsToData")), (compiled + 1, read + 1));
    // They are there now, and showing them has not put an end to anything.
    let later = count("UncachedCompile");
    assert_eq!(parts.0.to_string(), "[46.8750, 62.5000]");
    assert_eq!(count("UncachedCompile"), later);
    assert_eq!(format!("{:?}", &x * 2.0), "Tensor(f32[2], pending)", "`Debug` itself runs nothing");
}

/// The lines of this file differ from edit to edit.
fn without_lines(text: &str) -> String {
    let cut = |l: &str| l.split("  # display.rs:").next().unwrap_or(l).trim_end().to_owned();
    text.lines().map(cut).collect::<Vec<_>>().join("\n")
}

#[test]
fn ir_and_graph_tell_what_is_pending_and_run_nothing() {
    let _alone = alone();
    let x = tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]);
    let y = &x * 2.0;
    let z = (&y + &y).sum_dim(0, false);
    let before = counter_value("UncachedCompile");
    expect![[r#"
        pending IR, not run
        IR {
          %0 = f32[2,3] device_data()
          %1 = f32[] scalar(2)
          %2 = f32[2,3] mul(%0, %1)
          %3 = f32[2,3] add(%2, %2)
          %4 = f32[3] sum(%3) {dim=[0], keepdim=false}, ROOT 0
        }"#]]
    .assert_eq(&without_lines(show::ir(&z, false).plain()));
    expect![[r#"
        5 nodes: 3 pending, 1 device data, 1 scalar, 1 used more than once
        %4 sum f32[3] {dim=[0], keepdim=false}
          %3 add f32[2,3]
            %2 mul f32[2,3], used 2 times
              %0 device_data f32[2,3]
              %1 scalar f32[] 2
            %2 (above)"#]]
    .assert_eq(&without_lines(show::graph(&z, false).plain()));
    let line = show::ir(&z, false).plain().lines().last().unwrap().to_owned();
    assert_eq!(line, "}");
    assert!(show::ir(&z, false).plain().contains("# display.rs:"));
    let picture = show::graph(&z, false).get("image/svg+xml").unwrap().to_owned();
    assert_eq!(picture.matches("<rect").count(), 1 + 5, "the card and the nodes");
    assert_eq!(picture.matches("fill=\"none\"").count(), 4, "one line for each operand, however often it is one");
    let json = show::graph(&z, true);
    assert!(json.get("application/json").unwrap().contains("\"op\":\"sum\""));
    assert_eq!(counter_value("UncachedCompile"), before);
}

#[test]
fn programs_are_shown_before_and_after_xlas_passes() {
    let _alone = alone();
    let a = tensor([[1.0, 2.0], [3.0, 4.0]]);
    let y = a.matmul(&a).relu().sum();
    let runs = metric_data("ExecuteTime").unwrap().0;
    let stablehlo = show::stablehlo(&y, false).plain().to_owned();
    assert!(stablehlo.contains("stablehlo.dot_general"), "{stablehlo}");
    let hlo = show::hlo(&y, false).plain().to_owned();
    assert_eq!(metric_data("ExecuteTime").unwrap().0, runs, "nothing ran");
    for part in [
        "HloModule ",
        "ENTRY %",
        "ROOT %",
        " dot(%",
        "lhs_contracting_dims={1}, rhs_contracting_dims={0}",
        "dimensions={0,1}",
        "f32[2,2]{1,0}",
        "parameter(0)",
        "constant(0)",
    ] {
        assert!(hlo.contains(part), "no {part} in\n{hlo}");
    }
    let compiles = counter_value("UncachedCompile");
    assert_eq!(y.item(), 54.0);
    assert_eq!(counter_value("UncachedCompile"), compiles, "what was compiled for looking is what runs");
    assert!(show::hlo(&y, false).plain().contains("HloModule"), "also after it was read");
    sync();
    assert!(show::hlo(&y, false).plain().contains("nothing to compile"));
    assert!(show::stablehlo(&a, true).get("application/json").is_some_and(|j| j == "null"));
}

#[test]
fn convolutions_and_constants_read_as_hlo() {
    let _alone = alone();
    let x = Tensor::arange(0, 16, 1).float().reshape([4, 4]);
    let y = x.slice(0, 1, 4, 2).pad([1, 0], 0.5).argmax_dim(1, false);
    let hlo = show::hlo(&y, false).plain().to_owned();
    assert!(hlo.contains("to_apply=%") || hlo.contains("calls=%"), "{hlo}");
    assert!(hlo.contains("iota_dimension="), "{hlo}");
}
