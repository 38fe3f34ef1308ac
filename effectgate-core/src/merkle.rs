//! The Merkle tree over a log's records (RFC 6962, 2.1; RFC 9162, 2.1): one
//! root stands for all of them, and a few hashes prove that a record is in it,
//! or that one log continues another, without the other records.
//!
//! The n-th leaf is the n-th record's line without its newline. Nothing here
//! holds more than one hash for each bit of the log's length.

use std::ops::Range;

use sha2::{Digest as _, Sha256};

/// SHA-256.
pub type Hash = [u8; 32];

/// What stands for a record in the tree: `SHA-256(0x00 || record)`.
pub fn leaf(record: &[u8]) -> Hash {
    Sha256::new().chain_update([0]).chain_update(record).finalize().into()
}

fn node(left: &Hash, right: &Hash) -> Hash {
    Sha256::new().chain_update([1]).chain_update(left).chain_update(right).finalize().into()
}

/// A tree that only grows: the roots of its perfect subtrees, widest first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    peaks: Vec<Hash>,
    size: u64,
}

impl Tree {
    /// Adds a leaf at the end.
    pub fn push(&mut self, leaf: Hash) {
        let mut hash = leaf;
        // Each one bit of the size is a perfect subtree.
        for _ in 0..self.size.trailing_ones() {
            if let Some(left) = self.peaks.pop() {
                hash = node(&left, &hash);
            }
        }
        self.peaks.push(hash);
        self.size += 1;
    }

    /// Count of leaves.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The tree head; of the empty tree the hash of nothing.
    pub fn root(&self) -> Hash {
        let mut peaks = self.peaks.iter().rev();
        let Some(last) = peaks.next() else { return Sha256::digest(b"").into() };
        peaks.fold(*last, |right, left| node(left, &right))
    }
}

/// The subtrees whose roots prove that the leaf `index` is in the tree of
/// `size` leaves, in the order of the proof; `None` where no such leaf is.
pub fn inclusion(index: u64, size: u64) -> Option<Vec<Range<u64>>> {
    if index >= size {
        return None;
    }
    let mut proof = Vec::new();
    let mut within = 0..size;
    while within.end - within.start > 1 {
        let (left, right) = halves(&within);
        let (inside, beside) = if index < left.end { (left, right) } else { (right, left) };
        proof.push(beside);
        within = inside;
    }
    proof.reverse();
    Some(proof)
}

/// The subtrees whose roots prove that the tree of `new` leaves begins with
/// the tree of `old` leaves; `None` where it cannot.
pub fn consistency(old: u64, new: u64) -> Option<Vec<Range<u64>>> {
    if old == 0 || old > new {
        return None;
    }
    let mut proof = Vec::new();
    let mut within = 0..new;
    // Where the old tree is a subtree of the new one, its root is known.
    let mut whole = true;
    while within.end > old {
        let (left, right) = halves(&within);
        if old <= left.end {
            proof.push(right);
            within = left;
        } else {
            proof.push(left);
            within = right;
            whole = false;
        }
    }
    if !whole {
        proof.push(within);
    }
    proof.reverse();
    Some(proof)
}

/// A range of more than one leaf, split at the largest power of two below its
/// length.
fn halves(range: &Range<u64>) -> (Range<u64>, Range<u64>) {
    let length = range.end - range.start;
    let middle = range.start + (1 << (length - 1).ilog2());
    (range.start..middle, middle..range.end)
}

/// Finds the roots of subtrees while the leaves go by, in order.
#[derive(Clone, Debug)]
pub struct Roots {
    wanted: Vec<(Range<u64>, Tree)>,
    next: u64,
}

impl Roots {
    pub fn new(ranges: Vec<Range<u64>>) -> Self {
        let wanted = ranges.into_iter().map(|range| (range, Tree::default())).collect();
        Roots { wanted, next: 0 }
    }

    /// Takes the next leaf.
    pub fn push(&mut self, leaf: Hash) {
        for (range, tree) in &mut self.wanted {
            if range.contains(&self.next) {
                tree.push(leaf);
            }
        }
        self.next += 1;
    }

    /// The roots, in the order of the ranges; `None` while leaves are missing.
    pub fn finish(self) -> Option<Vec<Hash>> {
        let whole = self.wanted.iter().all(|(range, _)| range.end <= self.next);
        whole.then(|| self.wanted.iter().map(|(_, tree)| tree.root()).collect())
    }
}

/// Whether the leaf `index` is in the tree of `size` leaves with this root
/// (RFC 9162, 2.1.3.2).
pub fn includes(root: &Hash, size: u64, index: u64, leaf: Hash, proof: &[Hash]) -> bool {
    if index >= size {
        return false;
    }
    let (mut at, mut last, mut hash) = (index, size - 1, leaf);
    for beside in proof {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            hash = node(beside, &hash);
            up_to_a_right_child(&mut at, &mut last);
        } else {
            hash = node(&hash, beside);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && hash == *root
}

/// Whether the tree of `new` leaves begins with the tree of `old` leaves
/// (RFC 9162, 2.1.4.2).
pub fn continues(old: (u64, &Hash), new: (u64, &Hash), proof: &[Hash]) -> bool {
    let ((old, old_root), (new, new_root)) = (old, new);
    if old == 0 || old > new {
        return false;
    }
    if old == new {
        return proof.is_empty() && old_root == new_root;
    }
    let known = old.is_power_of_two().then_some(old_root);
    let mut proof = known.into_iter().chain(proof);
    let Some(first) = proof.next() else { return false };
    let (mut at, mut last) = (old - 1, new - 1);
    let shift = at.trailing_ones();
    (at, last) = (at >> shift, last >> shift);
    let (mut old_hash, mut new_hash) = (*first, *first);
    for beside in proof {
        if last == 0 {
            return false;
        }
        if at & 1 == 1 || at == last {
            old_hash = node(beside, &old_hash);
            new_hash = node(beside, &new_hash);
            up_to_a_right_child(&mut at, &mut last);
        } else {
            new_hash = node(&new_hash, beside);
        }
        (at, last) = (at >> 1, last >> 1);
    }
    last == 0 && old_hash == *old_root && new_hash == *new_root
}

/// The levels on which a subtree at the right edge has nothing beside it.
fn up_to_a_right_child(at: &mut u64, last: &mut u64) {
    while *at & 1 == 0 && *at != 0 {
        (*at, *last) = (*at >> 1, *last >> 1);
    }
}

#[cfg(test)]
mod tests;
