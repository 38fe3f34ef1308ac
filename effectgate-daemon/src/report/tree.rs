//! What is shown as a tree.

/// Nodes are numbers.
pub trait Tree {
    /// Below this node: what is outside first, then what was used most.
    fn children(&self, node: usize) -> Vec<usize>;
    /// Whether something in it is outside the policy.
    fn is_marked(&self, node: usize) -> bool;
    /// The node that stands for this one: a chain of nodes can be one line.
    fn shown(&self, node: usize) -> usize;
}
