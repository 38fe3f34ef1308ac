//! Trees as nested, foldable rows. A tree of any size becomes a page of a
//! sensible one: what is outside comes first, then what was used most; what is
//! left out is counted.

use maud::{Markup, html};

use super::super::tree::Tree;

/// Rows in one tree, and in one branch of it.
const MOST_ROWS: usize = 1500;
const MOST_BESIDE: usize = 25;
/// Branches inside each other; browsers and stacks end somewhere.
const DEEPEST: usize = 60;

/// How the nodes of a tree are written.
pub trait Rows: Tree {
    /// One line.
    fn row(&self, node: usize) -> Markup;
    /// A line for the nodes that are not shown.
    fn rest(&self, nodes: &[usize]) -> Markup;
}

/// These nodes with everything below them.
pub fn forest(tree: &impl Rows, nodes: &[usize]) -> Markup {
    let mut rows = MOST_ROWS;
    html! { div class="tree" { (branch(tree, nodes, 0, &mut rows)) } }
}

fn branch(tree: &impl Rows, nodes: &[usize], depth: usize, rows: &mut usize) -> Markup {
    let room = if depth >= DEEPEST { 0 } else { MOST_BESIDE.min(*rows) };
    // One more row is no longer than saying that there is one more.
    let count = if nodes.len() <= room + 1 && room > 0 { nodes.len() } else { room };
    let (shown, rest) = nodes.split_at(count);
    *rows = rows.saturating_sub(count);
    html! {
        ul {
            @for node in shown {
                @let node = tree.shown(*node);
                @let below = tree.children(node);
                li {
                    @if below.is_empty() {
                        div class="row" { (tree.row(node)) }
                    } @else {
                        details open[is_open(tree, node, depth, nodes.len())] {
                            summary class="row" { (tree.row(node)) }
                            (branch(tree, &below, depth + 1, rows))
                        }
                    }
                }
            }
            @if !rest.is_empty() { li { div class="row rest" { (tree.rest(rest)) } } }
        }
    }
}

/// The way to what is outside is open, and the first step where there is no
/// choice.
fn is_open(tree: &impl Tree, node: usize, depth: usize, beside: usize) -> bool {
    (tree.is_marked(node) && depth < 12) || (depth < 2 && beside == 1)
}
