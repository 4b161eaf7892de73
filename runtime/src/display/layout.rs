//! Layered layout of a directed acyclic graph: layers by longest path, order by barycentres, edges through free lanes.

/// Where a node stands: its left upper corner.
#[derive(Clone, Copy, Debug)]
pub(super) struct Box2 {
    pub x: f64,
    pub y: f64,
    pub width: f64,
}

pub(super) struct Plan {
    pub boxes: Vec<Box2>,
    /// For each edge the points it goes through, from the operand's lower to the user's upper side.
    pub edges: Vec<Vec<(f64, f64)>>,
    pub width: f64,
    pub height: f64,
}

const GAP_X: f64 = 16.0;
const GAP_Y: f64 = 34.0;
const MARGIN: f64 = 6.0;
/// The room that an edge takes where it passes through a layer.
const LANE: f64 = 8.0;

/// A node, or a place where an edge passes through a layer.
struct Item {
    layer: usize,
    width: f64,
    above: Vec<usize>,
    below: Vec<usize>,
    x: f64,
}

/// Lays out nodes of these widths and one height; `inputs[i]` are the nodes that point to node `i`, all earlier ones.
pub(super) fn layout(widths: &[f64], height: f64, inputs: &[Vec<usize>]) -> Plan {
    let layers = layers(inputs);
    let mut items: Vec<Item> = widths
        .iter()
        .zip(&layers)
        .map(|(&width, &layer)| Item { layer, width, above: vec![], below: vec![], x: 0.0 })
        .collect();
    let mut chains: Vec<Vec<usize>> = Vec::new();
    for (to, from) in inputs.iter().enumerate().flat_map(|(to, from)| from.iter().map(move |&f| (to, f))) {
        let mut chain = vec![from];
        for layer in layers[from] + 1..layers[to] {
            items.push(Item { layer, width: LANE, above: vec![], below: vec![], x: 0.0 });
            chain.push(items.len() - 1);
        }
        chain.push(to);
        for pair in chain.windows(2) {
            items[pair[0]].below.push(pair[1]);
            items[pair[1]].above.push(pair[0]);
        }
        chains.push(chain);
    }
    let mut rows: Vec<Vec<usize>> = vec![Vec::new(); layers.iter().max().map_or(0, |m| m + 1)];
    (0..items.len()).for_each(|i| rows[items[i].layer].push(i));
    order(&mut rows, &items);
    place(&rows, &mut items);
    let left = items.iter().map(|i| i.x).fold(f64::INFINITY, f64::min);
    items.iter_mut().for_each(|i| i.x += MARGIN - left);
    let top = |layer: usize| MARGIN + layer as f64 * (height + GAP_Y);
    let boxes = items[..widths.len()].iter().map(|i| Box2 { x: i.x, y: top(i.layer), width: i.width }).collect();
    let route = |chain: &Vec<usize>| {
        let mut points = Vec::new();
        for (n, &i) in chain.iter().enumerate() {
            let (x, y) = (items[i].x + items[i].width / 2.0, top(items[i].layer));
            if n > 0 {
                points.push((x, y));
            }
            if n + 1 < chain.len() {
                points.push((x, y + height));
            }
        }
        points
    };
    let width = items.iter().map(|i| i.x + i.width).fold(0.0, f64::max) + MARGIN;
    Plan { boxes, edges: chains.iter().map(route).collect(), width, height: top(rows.len()) - GAP_Y + MARGIN }
}

/// Each node below all its inputs; inputs of the whole graph, and what is made of them alone, right above their first user.
fn layers(inputs: &[Vec<usize>]) -> Vec<usize> {
    let mut layer = vec![0usize; inputs.len()];
    for i in 0..inputs.len() {
        layer[i] = inputs[i].iter().map(|&f| layer[f] + 1).max().unwrap_or(0);
    }
    let mut first_user = vec![usize::MAX; inputs.len()];
    for i in (0..inputs.len()).rev() {
        // What takes nothing but inputs of the whole graph goes with them: a weight's transpose.
        let floats = inputs[i].iter().all(|&f| inputs[f].is_empty());
        if floats && first_user[i] != usize::MAX {
            layer[i] = first_user[i] - 1;
        }
        for &f in &inputs[i] {
            first_user[f] = first_user[f].min(layer[i]);
        }
    }
    layer
}

/// Fewer crossings: each item goes towards the middle of its neighbours, layer by layer, down and up again.
fn order(rows: &mut [Vec<usize>], items: &[Item]) {
    let mut position = vec![0.0; items.len()];
    let number = |row: &[usize], position: &mut [f64]| {
        row.iter().enumerate().for_each(|(n, &i)| position[i] = (n as f64 + 0.5) / row.len() as f64);
    };
    rows.iter().for_each(|row| number(row, &mut position));
    for sweep in 0..12 {
        let down = sweep % 2 == 0;
        let sequence: Vec<usize> = if down { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for r in sequence {
            let middle = |i: usize| {
                let near = if down { &items[i].above } else { &items[i].below };
                match near.len() {
                    0 => position[i],
                    n => near.iter().map(|&j| position[j]).sum::<f64>() / n as f64,
                }
            };
            let mut keyed: Vec<(f64, usize)> = rows[r].iter().map(|&i| (middle(i), i)).collect();
            keyed.sort_by(|a, b| a.0.total_cmp(&b.0));
            rows[r] = keyed.into_iter().map(|(_, i)| i).collect();
            number(&rows[r], &mut position);
        }
    }
}

/// Columns: each item as near to the middle of its neighbours as the order allows.
fn place(rows: &[Vec<usize>], items: &mut [Item]) {
    for row in rows {
        let mut x = 0.0;
        for &i in row {
            items[i].x = x;
            x += items[i].width + GAP_X;
        }
    }
    // The last goes down: a chain of ops ends up straight.
    for sweep in 0..15 {
        let down = sweep % 2 == 0;
        let sequence: Vec<usize> = if down { (0..rows.len()).collect() } else { (0..rows.len()).rev().collect() };
        for r in sequence {
            let wish = |i: usize| {
                let item = &items[i];
                let near = if down { &item.above } else { &item.below };
                match near.len() {
                    0 => item.x,
                    n => {
                        near.iter().map(|&j| items[j].x + items[j].width / 2.0).sum::<f64>() / n as f64
                            - item.width / 2.0
                    }
                }
            };
            let wishes: Vec<f64> = rows[r].iter().map(|&i| wish(i)).collect();
            let widths: Vec<f64> = rows[r].iter().map(|&i| items[i].width + GAP_X).collect();
            for (&i, x) in rows[r].iter().zip(settle(&wishes, &widths)) {
                items[i].x = x;
            }
        }
    }
}

/// The positions nearest to the wishes (least squares) that keep the order and do not overlap: neighbours that collide
/// form a block, which goes to the mean of its members' wishes.
fn settle(wishes: &[f64], widths: &[f64]) -> Vec<f64> {
    struct Block {
        first: usize,
        /// Sum of the members' wishes, each for where the block would begin.
        sum: f64,
        count: usize,
        width: f64,
    }
    impl Block {
        fn start(&self) -> f64 {
            self.sum / self.count as f64
        }
    }
    let mut blocks: Vec<Block> = Vec::new();
    for (i, (&wish, &width)) in wishes.iter().zip(widths).enumerate() {
        blocks.push(Block { first: i, sum: wish, count: 1, width });
        while let [.., a, b] = &blocks[..]
            && a.start() + a.width > b.start()
        {
            let joined = Block {
                first: a.first,
                sum: a.sum + b.sum - b.count as f64 * a.width,
                count: a.count + b.count,
                width: a.width + b.width,
            };
            blocks.truncate(blocks.len() - 2);
            blocks.push(joined);
        }
    }
    let mut out = vec![0.0; wishes.len()];
    for block in &blocks {
        let mut x = block.start();
        for i in block.first..block.first + block.count {
            out[i] = x;
            x += widths[i];
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_overlaps_and_edges_go_down() {
        // A pseudo-random graph: each node takes one or two earlier ones.
        let mut seed = 7u64;
        let mut next = |n: usize| {
            seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (seed >> 33) as usize % n
        };
        let inputs: Vec<Vec<usize>> =
            (0..120).map(|i| if i < 5 { vec![] } else { (0..1 + next(2)).map(|_| next(i)).collect() }).collect();
        let widths: Vec<f64> = (0..120).map(|_| 40.0 + next(100) as f64).collect();
        let plan = layout(&widths, 50.0, &inputs);
        for (i, a) in plan.boxes.iter().enumerate() {
            assert!(a.x >= 0.0 && a.x + a.width <= plan.width && a.y + 50.0 <= plan.height);
            for b in &plan.boxes[..i] {
                assert!(a.y != b.y || a.x + a.width <= b.x + 1e-6 || b.x + b.width <= a.x + 1e-6);
            }
            inputs[i].iter().for_each(|&f| assert!(plan.boxes[f].y < a.y));
        }
        assert!(plan.edges.iter().all(|e| e.windows(2).all(|p| p[0].1 < p[1].1)));
    }

    #[test]
    fn wishes_that_do_not_collide_are_granted() {
        assert_eq!(settle(&[0.0, 50.0], &[10.0, 10.0]), [0.0, 50.0]);
        assert_eq!(settle(&[10.0, 10.0], &[10.0, 10.0]), [5.0, 15.0]);
    }
}
