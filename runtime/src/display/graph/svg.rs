//! A folded graph as a drawing that needs no script.
use super::fold::{Picture, Seen};
use super::label::{self, Label};
use super::scene::Scene;
use crate::display::layout::{Box2, layout};
use crate::display::picture::{INK, card};
use std::fmt::Write;
use xlazy_mime::escape_html;

const HEIGHT: f64 = 50.0;

/// Dark ink on a light ground.
pub(super) fn svg(scene: &Scene, picture: &Picture) -> String {
    let labels: Vec<Label> = (0..picture.seen.len()).map(|n| label::of(scene, picture, n)).collect();
    let width = |l: &Label| {
        let [head, rest @ ..] = l.lines.each_ref().map(|l| l.chars().count() as f64);
        18.0 + rest.iter().fold(head * 7.3, |most, l| f64::max(most, l * 6.7))
    };
    let widths: Vec<f64> = labels.iter().map(|l| width(l).max(60.0)).collect();
    let plan = layout(&widths, HEIGHT, &picture.inputs);
    let (w, h) = (plan.width.ceil(), plan.height.ceil());
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{w}\" height=\"{h}\" fill=\"{INK}\" \
         font-family=\"ui-monospace,SFMono-Regular,Menlo,monospace\" font-size=\"11\">{}",
        card(w, h)
    );
    for edge in &plan.edges {
        let (x, y) = edge[0];
        let mut path = format!("M{x:.0} {y:.0}");
        for pair in edge.windows(2) {
            let ((x0, y0), (x1, y1)) = (pair[0], pair[1]);
            let middle = (y0 + y1) / 2.0;
            let _ = write!(path, "C{x0:.0} {middle:.0} {x1:.0} {middle:.0} {x1:.0} {y1:.0}");
        }
        let (x, y) = edge[edge.len() - 1];
        let _ = write!(
            out,
            "<path d=\"{path}\" fill=\"none\" stroke=\"{INK}\" stroke-opacity=\".45\"/>\
             <path d=\"M{x:.0} {y:.0}l-3.5 -6h7z\" fill-opacity=\".6\"/>"
        );
    }
    for ((seen, l), Box2 { x, y, width }) in picture.seen.iter().zip(&labels).zip(&plan.boxes) {
        let border = if l.result { 2.5 } else { 1.0 };
        let colour = l.colour;
        let _ = write!(out, "<g><title>{}</title>", escape_html(&l.title));
        let stacked = matches!(seen, Seen::Group(_));
        let dashed = if matches!(seen, Seen::Stub(_)) { " stroke-dasharray=\"4 3\"" } else { "" };
        if stacked {
            let _ = write!(
                out,
                "<rect x=\"{:.0}\" y=\"{:.0}\" width=\"{width:.0}\" height=\"{HEIGHT:.0}\" rx=\"5\" fill=\"none\" \
                 stroke=\"{colour}\" stroke-opacity=\".5\"/>",
                x + 3.0,
                y + 3.0
            );
        }
        let _ = write!(
            out,
            "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"{width:.0}\" height=\"{HEIGHT:.0}\" rx=\"5\" fill=\"{colour}\" \
             fill-opacity=\".16\" stroke=\"{colour}\" stroke-width=\"{border}\"{dashed}/>"
        );
        if let Some(edge) = &l.edge {
            let _ = write!(
                out,
                "<rect x=\"{x:.0}\" y=\"{y:.0}\" width=\"7\" height=\"{HEIGHT:.0}\" rx=\"3\" fill=\"{edge}\"/>"
            );
        }
        let middle = x + width / 2.0;
        for (i, (text, style)) in l
            .lines
            .iter()
            .zip(["font-weight=\"bold\" font-size=\"12\"", "", "fill-opacity=\".6\" font-size=\"10\""])
            .enumerate()
            .filter(|(_, (text, _))| !text.is_empty())
        {
            let _ = write!(
                out,
                "<text x=\"{middle:.0}\" y=\"{:.0}\" text-anchor=\"middle\" {style}>{}</text>",
                y + 16.0 + 14.0 * i as f64,
                escape_html(text)
            );
        }
        out += "</g>";
    }
    out + "</svg>"
}
