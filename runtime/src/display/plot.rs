//! Plots as SVG, with a sparkline as their plain-text twin.
use super::number::short;
use plotters::prelude::*;
use std::fmt::Write;
use xlazy_mime::Bundle;

const SIZE: (u32, u32) = (640, 400);
// Told apart by people with the common colour blindnesses, too (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(90, 90, 90),
];
const INK: RGBColor = RGBColor(45, 45, 50);
const CARD: &str = "#f7f7f8";

/// Lines over their index 0, 1, 2…: losses over steps, say. Values that are not finite leave gaps.
///
/// ```
/// use xlazy::prelude::*;
/// let losses = vec![2.0, 1.0, 0.5];
/// let plot = line_plot("training", "step", "loss", &[("train", &losses)]);
/// assert_eq!(plot.plain().lines().nth(1).unwrap(), "train  █▃▁  first 2, last 0.5, min 0.5, max 2");
/// ```
pub fn line_plot(title: &str, x_label: &str, y_label: &str, series: &[(&str, &[f64])]) -> Bundle {
    let indexed = |ys: &[f64]| ys.iter().enumerate().map(|(i, &y)| (i as f64, y)).collect();
    let points: Vec<(&str, Points)> = series.iter().map(|(name, ys)| (*name, indexed(ys))).collect();
    draw(&Labels { title, x: x_label, y: y_label }, &points, true)
}

/// Points at (x, y), one colour for each series. Points that are not finite are left out.
///
/// ```
/// use xlazy::prelude::*;
/// let plot = scatter_plot("two clouds", "x", "y", &[("a", &[(0.0, 1.0), (1.0, 2.0)]), ("b", &[(3.0, 0.0)])]);
/// assert!(plot.get("image/svg+xml").unwrap().contains("<circle"));
/// ```
pub fn scatter_plot(title: &str, x_label: &str, y_label: &str, series: &[(&str, &[(f64, f64)])]) -> Bundle {
    let points: Vec<(&str, Points)> = series.iter().map(|(name, points)| (*name, points.to_vec())).collect();
    draw(&Labels { title, x: x_label, y: y_label }, &points, false)
}

type Points = Vec<(f64, f64)>;

struct Labels<'a> {
    title: &'a str,
    x: &'a str,
    y: &'a str,
}

fn draw(labels: &Labels, series: &[(&str, Points)], lines: bool) -> Bundle {
    let mut plain = format!("{} ({} over {})", labels.title, labels.y, labels.x);
    let width = series.iter().map(|(n, _)| n.chars().count()).max().unwrap_or(0);
    for (name, points) in series {
        let ys: Vec<f64> = points.iter().map(|p| p.1).collect();
        let _ = write!(plain, "\n{name:width$}  {}", summary(&ys, lines));
    }
    match svg(labels, series, lines) {
        Ok(svg) => Bundle::text(plain).with("image/svg+xml", svg),
        // The text says what can be said of it.
        Err(_) => Bundle::text(plain),
    }
}

fn svg(labels: &Labels, series: &[(&str, Points)], lines: bool) -> Result<String, Box<dyn std::error::Error>> {
    let all = || series.iter().flat_map(|(_, p)| p).filter(|(x, y)| x.is_finite() && y.is_finite());
    let x_range = span(all().map(|p| p.0), if lines { 0.0 } else { 0.04 });
    let y_range = span(all().map(|p| p.1), 0.06);
    let mut body = String::new();
    {
        let root = SVGBackend::with_string(&mut body, SIZE).into_drawing_area();
        let text = |size: u32| ("sans-serif", size).into_font().color(&INK);
        let mut chart = ChartBuilder::on(&root)
            .caption(labels.title, text(18))
            .margin(14)
            .x_label_area_size(42)
            .y_label_area_size(62)
            .build_cartesian_2d(x_range, y_range)?;
        chart
            .configure_mesh()
            .x_desc(labels.x)
            .y_desc(labels.y)
            .axis_desc_style(text(14))
            .label_style(text(12))
            .axis_style(INK)
            .bold_line_style(INK.mix(0.16))
            .light_line_style(INK.mix(0.0))
            .x_labels(8)
            .y_labels(6)
            .x_label_formatter(&|v| short(*v))
            .y_label_formatter(&|v| short(*v))
            .draw()?;
        for (i, (name, points)) in series.iter().enumerate() {
            let colour = COLOURS[i % COLOURS.len()];
            let drawn = if lines {
                // One element for each unbroken stretch; the legend hangs on the first.
                let mut stretches = points.split(|(_, y)| !y.is_finite()).filter(|s| !s.is_empty());
                let style = colour.stroke_width(2);
                let first = stretches.next().unwrap_or(&[]).to_vec();
                for rest in stretches {
                    chart.draw_series(LineSeries::new(rest.to_vec(), style))?;
                }
                chart.draw_series(LineSeries::new(first, style))?
            } else {
                let finite = points.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
                chart.draw_series(finite.map(|&at| Circle::new(at, 3, colour.mix(0.75).filled())))?
            };
            drawn.label(*name).legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 16, y + 2)], colour.filled()));
        }
        if series.len() > 1 || series.iter().any(|(n, _)| !n.is_empty()) {
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::UpperRight)
                .background_style(WHITE.mix(0.85))
                .border_style(INK.mix(0.2))
                .label_font(text(13))
                .draw()?;
        }
        root.present()?;
    }
    Ok(on_card(&body))
}

/// The drawing on a card of its own: dark ink on light ground reads on light and on dark pages. Scales down with the page.
fn on_card(svg: &str) -> String {
    let start = svg.find('>').map_or(0, |i| i + 1);
    let (w, h) = SIZE;
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
         style=\"max-width:100%;height:auto\"><rect width=\"{w}\" height=\"{h}\" rx=\"8\" fill=\"{CARD}\"/>"
    );
    head + &svg[start..]
}

/// From the least to the largest value, with some air around; never empty.
fn span(values: impl Iterator<Item = f64>, air: f64) -> std::ops::Range<f64> {
    let (low, high) = values.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    match high - low {
        d if d > 0.0 && d.is_finite() => low - d * air..high + d * air,
        _ if low.is_finite() => low - 0.5..high + 0.5,
        _ => 0.0..1.0,
    }
}

fn summary(ys: &[f64], lines: bool) -> String {
    let finite: Vec<f64> = ys.iter().copied().filter(|v| v.is_finite()).collect();
    let (Some(first), Some(last)) = (finite.first(), finite.last()) else { return "no values".into() };
    let (min, max) = finite.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
    let (min, max) = (short(min), short(max));
    match lines {
        true => format!("{}  first {}, last {}, min {min}, max {max}", sparkline(ys), short(*first), short(*last)),
        false => format!("{} points, min {min}, max {max}", finite.len()),
    }
}

/// The course of a series in at most 40 characters; each stands for the mean of its part.
fn sparkline(ys: &[f64]) -> String {
    const BARS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let n = ys.len().min(40);
    let mean = |i: usize| {
        let part = &ys[i * ys.len() / n..(i + 1) * ys.len() / n];
        part.iter().sum::<f64>() / part.len() as f64
    };
    let means: Vec<f64> = (0..n).map(mean).collect();
    let finite = || means.iter().copied().filter(|v| v.is_finite());
    let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
    let bar = |v: f64| match v.is_finite() {
        true if high > low => BARS[((v - low) / (high - low) * 7.0).round() as usize],
        true => BARS[3],
        false => ' ',
    };
    means.into_iter().map(bar).collect()
}
