//! Plots: what is drawn, and its plain-text twin. How it is drawn is `draw`'s.
use super::draw::{self, Figure, Marks, Series};
use super::number::short;
use super::picture;
use super::tensor::numbers;
use crate::tensor::Tensor;
use std::fmt::{Debug, Formatter, Write};
use std::panic::Location;
use std::path::Path;
use xlazy_mime::gather::found;
use xlazy_mime::{Bundle, Rich};

/// The numbers of a series: a slice, a vector or an array of numbers, or a tensor, whose values are computed.
pub struct Numbers(Vec<f64>);

macro_rules! numbers_of {
    ($($t:ty)*) => {$(
        impl From<&[$t]> for Numbers {
            fn from(values: &[$t]) -> Numbers {
                Numbers(values.iter().map(|&v| v as f64).collect())
            }
        }
        impl From<&Vec<$t>> for Numbers {
            fn from(values: &Vec<$t>) -> Numbers {
                values.as_slice().into()
            }
        }
        impl From<Vec<$t>> for Numbers {
            fn from(values: Vec<$t>) -> Numbers {
                values.as_slice().into()
            }
        }
        impl<const N: usize> From<&[$t; N]> for Numbers {
            fn from(values: &[$t; N]) -> Numbers {
                values.as_slice().into()
            }
        }
        impl<const N: usize> From<[$t; N]> for Numbers {
            fn from(values: [$t; N]) -> Numbers {
                values.as_slice().into()
            }
        }
    )*};
}
numbers_of!(f64 f32 i32 i64 u32 u64 usize);

impl From<&Tensor> for Numbers {
    #[track_caller]
    fn from(t: &Tensor) -> Numbers {
        Numbers(numbers(t).2)
    }
}

impl From<Tensor> for Numbers {
    #[track_caller]
    fn from(t: Tensor) -> Numbers {
        Numbers(numbers(&t).2)
    }
}

/// A plot: lines, points, bars, a histogram or a heat map over axes. It shows itself, in the colours of the page it is on.
///
/// ```
/// use xlazy::prelude::*;
/// let losses = [2.0, 0.7, 0.1];
/// let plot = Plot::new("training").x_label("step").y_label("loss").line("train", &losses).log_y();
/// assert!(plot.rich().get("image/svg+xml").unwrap().contains("<polyline"));
/// let clouds = Plot::new("clouds").scatter("a", &[0.0, 1.0], &[1.0, 2.0]).x_limits(0.0, 2.0);
/// let counts = Plot::new("digits").bars(&["zero", "one"], &[12, 15]);
/// let weights = Plot::new("weights").histogram("fc", &Tensor::randn([100]), 10);
/// let attention = Plot::new("attention").heat_map(&Tensor::eye(4));
/// display(&grid(&[plot, clouds, counts, weights, attention], 2));
/// ```
#[derive(Clone)]
pub struct Plot(Figure);

impl Plot {
    pub fn new(title: &str) -> Plot {
        Plot(Figure {
            title: title.to_owned(),
            x_label: String::new(),
            y_label: String::new(),
            series: Vec::new(),
            x_limits: None,
            y_limits: None,
            log_x: false,
            log_y: false,
            size: (640, 400),
        })
    }

    pub fn x_label(self, text: &str) -> Plot {
        Plot(Figure { x_label: text.to_owned(), ..self.0 })
    }

    pub fn y_label(self, text: &str) -> Plot {
        Plot(Figure { y_label: text.to_owned(), ..self.0 })
    }

    fn with(mut self, name: &str, points: Vec<(f64, f64)>, marks: Marks) -> Plot {
        self.0.series.push(Series { name: name.to_owned(), points, marks });
        self
    }

    /// A line over the index 0, 1, 2… (`plt.plot(ys)`). Values that are not finite leave gaps.
    #[track_caller]
    pub fn line(self, name: &str, ys: impl Into<Numbers>) -> Plot {
        let points = ys.into().0.into_iter().enumerate().map(|(i, y)| (i as f64, y)).collect();
        self.with(name, points, Marks::Line)
    }

    /// A line through (x, y) (`plt.plot(xs, ys)`).
    #[track_caller]
    pub fn curve(self, name: &str, xs: impl Into<Numbers>, ys: impl Into<Numbers>) -> Plot {
        let points = pairs("curve", xs.into(), ys.into());
        self.with(name, points, Marks::Line)
    }

    /// Points at (x, y) (`plt.scatter`). Those that are not finite are left out.
    #[track_caller]
    pub fn scatter(self, name: &str, xs: impl Into<Numbers>, ys: impl Into<Numbers>) -> Plot {
        let points = pairs("scatter", xs.into(), ys.into());
        self.with(name, points, Marks::Points)
    }

    /// A bar for each name (`plt.bar`).
    #[track_caller]
    pub fn bars<S: AsRef<str>>(self, names: &[S], values: impl Into<Numbers>) -> Plot {
        let values = values.into().0;
        same_length("bars", names.len(), values.len());
        let points = values.into_iter().enumerate().map(|(i, v)| (i as f64, v)).collect();
        self.with("", points, Marks::Bars(names.iter().map(|n| n.as_ref().to_owned()).collect()))
    }

    /// How many of the values fall into each of `bins` equal parts of their range (`plt.hist`).
    #[track_caller]
    pub fn histogram(self, name: &str, values: impl Into<Numbers>, bins: usize) -> Plot {
        let values: Vec<f64> = values.into().0.into_iter().filter(|v| v.is_finite()).collect();
        let (low, high) = values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), &v| (l.min(v), h.max(v)));
        let bins = bins.max(1);
        let (low, high) = match high - low {
            width if width > 0.0 => (low, high),
            _ if values.is_empty() => (0.0, 1.0),
            _ => (low - 0.5, high + 0.5),
        };
        let edge = |i: usize| low + (high - low) * i as f64 / bins as f64;
        let mut counts = vec![0.0; bins];
        for v in &values {
            counts[(((v - low) / (high - low) * bins as f64) as usize).min(bins - 1)] += 1.0;
        }
        let points = counts.into_iter().enumerate().map(|(i, n)| (edge(i), n)).collect();
        self.with(name, points, Marks::Histogram(high))
    }

    /// A matrix as colours, row 0 on top (`plt.imshow`).
    #[track_caller]
    pub fn heat_map(self, matrix: &Tensor) -> Plot {
        let (shape, _, values) = numbers(matrix);
        let &[_, columns] = &shape[..] else {
            let message = format!("takes a matrix [rows, columns], not {shape}");
            let operands = vec![matrix.ty().to_string()];
            super::fail(crate::Error::Op { op: "heat_map", operands, message }, Location::caller())
        };
        let points = values.into_iter().enumerate().map(|(i, v)| ((i % columns.max(1)) as f64, v)).collect();
        self.with("", points, Marks::Heat(columns))
    }

    /// Where the x axis begins and ends (`plt.xlim`).
    pub fn x_limits(self, low: f64, high: f64) -> Plot {
        Plot(Figure { x_limits: Some((low, high)), ..self.0 })
    }

    /// Where the y axis begins and ends (`plt.ylim`).
    pub fn y_limits(self, low: f64, high: f64) -> Plot {
        Plot(Figure { y_limits: Some((low, high)), ..self.0 })
    }

    /// A logarithmic x axis (`plt.xscale("log")`). What is not positive is left out.
    pub fn log_x(self) -> Plot {
        Plot(Figure { log_x: true, ..self.0 })
    }

    /// A logarithmic y axis (`plt.yscale("log")`). What is not positive is left out.
    pub fn log_y(self) -> Plot {
        Plot(Figure { log_y: true, ..self.0 })
    }

    /// Width and height, in pixels.
    pub fn size(self, width: u32, height: u32) -> Plot {
        Plot(Figure { size: (width.clamp(120, 4000), height.clamp(90, 4000)), ..self.0 })
    }

    fn plain(&self) -> String {
        let over = [self.0.y_label.as_str(), self.0.x_label.as_str()].map(str::trim);
        let mut plain = match over {
            ["", ""] => self.0.title.clone(),
            [y, ""] => format!("{} ({y})", self.0.title),
            ["", x] => format!("{} (over {x})", self.0.title),
            [y, x] => format!("{} ({y} over {x})", self.0.title),
        };
        let width = self.0.series.iter().map(|s| s.name.chars().count()).max().unwrap_or(0);
        for series in &self.0.series {
            let ys: Vec<f64> = series.points.iter().map(|p| p.1).collect();
            let _ = match &series.marks {
                Marks::Bars(names) => write!(plain, "\n{}", bars(names, &ys)),
                Marks::Histogram(end) => {
                    let ends = series.points.iter().skip(1).map(|p| p.0).chain([*end]);
                    let names: Vec<String> = series
                        .points
                        .iter()
                        .zip(ends)
                        .map(|(p, end)| format!("{} to {}", short(p.0), short(end)))
                        .collect();
                    write!(plain, "\n{}", bars(&names, &ys))
                }
                Marks::Heat(columns) => write!(plain, "\n{}", shades(&ys, *columns)),
                marks => write!(plain, "\n{:width$}  {}", series.name, summary(&ys, *marks == Marks::Line)),
            };
        }
        plain
    }
}

impl Plot {
    /// Writes the picture to a file, by the ending of its name: `.svg`, `.html` or `.txt` (`matplotlib.pyplot.savefig`).
    ///
    /// Errors: another ending; what the system says of the file.
    ///
    /// ```
    /// use xlazy::prelude::*;
    /// let file = std::env::temp_dir().join(format!("{}.svg", std::process::id()));
    /// Plot::new("loss").line("", &[2.0, 1.0]).save(&file).unwrap();
    /// assert!(std::fs::read_to_string(&file).unwrap().starts_with("<svg"));
    /// # std::fs::remove_file(file).unwrap();
    /// ```
    pub fn save(&self, path: impl AsRef<Path>) -> std::io::Result<()> {
        self.rich().save(path)
    }
}

/// Inside of another value that is shown it is its picture.
impl Debug for Plot {
    fn fmt(&self, f: &mut Formatter) -> std::fmt::Result {
        found(f, || Box::new(self.rich())).unwrap_or_else(|| f.debug_tuple("Plot").field(&self.0).finish())
    }
}

impl Rich for Plot {
    fn rich(&self) -> Bundle {
        grid(std::slice::from_ref(self), 1)
    }
}

/// Several plots in one picture, so many side by side (`plt.subplots`).
///
/// ```
/// use xlazy::prelude::*;
/// let plots = [Plot::new("a").line("", &[1.0, 2.0]), Plot::new("b").bars(&["x"], &[1])];
/// assert!(grid(&plots, 2).get("image/svg+xml").unwrap().contains("viewBox=\"0 0 1280 400\""));
/// ```
pub fn grid(plots: &[Plot], columns: usize) -> Bundle {
    let plain: Vec<String> = plots.iter().map(Plot::plain).collect();
    let bundle = Bundle::text(plain.join("\n\n"));
    let figures: Vec<&Figure> = plots.iter().map(|p| &p.0).collect();
    match draw::svg(&figures, columns.clamp(1, plots.len().max(1))) {
        Ok(svg) => {
            let titles: Vec<&str> = figures.iter().map(|f| &*f.title).collect();
            bundle.with("text/html", picture::drawing(&svg, &titles.join(", "))).with("image/svg+xml", svg)
        }
        // The text says what can be said of it.
        Err(_) => bundle,
    }
}

/// Lines over their index 0, 1, 2…: losses over steps, say. [`Plot`] has more.
///
/// ```
/// use xlazy::prelude::*;
/// let losses = vec![2.0, 1.0, 0.5];
/// let plot = line_plot("training", "step", "loss", &[("train", &losses)]);
/// assert_eq!(plot.plain().lines().nth(1).unwrap(), "train  █▃▁  first 2, last 0.5, min 0.5, max 2");
/// ```
pub fn line_plot(title: &str, x_label: &str, y_label: &str, series: &[(&str, &[f64])]) -> Bundle {
    let plot = Plot::new(title).x_label(x_label).y_label(y_label);
    series.iter().fold(plot, |plot, (name, ys)| plot.line(name, *ys)).rich()
}

/// Points at (x, y), one colour for each series. [`Plot`] has more.
///
/// ```
/// use xlazy::prelude::*;
/// let plot = scatter_plot("two clouds", "x", "y", &[("a", &[(0.0, 1.0), (1.0, 2.0)]), ("b", &[(3.0, 0.0)])]);
/// assert!(plot.get("image/svg+xml").unwrap().contains("<circle"));
/// ```
pub fn scatter_plot(title: &str, x_label: &str, y_label: &str, series: &[(&str, &[(f64, f64)])]) -> Bundle {
    let plot = Plot::new(title).x_label(x_label).y_label(y_label);
    series.iter().fold(plot, |plot, (name, points)| plot.with(name, points.to_vec(), Marks::Points)).rich()
}

#[track_caller]
fn pairs(what: &'static str, xs: Numbers, ys: Numbers) -> Vec<(f64, f64)> {
    same_length(what, xs.0.len(), ys.0.len());
    xs.0.into_iter().zip(ys.0).collect()
}

#[track_caller]
fn same_length(what: &str, a: usize, b: usize) {
    if a != b {
        let message = format!("`{what}` takes as many of the one as of the other: there are {a} and {b}");
        super::fail(crate::Error::Usage { message }, Location::caller())
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

/// A line for each bar.
fn bars(names: &[String], values: &[f64]) -> String {
    let width = names.iter().map(|n| n.chars().count()).max().unwrap_or(0);
    let most = values.iter().copied().filter(|v| v.is_finite()).fold(0.0, |a: f64, v| a.max(v.abs()));
    let line = |(name, &v): (&String, &f64)| {
        let long = if most > 0.0 && v.is_finite() { (v.abs() / most * 30.0).round() as usize } else { 0 };
        format!("{name:width$}  {}{}{}", "█".repeat(long), if long > 0 { " " } else { "" }, short(v))
    };
    names.iter().zip(values).map(line).collect::<Vec<_>>().join("\n")
}

/// A character for each cell, or for the first of several.
fn shades(values: &[f64], columns: usize) -> String {
    const SHADES: [char; 5] = ['·', '░', '▒', '▓', '█'];
    let (low, high) = draw::extent(values.iter().copied());
    let shade = |v: f64| match v.is_finite() {
        true => SHADES[((v - low) / (high - low) * 4.0).round().clamp(0.0, 4.0) as usize],
        false => ' ',
    };
    let rows: Vec<&[f64]> = values.chunks(columns.max(1)).collect();
    let step = (rows.len().max(columns) / 40 + 1).max(1);
    let lines = rows.iter().step_by(step).map(|row| row.iter().step_by(step).map(|&v| shade(v)).collect::<String>());
    lines.chain([format!("{} to {}", short(low), short(high))]).collect::<Vec<_>>().join("\n")
}
