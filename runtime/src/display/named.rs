//! Tensors by name, such as a `state_dict()`: a row each, with shape and dtype in columns, and the values of the smallest.
use super::tensor::inside;
use crate::insight::Cause;
use crate::tensor::{Tensor, shown_by};
use xlazy_core::ty::Type;
use xlazy_mime::{Bundle, Cell, Table, columns, count, plural, units};

/// Tensors of more elements have no values in the table, and are not computed for it.
const SMALL: usize = 8;
/// Nor are those beyond.
const MOST_VALUES: usize = 100;
const CELL: &str = "padding:1px 8px;white-space:pre;border:none";

pub(crate) fn bundle(all: &[(String, Tensor)]) -> Bundle {
    if all.is_empty() {
        return Bundle::text("[]");
    }
    let is_small = |t: &Tensor| t.numel() <= SMALL;
    let small: Vec<Tensor> = all.iter().map(|(_, t)| t).filter(|t| is_small(t)).take(MOST_VALUES).cloned().collect();
    if let Some(first) = small.first() {
        let at = shown_by().unwrap_or_else(|| first.location());
        Tensor::compute(&small, Cause::Display, at).unwrap_or_else(|e| super::fail(e, at));
    }
    let mut values = small.iter().map(|t| inside(t, false).short);
    let types: Vec<Type> = all.iter().map(|(_, t)| t.ty().clone()).collect();
    let row = |((name, t), ty): (&(String, Tensor), &Type)| {
        let value = is_small(t).then(|| values.next()).flatten().filter(|text| *text != ty.to_string());
        let numbers = units::thousands(t.numel() as u64);
        [name.clone(), ty.shape.to_string(), ty.dtype.name().to_owned(), numbers, value.unwrap_or_default()]
    };
    let rows: Vec<[String; 5]> = all.iter().zip(&types).map(row).collect();
    let heads = ["name", "shape", "dtype", "numbers", "values"];
    let heads = &heads[..heads.len() - usize::from(rows.iter().all(|r| r[4].is_empty()))];
    let lines = [heads.iter().map(ToString::to_string).collect()].into_iter();
    let lines: Vec<Vec<String>> = lines.chain(rows.iter().map(|r| r[..heads.len()].to_vec())).collect();
    let (numbers, bytes) = all.iter().zip(&types).fold((0, 0), |(n, b), ((_, t), ty)| (n + t.numel(), b + ty.bytes()));
    let total = format!(
        "{}, {}, {}",
        count(all.len(), "tensor"),
        format_args!("{} {}", units::thousands(numbers as u64), plural(numbers as u64, "number")),
        units::bytes(bytes as u64)
    );
    let mut table = Table::new("border-collapse:collapse;margin:0;font-size:.92em;color:inherit;background:none");
    table.head(heads.iter().map(|head| Cell::text(head).style(CELL).left().style("opacity:.6")));
    for row in &rows {
        let cell = |(i, text): (usize, &String)| {
            let cell = Cell::text(text).style(CELL).style("font-family:ui-monospace,monospace");
            if i == 3 { cell.right() } else { cell.left() }
        };
        table.row(row[..heads.len()].iter().enumerate().map(cell));
    }
    let html = format!(
        "<div style=\"line-height:1.35\"><div style=\"overflow:auto;max-height:520px\">{}</div>\
         <div style=\"opacity:.65;font-size:.85em;padding-top:3px\">{total}</div></div>",
        table.html()
    );
    Bundle::html(html, format!("{}\n{total}", columns(&lines, &[3])))
}
