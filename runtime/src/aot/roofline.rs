//! How far a program is from what its chip can do: arithmetic intensity against published peak rates, as a picture.
use super::chips::{Chip, chip};
use super::report::Report;
use crate::display::Plot;
use crate::json::{Value, json};
use crate::{Error, Result};
use std::fmt::Write;
use xlazy_core::ir::Mark;
use xlazy_core::text::location;
use xlazy_mime::{Bundle, Rich, escape_html};

/// Kernels that get a point of their own.
const SHOWN: usize = 6;

/// A program or one of its kernels.
struct Point {
    name: String,
    /// Operations per byte to and from memory.
    intensity: f64,
    /// Operations per second, by the compiler's estimate of time.
    rate: f64,
    /// Part of the estimated time.
    share: f64,
}

/// A program on the roofline of its chip.
pub(super) struct Roofline {
    report: Report,
    chip: &'static Chip,
    /// The whole first, then the dearest kernels.
    points: Vec<Point>,
    /// Kernels that compute nothing, or have no estimate of time.
    left_out: usize,
}

impl Roofline {
    /// Of a report with its lines.
    pub fn of(report: Report, marks: &[Mark]) -> Result<Roofline> {
        let refused = |message: String| Err(Error::Usage { message });
        let Some(chip) = chip(&report.topology) else {
            return refused(format!("no peak rates of {} are known", report.topology));
        };
        if !report.fits() {
            return refused(format!(
                "the program does not fit on {}, so there is no time to compare with",
                report.topology
            ));
        }
        let mut kernels: Vec<(Point, u64)> = Vec::new();
        let (mut flops, mut bytes, mut cycles, mut left_out) = (0u64, 0u64, 0u64, 0);
        for line in &report.program {
            let Some(k) = &line.kernel else { continue };
            let times = k.times.unwrap_or(1);
            let all = |n: u64| n.saturating_mul(times);
            let work = k.flops.saturating_add(k.transcendentals);
            flops = flops.saturating_add(all(work));
            bytes = bytes.saturating_add(all(k.bytes));
            let taken = k.cycles.unwrap_or(0);
            cycles = cycles.saturating_add(all(taken));
            if work == 0 || k.bytes == 0 || taken == 0 {
                left_out += 1;
                continue;
            }
            let of = line.mark.and_then(|m| marks.get(m));
            let of = of.map_or_else(|| k.name.clone(), |m| format!("{} ({})", m.op.torch_name(), location(m.at)));
            let point = Point {
                name: of,
                intensity: work as f64 / k.bytes as f64,
                rate: work as f64 * chip.clock / taken as f64,
                share: all(taken) as f64,
            };
            kernels.push((point, all(taken)));
        }
        if kernels.is_empty() {
            return refused("the program has no kernel that computes something and has an estimate of time".into());
        }
        kernels.sort_by_key(|(_, taken)| std::cmp::Reverse(*taken));
        left_out += kernels.len().saturating_sub(SHOWN);
        let whole = Point {
            name: "the whole program".into(),
            intensity: flops as f64 / bytes.max(1) as f64,
            rate: flops as f64 * chip.clock / cycles.max(1) as f64,
            share: cycles as f64,
        };
        let points = std::iter::once(whole).chain(kernels.into_iter().take(SHOWN).map(|(p, _)| p));
        let points = points.map(|p| Point { share: p.share / cycles.max(1) as f64, ..p }).collect();
        Ok(Roofline { report, chip, points, left_out })
    }

    /// The most operations per second at an intensity.
    fn roof(&self, intensity: f64) -> f64 {
        self.chip.flops.min(self.chip.bandwidth * intensity)
    }

    fn rows(&self) -> Vec<[String; 5]> {
        let row = |p: &Point| {
            let roof = self.roof(p.intensity);
            let bound = if roof < self.chip.flops { "HBM bandwidth" } else { "the matrix units" };
            [
                p.name.clone(),
                format!("{:.1} % of the time", 100.0 * p.share),
                format!("{:.1} flops a byte", p.intensity),
                format!("{} of {}", rate(p.rate), rate(roof)),
                format!("{:.0} %, under {bound}", 100.0 * p.rate / roof),
            ]
        };
        self.points.iter().map(row).collect()
    }

    fn notes(&self) -> String {
        let c = self.chip;
        let ridge = c.flops / c.bandwidth;
        let mut out = format!(
            "{} at -O{}: the roof is the published bf16 peak, {}, and HBM's {:.0} GB/s; they meet at {ridge:.0} flops a byte. Times are \
             the compiler's estimates, bytes are counted as if every operand came from HBM, so that what stays in the chip's fast \
             memory may stand above the roof.",
            self.report.topology,
            self.report.level,
            rate(c.flops),
            c.bandwidth / 1e9,
        );
        if self.left_out > 0 {
            let _ = write!(out, " {} more kernels are cheaper, compute nothing or have no estimate.", self.left_out);
        }
        let _ = write!(out, "\nCost  {}", super::prices::line(&self.report));
        out
    }

    /// As data.
    pub fn json(&self) -> String {
        let one = |p: &Point| {
            json!({
                "name": p.name, "intensity": p.intensity, "flops_per_second": p.rate, "share": p.share,
                "roof": self.roof(p.intensity),
            })
        };
        json!({
            "topology": self.report.topology,
            "level": self.report.level,
            "peak_flops": self.chip.flops,
            "bandwidth": self.chip.bandwidth,
            "points": self.points.iter().map(one).collect::<Value>(),
            "report": self.report.value(),
        })
        .to_string()
    }
}

/// `1.2 Tflop/s`
fn rate(x: f64) -> String {
    let (unit, by) =
        [("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6)].into_iter().find(|(_, by)| x >= *by).unwrap_or(("", 1.0));
    format!("{:.1} {unit}flop/s", x / by)
}

impl Rich for Roofline {
    fn rich(&self) -> Bundle {
        let ridge = self.chip.flops / self.chip.bandwidth;
        let at = self.points.iter().map(|p| p.intensity);
        let least = at.clone().fold(ridge / 100.0, f64::min) / 2.0;
        let most = at.fold(ridge * 10.0, f64::max) * 2.0;
        let title = format!("{}: what the chip allows, and what the program does", self.report.topology);
        let mut plot =
            Plot::new(&title).x_label("flops a byte").y_label("flops a second").log_x().log_y().size(760, 460).curve(
                "roof",
                [least, ridge, most],
                [self.roof(least), self.chip.flops, self.chip.flops],
            );
        for p in &self.points {
            plot = plot.scatter(&p.name, [p.intensity], [p.rate]);
        }
        let drawn = plot.rich();
        let rows = self.rows();
        let mut plain = format!("{title}\n");
        let wide: [usize; 5] = std::array::from_fn(|k| rows.iter().map(|r| r[k].chars().count()).max().unwrap_or(0));
        for row in &rows {
            let line: String = row.iter().zip(wide).map(|(c, w)| format!("{c:<w$}  ")).collect();
            let _ = writeln!(plain, "  {}", line.trim_end());
        }
        let _ = write!(plain, "{}", self.notes());
        let mut table = xlazy_mime::Table::new("font-size:.9em");
        rows.iter().for_each(|row| table.row(row.iter().map(|c| xlazy_mime::Cell::text(c).left())));
        let notes = escape_html(&self.notes()).replace('\n', "<br>");
        let html = format!(
            "{}{}<div style=\"opacity:.75;font-size:.9em\">{notes}</div>",
            drawn.get("text/html").unwrap_or_default(),
            table.html()
        );
        let bundle = Bundle::html(html, plain);
        match drawn.get("image/svg+xml") {
            Some(svg) => bundle.with("image/svg+xml", svg.to_owned()),
            None => bundle,
        }
    }
}
