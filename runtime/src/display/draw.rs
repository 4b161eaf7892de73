//! How plots are drawn: axes, marks and legends as SVG.
use super::number::short;
use super::picture;
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::prelude::*;
use std::ops::Range;

// Told apart by people with the common colour blindnesses, too (Okabe and Ito).
const COLOURS: [RGBColor; 7] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(120, 120, 120),
];
/// Text and axes. On a page it becomes the page's colour, so nothing else may have it.
/// [`picture::INK`].
const INK: RGBColor = RGBColor(0x2d, 0x2d, 0x32);
/// A heat map of more cells a side is drawn with means of them.
const MOST_CELLS: usize = 64;

type Fallible = Result<(), Box<dyn std::error::Error>>;
type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Chart<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Axis, Axis>>;

/// What is drawn over two axes.
#[derive(Clone, Debug)]
pub(super) struct Figure {
    pub title: String,
    pub x_label: String,
    pub y_label: String,
    pub series: Vec<Series>,
    pub x_limits: Option<(f64, f64)>,
    pub y_limits: Option<(f64, f64)>,
    pub log_x: bool,
    pub log_y: bool,
    pub size: (u32, u32),
}

#[derive(Clone, Debug)]
pub(super) struct Series {
    pub name: String,
    pub points: Vec<(f64, f64)>,
    pub marks: Marks,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Marks {
    Line,
    Points,
    /// One at each of 0, 1, 2…, with what is below them.
    Bars(Vec<String>),
    /// From each point's x to the next one's; behind the last, this is where it ends.
    Histogram(f64),
    /// Points are rows by rows of so many columns: (column, value).
    Heat(usize),
}

/// So many side by side on a card, each in the room of the largest.
pub(super) fn svg(plots: &[&Figure], columns: usize) -> Result<String, Box<dyn std::error::Error>> {
    let rows = plots.len().div_ceil(columns);
    let (w, h) = plots.iter().fold((0, 0), |(w, h), p| (w.max(p.size.0), h.max(p.size.1)));
    let size = (w * columns as u32, h * rows as u32);
    let mut body = String::new();
    {
        let root = SVGBackend::with_string(&mut body, size).into_drawing_area();
        for (area, plot) in root.split_evenly((rows.max(1), columns)).iter().zip(plots) {
            match plot.series.iter().find(|s| matches!(s.marks, Marks::Heat(_))) {
                Some(heat) => draw_heat(area, plot, heat)?,
                None => draw(area, plot)?,
            }
        }
        root.present()?;
    }
    // Scales down with the page.
    let (w, h) = size;
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" \
         style=\"max-width:100%;height:auto\">{}",
        picture::card(w, h)
    );
    Ok(head + &body[body.find('>').map_or(0, |i| i + 1)..])
}

/// An axis from one number to another, which may be less; linear or logarithmic, or with a name at each whole number.
#[derive(Clone)]
struct Axis {
    range: Range<f64>,
    log: bool,
    names: bool,
}

impl Axis {
    /// Where a number lies between the ends, from 0 to 1; beyond where it is beyond.
    fn place(&self, v: f64) -> f64 {
        let scale = |v: f64| if self.log { v.max(f64::MIN_POSITIVE).log10() } else { v };
        (scale(v) - scale(self.range.start)) / (scale(self.range.end) - scale(self.range.start))
    }

    fn at(&self, place: f64) -> f64 {
        let Range { start, end } = self.range;
        match self.log {
            true => 10f64.powf(start.log10() + place * (end.log10() - start.log10())),
            false => start + place * (end - start),
        }
    }

    fn has(&self, v: f64) -> bool {
        (0.0..=1.0).contains(&self.place(v)) && (v > 0.0 || !self.log)
    }
}

impl Ranged for Axis {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, v: &f64, (from, to): (i32, i32)) -> i32 {
        from + ((to - from) as f64 * self.place(*v).clamp(-1.0, 2.0)).round() as i32
    }

    fn key_points<H: KeyPointHint>(&self, hint: H) -> Vec<f64> {
        let most = hint.bold_points().max(2);
        let (low, high) = (self.range.start.min(self.range.end), self.range.start.max(self.range.end));
        if self.log {
            let (first, last) = (low.log10().floor() as i32, high.log10().ceil() as i32);
            let decades = (first..=last).map(|e| 10f64.powi(e));
            let n = (last - first).unsigned_abs() as usize + 1;
            let (every, few) = (n / most + 1, n <= most / 2);
            let steps: &[f64] = if few { &[1.0, 2.0, 5.0] } else { &[1.0] };
            let all = decades.step_by(every).flat_map(|d| steps.iter().map(move |s| d * s));
            return all.filter(|v| self.has(*v)).collect();
        }
        // The least of 1, 2, 5, 10… that leaves few enough.
        let raw = (high - low) / most as f64;
        let power = 10f64.powf(raw.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= raw).unwrap_or(raw);
        let step = if self.names { step.max(1.0).ceil() } else { step };
        // Ends that no float tells apart, or farther apart than a float goes.
        if !(step > 0.0 && step.is_finite()) {
            return Vec::new();
        }
        let first = (low / step).ceil() as i64;
        (first..first.saturating_add(2 * most as i64 + 2))
            .map(|i| i as f64 * step)
            .filter(|v| (low..=high).contains(v))
            .collect()
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

/// From the least to the largest; never empty.
pub(super) fn extent(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let finite = values.filter(|v| v.is_finite());
    let (low, high) = finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), v| (l.min(v), h.max(v)));
    match high - low {
        d if d > 0.0 && d.is_finite() => (low, high),
        _ if low.is_finite() => {
            // By as much as makes a difference to a large number, too.
            let by = (low.abs().max(high.abs()) * 1e-6).max(0.5);
            (low - by, high + by)
        }
        _ => (0.0, 1.0),
    }
}

/// An axis that shows these values, with some air around, unless its limits are given.
fn axis(values: impl Iterator<Item = f64>, air: f64, limits: Option<(f64, f64)>, log: bool) -> Axis {
    let fits = |v: f64| v.is_finite() && (v > 0.0 || !log);
    let given = limits.filter(|(low, high)| fits(*low) && fits(*high) && low != high);
    let (low, high) = given.unwrap_or_else(|| match extent(values.filter(|v| fits(*v))) {
        (low, high) if log => {
            // What has no extent may have been widened to below zero.
            let (low, high) = if low > 0.0 { (low, high) } else { (high / 10.0, high * 10.0) };
            let grow = (high / low).powf(air);
            (low / grow, high * grow)
        }
        (low, high) => (low - (high - low) * air, high + (high - low) * air),
    });
    Axis { range: low..high, log, names: false }
}

fn axes(plot: &Figure) -> (Axis, Axis) {
    let all = || plot.series.iter().flat_map(|s| &s.points).filter(|(x, y)| x.is_finite() && y.is_finite());
    let ends = plot.series.iter().filter_map(|s| if let Marks::Histogram(end) = s.marks { Some(end) } else { None });
    let bars = |s: &Series| matches!(s.marks, Marks::Bars(_));
    let from_zero = |s: &Series| matches!(s.marks, Marks::Bars(_) | Marks::Histogram(_));
    let only_lines = plot.series.iter().all(|s| matches!(s.marks, Marks::Line | Marks::Histogram(_)));
    let x = match plot.series.iter().any(bars) {
        true => {
            let (low, high) = all().fold((-0.5, 0.5), |(l, h): (f64, f64), p| (l.min(p.0 - 0.5), h.max(p.0 + 0.5)));
            Axis { range: low..high, log: false, names: true }
        }
        false => axis(all().map(|p| p.0).chain(ends), if only_lines { 0.0 } else { 0.04 }, plot.x_limits, plot.log_x),
    };
    // Bars stand on zero, where there is one.
    let zero = (plot.series.iter().any(from_zero) && !plot.log_y).then_some(0.0);
    let mut y = axis(all().map(|p| p.1).chain(zero), 0.06, plot.y_limits, plot.log_y);
    if zero.is_some() && plot.y_limits.is_none() && all().all(|p| p.1 >= 0.0) {
        y.range.start = 0.0;
    }
    (x, y)
}

fn text(size: u32) -> TextStyle<'static> {
    ("sans-serif", size).into_font().color(&INK)
}

fn draw(area: &Area, plot: &Figure) -> Fallible {
    let (x, y) = axes(plot);
    let names = plot.series.iter().find_map(|s| if let Marks::Bars(names) = &s.marks { Some(names) } else { None });
    let mut chart = ChartBuilder::on(area)
        .caption(&plot.title, text(18))
        .margin(14)
        .x_label_area_size(42)
        .y_label_area_size(62)
        .build_cartesian_2d(x.clone(), y.clone())?;
    mesh(&mut chart, plot, &|v| match names {
        Some(names) => names.get(v.round() as usize).cloned().unwrap_or_default(),
        None => short(v),
    })?;
    for (i, series) in plot.series.iter().enumerate() {
        let colour = COLOURS[i % COLOURS.len()];
        let inside = series.points.iter().filter(|(px, py)| x.has(*px) && y.has(*py));
        let box_of = |from: f64, to: f64, v: f64| {
            let low = if y.log {
                y.range.start
            } else {
                0.0f64.clamp(y.range.start.min(y.range.end), y.range.end.max(y.range.start))
            };
            Rectangle::new([(from, low), (to, y.at(y.place(v).clamp(0.0, 1.0)))], colour.mix(0.85).filled())
        };
        let drawn = match &series.marks {
            Marks::Line => {
                // One element for each unbroken stretch; the legend hangs on the first.
                let mut stretches = stretches(&series.points, &x, &y).into_iter();
                let style = colour.stroke_width(2);
                let first = stretches.next().unwrap_or_default();
                for rest in stretches {
                    chart.draw_series(LineSeries::new(rest, style))?;
                }
                chart.draw_series(LineSeries::new(first, style))?
            }
            Marks::Bars(_) => {
                let finite = series.points.iter().filter(|p| p.1.is_finite());
                chart.draw_series(finite.map(|&(at, v)| box_of(at - 0.38, at + 0.38, v)))?
            }
            Marks::Histogram(end) => {
                let ends = series.points.iter().skip(1).map(|p| p.0).chain([*end]);
                let bars = series.points.iter().zip(ends).filter(|(p, end)| p.1 > 0.0 && x.has(p.0) && x.has(*end));
                chart.draw_series(bars.map(|(&(from, n), to)| box_of(from, to, n)))?
            }
            Marks::Points | Marks::Heat(_) => {
                chart.draw_series(inside.map(|&at| Circle::new(at, 3, colour.mix(0.75).filled())))?
            }
        };
        drawn.label(&series.name).legend(move |(x, y)| Rectangle::new([(x, y - 2), (x + 16, y + 2)], colour.filled()));
    }
    if plot.series.iter().any(|s| !s.name.is_empty()) {
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperRight)
            .border_style(INK.mix(0.2))
            .label_font(text(13))
            .draw()?;
    }
    Ok(())
}

fn mesh(chart: &mut Chart, plot: &Figure, x_text: &dyn Fn(f64) -> String) -> Fallible {
    chart
        .configure_mesh()
        .x_desc(&plot.x_label)
        .y_desc(&plot.y_label)
        .axis_desc_style(text(14))
        .label_style(text(12))
        .axis_style(INK)
        .bold_line_style(INK.mix(0.16))
        .light_line_style(INK.mix(0.0))
        .x_labels(8)
        .y_labels(6)
        .x_label_formatter(&|v| x_text(*v))
        .y_label_formatter(&|v| short(*v))
        .draw()?;
    Ok(())
}

/// The parts of a line that are finite and within the axes.
fn stretches(points: &[(f64, f64)], x: &Axis, y: &Axis) -> Vec<Vec<(f64, f64)>> {
    let drawn = |p: &(f64, f64)| p.0.is_finite() && p.1.is_finite() && (p.0 > 0.0 || !x.log) && (p.1 > 0.0 || !y.log);
    let mut out: Vec<Vec<(f64, f64)>> = vec![Vec::new()];
    for (i, p) in points.iter().enumerate() {
        let before = i.checked_sub(1).map(|b| &points[b]).filter(|b| drawn(b) && drawn(p));
        let Some(before) = before else {
            out.push(if drawn(p) && x.has(p.0) && y.has(p.1) { vec![*p] } else { Vec::new() });
            continue;
        };
        // From where to where it is inside, along the way from one to the other.
        let [from, to] = [before, p].map(|p| (x.place(p.0), y.place(p.1)));
        let (mut first, mut last) = (0.0f64, 1.0f64);
        for (a, b) in [(from.0, to.0), (from.1, to.1)] {
            let (at_zero, at_one) = ((0.0 - a) / (b - a), (1.0 - a) / (b - a));
            match b - a {
                0.0 if !(0.0..=1.0).contains(&a) => last = -1.0,
                0.0 => {}
                _ => (first, last) = (first.max(at_zero.min(at_one)), last.min(at_zero.max(at_one))),
            }
        }
        if first > last {
            out.push(Vec::new());
            continue;
        }
        let at = |t: f64| (x.at(from.0 + t * (to.0 - from.0)), y.at(from.1 + t * (to.1 - from.1)));
        if first > 0.0 {
            out.push(vec![at(first)]);
        }
        let line = out.last_mut().expect("there is one");
        line.push(if last < 1.0 { at(last) } else { *p });
        if last < 1.0 {
            out.push(Vec::new());
        }
    }
    out.retain(|line| !line.is_empty());
    out
}

fn draw_heat(area: &Area, plot: &Figure, heat: &Series) -> Fallible {
    let Marks::Heat(columns) = heat.marks else { return Ok(()) };
    let values: Vec<f64> = heat.points.iter().map(|p| p.1).collect();
    let rows = values.len() / columns.max(1);
    let (low, high) = extent(values.iter().copied());
    let (width, _) = area.dim_in_pixel();
    let (left, right) = area.split_horizontally(width as i32 - 74);
    let axis = |from: f64, to: f64| Axis { range: from..to, log: false, names: true };
    let mut chart = ChartBuilder::on(&left)
        .caption(&plot.title, text(18))
        .margin(14)
        .x_label_area_size(42)
        .y_label_area_size(62)
        .build_cartesian_2d(axis(-0.5, columns.max(1) as f64 - 0.5), axis(rows.max(1) as f64 - 0.5, -0.5))?;
    let (down, across) = (rows.div_ceil(MOST_CELLS).max(1), columns.div_ceil(MOST_CELLS).max(1));
    let cells = (0..rows).step_by(down).flat_map(|r| (0..columns).step_by(across).map(move |c| (r, c)));
    chart.draw_series(cells.map(|(r, c)| {
        let (end_r, end_c) = ((r + down).min(rows), (c + across).min(columns));
        let of = (r..end_r).flat_map(|r| (c..end_c).map(move |c| (r, c))).map(|(r, c)| values[r * columns + c]);
        let (sum, n) = of.fold((0.0, 0.0), |(sum, n), v| (sum + v, n + 1.0));
        let corner = |r: usize, c: usize| (c as f64 - 0.5, r as f64 - 0.5);
        Rectangle::new([corner(r, c), corner(end_r, end_c)], heat_colour((sum / n - low) / (high - low)).filled())
    }))?;
    mesh(&mut chart, plot, &short)?;
    // What the colours mean.
    let (_, height) = right.dim_in_pixel();
    let (top, bottom, steps) = (44, height as i32 - 60, 32);
    for i in 0..steps {
        let at = |i: i32| bottom - (bottom - top) * i / steps;
        let colour = heat_colour((i as f64 + 0.5) / steps as f64);
        right.draw(&Rectangle::new([(0, at(i + 1)), (14, at(i))], colour.filled()))?;
    }
    right.draw(&Text::new(short(high), (18, top - 4), text(12)))?;
    right.draw(&Text::new(short(low), (18, bottom - 8), text(12)))?;
    Ok(())
}

/// From dark blue over green to yellow, as evenly as the eye takes it (the ends and quarters of viridis); grey for what is no number.
fn heat_colour(part: f64) -> RGBColor {
    const STOPS: [[f64; 3]; 5] =
        [[68.0, 1.0, 84.0], [59.0, 82.0, 139.0], [33.0, 145.0, 140.0], [94.0, 201.0, 98.0], [253.0, 231.0, 37.0]];
    if !part.is_finite() {
        return RGBColor(150, 150, 150);
    }
    let at = part.clamp(0.0, 1.0) * 4.0;
    let i = (at as usize).min(3);
    let [r, g, b] =
        std::array::from_fn(|c| (STOPS[i][c] + (STOPS[i + 1][c] - STOPS[i][c]) * (at - i as f64)).round() as u8);
    RGBColor(r, g, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plotters::coord::ranged1d::BoldPoints;

    #[test]
    fn axes_of_one_large_number_have_an_extent() {
        let (low, high) = extent([1.7e18; 3].into_iter());
        assert!(low < 1.7e18 && 1.7e18 < high, "{low} {high}");
        assert_eq!(extent([2.0].into_iter()), (1.5, 2.5));
        let points = |range| Axis { range, log: false, names: false }.key_points(BoldPoints(8));
        assert!(!points(low..high).is_empty());
        assert!(points(1.7e18..1.7e18).is_empty() && points(f64::MIN..f64::MAX).is_empty());
    }
}
