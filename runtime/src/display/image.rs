//! Tensors as pictures: PNG, with HTML captions for grids.
use super::number::short;
use super::tensor::numbers;
use crate::tensor::{Tensor, on_behalf, refuse};
use base64::prelude::{BASE64_STANDARD, Engine as _};
use std::fmt::Write;
use std::panic::Location;
use xlazy_core::ty::{DType, Shape};
use xlazy_mime::{Bundle, escape_html};

/// How pictures are shown; `ImageOptions::default()` and what differs from it.
#[derive(Clone, Debug, Default)]
pub struct ImageOptions {
    /// The values that are black and white. Without it u8 is taken as it is, floats between 0 and 1 as 0 to 1, and anything
    /// else from its least to its largest value.
    pub range: Option<(f64, f64)>,
    /// Screen pixels for one pixel of the tensor; without it small pictures are enlarged to about 112 pixels.
    pub scale: Option<usize>,
    /// Pictures side by side; without it as many as fit.
    pub columns: Option<usize>,
    /// A line below each picture, in order.
    pub captions: Vec<String>,
}

/// One picture or several: a tensor whose first dimension counts pictures, or a list of tensors.
pub trait Pictures {
    #[doc(hidden)]
    fn pictures(&self) -> Vec<Tensor>;
}

impl Pictures for Tensor {
    #[track_caller]
    fn pictures(&self) -> Vec<Tensor> {
        if !(3..=4).contains(&self.dim()) {
            refuse("images", &[self], "expected a batch: [N,H,W], [N,C,H,W] or [N,H,W,C]; one picture is `image(&x)`");
        }
        (0..self.size(0) as i64).map(|i| self.select(0, i)).collect()
    }
}

impl<T: std::borrow::Borrow<Tensor>> Pictures for [T] {
    fn pictures(&self) -> Vec<Tensor> {
        self.iter().map(|t| t.borrow().clone()).collect()
    }
}

impl<T: std::borrow::Borrow<Tensor>, const N: usize> Pictures for [T; N] {
    fn pictures(&self) -> Vec<Tensor> {
        self[..].pictures()
    }
}

impl<T: std::borrow::Borrow<Tensor>> Pictures for Vec<T> {
    fn pictures(&self) -> Vec<Tensor> {
        self[..].pictures()
    }
}

/// A tensor as a picture: `[H,W]` grey, `[C,H,W]` or `[H,W,C]` with 1, 3 or 4 channels. u8 is shown as it is, floats
/// from 0 to 1, other values from their least to their largest. Runs what the tensor needs.
///
/// ```
/// use xlazy::prelude::*;
/// let picture = image(&Tensor::eye(8));
/// assert_eq!(picture.plain(), "image 8×8, grey, 0 to 1");
/// ```
#[track_caller]
pub fn image(x: &Tensor) -> Bundle {
    image_with(x, ImageOptions::default())
}

/// As [`image`], with options.
#[track_caller]
pub fn image_with(x: &Tensor, options: ImageOptions) -> Bundle {
    let picture = Picture::of(x, options.range);
    let plain = format!("image {}", picture.words());
    let png = encode(&picture.enlarged(picture.scale(&options, 112)));
    match options.captions.first() {
        None => Bundle::text(plain).with_bytes("image/png", png),
        Some(caption) => {
            let html = figure(&png, Some(caption), &plain);
            Bundle::html(html, format!("{plain}: {caption}")).with_bytes("image/png", png)
        }
    }
}

/// Several tensors as a grid of pictures: a batch `[N,H,W]`, `[N,C,H,W]` or `[N,H,W,C]`, or a list of tensors
/// (`torchvision.utils.make_grid`).
///
/// ```
/// use xlazy::prelude::*;
/// let grid = images(&Tensor::rand([4, 8, 8]));
/// assert!(grid.plain().starts_with("4 images of 8×8"));
/// ```
#[track_caller]
pub fn images<P: Pictures + ?Sized>(pictures: &P) -> Bundle {
    images_with(pictures, ImageOptions::default())
}

/// As [`images`], with options: captions, columns, range, scale.
///
/// ```
/// use xlazy::prelude::*;
/// let digits = Tensor::rand([2, 8, 8]);
/// let captions = vec!["3".to_string(), "7".to_string()];
/// let grid = images_with(&digits, ImageOptions { captions, columns: Some(2), ..Default::default() });
/// assert!(grid.get("text/html").unwrap().contains("figcaption"));
/// ```
#[track_caller]
pub fn images_with<P: Pictures + ?Sized>(pictures: &P, options: ImageOptions) -> Bundle {
    // What is traced and read for the pictures is put down to the line that asked for them.
    let all = on_behalf(Location::caller(), false, || Raw::of_all(&pictures.pictures()));
    if all.is_empty() {
        return Bundle::text("no images");
    }
    // One range for all, so that the pictures can be compared.
    let range = options.range.unwrap_or_else(|| Raw::range(&all));
    let pictures: Vec<Picture> = all.iter().map(|raw| raw.picture(range)).collect();
    let scale = pictures[0].scale(&options, 64);
    let columns = options.columns.unwrap_or_else(|| (640 / (pictures[0].width * scale + GAP)).clamp(1, 16));
    let columns = columns.clamp(1, pictures.len());
    let large: Vec<Picture> = pictures.iter().map(|p| p.enlarged(scale)).collect();
    let mut plain = format!("{} images of {}", pictures.len(), pictures[0].words());
    if !options.captions.is_empty() {
        let _ = write!(plain, ": {}", options.captions.join(", "));
    }
    let sheet = encode(&sheet(&large, columns));
    if options.captions.is_empty() {
        return Bundle::text(plain).with_bytes("image/png", sheet);
    }
    let mut html =
        format!("<div style=\"display:inline-grid;grid-template-columns:repeat({columns},auto);gap:{GAP}px\">");
    for (i, p) in large.iter().enumerate() {
        html += &figure(&encode(p), options.captions.get(i), &pictures[i].words());
    }
    Bundle::html(html + "</div>", plain).with_bytes("image/png", sheet)
}

const GAP: usize = 6;

fn figure(png: &[u8], caption: Option<&String>, alt: &str) -> String {
    let caption = escape_html(caption.map_or("", |c| c));
    format!(
        "<figure style=\"margin:0;text-align:center\"><img alt=\"{}\" src=\"data:image/png;base64,{}\" \
         style=\"image-rendering:pixelated;max-width:100%\"><figcaption style=\"font-size:.85em;opacity:.85\">{caption}\
         </figcaption></figure>",
        escape_html(alt),
        BASE64_STANDARD.encode(png)
    )
}

/// A tensor's values with what its dimensions mean.
struct Raw {
    width: usize,
    height: usize,
    channels: usize,
    planes_first: bool,
    dtype: DType,
    values: Vec<f64>,
}

impl Raw {
    /// The picture without its values yet.
    #[track_caller]
    fn of(x: &Tensor) -> Raw {
        let channel = |c: usize| matches!(c, 1 | 3 | 4);
        let shape = x.shape();
        let (channels, height, width, planes_first) = match shape[..] {
            [h, w] => (1, h, w, true),
            [c, h, w] if channel(c) => (c, h, w, true),
            [h, w, c] if channel(c) => (c, h, w, false),
            _ => refuse("image", &[x], "expected [H,W], [C,H,W] or [H,W,C] with 1, 3 or 4 channels"),
        };
        if width == 0 || height == 0 {
            refuse("image", &[x], "a picture needs at least one pixel");
        }
        Raw { width, height, channels, planes_first, dtype: x.dtype(), values: Vec::new() }
    }

    #[track_caller]
    fn read(x: &Tensor) -> Raw {
        // what is no picture is refused before anything is computed
        let unread = Raw::of(x);
        let (_, _, values): (Shape, DType, _) = numbers(x);
        Raw { values, ..unread }
    }

    /// Pictures of one batch are read in one go.
    #[track_caller]
    fn of_all(tensors: &[Tensor]) -> Vec<Raw> {
        let same = tensors.windows(2).all(|w| w[0].shape() == w[1].shape() && w[0].dtype() == w[1].dtype());
        if !same || tensors.len() < 2 {
            let mut all = Vec::with_capacity(tensors.len());
            // A closure would lose the caller's line.
            for t in tensors {
                all.push(Raw::read(t));
            }
            return all;
        }
        let first = Raw::of(&tensors[0]);
        let refs: Vec<&Tensor> = tensors.iter().collect();
        let (_, _, values) = numbers(&crate::stack(&refs, 0));
        let chunks = values.chunks(first.width * first.height * first.channels);
        chunks.map(|c| Raw { values: c.to_vec(), ..Raw { values: Vec::new(), ..first } }).collect()
    }

    /// What is black and what is white when nobody says.
    fn range(all: &[Raw]) -> (f64, f64) {
        if all[0].dtype == DType::U8 {
            return (0.0, 255.0);
        }
        let finite = || all.iter().flat_map(|r| &r.values).copied().filter(|v| v.is_finite());
        let (low, high) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        match low >= 0.0 && high <= 1.0 || low > high {
            true => (0.0, 1.0),
            false => (low, if high > low { high } else { low + 1.0 }),
        }
    }

    fn picture(&self, (low, high): (f64, f64)) -> Picture {
        let pixels = self.width * self.height;
        let mut bytes = Vec::with_capacity(self.values.len());
        for i in 0..pixels {
            for c in 0..self.channels {
                let v = self.values[if self.planes_first { c * pixels + i } else { i * self.channels + c }];
                // NaN becomes black: the cast saturates.
                bytes.push(((v - low) / (high - low) * 255.0).round() as u8);
            }
        }
        Picture { width: self.width, height: self.height, channels: self.channels, range: (low, high), bytes }
    }
}

/// Pixels, row by row, `channels` bytes each.
struct Picture {
    width: usize,
    height: usize,
    channels: usize,
    range: (f64, f64),
    bytes: Vec<u8>,
}

impl Picture {
    #[track_caller]
    fn of(x: &Tensor, range: Option<(f64, f64)>) -> Picture {
        let raw = [Raw::read(x)];
        let range = range.unwrap_or_else(|| Raw::range(&raw));
        raw[0].picture(range)
    }

    fn words(&self) -> String {
        let kind = match self.channels {
            1 => "grey",
            3 => "RGB",
            _ => "RGBA",
        };
        format!("{}×{}, {kind}, {} to {}", self.height, self.width, short(self.range.0), short(self.range.1))
    }

    fn scale(&self, options: &ImageOptions, wanted: usize) -> usize {
        let fitting = wanted.div_ceil(self.width.max(self.height)).max(1);
        // A picture of a gigabyte helps nobody.
        options.scale.unwrap_or(fitting).clamp(1, (8192 / self.width.max(self.height)).max(1))
    }

    /// Each pixel as a square of `scale` × `scale`, not smoothed.
    fn enlarged(&self, scale: usize) -> Picture {
        let row_bytes = self.width * self.channels;
        let mut bytes = Vec::with_capacity(self.bytes.len() * scale * scale);
        for row in self.bytes.chunks(row_bytes) {
            let wide: Vec<u8> = row.chunks(self.channels).flat_map(|p| p.repeat(scale)).collect();
            (0..scale).for_each(|_| bytes.extend_from_slice(&wide));
        }
        Picture { width: self.width * scale, height: self.height * scale, bytes, ..*self }
    }
}

/// Pictures in rows of `columns`, on a transparent ground, so that it fits light and dark pages.
fn sheet(pictures: &[Picture], columns: usize) -> Picture {
    let (w, h) = (
        pictures.iter().map(|p| p.width).max().unwrap_or(1) + GAP,
        pictures.iter().map(|p| p.height).max().unwrap_or(1) + GAP,
    );
    let (width, height) = (w * columns - GAP, h * pictures.len().div_ceil(columns) - GAP);
    let mut bytes = vec![0u8; width * height * 4];
    for (i, p) in pictures.iter().enumerate() {
        let (left, top) = (i % columns * w, i / columns * h);
        for (n, pixel) in p.bytes.chunks(p.channels).enumerate() {
            let at = ((top + n / p.width) * width + left + n % p.width) * 4;
            let [r, g, b, a] = match *pixel {
                [v] => [v, v, v, 255],
                [r, g, b] => [r, g, b, 255],
                _ => [pixel[0], pixel[1], pixel[2], pixel[3]],
            };
            bytes[at..at + 4].copy_from_slice(&[r, g, b, a]);
        }
    }
    Picture { width, height, channels: 4, range: pictures[0].range, bytes }
}

fn encode(p: &Picture) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, p.width as u32, p.height as u32);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_color(match p.channels {
        1 => png::ColorType::Grayscale,
        3 => png::ColorType::Rgb,
        _ => png::ColorType::Rgba,
    });
    // Writing to memory cannot fail, and sizes are checked; an empty picture is what remains if it does.
    let written = encoder.write_header().and_then(|mut w| w.write_image_data(&p.bytes));
    if written.is_err() {
        out.clear();
    }
    out
}
